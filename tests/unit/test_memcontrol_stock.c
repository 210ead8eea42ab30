// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_memcontrol_stock.c - consume_stock(), refill_stock() and drain_all_stock(): memcg's page
 * stock (semantics.md 1), with the numbers worked out there.
 */
#define _GNU_SOURCE
#include "memcontrol_support.h"

/* Pages that are charged, and of which none is stocked. */
static void hold(struct mem_cgroup *of, unsigned int pages)
{
	while (pages) {
		/* more than a batch is taken exactly */
		unsigned int step = pages > 4000 ? 4000 : pages;

		ck_assert_uint_gt(step, MEMCG_CHARGE_BATCH);
		ck_assert_int_eq(try_charge_memcg(of, GFP_KERNEL, step), 0);
		pages -= step;
	}
}

static void drop(struct mem_cgroup *of, unsigned int pages)
{
	pcpc_uncharge(of->owner, bytes_of(pages));
}

/* 1.3: 1, 3, 4, 5, 6, 7 and 10: "no partial consume", "BATCH itself is allowed", "A miss changes
 * nothing". */
START_TEST(consume_takes_all_or_nothing)
{
	if (!open_memcg(_i))
		return;
	ck_assert(!consume_stock(memcg, 1));
	hold(memcg, 100);
	refill_stock(memcg, 64);
	ck_assert(!consume_stock(memcg, 65));
	ck_assert(!consume_stock(top, 1));
	ck_assert_uint_eq(stock_of(memcg), 64);
	ck_assert(consume_stock(memcg, 60));
	ck_assert(!consume_stock(memcg, 5));
	ck_assert_uint_eq(stock_of(memcg), 4);
	ck_assert(consume_stock(memcg, 4));
	ck_assert_uint_eq(stock_of(memcg), 0);
	refill_stock(memcg, 64);
	ck_assert(consume_stock(memcg, 64));
	usage_is(100);
	drop(memcg, 100);
}
END_TEST

/* 1.4, 1 and H5: "an existing slot of the owner is left untouched". */
START_TEST(a_refill_above_a_batch_passes_the_slot_by)
{
	if (!open_memcg(_i))
		return;
	hold(memcg, 1000);
	refill_stock(memcg, 40);
	refill_stock(memcg, 65);
	ck_assert_uint_eq(stock_of(memcg), 40);
	usage_is(935);
	drop(memcg, 895);
}
END_TEST

/* 1.4, 3: (have, add -> kept, uncharged). */
START_TEST(refill_keeps_64_pages_or_trims_to_32)
{
	static const struct {
		unsigned int have, add, kept, uncharged;
	} rows[] = { { 40, 24, 64, 0 },
		     { 40, 25, 32, 33 },
		     { 64, 1, 32, 33 },
		     { 64, 64, 32, 96 },
		     { 1, 64, 32, 33 } };
	unsigned int i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (!open_memcg(_i))
			return;
		hold(memcg, 1000);
		refill_stock(memcg, rows[i].have);
		usage_is(1000);
		refill_stock(memcg, rows[i].add);
		ck_assert_uint_eq(stock_of(memcg), rows[i].kept);
		usage_is(1000 - rows[i].uncharged);
		drop(memcg, 1000 - rows[i].have - rows[i].add);
		close_memcg();
	}
}
END_TEST

/* 1.4, 8: "A library should define it as a no-op". */
START_TEST(no_pages_are_no_operation)
{
	if (!open_memcg(_i))
		return;
	refill_stock(memcg, 0);
	ck_assert(consume_stock(memcg, 0));
	ck_assert_int_eq(charge_pages(0), 0);
	usage_is(0);
}
END_TEST

/* 1.1, 6: "Root is never cached". */
START_TEST(the_root_is_not_stocked_and_who_tries_is_warned)
{
	unsigned long warnings;

	if (!open_memcg(_i))
		return;
	warnings = pcpc_kernel_warnings();
	refill_stock(root_mem_cgroup, 1);
	ck_assert_uint_eq(pcpc_kernel_warnings(), warnings + 1);
	ck_assert_uint_eq(stock_of(root_mem_cgroup), 0);
	usage_is(0);
}
END_TEST

#define MANY 10

/* 1.4, 5: a full stock evicts one, round robin; here the owners' home slots decide where the first
 * seven are, so it is the rule that is tested: each new one evicts exactly one, all of it, and none
 * is evicted a second time before all others were. */
START_TEST(a_full_stock_evicts_round_robin)
{
	struct mem_cgroup *many[MANY];
	unsigned int i, j, stocked;

	if (!open_memcg(_i))
		return;
	for (i = 0; i < MANY; i++) {
		many[i] = mem_cgroup_create(memcg, NULL);
		ck_assert_int_eq(try_charge_memcg(many[i], GFP_KERNEL, 4), 0);
		for (stocked = j = 0; j <= i; j++) {
			ck_assert(stock_of(many[j]) == 0 || stock_of(many[j]) == 60);
			ck_assert_uint_eq(mem_cgroup_usage(many[j]), 4 + stock_of(many[j]));
			stocked += stock_of(many[j]) > 0;
		}
		ck_assert_uint_gt(stock_of(many[i]), 0);
		ck_assert_uint_eq(stocked, i < 7 ? i + 1 : 7);
	}
	/* three evictions, three different ones of the first seven */
	for (stocked = j = 0; j < 7; j++)
		stocked += stock_of(many[j]) > 0;
	ck_assert_uint_eq(stocked, 4);
	for (i = 0; i < MANY; i++) {
		refill_stock(many[i], 4);
		ck_assert_int_eq(mem_cgroup_destroy(many[i]), 0);
	}
}
END_TEST

/* 1.6, 5 and 1.7: "After a full drain with no concurrent activity: ... usage == outstanding"; the
 * subtree's only, and H12: nothing of an unrelated one. */
START_TEST(a_drain_leaves_what_is_held)
{
	struct mem_cgroup *other;

	if (!open_memcg(_i))
		return;
	other = mem_cgroup_create(NULL, "other");
	ck_assert_int_eq(charge_pages(1), 0);
	ck_assert_int_eq(try_charge_memcg(other, GFP_KERNEL, 1), 0);
	drain_all_stock(top);
	ck_assert_uint_eq(mem_cgroup_usage(memcg), 1);
	ck_assert_uint_eq(stock_of(other), 63);
	drain_all_stock(top);
	drain_all_stock(root_mem_cgroup);
	ck_assert_uint_eq(mem_cgroup_usage(root_mem_cgroup), 2);
	refill_stock(memcg, 1);
	refill_stock(other, 1);
	ck_assert_int_eq(mem_cgroup_destroy(other), 0);
}
END_TEST

/* 1.2, 6 and 1.10: a signal handler that interrupts anything is served by the same stock, and what
 * it charges is counted. Handlers come at every instruction in tests/fault; here in the middle of a
 * charge that reclaims. */
static int nested_result;
static unsigned long nested_usage;

static unsigned long charge_inside(struct mem_cgroup *over, unsigned long nr_pages, gfp_t gfp_mask,
				   void *context)
{
	(void)over;
	(void)nr_pages;
	(void)gfp_mask;
	(void)context;
	irq_enter();
	nested_result = try_charge_memcg(top, GFP_ATOMIC, 1);
	nested_usage = mem_cgroup_usage(top);
	refill_stock(top, 1);
	irq_exit();
	return 0;
}

START_TEST(an_interrupt_charges_while_a_task_reclaims)
{
	struct pcpc_memcg_config *config = &pcpc_memcg_system.config;

	if (!open_memcg(_i))
		return;
	config->reclaim = charge_inside;
	ck_assert_int_eq(mem_cgroup_set_max(memcg, 10, false), 0);
	hold(top, 100);
	refill_stock(top, 10);
	ck_assert_int_eq(charge_pages(10), 0);
	ck_assert_int_eq(try_charge_memcg(memcg, GFP_KERNEL | __GFP_NORETRY, 1), -ENOMEM);
	ck_assert_int_eq(nested_result, 0);
	ck_assert_uint_eq(nested_usage, 110);
	ck_assert_uint_eq(mem_cgroup_usage(top), 110);
	drop(memcg, 10);
	drop(top, 90);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("memcontrol stock");
	TCase *tests = unit_case(suite, "stock");

	tcase_add_checked_fixture(tests, NULL, close_memcg);
	by_each_engine(tests, consume_takes_all_or_nothing);
	by_each_engine(tests, a_refill_above_a_batch_passes_the_slot_by);
	by_each_engine(tests, refill_keeps_64_pages_or_trims_to_32);
	by_each_engine(tests, no_pages_are_no_operation);
	by_each_engine(tests, the_root_is_not_stocked_and_who_tries_is_warned);
	by_each_engine(tests, a_full_stock_evicts_round_robin);
	by_each_engine(tests, a_drain_leaves_what_is_held);
	by_each_engine(tests, an_interrupt_charges_while_a_task_reclaims);
	return unit_run(suite);
}
