/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * kernel/work.h - part of kernel.h: work that is done later, by a task, at a CPU; and CPUs that
 * come and go.
 */
#ifndef PCPCHARGE_KERNEL_WORK_H
#define PCPCHARGE_KERNEL_WORK_H

#ifndef PCPCHARGE_KERNEL_H
#error "include <pcpcharge/kernel.h>"
#endif

#include <stdarg.h>

struct work_struct;
typedef void (*work_func_t)(struct work_struct *work);

struct work_struct {
	struct llist_node node;
	work_func_t func;
	int state; /* see lib/kernel_work.c */
	int cpu;   /* or -1: any */
};

/* One thread does all work, in the order in which it was queued, to whichever queue: the library
 * starts it when work is first set up or queued by a task. */
struct workqueue_struct {
	char name[24]; /* for debuggers */
};
#define system_wq ((struct workqueue_struct *)NULL)
#define system_percpu_wq system_wq

#define __WORK_INITIALIZER(name, function)    \
	{                                     \
		.func = (function), .cpu = -1 \
	}
#define DECLARE_WORK(name, function) struct work_struct name = __WORK_INITIALIZER(name, function)

/** pcpc_kernel_init_work: as INIT_WORK(). Tasks only. */
PCPC_API void pcpc_kernel_init_work(struct work_struct *work, work_func_t function);

/** pcpc_kernel_queue: have work done, in order; at a CPU, where its per-CPU variables are, or -1:
 * any. Returns false if it was queued already. Signal-safe, once a task has set up or queued some;
 * a full barrier, so that the function sees what was done before. */
PCPC_API bool pcpc_kernel_queue(int cpu, struct work_struct *work);

/** pcpc_kernel_flush: wait until work is neither queued nor being done. Returns false if it was
 * not. Tasks only; a function that is work itself may wait for other work. */
PCPC_API bool pcpc_kernel_flush(struct work_struct *work);

/** pcpc_kernel_cancel: have it not done; waits as long as it is being done. Returns true if it was
 * queued. Then nobody knows it any more. Tasks only. */
PCPC_API bool pcpc_kernel_cancel(struct work_struct *work);

/** pcpc_kernel_flush_all: wait until nothing is queued or being done, what that queues included.
 * Tasks only. */
PCPC_API void pcpc_kernel_flush_all(void);

static inline void INIT_WORK(struct work_struct *work, work_func_t function)
{
	pcpc_kernel_init_work(work, function);
}

static inline bool queue_work_on(int cpu, struct workqueue_struct *queue, struct work_struct *work)
{
	(void)queue;
	return pcpc_kernel_queue(cpu, work);
}

static inline bool queue_work(struct workqueue_struct *queue, struct work_struct *work)
{
	return queue_work_on(-1, queue, work);
}

static inline bool schedule_work_on(int cpu, struct work_struct *work)
{
	return pcpc_kernel_queue(cpu, work);
}

static inline bool schedule_work(struct work_struct *work)
{
	return pcpc_kernel_queue(-1, work);
}

static inline bool flush_work(struct work_struct *work)
{
	return pcpc_kernel_flush(work);
}

static inline bool cancel_work_sync(struct work_struct *work)
{
	return pcpc_kernel_cancel(work);
}

static inline void flush_workqueue(struct workqueue_struct *queue)
{
	(void)queue;
	pcpc_kernel_flush_all();
}

static inline void flush_scheduled_work(void)
{
	pcpc_kernel_flush_all();
}

#define WQ_UNBOUND 2u
#define WQ_MEM_RECLAIM 8u
#define WQ_HIGHPRI 16u
#define WQ_PERCPU 256u

/* format: its name, as printf(). flags and max_active are for the kernel. NULL: no memory. */
static inline __attribute__((format(printf, 1, 4))) struct workqueue_struct *
alloc_workqueue(const char *format, unsigned int flags, int max_active, ...)
{
	struct workqueue_struct *queue = kmalloc(sizeof(*queue), GFP_KERNEL);
	va_list arguments;

	(void)flags;
	if (!queue)
		return NULL;
	va_start(arguments, max_active);
	(void)vsnprintf(queue->name, sizeof(queue->name), format, arguments);
	va_end(arguments);
	return queue;
}

static inline void destroy_workqueue(struct workqueue_struct *queue)
{
	pcpc_kernel_flush_all();
	kfree(queue);
}

/* -- CPU hotplug -- */

enum cpuhp_state {
	CPUHP_OFFLINE,
	CPUHP_MM_MEMCQ_DEAD,
	CPUHP_BP_PREPARE_DYN,
	CPUHP_AP_ONLINE_DYN,
	PCPC_KERNEL_HOTPLUG_FIRST = 64, /* what a dynamic one becomes: up to 15 more */
};

/**
 * cpuhp_setup_state_nocalls: startup(cpu) when a CPU comes, teardown(cpu) when it is gone: for then
 * nobody is there any more. Either may be NULL. They run in the task that takes the CPU off or on,
 * at another CPU.
 *
 * Returns 0, or for a dynamic state its number, above 0; -ENOSPC. name is not kept; what the
 * functions return is not looked at.
 */
PCPC_API int pcpc_kernel_hotplug(enum cpuhp_state state, int (*startup)(unsigned int cpu),
				 int (*teardown)(unsigned int cpu));
PCPC_API void pcpc_kernel_no_hotplug(enum cpuhp_state state);

static inline int cpuhp_setup_state_nocalls(enum cpuhp_state state, const char *name,
					    int (*startup)(unsigned int cpu),
					    int (*teardown)(unsigned int cpu))
{
	(void)name;
	return pcpc_kernel_hotplug(state, startup, teardown);
}

static inline void cpuhp_remove_state_nocalls(enum cpuhp_state state)
{
	pcpc_kernel_no_hotplug(state);
}

/**
 * pcpc_kernel_cpu_down: take a CPU off: let nobody go there, wait until nobody is at it, and call
 * what was set up. Work that is queued for it is done at another. pcpc_kernel_cpu_up: bring it
 * back.
 *
 * Return 0; -EINVAL: no such CPU, or it is off, or on, already; -EBUSY: the last one. Tasks only,
 * with preemption and migration enabled.
 */
PCPC_API int pcpc_kernel_cpu_down(unsigned int cpu);
PCPC_API int pcpc_kernel_cpu_up(unsigned int cpu);

/** pcpc_kernel_hotplug_lock: keep CPUs from coming and going, 1, or no more, -1. Nests. Tasks only;
 * not in what a CPU that comes or goes calls. */
PCPC_API void pcpc_kernel_hotplug_lock(int step);

static inline void cpus_read_lock(void)
{
	pcpc_kernel_hotplug_lock(1);
}

static inline void cpus_read_unlock(void)
{
	pcpc_kernel_hotplug_lock(-1);
}

#endif
