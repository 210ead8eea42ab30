// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * rival_arrays.c - memcg's statistics, arrays for each CPU and owner; and one atomic an item.
 *
 * Written from semantics.md 5.1, 5.2 and 5.4. An update adds to the array of its owner on this CPU,
 * puts the owner on this CPU's list of those to flush, and walks to the root: at each level it adds
 * to this CPU's count of updates, and every 64 of these to the level's shared count, unless that is
 * past the threshold T. Nobody flushes here, so that soon all levels are past it; and so they are
 * at such rates most of the 2 s between two flushes. The variant "below T" is the other bound, of
 * levels that were just flushed: its T is never reached.
 *
 * A kernel adds with preemption off. In user space the thread may be moved, or another come on this
 * CPU in the middle: the variants without atomic adds are right only because the benchmark has one
 * thread on each CPU.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/rseq.h>
#include <sys/sysinfo.h>

#include "stat_bench.h"
#include "stat_tree.h"

#define EACH_CPU 64 /* updates that gather at a level on one CPU */

/* Shared by all CPUs. */
struct group {
	_Atomic uint64_t updates;
} __attribute__((aligned(64)));

/* Of one CPU. */
struct group_cpu {
	uint64_t updates;
	struct group_cpu *parent;
	struct group *group;
	struct group_cpu *next; /* on the list; itself: not on it */
	int64_t state[STAT_ITEMS];
} __attribute__((aligned(64)));

struct list_head {
	struct group_cpu *first;
} __attribute__((aligned(128)));

struct arrays {
	struct tree_shape shape;
	struct group *groups;	/* by node */
	struct group_cpu *cpus; /* by CPU and node */
	struct list_head *lists;
	uint32_t nr_cpus, nr_pairs;
	uint64_t threshold;
	bool below;
};

static struct group_cpu *group_cpu_of(const struct arrays *arrays, uint32_t cpu, uint32_t node)
{
	return &arrays->cpus[(size_t)cpu * arrays->shape.nr_nodes + node];
}

static void link_nodes(struct arrays *arrays, uint32_t cpu)
{
	struct group_cpu *at;
	uint32_t i;

	for (i = 0; i < arrays->shape.nr_nodes; i++) {
		at = group_cpu_of(arrays, cpu, i);
		at->group = &arrays->groups[i];
		at->next = at;
		if (i)
			at->parent =
				group_cpu_of(arrays, cpu, tree_shape_parent(&arrays->shape, i));
	}
}

static void arrays_close(void *state)
{
	struct arrays *arrays = state;

	free(arrays->groups);
	free(arrays->cpus);
	free(arrays->lists);
}

static int arrays_open(void *state, uint32_t nr_pairs, unsigned int depth)
{
	struct arrays *arrays = state;
	uint32_t cpu;

	/* The kernel keeps the CPU's number in the rseq area. */
	if (!__rseq_size)
		return -ENOSYS;
	tree_shape_init(&arrays->shape, stat_pair_owner(nr_pairs), depth);
	arrays->nr_pairs = nr_pairs;
	arrays->nr_cpus = (uint32_t)get_nprocs_conf();
	arrays->threshold = arrays->below ? UINT64_MAX : 64ull * (uint32_t)get_nprocs();
	arrays->groups = bench_alloc(arrays->shape.nr_nodes * sizeof(*arrays->groups));
	arrays->cpus = bench_alloc((size_t)arrays->nr_cpus * arrays->shape.nr_nodes *
				   sizeof(*arrays->cpus));
	arrays->lists = bench_alloc(arrays->nr_cpus * sizeof(*arrays->lists));
	if (!arrays->groups || !arrays->cpus || !arrays->lists) {
		arrays_close(arrays);
		return -ENOMEM;
	}
	for (cpu = 0; cpu < arrays->nr_cpus; cpu++)
		link_nodes(arrays, cpu);
	return 0;
}

/* Nothing gets lost on the lists either: who has counted is on one. */
static bool arrays_exact(void *state, const int64_t *consumed)
{
	const struct arrays *arrays = state;
	const struct group_cpu *at;
	uint32_t cpu, pair;
	int64_t sum;

	for (pair = 1; pair <= arrays->nr_pairs; pair++) {
		for (sum = 0, cpu = 0; cpu < arrays->nr_cpus; cpu++) {
			at = group_cpu_of(arrays, cpu,
					  arrays->shape.first_owner + stat_pair_owner(pair) - 1);
			sum += at->state[stat_pair_item(pair)];
			if (at->state[stat_pair_item(pair)] && at->next == at)
				return false;
		}
		if (sum != consumed[pair])
			return false;
	}
	return true;
}

/* Needs a real compare-and-exchange (semantics.md 5.4.2): a flush may take it off meanwhile. */
static __attribute__((noinline)) void put_on_list(struct arrays *arrays, uint32_t cpu,
						  struct group_cpu *at)
{
	struct list_head *list = &arrays->lists[cpu];
	struct group_cpu *self = at;

	if (!__atomic_compare_exchange_n(&at->next, &self, NULL, false, __ATOMIC_RELAXED,
					 __ATOMIC_RELAXED))
		return;
	at->next = __atomic_load_n(&list->first, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&list->first, &at->next, at, true, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED))
		;
}

/* One level past which enough has gathered here. Relaxed: counts. */
static PCPC_ALWAYS_INLINE void count_level(struct group_cpu *at, bool atomic)
{
	uint64_t updates;

	if (atomic) {
		if (__atomic_add_fetch(&at->updates, 1, __ATOMIC_RELAXED) < EACH_CPU)
			return;
		updates = __atomic_exchange_n(&at->updates, 0, __ATOMIC_RELAXED);
	} else {
		if (++at->updates < EACH_CPU)
			return;
		updates = at->updates;
		at->updates = 0;
	}
	atomic_fetch_add_explicit(&at->group->updates, updates, memory_order_relaxed);
}

static PCPC_ALWAYS_INLINE void count_pair(struct arrays *arrays, uint32_t pair, int64_t delta,
					  bool atomic)
{
	uint32_t cpu = *(volatile uint32_t *)((char *)__builtin_thread_pointer() + __rseq_offset +
					      offsetof(struct rseq, cpu_id));
	struct group_cpu *at =
		group_cpu_of(arrays, cpu, arrays->shape.first_owner + stat_pair_owner(pair) - 1);

	if (atomic)
		__atomic_fetch_add(&at->state[stat_pair_item(pair)], delta, __ATOMIC_RELAXED);
	else
		at->state[stat_pair_item(pair)] += delta;
	if (PCPC_UNLIKELY(at->next == at))
		put_on_list(arrays, cpu, at);
	for (; at; at = at->parent)
		if (atomic_load_explicit(&at->group->updates, memory_order_relaxed) <=
		    arrays->threshold)
			count_level(at, atomic);
	__asm__ __volatile__("" : : : "memory"); /* each change is made, not their sum */
}

static PCPC_ALWAYS_INLINE void plain_consume(struct arrays *arrays, uint32_t pair)
{
	count_pair(arrays, pair, 1, false);
}

static PCPC_ALWAYS_INLINE void plain_refill(struct arrays *arrays, uint32_t pair)
{
	count_pair(arrays, pair, -1, false);
}

static PCPC_ALWAYS_INLINE void atomic_consume(struct arrays *arrays, uint32_t pair)
{
	count_pair(arrays, pair, 1, true);
}

static PCPC_ALWAYS_INLINE void atomic_refill(struct arrays *arrays, uint32_t pair)
{
	count_pair(arrays, pair, -1, true);
}

BENCH_LOOPS(plain, struct arrays)
BENCH_LOOPS(atomic, struct arrays)

/* One atomic an item, for all owners: nobody knows who has what. */

struct shared_item {
	_Atomic int64_t total;
} __attribute__((aligned(128)));

struct shared_items {
	struct shared_item items[STAT_ITEMS];
	uint32_t nr_pairs;
};

static int shared_open(void *state, uint32_t nr_pairs, unsigned int depth)
{
	struct shared_items *shared = state;

	(void)depth;
	memset(shared, 0, sizeof(*shared));
	shared->nr_pairs = nr_pairs;
	return 0;
}

static bool shared_exact(void *state, const int64_t *consumed)
{
	struct shared_items *shared = state;
	int64_t sums[STAT_ITEMS] = { 0 };
	uint32_t i;

	for (i = 1; i <= shared->nr_pairs; i++)
		sums[stat_pair_item(i)] += consumed[i];
	for (i = 0; i < STAT_ITEMS && shared->items[i].total == sums[i]; i++)
		;
	return i == STAT_ITEMS;
}

static PCPC_ALWAYS_INLINE void shared_consume(struct shared_items *shared, uint32_t pair)
{
	atomic_fetch_add_explicit(&shared->items[stat_pair_item(pair)].total, 1,
				  memory_order_relaxed);
}

static PCPC_ALWAYS_INLINE void shared_refill(struct shared_items *shared, uint32_t pair)
{
	atomic_fetch_sub_explicit(&shared->items[stat_pair_item(pair)].total, 1,
				  memory_order_relaxed);
}

BENCH_LOOPS(shared, struct shared_items)

#define LOOPS_OF(name) .pair = name##_pairs, .consume = name##_consumes, .refill = name##_refills
#define ARRAYS_RIVAL .open = arrays_open, .close = arrays_close, .exact = arrays_exact

static struct arrays past_state, below_state = { .below = true };
static struct arrays past_atomic_state, below_atomic_state = { .below = true };
static struct shared_items shared_state;

const struct rival rival_arrays_past = {
	.name = "arrays_past",
	.label = "memcg, past T",
	.state = &past_state,
	ARRAYS_RIVAL,
	LOOPS_OF(plain),
};
const struct rival rival_arrays_below = {
	.name = "arrays_below",
	.label = "memcg, below T",
	.state = &below_state,
	ARRAYS_RIVAL,
	LOOPS_OF(plain),
};
const struct rival rival_arrays_past_atomic = {
	.name = "arrays_past_atomic",
	.label = "memcg, past T, atomic adds",
	.state = &past_atomic_state,
	ARRAYS_RIVAL,
	LOOPS_OF(atomic),
};
const struct rival rival_arrays_below_atomic = {
	.name = "arrays_below_atomic",
	.label = "memcg, below T, atomic adds",
	.state = &below_atomic_state,
	ARRAYS_RIVAL,
	LOOPS_OF(atomic),
};
const struct rival rival_item_atomic = {
	.name = "item_atomic",
	.label = "one shared atomic an item",
	.state = &shared_state,
	.open = shared_open,
	.exact = shared_exact,
	LOOPS_OF(shared),
};
