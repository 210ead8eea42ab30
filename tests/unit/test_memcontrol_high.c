// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_memcontrol_high.c - memory.high: who is reclaimed from, who is slowed down and for how long
 * (semantics.md 3.16, 3.17 and what follows), with the numbers worked out there.
 *
 * Linked with --wrap=nanosleep: nobody sleeps.
 */
#define _GNU_SOURCE
#include "memcontrol_support.h"

#include <time.h>

int __wrap_nanosleep(const struct timespec *time, struct timespec *left);

static unsigned int nr_sleeps;
static uint64_t slept_ms;

int __wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
	(void)left;
	nr_sleeps++;
	slept_ms += (uint64_t)time->tv_sec * 1000 + (uint64_t)time->tv_nsec / 1000000;
	return 0;
}

static void set_up(void)
{
	nr_sleeps = 0;
	slept_ms = 0;
}

/* 3.16 and 3.17: the batch, not the amount, is the debt; above 64 pages it is paid at once. */
START_TEST(charges_above_high_are_a_debt_of_the_task)
{
	if (!open_memcg(_i))
		return;
	mem_cgroup_set_high(top, 10, true);
	ck_assert_int_eq(charge_pages(1), 0);
	ck_assert_uint_eq(current->memcg_nr_pages_over_high, 64);
	ck_assert_uint_eq(rest.reclaims, 0);
	/* a hit looks at nothing */
	ck_assert_int_eq(charge_pages(1), 0);
	ck_assert_uint_eq(current->memcg_nr_pages_over_high, 64);
	/* going back to user mode: reclaim helps, so nobody sleeps */
	rest.from = memcg;
	rest.pages = 2;
	mem_cgroup_set_high(top, 63, true);
	mem_cgroup_handle_over_high(GFP_KERNEL);
	ck_assert_uint_eq(current->memcg_nr_pages_over_high, 0);
	ck_assert_uint_gt(rest.reclaims, 0);
	ck_assert_ptr_eq(rest.last_over, top);
	ck_assert_uint_gt(told(top, MEMCG_HIGH), 0);
	ck_assert_uint_eq(told(memcg, MEMCG_HIGH), 0);
}
END_TEST

/* 3.16 and 1.10, 4: "Non-task: at the first level over memory.high schedule that level's high work
 * and stop"; nobody is indebted. */
START_TEST(what_interrupts_charge_above_high_is_left_to_work)
{
	if (!open_memcg(_i))
		return;
	mem_cgroup_set_high(top, 10, true);
	irq_enter();
	ck_assert_int_eq(try_charge_memcg(memcg, GFP_ATOMIC, 100), 0);
	irq_exit();
	flush_scheduled_work();
	ck_assert_uint_eq(current->memcg_nr_pages_over_high, 0);
	ck_assert_uint_eq(rest.reclaims, 1);
	ck_assert_uint_eq(rest.last_nr_pages, 64);
	ck_assert_ptr_eq(rest.last_over, top);
	ck_assert_uint_eq(told(top, MEMCG_HIGH), 1);
	pcpc_uncharge(memcg->owner, bytes_of(100));
}
END_TEST

/* "For high = 100 MB: 101 MB -> 6 ms, 105 -> 159 ms, 110 -> 639 ms, >= 118 -> capped 2000 ms". */
START_TEST(the_delay_grows_with_the_square_of_the_overage)
{
	static const struct {
		unsigned long percent, ms;
	} rows[] = {
		{ 1, 6 }, { 5, 159 }, { 10, 639 }, { 18, 2000 }, { 100, 2000 }, { 5000, 2000 }
	};
	unsigned int i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		ck_assert_uint_eq(pcpc_memcg_high_delay(64, (rows[i].percent << 20) / 100),
				  rows[i].ms);
	ck_assert_uint_eq(pcpc_memcg_high_delay(32, (5ul << 20) / 100), 79);
	ck_assert_uint_eq(pcpc_memcg_high_delay(64, 0), 0);
}
END_TEST

/* Charges pages with no reclaim that helps, and gives them back. */
static void charge_above_high(unsigned long high, unsigned int nr_pages)
{
	mem_cgroup_set_high(top, high, true);
	ck_assert_int_eq(charge_pages(nr_pages), 0);
	mem_cgroup_handle_over_high(GFP_KERNEL);
	refill_stock(memcg, nr_pages);
	drain_all_stock(top);
	usage_is(0);
	ck_assert_uint_eq(current->memcg_nr_pages_over_high, 0);
}

/* "retry reclaim while it progresses or up to 16 times; then sleep"; "cap 2 s", which is less than
 * 10 % above high is for 704 pages. */
START_TEST(who_charges_above_high_sleeps_where_reclaim_does_not_help)
{
	if (!open_memcg(_i))
		return;
	charge_above_high(640, 704);
	ck_assert_uint_eq(nr_sleeps, 1);
	ck_assert_uint_eq(slept_ms, 2000);
	ck_assert_uint_eq(rest.reclaims, 17);
	set_up();
	/* usage 64, of which 6 and a bit too much */
	charge_above_high(58, 1);
	ck_assert_uint_eq(nr_sleeps, 1);
	ck_assert_uint_eq(slept_ms, pcpc_memcg_high_delay(64, (6ull << 20) / 58));
	ck_assert_uint_gt(slept_ms, 600);
	ck_assert_uint_lt(slept_ms, 720);
}
END_TEST

/* "ignore <= 10 ms": 1 % above is 6 ms. */
START_TEST(a_short_delay_is_none)
{
	if (!open_memcg(_i))
		return;
	ck_assert_int_eq(charge_pages(6336), 0);
	mem_cgroup_set_high(top, 6336, true);
	ck_assert_int_eq(charge_pages(1), 0);
	mem_cgroup_handle_over_high(GFP_KERNEL);
	ck_assert_uint_eq(nr_sleeps, 0);
	ck_assert_uint_eq(rest.reclaims, 1);
	refill_stock(memcg, 1);
	refill_stock(memcg, 6336);
}
END_TEST

/* "maximum over ancestors". */
START_TEST(the_worst_level_decides_how_long)
{
	if (!open_memcg(_i))
		return;
	mem_cgroup_set_high(memcg, 63, true);
	charge_above_high(58, 1);
	ck_assert_uint_eq(nr_sleeps, 1);
	ck_assert_uint_eq(slept_ms, pcpc_memcg_high_delay(64, (6ull << 20) / 58));
	mem_cgroup_set_high(memcg, PAGE_COUNTER_MAX, true);
}
END_TEST

/* "Dying tasks skip all of it." */
START_TEST(who_is_dying_is_not_slowed)
{
	if (!open_memcg(_i))
		return;
	current->dying = true;
	mem_cgroup_set_high(top, 10, true);
	ck_assert_int_eq(charge_pages(1), 0);
	mem_cgroup_handle_over_high(GFP_KERNEL);
	current->dying = false;
	ck_assert_uint_eq(rest.reclaims, 0);
	ck_assert_uint_eq(nr_sleeps, 0);
	refill_stock(memcg, 1);
}
END_TEST

/* "memory.high write: same with no OOM". */
START_TEST(a_high_below_usage_reclaims_and_kills_nobody)
{
	if (!open_memcg(_i))
		return;
	ck_assert_int_eq(charge_pages(100), 0);
	mem_cgroup_set_high(memcg, 40, false);
	ck_assert_uint_eq(rest.reclaims, 16);
	ck_assert_uint_eq(rest.kills, 0);
	ck_assert_uint_eq(rest.last_nr_pages, 60);
	refill_stock(memcg, 100);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("memcontrol high");
	TCase *tests = unit_case(suite, "high");

	tcase_add_checked_fixture(tests, set_up, close_memcg);
	by_each_engine(tests, charges_above_high_are_a_debt_of_the_task);
	by_each_engine(tests, what_interrupts_charge_above_high_is_left_to_work);
	tcase_add_test(tests, the_delay_grows_with_the_square_of_the_overage);
	by_each_engine(tests, who_charges_above_high_sleeps_where_reclaim_does_not_help);
	by_each_engine(tests, a_short_delay_is_none);
	by_each_engine(tests, the_worst_level_decides_how_long);
	by_each_engine(tests, who_is_dying_is_not_slowed);
	by_each_engine(tests, a_high_below_usage_reclaims_and_kills_nobody);
	return unit_run(suite);
}
