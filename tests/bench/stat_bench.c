// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * stat_bench.c - what statistics of owners cost, beside other ways to count.
 *
 * Each part of it has a file. Wrong totals are the only way to fail: times never are.
 */
#define _GNU_SOURCE
#include "stat_bench.h"

#include <errno.h>
#include <string.h>

#define PARTS "series, applied, coupled, reads, layout, monitor, bytes"

static const struct {
	const char *name;
	int (*measure)(const struct bench_options *options);
} parts[] = {
	{ "series", stat_measure_series },   { "applied", stat_measure_applied },
	{ "coupled", stat_measure_coupled }, { "reads", stat_measure_reads },
	{ "layout", stat_measure_layout },   { "monitor", stat_measure_monitor },
	{ "bytes", stat_measure_bytes },
};

int main(int argc, char **argv)
{
	struct bench_options options;
	int failed = 0, r;
	size_t i;

	if (!bench_read_options(argc, argv, 3, 180, PARTS, &options))
		return 2;
	/* The line with the names; contests append. */
	if (options.csv && bench_write_csv(NULL, 0, options.csv) < 0)
		fprintf(stderr, "stat_bench: cannot write %s\n", options.csv);
	bench_print_machine(&options);
	for (i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		if (!bench_wants(&options, parts[i].name))
			continue;
		r = parts[i].measure(&options);
		fflush(stdout);
		if (r < 0) {
			fprintf(stderr, "stat_bench: %s: %s\n", parts[i].name,
				r == -EILSEQ ? "totals are wrong" : strerror(-r));
			failed = 1;
		}
	}
	bench_print_targets();
	return failed;
}
