// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_observe_write.c - where a report goes, and what happens meanwhile: write functions that fail
 * and that do things, file descriptors of all kinds, and reports beside threads that charge, create
 * and destroy.
 *
 * Linked with malloc() and its like wrapped: a report must not allocate.
 */
#define _GNU_SOURCE
#include "observe_support.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>

/* -- allocation -- */

static _Thread_local bool watching;
static unsigned int allocations;

void *__real_malloc(size_t size);
void *__real_calloc(size_t number, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t number, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
char *__wrap_strdup(const char *text);

void *__wrap_malloc(size_t size)
{
	if (watching)
		allocations++;
	return __real_malloc(size);
}

void *__wrap_calloc(size_t number, size_t size)
{
	if (watching)
		allocations++;
	return __real_calloc(number, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
	if (watching)
		allocations++;
	return __real_realloc(memory, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
	if (watching)
		allocations++;
	return __real_aligned_alloc(alignment, size);
}

char *__wrap_strdup(const char *text)
{
	if (watching)
		allocations++;
	return __real_strdup(text);
}

/* Without assertions, which allocate. */
static int count_pieces(const char *piece, size_t length, void *context)
{
	unsigned int *pieces = context;

	++*pieces;
	return piece && length ? 0 : -EPROTO;
}

/* 40 owners on three levels, some with long names: several pieces in every format. */
static bool open_bushy(int engine)
{
	static const struct pcpc_item items[] = { { "file", "bytes" }, { "maps", NULL } };
	char name[300];
	unsigned int i;

	if (!open_named(engine, "r", "bytes", items, 2))
		return false;
	memset(name, 'n', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	for (i = 0; i < 39; i++)
		(void)named(i < 20 ? root : owner_of(domain, 2 + i % 20), name + i * 7);
	return true;
}

/* Issue 4, 6: "without allocation". */
START_TEST(a_report_allocates_nothing)
{
	const struct pcpc_report_config config = { sizeof(config), NULL, 3, 5 };
	const struct pcpc_refusal refusal = { .id = 1, .name = "r" };
	struct pcpc_domain_stats stats = { .size = sizeof(stats) };
	enum pcpc_format format;
	unsigned int pieces = 0;
	void *volatile memory; /* so that it is not left out */
	int fd, r = 0;

	if (!open_bushy(_i))
		return;
	fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	watching = true;
	memory = malloc(1);
	free(memory);
	for (format = PCPC_FORMAT_TEXT; format <= PCPC_FORMAT_PROMETHEUS; format++) {
		r |= pcpc_domain_report(domain, format, count_pieces, &pieces);
		r |= pcpc_domain_report_config(domain, format, &config, count_pieces, &pieces);
		r |= pcpc_domain_report_fd(domain, format, fd);
	}
	r |= pcpc_refusal_report_fd(domain, &refusal, fd);
	pcpc_domain_get_stats(domain, &stats);
	watching = false;
	ck_assert_int_eq(r, 0);
	ck_assert_uint_eq(allocations, 1); /* the one above: the wrapper works */
	ck_assert_uint_gt(pieces, 6);
	close(fd);
}
END_TEST

/* -- write functions -- */

struct failing {
	unsigned int calls, fail_at;
	int error;
};

static int fail_once(const char *piece, size_t length, void *context)
{
	struct failing *failing = context;

	(void)piece;
	(void)length;
	return ++failing->calls == failing->fail_at ? failing->error : 0;
}

static bool has_no_reference(struct pcpc_owner *owner, unsigned int depth, void *context)
{
	uint32_t id, children = 0;

	(void)depth;
	(void)context;
	for (id = books_of(owner)->first_child; id; id = domain->books[id].next)
		children++;
	/* its creator's, one a child, and that of this walk */
	ck_assert_uint_eq(atomic_load(&books_of(owner)->refs), 1 + children + 1);
	return true;
}

static void assert_no_references(void)
{
	pcpc_owner_walk(root, has_no_reference, NULL);
}

/* "the write function's negative errno stops and is returned", at every piece. */
START_TEST(a_write_function_that_fails_stops_the_report)
{
	const struct pcpc_report_config all = { .size = sizeof(all) },
					some = { sizeof(some), NULL, 0, 3 },
					*configs[] = { &all, &some };
	struct failing failing;
	enum pcpc_format format;
	unsigned int pieces, n, i;

	if (!open_bushy(_i))
		return;
	for (format = PCPC_FORMAT_TEXT; format <= PCPC_FORMAT_PROMETHEUS; format++) {
		for (i = 0; i < 2; i++) {
			pieces = 0;
			ck_assert_int_eq(pcpc_domain_report_config(domain, format, configs[i],
								   count_pieces, &pieces),
					 0);
			ck_assert_uint_ge(pieces, 2);
			for (n = 1; n <= pieces; n++) {
				failing = (struct failing){ 0, n, -1000 - (int)n };
				ck_assert_int_eq(pcpc_domain_report_config(domain, format,
									   configs[i], fail_once,
									   &failing),
						 failing.error);
				ck_assert_uint_eq(failing.calls, n);
			}
			assert_no_references();
		}
	}
}
END_TEST

static int charge_once(const char *piece, size_t length, void *context)
{
	struct pcpc_refusal refusal;
	struct pcpc_owner *owner = context;

	(void)piece;
	(void)length;
	charge(owner, 10);
	ck_assert_int_eq(pcpc_charge_flags(owner, 100, 0, &refusal), -EDQUOT);
	ck_assert_int_eq(pcpc_charge_wait(owner, 1, 0), 0);
	uncharge(owner, 11);
	(void)pcpc_owner_drain(root);
	pcpc_domain_poll(domain);
	return 0;
}

/* "no lock of ours held while the write function runs (it may charge, even block)". */
START_TEST(a_write_function_may_charge_wait_and_drain)
{
	enum pcpc_format format;

	if (!open_bushy(_i))
		return;
	ck_assert_int_eq(pcpc_owner_set_max(owner_of(domain, 2), 50), 0);
	for (format = PCPC_FORMAT_TEXT; format <= PCPC_FORMAT_PROMETHEUS; format++)
		ck_assert_int_eq(
			pcpc_domain_report(domain, format, charge_once, owner_of(domain, 2)), 0);
	assert_no_references();
}
END_TEST

struct elsewhere {
	struct worker worker;
	struct pcpc_owner *made;
};

static void change_tree(void *context)
{
	struct elsewhere *elsewhere = context;

	elsewhere->made = named(root, "made");
	(void)pcpc_owner_drain(root);
	ck_assert_int_eq(pcpc_owner_destroy(elsewhere->made), 0);
	pcpc_domain_poll(domain);
	ck_assert_uint_eq(pcpc_owner_stocked(root), 0);
}

static int let_another_work(const char *piece, size_t length, void *context)
{
	struct elsewhere *elsewhere = context;

	(void)piece;
	(void)length;
	worker_run(&elsewhere->worker, change_tree, elsewhere);
	return 0;
}

/* The same for other threads: they get every lock while the function waits for them. */
START_TEST(while_a_write_function_blocks_others_go_on)
{
	struct elsewhere elsewhere;
	enum pcpc_format format;

	if (!open_bushy(_i))
		return;
	worker_start(&elsewhere.worker, -1);
	for (format = PCPC_FORMAT_TEXT; format <= PCPC_FORMAT_PROMETHEUS; format++)
		ck_assert_int_eq(pcpc_domain_report(domain, format, let_another_work, &elsewhere),
				 0);
	worker_stop(&elsewhere.worker);
	assert_no_references();
}
END_TEST

static int make_children(const char *piece, size_t length, void *context)
{
	unsigned int i;

	for (i = 0; i < 20; i++)
		(void)named(owner_of(domain, 1 + i), "late");
	return collect(piece, length, context);
}

/* observe.h: "Owners that are made after the report began are not in it": so it ends. */
START_TEST(owners_made_meanwhile_are_not_shown_and_the_report_ends)
{
	const struct pcpc_report_config largest = { sizeof(largest), NULL, 0, 128 };
	enum pcpc_format format;
	struct text text;
	unsigned int i;

	for (format = PCPC_FORMAT_TEXT; format <= PCPC_FORMAT_PROMETHEUS; format++) {
		for (i = 0; i < 2; i++) {
			if (!open_bushy(_i))
				return;
			text = (struct text){ 0 };
			ck_assert_int_eq(pcpc_domain_report_config(domain, format,
								   i ? &largest : NULL,
								   make_children, &text),
					 0);
			ck_assert_uint_gt(domain->nr_owners, 40);
			assert_lacks(text.data, "late");
			free(text.data);
			close_domain();
		}
	}
}
END_TEST

static uint32_t destroy_all(void)
{
	struct everybody all = { 0 };
	uint32_t i;

	pcpc_owner_walk(root, note_owner, &all);
	for (i = all.nr; --i;)
		ck_assert_int_eq(pcpc_owner_destroy(all.owner[i]), 0);
	free(all.owner);
	return all.nr - 1;
}

/* Destroys every owner, sweeps, and makes new ones in their place. */
static int replace_all(const char *piece, size_t length, void *context)
{
	uint32_t nr = destroy_all();

	pcpc_domain_poll(domain);
	while (nr--)
		(void)named(root, "late");
	return collect(piece, length, context);
}

static int destroy_and_leave(const char *piece, size_t length, void *context)
{
	(void)destroy_all();
	return collect(piece, length, context);
}

/* Ids are used again at once: none of those who have them now is shown, and nobody twice. */
START_TEST(owners_replaced_meanwhile_are_not_confused)
{
	const struct pcpc_report_config largest = { sizeof(largest), NULL, 0, 128 };
	struct text text;
	unsigned int i, id;
	char key[64];

	for (i = 0; i < 2; i++) {
		if (!open_bushy(_i))
			return;
		text = (struct text){ 0 };
		ck_assert_int_eq(pcpc_domain_report_config(domain, PCPC_FORMAT_JSON,
							   i ? &largest : NULL, replace_all, &text),
				 0);
		ck_assert_uint_ge(text.calls, 2);
		assert_lacks(text.data, "late");
		for (id = 1; id < 100; id++) {
			snprintf(key, sizeof(key), "\n{\"id\":%u,", id);
			ck_assert_uint_le(occurrences(text.data, key), 1);
		}
		free(text.data);
		assert_no_references();
		close_domain();
	}
}
END_TEST

/* Also where no sweep has been yet. */
START_TEST(owners_destroyed_meanwhile_are_not_shown)
{
	const struct pcpc_report_config largest = { sizeof(largest), NULL, 0, 128 };
	struct text text;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		if (!open_bushy(_i))
			return;
		text = (struct text){ 0 };
		ck_assert_int_eq(pcpc_domain_report_config(domain, PCPC_FORMAT_JSON,
							   i ? &largest : NULL, destroy_and_leave,
							   &text),
				 0);
		/* the first piece had 1,024 characters; a line has 200 at least */
		ck_assert_uint_le(occurrences(text.data, "\n{\"id\":"), 6);
		free(text.data);
		close_domain();
	}
}
END_TEST

static int destroy_domain(const char *piece, size_t length, void *context)
{
	unsigned int *calls = context;

	(void)piece;
	(void)length;
	++*calls;
	ck_assert_int_eq(pcpc_domain_destroy(domain), -EBUSY);
	return 0;
}

/* observe.h: "pcpc_domain_destroy() answers -EBUSY there", to the last piece. */
START_TEST(a_domain_outlives_its_report)
{
	enum pcpc_format format;
	unsigned int calls = 0;

	if (!open_named(_i, "r", "", NULL, 0))
		return;
	for (format = PCPC_FORMAT_TEXT; format <= PCPC_FORMAT_PROMETHEUS; format++)
		ck_assert_int_eq(pcpc_domain_report(domain, format, destroy_domain, &calls), 0);
	ck_assert_uint_gt(calls, 0);
}
END_TEST

static int report_again(const char *piece, size_t length, void *context)
{
	unsigned int *depth = context, pieces = 0;
	int r = 0;

	(void)piece;
	(void)length;
	if (*depth < 3) {
		++*depth;
		r = pcpc_domain_report(domain, PCPC_FORMAT_JSON, report_again, depth);
		ck_assert_int_eq(
			pcpc_domain_report(domain, PCPC_FORMAT_TEXT, count_pieces, &pieces), 0);
		--*depth;
	}
	return r;
}

START_TEST(reports_nest)
{
	unsigned int depth = 0;

	if (!open_named(_i, "r", "", NULL, 0))
		return;
	(void)named(root, "a");
	ck_assert_int_eq(pcpc_domain_report(domain, PCPC_FORMAT_PROMETHEUS, report_again, &depth),
			 0);
	assert_no_references();
}
END_TEST

/* pcpcharge.h: "in a read-side section". */
START_TEST(a_report_may_be_made_inside_a_read_side_section)
{
	enum pcpc_format format;
	unsigned int pieces = 0;

	if (!open_bushy(_i))
		return;
	urcu_bp_read_lock();
	for (format = PCPC_FORMAT_TEXT; format <= PCPC_FORMAT_PROMETHEUS; format++)
		ck_assert_int_eq(pcpc_domain_report(domain, format, count_pieces, &pieces), 0);
	urcu_bp_read_unlock();
}
END_TEST

/* -- descriptors -- */

START_TEST(errors_of_a_descriptor_are_returned)
{
	enum pcpc_format format;
	int ends[2], fd, r;

	if (!open_bushy(_i))
		return;
	signal(SIGPIPE, SIG_IGN);
	for (format = PCPC_FORMAT_TEXT; format <= PCPC_FORMAT_PROMETHEUS; format++) {
		errno = 12345;
		ck_assert_int_eq(pcpc_domain_report_fd(domain, format, -1), -EBADF);
		fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
		ck_assert_int_ge(fd, 0);
		errno = 12345;
		ck_assert_int_eq(pcpc_domain_report_fd(domain, format, fd), -ENOSPC);
		ck_assert_int_eq(errno, 12345);
		close(fd);
		ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
		close(ends[0]);
		errno = 12345;
		ck_assert_int_eq(pcpc_domain_report_fd(domain, format, ends[1]), -EPIPE);
		ck_assert_int_eq(errno, 12345);
		close(ends[1]);
		/* nobody reads: it fills up */
		ck_assert_int_eq(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
		(void)fcntl(ends[1], F_SETPIPE_SZ, 4096);
		do
			r = pcpc_domain_report_fd(domain, format, ends[1]);
		while (r == 0);
		ck_assert_int_eq(r, -EAGAIN);
		close(ends[0]);
		close(ends[1]);
	}
	assert_no_references();
	fd = 1;
	ck_assert_int_eq(pcpc_write_fd("", 0, &fd), 0);
	ck_assert_int_eq(pcpc_write_fd("x", 1, NULL), -EINVAL);
}
END_TEST

struct reader {
	int fd;
	struct text text;
};

/* Slowly, and few bytes at a time, so that writes are partial. */
static void *read_all(void *context)
{
	struct reader *reader = context;
	char piece[97];
	ssize_t length;

	while ((length = read(reader->fd, piece, sizeof(piece))) != 0) {
		if (length > 0)
			(void)collect(piece, (size_t)length, &reader->text);
		sched_yield();
	}
	return NULL;
}

static void nothing(int number)
{
	(void)number;
}

static _Atomic bool storm;

static void *interrupt(void *context)
{
	const pthread_t *whom = context;

	while (atomic_load(&storm)) {
		pthread_kill(*whom, SIGUSR1);
		usleep(50);
	}
	return NULL;
}

/* A reader of a small pipe, and a handler without SA_RESTART that interrupts this thread. */
struct stormy {
	struct reader reader;
	pthread_t thread, interrupter, self;
	int end;
};

static void stormy_begin(struct stormy *stormy)
{
	const struct sigaction action = { .sa_handler = nothing };
	int ends[2];

	sigaction(SIGUSR1, &action, NULL);
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	(void)fcntl(ends[1], F_SETPIPE_SZ, 4096);
	*stormy = (struct stormy){ .reader.fd = ends[0], .self = pthread_self(), .end = ends[1] };
	atomic_store(&storm, true);
	pthread_create(&stormy->thread, NULL, read_all, &stormy->reader);
	pthread_create(&stormy->interrupter, NULL, interrupt, &stormy->self);
}

static char *stormy_end(struct stormy *stormy)
{
	atomic_store(&storm, false);
	pthread_join(stormy->interrupter, NULL);
	close(stormy->end);
	pthread_join(stormy->thread, NULL);
	close(stormy->reader.fd);
	return stormy->reader.text.data;
}

/* "partial writes and EINTR of fds handled": each byte arrives once. */
START_TEST(interrupted_writes_are_continued)
{
	enum pcpc_format format;
	struct stormy stormy;
	char *expected, *text;

	if (!open_bushy(_i))
		return;
	for (format = PCPC_FORMAT_TEXT; format <= PCPC_FORMAT_PROMETHEUS; format++) {
		expected = report_of(format, NULL);
		stormy_begin(&stormy);
		ck_assert_int_eq(pcpc_domain_report_fd(domain, format, stormy.end), 0);
		text = stormy_end(&stormy);
		ck_assert_str_eq(text, expected);
		free(text);
		free(expected);
	}
}
END_TEST

#define MUCH 200000u

/* A pipe takes pieces of a report whole or not at all; more than 4,096 bytes it takes in parts. */
START_TEST(partial_writes_are_continued)
{
	char *much = calloc(1, MUCH + 1), *text;
	struct stormy stormy;
	unsigned int i;
	int ends[2];

	for (i = 0; i < MUCH; i++)
		much[i] = (char)(1 + i % 251);
	stormy_begin(&stormy);
	ck_assert_int_eq(pcpc_write_fd(much, MUCH, &stormy.end), 0);
	text = stormy_end(&stormy);
	ck_assert_str_eq(text, much);
	free(text);
	/* nobody reads the rest */
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	ck_assert_int_eq(pcpc_write_fd(much, MUCH, &ends[1]), -EAGAIN);
	ck_assert_int_gt(read(ends[0], much, MUCH), 0);
	close(ends[0]);
	close(ends[1]);
	free(much);
}
END_TEST

/* "from where it stands": a file is appended to, not begun again. */
START_TEST(pcpc_write_fd_goes_with_limits)
{
	const struct pcpc_report_config config = { sizeof(config), NULL, 1, 0 };
	int fd = memfd_create("report", MFD_CLOEXEC);
	char text[4096] = { 0 }, *expected;
	size_t length;

	if (!open_bushy(_i))
		return;
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(
		pcpc_domain_report_config(domain, PCPC_FORMAT_JSON, &config, pcpc_write_fd, &fd),
		0);
	ck_assert_int_eq(
		pcpc_domain_report_config(domain, PCPC_FORMAT_JSON, &config, pcpc_write_fd, &fd),
		0);
	expected = report_of(PCPC_FORMAT_JSON, &config);
	length = strlen(expected);
	ck_assert_int_eq(pread(fd, text, sizeof(text) - 1, 0), (ssize_t)(2 * length));
	ck_assert_int_eq(memcmp(text, expected, length), 0);
	ck_assert_int_eq(memcmp(text + length, expected, length), 0);
	free(expected);
	close(fd);
}
END_TEST

/* -- beside threads -- */

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

/* Issue 4, 6: "while charging goes on". */
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
	stand_anywhere();
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
	Suite *suite = suite_create("observe write");
	TCase *tests = unit_case(suite, "write");

	tcase_add_checked_fixture(tests, NULL, close_domain);
	by_each_engine(tests, a_report_allocates_nothing);
	by_each_engine(tests, a_write_function_that_fails_stops_the_report);
	by_each_engine(tests, a_write_function_may_charge_wait_and_drain);
	by_each_engine(tests, while_a_write_function_blocks_others_go_on);
	by_each_engine(tests, owners_made_meanwhile_are_not_shown_and_the_report_ends);
	by_each_engine(tests, owners_replaced_meanwhile_are_not_confused);
	by_each_engine(tests, owners_destroyed_meanwhile_are_not_shown);
	by_each_engine(tests, a_domain_outlives_its_report);
	by_each_engine(tests, reports_nest);
	by_each_engine(tests, a_report_may_be_made_inside_a_read_side_section);
	by_each_engine(tests, errors_of_a_descriptor_are_returned);
	by_each_engine(tests, interrupted_writes_are_continued);
	tcase_add_test(tests, partial_writes_are_continued);
	by_each_engine(tests, pcpc_write_fd_goes_with_limits);
	by_each_engine(tests, reports_are_whole_while_threads_charge_create_and_destroy);
	return unit_run(suite);
}
