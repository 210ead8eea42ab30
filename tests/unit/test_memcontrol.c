// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_memcontrol.c - try_charge_memcg(): its tries, whom it reclaims from or kills, and what it
 * leaves behind (semantics.md 3), with the numbers worked out there.
 */
#define _GNU_SOURCE
#include "memcontrol_support.h"

/* 3, 0: "wrapper returns 0 with no accounting". */
START_TEST(the_root_is_not_charged)
{
	if (!open_memcg(_i))
		return;
	ck_assert_int_eq(try_charge_memcg(root_mem_cgroup, GFP_KERNEL, 5), 0);
	usage_is(0);
}
END_TEST

/* 3, a. */
START_TEST(a_first_charge_takes_a_batch_and_63_more_no_counter)
{
	unsigned int i;

	if (!open_memcg(_i))
		return;
	ck_assert_int_eq(charge_pages(1), 0);
	usage_is(64);
	ck_assert_uint_eq(stock_of(memcg), 63);
	for (i = 0; i < 63; i++)
		ck_assert_int_eq(charge_pages(1), 0);
	usage_is(64);
	ck_assert_uint_eq(stock_of(memcg), 0);
	refill_stock(memcg, 64);
}
END_TEST

/* 3, b. */
START_TEST(more_than_a_batch_is_charged_exactly)
{
	if (!open_memcg(_i))
		return;
	ck_assert_int_eq(charge_pages(100), 0);
	usage_is(100);
	ck_assert_uint_eq(stock_of(memcg), 0);
	refill_stock(memcg, 100);
	usage_is(0);
}
END_TEST

/* 3, c. */
START_TEST(where_no_batch_fits_one_page_does_and_nothing_is_told)
{
	if (!open_memcg(_i))
		return;
	ck_assert_int_eq(mem_cgroup_set_max(memcg, 10, false), 0);
	ck_assert_int_eq(charge_pages(1), 0);
	usage_is(1);
	ck_assert_uint_eq(stock_of(memcg), 0);
	ck_assert_uint_eq(told(memcg, MEMCG_MAX), 0);
	ck_assert_uint_eq(rest.reclaims, 0);
	refill_stock(memcg, 1);
}
END_TEST

/* 3, d: "-ENOMEM, no MAX event, usage unchanged". */
START_TEST(who_may_not_block_is_refused_and_nothing_is_told)
{
	if (!open_memcg(_i))
		return;
	ck_assert_int_eq(mem_cgroup_set_max(memcg, 10, false), 0);
	ck_assert_int_eq(charge_pages(10), 0);
	ck_assert_int_eq(try_charge_memcg(memcg, GFP_NOWAIT, 1), -ENOMEM);
	usage_is(10);
	ck_assert_uint_eq(told(memcg, MEMCG_MAX), 0);
	ck_assert_uint_eq(rest.reclaims + rest.kills, 0);
	refill_stock(memcg, 10);
}
END_TEST

/* 3, e and H30: "success, exactly one MAX event, usage > max"; nothing is stocked. */
START_TEST(who_must_not_fail_goes_over_the_max_and_is_told_once)
{
	static const gfp_t masks[] = { GFP_ATOMIC, __GFP_NOFAIL };
	unsigned int i;

	if (!open_memcg(_i))
		return;
	ck_assert_int_eq(mem_cgroup_set_max(memcg, 10, false), 0);
	ck_assert_int_eq(charge_pages(10), 0);
	for (i = 0; i < 2; i++) {
		ck_assert_int_eq(try_charge_memcg(memcg, masks[i], 3), 0);
		usage_is(13 + 3 * i);
		ck_assert_uint_eq(told(memcg, MEMCG_MAX), 1 + i);
		ck_assert_uint_eq(stock_of(memcg), 0);
	}
	pcpc_uncharge(memcg->owner, bytes_of(16));
	drain_all_stock(memcg);
	usage_is(0);
}
END_TEST

/* 3, f, g and j: "two reclaim calls and one drain before -ENOMEM, two MAX events". */
START_TEST(noretry_reclaims_twice_and_drains_once)
{
	uint64_t drains;

	if (!open_memcg(_i))
		return;
	ck_assert_int_eq(mem_cgroup_set_max(memcg, 10, false), 0);
	ck_assert_int_eq(charge_pages(10), 0);
	drains = atomic_load(&memcg->owner->domain->drains);
	ck_assert_int_eq(try_charge_memcg(memcg, GFP_KERNEL | __GFP_NORETRY, 1), -ENOMEM);
	ck_assert_uint_eq(rest.reclaims, 2);
	ck_assert_uint_eq(told(memcg, MEMCG_MAX), 2);
	ck_assert_uint_eq(told(memcg, MEMCG_OOM), 0);
	ck_assert_uint_eq(atomic_load(&memcg->owner->domain->drains), drains + 1);
	usage_is(10);
	refill_stock(memcg, 10);
}
END_TEST

/* 3.12: "With a reclaimer that frees nothing, reclaim is called 18 times before the first OOM
 * (first pass, drained pass, then 16)". Nobody can be killed: -ENOMEM. */
START_TEST(eighteen_reclaims_that_free_nothing_come_before_a_kill)
{
	if (!open_memcg(_i))
		return;
	ck_assert_int_eq(mem_cgroup_set_max(memcg, 10, false), 0);
	ck_assert_int_eq(charge_pages(10), 0);
	ck_assert_int_eq(charge_pages(1), -ENOMEM);
	ck_assert_uint_eq(rest.reclaims, 18);
	ck_assert_uint_eq(rest.kills, 1);
	ck_assert_int_eq(rest.last_order, 0);
	ck_assert_ptr_eq(rest.last_over, memcg);
	ck_assert_uint_eq(told(memcg, MEMCG_MAX), 18);
	ck_assert_uint_eq(told(memcg, MEMCG_OOM), 1);
	ck_assert_uint_eq(told(memcg, MEMCG_OOM_KILL), 0);
	ck_assert_uint_eq(told(top, MEMCG_OOM), 1);
	ck_assert_uint_eq(memcg_memory_events(top, MEMCG_OOM, true), 0);
	ck_assert_uint_eq(told(root_mem_cgroup, MEMCG_OOM), 0);
	usage_is(10);
	/* MAYFAIL gives up where the other kills */
	ck_assert_int_eq(try_charge_memcg(memcg, GFP_KERNEL | __GFP_RETRY_MAYFAIL, 1), -ENOMEM);
	ck_assert_uint_eq(rest.kills, 1);
	ck_assert_uint_eq(rest.reclaims, 36);
	refill_stock(memcg, 10);
}
END_TEST

/* 3.12: a kill that made room; "refuses order > 3". */
START_TEST(a_kill_makes_room_but_not_for_large_charges)
{
	if (!open_memcg(_i))
		return;
	rest.from = memcg;
	ck_assert_int_eq(mem_cgroup_set_max(memcg, 10, false), 0);
	ck_assert_int_eq(charge_pages(10), 0);
	ck_assert_int_eq(charge_pages(9), -ENOMEM);
	ck_assert_uint_eq(rest.kills, 0);
	ck_assert_uint_eq(told(memcg, MEMCG_OOM), 0);
	rest.kill = 4;
	ck_assert_int_eq(charge_pages(2), 0);
	ck_assert_uint_eq(rest.kills, 1);
	ck_assert_uint_eq(told(memcg, MEMCG_OOM_KILL), 1);
	pcpc_uncharge(memcg->owner, bytes_of(8));
}
END_TEST

/* 3.12: "Reclaimed something and n <= 8 -> retry (unbounded while reclaim makes progress)". */
START_TEST(reclaim_that_helps_is_called_until_it_fits)
{
	if (!open_memcg(_i))
		return;
	rest.from = memcg;
	rest.pages = 5;
	ck_assert_int_eq(mem_cgroup_set_max(memcg, 10, false), 0);
	ck_assert_int_eq(charge_pages(10), 0);
	ck_assert_int_eq(charge_pages(3), 0);
	ck_assert_uint_eq(rest.last_nr_pages, 3);
	ck_assert_uint_eq(rest.kills, 0);
	ck_assert_uint_eq(rest.pages, 2);
	pcpc_uncharge(memcg->owner, bytes_of(10));
}
END_TEST

/* 3, i: "over is the ancestor; events and reclaim target it". */
START_TEST(an_ancestor_that_refuses_is_the_one_to_reclaim_from)
{
	if (!open_memcg(_i))
		return;
	ck_assert_int_eq(mem_cgroup_set_max(top, 10, false), 0);
	ck_assert_int_eq(charge_pages(10), 0);
	ck_assert_int_eq(try_charge_memcg(memcg, GFP_KERNEL | __GFP_NORETRY, 1), -ENOMEM);
	ck_assert_ptr_eq(rest.last_over, top);
	ck_assert_uint_eq(told(top, MEMCG_MAX), 2);
	ck_assert_uint_eq(told(memcg, MEMCG_MAX), 0);
	usage_is(10);
	refill_stock(memcg, 10);
}
END_TEST

/* 3, k: what another mem_cgroup stocks below the same limit counts until it is drained. */
START_TEST(what_is_stocked_below_a_limit_is_drained_for_a_charge)
{
	struct mem_cgroup *other;

	if (!open_memcg(_i))
		return;
	other = mem_cgroup_create(top, "other");
	ck_assert_int_eq(mem_cgroup_set_max(top, 70, false), 0);
	ck_assert_int_eq(try_charge_memcg(other, GFP_KERNEL, 1), 0);
	ck_assert_uint_eq(mem_cgroup_usage(top), 64);
	ck_assert_int_eq(charge_pages(60), 0);
	ck_assert_uint_eq(stock_of(other), 0);
	ck_assert_uint_eq(rest.reclaims, 1);
	ck_assert_uint_eq(mem_cgroup_usage(top), 61);
	refill_stock(memcg, 60);
	refill_stock(other, 1);
	ck_assert_int_eq(mem_cgroup_destroy(other), 0);
}
END_TEST

/* 3.6 and 3.7: PF_MEMALLOC goes over, a task in memcg's OOM handling does not wait. */
START_TEST(tasks_that_free_memory_go_over_and_those_in_oom_do_not_wait)
{
	if (!open_memcg(_i))
		return;
	ck_assert_int_eq(mem_cgroup_set_max(memcg, 10, false), 0);
	ck_assert_int_eq(charge_pages(10), 0);
	current->flags |= PF_MEMALLOC;
	ck_assert_int_eq(charge_pages(1), 0);
	current->flags &= ~PF_MEMALLOC;
	usage_is(11);
	ck_assert_uint_eq(told(memcg, MEMCG_MAX), 1);
	current->in_memcg_oom = true;
	ck_assert_int_eq(charge_pages(1), -ENOMEM);
	current->in_memcg_oom = false;
	ck_assert_uint_eq(rest.reclaims, 0);
	pcpc_uncharge(memcg->owner, bytes_of(11));
}
END_TEST

/* 3.3 and 1.10.3: without any reclaim bit "batch = n (no refill, nobody evicted)". */
START_TEST(without_a_reclaim_bit_exactly_the_amount_is_taken)
{
	if (!open_memcg(_i))
		return;
	ck_assert_int_eq(try_charge_memcg(memcg, 0, 3), 0);
	usage_is(3);
	ck_assert_uint_eq(stock_of(memcg), 0);
	refill_stock(memcg, 3);
}
END_TEST

/* -- limits -- */

/* "publish by plain exchange first (never fails for being below usage), then ... drain once;
 * reclaim up to 16 failures; then OOM event + kill until no progress. Non-blocking open: publish
 * only." */
START_TEST(a_max_below_usage_is_in_force_and_shrinks_what_it_can)
{
	if (!open_memcg(_i))
		return;
	rest.from = memcg;
	rest.pages = 30;
	rest.kill = 20;
	ck_assert_int_eq(charge_pages(100), 0);
	ck_assert_int_eq(mem_cgroup_set_max(memcg, 40, true), 0);
	usage_is(100);
	ck_assert_int_eq(try_charge_memcg(memcg, GFP_NOWAIT, 1), -ENOMEM);
	ck_assert_int_eq(mem_cgroup_set_max(memcg, 40, false), 0);
	ck_assert_uint_eq(told(memcg, MEMCG_OOM), 2);
	ck_assert_uint_eq(told(memcg, MEMCG_OOM_KILL), 1);
	ck_assert_uint_eq(mem_cgroup_usage(memcg), 50 + stock_of(memcg));
	ck_assert_int_eq(mem_cgroup_set_max(root_mem_cgroup, 1, false), -EINVAL);
	pcpc_uncharge(memcg->owner, bytes_of(50));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("memcontrol");
	TCase *tests = unit_case(suite, "charge");

	tcase_add_checked_fixture(tests, NULL, close_memcg);
	by_each_engine(tests, the_root_is_not_charged);
	by_each_engine(tests, a_first_charge_takes_a_batch_and_63_more_no_counter);
	by_each_engine(tests, more_than_a_batch_is_charged_exactly);
	by_each_engine(tests, where_no_batch_fits_one_page_does_and_nothing_is_told);
	by_each_engine(tests, who_may_not_block_is_refused_and_nothing_is_told);
	by_each_engine(tests, who_must_not_fail_goes_over_the_max_and_is_told_once);
	by_each_engine(tests, noretry_reclaims_twice_and_drains_once);
	by_each_engine(tests, eighteen_reclaims_that_free_nothing_come_before_a_kill);
	by_each_engine(tests, a_kill_makes_room_but_not_for_large_charges);
	by_each_engine(tests, reclaim_that_helps_is_called_until_it_fits);
	by_each_engine(tests, an_ancestor_that_refuses_is_the_one_to_reclaim_from);
	by_each_engine(tests, what_is_stocked_below_a_limit_is_drained_for_a_charge);
	by_each_engine(tests, tasks_that_free_memory_go_over_and_those_in_oom_do_not_wait);
	by_each_engine(tests, without_a_reclaim_bit_exactly_the_amount_is_taken);
	by_each_engine(tests, a_max_below_usage_is_in_force_and_shrinks_what_it_can);
	return unit_run(suite);
}
