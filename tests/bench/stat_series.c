// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * stat_series.c - updates of 1 to 20,000 pairs of owner and item in trees of three depths, beside
 * other ways to count. How it is measured is in bench_blocks.c; its owners are pairs here.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>

#include "stat_bench.h"
#include "stat_tree.h"

#define MAX_BLOCKS 64

const struct rival *const bench_rivals[] = {
	&rival_stats,	    &rival_stats_atomic,	&rival_local,
	&rival_arrays_past, &rival_arrays_below,	&rival_arrays_past_atomic,
	&rival_item_atomic, &rival_arrays_below_atomic,
};
const unsigned int bench_nr_rivals = sizeof(bench_rivals) / sizeof(bench_rivals[0]);

static const char *const titles[BENCH_NR_SCENARIOS] = {
	[BENCH_CHARGES] = "+1, one CPU",
	[BENCH_CHARGES_TWO] = "+1, two CPUs at once, the same pairs",
	[BENCH_ONE_CPU] = "+1 and -1, one CPU",
	[BENCH_TWO_CPUS] = "+1 and -1, two CPUs at once, the same pairs",
};

/* What is run. */
static const struct bench_plan full_plan = {
	{ 1, 3, 6 },
	{
		[BENCH_CHARGES] = { 1, 7, 36, 300, 1000, 7000, 20000 },
		[BENCH_CHARGES_TWO] = { 1, 36, 1000, 20000 },
		[BENCH_ONE_CPU] = { 1, 36, 1000 },
		[BENCH_TWO_CPUS] = { 1, 36 },
	},
};
static const struct bench_plan brief_plan = {
	{ 1, 6 },
	{
		[BENCH_CHARGES] = { 1, 36, 1000 },
		[BENCH_CHARGES_TWO] = { 36 },
		[BENCH_ONE_CPU] = { 36 },
	},
};

static const struct target {
	const char *rival, *label;
	enum bench_scenario scenario;
	const char *text;
} targets[] = {
	{ "arrays_past", "memcg past T", BENCH_CHARGES, "one CPU" },
	{ "arrays_below", "memcg below T", BENCH_CHARGES, "one CPU" },
	{ "arrays_past_atomic", "memcg past T, atomic", BENCH_CHARGES, "one CPU" },
	{ "arrays_below_atomic", "memcg below T, atomic", BENCH_CHARGES, "one CPU" },
	{ "arrays_past", "memcg past T", BENCH_CHARGES_TWO, "two CPUs" },
	{ "arrays_below", "memcg below T", BENCH_CHARGES_TWO, "two CPUs" },
	{ "item_atomic", "shared atomic", BENCH_CHARGES_TWO, "two CPUs" },
	{ "thread_local", "thread-local", BENCH_CHARGES, "one CPU" },
};

static void note_targets(const struct bench_block *blocks, unsigned int nr_blocks,
			 const struct bench_plan *plan)
{
	const struct bench_series *rival, *ours;
	const struct bench_block *block;
	unsigned int d;
	char text[80];
	size_t i;

	for (i = 0; i < sizeof(targets) / sizeof(*targets); i++) {
		for (d = 0; plan->depth[d]; d++) {
			block = bench_find_block(blocks, nr_blocks, targets[i].scenario, 36,
						 plan->depth[d]);
			rival = bench_find_series(block, targets[i].rival);
			ours = bench_find_series(block, "stats");
			if (!rival || !ours)
				continue;
			snprintf(text, sizeof(text), "%s / stat_add: %s, 36 pairs, depth %u",
				 targets[i].label, targets[i].text, plan->depth[d]);
			bench_note_ratio(text, "", block, rival, ours);
		}
	}
}

int stat_measure_series(const struct bench_options *options)
{
	const struct bench_plan *plan = options->brief ? &brief_plan : &full_plan;
	struct bench_block blocks[MAX_BLOCKS];
	unsigned int nr_blocks = bench_make_blocks(plan, options, blocks), scenario, d;
	bool exact;

	bench_run_blocks(blocks, nr_blocks, options);
	exact = bench_all_exact(blocks, nr_blocks);
	bench_print_rounds(blocks, nr_blocks, options);
	printf("What is called owners below are pairs of owner and item, %u items an owner. A "
	       "floor, thread-local\ncounters, knows no ancestors.\n",
	       STAT_ITEMS);
	for (scenario = 0; scenario < BENCH_NR_SCENARIOS; scenario++)
		for (d = 0; plan->depth[d]; d++)
			if (bench_find_block(blocks, nr_blocks, (enum bench_scenario)scenario,
					     plan->owners[scenario][0], plan->depth[d]))
				bench_print_times(blocks, nr_blocks, (enum bench_scenario)scenario,
						  plan->depth[d], titles[scenario]);
	note_targets(blocks, nr_blocks, plan);
	if (options->csv && bench_write_csv(blocks, nr_blocks, options->csv) < 0)
		fprintf(stderr, "stat_bench: cannot write %s\n", options->csv);
	bench_free_blocks(blocks, nr_blocks);
	return exact ? 0 : -EILSEQ;
}
