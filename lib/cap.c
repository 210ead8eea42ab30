// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * cap.c - how much the subtree of a limited owner may stock: one word an owner, which begins with
 * max, grows by time, is halved by drains that bring much back, and is 0 while somebody needs to be
 * exact. What is done at a limit is in limit.c.
 */
#define _GNU_SOURCE
#include "owner_private.h"

#include <time.h>

uint64_t pcpc_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Is a time that was noted 100 ms ago? Signed: another thread may have noted a later one. Relaxed:
 * a figure. */
bool pcpc_long_ago(atomic_u64 *figure)
{
	return (int64_t)(pcpc_now() - atomic_load_explicit(figure, memory_order_relaxed)) >=
	       PCPC_INTERVAL_NS;
}

/* Notes the time in a figure, if what stands there is 100 ms ago; false: it is not, or another
 * thread was first. Relaxed: of several, one. */
bool pcpc_due(atomic_u64 *figure)
{
	uint64_t now = pcpc_now(), then = atomic_load_explicit(figure, memory_order_relaxed);

	return (int64_t)(now - then) >= PCPC_INTERVAL_NS &&
	       atomic_compare_exchange_strong_explicit(figure, &then, now, memory_order_relaxed,
						       memory_order_relaxed);
}

static void note_change(struct pcpc_books *books)
{
	atomic_store_explicit(&books->changed_at, pcpc_now(), memory_order_relaxed);
}

/* Where a cap begins: one owner stocks a sixteenth of max at the most, on all CPUs together; in
 * kernel style it begins where it takes nothing away. */
uint32_t pcpc_first_cap(const struct pcpc_domain *domain, uint64_t max)
{
	uint64_t cap = max / (16ull * domain->nr_cpus);

	if (max >= PCPC_UNLIMITED)
		return CAP_NONE;
	if (kernel_style(domain))
		return PCPC_COUNT_MAX;
	if (cap < 1)
		cap = 1;
	return cap < PCPC_COUNT_MAX ? (uint32_t)cap : PCPC_COUNT_MAX;
}

/* Does an owner deserve a larger cap? Relaxed: figures that are compared, nothing goes with them.
 */
static bool may_grow(struct pcpc_books *books, uint64_t max)
{
	uint64_t usage = atomic_load_explicit(&books->usage, memory_order_relaxed);

	if (well_below(usage, max))
		return true;
	/* What was above a lowered max stays uncached. */
	return usage <= max && atomic_load_explicit(&books->freed, memory_order_relaxed) &&
	       atomic_load_explicit(&books->brought_back, memory_order_relaxed) <= max / 64;
}

/* Doubles the cap, 0 to 1, if it is due and nobody has it pinned. Leaves "exact" in the same step:
 * from then on something may be stocked. */
static void grow(struct pcpc_books *books)
{
	uint64_t max = atomic_load(&books->max), old = atomic_load(&books->cap);
	uint64_t cap = old & CAP_MASK;

	if (old & CAP_PINS || !may_grow(books, max) || !pcpc_due(&books->changed_at))
		return;
	cap = cap ? 2 * cap : 1;
	if (cap > PCPC_COUNT_MAX)
		cap = PCPC_COUNT_MAX;
	if (max >= PCPC_UNLIMITED)
		cap = CAP_NONE;
	cap |= old & ~(CAP_EXACT | CAP_MASK);
	if (atomic_compare_exchange_strong(&books->cap, &old, cap))
		atomic_store_explicit(&books->freed, false, memory_order_relaxed);
}

void pcpc_halve_cap(struct pcpc_books *books)
{
	uint64_t widest = atomic_load_explicit(&books->widest, memory_order_relaxed);
	uint64_t old = atomic_load(&books->cap), cap;

	do {
		cap = old & CAP_MASK;
		if (!cap || cap == CAP_NONE)
			return;
		cap = (cap < widest ? cap : widest) / 2;
	} while (!atomic_compare_exchange_weak(&books->cap, &old,
					       (old & ~(uint64_t)CAP_MASK) | cap));
	note_change(books);
}

/* Sets the cap to 0 and keeps it there. */
void pcpc_pin(struct pcpc_pin *pin, struct pcpc_books *books)
{
	uint64_t old = atomic_load(&books->cap), cap;

	pin->books = books;
	pin->outer = pcpc_this_thread.pins;
	pcpc_this_thread.pins = pin;
	do {
		cap = (old & ~(uint64_t)CAP_MASK) + CAP_PIN;
	} while (!atomic_compare_exchange_weak(&books->cap, &old, cap));
	if (old & CAP_MASK)
		note_change(books);
}

/* The cap stays 0 until it may grow. Pins are taken off in reverse order. */
void pcpc_unpin(struct pcpc_pin *pin)
{
	pcpc_this_thread.pins = pin->outer;
	atomic_fetch_sub(&pin->books->cap, CAP_PIN);
}

/*
 * How much an owner may stock in a slot now: its own batch, or less where a cap of its own or of an
 * ancestor says so. Kept in the hot line for the fast path, which has a slot to refill only while
 * no drain has come between; so a cap that changes need not look for those it concerns. Inside a
 * read-side section: a grace period after a cap was set to 0, nobody works with more.
 */
uint32_t pcpc_effective_batch(struct pcpc_owner *owner)
{
	uint32_t batch = atomic_load_explicit(&books_of(owner)->own_batch, memory_order_relaxed);
	struct pcpc_books *books;
	struct pcpc_owner *level;
	uint32_t cap;

	for (level = owner; level; level = level->parent) {
		books = books_of(level);
		/* Sequentially consistent, like all of the cap; the grace period is what orders it.
		 */
		cap = (uint32_t)(atomic_load(&books->cap) & CAP_MASK);
		if (cap == CAP_NONE)
			continue;
		if (cap < atomic_load_explicit(&books->widest, memory_order_relaxed))
			grow(books);
		if (cap < batch)
			batch = cap;
	}
	/* Relaxed: a hint for the fast path. */
	if (atomic_load_explicit(&owner->batch, memory_order_relaxed) != batch)
		atomic_store_explicit(&owner->batch, batch, memory_order_relaxed);
	return batch;
}

/* The cap begins anew after max has changed, unless usage is above it, or somebody has it pinned:
 * whoever stores another max does. */
void pcpc_restart_cap(struct pcpc_owner *owner)
{
	struct pcpc_books *books = books_of(owner);
	uint64_t old = atomic_load(&books->cap), max = atomic_load(&books->max), cap;

	if (old & CAP_PINS || atomic_load(&books->usage) > max)
		return;
	cap = (old & ~(CAP_EXACT | CAP_MASK)) | pcpc_first_cap(owner->domain, max);
	if (!atomic_compare_exchange_strong(&books->cap, &old, cap))
		return;
	/* Relaxed: figures. */
	atomic_store_explicit(&books->freed, false, memory_order_relaxed);
	note_change(books);
}
