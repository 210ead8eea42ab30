// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * denied_membarrier.c - a seccomp filter that refuses membarrier, from the start or later on.
 *
 * A drain that cannot make sequences end must not take a word (DESIGN.md section 6, Drain: "the
 * gates are opened again, nothing is taken, and the drain says so").
 */
#define _GNU_SOURCE
#include "fault_support.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cache_private.h"

#define THREADS 4

static const int errors[] = { EPERM, ENOSYS, ENOMEM };

/* Design section 6, Drain, and the contract of pcpc_cache_drain(): it says what membarrier said. */
START_TEST(refused_drain_takes_nothing_and_opens_the_gates)
{
	struct pcpc_cache_stats before = { .size = sizeof(before) };
	struct pcpc_cache_stats after = { .size = sizeof(after) };
	static struct ledger ledger;
	uint32_t owner;

	SKIP_IF(!engine_works(PCPC_ENGINE_RSEQ), "no rseq engine");
	pin_to(last_allowed_cpu());
	ledger_init(&ledger, make_cache(PCPC_ENGINE_RSEQ, PCPC_INDEX_CPU));
	for (owner = 1; owner <= 20; owner++)
		ledger_stock(&ledger, owner, 30, 5);
	SKIP_IF(!deny_membarrier(errors[_i]), "no seccomp filters here");
	ck_assert_int_eq(pcpc_cache_get_stats(ledger.cache, &before), 0);

	ck_assert_int_eq(ledger_drain(&ledger), -errors[_i]);

	ck_assert_int_eq(pcpc_cache_get_stats(ledger.cache, &after), 0);
	ck_assert_uint_eq(after.drains, before.drains + 1);
	ck_assert_uint_eq(after.rounds, before.rounds + 1);
	ck_assert_uint_eq(after.membarriers, before.membarriers + 1);
	ck_assert(all_gates_open(ledger.cache));
	for (owner = 1; owner <= 20; owner++) {
		ck_assert_uint_eq(pcpc_cache_stocked(ledger.cache, owner), 30);
		ck_assert_int_eq(stocked_delta(ledger.cache, owner), 5);
		ck_assert_int_eq(atomic_load(&ledger.settled[owner]), 0);
		ck_assert(consume_hits(&ledger, owner, 30));
		ledger_must_balance(&ledger, owner, 30);
	}
	pcpc_cache_destroy(ledger.cache);
}
END_TEST

static struct ledger shared;
static atomic_uint refused, running;
static atomic_bool stop;

static void *charge_until_stop(void *seed)
{
	struct walker walker = {
		.ledger = &shared, .first_owner = 1, .nr_owners = 30, .random = (uintptr_t)seed
	};

	atomic_fetch_add(&running, 1);
	do
		walker_step(&walker);
	while (!atomic_load(&stop));
	walker_finish(&walker);
	return NULL;
}

/* G1 at the level of the cache: units and deltas are where they were, whoever moved them beside. */
START_TEST(refused_drains_beside_charging_threads_lose_nothing)
{
	pthread_t threads[THREADS];
	uint32_t owner, i;

	SKIP_IF(!engine_works(PCPC_ENGINE_RSEQ), "no rseq engine");
	ledger_init(&shared, make_cache(PCPC_ENGINE_RSEQ, PCPC_INDEX_CPU));
	for (i = 0; i < THREADS; i++)
		ck_assert(!pthread_create(&threads[i], NULL, charge_until_stop,
					  (void *)(uintptr_t)(i + 1)));
	while (atomic_load(&running) < THREADS)
		sched_yield();
	for (i = 0; i < 100; i++)
		ck_assert_int_eq(ledger_drain(&shared), 0);
	/* A drain that finds nothing to take needs no fence and succeeds. */
	ledger_stock(&shared, 40, 10, 0);
	SKIP_IF(!deny_membarrier(EPERM), "no seccomp filters here");
	for (i = 0; i < 2000; i++)
		ck_assert_int_eq(ledger_drain(&shared), -EPERM);
	atomic_store(&stop, true);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);

	ck_assert(all_gates_open(shared.cache));
	for (owner = 1; owner <= 40; owner++) {
		ledger_must_balance(&shared, owner, 0);
		ck_assert_int_eq(atomic_load(&shared.settled[owner]) +
					 stocked_delta(shared.cache, owner),
				 atomic_load(&shared.moved[owner]));
	}
	pcpc_cache_destroy(shared.cache);
}
END_TEST

static void *drain_often(void *unused)
{
	uint32_t i;

	(void)unused;
	for (i = 0; i < 500; i++)
		if (ledger_drain(&shared) == -EPERM)
			atomic_fetch_add(&refused, 1);
	return NULL;
}

/* Design section 6, Drain: drains combine. Each of those that were served together hears of it. */
START_TEST(every_combined_drain_is_told)
{
	struct pcpc_cache_stats stats = { .size = sizeof(stats) };
	pthread_t threads[THREADS];
	uint32_t i;

	SKIP_IF(!engine_works(PCPC_ENGINE_RSEQ), "no rseq engine");
	ledger_init(&shared, make_cache(PCPC_ENGINE_RSEQ, PCPC_INDEX_CPU));
	ledger_stock(&shared, 1, 30, 0);
	SKIP_IF(!deny_membarrier(EPERM), "no seccomp filters here");
	for (i = 0; i < THREADS; i++)
		ck_assert(!pthread_create(&threads[i], NULL, drain_often, NULL));
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	ck_assert_uint_eq(atomic_load(&refused), THREADS * 500);
	ck_assert_int_eq(pcpc_cache_get_stats(shared.cache, &stats), 0);
	ck_assert_uint_eq(stats.drains, THREADS * 500);
	ck_assert_uint_le(stats.rounds, THREADS * 500);
	ck_assert_uint_eq(stats.membarriers, stats.rounds);
	ck_assert_uint_eq(pcpc_cache_stocked(shared.cache, 1), 30);
	pcpc_cache_destroy(shared.cache);
}
END_TEST

/* Allows the call that fences one CPU, refuses the one that fences all. */
static bool deny_broadcast(void)
{
	const struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 5),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	return install_filter(code, sizeof(code) / sizeof(code[0]), SECCOMP_FILTER_FLAG_TSYNC);
}

static uint64_t words_settled, units_settled;

static void count_settled(const struct pcpc_deferred *deferred, void *unused)
{
	(void)unused;
	words_settled++;
	units_settled += deferred->count;
}

/* Contract of pcpc_cache_drain(): "the stocks are open again, and what had not been settled by then
 * is still in them". More lines than one pass has room for: the first pass is on one CPU and
 * allowed, the second is on two and refused. */
START_TEST(drain_refused_in_its_second_pass_keeps_the_rest)
{
	const struct pcpc_marks marks = { .high = 64, .low = 32, .delta_batch = 64 };
	const uint32_t lines = PCPC_DRAIN_LINES + 100;
	struct pcpc_deferred deferred;
	struct pcpc_cache *cache;
	uint64_t stocked = 0;
	uint32_t line, nth;

	SKIP_IF(!engine_works(PCPC_ENGINE_RSEQ), "no rseq engine");
	SKIP_IF(allowed_cpu(1) < 0, "needs two CPUs");
	cache = make_cache(PCPC_ENGINE_RSEQ, PCPC_INDEX_CPU);
	for (nth = 0; nth < 2; nth++) {
		cpu_set_t all;

		ck_assert_int_eq(sched_getaffinity(0, sizeof(all), &all), 0);
		pin_to(allowed_cpu(nth));
		for (line = 0; line < lines; line++) {
			pcpc_cache_refill(cache, line * PCPC_STOCK_SLOTS + 1, 3, 0, &marks,
					  &deferred);
			ck_assert_uint_eq(deferred.owner, 0);
		}
		ck_assert_int_eq(sched_setaffinity(0, sizeof(all), &all), 0);
	}
	SKIP_IF(!deny_broadcast(), "no seccomp filters here");

	ck_assert_int_eq(pcpc_cache_drain(cache, ledger_match_all, count_settled, NULL), -EPERM);

	ck_assert_uint_eq(words_settled, PCPC_DRAIN_LINES);
	ck_assert_uint_eq(units_settled, 3 * PCPC_DRAIN_LINES);
	for (line = 0; line < lines; line++)
		stocked += pcpc_cache_stocked(cache, line * PCPC_STOCK_SLOTS + 1);
	ck_assert_uint_eq(stocked, 2 * 3 * lines - units_settled);
	ck_assert(all_gates_open(cache));
	pcpc_cache_destroy(cache);
}
END_TEST

/* With membarrier refused: AUTO is atomic and works in full, RSEQ is not to be had. */
static void must_fall_to_atomic(void)
{
	const struct pcpc_cache_config rseq = { .size = sizeof(rseq), .engine = PCPC_ENGINE_RSEQ };
	struct walker walker = {
		.ledger = &shared, .first_owner = 1, .nr_owners = 30, .random = 7
	};
	struct pcpc_cache *cache = (struct pcpc_cache *)&shared;
	uint32_t i;

	MUST(pcpc_cache_create(&rseq, &cache) == -ENOSYS);
	MUST(cache == (struct pcpc_cache *)&shared);
	MUST(pcpc_cache_create(NULL, &cache) == 0);
	MUST(pcpc_cache_engine(cache) == PCPC_ENGINE_ATOMIC);
	ledger_init(&shared, cache);
	ledger_stock(&shared, 1, 10, 0);
	MUST(consume_hits(&shared, 1, 10));
	ledger_refill(&shared, 1, 10, 0);
	for (i = 0; i < 20000; i++) {
		walker_step(&walker);
		if (i % 1000 == 0)
			MUST(ledger_drain(&shared) == 0);
	}
	walker_finish(&walker);
	ledger_must_end_empty(&shared);
	pcpc_cache_destroy(cache);
}

/* Design section 6: the engine is one per cache, chosen when it is created, never changed. */
START_TEST(cache_made_after_the_filter_is_atomic_and_the_old_one_stays)
{
	static struct ledger old;

	SKIP_IF(!engine_works(PCPC_ENGINE_RSEQ), "no rseq engine");
	pin_to(last_allowed_cpu());
	ledger_init(&old, make_cache(PCPC_ENGINE_RSEQ, PCPC_INDEX_CPU));
	ledger_stock(&old, 1, 10, 0);
	SKIP_IF(!deny_membarrier(EPERM), "no seccomp filters here");
	must_fall_to_atomic();
	ck_assert_int_eq(pcpc_cache_engine(old.cache), PCPC_ENGINE_RSEQ);
	ck_assert_int_eq(ledger_drain(&old), -EPERM);
	ck_assert(consume_hits(&old, 1, 10));
	pcpc_cache_destroy(old.cache);
}
END_TEST

static void deny_or_skip(void)
{
	if (!deny_membarrier(EPERM))
		_exit(FAULT_SKIP);
}

/* Design section 6, engines: what has no membarrier gets the atomic engine. A new program, whose
 * first system call is under the filter already. */
START_TEST(membarrier_denied_from_the_start_means_atomic)
{
	int status = run_role("fall-to-atomic", NULL, deny_or_skip);

	SKIP_IF(status == FAULT_SKIP, "no seccomp filters here");
	ck_assert_int_eq(status, EXIT_SUCCESS);
}
END_TEST

/* Contract of pcpc_cache_create(): -ENOSYS for an engine that was asked for, by the environment
 * too. */
START_TEST(environment_cannot_ask_for_what_is_denied)
{
	struct pcpc_cache *cache = NULL;

	SKIP_IF(!deny_membarrier(EPERM), "no seccomp filters here");
	ck_assert_int_eq(setenv("PCPC_ENGINE", "rseq", 1), 0);
	ck_assert_int_eq(pcpc_cache_create(NULL, &cache), -ENOSYS);
	ck_assert_ptr_null(cache);
}
END_TEST

int main(int argc, char **argv)
{
	TCase *tests;

	(void)argv;
	unsetenv("PCPC_ENGINE");
	if (argc > 1) {
		must_fall_to_atomic();
		return EXIT_SUCCESS;
	}
	tests = tcase_create("denied membarrier");
	tcase_add_loop_test(tests, refused_drain_takes_nothing_and_opens_the_gates, 0,
			    sizeof(errors) / sizeof(errors[0]));
	tcase_add_test(tests, refused_drains_beside_charging_threads_lose_nothing);
	tcase_add_test(tests, every_combined_drain_is_told);
	tcase_add_test(tests, drain_refused_in_its_second_pass_keeps_the_rest);
	tcase_add_test(tests, cache_made_after_the_filter_is_atomic_and_the_old_one_stays);
	tcase_add_test(tests, membarrier_denied_from_the_start_means_atomic);
	tcase_add_test(tests, environment_cannot_ask_for_what_is_denied);
	return fault_run("fault", tests);
}
