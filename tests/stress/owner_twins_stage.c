// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * owner_twins_stage.c - the stage of owner_twins.c: threads that stop where they are told, and what
 * is left out of the library.
 */
#define _GNU_SOURCE
#include <pcpcharge/stat.h>

#include "owner_twins.h"

#define OTHERS 14
#define OTHER_UNITS 50

void __real_pcpc_cache_refill(struct pcpc_cache *cache, uint32_t owner, uint64_t count,
			      int64_t delta, const struct pcpc_marks *marks,
			      struct pcpc_deferred *ret_deferred);
void __wrap_pcpc_cache_refill(struct pcpc_cache *cache, uint32_t owner, uint64_t count,
			      int64_t delta, const struct pcpc_marks *marks,
			      struct pcpc_deferred *ret_deferred);
int __real_pcpc_cache_drain(struct pcpc_cache *cache, pcpc_match_fn *match, pcpc_settle_fn *settle,
			    void *context);
int __wrap_pcpc_cache_drain(struct pcpc_cache *cache, pcpc_match_fn *match, pcpc_settle_fn *settle,
			    void *context);
void __real_pcpc_raise(struct pcpc_owner *owner, enum pcpc_event event);
void __wrap_pcpc_raise(struct pcpc_owner *owner, enum pcpc_event event);
void __real_urcu_bp_read_lock(void);
void __wrap_urcu_bp_read_lock(void);

enum twin twin;
enum pcpc_engine engine;
struct pcpc_domain *domain;
struct pcpc_owner *root, *victim;
int64_t asked;
bool victim_freed;
struct actor worker, sweeper, charger;

static struct pcpc_owner *others[OTHERS];
static _Thread_local struct actor *self;
static _Thread_local bool late, locking_late;

void wait_for(sem_t *semaphore)
{
	while (sem_wait(semaphore) < 0)
		;
}

static void stop_at(enum point point)
{
	if (!self || atomic_load(&self->point) != point)
		return;
	atomic_store(&self->point, NOWHERE);
	sem_post(&self->stopped);
	wait_for(&self->go_on);
}

static void *act(void *actor)
{
	self = actor;
	pcpc_thread_register();
	for (;;) {
		wait_for(&self->begin);
		if (!self->work)
			return NULL;
		self->work();
		atomic_store(&self->done, true);
	}
}

static void actor_start(struct actor *actor)
{
	sem_init(&actor->begin, 0, 0);
	sem_init(&actor->stopped, 0, 0);
	sem_init(&actor->go_on, 0, 0);
	MUST(pthread_create(&actor->thread, NULL, act, actor) == 0);
}

void actor_begin(struct actor *actor, void (*work)(void), enum point point)
{
	atomic_store(&actor->done, false);
	actor->work = work;
	atomic_store(&actor->point, point);
	sem_post(&actor->begin);
}

void actor_wait(struct actor *actor)
{
	while (!atomic_load(&actor->done))
		sched_yield();
}

void actor_run(struct actor *actor, void (*work)(void))
{
	actor_begin(actor, work, NOWHERE);
	actor_wait(actor);
}

static void actor_end(struct actor *actor)
{
	actor_begin(actor, NULL, NOWHERE);
	pthread_join(actor->thread, NULL);
}

void go_on(struct actor *actor)
{
	sem_post(&actor->go_on);
}

/* The library as it is stops where the twin goes on, and nobody can tell for how long: so this is
 * the one place that waits by the clock. True: it came to the end, or to where it was to stop. */
bool actor_comes(struct actor *actor)
{
	double end = now() + (twin ? 5 : 0.05);

	while (now() < end) {
		if (atomic_load(&actor->done) || sem_trywait(&actor->stopped) == 0)
			return true;
		sched_yield();
	}
	return false;
}

/* -- what is put into the library -- */

void twins_grace(enum twins_grace which)
{
	if ((which == GRACE_LIVE && twin == NO_LIVE_GRACE) ||
	    (which == GRACE_IN_HAND && twin == NO_IN_HAND_GRACE) ||
	    (which == GRACE_SURPLUS && twin == NO_SURPLUS_GRACE) ||
	    (which == GRACE_EVICTED && twin == NO_EVICTED_GRACE))
		return;
	urcu_bp_synchronize_rcu();
	if (which == GRACE_IN_HAND)
		stop_at(AFTER_GRACE);
}

uint64_t twins_units_left(uint64_t usage)
{
	return twin == USAGE_IGNORED ? 0 : usage;
}

void __wrap_urcu_bp_read_lock(void)
{
	if (late && !locking_late) {
		locking_late = true;
		return;
	}
	__real_urcu_bp_read_lock();
}

/* The worker stops before it stocks something of the victim, or with something of it in its hands.
 */
void __wrap_pcpc_cache_refill(struct pcpc_cache *cache, uint32_t owner, uint64_t count,
			      int64_t delta, const struct pcpc_marks *marks,
			      struct pcpc_deferred *ret_deferred)
{
	bool left = false;

	if (self && owner == victim->id)
		stop_at(BEFORE_REFILL);
	__real_pcpc_cache_refill(cache, owner, count, delta, marks, ret_deferred);
	if (self && ret_deferred->owner == victim->id) {
		left = twin == OUTSIDE_SECTION && owner == victim->id;
		if (left)
			urcu_bp_read_unlock();
		stop_at(AFTER_REFILL);
	}
	if (left || locking_late)
		__real_urcu_bp_read_lock();
	locking_late = false;
}

void __wrap_pcpc_raise(struct pcpc_owner *owner, enum pcpc_event event)
{
	if (owner == victim && event == PCPC_EVENT_RELIEVED)
		stop_at(BEFORE_RELIEVED);
	__real_pcpc_raise(owner, event);
}

int __wrap_pcpc_cache_drain(struct pcpc_cache *cache, pcpc_match_fn *match, pcpc_settle_fn *settle,
			    void *context)
{
	int r;

	stop_at(BEFORE_DRAIN);
	r = __real_pcpc_cache_drain(cache, match, settle, context);
	stop_at(AFTER_DRAIN);
	return r;
}

/* -- the stage -- */

static void on_freed(struct pcpc_owner *owner)
{
	int64_t coupled = pcpc_stat_read_local(owner, 0);

	if (owner != victim)
		return;
	victim_freed = true;
	if (coupled != asked)
		violation("freed with deltas of %" PRId64 ", asked for %" PRId64, coupled, asked);
}

struct pcpc_owner *make_owner(struct pcpc_owner *parent, uint64_t max)
{
	const struct pcpc_owner_config config = { .size = sizeof(config), .max = max };
	struct pcpc_owner *owner = NULL;

	MUST(pcpc_owner_create(parent, &config, &owner) == 0);
	return owner;
}

void open_stage(void)
{
	const struct pcpc_domain_config config = {
		.size = sizeof(config),
		.batch = 64,
		.delta_batch = DELTA_BATCH,
		.items = &(struct pcpc_item){ "moved", "units" },
		.nr_items = 1,
		.stocks_per_cpu = 1,
		.engine = engine,
		.index = PCPC_INDEX_CPU,
	};
	int i;

	MUST(pcpc_domain_create(&config, &domain) == 0);
	root = pcpc_domain_root(domain);
	/* It neither stocks nor evicts: so it is the uncharged owner that evicts the victim. */
	MUST(pcpc_owner_set_batch(root, PCPC_BATCH_NONE) == 0);
	for (i = 0; i < OTHERS; i++)
		others[i] = make_owner(root, 0);
	asked = 0;
	victim_freed = false;
	poison_begin(domain, on_freed);
	actor_start(&worker);
	actor_start(&sweeper);
	actor_start(&charger);
}

void close_stage(void)
{
	int i;

	actor_end(&worker);
	actor_end(&sweeper);
	actor_end(&charger);
	for (i = 0; i < OTHERS; i++)
		MUST(pcpc_owner_destroy(others[i]) == 0);
	pcpc_domain_poll(domain);
	if (pcpc_owner_events(root, PCPC_EVENT_UNDERFLOW))
		violation("an underflow");
	if (domain->nr_owners != 1)
		violation("%" PRIu32 " owners are left", domain->nr_owners);
	poison_end();
	if (pcpc_domain_destroy(domain) != 0)
		violation("the domain is busy");
}

void charge_others(void)
{
	int i;

	for (i = 0; i < OTHERS; i++)
		MUST(pcpc_charge(others[i], OTHER_UNITS) == 0);
}

/* Until it was the victim that had to go; twice as many as a stock has slots take turns. */
void evict_victim(void)
{
	int i, round;

	late = twin == LATE_SECTION;
	for (round = 0; round < OTHER_UNITS; round++)
		for (i = 0; i < OTHERS; i++)
			pcpc_uncharge(others[i], 1);
	late = false;
}
