/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * owner_storm.h - shared by the parts of the storm on owners.
 *
 *	owner_storm.c        rounds, verdict
 *	owner_storm_load.c   what the threads do: charges and uncharges of every kind
 *	owner_storm_hold.c   what they hold
 *	owner_storm_manage.c settings, readings, drains, walks
 *	owner_storm_fork.c   forks, and what the child does
 *	owner_storm_tree.c   the program's own books of the tree
 *	owner_storm_check.c  the invariants
 *
 * The program works in rounds. In a round everything runs, and what must be true at every moment is
 * looked at meanwhile; between two rounds everything stands still and the books are balanced.
 */
#ifndef OWNER_STORM_H
#define OWNER_STORM_H

#include "owner_stress.h"
#include "stat_private.h"

#define NR_PLACES 48
#define NR_HOLDINGS 24
#define NR_MAIL 16
#define DEEPEST 5
#define NR_ITEMS 2 /* charges move the first */
#define MAX_THREADS 64

/*
 * What the program knows of an owner. Its context points here; it is freed when no place, holding
 * or child needs it any more, and then used again, never unmapped.
 *
 * held: 63..40 how often it has changed, 39..0 units that callers hold in the subtree, or less:
 * raised after a charge and lowered before an uncharge. While held does not change, usage is no
 * less.
 */
struct node {
	struct pcpc_owner *owner;
	struct node *parent, *next;
	_Atomic uint32_t refs;
	uint32_t depth;
	bool fair; /* below the owner whose shares fit: nobody is refused there */
	_Atomic uint64_t held;
	_Atomic uint64_t highest_max; /* that it ever had; 0: none that can be told */
	_Atomic uint32_t maxes;	      /* how often it was changed */
	_Atomic bool forced;	      /* so it may be above */
	_Atomic int64_t own[NR_ITEMS], sum[NR_ITEMS]; /* of deltas: this owner's, the subtree's */
};

#define HELD_CHANGE (UINT64_C(1) << 40)
#define HELD_MASK (HELD_CHANGE - 1)

/* Where threads find owners; with the reference that create gave. */
struct place {
	pthread_mutex_t lock;
	struct node *node;
};

/* Units that a thread may give back, and perhaps a reference besides. */
struct holding {
	struct node *node;
	uint64_t units;
	bool reference;
	bool in_use; /* by the call in progress */
};

enum count {
	CHARGES,
	UNCHARGES,
	REFUSALS,
	UNSURE, /* -EAGAIN */
	SHUT,	/* -ESHUTDOWN */
	TIMED_OUT,
	FORCED,
	TRANSFERS,
	WAITS,
	CREATED,
	DESTROYED,
	DRAINS,
	POLLS,
	RECLAIMS,
	MAXES,
	WALKS,
	UPDATES,
	FORKS,
	COUNTS
};

struct thread {
	pthread_t thread;
	uint64_t random;
	uint64_t counts[COUNTS];
	uint64_t share; /* of what it holds where shares fit */
	struct holding holding[NR_HOLDINGS];
	bool reclaiming;
};

struct storm {
	struct options options;
	struct pcpc_domain *domain;
	struct node *root, *fair;
	uint64_t fair_share; /* of each thread */
	struct place place[NR_PLACES];
	struct thread thread[MAX_THREADS];
	pthread_mutex_t mail_lock;
	struct holding mail[NR_MAIL]; /* units that change hands */
	pthread_barrier_t rendezvous;
	_Atomic bool paused, finished;
	_Atomic uint64_t told, freed;
	_Atomic uint32_t forks;
	bool has_items; /* else charge deltas move a number that only the owner has */
	bool is_child;	/* a process where other threads' calls never end */
};

extern struct storm storm;
extern _Thread_local struct thread *storm_self; /* NULL: none of the load */

/* owner_storm_tree.c */
struct node *node_new(struct node *parent);
struct node *node_get(struct node *node);
void node_put(struct node *node);
void account(struct node *node, const struct node *top, uint64_t units, bool more);
void account_item(struct node *node, uint32_t item, int64_t delta);
const struct node *common_top(const struct node *one, const struct node *other);
bool within(const struct node *node, const struct node *top);
struct node *place_take(uint64_t *random);
int place_create(uint64_t *random);
int place_destroy(uint64_t *random);
void place_destroy_all(void);
void tree_begin(uint64_t *random);
void tree_before_fork(void);
void tree_after_fork(void);

/* owner_storm_hold.c */
struct holding *holding_for(struct thread *self, const struct node *node);
struct holding *some_holding(struct thread *self);
void empty_holding(struct holding *holding);
void hold(struct thread *self, struct holding *holding, struct node *node, uint64_t units);
void give_back(struct thread *self, struct holding *holding, uint64_t units);
void give_all_back(struct thread *self);
void swap_mail(struct thread *self);

/* owner_storm_load.c */
void *load(void *thread);
uint64_t reclaim(struct pcpc_owner *over, uint64_t wanted, void *context);
void count_event(struct pcpc_owner *owner, enum pcpc_event event, void *context);

/* owner_storm_manage.c */
void storm_manage(struct thread *self);
void storm_update(struct thread *self);
void storm_move(struct thread *self);

/* owner_storm_fork.c */
void storm_fork(struct thread *self);

/* owner_storm_check.c */
void check_node(struct node *node);
void check_freed(struct pcpc_owner *owner);
void check_books(void);
void check_end(void);

#endif
