/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * cache_bench.h - figures of the charge cache that are no series.
 */
#ifndef PCPCHARGE_BENCH_CACHE_BENCH_H
#define PCPCHARGE_BENCH_CACHE_BENCH_H

#include "bench.h"

struct cache_figures {
	double resident[3]; /* bytes a CPU, at cache_resident_owners */
	double drain_ns[5]; /* medians, see bench_drain.c */
	double drain_min_ns[5];
};

/* bench_drain.c */
extern const char *const cache_drain_names[5];
extern const uint32_t cache_resident_owners[3];
int cache_measure_figures(const struct bench_options *options, struct cache_figures *ret_figures);

#endif
