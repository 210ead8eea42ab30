/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * stat_private.h - the inside of statistics, shared by stat.c, flush.c and the owners level.
 */
#ifndef PCPCHARGE_STAT_PRIVATE_H
#define PCPCHARGE_STAT_PRIVATE_H

#include <pcpcharge/stat.h>

#include "owner_private.h"

/*
 * A stat slot: 63..44 owner id, 43..32 key, 31..0 delta in two's complement. Owner 0: free. A word
 * with an owner and no delta keeps its place, and may be taken by any other. The stocks are those
 * of a charge cache of their own, so that its drain and its sequences serve; but what an insert
 * tests there, that no owner gets two slots, is neither needed nor true here: an owner has one for
 * each item, and of two for the same one each is applied in its time.
 */
#define STAT_KEY_SHIFT 32

/* An item of a node: node x nr_items + item. */
static inline uint32_t stat_key_of(pcpc_word word)
{
	return (uint32_t)(word >> STAT_KEY_SHIFT) & PCPC_ITEM_MAX;
}

static inline int32_t stat_delta_of(pcpc_word word)
{
	return (int32_t)(uint32_t)word;
}

/* All of a word but its delta. */
static inline pcpc_word stat_name_of(uint32_t owner, uint32_t key)
{
	return (pcpc_word)owner << PCPC_OWNER_SHIFT | (pcpc_word)key << STAT_KEY_SHIFT;
}

static inline uint64_t stat_size(int64_t delta)
{
	return delta < 0 ? 0 - (uint64_t)delta : (uint64_t)delta;
}

/*
 * What an owner has for statistics stands in a block of its own, in two parts 128 bytes apart: what
 * updates write (how much was applied since the last flush, and for each key what was applied
 * ever), and what flushes write (for each key the total of the subtree, and how much of what was
 * applied is in it).
 */
struct pcpc_applied {
	atomic_u64 updates; /* of the subtree; see pcpc_stat_updates() */
	_Atomic int64_t local[];
};

struct pcpc_total {
	_Atomic int64_t total;
	int64_t seen; /* under the flush mutex */
};

static inline struct pcpc_applied *applied_of(const struct pcpc_owner *owner)
{
	const struct pcpc_stats *stats = &owner->domain->stats;

	return (struct pcpc_applied *)(stats->blocks + owner->id * stats->block_size);
}

static inline struct pcpc_total *totals_of(const struct pcpc_owner *owner)
{
	const struct pcpc_stats *stats = &owner->domain->stats;

	return (struct pcpc_total *)(stats->blocks + owner->id * stats->block_size +
				     stats->totals_at);
}

void pcpc_stat_mark(const struct pcpc_owner *owner); /* stat.c */

/* Updates that are larger are counted as large as this. */
#define STAT_SIZE_MAX (1ull << 40)

/* Past this a level is counted no further, and a read flushes. */
static inline uint64_t stat_threshold(const struct pcpc_domain *domain)
{
	return 64ull * domain->nr_cpus * domain->stats.unit;
}

#endif
