// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * plain_model.c - see plain_model.h.
 */
#include "plain_model.h"

#include <stddef.h>

static const struct plain_slot nothing = { 0, 0, 0 };

static plain_wide power_of_two(int exponent)
{
	plain_wide power = 1;

	while (exponent-- > 0)
		power *= 2;
	return power;
}

/* "owner id:20  count:22  delta:22 (two's complement)" */
struct plain_slot plain_slot_of(uint64_t word)
{
	plain_wide value = word, field = power_of_two(22);
	struct plain_slot slot;

	slot.delta = value % field;
	if (slot.delta > PLAIN_DELTA_MAX)
		slot.delta -= field;
	slot.count = value / field % field;
	slot.owner = value / field / field;
	return slot;
}

uint64_t plain_word_of(struct plain_slot slot)
{
	plain_wide field = power_of_two(22);
	plain_wide low = slot.delta < 0 ? slot.delta + field : slot.delta;

	return (uint64_t)((slot.owner * field + slot.count) * field + low);
}

struct plain_request plain_request_of(uint32_t owner, uint64_t count, int64_t delta, uint32_t high,
				      uint32_t low, uint32_t delta_batch)
{
	return (struct plain_request){ owner, count, delta, high, low, delta_batch };
}

static plain_wide size_of(plain_wide delta)
{
	return delta < 0 ? -delta : delta;
}

static bool owner_good(const struct plain_request *request)
{
	return request->owner >= 1 && request->owner <= PLAIN_OWNER_MAX;
}

static bool delta_good(const struct plain_request *request)
{
	return request->delta >= PLAIN_DELTA_MIN && request->delta <= PLAIN_DELTA_MAX &&
	       request->delta_batch >= 0 && request->delta_batch <= PLAIN_DELTA_MAX;
}

/* "high: 1..count max. low: 0..high. n > high bypasses." */
static bool passes_by(const struct plain_request *request)
{
	return !owner_good(request) || !delta_good(request) || request->high < 1 ||
	       request->high > PLAIN_COUNT_MAX || request->low < 0 ||
	       request->low > request->high || request->count > request->high;
}

/* A delta_batch of 0 is taken as 1. */
static bool full(plain_wide delta, const struct plain_request *request)
{
	plain_wide batch = request->delta_batch == 0 ? 1 : request->delta_batch;

	return size_of(delta) >= batch;
}

static bool empty(struct plain_slot slot)
{
	return slot.count == 0 && slot.delta == 0;
}

/* "delta + d, or 0 if abs(delta + d) >= delta_batch"; "that whole delta, if it was cleared" */
static void move_delta(struct plain_step *step, const struct plain_request *request)
{
	step->slot.delta += request->delta;
	if (full(step->slot.delta, request)) {
		step->deferred.owner = step->slot.owner;
		step->deferred.delta = step->slot.delta;
		step->slot.delta = 0;
	}
}

/* "same owner, count >= n" */
struct plain_step plain_consume(struct plain_slot slot, const struct plain_request *request)
{
	struct plain_step step = { false, slot, nothing };

	if (!owner_good(request) || !delta_good(request))
		return step;
	if (slot.owner != request->owner || slot.count < request->count)
		return step;
	step.applies = true;
	step.slot.count -= request->count;
	move_delta(&step, request);
	return step;
}

/* "same owner, n <= high: c = count + n; c <= high: c, else low"; "free or empty: (owner, n, d)" */
struct plain_step plain_refill(struct plain_slot slot, const struct plain_request *request)
{
	struct plain_step step = { false, slot, nothing };

	if (passes_by(request))
		return step;
	if (slot.owner == request->owner) {
		step.applies = true;
		step.slot.count += request->count;
		if (step.slot.count > request->high) {
			step.deferred.owner = slot.owner;
			step.deferred.count = step.slot.count - request->low;
			step.slot.count = request->low;
		}
		move_delta(&step, request);
		return step;
	}
	if ((slot.owner != 0 && !empty(slot)) || full(request->delta, request))
		return step;
	step.applies = true;
	step.slot.owner = request->owner;
	step.slot.count = request->count;
	step.slot.delta = request->delta;
	return step;
}

/* "the victim's whole word" */
struct plain_step plain_evict(struct plain_slot slot, const struct plain_request *request)
{
	struct plain_step step = { false, slot, nothing };

	if (passes_by(request) || full(request->delta, request))
		return step;
	if (slot.owner == 0 || slot.owner == request->owner)
		return step;
	step.applies = true;
	step.deferred = slot;
	step.slot.owner = request->owner;
	step.slot.count = request->count;
	step.slot.delta = request->delta;
	return step;
}

static struct plain_slot *find(struct plain_stock *stock, plain_wide owner)
{
	int i;

	for (i = 0; i < PLAIN_SLOTS; i++)
		if (stock->slot[i].owner == owner)
			return &stock->slot[i];
	return NULL;
}

bool plain_stock_consume(struct plain_stock *stock, const struct plain_request *request,
			 struct plain_slot *ret_deferred)
{
	struct plain_slot *slot;
	struct plain_step step;

	*ret_deferred = nothing;
	if (!owner_good(request))
		return false;
	if (request->count == 0 && request->delta == 0)
		return true;
	slot = find(stock, request->owner);
	if (!slot)
		return false;
	step = plain_consume(*slot, request);
	if (!step.applies)
		return false;
	*slot = step.slot;
	*ret_deferred = step.deferred;
	return true;
}

/* "An insert prefers its home if free or empty; another free or empty one; the victim at hand." */
static struct plain_slot *place_for(struct plain_stock *stock, const struct plain_request *request)
{
	int home = (int)((request->owner - 1) % PLAIN_SLOTS), i;

	if (empty(stock->slot[home]))
		return &stock->slot[home];
	for (i = 0; i < PLAIN_SLOTS; i++)
		if (empty(stock->slot[i]))
			return &stock->slot[i];
	return NULL;
}

void plain_stock_refill(struct plain_stock *stock, const struct plain_request *request,
			struct plain_slot *ret_deferred)
{
	struct plain_slot *slot;
	struct plain_step step;

	*ret_deferred = nothing;
	if (request->count == 0 && request->delta == 0)
		return;
	ret_deferred->owner = request->owner;
	ret_deferred->count = request->count;
	ret_deferred->delta = request->delta;
	if (passes_by(request))
		return;
	slot = find(stock, request->owner);
	if (!slot && full(request->delta, request))
		return;
	if (!slot)
		slot = place_for(stock, request);
	if (slot) {
		step = plain_refill(*slot, request);
	} else {
		slot = &stock->slot[stock->hand];
		stock->hand = (stock->hand + 1) % PLAIN_SLOTS;
		step = plain_evict(*slot, request);
	}
	*slot = step.slot;
	*ret_deferred = step.deferred;
}

/* "Owner id belongs to stock (id - 1) / 7 mod nr_stocks" */
struct plain_stock *plain_cache_stock(struct plain_cache *cache, plain_wide owner)
{
	return &cache->stocks[(owner - 1) / PLAIN_SLOTS % cache->nr_stocks];
}

bool plain_cache_consume(struct plain_cache *cache, const struct plain_request *request,
			 struct plain_slot *ret_deferred)
{
	*ret_deferred = nothing;
	if (!owner_good(request))
		return false;
	return plain_stock_consume(plain_cache_stock(cache, request->owner), request, ret_deferred);
}

void plain_cache_refill(struct plain_cache *cache, const struct plain_request *request,
			struct plain_slot *ret_deferred)
{
	static struct plain_stock none;

	plain_stock_refill(owner_good(request) ? plain_cache_stock(cache, request->owner) : &none,
			   request, ret_deferred);
}

struct plain_slot plain_cache_drain(struct plain_cache *cache, plain_wide owner)
{
	struct plain_slot taken = { owner, 0, 0 }, *slot;

	while ((slot = find(plain_cache_stock(cache, owner), owner))) {
		taken.count += slot->count;
		taken.delta += slot->delta;
		*slot = nothing;
	}
	return taken;
}
