// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_engine_words.c - consume and refill of a cache on words at and around every boundary, by
 * each engine, against the plain model.
 *
 * test_words.c does so with the transitions; this one is for the fast paths, which decide by
 * arithmetic of their own what is a plain hit. The words are put into the stock directly. Built
 * like test_engines.c.
 */
#define _GNU_SOURCE
#include <pcpcharge/cache.h>

#include "model_support.h"

static struct pcpc_cache *cache;
static struct pcpc_stock *stock;

static const uint32_t owners[] = { 1, 2, 7, 8, 13, 1 << 19, PCPC_OWNER_MAX - 1, PCPC_OWNER_MAX };

static void check(const struct plain_stock *before, const struct plain_request *request,
		  bool consumes)
{
	struct plain_stock expected = *before;
	struct answer wanted = { false, { 0, 0, 0 } }, answer;
	int slot;

	stock->gate = 0;
	stock->hand = (uint32_t)before->hand;
	for (slot = 0; slot < PLAIN_SLOTS; slot++)
		stock->slot[slot] = plain_word_of(before->slot[slot]);
	if (consumes)
		wanted.hit = plain_stock_consume(&expected, request, &wanted.deferred);
	else
		plain_stock_refill(&expected, request, &wanted.deferred);
	answer = consumes ? cache_consume(cache, request) : cache_refill(cache, request);
	if (answer.hit == wanted.hit && same_slot(answer.deferred, wanted.deferred) &&
	    same_stock(stock, &expected))
		return;
	slot = (int)((request->owner - 1) % PLAIN_SLOTS);
	ck_abort_msg(
		"%s by owner %u of %" PRIu64 " and %" PRId64 ", marks %u %u %u, home %u:%u:%d: "
		"hit %d, deferred %u:%" PRIu64 ":%" PRId64 ", home %#" PRIx64 "; the model: "
		"hit %d, deferred %u:%" PRIu64 ":%" PRId64 ", home %#" PRIx64,
		consumes ? "consume" : "refill", (uint32_t)request->owner, (uint64_t)request->count,
		(int64_t)request->delta, (uint32_t)request->high, (uint32_t)request->low,
		(uint32_t)request->delta_batch, (uint32_t)before->slot[slot].owner,
		(uint32_t)before->slot[slot].count, (int)before->slot[slot].delta, answer.hit,
		(uint32_t)answer.deferred.owner, (uint64_t)answer.deferred.count,
		(int64_t)answer.deferred.delta, stock->slot[slot], wanted.hit,
		(uint32_t)wanted.deferred.owner, (uint64_t)wanted.deferred.count,
		(int64_t)wanted.deferred.delta, plain_word_of(expected.slot[slot]));
}

/* The owner's home holds this word; its neighbours in number hold theirs or nothing. */
static void check_home(struct plain_slot home, struct plain_request *request)
{
	struct plain_stock before = { .hand = 3 };

	before.slot[(request->owner - 1) % PLAIN_SLOTS] = home;
	check(&before, request, true);
	check(&before, request, false);
}

static const plain_wide counts[] = {
	0, 1, 2, 31, 32, 33, 63, 64, 65, PCPC_COUNT_MAX - 1, PCPC_COUNT_MAX
};
static const plain_wide more_counts[] = { PCPC_COUNT_MAX + 1,
					  (plain_wide)1 << 32,
					  ((plain_wide)1 << 32) + 1,
					  ((plain_wide)1 << 42) + 1,
					  (plain_wide)1 << 63,
					  UINT64_MAX - 1,
					  UINT64_MAX };
static const plain_wide deltas[] = {
	0, 1, -1, 2, 63, 64, -63, -64, 65, -65, PLAIN_DELTA_MAX, PLAIN_DELTA_MIN
};
static const plain_wide more_deltas[] = { PLAIN_DELTA_MAX + 1, PLAIN_DELTA_MIN - 1, 1 << 22,
					  -(1 << 22),	       INT64_MAX,	    INT64_MIN };
static const uint32_t marks[][3] = {
	{ 64, 32, 64 },
	{ 64, 64, 64 },
	{ 64, 0, 1 },
	{ 64, 32, 0 },
	{ 1, 0, 2 },
	{ PCPC_COUNT_MAX, PCPC_COUNT_MAX, PCPC_DELTA_MAX },
	{ PCPC_COUNT_MAX - 1, 0, 1 << 20 },
	{ 0, 0, 64 },
	{ PCPC_COUNT_MAX + 1, 32, 64 },
	{ UINT32_MAX, UINT32_MAX, 64 },
	{ 64, 65, 64 },
	{ 64, 32, PCPC_DELTA_MAX + 1 },
	{ 64, 32, UINT32_MAX },
};

#define LENGTH(array) ((int)(sizeof(array) / sizeof((array)[0])))

static void check_counts(plain_wide held, plain_wide delta, struct plain_request *request)
{
	static const int neighbours[] = { 0, 1, -1, 1 << 19 };
	plain_wide owner = request->owner, other;
	int count, i;

	for (count = 0; count < LENGTH(counts) + LENGTH(more_counts); count++) {
		request->count = count < LENGTH(counts) ? counts[count]
							: more_counts[count - LENGTH(counts)];
		for (i = 0; i < LENGTH(neighbours); i++) {
			other = i == 3 ? (owner ^ neighbours[i]) : owner + neighbours[i];
			if (other >= 1 && other <= PLAIN_OWNER_MAX)
				check_home((struct plain_slot){ other, held, delta }, request);
		}
	}
}

static bool open_engine(enum pcpc_engine engine)
{
	ck_assert(unit_pin(0));
	cache = unit_cache(engine, 1);
	if (cache)
		stock = stocks_here(cache);
	return cache != NULL;
}

/* Section 4, G13: counts of a word in the owner's home, or of an owner whose number is near. */
START_TEST(counts_at_every_boundary)
{
	static const int held_deltas[] = { 0, 1, -1, PLAIN_DELTA_MIN };
	struct plain_request request;
	int owner, mark, held, delta, moved;

	if (!open_engine(_i))
		return;
	for (owner = 0; owner < LENGTH(owners); owner++) {
		for (mark = 0; mark < LENGTH(marks); mark++) {
			request = plain_request_of(owners[owner], 0, 0, marks[mark][0],
						   marks[mark][1], marks[mark][2]);
			for (held = 0; held < LENGTH(counts); held++) {
				for (delta = 0; delta < LENGTH(held_deltas); delta++) {
					for (moved = -1; moved <= 1; moved++) {
						request.delta = moved;
						check_counts(counts[held], held_deltas[delta],
							     &request);
					}
				}
			}
		}
	}
	pcpc_cache_destroy(cache);
}
END_TEST

/* Section 4, G13: deltas of a word in the owner's home. */
START_TEST(deltas_at_every_boundary)
{
	struct plain_request request;
	int owner, mark, held, delta, count;

	if (!open_engine(_i))
		return;
	for (owner = 0; owner < LENGTH(owners); owner++) {
		for (mark = 0; mark < LENGTH(marks); mark++) {
			request = plain_request_of(owners[owner], 0, 0, marks[mark][0],
						   marks[mark][1], marks[mark][2]);
			for (held = 0; held < LENGTH(deltas); held++) {
				for (delta = 0; delta < LENGTH(deltas) + LENGTH(more_deltas);
				     delta++) {
					request.delta =
						delta < LENGTH(deltas)
							? deltas[delta]
							: more_deltas[delta - LENGTH(deltas)];
					for (count = 0; count <= 65; count += 13) {
						request.count = count;
						check_home((struct plain_slot){ request.owner, 26,
										deltas[held] },
							   &request);
					}
				}
			}
		}
	}
	pcpc_cache_destroy(cache);
}
END_TEST

/* Section 5: a full stock of others with the owner somewhere in it, or not at all. */
START_TEST(every_slot_and_every_hand)
{
	struct plain_stock before;
	struct plain_request request;
	int owner, where, hand, slot, vacant;

	if (!open_engine(_i))
		return;
	for (owner = 0; owner < LENGTH(owners); owner++) {
		for (where = -1; where < PLAIN_SLOTS; where++) {
			for (vacant = -1; vacant < PLAIN_SLOTS; vacant++) {
				for (hand = 0; hand < PLAIN_SLOTS; hand++) {
					before.hand = hand;
					for (slot = 0; slot < PLAIN_SLOTS; slot++)
						before.slot[slot] =
							(struct plain_slot){ 100 + slot, 20 + slot,
									     slot - 3 };
					if (vacant >= 0)
						before.slot[vacant].count =
							before.slot[vacant].delta = 0;
					if (where >= 0)
						before.slot[where] =
							(struct plain_slot){ owners[owner], 5, 0 };
					request = plain_request_of(owners[owner], 5, 0, 64, 32, 64);
					check(&before, &request, true);
					check(&before, &request, false);
					request.delta = -1;
					check(&before, &request, true);
					check(&before, &request, false);
				}
			}
		}
	}
	pcpc_cache_destroy(cache);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("engine words");
	TCase *tests = unit_case(suite, "words");
	const int first = PCPC_ENGINE_RSEQ, end = PCPC_ENGINE_ATOMIC + 1;

	tcase_add_loop_test(tests, counts_at_every_boundary, first, end);
	tcase_add_loop_test(tests, deltas_at_every_boundary, first, end);
	tcase_add_loop_test(tests, every_slot_and_every_hand, first, end);
	return unit_run(suite);
}
