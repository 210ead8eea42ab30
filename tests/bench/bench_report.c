// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * bench_report.c - tables for people, a CSV file for programs, and a plot.
 */
#define _GNU_SOURCE
#include "bench.h"

#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#ifndef BENCH_BUILD
#define BENCH_BUILD "unknown flags"
#endif

extern char **environ;

const char *const bench_scenario_names[BENCH_NR_SCENARIOS] = { "one_cpu", "two_cpus", "cross" };

static const char *const titles[BENCH_NR_SCENARIOS] = {
	"one CPU, consume and refill of one unit",
	"two CPUs at once, the same owners, consume and refill of one unit",
	"consume on one CPU, refill on the other",
};

static int compare(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

double bench_median(double *values, unsigned int count)
{
	qsort(values, count, sizeof(*values), compare);
	return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* The median, over rounds, of how many times as long the first series took as the second. */
static double ratio(const struct bench_block *block, const struct bench_series *series,
		    const struct bench_series *other)
{
	double *ratios = calloc(block->rounds, sizeof(*ratios)), median;
	unsigned int i;

	if (!ratios)
		abort();
	for (i = 0; i < block->rounds; i++)
		ratios[i] = series->ns[i] / other->ns[i];
	median = bench_median(ratios, block->rounds);
	free(ratios);
	return median;
}

void bench_summarize(struct bench_block *block)
{
	struct bench_series *series;
	double *sorted = calloc(block->rounds, sizeof(*sorted));
	unsigned int i;

	if (!sorted)
		abort();
	for (i = 0; i < bench_nr_rivals; i++) {
		series = &block->series[i];
		if (series->missing)
			continue;
		if (!block->series[0].missing)
			series->ratio = ratio(block, series, &block->series[0]);
		memcpy(sorted, series->ns, block->rounds * sizeof(*sorted));
		series->median = bench_median(sorted, block->rounds);
		series->minimum = sorted[0];
		series->p10 = sorted[block->rounds / 10];
		series->p90 = sorted[block->rounds * 9 / 10];
	}
	free(sorted);
}

static double median_of(const struct bench_series *series)
{
	return series->median;
}

static double minimum_of(const struct bench_series *series)
{
	return series->minimum;
}

static double ratio_of(const struct bench_series *series)
{
	return series->ratio;
}

static double misses_of(const struct bench_series *series)
{
	return (double)series->events.misses * 1e6 / (double)series->pairs;
}

static double settled_of(const struct bench_series *series)
{
	return (double)series->events.settled * 1e6 / (double)series->pairs;
}

/* Has this rival anything to show in a table? */
static bool has_values(const struct bench_block *blocks, unsigned int nr_blocks,
		       enum bench_scenario scenario, unsigned int rival,
		       double (*value)(const struct bench_series *series))
{
	unsigned int i;

	for (i = 0; i < nr_blocks; i++)
		if (blocks[i].scenario == scenario && !blocks[i].series[rival].missing &&
		    value(&blocks[i].series[rival]) > 0)
			return true;
	return false;
}

/* One line a rival, one column a number of owners; rivals of whom all is 0 are left out. */
static void print_table(const struct bench_block *blocks, unsigned int nr_blocks,
			enum bench_scenario scenario, const char *what, const char *format,
			double (*value)(const struct bench_series *series))
{
	unsigned int rival, i;

	printf("\n%s: %s\n%-32s", titles[scenario], what, "owners");
	for (i = 0; i < nr_blocks; i++)
		if (blocks[i].scenario == scenario)
			printf("%9u", blocks[i].nr_owners);
	printf("\n");
	for (rival = 0; rival < bench_nr_rivals; rival++) {
		if (!has_values(blocks, nr_blocks, scenario, rival, value))
			continue;
		printf("%-32s", bench_rivals[rival]->label);
		for (i = 0; i < nr_blocks; i++)
			if (blocks[i].scenario == scenario)
				printf(format, value(&blocks[i].series[rival]));
		printf("\n");
	}
}

static void print_machine(const struct bench_block *blocks, unsigned int nr_blocks,
			  const struct bench_options *options)
{
	double spreads[64], ours;
	char line[256], model[256] = "unknown CPU";
	struct utsname name;
	unsigned int i, fewest = UINT32_MAX, most = 0, spreads_known = 0;
	FILE *file = fopen("/proc/cpuinfo", "r");

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "model name : %255[^\n]", model) == 1)
			break;
	if (file)
		fclose(file);
	uname(&name);
	for (i = 0; i < nr_blocks && i < 64; i++) {
		fewest = blocks[i].rounds < fewest ? blocks[i].rounds : fewest;
		most = blocks[i].rounds > most ? blocks[i].rounds : most;
		ours = blocks[i].series[0].median;
		if (ours > 0)
			spreads[spreads_known++] =
				100 * (blocks[i].series[0].p90 - blocks[i].series[0].p10) / ours;
	}
	printf("machine: %s, CPUs %d and %d, Linux %s %s\n", model, options->cpu[0],
	       options->cpu[1], name.release, name.machine);
#ifdef __clang__
	printf("build: clang %s, %s\n", __clang_version__, BENCH_BUILD);
#else
	printf("build: gcc %s, %s\n", __VERSION__, BENCH_BUILD);
#endif
	printf("runs: %u to %u rounds of interleaved slices a block, seed %llu; ", fewest, most,
	       (unsigned long long)options->seed);
	if (spreads_known)
		printf("spread (10 to 90 %%) of '%s': %.0f %% of its median\n",
		       bench_rivals[0]->label, bench_median(spreads, spreads_known));
	printf("A ratio is the median of the ratios within rounds. Minima are of an undisturbed "
	       "core:\n"
	       "a busy sibling thread slows ours, which is bound by the number of instructions, "
	       "more\n"
	       "than rivals that wait for locked ones. With two CPUs a minimum is of a slice in "
	       "which\n"
	       "the other thread hardly ran.\n");
}

static const struct bench_block *find_block(const struct bench_block *blocks,
					    unsigned int nr_blocks, enum bench_scenario scenario,
					    uint32_t nr_owners)
{
	unsigned int i;

	for (i = 0; i < nr_blocks; i++)
		if (blocks[i].scenario == scenario && blocks[i].nr_owners == nr_owners)
			return &blocks[i];
	return NULL;
}

static const struct bench_series *find_series(const struct bench_block *block, const char *name)
{
	unsigned int i;

	for (i = 0; block && i < bench_nr_rivals; i++)
		if (!strcmp(bench_rivals[i]->name, name) && !block->series[i].missing)
			return &block->series[i];
	return NULL;
}

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

static void print_growth(const struct bench_block *blocks, unsigned int nr_blocks, const char *name,
			 const char *text)
{
	const struct bench_series *few =
		find_series(find_block(blocks, nr_blocks, BENCH_ONE_CPU, 1), name);
	const struct bench_series *many =
		find_series(find_block(blocks, nr_blocks, BENCH_ONE_CPU, 1000), name);

	if (few && many)
		printf("%-52s%9.2f%11.2f   %s\n", text, many->median / few->median,
		       many->minimum / few->minimum, "1.35 or less");
}

static void print_targets(const struct bench_block *blocks, unsigned int nr_blocks)
{
	const struct bench_series *rival, *ours;
	const struct bench_block *block;
	size_t i;

	printf("\n%-52s%9s%11s   %s\n", "how many times as long", "median", "of minima", "target");
	for (i = 0; i < sizeof(targets) / sizeof(*targets); i++) {
		block = find_block(blocks, nr_blocks, targets[i].scenario, targets[i].nr_owners);
		rival = find_series(block, targets[i].rival);
		ours = find_series(block, targets[i].ours);
		if (!rival || !ours)
			continue;
		printf("%-52s%9.2f", targets[i].text, ratio(block, rival, ours));
		/* Least of all takes a contended slice whose other thread is not running. */
		if (targets[i].scenario == BENCH_ONE_CPU)
			printf("%11.2f", rival->minimum / ours->minimum);
		else
			printf("%11s", "");
		printf("   %s\n", targets[i].target);
	}
	print_growth(blocks, nr_blocks, "ours_inline", "one CPU, inlined: 1,000 owners / 1 owner");
	print_growth(blocks, nr_blocks, "ours_extern", "one CPU, called: 1,000 owners / 1 owner");
}

static void print_figures(const struct bench_figures *figures)
{
	unsigned int i;

	printf("\n%-52s%9s%9s\n", "memory of a CPU's stocks, bytes", "resident", "lines");
	for (i = 0; i < 3; i++)
		printf("%5u owners %-40s%9.0f%9u\n", bench_resident_owners[i], "",
		       figures->resident[i], (bench_resident_owners[i] + 6) / 7 * 64);
	if (!figures->drain_ns[0])
		return;
	printf("\n%-52s%9s%9s\n", "a drain, us", "median", "minimum");
	for (i = 0; i < 5; i++)
		printf("%-52s%9.2f%9.2f\n", bench_drain_names[i], figures->drain_ns[i] / 1e3,
		       figures->drain_min_ns[i] / 1e3);
}

void bench_report(const struct bench_block *blocks, unsigned int nr_blocks,
		  const struct bench_figures *figures, const struct bench_options *options)
{
	enum bench_scenario scenario;

	print_machine(blocks, nr_blocks, options);
	for (scenario = BENCH_ONE_CPU; scenario < BENCH_NR_SCENARIOS; scenario++) {
		if (scenario != BENCH_ONE_CPU && options->cpu[1] < 0)
			break;
		print_table(blocks, nr_blocks, scenario, "ns a pair, median", "%9.1f", median_of);
		print_table(blocks, nr_blocks, scenario, "ns a pair, minimum", "%9.1f", minimum_of);
		print_table(blocks, nr_blocks, scenario, "times as long as 'ours, called'", "%9.2f",
			    ratio_of);
		print_table(blocks, nr_blocks, scenario, "missed consumes a million", "%9.0f",
			    misses_of);
		print_table(blocks, nr_blocks, scenario, "refills a million that settled", "%9.0f",
			    settled_of);
	}
	print_targets(blocks, nr_blocks);
	if (figures)
		print_figures(figures);
}

int bench_write_csv(const struct bench_block *blocks, unsigned int nr_blocks, const char *path)
{
	const struct bench_series *series;
	FILE *file = fopen(path, "w");
	unsigned int i, rival;

	if (!file)
		return -errno;
	fprintf(file, "scenario,owners,rival,label,rounds,median_ns,minimum_ns,p10_ns,p90_ns,"
		      "ratio_to_called,misses_per_million,settled_per_million\n");
	for (i = 0; i < nr_blocks; i++) {
		for (rival = 0; rival < bench_nr_rivals; rival++) {
			series = &blocks[i].series[rival];
			if (series->missing)
				continue;
			fprintf(file, "%s,%u,%s,\"%s\",%u,%.3f,%.3f,%.3f,%.3f,%.3f,%.1f,%.1f\n",
				bench_scenario_names[blocks[i].scenario], blocks[i].nr_owners,
				bench_rivals[rival]->name, bench_rivals[rival]->label,
				blocks[i].rounds, series->median, series->minimum, series->p10,
				series->p90, series->ratio, misses_of(series), settled_of(series));
		}
	}
	return fclose(file) ? -errno : 0;
}

void bench_plot(const struct bench_options *options)
{
	char code[1024], program[] = "gnuplot", flag[] = "-e", script[512];
	char *arguments[] = { program, flag, code, script, NULL };
	pid_t child;
	int status;

	if ((size_t)snprintf(code, sizeof(code), "csv='%s'; svg='%s'", options->csv,
			     options->svg) >= sizeof(code) ||
	    (size_t)snprintf(script, sizeof(script), "%s", options->script) >= sizeof(script))
		return;
	fflush(stdout);
	if (posix_spawnp(&child, program, NULL, NULL, arguments, environ) != 0) {
		printf("\nno plot: gnuplot is not installed\n");
		return;
	}
	if (waitpid(child, &status, 0) == child && status == 0)
		printf("\nplot: %s\n", options->svg);
}
