// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * limit.c - what happens at a limit: making room, making sure, and set_max.
 *
 * Units that lie in stocks count as used, so an owner may look full and not be. How much its
 * subtree may stock is its cap (cap.c). When a charge does not fit, the stocks of the subtree are
 * drained, at most every 100 ms; then its reclaim function frees something; then the cap is set to
 * 0, and after a grace period, a drain and another grace period nothing of the subtree is stocked
 * any more nor on its way: what does not fit now does not fit. While that lasts ("exact"), refusals
 * need no drain. The cap grows again by time, when the owner is no longer full or its reclaim
 * function keeps up.
 */
#define _GNU_SOURCE
#include "owner_private.h"

#include <errno.h>

#define NR_RECLAIMS 16
#define RECLAIM_SPINS 1000
#define NR_ROUNDS 200 /* tries of one charge in all: limits may change all the time */

/* -- draining -- */

struct subtree {
	const struct pcpc_domain *domain;
	const struct pcpc_owner *top;
	uint64_t back;
};

static bool in_subtree(uint32_t id, void *context)
{
	const struct subtree *subtree = context;

	return pcpc_within(owner_of(subtree->domain, id), subtree->top);
}

static void settle_drained(const struct pcpc_deferred *deferred, void *context)
{
	struct subtree *subtree = context;

	subtree->back += deferred->count;
	pcpc_settle_straight(owner_of(subtree->domain, deferred->owner), deferred->count,
			     deferred->delta);
}

/* Drains a subtree, inside a read-side section: the owners of words that were taken live until they
 * are settled. Returns 0, or what membarrier says. */
int pcpc_drain_subtree(struct pcpc_owner *over, uint64_t *ret_back)
{
	struct subtree subtree = { over->domain, over, 0 };
	int r;

	urcu_bp_read_lock();
	r = pcpc_cache_drain(over->domain->cache, in_subtree, settle_drained, &subtree);
	urcu_bp_read_unlock();
	/* Relaxed: a figure. */
	atomic_fetch_add_explicit(&over->domain->drains, 1, memory_order_relaxed);
	*ret_back = subtree.back;
	return r;
}

uint64_t pcpc_owner_drain(struct pcpc_owner *owner)
{
	struct pcpc_domain *before;
	uint64_t back;
	bool delivers = may_wait(0);

	if (!owner)
		return 0;
	before = delivers ? pcpc_promise(owner->domain) : NULL;
	(void)pcpc_drain_subtree(owner, &back);
	if (delivers)
		pcpc_deliver(owner->domain, before);
	return back;
}

/* -- making room -- */

static bool is_exact(struct pcpc_books *books)
{
	return atomic_load(&books->cap) & CAP_EXACT;
}

/* Of several that find the drain due at once, each drains: that is one round for all. What it
 * brought back is the most that one of them was given. */
static void drain_for_charge(struct pcpc_owner *over)
{
	struct pcpc_books *books = books_of(over);
	uint64_t back, max = atomic_load(&books->max);

	pcpc_raise(over, PCPC_EVENT_DRAIN);
	(void)pcpc_drain_subtree(over, &back);
	/* Relaxed: figures. */
	if (pcpc_due(&books->drained_at) ||
	    back > atomic_load_explicit(&books->brought_back, memory_order_relaxed))
		atomic_store_explicit(&books->brought_back, back, memory_order_relaxed);
	if (back > max / 64 && !kernel_style(over->domain))
		pcpc_halve_cap(books);
}

/*
 * A cap that is pinned becomes exact. After the first grace period nobody puts units of the subtree
 * into a stock any more; the drain takes those that are in one; but another owner's slow path that
 * began meanwhile may have evicted some before the drain came by, and holds them until the second
 * grace period is over.
 */
static int make_exact(struct pcpc_owner *over)
{
	struct pcpc_books *books = books_of(over);
	uint64_t back, old;
	int r;

	if (is_exact(books))
		return 0;
	PCPC_GRACE(SURPLUS);
	pcpc_raise(over, PCPC_EVENT_DRAIN);
	r = pcpc_drain_subtree(over, &back);
	if (r < 0)
		return r;
	PCPC_GRACE(EVICTED);
	old = atomic_load(&books->cap);
	while (!(old & CAP_EXACT) &&
	       !atomic_compare_exchange_weak(&books->cap, &old, (old | CAP_EXACT) + CAP_NEW))
		;
	return 0;
}

/* What to free at once: the amount and a batch, also where the cap is 0: then what is left over
 * stays in the counter, and serves as many charges. */
static uint64_t wanted(struct pcpc_owner *over, uint64_t count)
{
	uint64_t own = atomic_load_explicit(&books_of(over)->own_batch, memory_order_relaxed);
	uint64_t part = atomic_load_explicit(&books_of(over)->max, memory_order_relaxed) / 64;
	uint64_t batch = atomic_load_explicit(&over->batch, memory_order_relaxed);

	if (own < part)
		part = own;
	return count + (batch > part ? batch : part);
}

/* Waits for a call in progress in another thread: most take a few microseconds. */
static void await_reclaim(struct pcpc_owner *over)
{
	_Atomic uint32_t *word = &books_of(over)->reclaiming;
	uint32_t busy = 1;
	int spins;

	for (spins = over->domain->nr_cpus > 1 ? RECLAIM_SPINS : 0; spins; spins--) {
		if (!atomic_load(word))
			return;
		caa_cpu_relax();
	}
	if (atomic_compare_exchange_strong(word, &busy, 2) || busy == 2)
		pcpc_futex_wait(word, 2, NULL);
}

/* Calls the reclaim function, or waits while another thread does. False: there is nothing to hope
 * for. */
static bool reclaim(struct pcpc_owner *over, uint64_t count)
{
	struct pcpc_books *books = books_of(over);
	pcpc_reclaim_fn *function;
	uint32_t idle = 0;
	uint64_t freed;
	void *context;

	pthread_mutex_lock(&over->domain->tree_mutex);
	function = books->reclaim;
	context = books->reclaim_context;
	pthread_mutex_unlock(&over->domain->tree_mutex);
	if (!function)
		return false;
	/* One caller's call has happened before the next one's. */
	if (!atomic_compare_exchange_strong(&books->reclaiming, &idle, 1)) {
		await_reclaim(over);
		return true;
	}
	pcpc_raise(over, PCPC_EVENT_RECLAIM);
	pcpc_owner_get(over);
	pcpc_this_thread.reclaiming = over;
	freed = function(over, wanted(over, count), context);
	pcpc_this_thread.reclaiming = NULL;
	/* Relaxed: a hint for grow(). */
	if (freed)
		atomic_store_explicit(&books->freed, true, memory_order_relaxed);
	if (atomic_exchange(&books->reclaiming, 0) > 1)
		pcpc_futex_wake(&books->reclaiming);
	pcpc_owner_put(over);
	return freed > 0;
}

void pcpc_trial_end(struct pcpc_trial *trial)
{
	if (trial->pinned)
		pcpc_unpin(&trial->pin);
	trial->pinned = false;
}

/* A try did not fit at over, whose cap word was that just before. Another owner than the last time:
 * all steps are to be taken anew. */
void pcpc_trial_look(struct pcpc_trial *trial, struct pcpc_owner *over, uint64_t cap)
{
	if (trial->over != over) {
		pcpc_trial_end(trial);
		*trial = (struct pcpc_trial){ .over = over, .rounds = trial->rounds };
		pcpc_raise(over, PCPC_EVENT_MAX);
	}
	trial->cap = cap;
}

/* Was the cap exact all through the try, under one max? Then it really did not fit. */
static bool is_final(const struct pcpc_trial *trial)
{
	const uint64_t same = CAP_EXACT | ~(CAP_NEW - 1);
	uint64_t cap = atomic_load(&books_of(trial->over)->cap);

	return trial->cap & CAP_EXACT && !((trial->cap ^ cap) & same);
}

/* Leaves it to poll to make sure whether count fits. */
void pcpc_leave_to_poll(struct pcpc_owner *over, uint64_t count)
{
	atomic_u64 *unsure = &books_of(over)->unsure;
	uint64_t most = atomic_load(unsure);

	while (count > most && !atomic_compare_exchange_weak(unsure, &most, count))
		;
	pcpc_queue(over, MARK_UNSURE);
}

/* Stocks first, then what can be reclaimed. True: something was done, so try again. */
static bool find_room(struct pcpc_trial *trial, uint64_t count, unsigned int flags)
{
	struct pcpc_books *books = books_of(trial->over);

	if (!trial->drained) {
		trial->drained = true;
		if (!is_exact(books) && pcpc_long_ago(&books->drained_at)) {
			drain_for_charge(trial->over);
			return true;
		}
	}
	if (trial->reclaimed || flags & PCPC_NORECLAIM || pcpc_this_thread.reclaiming)
		return false;
	trial->reclaimed = !reclaim(trial->over, count) || ++trial->reclaims >= NR_RECLAIMS;
	return trial->reclaims > 0;
}

/*
 * The last try of a charge of count did not fit. Takes the next step towards making it fit. Returns
 * 0: try again; -EDQUOT: it did not fit; -EAGAIN: it is not known.
 */
int pcpc_make_room(struct pcpc_trial *trial, uint64_t count, unsigned int flags)
{
	struct pcpc_owner *over = trial->over;

	if (count > atomic_load(&books_of(over)->max) || flags & PCPC_FORCE)
		return -EDQUOT;
	if (++trial->rounds > NR_ROUNDS)
		return -EAGAIN;
	if (may_wait(flags) && find_room(trial, count, flags))
		return 0;
	if (is_final(trial))
		return -EDQUOT;
	if (!may_wait(flags))
		return is_exact(books_of(over)) ? 0 : -EAGAIN;
	if (!trial->pinned) {
		pcpc_pin(&trial->pin, books_of(over));
		trial->pinned = true;
	}
	return make_exact(over) < 0 ? -EAGAIN : 0;
}

/* Makes the cap exact and lets it go. 0, or what membarrier says. */
static int make_sure_of_max(struct pcpc_owner *over)
{
	struct pcpc_pin pin;
	int r;

	pcpc_pin(&pin, books_of(over));
	r = make_exact(over);
	pcpc_unpin(&pin);
	return r;
}

/* What poll does: for a max that was lowered where nobody could wait, and for charges that could
 * not, what those would have done, until the largest of them would fit or surely does not. Where
 * that cannot be known here either, nothing stays to be done: poll would ring for itself. */
void pcpc_make_sure(struct pcpc_owner *over)
{
	struct pcpc_books *books = books_of(over);
	struct pcpc_trial trial = { .over = over };
	uint64_t count = atomic_exchange(&books->unsure, 0), max, usage;

	if (atomic_load(&books->usage) > atomic_load(&books->max)) {
		(void)make_sure_of_max(over);
		return;
	}
	do {
		trial.cap = atomic_load(&books->cap);
		max = atomic_load(&books->max);
		usage = atomic_load(&books->usage);
		if (count <= max && usage <= max - count)
			break;
	} while (pcpc_make_room(&trial, count, 0) == 0);
	pcpc_trial_end(&trial);
}

/* -- limits at run time -- */

/* Stores a new max, while the cap is pinned, or where nobody looks at it. Under the tree mutex: one
 * at a time, so that no max comes and goes without the number in the cap word changing. True: it is
 * lower than before. */
bool pcpc_store_max(struct pcpc_owner *owner, uint64_t max)
{
	struct pcpc_books *books = books_of(owner);
	uint64_t before;

	pthread_mutex_lock(&owner->domain->tree_mutex);
	/* Pairs with pcpc_counter_take() and whoever calls it. */
	before = atomic_exchange(&books->max, max);
	atomic_fetch_add(&books->cap, CAP_NEW);
	pthread_mutex_unlock(&owner->domain->tree_mutex);
	/* Some may fit now, and some never will. */
	pcpc_wake_all(books);
	return max < before;
}

/* Where usage is above the new max, nothing may be stocked by the time this returns; nor may
 * anything before, if it was above the old one. So the cap is 0 throughout. Below a max that came
 * down, whatever was stocked under the old cap is given back. */
static int change_max(struct pcpc_owner *owner, uint64_t max, bool waits)
{
	struct pcpc_books *books = books_of(owner);
	struct pcpc_pin pin;
	uint64_t back;
	bool lower;
	int r = 0;

	pcpc_pin(&pin, books);
	lower = pcpc_store_max(owner, max);
	if (atomic_load(&books->usage) > max)
		r = waits ? make_exact(owner) : -EAGAIN;
	pcpc_unpin(&pin);
	pcpc_restart_cap(owner);
	if (lower && waits && !is_exact(books))
		(void)pcpc_drain_subtree(owner, &back);
	pcpc_check_relieved(owner);
	if (r == -EAGAIN)
		pcpc_leave_to_poll(owner, 0);
	return r;
}

int pcpc_owner_set_max(struct pcpc_owner *owner, uint64_t max)
{
	struct pcpc_domain *before;
	int r;

	if (!owner || max > PCPC_UNLIMITED)
		return -EINVAL;
	if (!may_wait(0))
		return change_max(owner, max, false);
	before = pcpc_promise(owner->domain);
	r = change_max(owner, max, true);
	pcpc_deliver(owner->domain, before);
	return r;
}

int pcpc_owner_set_high(struct pcpc_owner *owner, uint64_t high)
{
	struct pcpc_books *books;

	if (!owner || high > PCPC_UNLIMITED)
		return -EINVAL;
	books = books_of(owner);
	atomic_store(&books->high, high);
	if (atomic_load(&books->usage) <= high)
		atomic_fetch_and(&books->marks, ~MARK_ABOVE_HIGH);
	pcpc_check_high(owner, atomic_load(&books->usage));
	return 0;
}
