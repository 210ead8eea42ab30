// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_memcontrol_stat.c - statistics of mem_cgroups: updates, when to flush, and what a flush
 * brings (semantics.md 5).
 */
#define _GNU_SOURCE
#include "memcontrol_support.h"

/* 64 pages a CPU. */
static long threshold(void)
{
	return 64 * (long)memcg->owner->domain->nr_cpus;
}

static bool is_due(const struct mem_cgroup *of)
{
	return memcg_vmstats_needs_flush(of->vmstats);
}

/* 5.5, 7: "aggregate(root) = total of all updates"; 5.5, 8: "Flushing twice changes nothing". */
START_TEST(a_flush_brings_every_level_up_to_date)
{
	struct mem_cgroup *level;
	unsigned int twice;

	if (!open_memcg(_i))
		return;
	mod_memcg_state(memcg, MEMCG_SOCK, 7);
	mod_memcg_state(top, MEMCG_SOCK, 5);
	mod_memcg_state(memcg, MEMCG_SOCK, -3);
	ck_assert_uint_eq(memcg_page_state(root_mem_cgroup, MEMCG_SOCK), 0);
	for (twice = 0; twice < 2; twice++) {
		mem_cgroup_flush_stats_forced(NULL);
		for (level = memcg; level; level = parent_mem_cgroup(level))
			ck_assert_uint_eq(memcg_page_state(level, MEMCG_SOCK),
					  level == memcg ? 4 : 9);
		ck_assert_uint_eq(memcg_page_state_local(memcg, MEMCG_SOCK), 4);
		ck_assert_uint_eq(memcg_page_state_local(top, MEMCG_SOCK), 5);
	}
}
END_TEST

/* 5.1, 1 and 5.3, 1: "flush only if needs_flush(m)", strictly above 64 pages a CPU; NULL is the
 * root. */
START_TEST(reads_that_are_not_due_flush_nothing)
{
	if (!open_memcg(_i))
		return;
	mod_memcg_state(memcg, MEMCG_KMEM, (int)threshold());
	ck_assert(!is_due(memcg) && !is_due(root_mem_cgroup));
	mem_cgroup_flush_stats(NULL);
	ck_assert_uint_eq(memcg_page_state(root_mem_cgroup, MEMCG_KMEM), 0);
	mod_memcg_state(memcg, MEMCG_KMEM, 64);
	ck_assert(is_due(memcg) && is_due(top) && is_due(root_mem_cgroup));
	mem_cgroup_flush_stats(NULL);
	ck_assert_uint_eq(memcg_page_state(root_mem_cgroup, MEMCG_KMEM),
			  (unsigned long)threshold() + 64);
	ck_assert(!is_due(memcg) && !is_due(root_mem_cgroup));
}
END_TEST

/* 5.3, 5: "a read of a quiet child never flushes because of busy siblings". */
START_TEST(a_quiet_child_is_not_due_for_its_sibling)
{
	struct mem_cgroup *sibling;

	if (!open_memcg(_i))
		return;
	sibling = mem_cgroup_create(top, "sibling");
	mod_memcg_state(sibling, MEMCG_KMEM, 10 * (int)threshold());
	ck_assert(is_due(sibling) && is_due(top));
	ck_assert(!is_due(memcg));
	ck_assert_int_eq(mem_cgroup_destroy(sibling), 0);
}
END_TEST

/* 5.1, 4 and H17: a byte is not a page: 64 pages of single bytes are as much as 64 pages. */
START_TEST(items_that_are_counted_in_bytes_ask_for_no_more_flushes)
{
	int i;

	if (!open_memcg(_i))
		return;
	for (i = 0; i < 100000; i++)
		mod_memcg_state(memcg, MEMCG_PERCPU_B, 1);
	ck_assert(!is_due(memcg));
	/* 24.4 pages */
	ck_assert_uint_le(pcpc_stat_updates(memcg->owner) / PAGE_SIZE, 25);
	mod_memcg_state(memcg, MEMCG_PERCPU_B, (int)((threshold() + 64) * (long)PAGE_SIZE));
	ck_assert(is_due(memcg));
	mem_cgroup_flush_stats(memcg);
	ck_assert_uint_eq(memcg_page_state(memcg, MEMCG_PERCPU_B),
			  100000 + (unsigned long)(threshold() + 64) * PAGE_SIZE);
}
END_TEST

/* 5.1, 5 and 6: "val == 0 -> no notification at all"; "Unknown item -> warn once, ignored". */
START_TEST(nothing_is_no_update_and_unknown_items_are_warned_of)
{
	struct lruvec nowhere;
	unsigned long warnings;

	if (!open_memcg(_i))
		return;
	mod_memcg_state(memcg, MEMCG_SOCK, 0);
	ck_assert_uint_eq(pcpc_stat_updates(memcg->owner), 0);
	warnings = pcpc_kernel_warnings();
	mod_memcg_state(memcg, MEMCG_NR_STAT, 1);
	mod_memcg_state(memcg, (enum memcg_stat_item) - 1, 1);
	nowhere = (struct lruvec){ memcg, 1 };
	mod_memcg_lruvec_state(&nowhere, NR_SHMEM, 1);
	ck_assert_uint_eq(pcpc_kernel_warnings(), warnings + 1);
	mem_cgroup_flush_stats_forced(memcg);
	ck_assert_uint_eq(memcg_page_state(memcg, NR_SHMEM), 0);
}
END_TEST

/* 5.1, 7: "Reads clamp negative aggregates to 0". */
START_TEST(reads_are_never_negative)
{
	if (!open_memcg(_i))
		return;
	mod_memcg_state(memcg, MEMCG_SOCK, -5);
	mem_cgroup_flush_stats_forced(memcg);
	ck_assert_uint_eq(memcg_page_state(memcg, MEMCG_SOCK), 0);
	mod_memcg_state(memcg, MEMCG_SOCK, 6);
	mem_cgroup_flush_stats_forced(memcg);
	ck_assert_uint_eq(memcg_page_state(memcg, MEMCG_SOCK), 1);
}
END_TEST

/* 5.1, 3 and 5.5, 5: events likewise. */
START_TEST(events_are_counted_like_pages)
{
	if (!open_memcg(_i))
		return;
	count_memcg_events(memcg, PGFAULT, 3);
	count_memcg_events(top, PGFAULT, 1);
	mem_cgroup_flush_stats_forced(NULL);
	ck_assert_uint_eq(memcg_events(memcg, PGFAULT), 3);
	ck_assert_uint_eq(memcg_events(root_mem_cgroup, PGFAULT), 4);
	ck_assert_uint_eq(memcg_events_local(top, PGFAULT), 1);
	ck_assert_uint_eq(memcg_events(memcg, PGMAJFAULT), 0);
}
END_TEST

/* 5.2, 3: "+10 and -10 count 20"; 5.4, 4 and H16: a CPU that does not exist. */
START_TEST(updates_of_others_are_counted_as_activity)
{
	unsigned long warnings;
	long i;

	if (!open_memcg(_i))
		return;
	for (i = 0; i < threshold() + 64; i += 20) {
		memcg_rstat_updated(memcg, 10, 0);
		memcg_rstat_updated(memcg, -10, 0);
	}
	ck_assert(is_due(memcg) && is_due(root_mem_cgroup));
	mem_cgroup_flush_stats(NULL);
	warnings = pcpc_kernel_warnings();
	for (i = 0; i < threshold() + 64; i++) {
		memcg_rstat_updated(memcg, 10, -1);
		memcg_rstat_updated(memcg, 10, INT_MAX);
	}
	ck_assert_uint_eq(pcpc_kernel_warnings(), warnings + 1);
	ck_assert(!is_due(memcg));
}
END_TEST

/* 5.2, 2 and 5, H7: a level that is past the threshold does not keep those above from being
 * counted; their counters are forced to (64, 0) as a flush that races leaves them. */
START_TEST(a_level_past_the_threshold_does_not_hide_those_above)
{
	int i;

	if (!open_memcg(_i))
		return;
	mod_memcg_state(memcg, MEMCG_KMEM, 64);
	mem_cgroup_flush_stats_forced(top);
	mem_cgroup_flush_stats_forced(NULL);
	mod_memcg_state(memcg, MEMCG_KMEM, (int)threshold() + 64);
	/* the levels above were flushed by somebody else */
	pcpc_stat_flush(root_mem_cgroup->owner);
	mod_memcg_state(memcg, MEMCG_KMEM, (int)threshold() + 64);
	pcpc_stat_flush(top->owner);
	for (i = 0; i < 3; i++)
		mod_memcg_state(memcg, MEMCG_KMEM, (int)threshold() / 2);
	ck_assert(is_due(root_mem_cgroup) && is_due(top));
}
END_TEST

/* sockets: charged, counted, and at 0 after a drain and a flush (H26). */
START_TEST(sockets_are_charged_and_counted)
{
	struct sock sock;

	if (!open_memcg(_i))
		return;
	sock.sk_memcg = memcg;
	ck_assert(mem_cgroup_sk_charge(&sock, 3, GFP_KERNEL));
	ck_assert_int_eq(mem_cgroup_set_max(memcg, 64, true), 0);
	ck_assert(mem_cgroup_sk_charge(&sock, 61, GFP_NOWAIT));
	ck_assert(!mem_cgroup_sk_charge(&sock, 1, GFP_NOWAIT));
	mem_cgroup_flush_stats_forced(NULL);
	ck_assert_uint_eq(memcg_page_state(root_mem_cgroup, MEMCG_SOCK), 64);
	ck_assert_uint_eq(mem_cgroup_usage(memcg), 64);
	mem_cgroup_sk_uncharge(&sock, 61);
	mem_cgroup_sk_uncharge(&sock, 3);
	drain_all_stock(memcg);
	mem_cgroup_flush_stats_forced(NULL);
	ck_assert_uint_eq(memcg_page_state(root_mem_cgroup, MEMCG_SOCK), 0);
	usage_is(0);
}
END_TEST

/* section 7, kmem_memcg_deletion: what a dead one counted stays in the figures of its ancestors. */
START_TEST(figures_of_the_dead_stay_with_the_parent)
{
	if (!open_memcg(_i))
		return;
	mod_memcg_state(memcg, MEMCG_KMEM, 5);
	count_memcg_events(memcg, PGFAULT, 2);
	ck_assert_int_eq(mem_cgroup_destroy(memcg), 0);
	memcg = NULL;
	flush_scheduled_work();
	pcpc_domain_poll(pcpc_memcg_domain());
	mem_cgroup_flush_stats_forced(NULL);
	ck_assert_uint_eq(memcg_page_state(top, MEMCG_KMEM), 5);
	ck_assert_uint_eq(memcg_events(root_mem_cgroup, PGFAULT), 2);
	ck_assert_uint_eq(memcg_page_state_local(top, MEMCG_KMEM), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("memcontrol stat");
	TCase *tests = unit_case(suite, "stat");

	tcase_add_checked_fixture(tests, NULL, close_memcg);
	by_each_engine(tests, a_flush_brings_every_level_up_to_date);
	by_each_engine(tests, reads_that_are_not_due_flush_nothing);
	by_each_engine(tests, a_quiet_child_is_not_due_for_its_sibling);
	by_each_engine(tests, items_that_are_counted_in_bytes_ask_for_no_more_flushes);
	by_each_engine(tests, nothing_is_no_update_and_unknown_items_are_warned_of);
	by_each_engine(tests, reads_are_never_negative);
	by_each_engine(tests, events_are_counted_like_pages);
	by_each_engine(tests, updates_of_others_are_counted_as_activity);
	by_each_engine(tests, a_level_past_the_threshold_does_not_hide_those_above);
	by_each_engine(tests, sockets_are_charged_and_counted);
	by_each_engine(tests, figures_of_the_dead_stay_with_the_parent);
	return unit_run(suite);
}
