/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * stat.h - statistics of owners: items that are counted without limits, for an owner and for all
 * below it.
 *
 * A domain says which items it has (struct pcpc_item in its configuration), and whether they are
 * told apart by NUMA node. An update goes into a slot of the running CPU's stat stock, keyed by
 * owner and item; when enough has gathered there, or another owner needs the slot, it is applied to
 * the owner's own total. Totals of subtrees are brought up to date by a flush, which visits only
 * what has changed. So reads are cheap and a little old, or exact and dearer.
 *
 * Unless a function says otherwise: any number of threads may call it at a time, it may block, and
 * it must not be called from a signal handler or a handler of pthread_atfork(). The caller holds a
 * reference or units of the owner. A NULL owner, or an item or node that the domain does not have:
 * updates do nothing, reads are 0.
 */
#ifndef PCPCHARGE_STAT_H
#define PCPCHARGE_STAT_H

#include <pcpcharge/owner.h>

PCPC_BEGIN_DECLS

#define PCPC_ITEM_MAX 4095u /* items of a domain, times its nodes, are at most one more */
#define PCPC_STAT_AGE_NS 2000000000ull /* how old what pcpc_stat_read() misses may be */

/**
 * pcpc_stat_add: change an item by delta, any 64-bit value; totals are kept in 64 bits and wrap.
 *
 * Reaches the owner also after destroy. Never waits, drains or calls back; signal-safe in a thread
 * that is registered (pcpc_thread_register()). With nodes, pcpc_stat_add() counts for node 0.
 */
PCPC_API void pcpc_stat_add(struct pcpc_owner *owner, uint32_t item, int64_t delta);
PCPC_API void pcpc_stat_add_node(struct pcpc_owner *owner, uint32_t node, uint32_t item,
				 int64_t delta);

/**
 * pcpc_stat_read: the total of the subtree, owners that are gone included, all nodes together.
 *
 * Drains the domain's stat stocks if that was last done more than PCPC_STAT_AGE_NS ago, and flushes
 * if the subtree's counter says so. What it misses is at most: updates of the last 2 s that are
 * still in slots (less than delta_batch a slot), and 64 x CPUs of what was applied since the last
 * flush. Where membarrier is refused, what is in slots is missing for longer.
 */
PCPC_API int64_t pcpc_stat_read(struct pcpc_owner *owner, uint32_t item);

/** pcpc_stat_read_local: this owner's own total, as far as it was applied: without what is below
 * it, and without what is in slots. Signal-safe, in one load a node. */
PCPC_API int64_t pcpc_stat_read_local(struct pcpc_owner *owner, uint32_t item);

/** pcpc_stat_read_node: as pcpc_stat_read(), of one node. */
PCPC_API int64_t pcpc_stat_read_node(struct pcpc_owner *owner, uint32_t node, uint32_t item);

/** pcpc_stat_read_exact: drains the subtree's slots and flushes it first: every update that has
 * returned is in it. May wait for a grace period of liburcu-bp; inside a read-side section of the
 * caller it does not, and may miss what another thread has just evicted from a slot. Where
 * membarrier is refused, what is in slots is missing. */
PCPC_API int64_t pcpc_stat_read_exact(struct pcpc_owner *owner, uint32_t item);

/** pcpc_stat_flush: bring the totals of the subtree up to date with what was applied. */
PCPC_API void pcpc_stat_flush(struct pcpc_owner *owner);

/** pcpc_stat_needs_flush: has more than 64 x CPUs been applied in the subtree since the last flush?
 * Signal-safe. */
PCPC_API bool pcpc_stat_needs_flush(const struct pcpc_owner *owner);

/** pcpc_stat_updates: how much has been applied in the subtree since the last flush: sum of sizes,
 * without signs, each counted as 2^40 at most; a level that is past the threshold is counted no
 * further. Signal-safe. */
PCPC_API uint64_t pcpc_stat_updates(const struct pcpc_owner *owner);

PCPC_END_DECLS

#endif
