// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_transfer.c - moving units between owners: all or nothing, and common ancestors untouched.
 */
#define _GNU_SOURCE
#include "owner_support.h"

static uint64_t held_by(struct pcpc_owner *owner)
{
	return pcpc_owner_usage_exact(owner);
}

struct tree {
	struct pcpc_owner *top, *left, *right, *from, *to;
};

/* root - top - left - from, and right - to. */
static void grow_tree(struct tree *tree)
{
	tree->top = child_of(root);
	tree->left = child_of(tree->top);
	tree->right = child_of(tree->top);
	tree->from = child_of(tree->left);
	tree->to = child_of(tree->right);
}

/* charge.h: "move units that the caller holds from one owner to another"; exact at every level. */
START_TEST(units_move_and_every_level_knows)
{
	struct tree tree;

	if (!open_domain(_i, 64, 0))
		return;
	grow_tree(&tree);
	charge(tree.from, 1000);
	ck_assert_int_eq(pcpc_transfer(tree.from, tree.to, 300), 0);
	ck_assert_uint_eq(held_by(tree.from), 700);
	ck_assert_uint_eq(held_by(tree.left), 700);
	ck_assert_uint_eq(held_by(tree.to), 300);
	ck_assert_uint_eq(held_by(tree.right), 300);
	ck_assert_uint_eq(held_by(tree.top), 1000);
	ck_assert_uint_eq(held_by(root), 1000);
	ck_assert_int_eq(pcpc_transfer(tree.from, tree.to, 700), 0);
	ck_assert_uint_eq(held_by(tree.left), 0);
	ck_assert_uint_eq(held_by(tree.to), 1000);
	uncharge(tree.to, 1000);
}
END_TEST

/* "common ancestors untouched": their counters, peaks and limits, also where they are full. */
START_TEST(common_ancestors_are_not_touched)
{
	uint64_t top_usage, root_usage, peak;
	struct tree tree;
	int i;

	if (!open_domain(_i, PCPC_BATCH_NONE, 0))
		return;
	grow_tree(&tree);
	charge(tree.from, 1000);
	ck_assert_int_eq(pcpc_owner_set_max(tree.top, 1000), 0);
	ck_assert_int_eq(pcpc_owner_set_max(root, 1000), 0);
	ck_assert_int_eq(pcpc_charge(tree.to, 1), -EDQUOT);
	top_usage = pcpc_owner_usage(tree.top);
	root_usage = pcpc_owner_usage(root);
	peak = pcpc_owner_peak(tree.top);
	for (i = 0; i < 10; i++) {
		ck_assert_int_eq(pcpc_transfer(tree.from, tree.to, 100), 0);
		ck_assert_uint_eq(pcpc_owner_usage(tree.top), top_usage);
		ck_assert_uint_eq(pcpc_owner_usage(root), root_usage);
		ck_assert_uint_eq(pcpc_owner_peak(tree.top), peak);
		ck_assert_uint_eq(pcpc_owner_peak(tree.to), 100 * (uint64_t)(i + 1));
	}
	/* a limit that was lowered below usage does not hinder it either: nothing is added there */
	ck_assert_int_eq(pcpc_owner_set_max(root, 1), 0);
	ck_assert_int_eq(pcpc_transfer(tree.to, tree.from, 1000), 0);
	ck_assert_uint_eq(events_of(root, PCPC_EVENT_MAX), 1);
	uncharge(tree.from, 1000);
}
END_TEST

/* With stocks the counters above may move by what is stocked, but what is held there does not. */
START_TEST(what_common_ancestors_hold_stays_the_same)
{
	uint64_t random = unit_seed(), held[5] = { 0 }, total = 0, count;
	struct pcpc_owner *owner[5];
	struct tree tree;
	uint32_t from, to;
	int i;

	if (!open_domain(_i, 64, 1))
		return;
	grow_tree(&tree);
	owner[0] = tree.top;
	owner[1] = tree.left;
	owner[2] = tree.right;
	owner[3] = tree.from;
	owner[4] = tree.to;
	for (i = 0; i < 5; i++) {
		charge(owner[i], 1000);
		held[i] = 1000;
		total += 1000;
	}
	for (i = 0; i < 10000; i++) {
		from = (uint32_t)unit_below(&random, 5);
		to = (uint32_t)unit_below(&random, 5);
		count = unit_below(&random, unit_below(&random, 2) ? 10 : 500);
		if (count > held[from])
			continue;
		ck_assert_int_eq(pcpc_transfer(owner[from], owner[to], count), 0);
		held[from] -= count;
		held[to] += count;
		ck_assert_uint_eq(held_by(root), total);
		ck_assert_uint_eq(held_by(tree.top), total);
		ck_assert_uint_eq(held_by(tree.left), held[1] + held[3]);
		ck_assert_uint_eq(held_by(tree.right), held[2] + held[4]);
		ck_assert_uint_eq(held_by(tree.from), held[3]);
		ck_assert_uint_eq(held_by(tree.to), held[4]);
	}
	for (i = 0; i < 5; i++)
		uncharge(owner[i], held[i]);
}
END_TEST

/* "All or nothing": a limit in the branch that receives refuses, and nothing has moved (G4). */
START_TEST(all_or_nothing_at_a_limit)
{
	struct tree tree;

	if (!open_domain(_i, 64, 0))
		return;
	grow_tree(&tree);
	charge(tree.from, 1000);
	charge(tree.to, 50);
	ck_assert_int_eq(pcpc_owner_set_max(tree.right, 100), 0);
	ck_assert_int_eq(pcpc_transfer(tree.from, tree.to, 51), -EDQUOT);
	ck_assert_uint_eq(held_by(tree.from), 1000);
	ck_assert_uint_eq(held_by(tree.to), 50);
	ck_assert_uint_eq(held_by(tree.right), 50);
	ck_assert_uint_eq(events_of(tree.right, PCPC_EVENT_REFUSED), 1);
	/* the last unit of that limit */
	ck_assert_int_eq(pcpc_transfer(tree.from, tree.to, 50), 0);
	ck_assert_int_eq(pcpc_transfer(tree.from, tree.to, 1), -EDQUOT);
	ck_assert_uint_eq(pcpc_owner_usage(tree.right), 100);
	ck_assert_uint_eq(held_by(tree.top), 1050);
	/* the limit of the branch that gives does not matter */
	ck_assert_int_eq(pcpc_owner_set_max(tree.left, 0), 0);
	ck_assert_int_eq(pcpc_transfer(tree.to, tree.right, 20), 0);
	uncharge(tree.right, 20);
	ck_assert_int_eq(pcpc_transfer(tree.from, tree.to, 20), 0);
	uncharge(tree.from, 930);
	uncharge(tree.to, 100);
}
END_TEST

/* G3: units stranded below the limit of the branch that receives refuse no transfer. */
START_TEST(stranded_units_refuse_no_transfer)
{
	struct worker worker;
	struct tree tree;
	struct job job;
	int i;

	if (!open_domain(_i, 64, 0))
		return;
	worker_start(&worker, 1);
	grow_tree(&tree);
	ck_assert_int_eq(pcpc_owner_set_max(tree.right, 20000), 0);
	for (i = 0; i < 50; i++) {
		job = (struct job){ .owner = child_of(tree.right), .count = 50 };
		worker_run(&worker, job_strand, &job);
	}
	charge(tree.from, 20000);
	ck_assert_uint_gt(pcpc_owner_stocked(tree.right), 1000);
	ck_assert_int_eq(pcpc_transfer(tree.from, tree.to, 20000), 0);
	ck_assert_uint_eq(pcpc_owner_usage(tree.right), 20000);
	uncharge(tree.to, 20000);
	worker_stop(&worker);
}
END_TEST

/* Up and down one branch: the upper one's counter stays, who holds them changes. */
START_TEST(between_parent_and_child)
{
	struct tree tree;

	if (!open_domain(_i, PCPC_BATCH_NONE, 0))
		return;
	grow_tree(&tree);
	charge(tree.top, 100);
	ck_assert_int_eq(pcpc_transfer(tree.top, tree.from, 60), 0);
	ck_assert_uint_eq(pcpc_owner_usage(tree.top), 100);
	ck_assert_uint_eq(pcpc_owner_usage(tree.left), 60);
	ck_assert_uint_eq(pcpc_owner_usage(tree.from), 60);
	ck_assert_int_eq(pcpc_transfer(tree.from, tree.top, 10), 0);
	ck_assert_uint_eq(pcpc_owner_usage(tree.top), 100);
	ck_assert_uint_eq(pcpc_owner_usage(tree.left), 50);
	ck_assert_uint_eq(pcpc_owner_usage(tree.from), 50);
	/* up is always possible, down as far as limits let it */
	ck_assert_int_eq(pcpc_owner_set_max(tree.top, 0), 0);
	ck_assert_int_eq(pcpc_transfer(tree.from, tree.top, 50), 0);
	ck_assert_int_eq(pcpc_owner_set_max(tree.left, 99), 0);
	ck_assert_int_eq(pcpc_transfer(tree.top, tree.from, 100), -EDQUOT);
	ck_assert_int_eq(pcpc_transfer(tree.top, tree.from, 99), 0);
	ck_assert_uint_eq(pcpc_owner_usage(root), 100);
	/* root and leaf */
	ck_assert_int_eq(pcpc_transfer(tree.from, root, 99), 0);
	ck_assert_uint_eq(pcpc_owner_usage(tree.top), 1);
	ck_assert_uint_eq(pcpc_owner_usage(root), 100);
	uncharge(root, 99);
	uncharge(tree.top, 1);
}
END_TEST

/* Where a stock on the way serves it, whole, nothing is taken above; what is given up is stocked.
 */
START_TEST(a_stock_may_serve_the_receiver)
{
	struct tree tree;
	uint64_t usage;

	if (!open_domain(_i, 64, 0))
		return;
	grow_tree(&tree);
	charge(tree.from, 100);
	charge(tree.to, 100);
	uncharge(tree.to, 50);
	ck_assert_uint_ge(stock_of(tree.to), 50);
	usage = pcpc_owner_usage(tree.to);
	ck_assert_int_eq(pcpc_transfer(tree.from, tree.to, 50), 0);
	ck_assert_uint_eq(pcpc_owner_usage(tree.to), usage);
	ck_assert_uint_eq(held_by(tree.to), 100);
	ck_assert_uint_eq(held_by(tree.from), 50);
	/* served by the parent's stock */
	(void)pcpc_owner_drain(tree.to);
	ck_assert_uint_gt(stock_of(tree.right), 30);
	usage = pcpc_owner_usage(tree.right);
	ck_assert_int_eq(pcpc_transfer(tree.from, tree.to, 30), 0);
	ck_assert_uint_eq(pcpc_owner_usage(tree.right), usage);
	ck_assert_uint_eq(held_by(tree.to), 130);
	ck_assert_uint_eq(held_by(tree.left), 20);
	uncharge(tree.from, 20);
	uncharge(tree.to, 130);
}
END_TEST

/* charge.h: -EINVAL; -ESHUTDOWN where the receiver is offline; from one that is, units may leave.
 */
START_TEST(bad_transfers_change_nothing)
{
	struct pcpc_domain_config config = domain_config((enum pcpc_engine)_i, 64);
	struct pcpc_domain *other = NULL;
	struct tree tree;

	if (!open_domain(_i, 64, 0))
		return;
	ck_assert_int_eq(pcpc_domain_create(&config, &other), 0);
	grow_tree(&tree);
	charge(tree.from, 100);
	ck_assert_int_eq(pcpc_transfer(NULL, tree.to, 1), -EINVAL);
	ck_assert_int_eq(pcpc_transfer(tree.from, NULL, 1), -EINVAL);
	ck_assert_int_eq(pcpc_transfer(tree.from, pcpc_domain_root(other), 1), -EINVAL);
	ck_assert_int_eq(pcpc_transfer(tree.from, tree.to, (uint64_t)INT64_MAX + 1), -EINVAL);
	ck_assert_int_eq(pcpc_transfer(tree.from, tree.to, UINT64_MAX), -EINVAL);
	ck_assert_int_eq(pcpc_transfer(tree.from, tree.to, 0), 0);
	ck_assert_int_eq(pcpc_transfer(tree.from, tree.from, 100), 0);
	ck_assert_uint_eq(held_by(tree.from), 100);
	ck_assert_uint_eq(held_by(tree.to), 0);
	pcpc_owner_get(tree.to);
	ck_assert_int_eq(pcpc_owner_destroy(tree.to), 0);
	ck_assert_int_eq(pcpc_transfer(tree.from, tree.to, 1), -ESHUTDOWN);
	ck_assert_uint_eq(held_by(tree.from), 100);
	/* out of one that went: to its parent, and to another branch */
	ck_assert_int_eq(pcpc_owner_destroy(tree.from), 0);
	pcpc_domain_poll(domain);
	ck_assert_int_eq(pcpc_transfer(tree.from, tree.left, 60), 0);
	ck_assert_int_eq(pcpc_transfer(tree.from, tree.right, 40), 0);
	pcpc_domain_poll(domain);
	ck_assert_ptr_null(pcpc_owner_by_id(domain, 5));
	ck_assert_uint_eq(held_by(tree.left), 60);
	ck_assert_uint_eq(held_by(tree.right), 40);
	ck_assert_uint_eq(held_by(tree.top), 100);
	uncharge(tree.left, 60);
	uncharge(tree.right, 40);
	pcpc_owner_put(tree.to);
	ck_assert_int_eq(pcpc_domain_destroy(other), 0);
}
END_TEST

/* Inside a read-side section it does not wait, as a charge. */
START_TEST(inside_a_read_side_section_a_transfer_does_not_wait)
{
	struct tree tree;

	if (!open_domain(_i, 64, 0))
		return;
	grow_tree(&tree);
	ck_assert_int_eq(pcpc_owner_set_max(tree.right, 10000), 0);
	charge(tree.to, 60);
	uncharge(tree.to, 60);
	charge(tree.from, 10000);
	urcu_bp_read_lock();
	ck_assert_int_eq(pcpc_transfer(tree.from, tree.to, 10000), -EAGAIN);
	urcu_bp_read_unlock();
	ck_assert_uint_eq(held_by(tree.from), 10000);
	ck_assert_int_eq(pcpc_transfer(tree.from, tree.to, 10000), 0);
	uncharge(tree.to, 10000);
	pcpc_domain_poll(domain);
}
END_TEST

/* The branch that gives is relieved, and counted. */
START_TEST(a_transfer_relieves_the_branch_that_gives)
{
	struct tree tree;

	if (!open_domain(_i, 64, 0))
		return;
	grow_tree(&tree);
	ck_assert_int_eq(pcpc_owner_set_max(tree.left, 1600), 0);
	charge(tree.from, 1600);
	ck_assert_int_eq(pcpc_charge(tree.from, 1), -EDQUOT);
	ck_assert_int_eq(pcpc_transfer(tree.from, tree.to, 100), 0);
	ck_assert_uint_eq(events_of(tree.left, PCPC_EVENT_RELIEVED), 1);
	charge(tree.from, 100);
	uncharge(tree.from, 1600);
	uncharge(tree.to, 100);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("transfer");
	TCase *tests = unit_case(suite, "transfer");

	tcase_add_checked_fixture(tests, NULL, close_domain);
	by_each_engine(tests, units_move_and_every_level_knows);
	by_each_engine(tests, common_ancestors_are_not_touched);
	by_each_engine(tests, what_common_ancestors_hold_stays_the_same);
	by_each_engine(tests, all_or_nothing_at_a_limit);
	by_each_engine(tests, stranded_units_refuse_no_transfer);
	by_each_engine(tests, between_parent_and_child);
	by_each_engine(tests, a_stock_may_serve_the_receiver);
	by_each_engine(tests, bad_transfers_change_nothing);
	by_each_engine(tests, inside_a_read_side_section_a_transfer_does_not_wait);
	by_each_engine(tests, a_transfer_relieves_the_branch_that_gives);
	return unit_run(suite);
}
