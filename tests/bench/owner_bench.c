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

#include <errno.h>
#include <string.h>

#ifdef BENCH_COUNT
#define PARTS "series"
#else
#define PARTS "series, hits, full, refused, siblings, figures"
#endif

static const struct {
	const char *name;
	int (*measure)(const struct bench_options *options);
} parts[] = {
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
	int failed = 0, r;
	size_t i;

	if (!bench_read_options(argc, argv, 4, 180, PARTS, &options))
		return 2;
	/* The line with the names; contests append. */
	if (options.csv && bench_write_csv(NULL, 0, options.csv) < 0)
		fprintf(stderr, "owner_bench: cannot write %s\n", options.csv);
	bench_print_machine(&options);
	for (i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		if (!bench_wants(&options, parts[i].name))
			continue;
		r = parts[i].measure(&options);
		fflush(stdout);
		if (r < 0) {
			fprintf(stderr, "owner_bench: %s: %s\n", parts[i].name,
				r == -EILSEQ ? "totals are wrong" : strerror(-r));
			failed = 1;
		}
	}
	bench_print_targets();
	if (options.csv && options.svg && options.script)
		bench_plot(&options);
	return failed;
}
