// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * kernel.c - the machine behind kernel.h: tasks, interrupts, CPUs to be at, per-CPU memory,
 * warnings. Work and hotplug are in kernel_work.c.
 *
 * A CPU is a word that says which thread is there with preemption disabled. A thread chooses a CPU
 * when it disables preemption or migration for the first time, in one compare-and-exchange, and
 * then takes the word. A signal handler that comes between two of those steps does them itself, and
 * finds or leaves everything as the interrupted thread would: so no step may be done twice, and
 * none of them is.
 */
#define _GNU_SOURCE
#include <pcpcharge/kernel.h>

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <unistd.h>

#include "kernel_private.h"
#include "percpu.h"

static __attribute__((tls_model("initial-exec"))) _Thread_local struct kernel_thread {
	struct task_struct task;
	int cpu;   /* that was chosen, and 1; 0: none */
	int bound; /* likewise, by pcpc_kernel_bind() */
	unsigned int preempt, migrate, irq, blocked;
	sigset_t signals; /* of the outermost pcpc_kernel_irq_save() */
} self;

/* Each on a line of its own: written by whoever is there. */
static struct cpu {
	_Alignas(128) struct kernel_thread *holder; /* preemption disabled; NULL: nobody */
	unsigned int fixed;			    /* threads with migration disabled there */
	bool offline;
} cpus[PCPC_KERNEL_CPUS];

static unsigned int nr_cpus; /* 0: not known yet */
static unsigned long warnings;

/* -- warnings -- */

unsigned long pcpc_kernel_warnings(void)
{
	return READ_ONCE(warnings);
}

/* One write, so that lines of several threads do not mix; no stdio, for handlers. */
void pcpc_kernel_warn(const char *file, int line, const char *what)
{
	char text[256], number[12];
	size_t length = 0, digits = sizeof(number);
	const char *parts[6] = { "WARNING: ", file, ":", NULL, ": ", what };
	ssize_t written;
	unsigned int i;

	number[--digits] = '\0';
	do {
		number[--digits] = (char)('0' + line % 10);
		line /= 10;
	} while (line && digits);
	parts[3] = &number[digits];
	for (i = 0; i < 6; i++)
		while (*parts[i] && length < sizeof(text) - 1)
			text[length++] = *parts[i]++;
	if (text[length - 1] != '\n')
		text[length++] = '\n';
	written = write(STDERR_FILENO, text, length);
	(void)written;
	__atomic_fetch_add(&warnings, 1, __ATOMIC_RELAXED);
}

void pcpc_kernel_warn_text(const char *file, int line, const char *format, ...)
{
	char text[200];
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	pcpc_kernel_warn(file, line, text);
}

/* -- tasks and interrupts -- */

struct task_struct *pcpc_kernel_current(void)
{
	return &self.task;
}

unsigned int pcpc_kernel_irq(int step)
{
	self.irq += (unsigned int)step;
	return self.irq;
}

unsigned long pcpc_kernel_irq_save(void)
{
	sigset_t all, before;

	if (!self.blocked) {
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &before);
		self.signals = before;
	}
	pcpc_kernel_preempt(1);
	return self.blocked++;
}

void pcpc_kernel_irq_restore(unsigned long flags)
{
	sigset_t before = self.signals;

	self.blocked = (unsigned int)flags;
	pcpc_kernel_preempt(-1);
	if (!flags)
		pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* -- CPUs -- */

unsigned int pcpc_kernel_nr_cpus(void)
{
	unsigned int nr = READ_ONCE(nr_cpus), found;

	if (nr)
		return nr;
	found = pcpc_possible_cpus();
	found = found < PCPC_KERNEL_CPUS ? found : PCPC_KERNEL_CPUS;
	(void)cmpxchg_relaxed(&nr_cpus, 0, found ? found : 1);
	return READ_ONCE(nr_cpus);
}

bool pcpc_kernel_online(unsigned int cpu)
{
	return cpu < PCPC_KERNEL_CPUS && !READ_ONCE(cpus[cpu].offline);
}

int pcpc_kernel_set_cpus(unsigned int nr)
{
	unsigned int cpu;

	if (!nr || nr > PCPC_KERNEL_CPUS)
		return -EINVAL;
	for (cpu = 0; cpu < PCPC_KERNEL_CPUS; cpu++)
		if (READ_ONCE(cpus[cpu].holder) || READ_ONCE(cpus[cpu].fixed) ||
		    READ_ONCE(cpus[cpu].offline))
			return -EBUSY;
	pcpc_kernel_copy_images(nr);
	WRITE_ONCE(nr_cpus, nr);
	return 0;
}

int pcpc_kernel_bind(int cpu)
{
	if (cpu < -1 || cpu >= (int)nr_cpu_ids)
		return -EINVAL;
	WRITE_ONCE(self.bound, cpu + 1);
	return 0;
}

/* Where the thread would be: bound, or where it really runs; the next one that is online. */
static int choose_cpu(void)
{
	unsigned int nr = nr_cpu_ids, cpu, tries;
	int bound = READ_ONCE(self.bound) - 1, real;

	real = bound < 0 ? sched_getcpu() : bound;
	cpu = real < 0 ? 0 : (unsigned int)real % nr;
	for (tries = 0; tries < nr && !pcpc_kernel_online(cpu); tries++)
		cpu = (cpu + 1) % nr;
	return (int)cpu;
}

/* Chooses a CPU, unless that was done. Together with handlers: one of them does. */
static int chosen_cpu(void)
{
	int none = 0, mine = READ_ONCE(self.cpu);

	if (!mine) {
		mine = choose_cpu() + 1;
		if (!__atomic_compare_exchange_n(&self.cpu, &none, mine, false, __ATOMIC_RELAXED,
						 __ATOMIC_RELAXED))
			mine = none;
	}
	return mine - 1;
}

unsigned int pcpc_kernel_cpu(void)
{
	int mine = READ_ONCE(self.cpu);

	return (unsigned int)(mine ? mine - 1 : choose_cpu());
}

/* One attempt to be at a CPU alone; a handler may have made it already. Sequentially consistent,
 * and whether the CPU is online is looked at after: pairs with pcpc_kernel_take_off(). Acquire: for
 * what was done there before, with leave_cpu(). */
static bool enter_cpu(struct cpu *cpu)
{
	struct kernel_thread *nobody = NULL;

	return __atomic_compare_exchange_n(&cpu->holder, &nobody, &self, false, __ATOMIC_SEQ_CST,
					   __ATOMIC_RELAXED) ||
	       nobody == &self;
}

/* If it still is there: a handler may have left for it. */
static void leave_cpu(struct cpu *cpu)
{
	struct kernel_thread *me = &self;

	(void)__atomic_compare_exchange_n(&cpu->holder, &me, NULL, false, __ATOMIC_RELEASE,
					  __ATOMIC_RELAXED);
}

/* The CPU that was chosen has gone offline before it was entered, and migration is enabled. */
static void choose_again(int chosen)
{
	int mine = chosen + 1;

	(void)__atomic_compare_exchange_n(&self.cpu, &mine, 0, false, __ATOMIC_RELAXED,
					  __ATOMIC_RELAXED);
}

static void disable_preemption(void)
{
	struct cpu *cpu;
	int chosen;

	/* First, so that a handler that comes now does not leave what it has entered for us. */
	WRITE_ONCE(self.preempt, self.preempt + 1);
	barrier();
	for (;;) {
		chosen = chosen_cpu();
		cpu = &cpus[chosen];
		if (READ_ONCE(cpu->holder) == &self)
			return;
		if (enter_cpu(cpu)) {
			/* A handler may have chosen another one meanwhile. */
			if (READ_ONCE(self.cpu) == chosen + 1 &&
			    (self.migrate || !__atomic_load_n(&cpu->offline, __ATOMIC_SEQ_CST)))
				return;
			leave_cpu(cpu);
		}
		if (!self.migrate && !pcpc_kernel_online((unsigned int)chosen))
			choose_again(chosen);
		sched_yield();
	}
}

static void enable_preemption(void)
{
	int chosen = READ_ONCE(self.cpu) - 1;

	barrier();
	WRITE_ONCE(self.preempt, self.preempt - 1);
	if (self.preempt || chosen < 0)
		return;
	/* Left before it is forgotten: a handler that comes between enters and leaves it again. */
	leave_cpu(&cpus[chosen]);
	if (!self.migrate)
		WRITE_ONCE(self.cpu, 0);
}

void pcpc_kernel_preempt(int step)
{
	if (step > 0)
		disable_preemption();
	else
		enable_preemption();
}

void pcpc_kernel_migrate(int step)
{
	int chosen;

	if (step > 0) {
		/* Being there alone for a moment, so that it is not taken off before this is seen:
		 * counted before holder changes again. */
		disable_preemption();
		if (!self.migrate)
			__atomic_fetch_add(&cpus[self.cpu - 1].fixed, 1, __ATOMIC_SEQ_CST);
		WRITE_ONCE(self.migrate, self.migrate + 1);
		enable_preemption();
		return;
	}
	chosen = READ_ONCE(self.cpu) - 1;
	WRITE_ONCE(self.migrate, self.migrate - 1);
	if (self.migrate)
		return;
	__atomic_fetch_sub(&cpus[chosen].fixed, 1, __ATOMIC_RELEASE);
	if (!self.preempt)
		WRITE_ONCE(self.cpu, 0);
}

/* Takes a CPU off: nobody chooses it any more, and whoever is there leaves. Sequentially
 * consistent, and holder is looked at after: pairs with disable_preemption(), which enters and then
 * looks whether it is online. */
void pcpc_kernel_take_off(unsigned int which)
{
	struct cpu *cpu = &cpus[which];

	__atomic_store_n(&cpu->offline, true, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&cpu->fixed, __ATOMIC_SEQ_CST) ||
	       __atomic_load_n(&cpu->holder, __ATOMIC_SEQ_CST))
		sched_yield();
}

void pcpc_kernel_bring_back(unsigned int which)
{
	__atomic_store_n(&cpus[which].offline, false, __ATOMIC_SEQ_CST);
}

/* Only this thread is there: what others held is free. */
void pcpc_kernel_forget_others(void)
{
	unsigned int cpu;

	for (cpu = 0; cpu < PCPC_KERNEL_CPUS; cpu++) {
		if (cpus[cpu].holder != &self)
			cpus[cpu].holder = NULL;
		cpus[cpu].fixed = self.migrate && self.cpu == (int)cpu + 1;
	}
}

void pcpc_kernel_spin(int *taken)
{
	while (__atomic_exchange_n(taken, 1, __ATOMIC_ACQUIRE))
		sched_yield();
}
