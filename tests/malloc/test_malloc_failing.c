// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_malloc_failing.c - the next allocator has no memory: ENOMEM, the charge is undone (G4), and
 * what there was is untouched. Runs over malloc_next_failing.c.
 */
#define _GNU_SOURCE
#include "malloc_support.h"

#include "malloc_next_failing.h"

#include <malloc.h>
#include <string.h>

static struct pcpc_owner *payer;

static void begin(void)
{
	payer = tenant(0);
	work_for(payer);
}

static void finish(void)
{
	next_fail_after(-1);
	MUST(HELD(payer) == 0);
	work_for(NULL);
}

START_TEST(a_failed_allocation_costs_nothing)
{
	void *block = payer;

	next_fail_after(0);
	errno = 0;
	MUST(!malloc(1000) && errno == ENOMEM);
	errno = 0;
	MUST(!calloc(10, 100) && errno == ENOMEM);
	errno = 0;
	MUST(!memalign(4096, 100) && errno == ENOMEM);
	errno = 0;
	MUST(!realloc(NULL, 100) && errno == ENOMEM);
	errno = 7;
	MUST(posix_memalign(&block, 64, 100) == ENOMEM && errno == 7 && block == payer);
	next_fail_after(-1);
	MUST(HELD(payer) == 0);
}
END_TEST

START_TEST(a_failed_realloc_leaves_the_block)
{
	static const size_t sizes[] = { 10, 2000, 100000 };
	char *block = seen(malloc(1000)), *aligned = seen(memalign(64, 1000));

	fill(block, 1000);
	fill(aligned, 1000);
	next_fail_after(0);
	for (int i = 0; i < 3; i++) {
		errno = 0;
		MUST(!realloc(block, sizes[i]) && errno == ENOMEM);
		MUST(!realloc(aligned, sizes[i]) && errno == ENOMEM);
		MUST(HELD(payer) == 1024 + 1008 + 64);
	}
	next_fail_after(-1);
	MUST(is_filled(block, 1000) && is_filled(aligned, 1000));
	free(block);
	free(aligned);
}
END_TEST

/* Another owner is to pay: it has not, and the first one still does. */
START_TEST(a_failed_realloc_by_another_owner)
{
	struct pcpc_owner *other = tenant(0);
	char *block = seen(malloc(1000));

	work_for(other);
	next_fail_after(0);
	MUST(!realloc(block, 5000));
	next_fail_after(-1);
	work_for(payer);
	MUST(HELD(other) == 0 && HELD(payer) == 1024);
	free(block);
}
END_TEST

/* Every call of a script fails once: nothing is lost, neither blocks nor units. */
START_TEST(each_call_may_be_the_one_that_fails)
{
	long before = next_balance();

	for (long calls = 0; calls < 8; calls++) {
		void *one, *two, *grown;

		next_fail_after(calls);
		one = seen(malloc(100));
		two = seen(memalign(256, 5000));
		grown = seen(realloc(one, 10000));
		one = grown ? grown : one;
		grown = seen(reallocarray(two, 100, 100));
		two = grown ? grown : two;
		next_fail_after(-1);
		free(one);
		free(two);
		MUST(HELD(payer) == 0);
		MUST(next_balance() == before);
	}
}
END_TEST

/* Allocators have calls of their own; a block of such a call is not ours, and where ours would have
 * its header there may be nothing. */
START_TEST(a_block_behind_a_hole_goes_back)
{
	long before = next_balance();

	free(next_behind_hole());
	MUST(next_balance() == before);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("failing");

	tcase_add_checked_fixture(tests, begin, finish);
	tcase_add_test(tests, a_failed_allocation_costs_nothing);
	tcase_add_test(tests, a_failed_realloc_leaves_the_block);
	tcase_add_test(tests, a_failed_realloc_by_another_owner);
	tcase_add_test(tests, each_call_may_be_the_one_that_fails);
	tcase_add_test(tests, a_block_behind_a_hole_goes_back);
	return run_case("malloc failing", tests);
}
