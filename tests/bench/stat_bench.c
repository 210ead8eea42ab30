// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * stat_bench.c - what statistics of owners cost, beside other ways to count.
 *
 * Each part of it has a file. Wrong totals are the only way to fail: times never are.
 */
#define _GNU_SOURCE
#include "stat_bench.h"

#define PARTS "series, applied, coupled, reads, layout, monitor, bytes"

static const struct bench_part parts[] = {
	{ "series", stat_measure_series },   { "applied", stat_measure_applied },
	{ "coupled", stat_measure_coupled }, { "reads", stat_measure_reads },
	{ "layout", stat_measure_layout },   { "monitor", stat_measure_monitor },
	{ "bytes", stat_measure_bytes },
};

int main(int argc, char **argv)
{
	struct bench_options options;

	if (!bench_read_options(argc, argv, 3, 180, PARTS, &options))
		return 2;
	return bench_run_parts(parts, sizeof(parts) / sizeof(*parts), &options);
}
