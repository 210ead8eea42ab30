/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * guest.h - what the parts of the module pcpc_guest share.
 *
 *	guest_main.c	parameters
 *	guest_run.c	rounds of load, the check after each, the verdict
 *	guest_load.c	who charges: tasks, softirqs, hard interrupts, and what disturbs them
 *	guest_charge.c	a small charging subsystem on stock.h: stocks, drains, CPU death
 *	guest_locked.c	the same on memcg's locked stock, for contrast
 *	guest_counter.c	counters of a tree of owners; counts of what happened
 *
 * No code here is of use outside of the test.
 */
#ifndef PCPCHARGE_TESTS_GUEST_H
#define PCPCHARGE_TESTS_GUEST_H

#include <linux/atomic.h>
#include <linux/percpu.h>
#include <linux/prandom.h>
#include <linux/types.h>

#define GUEST_OWNERS 12 /* ids 1..12: more than a stock has slots */
#define GUEST_BATCH 16u /* what a miss takes; also the high mark */
#define GUEST_LOW 8u
#define GUEST_DELTA_BATCH 8u
#define GUEST_MAX 64 /* of owner 1; nobody else has one */

/* What is left out, and must be found. */
enum guest_twin {
	GUEST_WHOLE,  /* nothing */
	GUEST_COMMIT, /* the exchange: compared and stored by two instructions */
	GUEST_INSERT, /* interrupts stay on in an insert */
	GUEST_DEATH,  /* the drain of a CPU that went */
};

extern enum guest_twin guest_twin;
extern unsigned int guest_seconds;
extern unsigned int guest_seed;

/* What is counted; guest_run.c says which must be 0 and which must not. */
enum guest_count {
	GUEST_HITS,
	GUEST_MISSES,
	GUEST_REFUSED,	/* owner 1 was at its max */
	GUEST_TRIMS,	/* a slot was trimmed to low */
	GUEST_EVICTED,	/* another owner's word was taken for an insert */
	GUEST_DELTAS,	/* deltas applied */
	GUEST_DRAINED,	/* words taken by drains that were asked for */
	GUEST_SOFT,	/* operations of a softirq that interrupted one in progress */
	GUEST_HARD,	/* the same of a hard interrupt */
	GUEST_MIGRATED, /* tasks moved to another CPU between search and commit */
	GUEST_RETRIED,	/* commits and inserts that found another word */
	GUEST_OFF,	/* CPUs taken off, and on */
	GUEST_ON,
	GUEST_BYPASSED, /* operations that the stock could have served, and did not */
	GUEST_DOUBLED,	/* stocks that held an owner twice */
	GUEST_LEFT,	/* words found in the stock of a CPU that comes */
	GUEST_LOST,	/* units and deltas that no books explain */
	GUEST_LOCKED_HITS,
	GUEST_LOCKED_BYPASSED, /* operations that found the locked stock taken ... */
	GUEST_LOCKED_SETTLING, /* ... of these, while its holder settled */
	GUEST_COUNTS,
};

void guest_count_add(enum guest_count what, unsigned long n);
unsigned long guest_counted(enum guest_count what);

static inline void guest_count(enum guest_count what)
{
	guest_count_add(what, 1);
}

/* A counter of a tree; a charge is of it and of all above it. */
struct guest_counter {
	atomic_long_t usage;
	long max;
	struct guest_counter *parent;
};

/* Root, groups, and the owners by id. */
#define GUEST_GROUPS 3

struct guest_tree {
	struct guest_counter root, group[GUEST_GROUPS], owner[GUEST_OWNERS + 1];
};

void guest_tree_init(struct guest_tree *tree);
/* True, or false with all levels as before: one of them is at its max. Any context. */
bool guest_counter_charge(struct guest_counter *counter, long n);
void guest_counter_uncharge(struct guest_counter *counter, long n);

/* What one context holds, and has moved the statistic by. Nobody else writes it. */
struct guest_books {
	long held[GUEST_OWNERS + 1], locked[GUEST_OWNERS + 1], moved[GUEST_OWNERS + 1];
	struct rnd_state rnd;
};

/*
 * guest_charge.c. Charge and uncharge n units (1..GUEST_BATCH) and move the owner's statistic by
 * delta. Any context but NMI; they never wait. A charge is false where the owner is at its max.
 */
bool guest_charge(u32 owner, u32 n, int delta);
void guest_uncharge(u32 owner, u32 n, int delta);
/* Take these owners' words (bit: id) out of the running CPU's stock, and settle them. */
unsigned int guest_take_here(unsigned long owners);
/* The same on every CPU that is online; waits. */
void guest_drain(unsigned long owners);
/* With interrupts off: is an owner in two slots of this CPU's stock? Counted. */
void guest_check_here(void);
int guest_charge_start(void);
void guest_charge_stop(void);
/* While nothing charges: does it all add up? held: by owner. */
void guest_charge_check(const long *held, const long *moved);

/* guest_locked.c: the same on the locked stock, without a statistic. */
bool guest_locked_charge(u32 owner, u32 n);
void guest_locked_uncharge(u32 owner, u32 n);
void guest_locked_start(void);
void guest_locked_check(const long *held);

/*
 * guest_load.c: everything that charges, begun and ended, as often as one likes; and what it holds
 * then. A load that has ended leaves a CPU off. guest_load_stop() also after a start that failed.
 */
void guest_load_init(void);
int guest_load_start(void);
void guest_load_stop(void);
void guest_all_cpus_on(void);
void guest_load_sum(struct guest_books *ret_sum);
/* Uncharges all of it. */
void guest_load_give_back(void);
/* Called between search and commit: each so many times an interrupt, now and then another CPU.
 * Nothing while interrupts are off. */
void guest_disturb(unsigned int every);

/* guest_run.c */
int guest_run(void);

#endif
