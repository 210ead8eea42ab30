// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * rival_owners.c - the library's owners as a rival: pcpc_charge() and pcpc_uncharge(), called.
 *
 * As in the other trees every level has a max that is never reached. The misses are inside the
 * library, so only the program that counts them (owner_count.c) can tell of them.
 */
#include <pcpcharge/charge.h>

#include <stdlib.h>

#include "owner_count.h"
#include "owner_tree.h"

struct owned {
	struct owner_tree tree;
	enum pcpc_engine engine;
	bool halved; /* half as many slots as owners, or seven */
};

static enum bench_line line_of(const struct tree_shape *shape, uint32_t node)
{
	return !node ? BENCH_ROOT : node < shape->first_owner ? BENCH_BETWEEN : BENCH_LEAF;
}

static void owned_close(void *state)
{
	struct owned *owned = state;

	owner_count_forget();
	owner_tree_close(&owned->tree);
}

/* Stocks come in powers of two. */
static uint32_t half_of(uint32_t nr_owners)
{
	uint32_t stocks = 1;

	while (2 * stocks * PCPC_STOCK_SLOTS <= nr_owners / 2)
		stocks *= 2;
	return stocks;
}

static int owned_open(void *state, uint32_t nr_owners, unsigned int depth)
{
	struct owned *owned = state;
	const struct pcpc_domain_config config = {
		.size = sizeof(config),
		.batch = BENCH_BATCH,
		.engine = owned->engine,
		.index = PCPC_INDEX_CPU,
		.stocks_per_cpu = owned->halved ? half_of(nr_owners) : 0,
	};
	struct owner_tree *tree = &owned->tree;
	uint32_t i;
	int r = owner_tree_open(tree, &config, nr_owners, depth, OWNER_TREE_ENDLESS);

	if (r < 0)
		return r;
	for (i = 0; i < tree->shape.nr_nodes; i++)
		owner_count_learn(tree->nodes[i], line_of(&tree->shape, i));
	for (i = 1; r == 0 && i <= nr_owners; i++)
		r = pcpc_charge(tree->owners[i], BENCH_HELD);
	if (r < 0)
		owned_close(owned);
	return r;
}

#define CHECKED_NODES 128 /* above the owners: to look at one, all stocks are looked at */

static bool owned_exact(void *state, const int64_t *consumed)
{
	const struct owned *owned = state;
	const struct tree_shape *shape = &owned->tree.shape;
	uint64_t *sums = calloc(shape->nr_nodes, sizeof(*sums));
	bool exact = sums != NULL;
	uint32_t i, owner;

	for (owner = 1; exact && owner <= shape->nr_owners; owner++)
		sums[shape->first_owner + owner - 1] = (uint64_t)(BENCH_HELD + consumed[owner]);
	for (i = shape->nr_nodes; exact && i-- > 0;) {
		if (i >= shape->first_owner || i < CHECKED_NODES)
			exact = pcpc_owner_usage_exact(owned->tree.nodes[i]) == sums[i];
		if (i)
			sums[tree_shape_parent(shape, i)] += sums[i];
	}
	free(sums);
	return exact;
}

static PCPC_ALWAYS_INLINE void owned_consume(struct owned *owned, uint32_t owner)
{
	if (PCPC_UNLIKELY(pcpc_charge(owned->tree.owners[owner], 1) < 0))
		abort();
}

static PCPC_ALWAYS_INLINE void owned_refill(struct owned *owned, uint32_t owner)
{
	pcpc_uncharge(owned->tree.owners[owner], 1);
}

BENCH_LOOPS(owned, struct owned)

#define OWNED_RIVAL                                                                          \
	.open = owned_open, .close = owned_close, .exact = owned_exact, .pair = owned_pairs, \
	.consume = owned_consumes, .refill = owned_refills

static struct owned rseq_state = { .engine = PCPC_ENGINE_AUTO };
static struct owned atomic_state = { .engine = PCPC_ENGINE_ATOMIC };
static struct owned half_state = { .engine = PCPC_ENGINE_AUTO, .halved = true };

const struct rival rival_owners = {
	.name = "owners",
	.label = "owners",
	.state = &rseq_state,
	OWNED_RIVAL,
};
const struct rival rival_owners_atomic = {
	.name = "owners_atomic",
	.label = "owners, atomic engine",
	.state = &atomic_state,
	OWNED_RIVAL,
};
const struct rival rival_owners_half = {
	.name = "owners_half",
	.label = "owners, slots for half of them",
	.state = &half_state,
	OWNED_RIVAL,
};
