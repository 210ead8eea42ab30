// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * thread_end.c - threads that end without ceremony, and charges from the last code that a thread
 * and a process run.
 *
 * Stocks belong to CPUs, not to threads: a thread's end must leave nothing behind and need no
 * goodbye (DESIGN.md section 12 gives per-thread batches as what this is not).
 */
#define _GNU_SOURCE
#include "fault_support.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#define SHORT_LIVES 2000
#define AT_ONCE 8
#define ROUNDS_OF_DESTRUCTORS 3
#if FAULT_SANITIZED
#define EXITS 10
#else
#define EXITS 50
#endif
#define EXITS_AT_LEAST 5

static const enum pcpc_engine engines[] = { PCPC_ENGINE_RSEQ, PCPC_ENGINE_ATOMIC };

static struct ledger ledger;
static pthread_key_t key;
static atomic_uint ended;
static _Thread_local unsigned int rounds;

/* The key's value is a number of units that the thread holds. Given back piece by piece: a value
 * set again makes the library call this again. */
static void charge_in_destructor(void *value)
{
	uint32_t i;

	for (i = 0; i < 50; i++) {
		ledger_charge(&ledger, 2, 4, 1);
		ledger_refill(&ledger, 2, 4, -1);
	}
	if (++rounds < ROUNDS_OF_DESTRUCTORS) {
		MUST(pthread_setspecific(key, value) == 0);
		return;
	}
	ledger_refill(&ledger, 1, (uintptr_t)value, 0);
	atomic_fetch_add(&ended, 1);
}

static void *live_shortly(void *number)
{
	ledger_charge(&ledger, 1, 5, 2);
	MUST(pthread_setspecific(key, (void *)(uintptr_t)5) == 0);
	if ((uintptr_t)number % 2)
		pthread_exit(NULL);
	return NULL;
}

/* G1, and rseq.md 6.3: key destructors run while the thread is still registered. */
START_TEST(short_lived_threads_leave_nothing)
{
	pthread_t threads[AT_ONCE];
	uint32_t i;

	SKIP_IF(!engine_works(engines[_i]), "no rseq engine");
	ck_assert_int_eq(pthread_key_create(&key, charge_in_destructor), 0);
	ledger_init(&ledger, make_cache(engines[_i], PCPC_INDEX_CPU));
	for (i = 0; i < SHORT_LIVES; i++) {
		if (i >= AT_ONCE)
			pthread_join(threads[i % AT_ONCE], NULL);
		ck_assert(!pthread_create(&threads[i % AT_ONCE], NULL, live_shortly,
					  (void *)(uintptr_t)i));
		if (i % 100 == 0)
			ck_assert_int_eq(ledger_drain(&ledger), 0);
	}
	for (i = 0; i < AT_ONCE; i++)
		pthread_join(threads[i], NULL);
	ck_assert_uint_eq(atomic_load(&ended), SHORT_LIVES);
	ledger_must_balance(&ledger, 1, 0);
	ledger_must_balance(&ledger, 2, 0);
	ledger_must_end_empty(&ledger);
	pcpc_cache_destroy(ledger.cache);
}
END_TEST

static void *detach_and_charge(void *unused)
{
	(void)unused;
	pthread_detach(pthread_self());
	ledger_charge(&ledger, 3, 1, 0);
	ledger_refill(&ledger, 3, 1, 0);
	atomic_fetch_add(&ended, 1);
	return NULL;
}

/* G1: nobody joins them, and their stacks may be reused at once. */
START_TEST(detached_threads_leave_nothing)
{
	pthread_t thread;
	uint32_t i;

	SKIP_IF(!engine_works(engines[_i]), "no rseq engine");
	ledger_init(&ledger, make_cache(engines[_i], PCPC_INDEX_CPU));
	for (i = 0; i < SHORT_LIVES / 4; i++) {
		ck_assert(!pthread_create(&thread, NULL, detach_and_charge, NULL));
		while (atomic_load(&ended) + AT_ONCE < i)
			sched_yield();
	}
	while (atomic_load(&ended) < SHORT_LIVES / 4)
		sched_yield();
	ledger_must_end_empty(&ledger);
	pcpc_cache_destroy(ledger.cache);
}
END_TEST

static void *use_everything(void *engine)
{
	struct pcpc_cache_stats stats = { .size = sizeof(stats) };
	static struct ledger own;

	ledger_init(&own, make_cache(*(const enum pcpc_engine *)engine, PCPC_INDEX_CPU));
	ledger_charge(&own, 1, 3, 1);
	ledger_refill(&own, 1, 3, -1);
	MUST(pcpc_cache_get_stats(own.cache, &stats) == 0);
	ledger_must_end_empty(&own);
	pcpc_cache_destroy(own.cache);
	return NULL;
}

/* As little stack as a thread can have: no function of the library may want much. */
START_TEST(smallest_stack_is_enough)
{
	enum pcpc_engine engine = engines[_i];
	pthread_attr_t attributes;
	pthread_t thread;

	SKIP_IF(FAULT_SANITIZED, "sanitizers need stack of their own");
	SKIP_IF(!engine_works(engine), "no rseq engine");
	pthread_attr_init(&attributes);
	ck_assert_int_eq(
		pthread_attr_setstacksize(&attributes, (size_t)sysconf(_SC_THREAD_STACK_MIN)), 0);
	ck_assert(!pthread_create(&thread, &attributes, use_everything, &engine));
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attributes);
}
END_TEST

static void charge_at_exit(void)
{
	ledger_charge(&ledger, 1, 3, 0);
	ledger_refill(&ledger, 1, 3, 0);
	ledger_must_end_empty(&ledger);
	pcpc_cache_destroy(ledger.cache);
	/* Not seen as success unless this was reached. */
	_exit(42);
}

/* Everything that works in main() works in what runs after it. */
START_TEST(charge_and_drain_from_atexit)
{
	pid_t child;

	SKIP_IF(!engine_works(engines[_i]), "no rseq engine");
	fflush(NULL);
	child = fork();
	if (child == 0) {
		ledger_init(&ledger, make_cache(engines[_i], PCPC_INDEX_CPU));
		ledger_stock(&ledger, 1, 30, 1);
		MUST(atexit(charge_at_exit) == 0);
		exit(EXIT_SUCCESS);
	}
	ck_assert_int_eq(status_of(child), 42);
}
END_TEST

static void *walk_for_ever(void *seed)
{
	struct walker walker = {
		.ledger = &ledger, .first_owner = 1, .nr_owners = 20, .random = (uintptr_t)seed
	};

	for (;;) {
		walker_step(&walker);
		atomic_fetch_add(&ended, 1);
	}
	return NULL;
}

static void *drain_for_ever(void *unused)
{
	(void)unused;
	for (;;)
		(void)ledger_drain(&ledger);
	return NULL;
}

/* exit() runs beside threads that charge and drain: the library has nothing that it takes down. */
START_TEST(exit_beside_running_threads)
{
	pthread_t thread;
	uint32_t i, number;
	pid_t child;

	SKIP_IF(!engine_works(engines[_i]), "no rseq engine");
	fflush(NULL);
	for (number = 0; number < EXITS && (number < EXITS_AT_LEAST || time_left()); number++) {
		child = fork();
		if (child == 0) {
			ledger_init(&ledger, make_cache(engines[_i], PCPC_INDEX_CPU));
			for (i = 1; i <= 2; i++)
				MUST(!pthread_create(&thread, NULL, walk_for_ever,
						     (void *)(uintptr_t)i));
			MUST(!pthread_create(&thread, NULL, drain_for_ever, NULL));
			while (atomic_load(&ended) < 100)
				sched_yield();
			exit(EXIT_SUCCESS);
		}
		ck_assert_int_eq(status_of(child), EXIT_SUCCESS);
	}
}
END_TEST

int main(void)
{
	const int both = sizeof(engines) / sizeof(engines[0]);
	TCase *tests = tcase_create("thread end");

	unsetenv("PCPC_ENGINE");
	tcase_add_loop_test(tests, short_lived_threads_leave_nothing, 0, both);
	tcase_add_loop_test(tests, detached_threads_leave_nothing, 0, both);
	tcase_add_loop_test(tests, smallest_stack_is_enough, 0, both);
	tcase_add_loop_test(tests, charge_and_drain_from_atexit, 0, both);
	tcase_add_loop_test(tests, exit_beside_running_threads, 0, both);
	return fault_run("fault", tests);
}
