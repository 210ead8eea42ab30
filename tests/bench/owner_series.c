// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * owner_series.c - charges and uncharges of owners in trees of three depths, beside other ways to
 * count. How it is measured is in bench_blocks.c.
 */
#define _GNU_SOURCE
#include "owner_bench.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define MAX_BLOCKS 96

#ifdef BENCH_COUNT
static const bool counts = true;
const struct rival *const bench_rivals[] = { &rival_owners, &rival_owners_half, &rival_batch,
					     &rival_seven, &rival_tree };
#else
static const bool counts = false;
const struct rival *const bench_rivals[] = {
	&rival_owners, &rival_owners_half, &rival_owners_atomic, &rival_local, &rival_batch,
	&rival_seven,  &rival_single,	   &rival_shared,	 &rival_tree,
};
#endif
const unsigned int bench_nr_rivals = sizeof(bench_rivals) / sizeof(bench_rivals[0]);

static const struct {
	const char *title;
	unsigned int operations; /* in what is called a pair */
} scenarios[BENCH_NR_SCENARIOS] = {
	[BENCH_ONE_CPU] = { "charge and uncharge, one CPU", 2 },
	[BENCH_TWO_CPUS] = { "charge and uncharge, two CPUs at once, the same owners", 2 },
	[BENCH_CROSS] = { "charge on one CPU, uncharge on the other", 2 },
	[BENCH_CHARGES] = { "charges only, one CPU", 1 },
	[BENCH_CHARGES_TWO] = { "charges only, two CPUs at once, the same owners", 1 },
	[BENCH_CROWDED] = { "twice as many owners as slots, one CPU", 2 },
	[BENCH_CROWDED_TWO] = { "twice as many owners as slots, two CPUs at once", 2 },
};

/* What is run. */
static const struct bench_plan full_plan = {
	{ 1, 3, 6 },
	{
		[BENCH_ONE_CPU] = { 1, 7, 36, 300, 1000, 7000, 20000 },
		[BENCH_TWO_CPUS] = { 1, 36, 1000, 20000 },
		[BENCH_CROSS] = { 1, 36, 1000 },
		[BENCH_CHARGES] = { 36, 1000 },
		[BENCH_CHARGES_TWO] = { 36, 1000 },
		[BENCH_CROWDED] = { 14, 1792 },
		[BENCH_CROWDED_TWO] = { 14, 1792 },
	},
};
static const struct bench_plan brief_plan = {
	{ 1, 6 },
	{
		[BENCH_ONE_CPU] = { 1, 36, 1000 },
		[BENCH_TWO_CPUS] = { 36 },
		[BENCH_CROSS] = { 36 },
		[BENCH_CHARGES] = { 36 },
		[BENCH_CHARGES_TWO] = { 36 },
		[BENCH_CROWDED] = { 14 },
	},
};

/* -- times -- */

static const struct target {
	enum bench_scenario scenario;
	uint32_t nr_owners;
	const char *ours, *text, *target;
} targets[] = {
	{ BENCH_ONE_CPU, 36, "owners", "one CPU, 36 owners", "7 or more" },
	{ BENCH_TWO_CPUS, 36, "owners", "two CPUs, 36 owners", "30 or more" },
	{ BENCH_CROSS, 36, "owners", "charge here, uncharge there", "" },
	{ BENCH_CHARGES, 36, "owners", "charges only, one CPU", "" },
	{ BENCH_CHARGES_TWO, 36, "owners", "charges only, two CPUs", "" },
	{ BENCH_CROWDED, 14, "owners_half", "14 owners in 7 slots", "" },
	{ BENCH_CROWDED, 1792, "owners_half", "1,792 owners in 896 slots", "" },
	{ BENCH_CROWDED_TWO, 14, "owners_half", "14 owners in 7 slots, two CPUs", "" },
};

static void note_target(const struct bench_block *block, const struct target *target)
{
	const struct bench_series *rival = bench_find_series(block, "locked_7");
	const struct bench_series *ours = bench_find_series(block, target->ours);
	char text[80];

	if (!rival || !ours)
		return;
	snprintf(text, sizeof(text), "locked 7 / owners: %s, depth %u", target->text, block->depth);
	bench_note_ratio(text, target->target, block, rival, ours);
}

static void note_targets(const struct bench_block *blocks, unsigned int nr_blocks,
			 const struct bench_plan *plan)
{
	unsigned int d;
	size_t i;

	for (i = 0; i < sizeof(targets) / sizeof(*targets); i++)
		for (d = 0; plan->depth[d]; d++)
			note_target(bench_find_block(blocks, nr_blocks, targets[i].scenario,
						     targets[i].nr_owners, plan->depth[d]),
				    &targets[i]);
}

/* -- counts -- */

/* Atomics per 1,000 operations, at one owner's line, at those between, at the root's, and in all;
 * how many of these raised a peak; and how many of 1,000 operations went as far as a counter. */
static void print_count(const struct bench_block *block, unsigned int rival)
{
	const struct bench_series *series = &block->series[rival];
	const uint64_t *atomics = series->events.atomics;
	const double each = 1e3 / ((double)series->pairs * scenarios[block->scenario].operations);

	if (series->missing)
		return;
	printf("%-32s%10.2f%10.2f%10.2f%10.2f%10.2f%10.2f\n", bench_rivals[rival]->label,
	       (double)atomics[BENCH_LEAF] * each, (double)atomics[BENCH_BETWEEN] * each,
	       (double)atomics[BENCH_ROOT] * each,
	       (double)(atomics[BENCH_LEAF] + atomics[BENCH_BETWEEN] + atomics[BENCH_ROOT]) * each,
	       (double)series->events.peaks * each,
	       (double)(series->events.misses + series->events.settled) * each);
}

static void print_counts(const struct bench_block *block)
{
	unsigned int i;

	printf("\n%s, %u owners, depth %u\n%-32s%10s%10s%10s%10s%10s%10s\n",
	       scenarios[block->scenario].title, block->nr_owners, block->depth,
	       "atomics per 1,000 operations", "owner", "between", "root", "all", "peaks",
	       "misses");
	for (i = 0; i < bench_nr_rivals; i++)
		print_count(block, i);
}

static int write_counts(const struct bench_block *blocks, unsigned int nr_blocks, const char *path)
{
	const struct bench_series *series;
	FILE *file = fopen(path, "w");
	unsigned int i, k;

	if (!file)
		return -errno;
	fprintf(file, "scenario,owners,depth,rival,operations,at_owner,between,at_root,peaks,"
		      "misses,settled\n");
	for (i = 0; i < nr_blocks; i++) {
		for (k = 0; k < bench_nr_rivals; k++) {
			series = &blocks[i].series[k];
			if (series->missing)
				continue;
			fprintf(file,
				"%s,%u,%u,%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
				",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n",
				bench_scenario_names[blocks[i].scenario], blocks[i].nr_owners,
				blocks[i].depth, bench_rivals[k]->name,
				series->pairs * scenarios[blocks[i].scenario].operations,
				series->events.atomics[BENCH_LEAF],
				series->events.atomics[BENCH_BETWEEN],
				series->events.atomics[BENCH_ROOT], series->events.peaks,
				series->events.misses, series->events.settled);
		}
	}
	return fclose(file) ? -errno : 0;
}

/* -- both -- */

static void write_csv(const struct bench_block *blocks, unsigned int nr_blocks, const char *path)
{
	int r = counts ? write_counts(blocks, nr_blocks, path)
		       : bench_write_csv(blocks, nr_blocks, path);

	if (r < 0)
		fprintf(stderr, "owner_bench: %s: %s\n", path, strerror(-r));
}

static void report(const struct bench_block *blocks, unsigned int nr_blocks,
		   const struct bench_plan *plan, const struct bench_options *options)
{
	unsigned int scenario, d, i;

	if (counts) {
		printf("counted: adds and compare-and-exchanges of counters. Not counted: the lock "
		       "of a locked stock, an exchange\nfor each operation in user space; and the "
		       "compare-and-exchange of the atomic engine on a stock\n");
		for (i = 0; i < nr_blocks; i++)
			print_counts(&blocks[i]);
		return;
	}
	bench_print_rounds(blocks, nr_blocks, options);
	for (scenario = 0; scenario < BENCH_NR_SCENARIOS; scenario++)
		for (d = 0; plan->depth[d]; d++)
			if (bench_find_block(blocks, nr_blocks, (enum bench_scenario)scenario,
					     plan->owners[scenario][0], plan->depth[d]))
				bench_print_times(blocks, nr_blocks, (enum bench_scenario)scenario,
						  plan->depth[d], scenarios[scenario].title);
	note_targets(blocks, nr_blocks, plan);
}

int owner_measure_series(const struct bench_options *options)
{
	const struct bench_plan *plan = options->brief ? &brief_plan : &full_plan;
	struct bench_block blocks[MAX_BLOCKS];
	unsigned int nr_blocks = bench_make_blocks(plan, options, blocks);
	bool exact;

	bench_run_blocks(blocks, nr_blocks, options);
	exact = bench_all_exact(blocks, nr_blocks);
	report(blocks, nr_blocks, plan, options);
	if (options->csv)
		write_csv(blocks, nr_blocks, options->csv);
	bench_free_blocks(blocks, nr_blocks);
	return exact ? 0 : -EILSEQ;
}
