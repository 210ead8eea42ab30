// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * climb.c - what a charge does that its own stock does not serve: it takes units from the counters,
 * from its owner upwards, until a stock on the way serves the rest or the top is reached.
 *
 * Everything here runs inside a read-side section of liburcu-bp, see charge.c.
 */
#include "owner_private.h"

#define LEVELS (PCPC_DEPTH_MAX + 1)

/* One level of a climb: what its counter took, and how much of that is to be stocked. */
struct step {
	struct pcpc_owner *owner;
	uint64_t usage, amount, surplus;
	uint32_t batch;
};

/*
 * What to take beyond what is needed. A slot that ran dry takes a full batch in all; an owner
 * without a slot on this CPU an eighth of one, for it may never be seen here again. In kernel style
 * always a full batch, and only for the owner that is charged.
 */
static uint64_t surplus_of(struct pcpc_owner *owner, uint64_t needed, uint32_t batch,
			   enum greed greed, bool interior)
{
	struct pcpc_cache *cache = owner->domain->cache;
	uint64_t surplus;
	uint32_t stocked;

	if (!batch || greed == GREED_NONE)
		return 0;
	if (kernel_style(owner->domain))
		return !interior && greed == GREED_BATCH && batch > needed ? batch - needed : 0;
	if (!pcpc_cache_peek(cache, owner->id, &stocked))
		surplus = batch / 8;
	else
		surplus = batch > needed ? batch - needed : 0;
	if (greed == GREED_BATCH || !surplus)
		return surplus;
	if (!owner->parent || !pcpc_cache_peek(cache, owner->parent->id, &stocked) ||
	    stocked <= needed)
		return 0;
	return stocked - needed < surplus ? stocked - needed : surplus;
}

/* Takes from a counter. A max that was lowered meanwhile is held to: what was taken goes back. */
static bool take_amount(struct step *step, uint64_t amount)
{
	struct pcpc_books *books = books_of(step->owner);

	step->amount = amount;
	if (!pcpc_counter_take(books, amount, &step->usage))
		return false;
	/* Pairs with pcpc_owner_set_max(), see pcpc_counter_take(). */
	if (step->usage <= atomic_load(&books->max))
		return true;
	pcpc_give(step->owner, amount);
	return false;
}

/* Takes what a level needs, with a surplus if there is one and it fits. */
static bool take(struct step *step, uint64_t needed, enum greed greed, bool interior)
{
	step->surplus = surplus_of(step->owner, needed, step->batch, greed, interior);
	if (step->surplus && take_amount(step, needed + step->surplus))
		return true;
	step->surplus = 0;
	return take_amount(step, needed);
}

/* Stocks what a level took too much. Whom an interior owner evicts is settled straight: nothing
 * cascades sideways. */
static void stock_surplus(const struct step *step, bool interior, int64_t delta)
{
	struct pcpc_owner *owner = step->owner;
	struct pcpc_marks marks = marks_of(owner, step->batch);
	struct pcpc_deferred deferred;

	if (!step->batch) {
		apply_coupled(owner, delta);
		return;
	}
	pcpc_cache_refill(owner->domain->cache, owner->id, step->surplus, delta, &marks, &deferred);
	if (deferred.owner && deferred.owner != owner->id && interior)
		pcpc_settle_straight(owner_of(owner->domain, deferred.owner), deferred.count,
				     deferred.delta);
	else
		pcpc_settle_deferred(owner->domain, &deferred);
}

/* All levels have agreed: raise peaks, look at high, and stock the surpluses. */
static void finish(const struct step *steps, unsigned int nr_steps, int64_t delta)
{
	unsigned int i;

	for (i = 0; i < nr_steps; i++) {
		pcpc_counter_peak(books_of(steps[i].owner), steps[i].usage);
		pcpc_check_high(steps[i].owner, steps[i].usage);
	}
	for (i = 0; i < nr_steps; i++)
		stock_surplus(&steps[i], i > 0, i ? 0 : delta);
}

static void climb_down(const struct step *steps, const struct step *step)
{
	while (step-- > steps)
		pcpc_give(step->owner, step->amount);
}

/* Is a level served by its stock? In kernel style only the owner that is charged is. */
static bool served(const struct step *step, bool interior, uint64_t needed, int64_t delta)
{
	struct pcpc_domain *domain = step->owner->domain;
	struct pcpc_marks marks = marks_of(step->owner, step->batch);
	struct pcpc_deferred deferred;

	if (interior && kernel_style(domain))
		return false;
	if (!pcpc_cache_consume(domain->cache, step->owner->id, needed, delta, &marks, &deferred))
		return false;
	pcpc_settle_deferred(domain, &deferred);
	return true;
}

/* Climbs as far as it must: to the first level whose stock serves what the level below needs, or to
 * the top. */
static bool climb_once(struct pcpc_climb *climb, enum greed greed)
{
	struct step steps[LEVELS], *step = steps;
	struct pcpc_owner *level;
	uint64_t needed = climb->count;
	int64_t delta = climb->delta;
	bool interior = false;

	climb->surplus = false;
	climb->taken = 0;
	for (level = climb->owner; level != climb->top; level = level->parent, step++) {
		interior = level != climb->owner;
		step->owner = level;
		step->batch = pcpc_effective_batch(level);
		if (served(step, interior, needed, interior ? 0 : delta)) {
			if (!interior)
				delta = 0;
			break;
		}
		climb->cap = atomic_load(&books_of(level)->cap);
		if (!take(step, needed, greed, interior)) {
			climb->over = level;
			climb_down(steps, step);
			return false;
		}
		climb->surplus |= step->surplus > 0;
		if (!interior)
			climb->taken = step->amount;
		needed = step->amount;
	}
	finish(steps, (unsigned int)(step - steps), delta);
	climb->reached = level == climb->top;
	climb->over = NULL;
	return true;
}

bool pcpc_climb(struct pcpc_climb *climb, enum greed greed)
{
	for (; greed < GREED_NONE; greed++)
		if (climb_once(climb, greed))
			return true;
		else if (!climb->surplus)
			return false;
	return climb_once(climb, GREED_NONE);
}

/* Takes exactly count at every level, whatever the limits say. False: some counter would not hold
 * it; then every level is as it was. */
bool pcpc_climb_by_force(struct pcpc_owner *owner, uint64_t count, int64_t delta)
{
	struct step steps[LEVELS], *step = steps;
	struct pcpc_owner *level;

	for (level = owner; level; level = level->parent, step++) {
		*step = (struct step){ .owner = level, .amount = count };
		if (!pcpc_counter_force(books_of(level), count, &step->usage)) {
			climb_down(steps, step);
			return false;
		}
		step->batch = pcpc_effective_batch(level);
	}
	finish(steps, (unsigned int)(step - steps), delta);
	return true;
}
