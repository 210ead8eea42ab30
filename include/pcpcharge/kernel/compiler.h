/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * kernel/compiler.h - part of kernel.h: types, attributes, arithmetic, warnings, printing, memory.
 */
#ifndef PCPCHARGE_KERNEL_COMPILER_H
#define PCPCHARGE_KERNEL_COMPILER_H

#ifndef PCPCHARGE_KERNEL_H
#error "include <pcpcharge/kernel.h>"
#endif

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;

/* -- attributes -- */

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
#ifndef noinline
#define noinline __attribute__((noinline))
#endif
#define __maybe_unused __attribute__((unused))
#define __must_check __attribute__((warn_unused_result))
#define __packed __attribute__((packed))
#define __aligned(bytes) __attribute__((aligned(bytes)))
#define __cold __attribute__((cold))
#define __init
#define __exit
#define __percpu
#define __rcu
#define __user
#define __read_mostly
#define EXPORT_SYMBOL(name)
#define EXPORT_SYMBOL_GPL(name)

#define SMP_CACHE_BYTES 64
#define L1_CACHE_BYTES 64
#define ____cacheline_aligned __attribute__((aligned(SMP_CACHE_BYTES)))
#define ____cacheline_aligned_in_smp ____cacheline_aligned
/* The hardware fetches lines in pairs. */
#define ____cacheline_internodealigned_in_smp __attribute__((aligned(128)))

#ifndef likely
#define likely(condition) __builtin_expect(!!(condition), 1)
#endif
#ifndef unlikely
#define unlikely(condition) __builtin_expect(!!(condition), 0)
#endif
#ifndef barrier
#define barrier() __asm__ __volatile__("" ::: "memory")
#endif

/* Whole, never torn, once: no order. For integers and pointers of up to eight bytes. */
#define READ_ONCE(place) __atomic_load_n(&(place), __ATOMIC_RELAXED)
#define WRITE_ONCE(place, value) __atomic_store_n(&(place), (value), __ATOMIC_RELAXED)

/* -- arithmetic -- */

/* Each argument once, as the kernel has it: of any two types that cannot be mistaken for each
 * other, for a sign. What is signed is 1, unsigned 2; what is small becomes an int, and is both. */
#define PCPC_KERNEL_SIGN(value)                                                                   \
	_Generic((value), char : 1, signed char : 1, short : 1, int : 1, long : 1, long long : 1, \
		 _Bool : 3, unsigned char : 3, unsigned short : 3, default : 2)
#define PCPC_KERNEL_IS_CONSTANT(value) \
	__builtin_choose_expr(__builtin_constant_p(value), !((unsigned long long)(value) >> 63), 0)
#define PCPC_KERNEL_PASTE_(left, right) left##right
#define PCPC_KERNEL_PASTE(left, right) PCPC_KERNEL_PASTE_(left, right)
/* The names are of each use, for uses nest. */
#define PCPC_KERNEL_PICK(operator, left, right, left_, right_)                             \
	({                                                                                 \
		_Static_assert((PCPC_KERNEL_SIGN(left) & PCPC_KERNEL_SIGN(right)) ||       \
				       PCPC_KERNEL_IS_CONSTANT(left) ||                    \
				       PCPC_KERNEL_IS_CONSTANT(right),                     \
			       "signed and unsigned: say which, with min_t() or max_t()"); \
		__typeof__(0 ? (left) : (right)) left_ = (left), right_ = (right);         \
		left_ operator right_ ? left_ : right_;                                    \
	})
#define PCPC_KERNEL_CHOOSE(operator, left, right, nr)                         \
	PCPC_KERNEL_PICK(operator, left, right, PCPC_KERNEL_PASTE(left_, nr), \
			 PCPC_KERNEL_PASTE(right_, nr))
#define min(left, right) PCPC_KERNEL_CHOOSE(<, left, right, __COUNTER__)
#define max(left, right) PCPC_KERNEL_CHOOSE(>, left, right, __COUNTER__)
#define min_t(type, left, right) min((type)(left), (type)(right))
#define max_t(type, left, right) max((type)(left), (type)(right))
#define clamp(value, low, high) min((__typeof__(value))max(value, low), high)
#define swap(left, right)                        \
	do {                                     \
		__typeof__(left) swap_ = (left); \
		(left) = (right);                \
		(right) = swap_;                 \
	} while (0)
#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define DIV_ROUND_UP(dividend, divisor) (((dividend) + (divisor)-1) / (divisor))
#define round_up(value, power) ((((value)-1) | ((__typeof__(value))((power)-1))) + 1)
#define round_down(value, power) ((value) & ~((__typeof__(value))((power)-1)))
#define BIT(nr) (1UL << (nr))
#define BITS_PER_LONG (8 * (int)sizeof(long))

#ifndef container_of
#define container_of(pointer, type, member)                                                    \
	({                                                                                     \
		const __typeof__(((type *)NULL)->member) *container_member_ = (pointer);       \
		(type *)(uintptr_t)((const char *)container_member_ - offsetof(type, member)); \
	})
#endif

#define BUILD_BUG_ON(condition) _Static_assert(!(condition), "BUILD_BUG_ON: " #condition)

/* -- errors as pointers -- */

#define MAX_ERRNO 4095

static inline void *ERR_PTR(long error)
{
	return (void *)error;
}

static inline long PTR_ERR(const void *pointer)
{
	return (long)pointer;
}

static inline bool IS_ERR(const void *pointer)
{
	return (uintptr_t)pointer >= (uintptr_t)-MAX_ERRNO;
}

static inline bool IS_ERR_OR_NULL(const void *pointer)
{
	return !pointer || IS_ERR(pointer);
}

/* -- warnings: a line on stderr, and counted -- */

/** pcpc_kernel_warn: what WARN_ON() and the like call when their condition is true. Signal-safe. */
PCPC_API void pcpc_kernel_warn(const char *file, int line, const char *what);

/** pcpc_kernel_warn_text: likewise for WARN() and WARN_ONCE(), which have a text like printf(): as
 * signal-safe as that of the C library is for it. */
PCPC_API __attribute__((format(printf, 3, 4))) void
pcpc_kernel_warn_text(const char *file, int line, const char *format, ...);

/** pcpc_kernel_warnings: how many there were in this process. Any thread; signal-safe. */
PCPC_API unsigned long pcpc_kernel_warnings(void);

#define PCPC_KERNEL_WARN(condition, warning) \
	({                                   \
		bool warn_ = !!(condition);  \
		if (unlikely(warn_))         \
			warning;             \
		unlikely(warn_);             \
	})
#define PCPC_KERNEL_WARN_ONCE(condition, warning)                                              \
	({                                                                                     \
		static bool warned_;                                                           \
		bool warn_ = !!(condition);                                                    \
		if (unlikely(warn_) && !__atomic_exchange_n(&warned_, true, __ATOMIC_RELAXED)) \
			warning;                                                               \
		unlikely(warn_);                                                               \
	})
#define WARN_ON(condition) \
	PCPC_KERNEL_WARN(condition, pcpc_kernel_warn(__FILE__, __LINE__, #condition))
#define WARN_ON_ONCE(condition) \
	PCPC_KERNEL_WARN_ONCE(condition, pcpc_kernel_warn(__FILE__, __LINE__, #condition))
#define WARN(condition, ...) \
	PCPC_KERNEL_WARN(condition, pcpc_kernel_warn_text(__FILE__, __LINE__, __VA_ARGS__))
#define WARN_ONCE(condition, ...) \
	PCPC_KERNEL_WARN_ONCE(condition, pcpc_kernel_warn_text(__FILE__, __LINE__, __VA_ARGS__))
#define VM_WARN_ON(condition) WARN_ON(condition)
#define VM_WARN_ON_ONCE(condition) WARN_ON_ONCE(condition)
#define BUG_ON(condition)               \
	do {                            \
		if (WARN_ON(condition)) \
			abort();        \
	} while (0)
#define VM_BUG_ON(condition) BUG_ON(condition)
#define BUG() BUG_ON(true)

#ifndef pr_fmt
#define pr_fmt(format) format
#endif
#define printk(...) fprintf(stderr, __VA_ARGS__)
#define pr_err(format, ...) fprintf(stderr, pr_fmt(format), ##__VA_ARGS__)
#define pr_warn(format, ...) fprintf(stderr, pr_fmt(format), ##__VA_ARGS__)
#define pr_info(format, ...) fprintf(stderr, pr_fmt(format), ##__VA_ARGS__)
#define pr_warn_once(format, ...)                                            \
	do {                                                                 \
		static bool printed_;                                        \
		if (!__atomic_exchange_n(&printed_, true, __ATOMIC_RELAXED)) \
			pr_warn(format, ##__VA_ARGS__);                      \
	} while (0)

/* -- memory -- */

#define PAGE_SHIFT 12
#define PAGE_SIZE (1UL << PAGE_SHIFT)

typedef unsigned int gfp_t;

#define __GFP_HIGH 0x20u
#define __GFP_ZERO 0x100u
#define __GFP_DIRECT_RECLAIM 0x400u
#define __GFP_KSWAPD_RECLAIM 0x800u
#define __GFP_RECLAIM (__GFP_DIRECT_RECLAIM | __GFP_KSWAPD_RECLAIM)
#define __GFP_NOWARN 0x2000u
#define __GFP_RETRY_MAYFAIL 0x4000u
#define __GFP_NOFAIL 0x8000u
#define __GFP_NORETRY 0x10000u
#define GFP_KERNEL __GFP_RECLAIM
#define GFP_NOWAIT __GFP_KSWAPD_RECLAIM
#define GFP_ATOMIC (__GFP_HIGH | __GFP_KSWAPD_RECLAIM)

static inline bool gfpflags_allow_blocking(gfp_t mask)
{
	return mask & __GFP_DIRECT_RECLAIM;
}

static inline bool gfpflags_allow_spinning(gfp_t mask)
{
	return mask & __GFP_RECLAIM;
}

/* From malloc(): tasks only, whatever the mask says. At a multiple of the greatest power of 2 that
 * is not above size, up to 128: so that what is of a type with ____cacheline_aligned is. */
static inline void *kmalloc(size_t size, gfp_t mask)
{
	size_t align = 128;
	void *pointer;

	while (align > size && align > sizeof(void *))
		align /= 2;
	if (posix_memalign(&pointer, align, size))
		return NULL;
	return mask & __GFP_ZERO ? memset(pointer, 0, size) : pointer;
}

static inline void *kzalloc(size_t size, gfp_t mask)
{
	return kmalloc(size, mask | __GFP_ZERO);
}

static inline void *kmalloc_array(size_t n, size_t size, gfp_t mask)
{
	size_t bytes;

	return __builtin_mul_overflow(n, size, &bytes) ? NULL : kmalloc(bytes, mask);
}

static inline void *kcalloc(size_t n, size_t size, gfp_t mask)
{
	return kmalloc_array(n, size, mask | __GFP_ZERO);
}

static inline void kfree(const void *pointer)
{
	free((void *)(uintptr_t)pointer);
}

#endif
