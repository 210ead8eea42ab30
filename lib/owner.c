// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * owner.c - the tree of owners: making, finding and looking at them, and taking them offline.
 *
 * All owners of a domain stand in two arrays indexed by id, which are mapped once and never moved:
 * hot lines in one, everything else in the other. An owner that is destroyed goes offline and stays
 * where it is, so that late uncharges find it, until a sweep finds it without units and references;
 * then its id is free.
 *
 * No callback runs, and no grace period is waited for, under the tree mutex. The lock order is in
 * owner_fork.c.
 */
#define _GNU_SOURCE
#include "owner_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* -- links; all under the tree mutex -- */

static void link_child(struct pcpc_owner *parent, struct pcpc_owner *child)
{
	struct pcpc_books *above = books_of(parent), *books = books_of(child);

	books->previous = 0;
	books->next = above->first_child;
	if (books->next)
		books_of(owner_of(child->domain, books->next))->previous = child->id;
	above->first_child = child->id;
	above->nr_live_children++;
}

void pcpc_owner_unlink(struct pcpc_owner *child)
{
	struct pcpc_books *books = books_of(child);

	if (books->next)
		books_of(owner_of(child->domain, books->next))->previous = books->previous;
	if (books->previous)
		books_of(owner_of(child->domain, books->previous))->next = books->next;
	else
		books_of(child->parent)->first_child = books->next;
}

/* Relaxed: read by slow paths, which may be a little late. False: it was no less. */
static bool raise_to(_Atomic uint32_t *figure, uint64_t value)
{
	if (atomic_load_explicit(figure, memory_order_relaxed) >= value)
		return false;
	atomic_store_explicit(figure, (uint32_t)value, memory_order_relaxed);
	return true;
}

/* An interior owner stocks eight times what the level below does, unless its batch was given. */
static void raise_batches(struct pcpc_owner *owner)
{
	struct pcpc_books *books = books_of(owner);
	uint64_t batch = atomic_load_explicit(&books->own_batch, memory_order_relaxed);
	uint64_t widest = batch;
	struct pcpc_owner *level;
	bool raised;

	raise_to(&books->widest, batch);
	if (kernel_style(owner->domain))
		return;
	for (level = owner->parent; level; level = level->parent) {
		books = books_of(level);
		batch = batch * 8 < PCPC_COUNT_MAX ? batch * 8 : PCPC_COUNT_MAX;
		raised = !books->batch_given && raise_to(&books->own_batch, batch);
		batch = atomic_load_explicit(&books->own_batch, memory_order_relaxed);
		widest = batch > widest ? batch : widest;
		if (!raise_to(&books->widest, widest) && !raised)
			return;
	}
}

/* After a batch that was given is not given any more. */
static void raise_from_children(struct pcpc_owner *owner)
{
	uint32_t id;

	for (id = books_of(owner)->first_child; id; id = owner->domain->books[id].next)
		raise_batches(owner_of(owner->domain, id));
}

static uint32_t stocked_batch(const struct pcpc_domain *domain, uint32_t batch)
{
	if (!batch)
		batch = domain->batch;
	return batch == PCPC_BATCH_NONE ? 0 : batch;
}

/* Memory for a name, if it is too long for the books. */
int pcpc_long_name(const char *name, struct pcpc_long_name **ret_name)
{
	size_t length = name ? strlen(name) : 0;

	*ret_name = NULL;
	if (length < sizeof(((struct pcpc_books *)NULL)->short_name))
		return 0;
	*ret_name = malloc(sizeof(**ret_name) + length + 1);
	if (!*ret_name)
		return -ENOMEM;
	(*ret_name)->next = NULL;
	memcpy((*ret_name)->text, name, length + 1);
	return 0;
}

/* With no lock held: free() may be the program's, and charge. */
void pcpc_free_names(struct pcpc_long_name *names)
{
	struct pcpc_long_name *next;

	for (; names; names = next) {
		next = names->next;
		free(names);
	}
}

/* Fills in an owner that nobody can reach yet. */
void pcpc_owner_init(struct pcpc_domain *domain, uint32_t id, struct pcpc_owner *parent,
		     const struct pcpc_owner_config *config, struct pcpc_long_name *name)
{
	const struct pcpc_fast *fast = &domain->cache->fast;
	struct pcpc_owner *owner = owner_of(domain, id);
	struct pcpc_books *books = &domain->books[id];
	uint64_t max = config->max ? config->max : PCPC_UNLIMITED;

	memset(books, 0, sizeof(*books));
	books->long_name = name;
	if (!name && config->name)
		strcpy(books->short_name, config->name);
	owner->id = id;
	owner->domain = domain;
	owner->parent = parent;
	owner->depth = parent ? parent->depth + 1 : 0;
	owner->word = pcpc_fast_word(fast, 0, id);
	owner->stride = fast->stride;
	owner->area = fast->area;
	atomic_store_explicit(&books->max, max, memory_order_relaxed);
	atomic_store_explicit(&books->high, config->high ? config->high : PCPC_UNLIMITED,
			      memory_order_relaxed);
	atomic_store_explicit(&books->own_batch, stocked_batch(domain, config->batch),
			      memory_order_relaxed);
	atomic_store_explicit(&books->least_wanted, UINT64_MAX, memory_order_relaxed);
	atomic_store_explicit(&books->refs, 1, memory_order_relaxed);
	atomic_store_explicit(&books->cap, pcpc_first_cap(domain, max), memory_order_relaxed);
	atomic_store_explicit(&books->changed_at, pcpc_now(), memory_order_relaxed);
	books->batch_given = config->batch != 0;
	books->context = config->context;
	pcpc_stat_begin(owner);
}

/* From now on it can be charged. */
void pcpc_owner_set_live(struct pcpc_owner *owner)
{
	urcu_bp_read_lock();
	(void)pcpc_effective_batch(owner);
	urcu_bp_read_unlock();
	atomic_store_explicit(&books_of(owner)->state, OWNER_LIVE, memory_order_relaxed);
	atomic_store_explicit(&owner->limit, owner->domain->cache->fast.limit,
			      memory_order_relaxed);
	/* Before its id stands in any slot: pairs with the acquire of a drain that reads the word.
	 */
	atomic_thread_fence(memory_order_release);
}

bool pcpc_batch_sound(uint32_t batch)
{
	return batch <= PCPC_COUNT_MAX || batch == PCPC_BATCH_NONE;
}

/* Under the tree mutex. */
static int add_owner(struct pcpc_owner *parent, const struct pcpc_owner_config *config,
		     struct pcpc_long_name *name, struct pcpc_owner **ret_owner)
{
	struct pcpc_domain *domain = parent->domain;
	struct pcpc_owner *owner;
	uint32_t id;

	if (owner_offline(parent))
		return -ESHUTDOWN;
	id = pcpc_id_take(domain->ids);
	if (!id)
		return -ENOSPC;
	owner = owner_of(domain, id);
	pcpc_owner_init(domain, id, parent, config, name);
	pcpc_owner_get(parent);
	link_child(parent, owner);
	raise_batches(owner);
	domain->nr_owners++;
	books_of(owner)->born = domain->made++;
	if (id > domain->highest_id)
		domain->highest_id = id;
	pcpc_owner_set_live(owner);
	*ret_owner = owner;
	return 0;
}

static int lock_and_add(struct pcpc_owner *parent, const struct pcpc_owner_config *config,
			struct pcpc_long_name *name, struct pcpc_owner **ret_owner)
{
	int r;

	/* Registered with liburcu-bp before the mutex is held, for fork waits the other way round.
	 */
	pcpc_thread_register();
	pthread_mutex_lock(&parent->domain->tree_mutex);
	r = add_owner(parent, config, name, ret_owner);
	pthread_mutex_unlock(&parent->domain->tree_mutex);
	return r;
}

int pcpc_owner_create(struct pcpc_owner *parent, const struct pcpc_owner_config *config,
		      struct pcpc_owner **ret_owner)
{
	struct pcpc_owner_config chosen = { .size = sizeof(chosen) };
	struct pcpc_long_name *name;
	int r = 0;

	if (!parent || !ret_owner)
		return -EINVAL;
	if (config)
		r = pcpc_read_struct(&chosen, sizeof(chosen), sizeof(chosen), config);
	if (r < 0 || chosen.max > PCPC_UNLIMITED || chosen.high > PCPC_UNLIMITED ||
	    !pcpc_batch_sound(chosen.batch) || parent->depth >= PCPC_DEPTH_MAX)
		return -EINVAL;
	r = pcpc_long_name(chosen.name, &name);
	if (r < 0)
		return r;
	r = lock_and_add(parent, &chosen, name, ret_owner);
	/* Owners that went may still have their ids. */
	if (r == -ENOSPC && may_wait(0)) {
		pcpc_sweep(parent->domain);
		r = lock_and_add(parent, &chosen, name, ret_owner);
	}
	if (r < 0)
		pcpc_free_names(name);
	pcpc_sweep_if_due(parent->domain);
	return r;
}

static void wake_all_above(struct pcpc_owner *owner)
{
	for (; owner; owner = owner->parent)
		pcpc_wake_all(books_of(owner));
}

int pcpc_owner_destroy(struct pcpc_owner *owner)
{
	struct pcpc_domain *domain;
	struct pcpc_books *books;
	int r = 0;

	if (!owner)
		return 0;
	domain = owner->domain;
	books = books_of(owner);
	pthread_mutex_lock(&domain->tree_mutex);
	if (!owner->parent || owner_offline(owner)) {
		r = -EINVAL;
	} else if (books->nr_live_children) {
		r = -EBUSY;
	} else {
		/* Release: pairs with owner_offline(). The fast path is shut first; an operation
		 * that was on it ends on the slow path, or on a word that the sweep's drain takes.
		 */
		atomic_store_explicit(&owner->limit, 0, memory_order_relaxed);
		atomic_store_explicit(&books->state, OWNER_OFFLINE, memory_order_release);
		books_of(owner->parent)->nr_live_children--;
		books->next_offline = domain->first_offline;
		domain->first_offline = owner->id;
		atomic_fetch_add_explicit(&domain->nr_offline, 1, memory_order_relaxed);
		if (books->notify)
			atomic_fetch_sub_explicit(&domain->nr_notify, 1, memory_order_relaxed);
		books->notify = NULL;
		books->reclaim = NULL;
	}
	pthread_mutex_unlock(&domain->tree_mutex);
	if (r < 0)
		return r;
	/* Whoever waits to charge it, wherever it did not fit, is to learn of this. */
	wake_all_above(owner);
	/* What it has in stocks is to be drained, also while others have references. */
	pcpc_want_sweep(domain);
	pcpc_owner_put(owner);
	pcpc_sweep_if_due(domain);
	return 0;
}

struct pcpc_owner *pcpc_owner_get(struct pcpc_owner *owner)
{
	/* Relaxed: the caller has a reference or units, so it cannot go away. */
	if (owner)
		atomic_fetch_add_explicit(&books_of(owner)->refs, 1, memory_order_relaxed);
	return owner;
}

void pcpc_owner_put(struct pcpc_owner *owner)
{
	struct pcpc_domain *domain;

	if (!owner)
		return;
	domain = owner->domain;
	/* Release: pairs with the acquire in idle(). After this the owner may be gone. */
	if (atomic_fetch_sub_explicit(&books_of(owner)->refs, 1, memory_order_release) == 1)
		pcpc_want_sweep(domain);
}

/* -- looking at owners -- */

uint32_t pcpc_owner_id(const struct pcpc_owner *owner)
{
	return owner ? owner->id : 0;
}

struct pcpc_owner *pcpc_owner_by_id(struct pcpc_domain *domain, uint32_t id)
{
	if (!domain || !pcpc_owner_valid(id) ||
	    atomic_load_explicit(&domain->books[id].state, memory_order_acquire) == OWNER_FREE)
		return NULL;
	return owner_of(domain, id);
}

struct pcpc_owner *pcpc_owner_parent(const struct pcpc_owner *owner)
{
	return owner ? owner->parent : NULL;
}

const char *pcpc_owner_name(const struct pcpc_owner *owner)
{
	return owner ? name_of(books_of(owner)) : NULL;
}

void *pcpc_owner_context(const struct pcpc_owner *owner)
{
	return owner ? books_of(owner)->context : NULL;
}

/* The next one of a list of siblings that is live and that old, with a reference. Under the tree
 * mutex. */
static struct pcpc_owner *live_from(struct pcpc_domain *domain, uint32_t id, uint64_t born_before)
{
	while (id && (owner_offline(owner_of(domain, id)) || domain->books[id].born >= born_before))
		id = domain->books[id].next;
	return id ? pcpc_owner_get(owner_of(domain, id)) : NULL;
}

/* The owner that a walk visits after this one, with a reference; that of this one is given up. A
 * reference keeps an owner, its ancestors, and its place among its siblings. */
static struct pcpc_owner *walk_on(struct pcpc_owner *owner, const struct pcpc_owner *top)
{
	struct pcpc_domain *domain = owner->domain;
	struct pcpc_owner *level, *next;

	pthread_mutex_lock(&domain->tree_mutex);
	next = live_from(domain, books_of(owner)->first_child, UINT64_MAX);
	for (level = owner; !next && level != top; level = level->parent)
		next = live_from(domain, books_of(level)->next, UINT64_MAX);
	pthread_mutex_unlock(&domain->tree_mutex);
	pcpc_owner_put(owner);
	return next;
}

/*
 * The first live child (after: NULL), or the next one after another, with a reference; that of the
 * other, which keeps its place, is given up. Of those that were made when born_before owners had
 * been made only: as new ones come first in their list, a walk meets none of them.
 */
struct pcpc_owner *pcpc_owner_child(struct pcpc_owner *parent, struct pcpc_owner *after,
				    uint64_t born_before)
{
	struct pcpc_domain *domain = parent->domain;
	struct pcpc_owner *child;

	pthread_mutex_lock(&domain->tree_mutex);
	child = live_from(domain, after ? books_of(after)->next : books_of(parent)->first_child,
			  born_before);
	pthread_mutex_unlock(&domain->tree_mutex);
	pcpc_owner_put(after);
	return child;
}

/* The live owner of an id, with a reference; or NULL. */
struct pcpc_owner *pcpc_owner_find(struct pcpc_domain *domain, uint32_t id)
{
	struct pcpc_owner *owner = NULL;

	if (!pcpc_owner_valid(id))
		return NULL;
	pthread_mutex_lock(&domain->tree_mutex);
	if (atomic_load_explicit(&domain->books[id].state, memory_order_relaxed) == OWNER_LIVE)
		owner = pcpc_owner_get(owner_of(domain, id));
	pthread_mutex_unlock(&domain->tree_mutex);
	return owner;
}

void pcpc_owner_walk(struct pcpc_owner *owner, pcpc_visit_fn *visit, void *context)
{
	struct pcpc_owner *level;

	if (!owner || !visit)
		return;
	for (level = pcpc_owner_get(owner); level; level = walk_on(level, owner)) {
		if (!visit(level, level->depth - owner->depth, context)) {
			pcpc_owner_put(level);
			return;
		}
	}
}

int pcpc_owner_set_batch(struct pcpc_owner *owner, uint32_t batch)
{
	struct pcpc_domain *domain;

	if (!owner || !pcpc_batch_sound(batch))
		return -EINVAL;
	domain = owner->domain;
	pthread_mutex_lock(&domain->tree_mutex);
	books_of(owner)->batch_given = batch != 0;
	/* Relaxed: read by slow paths, which may be a little late. */
	atomic_store_explicit(&books_of(owner)->own_batch, stocked_batch(domain, batch),
			      memory_order_relaxed);
	raise_batches(owner);
	if (!batch)
		raise_from_children(owner);
	pthread_mutex_unlock(&domain->tree_mutex);
	urcu_bp_read_lock();
	(void)pcpc_effective_batch(owner);
	urcu_bp_read_unlock();
	return 0;
}

/* Relaxed, all of these: figures, a moment old. */
uint64_t pcpc_owner_max(const struct pcpc_owner *owner)
{
	return owner ? atomic_load_explicit(&books_of(owner)->max, memory_order_relaxed) : 0;
}

uint64_t pcpc_owner_high(const struct pcpc_owner *owner)
{
	return owner ? atomic_load_explicit(&books_of(owner)->high, memory_order_relaxed) : 0;
}

uint64_t pcpc_owner_usage(const struct pcpc_owner *owner)
{
	return owner ? atomic_load_explicit(&books_of(owner)->usage, memory_order_relaxed) : 0;
}

uint64_t pcpc_owner_peak(const struct pcpc_owner *owner)
{
	return owner ? atomic_load_explicit(&books_of(owner)->peak, memory_order_relaxed) : 0;
}

void pcpc_owner_reset_peak(struct pcpc_owner *owner)
{
	if (!owner)
		return;
	/* A charge that raised it in between is put in again. */
	atomic_store(&books_of(owner)->peak, 0);
	pcpc_counter_peak(books_of(owner), atomic_load(&books_of(owner)->usage));
}

/* Is owner in the subtree of top? Depths tell how far to climb. */
bool pcpc_within(const struct pcpc_owner *owner, const struct pcpc_owner *top)
{
	while (owner->depth > top->depth)
		owner = owner->parent;
	return owner == top;
}

/* The same by id, in the domain of context, which is the top. */
bool pcpc_id_within(uint32_t id, void *context)
{
	const struct pcpc_owner *top = context;

	return pcpc_within(owner_of(top->domain, id), top);
}

uint64_t pcpc_owner_stocked(struct pcpc_owner *owner)
{
	uint64_t stocked;

	if (!owner)
		return 0;
	if (!atomic_load(&books_of(owner)->first_child))
		return pcpc_cache_stocked(owner->domain->cache, owner->id);
	/* The owners of the words that are read are looked at. */
	urcu_bp_read_lock();
	stocked = pcpc_cache_sum(owner->domain->cache, pcpc_id_within, owner);
	urcu_bp_read_unlock();
	return stocked;
}

uint64_t pcpc_owner_usage_exact(struct pcpc_owner *owner)
{
	uint64_t stocked = pcpc_owner_stocked(owner), usage = pcpc_owner_usage(owner);

	return stocked < usage ? usage - stocked : 0;
}

void pcpc_thread_register(void)
{
	urcu_bp_read_lock();
	urcu_bp_read_unlock();
}
