// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_stock_bounds.c - whole operations over primitives that the includer supplies and that
 * refuse: CLOSED, ABORTED, CHANGED, so and so many times. Retries are bounded, then the operation
 * bypasses the stock, and nothing is lost.
 */
#define _GNU_SOURCE
#include <pcpcharge/base.h>

static enum pcpc_outcome fake_commit(struct pcpc_stock *stock, uint32_t slot, pcpc_word old_word,
				     pcpc_word new_word);
static enum pcpc_outcome fake_insert(struct pcpc_stock *stock, uint32_t slot, pcpc_word old_word,
				     pcpc_word new_word);

#define PCPC_COMMIT(stock, slot, old_word, new_word) fake_commit(stock, slot, old_word, new_word)
#define PCPC_INSERT(stock, slot, old_word, new_word) fake_insert(stock, slot, old_word, new_word)

#include <pcpcharge/stock.h>

#include "unit_support.h"

static const struct pcpc_marks marks = { .high = 64, .low = 32, .delta_batch = 64 };
static struct pcpc_stock stock;
static struct pcpc_deferred deferred;

/* The next so many calls of either primitive answer this, and change nothing. */
static enum pcpc_outcome refusal;
static unsigned int refusals;

/* Called by a primitive that refuses: what else happens to the stock meanwhile. */
static void (*meanwhile)(void);

static unsigned int commits, inserts;

static enum pcpc_outcome answer(struct pcpc_stock *at, uint32_t slot, pcpc_word old_word,
				pcpc_word new_word)
{
	if (at != &stock || slot >= PCPC_STOCK_SLOTS)
		ck_abort_msg("slot %u of %p", slot, (void *)at);
	if (refusals) {
		refusals--;
		if (meanwhile)
			meanwhile();
		return refusal;
	}
	if (stock.slot[slot] != old_word)
		return PCPC_CHANGED;
	stock.slot[slot] = new_word;
	return PCPC_DONE;
}

static enum pcpc_outcome fake_commit(struct pcpc_stock *at, uint32_t slot, pcpc_word old_word,
				     pcpc_word new_word)
{
	commits++;
	/* a commit changes a word of the same owner, or frees one */
	if (new_word && pcpc_word_owner(old_word) != pcpc_word_owner(new_word))
		ck_abort_msg("a commit from %#" PRIx64 " to %#" PRIx64, old_word, new_word);
	return answer(at, slot, old_word, new_word);
}

static enum pcpc_outcome fake_insert(struct pcpc_stock *at, uint32_t slot, pcpc_word old_word,
				     pcpc_word new_word)
{
	uint32_t other;

	inserts++;
	if (!pcpc_word_owner(new_word))
		ck_abort_msg("an insert of nobody");
	for (other = 0; other < PCPC_STOCK_SLOTS; other++)
		if (pcpc_word_owner(stock.slot[other]) == pcpc_word_owner(new_word))
			return PCPC_CHANGED;
	return answer(at, slot, old_word, new_word);
}

static void refuse(enum pcpc_outcome outcome, unsigned int times)
{
	refusal = outcome;
	refusals = times;
	commits = inserts = 0;
}

static void setup(void)
{
	memset(&stock, 0, sizeof(stock));
	memset(&deferred, 0x5a, sizeof(deferred));
	meanwhile = NULL;
	refuse(PCPC_DONE, 0);
}

static void fill(void)
{
	uint32_t slot;

	for (slot = 0; slot < PCPC_STOCK_SLOTS; slot++)
		stock.slot[slot] = pcpc_word_make(1 + slot, 10, 3);
	stock.hand = 2;
}

static void expect_deferred(uint32_t owner, uint64_t count, int64_t delta)
{
	ck_assert_uint_eq(deferred.owner, owner);
	ck_assert_uint_eq(deferred.count, count);
	ck_assert_int_eq(deferred.delta, delta);
}

static bool consume(uint32_t owner, uint64_t count, int64_t delta)
{
	return pcpc_stock_consume(&stock, owner, count, delta, &marks, &deferred);
}

static void refill(uint32_t owner, uint64_t count, int64_t delta)
{
	pcpc_stock_refill(&stock, owner, count, delta, &marks, &deferred);
}

static const enum pcpc_outcome retried[] = { PCPC_CHANGED, PCPC_ABORTED };

/* Section 6: "Retries are bounded (8)": seven refusals are borne. */
START_TEST(seven_refusals_are_borne)
{
	ck_assert_int_eq(PCPC_TRIES, 8);
	fill();
	refuse(retried[_i], 7);
	ck_assert(consume(3, 4, 1));
	expect_deferred(0, 0, 0);
	ck_assert_uint_eq(commits, 8);
	ck_assert_uint_eq(stock.slot[2], pcpc_word_make(3, 6, 4));

	refuse(retried[_i], 7);
	refill(3, 4, -1);
	expect_deferred(0, 0, 0);
	ck_assert_uint_eq(commits, 8);
	ck_assert_uint_eq(stock.slot[2], pcpc_word_make(3, 10, 3));

	refuse(retried[_i], 7);
	refill(99, 4, -1);
	expect_deferred(3, 10, 3);
	ck_assert_uint_eq(inserts, 8);
	ck_assert_uint_eq(commits, 0);
	ck_assert_uint_eq(stock.slot[2], pcpc_word_make(99, 4, -1));
	ck_assert_uint_eq(stock.hand, 3);
}
END_TEST

/* Section 6: "past the bound the operation bypasses the stock": eight refusals, and all is
 * deferred. G1: nothing is lost. */
START_TEST(eight_refusals_bypass)
{
	struct pcpc_stock before;

	fill();
	before = stock;
	refuse(retried[_i], UINT32_MAX);
	ck_assert(!consume(3, 4, 1));
	expect_deferred(0, 0, 0);
	ck_assert_uint_eq(commits, 8);

	refuse(retried[_i], UINT32_MAX);
	refill(3, 4, -1);
	expect_deferred(3, 4, -1);
	ck_assert_uint_eq(commits, 8);

	refuse(retried[_i], UINT32_MAX);
	refill(3, 60, 0); /* would trim */
	expect_deferred(3, 60, 0);

	refuse(retried[_i], UINT32_MAX);
	refill(99, 4, -1); /* would evict: the victim stays, the hand does not move */
	expect_deferred(99, 4, -1);
	ck_assert_uint_eq(inserts, 8);
	ck_assert_mem_eq(&stock, &before, sizeof(stock));

	stock.slot[4] = 0;
	before = stock;
	refuse(retried[_i], UINT32_MAX);
	refill(5, 4, -1); /* would insert */
	expect_deferred(5, 4, -1);
	ck_assert_uint_eq(inserts, 8);
	ck_assert_mem_eq(&stock, &before, sizeof(stock));
}
END_TEST

/* arch/sequences.h: "CLOSED (bypass the stock)", at once. */
START_TEST(a_closed_gate_bypasses_at_once)
{
	struct pcpc_stock before;

	fill();
	before = stock;
	refuse(PCPC_CLOSED, UINT32_MAX);
	ck_assert(!consume(3, 4, 1));
	expect_deferred(0, 0, 0);
	ck_assert_uint_eq(commits, 1);

	refuse(PCPC_CLOSED, UINT32_MAX);
	refill(3, 4, -1);
	expect_deferred(3, 4, -1);
	ck_assert_uint_eq(commits, 1);

	refuse(PCPC_CLOSED, UINT32_MAX);
	refill(99, 4, -1);
	expect_deferred(99, 4, -1);
	ck_assert_uint_eq(inserts, 1);
	ck_assert_mem_eq(&stock, &before, sizeof(stock));
}
END_TEST

static void close_gate(void)
{
	if (commits + inserts == 4)
		refusal = PCPC_CLOSED;
}

/* The same in the middle of retries: the fourth attempt is the last. */
START_TEST(a_gate_that_closes_between_retries_bypasses)
{
	fill();
	meanwhile = close_gate;
	refuse(PCPC_ABORTED, UINT32_MAX);
	ck_assert(!consume(3, 1, 0));
	ck_assert_uint_eq(commits, 4);
	refuse(PCPC_CHANGED, UINT32_MAX);
	refill(99, 1, 0);
	expect_deferred(99, 1, 0);
	ck_assert_uint_eq(inserts, 4);
}
END_TEST

static void take_all_of_owner_3(void)
{
	stock.slot[2] = pcpc_word_make(3, 0, 3);
}

/* Section 6: "CHANGED (retry from the top)": the word is read anew. */
START_TEST(a_retry_reads_the_word_anew)
{
	struct pcpc_stock before;

	fill();
	refuse(PCPC_CHANGED, 1);
	meanwhile = take_all_of_owner_3;
	ck_assert(!consume(3, 4, 1));
	ck_assert_uint_eq(commits, 1);
	before = stock;
	ck_assert_uint_eq(before.slot[2], pcpc_word_make(3, 0, 3));

	refuse(PCPC_CHANGED, 1);
	refill(3, 4, 1);
	ck_assert_uint_eq(stock.slot[2], pcpc_word_make(3, 4, 4));
}
END_TEST

static void insert_owner_99(void)
{
	stock.slot[6] = pcpc_word_make(99, 20, 1);
}

/* G5: an owner that got a slot meanwhile is not put into a second one. */
START_TEST(an_insert_that_was_overtaken_joins_the_other)
{
	uint32_t slot;

	fill();
	stock.slot[4] = 0;
	stock.slot[6] = 0;
	refuse(PCPC_CHANGED, 1);
	meanwhile = insert_owner_99;
	refill(99, 4, 1);
	expect_deferred(0, 0, 0);
	ck_assert_uint_eq(inserts, 1);
	ck_assert_uint_eq(commits, 1);
	ck_assert_uint_eq(stock.slot[6], pcpc_word_make(99, 24, 2));
	for (slot = 0; slot < 6; slot++)
		ck_assert_uint_ne(pcpc_word_owner(stock.slot[slot]), 99);
}
END_TEST

static void free_the_victim(void)
{
	stock.slot[2] = 0;
}

static void lend_the_victim_more(void)
{
	stock.slot[2] = pcpc_word_make(3, 50, 3);
}

/* Section 4: an eviction defers the victim's word as it was when it was taken, or does not happen
 * where there is a hole by now. */
START_TEST(an_eviction_defers_the_word_it_really_took)
{
	fill();
	refuse(PCPC_CHANGED, 1);
	meanwhile = lend_the_victim_more;
	refill(99, 4, 1);
	expect_deferred(3, 50, 3);
	ck_assert_uint_eq(stock.hand, 3);

	setup();
	fill();
	refuse(PCPC_CHANGED, 1);
	meanwhile = free_the_victim;
	refill(99, 4, 1);
	expect_deferred(0, 0, 0);
	ck_assert_uint_eq(stock.slot[2], pcpc_word_make(99, 4, 1));
	ck_assert_uint_eq(stock.hand, 2);
}
END_TEST

/* What bypasses by its arguments never reaches a primitive; nor does a miss, nor nothing at all. */
START_TEST(no_primitive_is_called_where_nothing_is_to_be_stored)
{
	fill();
	refuse(PCPC_DONE, 0);
	refill(3, 65, 0);
	refill(99, 1, 64);
	refill(3, 0, 0);
	ck_assert(consume(3, 0, 0));
	ck_assert(!consume(3, 11, 0));
	ck_assert(!consume(99, 1, 0));
	ck_assert_uint_eq(commits + inserts, 0);
}
END_TEST

/* G1: whatever is refused, units held + stocked + deferred stay the same. */
START_TEST(random_refusals_lose_nothing)
{
	static const enum pcpc_outcome refused[] = { PCPC_CHANGED, PCPC_ABORTED, PCPC_CLOSED };
	uint64_t random = unit_seed(), steps = unit_knob("PCPC_STEPS", 200000), put = 0, back = 0;
	int64_t moved = 0, applied = 0, held;
	uint64_t count, stocked;
	uint32_t owner, slot;
	int64_t delta;

	while (steps--) {
		refuse(refused[unit_below(&random, 3)], (unsigned int)unit_below(&random, 12));
		owner = 1 + (uint32_t)unit_below(&random, 12);
		count = unit_below(&random, 70);
		delta = (int64_t)unit_below(&random, 41) - 20;
		if (unit_below(&random, 2)) {
			refill(owner, count, delta);
			put += count;
			moved += delta;
		} else if (consume(owner, count, delta)) {
			back += count;
			moved += delta;
		}
		back += deferred.count;
		applied += deferred.delta;
		for (slot = 0, stocked = 0, held = 0; slot < PCPC_STOCK_SLOTS; slot++) {
			stocked += pcpc_word_count(stock.slot[slot]);
			held += pcpc_word_delta(stock.slot[slot]);
		}
		if (put != back + stocked || moved != applied + held)
			ck_abort_msg("lost: put %" PRIu64 ", back %" PRIu64 ", stocked %" PRIu64,
				     put, back, stocked);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("stock bounds");
	TCase *tests = unit_case(suite, "bounds");

	tcase_add_checked_fixture(tests, setup, NULL);
	tcase_add_loop_test(tests, seven_refusals_are_borne, 0, 2);
	tcase_add_loop_test(tests, eight_refusals_bypass, 0, 2);
	tcase_add_test(tests, a_closed_gate_bypasses_at_once);
	tcase_add_test(tests, a_gate_that_closes_between_retries_bypasses);
	tcase_add_test(tests, a_retry_reads_the_word_anew);
	tcase_add_test(tests, an_insert_that_was_overtaken_joins_the_other);
	tcase_add_test(tests, an_eviction_defers_the_word_it_really_took);
	tcase_add_test(tests, no_primitive_is_called_where_nothing_is_to_be_stored);
	tcase_add_test(tests, random_refusals_lose_nothing);
	return unit_run(suite);
}
