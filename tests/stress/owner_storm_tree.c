// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * owner_storm_tree.c - the program's own books of the tree: nodes, what is held, and the places
 * where threads find owners.
 */
#define _GNU_SOURCE
#include "owner_storm.h"

static pthread_mutex_t free_lock = PTHREAD_MUTEX_INITIALIZER;
static struct node *free_nodes;

/* In this order: a sweep gives nodes back under a tree mutex, which fork takes first. */
void tree_before_fork(void)
{
	pthread_mutex_lock(&free_lock);
}

void tree_after_fork(void)
{
	pthread_mutex_unlock(&free_lock);
}

/* With a reference for the caller, and one on its parent. */
struct node *node_new(struct node *parent)
{
	struct node *node;

	pthread_mutex_lock(&free_lock);
	node = free_nodes;
	if (node)
		free_nodes = node->next;
	pthread_mutex_unlock(&free_lock);
	if (!node)
		node = malloc(sizeof(*node));
	MUST(node);
	memset((void *)node, 0, sizeof(*node));
	atomic_store(&node->refs, 1);
	node->parent = parent;
	if (parent) {
		node_get(parent);
		node->depth = parent->depth + 1;
		node->fair = parent->fair;
	}
	return node;
}

struct node *node_get(struct node *node)
{
	atomic_fetch_add(&node->refs, 1);
	return node;
}

void node_put(struct node *node)
{
	struct node *parent;

	while (node && atomic_fetch_sub(&node->refs, 1) == 1) {
		parent = node->parent;
		pthread_mutex_lock(&free_lock);
		node->next = free_nodes;
		free_nodes = node;
		pthread_mutex_unlock(&free_lock);
		node = parent;
	}
}

/* After a charge, or before an uncharge: from a node up to a top, which is left out (NULL: past the
 * root). */
void account(struct node *node, const struct node *top, uint64_t units, bool more)
{
	for (; node != top; node = node->parent)
		atomic_fetch_add(&node->held, HELD_CHANGE + (more ? units : -units));
}

/* After an update, or before one that may be the last. */
void account_item(struct node *node, uint32_t item, int64_t delta)
{
	atomic_fetch_add(&node->own[item], delta);
	for (; node; node = node->parent)
		atomic_fetch_add(&node->sum[item], delta);
}

bool within(const struct node *node, const struct node *top)
{
	while (node && node != top)
		node = node->parent;
	return node != NULL;
}

/* The lowest that both are below. */
const struct node *common_top(const struct node *one, const struct node *other)
{
	while (!within(one, other))
		other = other->parent;
	return other;
}

/* Some node, with a reference on it and on its owner; or NULL. */
struct node *place_take(uint64_t *random)
{
	struct place *place = &storm.place[below(random, NR_PLACES)];
	struct node *node;

	pthread_mutex_lock(&place->lock);
	node = place->node;
	if (node) {
		node_get(node);
		pcpc_owner_get(node->owner);
	}
	pthread_mutex_unlock(&place->lock);
	return node;
}

/* Some limit. Small ones are met all the time. */
static uint64_t some_max(uint64_t *random)
{
	static const uint64_t least[] = { 1, 40, 400, 5000 };
	uint64_t base = least[below(random, 4)];

	return base + below(random, 8 * base);
}

static uint32_t some_batch(uint64_t *random)
{
	static const uint32_t batch[] = { 0, 0, 0, 1, 7, 100, PCPC_BATCH_NONE };

	return batch[below(random, 7)];
}

static struct node *create(struct node *parent, uint64_t *random)
{
	struct node *node = node_new(parent);
	struct pcpc_owner_config config = { .size = sizeof(config),
					    .batch = some_batch(random),
					    .context = node };
	char name[48];

	if (!node->fair && below(random, 2))
		config.max = some_max(random);
	if (below(random, 4) == 0)
		config.high = some_max(random);
	/* Some names are too long for the books. */
	snprintf(name, sizeof(name), "%s %u", below(random, 2) ? "a name of many letters" : "n",
		 node->depth);
	config.name = name;
	atomic_store(&node->highest_max, config.max);
	if (pcpc_owner_create(parent->owner, &config, &node->owner) < 0) {
		node_put(node);
		return NULL;
	}
	/* Until it is freed, see check_freed(). */
	node_get(node);
	if (below(random, 3) == 0)
		MUST(pcpc_owner_set_reclaim(node->owner, reclaim, node) == 0);
	if (below(random, 3) == 0)
		MUST(pcpc_owner_set_notify(node->owner, count_event, node) == 0);
	return node;
}

/* Makes an owner for some empty place. Returns 1 if it did. */
int place_create(uint64_t *random)
{
	struct place *place = &storm.place[below(random, NR_PLACES)];
	struct node *parent = place_take(random), *node = NULL;
	struct pcpc_owner *owner;

	if (!parent)
		return 0;
	owner = parent->owner;
	pthread_mutex_lock(&place->lock);
	if (!place->node && parent->depth < DEEPEST) {
		node = create(parent, random);
		place->node = node;
	}
	pthread_mutex_unlock(&place->lock);
	node_put(parent);
	pcpc_owner_put(owner);
	return node != NULL;
}

/* "Calls on it after that": charges, forced ones too, are refused. */
static void check_offline(struct pcpc_owner *owner)
{
	if (pcpc_charge(owner, 1) != -ESHUTDOWN ||
	    pcpc_charge_flags(owner, 1, PCPC_FORCE | PCPC_NOWAIT, NULL) != -ESHUTDOWN)
		violation("an owner was charged after it was destroyed");
}

static int destroy_at(struct place *place)
{
	struct pcpc_owner *owner = NULL;
	struct node *node;
	int r = -EINVAL;

	pthread_mutex_lock(&place->lock);
	node = place->node;
	if (node) {
		owner = pcpc_owner_get(node->owner);
		r = pcpc_owner_destroy(owner);
	}
	if (r == 0) {
		place->node = NULL;
		node_put(node);
	}
	pthread_mutex_unlock(&place->lock);
	if (r == 0)
		check_offline(owner);
	pcpc_owner_put(owner);
	return r == 0;
}

/* Takes some owner offline. Returns 1 if it did. The first two, root and fair, stay. */
int place_destroy(uint64_t *random)
{
	return destroy_at(&storm.place[2 + below(random, NR_PLACES - 2)]);
}

/* All but the root: children keep their parents from going, so in turns. */
void place_destroy_all(void)
{
	int i, depth;

	for (depth = 0; depth <= DEEPEST; depth++)
		for (i = 1; i < NR_PLACES; i++)
			destroy_at(&storm.place[i]);
	for (i = 1; i < NR_PLACES; i++)
		MUST(!storm.place[i].node);
}

static void grow_fair(uint64_t *random)
{
	struct pcpc_owner_config config = { .size = sizeof(config), .name = "fair" };
	struct node *node = node_new(storm.root);

	storm.fair_share = 1 + below(random, below(random, 2) ? 8 : 2000);
	config.max = storm.fair_share * storm.options.threads;
	config.context = node;
	node->fair = true;
	atomic_store(&node->highest_max, config.max);
	MUST(pcpc_owner_create(storm.root->owner, &config, &node->owner) == 0);
	storm.fair = node_get(node);
	storm.place[1].node = node;
}

/* The root, an owner whose limit is just what all threads may hold, and a tree as it comes. */
void tree_begin(uint64_t *random)
{
	int i;

	for (i = 0; i < NR_PLACES; i++)
		pthread_mutex_init(&storm.place[i].lock, NULL);
	storm.root = node_new(NULL);
	storm.root->owner = pcpc_domain_root(storm.domain);
	storm.place[0].node = storm.root;
	grow_fair(random);
	for (i = 0; i < 4 * NR_PLACES; i++)
		(void)place_create(random);
}
