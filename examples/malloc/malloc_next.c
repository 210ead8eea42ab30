// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * malloc_next.c - the next allocator in line: the C library's, or one that was preloaded after us.
 *
 * It is looked for by the first call of all, which comes from the dynamic linker or from somebody's
 * constructor before any of ours. Looking may allocate: such calls are served from a small piece of
 * static memory that is never given back.
 */
#define _GNU_SOURCE
#include "malloc_private.h"
#include "malloc_block.h"

#include <dlfcn.h>
#include <malloc.h>
#include <stdlib.h>

/* -- memory until next is known -- */

#define EARLY_SIZE 65536u

static _Alignas(BLOCK_GRAIN) char early[EARLY_SIZE];
static atomic_size_t early_used;

bool malloc_is_early(const void *base)
{
	return (uintptr_t)base - (uintptr_t)early < EARLY_SIZE;
}

/* Zeroed, for it is used once. */
static void *early_take(size_t cost)
{
	/* Relaxed: nothing but the place is asked for. */
	size_t at = atomic_load_explicit(&early_used, memory_order_relaxed);

	do {
		if (cost > EARLY_SIZE - at)
			return NULL;
	} while (!atomic_compare_exchange_weak_explicit(
		&early_used, &at, at + cost, memory_order_relaxed, memory_order_relaxed));
	return early + at;
}

/* -- looking for next -- */

static void look(void);

static void *first_malloc(size_t size)
{
	look();
	return NEXT(malloc) == first_malloc ? early_take(size) : NEXT(malloc)(size);
}

static void *first_calloc(size_t count, size_t size)
{
	look();
	/* Its only caller has multiplied already. */
	return NEXT(calloc) == first_calloc ? early_take(count * size) : NEXT(calloc)(count, size);
}

/* Early blocks do not come here, nor to first_free(); so next is known, to whoever made this one,
 * and can be found. */
static void *first_realloc(void *block, size_t size)
{
	look();
	return NEXT(realloc) == first_realloc ? NULL : NEXT(realloc)(block, size);
}

static void first_free(void *block)
{
	look();
	if (NEXT(free) != first_free)
		NEXT(free)(block);
}

/* Of a block that is not ours, where next cannot tell. */
static size_t unknown_usable(void *block)
{
	(void)block;
	return 0;
}

struct malloc_next malloc_next = { first_malloc, first_calloc, first_realloc, first_free,
				   unknown_usable };

#ifdef MALLOC_PREFIX

static void look(void)
{
	atomic_store_explicit(&malloc_next.malloc, malloc, memory_order_relaxed);
	atomic_store_explicit(&malloc_next.calloc, calloc, memory_order_relaxed);
	atomic_store_explicit(&malloc_next.realloc, realloc, memory_order_relaxed);
	atomic_store_explicit(&malloc_next.free, free, memory_order_relaxed);
	atomic_store_explicit(&malloc_next.usable, malloc_usable_size, memory_order_relaxed);
}

#else

/* Does the object that has this function have that one too? One that wraps only some of the family
 * would give its own blocks to somebody else's malloc_usable_size(). */
static bool same_object(void *function, void *other)
{
	Dl_info one, two;

	return function && other && dladdr(function, &one) && dladdr(other, &two) &&
	       one.dli_fbase == two.dli_fbase;
}

static void look(void)
{
	/* volatile: dlfcn.h tells the compiler that dlsym() calls nothing in this file; it may. */
	static MALLOC_THREAD_LOCAL volatile bool looking;
	void *malloc_found, *calloc_found, *realloc_found, *free_found, *usable_found;

	if (looking)
		return;
	looking = true;
	malloc_found = dlsym(RTLD_NEXT, "malloc");
	calloc_found = dlsym(RTLD_NEXT, "calloc");
	realloc_found = dlsym(RTLD_NEXT, "realloc");
	free_found = dlsym(RTLD_NEXT, "free");
	usable_found = dlsym(RTLD_NEXT, "malloc_usable_size");
	looking = false;
	if (!malloc_found || !calloc_found || !realloc_found || !free_found)
		return;
	if (same_object(malloc_found, usable_found))
		atomic_store_explicit(&malloc_next.usable, (usable_fn *)usable_found,
				      memory_order_relaxed);
	/* Blocks of next come from these only, so whoever has one finds all of them. */
	atomic_store_explicit(&malloc_next.free, (free_fn *)free_found, memory_order_relaxed);
	atomic_store_explicit(&malloc_next.realloc, (realloc_fn *)realloc_found,
			      memory_order_relaxed);
	atomic_store_explicit(&malloc_next.calloc, (calloc_fn *)calloc_found, memory_order_relaxed);
	atomic_store_explicit(&malloc_next.malloc, (malloc_fn *)malloc_found, memory_order_relaxed);
}

#endif
