/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * stat_bench.h - the parts of the benchmark of statistics.
 */
#ifndef PCPCHARGE_BENCH_STAT_BENCH_H
#define PCPCHARGE_BENCH_STAT_BENCH_H

#include "bench.h"

/* Each prints what it finds. Negative errno: it could not be measured, or totals were wrong
 * (-EILSEQ). */
int stat_measure_series(const struct bench_options *options);  /* stat_series.c */
int stat_measure_applied(const struct bench_options *options); /* stat_applied.c */
int stat_measure_coupled(const struct bench_options *options); /* stat_coupled.c */
int stat_measure_reads(const struct bench_options *options);   /* stat_reads.c */
int stat_measure_monitor(const struct bench_options *options); /* stat_monitor.c */
int stat_measure_layout(const struct bench_options *options);  /* stat_layout.c */
int stat_measure_bytes(const struct bench_options *options);   /* stat_bytes.c */

/* rival_stats.c and rival_arrays.c */
extern const struct rival rival_stats, rival_stats_atomic, rival_item_atomic, rival_arrays_past,
	rival_arrays_below, rival_arrays_past_atomic, rival_arrays_below_atomic;

#endif
