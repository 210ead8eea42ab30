/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * owner_bench.h - the parts of the benchmark of owners.
 */
#ifndef PCPCHARGE_BENCH_OWNER_BENCH_H
#define PCPCHARGE_BENCH_OWNER_BENCH_H

#include "bench.h"

/* Each prints what it finds. Negative errno: it could not be measured, or units were lost
 * (-EILSEQ). */
int owner_measure_series(const struct bench_options *options);	 /* owner_series.c */
int owner_measure_hits(const struct bench_options *options);	 /* owner_hits.c */
int owner_measure_full(const struct bench_options *options);	 /* owner_full.c */
int owner_measure_refused(const struct bench_options *options);	 /* owner_refused.c */
int owner_measure_siblings(const struct bench_options *options); /* owner_siblings.c */
int owner_measure_figures(const struct bench_options *options);	 /* owner_figures.c */

#endif
