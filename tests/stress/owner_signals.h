/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * owner_signals.h - shared by the parts of owner_signals: owner_signals.c (threads, forks, the end)
 * and owner_signals_handler.c (timers and handlers).
 */
#ifndef OWNER_SIGNALS_H
#define OWNER_SIGNALS_H

#include <pcpcharge/stat.h>

#include "owner_stress.h"

#include <signal.h>

#define NR_OWNERS 6
#define NR_ITEMS 2 /* charges move the first */
#define NR_YOUNG 4
#define MAX_THREADS 16
#define LEVELS 3
#define MOST_HELD 300
#define STRANGE_ERRNO 4242

/* Units of an owner that came and goes; while there are any it lives. */
struct young {
	struct pcpc_owner *owner;
	uint64_t units;
};

/* What a handler may find itself in the middle of. */
enum doing {
	CHARGING,
	UNCHARGING,
	TRANSFERRING,
	DRAINING,
	POLLING,
	CREATING,
	DESTROYING,
	SETTING_MAX,
	WAITING,
	UPDATING,
	READING,
	FORKING,
	ELSE,
	DOINGS
};

struct books {
	uint64_t random;
	uint64_t held[NR_OWNERS];
	int64_t moved[NR_ITEMS][NR_OWNERS];
	struct young young[NR_YOUNG];
	uint64_t runs;
};

struct thread {
	pthread_t thread;
	timer_t timer[LEVELS - 1];
	volatile sig_atomic_t level, doing;
	struct books books[LEVELS];
	struct pcpc_owner *volatile young; /* handlers may charge it while it stands here */
	uint64_t operations, forks, created;
	uint32_t manages; /* of 1000 steps */
};

extern struct pcpc_domain *domain;
extern struct pcpc_owner *owner[NR_OWNERS];
extern _Thread_local struct thread *self;
extern _Atomic uint64_t interrupted[DOINGS], refusals, lates; /* of handlers */

/* owner_signals_handler.c */
void set_handlers(void);
void set_handlers_mask(int how);
void start_timers(void);
void stop_timers(void);

#endif
