// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * staged.c - races that are not waited for but made: every interleaving here is the same each time.
 *
 *	staged rseq|atomic
 *
 * The cases are in staged_drain.c (another thread drains) and staged_nested.c (the same thread does
 * another operation, as a signal handler does).
 */
#define _GNU_SOURCE
#include "staged.h"

#include <errno.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SKIPPED 77

enum pcpc_engine staged_engine;
struct pcpc_cache *staged_cache;
struct pcpc_stock *staged_stock;
const struct pcpc_marks staged_marks = { .high = 100, .low = 50, .delta_batch = 10 };
uint64_t staged_settled[STAGED_OWNERS + 1];
int64_t staged_settled_delta[STAGED_OWNERS + 1];

static uint32_t stock_index;
static cpu_set_t allowed;

/* Of the thread that runs the test; others pass the hooks by. */
static _Thread_local void (*action_at[STAGED_POINTS])(void);
static void (*in_handler)(void);

/* A consume without a delta has deferred something. */
static bool consume_deferred;

void staged_hook(enum staged_point point)
{
	void (*action)(void) = action_at[point];

	/* Once, so that what the action itself does is not stopped. */
	action_at[point] = NULL;
	if (action)
		action();
}

void staged_at(enum staged_point point, void (*action)(void))
{
	action_at[point] = action;
}

static void on_signal(int signal)
{
	(void)signal;
	in_handler();
}

static void interrupt(void)
{
	raise(SIGUSR1);
}

void staged_signal_at(enum staged_point point, void (*action)(void))
{
	in_handler = action;
	action_at[point] = interrupt;
}

bool staged_done(enum staged_point point)
{
	return !action_at[point];
}

#if PCPC_HAVE_RSEQ
static const struct pcpc_primitives rseq_primitives = { pcpc_rseq_commit, pcpc_rseq_insert, false };
#endif
static const struct pcpc_primitives atomic_primitives = { pcpc_atomic_commit, pcpc_atomic_insert,
							  true };

static const struct pcpc_primitives *primitives(void)
{
#if PCPC_HAVE_RSEQ
	if (staged_engine == PCPC_ENGINE_RSEQ)
		return &rseq_primitives;
#endif
	return &atomic_primitives;
}

static struct pcpc_place place(void)
{
	return (struct pcpc_place){ staged_cache->fast.area.rseq, staged_cache->fast.area.field,
				    stock_index };
}

enum pcpc_outcome staged_try_refill(uint32_t owner, uint64_t count,
				    struct pcpc_deferred *ret_deferred)
{
	struct pcpc_request request = { owner, count, 0, &staged_marks };
	struct pcpc_place here = place();

	pcpc_defer(ret_deferred, 0, 0, 0);
	return pcpc_stock_try_refill(staged_stock, &here, primitives(), &request, ret_deferred);
}

enum pcpc_outcome staged_try_consume(uint32_t owner, uint64_t count)
{
	const struct pcpc_request request = { owner, count, 0, &staged_marks };
	struct pcpc_deferred deferred = { 0, 0, 0 };
	struct pcpc_place here = place();
	enum pcpc_outcome outcome =
		pcpc_stock_try_consume(staged_stock, &here, primitives(), &request, &deferred);

	ck_assert_uint_eq(deferred.owner, 0);
	return outcome;
}

/* No assertion, for it is also called in a signal handler: teardown() asserts. */
bool staged_consume(uint32_t owner, uint64_t count)
{
	struct pcpc_deferred deferred;
	bool hit = pcpc_cache_consume(staged_cache, owner, count, 0, &staged_marks, &deferred);

	if (deferred.owner)
		consume_deferred = true;
	return hit;
}

struct pcpc_deferred staged_refill(uint32_t owner, uint64_t count)
{
	struct pcpc_deferred deferred;

	pcpc_cache_refill(staged_cache, owner, count, 0, &staged_marks, &deferred);
	return deferred;
}

void staged_assert_deferred(struct pcpc_deferred deferred, uint32_t owner, uint64_t count)
{
	ck_assert_uint_eq(deferred.owner, owner);
	ck_assert_uint_eq(deferred.count, count);
	ck_assert_int_eq(deferred.delta, 0);
}

/* One drain at a time, by a thread of its own. */
static struct {
	pthread_t thread;
	bool stops;
	uint32_t asked; /* calls of match() */
	sem_t stopped, go_on;
	int result;
} drainer;

static void wait_for(sem_t *semaphore)
{
	while (sem_wait(semaphore) < 0 && errno == EINTR)
		;
}

/* The first call is the scan's, which then closes the gate; the second is about a word to take. */
static bool match(uint32_t owner, void *context)
{
	(void)owner;
	(void)context;
	if (++drainer.asked == 2 && drainer.stops) {
		sem_post(&drainer.stopped);
		wait_for(&drainer.go_on);
	}
	return true;
}

static void settle(const struct pcpc_deferred *deferred, void *context)
{
	(void)context;
	ck_assert_uint_le(deferred->owner, STAGED_OWNERS);
	staged_settled[deferred->owner] += deferred->count;
	staged_settled_delta[deferred->owner] += deferred->delta;
}

static void *drain_all(void *argument)
{
	(void)argument;
	drainer.result = pcpc_cache_drain(staged_cache, match, settle, NULL);
	return NULL;
}

static void start_drain(bool stops)
{
	drainer.stops = stops;
	drainer.asked = 0;
	ck_assert_int_eq(pthread_create(&drainer.thread, NULL, drain_all, NULL), 0);
}

void staged_drain_begin(void)
{
	start_drain(true);
	wait_for(&drainer.stopped);
	ck_assert_uint_eq(PCPC_LOAD(staged_stock->gate), staged_engine == PCPC_ENGINE_RSEQ);
}

void staged_drain_end(void)
{
	sem_post(&drainer.go_on);
	ck_assert_int_eq(pthread_join(drainer.thread, NULL), 0);
	ck_assert_int_eq(drainer.result, 0);
	ck_assert_uint_eq(PCPC_LOAD(staged_stock->gate), 0);
}

void staged_drain(void)
{
	start_drain(false);
	ck_assert_int_eq(pthread_join(drainer.thread, NULL), 0);
	ck_assert_int_eq(drainer.result, 0);
}

void staged_fill(void)
{
	uint32_t owner;

	for (owner = 1; owner <= PCPC_STOCK_SLOTS; owner++) {
		staged_assert_deferred(staged_refill(owner, 10 * owner), 0, 0);
		ck_assert_uint_eq(pcpc_word_owner(staged_stock->slot[owner - 1]), owner);
	}
}

uint32_t staged_slots_of(uint32_t owner)
{
	uint32_t slot, slots = 0;

	for (slot = 0; slot < PCPC_STOCK_SLOTS; slot++)
		slots += pcpc_word_owner(PCPC_LOAD(staged_stock->slot[slot])) == owner;
	return slots;
}

uint64_t staged_stocked(uint32_t owner)
{
	return pcpc_cache_stocked(staged_cache, owner);
}

/* On one CPU, the first or the last it may run on. */
static bool pin(bool last)
{
	int cpu = -1, i;
	cpu_set_t one;

	for (i = 0; i < CPU_SETSIZE && (cpu < 0 || last); i++)
		if (CPU_ISSET(i, &allowed))
			cpu = i;
	if (cpu < 0)
		return false;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	return sched_setaffinity(0, sizeof(one), &one) == 0 && sched_getcpu() == cpu;
}

bool staged_move(void)
{
	int before = sched_getcpu();

	return pin(true) && sched_getcpu() != before;
}

/* Where this thread's refills go: seen by doing one. */
static void find_stock(void)
{
	uint32_t i;

	staged_assert_deferred(staged_refill(1, 1), 0, 0);
	for (i = 0; i < staged_cache->nr_indices; i++)
		if (pcpc_word_count(pcpc_cache_stock(staged_cache, i, 1)->slot[0]))
			stock_index = i;
	staged_stock = pcpc_cache_stock(staged_cache, stock_index, 1);
	staged_drain();
	ck_assert_uint_eq(staged_settled[1], 1);
	staged_settled[1] = 0;
}

static struct pcpc_cache_config config(void)
{
	return (struct pcpc_cache_config){
		.size = sizeof(struct pcpc_cache_config),
		.engine = staged_engine,
		.index = PCPC_INDEX_CPU,
		.stocks_per_cpu = 1,
	};
}

static void setup(void)
{
	struct pcpc_cache_config of_test = config();

	/* With more than 1,024 CPUs it fails: then nothing is pinned, and nothing moves either as
	 * long as nobody wants it to. */
	if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
		CPU_ZERO(&allowed);
	pin(false);
	sem_init(&drainer.stopped, 0, 0);
	sem_init(&drainer.go_on, 0, 0);
	memset(staged_settled, 0, sizeof(staged_settled));
	memset(staged_settled_delta, 0, sizeof(staged_settled_delta));
	memset(action_at, 0, sizeof(action_at));
	signal(SIGUSR1, on_signal);
	ck_assert_int_eq(pcpc_cache_create(&of_test, &staged_cache), 0);
	find_stock();
}

static void teardown(void)
{
	ck_assert(!consume_deferred);
	pcpc_cache_destroy(staged_cache);
	sem_destroy(&drainer.stopped);
	sem_destroy(&drainer.go_on);
}

/* Can the engine be had here at all? */
static bool engine_works(void)
{
	struct pcpc_cache_config any = config();
	struct pcpc_cache *cache;

	if (pcpc_cache_create(&any, &cache) < 0)
		return false;
	pcpc_cache_destroy(cache);
	return true;
}

int main(int argc, char **argv)
{
	TCase *drains, *nested;
	SRunner *runner;
	Suite *suite;
	int failed;

	staged_engine =
		argc > 1 && !strcmp(argv[1], "atomic") ? PCPC_ENGINE_ATOMIC : PCPC_ENGINE_RSEQ;
	if (!engine_works()) {
		printf("staged: skipped: the engine does not work here\n");
		return SKIPPED;
	}
	suite = suite_create("staged");
	drains = tcase_create("drains");
	nested = tcase_create("nested");
	tcase_add_checked_fixture(drains, setup, teardown);
	tcase_add_checked_fixture(nested, setup, teardown);
	staged_add_drain_tests(drains);
	staged_add_nested_tests(nested);
	suite_add_tcase(suite, drains);
	suite_add_tcase(suite, nested);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
