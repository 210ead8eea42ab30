/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * owner_count.h - counting the atomics that the library issues to counters of owners.
 *
 * Only where BENCH_COUNT is defined: there the functions of lib/counter.c are wrapped. The program
 * that takes times has the library as it is.
 */
#ifndef PCPCHARGE_BENCH_OWNER_COUNT_H
#define PCPCHARGE_BENCH_OWNER_COUNT_H

#include <pcpcharge/charge.h>

#include "rivals.h"

#ifdef BENCH_COUNT

/* Finds out which counter is the owner's, by a charge. One thread at a time; before others count.
 */
void owner_count_learn(struct pcpc_owner *owner, enum bench_line line);
/* All counters. */
void owner_count_forget(void);

#else

static inline void owner_count_learn(struct pcpc_owner *owner, enum bench_line line)
{
	(void)owner;
	(void)line;
}

static inline void owner_count_forget(void)
{
}

#endif

#endif
