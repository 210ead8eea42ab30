// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * owner_bench.c - what charges to owners cost, beside other ways to count.
 *
 * Each part of it has a file. Compiled with BENCH_COUNT it has one part, which takes no times, but
 * counts atomics (owner_count.c). Units that are lost or made are the only way to fail: times never
 * are.
 */
#define _GNU_SOURCE
#include "owner_bench.h"

#ifdef BENCH_COUNT
#define PARTS "series"
#else
#define PARTS "series, hits, full, refused, siblings, figures"
#endif

static const struct bench_part parts[] = {
	{ "series", owner_measure_series },
#ifndef BENCH_COUNT
	{ "hits", owner_measure_hits },	      { "full", owner_measure_full },
	{ "refused", owner_measure_refused }, { "siblings", owner_measure_siblings },
	{ "figures", owner_measure_figures },
#endif
};

int main(int argc, char **argv)
{
	struct bench_options options;
	int failed;

	if (!bench_read_options(argc, argv, 4, 180, PARTS, &options))
		return 2;
	failed = bench_run_parts(parts, sizeof(parts) / sizeof(*parts), &options);
	if (options.csv && options.svg && options.script)
		bench_plot(&options);
	return failed;
}
