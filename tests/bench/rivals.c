// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * rivals.c - the ways to count that the charge cache is compared with, and the tree of counters
 * that all who batch settle to.
 *
 * Written from semantics.md sections 1 and 4. Each does all of its work: limits are tested, peaks
 * kept, locks taken with the atomic exchange that user space needs where a kernel would disable
 * preemption.
 */
#define _GNU_SOURCE
#include "rivals.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/rseq.h>
#include <sys/sysinfo.h>

#define ALWAYS_INLINE inline __attribute__((always_inline))
#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)

_Thread_local struct bench_events bench_events;

void *bench_alloc(size_t bytes)
{
	void *memory = aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095);

	if (memory)
		memset(memory, 0, bytes);
	return memory;
}

/* The tree. */

void tree_shape_init(struct tree_shape *shape, uint32_t nr_owners, unsigned int depth)
{
	uint32_t width[BENCH_DEPTH_MAX + 1];
	unsigned int level;

	width[depth] = nr_owners;
	for (level = depth; level-- > 0;)
		width[level] = (width[level + 1] + BENCH_GROUP - 1) / BENCH_GROUP;
	width[0] = 1;
	shape->first[0] = 0;
	for (level = 0; level <= depth; level++)
		shape->first[level + 1] = shape->first[level] + width[level];
	shape->nr_nodes = shape->first[depth + 1];
	shape->nr_owners = nr_owners;
	shape->first_owner = shape->first[depth];
}

uint32_t tree_shape_parent(const struct tree_shape *shape, uint32_t node)
{
	unsigned int level = 1;

	while (node >= shape->first[level + 1])
		level++;
	if (level == 1)
		return 0;
	return shape->first[level - 1] + (node - shape->first[level]) / BENCH_GROUP;
}

int tree_open(struct tree *tree, uint32_t nr_owners, unsigned int depth)
{
	struct tree_shape *shape = &tree->shape;
	struct counter *counters;
	uint32_t i;

	tree_shape_init(shape, nr_owners, depth);
	counters = bench_alloc(shape->nr_nodes * sizeof(*counters));
	if (!counters)
		return -ENOMEM;
	tree->counters = counters;
	tree->owners = counters + shape->first_owner - 1;
	for (i = 0; i < shape->nr_nodes; i++) {
		counters[i].max = INT64_MAX / 2;
		if (i)
			counters[i].parent = &counters[tree_shape_parent(shape, i)];
	}
	for (i = 1; i <= nr_owners; i++)
		tree_charge_slow(tree, i, BENCH_HELD);
	return 0;
}

void tree_close(struct tree *tree)
{
	free(tree->counters);
	tree->counters = NULL;
}

void tree_charge_slow(struct tree *tree, uint32_t owner, int64_t count)
{
	if (!counter_charge(&tree->owners[owner], count))
		abort();
}

void tree_uncharge_slow(struct tree *tree, uint32_t owner, int64_t count)
{
	counter_uncharge(&tree->owners[owner], count);
}

bool tree_exact(const struct tree *tree, const int64_t *consumed,
		uint64_t (*stocked)(const void *state, uint32_t owner), const void *state)
{
	const struct counter *counters = tree->counters;
	const uint32_t first = tree->shape.first_owner;
	int64_t *sums = calloc(tree->shape.nr_nodes, sizeof(*sums));
	bool exact = sums != NULL;
	uint32_t i, owner;

	for (owner = 1; exact && owner <= tree->shape.nr_owners; owner++)
		sums[first + owner - 1] = BENCH_HELD + consumed[owner] +
					  (stocked ? (int64_t)stocked(state, owner) : 0);
	for (i = tree->shape.nr_nodes; exact && i-- > 0;) {
		exact = counters[i].usage == sums[i];
		if (i)
			sums[counters[i].parent - counters] += counters[i].usage;
	}
	free(sums);
	return exact;
}

/* A counter per owner in each thread: no limit, no common sum. The floor. */

static _Thread_local int64_t local_counter[BENCH_OWNERS_MAX + 1];

struct local_sums {
	_Atomic int64_t sum[BENCH_OWNERS_MAX + 1];
	uint32_t nr_owners;
};

static int local_open(void *state, uint32_t nr_owners, unsigned int depth)
{
	struct local_sums *sums = state;

	(void)depth;
	memset(sums, 0, sizeof(*sums));
	sums->nr_owners = nr_owners;
	return 0;
}

static void local_leave(void *state)
{
	struct local_sums *sums = state;
	uint32_t i;

	for (i = 1; i <= sums->nr_owners; i++) {
		sums->sum[i] += local_counter[i];
		local_counter[i] = 0;
	}
}

static bool local_exact(void *state, const int64_t *consumed)
{
	struct local_sums *sums = state;
	uint32_t i;

	for (i = 1; i <= sums->nr_owners && sums->sum[i] == consumed[i]; i++)
		;
	return i > sums->nr_owners;
}

static ALWAYS_INLINE void local_consume(struct local_sums *sums, uint32_t owner)
{
	(void)sums;
	local_counter[owner]++;
	__asm__ __volatile__("" : : : "memory"); /* each change is made, not their sum */
}

static ALWAYS_INLINE void local_refill(struct local_sums *sums, uint32_t owner)
{
	(void)sums;
	local_counter[owner]--;
	__asm__ __volatile__("" : : : "memory");
}

BENCH_LOOPS(local, struct local_sums)

/* One atomic for all owners, with a limit. */

static int shared_open(void *state, uint32_t nr_owners, unsigned int depth)
{
	struct counter *counter = state;

	(void)nr_owners;
	(void)depth;
	*counter = (struct counter){ .usage = BENCH_HELD, .max = INT64_MAX / 2 };
	return 0;
}

static bool shared_exact(void *state, const int64_t *consumed)
{
	struct counter *counter = state;

	return counter->usage == BENCH_HELD + consumed[0];
}

static ALWAYS_INLINE void shared_consume(struct counter *counter, uint32_t owner)
{
	(void)owner;
	if (UNLIKELY(!counter_charge(counter, 1)))
		abort();
}

static ALWAYS_INLINE void shared_refill(struct counter *counter, uint32_t owner)
{
	(void)owner;
	counter_uncharge(counter, 1);
}

BENCH_LOOPS(shared, struct counter)

/* An atomic for each owner and its ancestors: exact limits at every level, no stock. */

static int any_tree_open(void *state, uint32_t nr_owners, unsigned int depth)
{
	return tree_open(state, nr_owners, depth);
}

static int tree2_open(void *state, uint32_t nr_owners, unsigned int depth)
{
	(void)depth;
	return tree_open(state, nr_owners, 1);
}

static int tree3_open(void *state, uint32_t nr_owners, unsigned int depth)
{
	(void)depth;
	return tree_open(state, nr_owners, 2);
}

static void any_tree_close(void *state)
{
	tree_close(state);
}

static bool any_tree_exact(void *state, const int64_t *consumed)
{
	return tree_exact(state, consumed, NULL, NULL);
}

static ALWAYS_INLINE void tree_consume(struct tree *tree, uint32_t owner)
{
	if (UNLIKELY(!counter_charge(&tree->owners[owner], 1)))
		abort();
}

static ALWAYS_INLINE void tree_refill(struct tree *tree, uint32_t owner)
{
	counter_uncharge(&tree->owners[owner], 1);
}

BENCH_LOOPS(tree, struct tree)

/* A batch for each owner in each thread: no limit is missed, but threads x batch lie about. */

static _Thread_local uint32_t batch_units[BENCH_OWNERS_MAX + 1];

static void batch_leave(void *state)
{
	struct tree *tree = state;
	uint32_t i;

	for (i = 1; i <= tree->shape.nr_owners; i++) {
		tree_uncharge_slow(tree, i, batch_units[i]);
		batch_units[i] = 0;
	}
}

static ALWAYS_INLINE void batch_consume(struct tree *tree, uint32_t owner)
{
	if (LIKELY(batch_units[owner])) {
		batch_units[owner]--;
	} else {
		bench_events.misses++;
		tree_charge_slow(tree, owner, BENCH_BATCH);
		batch_units[owner] = BENCH_BATCH - 1;
	}
	__asm__ __volatile__("" : : : "memory");
}

static ALWAYS_INLINE void batch_refill(struct tree *tree, uint32_t owner)
{
	uint32_t units = batch_units[owner] + 1;

	if (UNLIKELY(units > BENCH_HIGH)) {
		bench_events.settled++;
		tree_uncharge_slow(tree, owner, units - BENCH_LOW);
		units = BENCH_LOW;
	}
	batch_units[owner] = units;
	__asm__ __volatile__("" : : : "memory");
}

BENCH_LOOPS(batch, struct tree)

/*
 * memcg's stocks, one line a CPU, under a lock. The line is found by the CPU number of the rseq
 * area, as ours is; the thread may be moved after that, so the lock is a real one. Whoever finds it
 * taken goes to the counters.
 */
#define LOCKED_SLOTS 7

struct locked_line {
	uint8_t lock;
	uint8_t units[LOCKED_SLOTS];
	struct counter *owner[LOCKED_SLOTS];
	uint8_t hand; /* on the next line */
} __attribute__((aligned(256)));

struct locked {
	struct tree tree;
	struct locked_line *lines;
	uint32_t nr_cpus;
};

static int locked_open(void *state, uint32_t nr_owners, unsigned int depth)
{
	struct locked *locked = state;
	int r = tree_open(&locked->tree, nr_owners, depth);

	if (r < 0)
		return r;
	locked->nr_cpus = (uint32_t)get_nprocs_conf();
	locked->lines = bench_alloc(locked->nr_cpus * sizeof(*locked->lines));
	if (locked->lines)
		return 0;
	tree_close(&locked->tree);
	return -ENOMEM;
}

static void locked_close(void *state)
{
	struct locked *locked = state;

	free(locked->lines);
	tree_close(&locked->tree);
}

static uint64_t locked_stocked(const void *state, uint32_t owner)
{
	const struct locked *locked = state;
	uint64_t stocked = 0;
	uint32_t cpu, slot;

	for (cpu = 0; cpu < locked->nr_cpus; cpu++)
		for (slot = 0; slot < LOCKED_SLOTS; slot++)
			if (locked->lines[cpu].owner[slot] == &locked->tree.owners[owner])
				stocked += locked->lines[cpu].units[slot];
	return stocked;
}

static bool locked_exact(void *state, const int64_t *consumed)
{
	struct locked *locked = state;

	return tree_exact(&locked->tree, consumed, locked_stocked, locked);
}

static ALWAYS_INLINE struct locked_line *locked_line(struct locked *locked)
{
	uint32_t cpu = *(volatile uint32_t *)((char *)__builtin_thread_pointer() + __rseq_offset +
					      offsetof(struct rseq, cpu_id));

	/* Without rseq all share a line: right, and slow. */
	return &locked->lines[LIKELY(cpu < locked->nr_cpus) ? cpu : 0];
}

static ALWAYS_INLINE bool line_trylock(struct locked_line *line)
{
	return !__atomic_exchange_n(&line->lock, 1, __ATOMIC_ACQUIRE);
}

static ALWAYS_INLINE void line_unlock(struct locked_line *line)
{
	__atomic_store_n(&line->lock, 0, __ATOMIC_RELEASE);
}

/* One owner a CPU (semantics.md's V1): another owner's refill drains it, as does going over. */

static ALWAYS_INLINE bool single_try_consume(struct locked *locked, struct counter *owner)
{
	struct locked_line *line = locked_line(locked);
	bool hit = false;

	if (!line_trylock(line))
		return false;
	if (line->owner[0] == owner && line->units[0]) {
		line->units[0]--;
		hit = true;
	}
	line_unlock(line);
	return hit;
}

static ALWAYS_INLINE void single_drain(struct locked_line *line)
{
	if (line->units[0]) {
		bench_events.settled++;
		counter_uncharge(line->owner[0], line->units[0]);
		line->units[0] = 0;
	}
	line->owner[0] = NULL;
}

static ALWAYS_INLINE void single_put(struct locked *locked, struct counter *owner, uint8_t count)
{
	struct locked_line *line = locked_line(locked);

	if (!line_trylock(line)) {
		counter_uncharge(owner, count);
		return;
	}
	if (line->owner[0] != owner) {
		single_drain(line);
		line->owner[0] = owner;
	}
	line->units[0] += count;
	if (line->units[0] > BENCH_BATCH)
		single_drain(line);
	line_unlock(line);
}

static ALWAYS_INLINE void single_consume(struct locked *locked, uint32_t id)
{
	struct counter *owner = &locked->tree.owners[id];

	if (LIKELY(single_try_consume(locked, owner)))
		return;
	bench_events.misses++;
	if (!counter_charge(owner, BENCH_BATCH))
		abort();
	single_put(locked, owner, BENCH_BATCH - 1);
}

static ALWAYS_INLINE void single_refill(struct locked *locked, uint32_t id)
{
	single_put(locked, &locked->tree.owners[id], 1);
}

BENCH_LOOPS(single, struct locked)

/* Seven owners a CPU, trimmed from high to low, evicted round robin; what a refill takes out is
 * settled after the lock is given up (V4+defer). */

static ALWAYS_INLINE bool seven_try_consume(struct locked *locked, struct counter *owner)
{
	struct locked_line *line = locked_line(locked);
	bool hit = false;
	uint32_t slot;

	if (!line_trylock(line))
		return false;
	for (slot = 0; slot < LOCKED_SLOTS; slot++) {
		if (line->owner[slot] != owner)
			continue;
		if (line->units[slot]) {
			hit = true;
			if (!--line->units[slot])
				line->owner[slot] = NULL;
		}
		break;
	}
	line_unlock(line);
	return hit;
}

static ALWAYS_INLINE void seven_put(struct locked *locked, struct counter *owner, uint8_t count)
{
	struct locked_line *line = locked_line(locked);
	struct counter *settle_owner = NULL;
	uint32_t slot, vacant = LOCKED_SLOTS, settle = 0;

	if (!line_trylock(line)) {
		counter_uncharge(owner, count);
		return;
	}
	for (slot = 0; slot < LOCKED_SLOTS && line->owner[slot] != owner; slot++)
		if (!line->owner[slot] && vacant == LOCKED_SLOTS)
			vacant = slot;
	if (slot < LOCKED_SLOTS) {
		line->units[slot] += count;
		if (line->units[slot] > BENCH_HIGH) {
			settle = line->units[slot] - BENCH_LOW;
			settle_owner = owner;
			line->units[slot] = BENCH_LOW;
		}
	} else {
		if (vacant == LOCKED_SLOTS) {
			vacant = line->hand;
			line->hand = vacant + 1 < LOCKED_SLOTS ? vacant + 1 : 0;
			settle = line->units[vacant];
			settle_owner = line->owner[vacant];
		}
		line->owner[vacant] = owner;
		line->units[vacant] = count;
	}
	line_unlock(line);
	if (UNLIKELY(settle)) {
		bench_events.settled++;
		counter_uncharge(settle_owner, settle);
	}
}

static ALWAYS_INLINE void seven_consume(struct locked *locked, uint32_t id)
{
	struct counter *owner = &locked->tree.owners[id];

	if (LIKELY(seven_try_consume(locked, owner)))
		return;
	bench_events.misses++;
	if (!counter_charge(owner, BENCH_BATCH))
		abort();
	seven_put(locked, owner, BENCH_BATCH - 1);
}

static ALWAYS_INLINE void seven_refill(struct locked *locked, uint32_t id)
{
	seven_put(locked, &locked->tree.owners[id], 1);
}

BENCH_LOOPS(seven, struct locked)

static struct local_sums local_state;
static struct counter shared_state;
static struct tree tree_state, tree2_state, tree3_state, batch_state;
static struct locked single_state, seven_state;

#define LOOPS_OF(name) .pair = name##_pairs, .consume = name##_consumes, .refill = name##_refills

const struct rival rival_local = {
	.name = "thread_local",
	.label = "thread-local counters (floor)",
	.state = &local_state,
	.open = local_open,
	.leave = local_leave,
	.exact = local_exact,
	LOOPS_OF(local),
};
const struct rival rival_batch = {
	.name = "thread_batch",
	.label = "thread-local batches",
	.state = &batch_state,
	.open = any_tree_open,
	.close = any_tree_close,
	.leave = batch_leave,
	.exact = any_tree_exact,
	LOOPS_OF(batch),
};
const struct rival rival_shared = {
	.name = "shared_atomic",
	.label = "one shared atomic",
	.state = &shared_state,
	.open = shared_open,
	.exact = shared_exact,
	LOOPS_OF(shared),
};
const struct rival rival_tree = {
	.name = "atomic_tree",
	.label = "atomic tree",
	.state = &tree_state,
	.open = any_tree_open,
	.close = any_tree_close,
	.exact = any_tree_exact,
	LOOPS_OF(tree),
};
const struct rival rival_tree2 = {
	.name = "atomic_tree_2",
	.label = "atomic tree, 2 levels",
	.state = &tree2_state,
	.open = tree2_open,
	.close = any_tree_close,
	.exact = any_tree_exact,
	LOOPS_OF(tree),
};
const struct rival rival_tree3 = {
	.name = "atomic_tree_3",
	.label = "atomic tree, 3 levels",
	.state = &tree3_state,
	.open = tree3_open,
	.close = any_tree_close,
	.exact = any_tree_exact,
	LOOPS_OF(tree),
};
const struct rival rival_single = {
	.name = "locked_1",
	.label = "locked stock of 1 slot",
	.state = &single_state,
	.open = locked_open,
	.close = locked_close,
	.exact = locked_exact,
	LOOPS_OF(single),
};
const struct rival rival_seven = {
	.name = "locked_7",
	.label = "locked stock of 7 slots",
	.state = &seven_state,
	.open = locked_open,
	.close = locked_close,
	.exact = locked_exact,
	LOOPS_OF(seven),
};
