// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * fork_during_drain.c - fork, whatever other threads are in the middle of (G9).
 *
 * One thread drains without a pause, two charge owners that evict one another, and the main thread
 * forks. What each child has of the owners that only the main thread uses must be exact; of the
 * others at least what is stocked is out (units that a thread was moving never come back there).
 */
#define _GNU_SOURCE
#include "fault_support.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "cache_private.h"

#if FAULT_SANITIZED
#define FORKS 40
#else
#define FORKS 120
#endif

#define FORKS_AT_LEAST 10

/* ThreadSanitizer knows no threads in the child of a process that has threads. */
#ifdef FAULT_TSAN
#define THREADS_IN_CHILD 0
#else
#define THREADS_IN_CHILD 1
#endif

/* With two stocks a CPU, owners 1..7 are alone in the first, and 8..14, 22..28, 36..42 share the
 * second. */
#define STOCKS 2
#define OWN_FIRST 1
#define OWN_COUNT 7
static const uint32_t others[] = { 8, 22, 36 };
#define OTHERS_COUNT 7

static const struct {
	enum pcpc_engine engine;
	enum pcpc_index index;
} kinds[] = {
	{ PCPC_ENGINE_RSEQ, PCPC_INDEX_CPU },
	{ PCPC_ENGINE_RSEQ, PCPC_INDEX_MM_CID },
	{ PCPC_ENGINE_ATOMIC, PCPC_INDEX_CPU },
};

static struct ledger ledger;
static atomic_bool stop;
static atomic_uint running;
static atomic_ulong drained;

static bool is_other(uint32_t owner)
{
	uint32_t i;

	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (owner - others[i] < OTHERS_COUNT)
			return true;
	return false;
}

static void *drain_until_stop(void *unused)
{
	(void)unused;
	atomic_fetch_add(&running, 1);
	while (!atomic_load(&stop)) {
		MUST(ledger_drain(&ledger) == 0);
		atomic_fetch_add(&drained, 1);
	}
	return NULL;
}

static void *charge_until_stop(void *seed)
{
	struct walker walkers[sizeof(others) / sizeof(others[0])];
	uint32_t i;

	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		walkers[i] = (struct walker){ .ledger = &ledger,
					      .first_owner = others[i],
					      .nr_owners = OTHERS_COUNT,
					      .random = (uintptr_t)seed + 100 * i };
	atomic_fetch_add(&running, 1);
	while (!atomic_load(&stop))
		for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
			walker_step(&walkers[i]);
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		walker_finish(&walkers[i]);
	return NULL;
}

static void *charge_and_drain(void *walker)
{
	uint32_t i;

	for (i = 0; i < 200; i++)
		walker_step(walker);
	MUST(ledger_drain(&ledger) == 0);
	return NULL;
}

static void must_be_at_least_stocked(void)
{
	uint32_t owner;

	for (owner = 1; owner <= LEDGER_OWNERS; owner++)
		if (is_other(owner))
			MUST(atomic_load(&ledger.out[owner]) >=
			     (int64_t)pcpc_cache_stocked(ledger.cache, owner));
}

/* G9, the child. walker is the copy of the forking thread's, with what it held. */
static void be_child(struct walker *walker, uint32_t number)
{
	pthread_t thread;
	uint32_t owner, i;

	must_be_at_least_stocked();
	MUST(all_gates_open(ledger.cache));
	for (i = 0; i < 100; i++)
		walker_step(walker);
	if (THREADS_IN_CHILD && number % 4 == 0) {
		MUST(pthread_create(&thread, NULL, charge_and_drain, walker) == 0);
		MUST(pthread_join(thread, NULL) == 0);
	}
	walker_finish(walker);
	ledger_stock(&ledger, OWN_FIRST, 10, 0);
	MUST(ledger_drain(&ledger) == 0);
	for (owner = OWN_FIRST; owner < OWN_FIRST + OWN_COUNT; owner++) {
		ledger_must_balance(&ledger, owner, 0);
		MUST(pcpc_cache_stocked(ledger.cache, owner) == 0);
		MUST(atomic_load(&ledger.moved[owner]) == atomic_load(&ledger.settled[owner]));
	}
	must_be_at_least_stocked();
	use_fresh_cache(pcpc_cache_engine(ledger.cache));
	if (number % 2)
		pcpc_cache_destroy(ledger.cache);
	_exit(EXIT_SUCCESS);
}

/* G9, both sides, and design section 6: the drain mutex is held across fork. */
START_TEST(fork_beside_drains_and_charges)
{
	struct walker walker = {
		.ledger = &ledger, .first_owner = OWN_FIRST, .nr_owners = OWN_COUNT, .random = 11
	};
	pthread_t threads[3];
	unsigned long before;
	uint32_t i, number;
	pid_t child;

	SKIP_IF(!engine_works(kinds[_i].engine), "no rseq engine");
	SKIP_IF(kinds[_i].index == PCPC_INDEX_MM_CID && !mm_cid_works(), "no mm_cid");
	ledger_init(&ledger, make_cache_of(kinds[_i].engine, kinds[_i].index, STOCKS));
	ck_assert(!pthread_create(&threads[0], NULL, drain_until_stop, NULL));
	for (i = 1; i < 3; i++)
		ck_assert(!pthread_create(&threads[i], NULL, charge_until_stop,
					  (void *)(uintptr_t)i));
	while (atomic_load(&running) < 3)
		sched_yield();
	before = atomic_load(&drained);
	for (number = 0; number < FORKS && (number < FORKS_AT_LEAST || time_left()); number++) {
		for (i = 0; i < 50; i++)
			walker_step(&walker);
		child = fork();
		if (child == 0)
			be_child(&walker, number);
		ck_assert_int_eq(status_of(child), EXIT_SUCCESS);
	}
	ck_assert_uint_gt(atomic_load(&drained), before);
	atomic_store(&stop, true);
	for (i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	walker_finish(&walker);
	ledger_must_end_empty(&ledger);
	pcpc_cache_destroy(ledger.cache);
}
END_TEST

static atomic_bool staged, forking;
static atomic_uint asked, served;

static unsigned int waiting_wishes(void)
{
	const struct pcpc_wish *wish;
	unsigned int count = 0;

	for (wish = atomic_load(&ledger.cache->wishes); wish; wish = wish->next)
		count++;
	return count;
}

/* Handlers run backwards before a fork: the library's, registered later, has run when this does,
 * and no drain can begin. */
static void wait_for_wishes(void)
{
	if (!atomic_load(&staged))
		return;
	atomic_store(&forking, true);
	while (waiting_wishes() < 2)
		sched_yield();
}

static bool match_and_count(uint32_t owner, void *unused)
{
	(void)unused;
	atomic_fetch_add(&asked, 1);
	return owner != 0;
}

static void *wish_when_forking(void *unused)
{
	(void)unused;
	while (!atomic_load(&forking))
		sched_yield();
	MUST(pcpc_cache_drain(ledger.cache, match_and_count, ledger_settle, &ledger) == 0);
	atomic_fetch_add(&served, 1);
	return NULL;
}

/* G9: wishes of threads that the child does not have are nobody's there, and are served here. */
START_TEST(fork_with_wishes_waiting)
{
	pthread_t threads[2];
	pid_t child;
	uint32_t i;

	ck_assert_int_eq(pthread_atfork(wait_for_wishes, NULL, NULL), 0);
	SKIP_IF(!engine_works(kinds[_i].engine), "no rseq engine");
	SKIP_IF(kinds[_i].index == PCPC_INDEX_MM_CID && !mm_cid_works(), "no mm_cid");
	ledger_init(&ledger, make_cache_of(kinds[_i].engine, kinds[_i].index, STOCKS));
	ledger_stock(&ledger, 1, 20, 3);
	for (i = 0; i < 2; i++)
		ck_assert(!pthread_create(&threads[i], NULL, wish_when_forking, NULL));
	atomic_store(&staged, true);
	child = fork();
	atomic_store(&staged, false);
	if (child == 0) {
		MUST(waiting_wishes() == 0);
		MUST(all_gates_open(ledger.cache));
		ledger_must_end_empty(&ledger);
		MUST(atomic_load(&asked) == 0);
		_exit(EXIT_SUCCESS);
	}
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	ck_assert_int_eq(status_of(child), EXIT_SUCCESS);
	ck_assert_uint_eq(atomic_load(&served), 2);
	ck_assert_uint_gt(atomic_load(&asked), 0);
	ledger_must_end_empty(&ledger);
	pcpc_cache_destroy(ledger.cache);
}
END_TEST

static pthread_mutex_t books = PTHREAD_MUTEX_INITIALIZER;

static void lock_books(void)
{
	pthread_mutex_lock(&books);
}

static void unlock_books(void)
{
	pthread_mutex_unlock(&books);
}

static void settle_in_books(const struct pcpc_deferred *deferred, void *unused)
{
	(void)unused;
	pthread_mutex_lock(&books);
	ledger_settle(deferred, &ledger);
	pthread_mutex_unlock(&books);
}

static void *drain_into_books_until_stop(void *unused)
{
	(void)unused;
	atomic_fetch_add(&running, 1);
	while (!atomic_load(&stop))
		MUST(pcpc_cache_drain(ledger.cache, ledger_match_all, settle_in_books, NULL) == 0);
	return NULL;
}

/* G9 for a user with a lock of its own around its counters. Registered before the first cache, its
 * handlers take that lock after the drain mutex, as settle() does; the other way about would
 * deadlock. */
START_TEST(fork_handlers_may_take_the_lock_of_settle)
{
	pthread_t threads[3];
	uint32_t number, i;
	pid_t child;

	ck_assert_int_eq(pthread_atfork(lock_books, unlock_books, unlock_books), 0);
	ledger_init(&ledger, make_cache_of(PCPC_ENGINE_AUTO, PCPC_INDEX_AUTO, STOCKS));
	ck_assert(!pthread_create(&threads[0], NULL, drain_into_books_until_stop, NULL));
	ck_assert(!pthread_create(&threads[1], NULL, drain_into_books_until_stop, NULL));
	ck_assert(!pthread_create(&threads[2], NULL, charge_until_stop, (void *)(uintptr_t)1));
	while (atomic_load(&running) < 3)
		sched_yield();
	for (number = 0; number < FORKS / 2 && (number < FORKS_AT_LEAST || time_left()); number++) {
		child = fork();
		if (child == 0) {
			MUST(pcpc_cache_drain(ledger.cache, ledger_match_all, settle_in_books,
					      NULL) == 0);
			_exit(EXIT_SUCCESS);
		}
		ck_assert_int_eq(status_of(child), EXIT_SUCCESS);
	}
	atomic_store(&stop, true);
	for (i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	ledger_must_end_empty(&ledger);
	pcpc_cache_destroy(ledger.cache);
}
END_TEST

int main(void)
{
	const int all = sizeof(kinds) / sizeof(kinds[0]);
	TCase *tests = tcase_create("fork during drain");

	unsetenv("PCPC_ENGINE");
	tcase_add_loop_test(tests, fork_beside_drains_and_charges, 0, all);
	tcase_add_loop_test(tests, fork_with_wishes_waiting, 0, all);
	tcase_add_test(tests, fork_handlers_may_take_the_lock_of_settle);
	return fault_run("fault", tests);
}
