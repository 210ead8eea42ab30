// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_malloc_charge.c - who pays, and limits.
 */
#define _GNU_SOURCE
#include "malloc_support.h"

#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <urcu-bp.h>

START_TEST(each_owner_pays_for_its_own)
{
	struct pcpc_owner *alice = tenant(0), *bob = tenant(0);
	void *hers, *his;

	work_for(alice);
	hers = seen(malloc(1000));
	MUST(work_for(bob) == alice);
	his = seen(calloc(10, 100));
	free(hers);
	work_for(NULL);
	MUST(HELD(alice) == 0);
	MUST(HELD(bob) == 1024);
	free(his);
	MUST(HELD(bob) == 0);
}
END_TEST

START_TEST(without_an_owner_the_process_pays)
{
	struct pcpc_owner *root = pcpc_domain_root(domain_of_malloc());
	uint64_t before = HELD(root);
	void *block = seen(malloc(100 * MIB));

	MUST(HELD(root) == before + 100 * MIB + 16);
	free(block);
	MUST(HELD(root) == before);
}
END_TEST

/* G2, G3: exactly as many as fit, whatever lies in stocks. */
START_TEST(a_limit_is_exact)
{
	struct pcpc_owner *owner = tenant(MIB);
	void **chain = NULL;

	work_for(owner);
	errno = 0;
	MUST(allocate_until_refused(1000, &chain) == 1024);
	MUST(errno == ENOMEM);
	MUST(!malloc(1));
	MUST(!calloc(1, 1));
	MUST(!memalign(64, 1));
	work_for(NULL);
	MUST(pcpc_owner_usage(owner) == MIB);
	free_chain(chain);
	MUST(HELD(owner) == 0);
}
END_TEST

/* The old block stays, with what is in it. */
START_TEST(a_refused_realloc_leaves_the_block)
{
	struct pcpc_owner *owner = tenant(MIB);
	char *block, *aligned;

	work_for(owner);
	block = seen(malloc(500000));
	aligned = seen(memalign(4096, 100000));
	fill(block, 500000);
	fill(aligned, 100000);
	errno = 0;
	MUST(!realloc(block, 1000000));
	MUST(errno == ENOMEM);
	errno = 0;
	MUST(!realloc(aligned, 1000000));
	MUST(errno == ENOMEM);
	work_for(NULL);
	MUST(is_filled(block, 500000));
	MUST(is_filled(aligned, 100000));
	MUST(HELD(owner) == COST(500000) + 100000 + 4096);
	free(block);
	free(aligned);
	MUST(HELD(owner) == 0);
}
END_TEST

/* Only the difference is asked for. */
START_TEST(a_block_may_grow_to_the_limit)
{
	struct pcpc_owner *owner = tenant(MIB);
	char *block;

	work_for(owner);
	block = seen(malloc(MIB - 200000));
	fill(block, MIB - 200000);
	block = seen(realloc(block, MIB - 16));
	MUST(block);
	MUST(is_filled(block, MIB - 200000));
	MUST(HELD(owner) == MIB);
	MUST(!malloc(1));
	block = seen(realloc(block, 1000));
	MUST(HELD(owner) == 1024);
	work_for(NULL);
	free(block);
}
END_TEST

START_TEST(who_changes_the_size_pays_from_then_on)
{
	struct pcpc_owner *alice = tenant(0), *bob = tenant(10000);
	char *block;

	work_for(alice);
	block = seen(malloc(1000));
	fill(block, 1000);
	work_for(bob);
	MUST(!realloc(block, 20000));
	MUST(HELD(alice) == 1024);
	block = seen(realloc(block, 5000));
	work_for(NULL);
	MUST(is_filled(block, 1000));
	MUST(HELD(alice) == 0);
	MUST(HELD(bob) == COST(5000));
	free(block);
	MUST(HELD(bob) == 0);
}
END_TEST

static void *free_it(void *block)
{
	free(block);
	return NULL;
}

/* G7, G14. */
START_TEST(a_free_reaches_an_owner_that_was_destroyed)
{
	struct pcpc_domain_stats stats = { .size = sizeof(stats) };
	struct pcpc_owner *root = pcpc_domain_root(domain_of_malloc()), *owner = tenant(0);
	void *one, *two;
	pthread_t thread;

	work_for(owner);
	one = seen(malloc(30 * MIB));
	two = seen(malloc(1000));
	work_for(NULL);
	MUST(pcpc_owner_destroy(owner) == 0);
	MUST(HELD(root) >= 30 * MIB + 1024);
	MUST(pthread_create(&thread, NULL, free_it, one) == 0);
	MUST(pthread_join(thread, NULL) == 0);
	pcpc_domain_get_stats(domain_of_malloc(), &stats);
	MUST(stats.nr_offline == 1);
	MUST(HELD(root) < 30 * MIB);
	free(two);
	pcpc_domain_poll(domain_of_malloc());
	pcpc_domain_get_stats(domain_of_malloc(), &stats);
	MUST(stats.nr_offline == 0);
	MUST(stats.nr_owners == 1);
}
END_TEST

/* A thread may go on for a while on behalf of an owner that is gone; it has a reference. */
START_TEST(an_offline_owner_falls_to_those_above)
{
	struct pcpc_owner *above = tenant(0), *owner = tenant_below(above, 0);
	void *block;

	pcpc_owner_get(owner);
	work_for(owner);
	MUST(pcpc_owner_destroy(owner) == 0);
	block = seen(malloc(1000));
	MUST(block);
	block = seen(realloc(block, 2000));
	work_for(NULL);
	MUST(HELD(above) == COST(2000));
	free(block);
	MUST(HELD(above) == 0);
	pcpc_owner_put(owner);
}
END_TEST

static int pin_to_cpu(int nth)
{
	cpu_set_t allowed, one;

	CPU_ZERO(&one);
	MUST(sched_getaffinity(0, sizeof(allowed), &allowed) == 0);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &allowed) && nth-- == 0) {
			CPU_SET(cpu, &one);
			return sched_setaffinity(0, sizeof(one), &one);
		}
	}
	return -1;
}

/* Leaves units of an owner in the stock of another CPU, if there is one. */
static void *stock_elsewhere(void *owner)
{
	if (pin_to_cpu(1) < 0)
		return NULL;
	work_for(owner);
	free(seen(malloc(10000)));
	return owner;
}

/* charge.h: inside the program's own section nobody waits for a grace period. What could not be
 * made sure of there is made good by a later call. */
START_TEST(a_read_side_section_of_the_program_does_not_hang)
{
	struct pcpc_owner *owner = tenant(MIB);
	void *first, *second, *stocked;
	pthread_t thread;

	MUST(pin_to_cpu(0) == 0);
	MUST(pthread_create(&thread, NULL, stock_elsewhere, owner) == 0);
	MUST(pthread_join(thread, &stocked) == 0);
	work_for(owner);
	urcu_bp_read_lock();
	errno = 0;
	first = seen(malloc(MIB - 16));
	MUST(stocked ? !first && errno == ENOMEM : first != NULL);
	MUST(!malloc(2 * MIB));
	urcu_bp_read_unlock();
	second = first ? first : seen(malloc(MIB - 16));
	MUST(second);
	work_for(NULL);
	free(second);
	MUST(HELD(owner) == 0);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("charge");

	tcase_add_test(tests, each_owner_pays_for_its_own);
	tcase_add_test(tests, without_an_owner_the_process_pays);
	tcase_add_test(tests, a_limit_is_exact);
	tcase_add_test(tests, a_refused_realloc_leaves_the_block);
	tcase_add_test(tests, a_block_may_grow_to_the_limit);
	tcase_add_test(tests, who_changes_the_size_pays_from_then_on);
	tcase_add_test(tests, a_free_reaches_an_owner_that_was_destroyed);
	tcase_add_test(tests, an_offline_owner_falls_to_those_above);
	tcase_add_test(tests, a_read_side_section_of_the_program_does_not_hang);
	return run_case("malloc charge", tests);
}
