// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * malloc_charge.c - who pays for a block, and what happens at a limit.
 *
 * The first try never waits. Where it cannot be sure that there is no room, a second one drains the
 * stocks and waits for grace periods, so a NULL from malloc() is exact; inside a read-side section
 * of liburcu-bp, and in fork handlers, nobody may wait, so there a NULL may be one too many, and a
 * later call makes up for it. Reclaim functions are not called: malloc() may be called with any
 * lock held. Callbacks of pcpc_owner_set_notify() are, by the second try; they may allocate.
 */
#define _GNU_SOURCE
#include "malloc_private.h"
#include "malloc_block.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>

struct malloc_state malloc_state;
MALLOC_THREAD_LOCAL struct malloc_thread malloc_thread;

/* -- threads that end -- */

/*
 * When the destructors of a thread's keys have run, nobody takes it off liburcu-bp's list any
 * more, so from then on it must not get there. It charges nobody, and leaves its blocks to a later
 * call of another thread: each stands on a list by itself, for to allocate a note could put the
 * thread on the next allocator's list likewise.
 */
static pthread_key_t leaving_key;
static bool has_leaving_key;

struct late {
	struct late *next;
	uint64_t cost;
	uint32_t owner;
};

PCPC_STATIC_ASSERT(sizeof(struct late) <= 2 * BLOCK_GRAIN, "fits into the smallest block");

static _Atomic(struct late *) late;

/* Its value is the round of destructors that is to come. Not in the last one, in which others who
 * have to be last (sanitizers) end. */
static void leave(void *value)
{
	uintptr_t round = (uintptr_t)value;

	if (round < PTHREAD_DESTRUCTOR_ITERATIONS - 1) {
		(void)pthread_setspecific(leaving_key, (void *)(round + 1));
		return;
	}
	malloc_thread.leaving = true;
	malloc_thread.registered = false;
}

void malloc_watch_threads(void)
{
	has_leaving_key = pthread_key_create(&leaving_key, leave) == 0;
}

/* Release: pairs with malloc_settle_late(). */
void malloc_release_late(void *base, uint32_t owner, uint64_t cost)
{
	struct late *note = base, *first = atomic_load_explicit(&late, memory_order_relaxed);

	note->cost = cost;
	note->owner = owner;
	do {
		note->next = first;
	} while (!atomic_compare_exchange_weak_explicit(&late, &first, note, memory_order_release,
							memory_order_relaxed));
	malloc_want_chores();
}

/* Acquire: pairs with malloc_release_late(). */
void malloc_settle_late(void)
{
	struct late *note = atomic_exchange_explicit(&late, NULL, memory_order_acquire), *next;
	struct late found;

	for (; note; note = next) {
		found = *note;
		next = found.next;
		NEXT(free)(note);
		pcpc_uncharge(pcpc_owner_by_id(malloc_state.domain, found.owner), found.cost);
	}
}

/* -- charging -- */

/*
 * The library registers a thread with liburcu-bp when it first misses, under a mutex, and the C
 * library may allocate for that. So it is done here, once, with the thread marked: what comes back
 * meanwhile asks for no charge. After that a charge that does not wait allocates nothing.
 */
static PCPC_COLD void register_thread(void)
{
	int saved = errno;

	malloc_thread.registering = true;
	pcpc_thread_register();
	if (has_leaving_key)
		(void)pthread_setspecific(leaving_key, (void *)1);
	malloc_thread.registering = false;
	malloc_thread.registered = true;
	errno = saved;
}

void malloc_want_chores(void)
{
	int open = MODE_OPEN;

	/* Pairs with do_chores(). */
	(void)atomic_compare_exchange_strong(&malloc_state.mode, &open, MODE_CHORES);
}

/* What could not be done where it was found necessary. The mode first: what is left from now on is
 * seen by a later call. In fork handlers the library's mutexes are taken. */
static void do_chores(void)
{
	int chores = MODE_CHORES, saved = errno, state;

	if (malloc_thread.forking ||
	    !atomic_compare_exchange_strong(&malloc_state.mode, &chores, MODE_OPEN))
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	malloc_settle_late();
	if (malloc_report_wanted())
		malloc_report();
	pcpc_domain_poll(malloc_state.domain);
	pthread_setcancelstate(state, NULL);
	errno = saved;
}

/* A charge that may wait. It must not be cancelled meanwhile: grace periods sleep in poll(), with
 * mutexes of liburcu-bp held. Poll takes off the list what the first try has put there. */
static int charge_waiting(struct pcpc_owner *owner, uint64_t cost)
{
	int saved = errno, state, r;

	if (malloc_thread.forking)
		return -EAGAIN;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	r = pcpc_charge_flags(owner, cost, PCPC_NORECLAIM, NULL);
	pcpc_domain_poll(malloc_state.domain);
	pthread_setcancelstate(state, NULL);
	errno = saved;
	return r;
}

/* The first try has answered r. An owner that was destroyed can still be somebody's active one:
 * what is allocated for it then falls to those above. */
uint32_t malloc_charge_hard(struct pcpc_owner *owner, uint64_t cost, int r)
{
	for (;;) {
		if (r == -EAGAIN)
			r = charge_waiting(owner, cost);
		if (r != -ESHUTDOWN || !(owner = pcpc_owner_parent(owner)))
			break;
		r = pcpc_charge_flags(owner, cost, PCPC_NOWAIT, NULL);
	}
	if (r == -EAGAIN)
		malloc_want_chores();
	return r == 0 ? malloc_id(owner) : CHARGE_REFUSED;
}

/* May this call charge? */
static PCPC_COLD bool get_ready(void)
{
	int mode = atomic_load_explicit(&malloc_state.mode, memory_order_acquire);

	if (mode == MODE_EARLY || mode == MODE_CLOSED || malloc_thread.registering ||
	    malloc_thread.leaving)
		return false;
	if (!malloc_thread.registered)
		register_thread();
	if (mode == MODE_CHORES)
		do_chores();
	return true;
}

uint32_t malloc_charge_slow(uint64_t cost)
{
	struct pcpc_owner *owner;
	int r;

	if (!get_ready())
		return CHARGED_NOBODY;
	owner = malloc_active();
	r = pcpc_charge_flags(owner, cost, PCPC_NOWAIT, NULL);
	return r == 0 ? malloc_id(owner) : malloc_charge_hard(owner, cost, r);
}

/* After the end of the library's other parts nothing may be asked of them, and nobody looks. */
void malloc_uncharge_slow(uint32_t id, uint64_t cost)
{
	if (id != CHARGED_NOBODY && get_ready())
		pcpc_uncharge(pcpc_owner_by_id(malloc_state.domain, id), cost);
}

uint32_t malloc_payer(void)
{
	return malloc_is_ready() || get_ready() ? malloc_id(malloc_active()) : CHARGED_NOBODY;
}

struct pcpc_domain *pcpc_malloc_domain(void)
{
	int mode = atomic_load_explicit(&malloc_state.mode, memory_order_acquire);

	return mode == MODE_OPEN || mode == MODE_CHORES ? malloc_state.domain : NULL;
}
