// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_page_counter.c - the page counters of kernel.h (semantics.md 4), with the numbers worked out
 * there.
 */
#define _GNU_SOURCE
#include <pcpcharge/kernel.h>

#include <pthread.h>

#include "unit_support.h"

static struct page_counter root, parent, child;

static void make_tree(void)
{
	page_counter_init(&root, NULL, true);
	page_counter_init(&parent, &root, true);
	page_counter_init(&child, &parent, true);
}

static void usage_is(unsigned long of_root, unsigned long of_parent, unsigned long of_child)
{
	ck_assert_uint_eq(page_counter_read(&root), of_root);
	ck_assert_uint_eq(page_counter_read(&parent), of_parent);
	ck_assert_uint_eq(page_counter_read(&child), of_child);
}

/* 4, 1 and 2: "usage 0, max = PAGE_COUNTER_MAX"; "add n at every level to the root, no limit test".
 */
START_TEST(a_charge_adds_at_every_level_whatever_the_limits)
{
	ck_assert_uint_eq(root.max, PAGE_COUNTER_MAX);
	usage_is(0, 0, 0);
	ck_assert_int_eq(page_counter_set_max(&parent, 5), 0);
	page_counter_charge(&child, 7);
	usage_is(7, 7, 7);
	page_counter_charge(&parent, 2);
	usage_is(9, 9, 7);
	page_counter_uncharge(&child, 7);
	page_counter_uncharge(&parent, 2);
	usage_is(0, 0, 0);
}
END_TEST

/* 4, 3: "new == max succeeds"; the level that refused is named; every usage is as it was; only its
 * failcnt moves, where the counter that was tried counts. */
START_TEST(a_refused_attempt_leaves_every_usage_as_it_was)
{
	struct page_counter *fail = NULL;

	child.track_failcnt = true;
	ck_assert_int_eq(page_counter_set_max(&parent, 10), 0);
	ck_assert(page_counter_try_charge(&child, 10, &fail));
	ck_assert_ptr_null(fail);
	ck_assert(!page_counter_try_charge(&child, 1, &fail));
	ck_assert_ptr_eq(fail, &parent);
	usage_is(10, 10, 10);
	ck_assert_uint_eq(parent.failcnt, 1);
	ck_assert_uint_eq(child.failcnt + root.failcnt, 0);
	ck_assert(!page_counter_try_charge(&parent, 1, &fail));
	ck_assert_uint_eq(parent.failcnt, 1);
}
END_TEST

/* 4, 3 and H29: "child unlimited, parent max 10, try 100: child usage 0, child watermark 100;
 * parent watermark unchanged". */
START_TEST(a_refused_attempt_raises_watermarks_below)
{
	struct page_counter *fail;

	ck_assert_int_eq(page_counter_set_max(&parent, 10), 0);
	ck_assert(!page_counter_try_charge(&child, 100, &fail));
	usage_is(0, 0, 0);
	ck_assert_uint_eq(child.watermark, 100);
	ck_assert_uint_eq(parent.watermark, 0);
	ck_assert_uint_eq(root.watermark, 0);
}
END_TEST

/* 4, 4; H22 and H23: an underflow warns once, leaves 0, and the next charge works. */
START_TEST(an_underflow_warns_once_and_refuses_nobody)
{
	unsigned long warnings = pcpc_kernel_warnings();
	struct page_counter *fail;

	page_counter_charge(&child, 18);
	page_counter_cancel(&child, 33);
	ck_assert_uint_eq(page_counter_read(&child), 0);
	page_counter_cancel(&child, 512);
	ck_assert_uint_eq(page_counter_read(&child), 0);
	ck_assert_uint_eq(pcpc_kernel_warnings(), warnings + 1);
	/* "(unsigned)-1 passed as a page count" */
	page_counter_uncharge(&child, (unsigned int)-1);
	usage_is(0, 0, 0);
	ck_assert_uint_eq(pcpc_kernel_warnings(), warnings + 1);
	ck_assert_int_eq(page_counter_set_max(&child, 10), 0);
	ck_assert(page_counter_try_charge(&child, 10, &fail));
	ck_assert(!page_counter_try_charge(&child, 1, &fail));
}
END_TEST

/* 4, 5: "cancel at each level to the root"; each of them may be at another number. */
START_TEST(an_uncharge_subtracts_at_every_level)
{
	page_counter_charge(&child, 9);
	page_counter_charge(&parent, 3);
	page_counter_charge(&root, 1);
	page_counter_cancel(&parent, 2);
	usage_is(13, 10, 9);
	page_counter_uncharge(&child, 9);
	usage_is(4, 1, 0);
	ck_assert_uint_eq(pcpc_kernel_warnings(), 0);
}
END_TEST

/* 4, 6: the local watermark is raised first and reset apart. */
START_TEST(watermarks_are_the_highest_usage_since_a_reset)
{
	page_counter_charge(&child, 30);
	page_counter_uncharge(&child, 20);
	ck_assert_uint_eq(child.watermark, 30);
	ck_assert_uint_eq(child.local_watermark, 30);
	page_counter_reset_watermark(&child);
	ck_assert_uint_eq(child.watermark, 10);
	ck_assert_uint_eq(child.local_watermark, 10);
	page_counter_charge(&child, 5);
	ck_assert_uint_eq(child.watermark, 15);
	ck_assert_uint_eq(root.watermark, 30);
}
END_TEST

/* 4, 7: "usage > m -> -EBUSY, max unchanged". */
START_TEST(a_max_below_usage_is_refused)
{
	page_counter_charge(&child, 10);
	ck_assert_int_eq(page_counter_set_max(&child, 9), -EBUSY);
	ck_assert_uint_eq(child.max, PAGE_COUNTER_MAX);
	ck_assert_int_eq(page_counter_set_max(&child, 10), 0);
	ck_assert_uint_eq(child.max, 10);
	ck_assert_int_eq(page_counter_set_max(&child, 11), 0);
}
END_TEST

/* 4, 8 and 9: "Sum over children of min(usage, min) == parent.children_min_usage at quiescence". */
START_TEST(the_parent_has_the_sum_of_what_is_protected)
{
	struct page_counter sibling;

	page_counter_init(&sibling, &parent, true);
	page_counter_set_min(&child, 10);
	page_counter_set_low(&child, 20);
	page_counter_set_min(&sibling, 5);
	page_counter_charge(&child, 15);
	page_counter_charge(&sibling, 8);
	ck_assert_int_eq(atomic_long_read(&parent.children_min_usage), 10 + 5);
	ck_assert_int_eq(atomic_long_read(&parent.children_low_usage), 15);
	page_counter_uncharge(&child, 8);
	ck_assert_int_eq(atomic_long_read(&parent.children_min_usage), 7 + 5);
	ck_assert_int_eq(atomic_long_read(&parent.children_low_usage), 7);
	page_counter_set_min(&child, 3);
	ck_assert_int_eq(atomic_long_read(&parent.children_min_usage), 3 + 5);
	ck_assert_int_eq(atomic_long_read(&root.children_min_usage), 0);
	usage_is(15, 15, 7);
	page_counter_uncharge(&sibling, 8);
	ck_assert_int_eq(atomic_long_read(&parent.children_min_usage), 3);
}
END_TEST

static void protect(bool recursive)
{
	page_counter_calculate_protection(&root, &parent, recursive);
	page_counter_calculate_protection(&root, &child, recursive);
}

/* 4, 10: S > E -> p*E/S; else p; and recursively (E-S)*(usage-p)/(parent_usage-S) more. */
START_TEST(protection_is_shared_from_above)
{
	struct page_counter sibling;

	page_counter_init(&sibling, &parent, true);
	page_counter_set_min(&parent, 30);
	page_counter_set_min(&child, 40);
	page_counter_set_min(&sibling, 20);
	page_counter_charge(&child, 60);
	page_counter_charge(&sibling, 40);
	/* the root of the reclaim is not touched, its children get what is set */
	protect(false);
	ck_assert_uint_eq(root.emin, 0);
	ck_assert_uint_eq(parent.emin, 30);
	/* they claim 40 + 20, and there are 30 */
	ck_assert_uint_eq(child.emin, 40 * 30 / 60);
	/* they claim 10 + 20 of 60: the other 30 by 50 of 70 beyond their claims */
	page_counter_set_min(&parent, 60);
	page_counter_set_min(&child, 10);
	protect(false);
	ck_assert_uint_eq(child.emin, 10);
	protect(true);
	ck_assert_uint_eq(child.emin, 10 + 30 * 50 / 70);
	ck_assert_uint_eq(child.elow, 0);
	/* the other tree's root, which has no parent */
	page_counter_set_min(&root, 7);
	page_counter_calculate_protection(NULL, &root, true);
	ck_assert_uint_eq(root.emin, 7);
	page_counter_calculate_protection(&parent, &root, true);
	ck_assert_uint_eq(root.emin, 7);
	/* empty: as it was */
	page_counter_uncharge(&child, 60);
	protect(true);
	ck_assert_uint_eq(child.emin, 10 + 30 * 50 / 70);
	page_counter_uncharge(&sibling, 40);
}
END_TEST

/* 4, 11: "max"; a size suffix; trailing junk; rounded down; clamped. */
START_TEST(sizes_are_read_as_pages)
{
	static const struct {
		const char *text;
		int r;
		unsigned long pages;
	} rows[] = {
		{ "max", 0, PAGE_COUNTER_MAX },
		{ "0", 0, 0 },
		{ "4095", 0, 0 },
		{ "4096", 0, 1 },
		{ "8191", 0, 1 },
		{ "64k", 0, 16 },
		{ "64K", 0, 16 },
		{ "1M", 0, 256 },
		{ "2G", 0, 524288 },
		{ "0x2000", 0, 2 },
		{ "15E", 0, PAGE_COUNTER_MAX },
		{ "99999999E", 0, PAGE_COUNTER_MAX },
		{ "18446744073709551615", 0, PAGE_COUNTER_MAX },
		{ "", -EINVAL, 0 },
		{ "k", -EINVAL, 0 },
		{ "-1", -EINVAL, 0 },
		{ "12kb", -EINVAL, 0 },
		{ "12 ", -EINVAL, 0 },
		{ "maxx", -EINVAL, 0 },
	};
	unsigned long pages;
	unsigned int i;

	errno = EXFULL;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		pages = 4711;
		ck_assert_int_eq(page_counter_memparse(rows[i].text, "max", &pages), rows[i].r);
		ck_assert_uint_eq(pages, rows[i].r ? 4711 : rows[i].pages);
	}
	ck_assert_int_eq(errno, EXFULL);
}
END_TEST

/* semantics.md 6, 4: "usage shares no line with max/parent". */
START_TEST(usage_shares_no_line_with_limits)
{
	ck_assert_uint_ge(offsetof(struct page_counter, min), 128);
	ck_assert_uint_ge(
		offsetof(struct page_counter, parent) - offsetof(struct page_counter, usage), 128);
}
END_TEST

#define THREADS 4
#define ROUNDS 20000

static _Atomic unsigned long granted;

static void *try_many(void *argument)
{
	unsigned long pages = (unsigned long)(uintptr_t)argument, mine = 0;
	struct page_counter *fail;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		if (page_counter_try_charge(&child, pages, &fail)) {
			mine++;
			page_counter_uncharge(&child, pages);
		}
	}
	granted += mine;
	return NULL;
}

/* 4, 3: a small attempt may fail beside a large one, "sum always consistent"; and never above max.
 */
START_TEST(attempts_of_many_threads_leave_nothing)
{
	pthread_t thread[THREADS];
	unsigned long i;

	ck_assert_int_eq(page_counter_set_max(&parent, 100), 0);
	for (i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, try_many,
						(void *)(uintptr_t)(i % 2 ? 90 : 5)),
				 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	usage_is(0, 0, 0);
	ck_assert_uint_gt(granted, 0);
	ck_assert_uint_le(parent.watermark, 100);
}
END_TEST

#define RACES 3000

static _Atomic unsigned long attempts;
static _Atomic bool stop;

static void *charge_and_uncharge(void *argument)
{
	struct page_counter *fail;

	(void)argument;
	while (!stop) {
		if (page_counter_try_charge(&child, 60, &fail)) {
			/* before it is given back: so nobody who sees that misses this */
			granted++;
			page_counter_uncharge(&child, 60);
		}
		attempts++;
	}
	return NULL;
}

static void let_attempts_pass(unsigned int nr)
{
	unsigned long end = attempts + nr;

	while (attempts < end)
		sched_yield();
}

/* 4, 7: "either the charger sees the new limit or the setter sees the new usage": where a max was
 * set nothing is granted that does not fit, from that moment; where it was not, it is the old one.
 */
START_TEST(a_charge_and_a_new_max_do_not_pass_each_other)
{
	unsigned long before;
	int i, nr_set = 0;
	pthread_t charger;

	ck_assert_int_eq(pthread_create(&charger, NULL, charge_and_uncharge, NULL), 0);
	for (i = 0; i < RACES || !nr_set; i++) {
		ck_assert_int_eq(page_counter_set_max(&child, 100), 0);
		let_attempts_pass(i % 2);
		if (page_counter_set_max(&child, 50) < 0) {
			ck_assert_uint_eq(child.max, 100);
			continue;
		}
		before = granted;
		nr_set++;
		let_attempts_pass(2);
		ck_assert_uint_eq(granted, before);
		ck_assert_uint_eq(child.max, 50);
	}
	stop = true;
	pthread_join(charger, NULL);
	unit_note("set %d times of %d, granted %lu times", nr_set, i, (unsigned long)granted);
	usage_is(0, 0, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("page counter");
	TCase *tests = unit_case(suite, "counter");

	tcase_add_checked_fixture(tests, make_tree, NULL);
	tcase_add_test(tests, a_charge_adds_at_every_level_whatever_the_limits);
	tcase_add_test(tests, a_refused_attempt_leaves_every_usage_as_it_was);
	tcase_add_test(tests, a_refused_attempt_raises_watermarks_below);
	tcase_add_test(tests, an_underflow_warns_once_and_refuses_nobody);
	tcase_add_test(tests, an_uncharge_subtracts_at_every_level);
	tcase_add_test(tests, watermarks_are_the_highest_usage_since_a_reset);
	tcase_add_test(tests, a_max_below_usage_is_refused);
	tcase_add_test(tests, the_parent_has_the_sum_of_what_is_protected);
	tcase_add_test(tests, protection_is_shared_from_above);
	tcase_add_test(tests, sizes_are_read_as_pages);
	tcase_add_test(tests, usage_shares_no_line_with_limits);
	tcase_add_test(tests, a_charge_and_a_new_max_do_not_pass_each_other);
	tcase_add_test(tests, attempts_of_many_threads_leave_nothing);
	return unit_run(suite);
}
