// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * cache_bench.c - what a consume and a refill cost, beside other ways to count.
 *
 * All rivals run in this process, slice by slice in turn: a slice is about 100 microseconds of one
 * rival, a round is one slice of each, the round's first rival changes, and of hundreds of rounds
 * the median and the minimum are told. Ratios are formed within rounds, so that what slows the
 * machine for a while slows both, and all numbers of owners are gone through several times, so that
 * none of them meets a busy machine only. Owners are chosen at random, by a list that is the same
 * for all. After each block every rival's totals are checked to the unit, and a wrong one is the
 * only way to fail: times never are.
 */
#define _GNU_SOURCE
#include "bench.h"

#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define SLICE_NS 120e3
#define MIN_PAIRS 512u
#define MIN_ROUNDS 7u /* a pass; with --short 2 */
#define MAX_ROUNDS 4000u

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
	bool counts;		 /* what is run now is told, not only done */
};

static void run_part(void *argument)
{
	struct part *part = argument;

	bench_events = (struct bench_events){ 0, 0 };
	part->loop(&part->run);
	part->ended_ns = bench_now_ns();
	part->events = bench_events;
}

/* One slice on all CPUs of the scenario. Returns ns from the common start to the later end. */
static double run_slice(const struct measurement *measurement, unsigned int rival, uint32_t pairs)
{
	const struct rival *it = bench_rivals[rival];
	struct bench_series *series = &measurement->block->series[rival];
	bool cross = measurement->block->scenario == BENCH_CROSS;
	struct part parts[2] = { {
		.loop = cross ? it->consume : it->pair,
		.run = { it->state, measurement->ids, measurement->first, pairs },
	} };
	double started_ns, ended_ns;

	parts[1] = parts[0];
	parts[1].loop = cross ? it->refill : it->pair;
	/* Two threads do the same, but not in step. */
	if (!cross)
		parts[1].run.first += BENCH_IDS / 2;
	if (measurement->crew)
		bench_crew_begin(measurement->crew, run_part, &parts[1]);
	started_ns = bench_now_ns();
	run_part(&parts[0]);
	if (measurement->crew)
		bench_crew_end(measurement->crew);
	ended_ns = parts[0].ended_ns;
	if (parts[1].ended_ns > ended_ns)
		ended_ns = parts[1].ended_ns;
	if (!measurement->counts)
		return ended_ns - started_ns;
	series->pairs += pairs * (measurement->crew && !cross ? 2 : 1);
	series->events.misses += parts[0].events.misses + parts[1].events.misses;
	series->events.settled += parts[0].events.settled + parts[1].events.settled;
	return ended_ns - started_ns;
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
	unsigned int i;

	block->series = calloc(bench_nr_rivals, sizeof(*block->series));
	for (i = 0; block->series && i < bench_nr_rivals; i++) {
		block->series[i].ns = calloc(MAX_ROUNDS, sizeof(double));
		if (!block->series[i].ns)
			break;
	}
	if (i < bench_nr_rivals)
		abort();
}

static void open_rivals(struct bench_block *block)
{
	const struct rival *rival;
	unsigned int i;

	for (i = 0; i < bench_nr_rivals; i++) {
		rival = bench_rivals[i];
		block->series[i].missing = rival->open(rival->state, block->nr_owners);
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
		if (!rival->exact(rival->state))
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

static uint64_t seeded(const struct bench_options *options, uint32_t nr_owners)
{
	return options->seed * 0x9e3779b97f4a7c15u + nr_owners;
}

static void choose_ids(uint16_t *ids, uint32_t nr_owners, const struct bench_options *options)
{
	uint64_t state = seeded(options, nr_owners);
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
 * Where one consumes and another refills, an owner misses once in a batch. To see that from the
 * first round on, each owner is first consumed and refilled a number of times that is drawn up to
 * two batches: then all stand at different places of their batch.
 */
static void prime(struct measurement *measurement, const struct bench_options *options)
{
	uint32_t nr_owners = measurement->block->nr_owners, owner, times, filled = 0;
	uint64_t state = seeded(options, nr_owners);
	uint16_t *ids = bench_alloc(BENCH_IDS * sizeof(*ids));
	const uint16_t *chosen = measurement->ids;

	if (!ids)
		abort();
	measurement->ids = ids;
	for (owner = 1; owner <= nr_owners; owner++) {
		for (times = 1 + draw(&state) % (2 * BENCH_BATCH); times; times--)
			ids[filled++] = (uint16_t)owner;
		if (filled > BENCH_IDS - 2 * BENCH_BATCH || owner == nr_owners) {
			spend(measurement, filled);
			filled = 0;
		}
	}
	measurement->ids = chosen;
	free(ids);
}

/* One pass over one block. */
static void run_block(struct bench_block *block, const struct bench_options *options,
		      double seconds)
{
	uint16_t *ids = bench_alloc(BENCH_IDS * sizeof(*ids));
	struct measurement measurement = { .block = block, .ids = ids };
	unsigned int enough = block->rounds + (options->brief ? 2 : MIN_ROUNDS);
	struct bench_run lost;
	struct bench_crew crew;
	double deadline;

	if (!ids)
		abort();
	choose_ids(ids, block->nr_owners, options);
	open_rivals(block);
	if (block->scenario != BENCH_ONE_CPU) {
		if (bench_crew_open(&crew, options->cpu[1]) < 0)
			abort();
		measurement.crew = &crew;
	}
	if (block->scenario == BENCH_CROSS)
		prime(&measurement, options);
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

/* What is run: numbers of owners for each scenario, all for the same time. */
static unsigned int plan(struct bench_block *blocks, const struct bench_options *options)
{
	static const uint32_t full[] = { 1, 4, 7, 12, 36, 100, 300, 1000, 7000, 20000 };
	static const uint32_t brief[] = { 1, 36, 1000 };
	const uint32_t *owners = options->brief ? brief : full;
	size_t nr_owners =
		options->brief ? sizeof(brief) / sizeof(*brief) : sizeof(full) / sizeof(*full);
	unsigned int scenario, nr_blocks = 0;
	size_t i;

	for (scenario = 0; scenario < BENCH_NR_SCENARIOS; scenario++) {
		if (scenario != BENCH_ONE_CPU && options->cpu[1] < 0)
			break;
		for (i = 0; i < nr_owners; i++)
			blocks[nr_blocks++] = (struct bench_block){
				.scenario = (enum bench_scenario)scenario,
				.nr_owners = owners[i],
			};
	}
	return nr_blocks;
}

/* The first two CPUs this process may run on; -1 where there is no second. */
static void choose_cpus(int cpu[2])
{
	cpu_set_t set;
	int i, found = 0;

	cpu[0] = 0;
	cpu[1] = -1;
	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return;
	for (i = 0; i < CPU_SETSIZE && found < 2; i++)
		if (CPU_ISSET(i, &set))
			cpu[found++] = i;
}

static void usage(FILE *stream)
{
	fprintf(stream, "usage: cache_bench [--short] [--seconds=S] [--seed=N] [--cpus=A,B]\n"
			"                   [--csv=FILE] [--svg=FILE --script=plot.gp] [--lose]\n"
			"  --short    1, 36 and 1,000 owners only, within 15 s\n"
			"  --seconds  for all series together (default 150; 8 with --short)\n"
			"  --lose     lose one unit of each block, to see the check fail\n");
}

static bool read_options(int argc, char **argv, struct bench_options *options)
{
	static const struct option names[] = {
		{ "short", no_argument, NULL, 'b' },
		{ "seconds", required_argument, NULL, 't' },
		{ "seed", required_argument, NULL, 's' },
		{ "cpus", required_argument, NULL, 'c' },
		{ "csv", required_argument, NULL, 'f' },
		{ "svg", required_argument, NULL, 'g' },
		{ "script", required_argument, NULL, 'p' },
		{ "lose", no_argument, NULL, 'l' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	*options = (struct bench_options){ .seed = 1 };
	choose_cpus(options->cpu);
	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (c == 'b')
			options->brief = true;
		else if (c == 'l')
			options->lose = true;
		else if (c == 't')
			options->seconds = atof(optarg);
		else if (c == 's')
			options->seed = strtoull(optarg, NULL, 0);
		else if (c == 'c' &&
			 sscanf(optarg, "%d,%d", &options->cpu[0], &options->cpu[1]) == 2)
			continue;
		else if (c == 'f')
			options->csv = optarg;
		else if (c == 'g')
			options->svg = optarg;
		else if (c == 'p')
			options->script = optarg;
		else
			return false;
	}
	if (!options->seconds)
		options->seconds = options->brief ? 8 : 150;
	return optind == argc;
}

static bool all_exact(const struct bench_block *blocks, unsigned int nr_blocks)
{
	bool exact = true;
	unsigned int i, rival;

	for (i = 0; i < nr_blocks; i++)
		for (rival = 0; rival < bench_nr_rivals; rival++)
			if (blocks[i].series[rival].inexact) {
				fprintf(stderr, "cache_bench: totals of %s are wrong (%s, %u)\n",
					bench_rivals[rival]->name,
					bench_scenario_names[blocks[i].scenario],
					blocks[i].nr_owners);
				exact = false;
			}
	return exact;
}

int main(int argc, char **argv)
{
	struct bench_block blocks[3 * 10];
	struct bench_figures figures;
	struct bench_options options;
	unsigned int nr_blocks, passes, pass, i, rival;
	bool exact;
	int r;

	if (!read_options(argc, argv, &options)) {
		usage(stderr);
		return 2;
	}
	nr_blocks = plan(blocks, &options);
	bench_pin(options.cpu[0]);
	for (i = 0; i < nr_blocks; i++)
		make_series(&blocks[i]);
	passes = options.brief ? 3 : 5;
	for (pass = 0; pass < passes; pass++)
		for (i = 0; i < nr_blocks; i++)
			run_block(&blocks[i], &options, options.seconds / nr_blocks / passes);
	for (i = 0; i < nr_blocks; i++)
		bench_summarize(&blocks[i]);
	exact = all_exact(blocks, nr_blocks);
	r = bench_measure_figures(&options, &figures);
	if (r < 0)
		fprintf(stderr, "cache_bench: no figures: %s\n", strerror(-r));
	bench_report(blocks, nr_blocks, r < 0 ? NULL : &figures, &options);
	if (options.csv && bench_write_csv(blocks, nr_blocks, options.csv) < 0)
		fprintf(stderr, "cache_bench: cannot write %s\n", options.csv);
	else if (options.csv && options.svg && options.script)
		bench_plot(&options);
	for (i = 0; i < nr_blocks; i++) {
		for (rival = 0; rival < bench_nr_rivals; rival++)
			free(blocks[i].series[rival].ns);
		free(blocks[i].series);
	}
	return exact ? 0 : 1;
}
