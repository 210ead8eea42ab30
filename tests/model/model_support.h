/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * model_support.h - what the comparisons with the plain model share: stocks set and read directly,
 * and answers compared.
 */
#ifndef PCPCHARGE_TESTS_MODEL_SUPPORT_H
#define PCPCHARGE_TESTS_MODEL_SUPPORT_H

#include "cache_private.h"
#include "plain_model.h"
#include "unit_support.h"

#define NR_ENGINES 2

static const enum pcpc_engine engines[NR_ENGINES] = { PCPC_ENGINE_RSEQ, PCPC_ENGINE_ATOMIC };

/* What an operation has answered. */
struct answer {
	bool hit;
	struct plain_slot deferred;
};

static inline bool same_slot(struct plain_slot left, struct plain_slot right)
{
	return left.owner == right.owner && left.count == right.count && left.delta == right.delta;
}

static inline struct plain_slot plain_deferred(const struct pcpc_deferred *deferred)
{
	return (struct plain_slot){ deferred->owner, deferred->count, deferred->delta };
}

static inline struct pcpc_marks marks_of(const struct plain_request *request)
{
	return (struct pcpc_marks){ (uint32_t)request->high, (uint32_t)request->low,
				    (uint32_t)request->delta_batch };
}

static inline struct answer cache_consume(struct pcpc_cache *cache,
					  const struct plain_request *request)
{
	const struct pcpc_marks marks = marks_of(request);
	struct pcpc_deferred deferred;
	struct answer answer;

	answer.hit = pcpc_cache_consume(cache, (uint32_t)request->owner, (uint64_t)request->count,
					(int64_t)request->delta, &marks, &deferred);
	answer.deferred = plain_deferred(&deferred);
	return answer;
}

static inline struct answer cache_refill(struct pcpc_cache *cache,
					 const struct plain_request *request)
{
	const struct pcpc_marks marks = marks_of(request);
	struct pcpc_deferred deferred;

	pcpc_cache_refill(cache, (uint32_t)request->owner, (uint64_t)request->count,
			  (int64_t)request->delta, &marks, &deferred);
	return (struct answer){ false, plain_deferred(&deferred) };
}

/* The stocks of the CPU that this thread is pinned to, or of the number that the atomic engine has
 * given it. Found by putting a unit there. */
static inline struct pcpc_stock *stocks_here(struct pcpc_cache *cache)
{
	struct plain_request request = plain_request_of(1, 1, 0, 1, 0, 1);
	struct pcpc_stock *stock;
	uint32_t index;

	ck_assert_uint_eq((unsigned int)cache_refill(cache, &request).deferred.owner, 0);
	for (index = 0; index < cache->nr_indices; index++) {
		stock = pcpc_cache_line(cache, (size_t)index * cache->stocks_per_cpu);
		if (stock->slot[0]) {
			ck_assert_uint_eq(stock->slot[0],
					  plain_word_of((struct plain_slot){ 1, 1, 0 }));
			stock->slot[0] = 0;
			return stock;
		}
	}
	ck_abort_msg("a refill went nowhere");
	return NULL;
}

/* Quiet while all is well: it runs millions of times. */
static inline bool same_stock(const struct pcpc_stock *stock, const struct plain_stock *plain)
{
	int slot;

	if (stock->gate || (int)stock->hand != plain->hand)
		return false;
	for (slot = 0; slot < PLAIN_SLOTS; slot++)
		if (stock->slot[slot] != plain_word_of(plain->slot[slot]))
			return false;
	return true;
}

#endif
