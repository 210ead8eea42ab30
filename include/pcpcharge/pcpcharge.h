/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * pcpcharge.h - all of libpcpcharge.
 *
 * Counts what the tenants of one process use, at two or three nanoseconds an operation. Units are
 * taken from a counter in batches and kept in per-CPU stocks, several owners to a cache line; what
 * is slow is handed back to the caller as a deferred amount, to be settled after the per-CPU step.
 *
 *	stock.h   one CPU's stock: slot words and their transitions; header only, no libc
 *	cache.h   the stocks of all CPUs: consume, refill, drain
 *
 * What may overlap on one cache: everything with everything, but
 *
 *	                    consume  refill  drain   stocked  get_stats  fork     destroy
 *	consume, refill     yes      yes     yes     yes      yes        yes      NO
 *	drain               yes      yes     waits   yes      yes        waits    NO
 *	in a signal handler yes      yes     NO      yes      NO         -        NO
 *	in match()          NO       NO      -EDEADLK NO      NO         NO       NO
 *	in settle()         yes      yes     -EDEADLK yes     yes        NO       NO
 */
#ifndef PCPCHARGE_PCPCHARGE_H
#define PCPCHARGE_PCPCHARGE_H

#include <pcpcharge/base.h>
#include <pcpcharge/stock.h>
#include <pcpcharge/cache.h>

#endif
