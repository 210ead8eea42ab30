// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * owner_disturbed.c - the library's settle.c and wait.c, with a disturbance before and after their
 * atomic steps: other threads then come in between where they seldom do.
 */
#define _GNU_SOURCE
#include <sched.h>

#include "owner_disturbed.h"
#include "owner_private.h"

_Atomic uint32_t disturbed;

static void disturb(void)
{
	static _Thread_local uint32_t random;
	uint32_t one_in = atomic_load_explicit(&disturbed, memory_order_relaxed);

	if (!one_in)
		return;
	if (!random)
		random = (uint32_t)(uintptr_t)&random | 1;
	random = random * 1664525u + 1013904223u;
	if ((random >> 16) % one_in == 0)
		sched_yield();
}

static inline uint64_t disturbed_value(uint64_t value)
{
	disturb();
	return value;
}

#undef atomic_load
#undef atomic_store
#undef atomic_fetch_add
#undef atomic_exchange
#define atomic_load(word) disturbed_value(atomic_load_explicit(word, memory_order_seq_cst))
#define atomic_store(word, value) \
	(disturb(), atomic_store_explicit(word, value, memory_order_seq_cst), disturb())
#define atomic_fetch_add(word, value) \
	disturbed_value(atomic_fetch_add_explicit(word, value, memory_order_seq_cst))
#define atomic_exchange(word, value) \
	disturbed_value(atomic_exchange_explicit(word, value, memory_order_seq_cst))

#include "settle.c"
#include "wait.c"
