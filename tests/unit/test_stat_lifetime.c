// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_stat_lifetime.c - what becomes of the statistics of owners that went: everything reaches the
 * ancestors exactly once, and nothing the next owner of an id.
 */
#define _GNU_SOURCE
#include "stat_support.h"

static void destroy(struct pcpc_owner *owner)
{
	ck_assert_int_eq(pcpc_owner_destroy(owner), 0);
}

/* By which way the deltas of an owner that dies have got how far. */
enum stage { IN_SLOTS, APPLIED, FLUSHED_BELOW, FLUSHED, STAGES };

static void bring_to(struct pcpc_owner *leaf, enum stage stage)
{
	add(leaf, 1, 40);
	if (stage == IN_SLOTS)
		return;
	add(leaf, 1, 30);
	add(leaf, 1, -30);
	if (stage == FLUSHED_BELOW)
		pcpc_stat_flush(leaf);
	if (stage == FLUSHED)
		(void)exactly(root, 1);
}

/* G10: "a dead owner's deltas reach its ancestors exactly once", wherever they
 * were when it died. */
START_TEST(deltas_of_a_dead_owner_reach_its_ancestors_once)
{
	struct pcpc_owner *top, *mid, *leaf;
	enum stage stage;
	int64_t sum = 0;
	int i;

	if (!open_stats(_i, (struct stat_shape){ .stocks = 1 }))
		return;
	top = child_of(root);
	mid = child_of(top);
	for (stage = 0; stage < STAGES; stage++) {
		for (i = 0; i < 4; i++) {
			leaf = child_of(mid);
			bring_to(leaf, stage);
			sum += 40;
			destroy(leaf);
			if (i % 2)
				pcpc_stat_flush(root);
			pcpc_domain_poll(domain);
			ck_assert_uint_eq(atomic_load(&domain->nr_offline), 0);
			if (i / 2)
				pcpc_stat_flush(root);
			ck_assert_int_eq(exactly(mid, 1), sum);
			ck_assert_int_eq(exactly(root, 1), sum);
			ck_assert_int_eq(exactly(top, 1), sum);
			pcpc_stat_flush(mid);
			ck_assert_int_eq(pcpc_stat_read(root, 1), sum);
		}
	}
	/* "gone" is a term of the total: nobody's own */
	ck_assert_int_eq(pcpc_stat_read_local(mid, 1), 0);
	ck_assert_int_eq(pcpc_stat_read_local(root, 1), 0);
}
END_TEST

/* Branches die from the leaves up; what is alive above has it all. */
START_TEST(branches_die_and_nothing_is_lost)
{
	struct pcpc_owner *branch[6], *top;
	int64_t sum = 0;
	int round, i;

	if (!open_stats(_i, (struct stat_shape){ .stocks = 1 }))
		return;
	top = child_of(root);
	for (round = 0; round < 20; round++) {
		for (i = 0; i < 6; i++) {
			branch[i] = child_of(i ? branch[i - 1] : top);
			add(branch[i], 1, 10 + i);
			add(branch[i], 1, 60 * (i % 2));
			sum += 10 + i + 60 * (i % 2);
		}
		for (i = 6; i--;) {
			destroy(branch[i]);
			if (round % 3 == 0)
				pcpc_domain_poll(domain);
		}
		if (round % 2)
			pcpc_domain_poll(domain);
		if (round % 4 == 0)
			pcpc_stat_flush(top);
		ck_assert_int_eq(exactly(top, 1), sum);
		ck_assert_int_eq(exactly(root, 1), sum);
	}
	pcpc_domain_poll(domain);
	ck_assert_int_eq(exactly(root, 1), sum);
	destroy(top);
	pcpc_domain_poll(domain);
	ck_assert_int_eq(exactly(root, 1), sum);
	ck_assert_int_eq(local_of(root, 1), 0);
}
END_TEST

/* stat.h: "Reaches the owner also after destroy", by those who have a reference, or units. */
START_TEST(late_updates_arrive)
{
	struct pcpc_owner *mid, *leaf, *rich;

	if (!open_stats(_i, (struct stat_shape){ .stocks = 1 }))
		return;
	mid = child_of(root);
	leaf = pcpc_owner_get(child_of(mid));
	rich = child_of(mid);
	charge(rich, 3);
	add(leaf, 1, 5);
	destroy(leaf);
	destroy(rich);
	add(leaf, 1, 6);
	ck_assert_int_eq(exactly(mid, 1), 11);
	pcpc_domain_poll(domain);
	add(leaf, 1, 7);
	add(rich, 1, 100);
	add(rich, 2, -1000);
	ck_assert_int_eq(exactly(leaf, 1), 18);
	ck_assert_int_eq(exactly(root, 1), 118);
	add(leaf, 1, 8);
	pcpc_owner_put(leaf);
	uncharge(rich, 3);
	pcpc_domain_poll(domain);
	ck_assert_uint_eq(atomic_load(&domain->nr_offline), 0);
	ck_assert_int_eq(exactly(root, 1), 126);
	ck_assert_int_eq(exactly(mid, 1), 126);
	ck_assert_int_eq(exactly(mid, 2), -1000);
	ck_assert_int_eq(pcpc_stat_read_local(mid, 1), 0);
}
END_TEST

/* Nothing of an offline owner may wait in a slot: a sweep may be the last to look. */
START_TEST(late_updates_enter_no_slot)
{
	struct pcpc_owner *leaf;

	if (!open_stats(_i, (struct stat_shape){ .stocks = 1 }))
		return;
	leaf = pcpc_owner_get(child_of(root));
	add(leaf, 1, 5);
	destroy(leaf);
	pcpc_domain_poll(domain);
	ck_assert_uint_eq(stat_slots_of(leaf, 1).slots, 0);
	add(leaf, 1, 6);
	ck_assert_uint_eq(stat_slots_of(leaf, 1).slots, 0);
	ck_assert_int_eq(pcpc_stat_read_local(leaf, 1), 11);
	pcpc_owner_put(leaf);
}
END_TEST

/* G14: the next owner of an id finds nothing: not in slots, not in totals, not in counters; and
 * what it adds is told from what the one before it had. */
START_TEST(an_id_that_is_used_again_starts_at_0)
{
	struct pcpc_owner *mid, *leaf, *again;
	enum stage stage;
	int64_t sum = 0;
	uint32_t id, key;

	if (!open_stats(_i, (struct stat_shape){ .nodes = 2, .stocks = 1 }))
		return;
	mid = child_of(root);
	for (stage = 0; stage < STAGES; stage++) {
		leaf = child_of(mid);
		id = pcpc_owner_id(leaf);
		bring_to(leaf, stage);
		pcpc_stat_add_node(leaf, 1, 2, 1000000);
		sum += 40;
		destroy(leaf);
		pcpc_domain_poll(domain);
		again = child_of(root);
		ck_assert_uint_eq(pcpc_owner_id(again), id);
		ck_assert_uint_eq(updates_of(again), 0);
		ck_assert(!pcpc_stat_needs_flush(again));
		for (key = 0; key < 6; key++) {
			ck_assert_int_eq(local_of(again, key), 0);
			ck_assert_int_eq(total_of(again, key), 0);
			ck_assert_uint_eq(stat_slots_of(again, key).slots, 0);
		}
		ck_assert_int_eq(exactly(again, 1), 0);
		add(again, 1, 7);
		ck_assert_int_eq(exactly(again, 1), 7);
		ck_assert_int_eq(exactly(mid, 1), sum);
		sum += 7;
		ck_assert_int_eq(exactly(root, 1), sum);
		/* the next round's owner is below mid, and so is its sum */
		destroy(again);
		pcpc_domain_poll(domain);
		add(root, 1, -7);
		sum -= 7;
		ck_assert_int_eq(exactly(root, 1), sum);
		ck_assert_int_eq(exactly(mid, 2), 1000000 * (int64_t)(stage + 1));
	}
}
END_TEST

/* Required: "monotonic counters that survive the death of owners". */
START_TEST(totals_of_the_living_never_fall_when_owners_die)
{
	struct pcpc_owner *alive[8] = { NULL }, *mid;
	uint64_t random = unit_seed();
	int64_t sum = 0, last = 0, value;
	int i, k;

	if (!open_stats(_i, (struct stat_shape){ .stocks = 1 }))
		return;
	mid = child_of(root);
	for (i = 0; i < 4000; i++) {
		k = (int)unit_below(&random, 8);
		if (!alive[k]) {
			alive[k] = child_of(mid);
		} else if (unit_below(&random, 4) == 0) {
			destroy(alive[k]);
			alive[k] = NULL;
		} else {
			value = (int64_t)unit_below(&random, 100);
			add(alive[k], 1, value);
			sum += value;
		}
		if (unit_below(&random, 20) == 0)
			pcpc_domain_poll(domain);
		if (unit_below(&random, 8) == 0)
			pass(AGE / 4);
		value = pcpc_stat_read(mid, 1);
		ck_assert_int_ge(value, last);
		ck_assert_int_le(value, sum);
		last = value;
	}
	ck_assert_int_eq(exactly(mid, 1), sum);
}
END_TEST

/* What is left in statistics keeps no domain. */
START_TEST(a_domain_goes_with_its_statistics)
{
	struct pcpc_owner *leaf;

	if (!open_stats(_i, (struct stat_shape){ .stocks = 1 }))
		return;
	leaf = child_of(root);
	add(leaf, 1, 5);
	add(root, 1, 5);
	add(leaf, 2, 500);
	destroy(leaf);
	ck_assert_int_eq(pcpc_domain_destroy(domain), 0);
	domain = NULL;
}
END_TEST

/* -- every order of the end: H26 -- */

enum ending { UNCHARGE, TAKE_BACK, DRAIN, FLUSH, DESTROY, POLL, ENDINGS };

static void do_ending(enum ending ending, struct pcpc_owner *leaf)
{
	switch (ending) {
	case UNCHARGE:
		pcpc_uncharge_stat(leaf, 100, -37);
		break;
	case TAKE_BACK:
		add(leaf, 1, -50);
		pcpc_owner_put(leaf);
		break;
	case DRAIN:
		(void)pcpc_owner_drain(root);
		break;
	case FLUSH:
		pcpc_stat_flush(root);
		break;
	case DESTROY:
		destroy(leaf);
		break;
	default:
		pcpc_domain_poll(domain);
	}
}

/* The nth order of so many things. */
static void order_of(int n, int *order, int length)
{
	int i, k, left[ENDINGS], which;

	for (i = 0; i < length; i++)
		left[i] = i;
	for (i = length; i; i--) {
		which = n % i;
		n /= i;
		order[length - i] = left[which];
		for (k = which; k < i - 1; k++)
			left[k] = left[k + 1];
	}
}

/* How the end is looked at: by an exact read, by a cheap one after 2 s, by one after the owner is
 * gone. */
static void check_ending(struct pcpc_owner *mid, int how)
{
	uint32_t item;

	if (how == 1)
		pass(AGE + 1);
	for (item = 0; item < 3; item++) {
		if (how == 2) {
			pcpc_domain_poll(domain);
			ck_assert_uint_eq(atomic_load(&domain->nr_offline), 0);
		}
		ck_assert_int_eq(how == 1 ? pcpc_stat_read(mid, item) : exactly(mid, item), 0);
		ck_assert_int_eq(how == 1 ? pcpc_stat_read(root, item) : exactly(root, item), 0);
	}
}

/* H26: a statistic is exactly zero after everything was given back, in every order of uncharge,
 * taking back, drain, flush, destroy and poll. The deltas are below and above the batch. */
START_TEST(H26_zero_after_every_order_of_giving_back)
{
	int order[ENDINGS], n, i, how, size;
	struct pcpc_owner *mid, *leaf;

	if (!open_stats(_i, (struct stat_shape){ .stocks = 1 }))
		return;
	mid = child_of(root);
	for (n = 0; n < 720; n++) {
		for (size = 0; size < 2; size++) {
			for (how = 0; how < 3; how++) {
				leaf = pcpc_owner_get(child_of(mid));
				ck_assert_int_eq(pcpc_charge_stat(leaf, 100, 37), 0);
				add(leaf, 1, 50);
				if (size) {
					add(leaf, 0, 1000);
					add(leaf, 0, -1000);
					add(leaf, 2, 64);
					add(leaf, 2, -64);
				}
				order_of(n, order, ENDINGS);
				for (i = 0; i < ENDINGS; i++)
					do_ending((enum ending)order[i], leaf);
				check_ending(mid, how);
			}
		}
	}
	pcpc_domain_poll(domain);
	ck_assert_uint_eq(pcpc_owner_usage_exact(root), 0);
}
END_TEST

static void job_charge_stat(void *context)
{
	ck_assert_int_eq(pcpc_charge_stat(context, 100, 37), 0);
	add(context, 1, 50);
}

/* The same where it was charged on another CPU, so that the slots of two hold a part each. */
START_TEST(H26_zero_also_across_cpus)
{
	int order[ENDINGS], n, i;
	struct pcpc_owner *mid, *leaf;
	struct worker worker;

	if (!open_stats(_i, (struct stat_shape){ .stocks = 1 }))
		return;
	worker_start(&worker, 1);
	mid = child_of(root);
	for (n = 0; n < 720; n++) {
		leaf = pcpc_owner_get(child_of(mid));
		worker_run(&worker, job_charge_stat, leaf);
		order_of(n, order, ENDINGS);
		for (i = 0; i < ENDINGS; i++)
			do_ending((enum ending)order[i], leaf);
		check_ending(mid, n % 3);
	}
	pcpc_domain_poll(domain);
	ck_assert_uint_eq(pcpc_owner_usage_exact(root), 0);
	worker_stop(&worker);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("stat lifetime");
	TCase *tests = unit_case(suite, "lifetime");

	tcase_add_checked_fixture(tests, NULL, close_domain);
	by_each_engine(tests, deltas_of_a_dead_owner_reach_its_ancestors_once);
	by_each_engine(tests, branches_die_and_nothing_is_lost);
	by_each_engine(tests, late_updates_arrive);
	by_each_engine(tests, late_updates_enter_no_slot);
	by_each_engine(tests, an_id_that_is_used_again_starts_at_0);
	by_each_engine(tests, totals_of_the_living_never_fall_when_owners_die);
	by_each_engine(tests, a_domain_goes_with_its_statistics);
	by_each_engine(tests, H26_zero_after_every_order_of_giving_back);
	by_each_engine(tests, H26_zero_also_across_cpus);
	return unit_run(suite);
}
