// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * guest_load.c - who charges: tasks that stay on a CPU and tasks that move, and on every CPU a hard
 * interrupt (a timer's, and one that is sent in the middle of an operation) with a softirq after
 * it. Beside them a thread that drains, and one that takes CPUs off and on.
 *
 * Each context has books of its own, so that what it holds is known without any of the code that is
 * tested.
 */
#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/irq_work.h>
#include <linux/kthread.h>

#include "guest.h"

#define WORKERS 16
#define HELD_AT_MOST 24	 /* of an owner, by one context */
#define PERIOD_NS 500000 /* between two timer interrupts of a CPU */
#define STEPS 200	 /* of a worker, before it rests */
#define MIGRATE_EVERY 499

struct worker {
	struct task_struct *task;
	bool bound, busy; /* busy: in an operation. Read by interrupts of its own CPU */
	unsigned int cpu;
	struct guest_books books;
};

/* Of each CPU. hard and soft: only one of each runs there at a time. */
struct contexts {
	struct hrtimer timer;
	struct irq_work interrupt;
	struct tasklet_struct softirq;
	struct guest_books hard, soft;
	unsigned int turn;
};

static DEFINE_PER_CPU(struct contexts, contexts);
static struct worker workers[WORKERS];
static struct task_struct *drainer, *hotplugger;
static int timers_state;
static bool loaded; /* while nothing is, no operation is disturbed: interrupts would charge */

/* The worker whose operation the running interrupt has interrupted. */
static struct worker *interrupted(void)
{
	struct worker *worker;

	for (worker = workers; worker < workers + WORKERS; worker++)
		if (READ_ONCE(worker->task) == current)
			return READ_ONCE(worker->busy) ? worker : NULL;
	return NULL;
}

static u32 below(struct guest_books *books, u32 bound)
{
	return prandom_u32_state(&books->rnd) % bound;
}

/* One operation on the stocks that are tested. */
static void step(struct guest_books *books)
{
	u32 owner = 1 + below(books, GUEST_OWNERS), n = 1 + below(books, 8);
	int delta = (int)below(books, 7) - 3;

	if (books->held[owner] < n || (below(books, 2) && books->held[owner] < HELD_AT_MOST)) {
		if (!guest_charge(owner, n, delta))
			return;
		books->held[owner] += n;
	} else {
		guest_uncharge(owner, n, delta);
		books->held[owner] -= n;
	}
	books->moved[owner] += delta;
}

static void locked_step(struct guest_books *books)
{
	u32 owner = 1 + below(books, GUEST_OWNERS), n = 1 + below(books, 8);

	if (books->locked[owner] < n || (below(books, 2) && books->locked[owner] < HELD_AT_MOST)) {
		if (guest_locked_charge(owner, n))
			books->locked[owner] += n;
	} else {
		guest_locked_uncharge(owner, n);
		books->locked[owner] -= n;
	}
}

static void hard(void)
{
	struct contexts *here = this_cpu_ptr(&contexts);
	unsigned int i;

	for (i = 0; i < 3; i++)
		step(&here->hard);
	locked_step(&here->hard);
	if (!below(&here->hard, 4))
		guest_take_here(BIT(1 + below(&here->hard, GUEST_OWNERS)));
	guest_check_here();
	if (interrupted())
		guest_count_add(GUEST_HARD, 3);
	tasklet_schedule(&here->softirq);
}

/* Every other operation with interrupts off, so that what it must get is known. */
static void soft(struct tasklet_struct *unused)
{
	struct contexts *here = this_cpu_ptr(&contexts);
	unsigned long flags;

	step(&here->soft);
	locked_step(&here->soft);
	local_irq_save(flags);
	step(&here->soft);
	local_irq_restore(flags);
	if (interrupted())
		guest_count_add(GUEST_SOFT, 2);
}

static enum hrtimer_restart timer_fires(struct hrtimer *timer)
{
	hard();
	hrtimer_forward_now(timer, ns_to_ktime(PERIOD_NS));
	return HRTIMER_RESTART;
}

static void interrupt_arrives(struct irq_work *unused)
{
	hard();
}

/* Sends an interrupt and waits until it is over, within a bound. */
static void interrupt_here(void)
{
	struct irq_work *interrupt;
	unsigned int spins;

	preempt_disable();
	interrupt = &this_cpu_ptr(&contexts)->interrupt;
	if (irq_work_queue(interrupt))
		for (spins = 0; irq_work_is_busy(interrupt) && spins < 100000; spins++)
			cpu_relax();
	preempt_enable();
}

static void move_from(unsigned int cpu)
{
	unsigned int next = cpumask_next(cpu, cpu_online_mask);

	if (next >= nr_cpu_ids)
		next = cpumask_first(cpu_online_mask);
	set_cpus_allowed_ptr(current, cpumask_of(next));
}

void guest_disturb(unsigned int every)
{
	unsigned int turn = this_cpu_inc_return(contexts.turn), from = raw_smp_processor_id();
	struct worker *worker;

	if (irqs_disabled() || !READ_ONCE(loaded))
		return;
	if (turn % every == 0)
		interrupt_here();
	if (turn % MIGRATE_EVERY || !preemptible())
		return;
	worker = interrupted();
	if (!worker || worker->bound)
		return;
	move_from(from);
	if (raw_smp_processor_id() != from)
		guest_count(GUEST_MIGRATED);
}

static int work(void *data)
{
	struct worker *worker = data;
	unsigned int i;

	while (!kthread_should_stop()) {
		/* Where that CPU is off it stays where it is. */
		set_cpus_allowed_ptr(current,
				     worker->bound ? cpumask_of(worker->cpu) : cpu_possible_mask);
		for (i = 0; i < STEPS; i++) {
			WRITE_ONCE(worker->busy, true);
			step(&worker->books);
			locked_step(&worker->books);
			WRITE_ONCE(worker->busy, false);
		}
		schedule_timeout_interruptible(1);
	}
	return 0;
}

/* One subtree after the other. */
static int drain(void *unused)
{
	unsigned int turn = 0;

	while (!kthread_should_stop()) {
		unsigned long owners = 0;
		u32 owner;

		turn++;
		for (owner = 1; owner <= GUEST_OWNERS; owner++)
			if (owner % GUEST_GROUPS == turn % GUEST_GROUPS)
				owners |= BIT(owner);
		guest_drain(owners);
		schedule_timeout_interruptible(2);
	}
	return 0;
}

void guest_all_cpus_on(void)
{
	unsigned int cpu;

	for_each_present_cpu(cpu) if (!cpu_online(cpu)) add_cpu(cpu);
}

/* Ends with a CPU off: what its stock held must be found without it. */
static int hotplug(void *unused)
{
	unsigned int cpu = 0, off = 0;

	while (!off || !kthread_should_stop()) {
		guest_all_cpus_on();
		cpu = 1 + cpu % (num_present_cpus() - 1);
		off = remove_cpu(cpu) ? 0 : cpu;
		schedule_timeout_interruptible(2);
	}
	return 0;
}

static int timer_begins(unsigned int cpu)
{
	struct hrtimer *timer = &this_cpu_ptr(&contexts)->timer;

	hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	timer->function = timer_fires;
	hrtimer_start(timer, ns_to_ktime(PERIOD_NS), HRTIMER_MODE_REL_PINNED_HARD);
	return 0;
}

static int timer_ends(unsigned int cpu)
{
	hrtimer_cancel(&this_cpu_ptr(&contexts)->timer);
	return 0;
}

static void seed(struct guest_books *books, unsigned int n)
{
	prandom_seed_state(&books->rnd, (u64)guest_seed << 16 | n);
}

void guest_load_init(void)
{
	unsigned int i, cpu;

	for (i = 0; i < WORKERS; i++) {
		workers[i].bound = i % 2;
		workers[i].cpu = i / 2 % num_present_cpus();
		seed(&workers[i].books, i);
	}
	for_each_possible_cpu(cpu) {
		struct contexts *there = per_cpu_ptr(&contexts, cpu);

		init_irq_work(&there->interrupt, interrupt_arrives);
		tasklet_setup(&there->softirq, soft);
		seed(&there->hard, WORKERS + 2 * cpu);
		seed(&there->soft, WORKERS + 2 * cpu + 1);
	}
}

/* NULL, and nothing started, where there is no memory for one more thread. */
static struct task_struct *thread(int (*function)(void *data), void *data, const char *name)
{
	struct task_struct *task = kthread_create(function, data, "pcpc_guest:%s", name);

	return IS_ERR(task) ? NULL : task;
}

int guest_load_start(void)
{
	unsigned int i;

	timers_state = cpuhp_setup_state(CPUHP_AP_ONLINE_DYN, "pcpc_guest:timers", timer_begins,
					 timer_ends);
	drainer = thread(drain, NULL, "drain");
	hotplugger = thread(hotplug, NULL, "hotplug");
	if (timers_state < 0 || !drainer || !hotplugger)
		return -ENOMEM;
	WRITE_ONCE(loaded, true);
	for (i = 0; i < WORKERS; i++) {
		WRITE_ONCE(workers[i].task, thread(work, &workers[i], "work"));
		if (!workers[i].task)
			return -ENOMEM;
		wake_up_process(workers[i].task);
	}
	wake_up_process(drainer);
	wake_up_process(hotplugger);
	return 0;
}

static void stop(struct task_struct **task)
{
	if (*task)
		kthread_stop(*task);
	WRITE_ONCE(*task, NULL);
}

void guest_load_stop(void)
{
	unsigned int i, cpu;

	stop(&hotplugger);
	stop(&drainer);
	for (i = 0; i < WORKERS; i++)
		stop(&workers[i].task);
	if (timers_state > 0)
		cpuhp_remove_state(timers_state);
	timers_state = 0;
	WRITE_ONCE(loaded, false);
	for_each_possible_cpu(cpu)
		irq_work_sync(&per_cpu_ptr(&contexts, cpu)->interrupt);
	for_each_possible_cpu(cpu)
		tasklet_kill(&per_cpu_ptr(&contexts, cpu)->softirq);
}

static void add(struct guest_books *sum, const struct guest_books *books)
{
	u32 owner;

	for (owner = 1; owner <= GUEST_OWNERS; owner++) {
		sum->held[owner] += books->held[owner];
		sum->locked[owner] += books->locked[owner];
		sum->moved[owner] += books->moved[owner];
	}
}

void guest_load_sum(struct guest_books *ret_sum)
{
	unsigned int i, cpu;

	memset(ret_sum, 0, sizeof(*ret_sum));
	for (i = 0; i < WORKERS; i++)
		add(ret_sum, &workers[i].books);
	for_each_possible_cpu(cpu) {
		add(ret_sum, &per_cpu_ptr(&contexts, cpu)->hard);
		add(ret_sum, &per_cpu_ptr(&contexts, cpu)->soft);
	}
}

static void give_back(struct guest_books *books)
{
	u32 owner;

	for (owner = 1; owner <= GUEST_OWNERS; owner++) {
		for (; books->held[owner]; books->held[owner]--)
			guest_uncharge(owner, 1, 0);
		for (; books->locked[owner]; books->locked[owner]--)
			guest_locked_uncharge(owner, 1);
	}
}

void guest_load_give_back(void)
{
	unsigned int i, cpu;

	for (i = 0; i < WORKERS; i++)
		give_back(&workers[i].books);
	for_each_possible_cpu(cpu) {
		give_back(&per_cpu_ptr(&contexts, cpu)->hard);
		give_back(&per_cpu_ptr(&contexts, cpu)->soft);
	}
}
