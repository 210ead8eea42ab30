// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * stat_storm_check.c - the program's own books of owners, and what must be true: when an owner is
 * freed, when everything stands still, and at the end.
 */
#define _GNU_SOURCE
#include "stat_storm.h"

static int64_t local_of(const struct pcpc_owner *owner, uint32_t key)
{
	return atomic_load(&applied_of(owner)->local[key]);
}

static int64_t total_of(const struct pcpc_owner *owner, uint32_t key)
{
	return atomic_load(&totals_of(owner)[key].total);
}

static int64_t plus(int64_t one, int64_t other)
{
	return (int64_t)((uint64_t)one + (uint64_t)other);
}

/* NULL: the parent is offline. With no parent: the root. */
struct node *node_create(struct node *parent)
{
	struct node *node = calloc(1, sizeof(*node));
	const struct pcpc_owner_config config = { .size = sizeof(config), .context = node };
	int r = 0;

	MUST(node);
	node->parent = parent;
	if (parent)
		r = pcpc_owner_create(parent->owner, &config, &node->owner);
	else
		node->owner = pcpc_domain_root(storm.domain);
	if (r != 0) {
		if (r != -ESHUTDOWN && r != -EINVAL)
			violation("create answered %d", r);
		free(node);
		return NULL;
	}
	pthread_mutex_lock(&storm.nodes_lock);
	MUST(storm.nr_nodes < MOST_NODES);
	node->slot = storm.nr_nodes;
	storm.node[storm.nr_nodes++] = node;
	node->next = storm.all;
	storm.all = node;
	pthread_mutex_unlock(&storm.nodes_lock);
	return node;
}

static void forget(struct node *node)
{
	pthread_mutex_lock(&storm.nodes_lock);
	storm.node[node->slot] = storm.node[--storm.nr_nodes];
	storm.node[node->slot]->slot = node->slot;
	pthread_mutex_unlock(&storm.nodes_lock);
}

/* What the slots of all CPUs have of one owner's key. */
static int64_t in_slots(uint32_t id, uint32_t key)
{
	const struct pcpc_cache *cache = storm.domain->stats.cache;
	size_t line, lines = (size_t)cache->nr_indices * cache->stocks_per_cpu;
	int64_t sum = 0;
	uint32_t slot;
	pcpc_word word;

	for (line = 0; line < lines; line++) {
		for (slot = 0; slot < PCPC_STOCK_SLOTS; slot++) {
			word = PCPC_LOAD(pcpc_cache_line(cache, line)->slot[slot]);
			if (word >> 44 == id && (word >> 32 & 0xfff) == key)
				sum += (int32_t)(uint32_t)word;
		}
	}
	return sum;
}

static int64_t in_charge_slots(const struct pcpc_owner *owner)
{
	const struct pcpc_cache *cache = storm.domain->cache;
	uint32_t index, slot;
	int64_t sum = 0;
	pcpc_word word;

	for (index = 0; index < cache->nr_indices; index++) {
		for (slot = 0; slot < PCPC_STOCK_SLOTS; slot++) {
			word = PCPC_LOAD(pcpc_cache_stock(cache, index, owner->id)->slot[slot]);
			if (pcpc_word_owner(word) == owner->id)
				sum += pcpc_word_delta(word);
		}
	}
	return sum;
}

/* Called by the sweep that frees it, under the tree mutex. Nobody has it any more, and so nothing
 * can change: all that was asked for is applied. (Slots are looked at by owner_poison.c.) */
void check_freed(struct pcpc_owner *owner)
{
	struct node *node = books_of(owner)->context;
	uint32_t key;

	if (storm.is_child)
		return;
	for (key = 0; key < NR_KEYS; key++) {
		if (local_of(owner, key) != atomic_load(&node->asked[key]))
			violation("freed with %" PRId64 " of key %" PRIu32 ", asked for %" PRId64
				  ": depth %" PRIu32,
				  local_of(owner, key), key, atomic_load(&node->asked[key]),
				  owner->depth);
		atomic_fetch_add(&node->parent->gone[key], plus(atomic_load(&node->asked[key]),
								atomic_load(&node->gone[key])));
	}
	if (atomic_load(&storm.domain->stats.changed[owner->id / 64]) >> owner->id % 64 & 1)
		violation("freed, and still to be flushed: id %" PRIu32, owner->id);
	forget(node);
	atomic_fetch_add_explicit(&storm.freed, 1, memory_order_relaxed);
}

/* -- everything stands still -- */

/* What was applied below a node, and the sum of what was asked for there. */
static void sums_below(const struct node *top, uint32_t key, int64_t *ret_applied,
		       int64_t *ret_asked)
{
	const struct node *node, *level;
	uint32_t i;

	*ret_applied = *ret_asked = 0;
	for (i = 0; i < storm.nr_nodes; i++) {
		node = storm.node[i];
		for (level = node; level && level != top; level = level->parent)
			;
		if (!level)
			continue;
		*ret_applied = plus(*ret_applied, plus(local_of(node->owner, key),
						       atomic_load(&node->gone[key])));
		*ret_asked = plus(*ret_asked, plus(atomic_load(&node->asked[key]),
						   atomic_load(&node->gone[key])));
	}
}

/* G10: value + what is in slots = the sum of all updates. */
static void check_node(struct node *node)
{
	int64_t sum;
	uint32_t key;

	for (key = 0; key < NR_KEYS; key++) {
		sum = plus(local_of(node->owner, key), in_slots(node->owner->id, key));
		if (key == COUPLED)
			sum = plus(sum, in_charge_slots(node->owner));
		if (sum != atomic_load(&node->asked[key]))
			violation("%" PRId64 " of key %" PRIu32 ", asked for %" PRId64
				  ": depth %" PRIu32,
				  sum, key, atomic_load(&node->asked[key]), node->owner->depth);
	}
}

/* G11: what a total lacks its counter tells of, or that it is past the threshold. */
static void check_counter(struct node *node)
{
	uint64_t updates = pcpc_stat_updates(node->owner), size, missed = 0;
	int64_t applied, asked, lack;
	uint32_t key;

	for (key = 0; key < NR_KEYS; key++) {
		sums_below(node, key, &applied, &asked);
		lack = plus(applied, plus(~total_of(node->owner, key), 1));
		size = stat_size(lack);
		missed = missed > UINT64_MAX - size ? UINT64_MAX : missed + size;
	}
	if (!pcpc_stat_needs_flush(node->owner) && missed > updates)
		violation("%" PRIu64 " are missing, and the counter says %" PRIu64
			  " (G11): depth %" PRIu32,
			  missed, updates, node->owner->depth);
}

/* G10 and semantics 5.5.7, after a flush of root. */
static void check_total(struct node *node)
{
	int64_t applied, asked;
	uint32_t key;

	for (key = 0; key < NR_KEYS; key++) {
		sums_below(node, key, &applied, &asked);
		if (total_of(node->owner, key) != applied)
			violation("total %" PRId64 " of key %" PRIu32 ", applied were %" PRId64
				  ": depth %" PRIu32,
				  total_of(node->owner, key), key, applied, node->owner->depth);
	}
	if (pcpc_stat_updates(node->owner))
		violation("flushed, and the counter says %" PRIu64 ": depth %" PRIu32,
			  pcpc_stat_updates(node->owner), node->owner->depth);
}

void check_books(void)
{
	uint32_t i;

	for (i = 0; i < storm.nr_nodes; i++) {
		check_node(storm.node[i]);
		check_counter(storm.node[i]);
	}
	pcpc_stat_flush(storm.fixed[0]->owner);
	for (i = 0; i < storm.nr_nodes; i++)
		check_total(storm.node[i]);
}

static void free_nodes(void)
{
	struct node *node;

	while ((node = storm.all)) {
		storm.all = node->next;
		free(node);
	}
}

/* All units are given back, and all places are empty: exact reads are what was asked for, and what
 * moves with units is 0 (semantics H26). */
void check_end(void)
{
	struct pcpc_owner *root = storm.fixed[0]->owner;
	int64_t applied, asked, sum;
	uint32_t item, key, i;

	pcpc_domain_poll(storm.domain);
	for (item = 0; item < NR_ITEMS; item++) {
		sum = 0;
		for (key = item; key < NR_KEYS; key += NR_ITEMS) {
			sums_below(storm.fixed[0], key, &applied, &asked);
			sum = plus(sum, asked);
		}
		if (pcpc_stat_read_exact(root, item) != sum)
			violation("item %" PRIu32 " is %" PRId64 " at the end, asked for %" PRId64,
				  item, pcpc_stat_read_exact(root, item), sum);
	}
	if (pcpc_stat_read_exact(root, COUPLED))
		violation("what moves with units is %" PRId64 " without units",
			  pcpc_stat_read_exact(root, COUPLED));
	check_books();
	for (i = NR_FIXED; --i;)
		MUST(pcpc_owner_destroy(storm.fixed[i]->owner) == 0);
	pcpc_domain_poll(storm.domain);
	if (storm.nr_nodes != 1 || storm.domain->nr_owners != 1)
		violation("%" PRIu32 " owners are left", storm.domain->nr_owners);
	check_books();
	free_nodes();
}
