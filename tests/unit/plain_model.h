/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * plain_model.h - what slots, stocks and a one-CPU cache must do, written down a second time.
 *
 * Written from the table in section 4 and the rules in section 5 of the design, not from the code:
 * three wide numbers to a slot, no words, no bits, no concurrency. Whatever the library computes is
 * compared with this; it must never be made to follow the code.
 */
#ifndef PCPCHARGE_TESTS_PLAIN_MODEL_H
#define PCPCHARGE_TESTS_PLAIN_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#define PLAIN_SLOTS 7
#define PLAIN_OWNER_MAX 1048575
#define PLAIN_COUNT_MAX 4194303
#define PLAIN_DELTA_MIN (-2097152)
#define PLAIN_DELTA_MAX 2097151

typedef __int128 plain_wide;

/* Owner 0: free, or nothing deferred. */
struct plain_slot {
	plain_wide owner, count, delta;
};

struct plain_request {
	plain_wide owner, count, delta;
	plain_wide high, low, delta_batch;
};

/* What a transition makes of a slot. */
struct plain_step {
	bool applies;
	struct plain_slot slot;
	struct plain_slot deferred;
};

struct plain_stock {
	struct plain_slot slot[PLAIN_SLOTS];
	int hand;
};

/* One CPU's stocks. */
struct plain_cache {
	int nr_stocks;
	struct plain_stock *stocks;
};

struct plain_slot plain_slot_of(uint64_t word);
uint64_t plain_word_of(struct plain_slot slot);
struct plain_request plain_request_of(uint32_t owner, uint64_t count, int64_t delta, uint32_t high,
				      uint32_t low, uint32_t delta_batch);

struct plain_step plain_consume(struct plain_slot slot, const struct plain_request *request);
struct plain_step plain_refill(struct plain_slot slot, const struct plain_request *request);
struct plain_step plain_evict(struct plain_slot slot, const struct plain_request *request);

bool plain_stock_consume(struct plain_stock *stock, const struct plain_request *request,
			 struct plain_slot *ret_deferred);
void plain_stock_refill(struct plain_stock *stock, const struct plain_request *request,
			struct plain_slot *ret_deferred);

struct plain_stock *plain_cache_stock(struct plain_cache *cache, plain_wide owner);
bool plain_cache_consume(struct plain_cache *cache, const struct plain_request *request,
			 struct plain_slot *ret_deferred);
void plain_cache_refill(struct plain_cache *cache, const struct plain_request *request,
			struct plain_slot *ret_deferred);

/* Frees the slots of one owner; what they held. */
struct plain_slot plain_cache_drain(struct plain_cache *cache, plain_wide owner);

#endif
