/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * base.h - version, limits, the layout of a stock, and the few macros the other headers share.
 *
 * Freestanding: no libc, no other header of ours. The same file is compiled as C11, as C++17 and
 * inside a Linux kernel module, so everything it defines is prefixed. It holds no operation; those
 * begin in stock.h.
 */
#ifndef PCPCHARGE_BASE_H
#define PCPCHARGE_BASE_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#endif

/* The version is stated here and nowhere else; the build reads it. */
#define PCPC_VERSION_MAJOR 0
#define PCPC_VERSION_MINOR 1
#define PCPC_VERSION_PATCH 0

#ifdef __cplusplus
#define PCPC_BEGIN_DECLS extern "C" {
#define PCPC_END_DECLS }
#define PCPC_STATIC_ASSERT(condition, text) static_assert(condition, text)
#else
#define PCPC_BEGIN_DECLS
#define PCPC_END_DECLS
#define PCPC_STATIC_ASSERT(condition, text) _Static_assert(condition, text)
#endif

#define PCPC_API __attribute__((visibility("default")))
#define PCPC_COLD __attribute__((noinline, cold))
#define PCPC_ALWAYS_INLINE inline __attribute__((always_inline))
#define PCPC_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define PCPC_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/* Relaxed accesses to words that other threads may change: whole, never torn, and nothing more. */
#define PCPC_LOAD(place) __atomic_load_n(&(place), __ATOMIC_RELAXED)
#define PCPC_STORE(place, value) __atomic_store_n(&(place), (value), __ATOMIC_RELAXED)

#define PCPC_OWNER_MAX 0xfffffu	 /* owner ids are 1..this; 0 marks a free slot */
#define PCPC_COUNT_MAX 0x3fffffu /* units one slot can hold */
#define PCPC_DELTA_MAX 0x1fffff	 /* a delta one slot can hold */
#define PCPC_DELTA_MIN (-PCPC_DELTA_MAX - 1)
#define PCPC_STOCK_SLOTS 7
#define PCPC_TRIES \
	8 /* attempts before an operation bypasses the stock: single-stepping aborts every one */

/*
 * A slot word. 63..44 owner id, 43..22 count, 21..0 delta (two's complement). It changes as a whole
 * or not at all, so an equal word is an equal state.
 */
typedef uint64_t pcpc_word;

#define PCPC_OWNER_SHIFT 44
#define PCPC_COUNT_SHIFT 22
#define PCPC_DELTA_MASK ((pcpc_word)0x3fffff)

/* One CPU's stock: one cache line. All zero is open and empty. */
struct pcpc_stock {
	uint32_t gate; /* 0 open, 1 closed. Written by a drain only, and never as part of a wider
			  store. */
	uint32_t hand; /* next victim, 0..6. Written by its own CPU; a lost step is harmless. */
	pcpc_word slot[PCPC_STOCK_SLOTS];
} __attribute__((aligned(64)));

PCPC_STATIC_ASSERT(sizeof(struct pcpc_stock) == 64, "a stock is one cache line");

/*
 * What a commit or insert primitive answers; arch/sequences.h is their contract. A primitive that
 * returns bool fits too: false is CHANGED, true is DONE.
 */
enum pcpc_outcome {
	PCPC_CHANGED = 0, /* a word is not what the caller computed from: compute again */
	PCPC_DONE = 1,	  /* the new word is stored */
	PCPC_ABORTED = 2, /* this thread is not, or no longer, at that index: start over */
	PCPC_CLOSED = 3,  /* a drain is at work: bypass the stock */
	PCPC_MISSED = 4,  /* answered by whole operations only: the stock cannot serve this */
};

/* Where a thread's index is to be read: offsets from its thread pointer. Only the restartable
 * sequences use it. */
struct pcpc_area {
	ptrdiff_t rseq;	 /* its rseq area */
	ptrdiff_t field; /* the field of that area that holds the index */
};

/* Where the running thread was when an operation began. */
struct pcpc_place {
	ptrdiff_t rseq, field; /* as in struct pcpc_area */
	uint32_t index;	       /* what the field must still hold */
};

#ifndef __KERNEL__
PCPC_BEGIN_DECLS

/**
 * pcpc_version: the version of the library that is loaded, "major.minor.patch".
 *
 * Returns a constant string. Safe everywhere, signal handlers included.
 */
PCPC_API const char *pcpc_version(void);

PCPC_END_DECLS
#endif

#endif
