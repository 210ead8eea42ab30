/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* counters.c - the charge cache alone: two tenants' pages, with counters of the program's own. */
#include <stdatomic.h>
#include <stdio.h>
#include <pcpcharge/pcpcharge.h>

enum { ALICE = 1, BOB = 2, BATCH = 64 }; /* owner ids begin at 1 */
static const struct pcpc_marks marks = { .high = BATCH, .low = BATCH / 2 };
static atomic_long usage[3]; /* the counters are yours: by owner id, in pages */

static void settle(const struct pcpc_deferred *deferred, void *context)
{
	(void)context; /* owner 0: nothing to settle, and count is 0 */
	atomic_fetch_sub(&usage[deferred->owner], (long)deferred->count);
}

static void charge(struct pcpc_cache *cache, uint32_t owner, uint64_t pages)
{
	struct pcpc_deferred deferred;

	if (!pcpc_cache_consume(cache, owner, pages, 0, &marks, &deferred)) { /* a miss */
		atomic_fetch_add(&usage[owner], (long)pages + BATCH);
		pcpc_cache_refill(cache, owner, BATCH, 0, &marks, &deferred);
	}
	settle(&deferred, NULL);
}

static void uncharge(struct pcpc_cache *cache, uint32_t owner, uint64_t pages)
{
	struct pcpc_deferred deferred;

	pcpc_cache_refill(cache, owner, pages, 0, &marks, &deferred);
	settle(&deferred, NULL);
}

static bool everyone(uint32_t owner, void *context)
{
	return owner && !context;
}

int main(void)
{
	struct pcpc_cache *cache;

	if (pcpc_cache_create(NULL, &cache) < 0)
		return 1;
	for (int i = 0; i < 1000000; i++) { /* a nanosecond or two each, and hardly ever a miss */
		charge(cache, ALICE, 2);
		charge(cache, BOB, 1);
		uncharge(cache, BOB, 1);
		if (i % 4)
			uncharge(cache, ALICE, 2);
	}
	pcpc_cache_drain(cache, everyone, settle, NULL); /* what stocks hold goes back */
	printf("alice %ld pages, bob %ld, by %s\n", usage[ALICE], usage[BOB],
	       pcpc_cache_engine(cache) == PCPC_ENGINE_RSEQ ? "restartable sequences" : "atomics");
	pcpc_cache_destroy(cache);
	return usage[ALICE] != 500000 || usage[BOB] != 0;
}
