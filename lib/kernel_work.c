// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * kernel_work.c - work and CPU hotplug behind kernel.h.
 *
 * Work is pushed to a list without a lock, for handlers, and a semaphore wakes the one thread that
 * does it. It takes the whole list at a time, oldest first.
 */
#define _GNU_SOURCE
#include <pcpcharge/kernel.h>

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>

#include "kernel_private.h"

/* States of work. Queued, it is on the list, or about to be. */
enum { IDLE, QUEUED };

#define NR_STATES (PCPC_KERNEL_HOTPLUG_FIRST + 16)

static LLIST_HEAD(pushed);
static struct llist_node *taken; /* by the worker, oldest first; under work_mutex */
static sem_t wake;
static unsigned long nr_queued; /* and not yet done */

static pthread_mutex_t work_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work_done = PTHREAD_COND_INITIALIZER;
static struct work_struct *running; /* innermost, for work may flush other work; under work_mutex */
static int running_at;		    /* the CPU that the worker is bound to, or -1 */
static bool started;		    /* a worker; under work_mutex */
static _Thread_local bool is_worker;

/* -- the worker -- */

static void finish(struct work_struct *outer)
{
	running = outer;
	__atomic_fetch_sub(&nr_queued, 1, __ATOMIC_RELAXED);
	pthread_cond_broadcast(&work_done);
}

/* What was pushed goes behind what was taken before. Under work_mutex. */
static void collect(void)
{
	struct llist_node **link = &taken;

	while (*link)
		link = &(*link)->next;
	*link = llist_reverse_order(llist_del_all(&pushed));
}

/* The next work to be done, or NULL. Under work_mutex. */
static struct work_struct *next_work(void)
{
	struct work_struct *work;

	if (!taken)
		collect();
	if (!taken)
		return NULL;
	work = container_of(taken, struct work_struct, node);
	taken = taken->next;
	running = work;
	/* From here on it may be queued again. A full barrier: whoever finds it queued has done
	 * before what its function is to see. */
	xchg(&work->state, IDLE);
	return work;
}

/* Does one, if there is one. Under work_mutex, which it lets go meanwhile. */
static bool do_one(void)
{
	struct work_struct *outer = running, *work = next_work();
	int outer_at = running_at;

	if (!work)
		return false;
	running_at = work->cpu;
	(void)pcpc_kernel_bind(running_at);
	pthread_mutex_unlock(&work_mutex);
	/* It may free itself. */
	work->func(work);
	pthread_mutex_lock(&work_mutex);
	running_at = outer_at;
	(void)pcpc_kernel_bind(running_at);
	finish(outer);
	return true;
}

static void *work_on(void *argument)
{
	(void)argument;
	is_worker = true;
	for (;;) {
		while (sem_wait(&wake) < 0)
			;
		pthread_mutex_lock(&work_mutex);
		while (do_one())
			;
		pthread_mutex_unlock(&work_mutex);
	}
	return NULL;
}

/* Handlers are for threads of the program. Where no thread is to be had the next task tries again.
 * Under work_mutex. */
static void start_worker(void)
{
	sigset_t all, before;
	pthread_t worker;

	if (started)
		return;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	started = pthread_create(&worker, NULL, work_on, NULL) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (started)
		pthread_detach(worker);
}

static void ensure_worker(void)
{
	pthread_mutex_lock(&work_mutex);
	start_worker();
	pthread_mutex_unlock(&work_mutex);
}

/* -- work -- */

void pcpc_kernel_init_work(struct work_struct *work, work_func_t function)
{
	*work = (struct work_struct){ .func = function, .cpu = -1 };
	ensure_worker();
}

bool pcpc_kernel_queue(int cpu, struct work_struct *work)
{
	int state = READ_ONCE(work->state);

	if (state == QUEUED || !try_cmpxchg(&work->state, &state, QUEUED))
		return false;
	work->cpu = cpu;
	__atomic_fetch_add(&nr_queued, 1, __ATOMIC_RELAXED);
	llist_add(&work->node, &pushed);
	if (in_task() && !is_worker)
		ensure_worker();
	sem_post(&wake);
	return true;
}

/* Waits until busy() says no. Under work_mutex. A worker that waits does the work itself. */
static void wait_while(bool (*busy)(const struct work_struct *work), const struct work_struct *work)
{
	while (busy(work)) {
		if (is_worker) {
			if (!do_one())
				return;
		} else {
			start_worker();
			pthread_cond_wait(&work_done, &work_mutex);
		}
	}
}

static bool is_busy(const struct work_struct *work)
{
	return READ_ONCE(work->state) != IDLE || running == work;
}

static bool any_busy(const struct work_struct *work)
{
	(void)work;
	return __atomic_load_n(&nr_queued, __ATOMIC_RELAXED) > 0;
}

bool pcpc_kernel_flush(struct work_struct *work)
{
	bool was;

	pthread_mutex_lock(&work_mutex);
	was = is_busy(work);
	wait_while(is_busy, work);
	pthread_mutex_unlock(&work_mutex);
	return was;
}

/* Takes work off the list, if it is there. Under work_mutex. */
static bool take_back(struct work_struct *work)
{
	struct llist_node **link = &taken;

	collect();
	while (*link && *link != &work->node)
		link = &(*link)->next;
	if (!*link)
		return false;
	*link = work->node.next;
	xchg(&work->state, IDLE);
	finish(running);
	return true;
}

static bool is_running(const struct work_struct *work)
{
	return running == work;
}

bool pcpc_kernel_cancel(struct work_struct *work)
{
	bool was = false;

	pthread_mutex_lock(&work_mutex);
	while (READ_ONCE(work->state) != IDLE && !(was = take_back(work))) {
		/* Another thread is about to push it. */
		pthread_mutex_unlock(&work_mutex);
		sched_yield();
		pthread_mutex_lock(&work_mutex);
	}
	wait_while(is_running, work);
	pthread_mutex_unlock(&work_mutex);
	return was;
}

void pcpc_kernel_flush_all(void)
{
	pthread_mutex_lock(&work_mutex);
	wait_while(any_busy, NULL);
	pthread_mutex_unlock(&work_mutex);
}

/* -- CPU hotplug -- */

/* Held while CPUs come and go; before work_mutex. Readers only leave their number. */
static pthread_mutex_t hotplug_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t no_readers = PTHREAD_COND_INITIALIZER;
static unsigned int nr_readers;
static _Thread_local unsigned int own_readers; /* of them, of this thread */

static struct {
	int (*startup)(unsigned int cpu);
	int (*teardown)(unsigned int cpu);
} states[NR_STATES];

void pcpc_kernel_hotplug_lock(int step)
{
	pthread_mutex_lock(&hotplug_mutex);
	own_readers += (unsigned int)step;
	nr_readers += (unsigned int)step;
	if (!nr_readers)
		pthread_cond_broadcast(&no_readers);
	pthread_mutex_unlock(&hotplug_mutex);
}

static void lock_hotplug(void)
{
	pthread_mutex_lock(&hotplug_mutex);
	while (nr_readers)
		pthread_cond_wait(&no_readers, &hotplug_mutex);
}

static int free_state(void)
{
	int state;

	for (state = PCPC_KERNEL_HOTPLUG_FIRST; state < NR_STATES; state++)
		if (!states[state].startup && !states[state].teardown)
			return state;
	return -ENOSPC;
}

int pcpc_kernel_hotplug(enum cpuhp_state state, int (*startup)(unsigned int cpu),
			int (*teardown)(unsigned int cpu))
{
	bool dynamic = state == CPUHP_BP_PREPARE_DYN || state == CPUHP_AP_ONLINE_DYN;
	int place;

	lock_hotplug();
	place = dynamic ? free_state() : (int)state;
	if (place >= 0) {
		states[place].startup = startup;
		states[place].teardown = teardown;
	}
	pthread_mutex_unlock(&hotplug_mutex);
	return dynamic || place < 0 ? place : 0;
}

void pcpc_kernel_no_hotplug(enum cpuhp_state state)
{
	if ((unsigned int)state >= NR_STATES)
		return;
	lock_hotplug();
	states[state].startup = states[state].teardown = NULL;
	pthread_mutex_unlock(&hotplug_mutex);
}

int pcpc_kernel_cpu_down(unsigned int cpu)
{
	int r = -EINVAL, state;

	lock_hotplug();
	if (cpu_online(cpu))
		r = num_online_cpus() > 1 ? 0 : -EBUSY;
	if (r == 0) {
		pcpc_kernel_take_off(cpu);
		for (state = NR_STATES - 1; state >= 0; state--)
			if (states[state].teardown)
				(void)states[state].teardown(cpu);
	}
	pthread_mutex_unlock(&hotplug_mutex);
	return r;
}

int pcpc_kernel_cpu_up(unsigned int cpu)
{
	int r = -EINVAL, state;

	lock_hotplug();
	if (cpu < nr_cpu_ids && !pcpc_kernel_online(cpu)) {
		r = 0;
		for (state = 0; state < NR_STATES; state++)
			if (states[state].startup)
				(void)states[state].startup(cpu);
		pcpc_kernel_bring_back(cpu);
	}
	pthread_mutex_unlock(&hotplug_mutex);
	return r;
}

/* -- beginning, and fork -- */

static void before_fork(void)
{
	pthread_mutex_lock(&hotplug_mutex);
	pthread_mutex_lock(&work_mutex);
	pcpc_kernel_percpu_fork(true);
}

static void after_fork(void)
{
	pcpc_kernel_percpu_fork(false);
	pthread_mutex_unlock(&work_mutex);
	pthread_mutex_unlock(&hotplug_mutex);
}

/* Of what the worker was doing, and of what others were about to push, nothing is done. */
static void count_queued(void)
{
	struct llist_node *node;

	collect();
	nr_queued = 0;
	llist_for_each(node, taken) nr_queued++;
}

/* The worker is not there, unless it forked. */
static void after_fork_in_child(void)
{
	pcpc_kernel_forget_others();
	pcpc_kernel_percpu_fork(false);
	if (!is_worker) {
		started = false;
		running = NULL;
		count_queued();
		sem_init(&wake, 0, nr_queued > 0);
	}
	pthread_cond_init(&work_done, NULL);
	pthread_mutex_unlock(&work_mutex);
	nr_readers = own_readers;
	pthread_cond_init(&no_readers, NULL);
	pthread_mutex_unlock(&hotplug_mutex);
}

__attribute__((constructor(101))) static void begin(void)
{
	sem_init(&wake, 0, 0);
	(void)pthread_atfork(before_fork, after_fork, after_fork_in_child);
}
