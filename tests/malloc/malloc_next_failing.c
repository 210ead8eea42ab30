// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * malloc_next_failing.c - an allocator that can be told to fail, preloaded after the library: it
 * serves so many calls more, and then none until it is told again. It counts what it has given out.
 * It also has a call of its own, past malloc(), for blocks that nothing stands in front of.
 */
#define _GNU_SOURCE
#include "malloc_next_failing.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *block, size_t size);
extern void __libc_free(void *block);
void *malloc(size_t size);
void *calloc(size_t count, size_t size);
void *realloc(void *block, size_t size);
void free(void *block);

#define HOLE 65536 /* a multiple of every page size */

static atomic_long left = -1; /* negative: no end */
static atomic_long balance;

void next_fail_after(long calls)
{
	atomic_store(&left, calls);
}

long next_balance(void)
{
	return atomic_load(&balance);
}

static void *given(void *block)
{
	if (block)
		atomic_fetch_add(&balance, 1);
	return block;
}

/* One at a time. */
static char *behind_hole;

void *next_behind_hole(void)
{
	char *pages =
		mmap(NULL, 2 * HOLE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED || munmap(pages, HOLE) < 0)
		return NULL;
	behind_hole = pages + HOLE;
	return given(behind_hole);
}

static int fails(void)
{
	long calls = atomic_load(&left);

	while (calls > 0 && !atomic_compare_exchange_weak(&left, &calls, calls - 1))
		;
	if (calls == 0)
		errno = ENOMEM;
	return calls == 0;
}

void *malloc(size_t size)
{
	return fails() ? NULL : given(__libc_malloc(size));
}

void *calloc(size_t count, size_t size)
{
	return fails() ? NULL : given(__libc_calloc(count, size));
}

void *realloc(void *block, size_t size)
{
	return fails() ? NULL : __libc_realloc(block, size);
}

void free(void *block)
{
	if (block)
		atomic_fetch_sub(&balance, 1);
	if (block && block == behind_hole) {
		munmap(behind_hole, HOLE);
		behind_hole = NULL;
		return;
	}
	__libc_free(block);
}
