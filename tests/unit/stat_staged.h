/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * stat_staged.h - the hooks of stat_staged_stat.c and stat_staged_flush.c, which are the library's
 * stat.c and flush.c with places to be held up at. NULL: nobody is.
 */
#ifndef PCPCHARGE_TESTS_STAT_STAGED_H
#define PCPCHARGE_TESTS_STAT_STAGED_H

#include <stdatomic.h>
#include <stdbool.h>

struct pcpc_owner;

/* Before every atomic step of applying a delta, and of a flush. */
extern void (*_Atomic before_step)(void);
/* When a flush has cleared this owner's counter. */
extern void (*_Atomic when_cleared)(struct pcpc_owner *owner);
/* Before a hit commits what it has worked out. */
extern void (*_Atomic before_hit)(void);
/* The broken twin: a walk ends at the first level that is past the threshold. */
extern _Atomic bool walk_stops;

static inline void stat_step(void)
{
	void (*hook)(void) = atomic_load(&before_step);

	if (hook)
		hook();
}

#endif
