/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * stock.h - one CPU's stock: slot words, their transitions, and whole operations on one stock.
 *
 * Freestanding C11 and C++17; the same file is compiled inside kernel modules. Nothing here knows
 * how many CPUs there are or how a thread finds its own stock: that is cache.h. Nothing here
 * touches a counter, takes a lock or calls back: what an operation takes out of the stock it hands
 * to its caller in a struct pcpc_deferred, to be settled afterwards.
 *
 * To use the whole operations on stocks of your own, define PCPC_COMMIT and PCPC_INSERT before
 * including this file; the contract of both is in arch/sequences.h. Left undefined they are
 * compare-and-exchange in user space, and in a kernel cmpxchg_local() with inserts under disabled
 * interrupts, for a caller that has disabled preemption.
 */
#ifndef PCPCHARGE_STOCK_H
#define PCPCHARGE_STOCK_H

#include <pcpcharge/base.h>

#ifndef PCPC_COMMIT
#ifdef __KERNEL__
#include <linux/atomic.h>
#include <linux/irqflags.h>
#else
#include <pcpcharge/arch/generic.h>
#endif
#endif

/* Test builds define this to stage races: at SEARCHED a transition is computed and not yet
 * committed, at EVICTED another owner's word is out of the stock and not yet settled. */
#ifndef PCPC_HOOK
#define PCPC_HOOK(point) ((void)0)
#endif

/* The gate shares its eight bytes with the hand, so the hand is stored as four: a wider store would
 * put back a gate that a drain has closed meanwhile. */
#ifndef PCPC_STORE_HAND
#define PCPC_STORE_HAND(stock, next) PCPC_STORE((stock)->hand, (next))
#endif

/* What an operation took out of a stock and its caller must settle: owner 0 means nothing. */
struct pcpc_deferred {
	uint32_t owner;
	uint64_t count; /* units to give back to the owner's counter */
	int64_t delta;	/* to add to the owner's coupled statistic */
};

/*
 * The watermarks of one operation, in units. high: 1..PCPC_COUNT_MAX; a slot that would rise above
 * it is trimmed to low. low: 0..high. delta_batch: 0..PCPC_DELTA_MAX; a delta whose size reaches it
 * is cleared and deferred (0 is taken as 1: no delta stays in a slot).
 */
struct pcpc_marks {
	uint32_t high, low, delta_batch;
};

/* One operation's arguments, and in a refill also what merging added to them. */
struct pcpc_request {
	uint32_t owner;
	uint64_t count;
	int64_t delta;
	const struct pcpc_marks *marks;
};

static inline uint32_t pcpc_word_owner(pcpc_word word)
{
	return (uint32_t)(word >> PCPC_OWNER_SHIFT);
}

static inline uint32_t pcpc_word_count(pcpc_word word)
{
	return (uint32_t)(word >> PCPC_COUNT_SHIFT) & PCPC_COUNT_MAX;
}

static inline int32_t pcpc_word_delta(pcpc_word word)
{
	return (int32_t)((uint32_t)word << 10) >> 10;
}

/* owner: 0..PCPC_OWNER_MAX, count: 0..PCPC_COUNT_MAX, delta: PCPC_DELTA_MIN..PCPC_DELTA_MAX; not
 * checked. */
static inline pcpc_word pcpc_word_make(uint32_t owner, uint32_t count, int32_t delta)
{
	return (pcpc_word)owner << PCPC_OWNER_SHIFT | (pcpc_word)count << PCPC_COUNT_SHIFT |
	       ((pcpc_word)(uint32_t)delta & PCPC_DELTA_MASK);
}

/* Free, or held by an owner with nothing in it: either may be taken without settling anything. */
static inline bool pcpc_word_vacant(pcpc_word word)
{
	return !(word & (((pcpc_word)1 << PCPC_OWNER_SHIFT) - 1));
}

static inline bool pcpc_owner_valid(uint32_t owner)
{
	return owner - 1u < PCPC_OWNER_MAX;
}

static inline bool pcpc_delta_valid(int64_t delta)
{
	return delta >= PCPC_DELTA_MIN && delta <= PCPC_DELTA_MAX;
}

static inline bool pcpc_marks_valid(const struct pcpc_marks *marks)
{
	return marks->high - 1u < PCPC_COUNT_MAX && marks->low <= marks->high &&
	       marks->delta_batch <= (uint32_t)PCPC_DELTA_MAX;
}

/* Has a delta grown so large that it leaves the slot? delta_batch is in range, so whatever stays
 * fits the field. */
static inline bool pcpc_delta_full(int64_t delta, uint32_t delta_batch)
{
	int64_t batch = delta_batch ? delta_batch : 1;

	return delta >= batch || delta <= -batch;
}

static inline void pcpc_defer(struct pcpc_deferred *deferred, uint32_t owner, uint64_t count,
			      int64_t delta)
{
	deferred->owner = owner;
	deferred->count = count;
	deferred->delta = delta;
}

/* The part all own-slot transitions share: the delta moves, and is cleared and deferred when it is
 * full. */
static inline void pcpc_word_move(uint32_t owner, uint32_t count, uint32_t trimmed, int64_t delta,
				  uint32_t delta_batch, pcpc_word *ret_new,
				  struct pcpc_deferred *ret_deferred)
{
	int64_t cleared = pcpc_delta_full(delta, delta_batch) ? delta : 0;

	*ret_new = pcpc_word_make(owner, count, (int32_t)(delta - cleared));
	pcpc_defer(ret_deferred, trimmed || cleared ? owner : 0, trimmed, cleared);
}

/**
 * pcpc_word_consume: take count units and move the delta, in the owner's own slot.
 * @old: the slot as it is
 * @owner, @count, @delta: the request; all of their ranges are checked
 * @marks: only delta_batch is read: units that are stocked may always be used
 *
 * Returns true with *ret_new and *ret_deferred set (the whole delta, if it was cleared), or false
 * with both untouched: not this owner's slot, fewer units than that, or a delta or delta_batch
 * outside its field. Pure.
 */
static inline bool pcpc_word_consume(pcpc_word old, uint32_t owner, uint64_t count, int64_t delta,
				     const struct pcpc_marks *marks, pcpc_word *ret_new,
				     struct pcpc_deferred *ret_deferred)
{
	if (!owner || pcpc_word_owner(old) != owner || pcpc_word_count(old) < count)
		return false;
	if (!pcpc_delta_valid(delta) || marks->delta_batch > (uint32_t)PCPC_DELTA_MAX)
		return false;
	pcpc_word_move(owner, pcpc_word_count(old) - (uint32_t)count, 0,
		       pcpc_word_delta(old) + delta, marks->delta_batch, ret_new, ret_deferred);
	return true;
}

/* Would a request pass the stock by, whatever is in it? Then all of it is deferred and no slot
 * changes. */
static inline bool pcpc_request_bypasses(const struct pcpc_request *request)
{
	return !pcpc_owner_valid(request->owner) || !pcpc_marks_valid(request->marks) ||
	       !pcpc_delta_valid(request->delta) || request->count > request->marks->high;
}

/**
 * pcpc_word_refill: put count units and move the delta, in the owner's own slot or in a free or
 * empty one.
 * @old: the slot as it is
 * @owner, @count, @delta, @marks: the request; all of their ranges are checked
 *
 * Returns true with *ret_new and *ret_deferred set (what was trimmed, and the whole delta if it was
 * cleared), or false with both untouched: the slot holds another owner's units, count is above
 * high, a free or empty slot would receive a full delta, or an argument is out of range. What to do
 * then (evict, or bypass) is the caller's business. Pure.
 */
static inline bool pcpc_word_refill(pcpc_word old, uint32_t owner, uint64_t count, int64_t delta,
				    const struct pcpc_marks *marks, pcpc_word *ret_new,
				    struct pcpc_deferred *ret_deferred)
{
	const struct pcpc_request request = { owner, count, delta, marks };
	uint32_t sum, kept;

	if (pcpc_request_bypasses(&request))
		return false;
	if (pcpc_word_owner(old) != owner) {
		if (!pcpc_word_vacant(old) || pcpc_delta_full(delta, marks->delta_batch))
			return false;
		*ret_new = pcpc_word_make(owner, (uint32_t)count, (int32_t)delta);
		pcpc_defer(ret_deferred, 0, 0, 0);
		return true;
	}
	sum = pcpc_word_count(old) + (uint32_t)count;
	kept = sum <= marks->high ? sum : marks->low;
	pcpc_word_move(owner, kept, sum - kept, pcpc_word_delta(old) + delta, marks->delta_batch,
		       ret_new, ret_deferred);
	return true;
}

/**
 * pcpc_word_evict: replace another owner's slot by this owner's request.
 * @old: the slot as it is
 * @owner, @count, @delta, @marks: the request; all of their ranges are checked
 *
 * Returns true with *ret_new and *ret_deferred set (the victim's whole word), or false with both
 * untouched: the slot is free or this owner's, count is above high, the delta is full, or an
 * argument is out of range. Pure.
 */
static inline bool pcpc_word_evict(pcpc_word old, uint32_t owner, uint64_t count, int64_t delta,
				   const struct pcpc_marks *marks, pcpc_word *ret_new,
				   struct pcpc_deferred *ret_deferred)
{
	const struct pcpc_request request = { owner, count, delta, marks };

	if (pcpc_request_bypasses(&request) || pcpc_delta_full(delta, marks->delta_batch))
		return false;
	if (!pcpc_word_owner(old) || pcpc_word_owner(old) == owner)
		return false;
	*ret_new = pcpc_word_make(owner, (uint32_t)count, (int32_t)delta);
	pcpc_defer(ret_deferred, pcpc_word_owner(old), pcpc_word_count(old), pcpc_word_delta(old));
	return true;
}

/* How a whole operation changes a stock; see arch/sequences.h. shared: other threads may change
 * these words at the same time, so that racing inserts can put an owner into two slots (the atomic
 * engine). */
struct pcpc_primitives {
	enum pcpc_outcome (*commit)(const struct pcpc_place *place, struct pcpc_stock *stock,
				    uint32_t slot, pcpc_word old_word, pcpc_word new_word);
	enum pcpc_outcome (*insert)(const struct pcpc_place *place, struct pcpc_stock *stock,
				    uint32_t slot, pcpc_word old_word, pcpc_word new_word);
	bool shared;
};

/* The slot of its stock where an owner is looked for first. */
static inline uint32_t pcpc_home(uint32_t owner)
{
	return (owner - 1u) % PCPC_STOCK_SLOTS;
}

/*
 * One attempt to consume. The home slot first, then the other six. Where an owner is in two slots
 * (shared primitives only) either may serve; a consume that misses changes nothing, so the next
 * refill merges them.
 */
static PCPC_ALWAYS_INLINE enum pcpc_outcome
pcpc_stock_try_consume(struct pcpc_stock *stock, const struct pcpc_place *place,
		       const struct pcpc_primitives *primitives, const struct pcpc_request *request,
		       struct pcpc_deferred *ret_deferred)
{
	struct pcpc_deferred deferred;
	uint32_t slot = pcpc_home(request->owner), looked;
	enum pcpc_outcome outcome;
	pcpc_word word, changed;

	for (looked = 0; looked < PCPC_STOCK_SLOTS; looked++) {
		word = PCPC_LOAD(stock->slot[slot]);
		if (pcpc_word_consume(word, request->owner, request->count, request->delta,
				      request->marks, &changed, &deferred)) {
			PCPC_HOOK(SEARCHED);
			outcome = primitives->commit(place, stock, slot, word, changed);
			if (outcome == PCPC_DONE)
				*ret_deferred = deferred;
			return outcome;
		}
		slot = slot + 1 < PCPC_STOCK_SLOTS ? slot + 1 : 0;
	}
	return PCPC_MISSED;
}

/* What a refill found in a stock: slot numbers, PCPC_STOCK_SLOTS for none, and the words as they
 * were read. */
struct pcpc_found {
	uint32_t own, vacant;
	pcpc_word own_word, vacant_word;
};

/*
 * Look for the owner's slot, and for a vacant one: home if it is, else the lowest. Duplicates that
 * racing inserts left are taken out and added to the request.
 */
static PCPC_ALWAYS_INLINE void pcpc_stock_search(struct pcpc_stock *stock,
						 const struct pcpc_place *place,
						 const struct pcpc_primitives *primitives,
						 struct pcpc_request *request,
						 struct pcpc_found *ret_found)
{
	uint32_t home = pcpc_home(request->owner), slot;
	pcpc_word word = PCPC_LOAD(stock->slot[home]);

	ret_found->own = ret_found->vacant = PCPC_STOCK_SLOTS;
	ret_found->own_word = ret_found->vacant_word = 0;
	if (pcpc_word_owner(word) == request->owner) {
		ret_found->own = home;
		ret_found->own_word = word;
		if (!primitives->shared)
			return;
	} else if (pcpc_word_vacant(word)) {
		ret_found->vacant = home;
		ret_found->vacant_word = word;
	}
	for (slot = 0; slot < PCPC_STOCK_SLOTS; slot++) {
		if (slot == home)
			continue;
		word = PCPC_LOAD(stock->slot[slot]);
		if (pcpc_word_owner(word) == request->owner) {
			if (ret_found->own == PCPC_STOCK_SLOTS) {
				ret_found->own = slot;
				ret_found->own_word = word;
				if (!primitives->shared)
					return;
			} else if (primitives->commit(place, stock, slot, word, 0) == PCPC_DONE) {
				request->count += pcpc_word_count(word);
				request->delta += pcpc_word_delta(word);
			}
		} else if (ret_found->vacant == PCPC_STOCK_SLOTS && pcpc_word_vacant(word)) {
			ret_found->vacant = slot;
			ret_found->vacant_word = word;
		}
	}
}

/* Put the request into the vacant slot that was found, or into the slot at the hand, whose owner is
 * evicted. */
static PCPC_ALWAYS_INLINE enum pcpc_outcome
pcpc_stock_try_insert(struct pcpc_stock *stock, const struct pcpc_place *place,
		      const struct pcpc_primitives *primitives, const struct pcpc_request *request,
		      const struct pcpc_found *found, struct pcpc_deferred *ret_deferred)
{
	bool evicts = found->vacant == PCPC_STOCK_SLOTS;
	struct pcpc_deferred deferred;
	enum pcpc_outcome outcome;
	pcpc_word word, inserted;
	uint32_t slot;
	bool applies;

	if (evicts) {
		slot = PCPC_LOAD(stock->hand) % PCPC_STOCK_SLOTS;
		word = PCPC_LOAD(stock->slot[slot]);
		applies = pcpc_word_evict(word, request->owner, request->count, request->delta,
					  request->marks, &inserted, &deferred);
	} else {
		slot = found->vacant;
		word = found->vacant_word;
		applies = pcpc_word_refill(word, request->owner, request->count, request->delta,
					   request->marks, &inserted, &deferred);
	}
	/* The request itself was looked at before: what does not apply is a slot that changed after
	 * the search. */
	if (!applies)
		return PCPC_CHANGED;
	PCPC_HOOK(SEARCHED);
	outcome = primitives->insert(place, stock, slot, word, inserted);
	if (outcome != PCPC_DONE)
		return outcome;
	if (evicts) {
		PCPC_HOOK(EVICTED);
		/* Preempted here it may be another CPU's line by now: a hint, whoever writes it. */
		PCPC_STORE_HAND(stock, slot + 1 < PCPC_STOCK_SLOTS ? slot + 1 : 0);
	}
	*ret_deferred = deferred;
	return PCPC_DONE;
}

/* One attempt to refill. MISSED means bypass: the request is left to the caller, with what merging
 * added to it. */
static PCPC_ALWAYS_INLINE enum pcpc_outcome
pcpc_stock_try_refill(struct pcpc_stock *stock, const struct pcpc_place *place,
		      const struct pcpc_primitives *primitives, struct pcpc_request *request,
		      struct pcpc_deferred *ret_deferred)
{
	struct pcpc_deferred deferred;
	struct pcpc_found found;
	enum pcpc_outcome outcome;
	pcpc_word changed;

	pcpc_stock_search(stock, place, primitives, request, &found);
	if (pcpc_request_bypasses(request))
		return PCPC_MISSED;
	if (found.own == PCPC_STOCK_SLOTS) {
		if (pcpc_delta_full(request->delta, request->marks->delta_batch))
			return PCPC_MISSED;
		return pcpc_stock_try_insert(stock, place, primitives, request, &found,
					     ret_deferred);
	}
	if (!pcpc_word_refill(found.own_word, request->owner, request->count, request->delta,
			      request->marks, &changed, &deferred))
		return PCPC_MISSED;
	PCPC_HOOK(SEARCHED);
	outcome = primitives->commit(place, stock, found.own, found.own_word, changed);
	if (outcome == PCPC_DONE)
		*ret_deferred = deferred;
	return outcome;
}

/* No units and no delta: nothing to do, with or without a slot. */
static inline bool pcpc_request_empty(const struct pcpc_request *request)
{
	return !request->count && !request->delta;
}

#ifndef PCPC_COMMIT
#ifdef __KERNEL__
static inline enum pcpc_outcome pcpc_kernel_commit(struct pcpc_stock *stock, uint32_t slot,
						   pcpc_word old_word, pcpc_word new_word)
{
	return cmpxchg_local(&stock->slot[slot], old_word, new_word) == old_word ? PCPC_DONE
										 : PCPC_CHANGED;
}

static inline enum pcpc_outcome pcpc_kernel_insert(struct pcpc_stock *stock, uint32_t slot,
						   pcpc_word old_word, pcpc_word new_word)
{
	enum pcpc_outcome outcome = PCPC_CHANGED;
	unsigned long flags;
	uint32_t other;

	local_irq_save(flags);
	for (other = 0; other < PCPC_STOCK_SLOTS; other++)
		if (pcpc_word_owner(stock->slot[other]) == pcpc_word_owner(new_word))
			goto out;
	outcome = pcpc_kernel_commit(stock, slot, old_word, new_word);
out:
	local_irq_restore(flags);
	return outcome;
}

#define PCPC_COMMIT(stock, slot, old_word, new_word) \
	pcpc_kernel_commit(stock, slot, old_word, new_word)
#define PCPC_INSERT(stock, slot, old_word, new_word) \
	pcpc_kernel_insert(stock, slot, old_word, new_word)
#else
#define PCPC_COMMIT(stock, slot, old_word, new_word) \
	pcpc_atomic_commit(NULL, stock, slot, old_word, new_word)
#define PCPC_INSERT(stock, slot, old_word, new_word) \
	pcpc_atomic_insert(NULL, stock, slot, old_word, new_word)
#define PCPC_SHARED true
#endif
#endif

#ifndef PCPC_SHARED
#define PCPC_SHARED false
#endif

static inline enum pcpc_outcome pcpc_stock_commit(const struct pcpc_place *place,
						  struct pcpc_stock *stock, uint32_t slot,
						  pcpc_word old_word, pcpc_word new_word)
{
	(void)place;
	return (enum pcpc_outcome)(PCPC_COMMIT(stock, slot, old_word, new_word));
}

static inline enum pcpc_outcome pcpc_stock_insert(const struct pcpc_place *place,
						  struct pcpc_stock *stock, uint32_t slot,
						  pcpc_word old_word, pcpc_word new_word)
{
	(void)place;
	return (enum pcpc_outcome)(PCPC_INSERT(stock, slot, old_word, new_word));
}

/**
 * pcpc_stock_consume: take units for an owner out of one stock.
 * @stock: the caller's own stock
 * @owner: 1..PCPC_OWNER_MAX
 * @count: units, any value; more than is stocked is a miss
 * @delta: to move the coupled statistic by; outside PCPC_DELTA_MIN..PCPC_DELTA_MAX is a miss
 * @marks: only delta_batch is read
 * @ret_deferred: set in every case, to owner 0 where there is nothing to settle
 *
 * Returns true if the stock served all of it, else false and nothing has changed: another owner
 * holds the slots, too few units, a closed gate, too many retries, or a bad or NULL argument. No
 * units and no delta is a no-op and true.
 *
 * Runs beside anything that PCPC_COMMIT excludes, signal handlers or interrupts on the same stock
 * included. Never blocks.
 */
static inline bool pcpc_stock_consume(struct pcpc_stock *stock, uint32_t owner, uint64_t count,
				      int64_t delta, const struct pcpc_marks *marks,
				      struct pcpc_deferred *ret_deferred)
{
	static const struct pcpc_primitives primitives = { pcpc_stock_commit, pcpc_stock_insert,
							   PCPC_SHARED };
	const struct pcpc_request request = { owner, count, delta, marks };
	enum pcpc_outcome outcome;
	unsigned int tries;

	if (!ret_deferred)
		return false;
	pcpc_defer(ret_deferred, 0, 0, 0);
	if (!stock || !marks || !pcpc_owner_valid(owner))
		return false;
	if (pcpc_request_empty(&request))
		return true;
	for (tries = 0; tries < PCPC_TRIES; tries++) {
		outcome = pcpc_stock_try_consume(stock, NULL, &primitives, &request, ret_deferred);
		if (outcome == PCPC_DONE)
			return true;
		if (outcome == PCPC_MISSED || outcome == PCPC_CLOSED)
			break;
	}
	return false;
}

/**
 * pcpc_stock_refill: put units of an owner, already taken from its counter, into one stock.
 * @stock: the caller's own stock
 * @owner: 1..PCPC_OWNER_MAX
 * @count: units, any value; more than high bypasses the stock
 * @delta: to move the coupled statistic by; outside the field, or full in an insert, bypasses the
 * stock
 * @marks: see struct pcpc_marks; any of them out of range bypasses the stock
 * @ret_deferred: what the caller must settle now, owner 0 where there is nothing
 *
 * Cannot fail: what the stock does not take is deferred whole (bypass), and then no slot has
 * changed. A refill defers what it trimmed or cleared of its own slot, or the word of one other
 * owner whom it evicted, never both. No units and no delta is a no-op. Bad arguments bypass, so
 * that nothing is lost; with ret_deferred NULL nothing is done and the units stay with the caller.
 *
 * Runs beside anything that PCPC_COMMIT excludes, signal handlers or interrupts on the same stock
 * included. Never blocks.
 */
static inline void pcpc_stock_refill(struct pcpc_stock *stock, uint32_t owner, uint64_t count,
				     int64_t delta, const struct pcpc_marks *marks,
				     struct pcpc_deferred *ret_deferred)
{
	static const struct pcpc_primitives primitives = { pcpc_stock_commit, pcpc_stock_insert,
							   PCPC_SHARED };
	struct pcpc_request request = { owner, count, delta, marks };
	enum pcpc_outcome outcome;
	unsigned int tries;

	if (!ret_deferred)
		return;
	pcpc_defer(ret_deferred, 0, 0, 0);
	if (pcpc_request_empty(&request))
		return;
	for (tries = 0; tries < PCPC_TRIES && stock && marks && !pcpc_request_bypasses(&request);
	     tries++) {
		outcome = pcpc_stock_try_refill(stock, NULL, &primitives, &request, ret_deferred);
		if (outcome == PCPC_DONE)
			return;
		if (outcome == PCPC_MISSED || outcome == PCPC_CLOSED)
			break;
	}
	pcpc_defer(ret_deferred, owner, request.count, request.delta);
}

#endif
