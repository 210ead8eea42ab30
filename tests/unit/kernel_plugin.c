// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * kernel_plugin.c - a shared object with per-CPU variables. Built twice; PLUGIN tells them apart.
 */
#include "kernel_plugin.h"

DEFINE_PER_CPU(long, plugin_value) = PLUGIN;

static long value_at(unsigned int cpu)
{
	return READ_ONCE(per_cpu(plugin_value, cpu));
}

static long *allocate(void)
{
	return alloc_percpu(long);
}

static long *allocated(long *pointer, unsigned int cpu)
{
	return per_cpu_ptr(pointer, cpu);
}

static void release(long *pointer)
{
	free_percpu(pointer);
}

#define NAME_(nr) kernel_plugin_##nr
#define NAME(nr) NAME_(nr)

extern const struct kernel_plugin NAME(PLUGIN);
const struct kernel_plugin NAME(PLUGIN) = {
	.value = value_at,
	.add = plugin_add,
	.allocate = allocate,
	.allocated = allocated,
	.release = release,
};
