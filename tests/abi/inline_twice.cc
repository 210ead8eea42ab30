// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * inline_twice.cc - the inline fast path inside an inline function that two objects have (compiled
 * with HALF 1 and 2). The linker keeps one of them, and must be able to drop the sections of the
 * other's sequence.
 */
#define PCPC_INLINE
#include <pcpcharge/pcpcharge.h>

inline bool move_a_unit(pcpc_cache *cache, uint32_t owner)
{
	const pcpc_marks marks = { 64, 32, 64 };
	pcpc_deferred deferred;

	if (!pcpc_cache_consume(cache, owner, 1, 0, &marks, &deferred))
		return false;
	pcpc_cache_refill(cache, owner, 1, 0, &marks, &deferred);
	return !deferred.owner;
}

#if HALF == 1
bool first_half(pcpc_cache *cache);
bool first_half(pcpc_cache *cache)
{
	return move_a_unit(cache, 1);
}
#else
bool second_half(pcpc_cache *cache);
bool second_half(pcpc_cache *cache)
{
	return move_a_unit(cache, 2);
}
#endif
