// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * charge.c - charging and uncharging: the hit, and the tries that a miss makes.
 *
 * A hit touches the owner's hot line and its word in the running CPU's stock. Whatever defers
 * something, and every miss, runs inside a read-side section of liburcu-bp that begins before a
 * slot is read and ends after the last amount is settled: so an owner whose units are in somebody's
 * hands is not freed. Amounts are taken into counters before they are stocked or handed out, and
 * leave them after they have left the stocks: so a counter is never below what it stands for.
 *
 * How a miss takes units from the counters is in climb.c, settling in settle.c, what happens where
 * there is no room in limit.c.
 */
#define _GNU_SOURCE
#include "owner_private.h"

#include <errno.h>
#include <string.h>

/* Gives units back, or moves the coupled item where count is 0: into the stock, or where nothing is
 * to be stocked up the tree. Inside a read-side section. */
static void put_back(struct pcpc_owner *owner, uint64_t count, int64_t delta)
{
	const struct pcpc_owner *reclaiming = pcpc_this_thread.reclaiming;
	struct pcpc_deferred deferred;
	struct pcpc_marks marks;
	uint32_t batch = 0;

	if (!owner_offline(owner) && !(reclaiming && pcpc_within(owner, reclaiming)))
		batch = pcpc_effective_batch(owner);
	if (!batch) {
		pcpc_settle(owner, count, delta);
		return;
	}
	marks = marks_of(owner, batch);
	pcpc_cache_refill(owner->domain->cache, owner->id, count, delta, &marks, &deferred);
	pcpc_settle_deferred(owner->domain, &deferred);
}

/* One try, inside a read-side section of its own. Returns 0, -ESHUTDOWN, or -EDQUOT with the trial
 * told where. */
static int try_charge(struct pcpc_owner *owner, uint64_t count, int64_t delta, unsigned int flags,
		      struct pcpc_trial *trial)
{
	struct pcpc_climb attempt = { .owner = owner, .count = count, .delta = delta };
	int r = 0;

	urcu_bp_read_lock();
	if (owner_offline(owner)) {
		r = -ESHUTDOWN;
	} else if (!count) {
		put_back(owner, 0, delta);
	} else if (!pcpc_climb(&attempt, GREED_BATCH)) {
		if (flags & PCPC_FORCE && pcpc_climb_by_force(owner, count, delta))
			pcpc_raise(attempt.over, PCPC_EVENT_FORCED);
		else
			r = -EDQUOT;
	}
	if (r == -EDQUOT)
		pcpc_trial_look(trial, attempt.over, attempt.cap);
	urcu_bp_read_unlock();
	return r;
}

/* Takes count from a branch, up to a top that is not touched. False: from has less, and the branch
 * is as it was. */
static bool give_up_branch(struct pcpc_owner *from, const struct pcpc_owner *top, uint64_t count)
{
	uint64_t given, usage;

	if (from == top)
		return true;
	given = pcpc_give(from, count);
	if (given < count) {
		(void)pcpc_counter_force(books_of(from), given, &usage);
		return false;
	}
	while ((from = from->parent) != top)
		pcpc_give(from, count);
	return true;
}

/*
 * One try to transfer, likewise; also -EINVAL. What goes to the top of the one branch comes from
 * the top of the other, so that the ancestors they have in common need not change. Where a stock
 * has served the charge, nothing came that far, and the units given up are stocked.
 */
static int try_transfer(struct pcpc_owner *from, struct pcpc_owner *to, uint64_t count,
			struct pcpc_trial *trial)
{
	struct pcpc_climb attempt = { .owner = to, .top = to, .count = count };
	int r = 0;

	urcu_bp_read_lock();
	while (!pcpc_within(from, attempt.top))
		attempt.top = attempt.top->parent;
	if (owner_offline(to)) {
		r = -ESHUTDOWN;
	} else if (pcpc_owner_usage(from) < count) {
		pcpc_raise(from, PCPC_EVENT_UNDERFLOW);
		r = -EINVAL;
	} else if (!pcpc_climb(&attempt, GREED_NONE)) {
		pcpc_trial_look(trial, attempt.over, attempt.cap);
		r = -EDQUOT;
	} else if (!attempt.reached) {
		put_back(from, count, 0);
	} else if (!give_up_branch(from, attempt.top, count)) {
		for (; to != attempt.top; to = to->parent)
			pcpc_give(to, count);
		r = -EINVAL;
	}
	urcu_bp_read_unlock();
	return r;
}

/* A name, or as many whole characters of it as there is room for: a byte 10xxxxxx goes on with one.
 */
void pcpc_cut_name(const char *name, char *ret_name, size_t size)
{
	size_t length = strnlen(name, size);
	int steps;

	if (length == size)
		for (length--, steps = 0; steps < 3 && (name[length] & 0xc0) == 0x80; steps++)
			length--;
	memcpy(ret_name, name, length);
	ret_name[length] = '\0';
}

static void describe(struct pcpc_owner *over, uint64_t asked, struct pcpc_refusal *ret_refusal)
{
	struct pcpc_books *books = books_of(over);

	if (!ret_refusal)
		return;
	memset(ret_refusal, 0, sizeof(*ret_refusal));
	ret_refusal->over = over;
	ret_refusal->id = over->id;
	pcpc_cut_name(name_of(books), ret_refusal->name, sizeof(ret_refusal->name));
	ret_refusal->max = atomic_load_explicit(&books->max, memory_order_relaxed);
	ret_refusal->usage = atomic_load_explicit(&books->usage, memory_order_relaxed);
	ret_refusal->asked = asked;
}

static void refuse(struct pcpc_owner *over, uint64_t count, unsigned int flags)
{
	if (flags & CHARGE_QUIET && count <= atomic_load(&books_of(over)->max))
		return;
	pcpc_raise(over, PCPC_EVENT_REFUSED);
	/* Where it is not full, there is nothing to be relieved of. */
	if (well_below(atomic_load(&books_of(over)->usage), atomic_load(&books_of(over)->max)))
		return;
	atomic_fetch_or(&books_of(over)->marks, MARK_REFUSED);
	/* It may have come down before the mark was there to be seen. */
	pcpc_check_relieved(over);
}

/* A charge, or with from a transfer, that is not a plain hit. The arguments are sound. */
static int charge_or_transfer(struct pcpc_owner *from, struct pcpc_owner *owner, uint64_t count,
			      int64_t delta, unsigned int flags, struct pcpc_refusal *ret_refusal)
{
	struct pcpc_domain *domain = owner->domain, *before = NULL;
	bool delivers = may_wait(flags);
	struct pcpc_trial trial = { 0 };
	int tried, r;

	if (delivers)
		before = pcpc_promise(domain);
	do {
		tried = r = from ? try_transfer(from, owner, count, &trial)
				 : try_charge(owner, count, delta, flags, &trial);
		if (tried == -EDQUOT)
			r = pcpc_make_room(&trial, count, flags);
	} while (tried == -EDQUOT && r == 0);
	pcpc_trial_end(&trial);
	if (tried == -EDQUOT)
		describe(trial.over, count, ret_refusal);
	if (r == -EAGAIN)
		pcpc_leave_to_poll(trial.over, count);
	if (r == -EDQUOT)
		refuse(trial.over, count, flags);
	if (delivers)
		pcpc_deliver(domain, before);
	return r;
}

int pcpc_charge_internal(struct pcpc_owner *owner, uint64_t count, int64_t delta,
			 unsigned int flags, struct pcpc_refusal *ret_refusal)
{
	return charge_or_transfer(NULL, owner, count, delta, flags, ret_refusal);
}

int pcpc_transfer(struct pcpc_owner *from, struct pcpc_owner *to, uint64_t count)
{
	if (!from || !to || from->domain != to->domain || count > INT64_MAX)
		return -EINVAL;
	if (from == to || !count)
		return 0;
	return charge_or_transfer(from, to, count, 0, 0, NULL);
}

/*
 * What hit() leaves out: words with a delta, amounts that move one, and the atomic engine. Still
 * one change of the word in the home slot that defers nothing, without a section.
 */
static bool hit_any(struct pcpc_owner *owner, uint64_t count, int64_t delta, bool charge)
{
	uint64_t batch = atomic_load_explicit(&owner->batch, memory_order_relaxed), stocked;
	int64_t most = (int64_t)owner->domain->delta_batch - 1, sum;
	struct pcpc_cache *cache = owner->domain->cache;
	struct pcpc_stock *stock;
	struct pcpc_place place;
	pcpc_word *word, was, will;

	if (!count || delta > most || delta < -most || owner_offline(owner) ||
	    !pcpc_cache_locate(cache, &place))
		return false;
	word = pcpc_fast_word(&cache->fast, place.index, owner->id);
	was = PCPC_LOAD(*word);
	stocked = pcpc_word_count(was);
	sum = pcpc_word_delta(was) + delta;
	if (pcpc_word_owner(was) != owner->id || sum > most || sum < -most ||
	    (charge ? count > stocked : count > batch || stocked > batch - count))
		return false;
	will = pcpc_word_make(owner->id, (uint32_t)(charge ? stocked - count : stocked + count),
			      (int32_t)sum);
	stock = pcpc_cache_stock(cache, place.index, owner->id);
	return pcpc_cache_commit(cache, &place, stock, (uint32_t)(word - stock->slot), was, will) ==
	       PCPC_DONE;
}

static PCPC_COLD int charge_slow(struct pcpc_owner *owner, uint64_t count, int64_t delta,
				 unsigned int flags, struct pcpc_refusal *ret_refusal)
{
	if (!owner || count > INT64_MAX || flags & ~CHARGE_PUBLIC)
		return -EINVAL;
	if (hit_any(owner, count, delta, true))
		return 0;
	return pcpc_charge_internal(owner, count, delta, flags, ret_refusal);
}

/* An uncharge that is not a plain hit. */
static PCPC_COLD void uncharge_slow(struct pcpc_owner *owner, uint64_t count, int64_t delta)
{
	if (!owner || count > INT64_MAX || (!count && !delta))
		return;
	if (!pcpc_this_thread.reclaiming && hit_any(owner, count, delta, false))
		return;
	urcu_bp_read_lock();
	put_back(owner, count, delta);
	urcu_bp_read_unlock();
}

#if PCPC_HAVE_RSEQ

/*
 * The hit, as in inline.h, with everything that depends on the owner read from its hot line. An
 * owner that is offline and an engine without fast path have a limit of 0 there.
 */
static PCPC_ALWAYS_INLINE bool hit(struct pcpc_owner *owner, uint64_t count, bool charge)
{
	const struct pcpc_place place = { owner->area.rseq, owner->area.field, 0 };
	uint64_t batch = atomic_load_explicit(&owner->batch, memory_order_relaxed);
	uint32_t index = pcpc_rseq_index(&place);
	pcpc_word *word, was, will;

	if (PCPC_UNLIKELY(index >= atomic_load_explicit(&owner->limit, memory_order_relaxed)))
		return false;
	word = (pcpc_word *)((char *)owner->word + index * owner->stride);
	was = PCPC_LOAD(*word);
	if (charge) {
		if (PCPC_UNLIKELY(count - 1 >= PCPC_COUNT_MAX) ||
		    PCPC_UNLIKELY(pcpc_fast_count(was, owner->id) - count > PCPC_COUNT_MAX - count))
			return false;
		will = was - (count << PCPC_COUNT_SHIFT);
	} else {
		if (PCPC_UNLIKELY(count > batch) ||
		    PCPC_UNLIKELY(pcpc_fast_count(was, owner->id) > batch - count))
			return false;
		will = was + (count << PCPC_COUNT_SHIFT);
	}
	return PCPC_LIKELY(pcpc_rseq_commit_at(&owner->area, index, word, was, will) == PCPC_DONE);
}

#else

static PCPC_ALWAYS_INLINE bool hit(struct pcpc_owner *owner, uint64_t count, bool charge)
{
	(void)owner;
	(void)count;
	(void)charge;
	return false;
}

#endif

int pcpc_charge(struct pcpc_owner *owner, uint64_t count)
{
	if (PCPC_LIKELY(owner) && PCPC_LIKELY(hit(owner, count, true)))
		return 0;
	return charge_slow(owner, count, 0, 0, NULL);
}

int pcpc_charge_flags(struct pcpc_owner *owner, uint64_t count, unsigned int flags,
		      struct pcpc_refusal *ret_refusal)
{
	if (PCPC_LIKELY(owner) && PCPC_LIKELY(!(flags & ~CHARGE_PUBLIC)) &&
	    PCPC_LIKELY(hit(owner, count, true)))
		return 0;
	return charge_slow(owner, count, 0, flags, ret_refusal);
}

void pcpc_uncharge(struct pcpc_owner *owner, uint64_t count)
{
	/* Inside a reclaim function units must not be stocked. */
	if (PCPC_UNLIKELY(!owner) || PCPC_UNLIKELY(pcpc_this_thread.reclaiming) ||
	    PCPC_UNLIKELY(!hit(owner, count, false)))
		uncharge_slow(owner, count, 0);
}

/* Does a delta move anything? From now on readers of the coupled item look at charge slots.
 * Relaxed: whoever reads what this call has moved, by anything that orders the two, sees it. */
static bool moves(struct pcpc_owner *owner, int64_t delta)
{
	if (!delta || !owner || !owner->domain->nr_items)
		return false;
	if (!atomic_load_explicit(&owner->domain->charges_move, memory_order_relaxed))
		atomic_store_explicit(&owner->domain->charges_move, true, memory_order_relaxed);
	return true;
}

int pcpc_charge_stat(struct pcpc_owner *owner, uint64_t count, int64_t delta)
{
	if (!moves(owner, delta))
		return pcpc_charge(owner, count);
	return charge_slow(owner, count, delta, 0, NULL);
}

void pcpc_uncharge_stat(struct pcpc_owner *owner, uint64_t count, int64_t delta)
{
	if (moves(owner, delta))
		uncharge_slow(owner, count, delta);
	else
		pcpc_uncharge(owner, count);
}
