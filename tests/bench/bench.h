/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * bench.h - what the files of the benchmark share: blocks of measurements, a second thread that
 * starts together with the first, and the figures that are no series.
 */
#ifndef PCPCHARGE_BENCH_BENCH_H
#define PCPCHARGE_BENCH_BENCH_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "rivals.h"

enum bench_scenario {
	BENCH_ONE_CPU,	/* one thread: consume and refill */
	BENCH_TWO_CPUS, /* two threads, each on its CPU, the same owners: consume and refill */
	BENCH_CROSS,	/* one thread consumes, one on another CPU refills */
	BENCH_NR_SCENARIOS,
};

/* One rival in one block. */
struct bench_series {
	int missing;  /* negative errno: not here */
	bool inexact; /* its totals are wrong */
	double *ns;   /* ns per pair, one for each round */
	double median, minimum, p10, p90;
	double ratio;	      /* to the first rival */
	uint32_t slice_pairs; /* 0: not yet known */
	uint64_t pairs;
	struct bench_events events;
};

/* All rivals, slice by slice in turn, with one number of owners. */
struct bench_block {
	enum bench_scenario scenario;
	uint32_t nr_owners;
	unsigned int rounds;
	struct bench_series *series; /* by the rivals' order */
};

struct bench_figures {
	double resident[3]; /* bytes a CPU, at bench_resident_owners */
	double drain_ns[5]; /* medians, see bench_drain.c */
	double drain_min_ns[5];
};

struct bench_options {
	bool brief; /* few numbers of owners, and 15 s in all */
	bool lose;  /* lose a unit, to see the check fail */
	double seconds;
	uint64_t seed;
	int cpu[2];
	const char *csv, *svg, *script; /* may be NULL */
};

/* bench_crew.c: a second thread, pinned, that spins while it waits. */
struct bench_crew {
	pthread_t thread;
	int cpu;
	_Atomic uint32_t called, ready, started, done;
	void (*work)(void *argument); /* NULL: end */
	void *argument;
};
void bench_pin(int cpu);
int bench_crew_open(struct bench_crew *crew, int cpu);
/* Both run now: returns at the moment the other begins work(argument). */
void bench_crew_begin(struct bench_crew *crew, void (*work)(void *argument), void *argument);
void bench_crew_end(struct bench_crew *crew);
void bench_crew_close(struct bench_crew *crew);
double bench_now_ns(void);

/* bench_drain.c */
extern const char *const bench_drain_names[5];
extern const uint32_t bench_resident_owners[3];
int bench_measure_figures(const struct bench_options *options, struct bench_figures *ret_figures);

/* bench_report.c */
extern const char *const bench_scenario_names[BENCH_NR_SCENARIOS];
double bench_median(double *values, unsigned int count); /* sorts them */
void bench_summarize(struct bench_block *block);
void bench_report(const struct bench_block *blocks, unsigned int nr_blocks,
		  const struct bench_figures *figures, const struct bench_options *options);
int bench_write_csv(const struct bench_block *blocks, unsigned int nr_blocks, const char *path);
void bench_plot(const struct bench_options *options);

#endif
