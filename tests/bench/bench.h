/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * bench.h - what the benchmarks share: blocks in which rivals take turns, contests of a few loads,
 * and a second thread that starts together with the first.
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
	BENCH_ONE_CPU,	   /* one thread: consume and refill */
	BENCH_TWO_CPUS,	   /* two threads, each on its CPU, the same owners: consume and refill */
	BENCH_CROSS,	   /* one thread consumes, one on another CPU refills */
	BENCH_CHARGES,	   /* one thread consumes, and nobody refills */
	BENCH_CHARGES_TWO, /* two threads likewise, the same owners */
	BENCH_CROWDED,	   /* as BENCH_ONE_CPU; twice as many owners as a stock has slots */
	BENCH_CROWDED_TWO, /* as BENCH_TWO_CPUS, likewise */
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
	uint64_t pairs;	      /* or consumes, where nobody refills */
	struct bench_events events;
	int64_t *consumed; /* in this pass; see struct rival */
};

/* All rivals, slice by slice in turn, with one number of owners, at one depth of the tree. */
struct bench_block {
	enum bench_scenario scenario;
	uint32_t nr_owners;
	unsigned int depth;
	unsigned int rounds;
	struct bench_series *series; /* by the rivals' order */
};

struct bench_options {
	bool brief; /* few numbers of owners, and 15 s in all */
	bool lose;  /* lose a unit, to see the check fail */
	double seconds;
	uint64_t seed;
	int cpu[2];
	const char *csv, *svg, *script; /* may be NULL */
	const char *only;		/* one part of the benchmark; NULL: all */
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

/* bench_options.c */
/* On failure usage is told, with what the benchmark is called. */
bool bench_read_options(int argc, char **argv, double brief_seconds, double full_seconds,
			const char *parts, struct bench_options *ret_options);
bool bench_wants(const struct bench_options *options, const char *part);
/* A benchmark in several parts: main() of those. measure() returns 0, -EILSEQ: totals are wrong, or
 * another negative errno. */
struct bench_part {
	const char *name;
	int (*measure)(const struct bench_options *options);
};
int bench_run_parts(const struct bench_part *parts, size_t nr_parts,
		    const struct bench_options *options);

/* bench_blocks.c */
/* Owners chosen at random, 1..nr_owners: the same for the same seed, everywhere. */
void bench_choose_ids(uint16_t ids[BENCH_IDS], uint32_t nr_owners, uint64_t seed);
bool bench_has_second_cpu(enum bench_scenario scenario);
/* Which blocks there are to be; 0 ends a list. */
struct bench_plan {
	unsigned int depth[4];
	uint32_t owners[BENCH_NR_SCENARIOS][8];
};
/* Every scenario that this machine has the CPUs for; returns how many there are. */
unsigned int bench_make_blocks(const struct bench_plan *plan, const struct bench_options *options,
			       struct bench_block *blocks);
/* All blocks, in several passes, and their medians. */
void bench_run_blocks(struct bench_block *blocks, unsigned int nr_blocks,
		      const struct bench_options *options);
void bench_free_blocks(struct bench_block *blocks, unsigned int nr_blocks);
/* Tells of every rival that lost or made units. */
bool bench_all_exact(const struct bench_block *blocks, unsigned int nr_blocks);

/*
 * bench_contest.c: loads that take turns. slice() works for about as long as it is told, and
 * answers ns an operation.
 */
struct bench_load {
	const char *label;
	double (*slice)(void *context, double ns);
	void *context;
	unsigned int rounds;
	double *ns, median, minimum, ratio; /* ratio: to the first load, as in a series */
};
#define BENCH_LOAD(l, s, c)                                \
	{                                                  \
		.label = (l), .slice = (s), .context = (c) \
	}
void bench_contest(struct bench_load *loads, unsigned int nr_loads, double slice_ns,
		   unsigned int rounds);
void bench_print_contest(const char *title, const char *unit, const struct bench_load *loads,
			 unsigned int nr_loads);

/* bench_report.c */
struct bench_column {
	const char *what, *format;
	double (*value)(const struct bench_series *series);
};
extern const struct bench_column bench_median_column, bench_minimum_column, bench_ratio_column,
	bench_misses_column, bench_settled_column;
extern const char *const bench_scenario_names[BENCH_NR_SCENARIOS];
double bench_median(double *values, unsigned int count); /* sorts them */
/* The median, over rounds, of how many times as long the first took as the second. */
double bench_ratio(const double *ns, const double *other_ns, unsigned int rounds);
void bench_summarize(struct bench_block *block);
void bench_print_machine(const struct bench_options *options);
void bench_print_rounds(const struct bench_block *blocks, unsigned int nr_blocks,
			const struct bench_options *options);
/* One line a rival, one column a number of owners; rivals of whom all is 0 are left out. */
void bench_print_table(const struct bench_block *blocks, unsigned int nr_blocks,
		       enum bench_scenario scenario, unsigned int depth, const char *title,
		       const struct bench_column *column);
/* Median, minimum and ratio, each in a table. */
void bench_print_times(const struct bench_block *blocks, unsigned int nr_blocks,
		       enum bench_scenario scenario, unsigned int depth, const char *title);
const struct bench_block *bench_find_block(const struct bench_block *blocks, unsigned int nr_blocks,
					   enum bench_scenario scenario, uint32_t nr_owners,
					   unsigned int depth);
/* NULL: not in this block; so is the block. */
const struct bench_series *bench_find_series(const struct bench_block *block, const char *name);
int bench_write_csv(const struct bench_block *blocks, unsigned int nr_blocks, const char *path);
/* A contest, after the blocks; nothing where no file was asked for. */
void bench_append_csv(const struct bench_options *options, const char *contest, uint32_t nr_owners,
		      const struct bench_load *loads, unsigned int nr_loads);
/* What was asked for and what was found, kept until all is told. of_minima may be 0: not told.
 * target is not copied. */
void bench_note_target(const char *text, const char *target, double measured, double of_minima);
void bench_note_ratio(const char *text, const char *target, const struct bench_block *block,
		      const struct bench_series *rival, const struct bench_series *ours);
void bench_print_targets(void);
void bench_plot(const struct bench_options *options);

#endif
