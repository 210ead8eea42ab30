/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * cache_private.h - the inside of a cache, shared by cache.c, drain.c and fork.c.
 */
#ifndef PCPCHARGE_CACHE_PRIVATE_H
#define PCPCHARGE_CACHE_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include <pcpcharge/cache.h>
#include <pcpcharge/inline.h>

#include "percpu.h"

/* Words a drain takes before it opens its gates and settles. */
#define PCPC_DRAIN_WORDS 4096
#define PCPC_DRAIN_LINES (PCPC_DRAIN_WORDS / PCPC_STOCK_SLOTS)

/* What one caller of pcpc_cache_drain() wants; on that caller's stack. */
struct pcpc_wish {
	struct pcpc_wish *next;
	pcpc_match_fn *match;
	pcpc_settle_fn *settle;
	void *context;
	int result;  /* under the drain mutex */
	bool served; /* under the drain mutex */
};

/* A word that is out of its slot, and whose settle function gets it. */
struct pcpc_taken {
	pcpc_word word;
	struct pcpc_wish *wish;
};

/*
 * One mapping: this structure, then the stocks of index 0, 1, ... The two fast lines are read by
 * every operation and, the limits aside, never written once the cache is made. What drains write
 * stands 128 bytes apart from them.
 */
struct pcpc_cache {
	struct pcpc_fast fast_inline; /* first: what inlined code in other objects reads */
	struct pcpc_fast fast; /* the same for the library's own functions; its limit is constant */

	/* Constant. */
	enum pcpc_engine engine;
	enum pcpc_index index;
	uint32_t nr_indices;
	uint32_t stocks_per_cpu;
	void *mapping;	      /* begins a little before this structure */
	size_t mapped;	      /* bytes of it */
	size_t stocks_offset; /* of index 0 in it */
	_Atomic uint32_t *
		highest; /* per index: the highest id ever inserted there; what a drain must scan */

	/* Under the drain mutex, but for the list head and the counters, which are read from
	 * outside. */
	_Alignas(128) pthread_mutex_t drain_mutex;
	_Atomic(pthread_t) drainer; /* whoever holds it */
	_Atomic(struct pcpc_wish *) wishes;
	atomic_uint_fast64_t drains, rounds, membarriers;
	uint32_t line[PCPC_DRAIN_LINES]; /* index * stocks_per_cpu + stock, of the lines of this
					    round */
	struct pcpc_taken taken[PCPC_DRAIN_WORDS];

	/* Under the list mutex of fork.c. */
	struct pcpc_cache *next;
};

_Static_assert(offsetof(struct pcpc_cache, drain_mutex) >= 256,
	       "what drains write is 128 bytes from what all read");

/* The line that holds an owner at one index, which must be below nr_indices. */
static inline struct pcpc_stock *pcpc_cache_stock(const struct pcpc_cache *cache, uint32_t index,
						  uint32_t owner)
{
	uintptr_t word = (uintptr_t)pcpc_fast_word(&cache->fast, index, owner);

	return (struct pcpc_stock *)(word & ~(uintptr_t)(sizeof(struct pcpc_stock) - 1));
}

/* cache.c: copies a public structure that may be older or newer than this library. */
int pcpc_read_struct(void *ret, size_t known, size_t first, const void *given);

/* cache.c: where the running thread is now; false: no index of this cache. */
bool pcpc_cache_locate(const struct pcpc_cache *cache, struct pcpc_place *ret_place);

/* cache.c: before an insert, so that whoever drains after it scans far enough. */
void pcpc_note_highest(struct pcpc_cache *cache, uint32_t index, uint32_t owner);

/* cache.c: the commit of the cache's engine. */
enum pcpc_outcome pcpc_cache_commit(const struct pcpc_cache *cache, const struct pcpc_place *place,
				    struct pcpc_stock *stock, uint32_t slot, pcpc_word old_word,
				    pcpc_word new_word);

/* cache.c: has the running CPU's stock a slot for this owner, and how many units are in it? A hint.
 */
bool pcpc_cache_peek(struct pcpc_cache *cache, uint32_t owner, uint32_t *ret_count);

/* cache.c: the units stocked on all CPUs for the owners that match; takes nothing out. A snapshot.
 */
uint64_t pcpc_cache_sum(struct pcpc_cache *cache, pcpc_match_fn *match, void *context);

/* drain.c: how many stocks of one index can hold anything. */
uint32_t pcpc_stocks_to_scan(const struct pcpc_cache *cache, uint32_t index);

/* The stock with that number, counted through all indices. */
static inline struct pcpc_stock *pcpc_cache_line(const struct pcpc_cache *cache, size_t line)
{
	return (struct pcpc_stock *)cache->fast.words + line;
}

/* fork.c: every live cache is on one list, so that fork finds their mutexes. Both take the list
 * mutex. Adding may answer -ENOMEM, the first time. */
int pcpc_fork_add(struct pcpc_cache *cache);
void pcpc_fork_remove(struct pcpc_cache *cache);

/* What the level above does in fork's handlers, between the list mutex and the drain mutexes. */
struct pcpc_fork_level {
	void (*prepare)(void);
	void (*parent)(void);
	void (*child)(void);
};

/* fork.c: the list mutex, for a list of the level above; which makes itself known the first time.
 */
void pcpc_fork_lock(const struct pcpc_fork_level *level);
void pcpc_fork_unlock(void);

/* fork.c: calls visit for every live cache, under the list mutex. */
void pcpc_fork_each(void (*visit)(struct pcpc_cache *cache));

#endif
