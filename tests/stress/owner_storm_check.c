// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * owner_storm_check.c - what must be true: at every moment, when an owner is freed, when everything
 * stands still, and at the end.
 */
#define _GNU_SOURCE
#include "owner_storm.h"

/* Of an owner that the caller has a reference on (G1, G2). */
static void check_moment(struct node *node)
{
	uint64_t held, usage, highest;

	held = atomic_load(&node->held);
	usage = pcpc_owner_usage(node->owner);
	/* Usage is read before held is read again, and before what may have made it larger. */
	atomic_thread_fence(memory_order_acquire);
	if (usage < (held & HELD_MASK) && atomic_load(&node->held) == held)
		violation("usage %" PRIu64 ", and %" PRIu64 " held: depth %" PRIu32, usage,
			  held & HELD_MASK, node->depth);
	highest = atomic_load(&node->highest_max);
	if (highest && usage > highest && !atomic_load(&node->forced))
		violation("usage %" PRIu64 ", never a max above %" PRIu64 ": depth %" PRIu32, usage,
			  highest, node->depth);
}

void check_node(struct node *node)
{
	for (; node; node = node->parent)
		check_moment(node);
}

/* All of an item is applied and flushed (G10). */
static void check_applied(const struct node *node, uint32_t item, const char *when)
{
	const struct pcpc_total *totals = totals_of(node->owner);
	int64_t local = pcpc_stat_read_local(node->owner, item), total = 0;
	uint32_t i;

	for (i = 0; i < storm.domain->nr_nodes; i++)
		total += atomic_load(&totals[i * NR_ITEMS + item].total);
	if (local != atomic_load(&node->own[item]) || total != atomic_load(&node->sum[item]))
		violation("%s: item %" PRIu32 ", local %" PRId64 " of %" PRId64 ", total %" PRId64
			  " of %" PRId64 ": depth %" PRIu32,
			  when, item, local, atomic_load(&node->own[item]), total,
			  atomic_load(&node->sum[item]), node->depth);
}

/* Called by the sweep that frees it, under the tree mutex. Nobody has it any more, and so nothing
 * can change. */
void check_freed(struct pcpc_owner *owner)
{
	struct pcpc_books *books = books_of(owner);
	struct node *node = books->context;
	uint32_t item;

	if (storm.is_child)
		return;
	if (atomic_load(&node->held) & HELD_MASK)
		violation("freed while %" PRIu64 " are held: depth %" PRIu32,
			  atomic_load(&node->held) & HELD_MASK, node->depth);
	for (item = 0; item < NR_ITEMS && storm.has_items; item++)
		check_applied(node, item, "freed");
	atomic_fetch_add_explicit(&storm.freed, 1, memory_order_relaxed);
	node_put(node);
}

/* What the slots of all CPUs have of one owner. */
static void slots_of(const struct pcpc_owner *owner, uint64_t *ret_count, int64_t *ret_delta)
{
	const struct pcpc_cache *cache = storm.domain->cache;
	uint32_t index, slot, slots;
	pcpc_word word;

	*ret_count = 0;
	*ret_delta = 0;
	for (index = 0; index < cache->nr_indices; index++) {
		slots = 0;
		for (slot = 0; slot < PCPC_STOCK_SLOTS; slot++) {
			word = PCPC_LOAD(pcpc_cache_stock(cache, index, owner->id)->slot[slot]);
			if (pcpc_word_owner(word) != owner->id)
				continue;
			slots++;
			*ret_count += pcpc_word_count(word);
			*ret_delta += pcpc_word_delta(word);
		}
		/* G5 */
		if (slots > 1 && storm.options.engine == PCPC_ENGINE_RSEQ)
			violation("id %" PRIu32 " in %" PRIu32 " slots of a stock", owner->id,
				  slots);
	}
}

/* Everything stands still (G1). */
static void check_balance(struct node *node)
{
	uint64_t usage = pcpc_owner_usage(node->owner), stocked = pcpc_owner_stocked(node->owner);
	uint64_t held = atomic_load(&node->held) & HELD_MASK, own_count;
	struct pcpc_books *books = books_of(node->owner);
	int64_t own_delta;

	slots_of(node->owner, &own_count, &own_delta);
	if (usage != held + stocked)
		violation("usage %" PRIu64 " is not %" PRIu64 " held + %" PRIu64
			  " stocked: depth %" PRIu32,
			  usage, held, stocked, node->depth);
	if (pcpc_owner_usage_exact(node->owner) != held)
		violation("exact usage %" PRIu64 ", held %" PRIu64,
			  pcpc_owner_usage_exact(node->owner), held);
	/* No item, nothing to move. */
	if (!storm.has_items && own_delta)
		violation("deltas of %" PRId64 " in slots of a domain without items", own_delta);
	if (atomic_load(&books->cap) & CAP_PINS)
		violation("a cap is pinned, and nobody is in a call");
	/* "exact": nothing of the subtree is stocked */
	if (atomic_load(&books->cap) & CAP_EXACT && stocked)
		violation("exact, and %" PRIu64 " stocked: depth %" PRIu32, stocked, node->depth);
}

/* Likewise. A read of the root drains the slots of all, and flushes all. */
static void check_items(void)
{
	uint32_t item;
	int i;

	for (item = 0; item < NR_ITEMS && storm.has_items; item++) {
		(void)pcpc_stat_read_exact(storm.root->owner, item);
		for (i = 0; i < NR_PLACES; i++)
			if (storm.place[i].node)
				check_applied(storm.place[i].node, item, "at rest");
	}
}

void check_books(void)
{
	static uint32_t times;
	int i;

	/* Not each time, for it empties the slots. */
	if (++times % 4 == 0)
		check_items();
	for (i = 0; i < NR_PLACES; i++)
		if (storm.place[i].node)
			check_balance(storm.place[i].node);
}

/* All is given back, and all owners are destroyed. */
void check_end(void)
{
	pcpc_domain_poll(storm.domain);
	(void)pcpc_owner_drain(storm.root->owner);
	pcpc_domain_poll(storm.domain);
	check_balance(storm.root);
	check_items();
	if (pcpc_owner_usage(storm.root->owner))
		violation("usage of the root is %" PRIu64 " at the end",
			  pcpc_owner_usage(storm.root->owner));
	if (pcpc_owner_events(storm.root->owner, PCPC_EVENT_UNDERFLOW))
		violation("%" PRIu64 " underflows",
			  pcpc_owner_events(storm.root->owner, PCPC_EVENT_UNDERFLOW));
	if (storm.domain->nr_owners != 1 || atomic_load(&storm.domain->nr_offline))
		violation("%" PRIu32 " owners are left, %" PRIu32 " offline",
			  storm.domain->nr_owners, atomic_load(&storm.domain->nr_offline));
}
