// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * stress_inject.c - delays and disturbances between the steps of an operation; the other half of
 * stress_hooks.h.
 *
 * An interruption at one given instruction is rare. Here a sequence takes microseconds now and
 * then, and between the search and the sequence a thread yields, is moved, gets a signal, or does
 * other operations on the same stock, so that each of these falls into each gap thousands of times
 * a second.
 */
#define _GNU_SOURCE
#include "stress.h"

#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SHORT_SPIN 0x7fff /* about 10 us */
#define LONG_SPIN 0x7ffff /* about 200 us: a tick, or a fence, falls in */
#define CLOSED_LINES 64

#ifdef STRESS_STAGED
#define WATCH_ODDS 1
#else
#define WATCH_ODDS 8
#endif

/* Named by assembly text only. */
__attribute__((used, tls_model("initial-exec"))) _Thread_local uint32_t stress_spin[STRESS_SPINS];

/*
 * Each delay is drawn once in so many times; 0: never. Most sequences have none, so that many
 * operations are done. In the twins, and in the control run that has their delays and nothing left
 * out, time is spent where a missing step would matter: mostly between the last comparison and the
 * committing store.
 */
static const uint32_t spin_odds[STRESS_SPINS] = {
#ifdef STRESS_STAGED
	[STRESS_SPIN_BEFORE] = 2,
	[4] = 2,
	[STRESS_SPIN_AFTER] = 2,
	[STRESS_SPIN_TWICE] = 2,
#else
	[1] = 8, [2] = 8, [3] = 8, [4] = 8, [STRESS_SPIN_TWICE] = 2,
#endif
};

static uint32_t some_spin(uint64_t random, uint32_t odds)
{
	if (!odds || random / 256 % odds)
		return 0;
	return (uint32_t)(random >> 16) & (random % 256 ? SHORT_SPIN : LONG_SPIN);
}

static void spin(uint32_t loops)
{
	while (loops--)
		__asm__ __volatile__("");
}

/*
 * Other operations in the middle of one, as a signal handler at this place would make them: on the
 * same owner, and on those it shares its stock with, so that slots become empty, are inserted into
 * and evicted under the outer operation.
 */
static void nest(struct worker *worker)
{
	struct context *context = &worker->context[NEST];
	uint32_t stocks = stress.cache->stocks_per_cpu, owner = worker->owner, i;
	uint32_t first = (owner - 1) / PCPC_STOCK_SLOTS % stocks * PCPC_STOCK_SLOTS + 1;
	sig_atomic_t level = worker->level;
	uint64_t random;

	worker->level = NEST;
	for (i = 0; i < 4; i++) {
		context->counts[NESTED]++;
		stress_operate(context, owner);
		random = stress_random(context);
		owner = first + (uint32_t)(random % PCPC_STOCK_SLOTS) +
			(uint32_t)(random >> 8) % 2 * stocks * PCPC_STOCK_SLOTS;
		if (owner > stress.options.owners || random >> 16 & 1)
			owner = worker->owner;
	}
	worker->level = level;
}

/* Before every sequence, and after every eviction. */
void stress_hook(enum stress_point point)
{
	struct worker *worker = stress_self;
	struct context *context;
	uint32_t i;

	if (!worker)
		return;
	context = &worker->context[worker->level];
	if (point == STRESS_SEARCHED) {
		context->counts[ATTEMPTS]++;
		for (i = 0; i < STRESS_SPINS; i++)
			stress_spin[i] = some_spin(stress_random(context), spin_odds[i]);
	}
	/* A handler and a nested operation are left alone, so that nesting ends. */
	if (worker->level != THREAD)
		return;
	switch (stress_random(context) % 64) {
	case 0:
		sched_yield();
		break;
	case 1:
		stress_migrate(context, worker->tid);
		break;
	case 2:
		syscall(SYS_tgkill, getpid(), worker->tid, SIGUSR1);
		break;
	case 3:
	case 4:
	case 5:
		nest(worker);
		break;
	default:
		break;
	}
}

/* Lines whose gate is closed, that is those of the drain that is at its fence now: nobody else may
 * write them until it opens them. */
static uint32_t closed_lines(struct pcpc_stock **ret_lines, uint32_t *ret_numbers)
{
	uint32_t index, number, found = 0;

	for (index = 0; index < stress.cache->nr_indices; index++) {
		for (number = 0; number < stress.cache->stocks_per_cpu; number++) {
			if (found < CLOSED_LINES && PCPC_LOAD(stress_line(index, number)->gate)) {
				ret_lines[found] = stress_line(index, number);
				ret_numbers[found++] = number;
			}
		}
	}
	return found;
}

/* Under the drain mutex, after the fence. */
static void watch_closed_lines(void)
{
	struct pcpc_stock *lines[CLOSED_LINES];
	uint32_t numbers[CLOSED_LINES], count = closed_lines(lines, numbers), i, word;
	pcpc_word before[CLOSED_LINES][PCPC_STOCK_SLOTS], now;

	for (i = 0; i < count; i++) {
		for (word = 0; word < PCPC_STOCK_SLOTS; word++)
			before[i][word] = PCPC_LOAD(lines[i]->slot[word]);
		stress_check_line(lines[i], numbers[i]);
	}
	spin(some_spin(stress_random(&stress.check), WATCH_ODDS));
	for (i = 0; i < count; i++) {
		stress.check.counts[CLOSED]++;
		if (PCPC_LOAD(lines[i]->gate) != 1)
			stress_violation(CHANGED_CLOSED, 0, 1, PCPC_LOAD(lines[i]->gate));
		for (word = 0; word < PCPC_STOCK_SLOTS; word++) {
			now = PCPC_LOAD(lines[i]->slot[word]);
			if (now != before[i][word])
				stress_violation(CHANGED_CLOSED, pcpc_word_owner(before[i][word]),
						 (int64_t)before[i][word], (int64_t)now);
		}
	}
}

/* In place of the drain's fence. */
int stress_fence(int cpu)
{
#ifdef TWIN_NO_FENCE
	int r = 0;

	(void)cpu;
#else
	int r = pcpc_fence_sequences(cpu);
#endif
	if (r == 0)
		watch_closed_lines();
	return r;
}

/* What a compiler might make of two fields that are written together. One that finds the gate
 * closed would leave it closed for ever: not harmless either, but it would end the load on that
 * line before the other mistake has cost a unit. So it waits. */
void stress_store_header(void *stock, uint32_t next)
{
	typedef uint64_t __attribute__((may_alias)) header;
	struct worker *worker = stress_self;
	uint64_t both;

	do
		both = __atomic_load_n((header *)stock, __ATOMIC_RELAXED);
	while (both & UINT32_MAX);
	if (worker)
		spin(some_spin(stress_random(&worker->context[worker->level]), 1));
	both = (uint64_t)next << 32;
	__atomic_store_n((header *)stock, both, __ATOMIC_RELAXED);
}

/* One compare-and-exchange among restartable sequences: takes a unit out of any slot of any CPU. */
void stress_intrude(struct context *context)
{
	uint64_t random = stress_random(context);
	struct pcpc_stock *stock =
		stress_line((uint32_t)stress.cpus[random % stress.nr_cpus],
			    (uint32_t)(random >> 8) & (stress.cache->stocks_per_cpu - 1));
	uint32_t slot = (uint32_t)(random >> 24) % PCPC_STOCK_SLOTS;
	pcpc_word word = PCPC_LOAD(stock->slot[slot]);

	if (pcpc_word_count(word) &&
	    pcpc_atomic_commit(NULL, stock, slot, word,
			       word - ((pcpc_word)1 << PCPC_COUNT_SHIFT)) == PCPC_DONE)
		context->held[pcpc_word_owner(word) % (MAX_OWNERS + 1)]++;
}

/*
 * A repeated comparison has trapped. There is no way back into the sequence, so the verdict is
 * given here, with what may be called in a signal handler.
 */
void stress_trap(int signal)
{
	static const char text[] = "trap: a comparison differed when repeated before the store\n";
	bool wanted = stress.options.twin && stress.options.violation == TWICE_DIFFERED;

	(void)signal;
	(void)!write(STDOUT_FILENO, text, strlen(text));
	_exit(wanted ? 0 : 1);
}
