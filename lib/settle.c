// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * settle.c - giving back what a stock has deferred: to counters, or to the stock of the parent.
 *
 * Everything here runs inside a read-side section that began before the amount left its slot.
 */
#include "owner_private.h"

/* Has usage been low enough for another crossing to be told? */
static bool is_low(const struct pcpc_books *books, uint64_t usage)
{
	uint64_t high = atomic_load(&books->high);

	return !usage || usage < high - high / 16;
}

/* Usage has risen to this. Each mark that is set or taken off is followed by a look at usage, for
 * whoever comes between finds the mark as it was. */
void pcpc_check_high(struct pcpc_owner *owner, uint64_t usage)
{
	struct pcpc_books *books = books_of(owner);

	while (usage > atomic_load(&books->high) &&
	       !(atomic_load(&books->marks) & MARK_ABOVE_HIGH) &&
	       !(atomic_fetch_or(&books->marks, MARK_ABOVE_HIGH) & MARK_ABOVE_HIGH)) {
		pcpc_raise(owner, PCPC_EVENT_HIGH);
		if (!is_low(books, atomic_load(&books->usage)))
			return;
		atomic_fetch_and(&books->marks, ~MARK_ABOVE_HIGH);
		usage = atomic_load(&books->usage);
	}
}

static void come_down(struct pcpc_owner *owner)
{
	struct pcpc_books *books = books_of(owner);

	if (!is_low(books, atomic_load(&books->usage)))
		return;
	atomic_fetch_and(&books->marks, ~MARK_ABOVE_HIGH);
	pcpc_check_high(owner, atomic_load(&books->usage));
}

/* After usage has come down, max risen, or a refusal been marked. */
void pcpc_check_relieved(struct pcpc_owner *owner)
{
	struct pcpc_books *books = books_of(owner);

	if (atomic_load(&books->marks) & MARK_REFUSED &&
	    well_below(atomic_load(&books->usage), atomic_load(&books->max)) &&
	    atomic_fetch_and(&books->marks, ~MARK_REFUSED) & MARK_REFUSED)
		pcpc_raise(owner, PCPC_EVENT_RELIEVED);
}

/*
 * Gives back to an owner's counter, and does what follows from that: wakes waiters, and notes that
 * usage has come down. Returns what the counter gave up: less only after an underflow, and then no
 * more than that may be passed on to the parent.
 */
uint64_t pcpc_give(struct pcpc_owner *owner, uint64_t amount)
{
	struct pcpc_books *books = books_of(owner);
	uint64_t given, usage;

	given = pcpc_counter_give(books, amount, &usage);
	if (given < amount)
		pcpc_raise(owner, PCPC_EVENT_UNDERFLOW);
	pcpc_wake_if_room(books);
	/* Who sets a mark looks at usage after. */
	if (atomic_load(&books->marks) & MARK_ABOVE_HIGH)
		come_down(owner);
	pcpc_check_relieved(owner);
	if (!usage && owner_offline(owner))
		pcpc_want_sweep(owner->domain);
	return given;
}

/* Settles up the counters, into no stock: what a drain has taken, and the victims of interior
 * owners. The delta first: the count may be what keeps the owner. */
void pcpc_settle_straight(struct pcpc_owner *owner, uint64_t count, int64_t delta)
{
	apply_coupled(owner, delta);
	for (; owner && count; owner = owner->parent)
		count = pcpc_give(owner, count);
}

/*
 * Settles an amount: the owner's counter gives it up, its parent's stock takes it in, and what that
 * defers is settled in turn. An owner that this evicts is settled straight, so nothing cascades
 * sideways, and each turn is a level higher.
 */
void pcpc_settle(struct pcpc_owner *owner, uint64_t count, int64_t delta)
{
	struct pcpc_domain *domain = owner->domain;
	const struct pcpc_owner *reclaiming = pcpc_this_thread.reclaiming;
	bool kernel = kernel_style(domain);
	bool straight = reclaiming && pcpc_within(owner, reclaiming);
	struct pcpc_deferred deferred;
	struct pcpc_marks marks;

	apply_coupled(owner, delta);
	while (count) {
		count = pcpc_give(owner, count);
		/* Inside a reclaim function units go where they are wanted. */
		if (owner == reclaiming)
			straight = false;
		owner = owner->parent;
		if (!owner || !count)
			return;
		if (kernel || straight || owner_offline(owner))
			continue;
		marks = marks_of(owner, pcpc_effective_batch(owner));
		pcpc_cache_refill(domain->cache, owner->id, count, 0, &marks, &deferred);
		if (deferred.owner != owner->id) {
			if (deferred.owner)
				pcpc_settle_straight(owner_of(domain, deferred.owner),
						     deferred.count, deferred.delta);
			return;
		}
		apply_coupled(owner, deferred.delta);
		count = deferred.count;
	}
}

void pcpc_settle_deferred(struct pcpc_domain *domain, const struct pcpc_deferred *deferred)
{
	if (deferred->owner)
		pcpc_settle(owner_of(domain, deferred->owner), deferred->count, deferred->delta);
}
