/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * stat_support.h - what the tests of statistics share beyond owner_support.h: domains with items, a
 * look into the stat stocks and behind the flush, and a clock that the test moves (so include it in
 * one file of a program only).
 */
#ifndef PCPCHARGE_TESTS_STAT_SUPPORT_H
#define PCPCHARGE_TESTS_STAT_SUPPORT_H

#include "stat_private.h"

#include "owner_clock.h"
#include "owner_support.h"

#define AGE PCPC_STAT_AGE_NS

/* What a test asks of its domain; what is 0 has the value that is said here. */
struct stat_shape {
	uint32_t items;	      /* 3 */
	uint32_t nodes;	      /* none */
	uint32_t coupled;     /* item 0 */
	uint32_t delta_batch; /* 64 */
	uint32_t batch;	      /* 64 */
	uint32_t stocks;      /* the library's default */
};

static uint64_t threshold; /* 64 x CPUs, by the test's own count */

static inline bool open_stats(int engine, struct stat_shape shape)
{
	struct pcpc_domain_config config =
		domain_config((enum pcpc_engine)engine, shape.batch ? shape.batch : 64);
	struct pcpc_item *items;
	cpu_set_t allowed;
	uint32_t i;
	bool made;

	config.nr_items = shape.items ? shape.items : 3;
	config.nr_nodes = shape.nodes;
	config.coupled_item = shape.coupled;
	config.delta_batch = shape.delta_batch ? shape.delta_batch : 64;
	config.stocks_per_cpu = shape.stocks;
	items = calloc(config.nr_items, sizeof(*items));
	ck_assert_ptr_nonnull(items);
	for (i = 0; i < config.nr_items; i++)
		items[i] = (struct pcpc_item){ "item", "units" };
	config.items = items;
	ck_assert_int_eq(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
	threshold = 64 * (uint64_t)CPU_COUNT(&allowed);
	made = create_domain(&config);
	free(items);
	if (!made)
		return false;
	ck_assert(unit_pin(0));
	/* whatever is due at first is done, so that from now on only passing time makes it so */
	pass(AGE + 1);
	(void)pcpc_stat_read(root, 0);
	(void)pcpc_stat_read(root, 1);
	return true;
}

static inline void add(struct pcpc_owner *owner, uint32_t item, int64_t delta)
{
	pcpc_stat_add(owner, item, delta);
}

/* What all stat slots hold of an owner's key: node * items + item. */
struct stat_slots {
	int64_t delta, largest;
	uint32_t slots;
};

static inline struct stat_slots stat_slots_of(const struct pcpc_owner *owner, uint32_t key)
{
	const struct pcpc_cache *cache = owner->domain->stats.cache;
	size_t line, lines = (size_t)cache->nr_indices * cache->stocks_per_cpu;
	struct stat_slots found = { 0 };
	uint32_t slot;
	int64_t delta;
	uint64_t word;

	for (line = 0; line < lines; line++) {
		for (slot = 0; slot < PCPC_STOCK_SLOTS; slot++) {
			/* section 4: owner id:20 item:12 delta:32 */
			word = PCPC_LOAD(pcpc_cache_line(cache, line)->slot[slot]);
			if (word >> 44 != owner->id || (word >> 32 & 0xfff) != key)
				continue;
			delta = (int32_t)(uint32_t)word;
			found.delta += delta;
			if (delta < 0)
				delta = -delta;
			found.largest = delta > found.largest ? delta : found.largest;
			found.slots++;
		}
	}
	return found;
}

static inline int64_t in_slots(const struct pcpc_owner *owner, uint32_t key)
{
	return stat_slots_of(owner, key).delta;
}

/* What was applied to the owner itself, and what its last flush has made of the subtree; neither
 * brings anything up to date. */
static inline int64_t local_of(const struct pcpc_owner *owner, uint32_t key)
{
	return atomic_load(&applied_of(owner)->local[key]);
}

static inline int64_t total_of(const struct pcpc_owner *owner, uint32_t key)
{
	return atomic_load(&totals_of(owner)[key].total);
}

static inline uint64_t updates_of(const struct pcpc_owner *owner)
{
	return pcpc_stat_updates(owner);
}

static inline int64_t exactly(struct pcpc_owner *owner, uint32_t item)
{
	return pcpc_stat_read_exact(owner, item);
}

/* Sums of the test's own wrap, as totals do. */
static inline int64_t plus(int64_t one, int64_t other)
{
	return (int64_t)((uint64_t)one + (uint64_t)other);
}

static inline int64_t negative_of(int64_t value)
{
	return (int64_t)(0 - (uint64_t)value);
}

#endif
