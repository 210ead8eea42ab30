// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * stat.c - statistics of owners: updates, and how they are applied.
 *
 * An update goes into a slot of the running CPU's stat stock. What has gathered there is applied
 * when it gets large, when another owner or item needs the slot, or when it is drained: it is added
 * to what was applied for that owner, and its size to the counter of updates of the owner and of
 * every ancestor. A flush (flush.c) does the rest.
 *
 * As in charge.c, whatever takes a delta out of a slot runs inside a read-side section that began
 * before the slot was read, and ends after the delta is applied.
 */
#define _GNU_SOURCE
#include "stat_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A broken twin stops here, and must be seen to leave an ancestor behind. */
#ifndef PCPC_PAST_THRESHOLD
#define PCPC_PAST_THRESHOLD continue
#endif

/* -- of a domain -- */

static size_t round_up_128(size_t bytes)
{
	return (bytes + 127) / 128 * 128;
}

static int copy_items(struct pcpc_domain *domain, const struct pcpc_domain_config *config)
{
	uint32_t i;

	domain->items = calloc(config->nr_items, sizeof(struct pcpc_item));
	if (!domain->items)
		return -ENOMEM;
	domain->nr_items = config->nr_items;
	for (i = 0; i < config->nr_items; i++) {
		domain->items[i].name = strdup(config->items[i].name ? config->items[i].name : "");
		domain->items[i].unit = strdup(config->items[i].unit ? config->items[i].unit : "");
		if (!domain->items[i].name || !domain->items[i].unit)
			return -ENOMEM;
	}
	return 0;
}

int pcpc_stat_init(struct pcpc_domain *domain, const struct pcpc_domain_config *config)
{
	/* A hit goes by the index and the limit of the charge cache. */
	struct pcpc_cache_config cache = { sizeof(cache), domain->cache->engine,
					   domain->cache->index, config->stocks_per_cpu };
	struct pcpc_stats *stats = &domain->stats;
	int r;

	if (!config->nr_items)
		return 0;
	r = copy_items(domain, config);
	if (r < 0)
		return r;
	domain->nr_nodes = config->nr_nodes ? config->nr_nodes : 1;
	domain->coupled_item = config->coupled_item;
	stats->nr_keys = domain->nr_items * domain->nr_nodes;
	stats->unit = 1;
	stats->totals_at =
		round_up_128(sizeof(struct pcpc_applied) + stats->nr_keys * sizeof(int64_t));
	stats->block_size =
		stats->totals_at + round_up_128(stats->nr_keys * sizeof(struct pcpc_total));
	stats->blocks = pcpc_map(NR_IDS * stats->block_size);
	stats->changed = pcpc_map(NR_IDS / 8);
	if (!stats->blocks || !stats->changed)
		return -ENOMEM;
	r = pcpc_cache_create(&cache, &stats->cache);
	if (r < 0)
		return r;
	return stats->cache->nr_indices < domain->cache->nr_indices ? -ENOMEM : 0;
}

void pcpc_stat_end(struct pcpc_domain *domain)
{
	struct pcpc_stats *stats = &domain->stats;
	uint32_t i;

	pcpc_cache_destroy(stats->cache);
	if (stats->blocks)
		pcpc_unmap(stats->blocks, NR_IDS * stats->block_size);
	if (stats->changed)
		pcpc_unmap(stats->changed, NR_IDS / 8);
	for (i = 0; i < domain->nr_items; i++) {
		free((char *)(uintptr_t)domain->items[i].name);
		free((char *)(uintptr_t)domain->items[i].unit);
	}
	free(domain->items);
}

void pcpc_stat_begin(struct pcpc_owner *owner)
{
	if (owner->domain->stats.cache)
		memset(applied_of(owner), 0, owner->domain->stats.block_size);
}

/* -- applying; inside a read-side section -- */

/* Something was applied for this owner, or counted at it, that a flush has to see. */
void pcpc_stat_mark(const struct pcpc_owner *owner)
{
	atomic_u64 *changed = &owner->domain->stats.changed[owner->id / 64];
	uint64_t bit = 1ull << owner->id % 64;

	if (!(atomic_load(changed) & bit))
		atomic_fetch_or(changed, bit);
}

/* Counts an update at its owner and above. A level that is past the threshold needs no more; but
 * the one above it may just have been flushed, so the walk goes on. Each level that was counted is
 * marked, so that a flush that passes it clears its counter. */
static void count_update(struct pcpc_owner *owner, uint64_t size)
{
	const uint64_t threshold = stat_threshold(owner->domain);
	struct pcpc_owner *level;

	/* So that not even many threads at once make it wrap. */
	size = size < STAT_SIZE_MAX ? size : STAT_SIZE_MAX;
	for (level = owner; level; level = level->parent) {
		if (atomic_load(&applied_of(level)->updates) > threshold)
			PCPC_PAST_THRESHOLD;
		atomic_fetch_add(&applied_of(level)->updates, size);
		pcpc_stat_mark(level);
	}
}

/*
 * What is applied first, then the owner's mark, then the counters; all sequentially consistent. A
 * flush goes the other way: it clears counters, then takes a mark off, then reads what was applied.
 * So a counter that was cleared after this has raised it stands for a mark that the flush will
 * find, and a mark that it took off for an amount that it will read. (Signed addition wraps in
 * atomics.)
 */
void pcpc_stat_apply(struct pcpc_owner *owner, uint32_t key, int64_t delta)
{
	if (!delta)
		return;
	atomic_fetch_add(&applied_of(owner)->local[key], delta);
	pcpc_stat_mark(owner);
	count_update(owner, stat_size(delta));
}

static void apply_word(struct pcpc_domain *domain, pcpc_word word)
{
	pcpc_stat_apply(owner_of(domain, pcpc_word_owner(word)), stat_key_of(word),
			stat_delta_of(word));
}

/* What a drain of stat slots wants, and whose they are. */
struct wish {
	struct pcpc_domain *domain;
	pcpc_match_fn *match;
	void *context;
};

static bool match_wish(uint32_t id, void *context)
{
	const struct wish *wish = context;

	return wish->match(id, wish->context);
}

/* The drain knows charge words: their fields give the whole word back. */
static void settle_wish(const struct pcpc_deferred *deferred, void *context)
{
	const struct wish *wish = context;

	apply_word(wish->domain, pcpc_word_make(deferred->owner, (uint32_t)deferred->count,
						(int32_t)deferred->delta));
}

/* Takes the deltas of the owners that match out of all slots, and applies them. 0, or what
 * membarrier says. */
int pcpc_stat_drain(struct pcpc_domain *domain, pcpc_match_fn *match, void *context)
{
	struct wish wish = { domain, match, context };
	int r;

	if (!domain->stats.cache)
		return 0;
	urcu_bp_read_lock();
	r = pcpc_cache_drain(domain->stats.cache, match_wish, settle_wish, &wish);
	urcu_bp_read_unlock();
	return r;
}

/* -- updates -- */

/* Where a key of an owner belongs: pairs of owner and key are numbered densely, and seven
 * neighbours share a stock. */
struct home {
	uint64_t stock;
	uint32_t slot;
};

static inline struct home home_of(const struct pcpc_owner *owner, uint32_t key)
{
	const struct pcpc_stats *stats = &owner->domain->stats;
	uint64_t pair = (uint64_t)(owner->id - 1) * stats->nr_keys + key;

	return (struct home){ pair / PCPC_STOCK_SLOTS & (stats->cache->stocks_per_cpu - 1),
			      (uint32_t)(pair % PCPC_STOCK_SLOTS) };
}

/* Which slot an update goes to: its own, else one without a delta, else the one at the hand. */
static uint32_t choose_slot(const struct pcpc_stock *stock, uint32_t home, pcpc_word name)
{
	uint32_t i, slot, vacant = PCPC_STOCK_SLOTS;
	pcpc_word word;

	for (i = 0; i < PCPC_STOCK_SLOTS; i++) {
		slot = (home + i) % PCPC_STOCK_SLOTS;
		word = PCPC_LOAD(stock->slot[slot]);
		if (word >> STAT_KEY_SHIFT == name >> STAT_KEY_SHIFT)
			return slot;
		if (vacant == PCPC_STOCK_SLOTS && !stat_delta_of(word))
			vacant = slot;
	}
	return vacant < PCPC_STOCK_SLOTS ? vacant : PCPC_LOAD(stock->hand) % PCPC_STOCK_SLOTS;
}

/* What a slot becomes by an update that is below the batch, and which word that leaves to be
 * applied (0: none). */
static pcpc_word updated(pcpc_word old, pcpc_word name, int64_t delta, uint32_t batch,
			 pcpc_word *ret_applied)
{
	bool own = old >> STAT_KEY_SHIFT == name >> STAT_KEY_SHIFT;
	int64_t sum = own ? stat_delta_of(old) + delta : delta;

	*ret_applied = own ? 0 : old;
	if (stat_size(sum) < batch)
		return name | (uint32_t)sum;
	*ret_applied = name | (uint32_t)sum;
	return name;
}

/* One try to put an update into a slot. */
static enum pcpc_outcome try_update(struct pcpc_owner *owner, uint32_t key, int64_t delta)
{
	struct pcpc_cache *cache = owner->domain->stats.cache;
	const struct home home = home_of(owner, key);
	const pcpc_word name = stat_name_of(owner->id, key);
	struct pcpc_stock *stock;
	pcpc_word old, new, applied;
	struct pcpc_place place;
	enum pcpc_outcome outcome;
	uint32_t slot;

	if (!pcpc_cache_locate(cache, &place))
		return PCPC_CLOSED;
	stock = pcpc_cache_line(cache, (size_t)place.index * cache->stocks_per_cpu + home.stock);
	slot = choose_slot(stock, home.slot, name);
	old = PCPC_LOAD(stock->slot[slot]);
	new = updated(old, name, delta, owner->domain->delta_batch, &applied);
	/* In terms of the ids that a drain scans up to. */
	pcpc_note_highest(cache, place.index, (uint32_t)home.stock * PCPC_STOCK_SLOTS + 1);
	outcome = pcpc_cache_commit(cache, &place, stock, slot, old, new);
	if (outcome != PCPC_DONE)
		return outcome;
	if (old >> STAT_KEY_SHIFT != name >> STAT_KEY_SHIFT && stat_delta_of(old))
		PCPC_STORE_HAND(stock, slot + 1 < PCPC_STOCK_SLOTS ? slot + 1 : 0);
	if (stat_delta_of(applied))
		apply_word(owner->domain, applied);
	return PCPC_DONE;
}

static PCPC_COLD void update_slow(struct pcpc_owner *owner, uint32_t key, int64_t delta)
{
	enum pcpc_outcome outcome = PCPC_CHANGED;
	unsigned int tries;

	urcu_bp_read_lock();
	if (!owner_offline(owner) && stat_size(delta) < owner->domain->delta_batch)
		for (tries = 0;
		     tries < PCPC_TRIES && (outcome == PCPC_CHANGED || outcome == PCPC_ABORTED);
		     tries++)
			outcome = try_update(owner, key, delta);
	if (outcome != PCPC_DONE)
		pcpc_stat_apply(owner, key, delta);
	urcu_bp_read_unlock();
}

#if PCPC_HAVE_RSEQ

/* An update that its home slot takes in, as the hit in charge.c. The limit is that of the charge
 * cache, which has the same engine and as many indices. */
static PCPC_ALWAYS_INLINE bool hit(struct pcpc_owner *owner, uint32_t key, int64_t delta)
{
	const struct pcpc_place place = { owner->area.rseq, owner->area.field, 0 };
	uint32_t batch = owner->domain->delta_batch, index = pcpc_rseq_index(&place);
	const struct pcpc_fast *fast = &owner->domain->stats.cache->fast;
	const struct home home = home_of(owner, key);
	pcpc_word *word, was;
	int64_t sum;

	if (PCPC_UNLIKELY(index >= atomic_load_explicit(&owner->limit, memory_order_relaxed)))
		return false;
	word = (pcpc_word *)((char *)fast->words + index * fast->stride) +
	       home.stock * (PCPC_STOCK_SLOTS + 1) + 1 + home.slot;
	was = PCPC_LOAD(*word);
	if (PCPC_UNLIKELY((was ^ stat_name_of(owner->id, key)) >> STAT_KEY_SHIFT) ||
	    PCPC_UNLIKELY(stat_size(delta) >= batch))
		return false;
	sum = stat_delta_of(was) + delta;
	if (PCPC_UNLIKELY(stat_size(sum) >= batch))
		return false;
	return PCPC_LIKELY(pcpc_rseq_commit_at(&fast->area, index, word, was,
					       stat_name_of(owner->id, key) | (uint32_t)sum) ==
			   PCPC_DONE);
}

#else

static PCPC_ALWAYS_INLINE bool hit(struct pcpc_owner *owner, uint32_t key, int64_t delta)
{
	(void)owner;
	(void)key;
	(void)delta;
	return false;
}

#endif

void pcpc_stat_add(struct pcpc_owner *owner, uint32_t item, int64_t delta)
{
	if (PCPC_UNLIKELY(!owner) || PCPC_UNLIKELY(item >= owner->domain->nr_items) || !delta)
		return;
	if (PCPC_UNLIKELY(!hit(owner, item, delta)))
		update_slow(owner, item, delta);
}

void pcpc_stat_add_node(struct pcpc_owner *owner, uint32_t node, uint32_t item, int64_t delta)
{
	if (owner && node < owner->domain->nr_nodes && item < owner->domain->nr_items && delta &&
	    !hit(owner, node * owner->domain->nr_items + item, delta))
		update_slow(owner, node * owner->domain->nr_items + item, delta);
}
