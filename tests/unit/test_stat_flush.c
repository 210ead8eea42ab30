// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_stat_flush.c - flush counters, flushes, and how old or wrong a cheap read may be.
 *
 * With a delta_batch of 1 every update is applied at once, so that counters are what was added.
 */
#define _GNU_SOURCE
#include "stat_support.h"

/* root - mid - leaf, and beside the leaf another one; beside mid a quiet one. */
static struct pcpc_owner *mid, *leaf, *sibling, *quiet;

static bool open_tree(int engine, uint32_t delta_batch)
{
	if (!open_stats(engine, (struct stat_shape){ .delta_batch = delta_batch, .stocks = 1 }))
		return false;
	mid = child_of(root);
	leaf = child_of(mid);
	sibling = child_of(mid);
	quiet = child_of(root);
	return true;
}

static void counters_are(uint64_t of_root, uint64_t of_mid, uint64_t of_leaf, uint64_t of_sibling)
{
	ck_assert_uint_eq(updates_of(root), of_root);
	ck_assert_uint_eq(updates_of(mid), of_mid);
	ck_assert_uint_eq(updates_of(leaf), of_leaf);
	ck_assert_uint_eq(updates_of(sibling), of_sibling);
	ck_assert_uint_eq(updates_of(quiet), 0);
	ck_assert_int_eq(pcpc_stat_needs_flush(root), of_root > threshold);
	ck_assert_int_eq(pcpc_stat_needs_flush(mid), of_mid > threshold);
	ck_assert_int_eq(pcpc_stat_needs_flush(leaf), of_leaf > threshold);
	ck_assert_int_eq(pcpc_stat_needs_flush(sibling), of_sibling > threshold);
	ck_assert(!pcpc_stat_needs_flush(quiet));
}

/* Semantics 5.2.3: "+10 and -10 count 20 (activity, not net)"; G11: at every level. */
START_TEST(sizes_are_counted_at_every_level)
{
	if (!open_tree(_i, 1))
		return;
	add(leaf, 0, 10);
	counters_are(10, 10, 10, 0);
	add(leaf, 0, -10);
	counters_are(20, 20, 20, 0);
	add(sibling, 2, -3);
	counters_are(23, 23, 20, 3);
	add(mid, 1, 7);
	counters_are(30, 30, 20, 3);
	add(root, 1, 1);
	counters_are(31, 30, 20, 3);
}
END_TEST

/* stat.h: "how much has been applied": not what is in slots. */
START_TEST(what_is_in_slots_is_not_counted)
{
	if (!open_tree(_i, 50))
		return;
	add(leaf, 0, 49);
	add(sibling, 0, -49);
	counters_are(0, 0, 0, 0);
	add(leaf, 0, 1);
	counters_are(50, 50, 50, 0);
	/* what was given and taken back in the slot has no size */
	add(leaf, 1, 49);
	add(leaf, 1, -49);
	counters_are(50, 50, 50, 0);
	(void)exactly(sibling, 0);
	counters_are(99, 99, 50, 0);
}
END_TEST

/* Semantics 5.2: "needs_flush(m) iff shared > T (strict)". */
START_TEST(the_threshold_is_strict)
{
	if (!open_tree(_i, 1))
		return;
	add(leaf, 0, (int64_t)threshold - 1);
	counters_are(threshold - 1, threshold - 1, threshold - 1, 0);
	add(leaf, 0, -1);
	ck_assert(!pcpc_stat_needs_flush(leaf));
	ck_assert(!pcpc_stat_needs_flush(root));
	add(leaf, 0, 1);
	counters_are(threshold + 1, threshold + 1, threshold + 1, 0);
	ck_assert(pcpc_stat_needs_flush(leaf));
	ck_assert(pcpc_stat_needs_flush(root));
}
END_TEST

/* stat.h: "a level that is past the threshold is counted no further"; the others are. */
START_TEST(a_level_past_the_threshold_is_counted_no_further)
{
	if (!open_tree(_i, 1))
		return;
	add(leaf, 0, (int64_t)threshold + 1);
	add(leaf, 0, 1000);
	add(leaf, 0, -1000);
	counters_are(threshold + 1, threshold + 1, threshold + 1, 0);
	add(sibling, 0, 5);
	counters_are(threshold + 1, threshold + 1, threshold + 1, 5);
	add(root, 0, 5);
	counters_are(threshold + 1, threshold + 1, threshold + 1, 5);
}
END_TEST

/* Semantics 5.2.9: sizes do not wrap, whatever they are. */
START_TEST(no_size_wraps)
{
	static const int64_t large[] = { INT64_MAX,	   INT64_MIN,		INT64_MIN + 1,
					 (int64_t)1 << 32, -((int64_t)1 << 32), (int64_t)1 << 62 };
	uint32_t i;

	if (!open_tree(_i, 1))
		return;
	for (i = 0; i < sizeof(large) / sizeof(large[0]); i++) {
		add(leaf, 0, (int64_t)threshold);
		add(leaf, 0, large[i]);
		ck_assert(pcpc_stat_needs_flush(leaf));
		ck_assert(pcpc_stat_needs_flush(root));
		ck_assert_uint_gt(updates_of(root), threshold);
		add(leaf, 0, negative_of(large[i]));
		add(leaf, 0, -(int64_t)threshold);
		ck_assert(pcpc_stat_needs_flush(root));
		pcpc_stat_flush(root);
		ck_assert_int_eq(total_of(root, 0), 0);
		ck_assert_int_eq(total_of(leaf, 0), 0);
		counters_are(0, 0, 0, 0);
	}
}
END_TEST

/* A flush clears the counters of its subtree, and no others. */
START_TEST(a_flush_clears_the_counters_of_its_subtree)
{
	if (!open_tree(_i, 1))
		return;
	add(leaf, 0, 10);
	add(sibling, 0, 20);
	add(root, 0, 1);
	pcpc_stat_flush(leaf);
	counters_are(31, 30, 0, 20);
	pcpc_stat_flush(mid);
	counters_are(31, 0, 0, 0);
	pcpc_stat_flush(quiet);
	counters_are(31, 0, 0, 0);
	pcpc_stat_flush(root);
	counters_are(0, 0, 0, 0);
}
END_TEST

/* stat.h: "has been applied in the subtree since the last flush": the flush of an ancestor is one,
 * also where the owner that was changed has been flushed before. */
START_TEST(a_flush_of_a_child_first_leaves_no_counter_behind)
{
	if (!open_tree(_i, 1))
		return;
	add(leaf, 0, (int64_t)threshold + 10);
	pcpc_stat_flush(leaf);
	counters_are(threshold + 10, threshold + 10, 0, 0);
	pcpc_stat_flush(root);
	counters_are(0, 0, 0, 0);
	ck_assert_int_eq(total_of(root, 0), (int64_t)threshold + 10);
}
END_TEST

/* Semantics 5.5.8. */
START_TEST(a_second_flush_changes_nothing)
{
	int i;

	if (!open_tree(_i, 1))
		return;
	add(leaf, 0, 10);
	add(mid, 1, -20);
	pcpc_stat_flush(root);
	for (i = 0; i < 3; i++) {
		pcpc_stat_flush(i == 1 ? leaf : root);
		ck_assert_int_eq(total_of(root, 0), 10);
		ck_assert_int_eq(total_of(mid, 0), 10);
		ck_assert_int_eq(total_of(leaf, 0), 10);
		ck_assert_int_eq(total_of(root, 1), -20);
		ck_assert_int_eq(total_of(mid, 1), -20);
		ck_assert_int_eq(total_of(leaf, 1), 0);
		ck_assert_int_eq(local_of(leaf, 0), 10);
		ck_assert_int_eq(local_of(root, 0), 0);
		counters_are(0, 0, 0, 0);
	}
}
END_TEST

/* Semantics 5.5.4: whatever is flushed in whatever order, the parent has it once: not before it is
 * flushed, or at once, and never twice. */
START_TEST(a_flush_of_a_child_reaches_the_parent_exactly_once)
{
	int64_t sum = 0;
	int i;

	if (!open_tree(_i, 1))
		return;
	for (i = 1; i <= 50; i++) {
		add(leaf, 0, i);
		pcpc_stat_flush(leaf);
		ck_assert_int_eq(total_of(leaf, 0), sum + i);
		ck_assert(total_of(mid, 0) == sum || total_of(mid, 0) == sum + i);
		ck_assert(total_of(root, 0) == sum || total_of(root, 0) == sum + i);
		sum += i;
		if (i % 2)
			pcpc_stat_flush(leaf);
		if (i % 3)
			pcpc_stat_flush(mid);
		pcpc_stat_flush(root);
		ck_assert_int_eq(total_of(leaf, 0), sum);
		ck_assert_int_eq(total_of(mid, 0), sum);
		ck_assert_int_eq(total_of(root, 0), sum);
		ck_assert_int_eq(total_of(sibling, 0), 0);
	}
}
END_TEST

/* A flush of an interior owner takes in all that was applied below, and nothing beside. */
START_TEST(a_flush_brings_its_subtree_up_to_date)
{
	if (!open_tree(_i, 1))
		return;
	add(leaf, 0, 1);
	add(sibling, 0, 10);
	add(mid, 0, 100);
	add(quiet, 0, 1000);
	pcpc_stat_flush(mid);
	ck_assert_int_eq(total_of(mid, 0), 111);
	ck_assert_int_eq(total_of(leaf, 0), 1);
	ck_assert_int_eq(total_of(sibling, 0), 10);
	ck_assert_int_eq(total_of(quiet, 0), 0);
	pcpc_stat_flush(root);
	ck_assert_int_eq(total_of(quiet, 0), 1000);
	ck_assert_int_eq(total_of(root, 0), 1111);
}
END_TEST

/* -- cheap reads -- */

/* stat.h: it flushes only "if the subtree's counter says so". Semantics 5.3.1. */
START_TEST(a_read_flushes_past_the_threshold_only)
{
	if (!open_tree(_i, 1))
		return;
	add(leaf, 0, (int64_t)threshold);
	ck_assert_int_eq(pcpc_stat_read(leaf, 0), 0);
	ck_assert_int_eq(pcpc_stat_read(root, 0), 0);
	counters_are(threshold, threshold, threshold, 0);
	add(sibling, 0, 1);
	/* root and mid are past it, leaf and sibling are not */
	ck_assert_int_eq(pcpc_stat_read(leaf, 0), 0);
	ck_assert_int_eq(pcpc_stat_read(sibling, 0), 0);
	ck_assert_int_eq(pcpc_stat_read(mid, 0), (int64_t)threshold + 1);
	ck_assert_int_eq(pcpc_stat_read(leaf, 0), (int64_t)threshold);
	counters_are(threshold + 1, 0, 0, 0);
	ck_assert_int_eq(pcpc_stat_read(root, 0), (int64_t)threshold + 1);
	counters_are(0, 0, 0, 0);
}
END_TEST

/* Reading one subtree after the other visits each mark a few times, not once for each subtree: the
 * first reads find so many marks of others that they flush all, and the rest has nothing to do. */
START_TEST(reads_of_many_subtrees_flush_all_at_once)
{
	struct pcpc_owner *top[200];
	int i, flushed = 0;

	if (!open_tree(_i, 1))
		return;
	for (i = 0; i < 200; i++) {
		top[i] = child_of(root);
		add(child_of(top[i]), 0, (int64_t)threshold + 1);
	}
	for (i = 0; i < 200; i++) {
		flushed += !pcpc_stat_needs_flush(top[i]);
		ck_assert_int_eq(pcpc_stat_read(top[i], 0), (int64_t)threshold + 1);
	}
	ck_assert_int_ge(flushed, 190);
	counters_are(0, 0, 0, 0);
	ck_assert_int_eq(total_of(root, 0), 200 * ((int64_t)threshold + 1));
}
END_TEST

/* Semantics 5.3.5: "a read of a quiet child never flushes because of busy siblings". */
START_TEST(a_read_of_a_quiet_owner_flushes_nothing)
{
	if (!open_tree(_i, 1))
		return;
	add(leaf, 0, 100 * (int64_t)threshold);
	ck_assert_int_eq(pcpc_stat_read(quiet, 0), 0);
	ck_assert_int_eq(pcpc_stat_read(sibling, 0), 0);
	ck_assert_int_eq(total_of(leaf, 0), 0);
	ck_assert(pcpc_stat_needs_flush(leaf));
	ck_assert(pcpc_stat_needs_flush(root));
}
END_TEST

/* Reads of interior owners: own, and all that is below. */
START_TEST(a_read_of_an_interior_owner_sums_its_subtree)
{
	int64_t much;

	if (!open_tree(_i, 1))
		return;
	much = 2 * (int64_t)threshold;
	add(leaf, 1, much);
	add(sibling, 1, -3);
	add(mid, 1, 5);
	add(quiet, 1, 7);
	ck_assert_int_eq(pcpc_stat_read(mid, 1), much + 2);
	ck_assert_int_eq(pcpc_stat_read(root, 1), much + 9);
	ck_assert_int_eq(pcpc_stat_read_local(mid, 1), 5);
}
END_TEST

/* Local reads flush nothing and need no flush. */
START_TEST(a_local_read_flushes_nothing)
{
	if (!open_tree(_i, 1))
		return;
	add(leaf, 1, 10 * (int64_t)threshold);
	ck_assert_int_eq(pcpc_stat_read_local(leaf, 1), 10 * (int64_t)threshold);
	pass(AGE + 1);
	ck_assert_int_eq(pcpc_stat_read_local(root, 1), 0);
	ck_assert_int_eq(total_of(root, 1), 0);
	ck_assert(pcpc_stat_needs_flush(root));
}
END_TEST

/* An exact read is exact whatever the counters say, and leaves other owners' as they are. */
START_TEST(an_exact_read_flushes_below_the_threshold_too)
{
	if (!open_tree(_i, 50))
		return;
	add(leaf, 1, 3);
	add(mid, 1, 70);
	add(quiet, 1, 80);
	ck_assert_int_eq(exactly(mid, 1), 73);
	ck_assert_int_eq(total_of(leaf, 1), 3);
	ck_assert_uint_eq(updates_of(mid), 0);
	ck_assert_uint_eq(updates_of(leaf), 0);
	ck_assert_uint_eq(updates_of(quiet), 80);
	ck_assert_int_eq(total_of(quiet, 1), 0);
	ck_assert_int_eq(exactly(root, 1), 153);
}
END_TEST

/* -- ages: what is older than 2 s is not missed -- */

/* Updates in slots are drained by a read, once more than 2 s have passed since that was last done.
 */
START_TEST(slots_are_missed_for_2_s_at_most)
{
	if (!open_tree(_i, 50))
		return;
	add(leaf, 1, 3);
	ck_assert_int_eq(pcpc_stat_read(root, 1), 0);
	pass(AGE);
	ck_assert_int_eq(pcpc_stat_read(root, 1), 0);
	ck_assert_int_eq(in_slots(leaf, 1), 3);
	pass(1);
	ck_assert_int_eq(pcpc_stat_read(root, 1), 3);
	ck_assert_int_eq(in_slots(leaf, 1), 0);
	/* from now on another 2 s */
	add(leaf, 1, 4);
	pass(AGE - 1);
	ck_assert_int_eq(pcpc_stat_read(root, 1), 3);
	pass(2);
	ck_assert_int_eq(pcpc_stat_read(leaf, 1), 7);
}
END_TEST

/* So are updates that were applied, and that no counter tells about. */
START_TEST(applied_updates_are_missed_for_2_s_at_most)
{
	if (!open_tree(_i, 1))
		return;
	add(leaf, 1, 3);
	pass(AGE - 1);
	ck_assert_int_eq(pcpc_stat_read(mid, 1), 0);
	pass(2);
	ck_assert_int_eq(pcpc_stat_read(mid, 1), 3);
	ck_assert_int_eq(pcpc_stat_read(root, 1), 3);
}
END_TEST

/* The 2 s are the domain's: after a read of one owner has drained, a read of another misses nothing
 * that is older either, in slots or applied. */
START_TEST(a_read_of_one_owner_makes_no_other_one_older)
{
	if (!open_tree(_i, 50))
		return;
	add(leaf, 1, 3);
	add(sibling, 1, 60);
	add(leaf, 2, 70);
	pass(AGE + 1);
	ck_assert_int_eq(pcpc_stat_read(quiet, 1), 0);
	pass(AGE - 1);
	ck_assert_int_eq(pcpc_stat_read(leaf, 1), 3);
	ck_assert_int_eq(pcpc_stat_read(sibling, 1), 60);
	ck_assert_int_eq(pcpc_stat_read(mid, 2), 70);
	ck_assert_int_eq(pcpc_stat_read(root, 2), 70);
	ck_assert_int_eq(pcpc_stat_read(root, 1), 63);
}
END_TEST

/* Flushes and exact reads of a part do not put off what is due for the rest. */
START_TEST(flushes_and_exact_reads_put_nothing_off)
{
	if (!open_tree(_i, 50))
		return;
	add(leaf, 1, 3);
	add(sibling, 1, 60);
	pass(AGE + 1);
	ck_assert_int_eq(exactly(quiet, 1), 0);
	pcpc_stat_flush(quiet);
	pcpc_stat_flush(root);
	ck_assert_int_eq(pcpc_stat_read(leaf, 1), 3);
	ck_assert_int_eq(pcpc_stat_read(mid, 1), 63);
}
END_TEST

/* Other items and other ways to read keep to it too: the coupled item's reads do not put off the
 * others', and the other way round. */
START_TEST(every_item_is_2_s_old_at_most)
{
	if (!open_tree(_i, 50))
		return;
	add(leaf, 0, 3);
	add(leaf, 1, 4);
	ck_assert_int_eq(pcpc_charge_stat(leaf, 5, 6), 0);
	pass(AGE + 1);
	ck_assert_int_eq(pcpc_stat_read_node(leaf, 0, 1), 4);
	ck_assert_int_eq(pcpc_stat_read(mid, 0), 9);
	add(sibling, 0, 3);
	add(sibling, 1, 4);
	ck_assert_int_eq(pcpc_charge_stat(sibling, 5, 6), 0);
	pass(AGE + 1);
	ck_assert_int_eq(pcpc_stat_read_node(sibling, 0, 0), 9);
	ck_assert_int_eq(pcpc_stat_read(mid, 1), 8);
	ck_assert_int_eq(pcpc_stat_read(root, 0), 18);
	uncharge(leaf, 5);
	uncharge(sibling, 5);
}
END_TEST

/* Required: within the 2 s a cheap read never drains. */
START_TEST(reads_within_2_s_drain_nothing)
{
	uint64_t drains;
	int i;

	if (!open_tree(_i, 50))
		return;
	add(leaf, 1, 3);
	add(leaf, 1, 10 * (int64_t)threshold);
	drains = atomic_load(&domain->stats.cache->drains);
	for (i = 0; i < 1000; i++) {
		pass(AGE / 2000);
		(void)pcpc_stat_read(i % 2 ? root : leaf, 1);
		(void)pcpc_stat_read_node(quiet, 0, 2);
	}
	ck_assert_uint_eq(atomic_load(&domain->stats.cache->drains), drains);
	ck_assert_int_eq(in_slots(leaf, 1), 3);
}
END_TEST

/* -- identities -- */

#define MOST 40

struct random_tree {
	struct pcpc_owner *owner[MOST];
	int64_t own[MOST][3];
	int parent[MOST];
	int nr;
};

static void grow(struct random_tree *tree, uint64_t *random)
{
	int i;

	tree->nr = 2 + (int)unit_below(random, MOST - 1);
	tree->owner[0] = root;
	tree->parent[0] = -1;
	for (i = 1; i < tree->nr; i++) {
		tree->parent[i] = (int)unit_below(random, (uint64_t)i);
		tree->owner[i] = child_of(tree->owner[tree->parent[i]]);
	}
}

static int64_t sum_below(const struct random_tree *tree, int top, int item)
{
	int64_t sum = tree->own[top][item];
	int i;

	for (i = top + 1; i < tree->nr; i++)
		if (tree->parent[i] == top)
			sum += sum_below(tree, i, item);
	return sum;
}

static void check_identities(const struct random_tree *tree)
{
	int64_t children;
	int i, k, item;

	for (item = 0; item < 3; item++) {
		for (i = 0; i < tree->nr; i++) {
			children = 0;
			for (k = i + 1; k < tree->nr; k++)
				if (tree->parent[k] == i)
					children += total_of(tree->owner[k], (uint32_t)item);
			ck_assert_int_eq(total_of(tree->owner[i], (uint32_t)item),
					 local_of(tree->owner[i], (uint32_t)item) + children);
			ck_assert_int_eq(local_of(tree->owner[i], (uint32_t)item) +
						 in_slots(tree->owner[i], (uint32_t)item),
					 tree->own[i][item]);
			ck_assert_uint_eq(updates_of(tree->owner[i]), 0);
		}
	}
}

static void run_tree(struct random_tree *tree, uint64_t *random)
{
	int i, item, step, top;
	int64_t delta;

	grow(tree, random);
	for (step = 0; step < 400; step++) {
		i = (int)unit_below(random, (uint64_t)tree->nr);
		item = (int)unit_below(random, 3);
		delta = (int64_t)unit_below(random, 200) - 100;
		add(tree->owner[i], (uint32_t)item, delta);
		tree->own[i][item] += delta;
		if (unit_below(random, 10) == 0)
			pcpc_stat_flush(tree->owner[unit_below(random, (uint64_t)tree->nr)]);
		if (unit_below(random, 40) == 0) {
			top = (int)unit_below(random, (uint64_t)tree->nr);
			ck_assert_int_eq(exactly(tree->owner[top], (uint32_t)item),
					 sum_below(tree, top, item));
		}
	}
	pcpc_stat_flush(root);
	check_identities(tree);
	for (item = 0; item < 3; item++)
		ck_assert_int_eq(exactly(root, (uint32_t)item), sum_below(tree, 0, item));
	check_identities(tree);
	for (i = 0; i < tree->nr; i++)
		for (item = 0; item < 3; item++)
			ck_assert_int_eq(total_of(tree->owner[i], (uint32_t)item),
					 sum_below(tree, i, item));
}

/* G10 and semantics 5.5.7: after a flush of root, for every owner and item: total = local + the
 * children's totals; and root's is the sum of all that was applied. */
START_TEST(G10_identities_hold_after_a_flush_of_root)
{
	uint64_t random = unit_seed();
	struct random_tree tree;
	int i;

	for (i = 0; i < (UNIT_SANITIZED ? 5 : 30); i++) {
		if (!open_stats(_i, (struct stat_shape){ .delta_batch = 20 + 15 * (uint32_t)i,
							 .stocks = 1 }))
			return;
		memset(&tree, 0, sizeof(tree));
		run_tree(&tree, &random);
		unit_stand_anywhere();
		close_domain();
	}
}
END_TEST

/* G11: however updates and flushes of parts follow each other, an owner in whose subtree more than
 * 64 x CPUs was applied since its last flush says that it needs one. */
START_TEST(G11_no_ancestor_is_left_behind)
{
	uint64_t random = unit_seed(), applied[MOST] = { 0 };
	struct random_tree tree = { 0 };
	int i, k, step, size;

	if (!open_stats(_i, (struct stat_shape){ .delta_batch = 1, .stocks = 1 }))
		return;
	grow(&tree, &random);
	for (step = 0; step < 20000; step++) {
		i = (int)unit_below(&random, (uint64_t)tree.nr);
		if (unit_below(&random, 8) == 0) {
			pcpc_stat_flush(tree.owner[i]);
			for (k = 0; k < tree.nr; k++)
				if (pcpc_within(tree.owner[k], tree.owner[i]))
					applied[k] = 0;
		} else {
			size = 1 + (int)unit_below(&random, threshold / 4);
			add(tree.owner[i], 1, step % 2 ? size : -size);
			for (k = i; k >= 0; k = tree.parent[k])
				applied[k] += (uint64_t)size;
		}
		for (k = 0; k < tree.nr; k++)
			ck_assert_int_eq(pcpc_stat_needs_flush(tree.owner[k]),
					 applied[k] > threshold);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("stat flush");
	TCase *tests = unit_case(suite, "flush");

	tcase_add_checked_fixture(tests, NULL, close_domain);
	by_each_engine(tests, sizes_are_counted_at_every_level);
	by_each_engine(tests, what_is_in_slots_is_not_counted);
	by_each_engine(tests, the_threshold_is_strict);
	by_each_engine(tests, a_level_past_the_threshold_is_counted_no_further);
	by_each_engine(tests, no_size_wraps);
	by_each_engine(tests, a_flush_clears_the_counters_of_its_subtree);
	by_each_engine(tests, a_flush_of_a_child_first_leaves_no_counter_behind);
	by_each_engine(tests, a_second_flush_changes_nothing);
	by_each_engine(tests, a_flush_of_a_child_reaches_the_parent_exactly_once);
	by_each_engine(tests, a_flush_brings_its_subtree_up_to_date);
	tests = unit_case(suite, "reads");
	tcase_add_checked_fixture(tests, NULL, close_domain);
	by_each_engine(tests, a_read_flushes_past_the_threshold_only);
	by_each_engine(tests, reads_of_many_subtrees_flush_all_at_once);
	by_each_engine(tests, a_read_of_a_quiet_owner_flushes_nothing);
	by_each_engine(tests, a_read_of_an_interior_owner_sums_its_subtree);
	by_each_engine(tests, a_local_read_flushes_nothing);
	by_each_engine(tests, an_exact_read_flushes_below_the_threshold_too);
	by_each_engine(tests, slots_are_missed_for_2_s_at_most);
	by_each_engine(tests, applied_updates_are_missed_for_2_s_at_most);
	by_each_engine(tests, a_read_of_one_owner_makes_no_other_one_older);
	by_each_engine(tests, flushes_and_exact_reads_put_nothing_off);
	by_each_engine(tests, every_item_is_2_s_old_at_most);
	by_each_engine(tests, reads_within_2_s_drain_nothing);
	tests = unit_case(suite, "identities");
	tcase_add_checked_fixture(tests, NULL, close_domain);
	by_each_engine(tests, G10_identities_hold_after_a_flush_of_root);
	by_each_engine(tests, G11_no_ancestor_is_left_behind);
	return unit_run(suite);
}
