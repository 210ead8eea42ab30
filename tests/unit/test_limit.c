// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_limit.c - limits: they are used to the last unit whatever lies in stocks, they hold at once
 * when they are lowered, and what reading usage and peak says.
 *
 * How often a limit costs a drain is in test_limit_cap.c, reclaim in test_limit_reclaim.c.
 */
#define _GNU_SOURCE
#include "owner_support.h"

#define CHILDREN 200

static struct pcpc_owner *parent, *child[CHILDREN];
static struct worker elsewhere;

/* A parent with a limit, children that leave units in the stocks of another CPU (and so of the
 * parent's stock there), and the thread here. */
static bool strand_elsewhere(int engine, uint64_t max, uint64_t each)
{
	struct job job = { .count = each };
	uint32_t i;

	if (!open_domain(engine, 64, 0))
		return false;
	worker_start(&elsewhere, 1);
	parent = make_owner(root, max, 0);
	for (i = 0; i < CHILDREN; i++) {
		job.owner = child[i] = child_of(parent);
		worker_run(&elsewhere, job_strand, &job);
		ck_assert_int_eq(job.result, 0);
	}
	return true;
}

static void end(void)
{
	worker_stop(&elsewhere);
}

/* G3, asks 14: "the slow path drains all cached credit of that subtree before refusing";
 * "200 children strand units on one CPU, then the parent's limit must be fully usable from
 * another".
 */
START_TEST(asks_14_units_stranded_on_another_cpu_refuse_nobody)
{
	struct pcpc_owner *user;
	struct pcpc_refusal refusal;

	if (!strand_elsewhere(_i, 100000, 50))
		return;
	ck_assert_uint_ge(pcpc_owner_stocked(parent), CHILDREN * 30);
	ck_assert_uint_eq(pcpc_owner_usage_exact(parent), 0);
	user = child_of(parent);
	charge(user, 100000);
	ck_assert_uint_eq(pcpc_owner_usage(parent), 100000);
	ck_assert_uint_eq(pcpc_owner_stocked(parent), 0);
	ck_assert_int_eq(pcpc_charge_flags(child[7], 1, 0, &refusal), -EDQUOT);
	ck_assert_ptr_eq(refusal.over, parent);
	ck_assert_uint_ge(events_of(parent, PCPC_EVENT_DRAIN), 1);
	uncharge(user, 100000);
	end();
}
END_TEST

/* The same in small steps: the charges that still fit are let in as long as they do, with "limit
 * exactly full minus one request". Several limits: below, at, and above what can be stranded. */
START_TEST(asks_14_the_last_request_that_fits_is_let_in)
{
	static const uint64_t limits[] = { 1,	2,   15,   16,	 17,	100,  199,
					   200, 201, 1000, 6401, 12800, 20000 };
	static const uint64_t requests[] = { 1, 3, 64, 100 };
	uint64_t held, limit, request;
	struct job job = { 0 };
	unsigned int i, k;

	if (!strand_elsewhere(_i, 0, 50))
		return;
	for (i = 0; i < sizeof(limits) / sizeof(limits[0]) * 4; i++) {
		limit = limits[i / 4];
		request = requests[i % 4];
		if (request > limit)
			continue;
		ck_assert_int_eq(pcpc_owner_set_max(parent, limit), 0);
		/* whoever is elsewhere charges and gives back meanwhile */
		for (k = 0; k < 20; k++) {
			job = (struct job){ .owner = child[k * 9], .count = 1 };
			worker_run(&elsewhere, job_strand, &job);
			ck_assert_int_eq(job.result, 0);
		}
		for (held = 0; held + request <= limit; held += request)
			ck_assert_int_eq(pcpc_charge(child[held % CHILDREN], request), 0);
		ck_assert_int_eq(pcpc_charge(child[0], request), -EDQUOT);
		ck_assert_uint_eq(pcpc_owner_usage_exact(parent), held);
		if (held < limit)
			charge(child[1], limit - held);
		ck_assert_uint_eq(pcpc_owner_usage(parent), limit);
		ck_assert_int_eq(pcpc_charge(child[0], 1), -EDQUOT);
		/* also there: nothing is left in any stock */
		job = (struct job){ .owner = child[5], .count = 1 };
		worker_run(&elsewhere, job_charge, &job);
		ck_assert_int_eq(job.result, -EDQUOT);
		if (held < limit)
			uncharge(child[1], limit - held);
		for (held = 0; held + request <= limit; held += request)
			uncharge(child[held % CHILDREN], request);
	}
	end();
}
END_TEST

/* G3 at a limit far above: the units stranded are below it, but count for the root's. */
START_TEST(a_limit_of_the_root_finds_units_in_every_branch)
{
	struct pcpc_owner *branch, *leaf[10];
	struct worker worker;
	struct job job;
	int i, k;

	if (!open_domain(_i, 64, 0))
		return;
	worker_start(&worker, 1);
	ck_assert_int_eq(pcpc_owner_set_max(root, 50000), 0);
	for (i = 0; i < 10; i++) {
		branch = child_of(root);
		for (k = 0; k < 5; k++)
			branch = child_of(branch);
		job = (struct job){ .owner = branch, .count = 50 };
		worker_run(&worker, job_strand, &job);
		charge(branch, 20);
		leaf[i] = branch;
	}
	ck_assert_uint_gt(pcpc_owner_stocked(root), 1000);
	charge(leaf[9], 50000 - 10 * 20);
	ck_assert_int_eq(pcpc_charge(leaf[9], 1), -EDQUOT);
	ck_assert_uint_eq(pcpc_owner_usage(root), 50000);
	uncharge(leaf[9], 50000 - 10 * 20);
	for (i = 0; i < 10; i++)
		uncharge(leaf[i], 20);
	worker_stop(&worker);
}
END_TEST

/* G3: two limits, one above the other; the units that hide are in another branch of the upper one.
 */
START_TEST(limits_at_two_levels_are_both_used_to_the_last)
{
	struct pcpc_owner *top, *left, *right, *leaf;
	struct pcpc_refusal refusal;
	struct worker worker;
	struct job job;

	if (!open_domain(_i, 64, 0))
		return;
	worker_start(&worker, 1);
	top = make_owner(root, 20000, 0);
	left = make_owner(top, 15000, 0);
	right = make_owner(top, 15000, 0);
	leaf = child_of(left);
	job = (struct job){ .owner = child_of(right), .count = 50 };
	worker_run(&worker, job_strand, &job);
	charge(leaf, 15000);
	ck_assert_int_eq(pcpc_charge_flags(leaf, 1, 0, &refusal), -EDQUOT);
	ck_assert_ptr_eq(refusal.over, left);
	charge(job.owner, 5000);
	ck_assert_int_eq(pcpc_charge_flags(job.owner, 1, 0, &refusal), -EDQUOT);
	ck_assert_ptr_eq(refusal.over, top);
	ck_assert_uint_eq(pcpc_owner_usage(right), 5000);
	uncharge(leaf, 1);
	charge(job.owner, 1);
	uncharge(leaf, 14999);
	uncharge(job.owner, 5001);
	worker_stop(&worker);
}
END_TEST

/* G2: "after a lowering has returned, no charge that does not fit succeeds, stocks included". */
START_TEST(a_lowered_limit_is_in_force_when_it_returns)
{
	struct job job;
	uint32_t i;

	if (!strand_elsewhere(_i, 1000000, 50))
		return;
	for (i = 0; i < CHILDREN; i++) {
		charge(child[i], 60); /* units here as well */
		uncharge(child[i], 50);
	}
	ck_assert_uint_eq(pcpc_owner_usage_exact(parent), 2000);
	ck_assert_int_eq(pcpc_owner_set_max(parent, 1999), 0);
	ck_assert_uint_eq(pcpc_owner_usage(parent), 2000); /* takes back nothing that is held */
	ck_assert_uint_eq(pcpc_owner_stocked(parent), 0);
	for (i = 0; i < CHILDREN; i++) {
		ck_assert_uint_eq(pcpc_owner_usage(child[i]), 10);
		ck_assert_int_eq(pcpc_charge_flags(child[i], 1, i % 2 ? PCPC_NOWAIT : 0, NULL),
				 -EDQUOT);
		job = (struct job){ .owner = child[i], .count = 1 };
		worker_run(&elsewhere, job_charge, &job);
		ck_assert_int_eq(job.result, -EDQUOT);
	}
	/* usage may stay above it; one that fits, fits */
	uncharge(child[0], 2);
	charge(child[1], 1);
	ck_assert_int_eq(pcpc_charge(child[1], 1), -EDQUOT);
	uncharge(child[1], 11);
	uncharge(child[0], 8);
	for (i = 2; i < CHILDREN; i++)
		uncharge(child[i], 10);
	end();
}
END_TEST

/* The same for a limit of zero, at the root, and for one that is above what is held. */
START_TEST(a_limit_may_be_lowered_to_anything)
{
	static const uint64_t limits[] = { 0, 1, 500, 999, 1000, 1001, 1010 };
	struct pcpc_owner *leaf;
	struct worker worker;
	struct job job;
	unsigned int i;

	if (!open_domain(_i, 64, 0))
		return;
	worker_start(&worker, 1);
	leaf = child_of(child_of(root));
	charge(leaf, 1000);
	for (i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		ck_assert_int_eq(pcpc_owner_set_max(root, PCPC_UNLIMITED), 0);
		job = (struct job){ .owner = leaf, .count = 30 };
		worker_run(&worker, job_strand, &job);
		charge(leaf, 30);
		uncharge(leaf, 30);
		ck_assert_int_eq(pcpc_owner_set_max(root, limits[i]), 0);
		ck_assert_uint_eq(pcpc_owner_max(root), limits[i]);
		job.count = 11;
		worker_run(&worker, job_charge, &job);
		ck_assert_int_eq(job.result, -EDQUOT);
		if (limits[i] > 1000) {
			charge(leaf, limits[i] - 1000);
			ck_assert_int_eq(pcpc_charge(leaf, 1), -EDQUOT);
			uncharge(leaf, limits[i] - 1000);
		}
		ck_assert_uint_eq(pcpc_owner_usage_exact(root), 1000);
	}
	uncharge(leaf, 1000);
	worker_stop(&worker);
}
END_TEST

/* owner.h: a raised limit may be used at once. */
START_TEST(a_raised_limit_may_be_used_at_once)
{
	struct pcpc_owner *leaf;
	uint64_t max;

	if (!open_domain(_i, 64, 0))
		return;
	leaf = make_owner(root, 1, 0);
	charge(leaf, 1);
	for (max = 2; max < 1ull << 62; max *= 2) {
		ck_assert_int_eq(pcpc_charge(leaf, 1), -EDQUOT);
		ck_assert_int_eq(pcpc_owner_set_max(leaf, max), 0);
		charge(leaf, max - max / 2);
		ck_assert_uint_eq(pcpc_owner_usage(leaf), max);
	}
	ck_assert_int_eq(pcpc_owner_set_max(leaf, PCPC_UNLIMITED), 0);
	charge(leaf, 1);
	uncharge(leaf, max / 2 + 1);
}
END_TEST

/* Section 9 and asks 13: usage is an upper bound, exact "takes nothing out", stocked is the
 * difference. At every level of a tree, quiet. */
START_TEST(asks_13_reading_is_exact_and_takes_nothing_out)
{
	static const uint64_t below[4] = { 600, 600, 500, 300 }; /* held at a level and under it */
	uint64_t usage[4], stock[4], held;
	struct pcpc_owner *owner[4];
	struct worker worker;
	struct job job;
	int i, again;

	if (!open_domain(_i, 64, 0))
		return;
	worker_start(&worker, 1);
	owner[0] = root;
	for (i = 1; i < 4; i++) {
		owner[i] = child_of(owner[i - 1]);
		charge(owner[i], (uint64_t)i * 100);
		job = (struct job){ .owner = owner[i], .count = 40 };
		worker_run(&worker, job_strand, &job);
	}
	for (i = 0; i < 4; i++) {
		usage[i] = pcpc_owner_usage(owner[i]);
		stock[i] = stock_of(owner[i]);
	}
	for (again = 0; again < 3; again++) {
		for (i = 0; i < 4; i++) {
			held = below[i];
			ck_assert_uint_eq(pcpc_owner_usage_exact(owner[i]), held);
			ck_assert_uint_eq(pcpc_owner_stocked(owner[i]), usage[i] - held);
			ck_assert_uint_eq(pcpc_owner_usage(owner[i]), usage[i]);
			ck_assert_uint_eq(stock_of(owner[i]), stock[i]);
			ck_assert_uint_ge(usage[i], held);
		}
	}
	ck_assert_uint_eq(drains_now(), 0);
	/* stocked of a leaf is its own; of others the subtree's */
	ck_assert_uint_eq(pcpc_owner_stocked(owner[3]), stock[3]);
	ck_assert_uint_eq(pcpc_owner_stocked(root), stock[0] + stock[1] + stock[2] + stock[3]);
	/* a drain says what it gave back: all below, nothing above */
	ck_assert_uint_eq(pcpc_owner_drain(owner[2]), stock[2] + stock[3]);
	ck_assert_uint_eq(pcpc_owner_usage(owner[3]), 300);
	ck_assert_uint_eq(pcpc_owner_usage(owner[2]), 500);
	ck_assert_uint_eq(stock_of(owner[1]), stock[1]);
	ck_assert_uint_eq(stock_of(root), stock[0]);
	ck_assert_uint_eq(pcpc_owner_drain(owner[2]), 0);
	for (i = 1; i < 4; i++)
		uncharge(owner[i], (uint64_t)i * 100);
	worker_stop(&worker);
}
END_TEST

/* Reading goes on while units are offline. */
START_TEST(units_of_a_child_that_went_are_seen_in_its_parent)
{
	struct pcpc_owner *leaf;

	if (!open_domain(_i, 64, 0))
		return;
	leaf = child_of(child_of(root));
	charge(leaf, 100);
	uncharge(leaf, 40);
	ck_assert_int_eq(pcpc_owner_destroy(leaf), 0);
	ck_assert_uint_eq(pcpc_owner_usage_exact(leaf->parent), 60);
	ck_assert_uint_eq(pcpc_owner_stocked(leaf->parent),
			  stock_of(leaf) + stock_of(leaf->parent));
	pcpc_domain_poll(domain);
	ck_assert_uint_eq(pcpc_owner_usage_exact(leaf->parent), 60);
	uncharge(leaf, 60);
}
END_TEST

/* Asks 18: "peak >= any exact read taken"; with a reset of its own. */
START_TEST(asks_18_the_peak_is_the_highest_usage_since_reset)
{
	uint64_t random = unit_seed(), held = 0, highest = 0, count, top_usage = 0;
	struct pcpc_owner *mid, *leaf;
	int i;

	if (!open_domain(_i, 64, 0))
		return;
	mid = child_of(root);
	leaf = child_of(mid);
	for (i = 0; i < 5000; i++) {
		count = unit_below(&random, 300);
		if (unit_below(&random, 2)) {
			charge(leaf, count);
			held += count;
		} else if (count <= held) {
			uncharge(leaf, count);
			held -= count;
		}
		highest = held > highest ? held : highest;
		top_usage = pcpc_owner_usage(leaf) > top_usage ? pcpc_owner_usage(leaf) : top_usage;
		ck_assert_uint_eq(pcpc_owner_peak(leaf), top_usage);
		ck_assert_uint_ge(pcpc_owner_peak(leaf), highest);
		ck_assert_uint_ge(pcpc_owner_peak(mid), highest);
		ck_assert_uint_ge(pcpc_owner_peak(root), highest);
		if (!unit_below(&random, 500)) {
			pcpc_owner_reset_peak(leaf);
			ck_assert_uint_eq(pcpc_owner_peak(leaf), pcpc_owner_usage(leaf));
			highest = held;
			top_usage = pcpc_owner_usage(leaf);
		}
	}
	/* uncharging, draining and reading leave it alone */
	highest = pcpc_owner_peak(root);
	uncharge(leaf, held);
	(void)pcpc_owner_drain(root);
	ck_assert_uint_eq(pcpc_owner_peak(root), highest);
	/* the reset of one level is of that level */
	pcpc_owner_reset_peak(leaf);
	ck_assert_uint_eq(pcpc_owner_peak(leaf), 0);
	ck_assert_uint_eq(pcpc_owner_peak(root), highest);
}
END_TEST

/* Asks 18: "a failed try-charge ... leaves peak unchanged", 1,000 of them; and a forced one counts.
 */
START_TEST(asks_18_refusals_do_not_raise_a_peak)
{
	struct pcpc_owner *leaf;
	int i;

	if (!open_domain(_i, 64, 0))
		return;
	leaf = make_owner(root, 100, 0);
	charge(leaf, 40);
	for (i = 0; i < 1000; i++)
		ck_assert_int_eq(pcpc_charge(leaf, 61 + (uint64_t)i % 39), -EDQUOT);
	ck_assert_uint_eq(pcpc_owner_peak(leaf), 40);
	ck_assert_uint_le(pcpc_owner_peak(root), 40 + 64);
	ck_assert_int_eq(pcpc_charge_flags(leaf, 70, PCPC_FORCE, NULL), 0);
	ck_assert_uint_eq(pcpc_owner_peak(leaf), 110);
	uncharge(leaf, 110);
}
END_TEST

/* G12: "none once a drain has run after the cap of o or of an ancestor became 0": while a limit is
 * exact, nothing below it is stocked, by charges and uncharges of any size on any CPU. */
START_TEST(nothing_is_stocked_below_a_limit_that_is_exact)
{
	struct job job;
	uint32_t i;

	if (!strand_elsewhere(_i, 20000, 50))
		return;
	charge(child[0], 19000);
	charge(child[1], 1000);
	ck_assert_int_eq(pcpc_charge(child[2], 1), -EDQUOT);
	ck_assert(exact(parent));
	for (i = 0; i < CHILDREN; i++) {
		uncharge(child[0], 1 + i % 90);
		charge(child[i], i % 90);
		charge(child[i], 1);
		ck_assert_uint_eq(pcpc_owner_stocked(parent), 0);
		ck_assert_uint_eq(pcpc_owner_usage(parent), 20000);
		job = (struct job){ .owner = child[i], .count = i % 90 + 1 };
		worker_run(&elsewhere, job_uncharge, &job);
		ck_assert_uint_eq(pcpc_owner_stocked(parent), 0);
		ck_assert_uint_eq(pcpc_owner_usage(parent), 20000 - i % 90 - 1);
		job = (struct job){ .owner = child[0], .count = i % 90 + 1 };
		worker_run(&elsewhere, job_charge, &job);
		ck_assert_int_eq(job.result, 0);
	}
	uncharge(child[0], 19000);
	uncharge(child[1], 1000);
	end();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("limit");
	TCase *tests = unit_case(suite, "limit");

	tcase_add_checked_fixture(tests, NULL, close_domain);
	by_each_engine(tests, asks_14_units_stranded_on_another_cpu_refuse_nobody);
	by_each_engine(tests, asks_14_the_last_request_that_fits_is_let_in);
	by_each_engine(tests, a_limit_of_the_root_finds_units_in_every_branch);
	by_each_engine(tests, limits_at_two_levels_are_both_used_to_the_last);
	by_each_engine(tests, a_lowered_limit_is_in_force_when_it_returns);
	by_each_engine(tests, a_limit_may_be_lowered_to_anything);
	by_each_engine(tests, a_raised_limit_may_be_used_at_once);
	by_each_engine(tests, asks_13_reading_is_exact_and_takes_nothing_out);
	by_each_engine(tests, units_of_a_child_that_went_are_seen_in_its_parent);
	by_each_engine(tests, asks_18_the_peak_is_the_highest_usage_since_reset);
	by_each_engine(tests, asks_18_refusals_do_not_raise_a_peak);
	by_each_engine(tests, nothing_is_stocked_below_a_limit_that_is_exact);
	return unit_run(suite);
}
