// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * unload_plugin.c - a shared object that charges, for the program of unload.c to load and unload.
 *
 * Built three times: calling the library, with PCPC_INLINE and PCPC_INLINE_UNLOADABLE, and with
 * PCPC_INLINE alone, which must not be unloaded.
 */
#include <pcpcharge/pcpcharge.h>

#include "unload_plugin.h"

static struct pcpc_cache *cache;

static const struct pcpc_marks marks = { .high = 1000, .low = 500, .delta_batch = 64 };

static void settle_nothing(const struct pcpc_deferred *deferred, void *sum)
{
	*(uint64_t *)sum += deferred->count;
}

static bool match_all(uint32_t owner, void *unused)
{
	(void)unused;
	return owner != 0;
}

int plugin_open(bool *ret_rseq)
{
	int r = pcpc_cache_create(NULL, &cache);

	*ret_rseq = pcpc_cache_engine(cache) == PCPC_ENGINE_RSEQ;
	return r;
}

unsigned int plugin_operate(unsigned int pairs)
{
	struct pcpc_deferred deferred;
	unsigned int i, hits = 0;

	for (i = 0; i < pairs; i++) {
		if (pcpc_cache_consume(cache, 1, 1, 0, &marks, &deferred))
			hits++;
		pcpc_cache_refill(cache, 1, 1, 0, &marks, &deferred);
	}
	return hits;
}

int plugin_close(void)
{
	uint64_t sum = 0;
	int r = pcpc_cache_drain(cache, match_all, settle_nothing, &sum);

	pcpc_cache_destroy(cache);
	return r;
}
