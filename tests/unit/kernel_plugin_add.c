// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * kernel_plugin_add.c - the other file of that shared object: what it calls plugin_value is the
 * same variable.
 */
#include "kernel_plugin.h"

/* Something of its own, so that its part of the section is not empty. */
static DEFINE_PER_CPU_ALIGNED(long, nr_calls);

long plugin_add(long value)
{
	this_cpu_inc(nr_calls);
	return this_cpu_add_return(plugin_value, value) + 1000 * this_cpu_read(nr_calls);
}
