// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_malloc_family.c - the functions of the C library, as POSIX and glibc have them; and that
 * each gives back exactly what it took (G1), which a tenant of its own shows.
 */
#define _GNU_SOURCE
#include "malloc_support.h"

#include <dlfcn.h>
#include <malloc.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Everything is charged to it; and all of it has come back in the end. */
static struct pcpc_owner *payer;

static void begin(void)
{
	payer = tenant(0);
	work_for(payer);
}

/* A function by its name. When there is none the C library keeps a text, which is not payer's. */
static void *function_of(const char *name)
{
	struct pcpc_owner *before = work_for(NULL);
	void *function = dlsym(RTLD_DEFAULT, name);

	work_for(before);
	return function;
}

static void finish(void)
{
	work_for(NULL);
	MUST(HELD(payer) == 0);
	MUST(pcpc_owner_destroy(payer) == 0);
}

/* POSIX: a unique pointer that free() takes. */
START_TEST(size_zero_gives_a_block_of_its_own)
{
	void *one = seen(malloc(0)), *two = seen(malloc(0)), *three = seen(calloc(0, 8));

	MUST(one && two && three);
	MUST(one != two && two != three && one != three);
	MUST(HELD(payer) == 3 * 32);
	free(one);
	free(two);
	free(three);
}
END_TEST

/* glibc: NULL, and the block is gone. */
START_TEST(realloc_to_zero_frees)
{
	void *block = seen(malloc(1000));

	MUST(HELD(payer) == 1024);
	MUST(!realloc(block, 0));
	MUST(HELD(payer) == 0);
}
END_TEST

START_TEST(realloc_of_null_allocates)
{
	void *block = seen(realloc(NULL, 100)), *array = seen(reallocarray(NULL, 10, 10));

	MUST(block && array);
	MUST(HELD(payer) == 2 * 128);
	free(block);
	free(array);
}
END_TEST

static volatile size_t huge = SIZE_MAX, large = PTRDIFF_MAX; /* unknown to the compiler */

START_TEST(sizes_that_overflow_are_refused)
{
	void *block = seen(malloc(64)), *untouched = block;

	fill(block, 64);
	errno = 0;
	MUST(!calloc(huge / 2, 3));
	MUST(errno == ENOMEM);
	errno = 0;
	MUST(!reallocarray(block, huge / 4, 8));
	MUST(errno == ENOMEM);
	errno = 0;
	MUST(!malloc(huge));
	MUST(errno == ENOMEM);
	MUST(!malloc(large));
	MUST(!realloc(block, huge - 15));
	MUST(!memalign(64, huge - 64));
	MUST(!pvalloc(huge));
	MUST(!valloc(huge - 1));
	errno = 7;
	MUST(posix_memalign(&untouched, 64, huge) == ENOMEM);
	MUST(errno == 7);
	MUST(untouched == block);
	MUST(is_filled(block, 64));
	MUST(HELD(payer) == 80);
	free(block);
}
END_TEST

START_TEST(calloc_clears_what_was_used_before)
{
	for (size_t size = 1; size < 300000; size = size * 3 + 1) {
		void *dirty = seen(malloc(size));
		unsigned char *clean;

		memset(dirty, 0xff, size);
		free(dirty);
		clean = seen(calloc(size, 1));
		for (size_t i = 0; i < size; i++)
			MUST(clean[i] == 0);
		free(clean);
	}
}
END_TEST

/* All that malloc_usable_size() promises is the program's, and is paid for. */
START_TEST(all_that_is_usable_can_be_written)
{
	static void *blocks[2000];

	for (size_t i = 0; i < 2000; i++) {
		blocks[i] = seen(malloc(i));
		MUST(malloc_usable_size(blocks[i]) >= i);
		MUST(malloc_usable_size(blocks[i]) == COST(i) - 16);
		memset(blocks[i], (int)i, malloc_usable_size(blocks[i]));
	}
	for (size_t i = 0; i < 2000; i++) {
		for (size_t j = 0; j < malloc_usable_size(blocks[i]); j++)
			MUST(((unsigned char *)blocks[i])[j] == (i & 0xff));
		free(blocks[i]);
	}
	MUST(malloc_usable_size(NULL) == 0);
}
END_TEST

static void *aligned_by(int way, size_t alignment, size_t size)
{
	void *block = NULL;

	switch (way) {
	case 0:
		return aligned_alloc(alignment, size);
	case 1:
		return memalign(alignment, size);
	default:
		return alignment % sizeof(void *)		      ? malloc(size)
		       : posix_memalign(&block, alignment, size) == 0 ? block
								      : NULL;
	}
}

/* Up to 2 MiB. The alignment is on the bill where it is above 16. */
START_TEST(blocks_are_aligned_as_asked)
{
	static const size_t sizes[] = { 0, 1, 15, 16, 17, 1000, 4096, 70000 };

	for (size_t alignment = 1; alignment <= 2 * MIB; alignment *= 2) {
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			char *block = seen(aligned_by(_i, alignment, sizes[i]));
			size_t cost = COST(sizes[i]) - 16 + (alignment > 16 ? alignment : 16);

			MUST(block);
			MUST((uintptr_t)block % alignment == 0);
			MUST(HELD(payer) == cost);
			MUST(malloc_usable_size(block) >= sizes[i]);
			fill(block, sizes[i]);
			block = seen(realloc(block, sizes[i] + 5000));
			MUST(is_filled(block, sizes[i]));
			MUST(HELD(payer) == COST(sizes[i] + 5000));
			free(block);
			MUST(HELD(payer) == 0);
		}
	}
}
END_TEST

START_TEST(alignments_that_are_none)
{
	void *block = &block;

	errno = 7;
	MUST(posix_memalign(&block, 24, 100) == EINVAL);
	MUST(posix_memalign(&block, sizeof(void *) / 2, 100) == EINVAL);
	MUST(posix_memalign(&block, 0, 100) == EINVAL);
	MUST(errno == 7);
	MUST(block == &block);
	MUST(!(aligned_alloc(3 * (huge / huge), 100)));
	MUST(errno == EINVAL);
	errno = 0;
	MUST(!memalign(huge, 100));
	MUST(errno == EINVAL);
	/* memalign: the next power of two. */
	block = seen(memalign(24 * (huge / huge), 100));
	MUST((uintptr_t)block % 32 == 0);
	free(block);
}
END_TEST

START_TEST(whole_pages)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *one = seen(valloc(10)), *two = seen(pvalloc(page + 1)), *three = seen(pvalloc(0));

	MUST(one && two && three);
	MUST((((uintptr_t)one | (uintptr_t)two | (uintptr_t)three) % page) == 0);
	MUST(malloc_usable_size(two) >= 2 * page);
	two[2 * page - 1] = 1;
	free(one);
	free(two);
	free(three);
}
END_TEST

/* From a byte to 4 GiB: where there is no room for that, the kernel says so too. */
START_TEST(blocks_of_one_byte_and_of_four_gib)
{
	char *small = seen(malloc(1)), *block = seen(malloc(4 * GIB));
	void *map;

	MUST(HELD(payer) == (32 + (block ? 4 * GIB + 16 : 0)));
	if (block) {
		block[0] = block[4 * GIB - 1] = 1;
		MUST(malloc_usable_size(block) == 4 * GIB);
		free(block);
	} else {
		map = mmap(NULL, 4 * GIB + 4096, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		MUST(map == MAP_FAILED);
	}
	free(small);
}
END_TEST

START_TEST(realloc_keeps_what_fits)
{
	size_t size = 1, held;
	char *block = seen(malloc(size));

	fill(block, size);
	while (size < 20 * MIB) {
		held = size;
		size = size * 5 / 2 + 3;
		block = seen(realloc(block, size));
		MUST(is_filled(block, held));
		MUST(HELD(payer) == COST(size));
		fill(block, size);
	}
	while (size > 10) {
		size /= 3;
		block = seen(realloc(block, size));
		MUST(is_filled(block, size));
		MUST(HELD(payer) == COST(size));
	}
	free(block);
}
END_TEST

/* glibc 2.33 and later; POSIX.1-2024. munmap() of large blocks included. */
START_TEST(free_leaves_errno_alone)
{
	static const size_t sizes[] = { 0, 100, 10000, 50000000 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		void *block = seen(malloc(sizes[i])), *aligned = seen(memalign(4096, sizes[i]));

		errno = 42;
		free(block);
		free(aligned);
		free(NULL);
		MUST(errno == 42);
	}
	errno = 42;
	free(seen(malloc(10)));
	MUST(errno == 42);
}
END_TEST

/* The C library has names for its own functions, which nobody can stand before. Such a block is not
 * ours, and goes where it came from, unless another allocator is between. */
START_TEST(blocks_that_came_past_us_go_back)
{
	void *(*past)(size_t) = (void *(*)(size_t))function_of("__libc_malloc");
	void *(*past_aligned)(size_t, size_t) =
		(void *(*)(size_t, size_t))function_of("__libc_memalign");
	char *block, *aligned;

	if (!past || !past_aligned || getenv("PCPC_TEST_NEXT"))
		return;
	for (size_t size = 1; size < 4 * MIB; size = size * 3 + 1) {
		block = seen(past(size));
		aligned = seen(past_aligned(4096, size));
		MUST(malloc_usable_size(block) >= size);
		MUST(malloc_usable_size(aligned) >= size);
		fill(block, size);
		block = seen(realloc(block, size * 2));
		MUST(is_filled(block, size));
		free(block);
		free(aligned);
		MUST(HELD(payer) == 0);
	}
}
END_TEST

/* jemalloc's own interface: its large blocks begin with a page, and there may be nothing in front
 * of them that could be looked at. */
START_TEST(blocks_of_jemalloc_go_back)
{
	void *(*past)(size_t, int) = (void *(*)(size_t, int))function_of("mallocx");
	void *block;

	if (!past)
		return;
	for (size_t size = 4096; size < 64 * MIB; size *= 2) {
		block = seen(past(size, 0));
		MUST(malloc_usable_size(block) >= size);
		free(block);
		MUST(HELD(payer) == 0);
	}
}
END_TEST

/* The C library ends a program that frees twice, by abort() or by stumbling, and still does:
 * nothing is given back a second time as if all were well. */
START_TEST(a_block_that_is_freed_twice_ends_the_program)
{
	int status;
	pid_t child;

	if (getenv("PCPC_TEST_NEXT"))
		return;
	child = fork();
	if (child == 0) {
		void *volatile block = malloc(100);

		MUST(prctl(PR_SET_DUMPABLE, 0) == 0);
		free(block);
		free(block);
		_exit(0);
	}
	MUST(waitpid(child, &status, 0) == child);
	MUST(WIFSIGNALED(status));
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("family");

	tcase_add_checked_fixture(tests, begin, finish);
	tcase_add_test(tests, size_zero_gives_a_block_of_its_own);
	tcase_add_test(tests, realloc_to_zero_frees);
	tcase_add_test(tests, realloc_of_null_allocates);
	tcase_add_test(tests, sizes_that_overflow_are_refused);
	tcase_add_test(tests, calloc_clears_what_was_used_before);
	tcase_add_test(tests, all_that_is_usable_can_be_written);
	tcase_add_loop_test(tests, blocks_are_aligned_as_asked, 0, 3);
	tcase_add_test(tests, alignments_that_are_none);
	tcase_add_test(tests, whole_pages);
	tcase_add_test(tests, blocks_of_one_byte_and_of_four_gib);
	tcase_add_test(tests, realloc_keeps_what_fits);
	tcase_add_test(tests, free_leaves_errno_alone);
	tcase_add_test(tests, blocks_that_came_past_us_go_back);
	tcase_add_test(tests, blocks_of_jemalloc_go_back);
	tcase_add_test(tests, a_block_that_is_freed_twice_ends_the_program);
	return run_case("malloc family", tests);
}
