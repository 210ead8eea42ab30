/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * kernel_plugin.h - two shared objects that use kernel.h, for test_kernel_modules.c to load, and
 * what their two files share.
 */
#ifndef PCPCHARGE_TESTS_KERNEL_PLUGIN_H
#define PCPCHARGE_TESTS_KERNEL_PLUGIN_H

#include <pcpcharge/kernel.h>

/* Each object has one, and so has the program: of one name, with values of their own. */
DECLARE_PER_CPU(long, plugin_value);

/* All for the CPU where the caller is bound to, if none is named. */
struct kernel_plugin {
	long (*value)(unsigned int cpu);
	long (*add)(long value); /* in the other file; returns what it is then */
	long *(*allocate)(void); /* for each CPU */
	long *(*allocated)(long *pointer, unsigned int cpu);
	void (*release)(long *pointer);
};

__attribute__((visibility("hidden"))) long plugin_add(long value);

#endif
