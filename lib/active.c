// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * active.c - the owner that a thread works for, per domain.
 *
 * The first few domains of a process have a place in thread-local memory, which is there from the
 * thread's start: an allocator may ask from anywhere. Further ones use a key of the C library.
 */
#include "owner_private.h"

#include <errno.h>

/* A place is reused by later domains; serial tells whether what stands there is of this one. */
static PCPC_THREAD_LOCAL struct {
	uint64_t serial;
	struct pcpc_owner *owner;
} active[NR_ACTIVE];

static _Atomic uint32_t slots_used;

int pcpc_active_init(struct pcpc_domain *domain)
{
	static atomic_u64 last_serial;
	uint32_t used = atomic_load(&slots_used), slot;

	do {
		slot = used == (1u << NR_ACTIVE) - 1 ? NR_ACTIVE : (uint32_t)__builtin_ctz(~used);
	} while (slot < NR_ACTIVE &&
		 !atomic_compare_exchange_weak(&slots_used, &used, used | 1u << slot));
	if (slot == NR_ACTIVE && pthread_key_create(&domain->active_key, NULL) != 0)
		return -EMFILE;
	domain->active_slot = slot;
	domain->serial = atomic_fetch_add(&last_serial, 1) + 1;
	return 0;
}

void pcpc_active_end(struct pcpc_domain *domain)
{
	if (!domain->serial)
		return;
	if (domain->active_slot < NR_ACTIVE)
		atomic_fetch_and(&slots_used, ~(1u << domain->active_slot));
	else
		pthread_key_delete(domain->active_key);
}

struct pcpc_owner *pcpc_active(struct pcpc_domain *domain)
{
	if (!domain)
		return NULL;
	if (domain->active_slot == NR_ACTIVE)
		return pthread_getspecific(domain->active_key);
	return active[domain->active_slot].serial == domain->serial
		       ? active[domain->active_slot].owner
		       : NULL;
}

struct pcpc_owner *pcpc_set_active(struct pcpc_domain *domain, struct pcpc_owner *owner)
{
	struct pcpc_owner *previous = pcpc_active(domain);

	if (!domain || (owner && owner->domain != domain))
		return previous;
	if (domain->active_slot == NR_ACTIVE) {
		(void)pthread_setspecific(domain->active_key, owner);
		return previous;
	}
	/* Owner first: a handler in between finds the old one, or none. */
	active[domain->active_slot].owner = owner;
	atomic_signal_fence(memory_order_seq_cst);
	active[domain->active_slot].serial = domain->serial;
	return previous;
}
