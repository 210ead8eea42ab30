/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * charge.h - charging owners.
 *
 * A charge that the running CPU's stock serves touches one line that no other CPU writes, and
 * issues no atomic read-modify-write. One that misses takes a batch into its owner's counter and
 * climbs only as far as it must. The owner is named at every charge and uncharge, from any thread.
 */
#ifndef PCPCHARGE_CHARGE_H
#define PCPCHARGE_CHARGE_H

#include <pcpcharge/owner.h>

PCPC_BEGIN_DECLS

#define PCPC_NOWAIT 1u	  /* no drain, no reclaim, no lock: async-signal-safe */
#define PCPC_FORCE 2u	  /* no max refuses it; counted where it went over one */
#define PCPC_NORECLAIM 4u /* drain, but call no reclaim function */

/* Who refused: the charged owner or an ancestor, so over is valid while the caller holds the
 * charged one; id and name are copies, the name as far as whole characters of it fit. */
struct pcpc_refusal {
	struct pcpc_owner *over;
	uint32_t id;
	char name[32];
	uint64_t max, usage, asked;
};

/**
 * pcpc_charge_flags: take units for an owner, and for its ancestors.
 * @owner: the caller holds a reference or units of it
 * @count: units, 0..INT64_MAX
 * @flags: PCPC_NOWAIT, PCPC_FORCE, PCPC_NORECLAIM, or 0
 * @ret_refusal: may be NULL; written on -EDQUOT and -EAGAIN only
 *
 * Returns 0; -EDQUOT: at some moment during the call it did not fit at the owner that ret_refusal
 * names, beside what callers hold and the exact amounts of calls in progress; with PCPC_FORCE only
 * where usage would pass PCPC_UNLIMITED; -EAGAIN: it did not fit now, and this call could not make
 * sure, because it was not allowed to wait (PCPC_NOWAIT, or inside a read-side section of
 * liburcu-bp), membarrier is refused, or limits kept changing: pcpc_domain_poll() will see to it;
 * -ESHUTDOWN: the owner is offline; -EINVAL. Whatever is not 0 leaves nothing behind at any level.
 *
 * Threads: any; without PCPC_NOWAIT it may drain, wait for a grace period and call back. With
 * PCPC_NOWAIT it is safe in a signal handler, in a registered thread (pcpc_thread_register()).
 * Ordering: none beyond the units. Is no cancellation point, but what it calls back may be.
 */
PCPC_API int pcpc_charge_flags(struct pcpc_owner *owner, uint64_t count, unsigned int flags,
			       struct pcpc_refusal *ret_refusal);

/** pcpc_charge: pcpc_charge_flags() with no flags and no refusal. */
PCPC_API int pcpc_charge(struct pcpc_owner *owner, uint64_t count);

/**
 * pcpc_uncharge: give units back. The caller holds them; whoever gives back more than is held is
 * found out when the counter would go below zero (PCPC_EVENT_UNDERFLOW).
 *
 * Never waits, drains, sweeps or calls back; signal-safe as pcpc_charge_flags() with PCPC_NOWAIT.
 * count above INT64_MAX or a NULL owner: nothing happens.
 */
PCPC_API void pcpc_uncharge(struct pcpc_owner *owner, uint64_t count);

/** The same, and move the domain's coupled item of the owner by delta. Either may be 0. */
PCPC_API int pcpc_charge_stat(struct pcpc_owner *owner, uint64_t count, int64_t delta);
PCPC_API void pcpc_uncharge_stat(struct pcpc_owner *owner, uint64_t count, int64_t delta);

/**
 * pcpc_charge_wait: charge, and where it is refused sleep until it fits.
 * @timeout_ns: negative: for ever
 *
 * Woken as soon as its amount would fit, or never will. It is not refused in the meantime, so no
 * event says so. Not in a callback: nobody else might give back what it waits for.
 *
 * Returns 0, -ETIMEDOUT, -ESHUTDOWN, -EINVAL, -EDQUOT if count is above a max; -EAGAIN as
 * pcpc_charge_flags().
 */
PCPC_API int pcpc_charge_wait(struct pcpc_owner *owner, uint64_t count, int64_t timeout_ns);

/**
 * pcpc_transfer: move units that the caller holds from one owner to another of the same domain. All
 * or nothing. Nothing is asked of common ancestors; from may be offline, and either may be an
 * ancestor of the other. Returns as pcpc_charge(); -EINVAL also for two domains, and for more than
 * from has (PCPC_EVENT_UNDERFLOW).
 */
PCPC_API int pcpc_transfer(struct pcpc_owner *from, struct pcpc_owner *to, uint64_t count);

/**
 * pcpc_active, pcpc_set_active: the owner that this thread works for in a domain, for allocators.
 * Holds no reference and flushes nothing. set returns the previous one. Neither blocks; both are
 * signal-safe, but where more than eight domains exist, a thread's first set in the ninth and later
 * may allocate. A new thread has none (NULL).
 */
PCPC_API struct pcpc_owner *pcpc_active(struct pcpc_domain *domain);
PCPC_API struct pcpc_owner *pcpc_set_active(struct pcpc_domain *domain, struct pcpc_owner *owner);

PCPC_END_DECLS

#endif
