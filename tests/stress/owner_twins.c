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
 * owner_poison.c looks at every owner that is freed; owner_twins_stage.c has the threads that take
 * part, and stops them where they are told. All that touches stocks is done by one of them, the
 *worker, so that there is one stock on every engine.
 */
#define _GNU_SOURCE
#include "owner_twins.h"

static const char *const twin_names[TWINS] = {
	[LATE_SECTION] = "late_section",
	[OUTSIDE_SECTION] = "outside_section",
	[NO_LIVE_GRACE] = "no_live_grace",
	[NO_IN_HAND_GRACE] = "no_in_hand_grace",
	[IDLE_SINCE] = "idle_since",
	[USAGE_IGNORED] = "usage_ignored",
	[NO_SURPLUS_GRACE] = "no_surplus_grace",
	[NO_EVICTED_GRACE] = "no_evicted_grace",
};

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

static void give_last_back(void)
{
	pcpc_uncharge(victim, 10);
}

/* The victim's last units come back, and are still in somebody's hands, when the grace period is
 * over that was for the owners which were idle before. */
static void idle_since_the_grace_period(void)
{
	struct pcpc_owner *idle = make_owner(root, 0);

	victim = make_owner(root, 10);
	MUST(pcpc_charge(victim, 10) == 0);
	MUST(pcpc_charge(victim, 1) == -EDQUOT);
	MUST(pcpc_owner_destroy(idle) == 0);
	MUST(pcpc_owner_destroy(victim) == 0);
	actor_begin(&sweeper, poll_domain, AFTER_GRACE);
	wait_for(&sweeper.stopped);
	actor_begin(&worker, give_last_back, BEFORE_RELIEVED);
	wait_for(&worker.stopped);
	if (twin == IDLE_SINCE)
		books_of(victim)->was_idle = true;
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
	atomic_store(&books_of(limited)->drained_at, pcpc_now());
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
	{ "idle since the grace period", idle_since_the_grace_period, IDLE_SINCE },
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
	poison_asan = !twin;
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
