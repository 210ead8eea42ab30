// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * pcpc_stock.c - a kernel module that uses stock.h as it is: one stock a CPU, charged and uncharged
 * with preemption disabled, on the primitives that the header brings for a kernel.
 */
#include <linux/errno.h>
#include <linux/module.h>
#include <linux/percpu.h>

#include <pcpcharge/stock.h>

static DEFINE_PER_CPU_ALIGNED(struct pcpc_stock, stocks);
static const struct pcpc_marks marks = { 64, 32, 64 };

static bool charge(u32 owner, u64 pages, struct pcpc_deferred *ret_deferred)
{
	bool hit;

	preempt_disable();
	hit = pcpc_stock_consume(this_cpu_ptr(&stocks), owner, pages, 0, &marks, ret_deferred);
	preempt_enable();
	return hit;
}

static void uncharge(u32 owner, u64 pages, struct pcpc_deferred *ret_deferred)
{
	preempt_disable();
	pcpc_stock_refill(this_cpu_ptr(&stocks), owner, pages, 0, &marks, ret_deferred);
	preempt_enable();
}

/* Loads only if one owner's units come back as they went in. */
static int __init start(void)
{
	struct pcpc_deferred deferred;

	uncharge(1, 65, &deferred);
	if (deferred.owner != 1 || deferred.count != 65)
		return -EINVAL;
	uncharge(1, 5, &deferred);
	if (deferred.owner)
		return -EINVAL;
	return charge(1, (1ull << 32) + 1, &deferred) ? -EINVAL : 0;
}

static void __exit stop(void)
{
}

module_init(start);
module_exit(stop);
MODULE_DESCRIPTION("libpcpcharge's stock in a kernel");
MODULE_LICENSE("Dual MIT/GPL");
