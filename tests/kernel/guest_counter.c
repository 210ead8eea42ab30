// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * guest_counter.c - counters of a tree of owners, and counts of what happened.
 *
 * The counters are the plainest that do: one atomic a level, added to first and taken back from
 * where a max refuses. They are what both kinds of stocks settle to.
 */
#include <linux/cpumask.h>

#include "guest.h"

struct guest_counts {
	unsigned long n[GUEST_COUNTS];
};

static DEFINE_PER_CPU(struct guest_counts, counts);

void guest_count_add(enum guest_count what, unsigned long n)
{
	this_cpu_add(counts.n[what], n);
}

unsigned long guest_counted(enum guest_count what)
{
	unsigned long sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(&counts, cpu)->n[what]);
	return sum;
}

static void counter_init(struct guest_counter *counter, struct guest_counter *parent)
{
	atomic_long_set(&counter->usage, 0);
	counter->max = LONG_MAX;
	counter->parent = parent;
}

void guest_tree_init(struct guest_tree *tree)
{
	u32 i;

	counter_init(&tree->root, NULL);
	for (i = 0; i < GUEST_GROUPS; i++)
		counter_init(&tree->group[i], &tree->root);
	for (i = 1; i <= GUEST_OWNERS; i++)
		counter_init(&tree->owner[i], &tree->group[i % GUEST_GROUPS]);
	tree->owner[1].max = GUEST_MAX;
}

bool guest_counter_charge(struct guest_counter *counter, long n)
{
	struct guest_counter *level, *back;

	for (level = counter; level; level = level->parent) {
		if (atomic_long_add_return(n, &level->usage) <= level->max)
			continue;
		for (back = counter; back != level->parent; back = back->parent)
			atomic_long_sub(n, &back->usage);
		return false;
	}
	return true;
}

void guest_counter_uncharge(struct guest_counter *counter, long n)
{
	for (; counter; counter = counter->parent)
		atomic_long_sub(n, &counter->usage);
}
