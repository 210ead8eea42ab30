// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * cache_bench.c - what a consume and a refill cost, beside other ways to count.
 *
 * How it is measured is in bench_blocks.c. Wrong totals are the only way to fail: times never are.
 */
#define _GNU_SOURCE
#include "cache_bench.h"

#include <stdlib.h>
#include <string.h>

const struct rival *const bench_rivals[] = {
	&rival_extern, &rival_inline, &rival_mm_cid, &rival_atomic, &rival_local, &rival_batch,
	&rival_seven,  &rival_single, &rival_shared, &rival_tree2,  &rival_tree3,
};
const unsigned int bench_nr_rivals = sizeof(bench_rivals) / sizeof(bench_rivals[0]);

static const char *const titles[] = {
	[BENCH_ONE_CPU] = "one CPU, consume and refill of one unit",
	[BENCH_TWO_CPUS] = "two CPUs at once, the same owners, consume and refill of one unit",
	[BENCH_CROSS] = "consume on one CPU, refill on the other",
};
#define NR_SCENARIOS (sizeof(titles) / sizeof(*titles))
#define PARTS "series, figures"

static const struct {
	const char *text;
	enum bench_scenario scenario;
	uint32_t nr_owners;
	const char *rival, *ours, *target;
} targets[] = {
	{ "one CPU, 1 owner: locked 7 / inlined", BENCH_ONE_CPU, 1, "locked_7", "ours_inline",
	  "4.0 or more" },
	{ "one CPU, 36 owners: locked 7 / inlined", BENCH_ONE_CPU, 36, "locked_7", "ours_inline",
	  "10 or more" },
	{ "one CPU, 1,000 owners: locked 7 / inlined", BENCH_ONE_CPU, 1000, "locked_7",
	  "ours_inline", "10 or more" },
	{ "one CPU, 1 owner: locked 7 / called", BENCH_ONE_CPU, 1, "locked_7", "ours_extern",
	  "3.1 or more" },
	{ "one CPU, 36 owners: locked 7 / called", BENCH_ONE_CPU, 36, "locked_7", "ours_extern",
	  "8.3 or more" },
	{ "one CPU, 1,000 owners: locked 7 / called", BENCH_ONE_CPU, 1000, "locked_7",
	  "ours_extern", "8.8 or more" },
	{ "one CPU, 1 owner: called / inlined", BENCH_ONE_CPU, 1, "ours_extern", "ours_inline",
	  "1.15 to 1.30" },
	{ "one CPU, 36 owners: called / inlined", BENCH_ONE_CPU, 36, "ours_extern", "ours_inline",
	  "1.15 to 1.30" },
	{ "two CPUs, 36 owners: locked 7 / called", BENCH_TWO_CPUS, 36, "locked_7", "ours_extern",
	  "50 or more" },
	{ "two CPUs, 36 owners: tree of 2 / called", BENCH_TWO_CPUS, 36, "atomic_tree_2",
	  "ours_extern", "50 or more" },
	{ "two CPUs, 36 owners: locked 7 / inlined", BENCH_TWO_CPUS, 36, "locked_7", "ours_inline",
	  "50 or more" },
	{ "two CPUs, 36 owners: tree of 2 / inlined", BENCH_TWO_CPUS, 36, "atomic_tree_2",
	  "ours_inline", "50 or more" },
};

static void note_growth(const struct bench_block *blocks, unsigned int nr_blocks, const char *name,
			const char *text)
{
	const struct bench_series *few =
		bench_find_series(bench_find_block(blocks, nr_blocks, BENCH_ONE_CPU, 1, 1), name);
	const struct bench_series *many = bench_find_series(
		bench_find_block(blocks, nr_blocks, BENCH_ONE_CPU, 1000, 1), name);

	if (few && many)
		bench_note_target(text, "1.35 or less", many->median / few->median,
				  many->minimum / few->minimum);
}

static void note_targets(const struct bench_block *blocks, unsigned int nr_blocks)
{
	const struct bench_series *rival, *ours;
	const struct bench_block *block;
	size_t i;

	for (i = 0; i < sizeof(targets) / sizeof(*targets); i++) {
		block = bench_find_block(blocks, nr_blocks, targets[i].scenario,
					 targets[i].nr_owners, 1);
		rival = bench_find_series(block, targets[i].rival);
		ours = bench_find_series(block, targets[i].ours);
		if (rival && ours)
			bench_note_ratio(targets[i].text, targets[i].target, block, rival, ours);
	}
	note_growth(blocks, nr_blocks, "ours_inline", "one CPU, inlined: 1,000 owners / 1 owner");
	note_growth(blocks, nr_blocks, "ours_extern", "one CPU, called: 1,000 owners / 1 owner");
}

static void print_figures(const struct cache_figures *figures)
{
	unsigned int i;

	printf("\n%-52s%9s%9s\n", "memory of a CPU's stocks, bytes", "resident", "lines");
	for (i = 0; i < 3; i++)
		printf("%5u owners %-40s%9.0f%9u\n", cache_resident_owners[i], "",
		       figures->resident[i], (cache_resident_owners[i] + 6) / 7 * 64);
	if (!figures->drain_ns[0])
		return;
	printf("\n%-52s%9s%9s\n", "a drain, us", "median", "minimum");
	for (i = 0; i < 5; i++)
		printf("%-52s%9.2f%9.2f\n", cache_drain_names[i], figures->drain_ns[i] / 1e3,
		       figures->drain_min_ns[i] / 1e3);
}

/* What is run: numbers of owners for each scenario, all for the same time. */
static unsigned int plan(struct bench_block *blocks, const struct bench_options *options)
{
	static const uint32_t full[] = { 1, 4, 7, 12, 36, 100, 300, 1000, 7000, 20000 };
	static const uint32_t brief[] = { 1, 36, 1000 };
	const uint32_t *owners = options->brief ? brief : full;
	size_t nr_owners =
		options->brief ? sizeof(brief) / sizeof(*brief) : sizeof(full) / sizeof(*full);
	unsigned int scenario, nr_blocks = 0;
	size_t i;

	for (scenario = 0; scenario < NR_SCENARIOS; scenario++) {
		if (scenario != BENCH_ONE_CPU && options->cpu[1] < 0)
			break;
		for (i = 0; i < nr_owners; i++)
			blocks[nr_blocks++] =
				(struct bench_block){ .scenario = (enum bench_scenario)scenario,
						      .nr_owners = owners[i],
						      .depth = 1 };
	}
	return nr_blocks;
}

static void print_tables(const struct bench_block *blocks, unsigned int nr_blocks,
			 enum bench_scenario scenario)
{
	static const struct bench_column *const columns[] = {
		&bench_median_column, &bench_minimum_column, &bench_ratio_column,
		&bench_misses_column, &bench_settled_column,
	};
	size_t i;

	for (i = 0; i < sizeof(columns) / sizeof(*columns); i++)
		bench_print_table(blocks, nr_blocks, scenario, 1, titles[scenario], columns[i]);
}

static void report(const struct bench_block *blocks, unsigned int nr_blocks,
		   const struct cache_figures *figures, const struct bench_options *options)
{
	unsigned int scenario;

	bench_print_machine(options);
	if (nr_blocks)
		bench_print_rounds(blocks, nr_blocks, options);
	for (scenario = 0; nr_blocks && scenario < NR_SCENARIOS; scenario++)
		if (scenario == BENCH_ONE_CPU || options->cpu[1] >= 0)
			print_tables(blocks, nr_blocks, (enum bench_scenario)scenario);
	note_targets(blocks, nr_blocks);
	bench_print_targets();
	if (figures)
		print_figures(figures);
}

int main(int argc, char **argv)
{
	struct bench_block blocks[NR_SCENARIOS * 10];
	struct cache_figures figures;
	struct bench_options options;
	unsigned int nr_blocks = 0;
	bool exact;
	int r = -1;

	if (!bench_read_options(argc, argv, 8, 150, PARTS, &options))
		return 2;
	if (bench_wants(&options, "series"))
		nr_blocks = plan(blocks, &options);
	bench_run_blocks(blocks, nr_blocks, &options);
	exact = bench_all_exact(blocks, nr_blocks);
	if (bench_wants(&options, "figures")) {
		r = cache_measure_figures(&options, &figures);
		if (r < 0)
			fprintf(stderr, "cache_bench: no figures: %s\n", strerror(-r));
	}
	report(blocks, nr_blocks, r < 0 ? NULL : &figures, &options);
	if (options.csv && bench_write_csv(blocks, nr_blocks, options.csv) < 0)
		fprintf(stderr, "cache_bench: cannot write %s\n", options.csv);
	else if (options.csv && options.svg && options.script)
		bench_plot(&options);
	bench_free_blocks(blocks, nr_blocks);
	return exact ? 0 : 1;
}
