/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * malloc_rival.h - what libpcpcharge-malloc.so is compared with: itself, with no accounting, or
 * with one shared counter (MALLOC_RIVAL_ATOMIC), which is what is usually built first. Included by
 * malloc_private.h in place of its own malloc_charge() and malloc_uncharge().
 */
#ifndef MALLOC_RIVAL_H
#define MALLOC_RIVAL_H

#ifdef MALLOC_RIVAL_ATOMIC

/* Signed, for what the slow path charged comes back here. */
static struct {
	_Alignas(128) atomic_llong usage;
	_Alignas(128) atomic_llong max;
} malloc_rival = { 0, PCPC_UNLIMITED };

/* Added first, and taken back where it is too much. */
static PCPC_ALWAYS_INLINE uint32_t malloc_charge(uint64_t cost)
{
	long long usage;

	if (PCPC_UNLIKELY(!malloc_is_ready()))
		return malloc_charge_slow(cost);
	usage = atomic_fetch_add_explicit(&malloc_rival.usage, (long long)cost,
					  memory_order_relaxed);
	if (PCPC_LIKELY(usage + (long long)cost <=
			atomic_load_explicit(&malloc_rival.max, memory_order_relaxed)))
		return malloc_state.root_id;
	atomic_fetch_sub_explicit(&malloc_rival.usage, (long long)cost, memory_order_relaxed);
	return CHARGE_REFUSED;
}

static PCPC_ALWAYS_INLINE void malloc_uncharge(uint32_t id, uint64_t cost)
{
	if (id != CHARGED_NOBODY)
		atomic_fetch_sub_explicit(&malloc_rival.usage, (long long)cost,
					  memory_order_relaxed);
}

#else

static PCPC_ALWAYS_INLINE uint32_t malloc_charge(uint64_t cost)
{
	return PCPC_LIKELY(malloc_is_ready()) ? malloc_state.root_id : malloc_charge_slow(cost);
}

static PCPC_ALWAYS_INLINE void malloc_uncharge(uint32_t id, uint64_t cost)
{
	(void)id;
	(void)cost;
}

#endif
#endif
