/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * kernel.h - what code that is written like the Linux kernel's mm/memcontrol.c finds around it: so
 * that such code compiles in user space, unchanged.
 *
 * Opt-in: it defines names like likely(), min() and list_add(), so no other header but memcontrol.h
 * includes it. For C with GNU extensions, as the kernel. Under __KERNEL__ it includes the real
 * headers, and defines nothing that they define. A program that uses RCU links with liburcu-bp,
 * whose functions these are.
 *
 * What a machine is here: there are as many CPUs as pcpc_kernel_set_cpus() says, else as the real
 * one may have. They are places to run at: of the threads that have preemption disabled, one at a
 * time is at each CPU. Signal handlers are interrupts: they run at the CPU of the thread that they
 * interrupt, whatever it does, and bracket themselves with irq_enter() and irq_exit(). A thread is
 * a task. Per-CPU variables, work items and CPU hotplug are in kernel/percpu.h and kernel/work.h.
 *
 * After a fork the child has the calling thread only; no CPU is taken by another one, and work that
 * was queued is done by a thread of its own, once it queues or flushes some.
 */
#ifndef PCPCHARGE_KERNEL_H
#define PCPCHARGE_KERNEL_H

#ifdef __cplusplus
#error "kernel.h is for C, like the kernel"
#endif

#ifdef __KERNEL__

#include <linux/atomic.h>
#include <linux/bitops.h>
#include <linux/bug.h>
#include <linux/build_bug.h>
#include <linux/cache.h>
#include <linux/cgroup-defs.h>
#include <linux/compiler.h>
#include <linux/container_of.h>
#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/gfp.h>
#include <linux/init.h>
#include <linux/interrupt.h>
#include <linux/jiffies.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/local_lock.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/page_counter.h>
#include <linux/percpu.h>
#include <linux/percpu-refcount.h>
#include <linux/preempt.h>
#include <linux/printk.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#else

#include <pcpcharge/base.h>

#include <pcpcharge/kernel/compiler.h>
#include <pcpcharge/kernel/atomic.h>
#include <pcpcharge/kernel/list.h>
#include <pcpcharge/kernel/task.h>
#include <pcpcharge/kernel/percpu.h>
#include <pcpcharge/kernel/lock.h>
#include <pcpcharge/kernel/work.h>
#include <pcpcharge/kernel/css.h>
#include <pcpcharge/kernel/page_counter.h>

/* That of C11, where the text may be left out. After all others, for <assert.h> undoes it each
 * time, and liburcu includes that. */
#include <assert.h>
#undef static_assert
#define static_assert(condition, ...) \
	PCPC_KERNEL_ASSERT(condition, ##__VA_ARGS__, #condition, not_used)
#define PCPC_KERNEL_ASSERT(condition, text, ...) _Static_assert(condition, text)

#endif
#endif
