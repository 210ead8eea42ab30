// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * owner_staged_counter.c - the library's counter.c, where a test can hold a thread up between its
 * look at max and its change of usage.
 */
#define _GNU_SOURCE
#include "owner_private.h"
#include "owner_staged_counter.h"

void (*_Atomic before_exchange)(const void *word);

static const void *exchanging(const void *word)
{
	void (*hook)(const void *word) = atomic_load(&before_exchange);

	if (hook)
		hook(word);
	return word;
}

#undef atomic_compare_exchange_weak
#define atomic_compare_exchange_weak(word, old, value)                                 \
	(exchanging(word) &&                                                           \
	 atomic_compare_exchange_weak_explicit(word, old, value, memory_order_seq_cst, \
					       memory_order_seq_cst))

#include "counter.c"
