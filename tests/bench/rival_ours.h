/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * rival_ours.h - the charge cache as a rival. Included by rival_extern.c and by rival_inline.c, of
 * which the latter asks for the inlined fast path; otherwise the two are one text.
 */
#ifndef PCPCHARGE_BENCH_RIVAL_OURS_H
#define PCPCHARGE_BENCH_RIVAL_OURS_H

#include <pcpcharge/pcpcharge.h>

#include <stdlib.h>

#include "rivals.h"

struct ours {
	struct pcpc_cache *cache;
	struct tree tree;
	enum pcpc_engine engine;
	enum pcpc_index index;
};

static const struct pcpc_marks ours_marks = { BENCH_HIGH, BENCH_LOW, 64 };

static int ours_open(void *state, uint32_t nr_owners, unsigned int depth)
{
	struct ours *ours = state;
	struct pcpc_cache_config config = { .size = sizeof(config),
					    .engine = ours->engine,
					    .index = ours->index };
	int r = pcpc_cache_create(&config, &ours->cache);

	if (r < 0)
		return r;
	r = tree_open(&ours->tree, nr_owners, depth);
	if (r < 0)
		pcpc_cache_destroy(ours->cache);
	return r;
}

static void ours_close(void *state)
{
	struct ours *ours = state;

	pcpc_cache_destroy(ours->cache);
	tree_close(&ours->tree);
}

static uint64_t ours_stocked(const void *state, uint32_t owner)
{
	const struct ours *ours = state;

	return pcpc_cache_stocked(ours->cache, owner);
}

static bool ours_exact(void *state, const int64_t *consumed)
{
	struct ours *ours = state;

	return tree_exact(&ours->tree, consumed, ours_stocked, ours);
}

static PCPC_COLD void ours_settle(struct ours *ours, const struct pcpc_deferred *deferred)
{
	bench_events.settled++;
	tree_uncharge_slow(&ours->tree, deferred->owner, (int64_t)deferred->count);
}

static PCPC_ALWAYS_INLINE void ours_put(struct ours *ours, uint32_t owner, uint64_t count)
{
	struct pcpc_deferred deferred;

	pcpc_cache_refill(ours->cache, owner, count, 0, &ours_marks, &deferred);
	if (PCPC_UNLIKELY(deferred.owner))
		ours_settle(ours, &deferred);
}

static PCPC_COLD void ours_miss(struct ours *ours, uint32_t owner)
{
	bench_events.misses++;
	tree_charge_slow(&ours->tree, owner, BENCH_BATCH);
	ours_put(ours, owner, BENCH_BATCH - 1);
}

/* With no delta a consume that hits defers nothing. */
static PCPC_ALWAYS_INLINE void ours_consume(struct ours *ours, uint32_t owner)
{
	struct pcpc_deferred deferred;

	if (PCPC_UNLIKELY(!pcpc_cache_consume(ours->cache, owner, 1, 0, &ours_marks, &deferred)))
		ours_miss(ours, owner);
}

static PCPC_ALWAYS_INLINE void ours_refill(struct ours *ours, uint32_t owner)
{
	ours_put(ours, owner, 1);
}

BENCH_LOOPS(ours, struct ours)

#define OURS_RIVAL                                                                       \
	.open = ours_open, .close = ours_close, .exact = ours_exact, .pair = ours_pairs, \
	.consume = ours_consumes, .refill = ours_refills

#endif
