// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * owner_twins.c - what sections, grace periods and the look at usage are there for: races that are
 * made, in the library as it is and in broken twins that leave one of these out.
 *
 *	owner_twins rseq|atomic [TWIN]
 *
 * Without a twin all races are run, and nothing may be found wrong. With one its own race is run,
 *and something must be.
 *
 * Linked with owner_poison.c, which looks at every owner that is freed, and with --wrap for the
 * functions between whose calls a thread is to be stopped. Worker, sweeper and charger are threads;
 * all that touches stocks is done by the worker, so that one stock is enough on every engine.
 */
#define _GNU_SOURCE
#include "owner_stress.h"

#include <semaphore.h>

#define OTHERS 14
#define DELTA_BATCH 100

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
void __real_urcu_bp_read_lock(void);
void __wrap_urcu_bp_read_lock(void);

/* What is left out. */
enum twin {
	NO_TWIN,
	LATE_SECTION,	  /* the section of an uncharge begins after the refill, not before */
	OUTSIDE_SECTION,  /* the delta that an uncharge clears is settled outside */
	NO_LIVE_GRACE,	  /* a sweep does not wait before it drains */
	NO_IN_HAND_GRACE, /* nor before it frees */
	USAGE_IGNORED,	  /* a sweep frees owners whose units are not back */
	NO_SURPLUS_GRACE, /* a charge does not wait before the drain that makes sure */
	NO_EVICTED_GRACE, /* nor after it */
	TWINS
};

static const char *const twin_names[TWINS] = {
	[LATE_SECTION] = "late_section",	 [OUTSIDE_SECTION] = "outside_section",
	[NO_LIVE_GRACE] = "no_live_grace",	 [NO_IN_HAND_GRACE] = "no_in_hand_grace",
	[USAGE_IGNORED] = "usage_ignored",	 [NO_SURPLUS_GRACE] = "no_surplus_grace",
	[NO_EVICTED_GRACE] = "no_evicted_grace",
};

static enum twin twin;
static enum pcpc_engine engine;
static struct pcpc_domain *domain;
static struct pcpc_owner *root, *victim, *others[OTHERS];
static int64_t asked; /* deltas of the victim */
static bool victim_freed;

/* -- stopping a thread -- */

enum point { NOWHERE, BEFORE_REFILL, AFTER_REFILL, BEFORE_DRAIN, AFTER_DRAIN };

struct actor {
	pthread_t thread;
	sem_t begin, stopped, go_on;
	void (*work)(void);
	_Atomic enum point point; /* where it stops next, once */
	_Atomic bool done;
};

static struct actor worker, sweeper, charger;
static _Thread_local struct actor *self;
static _Thread_local bool late, locking_late;

static void wait_for(sem_t *semaphore)
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

static void actor_begin(struct actor *actor, void (*work)(void), enum point point)
{
	atomic_store(&actor->done, false);
	actor->work = work;
	atomic_store(&actor->point, point);
	sem_post(&actor->begin);
}

static void actor_wait(struct actor *actor)
{
	while (!atomic_load(&actor->done))
		sched_yield();
}

static void actor_run(struct actor *actor, void (*work)(void))
{
	actor_begin(actor, work, NOWHERE);
	actor_wait(actor);
}

static void actor_end(struct actor *actor)
{
	actor_begin(actor, NULL, NOWHERE);
	pthread_join(actor->thread, NULL);
}

/* The library as it is stops where the twin goes on, and nobody can tell for how long: so this is
 * the one place that waits by the clock. True: it came to the end, or to where it was to stop. */
static bool actor_comes(struct actor *actor)
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
	int64_t coupled = atomic_load(&books_of(owner)->coupled);

	if (owner != victim)
		return;
	victim_freed = true;
	if (coupled != asked)
		violation("freed with deltas of %" PRId64 ", asked for %" PRId64, coupled, asked);
}

static struct pcpc_owner *make_owner(struct pcpc_owner *parent, uint64_t max)
{
	const struct pcpc_owner_config config = { .size = sizeof(config), .max = max };
	struct pcpc_owner *owner = NULL;

	MUST(pcpc_owner_create(parent, &config, &owner) == 0);
	return owner;
}

static void open_stage(void)
{
	const struct pcpc_domain_config config = {
		.size = sizeof(config),
		.batch = 64,
		.delta_batch = DELTA_BATCH,
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

static void close_stage(void)
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

#define OTHER_UNITS 50

static void charge_others(void)
{
	int i;

	for (i = 0; i < OTHERS; i++)
		MUST(pcpc_charge(others[i], OTHER_UNITS) == 0);
}

/* Until it was the victim that had to go; twice as many as a stock has slots take turns. */
static void evict_victim(void)
{
	int i, round;

	late = twin == LATE_SECTION;
	for (round = 0; round < OTHER_UNITS; round++)
		for (i = 0; i < OTHERS; i++)
			pcpc_uncharge(others[i], 1);
	late = false;
}

static void stock_delta(void)
{
	MUST(pcpc_charge_stat(victim, 0, 5) == 0);
	asked += 5;
}

static void poll_domain(void)
{
	pcpc_domain_poll(domain);
}

/* The victim has a delta of 5 in the worker's stock, and nothing else. */
static void prepare_delta(void)
{
	victim = make_owner(root, 0);
	actor_run(&worker, charge_others);
	actor_run(&worker, stock_delta);
}

static void go_on(struct actor *actor)
{
	sem_post(&actor->go_on);
}

/* Lets the sweeper go as far as it can while the worker stands, then both to their ends. */
static void sweep_beside_worker(void)
{
	MUST(pcpc_owner_destroy(victim) == 0);
	actor_begin(&sweeper, poll_domain, NOWHERE);
	(void)actor_comes(&sweeper);
	go_on(&worker);
	actor_wait(&worker);
	actor_wait(&sweeper);
	pcpc_domain_poll(domain);
	if (!victim_freed)
		violation("not freed in the end");
}

/* -- the races -- */

/* An evictor has the victim's delta in its hands. */
static void evicted_while_swept(void)
{
	prepare_delta();
	actor_begin(&worker, evict_victim, AFTER_REFILL);
	wait_for(&worker.stopped);
	sweep_beside_worker();
}

static void clear_own_delta(void)
{
	MUST(pcpc_charge(victim, 5) == 0);
	pcpc_uncharge_stat(victim, 2, DELTA_BATCH - 40);
	pcpc_uncharge_stat(victim, 3, DELTA_BATCH - 40);
}

/* The last uncharge stocks the units, so that the victim may go with the next drain, and has its
 * delta still in its hands. */
static void cleared_while_swept(void)
{
	victim = make_owner(root, 0);
	asked = 2 * (DELTA_BATCH - 40);
	actor_begin(&worker, clear_own_delta, AFTER_REFILL);
	wait_for(&worker.stopped);
	sweep_beside_worker();
}

static void stock_delta_with_reference(void)
{
	pcpc_owner_get(victim);
	sem_post(&worker.stopped);
	wait_for(&worker.go_on);
	atomic_store(&worker.point, BEFORE_REFILL);
	stock_delta();
	pcpc_owner_put(victim);
}

/* A slow path that has found the victim live stocks something after the sweep has drained. */
static void stocked_after_drain(void)
{
	victim = make_owner(root, 0);
	actor_begin(&worker, stock_delta_with_reference, NOWHERE);
	wait_for(&worker.stopped);
	go_on(&worker);
	wait_for(&worker.stopped);
	MUST(pcpc_owner_destroy(victim) == 0);
	actor_begin(&sweeper, poll_domain, AFTER_DRAIN);
	if (actor_comes(&sweeper)) {
		go_on(&worker);
		actor_wait(&worker);
		go_on(&sweeper);
	} else {
		atomic_store(&sweeper.point, NOWHERE);
		go_on(&worker);
	}
	actor_wait(&worker);
	actor_wait(&sweeper);
	pcpc_domain_poll(domain);
	if (!victim_freed)
		violation("not freed in the end");
}

/* An evictor that came between the first grace period and the drain. */
static void evicted_before_drain(void)
{
	prepare_delta();
	MUST(pcpc_owner_destroy(victim) == 0);
	actor_begin(&sweeper, poll_domain, BEFORE_DRAIN);
	wait_for(&sweeper.stopped);
	actor_begin(&worker, evict_victim, AFTER_REFILL);
	wait_for(&worker.stopped);
	go_on(&sweeper);
	(void)actor_comes(&sweeper);
	go_on(&worker);
	actor_wait(&worker);
	actor_wait(&sweeper);
	pcpc_domain_poll(domain);
	if (!victim_freed)
		violation("not freed in the end");
}

/* Units come back late. */
static void destroyed_with_units(void)
{
	struct pcpc_owner *next;

	victim = make_owner(root, 0);
	MUST(pcpc_charge(victim, 10) == 0);
	MUST(pcpc_owner_destroy(victim) == 0);
	pcpc_domain_poll(domain);
	next = make_owner(root, 0);
	if (next == victim)
		violation("an owner with units was freed, and its id used again");
	pcpc_uncharge(victim, 10);
	(void)pcpc_owner_drain(root);
	if (pcpc_owner_usage(root) || pcpc_owner_usage(next))
		violation("wrong total: %" PRIu64 ", and of the next owner %" PRIu64,
			  pcpc_owner_usage(root), pcpc_owner_usage(next));
	MUST(pcpc_owner_destroy(next) == 0);
	pcpc_domain_poll(domain);
}

static struct pcpc_owner *limited, *wide;
static int answer;

static void stock_units(void)
{
	MUST(pcpc_charge(victim, 1) == 0);
}

static void charge_the_rest(void)
{
	/* Not so long after the last drain that there would be another one first. */
	(void)pcpc_due(&books_of(limited)->drained_at);
	answer = pcpc_charge(wide, 999);
}

static void give_all_back(void)
{
	if (answer == 0)
		pcpc_uncharge(wide, 999);
	pcpc_uncharge(victim, 1);
}

static void grow_limited(void)
{
	limited = make_owner(root, 1000);
	victim = make_owner(limited, 0);
	wide = make_owner(limited, 0);
}

/* What fitted all the time must have been let in. */
static void check_answer(void)
{
	if (answer != 0)
		violation("false refusal: %d for 999 of 1000 beside 1", answer);
	actor_run(&worker, give_all_back);
	MUST(pcpc_owner_destroy(wide) == 0);
	MUST(pcpc_owner_destroy(victim) == 0);
	MUST(pcpc_owner_destroy(limited) == 0);
	pcpc_domain_poll(domain);
}

/* A slow path that began before the cap was 0 stocks its surplus after the drain. */
static void stocked_while_made_sure(void)
{
	grow_limited();
	actor_begin(&worker, stock_units, BEFORE_REFILL);
	wait_for(&worker.stopped);
	actor_begin(&charger, charge_the_rest, AFTER_DRAIN);
	if (actor_comes(&charger)) {
		go_on(&worker);
		actor_wait(&worker);
		go_on(&charger);
	} else {
		atomic_store(&charger.point, NOWHERE);
		go_on(&worker);
	}
	actor_wait(&worker);
	actor_wait(&charger);
	check_answer();
}

/* An evictor that came between the first grace period and the drain has units that are needed. */
static void evicted_while_made_sure(void)
{
	grow_limited();
	actor_run(&worker, charge_others);
	actor_run(&worker, stock_units);
	MUST(pcpc_cache_stocked(domain->cache, victim->id));
	actor_begin(&charger, charge_the_rest, BEFORE_DRAIN);
	wait_for(&charger.stopped);
	actor_begin(&worker, evict_victim, AFTER_REFILL);
	wait_for(&worker.stopped);
	go_on(&charger);
	(void)actor_comes(&charger);
	go_on(&worker);
	actor_wait(&worker);
	actor_wait(&charger);
	check_answer();
}

static const struct {
	const char *name;
	void (*run)(void);
	enum twin twin; /* that it shows */
} races[] = {
	{ "evicted while swept", evicted_while_swept, LATE_SECTION },
	{ "cleared while swept", cleared_while_swept, OUTSIDE_SECTION },
	{ "stocked after the drain", stocked_after_drain, NO_LIVE_GRACE },
	{ "evicted before the drain", evicted_before_drain, NO_IN_HAND_GRACE },
	{ "destroyed with units", destroyed_with_units, USAGE_IGNORED },
	{ "stocked while made sure", stocked_while_made_sure, NO_SURPLUS_GRACE },
	{ "evicted while made sure", evicted_while_made_sure, NO_EVICTED_GRACE },
};

static bool read_arguments(int argc, char **argv)
{
	if (argc < 2 || argc > 3)
		return false;
	engine = strcmp(argv[1], "atomic") ? PCPC_ENGINE_RSEQ : PCPC_ENGINE_ATOMIC;
	if (argc == 2)
		return true;
	for (twin = NO_TWIN + 1; twin < TWINS; twin++)
		if (!strcmp(argv[2], twin_names[twin]))
			return true;
	return false;
}

static bool engine_works(void)
{
	const struct pcpc_cache_config config = { .size = sizeof(config),
						  .engine = engine,
						  .index = PCPC_INDEX_CPU };
	struct pcpc_cache *cache;

	if (pcpc_cache_create(&config, &cache) < 0)
		return false;
	pcpc_cache_destroy(cache);
	return true;
}

/* All threads on one CPU, and so at one stock. */
static void stand_on_one_cpu(void)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	(void)sched_setaffinity(0, sizeof(one), &one);
}

int main(int argc, char **argv)
{
	const uint32_t nr_races = sizeof(races) / sizeof(races[0]);
	uint32_t i, found;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!read_arguments(argc, argv)) {
		fprintf(stderr, "usage: see the head of owner_twins.c\n");
		return 2;
	}
	if (!engine_works()) {
		printf("owner_twins: skipped: no %s engine here\n", engine_name(engine));
		return SKIPPED;
	}
	alarm(60);
	stand_on_one_cpu();
	for (i = 0; i < nr_races; i++) {
		if (twin && races[i].twin != twin)
			continue;
		printf("%s\n", races[i].name);
		open_stage();
		races[i].run();
		/* What a twin has broken cannot be closed. */
		if (!twin)
			close_stage();
		else
			poison_end();
	}
	found = atomic_load(&violations);
	if (twin)
		printf("twin %s: %s\n", twin_names[twin],
		       found ? "found, as it must" : "nothing found, and there must be");
	/* Threads of a twin may stand anywhere. */
	fflush(NULL);
	_exit(twin ? !found : found > 0);
}
