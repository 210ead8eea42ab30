/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * kernel/task.h - part of kernel.h: the running task, interrupts, preemption, CPUs, time.
 */
#ifndef PCPCHARGE_KERNEL_TASK_H
#define PCPCHARGE_KERNEL_TASK_H

#ifndef PCPCHARGE_KERNEL_H
#error "include <pcpcharge/kernel.h>"
#endif

#include <time.h>

/* -- tasks -- */

#define PF_MEMALLOC 0x800u

/* What memcontrol-like code looks at in the running thread. */
struct task_struct {
	unsigned int flags;		       /* PF_MEMALLOC */
	unsigned int memcg_nr_pages_over_high; /* to be reclaimed on the way to user mode */
	bool in_memcg_oom;		       /* it has met the OOM killer, and must not wait */
	bool dying;			       /* somebody kills it */
};

/** pcpc_kernel_current: the running thread's; to write to, by that thread. Signal-safe. */
PCPC_API struct task_struct *pcpc_kernel_current(void);

#define current (pcpc_kernel_current())

static inline bool task_is_dying(void)
{
	return current->dying;
}

static inline unsigned int memalloc_noreclaim_save(void)
{
	unsigned int flags = current->flags & PF_MEMALLOC;

	current->flags |= PF_MEMALLOC;
	return flags;
}

static inline void memalloc_noreclaim_restore(unsigned int flags)
{
	current->flags = (current->flags & ~PF_MEMALLOC) | flags;
}

/* -- interrupts: a signal handler says that it is one -- */

/** pcpc_kernel_irq: 1: a handler begins; -1: it ends; 0: nothing. Returns how many are nested in
 * this thread then. Signal-safe. */
PCPC_API unsigned int pcpc_kernel_irq(int step);

static inline void irq_enter(void)
{
	(void)pcpc_kernel_irq(1);
}

static inline void irq_exit(void)
{
	(void)pcpc_kernel_irq(-1);
}

static inline bool in_task(void)
{
	return pcpc_kernel_irq(0) == 0;
}

static inline bool in_interrupt(void)
{
	return !in_task();
}

/**
 * pcpc_kernel_irq_save: block the signals of this thread, with preemption disabled.
 * pcpc_kernel_irq_restore: and let them through again, if flags says that they were.
 *
 * They nest. save returns what restore is to be given. Two system calls for the outermost pair.
 */
PCPC_API unsigned long pcpc_kernel_irq_save(void);
PCPC_API void pcpc_kernel_irq_restore(unsigned long flags);

#define local_irq_save(flags) ((void)((flags) = pcpc_kernel_irq_save()))
#define local_irq_restore(flags) pcpc_kernel_irq_restore(flags)

/* -- CPUs -- */

#define PCPC_KERNEL_CPUS 512 /* the most */

/**
 * pcpc_kernel_set_cpus: how many CPUs there are, 1..PCPC_KERNEL_CPUS; before, as many as the real
 * machine may have.
 *
 * Returns 0; -EINVAL; -EBUSY: some thread is at a CPU, or some CPU is offline. Threads that are not
 * bound are at the CPU where they really run, modulo that number.
 */
PCPC_API int pcpc_kernel_set_cpus(unsigned int nr_cpus);

/** pcpc_kernel_bind: this thread is at that CPU from now on; -1: where it really runs. Returns 0 or
 * -EINVAL. While the CPU is offline the thread is at another. */
PCPC_API int pcpc_kernel_bind(int cpu);

/** pcpc_kernel_preempt: 1: disable preemption, which may wait until another thread has enabled it
 * at that CPU; -1: enable it. Nests. Signal-safe. */
PCPC_API void pcpc_kernel_preempt(int step);

/** pcpc_kernel_migrate: 1: stay at this CPU, which others may use as well; -1: no more. Nests.
 * Signal-safe. */
PCPC_API void pcpc_kernel_migrate(int step);

/** pcpc_kernel_cpu: the CPU where this thread is just now. Signal-safe. */
PCPC_API unsigned int pcpc_kernel_cpu(void);

/** pcpc_kernel_nr_cpus, pcpc_kernel_online: how many there are; is that one, of them, online?
 * Signal-safe. */
PCPC_API unsigned int pcpc_kernel_nr_cpus(void);
PCPC_API bool pcpc_kernel_online(unsigned int cpu);

#define nr_cpu_ids (pcpc_kernel_nr_cpus())
#define NR_CPUS PCPC_KERNEL_CPUS

static inline void preempt_disable(void)
{
	pcpc_kernel_preempt(1);
}

static inline void preempt_enable(void)
{
	pcpc_kernel_preempt(-1);
}

static inline void migrate_disable(void)
{
	pcpc_kernel_migrate(1);
}

static inline void migrate_enable(void)
{
	pcpc_kernel_migrate(-1);
}

static inline void local_bh_disable(void)
{
	pcpc_kernel_preempt(1);
}

static inline void local_bh_enable(void)
{
	pcpc_kernel_preempt(-1);
}

static inline int smp_processor_id(void)
{
	return (int)pcpc_kernel_cpu();
}

static inline int raw_smp_processor_id(void)
{
	return (int)pcpc_kernel_cpu();
}

static inline int get_cpu(void)
{
	preempt_disable();
	return smp_processor_id();
}

static inline void put_cpu(void)
{
	preempt_enable();
}

static inline bool cpu_online(unsigned int cpu)
{
	return cpu < nr_cpu_ids && pcpc_kernel_online(cpu);
}

static inline unsigned int num_possible_cpus(void)
{
	return nr_cpu_ids;
}

static inline unsigned int num_online_cpus(void)
{
	unsigned int cpu, online = 0;

	for (cpu = 0; cpu < nr_cpu_ids; cpu++)
		online += cpu_online(cpu);
	return online;
}

#define for_each_possible_cpu(cpu) for ((cpu) = 0; (unsigned int)(cpu) < nr_cpu_ids; (cpu)++)
#define for_each_online_cpu(cpu)                      \
	for_each_possible_cpu(cpu)                    \
		if (!cpu_online((unsigned int)(cpu))) \
			continue;                     \
		else

/* -- time -- */

#define HZ 1000UL

static inline unsigned long pcpc_kernel_jiffies(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (unsigned long)now.tv_sec * HZ + (unsigned long)now.tv_nsec / (1000000000UL / HZ);
}

#define jiffies (pcpc_kernel_jiffies())
#define time_before(left, right) time_after(right, left)
#define time_after(left, right) ((long)((right) - (left)) < 0)

static inline unsigned long msecs_to_jiffies(unsigned int milliseconds)
{
	return milliseconds * (HZ / 1000);
}

static inline void msleep(unsigned int milliseconds)
{
	struct timespec left = { .tv_sec = milliseconds / 1000,
				 .tv_nsec = milliseconds % 1000 * 1000000L };

	/* Signals do not make it shorter. */
	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
		;
}

static inline void cond_resched(void)
{
}

#endif
