// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_stock.c - whole operations on one stock: where they look, where they insert, whom they
 * evict, what bypasses; and a long random script against the plain model.
 *
 * Built twice: over the default primitives (compare-and-exchange, shared), and with UNIT_PLAIN over
 * primitives of the includer's own that answer true and false. What primitives can answer besides
 * is in test_stock_bounds.c, what interrupts them in test_stock_nested.c.
 */
#define _GNU_SOURCE
#include <pcpcharge/base.h>

#ifdef UNIT_PLAIN
/* What a program with one thread and no handlers would write. */
static inline bool plain_commit(struct pcpc_stock *stock, uint32_t slot, pcpc_word old_word,
				pcpc_word new_word)
{
	if (stock->slot[slot] != old_word)
		return false;
	stock->slot[slot] = new_word;
	return true;
}

#define PCPC_COMMIT(stock, slot, old_word, new_word) plain_commit(stock, slot, old_word, new_word)
#define PCPC_INSERT(stock, slot, old_word, new_word) plain_commit(stock, slot, old_word, new_word)
#endif

#include <pcpcharge/stock.h>

#include "plain_model.h"
#include "unit_support.h"

static const struct pcpc_marks marks = { .high = 64, .low = 32, .delta_batch = 64 };
static struct pcpc_stock stock;
static struct pcpc_deferred deferred;

static void setup(void)
{
	memset(&stock, 0, sizeof(stock));
	memset(&deferred, 0x5a, sizeof(deferred));
}

static void expect_slot(uint32_t slot, uint32_t owner, uint32_t count, int32_t delta)
{
	ck_assert_uint_eq(pcpc_word_owner(stock.slot[slot]), owner);
	ck_assert_uint_eq(pcpc_word_count(stock.slot[slot]), count);
	ck_assert_int_eq(pcpc_word_delta(stock.slot[slot]), delta);
}

static void expect_deferred(uint32_t owner, uint64_t count, int64_t delta)
{
	ck_assert_uint_eq(deferred.owner, owner);
	ck_assert_uint_eq(deferred.count, count);
	ck_assert_int_eq(deferred.delta, delta);
}

static void refill(uint32_t owner, uint64_t count, int64_t delta)
{
	pcpc_stock_refill(&stock, owner, count, delta, &marks, &deferred);
}

static bool consume(uint32_t owner, uint64_t count, int64_t delta)
{
	return pcpc_stock_consume(&stock, owner, count, delta, &marks, &deferred);
}

/* Owners 11..17 in slots 0..6, none of them at home but by chance, 10 units each. */
static void fill_with_strangers(void)
{
	uint32_t slot;

	for (slot = 0; slot < PCPC_STOCK_SLOTS; slot++)
		stock.slot[slot] = pcpc_word_make(11 + slot, 10, 0);
}

/* Section 5: "An insert prefers its home if free or empty". */
START_TEST(insert_prefers_the_home_slot)
{
	uint32_t owner;

	for (owner = 7; owner >= 1; owner--) {
		refill(owner, owner, 0);
		expect_deferred(0, 0, 0);
		expect_slot(owner - 1, owner, owner, 0);
	}
	setup();
	refill(PCPC_OWNER_MAX, 5, 1); /* (1048575 - 1) mod 7 = 2 */
	expect_slot(2, PCPC_OWNER_MAX, 5, 1);
}
END_TEST

/* Section 4: an empty slot "may be taken by any other without settling anything". */
START_TEST(insert_takes_an_empty_home)
{
	stock.slot[2] = pcpc_word_make(10, 0, 0);
	refill(3, 7, 0);
	expect_deferred(0, 0, 0);
	expect_slot(2, 3, 7, 0);
}
END_TEST

/* Section 5 and semantics.md 1.4.4: home taken, the lowest free or empty slot. */
START_TEST(insert_takes_the_lowest_vacant_slot_else)
{
	fill_with_strangers();
	stock.slot[5] = 0;
	stock.slot[3] = pcpc_word_make(14, 0, 0);
	refill(1, 7, 0);
	expect_deferred(0, 0, 0);
	expect_slot(3, 1, 7, 0);
	refill(8, 8, 0);
	expect_slot(5, 8, 8, 0);
	ck_assert_uint_eq(stock.hand, 0);
}
END_TEST

/* semantics.md 1.9.5: no units but a delta is not empty. */
START_TEST(a_slot_with_only_a_delta_is_not_vacant)
{
	fill_with_strangers();
	stock.slot[4] = pcpc_word_make(15, 0, -3);
	stock.hand = 4;
	refill(1, 7, 0);
	expect_deferred(15, 0, -3);
	expect_slot(4, 1, 7, 0);
}
END_TEST

/* semantics.md 1.4.5: ten owners into an empty stock evict #0, #1, #2, and the hand ends at 3. */
START_TEST(ten_owners_evict_the_first_three_round_robin)
{
	uint32_t owner;

	for (owner = 1; owner <= 10; owner++) {
		refill(owner, 10 + owner, -(int64_t)owner);
		if (owner <= 7)
			expect_deferred(0, 0, 0);
		else
			expect_deferred(owner - 7, 10 + owner - 7, -(int64_t)(owner - 7));
		ck_assert_uint_eq(stock.hand, owner <= 7 ? 0 : owner - 7);
	}
	expect_slot(0, 8, 18, -8);
	expect_slot(1, 9, 19, -9);
	expect_slot(2, 10, 20, -10);
	expect_slot(3, 4, 14, -4);
	expect_slot(6, 7, 17, -7);
}
END_TEST

/* Section 5: the hand goes round. */
START_TEST(the_hand_goes_round_after_the_last_slot)
{
	uint32_t owner;

	fill_with_strangers();
	for (owner = 101; owner <= 115; owner++) {
		refill(owner, 1, 0);
		ck_assert_uint_eq(stock.hand, (owner - 100) % 7);
		expect_slot((owner - 101) % 7, owner, 1, 0);
	}
}
END_TEST

/* semantics.md 1.4.5: "drain_idx moves only on eviction, never on hits, hole inserts". */
START_TEST(the_hand_moves_on_evictions_only)
{
	fill_with_strangers();
	stock.hand = 2;
	refill(12, 60, 0); /* trims */
	refill(12, 1, 0);
	ck_assert(consume(12, 1, 0));
	ck_assert(!consume(12, 64, 0));
	ck_assert(!consume(99, 1, 0));
	refill(99, 65, 0); /* bypasses */
	refill(99, 1, 64); /* bypasses: a full delta in an insert */
	stock.slot[6] = 0;
	refill(99, 1, 0); /* inserts */
	ck_assert_uint_eq(stock.hand, 2);
	refill(98, 1, 0); /* evicts 13 */
	expect_deferred(13, 10, 0);
	ck_assert_uint_eq(stock.hand, 3);
}
END_TEST

/* Bug H2: an existing slot wins over a hole before it, home included. */
START_TEST(the_own_slot_wins_over_a_hole)
{
	uint32_t slot;

	stock.slot[5] = pcpc_word_make(1, 20, 0);
	refill(1, 3, 0);
	expect_slot(5, 1, 23, 0);
	for (slot = 0; slot < PCPC_STOCK_SLOTS; slot++)
		ck_assert_uint_eq(pcpc_word_owner(stock.slot[slot]), slot == 5 ? 1 : 0);
	ck_assert(consume(1, 23, 0));
	expect_slot(5, 1, 0, 0);
	refill(1, 4, 0); /* its own empty slot before its empty home */
	expect_slot(5, 1, 4, 0);
	ck_assert_uint_eq(stock.slot[0], 0);
}
END_TEST

/* Section 5: "An operation looks at the home slot first, and only when another owner sits there at
 * the other six": all of them. */
START_TEST(an_owner_is_found_in_every_slot)
{
	uint32_t owner, slot;

	for (owner = 1; owner <= 7; owner++) {
		for (slot = 0; slot < PCPC_STOCK_SLOTS; slot++) {
			fill_with_strangers();
			stock.slot[slot] = pcpc_word_make(owner, 20, 0);
			ck_assert(consume(owner, 5, 1));
			expect_slot(slot, owner, 15, 1);
			refill(owner, 6, -1);
			expect_slot(slot, owner, 21, 0);
			expect_deferred(0, 0, 0);
			ck_assert_uint_eq(stock.hand, 0);
		}
	}
}
END_TEST

/* semantics.md 1.3.8: other owners' slots are neither read for it nor written. */
START_TEST(own_slot_operations_leave_the_others_alone)
{
	struct pcpc_stock before;
	uint32_t slot;

	fill_with_strangers();
	before = stock;
	ck_assert(consume(13, 3, 60));
	refill(13, 64, 4);
	expect_deferred(13, 39, 64);
	for (slot = 0; slot < PCPC_STOCK_SLOTS; slot++)
		if (slot != 2)
			ck_assert_uint_eq(stock.slot[slot], before.slot[slot]);
	expect_slot(2, 13, 32, 0);
}
END_TEST

/* Section 4: bypass. "All of it is deferred, nothing is evicted, an existing slot stays as it was."
 * (semantics.md 1.4.1, bug H5) */
START_TEST(what_bypasses_leaves_the_stock_as_it_was)
{
	static const struct {
		uint32_t owner;
		uint64_t count;
		int64_t delta;
	} passing[] = {
		{ 13, 65, 0 },
		{ 13, 65, 3 },
		{ 13, UINT64_C(1) << 32, 0 },
		{ 13, (UINT64_C(1) << 32) + 1, 0 },
		{ 13, UINT64_MAX, 0 },
		{ 13, 1, PCPC_DELTA_MAX + 1 },
		{ 13, 1, PCPC_DELTA_MIN - 1 },
		{ 13, 1, INT64_MAX },
		{ 13, 1, INT64_MIN },
		{ 99, 65, 0 },
		{ 99, 1, 64 },
		{ 99, 1, -64 },
		{ 99, 0, 64 },
		{ 99, UINT64_MAX, INT64_MIN },
	};
	struct pcpc_stock before;
	size_t i;

	fill_with_strangers();
	stock.hand = 3;
	before = stock;
	for (i = 0; i < sizeof(passing) / sizeof(passing[0]); i++) {
		refill(passing[i].owner, passing[i].count, passing[i].delta);
		expect_deferred(passing[i].owner, passing[i].count, passing[i].delta);
		ck_assert_mem_eq(&stock, &before, sizeof(stock));
	}
	/* also where there is room */
	setup();
	before = stock;
	refill(99, 1, 64);
	expect_deferred(99, 1, 64);
	ck_assert_mem_eq(&stock, &before, sizeof(stock));
}
END_TEST

/* Section 4: "n = 0 with d = 0 is a no-op" (semantics.md 1.4.8). */
START_TEST(nothing_at_all_does_nothing)
{
	struct pcpc_stock before;

	fill_with_strangers();
	stock.slot[0] = pcpc_word_make(11, 100, 70); /* above high and above delta_batch */
	before = stock;
	ck_assert(consume(11, 0, 0));
	expect_deferred(0, 0, 0);
	refill(11, 0, 0);
	expect_deferred(0, 0, 0);
	ck_assert(consume(99, 0, 0));
	expect_deferred(0, 0, 0);
	refill(99, 0, 0);
	expect_deferred(0, 0, 0);
	ck_assert_mem_eq(&stock, &before, sizeof(stock));
}
END_TEST

/* Section 4: "A consume that misses changes nothing" (semantics.md 1.3.10): the whole line. */
START_TEST(a_consume_that_misses_changes_nothing)
{
	struct pcpc_stock before;

	fill_with_strangers();
	stock.slot[6] = pcpc_word_make(17, 0, 5);
	stock.hand = 5;
	before = stock;
	ck_assert(!consume(13, 11, 0));
	expect_deferred(0, 0, 0);
	ck_assert(!consume(13, 11, 64));
	expect_deferred(0, 0, 0);
	ck_assert(!consume(99, 1, 0));
	ck_assert(!consume(99, 0, 1));
	ck_assert(!consume(17, 1, 1));
	ck_assert(!consume(13, 1, PCPC_DELTA_MAX + 1));
	ck_assert(!consume(13, 1, INT64_MIN));
	ck_assert(!consume(13, (UINT64_C(1) << 32) + 1, 0)); /* not served as 1 */
	ck_assert(!consume(13, UINT64_C(1) << 32, 0));	     /* nor as nothing */
	ck_assert(!consume(13, UINT64_MAX, 0));
	expect_deferred(0, 0, 0);
	ck_assert_mem_eq(&stock, &before, sizeof(stock));
}
END_TEST

/* The contracts in stock.h: bad arguments lose nothing and change nothing. */
START_TEST(bad_arguments_defer_everything)
{
	static const struct pcpc_marks bad[] = {
		{ 0, 0, 64 },		{ PCPC_COUNT_MAX + 1, 32, 64 },
		{ UINT32_MAX, 32, 64 }, { 64, 65, 64 },
		{ 64, UINT32_MAX, 64 }, { 64, 32, PCPC_DELTA_MAX + 1 },
		{ 64, 32, UINT32_MAX },
	};
	static const uint32_t nobody[] = { 0, PCPC_OWNER_MAX + 1, PCPC_OWNER_MAX + 12, UINT32_MAX };
	struct pcpc_stock before;
	size_t i;

	fill_with_strangers();
	before = stock;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		pcpc_stock_refill(&stock, 11, 5, -2, &bad[i], &deferred);
		expect_deferred(11, 5, -2);
	}
	for (i = 0; i < sizeof(nobody) / sizeof(nobody[0]); i++) {
		refill(nobody[i], 5, -2);
		expect_deferred(nobody[i], 5, -2);
		ck_assert(!consume(nobody[i], 5, -2));
		expect_deferred(0, 0, 0);
		ck_assert(!consume(nobody[i], 0, 0));
	}
	pcpc_stock_refill(NULL, 11, 5, -2, &marks, &deferred);
	expect_deferred(11, 5, -2);
	pcpc_stock_refill(&stock, 11, 5, -2, NULL, &deferred);
	expect_deferred(11, 5, -2);
	pcpc_stock_refill(&stock, 11, 5, -2, &marks, NULL);
	ck_assert(!pcpc_stock_consume(NULL, 11, 5, -2, &marks, &deferred));
	expect_deferred(0, 0, 0);
	ck_assert(!pcpc_stock_consume(&stock, 11, 5, -2, NULL, &deferred));
	expect_deferred(0, 0, 0);
	ck_assert(!pcpc_stock_consume(&stock, 11, 5, -2, &marks, NULL));
	ck_assert(!pcpc_stock_consume(&stock, 11, 5, -2, &bad[5], &deferred));
	expect_deferred(0, 0, 0);
	ck_assert_mem_eq(&stock, &before, sizeof(stock));
}
END_TEST

/* semantics.md 1.5.2 (V4+defer): while a deferred amount waits to be settled, the stock serves: a
 * consume from the place where the caller settles can hit. */
START_TEST(a_consume_before_settling_can_hit)
{
	refill(1, 40, 0);
	refill(1, 25, 0);
	expect_deferred(1, 33, 0);
	ck_assert(consume(1, 32, 0));
	expect_slot(0, 1, 0, 0);
}
END_TEST

/* semantics.md 1.5.6: with stock present, one unit from a nested context costs no counter: nothing
 * is deferred by either step. */
START_TEST(a_pair_on_a_stocked_owner_defers_nothing)
{
	refill(1, 32, 0);
	ck_assert(consume(1, 1, 0));
	expect_deferred(0, 0, 0);
	refill(1, 1, 0);
	expect_deferred(0, 0, 0);
}
END_TEST

#ifndef UNIT_PLAIN

/* G5, atomic engine: duplicates that racing inserts left are merged by the next refill that sees
 * them, wherever they are, and nothing is lost. */
START_TEST(a_refill_merges_duplicates)
{
	uint32_t first, second, slot, found = 0;

	for (first = 0; first < PCPC_STOCK_SLOTS; first++) {
		for (second = 0; second < PCPC_STOCK_SLOTS; second++) {
			if (first == second)
				continue;
			setup();
			stock.slot[first] = pcpc_word_make(3, 20, 5);
			stock.slot[second] = pcpc_word_make(3, 11, -1);
			refill(3, 2, 1);
			expect_deferred(0, 0, 0);
			for (slot = 0, found = 0; slot < PCPC_STOCK_SLOTS; slot++) {
				if (pcpc_word_owner(stock.slot[slot]) != 3)
					continue;
				found++;
				expect_slot(slot, 3, 33, 5);
			}
			ck_assert_uint_eq(found, 1);
		}
	}
}
END_TEST

/* G5, G1: seven duplicates, more than high together: one slot is left, the rest is deferred. */
START_TEST(a_refill_merges_seven_duplicates_above_high)
{
	uint32_t slot, found = 0;
	uint64_t stocked = 0;
	int64_t delta = 0;

	for (slot = 0; slot < PCPC_STOCK_SLOTS; slot++)
		stock.slot[slot] = pcpc_word_make(3, 60, 60);
	refill(3, 1, 1);
	for (slot = 0; slot < PCPC_STOCK_SLOTS; slot++) {
		if (!pcpc_word_owner(stock.slot[slot]))
			continue;
		found++;
		stocked += pcpc_word_count(stock.slot[slot]);
		delta += pcpc_word_delta(stock.slot[slot]);
	}
	ck_assert_uint_eq(found, 1);
	ck_assert_uint_eq(deferred.owner, 3);
	ck_assert_uint_eq(stocked + deferred.count, 7 * 60 + 1);
	ck_assert_int_eq(delta + deferred.delta, 7 * 60 + 1);
}
END_TEST

/* G5: either of two may serve a consume; one that neither can serve changes nothing. */
START_TEST(a_consume_uses_either_duplicate)
{
	struct pcpc_stock before;

	stock.slot[1] = pcpc_word_make(3, 5, 0);
	stock.slot[2] = pcpc_word_make(3, 4, 0);
	before = stock;
	ck_assert(!consume(3, 6, 0));
	ck_assert_mem_eq(&stock, &before, sizeof(stock));
	ck_assert(consume(3, 5, 0));
	ck_assert(consume(3, 4, 0));
	ck_assert(!consume(3, 1, 0));
}
END_TEST

#endif

/* Every owner in one slot at most (G5), and what the model says in each. */
static void check_stock(const struct plain_stock *plain)
{
	uint32_t slot, other;

	for (slot = 0; slot < PCPC_STOCK_SLOTS; slot++) {
		if (stock.slot[slot] != plain_word_of(plain->slot[slot]))
			ck_abort_msg("slot %u holds %#" PRIx64 ", the model %#" PRIx64, slot,
				     stock.slot[slot], plain_word_of(plain->slot[slot]));
		for (other = 0; other < slot; other++)
			if (stock.slot[slot] &&
			    pcpc_word_owner(stock.slot[slot]) == pcpc_word_owner(stock.slot[other]))
				ck_abort_msg("owner %u in slots %u and %u",
					     pcpc_word_owner(stock.slot[slot]), other, slot);
	}
	if (stock.gate != 0 || (int)stock.hand != plain->hand)
		ck_abort_msg("gate %u, hand %u, the model's hand %d", stock.gate, stock.hand,
			     plain->hand);
}

/* What a model holds for all its owners. */
static void sum_of(const struct plain_stock *plain, plain_wide *ret_count, plain_wide *ret_delta)
{
	int i;

	for (*ret_count = *ret_delta = 0, i = 0; i < PLAIN_SLOTS; i++) {
		*ret_count += plain->slot[i].count;
		*ret_delta += plain->slot[i].delta;
	}
}

static const uint32_t batches[] = { 0, 1, 2, 8, 64, 1 << 20, (1 << 20) + 1, PCPC_DELTA_MAX };

static struct plain_request any_request(uint64_t *random, uint32_t owners, uint32_t high)
{
	struct plain_request request = plain_request_of(
		1 + (uint32_t)unit_below(random, owners), unit_below(random, high + 2), 0, high,
		(uint32_t)unit_below(random, high + 1), batches[unit_below(random, 8)]);
	unsigned int kind = (unsigned int)unit_below(random, 32);

	if (kind < 16)
		request.delta = (plain_wide)unit_below(random, 17) - 8;
	if (kind == 16)
		request.delta = (plain_wide)unit_below(random, 1 << 22) - (1 << 21);
	if (kind == 17)
		request.delta = (int64_t)unit_random(random);
	if (kind == 18)
		request.count = unit_random(random);
	if (kind == 19)
		request.count += (plain_wide)1 << 32;
	if (kind == 20)
		request.count = 0;
	if (kind == 21)
		request.owner = unit_below(random, 2) ? 0 : PCPC_OWNER_MAX + 1;
	if (kind == 22)
		request.high = unit_below(random, 2) ? 0 : PCPC_COUNT_MAX + 1;
	if (kind == 23)
		request.low = request.high + 1;
	if (kind == 24)
		request.delta_batch = PCPC_DELTA_MAX + 1;
	return request;
}

static void run_script(uint64_t *random, unsigned int steps)
{
	static const uint32_t crowds[] = { 3, 7, 9, 20 };
	static const uint32_t highs[] = { 1, 4, 64, PCPC_COUNT_MAX };
	uint32_t owners = crowds[unit_below(random, 4)], high = highs[unit_below(random, 4)];
	plain_wide before, before_delta, after, after_delta;
	struct plain_stock plain = { 0 };
	struct plain_request request;
	struct plain_slot expected;
	struct pcpc_marks asked;
	bool consumes, hit = false, model_hit;

	setup();
	while (steps--) {
		if (!unit_below(random, 64)) /* high lowered or raised between operations */
			high = highs[unit_below(random, 4)];
		request = any_request(random, owners, high);
		asked = (struct pcpc_marks){ (uint32_t)request.high, (uint32_t)request.low,
					     (uint32_t)request.delta_batch };
		consumes = unit_below(random, 2);
		sum_of(&plain, &before, &before_delta);
		if (consumes) {
			hit = pcpc_stock_consume(&stock, (uint32_t)request.owner,
						 (uint64_t)request.count, (int64_t)request.delta,
						 &asked, &deferred);
			model_hit = plain_stock_consume(&plain, &request, &expected);
			if (hit != model_hit)
				ck_abort_msg("hit %d, the model %d", hit, model_hit);
		} else {
			pcpc_stock_refill(&stock, (uint32_t)request.owner, (uint64_t)request.count,
					  (int64_t)request.delta, &asked, &deferred);
			plain_stock_refill(&plain, &request, &expected);
		}
		if (deferred.owner != expected.owner || deferred.count != expected.count ||
		    deferred.delta != expected.delta)
			ck_abort_msg("deferred %u:%" PRIu64 ":%" PRId64 ", the model %u:%" PRIu64,
				     deferred.owner, deferred.count, deferred.delta,
				     (uint32_t)expected.owner, (uint64_t)expected.count);
		check_stock(&plain);
		/* conservation, of the model too: nothing appears and nothing is lost */
		sum_of(&plain, &after, &after_delta);
		if (consumes && !hit)
			request.count = request.delta = 0;
		if (consumes)
			request.count = -request.count;
		if (before + request.count != after + deferred.count ||
		    before_delta + request.delta != after_delta + deferred.delta)
			ck_abort_msg("units or deltas are lost");
	}
}

/* G1, G5, G13: any script does what the model does, step by step. */
START_TEST(a_random_script_agrees_with_the_model)
{
	uint64_t random = unit_seed(), scripts = unit_knob("PCPC_SEEDS", 2000);

	while (scripts--)
		run_script(&random, 200);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("stock");
	TCase *where = unit_case(suite, "where"), *what = unit_case(suite, "what"),
	      *model = unit_case(suite, "model");

	tcase_add_checked_fixture(where, setup, NULL);
	tcase_add_test(where, insert_prefers_the_home_slot);
	tcase_add_test(where, insert_takes_an_empty_home);
	tcase_add_test(where, insert_takes_the_lowest_vacant_slot_else);
	tcase_add_test(where, a_slot_with_only_a_delta_is_not_vacant);
	tcase_add_test(where, ten_owners_evict_the_first_three_round_robin);
	tcase_add_test(where, the_hand_goes_round_after_the_last_slot);
	tcase_add_test(where, the_hand_moves_on_evictions_only);
	tcase_add_test(where, the_own_slot_wins_over_a_hole);
	tcase_add_test(where, an_owner_is_found_in_every_slot);
	tcase_add_checked_fixture(what, setup, NULL);
	tcase_add_test(what, own_slot_operations_leave_the_others_alone);
	tcase_add_test(what, what_bypasses_leaves_the_stock_as_it_was);
	tcase_add_test(what, nothing_at_all_does_nothing);
	tcase_add_test(what, a_consume_that_misses_changes_nothing);
	tcase_add_test(what, bad_arguments_defer_everything);
	tcase_add_test(what, a_consume_before_settling_can_hit);
	tcase_add_test(what, a_pair_on_a_stocked_owner_defers_nothing);
#ifndef UNIT_PLAIN
	tcase_add_test(what, a_refill_merges_duplicates);
	tcase_add_test(what, a_refill_merges_seven_duplicates_above_high);
	tcase_add_test(what, a_consume_uses_either_duplicate);
#endif
	tcase_add_test(model, a_random_script_agrees_with_the_model);
	return unit_run(suite);
}
