/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * pcpcharge.h - all of libpcpcharge.
 *
 * Counts what the tenants of one process use, and holds each to a limit. Units are taken from
 * counters in batches and kept in per-CPU stocks, several owners to a cache line; most operations
 * touch nothing but the stock of their CPU.
 *
 *	observe.h reports on domains and refusals; figures of a domain
 *	charge.h  charging and uncharging owners, waiting, transfer, the owner a thread works for
 *	owner.h   domains, and their trees of owners: limits, reclaim, events, figures
 *	stat.h    statistics of owners: items without limits, by owner and for all below it
 *	cache.h   the stocks of all CPUs: consume, refill, drain. For counters of the program's own
 *	stock.h   one CPU's stock: slot words and their transitions; header only, no libc
 *
 * Each level stands on those below it, and each can be used alone.
 *
 * Owners. What may overlap in one domain: everything with everything, but pcpc_domain_destroy()
 * with nothing. Where a function may be called:
 *
 *	                            NOWAIT  may wait  wait  mutex  poll     domain   fork  figures
 *	in a signal handler (1)     yes     NO        NO    NO     NO       NO       -     yes
 *	in reclaim or notify        yes     yes       NO    yes    later    (2)      yes   yes
 *	in visit of a walk, or      yes     yes       yes   yes    yes      (2)      yes   yes
 *	    write of a report
 *	in a read-side section (3)  yes     (4)       (4)   yes    nothing  (5)      NO    yes
 *	in a fork handler (1)       yes     NO        NO    NO     NO       NO       NO    yes
 *	in settle() of a cache (1)  yes     NO        NO    NO     NO       NO       NO    yes
 *
 *	NOWAIT    pcpc_charge_flags() with PCPC_NOWAIT, pcpc_uncharge(), pcpc_uncharge_stat(),
 *	          pcpc_stat_add(), pcpc_stat_add_node()
 *	may wait  pcpc_charge(), pcpc_charge_flags(), pcpc_charge_stat(), pcpc_transfer(),
 *	          pcpc_owner_drain(), pcpc_owner_set_max()
 *	wait      pcpc_charge_wait()
 *	mutex     what makes, takes away, walks, sets or sums: pcpc_owner_create(),
 *	          pcpc_owner_destroy(), pcpc_owner_walk(), the other pcpc_owner_set_...(),
 *	          pcpc_owner_reset_peak(), pcpc_owner_stocked(), pcpc_owner_usage_exact();
 *	          pcpc_stat_read(), pcpc_stat_read_node(), pcpc_stat_read_exact() (6),
 *	          pcpc_stat_flush(); pcpc_domain_report() and the other reports of observe.h,
 *	          pcpc_domain_get_stats()
 *	poll      pcpc_domain_poll()
 *	domain    pcpc_domain_create(), pcpc_domain_destroy()
 *	figures   what owner.h calls signal-safe, pcpc_active(), pcpc_set_active();
 *	          pcpc_stat_read_local(), pcpc_stat_needs_flush(), pcpc_stat_updates()
 *
 *	(1) The thread is registered with liburcu-bp: see pcpc_thread_register().
 *	(2) Yes; but a domain cannot be destroyed by its own callbacks (-EDEADLK) or by write of
 *	    its own report (-EBUSY), and must not be by a visit of one of its owners.
 *	(3) Of liburcu-bp, by the program. pcpc_cache_create() and pcpc_cache_destroy() must not
 *	    be called there either, once there are domains.
 *	(4) Yes; but where it would have to wait for a grace period the answer is -EAGAIN.
 *	(5) -EDEADLK.
 *	(6) It may wait, for a grace period. In a read-side section it does without, and may miss
 *	    what another thread is just applying.
 *
 * "later": poll does what else there is to do; events are told when the callback has returned, or
 * by the next poll, for which the eventfd is readable. "nothing": everything stays to be done, and
 * the eventfd readable.
 *
 * The charge cache. What may overlap on one cache: everything with everything, but
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
#include <pcpcharge/owner.h>
#include <pcpcharge/charge.h>
#include <pcpcharge/stat.h>
#include <pcpcharge/observe.h>

#endif
