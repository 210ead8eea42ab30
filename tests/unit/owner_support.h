/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * owner_support.h - what the tests of owners share: a domain that is opened and closed, owners with
 * few words, a look into the stocks, threads that stand on other CPUs, and waiting for a state.
 *
 * Tests run in a process of their own (Check forks), so the domain is a variable of the file.
 */
#ifndef PCPCHARGE_TESTS_OWNER_SUPPORT_H
#define PCPCHARGE_TESTS_OWNER_SUPPORT_H

#ifndef _GNU_SOURCE
#error "define _GNU_SOURCE first"
#endif

#include <poll.h>
#include <pthread.h>
#include <semaphore.h>

#include <pcpcharge/stat.h>

#include "owner_private.h"
#include "unit_support.h"

/* Seconds after which a state that must come is taken not to. */
#define PATIENCE 60

static struct pcpc_domain *domain;
static struct pcpc_owner *root;
static bool units_left; /* a test that leaves units behind says so */

static inline uint64_t nanoseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Waits for a state, with a bound. */
#define UNTIL(condition)                                                             \
	do {                                                                         \
		uint64_t end_ = nanoseconds() + PATIENCE * 1000000000ull;            \
		while (!(condition)) {                                               \
			ck_assert_msg(nanoseconds() < end_, "in vain: " #condition); \
			sched_yield();                                               \
		}                                                                    \
	} while (0)

static inline struct pcpc_domain_config domain_config(enum pcpc_engine engine, uint32_t batch)
{
	return (struct pcpc_domain_config){
		.size = sizeof(struct pcpc_domain_config),
		.name = "test",
		.unit = "units",
		.batch = batch,
		.engine = engine,
		.index = PCPC_INDEX_CPU,
	};
}

/* False, and a note, where there is no such engine here. */
static inline bool create_domain(const struct pcpc_domain_config *config)
{
	int r = pcpc_domain_create(config, &domain);

	if (r == -ENOSYS && config->engine == PCPC_ENGINE_RSEQ) {
		unit_note("not tested: no %s engine here", unit_engine_name(config->engine));
		return false;
	}
	ck_assert_int_eq(r, 0);
	root = pcpc_domain_root(domain);
	ck_assert_ptr_nonnull(root);
	/* a thread without a CPU number takes one of its own at its first operation: the main
	 * thread the first, so that the next thread has another */
	(void)pcpc_cache_peek(domain->cache, 1, &(uint32_t){ 0 });
	return true;
}

/* A domain, and the thread on the first CPU; stocks: lines per CPU, 0 for the default. */
static inline bool open_domain(int engine, uint32_t batch, uint32_t stocks)
{
	struct pcpc_domain_config config = domain_config((enum pcpc_engine)engine, batch);

	config.items = &(struct pcpc_item){ "moved", "units" };
	config.nr_items = 1;
	config.stocks_per_cpu = stocks;
	if (!create_domain(&config))
		return false;
	ck_assert(unit_pin(0));
	return true;
}

struct everybody {
	struct pcpc_owner **owner;
	uint32_t nr, room;
};

static inline bool note_owner(struct pcpc_owner *owner, unsigned int depth, void *context)
{
	struct everybody *all = context;

	(void)depth;
	if (all->nr == all->room) {
		all->room = 2 * all->room + 64;
		all->owner = realloc(all->owner, all->room * sizeof(struct pcpc_owner *));
		ck_assert_ptr_nonnull(all->owner);
	}
	all->owner[all->nr++] = owner;
	return true;
}

/* The end of every test: all owners go, and unless a test says otherwise no unit is left (G1). */
static inline void close_domain(void)
{
	struct everybody all = { 0 };

	if (!domain)
		return;
	/* parents come first, and the root before all */
	pcpc_owner_walk(root, note_owner, &all);
	while (--all.nr)
		ck_assert_int_eq(pcpc_owner_destroy(all.owner[all.nr]), 0);
	free(all.owner);
	pcpc_domain_poll(domain);
	if (!units_left)
		ck_assert_int_eq(pcpc_domain_destroy(domain), 0);
	domain = NULL;
}

static inline struct pcpc_owner *make_owner(struct pcpc_owner *parent, uint64_t max, uint32_t batch)
{
	const struct pcpc_owner_config config = { .size = sizeof(config),
						  .max = max,
						  .batch = batch };
	struct pcpc_owner *owner = NULL;

	ck_assert_int_eq(pcpc_owner_create(parent, &config, &owner), 0);
	ck_assert_ptr_nonnull(owner);
	return owner;
}

static inline struct pcpc_owner *child_of(struct pcpc_owner *parent)
{
	return make_owner(parent, 0, 0);
}

static inline void charge(struct pcpc_owner *owner, uint64_t count)
{
	ck_assert_int_eq(pcpc_charge(owner, count), 0);
}

static inline void uncharge(struct pcpc_owner *owner, uint64_t count)
{
	pcpc_uncharge(owner, count);
}

/* What the slots of all CPUs hold of one owner alone. */
struct slots {
	uint64_t count;
	int64_t delta;
	uint32_t slots;
	uint32_t largest;
};

static inline struct slots slots_of(const struct pcpc_owner *owner)
{
	const struct pcpc_cache *cache = owner->domain->cache;
	struct slots found = { 0 };
	uint32_t index, slot, count;
	pcpc_word word;

	for (index = 0; index < cache->nr_indices; index++) {
		for (slot = 0; slot < PCPC_STOCK_SLOTS; slot++) {
			word = PCPC_LOAD(pcpc_cache_stock(cache, index, owner->id)->slot[slot]);
			if (pcpc_word_owner(word) != owner->id)
				continue;
			count = pcpc_word_count(word);
			found.count += count;
			found.delta += pcpc_word_delta(word);
			found.largest = count > found.largest ? count : found.largest;
			found.slots++;
		}
	}
	return found;
}

static inline uint64_t stock_of(const struct pcpc_owner *owner)
{
	return slots_of(owner).count;
}

/* All that charges have moved the coupled item by, item 0 here. */
static inline int64_t coupled_of(struct pcpc_owner *owner)
{
	return pcpc_stat_read_local(owner, 0) + slots_of(owner).delta;
}

static inline uint64_t events_of(const struct pcpc_owner *owner, enum pcpc_event event)
{
	return pcpc_owner_events(owner, event);
}

static inline uint64_t drains_now(void)
{
	return atomic_load(&domain->drains);
}

static inline uint32_t cap_of(const struct pcpc_owner *owner)
{
	return (uint32_t)(atomic_load(&books_of(owner)->cap) & CAP_MASK);
}

/* How many calls keep the cap at 0: charges that make sure, and those that wait. */
static inline uint64_t pins_of(const struct pcpc_owner *owner)
{
	return (atomic_load(&books_of(owner)->cap) & CAP_PINS) / CAP_PIN;
}

/* Does somebody wait for room, and has said so? */
static inline bool awaited(const struct pcpc_owner *owner)
{
	return atomic_load(&books_of(owner)->least_wanted) != UINT64_MAX;
}

static inline bool exact(const struct pcpc_owner *owner)
{
	return atomic_load(&books_of(owner)->cap) & CAP_EXACT;
}

/* Would poll have something to do? */
static inline bool rung(void)
{
	struct pollfd ready = { .fd = pcpc_domain_eventfd(domain), .events = POLLIN };

	return poll(&ready, 1, 0) == 1;
}

/* A thread on some other CPU, which does one thing after the other when it is told to. */
struct worker {
	pthread_t thread;
	sem_t begin, done;
	void (*work)(void *context);
	void *context;
	int cpu; /* the nth that it may run on, or -1 for anywhere */
};

static inline void *worker_main(void *context)
{
	struct worker *worker = context;

	if (worker->cpu >= 0 && !unit_pin(worker->cpu))
		(void)unit_pin(0);
	(void)pcpc_cache_peek(domain->cache, 1, &(uint32_t){ 0 });
	for (;;) {
		sem_post(&worker->done);
		while (sem_wait(&worker->begin) < 0)
			;
		if (!worker->work)
			return NULL;
		worker->work(worker->context);
	}
}

static inline void worker_wait(struct worker *worker)
{
	while (sem_wait(&worker->done) < 0)
		;
}

/* Its affinity is inherited, so start it while the main thread may still run everywhere, or let it
 * take back what is said here. */
static inline void worker_start(struct worker *worker, int cpu)
{
	cpu_set_t all, saved;
	int i;

	*worker = (struct worker){ .cpu = cpu };
	sem_init(&worker->begin, 0, 0);
	sem_init(&worker->done, 0, 0);
	CPU_ZERO(&all);
	for (i = 0; i < CPU_SETSIZE; i++)
		CPU_SET(i, &all);
	ck_assert_int_eq(sched_getaffinity(0, sizeof(saved), &saved), 0);
	ck_assert_int_eq(sched_setaffinity(0, sizeof(all), &all), 0);
	ck_assert_int_eq(pthread_create(&worker->thread, NULL, worker_main, worker), 0);
	worker_wait(worker);
	ck_assert_int_eq(sched_setaffinity(0, sizeof(saved), &saved), 0);
}

/* Begins, and does not wait. */
static inline void worker_post(struct worker *worker, void (*work)(void *context), void *context)
{
	worker->work = work;
	worker->context = context;
	sem_post(&worker->begin);
}

static inline void worker_run(struct worker *worker, void (*work)(void *context), void *context)
{
	worker_post(worker, work, context);
	worker_wait(worker);
}

static inline void worker_stop(struct worker *worker)
{
	worker_post(worker, NULL, NULL);
	pthread_join(worker->thread, NULL);
	sem_destroy(&worker->begin);
	sem_destroy(&worker->done);
}

/* Simple jobs for a worker. */
struct job {
	struct pcpc_owner *owner;
	uint64_t count;
	unsigned int flags;
	int64_t timeout_ns;
	int result;
};

static inline void job_charge(void *context)
{
	struct job *job = context;

	job->result = pcpc_charge_flags(job->owner, job->count, job->flags, NULL);
}

static inline void job_uncharge(void *context)
{
	struct job *job = context;

	pcpc_uncharge(job->owner, job->count);
}

static inline void job_charge_wait(void *context)
{
	struct job *job = context;

	job->result = pcpc_charge_wait(job->owner, job->count, job->timeout_ns);
}

/* Leaves up to count units in the stock of whatever CPU it runs on. */
static inline void job_strand(void *context)
{
	struct job *job = context;

	job->result = pcpc_charge(job->owner, job->count);
	if (job->result == 0)
		pcpc_uncharge(job->owner, job->count);
}

/* Are there two stocks to tell apart: two CPUs, or two threads' numbers where there are no CPU
 * numbers? */
static inline bool two_stocks(void)
{
	cpu_set_t allowed;

	if (domain->cache->nr_indices < 2)
		return false;
	if (!PCPC_HAVE_RSEQ || !domain->cache->fast.area.rseq)
		return true;
	ck_assert_int_eq(sched_getaffinity(getppid(), sizeof(allowed), &allowed), 0);
	return CPU_COUNT(&allowed) > 1;
}

#endif
