// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * bench_blocks.c - rivals that take turns, slice by slice.
 *
 * All rivals run in this process: a slice is about 100 microseconds of one rival, a round is one
 * slice of each, the round's first rival changes, and of hundreds of rounds the median and the
 * minimum are told. Ratios are formed within rounds, so that what slows the machine for a while
 * slows both, and all blocks are gone through several times, so that none of them meets a busy
 * machine only. Owners are chosen at random, by a list that is the same for all. After each pass
 * over a block every rival's totals are checked to the unit.
 */
#define _GNU_SOURCE
#include "bench.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SLICE_NS 120e3
#define MIN_PAIRS 512u
#define MIN_ROUNDS 7u /* a pass; with --short 2 */
#define MAX_ROUNDS 4000u

enum work { PAIRS, CONSUMES, REFILLS };

static const struct {
	enum work work[2];
	bool two_cpus;
} scenarios[BENCH_NR_SCENARIOS] = {
	[BENCH_ONE_CPU] = { { PAIRS }, false },
	[BENCH_TWO_CPUS] = { { PAIRS, PAIRS }, true },
	[BENCH_CROSS] = { { CONSUMES, REFILLS }, true },
	[BENCH_CHARGES] = { { CONSUMES }, false },
	[BENCH_CHARGES_TWO] = { { CONSUMES, CONSUMES }, true },
	[BENCH_CROWDED] = { { PAIRS }, false },
	[BENCH_CROWDED_TWO] = { { PAIRS, PAIRS }, true },
};

bool bench_has_second_cpu(enum bench_scenario scenario)
{
	return scenarios[scenario].two_cpus;
}

/* What one thread does in one slice, and what became of it. */
struct part {
	bench_loop *loop;
	struct bench_run run;
	double ended_ns;
	struct bench_events events;
};

struct measurement {
	struct bench_block *block;
	const uint16_t *ids;
	struct bench_crew *crew; /* NULL with one CPU */
	uint32_t first;		 /* where this round begins in the list */
	uint32_t apart;		 /* how far behind a second thread that does the same begins */
	bool counts;		 /* what is run now is told, not only done */
};

static void run_part(void *argument)
{
	struct part *part = argument;

	bench_events = (struct bench_events){ 0 };
	part->loop(&part->run);
	part->ended_ns = bench_now_ns();
	part->events = bench_events;
}

static bench_loop *loop_of(const struct rival *rival, enum work work)
{
	return work == PAIRS ? rival->pair : work == CONSUMES ? rival->consume : rival->refill;
}

/* Consumed and not refilled, by owner and in all. */
static void keep_books(struct bench_series *series, const struct bench_run *run, enum work work)
{
	const int64_t step = work == CONSUMES ? 1 : -1;
	uint32_t i;

	if (work == PAIRS)
		return;
	series->consumed[0] += step * run->pairs;
	for (i = 0; i < run->pairs; i++)
		series->consumed[run->ids[(run->first + i) & (BENCH_IDS - 1)]] += step;
}

/* What one thread consumes and another refills is one pair. */
static void count(struct bench_series *series, const struct part *part, enum work work)
{
	unsigned int i;

	if (work != REFILLS)
		series->pairs += part->run.pairs;
	series->events.misses += part->events.misses;
	series->events.settled += part->events.settled;
	series->events.peaks += part->events.peaks;
	for (i = 0; i < BENCH_NR_LINES; i++)
		series->events.atomics[i] += part->events.atomics[i];
}

/* Runs both parts, or the first where there is one CPU. Returns ns from the common start to the
 * later end. */
static double run_parts(const struct measurement *measurement, struct part parts[2])
{
	double started_ns;

	if (measurement->crew)
		bench_crew_begin(measurement->crew, run_part, &parts[1]);
	started_ns = bench_now_ns();
	run_part(&parts[0]);
	if (measurement->crew)
		bench_crew_end(measurement->crew);
	if (measurement->crew && parts[1].ended_ns > parts[0].ended_ns)
		return parts[1].ended_ns - started_ns;
	return parts[0].ended_ns - started_ns;
}

/* One slice on all CPUs of the scenario. */
static double run_slice(const struct measurement *measurement, unsigned int rival, uint32_t pairs)
{
	const struct rival *it = bench_rivals[rival];
	struct bench_series *series = &measurement->block->series[rival];
	const enum work *work = scenarios[measurement->block->scenario].work;
	struct part parts[2];
	unsigned int i;
	double ns;

	for (i = 0; i < 2; i++)
		parts[i] = (struct part){
			.loop = loop_of(it, work[i]),
			.run = { it->state, measurement->ids, measurement->first, pairs },
		};
	/* Two threads that do the same do it not in step. */
	if (work[0] == work[1])
		parts[1].run.first += measurement->apart;
	ns = run_parts(measurement, parts);
	for (i = 0; i < (measurement->crew ? 2 : 1); i++) {
		keep_books(series, &parts[i].run, work[i]);
		if (measurement->counts)
			count(series, &parts[i], work[i]);
	}
	return ns;
}

static uint32_t calibrate(const struct measurement *measurement, unsigned int rival)
{
	double ns = run_slice(measurement, rival, MIN_PAIRS);

	return ns > SLICE_NS ? MIN_PAIRS : (uint32_t)(SLICE_NS / ns * MIN_PAIRS);
}

static void run_round(struct measurement *measurement)
{
	struct bench_block *block = measurement->block;
	struct bench_series *series;
	unsigned int turn, rival;
	double ns;

	for (turn = 0; turn < bench_nr_rivals; turn++) {
		rival = (turn + block->rounds) % bench_nr_rivals;
		series = &block->series[rival];
		if (series->missing)
			continue;
		/* The slices before have used the caches for other things. */
		run_slice(measurement, rival, 2 * block->nr_owners + 64);
		if (!series->slice_pairs)
			series->slice_pairs = calibrate(measurement, rival);
		measurement->counts = true;
		ns = run_slice(measurement, rival, series->slice_pairs);
		measurement->counts = false;
		series->ns[block->rounds] = ns / series->slice_pairs;
	}
	/* A step that has no factor in common with the length of the list. */
	measurement->first += 10007;
	block->rounds++;
}

static void leave_all(void *argument)
{
	const struct bench_block *block = argument;
	unsigned int i;

	for (i = 0; i < bench_nr_rivals; i++)
		if (!block->series[i].missing && bench_rivals[i]->leave)
			bench_rivals[i]->leave(bench_rivals[i]->state);
}

static void make_series(struct bench_block *block)
{
	struct bench_series *series;
	unsigned int i;

	block->series = calloc(bench_nr_rivals, sizeof(*block->series));
	if (!block->series)
		abort();
	for (i = 0; i < bench_nr_rivals; i++) {
		series = &block->series[i];
		series->ns = calloc(MAX_ROUNDS, sizeof(*series->ns));
		series->consumed = calloc(block->nr_owners + 1, sizeof(*series->consumed));
		if (!series->ns || !series->consumed)
			abort();
	}
}

static void open_rivals(struct bench_block *block)
{
	const struct rival *rival;
	struct bench_series *series;
	unsigned int i;

	for (i = 0; i < bench_nr_rivals; i++) {
		rival = bench_rivals[i];
		series = &block->series[i];
		memset(series->consumed, 0, (block->nr_owners + 1) * sizeof(*series->consumed));
		series->missing = rival->open(rival->state, block->nr_owners, block->depth);
	}
}

static void check_and_close_rivals(struct bench_block *block)
{
	const struct rival *rival;
	unsigned int i;

	for (i = 0; i < bench_nr_rivals; i++) {
		rival = bench_rivals[i];
		if (block->series[i].missing)
			continue;
		if (!rival->exact(rival->state, block->series[i].consumed))
			block->series[i].inexact = true;
		if (rival->close)
			rival->close(rival->state);
	}
}

/* Xorshift: the same sequence for the same seed, everywhere. */
static uint64_t draw(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state >> 33;
}

static uint64_t seeded(uint64_t seed, uint32_t nr_owners)
{
	return seed * 0x9e3779b97f4a7c15u + nr_owners;
}

void bench_choose_ids(uint16_t ids[BENCH_IDS], uint32_t nr_owners, uint64_t seed)
{
	uint64_t state = seeded(seed, nr_owners);
	uint32_t i;

	for (i = 0; i < BENCH_IDS; i++)
		ids[i] = (uint16_t)(1 + draw(&state) % nr_owners);
}

static void spend(struct measurement *measurement, uint32_t pairs)
{
	unsigned int rival;

	for (rival = 0; rival < bench_nr_rivals; rival++)
		if (!measurement->block->series[rival].missing)
			run_slice(measurement, rival, pairs);
}

/*
 * Where a thread only consumes, an owner misses once in a batch. To see that from the first round
 * on, each owner is first consumed (and refilled) a number of times that is drawn up to two
 * batches: then all stand at different places of their batch.
 */
static void prime(struct measurement *measurement, uint64_t seed)
{
	uint32_t nr_owners = measurement->block->nr_owners, owner, times, filled = 0;
	uint64_t state = seeded(seed, nr_owners);
	uint16_t *ids = bench_alloc(BENCH_IDS * sizeof(*ids));
	const uint16_t *chosen = measurement->ids;

	if (!ids)
		abort();
	measurement->ids = ids;
	measurement->apart = 0;
	for (owner = 1; owner <= nr_owners; owner++) {
		for (times = 1 + draw(&state) % (2 * BENCH_BATCH); times; times--)
			ids[filled++] = (uint16_t)owner;
		if (filled > BENCH_IDS - 2 * BENCH_BATCH || owner == nr_owners) {
			spend(measurement, filled);
			filled = 0;
		}
	}
	measurement->ids = chosen;
	measurement->apart = BENCH_IDS / 2;
	free(ids);
}

/* One pass over one block. */
static void run_block(struct bench_block *block, const struct bench_options *options,
		      double seconds)
{
	uint16_t *ids = bench_alloc(BENCH_IDS * sizeof(*ids));
	struct measurement measurement = { .block = block, .ids = ids, .apart = BENCH_IDS / 2 };
	unsigned int enough = block->rounds + (options->brief ? 2 : MIN_ROUNDS);
	struct bench_run lost;
	struct bench_crew crew;
	double deadline;

	if (!ids)
		abort();
	bench_choose_ids(ids, block->nr_owners, options->seed);
	open_rivals(block);
	if (scenarios[block->scenario].two_cpus) {
		if (bench_crew_open(&crew, options->cpu[1]) < 0)
			abort();
		measurement.crew = &crew;
	}
	if (scenarios[block->scenario].work[0] == CONSUMES)
		prime(&measurement, options->seed);
	deadline = bench_now_ns() + seconds * 1e9;
	while (block->rounds < MAX_ROUNDS && (block->rounds < enough || bench_now_ns() < deadline))
		run_round(&measurement);
	if (options->lose) {
		lost = (struct bench_run){ bench_rivals[0]->state, ids, 0, 1 };
		bench_rivals[0]->consume(&lost);
	}
	leave_all(block);
	if (measurement.crew) {
		bench_crew_begin(&crew, leave_all, block);
		bench_crew_end(&crew);
		bench_crew_close(&crew);
	}
	check_and_close_rivals(block);
	free(ids);
}

unsigned int bench_make_blocks(const struct bench_plan *plan, const struct bench_options *options,
			       struct bench_block *blocks)
{
	unsigned int scenario, d, i, nr_blocks = 0;

	for (scenario = 0; scenario < BENCH_NR_SCENARIOS; scenario++) {
		if (scenarios[scenario].two_cpus && options->cpu[1] < 0)
			continue;
		for (d = 0; plan->depth[d]; d++)
			for (i = 0; plan->owners[scenario][i]; i++)
				blocks[nr_blocks++] = (struct bench_block){
					.scenario = (enum bench_scenario)scenario,
					.nr_owners = plan->owners[scenario][i],
					.depth = plan->depth[d],
				};
	}
	return nr_blocks;
}

void bench_run_blocks(struct bench_block *blocks, unsigned int nr_blocks,
		      const struct bench_options *options)
{
	const unsigned int passes = options->brief ? 3 : 5;
	unsigned int pass, i;

	bench_pin(options->cpu[0]);
	for (i = 0; i < nr_blocks; i++)
		make_series(&blocks[i]);
	for (pass = 0; pass < passes; pass++)
		for (i = 0; i < nr_blocks; i++)
			run_block(&blocks[i], options, options->seconds / nr_blocks / passes);
	for (i = 0; i < nr_blocks; i++)
		bench_summarize(&blocks[i]);
}

void bench_free_blocks(struct bench_block *blocks, unsigned int nr_blocks)
{
	unsigned int i, rival;

	for (i = 0; i < nr_blocks; i++) {
		for (rival = 0; rival < bench_nr_rivals; rival++) {
			free(blocks[i].series[rival].ns);
			free(blocks[i].series[rival].consumed);
		}
		free(blocks[i].series);
	}
}

bool bench_all_exact(const struct bench_block *blocks, unsigned int nr_blocks)
{
	bool exact = true;
	unsigned int i, rival;

	for (i = 0; i < nr_blocks; i++)
		for (rival = 0; rival < bench_nr_rivals; rival++)
			if (blocks[i].series[rival].inexact) {
				fprintf(stderr,
					"%s: totals of %s are wrong (%s, %u owners, depth %u)\n",
					program_invocation_short_name, bench_rivals[rival]->name,
					bench_scenario_names[blocks[i].scenario],
					blocks[i].nr_owners, blocks[i].depth);
				exact = false;
			}
	return exact;
}
