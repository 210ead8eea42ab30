/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * kernel/atomic.h - part of kernel.h: barriers, atomics and bits, with the kernel's orders.
 *
 * What returns a value is a full barrier before and after, unless it ends in _relaxed, _acquire or
 * _release; what returns none has no order. <stdatomic.h> has macros of the same name for some:
 * where a file includes both, atomic_fetch_add() and its like are those of C11.
 */
#ifndef PCPCHARGE_KERNEL_ATOMIC_H
#define PCPCHARGE_KERNEL_ATOMIC_H

#ifndef PCPCHARGE_KERNEL_H
#error "include <pcpcharge/kernel.h>"
#endif

#define smp_mb() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define smp_rmb() __atomic_thread_fence(__ATOMIC_ACQUIRE)
#define smp_wmb() __atomic_thread_fence(__ATOMIC_RELEASE)
#define smp_load_acquire(place) __atomic_load_n((place), __ATOMIC_ACQUIRE)
#define smp_store_release(place, value) __atomic_store_n((place), (value), __ATOMIC_RELEASE)
#define smp_store_mb(place, value)          \
	do {                                \
		WRITE_ONCE(place, (value)); \
		smp_mb();                   \
	} while (0)
#define smp_mb__before_atomic() smp_mb()
#define smp_mb__after_atomic() smp_mb()

#if defined(__x86_64__) || defined(__i386__)
#define PCPC_KERNEL_AROUND() barrier() /* a locked instruction is a full barrier */
#define cpu_relax() __builtin_ia32_pause()
#else
#define PCPC_KERNEL_AROUND() smp_mb() /* C11's strongest order is less than that */
#define cpu_relax() barrier()
#endif

#define PCPC_KERNEL_XCHG(place, value, order)                     \
	({                                                        \
		__typeof__(*(place)) xchg_value_ = (value);       \
		__atomic_exchange_n((place), xchg_value_, order); \
	})
#define xchg_relaxed(place, value) PCPC_KERNEL_XCHG(place, value, __ATOMIC_RELAXED)
#define xchg_acquire(place, value) PCPC_KERNEL_XCHG(place, value, __ATOMIC_ACQUIRE)
#define xchg_release(place, value) PCPC_KERNEL_XCHG(place, value, __ATOMIC_RELEASE)
#define xchg(place, value)                                                    \
	({                                                                    \
		__typeof__(*(place)) xchg_was_;                               \
		PCPC_KERNEL_AROUND();                                         \
		xchg_was_ = PCPC_KERNEL_XCHG(place, value, __ATOMIC_SEQ_CST); \
		PCPC_KERNEL_AROUND();                                         \
		xchg_was_;                                                    \
	})
#define PCPC_KERNEL_CMPXCHG(place, expected, value, order)                                     \
	({                                                                                     \
		__typeof__(*(place)) cmpxchg_old_ = (expected), cmpxchg_new_ = (value);        \
		(void)__atomic_compare_exchange_n((place), &cmpxchg_old_, cmpxchg_new_, false, \
						  order, __ATOMIC_RELAXED);                    \
		cmpxchg_old_;                                                                  \
	})
#define cmpxchg(place, expected, value)                                                       \
	({                                                                                    \
		__typeof__(*(place)) cmpxchg_was_;                                            \
		PCPC_KERNEL_AROUND();                                                         \
		cmpxchg_was_ = PCPC_KERNEL_CMPXCHG(place, expected, value, __ATOMIC_SEQ_CST); \
		PCPC_KERNEL_AROUND();                                                         \
		cmpxchg_was_;                                                                 \
	})
#define cmpxchg_relaxed(place, expected, value) \
	PCPC_KERNEL_CMPXCHG(place, expected, value, __ATOMIC_RELAXED)
#define cmpxchg_acquire(place, expected, value) \
	PCPC_KERNEL_CMPXCHG(place, expected, value, __ATOMIC_ACQUIRE)
#define cmpxchg_release(place, expected, value) \
	PCPC_KERNEL_CMPXCHG(place, expected, value, __ATOMIC_RELEASE)
#define cmpxchg_local(place, expected, value) cmpxchg_relaxed(place, expected, value)
#define PCPC_KERNEL_TRY_CMPXCHG(place, expected, value, order) \
	__atomic_compare_exchange_n((place), (expected), (value), false, order, __ATOMIC_RELAXED)
#define try_cmpxchg_relaxed(place, expected, value) \
	PCPC_KERNEL_TRY_CMPXCHG(place, expected, value, __ATOMIC_RELAXED)
#define try_cmpxchg_acquire(place, expected, value) \
	PCPC_KERNEL_TRY_CMPXCHG(place, expected, value, __ATOMIC_ACQUIRE)
#define try_cmpxchg_release(place, expected, value) \
	PCPC_KERNEL_TRY_CMPXCHG(place, expected, value, __ATOMIC_RELEASE)
#define try_cmpxchg(place, expected, value)                                                       \
	({                                                                                        \
		bool try_cmpxchg_;                                                                \
		PCPC_KERNEL_AROUND();                                                             \
		try_cmpxchg_ = PCPC_KERNEL_TRY_CMPXCHG(place, expected, value, __ATOMIC_SEQ_CST); \
		PCPC_KERNEL_AROUND();                                                             \
		try_cmpxchg_;                                                                     \
	})

typedef struct {
	int counter;
} atomic_t;

typedef struct {
	long counter;
} atomic_long_t;

typedef struct {
	s64 counter;
} atomic64_t;

#define ATOMIC_INIT(value)         \
	{                          \
		.counter = (value) \
	}
#define ATOMIC_LONG_INIT(value) ATOMIC_INIT(value)
#define ATOMIC64_INIT(value) ATOMIC_INIT(value)

/* All operations on one type. Names in parentheses, for <stdatomic.h> may have them as macros. */
#define PCPC_KERNEL_ATOMIC_ORDER(prefix, type, name, builtin, order)         \
	static inline type(prefix##_##name)(type value, prefix##_t * atomic) \
	{                                                                    \
		return builtin(&atomic->counter, value, order);              \
	}
#define PCPC_KERNEL_ATOMIC_ORDERS(prefix, type, name, builtin)                            \
	PCPC_KERNEL_ATOMIC_ORDER(prefix, type, name##_relaxed, builtin, __ATOMIC_RELAXED) \
	PCPC_KERNEL_ATOMIC_ORDER(prefix, type, name##_acquire, builtin, __ATOMIC_ACQUIRE) \
	PCPC_KERNEL_ATOMIC_ORDER(prefix, type, name##_release, builtin, __ATOMIC_RELEASE) \
	static inline type(prefix##_##name)(type value, prefix##_t * atomic)              \
	{                                                                                 \
		type answer;                                                              \
                                                                                          \
		PCPC_KERNEL_AROUND();                                                     \
		answer = builtin(&atomic->counter, value, __ATOMIC_SEQ_CST);              \
		PCPC_KERNEL_AROUND();                                                     \
		return answer;                                                            \
	}

#define PCPC_KERNEL_ATOMIC_FETCH(prefix, type, name, builtin)              \
	PCPC_KERNEL_ATOMIC_ORDERS(prefix, type, fetch_##name, builtin)     \
	static inline void prefix##_##name(type value, prefix##_t *atomic) \
	{                                                                  \
		(void)builtin(&atomic->counter, value, __ATOMIC_RELAXED);  \
	}

#define PCPC_KERNEL_ATOMIC_COMPARE(prefix, type)                                                   \
	static inline type prefix##_xchg(prefix##_t *atomic, type value)                           \
	{                                                                                          \
		return xchg(&atomic->counter, value);                                              \
	}                                                                                          \
	static inline type prefix##_cmpxchg(prefix##_t *atomic, type expected, type value)         \
	{                                                                                          \
		return cmpxchg(&atomic->counter, expected, value);                                 \
	}                                                                                          \
	static inline type prefix##_xchg_relaxed(prefix##_t *atomic, type value)                   \
	{                                                                                          \
		return xchg_relaxed(&atomic->counter, value);                                      \
	}                                                                                          \
	static inline type prefix##_cmpxchg_relaxed(prefix##_t *atomic, type expected, type value) \
	{                                                                                          \
		return cmpxchg_relaxed(&atomic->counter, expected, value);                         \
	}                                                                                          \
	static inline bool prefix##_try_cmpxchg(prefix##_t *atomic, type *expected, type value)    \
	{                                                                                          \
		return try_cmpxchg(&atomic->counter, expected, value);                             \
	}                                                                                          \
	static inline bool prefix##_add_unless(prefix##_t *atomic, type value, type unless)        \
	{                                                                                          \
		type was = __atomic_load_n(&atomic->counter, __ATOMIC_RELAXED);                    \
                                                                                                   \
		while (was != unless)                                                              \
			if (prefix##_try_cmpxchg(atomic, &was, was + value))                       \
				return true;                                                       \
		return false;                                                                      \
	}                                                                                          \
	static inline bool prefix##_inc_not_zero(prefix##_t *atomic)                               \
	{                                                                                          \
		return prefix##_add_unless(atomic, 1, 0);                                          \
	}

#define PCPC_KERNEL_ATOMIC(prefix, type)                                         \
	static inline type prefix##_read(const prefix##_t *atomic)               \
	{                                                                        \
		return __atomic_load_n(&atomic->counter, __ATOMIC_RELAXED);      \
	}                                                                        \
	static inline type prefix##_read_acquire(const prefix##_t *atomic)       \
	{                                                                        \
		return __atomic_load_n(&atomic->counter, __ATOMIC_ACQUIRE);      \
	}                                                                        \
	static inline void prefix##_set(prefix##_t *atomic, type value)          \
	{                                                                        \
		__atomic_store_n(&atomic->counter, value, __ATOMIC_RELAXED);     \
	}                                                                        \
	static inline void prefix##_set_release(prefix##_t *atomic, type value)  \
	{                                                                        \
		__atomic_store_n(&atomic->counter, value, __ATOMIC_RELEASE);     \
	}                                                                        \
	PCPC_KERNEL_ATOMIC_FETCH(prefix, type, add, __atomic_fetch_add)          \
	PCPC_KERNEL_ATOMIC_FETCH(prefix, type, sub, __atomic_fetch_sub)          \
	PCPC_KERNEL_ATOMIC_FETCH(prefix, type, and, __atomic_fetch_and)          \
	PCPC_KERNEL_ATOMIC_FETCH(prefix, type, or, __atomic_fetch_or)            \
	PCPC_KERNEL_ATOMIC_FETCH(prefix, type, xor, __atomic_fetch_xor)          \
	PCPC_KERNEL_ATOMIC_ORDERS(prefix, type, add_return, __atomic_add_fetch)  \
	PCPC_KERNEL_ATOMIC_ORDERS(prefix, type, sub_return, __atomic_sub_fetch)  \
	PCPC_KERNEL_ATOMIC_COMPARE(prefix, type)                                 \
	static inline void prefix##_inc(prefix##_t *atomic)                      \
	{                                                                        \
		prefix##_add(1, atomic);                                         \
	}                                                                        \
	static inline void prefix##_dec(prefix##_t *atomic)                      \
	{                                                                        \
		prefix##_sub(1, atomic);                                         \
	}                                                                        \
	static inline type prefix##_inc_return(prefix##_t *atomic)               \
	{                                                                        \
		return prefix##_add_return(1, atomic);                           \
	}                                                                        \
	static inline type prefix##_dec_return(prefix##_t *atomic)               \
	{                                                                        \
		return prefix##_sub_return(1, atomic);                           \
	}                                                                        \
	static inline bool prefix##_dec_and_test(prefix##_t *atomic)             \
	{                                                                        \
		return prefix##_sub_return(1, atomic) == 0;                      \
	}                                                                        \
	static inline bool prefix##_inc_and_test(prefix##_t *atomic)             \
	{                                                                        \
		return prefix##_add_return(1, atomic) == 0;                      \
	}                                                                        \
	static inline bool prefix##_sub_and_test(type value, prefix##_t *atomic) \
	{                                                                        \
		return prefix##_sub_return(value, atomic) == 0;                  \
	}

PCPC_KERNEL_ATOMIC(atomic, int)
PCPC_KERNEL_ATOMIC(atomic_long, long)
PCPC_KERNEL_ATOMIC(atomic64, s64)

/* -- bits of an array of longs -- */

static inline unsigned long *pcpc_kernel_word_of(long nr, const volatile unsigned long *words)
{
	return (unsigned long *)(uintptr_t)&words[nr / BITS_PER_LONG];
}

static inline void set_bit(long nr, volatile unsigned long *words)
{
	(void)__atomic_fetch_or(pcpc_kernel_word_of(nr, words), BIT(nr % BITS_PER_LONG),
				__ATOMIC_RELAXED);
}

static inline void clear_bit(long nr, volatile unsigned long *words)
{
	(void)__atomic_fetch_and(pcpc_kernel_word_of(nr, words), ~BIT(nr % BITS_PER_LONG),
				 __ATOMIC_RELAXED);
}

static inline bool test_bit(long nr, const volatile unsigned long *words)
{
	return READ_ONCE(*pcpc_kernel_word_of(nr, words)) & BIT(nr % BITS_PER_LONG);
}

static inline bool test_and_set_bit(long nr, volatile unsigned long *words)
{
	unsigned long was;

	PCPC_KERNEL_AROUND();
	was = __atomic_fetch_or(pcpc_kernel_word_of(nr, words), BIT(nr % BITS_PER_LONG),
				__ATOMIC_SEQ_CST);
	PCPC_KERNEL_AROUND();
	return was & BIT(nr % BITS_PER_LONG);
}

static inline bool test_and_clear_bit(long nr, volatile unsigned long *words)
{
	unsigned long was;

	PCPC_KERNEL_AROUND();
	was = __atomic_fetch_and(pcpc_kernel_word_of(nr, words), ~BIT(nr % BITS_PER_LONG),
				 __ATOMIC_SEQ_CST);
	PCPC_KERNEL_AROUND();
	return was & BIT(nr % BITS_PER_LONG);
}

#endif
