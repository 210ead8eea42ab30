/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * stress.h - shared by the parts of the stress program.
 *
 *	stress.c         options, rounds, report, verdict
 *	stress_load.c    worker threads, signal handler, drainers: everything that charges
 *	stress_check.c   the invariants, and what was violated
 *	stress_inject.c  delays and disturbances between the steps; injection builds only
 *
 * The program works in rounds. In a round everything runs; between two rounds everything stands
 * still and the books are balanced to the unit.
 */
#ifndef STRESS_H
#define STRESS_H

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cache_private.h"

#define MAX_OWNERS 256
#define MAX_THREADS 64
#define MAX_CPUS 4 /* that the program uses: so there are more threads than CPUs anywhere */

/* What can be found to be wrong. */
enum violation {
	UNITS_LOST,	  /* usage(owner) is not held + stocked (G1) */
	DELTA_LOST,	  /* delta settled + in slots is not what was asked for */
	DUPLICATE,	  /* an owner in two slots of a stock where that must not be (G5) */
	ABOVE_HIGH,	  /* more stocked than high allows (G12) */
	CHANGED_CLOSED,	  /* a word or a gate changed while a drain had closed the gate */
	GATE_LEFT,	  /* a gate is closed and no drain is running */
	LEFT_AFTER_DRAIN, /* a word is still there after a drain of everything */
	BAD_WORD,	  /* a word, or a deferred amount, that nobody can have made */
	TWICE_DIFFERED,	  /* a comparison answered something else when repeated before the store */
	DRAIN_FAILED,	  /* a drain answered an error, or the drains were miscounted */
	VIOLATIONS
};

/* What one context has done. Those up to drains are required to reach a minimum. */
enum count {
	HITS,
	EVICTIONS,
	TRIMS,
	SIGNALS,
	MIGRATIONS,
	DRAINS,
	CHARGES,
	UNCHARGES,
	BYPASSES,
	CLEARED,  /* deltas that left their slot because they were full */
	DRAINED,  /* words a drain took */
	NESTED,	  /* operations made in the middle of another one, beside those of signals */
	ATTEMPTS, /* sequences begun; injection builds only */
	MERGED,	  /* duplicates that a refill merged (atomic engine) */
	CLOSED,	  /* lines looked at while their gate was closed */
	COUNTS
};

/*
 * The books of one flow of control: a thread, its signal handler, or an operation nested in another
 * one. Only that flow writes them, and they are read when everything stands still.
 */
struct context {
	uint64_t random;
	uint64_t counts[COUNTS];
	int64_t held[MAX_OWNERS + 1];  /* units charged and not uncharged */
	int64_t asked[MAX_OWNERS + 1]; /* the sum of all deltas asked for */
};

enum level { THREAD, HANDLER, NEST, LEVELS };

struct worker {
	pthread_t thread;
	pid_t tid;
	timer_t timer;
	/* Which context runs. Written by this thread and its handler only; the handler puts it
	 * back. */
	volatile sig_atomic_t level;
	volatile uint32_t owner; /* what THREAD is working on; advice for nested operations */
	int cpu;		 /* where it was seen last */
	struct context context[LEVELS];
};

struct options {
	enum pcpc_engine engine, expected;
	enum pcpc_index index;
	uint32_t stocks, owners, threads;
	uint32_t period; /* us between two signals to a thread */
	uint64_t seed;
	double seconds;
	const char *twin;	  /* the name of this broken twin, or NULL */
	enum violation violation; /* that it must show */
};

struct stress {
	struct options options;
	struct pcpc_cache *cache;
	int cpus[MAX_CPUS];
	uint32_t nr_cpus;
	struct pcpc_marks marks[MAX_OWNERS + 1]; /* constant per owner, so that G12 can be told */

	/* The counters a user of the cache keeps. Relaxed: they are read when all stand still. */
	atomic_int_fast64_t usage[MAX_OWNERS + 1];
	atomic_int_fast64_t settled[MAX_OWNERS + 1]; /* deltas */

	struct worker worker[MAX_THREADS];
	struct worker drainer[2];
	struct worker intruder;
	struct context check; /* what checking itself did */

	pthread_barrier_t rendezvous;
	atomic_bool paused, finished;
	sem_t found; /* posted when something is wrong */
	atomic_uint_fast64_t violations[VIOLATIONS];
};

extern struct stress stress;
extern _Thread_local struct worker *stress_self;

/* stress_load.c */
uint64_t stress_random(struct context *context);
void stress_settle(struct context *context, const struct pcpc_deferred *deferred);
void stress_operate(struct context *context, uint32_t owner);
uint32_t stress_some_owner(struct context *context);
void stress_migrate(struct context *context, pid_t tid);
bool stress_start(void);
void stress_join(void);
uint32_t stress_parties(void);
int stress_drain_all(void);

/* stress_check.c */
void stress_violation(enum violation violation, uint32_t owner, int64_t expected, int64_t found);
const char *stress_violation_name(enum violation violation);
void stress_print_violations(void);
bool stress_violated(void);
struct pcpc_stock *stress_line(uint32_t index, uint32_t number);
void stress_check_line(const struct pcpc_stock *stock, uint32_t number);
void stress_check_books(void);
void stress_check_empty(void);

/* stress_inject.c; the last is the body of the intruder thread of that twin */
void stress_trap(int signal);
void stress_intrude(struct context *context);

#endif
