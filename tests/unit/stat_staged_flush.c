// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * stat_staged_flush.c - the library's flush.c, where a test can hold a thread up before each atomic
 * step of a flush, and is told of every counter that was cleared.
 */
#define _GNU_SOURCE
#include "stat_private.h"
#include "stat_staged.h"

void (*_Atomic when_cleared)(struct pcpc_owner *owner);

static inline void cleared(struct pcpc_owner *owner)
{
	void (*hook)(struct pcpc_owner * owner) = atomic_load(&when_cleared);

	if (hook)
		hook(owner);
}

#define PCPC_FLUSH_STEP(owner) cleared(owner)

#undef atomic_load
#undef atomic_store
#undef atomic_exchange
#undef atomic_fetch_and
#define atomic_load(word) (stat_step(), atomic_load_explicit(word, memory_order_seq_cst))
#define atomic_store(word, value) \
	(stat_step(), atomic_store_explicit(word, value, memory_order_seq_cst))
#define atomic_exchange(word, value) \
	(stat_step(), atomic_exchange_explicit(word, value, memory_order_seq_cst))
#define atomic_fetch_and(word, value) \
	(stat_step(), atomic_fetch_and_explicit(word, value, memory_order_seq_cst))

#include "flush.c"
