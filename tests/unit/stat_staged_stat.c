// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * stat_staged_stat.c - the library's stat.c, where a test can hold a thread up before each atomic
 * step of applying a delta, and before a hit commits; and its twin, whose walk stops early.
 */
#define _GNU_SOURCE
#include "stat_private.h"
#include "stat_staged.h"

void (*_Atomic before_step)(void);
void (*_Atomic before_hit)(void);
_Atomic bool walk_stops;

static inline __attribute__((unused)) void hit_step(void)
{
	void (*hook)(void) = atomic_load(&before_hit);

	if (hook)
		hook();
}

#define PCPC_PAST_THRESHOLD                                                  \
	{                                                                    \
		if (atomic_load_explicit(&walk_stops, memory_order_relaxed)) \
			break;                                               \
		continue;                                                    \
	}

#undef atomic_load
#undef atomic_fetch_add
#undef atomic_fetch_or
#define atomic_load(word) (stat_step(), atomic_load_explicit(word, memory_order_seq_cst))
#define atomic_fetch_add(word, value) \
	(stat_step(), atomic_fetch_add_explicit(word, value, memory_order_seq_cst))
#define atomic_fetch_or(word, value) \
	(stat_step(), atomic_fetch_or_explicit(word, value, memory_order_seq_cst))
#define pcpc_rseq_commit_at(...) (hit_step(), pcpc_rseq_commit_at(__VA_ARGS__))

#include "stat.c"
