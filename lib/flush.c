// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * flush.c - bringing totals up to date with what was applied, and reading them.
 *
 * An owner to which something was applied has its bit set. A flush takes the bits of a subtree and
 * adds what is new at each of those owners to its own total and to those of all its ancestors. So
 * it visits only what has changed, in any order, and hands nothing up that a later flush would have
 * to find. Counters are cleared before anything is read: what comes while a flush is at work is
 * counted for the next, whether this one saw it or not.
 */
#define _GNU_SOURCE
#include "stat_private.h"

#ifndef PCPC_FLUSH_STEP
#define PCPC_FLUSH_STEP(owner)
#endif

/* -- flushing; under the flush mutex -- */

/* The next id from there on whose bit is set; 0: none. */
static uint32_t next_changed(const struct pcpc_domain *domain, uint32_t id)
{
	/* Relaxed: an owner whose update has happened before has raised it before. */
	uint32_t end = atomic_load_explicit(&domain->highest_id, memory_order_relaxed) + 1;
	uint64_t bits;

	while (id < end) {
		bits = atomic_load(&domain->stats.changed[id / 64]) >> id % 64;
		if (bits)
			return id + (uint32_t)__builtin_ctzll(bits);
		id = (id / 64 + 1) * 64;
	}
	return 0;
}

static void clear_counter(struct pcpc_owner *owner)
{
	if (!atomic_load(&applied_of(owner)->updates))
		return;
	atomic_store(&applied_of(owner)->updates, 0);
	PCPC_FLUSH_STEP(owner);
}

/* Clears the counters between an owner and a top, both included. */
static void clear_counters(struct pcpc_owner *owner, const struct pcpc_owner *top)
{
	for (; owner != top; owner = owner->parent)
		clear_counter(owner);
	clear_counter(owner);
}

/* Relaxed: a figure, written under the mutex. An atomic addition, for it wraps. */
static void raise_totals(struct pcpc_owner *owner, uint32_t key, int64_t delta)
{
	_Atomic int64_t *total;

	for (; owner; owner = owner->parent) {
		total = &totals_of(owner)[key].total;
		atomic_fetch_add_explicit(total, delta, memory_order_relaxed);
	}
}

static void flush_owner(struct pcpc_owner *owner)
{
	struct pcpc_stats *stats = &owner->domain->stats;
	struct pcpc_total *totals = totals_of(owner);
	int64_t local, delta;
	uint32_t key;

	atomic_fetch_and(&stats->changed[owner->id / 64], ~(1ull << owner->id % 64));
	for (key = 0; key < stats->nr_keys; key++) {
		local = atomic_load(&applied_of(owner)->local[key]);
		if (__builtin_sub_overflow(local, totals[key].seen, &delta) || delta)
			raise_totals(owner, key, delta);
		totals[key].seen = local;
	}
}

static void flush_and_mark(struct pcpc_owner *owner)
{
	flush_owner(owner);
	/* Counted again since its counter was cleared, by who found the mark still there. */
	if (atomic_load(&applied_of(owner)->updates))
		pcpc_stat_mark(owner);
}

/* Clears all counters of a subtree; how many marks there are outside of it. */
static uint32_t clear_subtree(struct pcpc_owner *top)
{
	struct pcpc_domain *domain = top->domain;
	uint32_t id, outside = 0;

	clear_counter(top);
	for (id = 1; (id = next_changed(domain, id)); id++)
		if (pcpc_within(owner_of(domain, id), top))
			clear_counters(owner_of(domain, id), top);
		else
			outside++;
	return outside;
}

#define PASSED_BY_MOST 64 /* marks, that are never worth a flush of all */

/* Who reads many subtrees, one after the other, would pass by the marks of all others each time.
 * Once that has cost about what it costs to flush them, they are flushed: then nobody finds them.
 * For a few there is no need. */
static bool is_to_flush_all(struct pcpc_stats *stats, uint32_t outside)
{
	stats->passed_by += outside;
	if (outside < PASSED_BY_MOST || stats->passed_by / (1 + stats->nr_keys / 16) < outside)
		return false;
	stats->passed_by = 0;
	return true;
}

static void flush_subtree(struct pcpc_owner *top)
{
	struct pcpc_domain *domain = top->domain;
	uint32_t id;

	/* Monitors read many owners without children: no look at the others' marks. Whoever has
	 * seen an update of a child return sees the child. */
	if (!atomic_load(&books_of(top)->first_child)) {
		clear_counter(top);
		flush_and_mark(top);
		return;
	}
	if (is_to_flush_all(&domain->stats, clear_subtree(top))) {
		top = pcpc_domain_root(domain);
		(void)clear_subtree(top);
	}
	for (id = 1; (id = next_changed(domain, id)); id++)
		if (pcpc_within(owner_of(domain, id), top))
			flush_and_mark(owner_of(domain, id));
}

void pcpc_stat_flush(struct pcpc_owner *owner)
{
	if (!owner || !owner->domain->stats.cache)
		return;
	pthread_mutex_lock(&owner->domain->flush_mutex);
	atomic_store(&owner->domain->flushing, true);
	flush_subtree(owner);
	atomic_store(&owner->domain->flushing, false);
	pthread_mutex_unlock(&owner->domain->flush_mutex);
}

void pcpc_stat_retire(struct pcpc_owner *owner)
{
	if (!owner->domain->stats.cache)
		return;
	pthread_mutex_lock(&owner->domain->flush_mutex);
	flush_owner(owner);
	pthread_mutex_unlock(&owner->domain->flush_mutex);
}

/* In a child of fork: what another thread had applied and not marked yet. */
void pcpc_stat_after_fork(const struct pcpc_owner *owner)
{
	const struct pcpc_stats *stats = &owner->domain->stats;
	uint32_t key;

	for (key = 0; key < stats->nr_keys; key++)
		if (atomic_load(&applied_of(owner)->local[key]) != totals_of(owner)[key].seen) {
			pcpc_stat_mark(owner);
			break;
		}
}

/* -- draining -- */

static bool everyone(uint32_t id, void *context)
{
	(void)context;
	return id != 0;
}

/* Applies what a subtree has in slots. The coupled item's deltas are in charge slots, beside units,
 * which go back to the counters. */
static void drain_for(struct pcpc_owner *top, uint32_t item)
{
	struct pcpc_domain *domain = top->domain;
	uint64_t back;

	(void)pcpc_stat_drain(domain, top->parent ? pcpc_id_within : everyone, top);
	if (item == domain->coupled_item &&
	    atomic_load_explicit(&domain->charges_move, memory_order_relaxed))
		(void)pcpc_drain_subtree(top, &back);
}

/* -- reading -- */

static bool readable(const struct pcpc_owner *owner, uint32_t node, uint32_t item)
{
	return owner && node < owner->domain->nr_nodes && item < owner->domain->nr_items;
}

/* Relaxed: a figure. */
static int64_t total_of(const struct pcpc_owner *owner, uint32_t node, uint32_t item)
{
	const struct pcpc_total *totals = totals_of(owner);

	return atomic_load_explicit(&totals[node * owner->domain->nr_items + item].total,
				    memory_order_relaxed);
}

static int64_t total_of_all_nodes(const struct pcpc_owner *owner, uint32_t item)
{
	uint64_t sum = 0;
	uint32_t node;

	for (node = 0; node < owner->domain->nr_nodes; node++)
		sum += (uint64_t)total_of(owner, node, item);
	return (int64_t)sum;
}

/* As the last flush left it; node: -1 for all. */
int64_t pcpc_stat_total(const struct pcpc_owner *owner, int node, uint32_t item)
{
	return node < 0 ? total_of_all_nodes(owner, item) : total_of(owner, (uint32_t)node, item);
}

/* Is something missing that a cheap read must not miss? A flush clears counters before it raises
 * totals: so who finds a low counter looks whether a flush is at work, and waits for it.
 * Sequentially consistent, in this order: pairs with pcpc_stat_flush(), which says so before it
 * clears any. */
static bool is_behind(const struct pcpc_owner *owner)
{
	return pcpc_stat_needs_flush(owner) || atomic_load(&owner->domain->flushing);
}

/* What a cheap read does first. The time is noted when the drain is over, as that at which it
 * began: who reads in the meantime drains too, which is one round for all. Release: pairs with the
 * acquire, so that who finds it drained finds the totals. */
static void refresh(struct pcpc_owner *owner, uint32_t item)
{
	struct pcpc_domain *domain = owner->domain;
	struct pcpc_owner *root = pcpc_domain_root(domain);
	atomic_u64 *drained_at = item == domain->coupled_item ? &domain->coupled_drained_at
							      : &domain->stats_drained_at;
	uint64_t now = pcpc_now();

	if ((int64_t)(now - atomic_load_explicit(drained_at, memory_order_acquire)) >
	    (int64_t)PCPC_STAT_AGE_NS) {
		drain_for(root, item);
		pcpc_stat_flush(root);
		atomic_store_explicit(drained_at, now, memory_order_release);
	} else if (is_behind(owner)) {
		pcpc_stat_flush(owner);
	}
}

int64_t pcpc_stat_read(struct pcpc_owner *owner, uint32_t item)
{
	if (!readable(owner, 0, item))
		return 0;
	refresh(owner, item);
	return total_of_all_nodes(owner, item);
}

int64_t pcpc_stat_read_node(struct pcpc_owner *owner, uint32_t node, uint32_t item)
{
	if (!readable(owner, node, item))
		return 0;
	refresh(owner, item);
	return total_of(owner, node, item);
}

int64_t pcpc_stat_read_local(struct pcpc_owner *owner, uint32_t item)
{
	uint64_t sum = 0;
	uint32_t node;

	if (!readable(owner, 0, item))
		return 0;
	/* Relaxed: a figure. */
	for (node = 0; node < owner->domain->nr_nodes; node++)
		sum += (uint64_t)atomic_load_explicit(
			&applied_of(owner)->local[node * owner->domain->nr_items + item],
			memory_order_relaxed);
	return (int64_t)sum;
}

int64_t pcpc_stat_read_exact(struct pcpc_owner *owner, uint32_t item)
{
	if (!readable(owner, 0, item))
		return 0;
	drain_for(owner, item);
	/* Whoever has evicted a delta of the subtree has applied it after this. */
	if (may_wait(0))
		pcpc_grace();
	pcpc_stat_flush(owner);
	return total_of_all_nodes(owner, item);
}

bool pcpc_stat_needs_flush(const struct pcpc_owner *owner)
{
	return pcpc_stat_updates(owner) > (owner ? stat_threshold(owner->domain) : 0);
}

uint64_t pcpc_stat_updates(const struct pcpc_owner *owner)
{
	if (!owner || !owner->domain->stats.cache)
		return 0;
	return atomic_load(&applied_of(owner)->updates);
}
