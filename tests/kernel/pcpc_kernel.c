// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * pcpc_kernel.c - kernel.h in a kernel module: it brings the kernel's own primitives, and no other.
 */
#include <pcpcharge/kernel.h>

#include <linux/module.h>

#if defined PCPC_API || defined PCPC_KERNEL_CPUS || defined PCPC_KERNEL_SECTION
#error "kernel.h has brought those of user space"
#endif

static DEFINE_PER_CPU_ALIGNED(local_lock_t, lock) = INIT_LOCAL_LOCK(lock);
static DEFINE_PER_CPU(unsigned long, number);
static DEFINE_MUTEX(mutex);
static LIST_HEAD(list);
static LLIST_HEAD(pushed);

struct entry {
	struct list_head siblings;
	struct llist_node node;
	struct rcu_head rcu;
};

static void work(struct work_struct *unused)
{
	unsigned long flags;

	local_lock_irqsave(&lock, flags);
	this_cpu_add(number, min_t(unsigned long, PAGE_SIZE, 4095));
	local_unlock_irqrestore(&lock, flags);
}

static DECLARE_WORK(item, work);

static int __init start(void)
{
	struct entry *entry = kzalloc(sizeof(*entry), GFP_KERNEL);
	unsigned long sum = 0;
	int cpu;

	BUILD_BUG_ON(sizeof(u64) != 8);
	if (!entry)
		return -ENOMEM;
	mutex_lock(&mutex);
	list_add(&entry->siblings, &list);
	mutex_unlock(&mutex);
	llist_add(&entry->node, &pushed);
	schedule_work_on(raw_smp_processor_id(), &item);
	flush_work(&item);
	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu(number, cpu));
	list_del(&entry->siblings);
	WARN_ON_ONCE(llist_del_all(&pushed) != &entry->node);
	kfree_rcu(entry, rcu);
	return sum == 4095 ? 0 : -EINVAL;
}

static void __exit stop(void)
{
}

module_init(start);
module_exit(stop);
MODULE_DESCRIPTION("libpcpcharge's kernel.h in a kernel");
MODULE_LICENSE("Dual MIT/GPL");
