// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_observe_write.c - write functions that fail, and that do things meanwhile.
 *
 * Linked with malloc() and its like wrapped: a report must not allocate.
 */
#define _GNU_SOURCE
#include "observe_support.h"

#include <fcntl.h>

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

/* Required: "without allocation". */
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
	return unit_run(suite);
}
