// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * fork_and_creation.c - fork beside the creation and the destruction of caches, the very first one
 * of the process included, and forks of forks (G9).
 */
#define _GNU_SOURCE
#include "fault_support.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#if FAULT_SANITIZED
#define FORKS 20
#else
#define FORKS 100
#endif
#define FORKS_AT_LEAST 10

static atomic_bool stop;
static atomic_uint running, created;

/* G9: a child's child, and what each of them does stays its own. */
START_TEST(fork_of_a_fork)
{
	static struct ledger ledger;
	pid_t child, grandchild;

	ledger_init(&ledger, make_cache(PCPC_ENGINE_AUTO, PCPC_INDEX_AUTO));
	ledger_stock(&ledger, 1, 20, 3);
	child = fork();
	if (child == 0) {
		ledger_stock(&ledger, 2, 5, 0);
		grandchild = fork();
		if (grandchild == 0) {
			ledger_must_balance(&ledger, 1, 0);
			ledger_must_balance(&ledger, 2, 0);
			ledger_must_end_empty(&ledger);
			pcpc_cache_destroy(ledger.cache);
			_exit(EXIT_SUCCESS);
		}
		MUST(status_of(grandchild) == EXIT_SUCCESS);
		MUST(pcpc_cache_stocked(ledger.cache, 2) == 5);
		ledger_must_end_empty(&ledger);
		_exit(EXIT_SUCCESS);
	}
	ck_assert_int_eq(status_of(child), EXIT_SUCCESS);
	ck_assert_uint_eq(pcpc_cache_stocked(ledger.cache, 1), 20);
	ck_assert_uint_eq(pcpc_cache_stocked(ledger.cache, 2), 0);
	ledger_must_end_empty(&ledger);
	pcpc_cache_destroy(ledger.cache);
}
END_TEST

static void *create_and_destroy_until_stop(void *unused)
{
	(void)unused;
	atomic_fetch_add(&running, 1);
	while (!atomic_load(&stop))
		pcpc_cache_destroy(make_cache(PCPC_ENGINE_AUTO, PCPC_INDEX_CPU));
	return NULL;
}

/* G9: the list of live caches may be in the middle of a change. */
START_TEST(fork_beside_creation_and_destruction)
{
	struct pcpc_cache *first = make_cache(PCPC_ENGINE_AUTO, PCPC_INDEX_CPU);
	pthread_t threads[2];
	uint32_t number, i;
	pid_t child;

	for (i = 0; i < 2; i++)
		ck_assert(!pthread_create(&threads[i], NULL, create_and_destroy_until_stop, NULL));
	while (atomic_load(&running) < 2)
		sched_yield();
	for (number = 0; number < FORKS && (number < FORKS_AT_LEAST || time_left()); number++) {
		child = fork();
		if (child == 0) {
			use_fresh_cache(PCPC_ENGINE_AUTO);
			_exit(EXIT_SUCCESS);
		}
		ck_assert_int_eq(status_of(child), EXIT_SUCCESS);
	}
	atomic_store(&stop, true);
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	pcpc_cache_destroy(first);
}
END_TEST

int __real_pthread_atfork(fork_handler *prepare, fork_handler *parent, fork_handler *child);
int __wrap_pthread_atfork(fork_handler *prepare, fork_handler *parent, fork_handler *child);

static atomic_bool hold_back, held_back, forked;

/* As where the C library's own lock is held by a fork in progress. */
UNINSTRUMENTED int __wrap_pthread_atfork(fork_handler *prepare, fork_handler *parent,
					 fork_handler *child)
{
	if (atomic_exchange(&hold_back, false)) {
		atomic_store(&held_back, true);
		while (!atomic_load(&forked))
			sched_yield();
	}
	return __real_pthread_atfork(prepare, parent, child);
}

static void *create_the_first(void *unused)
{
	(void)unused;
	use_fresh_cache(PCPC_ENGINE_AUTO);
	atomic_fetch_add(&created, 1);
	return NULL;
}

/* G9: a thread that creates the first cache of the process has not yet got its fork handlers when
 * another forks. The child must not find their installation under way for ever. */
START_TEST(fork_beside_the_first_creation)
{
	pthread_t thread;
	pid_t child;

	atomic_store(&hold_back, true);
	ck_assert(!pthread_create(&thread, NULL, create_the_first, NULL));
	while (!atomic_load(&held_back) && !atomic_load(&created))
		sched_yield();
	child = fork();
	atomic_store(&forked, true);
	if (child == 0) {
		/* Check's own handler would end the test, without a word. */
		signal(SIGALRM, SIG_DFL);
		alarm(10);
		use_fresh_cache(PCPC_ENGINE_AUTO);
		_exit(EXIT_SUCCESS);
	}
	pthread_join(thread, NULL);
	ck_assert_int_eq(status_of(child), EXIT_SUCCESS);
	/* And both have handlers that work. */
	child = fork();
	if (child == 0) {
		use_fresh_cache(PCPC_ENGINE_AUTO);
		_exit(EXIT_SUCCESS);
	}
	ck_assert_int_eq(status_of(child), EXIT_SUCCESS);
}
END_TEST

/* fork.c, install(): no lock keeps two threads from installing the handlers twice, so they must put
 * up with it (G9). */
START_TEST(handlers_that_were_installed_twice)
{
	struct pcpc_cache *cache;
	pthread_t thread;
	uint32_t number;
	pid_t child;

	atomic_store(&hold_back, true);
	ck_assert(!pthread_create(&thread, NULL, create_the_first, NULL));
	while (!atomic_load(&held_back) && !atomic_load(&created))
		sched_yield();
	cache = make_cache(PCPC_ENGINE_AUTO, PCPC_INDEX_CPU);
	atomic_store(&forked, true);
	pthread_join(thread, NULL);
	for (number = 0; number < 5; number++) {
		child = fork();
		if (child == 0) {
			signal(SIGALRM, SIG_DFL);
			alarm(10);
			use_fresh_cache(PCPC_ENGINE_AUTO);
			pcpc_cache_destroy(cache);
			_exit(EXIT_SUCCESS);
		}
		use_fresh_cache(PCPC_ENGINE_AUTO);
		ck_assert_int_eq(status_of(child), EXIT_SUCCESS);
	}
	pcpc_cache_destroy(cache);
}
END_TEST

static struct ledger books;
static int in_prepare = 1, in_parent = 1, in_child = 1;

static void drain_in_prepare(void)
{
	in_prepare = ledger_drain(&books);
}

static void drain_in_parent(void)
{
	in_parent = ledger_drain(&books);
}

static void drain_in_child(void)
{
	in_child = ledger_drain(&books);
}

/* Contract of pcpc_cache_drain(): "-EDEADLK: called by match(), settle() or a fork handler". These
 * are installed before the library's own, so they run while it holds the mutexes. */
START_TEST(drain_in_a_fork_handler_is_refused)
{
	pid_t child;

	ck_assert_int_eq(pthread_atfork(drain_in_prepare, drain_in_parent, drain_in_child), 0);
	ledger_init(&books, make_cache(PCPC_ENGINE_AUTO, PCPC_INDEX_AUTO));
	ledger_stock(&books, 1, 20, 1);
	child = fork();
	if (child == 0) {
		MUST(in_prepare == -EDEADLK);
		MUST(in_child == -EDEADLK);
		ledger_must_balance(&books, 1, 0);
		ledger_must_end_empty(&books);
		_exit(EXIT_SUCCESS);
	}
	ck_assert_int_eq(status_of(child), EXIT_SUCCESS);
	ck_assert_int_eq(in_prepare, -EDEADLK);
	ck_assert_int_eq(in_parent, -EDEADLK);
	ck_assert_uint_eq(pcpc_cache_stocked(books.cache, 1), 20);
	ledger_must_end_empty(&books);
	pcpc_cache_destroy(books.cache);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("fork and creation");

	unsetenv("PCPC_ENGINE");
	tcase_add_test(tests, fork_of_a_fork);
	tcase_add_test(tests, fork_beside_creation_and_destruction);
	tcase_add_test(tests, fork_beside_the_first_creation);
	tcase_add_test(tests, handlers_that_were_installed_twice);
	tcase_add_test(tests, drain_in_a_fork_handler_is_refused);
	return fault_run("fault", tests);
}
