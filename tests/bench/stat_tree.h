/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * stat_tree.h - a tree of owners with items, pairs of owner and item by number, and loads that may
 * run on both CPUs.
 */
#ifndef PCPCHARGE_BENCH_STAT_TREE_H
#define PCPCHARGE_BENCH_STAT_TREE_H

#include <pcpcharge/stat.h>

#include "bench.h"
#include "owner_tree.h"

#define STAT_ITEMS 4u /* of every owner; a power of two */

/* Pairs of owner and item are numbered from 1, those of an owner together. */
static inline uint32_t stat_pair_owner(uint32_t pair)
{
	return (pair - 1) / STAT_ITEMS + 1;
}

static inline uint32_t stat_pair_item(uint32_t pair)
{
	return (pair - 1) % STAT_ITEMS;
}

/* What is 0 is the default; the first item is the coupled one. */
struct stat_tree_config {
	uint32_t nr_owners;
	unsigned int depth;
	uint32_t nr_items, delta_batch;
	enum pcpc_engine engine;
};
int stat_tree_open(struct owner_tree *tree, const struct stat_tree_config *config);
/* Has every node exactly what was counted for it and below it, counted[pair]? Drains, flushes. */
bool stat_tree_exact(const struct owner_tree *tree, const int64_t *counted, uint32_t nr_pairs);

/* A load of a contest: operations by a list, on this CPU, or on both at once. */
#define STAT_STEPS 256
typedef void stat_steps(void *state, const uint16_t *ids); /* STAT_STEPS of them */
struct stat_load {
	stat_steps *steps;
	void *state;
	const uint16_t *ids;	 /* BENCH_IDS of them */
	struct bench_crew *crew; /* NULL: on this CPU only */
	uint32_t next;
	uint64_t done; /* operations, on all CPUs */

	_Alignas(128) _Atomic bool stop;
	uint32_t next_beside;
	uint64_t done_beside;
} __attribute__((aligned(128)));
/* For that long; returns ns an operation on this CPU. context: the load. */
double stat_load_run(void *context, double ns);

#endif
