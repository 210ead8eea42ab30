/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * fault_ledger.h - the counters that a user of the bare charge cache keeps, so that a test can say
 * to the unit whether any was lost or made up.
 *
 * Needs no Check: programs that run under gdb or valgrind use it as well. Everything but create and
 * destroy may be called by any thread and by signal handlers, drains excepted.
 */
#ifndef FAULT_LEDGER_H
#define FAULT_LEDGER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <pcpcharge/cache.h>

/* For programs without Check, for threads, and for forked children: says where, and dies. */
#define MUST(condition)                                                                         \
	do {                                                                                    \
		if (!(condition)) {                                                             \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
			abort();                                                                \
		}                                                                               \
	} while (0)

#define LEDGER_OWNERS 64

struct ledger {
	struct pcpc_cache *cache;
	struct pcpc_marks marks;
	/* Per owner. Units outside of its counter: in stocks and with callers. Written before a
	 * refill and after a settlement, so at every moment it is at least what is stocked. */
	_Atomic int64_t out[LEDGER_OWNERS + 1];
	/* The coupled statistic: what operations were told, and what came back. */
	_Atomic int64_t moved[LEDGER_OWNERS + 1], settled[LEDGER_OWNERS + 1];
};

/* cache stays the caller's. */
void ledger_init(struct ledger *ledger, struct pcpc_cache *cache);

/* A pcpc_settle_fn whose context is the ledger. */
void ledger_settle(const struct pcpc_deferred *deferred, void *ledger);

/* A pcpc_match_fn that wants everything. */
bool ledger_match_all(uint32_t owner, void *unused);

/* Units that the stock has; false: a miss, and nothing has changed. */
bool ledger_consume(struct ledger *ledger, uint32_t owner, uint64_t count, int64_t delta);

/* Puts units back that the caller holds. */
void ledger_refill(struct ledger *ledger, uint32_t owner, uint64_t count, int64_t delta);

/* Takes fresh units from the counter and refills them. */
void ledger_stock(struct ledger *ledger, uint32_t owner, uint64_t count, int64_t delta);

/* From the stock, else from the counter with a batch for the stock. The caller then holds count. */
void ledger_charge(struct ledger *ledger, uint32_t owner, uint64_t count, int64_t delta);

/* Drains every owner; returns what pcpc_cache_drain() does. */
int ledger_drain(struct ledger *ledger);

/* While nobody moves units: held is what callers hold of this owner, the rest must be stocked. */
void ledger_must_balance(struct ledger *ledger, uint32_t owner, int64_t held);

/* Drains, which must succeed, and then no unit and no delta of any owner may be out. */
void ledger_must_end_empty(struct ledger *ledger);

/* Charges and uncharges at random, as one thread would. The same seed does the same again. */
struct walker {
	struct ledger *ledger;
	uint32_t first_owner, nr_owners;
	uint64_t random; /* the seed, not 0 */
	int64_t held[LEDGER_OWNERS + 1];
};

void walker_step(struct walker *walker);

/* Uncharges all that it holds. */
void walker_finish(struct walker *walker);

#endif
