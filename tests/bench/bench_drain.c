// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * bench_drain.c - figures that are no series: memory that stocks occupy, and what a drain takes.
 */
#define _GNU_SOURCE
#include "cache_bench.h"

#include <errno.h>
#include <stdlib.h>

#include <pcpcharge/pcpcharge.h>

#define DRAINS 400

const char *const cache_drain_names[5] = {
	"1 owner on this CPU",	     "1 owner on the other CPU, busy",	  "1 owner on both CPUs",
	"1,000 owners on both CPUs", "none of 1,000 owners on both CPUs", /* a scan that takes
									     nothing */
};

const uint32_t cache_resident_owners[3] = { 7, 1000, 7000 };

struct stocking {
	struct pcpc_cache *cache;
	uint32_t nr_owners;
	bool here, there;
	_Atomic bool stop;
	uint64_t settled;
};

static const struct pcpc_marks marks = { BENCH_HIGH, BENCH_LOW, 64 };

static void stock_owners(struct stocking *stocking)
{
	struct pcpc_deferred deferred;
	uint32_t owner;

	for (owner = 1; owner <= stocking->nr_owners; owner++)
		pcpc_cache_refill(stocking->cache, owner, 1, 0, &marks, &deferred);
}

/* Stocks, and keeps the CPU busy until it is told to stop: a drain has to interrupt it. */
static void stock_and_spin(void *argument)
{
	struct stocking *stocking = argument;

	if (stocking->there)
		stock_owners(stocking);
	/* Relaxed: a flag. */
	while (!atomic_load_explicit(&stocking->stop, memory_order_relaxed))
		;
}

static bool match_all(uint32_t owner, void *context)
{
	(void)owner;
	(void)context;
	return true;
}

static bool match_none(uint32_t owner, void *context)
{
	(void)owner;
	(void)context;
	return false;
}

static void settle(const struct pcpc_deferred *deferred, void *context)
{
	struct stocking *stocking = context;

	stocking->settled += deferred->count;
}

static double time_drain(struct bench_crew *crew, struct stocking *stocking, pcpc_match_fn *match)
{
	double started_ns, taken_ns;
	uint64_t wanted =
		stocking->nr_owners * ((stocking->here ? 1u : 0u) + (stocking->there ? 1u : 0u));

	stocking->stop = false;
	stocking->settled = 0;
	if (stocking->here)
		stock_owners(stocking);
	bench_crew_begin(crew, stock_and_spin, stocking);
	while (pcpc_cache_stocked(stocking->cache, stocking->nr_owners) <
	       wanted / stocking->nr_owners)
		;
	started_ns = bench_now_ns();
	pcpc_cache_drain(stocking->cache, match, settle, stocking);
	taken_ns = bench_now_ns() - started_ns;
	atomic_store_explicit(&stocking->stop, true, memory_order_relaxed);
	bench_crew_end(crew);
	if (match == match_all && stocking->settled != wanted)
		abort();
	/* What did not match must not pile up. */
	pcpc_cache_drain(stocking->cache, match_all, settle, stocking);
	return taken_ns;
}

static int measure_drains(const struct bench_options *options, struct cache_figures *figures)
{
	static const struct {
		uint32_t nr_owners;
		bool here, there;
		pcpc_match_fn *match;
	} cases[5] = {
		{ 1, true, false, match_all },	  { 1, false, true, match_all },
		{ 1, true, true, match_all },	  { 1000, true, true, match_all },
		{ 1000, true, true, match_none },
	};
	struct stocking stocking = { 0 };
	struct bench_crew crew;
	unsigned int drains = options->brief ? DRAINS / 4 : DRAINS, i, k;
	double taken_ns[DRAINS];
	int r;

	r = pcpc_cache_create(NULL, &stocking.cache);
	if (r < 0)
		return r;
	r = bench_crew_open(&crew, options->cpu[1]);
	if (r < 0) {
		pcpc_cache_destroy(stocking.cache);
		return r;
	}
	for (k = 0; k < 5; k++) {
		stocking.nr_owners = cases[k].nr_owners;
		stocking.here = cases[k].here;
		stocking.there = cases[k].there;
		for (i = 0; i < drains; i++)
			taken_ns[i] = time_drain(&crew, &stocking, cases[k].match);
		figures->drain_ns[k] = bench_median(taken_ns, drains);
		figures->drain_min_ns[k] = taken_ns[0];
	}
	bench_crew_close(&crew);
	pcpc_cache_destroy(stocking.cache);
	return 0;
}

static int measure_resident(struct cache_figures *figures)
{
	struct pcpc_cache_stats stats = { .size = sizeof(stats) };
	struct stocking stocking = { 0 };
	unsigned int i;
	int r;

	for (i = 0; i < 3; i++) {
		r = pcpc_cache_create(NULL, &stocking.cache);
		if (r < 0)
			return r;
		stocking.nr_owners = cache_resident_owners[i];
		stock_owners(&stocking);
		pcpc_cache_get_stats(stocking.cache, &stats);
		figures->resident[i] = (double)stats.bytes_resident;
		pcpc_cache_destroy(stocking.cache);
	}
	return 0;
}

int cache_measure_figures(const struct bench_options *options, struct cache_figures *ret_figures)
{
	int r;

	*ret_figures = (struct cache_figures){ 0 };
	bench_pin(options->cpu[0]);
	r = measure_resident(ret_figures);
	if (r == 0 && options->cpu[1] >= 0)
		r = measure_drains(options, ret_figures);
	return r;
}
