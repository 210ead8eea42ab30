// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * sweep.c - freeing owners that are offline and that nobody has units of or a reference on.
 *
 * Nothing about a dead owner is kept per CPU, and slots hold no references: a sweep looks for its
 * words, and two grace periods see to it that nobody works with it.
 */
#define _GNU_SOURCE
#include "owner_private.h"

#define SWEEP_EVERY 1000u

/* A broken twin does not look, and must be seen to free owners that have units. */
#ifndef PCPC_UNITS_LEFT
#define PCPC_UNITS_LEFT(books) atomic_load(&(books)->usage)
#endif

static bool is_offline(uint32_t id, void *context)
{
	return owner_offline(owner_of(context, id));
}

static void settle_swept(const struct pcpc_deferred *deferred, void *context)
{
	pcpc_settle_straight(owner_of(context, deferred->owner), deferred->count, deferred->delta);
}

/* Acquire: pairs with pcpc_owner_put(). References first: whoever gives the last one up may have
 * had units until then. */
static bool idle(struct pcpc_books *books)
{
	return !atomic_load_explicit(&books->refs, memory_order_acquire) && !PCPC_UNITS_LEFT(books);
}

/* An offline owner may have become idle. */
void pcpc_want_sweep(struct pcpc_domain *domain)
{
	/* Before the bell: pairs with pcpc_domain_poll(). */
	atomic_store(&domain->sweep_wanted, true);
	pcpc_ring(domain);
}

/* What a sweep had in hand and did not free goes back to those that wait for one. */
void pcpc_put_back_offline(struct pcpc_domain *domain)
{
	uint32_t *link = &domain->first_offline;

	while (*link)
		link = &domain->books[*link].next_offline;
	*link = domain->sweeping;
	domain->sweeping = 0;
}

/* Nobody may begin anything with an owner that is idle now, but whoever gave its last units back
 * may still have it in hand. False: there is none. */
static bool note_idle(struct pcpc_domain *domain)
{
	bool any = false;
	uint32_t id;

	pthread_mutex_lock(&domain->tree_mutex);
	for (id = domain->sweeping; id; id = domain->books[id].next_offline) {
		domain->books[id].was_idle = idle(&domain->books[id]);
		any |= domain->books[id].was_idle;
	}
	pthread_mutex_unlock(&domain->tree_mutex);
	return any;
}

/* Frees one. Its parent, if it is offline too, is looked at in the next turn. */
static void free_owner(struct pcpc_owner *owner, struct pcpc_long_name **names)
{
	struct pcpc_domain *domain = owner->domain;
	struct pcpc_books *books = books_of(owner);

	pcpc_stat_retire(owner);
	pcpc_owner_unlink(owner);
	/* Release: as pcpc_owner_put() does. */
	atomic_fetch_sub_explicit(&books_of(owner->parent)->refs, 1, memory_order_release);
	if (books->notify)
		atomic_fetch_sub_explicit(&domain->nr_notify, 1, memory_order_relaxed);
	if (books->long_name) {
		books->long_name->next = *names;
		*names = books->long_name;
	}
	atomic_store_explicit(&books->state, OWNER_FREE, memory_order_relaxed);
	pcpc_id_give(domain->ids, owner->id);
	domain->nr_owners--;
	atomic_fetch_sub_explicit(&domain->nr_offline, 1, memory_order_relaxed);
}

/*
 * Frees those that are idle and were so before the last grace period. Whoever had one of them in
 * hand then may have queued it for an event, with a reference: such a one stays. One that became
 * idle since stays too, for the next turn.
 */
static void free_idle(struct pcpc_domain *domain, struct pcpc_long_name **names)
{
	uint32_t id, *link = &domain->sweeping;

	pthread_mutex_lock(&domain->tree_mutex);
	while ((id = *link)) {
		if (domain->books[id].was_idle && idle(&domain->books[id])) {
			*link = domain->books[id].next_offline;
			free_owner(owner_of(domain, id), names);
		} else {
			link = &domain->books[id].next_offline;
		}
	}
	pthread_mutex_unlock(&domain->tree_mutex);
}

/* Takes all that are offline in hand. False: there are none. */
static bool begin(struct pcpc_domain *domain)
{
	bool any;

	pthread_mutex_lock(&domain->tree_mutex);
	domain->sweeping = domain->first_offline;
	domain->first_offline = 0;
	any = domain->sweeping != 0;
	pthread_mutex_unlock(&domain->tree_mutex);
	return any;
}

static void end(struct pcpc_domain *domain)
{
	pthread_mutex_lock(&domain->tree_mutex);
	pcpc_put_back_offline(domain);
	pthread_mutex_unlock(&domain->tree_mutex);
	/* Relaxed: a figure. */
	atomic_fetch_add_explicit(&domain->sweeps, 1, memory_order_relaxed);
}

/* Takes the words of offline owners out of all stocks and settles them; 0, or what membarrier says.
 */
static int drain_offline(struct pcpc_domain *domain)
{
	int r;

	urcu_bp_read_lock();
	r = pcpc_cache_drain(domain->cache, is_offline, settle_swept, domain);
	urcu_bp_read_unlock();
	return r < 0 ? r : pcpc_stat_drain(domain, is_offline, domain);
}

/* The next one is due when so many more are offline. Relaxed: when, not whether. */
void pcpc_sweep_later(struct pcpc_domain *domain)
{
	uint32_t left = atomic_load_explicit(&domain->nr_offline, memory_order_relaxed);

	atomic_store_explicit(&domain->sweep_at, left + SWEEP_EVERY, memory_order_relaxed);
}

/* Not inside a read-side section. Names are freed in the end, with nothing locked: free() may be
 * one that charges, and polls. */
void pcpc_sweep(struct pcpc_domain *domain)
{
	struct pcpc_long_name *names = NULL;

	pthread_mutex_lock(&domain->sweep_mutex);
	atomic_store(&domain->sweep_wanted, false);
	if (begin(domain)) {
		/* No slow path that found one of them live is at work any more. */
		PCPC_GRACE(LIVE);
		/* Parents become idle when their children are freed: in turns. */
		if (drain_offline(domain) == 0) {
			while (note_idle(domain)) {
				PCPC_GRACE(IN_HAND);
				free_idle(domain, &names);
			}
		} else {
			atomic_store(&domain->sweep_wanted, true);
		}
		end(domain);
	}
	pcpc_sweep_later(domain);
	pthread_mutex_unlock(&domain->sweep_mutex);
	pcpc_free_names(names);
}

void pcpc_sweep_if_due(struct pcpc_domain *domain)
{
	/* Relaxed: when, not whether. */
	if (atomic_load_explicit(&domain->nr_offline, memory_order_relaxed) >=
		    atomic_load_explicit(&domain->sweep_at, memory_order_relaxed) &&
	    may_wait(0))
		pcpc_sweep(domain);
}
