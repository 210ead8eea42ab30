// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * stat_bytes.c - memory of an owner, by the number of items.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "stat_bench.h"
#include "stat_tree.h"

/* Bytes of this process that are in memory, to the page. */
static long resident(void)
{
	FILE *file = fopen("/proc/self/smaps_rollup", "r");
	char line[128];
	long kib = -1;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "Rss: %ld kB", &kib) == 1)
			break;
	if (file)
		fclose(file);
	return kib < 0 ? kib : kib * 1024;
}

struct updates {
	const struct owner_tree *tree;
	uint32_t nr_items;
};

static void update_all(void *argument)
{
	const struct updates *updates = argument;
	uint32_t i, item;

	for (i = 1; i <= updates->tree->shape.nr_owners; i++)
		for (item = 0; item < updates->nr_items; item++)
			pcpc_stat_add(updates->tree->owners[i], item, 1);
}

struct figures {
	double made, used;
};

static bool exact(const struct updates *updates, int64_t times)
{
	uint32_t item;

	for (item = 0; item < updates->nr_items; item++)
		if (pcpc_stat_read_exact(updates->tree->nodes[0], item) !=
		    times * updates->tree->shape.nr_owners)
			return false;
	return true;
}

/* The array of handles is the program's. */
static int measure(struct bench_crew *crew, uint32_t nr_owners, uint32_t nr_items,
		   struct figures *ret_figures)
{
	struct owner_tree tree;
	const struct stat_tree_config config = { nr_owners, 1, .nr_items = nr_items };
	struct updates updates = { &tree, nr_items };
	long before = resident(), made, used;
	int r = stat_tree_open(&tree, &config);

	if (r < 0)
		return r;
	made = resident();
	update_all(&updates);
	if (crew) {
		bench_crew_begin(crew, update_all, &updates);
		bench_crew_end(crew);
	}
	used = resident();
	before += (long)(nr_owners * sizeof(*tree.nodes));
	*ret_figures = (struct figures){ (double)(made - before) / nr_owners,
					 (double)(used - before) / nr_owners };
	r = exact(&updates, crew ? 2 : 1) ? 0 : -EILSEQ;
	owner_tree_close(&tree);
	return r;
}

/* What memcg has for an owner (semantics.md 5.1, 5.5, 6.5, 6.6): on each CPU a line for the walk,
 * an array of what was counted and one of what was seen of it; and three shared ones. */
static double arrays_bytes(uint32_t nr_items, unsigned int nr_cpus)
{
	return nr_cpus * (64 + 2.0 * 8 * nr_items) + 3.0 * 8 * nr_items + 64;
}

static void report(const struct bench_options *options, uint32_t nr_items, uint32_t nr_owners,
		   const struct figures *figures, double without)
{
	struct bench_load loads[] = { { .label = "made", .rounds = 1 },
				      { .label = "updated on every CPU", .rounds = 1 } };
	char text[80], csv[32];

	printf("%8u%12.1f%12.1f%14.1f%14.0f%14.0f\n", nr_items, figures->made, figures->used,
	       figures->used - without, arrays_bytes(nr_items, 2), arrays_bytes(nr_items, 64));
	loads[0].median = loads[0].minimum = figures->made;
	loads[1].median = loads[1].minimum = figures->used;
	snprintf(csv, sizeof(csv), "bytes_%u_items", nr_items);
	bench_append_csv(options, csv, nr_owners, loads, 2);
	snprintf(text, sizeof(text), "bytes an owner for %u items, updated on both CPUs", nr_items);
	if (nr_items == 4 || nr_items == 64)
		bench_note_target(text, "", figures->used - without, 0);
}

int stat_measure_bytes(const struct bench_options *options)
{
	static const uint32_t items[] = { 0, 1, 4, 8, 16, 32, 64, 128 };
	const uint32_t nr_owners = options->brief ? 2000 : 20000;
	struct figures figures, without = { 0 };
	struct bench_crew crew;
	const bool two = options->cpu[1] >= 0;
	int r = two ? bench_crew_open(&crew, options->cpu[1]) : 0;
	size_t i;

	if (r < 0 || resident() < 0)
		return r < 0 ? r : -ENOSYS;
	bench_pin(options->cpu[0]);
	/* Large pages would make this a matter of luck. */
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	/* What belongs to the process and its first domain is in memory after this. */
	r = measure(two ? &crew : NULL, 1, 4, &figures);
	printf("\nbytes an owner, resident, of %u\n%8s%12s%12s%14s%14s%14s\n", nr_owners, "items",
	       "made", "updated", "items alone", "memcg, 2 CPUs", "64 CPUs");
	for (i = 0; r == 0 && i < sizeof(items) / sizeof(*items); i++) {
		r = measure(two ? &crew : NULL, nr_owners, items[i], &figures);
		if (!items[i])
			without = figures;
		if (r == 0)
			report(options, items[i], nr_owners, &figures, without.used);
	}
	printf("  (memcg's are calculated, from the number of its arrays)\n");
	prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
	if (two)
		bench_crew_close(&crew);
	return r;
}
