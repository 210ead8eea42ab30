// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_stat.c - statistics of one owner: what is added is there, whatever its size, item, node and
 * slot, and nothing else is.
 *
 * Flushes, counters and ages are in test_stat_flush.c, ends of owners in test_stat_lifetime.c.
 */
#define _GNU_SOURCE
#include "stat_support.h"

/* stat.h: "every update that has returned is in it", of the owner and of all above it. */
START_TEST(an_update_is_in_the_next_exact_read)
{
	struct pcpc_owner *mid, *leaf, *beside;

	if (!open_stats(_i, (struct stat_shape){ 0 }))
		return;
	mid = child_of(root);
	leaf = child_of(mid);
	beside = child_of(mid);
	add(leaf, 1, 5);
	ck_assert_int_eq(exactly(leaf, 1), 5);
	ck_assert_int_eq(exactly(mid, 1), 5);
	ck_assert_int_eq(exactly(root, 1), 5);
	add(leaf, 1, -7);
	ck_assert_int_eq(exactly(root, 1), -2);
	ck_assert_int_eq(exactly(leaf, 1), -2);
	add(mid, 1, 100);
	ck_assert_int_eq(exactly(mid, 1), 98);
	ck_assert_int_eq(exactly(leaf, 1), -2);
	ck_assert_int_eq(exactly(beside, 1), 0);
	ck_assert_int_eq(exactly(root, 0), 0);
	ck_assert_int_eq(exactly(root, 2), 0);
}
END_TEST

static const int64_t amounts[] = {
	1,
	63,
	64,
	65,
	2097151,
	2097152,
	INT32_MAX,
	(int64_t)INT32_MAX + 1,
	(int64_t)UINT32_MAX,
	(int64_t)UINT32_MAX + 1,
	(int64_t)UINT32_MAX + 6,
	(int64_t)1 << 44,
	((int64_t)1 << 44) + 5,
	(int64_t)1 << 62,
	INT64_MAX,
	INT64_MIN,
};

#define NR_AMOUNTS (sizeof(amounts) / sizeof(amounts[0]))

/* Required: "64-bit totals; no wrap at any field boundary; negative deltas": beside whatever the
 * slot holds already, and without touching a neighbour of any kind. */
START_TEST(deltas_of_any_size_arrive_whole)
{
	static const int64_t before[] = { 0, 1, -1, 62, -62, 63, -63 };
	struct pcpc_owner *left, *leaf, *right;
	int64_t expected = 0, delta;
	uint32_t i, k, sign;

	if (!open_stats(_i, (struct stat_shape){ .stocks = 1 }))
		return;
	left = child_of(root);
	leaf = child_of(root);
	right = child_of(root);
	for (i = 0; i < NR_AMOUNTS; i++) {
		for (k = 0; k < 7; k++) {
			for (sign = 0; sign < 2; sign++) {
				delta = sign ? negative_of(amounts[i]) : amounts[i];
				(void)exactly(root, 1);
				add(leaf, 1, before[k]);
				add(leaf, 1, delta);
				expected = plus(expected, plus(before[k], delta));
				ck_assert_int_eq(plus(local_of(leaf, 1), in_slots(leaf, 1)),
						 expected);
				ck_assert_int_lt(stat_slots_of(leaf, 1).largest, 64);
				ck_assert_int_eq(exactly(leaf, 1), expected);
				ck_assert_int_eq(exactly(root, 1), expected);
			}
		}
	}
	ck_assert_int_eq(exactly(leaf, 0), 0);
	ck_assert_int_eq(exactly(leaf, 2), 0);
	ck_assert_int_eq(exactly(root, 2), 0);
	ck_assert_int_eq(exactly(left, 1), 0);
	ck_assert_int_eq(exactly(right, 1), 0);
}
END_TEST

/* stat.h: "totals are kept in 64 bits and wrap". */
START_TEST(totals_wrap_at_64_bits)
{
	struct pcpc_owner *leaf, *beside;

	if (!open_stats(_i, (struct stat_shape){ 0 }))
		return;
	leaf = child_of(root);
	beside = child_of(root);
	add(leaf, 0, INT64_MAX);
	ck_assert_int_eq(exactly(leaf, 0), INT64_MAX);
	add(leaf, 0, 1);
	ck_assert_int_eq(exactly(leaf, 0), INT64_MIN);
	add(beside, 0, INT64_MIN);
	ck_assert_int_eq(exactly(root, 0), 0);
	ck_assert_int_eq(exactly(beside, 0), INT64_MIN);
	add(leaf, 0, INT64_MIN);
	add(leaf, 0, -1);
	ck_assert_int_eq(exactly(leaf, 0), -1);
	ck_assert_int_eq(exactly(root, 0), INT64_MAX);
}
END_TEST

/* Semantics 5.1.5. */
START_TEST(zero_leaves_no_trace)
{
	struct pcpc_owner *leaf;

	if (!open_stats(_i, (struct stat_shape){ .delta_batch = 1, .stocks = 1 }))
		return;
	leaf = child_of(root);
	add(leaf, 1, 0);
	pcpc_stat_add_node(leaf, 0, 1, 0);
	ck_assert_uint_eq(stat_slots_of(leaf, 1).slots, 0);
	ck_assert_uint_eq(updates_of(leaf), 0);
	ck_assert_uint_eq(updates_of(root), 0);
	ck_assert_int_eq(exactly(root, 1), 0);
}
END_TEST

/* What is in slots and what was applied, and that nothing is anywhere else. */
static void only_this_is_there(struct pcpc_owner *owner, uint32_t keys, uint32_t key, int64_t value)
{
	uint32_t k;

	for (k = 0; k < keys; k++)
		ck_assert_int_eq(plus(local_of(owner, k), in_slots(owner, k)),
				 k == key ? value : 0);
}

/* stat.h: "A NULL owner, or an item or node that the domain does not have: updates do nothing,
 * reads are 0"; also where node * items + item would wrap to a key that exists. */
START_TEST(unknown_items_nodes_and_owners_are_nothing)
{
	static const struct {
		uint32_t node, item;
	} bad[] = {
		{ 0, 3 },	   { 0, 4 },	      { 0, 5 },		 { 0, 6 },
		{ 0, UINT32_MAX }, { 2, 0 },	      { 1, 3 },		 { UINT32_MAX, 0 },
		{ UINT32_MAX, 5 }, { 0x55555555, 1 }, { 0x55555556, 0 }, { 0x80000000, 0 },
	};
	struct pcpc_owner *leaf;
	uint32_t i;

	if (!open_stats(_i, (struct stat_shape){ .nodes = 2, .stocks = 1 }))
		return;
	leaf = child_of(root);
	pcpc_stat_add_node(leaf, 1, 2, 7);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		pcpc_stat_add_node(leaf, bad[i].node, bad[i].item, 1000);
		pcpc_stat_add_node(leaf, bad[i].node, bad[i].item, 1);
		only_this_is_there(leaf, 6, 5, 7);
		ck_assert_int_eq(pcpc_stat_read_node(leaf, bad[i].node, bad[i].item), 0);
		if (bad[i].item < 3)
			continue;
		add(leaf, bad[i].item, 1000);
		add(leaf, bad[i].item, 1);
		only_this_is_there(leaf, 6, 5, 7);
		ck_assert_int_eq(pcpc_stat_read(leaf, bad[i].item), 0);
		ck_assert_int_eq(pcpc_stat_read_local(leaf, bad[i].item), 0);
		ck_assert_int_eq(exactly(leaf, bad[i].item), 0);
	}
	ck_assert_uint_eq(updates_of(root), 0);
	add(NULL, 0, 5);
	pcpc_stat_add_node(NULL, 0, 0, 5);
	pcpc_stat_flush(NULL);
	ck_assert_int_eq(pcpc_stat_read(NULL, 0), 0);
	ck_assert_int_eq(pcpc_stat_read_local(NULL, 0), 0);
	ck_assert_int_eq(pcpc_stat_read_node(NULL, 0, 0), 0);
	ck_assert_int_eq(exactly(NULL, 0), 0);
	ck_assert_uint_eq(updates_of(NULL), 0);
	ck_assert(!pcpc_stat_needs_flush(NULL));
}
END_TEST

/* owner.h: "without items they move nothing": a domain that was made without any. */
START_TEST(a_domain_without_items_has_no_statistics)
{
	struct pcpc_domain_config config = domain_config((enum pcpc_engine)_i, 64);
	struct pcpc_owner *leaf;

	if (!create_domain(&config))
		return;
	leaf = child_of(root);
	add(leaf, 0, 1000000);
	pcpc_stat_add_node(leaf, 0, 0, 1);
	ck_assert_int_eq(pcpc_charge_stat(leaf, 10, 3000), 0);
	pcpc_uncharge_stat(leaf, 10, -1000);
	ck_assert_int_eq(pcpc_stat_read(leaf, 0), 0);
	ck_assert_int_eq(pcpc_stat_read_local(leaf, 0), 0);
	ck_assert_int_eq(pcpc_stat_read_node(leaf, 0, 0), 0);
	ck_assert_int_eq(exactly(root, 0), 0);
	pcpc_stat_flush(root);
	ck_assert(!pcpc_stat_needs_flush(root));
	pass(AGE + 1);
	ck_assert_int_eq(pcpc_stat_read(root, 0), 0);
	ck_assert_int_eq(pcpc_owner_destroy(leaf), 0);
	pcpc_domain_poll(domain);
}
END_TEST

/* Required: "optionally per NUMA node". */
START_TEST(nodes_are_told_apart_and_summed)
{
	struct pcpc_owner *mid, *leaf;
	uint32_t node;

	if (!open_stats(_i, (struct stat_shape){ .nodes = 4, .stocks = 1 }))
		return;
	mid = child_of(root);
	leaf = child_of(mid);
	for (node = 0; node < 4; node++) {
		/* the last item of a node is the neighbour of the next node's first */
		pcpc_stat_add_node(leaf, node, 2, 1 << (4 * node));
		pcpc_stat_add_node(leaf, node, 0, -(1 << (4 * node)));
		pcpc_stat_add_node(mid, node, 2, 100000);
	}
	ck_assert_int_eq(exactly(leaf, 2), 0x1111);
	ck_assert_int_eq(exactly(leaf, 0), -0x1111);
	ck_assert_int_eq(exactly(leaf, 1), 0);
	ck_assert_int_eq(exactly(root, 2), 0x1111 + 400000);
	for (node = 0; node < 4; node++) {
		ck_assert_int_eq(pcpc_stat_read_node(leaf, node, 2), 1 << (4 * node));
		ck_assert_int_eq(pcpc_stat_read_node(leaf, node, 0), -(1 << (4 * node)));
		ck_assert_int_eq(pcpc_stat_read_node(mid, node, 2), 100000 + (1 << (4 * node)));
		ck_assert_int_eq(pcpc_stat_read_node(root, node, 1), 0);
	}
	ck_assert_int_eq(pcpc_stat_read_local(leaf, 2), 0x1111);
	ck_assert_int_eq(pcpc_stat_read_local(mid, 2), 400000);
	ck_assert_int_eq(pcpc_stat_read_local(root, 2), 0);
	/* "With nodes, pcpc_stat_add() counts for node 0" */
	add(leaf, 1, 77);
	ck_assert_int_eq(exactly(leaf, 1), 77);
	ck_assert_int_eq(pcpc_stat_read_node(leaf, 0, 1), 77);
	ck_assert_int_eq(pcpc_stat_read_node(leaf, 1, 1), 0);
}
END_TEST

/* Without nodes there is one, number 0. */
START_TEST(without_nodes_there_is_one)
{
	struct pcpc_owner *leaf;

	if (!open_stats(_i, (struct stat_shape){ 0 }))
		return;
	leaf = child_of(root);
	pcpc_stat_add_node(leaf, 0, 1, 70);
	pcpc_stat_add_node(leaf, 1, 1, 700);
	ck_assert_int_eq(exactly(leaf, 1), 70);
	ck_assert_int_eq(pcpc_stat_read_node(leaf, 0, 1), 70);
	ck_assert_int_eq(pcpc_stat_read_node(leaf, 1, 1), 0);
	ck_assert_int_eq(exactly(leaf, 2), 0);
}
END_TEST

/* PCPC_ITEM_MAX: "items of a domain, times its nodes, are at most one more": every key is its own,
 * up to the bounds of the field in the slot, where the next owner's id begins. */
START_TEST(every_key_up_to_the_last_is_its_own)
{
	static const uint32_t key[] = { 0, 1, 2047, 2048, 4094, 4095 };
	struct pcpc_owner *owner[3];
	uint32_t i, k;

	if (!open_stats(_i, (struct stat_shape){ .items = PCPC_ITEM_MAX + 1, .stocks = 1 }))
		return;
	for (i = 0; i < 3; i++)
		owner[i] = child_of(root);
	for (k = 0; k < 6; k++) {
		for (i = 0; i < 3; i++) {
			add(owner[i], key[k], 1 + (int64_t)i + 10 * k);
			add(owner[i], key[k], -1000 * (int64_t)(k + 1));
		}
	}
	for (k = 0; k < 6; k++) {
		for (i = 0; i < 3; i++)
			ck_assert_int_eq(exactly(owner[i], key[k]),
					 1 + (int64_t)i + 10 * k - 1000 * (int64_t)(k + 1));
		ck_assert_int_eq(exactly(root, key[k]),
				 6 + 30 * (int64_t)k - 3000 * (int64_t)(k + 1));
	}
	ck_assert_int_eq(exactly(root, 2), 0);
	ck_assert_int_eq(exactly(root, 4093), 0);
	ck_assert_int_eq(exactly(root, 4096), 0);
}
END_TEST

static int try_items(int engine, uint32_t items, uint32_t nodes)
{
	struct pcpc_domain_config config = domain_config((enum pcpc_engine)engine, 64);
	struct pcpc_domain *made = NULL;
	struct pcpc_item *item = calloc(items, sizeof(*item));
	uint32_t i;
	int r;

	ck_assert_ptr_nonnull(item);
	for (i = 0; i < items; i++)
		item[i] = (struct pcpc_item){ "item", "unit" };
	config.items = item;
	config.nr_items = items;
	config.nr_nodes = nodes;
	r = pcpc_domain_create(&config, &made);
	free(item);
	ck_assert_int_eq(pcpc_domain_destroy(made), 0);
	return r;
}

/* The same bound, from outside; products that wrap in 32 bits too. */
START_TEST(more_keys_than_fit_the_slot_are_refused)
{
	if (try_items(_i, 1, 1) == -ENOSYS)
		return;
	ck_assert_int_eq(try_items(_i, 4096, 0), 0);
	ck_assert_int_eq(try_items(_i, 4096, 1), 0);
	ck_assert_int_eq(try_items(_i, 1024, 4), 0);
	ck_assert_int_eq(try_items(_i, 1, 4096), 0);
	ck_assert_int_eq(try_items(_i, 4097, 0), -EINVAL);
	ck_assert_int_eq(try_items(_i, 4096, 2), -EINVAL);
	ck_assert_int_eq(try_items(_i, 1365, 4), -EINVAL);
	ck_assert_int_eq(try_items(_i, 1, 4097), -EINVAL);
	ck_assert_int_eq(try_items(_i, 65536, 65536), -EINVAL);
	ck_assert_int_eq(try_items(_i, 16, 0x10000000), -EINVAL);
	ck_assert_int_eq(try_items(_i, 3, 0x55555556), -EINVAL);
	ck_assert_int_eq(try_items(_i, 1, UINT32_MAX), -EINVAL);
}
END_TEST

/* owner.h: "Both strings are copied", and the array is not kept. */
START_TEST(items_are_copied)
{
	struct pcpc_domain_config config = domain_config((enum pcpc_engine)_i, 64);
	struct pcpc_item *items = calloc(2, sizeof(*items));
	char *name = strdup("sockets open"), *unit = strdup("sockets");

	ck_assert_ptr_nonnull(items);
	items[0] = (struct pcpc_item){ "first", NULL };
	items[1] = (struct pcpc_item){ name, unit };
	config.items = items;
	config.nr_items = 2;
	if (create_domain(&config)) {
		memset(name, '?', strlen(name));
		memset(unit, '?', strlen(unit));
		memset(items, 0, 2 * sizeof(*items));
		ck_assert_str_eq(domain->items[0].name, "first");
		ck_assert_str_eq(domain->items[0].unit, "");
		ck_assert_str_eq(domain->items[1].name, "sockets open");
		ck_assert_str_eq(domain->items[1].unit, "sockets");
		add(root, 1, 3);
		ck_assert_int_eq(exactly(root, 1), 3);
	}
	free(items);
	free(name);
	free(unit);
}
END_TEST

/* Design, section 8: "when abs(delta) reaches delta_batch ... the delta is applied", all of it;
 * semantics 1.9.1 and 1.9.2 with their numbers. */
START_TEST(a_delta_that_reaches_its_batch_is_applied_whole)
{
	struct pcpc_owner *leaf;

	if (!open_stats(_i, (struct stat_shape){ .stocks = 1 }))
		return;
	leaf = child_of(root);
	add(leaf, 0, 60);
	ck_assert_int_eq(in_slots(leaf, 0), 60);
	ck_assert_int_eq(pcpc_stat_read_local(leaf, 0), 0);
	add(leaf, 0, 3);
	ck_assert_int_eq(in_slots(leaf, 0), 63);
	add(leaf, 0, -3);
	add(leaf, 0, 5);
	ck_assert_int_eq(in_slots(leaf, 0), 0);
	ck_assert_int_eq(pcpc_stat_read_local(leaf, 0), 65);
	add(leaf, 1, -40);
	add(leaf, 1, -23);
	ck_assert_int_eq(in_slots(leaf, 1), -63);
	ck_assert_int_eq(pcpc_stat_read_local(leaf, 1), 0);
	add(leaf, 1, -1);
	ck_assert_int_eq(in_slots(leaf, 1), 0);
	ck_assert_int_eq(pcpc_stat_read_local(leaf, 1), -64);
	/* one that reaches it alone, beside an empty slot and beside none */
	add(leaf, 1, 64);
	ck_assert_int_eq(pcpc_stat_read_local(leaf, 1), 0);
	add(leaf, 2, -64);
	ck_assert_int_eq(pcpc_stat_read_local(leaf, 2), -64);
	ck_assert_int_eq(in_slots(leaf, 2), 0);
}
END_TEST

/* The smallest delta_batch there is, and what a slot may hold by the largest. */
START_TEST(a_delta_batch_of_1_keeps_nothing_in_slots)
{
	struct pcpc_owner *leaf;
	int i;

	if (!open_stats(_i, (struct stat_shape){ .delta_batch = 1, .stocks = 1 }))
		return;
	leaf = child_of(root);
	for (i = 1; i <= 100; i++) {
		add(leaf, 1, i % 3 ? 1 : -2);
		ck_assert_int_eq(in_slots(leaf, 1), 0);
		ck_assert_int_eq(pcpc_stat_read_local(leaf, 1), i % 3);
	}
}
END_TEST

START_TEST(the_largest_delta_batch_fills_a_slot)
{
	const int64_t most = PCPC_DELTA_MAX;
	struct pcpc_owner *leaf;

	if (!open_stats(_i, (struct stat_shape){ .delta_batch = (uint32_t)PCPC_DELTA_MAX,
						 .stocks = 1 }))
		return;
	leaf = child_of(root);
	add(leaf, 0, most - 1);
	ck_assert_int_eq(in_slots(leaf, 0), most - 1);
	add(leaf, 0, 1 - most);
	ck_assert_int_eq(in_slots(leaf, 0), 0);
	add(leaf, 0, 1 - most);
	ck_assert_int_eq(in_slots(leaf, 0), 1 - most);
	ck_assert_int_eq(pcpc_stat_read_local(leaf, 0), 0);
	add(leaf, 0, -1);
	ck_assert_int_eq(in_slots(leaf, 0), 0);
	ck_assert_int_eq(pcpc_stat_read_local(leaf, 0), -most);
	add(leaf, 1, most);
	ck_assert_int_eq(pcpc_stat_read_local(leaf, 1), most);
	add(leaf, 2, most - 1);
	add(leaf, 2, INT32_MAX);
	ck_assert_int_eq(pcpc_stat_read_local(leaf, 2) + in_slots(leaf, 2), INT32_MAX + most - 1);
	ck_assert_int_eq(exactly(leaf, 2), INT32_MAX + most - 1);
}
END_TEST

/* owner.h: "0: max(64, 2 x CPUs)". */
START_TEST(the_default_delta_batch)
{
	struct pcpc_domain_config config = domain_config((enum pcpc_engine)_i, 64);
	const struct pcpc_item item = { "item", "unit" };
	cpu_set_t allowed;
	int64_t expected;

	ck_assert_int_eq(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
	expected = 2 * (int64_t)CPU_COUNT(&allowed);
	expected = expected < 64 ? 64 : expected;
	config.items = &item;
	config.nr_items = 1;
	if (!create_domain(&config))
		return;
	ck_assert(unit_pin(0));
	add(root, 0, expected - 1);
	ck_assert_int_eq(pcpc_stat_read_local(root, 0), 0);
	add(root, 0, 1);
	ck_assert_int_eq(pcpc_stat_read_local(root, 0), expected);
}
END_TEST

#define NR_PAIR_OWNERS 12
#define NR_PAIR_ITEMS 10

/* G10: "value + what is still in slots = the sum of all updates, always", also where 120 pairs
 * evict each other from the 7 slots of a CPU. */
START_TEST(G10_more_pairs_than_slots)
{
	int64_t expected[NR_PAIR_OWNERS][NR_PAIR_ITEMS] = { { 0 } }, sum, delta;
	struct pcpc_owner *owner[NR_PAIR_OWNERS];
	uint64_t random = unit_seed();
	uint32_t i, k, step, slots;

	if (!open_stats(_i, (struct stat_shape){ .items = NR_PAIR_ITEMS, .stocks = 1 }))
		return;
	for (i = 0; i < NR_PAIR_OWNERS; i++)
		owner[i] = child_of(i ? owner[(i - 1) / 2] : root);
	for (step = 0; step < 20000; step++) {
		i = (uint32_t)unit_below(&random, NR_PAIR_OWNERS);
		k = (uint32_t)unit_below(&random, NR_PAIR_ITEMS);
		delta = (int64_t)unit_below(&random, 101) - 50;
		add(owner[i], k, delta);
		expected[i][k] += delta;
		ck_assert_int_eq(local_of(owner[i], k) + in_slots(owner[i], k), expected[i][k]);
	}
	slots = 0;
	for (i = 0; i < NR_PAIR_OWNERS; i++) {
		for (k = 0; k < NR_PAIR_ITEMS; k++) {
			ck_assert_int_eq(local_of(owner[i], k) + in_slots(owner[i], k),
					 expected[i][k]);
			slots += stat_slots_of(owner[i], k).slots;
		}
	}
	ck_assert_uint_le(slots, 7);
	for (k = 0; k < NR_PAIR_ITEMS; k++) {
		sum = 0;
		for (i = 0; i < NR_PAIR_OWNERS; i++)
			sum += expected[i][k];
		ck_assert_int_eq(exactly(root, k), sum);
	}
}
END_TEST

struct update {
	struct pcpc_owner *owner;
	uint32_t item;
	int64_t delta;
};

static void job_add(void *context)
{
	struct update *update = context;

	add(update->owner, update->item, update->delta);
}

/* An exact read takes in the slots of every CPU. */
START_TEST(an_exact_read_sees_all_cpus)
{
	struct update update;
	struct worker worker;
	struct pcpc_owner *leaf;

	if (!open_stats(_i, (struct stat_shape){ .stocks = 1 }))
		return;
	worker_start(&worker, 1);
	leaf = child_of(root);
	update = (struct update){ leaf, 1, 40 };
	worker_run(&worker, job_add, &update);
	add(leaf, 1, 40);
	if (two_stocks()) {
		ck_assert_uint_eq(stat_slots_of(leaf, 1).slots, 2);
		ck_assert_int_eq(pcpc_stat_read_local(leaf, 1), 0);
	}
	ck_assert_int_eq(exactly(root, 1), 80);
	ck_assert_uint_eq(stat_slots_of(leaf, 1).slots, 0);
	update.delta = -30;
	worker_run(&worker, job_add, &update);
	ck_assert_int_eq(exactly(leaf, 1), 50);
	worker_stop(&worker);
}
END_TEST

/* stat.h: "drains the subtree's slots": other owners keep theirs. */
START_TEST(an_exact_read_leaves_other_owners_slots)
{
	struct pcpc_owner *mid, *leaf, *beside;

	if (!open_stats(_i, (struct stat_shape){ .stocks = 1 }))
		return;
	mid = child_of(root);
	leaf = child_of(mid);
	beside = child_of(root);
	add(root, 1, 3);
	add(mid, 1, 4);
	add(leaf, 1, 5);
	add(leaf, 2, 6);
	add(beside, 1, 7);
	ck_assert_int_eq(exactly(mid, 1), 9);
	ck_assert_int_eq(in_slots(leaf, 1), 0);
	ck_assert_int_eq(in_slots(leaf, 2), 0);
	ck_assert_int_eq(in_slots(root, 1), 3);
	ck_assert_int_eq(in_slots(beside, 1), 7);
	ck_assert_int_eq(exactly(root, 1), 19);
	ck_assert_int_eq(exactly(root, 2), 6);
}
END_TEST

/* stat.h, pcpc_stat_read_local(): "without what is below it, and without what is in slots". */
START_TEST(local_is_the_owners_own_as_far_as_applied)
{
	struct pcpc_owner *mid, *leaf;

	if (!open_stats(_i, (struct stat_shape){ .stocks = 1 }))
		return;
	mid = child_of(root);
	leaf = child_of(mid);
	add(leaf, 1, 1000);
	add(mid, 1, 100);
	add(mid, 1, 10);
	ck_assert_int_eq(pcpc_stat_read_local(mid, 1), 100);
	ck_assert_int_eq(pcpc_stat_read_local(leaf, 1), 1000);
	ck_assert_int_eq(pcpc_stat_read_local(root, 1), 0);
	ck_assert_int_eq(exactly(root, 1), 1110);
	ck_assert_int_eq(pcpc_stat_read_local(mid, 1), 110);
	ck_assert_int_eq(pcpc_stat_read_local(root, 1), 0);
}
END_TEST

/* "stat slots ... in stocks of their own": updates move no units, and the other way round. */
START_TEST(statistics_and_units_do_not_meet)
{
	struct pcpc_owner *owner[20];
	uint64_t usage[20], stocked[20];
	int64_t kept[20];
	int i, k;

	if (!open_stats(_i, (struct stat_shape){ .stocks = 1 }))
		return;
	for (i = 0; i < 20; i++)
		owner[i] = child_of(root);
	for (i = 0; i < 5; i++)
		charge(owner[i], 10 + (uint64_t)i);
	for (i = 0; i < 20; i++) {
		usage[i] = pcpc_owner_usage(owner[i]);
		stocked[i] = stock_of(owner[i]);
	}
	for (k = 0; k < 10; k++)
		for (i = 0; i < 20; i++)
			add(owner[i], (uint32_t)k % 3, 20 - k);
	for (i = 0; i < 20; i++) {
		ck_assert_uint_eq(pcpc_owner_usage(owner[i]), usage[i]);
		ck_assert_uint_eq(stock_of(owner[i]), stocked[i]);
		kept[i] = in_slots(owner[i], 0);
	}
	for (i = 0; i < 20; i++)
		charge(owner[i], 1);
	for (i = 0; i < 20; i++)
		ck_assert_int_eq(in_slots(owner[i], 0), kept[i]);
	for (i = 0; i < 20; i++) {
		ck_assert_int_eq(exactly(owner[i], 0), 20 + 17 + 14 + 11);
		uncharge(owner[i], i < 5 ? 11 + (uint64_t)i : 1);
	}
	ck_assert_int_eq(exactly(root, 0), 20 * (20 + 17 + 14 + 11));
	ck_assert_uint_eq(pcpc_owner_usage_exact(root), 0);
}
END_TEST

static void job_poll(void *context)
{
	(void)context;
	pcpc_domain_poll(domain);
}

/* None of these waits for a grace period, so all may be called inside a read-side section of the
 * caller, also beside a sweep that waits for its end. */
START_TEST(inside_a_read_side_section_all_of_it_works)
{
	struct pcpc_owner *leaf, *gone;
	struct worker worker;
	int round;

	if (!open_stats(_i, (struct stat_shape){ .stocks = 1 }))
		return;
	worker_start(&worker, -1);
	leaf = child_of(root);
	for (round = 1; round <= 20; round++) {
		gone = child_of(root);
		add(gone, 1, 7);
		ck_assert_int_eq(pcpc_owner_destroy(gone), 0);
		urcu_bp_read_lock();
		worker_post(&worker, job_poll, NULL);
		sched_yield();
		add(leaf, 1, 3);
		(void)exactly(root, 1);
		pcpc_stat_flush(root);
		pass(AGE + 1);
		(void)pcpc_stat_read(root, 1);
		ck_assert_int_eq(exactly(leaf, 1), 3 * round);
		ck_assert_int_eq(exactly(root, 1), 10 * round);
		urcu_bp_read_unlock();
		worker_wait(&worker);
		ck_assert_int_eq(exactly(root, 1), 10 * round);
	}
	worker_stop(&worker);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("stat");
	TCase *tests = unit_case(suite, "stat");

	tcase_add_checked_fixture(tests, NULL, close_domain);
	by_each_engine(tests, an_update_is_in_the_next_exact_read);
	by_each_engine(tests, deltas_of_any_size_arrive_whole);
	by_each_engine(tests, totals_wrap_at_64_bits);
	by_each_engine(tests, zero_leaves_no_trace);
	by_each_engine(tests, unknown_items_nodes_and_owners_are_nothing);
	by_each_engine(tests, a_domain_without_items_has_no_statistics);
	by_each_engine(tests, nodes_are_told_apart_and_summed);
	by_each_engine(tests, without_nodes_there_is_one);
	by_each_engine(tests, every_key_up_to_the_last_is_its_own);
	by_each_engine(tests, more_keys_than_fit_the_slot_are_refused);
	by_each_engine(tests, items_are_copied);
	by_each_engine(tests, a_delta_that_reaches_its_batch_is_applied_whole);
	by_each_engine(tests, a_delta_batch_of_1_keeps_nothing_in_slots);
	by_each_engine(tests, the_largest_delta_batch_fills_a_slot);
	by_each_engine(tests, the_default_delta_batch);
	by_each_engine(tests, G10_more_pairs_than_slots);
	by_each_engine(tests, an_exact_read_sees_all_cpus);
	by_each_engine(tests, an_exact_read_leaves_other_owners_slots);
	by_each_engine(tests, local_is_the_owners_own_as_far_as_applied);
	by_each_engine(tests, statistics_and_units_do_not_meet);
	by_each_engine(tests, inside_a_read_side_section_all_of_it_works);
	return unit_run(suite);
}
