/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * stat_storm.h - shared by the parts of the storm on statistics.
 *
 *	stat_storm.c        rounds, verdict
 *	stat_storm_load.c   what the threads do: updates, charges with deltas, owners that come and
 *go stat_storm_read.c   flushes and reads, and what must be true of them at every moment
 *	stat_storm_signal.c timers, and handlers that update
 *	stat_storm_fork.c   forks, and what the child does
 *	stat_storm_check.c  the program's own books, and the invariants when all stands still
 *
 * The program works in rounds. In a round everything runs, and what must be true at every moment is
 * looked at meanwhile; between two rounds everything stands still and the books are balanced.
 */
#ifndef STAT_STORM_H
#define STAT_STORM_H

#include "stat_private.h"

#include "owner_stress.h"

#define NR_FIXED 6 /* owners that live all the time; 0: the root */
#define NR_PLACES 20
#define NR_HOLDINGS 8
#define MAX_THREADS 32
#define MOST_NODES 4096 /* owners that are not freed yet */

/* Items. */
#define RISING 0  /* only ever goes up */
#define PAIRED 1  /* goes up and down, by any amount */
#define COUPLED 2 /* moves with units, one for one */
#define NR_ITEMS 3
#define NR_NUMA 2
#define NR_KEYS (NR_ITEMS * NR_NUMA)

/*
 * What the program knows of an owner. Its context points here; never freed before the end.
 *
 * begun, finished: how much RISING was raised in the subtree by updates that have begun, or have
 * returned; of owners that are gone too.
 */
struct node {
	struct pcpc_owner *owner;
	struct node *parent, *next;
	uint32_t slot; /* in the list of those that are not freed */
	_Atomic int64_t asked[NR_KEYS];
	_Atomic int64_t gone[NR_KEYS]; /* of those below that were freed */
	_Atomic int64_t begun, finished;
	_Atomic int64_t seen; /* the highest value of RISING that a read has returned */
};

/* Where threads find owners that come and go; with the reference that create gave. */
struct place {
	pthread_mutex_t lock;
	struct node *node;
};

/* Units that a thread may give back, with as much of COUPLED; they keep their owner. */
struct holding {
	struct node *node;
	uint64_t units;
};

enum count {
	UPDATES,
	LATE, /* of owners that were being destroyed, or had been */
	CHARGES,
	READS,
	EXACT_READS,
	FLUSHES,
	DRAINS,
	CREATED,
	DESTROYED,
	POLLS,
	MOVES,
	FORKS,
	SIGNALS,
	COUNTS
};

struct thread {
	pthread_t thread;
	timer_t timer;
	uint64_t random, handler_random;
	uint64_t counts[COUNTS];
	struct holding holding[NR_HOLDINGS];
	struct node *volatile young; /* handlers may update it while it stands here */
};

struct storm {
	struct options options;
	struct pcpc_domain *domain;
	struct node *fixed[NR_FIXED];
	struct place place[NR_PLACES];
	struct thread thread[MAX_THREADS];
	pthread_barrier_t rendezvous;
	_Atomic bool paused, finished;
	_Atomic uint64_t freed;
	_Atomic uint32_t forks;
	bool is_child; /* a process where other threads' calls never end */

	pthread_mutex_t nodes_lock;
	struct node *node[MOST_NODES]; /* not freed by the library */
	uint32_t nr_nodes;
	struct node *all;
};

extern struct storm storm;
extern _Thread_local struct thread *storm_self;

/* stat_storm_check.c */
struct node *node_create(struct node *parent);
void check_freed(struct pcpc_owner *owner);
void check_books(void);
void check_end(void);

/* stat_storm_load.c */
void *load(void *thread);
struct node *place_take(uint64_t *random);
void update(struct node *node, uint64_t *random);
void destroy_places(void);

/* stat_storm_read.c */
void read_node(struct thread *self, struct node *node);

/* stat_storm_signal.c */
void storm_set_handler(void);
void storm_start_timer(struct thread *self);
void storm_stop_timer(struct thread *self);

/* stat_storm_fork.c */
void storm_fork(struct thread *self);

#endif
