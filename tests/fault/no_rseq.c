// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * no_rseq.c - a C library that registers no rseq area, and operations that may not call the system.
 *
 * The programs that are looked at are this one, run again with a role: what the C library does is
 * settled before main().
 */
#define _GNU_SOURCE
#include "fault_support.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cache_private.h"

#define PAIRS 1000000

extern const unsigned int __rseq_size __attribute__((weak));

static struct ledger ledger;

static char no_area[] = "GLIBC_TUNABLES=glibc.pthread.rseq=0";

/* What is not such a program says so. */
static void must_have_no_area(void)
{
	if (&__rseq_size && __rseq_size)
		_exit(FAULT_SKIP);
}

static void *consume_of_main(void *unused)
{
	(void)unused;
	/* Owner 1 is stocked by the main thread only. */
	return ledger_consume(&ledger, 1, 1, 0) ? &ledger : NULL;
}

/* AUTO is atomic, RSEQ and mm_cid are refused, and a thread keeps its index wherever it runs. */
static int be_sticky(void)
{
	struct walker walker = { .ledger = &ledger, .first_owner = 1, .nr_owners = 9, .random = 6 };
	int last = last_allowed_cpu();
	pthread_t thread;
	void *hit;
	uint32_t i;

	must_have_no_area();
	MUST(!engine_works(PCPC_ENGINE_RSEQ));
	MUST(!mm_cid_works());
	ledger_init(&ledger, make_cache(PCPC_ENGINE_AUTO, PCPC_INDEX_AUTO));
	MUST(pcpc_cache_engine(ledger.cache) == PCPC_ENGINE_ATOMIC);
	MUST(ledger.cache->index == PCPC_INDEX_CPU);

	pin_to(allowed_cpu(0));
	ledger_stock(&ledger, 1, 20, 0);
	pin_to(last);
	MUST(ledger_consume(&ledger, 1, 20, 0));
	ledger_refill(&ledger, 1, 20, 0);
	/* The second thread has the second index, where there is one. */
	MUST(pthread_create(&thread, NULL, consume_of_main, NULL) == 0);
	MUST(pthread_join(thread, &hit) == 0);
	MUST(!hit == (ledger.cache->nr_indices > 1));
	if (hit)
		ledger_refill(&ledger, 1, 1, 0);

	for (i = 0; i < 50000; i++) {
		walker_step(&walker);
		if (i % 1000 == 0)
			MUST(ledger_drain(&ledger) == 0);
	}
	walker_finish(&walker);
	ledger_must_end_empty(&ledger);
	pcpc_cache_destroy(ledger.cache);
	return EXIT_SUCCESS;
}

/* From here on this thread may return from signals and end; anything else kills the process. */
static bool allow_nothing(void)
{
	const struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};

	return install_filter(code, sizeof(code) / sizeof(code[0]), 0);
}

/* Hits, trims, evictions and bypasses, none of which may call the system (G6). Fails by its death,
 * or by its status, for even a message would be a system call. */
static int be_silent(enum pcpc_engine engine)
{
	uint32_t i, owner;

	ledger_init(&ledger, make_cache(engine, PCPC_INDEX_AUTO));
	if (!allow_nothing())
		return FAULT_SKIP;
	for (i = 0; i < PAIRS; i++) {
		owner = i % 1000 ? 1 + i % 7 : 1 + i / 1000 % LEDGER_OWNERS;
		ledger_charge(&ledger, owner, 1, 1);
		ledger_refill(&ledger, owner, 1, -1);
		if (i % 100 == 0)
			ledger_stock(&ledger, owner, i % 200, 3);
	}
	for (owner = 1; owner <= LEDGER_OWNERS; owner++)
		if ((uint64_t)atomic_load(&ledger.out[owner]) !=
		    pcpc_cache_stocked(ledger.cache, owner))
			_exit(EXIT_FAILURE);
	_exit(EXIT_SUCCESS);
}

/* Design section 6, atomic engine: "index from the rseq area if registered, else a sticky
 * per-thread index"; rseq.md 2.3, GLIBC_TUNABLES. */
START_TEST(tunable_switches_to_sticky_atomic)
{
	int status = run_role("sticky", no_area, NULL);

	SKIP_IF(status == FAULT_SKIP, "this C library does not know the tunable");
	ck_assert_int_eq(status, EXIT_SUCCESS);
}
END_TEST

static void deny_rseq(void)
{
	const struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rseq, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	if (!install_filter(code, sizeof(code) / sizeof(code[0]), 0))
		_exit(FAULT_SKIP);
}

/* rseq.md 2.3: container engines that refuse rseq. */
START_TEST(container_without_rseq_is_sticky_atomic)
{
	int status = run_role("sticky", NULL, deny_rseq);

	SKIP_IF(status == FAULT_SKIP, "no seccomp filters here");
	ck_assert_int_eq(status, EXIT_SUCCESS);
}
END_TEST

/* Contract of pcpc_cache_consume(): "Never blocks, locks, allocates or calls the system", with each
 * way of finding the index. */
START_TEST(sticky_operations_call_no_system)
{
	int status;

	SKIP_IF(FAULT_SANITIZED, "sanitizers call the system");
	status = run_role("silent-atomic", no_area, NULL);
	SKIP_IF(status == FAULT_SKIP, "no seccomp filters here");
	ck_assert_int_eq(status, EXIT_SUCCESS);
}
END_TEST

START_TEST(atomic_operations_call_no_system)
{
	int status;

	SKIP_IF(FAULT_SANITIZED, "sanitizers call the system");
	status = run_role("silent-atomic", NULL, NULL);
	SKIP_IF(status == FAULT_SKIP, "no seccomp filters here");
	ck_assert_int_eq(status, EXIT_SUCCESS);
}
END_TEST

START_TEST(rseq_operations_call_no_system)
{
	int status;

	SKIP_IF(!engine_works(PCPC_ENGINE_RSEQ), "no rseq engine");
	status = run_role("silent-rseq", NULL, NULL);
	SKIP_IF(status == FAULT_SKIP, "no seccomp filters here");
	ck_assert_int_eq(status, EXIT_SUCCESS);
}
END_TEST

/* The filter of the three tests above does kill. */
START_TEST(a_system_call_would_be_seen)
{
	int status = run_role("loud", NULL, NULL);

	SKIP_IF(status == FAULT_SKIP, "no seccomp filters here");
	ck_assert_int_eq(status, 128 + SIGSYS);
}
END_TEST

int main(int argc, char **argv)
{
	TCase *tests;

	unsetenv("PCPC_ENGINE");
	if (argc > 1 && !strcmp(argv[1], "sticky"))
		return be_sticky();
	if (argc > 1 && !strcmp(argv[1], "silent-atomic"))
		return be_silent(PCPC_ENGINE_ATOMIC);
	if (argc > 1 && !strcmp(argv[1], "silent-rseq"))
		return be_silent(PCPC_ENGINE_RSEQ);
	if (argc > 1)
		return allow_nothing() ? (int)syscall(SYS_getcpu, NULL, NULL, NULL) : FAULT_SKIP;
	tests = tcase_create("no rseq");
	tcase_add_test(tests, tunable_switches_to_sticky_atomic);
	tcase_add_test(tests, container_without_rseq_is_sticky_atomic);
	tcase_add_test(tests, sticky_operations_call_no_system);
	tcase_add_test(tests, atomic_operations_call_no_system);
	tcase_add_test(tests, rseq_operations_call_no_system);
	tcase_add_test(tests, a_system_call_would_be_seen);
	return fault_run("fault", tests);
}
