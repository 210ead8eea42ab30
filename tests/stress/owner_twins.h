/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * owner_twins.h - shared by the parts of owner_twins: owner_twins.c (the races) and
 * owner_twins_stage.c (threads that stop where they are told, and what is put into the library).
 */
#ifndef OWNER_TWINS_H
#define OWNER_TWINS_H

#include "owner_stress.h"

#include <semaphore.h>

#define DELTA_BATCH 100

/* What is left out. */
enum twin {
	NO_TWIN,
	LATE_SECTION,	  /* the section of an uncharge begins after the refill, not before */
	OUTSIDE_SECTION,  /* the delta that an uncharge clears is settled outside */
	NO_LIVE_GRACE,	  /* a sweep does not wait before it drains */
	NO_IN_HAND_GRACE, /* nor before it frees */
	IDLE_SINCE,    /* a sweep frees owners that were in somebody's hands in that grace period */
	USAGE_IGNORED, /* a sweep frees owners whose units are not back */
	NO_SURPLUS_GRACE, /* a charge does not wait before the drain that makes sure */
	NO_EVICTED_GRACE, /* nor after it */
	TWINS
};

enum point {
	NOWHERE,
	BEFORE_REFILL,
	AFTER_REFILL,
	BEFORE_DRAIN,
	AFTER_DRAIN,
	AFTER_GRACE,
	BEFORE_RELIEVED
};

struct actor {
	pthread_t thread;
	sem_t begin, stopped, go_on;
	void (*work)(void);
	_Atomic enum point point; /* where it stops next, once */
	_Atomic bool done;
};

extern enum twin twin;
extern enum pcpc_engine engine;
extern struct pcpc_domain *domain;
extern struct pcpc_owner *root, *victim;
extern int64_t asked; /* deltas of the victim */
extern bool victim_freed;
extern struct actor worker, sweeper, charger;

void wait_for(sem_t *semaphore);
void actor_begin(struct actor *actor, void (*work)(void), enum point point);
void actor_wait(struct actor *actor);
void actor_run(struct actor *actor, void (*work)(void));
bool actor_comes(struct actor *actor);
void go_on(struct actor *actor);

struct pcpc_owner *make_owner(struct pcpc_owner *parent, uint64_t max);
void open_stage(void);
void close_stage(void);

/* Work for actors: others get units; and give them back until the victim was evicted. */
void charge_others(void);
void evict_victim(void);

#endif
