// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * fault_ledger.c - see fault_ledger.h.
 */
#include "fault_ledger.h"

#include <string.h>

#define BATCH 32
#define LARGEST_CHARGE 8

void ledger_init(struct ledger *ledger, struct pcpc_cache *cache)
{
	memset(ledger, 0, sizeof(*ledger));
	ledger->cache = cache;
	ledger->marks = (struct pcpc_marks){ .high = 4 * BATCH, .low = BATCH, .delta_batch = 64 };
}

void ledger_settle(const struct pcpc_deferred *deferred, void *ledger)
{
	struct ledger *books = ledger;

	if (!deferred->owner) {
		MUST(deferred->count == 0 && deferred->delta == 0);
		return;
	}
	MUST(deferred->owner <= LEDGER_OWNERS);
	atomic_fetch_sub(&books->out[deferred->owner], (int64_t)deferred->count);
	atomic_fetch_add(&books->settled[deferred->owner], deferred->delta);
}

bool ledger_match_all(uint32_t owner, void *unused)
{
	(void)unused;
	return owner != 0;
}

bool ledger_consume(struct ledger *ledger, uint32_t owner, uint64_t count, int64_t delta)
{
	struct pcpc_deferred deferred;

	atomic_fetch_add(&ledger->moved[owner], delta);
	if (pcpc_cache_consume(ledger->cache, owner, count, delta, &ledger->marks, &deferred)) {
		ledger_settle(&deferred, ledger);
		return true;
	}
	MUST(deferred.owner == 0);
	atomic_fetch_sub(&ledger->moved[owner], delta);
	return false;
}

void ledger_refill(struct ledger *ledger, uint32_t owner, uint64_t count, int64_t delta)
{
	struct pcpc_deferred deferred;

	atomic_fetch_add(&ledger->moved[owner], delta);
	pcpc_cache_refill(ledger->cache, owner, count, delta, &ledger->marks, &deferred);
	ledger_settle(&deferred, ledger);
}

void ledger_stock(struct ledger *ledger, uint32_t owner, uint64_t count, int64_t delta)
{
	atomic_fetch_add(&ledger->out[owner], (int64_t)count);
	ledger_refill(ledger, owner, count, delta);
}

void ledger_charge(struct ledger *ledger, uint32_t owner, uint64_t count, int64_t delta)
{
	if (ledger_consume(ledger, owner, count, delta))
		return;
	atomic_fetch_add(&ledger->out[owner], (int64_t)count);
	ledger_stock(ledger, owner, BATCH, delta);
}

int ledger_drain(struct ledger *ledger)
{
	return pcpc_cache_drain(ledger->cache, ledger_match_all, ledger_settle, ledger);
}

void ledger_must_balance(struct ledger *ledger, uint32_t owner, int64_t held)
{
	int64_t stocked = (int64_t)pcpc_cache_stocked(ledger->cache, owner);
	int64_t out = atomic_load(&ledger->out[owner]);

	if (out != held + stocked) {
		fprintf(stderr, "owner %u: %lld out, but %lld held and %lld stocked\n", owner,
			(long long)out, (long long)held, (long long)stocked);
		abort();
	}
}

void ledger_must_end_empty(struct ledger *ledger)
{
	uint32_t owner;

	MUST(ledger_drain(ledger) == 0);
	for (owner = 1; owner <= LEDGER_OWNERS; owner++) {
		ledger_must_balance(ledger, owner, 0);
		MUST(pcpc_cache_stocked(ledger->cache, owner) == 0);
		MUST(atomic_load(&ledger->settled[owner]) == atomic_load(&ledger->moved[owner]));
	}
}

/* xorshift64 */
static uint32_t draw(struct walker *walker, uint32_t below)
{
	walker->random ^= walker->random << 13;
	walker->random ^= walker->random >> 7;
	walker->random ^= walker->random << 17;
	return (uint32_t)(walker->random >> 32) % below;
}

void walker_step(struct walker *walker)
{
	uint32_t owner = walker->first_owner + draw(walker, walker->nr_owners);
	uint32_t count = 1 + draw(walker, LARGEST_CHARGE);
	int64_t delta = (int64_t)draw(walker, 33) - 16;

	if (walker->held[owner] < count) {
		ledger_charge(walker->ledger, owner, count, delta);
		walker->held[owner] += count;
	} else {
		walker->held[owner] -= count;
		ledger_refill(walker->ledger, owner, count, delta);
	}
}

void walker_finish(struct walker *walker)
{
	uint32_t owner;

	for (owner = 1; owner <= LEDGER_OWNERS; owner++) {
		if (walker->held[owner])
			ledger_refill(walker->ledger, owner, (uint64_t)walker->held[owner], 0);
		walker->held[owner] = 0;
	}
}
