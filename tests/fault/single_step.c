// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * single_step.c - every instruction of a consume, a refill and a drain, one at a time, by ptrace.
 *
 * Each step aborts the sequence it is in, so only the bound on retries brings an operation to its
 * end (rseq.md 0.5; DESIGN.md section 6: "Retries are bounded (8); past the bound the operation
 * bypasses the stock"). single_step.sh does the same with gdb.
 */
#define _GNU_SOURCE
#include "fault_support.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

/* Far above what the operations take (hundreds each), far below for ever. */
#define MOST_STEPS 200000

static const enum pcpc_engine engines[] = { PCPC_ENGINE_RSEQ, PCPC_ENGINE_ATOMIC };

static struct ledger ledger;

/* The child. Stops itself with SIGUSR1 where the stepping is to begin, SIGUSR2 where it has ended.
 */
static void be_stepped(enum pcpc_engine engine)
{
	struct walker walker = { .ledger = &ledger, .first_owner = 1, .nr_owners = 9, .random = 2 };
	uint32_t i;

	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
		_exit(FAULT_SKIP);
	ledger_init(&ledger, make_cache(engine, PCPC_INDEX_CPU));
	ledger_stock(&ledger, 1, 30, 4);
	raise(SIGUSR1);
	if (ledger_consume(&ledger, 1, 10, 1))
		ledger_refill(&ledger, 1, 10, 1);
	ledger_stock(&ledger, 1, 5, 2);
	for (i = 0; i < 20; i++)
		walker_step(&walker);
	MUST(ledger_drain(&ledger) == 0);
	raise(SIGUSR2);
	walker_finish(&walker);
	ledger_must_end_empty(&ledger);
	_exit(EXIT_SUCCESS);
}

/* Steps from the first mark to the second, and lets it run from there. Returns the steps. */
static unsigned int step_through(pid_t child, int *ret_status)
{
	bool stepping = false;
	unsigned int steps = 0;
	int status, number;

	for (;;) {
		MUST(waitpid(child, &status, 0) == child);
		*ret_status = status;
		if (!WIFSTOPPED(status))
			return steps;
		number = WSTOPSIG(status);
		if (number == SIGUSR1)
			stepping = true;
		else if (number == SIGUSR2)
			stepping = false;
		else if (number == SIGTRAP && ++steps > MOST_STEPS)
			return steps;
		if (number == SIGUSR1 || number == SIGUSR2 || number == SIGTRAP)
			number = 0;
		/* Any other signal is its own, and ends it. */
		MUST(ptrace(stepping ? PTRACE_SINGLESTEP : PTRACE_CONT, child, NULL,
			    (void *)(intptr_t)number) == 0);
	}
}

START_TEST(single_stepping_ends_with_the_right_sums)
{
	unsigned int steps;
	pid_t child;
	int status;

	SKIP_IF(FAULT_SANITIZED, "would step through the sanitizer");
	SKIP_IF(!engine_works(engines[_i]), "no rseq engine");
	fflush(NULL);
	child = fork();
	if (child == 0)
		be_stepped(engines[_i]);
	steps = step_through(child, &status);
	SKIP_IF(WIFEXITED(status) && WEXITSTATUS(status) == FAULT_SKIP, "no ptrace here");
	if (WIFSTOPPED(status))
		kill(child, SIGKILL);
	ck_assert_uint_le(steps, MOST_STEPS);
	/* It was stepped. */
	ck_assert_uint_gt(steps, 1000);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), EXIT_SUCCESS);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("single step");

	unsetenv("PCPC_ENGINE");
	tcase_add_loop_test(tests, single_stepping_ends_with_the_right_sums, 0,
			    sizeof(engines) / sizeof(engines[0]));
	return fault_run("fault", tests);
}
