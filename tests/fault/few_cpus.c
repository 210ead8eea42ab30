// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * few_cpus.c - a process that may run on few of the machine's CPUs, and what AUTO makes of it.
 *
 * How many CPUs are possible and allowed is asked through the linker's --wrap, so that the answer
 * can be any number here.
 */
#define _GNU_SOURCE
#include "fault_support.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "cache_private.h"

#define THREADS 4
#define STEPS 20000

uint32_t __real_pcpc_possible_cpus(void);
uint32_t __real_pcpc_allowed_cpus(void);
uint32_t __wrap_pcpc_possible_cpus(void);
uint32_t __wrap_pcpc_allowed_cpus(void);

static uint32_t possible, allowed; /* 0: as it is */

uint32_t __wrap_pcpc_possible_cpus(void)
{
	return possible ? possible : __real_pcpc_possible_cpus();
}

uint32_t __wrap_pcpc_allowed_cpus(void)
{
	return allowed ? allowed : __real_pcpc_allowed_cpus();
}

static const enum pcpc_engine engines[] = { PCPC_ENGINE_RSEQ, PCPC_ENGINE_ATOMIC };

static struct ledger ledger;

static void *walk(void *seed)
{
	struct walker walker = {
		.ledger = &ledger, .first_owner = 1, .nr_owners = 20, .random = (uintptr_t)seed
	};
	uint32_t i;

	for (i = 0; i < STEPS; i++) {
		walker_step(&walker);
		if (i % 500 == 0)
			MUST(ledger_drain(&ledger) == 0);
	}
	walker_finish(&walker);
	return NULL;
}

/* Design section 6: stocks are found by the CPU's number, however few CPUs there are to run on, and
 * threads that can only take turns lose nothing (G1). */
START_TEST(all_threads_on_the_last_cpu)
{
	struct pcpc_cache_stats stats = { .size = sizeof(stats) };
	pthread_t threads[THREADS];
	int last = last_allowed_cpu();
	uint32_t i;

	SKIP_IF(!engine_works(engines[_i]), "no rseq engine");
	pin_to(last);
	ledger_init(&ledger, make_cache(engines[_i], PCPC_INDEX_CPU));
	ck_assert_int_eq(pcpc_cache_get_stats(ledger.cache, &stats), 0);
	ck_assert_uint_gt(stats.nr_cpus, (uint32_t)last);
	ck_assert_uint_eq(__real_pcpc_allowed_cpus(), 1);

	/* It is that CPU's stock which serves, and only that one holds anything. */
	ledger_stock(&ledger, 1, 20, 0);
	if (engines[_i] == PCPC_ENGINE_RSEQ)
		ck_assert_uint_eq(
			pcpc_word_count(PCPC_LOAD(
				pcpc_cache_stock(ledger.cache, (uint32_t)last, 1)->slot[0])),
			20);
	ck_assert(consume_hits(&ledger, 1, 20));
	ledger_refill(&ledger, 1, 20, 0);

	for (i = 0; i < THREADS; i++)
		ck_assert(!pthread_create(&threads[i], NULL, walk, (void *)(uintptr_t)(i + 1)));
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	ledger_must_end_empty(&ledger);
	pcpc_cache_destroy(ledger.cache);
}
END_TEST

static enum pcpc_index index_that_auto_takes(void)
{
	struct pcpc_cache_stats stats = { .size = sizeof(stats) };
	struct pcpc_cache *cache = make_cache(PCPC_ENGINE_AUTO, PCPC_INDEX_AUTO);

	ck_assert_int_eq(pcpc_cache_get_stats(cache, &stats), 0);
	ck_assert_uint_eq(stats.nr_cpus, possible ? possible : __real_pcpc_possible_cpus());
	pcpc_cache_destroy(cache);
	return stats.index;
}

/* Design section 6: mm_cid "where the kernel has it and the process may run on less than half of
 * the possible CPUs". */
START_TEST(auto_takes_mm_cid_below_half_of_the_cpus)
{
	static const struct {
		uint32_t possible, allowed;
		bool few;
	} table[] = {
		{ 1, 1, false },     { 2, 1, false },	 { 3, 1, true },     { 4, 2, false },
		{ 5, 2, true },	     { 8, 4, false },	 { 9, 4, true },     { 512, 4, true },
		{ 512, 256, false }, { 512, 255, true }, { 513, 256, true },
	};
	uint32_t i;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		possible = table[i].possible;
		allowed = table[i].allowed;
		ck_assert_int_eq(index_that_auto_takes(), table[i].few && mm_cid_works()
								  ? PCPC_INDEX_MM_CID
								  : PCPC_INDEX_CPU);
	}
}
END_TEST

/* The same, by the affinity that the process really has. */
START_TEST(auto_asks_the_affinity)
{
	possible = 3;
	pin_to(last_allowed_cpu());
	ck_assert_int_eq(index_that_auto_takes(),
			 mm_cid_works() ? PCPC_INDEX_MM_CID : PCPC_INDEX_CPU);
}
END_TEST

/* Design section 6: four threads in a small container have four stocks. Threads that take turns on
 * one CPU have one. */
START_TEST(mm_cid_keeps_stocks_few)
{
	pthread_t threads[THREADS];
	uint32_t i, used = 0;

	SKIP_IF(!mm_cid_works(), "no mm_cid");
	SKIP_IF(!engine_works(engines[_i]), "no rseq engine");
	possible = 512;
	pin_to(last_allowed_cpu());
	ledger_init(&ledger, make_cache(engines[_i], PCPC_INDEX_AUTO));
	ck_assert_int_eq(ledger.cache->index, PCPC_INDEX_MM_CID);
	for (i = 0; i < THREADS; i++)
		ck_assert(!pthread_create(&threads[i], NULL, walk, (void *)(uintptr_t)(i + 1)));
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (i = 0; i < possible; i++)
		used += atomic_load(&ledger.cache->highest[i]) != 0;
	/* An id below the number of threads: which ones they get is the kernel's business. */
	ck_assert_uint_ge(used, 1);
	ck_assert_uint_le(used, THREADS + 1);
	ledger_must_end_empty(&ledger);
	pcpc_cache_destroy(ledger.cache);
}
END_TEST

/* Contract of pcpc_cache_create(): -ENOSYS for an index that does not work here. */
START_TEST(index_asked_for_is_had_or_refused)
{
	const struct pcpc_cache_config config = { .size = sizeof(config),
						  .index = PCPC_INDEX_MM_CID };
	struct pcpc_cache *cache = NULL;

	possible = 2;
	allowed = 2;
	if (mm_cid_works()) {
		ck_assert_int_eq(pcpc_cache_create(&config, &cache), 0);
		ck_assert_int_eq(cache->index, PCPC_INDEX_MM_CID);
		pcpc_cache_destroy(cache);
	} else {
		ck_assert_int_eq(pcpc_cache_create(&config, &cache), -ENOSYS);
		ck_assert_ptr_null(cache);
	}
}
END_TEST

int main(void)
{
	const int both = sizeof(engines) / sizeof(engines[0]);
	TCase *tests = tcase_create("few CPUs");

	unsetenv("PCPC_ENGINE");
	tcase_add_loop_test(tests, all_threads_on_the_last_cpu, 0, both);
	tcase_add_test(tests, auto_takes_mm_cid_below_half_of_the_cpus);
	tcase_add_test(tests, auto_asks_the_affinity);
	tcase_add_loop_test(tests, mm_cid_keeps_stocks_few, 0, both);
	tcase_add_test(tests, index_asked_for_is_had_or_refused);
	return fault_run("fault", tests);
}
