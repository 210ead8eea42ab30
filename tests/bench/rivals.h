/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * rivals.h - what the benchmark compares: each rival counts units for owners in its own way.
 *
 * A rival stands in one file with its loops, so that the compiler may inline its operations into
 * them; only the extern forms of ours pay for a call. That favours the rivals. None of them keeps
 * references on owners, which memcg's stocks must: that favours them too.
 */
#ifndef PCPCHARGE_BENCH_RIVALS_H
#define PCPCHARGE_BENCH_RIVALS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BENCH_BATCH 64 /* units taken from a counter at once, for all who batch */
#define BENCH_HIGH 64
#define BENCH_LOW 32
#define BENCH_OWNERS_MAX 20000
#define BENCH_IDS 65536 /* length of the list of owners chosen at random; a power of two */
#define BENCH_HELD                                                                 \
	(1 << 30) /* units of each owner that are held all the time: an uncharging \
		     thread may run ahead of a charging one */

/* One slice of work for one thread. */
struct bench_run {
	void *state;
	const uint16_t *ids; /* BENCH_IDS of them, each 1..number of owners */
	uint32_t first, pairs;
};

/* Rare events, counted where they happen and collected after a slice. */
struct bench_events {
	uint64_t misses;  /* consumes that went to the counters */
	uint64_t settled; /* refills that gave something back to them */
};
extern _Thread_local struct bench_events bench_events;

typedef void bench_loop(const struct bench_run *run);

struct rival {
	const char *name;  /* in the CSV file */
	const char *label; /* in the table and the plot */
	void *state;
	int (*open)(void *state, uint32_t nr_owners); /* negative errno: not here */
	void (*close)(void *state);		      /* may be NULL */
	void (*leave)(void *state); /* this thread takes no part any more; may be NULL */
	/* After all have left: is every owner's total what it must be? */
	bool (*exact)(void *state);
	bench_loop *pair, *consume, *refill;
};

extern const struct rival *const bench_rivals[];
extern const unsigned int bench_nr_rivals;

/* rival_extern.c and rival_inline.c */
extern const struct rival rival_extern, rival_inline, rival_atomic, rival_mm_cid;

/* The three loops, from two inline functions name_consume(state, owner) and name_refill(). */
#define BENCH_LOOP(name, type, operations)                                    \
	static void name(const struct bench_run *run)                         \
	{                                                                     \
		const struct bench_run here = *run; /* in registers */        \
		type *state = here.state;                                     \
		uint32_t i, owner;                                            \
                                                                              \
		for (i = 0; i < here.pairs; i++) {                            \
			owner = here.ids[(here.first + i) & (BENCH_IDS - 1)]; \
			operations                                            \
		}                                                             \
	}
#define BENCH_LOOPS(name, type)                                                                    \
	BENCH_LOOP(name##_pairs, type, name##_consume(state, owner); name##_refill(state, owner);) \
	BENCH_LOOP(name##_consumes, type, name##_consume(state, owner);)                           \
	BENCH_LOOP(name##_refills, type, name##_refill(state, owner);)

/*
 * A tree of counters with limits (semantics.md 4.2 to 4.6), two or three levels. All who batch
 * settle to one of these, each to its own.
 */
struct counter {
	_Atomic int64_t usage;
	_Atomic int64_t peak;
	int64_t max;
	struct counter *parent;
} __attribute__((aligned(64)));

#define BENCH_GROUP 16 /* owners to a counter of the middle level */

struct tree {
	struct counter *counters; /* root, then the middle level, then owner 1, ... */
	struct counter *owners;	  /* counter of owner 0, which does not exist */
	uint32_t nr_owners, nr_groups;
};

int tree_open(struct tree *tree, uint32_t nr_owners, unsigned int levels);
void tree_close(struct tree *tree);

/* Is every owner's usage BENCH_HELD and what its stocks hold, and every parent's the sum of its
 * children's? */
bool tree_exact(const struct tree *tree, uint64_t (*stocked)(const void *state, uint32_t owner),
		const void *state);

/* Add first, test then, take back what an ancestor refuses. Relaxed: a counter carries nothing. */
static inline bool counter_charge(struct counter *counter, int64_t count)
{
	struct counter *at, *back;
	int64_t usage;

	for (at = counter; at; at = at->parent) {
		usage = atomic_fetch_add_explicit(&at->usage, count, memory_order_relaxed) + count;
		if (__builtin_expect(usage > at->max, 0)) {
			for (back = counter;; back = back->parent) {
				atomic_fetch_sub_explicit(&back->usage, count,
							  memory_order_relaxed);
				if (back == at)
					return false;
			}
		}
		if (usage > atomic_load_explicit(&at->peak, memory_order_relaxed))
			atomic_store_explicit(&at->peak, usage, memory_order_relaxed);
	}
	return true;
}

static inline void counter_uncharge(struct counter *counter, int64_t count)
{
	for (; counter; counter = counter->parent)
		atomic_fetch_sub_explicit(&counter->usage, count, memory_order_relaxed);
}

/* Out of line, for slow paths. No limit is ever reached here; aborts if one is. */
void tree_charge_slow(struct tree *tree, uint32_t owner, int64_t count);
void tree_uncharge_slow(struct tree *tree, uint32_t owner, int64_t count);

/* Zeroed, aligned to 4096 bytes, and all of it in memory. NULL: none. */
void *bench_alloc(size_t bytes);

#endif
