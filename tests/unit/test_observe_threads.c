// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_observe_threads.c - reports beside threads that charge, create and destroy.
 */
#define _GNU_SOURCE
#include "observe_support.h"

#include <fcntl.h>

#define THREADS 4
#define SECONDS 2

static _Atomic bool go_on;

/* Charges, creates and destroys below its own owner, and below that of all. */
static void *live(void *context)
{
	uint64_t state = (uintptr_t)context;
	struct pcpc_owner *mine = named(root, "mine"), *owner;
	static const char *const names[] = { "a", "a\n", "\xff", "b\"" };

	while (atomic_load(&go_on)) {
		owner = named(unit_below(&state, 2) ? mine : root, names[unit_below(&state, 4)]);
		(void)pcpc_owner_set_max(owner, 100);
		if (pcpc_charge(owner, 1 + unit_below(&state, 120)) == 0)
			pcpc_uncharge(owner, pcpc_owner_usage_exact(owner));
		ck_assert_int_eq(pcpc_owner_destroy(owner), 0);
		if (!unit_below(&state, 8))
			pcpc_domain_poll(domain);
	}
	return NULL;
}

/* Each id once, and after its parent. */
static void check_json(const char *text)
{
	static unsigned char seen[1u << 20];
	const char *line;
	char *end;
	unsigned long id;

	memset(seen, 0, sizeof(seen));
	for (line = text; (line = strstr(line, "\n{\"id\":")); line = end) {
		id = strtoul(line + 7, &end, 10);
		ck_assert_uint_lt(id, sizeof(seen));
		ck_assert_uint_eq(seen[id], 0);
		seen[id] = 1;
		ck_assert_int_eq(strncmp(end, ",\"parent\":", 10), 0);
		if (id != 1)
			ck_assert_uint_eq(seen[strtoul(end + 10, &end, 10)], 1);
	}
	ck_assert_uint_eq(seen[1], 1);
	ck_assert_str_eq(strrchr(text, ']') - 1, "\n]}\n");
}

static int compare_lines(const void *left, const void *right)
{
	return strcmp(*(char *const *)left, *(char *const *)right);
}

/* No series twice: all samples, less their values, sorted. */
static void check_metrics(char *text)
{
	unsigned int nr = 0, i, room = occurrences(text, "\n") + 1;
	char **lines = calloc(room, sizeof(char *)), *line, *rest = text;

	while ((line = strsep(&rest, "\n"))) {
		if (*line == '#' || !*line)
			continue;
		ck_assert_ptr_nonnull(strrchr(line, ' '));
		*strrchr(line, ' ') = '\0';
		lines[nr++] = line;
	}
	qsort(lines, nr, sizeof(char *), compare_lines);
	for (i = 1; i < nr; i++)
		ck_assert_str_ne(lines[i - 1], lines[i]);
	free(lines);
}

/* Required: "while charging goes on". */
START_TEST(reports_are_whole_while_threads_charge_create_and_destroy)
{
	const struct pcpc_report_config some = { sizeof(some), NULL, 0, 4 };
	uint64_t end = nanoseconds() + SECONDS * 1000000000ull;
	const struct pcpc_refusal refusal = { .id = 1, .name = "test" };
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	struct pcpc_domain_stats stats = { .size = sizeof(stats) };
	pthread_t threads[THREADS];
	unsigned int i, rounds = 0;
	char *text;

	if (!open_domain(_i, 16, 0))
		return;
	unit_stand_anywhere();
	atomic_store(&go_on, true);
	for (i = 0; i < THREADS; i++)
		ck_assert_int_eq(
			pthread_create(&threads[i], NULL, live, (void *)(uintptr_t)(i + 1)), 0);
	do {
		text = report_of(PCPC_FORMAT_JSON, rounds % 2 ? &some : NULL);
		check_json(text);
		free(text);
		text = report_of(PCPC_FORMAT_PROMETHEUS, rounds % 2 ? &some : NULL);
		check_metrics(text);
		free(text);
		ck_assert_int_eq(pcpc_domain_report_fd(domain, PCPC_FORMAT_TEXT, null), 0);
		ck_assert_int_eq(pcpc_refusal_report_fd(domain, &refusal, null), 0);
		pcpc_domain_get_stats(domain, &stats);
		ck_assert_uint_lt(stats.nr_offline, stats.nr_owners);
		rounds++;
	} while (nanoseconds() < end);
	atomic_store(&go_on, false);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	ck_assert_uint_ge(rounds, 2);
	pcpc_domain_poll(domain);
	assert_no_references();
	close(null);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("observe threads");
	TCase *tests = unit_case(suite, "threads");

	tcase_add_checked_fixture(tests, NULL, close_domain);
	by_each_engine(tests, reports_are_whole_while_threads_charge_create_and_destroy);
	return unit_run(suite);
}
