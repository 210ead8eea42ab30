// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * malloc_early.c - a library that is initialised before libpcpcharge-malloc.so and finalised after
 * it: it is preloaded beside it. Its constructor allocates when nobody can be charged yet; its
 * destructor frees that, and what was allocated in between, when nobody looks any more. It also
 * stands before dlsym(), and allocates there: so while the library looks for the next allocator.
 */
#define _GNU_SOURCE
#include "malloc_early.h"

#include <dlfcn.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NR_BLOCKS 64

static char *blocks[NR_BLOCKS];
static void *later[NR_BLOCKS];
static bool was_early;

/* Blocks from inside dlsym(). */
static char *looked[3];
static void *(*real_dlsym)(void *handle, const char *name);

void *dlsym(void *restrict handle, const char *restrict name)
{
	free(malloc(10));
	if (!real_dlsym) {
		*(void **)&real_dlsym = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
		if (!real_dlsym)
			_exit(7);
		looked[0] = malloc(100);
		looked[1] = calloc(10, 10);
		looked[2] = memalign(256, 100);
	}
	return real_dlsym(handle, name);
}

/* They can be used, change their size, and go, like all others. */
static void use_looked(void)
{
	for (int i = 0; i < 3; i++) {
		if (!looked[i])
			_exit(8);
		if (i == 1 && (looked[i][0] || looked[i][99]))
			_exit(9);
		memset(looked[i], i + 1, malloc_usable_size(looked[i]));
	}
	looked[0] = realloc(looked[0], 50000);
	if (!looked[0] || looked[0][99] != 1 || (uintptr_t)looked[2] % 256)
		_exit(10);
	free(looked[1]);
	free(looked[2]);
}

static size_t size_of(int i)
{
	return (size_t)i * i * 100 + 1;
}

static void *block_of(int i)
{
	return i % 3 == 0   ? malloc(size_of(i))
	       : i % 3 == 1 ? calloc(size_of(i), 1)
			    : memalign(4096, size_of(i));
}

static __attribute__((constructor)) void allocate_early(void)
{
	was_early = !pcpc_malloc_domain();
	for (int i = 0; i < NR_BLOCKS; i++) {
		blocks[i] = block_of(i);
		if (!blocks[i])
			_exit(3);
		memset(blocks[i], i, size_of(i));
	}
}

bool early_was_early(void)
{
	return was_early;
}

/* Half of the early blocks grow, or go, when others are charged; and new ones are made. */
void early_go_on(void)
{
	use_looked();
	for (int i = 0; i < NR_BLOCKS; i += 2) {
		blocks[i] = i % 4 ? realloc(blocks[i], size_of(i) + 1000) : blocks[i];
		if (!blocks[i] || blocks[i][0] != i || blocks[i][size_of(i) - 1] != i)
			_exit(4);
		if (i % 4 == 0)
			free(blocks[i]);
		if (i % 4 == 0)
			blocks[i] = NULL;
	}
	for (int i = 0; i < NR_BLOCKS; i++)
		later[i] = block_of(i);
}

static __attribute__((destructor)) void free_late(void)
{
	char *last;

	free(looked[0]);
	/* The order is what this is about. */
	if (was_early && pcpc_malloc_domain())
		_exit(5);
	for (int i = 0; i < NR_BLOCKS; i++) {
		free(blocks[i]);
		later[i] = i % 2 ? realloc(later[i], 100000) : later[i];
		free(later[i]);
	}
	last = malloc(100);
	if (!last)
		_exit(6);
	free(last);
}
