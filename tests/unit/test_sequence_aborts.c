// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_sequence_aborts.c - aborts every sequence at every one of its instructions, as the kernel
 * would.
 *
 * The thread is single-stepped (trap flag), and at the chosen instruction inside the section the
 * trap handler moves it to the section's abort address. The rseq area is our own, so the kernel
 * itself aborts nothing. x86-64 only. Aborts by the kernel are in ../stress.
 */
#define _GNU_SOURCE
#include <signal.h>

#include "sequence_cases.h"
#include "unit_support.h"

#if PCPC_HAVE_RSEQ && defined(__x86_64__)
#include <ucontext.h>

#define TRAP_FLAG 0x100

static volatile uint64_t section_start, section_length, section_abort;
static volatile int abort_at, seen;
static volatile bool aborted;

static void on_step(int signal, siginfo_t *info, void *context)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;

	(void)signal;
	(void)info;
	if ((uint64_t)registers[REG_RIP] - section_start >= section_length || seen++ != abort_at)
		return;
	registers[REG_RIP] = (greg_t)section_abort;
	registers[REG_EFL] &= ~TRAP_FLAG;
	aborted = true;
}

static void on_switch(int signal, siginfo_t *info, void *context)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;

	(void)info;
	if (signal == SIGUSR1)
		registers[REG_EFL] |= TRAP_FLAG;
	else
		registers[REG_EFL] &= ~TRAP_FLAG;
}

static void setup(void)
{
	struct sigaction action = { .sa_flags = SA_SIGINFO };

	action.sa_sigaction = on_step;
	ck_assert_int_eq(sigaction(SIGTRAP, &action, NULL), 0);
	action.sa_sigaction = on_switch;
	ck_assert_int_eq(sigaction(SIGUSR1, &action, NULL), 0);
	ck_assert_int_eq(sigaction(SIGUSR2, &action, NULL), 0);
}

/* Not inlined, so that one descriptor belongs to each. */
__attribute__((noinline)) static enum pcpc_outcome commit_once(const struct pcpc_place *place,
							       struct pcpc_stock *stock,
							       uint32_t slot, pcpc_word old_word,
							       pcpc_word new_word)
{
	return pcpc_rseq_commit(place, stock, slot, old_word, new_word);
}

__attribute__((noinline)) static enum pcpc_outcome insert_once(const struct pcpc_place *place,
							       struct pcpc_stock *stock,
							       uint32_t slot, pcpc_word old_word,
							       pcpc_word new_word)
{
	return pcpc_rseq_insert(place, stock, slot, old_word, new_word);
}

/* Aborts at the nth instruction of the section; false: the section has no so many. */
static bool abort_once(sequence_fn *sequence, int nth)
{
	const struct pcpc_place place = place_of(false, CPU);
	struct pcpc_stock stock = make_stock(), before = stock;
	enum pcpc_outcome outcome;

	reset_area();
	seen = 0;
	abort_at = nth;
	aborted = false;
	raise(SIGUSR1);
	outcome = sequence(&place, &stock, 2, stock.slot[2], newcomer);
	raise(SIGUSR2);
	ck_assert(area_intact());
	if (!aborted) {
		ck_assert_int_eq(outcome, PCPC_DONE);
		ck_assert_uint_eq(stock.slot[2], newcomer);
		return false;
	}
	ck_assert_int_eq(outcome, PCPC_ABORTED);
	ck_assert_mem_eq(&stock, &before, sizeof(stock));
	return true;
}

/* Section 4: "every operation has one committing store ... can be interrupted anywhere, and can be
 * taken back by doing nothing." */
START_TEST(an_abort_at_any_instruction_stores_nothing)
{
	sequence_fn *sequence = _i ? insert_once : commit_once;
	const struct pcpc_place place = place_of(false, CPU);
	struct pcpc_stock stock = make_stock();
	const struct descriptor *descriptor;
	int instructions = 0;

	reset_area();
	ck_assert_int_eq(sequence(&place, &stock, 2, stock.slot[2], newcomer), PCPC_DONE);
	descriptor = (const struct descriptor *)(uintptr_t)area.rseq_cs;
	section_start = descriptor->start;
	section_length = descriptor->length;
	section_abort = descriptor->abort;
	while (abort_once(sequence, instructions))
		instructions++;
	unit_note("%s: aborted at each of %d instructions", _i ? "insert" : "commit", instructions);
	/* the steps S1, S2, S3 and the store; and seven owners besides */
	ck_assert_int_ge(instructions, _i ? 7 + 28 : 7);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sequence aborts");
	TCase *tests = unit_case(suite, "aborts");

	tcase_add_checked_fixture(tests, setup, NULL);
	tcase_add_loop_test(tests, an_abort_at_any_instruction_stores_nothing, 0, 2);
	return unit_run(suite);
}

#else

int main(void)
{
	unit_note("skipped: single-stepping a sequence is written for x86-64 and needs sequences");
	return UNIT_SKIP;
}

#endif
