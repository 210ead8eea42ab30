// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * rival_stats.c - the library's statistics as a rival: pcpc_stat_add(), called.
 *
 * What the harness calls an owner is here a pair of owner and item; to consume is to count one up.
 */
#include <stdlib.h>

#include "stat_bench.h"
#include "stat_tree.h"

struct counted {
	struct owner_tree tree;
	enum pcpc_engine engine;
	uint32_t nr_pairs;
};

static int counted_open(void *state, uint32_t nr_pairs, unsigned int depth)
{
	struct counted *counted = state;
	const struct stat_tree_config config = {
		.nr_owners = stat_pair_owner(nr_pairs),
		.depth = depth,
		.nr_items = STAT_ITEMS,
		.engine = counted->engine,
	};

	counted->nr_pairs = nr_pairs;
	return stat_tree_open(&counted->tree, &config);
}

static void counted_close(void *state)
{
	struct counted *counted = state;

	owner_tree_close(&counted->tree);
}

static bool counted_exact(void *state, const int64_t *consumed)
{
	const struct counted *counted = state;

	return stat_tree_exact(&counted->tree, consumed, counted->nr_pairs);
}

static PCPC_ALWAYS_INLINE void counted_consume(struct counted *counted, uint32_t pair)
{
	pcpc_stat_add(counted->tree.owners[stat_pair_owner(pair)], stat_pair_item(pair), 1);
}

static PCPC_ALWAYS_INLINE void counted_refill(struct counted *counted, uint32_t pair)
{
	pcpc_stat_add(counted->tree.owners[stat_pair_owner(pair)], stat_pair_item(pair), -1);
}

BENCH_LOOPS(counted, struct counted)

#define COUNTED_RIVAL                                                         \
	.open = counted_open, .close = counted_close, .exact = counted_exact, \
	.pair = counted_pairs, .consume = counted_consumes, .refill = counted_refills

static struct counted rseq_state = { .engine = PCPC_ENGINE_AUTO };
static struct counted atomic_state = { .engine = PCPC_ENGINE_ATOMIC };

const struct rival rival_stats = {
	.name = "stats",
	.label = "pcpc_stat_add",
	.state = &rseq_state,
	COUNTED_RIVAL,
};
const struct rival rival_stats_atomic = {
	.name = "stats_atomic",
	.label = "pcpc_stat_add, atomic engine",
	.state = &atomic_state,
	COUNTED_RIVAL,
};
