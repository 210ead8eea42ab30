// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * owner_inject.c - delays between the steps of the library's slow paths, so that other threads come
 * in between where they seldom do.
 *
 * Linked with --wrap for each function below: whoever calls one from another file of the library is
 * delayed before or after it now and then. Safe in signal handlers, like what it delays.
 */
#define _GNU_SOURCE
#include "owner_stress.h"

static void delay(void)
{
	static _Thread_local uint64_t random;
	const struct timespec nap = { 0, 50000 };
	uint32_t loops;
	int saved = errno;

	if (!random)
		random = (uint64_t)(uintptr_t)&random;
	switch (below(&random, 256)) {
	case 0:
		(void)nanosleep(&nap, NULL);
		break;
	case 1:
	case 2:
	case 3:
		sched_yield();
		break;
	case 4:
	case 5:
		for (loops = (uint32_t)below(&random, 30000); loops; loops--)
			__asm__ __volatile__("");
		break;
	default:
		break;
	}
	errno = saved;
}

/* A function that answers, and one that does not. */
#define DELAYED(type, name, parameters, arguments) \
	type __real_##name parameters;             \
	type __wrap_##name parameters;             \
	type __wrap_##name parameters              \
	{                                          \
		type answer_;                      \
                                                   \
		delay();                           \
		answer_ = __real_##name arguments; \
		delay();                           \
		return answer_;                    \
	}

#define DELAYED_VOID(name, parameters, arguments) \
	void __real_##name parameters;            \
	void __wrap_##name parameters;            \
	void __wrap_##name parameters             \
	{                                         \
		delay();                          \
		__real_##name arguments;          \
		delay();                          \
	}

DELAYED(bool, pcpc_counter_take, (struct pcpc_books * books, uint64_t amount, uint64_t *ret_usage),
	(books, amount, ret_usage))
DELAYED(uint64_t, pcpc_counter_give,
	(struct pcpc_books * books, uint64_t amount, uint64_t *ret_usage),
	(books, amount, ret_usage))
DELAYED(bool, pcpc_cache_consume,
	(struct pcpc_cache * cache, uint32_t owner, uint64_t count, int64_t delta,
	 const struct pcpc_marks *marks, struct pcpc_deferred *ret_deferred),
	(cache, owner, count, delta, marks, ret_deferred))
DELAYED_VOID(pcpc_cache_refill,
	     (struct pcpc_cache * cache, uint32_t owner, uint64_t count, int64_t delta,
	      const struct pcpc_marks *marks, struct pcpc_deferred *ret_deferred),
	     (cache, owner, count, delta, marks, ret_deferred))
DELAYED(int, pcpc_cache_drain,
	(struct pcpc_cache * cache, pcpc_match_fn *match, pcpc_settle_fn *settle, void *context),
	(cache, match, settle, context))
DELAYED(uint64_t, pcpc_give, (struct pcpc_owner * owner, uint64_t amount), (owner, amount))
DELAYED(uint32_t, pcpc_effective_batch, (struct pcpc_owner * owner), (owner))
DELAYED_VOID(pcpc_raise, (struct pcpc_owner * owner, enum pcpc_event event), (owner, event))
DELAYED_VOID(pcpc_pending_push, (struct pcpc_owner * owner), (owner))
DELAYED(int, pcpc_make_room, (struct pcpc_trial * trial, uint64_t count, unsigned int flags),
	(trial, count, flags))
DELAYED_VOID(pcpc_trial_look, (struct pcpc_trial * trial, struct pcpc_owner *over, uint64_t cap),
	     (trial, over, cap))
DELAYED_VOID(pcpc_futex_wake, (_Atomic uint32_t *word), (word))
DELAYED_VOID(urcu_bp_read_lock, (void), ())
DELAYED_VOID(urcu_bp_read_unlock, (void), ())
