// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * event.c - counting events, and telling those who asked.
 *
 * An event is counted where it arises and above, at once. Who asked to be told is told by whoever
 * may call back: the owner is put on the domain's list, and the list is worked off when a charge
 * that may wait is done, or by pcpc_domain_poll(). Putting is an exchange or two, so it is safe
 * anywhere. Whoever puts something there and has not promised to work the list off itself rings.
 *
 * Everything about the list is sequentially consistent: each side writes one thing and then looks
 * at another (pending and rung, marks and pending, pending and untold), and one of the two must
 * see.
 */
#define _GNU_SOURCE
#include "owner_private.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

PCPC_THREAD_LOCAL struct pcpc_thread pcpc_this_thread;

#ifdef PCPC_TELLS_SECTIONS
char pcpc_sections;
#endif

/*
 * Makes the eventfd readable, unless it is. Pairs with pcpc_domain_poll(), which takes rung away
 * before it looks what there is to do: so whatever was there to do before this call is seen, by
 * that poll or by the next. errno is the interrupted program's.
 */
void pcpc_ring(struct pcpc_domain *domain)
{
	const uint64_t one = 1;
	int saved = errno;

	if (domain->eventfd < 0 || atomic_load(&domain->rung) ||
	    atomic_exchange(&domain->rung, true))
		return;
	/* Not write(), which is a cancellation point. */
	if (syscall(SYS_write, domain->eventfd, &one, sizeof(one)) < 0)
		errno = saved;
}

void pcpc_pending_push(struct pcpc_owner *owner)
{
	struct pcpc_domain *domain = owner->domain;
	struct pcpc_owner *head = atomic_load(&domain->pending);

	do {
		atomic_store_explicit(&books_of(owner)->pending_next, head, memory_order_relaxed);
	} while (!atomic_compare_exchange_weak(&domain->pending, &head, owner));
}

/* The whole list, linked by pending_next. */
struct pcpc_owner *pcpc_pending_take(struct pcpc_domain *domain)
{
	return atomic_exchange(&domain->pending, NULL);
}

/* Puts an owner on the list, with a reference, once. */
void pcpc_queue(struct pcpc_owner *owner, uint32_t marks)
{
	struct pcpc_domain *domain = owner->domain;
	struct pcpc_books *books = books_of(owner);

	marks |= MARK_QUEUED;
	/* Whoever takes these marks off does so after this look, and after what they stand for. */
	if ((atomic_load(&books->marks) & marks) == marks)
		return;
	/* First, so that QUEUED never stands without it: see owner_fork.c. */
	pcpc_owner_get(owner);
	if (atomic_fetch_or(&books->marks, marks) & MARK_QUEUED)
		pcpc_owner_put(owner);
	else
		pcpc_pending_push(owner);
	/* Another thread may have added an event before the owner was on the list to be found. */
	if (atomic_load(&books->marks) & MARK_EVENTS)
		atomic_store(&domain->untold, true);
	/* What only poll may do is rung for in any case. */
	if (marks & MARK_UNSURE ||
	    atomic_load_explicit(&pcpc_this_thread.promised, memory_order_relaxed) != domain)
		pcpc_ring(domain);
}

void pcpc_raise(struct pcpc_owner *owner, enum pcpc_event event)
{
	struct pcpc_owner *level;

	/* Relaxed: counters. */
	for (level = owner; level; level = level->parent)
		atomic_fetch_add_explicit(&books_of(level)->events[event], 1, memory_order_relaxed);
	if (atomic_load_explicit(&owner->domain->nr_notify, memory_order_relaxed))
		pcpc_queue(owner, 1u << event);
}

static void tell(struct pcpc_owner *owner, enum pcpc_event event)
{
	struct pcpc_domain *domain = owner->domain;
	struct pcpc_owner *level;
	pcpc_notify_fn *notify;
	void *context;

	for (level = owner; level; level = level->parent) {
		pthread_mutex_lock(&domain->tree_mutex);
		notify = books_of(level)->notify;
		context = books_of(level)->notify_context;
		pthread_mutex_unlock(&domain->tree_mutex);
		if (notify)
			notify(owner, event, context);
	}
}

/* Calls back for one owner that was on the list, and gives its reference up. */
static void tell_of(struct pcpc_owner *owner)
{
	uint32_t marks = atomic_fetch_and(&books_of(owner)->marks, ~(MARK_EVENTS | MARK_QUEUED));
	unsigned int event;

	for (event = 0; event < PCPC_NR_EVENTS; event++)
		if (marks & 1u << event)
			tell(owner, (enum pcpc_event)event);
	/* What only poll may do stays on the list. */
	if (marks & MARK_UNSURE)
		pcpc_queue(owner, MARK_UNSURE);
	pcpc_owner_put(owner);
}

/* This thread will work domain's list off when the call in progress is done: what it puts there
 * until then need not be rung for. Returns what it had promised before, for pcpc_deliver(). */
struct pcpc_domain *pcpc_promise(struct pcpc_domain *domain)
{
	struct pcpc_domain *before =
		atomic_load_explicit(&pcpc_this_thread.promised, memory_order_relaxed);

	atomic_store_explicit(&pcpc_this_thread.promised, domain, memory_order_relaxed);
	return before;
}

/*
 * Keeps the promise, once: what callbacks put on the list meanwhile is rung for, and left to
 * pcpc_domain_poll(). Inside a callback too, so callbacks do not nest.
 */
void pcpc_deliver(struct pcpc_domain *domain, struct pcpc_domain *before)
{
	struct pcpc_thread *thread = &pcpc_this_thread;
	struct pcpc_owner *owner;

	atomic_store_explicit(&thread->promised, before, memory_order_relaxed);
	/* A signal handler that finds no promise rings; what one before has put there is seen. */
	atomic_signal_fence(memory_order_seq_cst);
	if (before == domain || !atomic_load(&domain->untold))
		return;
	if (thread->delivering) {
		pcpc_ring(domain);
		return;
	}
	atomic_store(&domain->untold, false);
	thread->delivering = domain;
	thread->in_hand = pcpc_pending_take(domain);
	while ((owner = thread->in_hand)) {
		thread->in_hand =
			atomic_load_explicit(&books_of(owner)->pending_next, memory_order_relaxed);
		tell_of(owner);
	}
	thread->delivering = NULL;
}

uint64_t pcpc_owner_events(const struct pcpc_owner *owner, enum pcpc_event event)
{
	if (!owner || (unsigned int)event >= PCPC_NR_EVENTS)
		return 0;
	return atomic_load_explicit(&books_of(owner)->events[event], memory_order_relaxed);
}

int pcpc_owner_set_notify(struct pcpc_owner *owner, pcpc_notify_fn *notify, void *context)
{
	struct pcpc_books *books;

	if (!owner)
		return -EINVAL;
	books = books_of(owner);
	pthread_mutex_lock(&owner->domain->tree_mutex);
	if (!books->notify != !notify)
		atomic_fetch_add_explicit(&owner->domain->nr_notify, notify ? 1u : -1u,
					  memory_order_relaxed);
	books->notify = notify;
	books->notify_context = context;
	pthread_mutex_unlock(&owner->domain->tree_mutex);
	return 0;
}

int pcpc_owner_set_reclaim(struct pcpc_owner *owner, pcpc_reclaim_fn *reclaim, void *context)
{
	struct pcpc_books *books;

	if (!owner)
		return -EINVAL;
	books = books_of(owner);
	pthread_mutex_lock(&owner->domain->tree_mutex);
	books->reclaim = reclaim;
	books->reclaim_context = context;
	pthread_mutex_unlock(&owner->domain->tree_mutex);
	return 0;
}
