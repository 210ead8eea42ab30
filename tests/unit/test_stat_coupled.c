// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_stat_coupled.c - the coupled item: what charges move in the same word as their units, on
 * every way that a word can take.
 *
 * Item 1 is coupled, so that keys and items cannot be mistaken for nothing.
 */
#define _GNU_SOURCE
#include "stat_support.h"

#define COUPLED 1

static bool open_coupled(int engine, struct stat_shape shape)
{
	shape.coupled = COUPLED;
	if (!shape.stocks)
		shape.stocks = 1;
	return open_stats(engine, shape);
}

static void charge_stat(struct pcpc_owner *owner, uint64_t count, int64_t delta)
{
	ck_assert_int_eq(pcpc_charge_stat(owner, count, delta), 0);
}

static void uncharge_stat(struct pcpc_owner *owner, uint64_t count, int64_t delta)
{
	pcpc_uncharge_stat(owner, count, delta);
}

/* All of it, wherever it is; takes nothing out. */
static int64_t coupled_sum(const struct pcpc_owner *owner)
{
	return local_of(owner, COUPLED) + in_slots(owner, COUPLED) + slots_of(owner).delta;
}

static void others_are_0(struct pcpc_owner *owner)
{
	ck_assert_int_eq(exactly(owner, 0), 0);
	ck_assert_int_eq(exactly(owner, 2), 0);
}

/* Misses, hits and bypasses: each moves the item once. */
START_TEST(charges_and_uncharges_move_the_item)
{
	struct pcpc_owner *leaf;

	if (!open_coupled(_i, (struct stat_shape){ 0 }))
		return;
	leaf = child_of(root);
	charge_stat(leaf, 3, 5);
	ck_assert_int_eq(coupled_sum(leaf), 5);
	charge_stat(leaf, 3, 7);
	ck_assert_int_eq(coupled_sum(leaf), 12);
	uncharge_stat(leaf, 1, -2);
	ck_assert_int_eq(coupled_sum(leaf), 10);
	charge_stat(leaf, 10000, 20);
	ck_assert_int_eq(coupled_sum(leaf), 30);
	uncharge_stat(leaf, 10000, -25);
	ck_assert_int_eq(coupled_sum(leaf), 5);
	/* without units, and units without it */
	charge_stat(leaf, 0, 9);
	uncharge_stat(leaf, 0, -1);
	charge(leaf, 5);
	uncharge(leaf, 5);
	ck_assert_int_eq(coupled_sum(leaf), 13);
	ck_assert_int_eq(exactly(leaf, COUPLED), 13);
	ck_assert_int_eq(exactly(root, COUPLED), 13);
	others_are_0(root);
	uncharge_stat(leaf, 5, -13);
	ck_assert_int_eq(exactly(root, COUPLED), 0);
}
END_TEST

/* Semantics 1.9.1: kept in the word below the batch, applied whole from there on, and then counted
 * as an update at every level. */
START_TEST(deltas_of_charges_are_batched_and_counted)
{
	struct pcpc_owner *mid, *leaf;

	if (!open_coupled(_i, (struct stat_shape){ 0 }))
		return;
	mid = child_of(root);
	leaf = child_of(mid);
	charge(leaf, 40);
	uncharge(leaf, 20);
	charge_stat(leaf, 1, 60);
	ck_assert_int_eq(slots_of(leaf).delta, 60);
	ck_assert_int_eq(local_of(leaf, COUPLED), 0);
	ck_assert_uint_eq(updates_of(root), 0);
	charge_stat(leaf, 1, 5);
	ck_assert_int_eq(slots_of(leaf).delta, 0);
	ck_assert_int_eq(local_of(leaf, COUPLED), 65);
	ck_assert_uint_eq(updates_of(leaf), 65);
	ck_assert_uint_eq(updates_of(mid), 65);
	ck_assert_uint_eq(updates_of(root), 65);
	pcpc_stat_flush(root);
	uncharge_stat(leaf, 1, -63);
	ck_assert_int_eq(slots_of(leaf).delta, -63);
	uncharge_stat(leaf, 1, -1);
	ck_assert_int_eq(local_of(leaf, COUPLED), 1);
	ck_assert_uint_eq(updates_of(root), 64);
	uncharge_stat(leaf, 20, -1);
	ck_assert_int_eq(exactly(root, COUPLED), 0);
}
END_TEST

/* Deltas outside the field of the charge word. */
START_TEST(deltas_of_any_size_arrive_with_charges)
{
	static const int64_t delta[] = { PCPC_DELTA_MAX,   (int64_t)PCPC_DELTA_MAX + 1,
					 PCPC_DELTA_MIN,   (int64_t)PCPC_DELTA_MIN - 1,
					 1 << 22,	   INT32_MIN,
					 (int64_t)1 << 32, ((int64_t)1 << 44) + 3,
					 INT64_MAX,	   INT64_MIN };
	struct pcpc_owner *leaf;
	int64_t expected = 0;
	uint32_t i;

	if (!open_coupled(_i, (struct stat_shape){ 0 }))
		return;
	leaf = child_of(root);
	for (i = 0; i < sizeof(delta) / sizeof(delta[0]); i++) {
		charge_stat(leaf, 2, 3);
		charge_stat(leaf, 2, delta[i]);
		uncharge_stat(leaf, 1, delta[i]);
		uncharge_stat(leaf, 1, negative_of(delta[i]));
		expected = plus(expected, plus(3, delta[i]));
		ck_assert_int_eq(exactly(leaf, COUPLED), expected);
		ck_assert_int_eq(exactly(root, COUPLED), expected);
	}
	others_are_0(root);
	uncharge(leaf, 2 * i);
	ck_assert_uint_eq(pcpc_owner_usage_exact(root), 0);
}
END_TEST

/* Semantics 1.9.6 and 1.9.7: an evicted owner's delta is its own, and its successor's begins anew;
 * with more owners than slots, and interior owners that evict too. */
START_TEST(evictions_keep_deltas_with_their_owners)
{
	int64_t expected[40] = { 0 }, delta, sum = 0;
	uint64_t random = unit_seed(), held[40] = { 0 };
	struct pcpc_owner *owner[40];
	int i, step;

	if (!open_coupled(_i, (struct stat_shape){ .batch = 16 }))
		return;
	for (i = 0; i < 40; i++)
		owner[i] = child_of(i < 3 ? root : owner[i % 3]);
	for (step = 0; step < 20000; step++) {
		i = (int)unit_below(&random, 40);
		delta = (int64_t)unit_below(&random, 41) - 20;
		if (unit_below(&random, 2)) {
			charge_stat(owner[i], 1 + (uint64_t)step % 9, delta);
			held[i] += 1 + (uint64_t)step % 9;
		} else {
			uncharge_stat(owner[i], held[i] / 2, delta);
			held[i] -= held[i] / 2;
		}
		expected[i] += delta;
		ck_assert_int_eq(coupled_sum(owner[i]), expected[i]);
	}
	for (i = 0; i < 40; i++) {
		ck_assert_int_eq(coupled_sum(owner[i]), expected[i]);
		sum += expected[i];
		uncharge(owner[i], held[i]);
	}
	ck_assert_int_eq(exactly(root, COUPLED), sum);
	others_are_0(root);
}
END_TEST

/* Trims and drains of units take the delta along, to the right owner; semantics 1.9.6. */
START_TEST(trims_and_drains_keep_deltas)
{
	struct pcpc_owner *mid, *leaf;
	int i;

	if (!open_coupled(_i, (struct stat_shape){ 0 }))
		return;
	mid = child_of(root);
	leaf = child_of(mid);
	charge(leaf, 1000);
	for (i = 0; i < 50; i++)
		uncharge_stat(leaf, 20, -1);
	ck_assert_int_eq(coupled_sum(leaf), -50);
	charge(leaf, 1);
	ck_assert_int_eq(pcpc_owner_set_batch(leaf, 2), 0);
	uncharge_stat(leaf, 1, -1);
	ck_assert_int_eq(coupled_sum(leaf), -51);
	(void)pcpc_owner_drain(root);
	ck_assert_int_eq(slots_of(leaf).delta, 0);
	ck_assert_int_eq(local_of(leaf, COUPLED), -51);
	ck_assert_int_eq(local_of(mid, COUPLED), 0);
	pcpc_stat_flush(root);
	ck_assert_int_eq(total_of(root, COUPLED), -51);
	/* one that is nothing but a delta: semantics 1.9.5 */
	charge_stat(leaf, 0, 5);
	(void)pcpc_owner_drain(leaf);
	ck_assert_int_eq(local_of(leaf, COUPLED), -46);
}
END_TEST

/* G4: "a refused charge leaves nothing behind at any level: usage, peak, statistics". */
START_TEST(G4_refused_charges_move_nothing)
{
	struct pcpc_owner *limited, *leaf, *gone;
	int i;

	if (!open_coupled(_i, (struct stat_shape){ 0 }))
		return;
	limited = make_owner(root, 100, 0);
	leaf = child_of(limited);
	gone = pcpc_owner_get(child_of(root));
	charge_stat(leaf, 100, 11);
	for (i = 0; i < 50; i++) {
		ck_assert_int_eq(pcpc_charge_stat(leaf, 1, 10 * i), -EDQUOT);
		ck_assert_int_eq(pcpc_charge_stat(leaf, 1000, INT64_MAX), -EDQUOT);
		ck_assert_int_eq(pcpc_charge_stat(leaf, UINT64_MAX, 10), -EINVAL);
	}
	ck_assert_int_eq(pcpc_owner_destroy(gone), 0);
	ck_assert_int_eq(pcpc_charge_stat(gone, 1, 10), -ESHUTDOWN);
	ck_assert_int_eq(pcpc_charge_stat(NULL, 1, 10), -EINVAL);
	ck_assert_int_eq(exactly(gone, COUPLED), 0);
	pcpc_owner_put(gone);
	ck_assert_int_eq(exactly(leaf, COUPLED), 11);
	ck_assert_int_eq(exactly(root, COUPLED), 11);
	uncharge_stat(leaf, 100, -11);
	ck_assert_int_eq(exactly(root, COUPLED), 0);
}
END_TEST

/* stat.h: the item is an item: pcpc_stat_add() moves it as well, and nodes have it at node 0. */
START_TEST(charges_and_additions_are_one_item)
{
	struct pcpc_owner *leaf;

	if (!open_coupled(_i, (struct stat_shape){ .nodes = 2 }))
		return;
	leaf = child_of(root);
	charge_stat(leaf, 1, 30);
	add(leaf, COUPLED, 20);
	pcpc_stat_add_node(leaf, 1, COUPLED, 7);
	ck_assert_int_eq(exactly(leaf, COUPLED), 57);
	ck_assert_int_eq(pcpc_stat_read_node(leaf, 0, COUPLED), 50);
	ck_assert_int_eq(pcpc_stat_read_node(leaf, 1, COUPLED), 7);
	uncharge_stat(leaf, 1, -1000);
	ck_assert_int_eq(exactly(root, COUPLED), -943);
	ck_assert_int_eq(pcpc_stat_read_node(root, 0, COUPLED), -950);
}
END_TEST

/* stat.h: "every update that has returned is in it", those in charge words too; and an exact read
 * gives no units away. */
START_TEST(an_exact_read_sees_what_charges_have_in_slots)
{
	struct pcpc_owner *mid, *leaf;

	if (!open_coupled(_i, (struct stat_shape){ 0 }))
		return;
	mid = child_of(root);
	leaf = child_of(mid);
	charge_stat(leaf, 10, 5);
	ck_assert_int_eq(exactly(mid, COUPLED), 5);
	ck_assert_uint_eq(pcpc_owner_usage_exact(leaf), 10);
	ck_assert_uint_eq(pcpc_owner_usage_exact(root), 10);
	charge_stat(leaf, 10, 5);
	ck_assert_int_eq(exactly(leaf, COUPLED), 10);
	uncharge_stat(leaf, 20, -10);
	ck_assert_int_eq(exactly(root, COUPLED), 0);
	ck_assert_uint_eq(pcpc_owner_usage_exact(root), 0);
}
END_TEST

/* So does a cheap one, after 2 s. */
START_TEST(a_read_after_2_s_sees_what_charges_had_in_slots)
{
	struct pcpc_owner *mid, *leaf;

	if (!open_coupled(_i, (struct stat_shape){ 0 }))
		return;
	mid = child_of(root);
	leaf = child_of(mid);
	(void)pcpc_stat_read(root, COUPLED);
	charge_stat(leaf, 10, 5);
	ck_assert_int_eq(pcpc_stat_read(mid, COUPLED), 0);
	pass(AGE + 1);
	ck_assert_int_eq(pcpc_stat_read(mid, COUPLED), 5);
	uncharge(leaf, 10);
}
END_TEST

/* Late ones: after destroy, by units alone; G7. */
START_TEST(late_uncharges_move_the_item)
{
	struct pcpc_owner *mid, *leaf;

	if (!open_coupled(_i, (struct stat_shape){ 0 }))
		return;
	mid = child_of(root);
	leaf = child_of(mid);
	charge_stat(leaf, 50, 40);
	ck_assert_int_eq(pcpc_owner_destroy(leaf), 0);
	uncharge_stat(leaf, 20, -10);
	pcpc_domain_poll(domain);
	ck_assert_int_eq(exactly(mid, COUPLED), 30);
	uncharge_stat(leaf, 20, -20);
	uncharge_stat(leaf, 10, -1000);
	pcpc_domain_poll(domain);
	ck_assert_uint_eq(atomic_load(&domain->nr_offline), 0);
	ck_assert_int_eq(exactly(mid, COUPLED), -990);
	ck_assert_int_eq(exactly(root, COUPLED), -990);
	ck_assert_int_eq(local_of(mid, COUPLED), 0);
}
END_TEST

/* charge.h: a transfer moves units, not the item. */
START_TEST(a_transfer_moves_no_statistics)
{
	struct pcpc_owner *from, *to;

	if (!open_coupled(_i, (struct stat_shape){ 0 }))
		return;
	from = child_of(root);
	to = child_of(root);
	charge_stat(from, 100, 40);
	ck_assert_int_eq(pcpc_transfer(from, to, 60), 0);
	ck_assert_int_eq(exactly(from, COUPLED), 40);
	ck_assert_int_eq(exactly(to, COUPLED), 0);
	uncharge(from, 40);
	uncharge(to, 60);
	ck_assert_int_eq(exactly(root, COUPLED), 40);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("stat coupled");
	TCase *tests = unit_case(suite, "coupled");

	tcase_add_checked_fixture(tests, NULL, close_domain);
	by_each_engine(tests, charges_and_uncharges_move_the_item);
	by_each_engine(tests, deltas_of_charges_are_batched_and_counted);
	by_each_engine(tests, deltas_of_any_size_arrive_with_charges);
	by_each_engine(tests, evictions_keep_deltas_with_their_owners);
	by_each_engine(tests, trims_and_drains_keep_deltas);
	by_each_engine(tests, G4_refused_charges_move_nothing);
	by_each_engine(tests, charges_and_additions_are_one_item);
	by_each_engine(tests, an_exact_read_sees_what_charges_have_in_slots);
	by_each_engine(tests, a_read_after_2_s_sees_what_charges_had_in_slots);
	by_each_engine(tests, late_uncharges_move_the_item);
	by_each_engine(tests, a_transfer_moves_no_statistics);
	return unit_run(suite);
}
