// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * stress_load.c - everything that charges in the stress program: worker threads, their signal
 * handlers, the drainers, and threads that are moved about.
 *
 * A charge is what cache.h describes: consume, and where that misses take from the owner's counter
 * a little more than is needed and refill the surplus.
 */
#define _GNU_SOURCE
#include "stress.h"

#include <errno.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

#define BATCH 64 /* operations between two looks at the flags */
#define CPUS_KNOWN 16384

_Thread_local struct worker *stress_self __attribute__((tls_model("initial-exec")));

/* xorshift64*; state is never 0 */
uint64_t stress_random(struct context *context)
{
	uint64_t x = context->random;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	context->random = x;
	return x * 0x2545f4914f6cdd1dull >> 16;
}

void stress_settle(struct context *context, const struct pcpc_deferred *deferred)
{
	int64_t before;

	(void)context;
	if (!deferred->owner)
		return;
	if (deferred->owner > stress.options.owners || deferred->count > 2 * PCPC_COUNT_MAX) {
		stress_violation(BAD_WORD, deferred->owner, 0, (int64_t)deferred->count);
		return;
	}
	before = atomic_fetch_sub_explicit(&stress.usage[deferred->owner], (int64_t)deferred->count,
					   memory_order_relaxed);
	/* The units were taken from this counter before anyone could have them deferred. */
	if (before < (int64_t)deferred->count)
		stress_violation(UNITS_LOST, deferred->owner, (int64_t)deferred->count, before);
	atomic_fetch_add_explicit(&stress.settled[deferred->owner], deferred->delta,
				  memory_order_relaxed);
}

static void refill(struct context *context, uint32_t owner, uint64_t count, int64_t delta)
{
	struct pcpc_deferred deferred;

	pcpc_cache_refill(stress.cache, owner, count, delta, &stress.marks[owner], &deferred);
	/* A trim of exactly what was brought looks like a bypass; so trims are counted too low. */
	if (deferred.owner && deferred.owner != owner)
		context->counts[EVICTIONS]++;
	else if (deferred.owner && deferred.count == count && deferred.delta == delta)
		context->counts[BYPASSES]++;
	else if (deferred.owner) {
		context->counts[TRIMS] += deferred.count != 0;
		context->counts[CLEARED] += deferred.delta != 0;
	}
	stress_settle(context, &deferred);
}

static void charge(struct context *context, uint32_t owner, uint64_t count, int64_t delta)
{
	struct pcpc_deferred deferred;
	uint64_t surplus;

	context->counts[CHARGES]++;
	if (pcpc_cache_consume(stress.cache, owner, count, delta, &stress.marks[owner],
			       &deferred)) {
		context->counts[HITS]++;
		context->counts[CLEARED] += deferred.owner != 0;
		stress_settle(context, &deferred);
	} else {
		surplus = stress_random(context) % (stress.marks[owner].high + 2);
		atomic_fetch_add_explicit(&stress.usage[owner], (int64_t)(count + surplus),
					  memory_order_relaxed);
		refill(context, owner, surplus, delta);
	}
	context->held[owner] += (int64_t)count;
	context->asked[owner] += delta;
}

static void uncharge(struct context *context, uint32_t owner, uint64_t count, int64_t delta)
{
	context->counts[UNCHARGES]++;
	context->held[owner] -= (int64_t)count;
	context->asked[owner] += delta;
	refill(context, owner, count, delta);
}

/* Mostly small; now and then one that fills the slot's delta, and seldom one no slot can hold. */
static int64_t some_delta(struct context *context, uint32_t owner)
{
	int64_t batch = stress.marks[owner].delta_batch;
	uint64_t random = stress_random(context);
	uint64_t kind = random % 1024;

	random /= 1024;
	if (kind == 0)
		return random & 1 ? PCPC_DELTA_MAX + 1 : PCPC_DELTA_MIN - 1;
	if (kind < 64)
		return (int64_t)(random % (uint64_t)(4 * batch)) - 2 * batch;
	return (int64_t)(random % 7) - 3;
}

/* One random charge or uncharge. */
void stress_operate(struct context *context, uint32_t owner)
{
	uint64_t high = stress.marks[owner].high, random = stress_random(context), count;
	int64_t held = context->held[owner], delta = some_delta(context, owner);

	/* Mostly a few units, so that stocks serve; now and then up to more than a slot takes. */
	count = random % 16 ? random / 16 % 5 : random / 16 % (high + 3);
	if (held >= (int64_t)count && (random >> 24 & 1 || held > 4 * (int64_t)high))
		uncharge(context, owner, count, delta);
	else
		charge(context, owner, count, delta);
}

/* Half of the time one of a few owners, so that there are hits; else any, so that they are evicted
 * again. */
uint32_t stress_some_owner(struct context *context)
{
	uint64_t random = stress_random(context);
	uint64_t among = random & 1 && stress.options.owners > 8 ? 8 : stress.options.owners;

	return 1 + (uint32_t)(random / 2 % among);
}

/* Moves a thread to a random CPU of those in use, or lets it run on all of them. */
void stress_migrate(struct context *context, pid_t tid)
{
	static const size_t size = CPU_ALLOC_SIZE(CPUS_KNOWN);
	uint64_t random = stress_random(context);
	cpu_set_t set[CPUS_KNOWN / CPU_SETSIZE];
	uint32_t i;

	CPU_ZERO_S(size, set);
	if (random % 4 == 0)
		for (i = 0; i < stress.nr_cpus; i++)
			CPU_SET_S((size_t)stress.cpus[i], size, set);
	else
		CPU_SET_S((size_t)stress.cpus[random / 4 % stress.nr_cpus], size, set);
	/* Whether it moved is seen by note_cpu(). */
	(void)sched_setaffinity(tid, size, set);
}

static void note_cpu(struct worker *worker)
{
	int cpu = sched_getcpu();

	if (cpu != worker->cpu)
		worker->context[THREAD].counts[MIGRATIONS]++;
	worker->cpu = cpu;
}

/* All threads and main stand here while the books are read. */
static void rendezvous(void)
{
	pthread_barrier_wait(&stress.rendezvous);
	pthread_barrier_wait(&stress.rendezvous);
}

/* Acquire: pairs with set_flag() in stress.c, for a handler may run in the second wait. Otherwise
 * the barriers order everything, and the flags only send threads to them. */
static bool paused(void)
{
	return atomic_load_explicit(&stress.paused, memory_order_acquire);
}

static bool finished(void)
{
	return atomic_load_explicit(&stress.finished, memory_order_acquire);
}

/*
 * Interrupts its thread anywhere, in a sequence too. A thread that stands at the rendezvous has
 * seen the flag, so that its handler sees it as well and leaves the books alone.
 */
static void on_signal(int signal)
{
	struct worker *worker = stress_self;
	sig_atomic_t level;
	int error = errno;

	(void)signal;
	if (!worker || paused())
		return;
	level = worker->level;
	worker->level = HANDLER;
	worker->context[HANDLER].counts[SIGNALS]++;
	stress_operate(&worker->context[HANDLER], stress_some_owner(&worker->context[HANDLER]));
	worker->level = level;
	errno = error;
}

static void start_timer(struct worker *worker)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1 };
	struct itimerspec period = { .it_interval.tv_nsec = stress.options.period * 1000L };
	sigset_t set;

	/* Not in step with each other. */
	period.it_interval.tv_nsec -= (long)(worker - stress.worker) * 7919 % 1000;
	period.it_value = period.it_interval;
	event.sigev_notify_thread_id = worker->tid;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	/* Where either fails no signals are counted, and the run proves nothing. */
	if (timer_create(CLOCK_MONOTONIC, &event, &worker->timer) == 0)
		timer_settime(worker->timer, 0, &period, NULL);
}

static void *work(void *argument)
{
	struct worker *worker = argument;
	struct context *context = &worker->context[THREAD];
	uint32_t i;

	stress_self = worker;
	worker->tid = (pid_t)syscall(SYS_gettid);
	worker->cpu = sched_getcpu();
	start_timer(worker);
	while (!finished()) {
		if (paused()) {
			rendezvous();
			continue;
		}
		for (i = 0; i < BATCH && !paused(); i++) {
			worker->owner = stress_some_owner(context);
			stress_operate(context, worker->owner);
		}
		note_cpu(worker);
		if (stress_random(context) % 32 == 0)
			stress_migrate(context, worker->tid);
	}
	timer_delete(worker->timer);
	return NULL;
}

/* What one drain is after. */
struct wanted {
	struct context *context;
	uint32_t modulus, rest;
};

static bool match(uint32_t owner, void *context)
{
	const struct wanted *wanted = context;

	return owner % wanted->modulus == wanted->rest;
}

/* May be called by the other drainer, while the one whose context this is waits. */
static void settle(const struct pcpc_deferred *deferred, void *context)
{
	struct wanted *wanted = context;

	wanted->context->counts[DRAINED]++;
	if (deferred->owner % wanted->modulus != wanted->rest)
		stress_violation(BAD_WORD, deferred->owner, wanted->rest, wanted->modulus);
	stress_settle(wanted->context, deferred);
}

static int drain(struct context *context, uint32_t modulus, uint32_t rest)
{
	struct wanted wanted = { context, modulus, rest };
	int r = pcpc_cache_drain(stress.cache, match, settle, &wanted);

	context->counts[DRAINS]++;
	if (r < 0)
		stress_violation(DRAIN_FAILED, 0, 0, r);
	return r;
}

int stress_drain_all(void)
{
	return drain(&stress.check, 1, 0);
}

/* Drains changing subsets of the owners without a pause, and moves other threads at a moment they
 * do not choose. */
static void *keep_draining(void *argument)
{
#ifdef STRESS_STAGED
	static const uint32_t moduli[] = { 1, 2, 2, 2, 2, 3, 3, 3 };
#else
	static const uint32_t moduli[] = { 2, 3, 5, 7, 11, 16, 16, 64 };
#endif
	struct context *context = &((struct worker *)argument)->context[THREAD];
	uint64_t random;
	uint32_t modulus;

	while (!finished()) {
		if (paused()) {
			rendezvous();
			continue;
		}
		random = stress_random(context);
		modulus = random % 256 ? moduli[random / 256 % 8] : 1;
		drain(context, modulus, (uint32_t)(random >> 16) % modulus);
		if (random >> 40 & 1)
			stress_migrate(context,
				       stress.worker[(random >> 20) % stress.options.threads].tid);
	}
	return NULL;
}

#ifdef TWIN_INTRUDER
static void *keep_intruding(void *argument)
{
	while (!finished()) {
		while (!paused())
			stress_intrude(&((struct worker *)argument)->context[THREAD]);
		rendezvous();
	}
	return NULL;
}
#endif

/* Threads that meet at the rendezvous, main included. */
uint32_t stress_parties(void)
{
#ifdef TWIN_INTRUDER
	return stress.options.threads + 4;
#else
	return stress.options.threads + 3;
#endif
}

static bool start(struct worker *worker, void *(*body)(void *), uint64_t number)
{
	uint32_t level;

	/* Any odd multiplier keeps the seeds apart; 0 would stay 0. */
	for (level = 0; level < LEVELS; level++)
		worker->context[level].random =
			(stress.options.seed + number * LEVELS + level) * 0x9e3779b97f4a7c15ull | 1;
	return pthread_create(&worker->thread, NULL, body, worker) == 0;
}

/* All threads begin by meeting main at the rendezvous. */
bool stress_start(void)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	sigset_t set;
	uint32_t i;

	/* Only workers are interrupted: a drain must not be made from a handler, nor a settle
	 * function be one. */
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	sigaction(SIGUSR1, &action, NULL);
	stress.check.random = stress.options.seed | 1;
	for (i = 0; i < stress.options.threads; i++)
		if (!start(&stress.worker[i], work, i + 1))
			return false;
#ifdef TWIN_INTRUDER
	if (!start(&stress.intruder, keep_intruding, MAX_THREADS + 3))
		return false;
#endif
	return start(&stress.drainer[0], keep_draining, MAX_THREADS + 1) &&
	       start(&stress.drainer[1], keep_draining, MAX_THREADS + 2);
}

void stress_join(void)
{
	uint32_t i;

	for (i = 0; i < stress.options.threads; i++)
		pthread_join(stress.worker[i].thread, NULL);
	pthread_join(stress.drainer[0].thread, NULL);
	pthread_join(stress.drainer[1].thread, NULL);
#ifdef TWIN_INTRUDER
	pthread_join(stress.intruder.thread, NULL);
#endif
}
