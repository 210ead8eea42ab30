// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_charge_kernel.c - domains with PCPC_DOMAIN_KERNEL: how much is taken, stocked and given up,
 * in the numbers of memcg's page stock (semantics.md 1 and 3).
 */
#define _GNU_SOURCE
#include "owner_support.h"

#define BATCH PCPC_BATCH_PAGES

static struct pcpc_owner *mid, *leaf;

/* A root, mid below it and leaf below that, on the first CPU. */
static bool open_tree(int engine, uint32_t stocks, uint64_t mid_max, uint64_t leaf_max)
{
	struct pcpc_domain_config config = domain_config((enum pcpc_engine)engine, BATCH);

	config.flags = PCPC_DOMAIN_KERNEL;
	config.stocks_per_cpu = stocks;
	if (!create_domain(&config))
		return false;
	ck_assert(unit_pin(0));
	mid = make_owner(root, mid_max, 0);
	leaf = make_owner(mid, leaf_max, 0);
	return true;
}

/* All three counters are this. */
static void usage_is(uint64_t usage)
{
	ck_assert_uint_eq(pcpc_owner_usage(leaf), usage);
	ck_assert_uint_eq(pcpc_owner_usage(mid), usage);
	ck_assert_uint_eq(pcpc_owner_usage(root), usage);
}

/* semantics.md 3, a: the first charge takes a batch at every level, and 63 more change no counter.
 * Without the flag an owner that is seen for the first time takes an eighth of one. */
START_TEST(a_miss_takes_a_full_batch_up_to_the_root)
{
	unsigned int i;

	if (!open_tree(_i, 0, 0, 0))
		return;
	charge(leaf, 1);
	usage_is(64);
	ck_assert_uint_eq(stock_of(leaf), 63);
	for (i = 0; i < 63; i++)
		charge(leaf, 1);
	usage_is(64);
	ck_assert_uint_eq(stock_of(leaf), 0);
	charge(leaf, 1);
	usage_is(128);
	ck_assert_uint_eq(stock_of(leaf), 63);
	ck_assert_uint_eq(stock_of(mid) + stock_of(root), 0);
	pcpc_uncharge(leaf, 65);
}
END_TEST

/* semantics.md 3, b; 1.3, 1 and 1.4, 1: an amount above the batch passes the stock by. */
START_TEST(an_amount_above_the_batch_is_taken_and_given_as_it_is)
{
	if (!open_tree(_i, 0, 0, 0))
		return;
	charge(leaf, 100);
	usage_is(100);
	ck_assert_uint_eq(stock_of(leaf), 0);
	charge(leaf, 1);
	usage_is(164);
	uncharge(leaf, 100);
	usage_is(64);
	ck_assert_uint_eq(stock_of(leaf), 63);
	uncharge(leaf, 1);
}
END_TEST

/* semantics.md 3, c: a batch does not fit, the amount does. At the owner, and at an ancestor. */
START_TEST(where_a_batch_does_not_fit_the_amount_is_tried)
{
	uint64_t at_leaf;

	for (at_leaf = 0; at_leaf < 2; at_leaf++) {
		if (!open_tree(_i, 0, at_leaf ? 0 : 10, at_leaf ? 10 : 0))
			return;
		charge(leaf, 1);
		usage_is(1);
		ck_assert_uint_eq(stock_of(leaf), 0);
		ck_assert_uint_eq(events_of(root, PCPC_EVENT_MAX), 0);
		ck_assert_uint_eq(pcpc_owner_peak(root), 1);
		uncharge(leaf, 1);
		close_domain();
	}
}
END_TEST

/* semantics.md 1.4, 3: (have, add -> kept, given up), the latter by every counter. */
START_TEST(an_overfull_slot_is_trimmed_to_half_a_batch)
{
	static const struct {
		uint32_t have, add, kept;
	} rows[] = { { 40, 24, 64 }, { 40, 25, 32 }, { 64, 1, 32 }, { 64, 64, 32 }, { 1, 64, 32 } };
	unsigned int i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (!open_tree(_i, 0, 0, 0))
			return;
		/* what is held, beyond what is put back first */
		charge(leaf, 1000);
		uncharge(leaf, rows[i].have);
		usage_is(1000);
		uncharge(leaf, rows[i].add);
		ck_assert_uint_eq(stock_of(leaf), rows[i].kept);
		usage_is(1000 - (rows[i].have + rows[i].add - rows[i].kept));
		uncharge(leaf, 1000 - rows[i].have - rows[i].add);
		close_domain();
	}
}
END_TEST

/* design.md 11: "no interior stocks": what an ancestor stocks for its own charges serves no one
 * below, its batch stays what it is, and what a child gives up is not stocked there. */
START_TEST(stocks_of_ancestors_serve_their_own_charges_only)
{
	if (!open_tree(_i, 0, 0, 0))
		return;
	charge(mid, 1);
	ck_assert_uint_eq(stock_of(mid), 63);
	charge(leaf, 1);
	ck_assert_uint_eq(pcpc_owner_usage(leaf), 64);
	ck_assert_uint_eq(pcpc_owner_usage(mid), 128);
	ck_assert_uint_eq(pcpc_owner_usage(root), 128);
	ck_assert_uint_eq(stock_of(mid), 63);
	uncharge(leaf, 1);
	charge(leaf, 100);
	uncharge(leaf, 100);
	ck_assert_uint_eq(pcpc_owner_usage(leaf), 64);
	ck_assert_uint_eq(pcpc_owner_usage(mid), 128);
	ck_assert_uint_eq(stock_of(mid), 63);
	ck_assert_uint_eq(stock_of(root), 0);
	uncharge(mid, 1);
}
END_TEST

/* semantics.md 1.4, 5 and 1.6, 1: a victim's units leave its counters up to the root. */
START_TEST(what_an_eviction_takes_leaves_every_counter)
{
	struct pcpc_owner *other[PCPC_STOCK_SLOTS];
	unsigned int i, gone = 0;

	if (!open_tree(_i, 1, 0, 0))
		return;
	for (i = 0; i < PCPC_STOCK_SLOTS; i++) {
		other[i] = child_of(mid);
		charge(other[i], 4);
	}
	ck_assert_uint_eq(pcpc_owner_usage(root), 7 * 64);
	charge(leaf, 4);
	for (i = 0; i < PCPC_STOCK_SLOTS; i++) {
		gone += pcpc_owner_usage(other[i]) == 4;
		ck_assert_uint_eq(pcpc_owner_usage(other[i]), 4 + stock_of(other[i]));
	}
	ck_assert_uint_eq(gone, 1);
	ck_assert_uint_eq(pcpc_owner_usage(leaf), 64);
	ck_assert_uint_eq(pcpc_owner_usage(mid), 7 * 64 + 4);
	ck_assert_uint_eq(pcpc_owner_usage(root), 7 * 64 + 4);
	uncharge(leaf, 4);
	for (i = 0; i < PCPC_STOCK_SLOTS; i++)
		uncharge(other[i], 4);
}
END_TEST

/* design.md 11: "no cap before a refusal"; G2, G3 and G12 hold as ever after one. */
START_TEST(a_limit_takes_nothing_from_the_batch_until_it_had_to_refuse)
{
	if (!open_tree(_i, 0, 0, 200))
		return;
	charge(leaf, 1);
	usage_is(64);
	charge(leaf, 199);
	usage_is(200);
	ck_assert_uint_eq(stock_of(leaf), 0);
	ck_assert_int_eq(pcpc_charge(leaf, 1), -EDQUOT);
	ck_assert_int_eq(pcpc_charge(leaf, 1), -EDQUOT);
	uncharge(leaf, 1);
	ck_assert_uint_eq(stock_of(leaf), 0);
	usage_is(199);
	uncharge(leaf, 199);
}
END_TEST

/* G13: what a delta moves, too. */
START_TEST(deltas_go_with_the_word_of_the_owner)
{
	struct pcpc_domain_config config = domain_config((enum pcpc_engine)_i, BATCH);

	config.flags = PCPC_DOMAIN_KERNEL;
	config.items = &(struct pcpc_item){ "moved", "units" };
	config.nr_items = 1;
	if (!create_domain(&config))
		return;
	ck_assert(unit_pin(0));
	leaf = child_of(root);
	ck_assert_int_eq(pcpc_charge_stat(leaf, 5, 5), 0);
	ck_assert_uint_eq(pcpc_owner_usage(leaf), 64);
	ck_assert_int_eq(slots_of(leaf).delta, 5);
	pcpc_uncharge_stat(leaf, 5, -5);
	ck_assert_int_eq(coupled_of(leaf), 0);
	ck_assert_uint_eq(pcpc_owner_usage(leaf), 64);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("charge kernel");
	TCase *tests = unit_case(suite, "charge");

	tcase_add_checked_fixture(tests, NULL, close_domain);
	by_each_engine(tests, a_miss_takes_a_full_batch_up_to_the_root);
	by_each_engine(tests, an_amount_above_the_batch_is_taken_and_given_as_it_is);
	by_each_engine(tests, where_a_batch_does_not_fit_the_amount_is_tried);
	by_each_engine(tests, an_overfull_slot_is_trimmed_to_half_a_batch);
	by_each_engine(tests, stocks_of_ancestors_serve_their_own_charges_only);
	by_each_engine(tests, what_an_eviction_takes_leaves_every_counter);
	by_each_engine(tests, a_limit_takes_nothing_from_the_batch_until_it_had_to_refuse);
	by_each_engine(tests, deltas_go_with_the_word_of_the_owner);
	return unit_run(suite);
}
