// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_kernel_modules.c - the per-CPU variables of a program and of two shared objects that it
 * loads, which have a variable of one name: kernel/percpu.h, "A variable belongs to one module".
 *
 * test_kernel_modules PLUGIN PLUGIN
 */
#define _GNU_SOURCE
#include "kernel_plugin.h"

#include <dlfcn.h>

#include "unit_support.h"

#define CPUS 8u

DEFINE_PER_CPU(long, plugin_value) = 100;

static char **paths;

struct loaded {
	void *handle;
	const struct kernel_plugin *plugin;
};

static struct loaded load(int nr)
{
	const char *const names[] = { NULL, "kernel_plugin_1", "kernel_plugin_2" };
	struct loaded loaded = { .handle = dlopen(paths[nr], RTLD_NOW | RTLD_GLOBAL) };

	ck_assert_msg(loaded.handle != NULL, "%s", dlerror());
	loaded.plugin = dlsym(loaded.handle, names[nr]);
	ck_assert_ptr_nonnull(loaded.plugin);
	return loaded;
}

/* Every CPU's copy begins with the image, also for CPUs that there are only after it was loaded. */
START_TEST(variables_of_modules_do_not_mix)
{
	struct loaded one = load(1), two;
	unsigned int cpu;

	ck_assert_int_eq(pcpc_kernel_set_cpus(CPUS), 0);
	two = load(2);
	for_each_possible_cpu(cpu) {
		ck_assert_int_eq(pcpc_kernel_bind((int)cpu), 0);
		ck_assert_int_eq(one.plugin->value(cpu), 1);
		ck_assert_int_eq(two.plugin->value(cpu), 2);
		ck_assert_int_eq(per_cpu(plugin_value, cpu), 100);
		ck_assert_int_eq(one.plugin->add(10 + cpu), 1000 + 11 + cpu);
		ck_assert_int_eq(one.plugin->add(0), 2000 + 11 + cpu);
		ck_assert_int_eq(two.plugin->add(20 + cpu), 1000 + 22 + cpu);
		this_cpu_add(plugin_value, 5);
	}
	for_each_possible_cpu(cpu) {
		ck_assert_int_eq(one.plugin->value(cpu), 11 + cpu);
		ck_assert_int_eq(two.plugin->value(cpu), 22 + cpu);
		ck_assert_int_eq(per_cpu(plugin_value, cpu), 105);
	}
	dlclose(one.handle);
	dlclose(two.handle);
}
END_TEST

/* What a module allocates is beside its own variables, at every CPU. */
START_TEST(memory_of_modules_does_not_mix)
{
	struct loaded one, two;
	long *first, *second, *own;
	unsigned int cpu;

	ck_assert_int_eq(pcpc_kernel_set_cpus(CPUS), 0);
	one = load(1);
	two = load(2);
	first = one.plugin->allocate();
	second = two.plugin->allocate();
	own = alloc_percpu(long);
	for_each_possible_cpu(cpu) {
		*one.plugin->allocated(first, cpu) = 1 + cpu;
		*two.plugin->allocated(second, cpu) = -1L - cpu;
		*per_cpu_ptr(own, cpu) = 50;
	}
	for_each_possible_cpu(cpu) {
		ck_assert_int_eq(*one.plugin->allocated(first, cpu), 1 + cpu);
		ck_assert_int_eq(*two.plugin->allocated(second, cpu), -1L - cpu);
		ck_assert_int_eq(*per_cpu_ptr(own, cpu), 50);
		ck_assert_int_eq(one.plugin->value(cpu), 1);
		ck_assert_int_eq(two.plugin->value(cpu), 2);
	}
	one.plugin->release(first);
	two.plugin->release(second);
	free_percpu(own);
}
END_TEST

/* One that is unloaded and loaded again begins anew; the other does not notice. */
START_TEST(a_module_that_is_loaded_again_begins_anew)
{
	struct loaded one, two;
	unsigned int round;

	ck_assert_int_eq(pcpc_kernel_set_cpus(CPUS), 0);
	ck_assert_int_eq(pcpc_kernel_bind(3), 0);
	two = load(2);
	for (round = 1; round <= 5; round++) {
		one = load(1);
		ck_assert_int_eq(one.plugin->value(3), 1);
		ck_assert_int_eq(one.plugin->add(7), 1000 + 8);
		ck_assert_int_eq(two.plugin->add(1), 1000 * round + 2 + round);
		ck_assert_int_eq(dlclose(one.handle), 0);
	}
	ck_assert_int_eq(two.plugin->value(3), 7);
	ck_assert_int_eq(pcpc_kernel_set_cpus(CPUS + 8), 0);
	ck_assert_int_eq(two.plugin->value(CPUS + 7), 2);
}
END_TEST

int main(int argc, char **argv)
{
	Suite *suite = suite_create("kernel modules");
	TCase *tests = unit_case(suite, "modules");

	if (argc != 3) {
		fprintf(stderr, "usage: %s PLUGIN PLUGIN\n", argv[0]);
		return EXIT_FAILURE;
	}
	paths = argv;
	tcase_add_test(tests, variables_of_modules_do_not_mix);
	tcase_add_test(tests, memory_of_modules_does_not_mix);
	tcase_add_test(tests, a_module_that_is_loaded_again_begins_anew);
	return unit_run(suite);
}
