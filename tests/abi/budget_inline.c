// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * budget_inline.c - the inlined hit path, for the instruction budget: with the watermarks constant,
 * as a program would have them.
 */
#define PCPC_INLINE
#include <pcpcharge/pcpcharge.h>

static const struct pcpc_marks marks = { 64, 32, 64 };

bool hit_consume(struct pcpc_cache *cache, uint32_t owner, struct pcpc_deferred *ret_deferred);
void hit_refill(struct pcpc_cache *cache, uint32_t owner, struct pcpc_deferred *ret_deferred);

bool hit_consume(struct pcpc_cache *cache, uint32_t owner, struct pcpc_deferred *ret_deferred)
{
	return pcpc_cache_consume(cache, owner, 1, 0, &marks, ret_deferred);
}

void hit_refill(struct pcpc_cache *cache, uint32_t owner, struct pcpc_deferred *ret_deferred)
{
	pcpc_cache_refill(cache, owner, 1, 0, &marks, ret_deferred);
}
