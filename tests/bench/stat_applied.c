// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * stat_applied.c - what an update costs that is applied: the walk to the root.
 *
 * One of 64 updates is, where each counts one. Here all are. In the series all levels are soon past
 * the threshold, for nobody flushes; here they are also all below it: root is flushed, for which no
 * time is taken, before it can get past.
 */
#include <stdlib.h>

#include <errno.h>

#include "stat_bench.h"
#include "stat_tree.h"

#define NR_OWNERS 36
#define AT_ONCE 64 /* updates; no more than the least threshold, of one CPU */
#define BATCH 64   /* updates that are applied together, by default */

static const unsigned int depths[] = { 1, 3, 6 };
#define NR_DEPTHS (sizeof(depths) / sizeof(*depths))

struct walk {
	struct owner_tree *tree;
	const uint16_t *ids;
	bool below;
	int64_t *done; /* in this tree */
	uint32_t next;
};

static double run(void *context, double ns)
{
	struct walk *walk = context;
	double started_ns, taken_ns = 0;
	uint64_t done = 0;
	uint32_t i;

	/* All levels are past it, whatever a flush did before. */
	for (i = 1; !walk->below && i <= NR_OWNERS; i++)
		pcpc_stat_add(walk->tree->owners[i], 1, INT32_MAX);
	do {
		if (walk->below)
			pcpc_stat_flush(walk->tree->nodes[0]);
		started_ns = bench_now_ns();
		for (i = 0; i < AT_ONCE; i++)
			pcpc_stat_add(walk->tree->owners[walk->ids[walk->next++ & (BENCH_IDS - 1)]],
				      0, 1);
		taken_ns += bench_now_ns() - started_ns;
		done += AT_ONCE;
	} while (taken_ns < ns);
	*walk->done += (int64_t)done;
	return taken_ns / (double)done;
}

static void report(const struct bench_options *options, const struct bench_load *loads,
		   unsigned int nr_loads)
{
	char text[80];
	unsigned int i;

	bench_print_contest("applied updates, 36 owners", "ns each", loads, nr_loads);
	bench_append_csv(options, "applied", NR_OWNERS, loads, nr_loads);
	for (i = 0; i < nr_loads; i++) {
		snprintf(text, sizeof(text), "ns of the walk in each stat_add of 1: %s",
			 loads[i].label);
		bench_note_target(text, "", loads[i].median / BATCH, loads[i].minimum / BATCH);
	}
}

int stat_measure_applied(const struct bench_options *options)
{
	struct stat_tree_config config = {
		.nr_owners = NR_OWNERS,
		.nr_items = STAT_ITEMS,
		.delta_batch = 1,
	};
	struct owner_tree trees[NR_DEPTHS];
	struct walk walks[2 * NR_DEPTHS];
	struct bench_load loads[2 * NR_DEPTHS] = {
		BENCH_LOAD("depth 1, all past T", run, &walks[0]),
		BENCH_LOAD("depth 1, all below T", run, &walks[1]),
		BENCH_LOAD("depth 3, all past T", run, &walks[2]),
		BENCH_LOAD("depth 3, all below T", run, &walks[3]),
		BENCH_LOAD("depth 6, all past T", run, &walks[4]),
		BENCH_LOAD("depth 6, all below T", run, &walks[5]),
	};
	int64_t done[NR_DEPTHS] = { 0 };
	uint16_t *ids = bench_alloc(BENCH_IDS * sizeof(*ids));
	unsigned int i, opened;
	int r = ids ? 0 : -ENOMEM;

	bench_pin(options->cpu[0]);
	if (r == 0)
		bench_choose_ids(ids, NR_OWNERS, options->seed);
	for (i = 0; r == 0 && i < NR_DEPTHS; i++) {
		config.depth = depths[i];
		walks[2 * i] = (struct walk){ &trees[i], ids, false, &done[i], 0 };
		walks[2 * i + 1] = (struct walk){ &trees[i], ids, true, &done[i], 0 };
		r = stat_tree_open(&trees[i], &config);
	}
	opened = r < 0 && i ? i - 1 : i;
	if (r == 0) {
		bench_contest(loads, 2 * NR_DEPTHS, 100e3, options->brief ? 60 : 1000);
		report(options, loads, 2 * NR_DEPTHS);
	}
	for (i = 0; i < opened; i++) {
		if (r == 0 && pcpc_stat_read_exact(trees[i].nodes[0], 0) != done[i])
			r = -EILSEQ;
		owner_tree_close(&trees[i]);
	}
	free(ids);
	return r;
}
