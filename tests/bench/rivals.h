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

/* Whose counter it is. */
enum bench_line { BENCH_LEAF, BENCH_BETWEEN, BENCH_ROOT, BENCH_NR_LINES };

/* Rare events, counted where they happen and collected after a slice. */
struct bench_events {
	uint64_t misses;  /* consumes that went to the counters */
	uint64_t settled; /* refills that gave something back to them */
	/* With BENCH_COUNT only: read-modify-writes of counters that must be atomic. Those of a
	 * stock's lock, which a kernel would not need, are not among them. */
	uint64_t atomics[BENCH_NR_LINES];
	uint64_t peaks; /* those of them that only raised a peak */
};
extern _Thread_local struct bench_events bench_events;

static inline void bench_count(enum bench_line line)
{
#ifdef BENCH_COUNT
	bench_events.atomics[line]++;
#else
	(void)line;
#endif
}

typedef void bench_loop(const struct bench_run *run);

struct rival {
	const char *name;  /* in the CSV file */
	const char *label; /* in the table and the plot */
	void *state;
	/* depth: levels below the root. Negative errno: not here. */
	int (*open)(void *state, uint32_t nr_owners, unsigned int depth);
	void (*close)(void *state); /* may be NULL */
	void (*leave)(void *state); /* this thread takes no part any more; may be NULL */
	/* After all have left: is every owner's total what it must be, BENCH_HELD and what was
	 * consumed and not refilled? That is, by owner, consumed[owner]; consumed[0] is the sum. */
	bool (*exact)(void *state, const int64_t *consumed);
	bench_loop *pair, *consume, *refill;
};

/* Each program has its own list; "ours", which the others are compared with, is first. */
extern const struct rival *const bench_rivals[];
extern const unsigned int bench_nr_rivals;

/* rivals.c */
extern const struct rival rival_local, rival_batch, rival_shared, rival_tree, rival_tree2,
	rival_tree3, rival_single, rival_seven;
/* rival_extern.c and rival_inline.c: the charge cache, with a tree of counters to settle to */
extern const struct rival rival_extern, rival_inline, rival_atomic, rival_mm_cid;
/* rival_owners.c: owners of the library */
extern const struct rival rival_owners, rival_owners_atomic, rival_owners_half;

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
 * A tree of counters with limits (semantics.md 4.2 to 4.6). All who batch settle to one of these,
 * each to its own.
 */
struct counter {
	_Atomic int64_t usage;
	_Atomic int64_t peak;
	int64_t max;
	struct counter *parent;
} __attribute__((aligned(64)));

#define BENCH_GROUP 16 /* children of a node, but of the root, which has all that are left */
#define BENCH_DEPTH_MAX 8

/* Nodes from the root down, those of a level together; owner 1 is the first of the last level. */
struct tree_shape {
	uint32_t nr_nodes, nr_owners;
	uint32_t first_owner;		     /* the node that is owner 1 */
	uint32_t first[BENCH_DEPTH_MAX + 2]; /* of each level; nr_nodes after the last */
};
void tree_shape_init(struct tree_shape *shape, uint32_t nr_owners, unsigned int depth);
/* node is not the root */
uint32_t tree_shape_parent(const struct tree_shape *shape, uint32_t node);

struct tree {
	struct tree_shape shape;
	struct counter *counters; /* by node */
	struct counter *owners;	  /* counter of owner 0, which does not exist */
};

int tree_open(struct tree *tree, uint32_t nr_owners, unsigned int depth);
void tree_close(struct tree *tree);

/* Is every owner's usage what it must be (see struct rival) and what its stocks hold, and every
 * parent's the sum of its children's? */
bool tree_exact(const struct tree *tree, const int64_t *consumed,
		uint64_t (*stocked)(const void *state, uint32_t owner), const void *state);

static inline void counter_count(const struct counter *at, const struct counter *leaf)
{
	bench_count(!at->parent ? BENCH_ROOT : at == leaf ? BENCH_LEAF : BENCH_BETWEEN);
}

/* Add first, test then, take back what an ancestor refuses. Relaxed: a counter carries nothing. */
static inline bool counter_charge(struct counter *counter, int64_t count)
{
	struct counter *at, *back;
	int64_t usage;

	for (at = counter; at; at = at->parent) {
		counter_count(at, counter);
		usage = atomic_fetch_add_explicit(&at->usage, count, memory_order_relaxed) + count;
		if (__builtin_expect(usage > at->max, 0)) {
			for (back = counter;; back = back->parent) {
				counter_count(back, counter);
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
	struct counter *at;

	for (at = counter; at; at = at->parent) {
		counter_count(at, counter);
		atomic_fetch_sub_explicit(&at->usage, count, memory_order_relaxed);
	}
}

/* Out of line, for slow paths. No limit is ever reached here; aborts if one is. */
void tree_charge_slow(struct tree *tree, uint32_t owner, int64_t count);
void tree_uncharge_slow(struct tree *tree, uint32_t owner, int64_t count);

/* Zeroed, aligned to 4096 bytes, and all of it in memory. NULL: none. */
void *bench_alloc(size_t bytes);

#endif
