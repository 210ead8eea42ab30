// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_cache_operations.c - consume, refill and stocked of a cache, by each engine.
 *
 * Built three times: with the library's functions, with the inlined fast path (PCPC_INLINE), and
 * with the inlined one of unloadable objects (PCPC_INLINE_UNLOADABLE). Threads stay on one CPU, so
 * that what was refilled can be consumed. Random scripts are in ../model.
 */
#define _GNU_SOURCE
#include <pthread.h>

#include "cache_private.h"
#include "unit_support.h"

static const struct pcpc_marks marks = { .high = 64, .low = 32, .delta_batch = 64 };
static struct pcpc_cache *cache;
static struct pcpc_deferred deferred;

/* A cache with two stocks a CPU, on one CPU; false, and the test is over, if that engine is not to
 * be had. */
static bool open_cache(enum pcpc_engine engine)
{
	ck_assert(unit_pin(0));
	cache = unit_cache(engine, 2);
	return cache != NULL;
}

static void teardown(void)
{
	pcpc_cache_destroy(cache);
	cache = NULL;
}

static void refill(uint32_t owner, uint64_t count, int64_t delta)
{
	memset(&deferred, 0x5a, sizeof(deferred));
	pcpc_cache_refill(cache, owner, count, delta, &marks, &deferred);
}

static bool consume(uint32_t owner, uint64_t count, int64_t delta)
{
	memset(&deferred, 0x5a, sizeof(deferred));
	return pcpc_cache_consume(cache, owner, count, delta, &marks, &deferred);
}

static void expect_deferred(uint32_t owner, uint64_t count, int64_t delta)
{
	ck_assert_uint_eq(deferred.owner, owner);
	ck_assert_uint_eq(deferred.count, count);
	ck_assert_int_eq(deferred.delta, delta);
}

/* All stocks of all CPUs, byte by byte. */
static size_t stocks_size(void)
{
	return cache->nr_indices * (size_t)cache->stocks_per_cpu * sizeof(struct pcpc_stock);
}

static void *copy_stocks(void)
{
	void *copy = malloc(stocks_size());

	ck_assert_ptr_nonnull(copy);
	return memcpy(copy, pcpc_cache_stock(cache, 0, 1), stocks_size());
}

static void expect_stocks(void *copy)
{
	ck_assert_int_eq(memcmp(copy, pcpc_cache_stock(cache, 0, 1), stocks_size()), 0);
	free(copy);
}

/* The owner's word, wherever it is; 0 for none. In two places: a failure (G5). */
static pcpc_word word_of(uint32_t owner)
{
	uint32_t index, slot, found = 0;
	pcpc_word word = 0;

	for (index = 0; index < cache->nr_indices; index++) {
		struct pcpc_stock *stock = pcpc_cache_stock(cache, index, owner);

		for (slot = 0; slot < PCPC_STOCK_SLOTS; slot++) {
			if (pcpc_word_owner(stock->slot[slot]) != owner)
				continue;
			word = stock->slot[slot];
			found++;
		}
	}
	ck_assert_uint_le(found, 1);
	return word;
}

/* Section 4: consume. */
START_TEST(units_that_were_refilled_can_be_consumed)
{
	if (!open_cache(_i))
		return;
	ck_assert_int_eq(pcpc_cache_engine(cache), _i);
	ck_assert(!consume(1, 1, 0));
	refill(1, 40, 0);
	expect_deferred(0, 0, 0);
	ck_assert_uint_eq(pcpc_cache_stocked(cache, 1), 40);
	ck_assert(consume(1, 15, 0));
	expect_deferred(0, 0, 0);
	ck_assert_uint_eq(pcpc_cache_stocked(cache, 1), 25);
	ck_assert(!consume(1, 26, 0));
	expect_deferred(0, 0, 0);
	ck_assert(consume(1, 25, 0));
	ck_assert(!consume(1, 1, 0));
	ck_assert_uint_eq(pcpc_cache_stocked(cache, 1), 0);
	ck_assert_uint_eq(word_of(1), pcpc_word_make(1, 0, 0)); /* empty, and keeps its place */
}
END_TEST

/* semantics.md 1.4.3 */
START_TEST(refill_trims_to_low_above_high)
{
	static const uint64_t examples[][4] = {
		{ 40, 24, 64, 0 },  { 40, 25, 32, 33 }, { 64, 1, 32, 33 },
		{ 64, 64, 32, 96 }, { 1, 64, 32, 33 },	{ 64, 0, 64, 0 },
	};
	size_t i;

	for (i = 0; i < sizeof(examples) / sizeof(examples[0]); i++) {
		if (!open_cache(_i))
			return;
		refill(1, examples[i][0], 0);
		refill(1, examples[i][1], 0);
		expect_deferred(examples[i][3] ? 1 : 0, examples[i][3], 0);
		ck_assert_uint_eq(pcpc_cache_stocked(cache, 1), examples[i][2]);
		teardown();
	}
}
END_TEST

/* semantics.md 1.9.1, 1.9.2, 1.9.8 */
START_TEST(deltas_gather_and_are_deferred_when_full)
{
	if (!open_cache(_i))
		return;
	refill(1, 60, 0);
	ck_assert(consume(1, 1, 60));
	expect_deferred(0, 0, 0);
	refill(1, 1, 0);
	ck_assert_uint_eq(word_of(1), pcpc_word_make(1, 60, 60));
	ck_assert(consume(1, 5, 5));
	expect_deferred(1, 0, 65);
	ck_assert_uint_eq(word_of(1), pcpc_word_make(1, 55, 0));
	refill(1, 1, -40);
	expect_deferred(0, 0, 0);
	refill(1, 1, -23);
	expect_deferred(0, 0, 0);
	ck_assert_uint_eq(word_of(1), pcpc_word_make(1, 57, -63));
	ck_assert(consume(1, 2, 0));
	expect_deferred(0, 0, 0);
	ck_assert_uint_eq(word_of(1), pcpc_word_make(1, 55, -63));
	refill(1, 10, -1);
	expect_deferred(1, 33, -64);
	ck_assert_uint_eq(word_of(1), pcpc_word_make(1, 32, 0));
}
END_TEST

/* A delta alone, without units, in each direction. */
START_TEST(a_delta_can_move_without_units)
{
	if (!open_cache(_i))
		return;
	ck_assert(!consume(1, 0, 5)); /* no slot yet: a miss */
	refill(1, 0, 5);
	expect_deferred(0, 0, 0);
	ck_assert_uint_eq(word_of(1), pcpc_word_make(1, 0, 5));
	ck_assert(consume(1, 0, -7));
	ck_assert_uint_eq(word_of(1), pcpc_word_make(1, 0, -2));
	refill(1, 0, -62);
	expect_deferred(1, 0, -64);
	ck_assert_uint_eq(word_of(1), pcpc_word_make(1, 0, 0));
}
END_TEST

/* Section 4: "delta_batch 0 is taken as 1: no delta stays". */
START_TEST(a_delta_batch_of_0_keeps_no_delta)
{
	const struct pcpc_marks none = { 64, 32, 0 };

	if (!open_cache(_i))
		return;
	pcpc_cache_refill(cache, 1, 10, 0, &none, &deferred);
	expect_deferred(0, 0, 0);
	pcpc_cache_refill(cache, 1, 10, -3, &none, &deferred);
	expect_deferred(1, 0, -3);
	ck_assert(pcpc_cache_consume(cache, 1, 4, 3, &none, &deferred));
	expect_deferred(1, 0, 3);
	ck_assert(pcpc_cache_consume(cache, 1, 4, 0, &none, &deferred));
	expect_deferred(0, 0, 0);
	ck_assert_uint_eq(word_of(1), pcpc_word_make(1, 12, 0));
}
END_TEST

/* Section 4: the delta that is held is looked at too, when delta_batch has been lowered. */
START_TEST(a_lowered_delta_batch_clears_what_is_held)
{
	const struct pcpc_marks lowered = { 64, 32, 10 };

	if (!open_cache(_i))
		return;
	refill(1, 10, 30);
	ck_assert(pcpc_cache_consume(cache, 1, 1, 0, &lowered, &deferred));
	expect_deferred(1, 0, 30);
	refill(1, 1, 30);
	pcpc_cache_refill(cache, 1, 1, 0, &lowered, &deferred);
	expect_deferred(1, 0, 30);
	ck_assert_uint_eq(word_of(1), pcpc_word_make(1, 11, 0));
}
END_TEST

/* Section 4: "Units that are stocked may always be used, also when high has just become 0." */
START_TEST(consume_does_not_look_at_high)
{
	const struct pcpc_marks shut = { 0, 0, 64 }, odd = { UINT32_MAX, UINT32_MAX, 64 };

	if (!open_cache(_i))
		return;
	refill(1, 40, 0);
	ck_assert(pcpc_cache_consume(cache, 1, 15, 0, &shut, &deferred));
	ck_assert(pcpc_cache_consume(cache, 1, 15, 1, &odd, &deferred));
	expect_deferred(0, 0, 0);
	ck_assert_uint_eq(word_of(1), pcpc_word_make(1, 10, 1));
}
END_TEST

/* G12: a lowered high trims at the next refill that puts something. */
START_TEST(a_lowered_high_trims_at_the_next_refill)
{
	const struct pcpc_marks lowered = { 8, 4, 64 };

	if (!open_cache(_i))
		return;
	refill(1, 40, 0);
	pcpc_cache_refill(cache, 1, 0, 0, &lowered, &deferred);
	expect_deferred(0, 0, 0);
	pcpc_cache_refill(cache, 1, 9, 0, &lowered, &deferred); /* bypasses */
	expect_deferred(1, 9, 0);
	pcpc_cache_refill(cache, 1, 1, 0, &lowered, &deferred);
	expect_deferred(1, 37, 0);
	ck_assert_uint_eq(word_of(1), pcpc_word_make(1, 4, 0));
}
END_TEST

/* Amounts are 64 bits wide and are never cut. */
START_TEST(huge_amounts_are_taken_whole_or_not_at_all)
{
	static const uint64_t huge[] = { 65,
					 PCPC_COUNT_MAX,
					 PCPC_COUNT_MAX + UINT64_C(1),
					 UINT64_C(1) << 20,
					 UINT64_C(1) << 22,
					 (UINT64_C(1) << 22) + 1,
					 UINT64_C(1) << 32,
					 (UINT64_C(1) << 32) + 1,
					 (UINT64_C(1) << 42) + 1,
					 (UINT64_C(1) << 44) + 1,
					 UINT64_MAX };
	void *before;
	size_t i;

	if (!open_cache(_i))
		return;
	refill(1, 64, 3);
	before = copy_stocks();
	for (i = 0; i < sizeof(huge) / sizeof(huge[0]); i++) {
		ck_assert(!consume(1, huge[i], 0));
		expect_deferred(0, 0, 0);
		ck_assert(!consume(1, huge[i], 1));
		refill(1, huge[i], 0);
		expect_deferred(1, huge[i], 0);
		refill(1, huge[i], -1);
		expect_deferred(1, huge[i], -1);
		refill(2, huge[i], 0);
		expect_deferred(2, huge[i], 0);
	}
	expect_stocks(before);
}
END_TEST

START_TEST(huge_deltas_are_moved_whole_or_not_at_all)
{
	static const int64_t huge[] = { PCPC_DELTA_MAX + INT64_C(1),
					PCPC_DELTA_MIN - INT64_C(1),
					INT64_C(1) << 22,
					-(INT64_C(1) << 22),
					(INT64_C(1) << 22) + 1,
					INT64_C(1) << 32,
					(INT64_C(1) << 32) + 1,
					-(INT64_C(1) << 32),
					INT64_MAX,
					INT64_MIN,
					INT64_MIN + 1 };
	void *before;
	size_t i;

	if (!open_cache(_i))
		return;
	refill(1, 60, 3);
	before = copy_stocks();
	for (i = 0; i < sizeof(huge) / sizeof(huge[0]); i++) {
		ck_assert(!consume(1, 1, huge[i]));
		expect_deferred(0, 0, 0);
		refill(1, 1, huge[i]);
		expect_deferred(1, 1, huge[i]);
		refill(2, 1, huge[i]);
		expect_deferred(2, 1, huge[i]);
	}
	expect_stocks(before);
	/* the largest that fit the field pass through the own slot, with what it held */
	refill(1, 1, PCPC_DELTA_MAX);
	expect_deferred(1, 0, PCPC_DELTA_MAX + INT64_C(3));
	refill(1, 1, -3);
	ck_assert(consume(1, 1, PCPC_DELTA_MIN));
	expect_deferred(1, 0, PCPC_DELTA_MIN - INT64_C(3));
}
END_TEST

/* The widest marks: the whole of each field is used. */
START_TEST(fields_can_be_used_to_their_ends)
{
	const struct pcpc_marks wide = { PCPC_COUNT_MAX, PCPC_COUNT_MAX - 1, PCPC_DELTA_MAX };

	if (!open_cache(_i))
		return;
	pcpc_cache_refill(cache, 1, PCPC_COUNT_MAX, PCPC_DELTA_MAX - 1, &wide, &deferred);
	expect_deferred(0, 0, 0);
	ck_assert_uint_eq(word_of(1), pcpc_word_make(1, PCPC_COUNT_MAX, PCPC_DELTA_MAX - 1));
	pcpc_cache_refill(cache, 1, 1, 0, &wide, &deferred);
	expect_deferred(1, 2, 0);
	pcpc_cache_refill(cache, 1, 1, 0, &wide, &deferred);
	expect_deferred(0, 0, 0);
	ck_assert(pcpc_cache_consume(cache, 1, PCPC_COUNT_MAX, 0, &wide, &deferred));
	pcpc_cache_refill(cache, 1, 0, PCPC_DELTA_MIN, &wide, &deferred);
	expect_deferred(0, 0, 0);
	ck_assert_uint_eq(word_of(1), pcpc_word_make(1, 0, -2));
	pcpc_cache_refill(cache, 1, 0, -(PCPC_DELTA_MAX - 2), &wide, &deferred);
	expect_deferred(1, 0, -PCPC_DELTA_MAX);
}
END_TEST

/* Section 4: no-op. */
START_TEST(nothing_at_all_does_nothing)
{
	const struct pcpc_marks lowered = { 1, 0, 1 };
	void *before;

	if (!open_cache(_i))
		return;
	refill(1, 40, 30);
	before = copy_stocks();
	ck_assert(consume(1, 0, 0));
	expect_deferred(0, 0, 0);
	ck_assert(consume(2, 0, 0));
	expect_deferred(0, 0, 0);
	refill(1, 0, 0);
	expect_deferred(0, 0, 0);
	refill(2, 0, 0);
	expect_deferred(0, 0, 0);
	pcpc_cache_refill(cache, 1, 0, 0, &lowered, &deferred);
	expect_deferred(0, 0, 0);
	ck_assert(pcpc_cache_consume(cache, 1, 0, 0, &lowered, &deferred));
	expect_deferred(0, 0, 0);
	expect_stocks(before);
}
END_TEST

/* cache.h: bad arguments: a miss, or a bypass that loses nothing. */
START_TEST(bad_arguments_change_and_lose_nothing)
{
	static const struct pcpc_marks bad[] = {
		{ 0, 0, 64 },		{ PCPC_COUNT_MAX + 1, 32, 64 },
		{ UINT32_MAX, 32, 64 }, { 64, 65, 64 },
		{ 64, UINT32_MAX, 64 }, { 64, 32, PCPC_DELTA_MAX + 1 },
		{ 64, 32, UINT32_MAX },
	};
	static const uint32_t nobody[] = { 0, PCPC_OWNER_MAX + 1, PCPC_OWNER_MAX + 2, UINT32_MAX };
	void *before;
	size_t i, delta;

	if (!open_cache(_i))
		return;
	refill(1, 40, 3);
	refill(2, 0, 0);
	before = copy_stocks();
	for (delta = 0; delta <= 2; delta += 2) {
		for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
			pcpc_cache_refill(cache, 1, 5, (int64_t)delta, &bad[i], &deferred);
			expect_deferred(1, 5, (int64_t)delta);
			pcpc_cache_refill(cache, 2, 5, (int64_t)delta, &bad[i], &deferred);
			expect_deferred(2, 5, (int64_t)delta);
		}
		for (i = 0; i < sizeof(nobody) / sizeof(nobody[0]); i++) {
			refill(nobody[i], 5, (int64_t)delta);
			expect_deferred(nobody[i], 5, (int64_t)delta);
			ck_assert(!consume(nobody[i], 5, (int64_t)delta));
			expect_deferred(0, 0, 0);
			ck_assert_uint_eq(pcpc_cache_stocked(cache, nobody[i]), 0);
		}
		pcpc_cache_refill(NULL, 1, 5, (int64_t)delta, &marks, &deferred);
		expect_deferred(1, 5, (int64_t)delta);
		pcpc_cache_refill(cache, 1, 5, (int64_t)delta, NULL, &deferred);
		expect_deferred(1, 5, (int64_t)delta);
		pcpc_cache_refill(cache, 1, 5, (int64_t)delta, &marks, NULL);
		ck_assert(!pcpc_cache_consume(NULL, 1, 5, (int64_t)delta, &marks, &deferred));
		expect_deferred(0, 0, 0);
		ck_assert(!pcpc_cache_consume(cache, 1, 5, (int64_t)delta, NULL, &deferred));
		expect_deferred(0, 0, 0);
		ck_assert(!pcpc_cache_consume(cache, 1, 5, (int64_t)delta, &marks, NULL));
	}
	expect_stocks(before);
}
END_TEST

/* Section 4: a consume that misses changes nothing: every byte of every stock. */
START_TEST(a_consume_that_misses_changes_nothing)
{
	uint32_t owner;
	void *before;

	if (!open_cache(_i))
		return;
	for (owner = 1; owner <= 14; owner++)
		refill(owner, owner, 0);
	before = copy_stocks();
	for (owner = 1; owner <= 40; owner++) {
		ck_assert(!consume(owner, owner + 1, 0));
		expect_deferred(0, 0, 0);
		ck_assert(!consume(owner, owner + 1, 63));
		expect_deferred(0, 0, 0);
	}
	expect_stocks(before);
}
END_TEST

/* Section 5: stock (id - 1) / 7 mod nr_stocks; semantics.md 1.4.5: round robin in each. With two
 * stocks, owners 1-7 and 15-21 share one, 8-14 and 22-28 the other. */
START_TEST(owners_that_share_a_stock_evict_in_turn)
{
	uint32_t owner;

	if (!open_cache(_i))
		return;
	for (owner = 1; owner <= 14; owner++) {
		refill(owner, owner, -(int64_t)owner);
		expect_deferred(0, 0, 0);
	}
	for (owner = 15; owner <= 28; owner++) {
		refill(owner, owner, 0);
		expect_deferred(owner - 14, owner - 14, -(int64_t)(owner - 14));
		ck_assert(consume(owner, 1, 0));
	}
	ck_assert_uint_eq(pcpc_cache_stocked(cache, 7), 0);
	ck_assert_uint_eq(pcpc_cache_stocked(cache, 15), 14);
}
END_TEST

/* An owner that found its home taken is found again in another slot. */
START_TEST(owners_away_from_home_are_served_too)
{
	if (!open_cache(_i))
		return;
	refill(15, 20, 0); /* home 0 of stock 0 */
	refill(1, 10, 0);  /* the same home */
	expect_deferred(0, 0, 0);
	ck_assert(consume(1, 4, 0));
	ck_assert(consume(15, 4, 0));
	refill(1, 1, 1);
	refill(15, 1, 1);
	ck_assert_uint_eq(word_of(1), pcpc_word_make(1, 7, 1));
	ck_assert_uint_eq(word_of(15), pcpc_word_make(15, 17, 1));
}
END_TEST

/* Neighbours in number must not be taken for each other: id + 1 with a borrow, id at 20 bits. */
START_TEST(owners_are_told_apart_by_every_bit)
{
	uint32_t bit;

	if (!open_cache(_i))
		return;
	for (bit = 1; bit <= PCPC_OWNER_MAX; bit *= 2) {
		refill(bit, 10, 0);
		ck_assert(!consume(bit == 1 ? 2 : 1, 1, 0));
		ck_assert(!consume(bit + 1, 1, 0));
		ck_assert(!consume(bit - 1, 1, 0));
		ck_assert(!consume(bit ^ (1u << 19 | 1), 1, 0));
		ck_assert(!consume(bit, 11, 0));
		ck_assert(consume(bit, 10, 0));
		ck_assert(!consume(bit, 1, 0));
	}
}
END_TEST

/* Ids at both ends of the range have a stock, and that one only. */
START_TEST(the_lowest_and_the_highest_owner_are_served)
{
	if (!open_cache(_i))
		return;
	refill(1, 11, 0);
	refill(PCPC_OWNER_MAX, 12, 0);
	ck_assert_uint_eq(pcpc_cache_stocked(cache, 1), 11);
	ck_assert_uint_eq(pcpc_cache_stocked(cache, PCPC_OWNER_MAX), 12);
	ck_assert(consume(1, 11, 0));
	ck_assert(consume(PCPC_OWNER_MAX, 12, 0));
}
END_TEST

static void *refill_on_the_other_cpu(void *pinned)
{
	struct pcpc_deferred none;

	*(bool *)pinned = unit_pin(1);
	if (*(bool *)pinned)
		pcpc_cache_refill(cache, 1, 30, 0, &marks, &none);
	return NULL;
}

/* Section 5: one stock a CPU; cache.h: stocked is "the units stocked for one owner on all CPUs". */
START_TEST(each_cpu_has_its_own_stock)
{
	const struct pcpc_cache_config config = {
		.size = sizeof(config), .engine = _i, .index = PCPC_INDEX_CPU, .stocks_per_cpu = 2
	};
	pthread_t thread;
	bool pinned;
	int r = pcpc_cache_create(&config, &cache);

	if (r == -ENOSYS)
		return;
	ck_assert_int_eq(r, 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, refill_on_the_other_cpu, &pinned), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert(unit_pin(0));
	if (!pinned) {
		unit_note("not tested: one CPU only");
		return;
	}
	ck_assert_uint_eq(pcpc_cache_stocked(cache, 1), 30);
	if (!cache->fast.area.rseq) {
		unit_note("not tested further: no CPU numbers here, indices are sticky");
		return;
	}
	ck_assert(!consume(1, 1, 0)); /* it is not here */
	refill(1, 12, 0);
	ck_assert_uint_eq(pcpc_cache_stocked(cache, 1), 42);
	ck_assert(!consume(1, 13, 0));
	ck_assert(consume(1, 12, 0));
	ck_assert_uint_eq(pcpc_cache_stocked(cache, 1), 30);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("cache operations");
	TCase *tests = unit_case(suite, "operations");
	const int first = PCPC_ENGINE_RSEQ, end = PCPC_ENGINE_ATOMIC + 1;

	tcase_add_checked_fixture(tests, NULL, teardown);
	tcase_add_loop_test(tests, units_that_were_refilled_can_be_consumed, first, end);
	tcase_add_loop_test(tests, refill_trims_to_low_above_high, first, end);
	tcase_add_loop_test(tests, deltas_gather_and_are_deferred_when_full, first, end);
	tcase_add_loop_test(tests, a_delta_can_move_without_units, first, end);
	tcase_add_loop_test(tests, a_delta_batch_of_0_keeps_no_delta, first, end);
	tcase_add_loop_test(tests, a_lowered_delta_batch_clears_what_is_held, first, end);
	tcase_add_loop_test(tests, consume_does_not_look_at_high, first, end);
	tcase_add_loop_test(tests, a_lowered_high_trims_at_the_next_refill, first, end);
	tcase_add_loop_test(tests, huge_amounts_are_taken_whole_or_not_at_all, first, end);
	tcase_add_loop_test(tests, huge_deltas_are_moved_whole_or_not_at_all, first, end);
	tcase_add_loop_test(tests, fields_can_be_used_to_their_ends, first, end);
	tcase_add_loop_test(tests, nothing_at_all_does_nothing, first, end);
	tcase_add_loop_test(tests, bad_arguments_change_and_lose_nothing, first, end);
	tcase_add_loop_test(tests, a_consume_that_misses_changes_nothing, first, end);
	tcase_add_loop_test(tests, owners_that_share_a_stock_evict_in_turn, first, end);
	tcase_add_loop_test(tests, owners_away_from_home_are_served_too, first, end);
	tcase_add_loop_test(tests, owners_are_told_apart_by_every_bit, first, end);
	tcase_add_loop_test(tests, the_lowest_and_the_highest_owner_are_served, first, end);
	tcase_add_loop_test(tests, each_cpu_has_its_own_stock, first, end);
	return unit_run(suite);
}
