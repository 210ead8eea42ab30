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

const char *const bench_scenario_names[BENCH_NR_SCENARIOS] = {
	"one_cpu", "two_cpus", "cross", "charges", "charges_two", "crowded", "crowded_two",
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

double bench_ratio(const double *ns, const double *other_ns, unsigned int rounds)
{
	double *ratios = calloc(rounds, sizeof(*ratios)), median;
	unsigned int i;

	if (!ratios)
		abort();
	for (i = 0; i < rounds; i++)
		ratios[i] = ns[i] / other_ns[i];
	median = bench_median(ratios, rounds);
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
			series->ratio = bench_ratio(series->ns, block->series[0].ns, block->rounds);
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

const struct bench_column bench_median_column = { "ns, median", "%9.1f", median_of };
const struct bench_column bench_minimum_column = { "ns, minimum", "%9.1f", minimum_of };
const struct bench_column bench_ratio_column = { "times as long as the first", "%9.2f", ratio_of };
const struct bench_column bench_misses_column = { "missed consumes a million", "%9.0f", misses_of };
const struct bench_column bench_settled_column = { "refills a million that settled", "%9.0f",
						   settled_of };

static bool shown(const struct bench_block *block, enum bench_scenario scenario, unsigned int depth)
{
	return block->scenario == scenario && block->depth == depth;
}

/* Has this rival anything to show in a table? */
static bool has_values(const struct bench_block *blocks, unsigned int nr_blocks,
		       enum bench_scenario scenario, unsigned int depth, unsigned int rival,
		       const struct bench_column *column)
{
	unsigned int i;

	for (i = 0; i < nr_blocks; i++)
		if (shown(&blocks[i], scenario, depth) && !blocks[i].series[rival].missing &&
		    column->value(&blocks[i].series[rival]) > 0)
			return true;
	return false;
}

void bench_print_table(const struct bench_block *blocks, unsigned int nr_blocks,
		       enum bench_scenario scenario, unsigned int depth, const char *title,
		       const struct bench_column *column)
{
	unsigned int rival, i;

	printf("\n%s: %s\n%-32s", title, column->what, "owners");
	for (i = 0; i < nr_blocks; i++)
		if (shown(&blocks[i], scenario, depth))
			printf("%9u", blocks[i].nr_owners);
	printf("\n");
	for (rival = 0; rival < bench_nr_rivals; rival++) {
		if (!has_values(blocks, nr_blocks, scenario, depth, rival, column))
			continue;
		printf("%-32s", bench_rivals[rival]->label);
		for (i = 0; i < nr_blocks; i++)
			if (shown(&blocks[i], scenario, depth))
				printf(column->format, column->value(&blocks[i].series[rival]));
		printf("\n");
	}
}

void bench_print_times(const struct bench_block *blocks, unsigned int nr_blocks,
		       enum bench_scenario scenario, unsigned int depth, const char *title)
{
	static const struct bench_column *const columns[] = {
		&bench_median_column,
		&bench_minimum_column,
		&bench_ratio_column,
	};
	char text[128];
	size_t i;

	snprintf(text, sizeof(text), "%s, depth %u", title, depth);
	for (i = 0; i < sizeof(columns) / sizeof(*columns); i++)
		bench_print_table(blocks, nr_blocks, scenario, depth, text, columns[i]);
}

void bench_print_machine(const struct bench_options *options)
{
	char line[256], model[256] = "unknown CPU";
	FILE *file = fopen("/proc/cpuinfo", "r");
	struct utsname name;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "model name : %255[^\n]", model) == 1)
			break;
	if (file)
		fclose(file);
	uname(&name);
	printf("machine: %s, CPUs %d and %d, Linux %s %s\n", model, options->cpu[0],
	       options->cpu[1], name.release, name.machine);
#ifdef __clang__
	printf("build: clang %s, %s\n", __clang_version__, BENCH_BUILD);
#else
	printf("build: gcc %s, %s\n", __VERSION__, BENCH_BUILD);
#endif
}

void bench_print_rounds(const struct bench_block *blocks, unsigned int nr_blocks,
			const struct bench_options *options)
{
	unsigned int i, fewest = UINT32_MAX, most = 0, spreads_known = 0;
	double spreads[128], ours;

	for (i = 0; i < nr_blocks && i < 128; i++) {
		fewest = blocks[i].rounds < fewest ? blocks[i].rounds : fewest;
		most = blocks[i].rounds > most ? blocks[i].rounds : most;
		ours = blocks[i].series[0].median;
		if (ours > 0)
			spreads[spreads_known++] =
				100 * (blocks[i].series[0].p90 - blocks[i].series[0].p10) / ours;
	}
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

const struct bench_block *bench_find_block(const struct bench_block *blocks, unsigned int nr_blocks,
					   enum bench_scenario scenario, uint32_t nr_owners,
					   unsigned int depth)
{
	unsigned int i;

	for (i = 0; i < nr_blocks; i++)
		if (shown(&blocks[i], scenario, depth) && blocks[i].nr_owners == nr_owners)
			return &blocks[i];
	return NULL;
}

const struct bench_series *bench_find_series(const struct bench_block *block, const char *name)
{
	unsigned int i;

	for (i = 0; block && i < bench_nr_rivals; i++)
		if (!strcmp(bench_rivals[i]->name, name) && !block->series[i].missing)
			return &block->series[i];
	return NULL;
}

int bench_write_csv(const struct bench_block *blocks, unsigned int nr_blocks, const char *path)
{
	const struct bench_series *series;
	FILE *file = fopen(path, "w");
	unsigned int i, rival;

	if (!file)
		return -errno;
	fprintf(file, "scenario,owners,rival,label,rounds,median_ns,minimum_ns,p10_ns,p90_ns,"
		      "ratio_to_first,misses_per_million,settled_per_million,depth\n");
	for (i = 0; i < nr_blocks; i++) {
		for (rival = 0; rival < bench_nr_rivals; rival++) {
			series = &blocks[i].series[rival];
			if (series->missing)
				continue;
			fprintf(file, "%s,%u,%s,\"%s\",%u,%.3f,%.3f,%.3f,%.3f,%.3f,%.1f,%.1f,%u\n",
				bench_scenario_names[blocks[i].scenario], blocks[i].nr_owners,
				bench_rivals[rival]->name, bench_rivals[rival]->label,
				blocks[i].rounds, series->median, series->minimum, series->p10,
				series->p90, series->ratio, misses_of(series), settled_of(series),
				blocks[i].depth);
		}
	}
	return fclose(file) ? -errno : 0;
}

void bench_append_csv(const struct bench_options *options, const char *contest, uint32_t nr_owners,
		      const struct bench_load *loads, unsigned int nr_loads)
{
	FILE *file = options->csv ? fopen(options->csv, "a") : NULL;
	unsigned int i;

	if (!file)
		return;
	for (i = 0; i < nr_loads; i++)
		fprintf(file, "%s,%u,load_%u,\"%s\",%u,%.3f,%.3f,,,%.3f,,,\n", contest, nr_owners,
			i, loads[i].label, loads[i].rounds, loads[i].median, loads[i].minimum,
			loads[i].ratio);
	if (fclose(file))
		fprintf(stderr, "%s: cannot write %s\n", program_invocation_short_name,
			options->csv);
}

/* -- targets -- */

static struct {
	char text[80];
	const char *target;
	double measured, of_minima;
} targets[64];
static unsigned int nr_targets;

void bench_note_target(const char *text, const char *target, double measured, double of_minima)
{
	if (nr_targets == sizeof(targets) / sizeof(*targets))
		return;
	snprintf(targets[nr_targets].text, sizeof(targets->text), "%s", text);
	targets[nr_targets].target = target;
	targets[nr_targets].measured = measured;
	targets[nr_targets++].of_minima = of_minima;
}

/* Of two CPUs no minima: the least time is that of a slice whose other thread did not run. */
void bench_note_ratio(const char *text, const char *target, const struct bench_block *block,
		      const struct bench_series *rival, const struct bench_series *ours)
{
	bench_note_target(text, target, bench_ratio(rival->ns, ours->ns, block->rounds),
			  bench_has_second_cpu(block->scenario) ? 0
								: rival->minimum / ours->minimum);
}

void bench_print_targets(void)
{
	unsigned int i;

	if (!nr_targets)
		return;
	printf("\n%-60s%12s%11s%11s\n", "", "target", "measured", "of minima");
	for (i = 0; i < nr_targets; i++) {
		printf("%-60s%12s%11.2f", targets[i].text, targets[i].target, targets[i].measured);
		if (targets[i].of_minima)
			printf("%11.2f", targets[i].of_minima);
		printf("\n");
	}
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
