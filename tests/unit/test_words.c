// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_words.c - the transitions of one slot word, at and around every boundary, against the plain
 * model; and the worked examples of semantics.md by numbers worked out by hand.
 *
 * Whole operations on a stock are in test_stock.c.
 */
#define _GNU_SOURCE
#include <pcpcharge/stock.h>

#include "plain_model.h"
#include "unit_support.h"

#define VALUES_MAX 64

/* A set of boundary values. */
struct values {
	int n;
	plain_wide value[VALUES_MAX];
};

static void add(struct values *values, plain_wide value, plain_wide least, plain_wide most)
{
	int i;

	if (value < least || value > most)
		return;
	for (i = 0; i < values->n; i++)
		if (values->value[i] == value)
			return;
	ck_assert_int_lt(values->n, VALUES_MAX);
	values->value[values->n++] = value;
}

/* value, and one to each side of it */
static void add_around(struct values *values, plain_wide value, plain_wide least, plain_wide most)
{
	add(values, value - 1, least, most);
	add(values, value, least, most);
	add(values, value + 1, least, most);
}

static const uint32_t slot_owners[] = { 0, 1, 2, PCPC_OWNER_MAX - 1, PCPC_OWNER_MAX };
static const uint32_t asking_owners[] = {
	0,
	1,
	2,
	PCPC_OWNER_MAX - 1,
	PCPC_OWNER_MAX,
	PCPC_OWNER_MAX + 1, /* 0 to a reader of 20 bits */
	PCPC_OWNER_MAX + 2, /* 1 */
	UINT32_MAX,	    /* PCPC_OWNER_MAX */
};

#define LENGTH(array) ((int)(sizeof(array) / sizeof((array)[0])))

typedef bool transition_fn(pcpc_word old, uint32_t owner, uint64_t count, int64_t delta,
			   const struct pcpc_marks *marks, pcpc_word *ret_new,
			   struct pcpc_deferred *ret_deferred);
typedef struct plain_step plain_fn(struct plain_slot slot, const struct plain_request *request);

static const struct {
	const char *name;
	transition_fn *transition;
	plain_fn *plain;
} transitions[] = {
	{ "consume", pcpc_word_consume, plain_consume },
	{ "refill", pcpc_word_refill, plain_refill },
	{ "evict", pcpc_word_evict, plain_evict },
};

static bool deferred_is(const struct pcpc_deferred *deferred, struct plain_slot expected)
{
	return deferred->owner == expected.owner && deferred->count == expected.count &&
	       deferred->delta == expected.delta;
}

/* One transition of one word against the model. Quiet while all is well: it runs millions of
 * times. */
static void compare(int which, struct plain_slot slot, const struct plain_request *request)
{
	const struct pcpc_marks marks = { (uint32_t)request->high, (uint32_t)request->low,
					  (uint32_t)request->delta_batch };
	const struct plain_slot poison = { 0xdead, 0xdeadbeef, -0xdeadbeefLL };
	struct pcpc_deferred deferred = { 0xdead, 0xdeadbeef, -0xdeadbeefLL };
	pcpc_word will = 0xfeedfacefeedface, was = plain_word_of(slot);
	struct plain_step step = transitions[which].plain(slot, request);
	bool applied = transitions[which].transition(
		was, (uint32_t)request->owner, (uint64_t)request->count, (int64_t)request->delta,
		&marks, &will, &deferred);

	if (applied == step.applies &&
	    will == (applied ? plain_word_of(step.slot) : 0xfeedfacefeedface) &&
	    deferred_is(&deferred, applied ? step.deferred : poison))
		return;
	ck_abort_msg("%s(word %u:%u:%d, owner %u, count %llu, delta %lld, marks %u/%u/%u): "
		     "%d, word %u:%u:%d, deferred %u:%llu:%lld; the model says %d, word %u:%u:%d",
		     transitions[which].name, pcpc_word_owner(was), pcpc_word_count(was),
		     pcpc_word_delta(was), (uint32_t)request->owner,
		     (unsigned long long)request->count, (long long)request->delta, marks.high,
		     marks.low, marks.delta_batch, applied, pcpc_word_owner(will),
		     pcpc_word_count(will), pcpc_word_delta(will), deferred.owner,
		     (unsigned long long)deferred.count, (long long)deferred.delta, step.applies,
		     (uint32_t)step.slot.owner, (uint32_t)step.slot.count, (int)step.slot.delta);
}

/* For slots of every owner, asked by every owner: free, own, empty own, other, empty other. */
static void compare_owners(plain_wide count, plain_wide delta, struct plain_request *request)
{
	int slot_owner, asking, which;

	for (slot_owner = 0; slot_owner < LENGTH(slot_owners); slot_owner++) {
		struct plain_slot slot = { slot_owners[slot_owner], count, delta };

		if (!slot.owner && (count || delta))
			continue;
		for (asking = 0; asking < LENGTH(asking_owners); asking++) {
			request->owner = asking_owners[asking];
			for (which = 0; which < LENGTH(transitions); which++)
				compare(which, slot, request);
		}
	}
}

static void sweep_counts(struct plain_request *request)
{
	plain_wide high = request->high, low = request->low;
	struct values stocked = { 0 }, asked;
	int i, j, sign;

	add_around(&stocked, 0, 0, PLAIN_COUNT_MAX);
	add_around(&stocked, low, 0, PLAIN_COUNT_MAX);
	add_around(&stocked, high, 0, PLAIN_COUNT_MAX);
	add_around(&stocked, PLAIN_COUNT_MAX, 0, PLAIN_COUNT_MAX);
	for (i = 0; i < stocked.n; i++) {
		asked = (struct values){ 0 };
		add_around(&asked, 0, 0, UINT64_MAX);
		add_around(&asked, high, 0, UINT64_MAX);
		add_around(&asked, PLAIN_COUNT_MAX, 0, UINT64_MAX);
		add_around(&asked, stocked.value[i], 0, UINT64_MAX);
		add_around(&asked, high - stocked.value[i], 0, UINT64_MAX);
		add_around(&asked, (plain_wide)1 << 32, 0, UINT64_MAX);
		add_around(&asked, UINT64_MAX, 0, UINT64_MAX);
		for (j = 0; j < asked.n; j++) {
			for (sign = -1; sign <= 1; sign++) {
				request->count = asked.value[j];
				request->delta = sign * 5;
				compare_owners(stocked.value[i], sign * 59, request);
			}
		}
	}
}

/* Section 4: counts at every boundary of the count field, of high and of low, with good and bad
 * marks. */
START_TEST(counts_move_as_the_model_says_at_every_boundary)
{
	const uint32_t highs[] = {
		0, 1, 2, 64, PCPC_COUNT_MAX - 1, PCPC_COUNT_MAX, PCPC_COUNT_MAX + 1, UINT32_MAX
	};
	const uint32_t batches[] = { 0, 64, PCPC_DELTA_MAX + 1 };
	struct plain_request request = { 0 };
	struct values lows;
	int i, j, k;

	for (i = 0; i < LENGTH(highs); i++) {
		lows = (struct values){ 0 };
		add(&lows, 0, 0, UINT32_MAX);
		add(&lows, highs[i] / 2, 0, UINT32_MAX);
		add_around(&lows, highs[i], 0, UINT32_MAX);
		add(&lows, UINT32_MAX, 0, UINT32_MAX);
		for (j = 0; j < lows.n; j++) {
			for (k = 0; k < LENGTH(batches); k++) {
				request.high = highs[i];
				request.low = lows.value[j];
				request.delta_batch = batches[k];
				sweep_counts(&request);
			}
		}
	}
}
END_TEST

static void sweep_deltas(struct plain_request *request)
{
	static const plain_wide edges[] = { 0,	       PLAIN_DELTA_MIN, PLAIN_DELTA_MAX,
					    1 << 22,   -(1 << 22),	INT32_MIN,
					    INT32_MAX, INT64_MIN,	INT64_MAX };
	plain_wide batch = request->delta_batch;
	struct values held = { 0 }, moves;
	int i, j, k;

	add_around(&held, 0, PLAIN_DELTA_MIN, PLAIN_DELTA_MAX);
	add_around(&held, batch, PLAIN_DELTA_MIN, PLAIN_DELTA_MAX);
	add_around(&held, -batch, PLAIN_DELTA_MIN, PLAIN_DELTA_MAX);
	add_around(&held, PLAIN_DELTA_MIN, PLAIN_DELTA_MIN, PLAIN_DELTA_MAX);
	add_around(&held, PLAIN_DELTA_MAX, PLAIN_DELTA_MIN, PLAIN_DELTA_MAX);
	for (i = 0; i < held.n; i++) {
		moves = (struct values){ 0 };
		for (k = 0; k < LENGTH(edges); k++)
			add_around(&moves, edges[k], INT64_MIN, INT64_MAX);
		add_around(&moves, batch, INT64_MIN, INT64_MAX);
		add_around(&moves, -batch, INT64_MIN, INT64_MAX);
		add(&moves, -held.value[i], INT64_MIN, INT64_MAX);
		add_around(&moves, batch - held.value[i], INT64_MIN, INT64_MAX);
		add_around(&moves, -batch - held.value[i], INT64_MIN, INT64_MAX);
		for (j = 0; j < moves.n; j++) {
			request->delta = moves.value[j];
			for (request->count = 0; request->count <= 6; request->count += 3)
				compare_owners(5, held.value[i], request);
			request->count = 0;
			compare_owners(0, held.value[i], request);
		}
	}
}

/* Section 4: deltas at every boundary of the delta field and of delta_batch; 0 is taken as 1. */
START_TEST(deltas_move_as_the_model_says_at_every_boundary)
{
	const uint32_t batches[] = { 0,
				     1,
				     2,
				     64,
				     1 << 20,
				     (1 << 20) + 1,
				     PCPC_DELTA_MAX - 1,
				     PCPC_DELTA_MAX,
				     PCPC_DELTA_MAX + 1,
				     PCPC_DELTA_MAX + 2,
				     UINT32_MAX };
	struct plain_request request = { 0 };
	int i;

	for (i = 0; i < LENGTH(batches); i++) {
		request.high = 8;
		request.low = 4;
		request.delta_batch = batches[i];
		sweep_deltas(&request);
	}
}
END_TEST

/* A number that is uniform in size, so that small, middle and huge ones are all frequent. */
static uint64_t any_size(uint64_t *random)
{
	unsigned int bits = (unsigned int)unit_below(random, 65);

	return bits ? unit_random(random) >> (64 - bits) : 0;
}

/* Section 4: and between the boundaries, everything at once. */
START_TEST(random_words_move_as_the_model_says)
{
	uint64_t random = unit_seed(), steps = unit_knob("PCPC_STEPS", 1000000);
	struct plain_request request;
	struct plain_slot slot;
	int which;

	while (steps--) {
		slot.owner = slot_owners[unit_below(&random, LENGTH(slot_owners))];
		slot.count = slot.owner ? any_size(&random) % (PLAIN_COUNT_MAX + 1) : 0;
		slot.delta = slot.owner ? any_size(&random) % (PLAIN_DELTA_MAX + 1) : 0;
		if (slot.owner && unit_below(&random, 2))
			slot.delta = -slot.delta - 1;
		request =
			plain_request_of(asking_owners[unit_below(&random, LENGTH(asking_owners))],
					 any_size(&random), (int64_t)any_size(&random),
					 (uint32_t)(any_size(&random) % (PLAIN_COUNT_MAX + 2)), 0,
					 (uint32_t)(any_size(&random) % (PLAIN_DELTA_MAX + 2)));
		request.low = unit_below(&random, (uint64_t)request.high + 2);
		if (unit_below(&random, 2))
			request.delta = -(request.delta / 2);
		for (which = 0; which < LENGTH(transitions); which++)
			compare(which, slot, &request);
	}
}
END_TEST

/* Section 4, the charge slot's picture: 63..44 owner, 43..22 count, 21..0 delta in two's
 * complement. Numbers by hand. */
START_TEST(words_are_laid_out_as_the_design_draws_them)
{
	ck_assert_uint_eq(pcpc_word_make(0, 0, 0), 0);
	ck_assert_uint_eq(pcpc_word_make(1, 0, 0), 0x0000100000000000u);
	ck_assert_uint_eq(pcpc_word_make(0, 1, 0), 0x0000000000400000u);
	ck_assert_uint_eq(pcpc_word_make(0, 0, 1), 0x0000000000000001u);
	ck_assert_uint_eq(pcpc_word_make(0, 0, -1), 0x00000000003fffffu);
	ck_assert_uint_eq(pcpc_word_make(5, 7, -3), 0x0000500001fffffdu);
	ck_assert_uint_eq(pcpc_word_make(PCPC_OWNER_MAX, PCPC_COUNT_MAX, -1), UINT64_MAX);
	ck_assert_uint_eq(pcpc_word_make(PCPC_OWNER_MAX, 0, 0), 0xfffff00000000000u);
	ck_assert_uint_eq(pcpc_word_make(0, PCPC_COUNT_MAX, 0), 0x00000fffffc00000u);
	ck_assert_uint_eq(pcpc_word_make(0, 0, PCPC_DELTA_MAX), 0x00000000001fffffu);
	ck_assert_uint_eq(pcpc_word_make(0, 0, PCPC_DELTA_MIN), 0x0000000000200000u);
	ck_assert_uint_eq(PCPC_OWNER_MAX, 1048575);
	ck_assert_uint_eq(PCPC_COUNT_MAX, 4194303);
	ck_assert_int_eq(PCPC_DELTA_MAX, 2097151);
	ck_assert_int_eq(PCPC_DELTA_MIN, -2097152);
}
END_TEST

/* Section 4: a word is whole; what goes in comes out, in every combination of boundaries. */
START_TEST(words_give_back_what_was_put_into_them)
{
	struct values owners = { 0 }, counts = { 0 }, deltas = { 0 };
	int i, j, k;

	add_around(&owners, 0, 0, PLAIN_OWNER_MAX);
	add_around(&owners, PLAIN_OWNER_MAX / 2, 0, PLAIN_OWNER_MAX);
	add_around(&owners, PLAIN_OWNER_MAX, 0, PLAIN_OWNER_MAX);
	add_around(&counts, 0, 0, PLAIN_COUNT_MAX);
	add_around(&counts, PLAIN_COUNT_MAX / 2, 0, PLAIN_COUNT_MAX);
	add_around(&counts, PLAIN_COUNT_MAX, 0, PLAIN_COUNT_MAX);
	add_around(&deltas, 0, PLAIN_DELTA_MIN, PLAIN_DELTA_MAX);
	add_around(&deltas, PLAIN_DELTA_MIN, PLAIN_DELTA_MIN, PLAIN_DELTA_MAX);
	add_around(&deltas, PLAIN_DELTA_MAX, PLAIN_DELTA_MIN, PLAIN_DELTA_MAX);
	for (i = 0; i < owners.n; i++) {
		for (j = 0; j < counts.n; j++) {
			for (k = 0; k < deltas.n; k++) {
				struct plain_slot slot = { owners.value[i], counts.value[j],
							   deltas.value[k] };
				pcpc_word word =
					pcpc_word_make((uint32_t)slot.owner, (uint32_t)slot.count,
						       (int32_t)slot.delta);

				ck_assert_uint_eq(word, plain_word_of(slot));
				ck_assert_uint_eq(pcpc_word_owner(word), (uint32_t)slot.owner);
				ck_assert_uint_eq(pcpc_word_count(word), (uint32_t)slot.count);
				ck_assert_int_eq(pcpc_word_delta(word), (int32_t)slot.delta);
			}
		}
	}
}
END_TEST

/* Section 5: one line, and the gate the first four bytes of it. */
START_TEST(a_stock_is_one_aligned_cache_line)
{
	ck_assert_uint_eq(sizeof(struct pcpc_stock), 64);
	ck_assert_uint_eq(_Alignof(struct pcpc_stock), 64);
	ck_assert_uint_eq(offsetof(struct pcpc_stock, gate), 0);
	ck_assert_uint_eq(sizeof(((struct pcpc_stock *)0)->gate), 4);
	ck_assert_uint_eq(offsetof(struct pcpc_stock, hand), 4);
	ck_assert_uint_eq(sizeof(((struct pcpc_stock *)0)->hand), 4);
	ck_assert_uint_eq(offsetof(struct pcpc_stock, slot), 8);
	ck_assert_int_eq(PCPC_STOCK_SLOTS, 7);
}
END_TEST

/* memcg's marks: semantics.md section 0. */
static const struct pcpc_marks memcg = { .high = 64, .low = 32, .delta_batch = 64 };

static pcpc_word will;
static struct pcpc_deferred deferred;

static bool consume(uint32_t stocked, int32_t held, uint64_t count, int64_t delta)
{
	return pcpc_word_consume(pcpc_word_make(9, stocked, held), 9, count, delta, &memcg, &will,
				 &deferred);
}

static bool refill(uint32_t stocked, int32_t held, uint64_t count, int64_t delta)
{
	return pcpc_word_refill(pcpc_word_make(9, stocked, held), 9, count, delta, &memcg, &will,
				&deferred);
}

static void expect(uint32_t owner, uint32_t count, int32_t delta, uint32_t deferred_owner,
		   uint64_t deferred_count, int64_t deferred_delta)
{
	ck_assert_uint_eq(will, pcpc_word_make(owner, count, delta));
	ck_assert_uint_eq(deferred.owner, deferred_owner);
	ck_assert_uint_eq(deferred.count, deferred_count);
	ck_assert_int_eq(deferred.delta, deferred_delta);
}

/* semantics.md 1.3.3-7, 1.3.10 */
START_TEST(consume_takes_all_or_nothing)
{
	ck_assert(consume(64, 0, 64, 0));
	expect(9, 0, 0, 0, 0, 0);
	ck_assert(consume(64, 0, 1, 0));
	expect(9, 63, 0, 0, 0, 0);
	will = 4711;
	ck_assert(!consume(63, 0, 64, 0));
	ck_assert(!consume(0, 0, 1, 0));
	ck_assert(!consume(1, 0, (UINT64_C(1) << 32) + 1, 0));
	ck_assert(!pcpc_word_consume(pcpc_word_make(8, 64, 0), 9, 1, 0, &memcg, &will, &deferred));
	ck_assert(!pcpc_word_consume(0, 9, 0, 0, &memcg, &will, &deferred));
	ck_assert(!pcpc_word_consume(0, 0, 0, 0, &memcg, &will, &deferred));
	ck_assert_uint_eq(will, 4711);
}
END_TEST

/* Section 4: "Units that are stocked may always be used, also when high has just become 0." */
START_TEST(consume_does_not_look_at_high)
{
	const struct pcpc_marks shut = { 0, 0, 64 };

	ck_assert(pcpc_word_consume(pcpc_word_make(9, 64, 0), 9, 50, 0, &shut, &will, &deferred));
	expect(9, 14, 0, 0, 0, 0);
}
END_TEST

/* semantics.md 1.4.3: (have, add -> kept, uncharged) */
START_TEST(refill_trims_to_low_above_high)
{
	ck_assert(refill(40, 0, 24, 0));
	expect(9, 64, 0, 0, 0, 0);
	ck_assert(refill(40, 0, 25, 0));
	expect(9, 32, 0, 9, 33, 0);
	ck_assert(refill(64, 0, 1, 0));
	expect(9, 32, 0, 9, 33, 0);
	ck_assert(refill(64, 0, 64, 0));
	expect(9, 32, 0, 9, 96, 0);
	ck_assert(refill(1, 0, 64, 0));
	expect(9, 32, 0, 9, 33, 0);
	ck_assert(refill(0, 0, 64, 0));
	expect(9, 64, 0, 0, 0, 0);
}
END_TEST

/* semantics.md 1.4.1: above high nothing is touched. 1.5.4: at most 96 are trimmed; and where high
 * was lowered meanwhile, all above low. */
START_TEST(refill_above_high_does_not_apply)
{
	const struct pcpc_marks lowered = { 8, 4, 64 };

	will = 4711;
	ck_assert(!refill(40, 0, 65, 0));
	ck_assert(!refill(0, 0, UINT64_MAX, 0));
	ck_assert(!refill(0, 0, UINT64_C(1) << 32, 0));
	ck_assert_uint_eq(will, 4711);
	ck_assert(pcpc_word_refill(pcpc_word_make(9, 64, 0), 9, 1, 0, &lowered, &will, &deferred));
	expect(9, 4, 0, 9, 61, 0);
}
END_TEST

/* semantics.md 1.4.4: an insert is the request, whatever the slot was before (bug H1: not garbage;
 * bug of 1.9.7: the new owner must not inherit the old one's delta). */
START_TEST(insert_makes_the_slot_the_request)
{
	ck_assert(pcpc_word_refill(0, 9, 64, -3, &memcg, &will, &deferred));
	expect(9, 64, -3, 0, 0, 0);
	ck_assert(pcpc_word_refill(pcpc_word_make(8, 0, 0), 9, 1, 63, &memcg, &will, &deferred));
	expect(9, 1, 63, 0, 0, 0);
	ck_assert(pcpc_word_evict(pcpc_word_make(8, 17, -5), 9, 30, 0, &memcg, &will, &deferred));
	expect(9, 30, 0, 8, 17, -5);
	ck_assert(pcpc_word_evict(pcpc_word_make(8, 0, -5), 9, 30, 2, &memcg, &will, &deferred));
	expect(9, 30, 2, 8, 0, -5);
}
END_TEST

/* semantics.md 1.4.5: the victim's units and delta are handed back whole; a slot that has something
 * in it is not free for a refill; section 4: "an insert with abs(d) >= delta_batch bypasses". */
START_TEST(insert_does_not_apply_to_a_held_slot_or_with_a_full_delta)
{
	will = 4711;
	ck_assert(!pcpc_word_refill(pcpc_word_make(8, 1, 0), 9, 1, 0, &memcg, &will, &deferred));
	ck_assert(!pcpc_word_refill(pcpc_word_make(8, 0, 1), 9, 1, 0, &memcg, &will, &deferred));
	ck_assert(!pcpc_word_refill(0, 9, 1, 64, &memcg, &will, &deferred));
	ck_assert(!pcpc_word_refill(0, 9, 1, -64, &memcg, &will, &deferred));
	ck_assert(!pcpc_word_evict(pcpc_word_make(8, 1, 0), 9, 1, 64, &memcg, &will, &deferred));
	ck_assert(!pcpc_word_evict(pcpc_word_make(9, 1, 0), 9, 1, 0, &memcg, &will, &deferred));
	ck_assert(!pcpc_word_evict(0, 9, 1, 0, &memcg, &will, &deferred));
	ck_assert(!pcpc_word_evict(pcpc_word_make(8, 1, 0), 9, 65, 0, &memcg, &will, &deferred));
	ck_assert_uint_eq(will, 4711);
}
END_TEST

/* semantics.md 1.9.1: 60 then 5 -> 65 applied, delta 0. And 1.9.6: the units move as well. */
START_TEST(consume_clears_a_delta_that_reaches_the_batch)
{
	ck_assert(consume(10, 60, 5, 5));
	expect(9, 5, 0, 9, 0, 65);
	ck_assert(consume(10, 60, 5, 3));
	expect(9, 5, 63, 0, 0, 0);
	ck_assert(consume(10, 60, 5, 4));
	expect(9, 5, 0, 9, 0, 64);
	ck_assert(consume(10, -60, 5, 60));
	expect(9, 5, 0, 0, 0, 0);
}
END_TEST

/* semantics.md 1.9.2: from 0, giving back 40, 23, 1 -> -40, -63, then -64 applied. */
START_TEST(refill_clears_a_delta_that_reaches_the_batch)
{
	ck_assert(refill(0, 0, 1, -40));
	expect(9, 1, -40, 0, 0, 0);
	ck_assert(refill(1, -40, 1, -23));
	expect(9, 2, -63, 0, 0, 0);
	ck_assert(refill(2, -63, 1, -1));
	expect(9, 3, 0, 9, 0, -64);
	ck_assert(refill(40, -63, 25, -1));
	expect(9, 32, 0, 9, 33, -64);
}
END_TEST

/* semantics.md 1.9.8: a refill without a delta leaves the delta; 1.9.5: a slot with no units keeps
 * its delta, and its owner. */
START_TEST(a_delta_stays_where_only_units_move)
{
	ck_assert(refill(10, -63, 20, 0));
	expect(9, 30, -63, 0, 0, 0);
	ck_assert(refill(40, 63, 25, 0));
	expect(9, 32, 63, 9, 33, 0);
	ck_assert(consume(10, -63, 10, 0));
	expect(9, 0, -63, 0, 0, 0);
	ck_assert(!pcpc_word_refill(pcpc_word_make(9, 0, -63), 8, 1, 0, &memcg, &will, &deferred));
}
END_TEST

/* Section 4: the whole delta is deferred as soon as delta_batch, lowered, is reached; 0 is 1. */
START_TEST(a_lowered_delta_batch_clears_what_is_held)
{
	const struct pcpc_marks lowered = { 64, 32, 10 }, none = { 64, 32, 0 };

	ck_assert(pcpc_word_consume(pcpc_word_make(9, 5, 60), 9, 1, 0, &lowered, &will, &deferred));
	expect(9, 4, 0, 9, 0, 60);
	ck_assert(pcpc_word_refill(pcpc_word_make(9, 5, 0), 9, 1, 1, &none, &will, &deferred));
	expect(9, 6, 0, 9, 0, 1);
	ck_assert(pcpc_word_refill(pcpc_word_make(9, 5, 1), 9, 1, -1, &none, &will, &deferred));
	expect(9, 6, 0, 0, 0, 0);
	ck_assert(!pcpc_word_refill(0, 9, 1, 1, &none, &will, &deferred));
	ck_assert(pcpc_word_refill(0, 9, 1, 0, &none, &will, &deferred));
	expect(9, 1, 0, 0, 0, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("words");
	TCase *words = unit_case(suite, "format"), *model = unit_case(suite, "model"),
	      *examples = unit_case(suite, "examples");

	tcase_add_test(words, words_are_laid_out_as_the_design_draws_them);
	tcase_add_test(words, words_give_back_what_was_put_into_them);
	tcase_add_test(words, a_stock_is_one_aligned_cache_line);
	tcase_add_test(model, counts_move_as_the_model_says_at_every_boundary);
	tcase_add_test(model, deltas_move_as_the_model_says_at_every_boundary);
	tcase_add_test(model, random_words_move_as_the_model_says);
	tcase_add_test(examples, consume_takes_all_or_nothing);
	tcase_add_test(examples, consume_does_not_look_at_high);
	tcase_add_test(examples, refill_trims_to_low_above_high);
	tcase_add_test(examples, refill_above_high_does_not_apply);
	tcase_add_test(examples, insert_makes_the_slot_the_request);
	tcase_add_test(examples, insert_does_not_apply_to_a_held_slot_or_with_a_full_delta);
	tcase_add_test(examples, consume_clears_a_delta_that_reaches_the_batch);
	tcase_add_test(examples, refill_clears_a_delta_that_reaches_the_batch);
	tcase_add_test(examples, a_delta_stays_where_only_units_move);
	tcase_add_test(examples, a_lowered_delta_batch_clears_what_is_held);
	return unit_run(suite);
}
