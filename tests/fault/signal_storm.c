// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * signal_storm.c - a timer at 20 kHz whose handler charges and uncharges the owners that the
 * interrupted thread is at work on (G8 at the level of the cache).
 *
 * The interrupted code is anywhere: in a sequence, between an eviction and its settlement, in a
 * drain with its gates closed and the mutex held.
 */
#define _GNU_SOURCE
#include "fault_support.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define PERIOD_NS 50000
#if FAULT_SANITIZED
#define STEPS 150000
#else
#define STEPS 1000000
#endif
#define SIGNALS 2000
#define SIGNALS_AT_LEAST 100
#define OWNERS 21

static const struct {
	enum pcpc_engine engine;
	enum pcpc_index index;
} kinds[] = {
	{ PCPC_ENGINE_RSEQ, PCPC_INDEX_CPU },
	{ PCPC_ENGINE_RSEQ, PCPC_INDEX_MM_CID },
	{ PCPC_ENGINE_ATOMIC, PCPC_INDEX_CPU },
};

static struct ledger ledger;
static atomic_uint handled, hits;

static void charge_in_handler(int number)
{
	unsigned int turn = atomic_fetch_add(&handled, 1);
	uint32_t owner = 1 + turn % OWNERS;
	int saved = errno;

	(void)number;
	if (ledger_consume(&ledger, owner, 2, 7)) {
		atomic_fetch_add(&hits, 1);
		ledger_refill(&ledger, owner, 2, -7);
	} else {
		ledger_stock(&ledger, owner, 40, -1);
	}
	errno = saved;
}

static timer_t start_timer(void)
{
	const struct itimerspec period = { { 0, PERIOD_NS }, { 0, PERIOD_NS } };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM };
	struct sigaction action = { .sa_handler = charge_in_handler, .sa_flags = SA_RESTART };
	timer_t timer;

	MUST(sigaction(SIGALRM, &action, NULL) == 0);
	MUST(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
	MUST(timer_settime(timer, 0, &period, NULL) == 0);
	return timer;
}

START_TEST(handler_at_20_khz_keeps_every_unit)
{
	struct walker walker = {
		.ledger = &ledger, .first_owner = 1, .nr_owners = OWNERS, .random = 8
	};
	timer_t timer;
	uint32_t i;

	SKIP_IF(!engine_works(kinds[_i].engine), "no rseq engine");
	SKIP_IF(kinds[_i].index == PCPC_INDEX_MM_CID && !mm_cid_works(), "no mm_cid");
	/* Three groups of seven in one stock a CPU: evictions all the time. */
	ledger_init(&ledger, make_cache_of(kinds[_i].engine, kinds[_i].index, 1));
	timer = start_timer();
	for (i = 0; i < STEPS || atomic_load(&handled) < SIGNALS; i++) {
		/* Mostly the few owners that hit; at times all of them, which evict. */
		walker.nr_owners = i % 64 ? 4 : OWNERS;
		walker_step(&walker);
		if (i % 1024)
			continue;
		ck_assert_int_eq(ledger_drain(&ledger), 0);
		if (atomic_load(&handled) >= SIGNALS_AT_LEAST && !time_left())
			break;
	}
	ck_assert_int_eq(timer_delete(timer), 0);
	signal(SIGALRM, SIG_IGN);
	walker_finish(&walker);
	ck_assert_uint_gt(atomic_load(&hits), 0);
	ledger_must_end_empty(&ledger);
	pcpc_cache_destroy(ledger.cache);
}
END_TEST

static pthread_t target;
static atomic_bool stop;

static void *shoot_until_stop(void *unused)
{
	(void)unused;
	while (!atomic_load(&stop)) {
		MUST(pthread_kill(target, SIGALRM) == 0);
		/* Let each be handled: pending ones merge. */
		sched_yield();
	}
	return NULL;
}

/* The same as fast as another thread can send them, which is several times as fast, and at moments
 * that no timer interrupt has chosen. */
START_TEST(handler_as_fast_as_a_thread_can_send_keeps_every_unit)
{
	struct sigaction action = { .sa_handler = charge_in_handler, .sa_flags = SA_RESTART };
	struct walker walker = {
		.ledger = &ledger, .first_owner = 1, .nr_owners = OWNERS, .random = 8
	};
	pthread_t shooter;
	uint32_t i;

	SKIP_IF(!engine_works(kinds[_i].engine), "no rseq engine");
	SKIP_IF(kinds[_i].index == PCPC_INDEX_MM_CID && !mm_cid_works(), "no mm_cid");
	/* Three groups of seven in one stock a CPU: evictions all the time. */
	ledger_init(&ledger, make_cache_of(kinds[_i].engine, kinds[_i].index, 1));
	ck_assert_int_eq(sigaction(SIGALRM, &action, NULL), 0);
	target = pthread_self();
	ck_assert(!pthread_create(&shooter, NULL, shoot_until_stop, NULL));
	for (i = 0; i < STEPS / 10 || atomic_load(&handled) < SIGNALS / 4; i++) {
		walker_step(&walker);
		if (i % 1024)
			continue;
		ck_assert_int_eq(ledger_drain(&ledger), 0);
		if (atomic_load(&handled) >= SIGNALS_AT_LEAST && !time_left())
			break;
	}
	atomic_store(&stop, true);
	pthread_join(shooter, NULL);
	walker_finish(&walker);
	ck_assert_uint_gt(atomic_load(&hits), 0);
	ledger_must_end_empty(&ledger);
	pcpc_cache_destroy(ledger.cache);
}
END_TEST

int main(void)
{
	const int all = sizeof(kinds) / sizeof(kinds[0]);
	TCase *tests = tcase_create("signal storm");

	unsetenv("PCPC_ENGINE");
	tcase_add_loop_test(tests, handler_at_20_khz_keeps_every_unit, 0, all);
	tcase_add_loop_test(tests, handler_as_fast_as_a_thread_can_send_keeps_every_unit, 0, all);
	return fault_run("fault", tests);
}
