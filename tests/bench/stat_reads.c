// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * stat_reads.c - what reads and flushes cost, by the number of owners.
 *
 * Trees of all sizes take turns; before each operation its tree is brought into a state, for which
 * no time is taken.
 */
#include <errno.h>
#include <stdlib.h>

#include "stat_bench.h"
#include "stat_tree.h"

#define DEPTH 3
#define NR_SIZES 5
#define OFTEN 256 /* operations between two looks at the clock, where nothing is prepared */

static const uint32_t sizes[NR_SIZES] = { 1, 36, 1000, 10000, 20000 };

struct reading {
	struct owner_tree tree;
	int64_t counted; /* of item 0, in all */
	bool wrong;
	const struct kind *kind;
};

/* An update of every owner: it stays in a slot, or with as much as a batch is applied. */
static void update_all(struct reading *reading, int64_t delta)
{
	uint32_t i;

	for (i = 1; i <= reading->tree.shape.nr_owners; i++)
		pcpc_stat_add(reading->tree.owners[i], 0, delta);
	reading->counted += delta * reading->tree.shape.nr_owners;
}

static void stock_all(struct reading *reading)
{
	update_all(reading, 1);
}

static void apply_all(struct reading *reading)
{
	update_all(reading, 256);
}

/* Nothing that is due every 2 s is due then. */
static void apply_all_fresh(struct reading *reading)
{
	(void)pcpc_stat_read(reading->tree.nodes[0], 0);
	apply_all(reading);
}

static void apply_one(struct reading *reading)
{
	pcpc_stat_add(reading->tree.owners[1], 0, 256);
	reading->counted += 256;
}

static void read_cheap(struct reading *reading)
{
	(void)pcpc_stat_read(reading->tree.owners[1], 0);
}

static void read_local(struct reading *reading)
{
	(void)pcpc_stat_read_local(reading->tree.owners[1], 0);
}

static void read_leaf_exact(struct reading *reading)
{
	(void)pcpc_stat_read_exact(reading->tree.owners[1], 0);
}

static void read_root_exact(struct reading *reading)
{
	if (pcpc_stat_read_exact(reading->tree.nodes[0], 0) != reading->counted)
		reading->wrong = true;
}

static void flush_root(struct reading *reading)
{
	pcpc_stat_flush(reading->tree.nodes[0]);
}

/* 256 is past the threshold here, so it flushes that owner. */
static void read_every_leaf(struct reading *reading)
{
	uint32_t i;

	for (i = 1; i <= reading->tree.shape.nr_owners; i++)
		(void)pcpc_stat_read(reading->tree.owners[i], 0);
}

static const struct kind {
	const char *title, *csv;
	void (*prepare)(struct reading *reading); /* NULL: nothing */
	void (*operate)(struct reading *reading);
	unsigned int rounds;
} all_kinds[] = {
	{ "read, one owner", "read", NULL, read_cheap, 100 },
	{ "read_local, one owner", "read_local", NULL, read_local, 100 },
	{ "read_exact, one owner, all have deltas in slots", "exact_one", stock_all,
	  read_leaf_exact, 40 },
	{ "read_exact, root, all have deltas in slots", "exact_root", stock_all, read_root_exact,
	  40 },
	{ "flush of root, nothing changed", "flush_none", NULL, flush_root, 100 },
	{ "flush of root, one owner changed", "flush_one", apply_one, flush_root, 40 },
	{ "flush of root, all owners changed", "flush_all", apply_all, flush_root, 40 },
	{ "read of each owner in turn, all past the threshold", "read_each", apply_all_fresh,
	  read_every_leaf, 5 },
};

/* ns an operation. Ends also where preparing takes long. */
static double run(void *context, double ns)
{
	struct reading *reading = context;
	const struct kind *kind = reading->kind;
	const unsigned int often = kind->prepare ? 1 : OFTEN;
	const double began_ns = bench_now_ns();
	double started_ns, taken_ns = 0;
	uint64_t done = 0;
	unsigned int i;

	do {
		if (kind->prepare)
			kind->prepare(reading);
		started_ns = bench_now_ns();
		for (i = 0; i < often; i++)
			kind->operate(reading);
		taken_ns += bench_now_ns() - started_ns;
		done += often;
	} while (taken_ns < ns && bench_now_ns() - began_ns < 4 * ns);
	return taken_ns / (double)done;
}

static void measure_kind(const struct bench_options *options, const struct kind *kind,
			 struct reading readings[NR_SIZES])
{
	struct bench_load loads[NR_SIZES] = {
		BENCH_LOAD("1 owner", run, &readings[0]), BENCH_LOAD("36", run, &readings[1]),
		BENCH_LOAD("1,000", run, &readings[2]),	  BENCH_LOAD("10,000", run, &readings[3]),
		BENCH_LOAD("20,000", run, &readings[4]),
	};
	const bool quadratic = kind->operate == read_every_leaf;
	/* Of the largest tree, one round would take most of what --short has. */
	const unsigned int nr_loads = quadratic && options->brief ? 3 : NR_SIZES;
	unsigned int i;

	for (i = 0; i < nr_loads; i++)
		readings[i].kind = kind;
	bench_contest(loads, nr_loads, options->brief ? 100e3 : 2e6,
		      options->brief ? 3 + kind->rounds / 20 : kind->rounds);
	bench_print_contest(kind->title, "ns", loads, nr_loads);
	bench_append_csv(options, kind->csv, 0, loads, nr_loads);
	for (i = 0; quadratic && i < nr_loads; i++)
		printf("  %-44s%10.1f ns an owner\n", loads[i].label, loads[i].median / sizes[i]);
}

int stat_measure_reads(const struct bench_options *options)
{
	struct stat_tree_config config = { .depth = DEPTH, .nr_items = STAT_ITEMS };
	struct reading readings[NR_SIZES] = { 0 };
	unsigned int i, opened;
	int r = 0;
	size_t k;

	bench_pin(options->cpu[0]);
	for (i = 0; r == 0 && i < NR_SIZES; i++) {
		config.nr_owners = sizes[i];
		r = stat_tree_open(&readings[i].tree, &config);
	}
	opened = r < 0 ? i - 1 : i;
	for (k = 0; r == 0 && k < sizeof(all_kinds) / sizeof(*all_kinds); k++)
		measure_kind(options, &all_kinds[k], readings);
	for (i = 0; i < opened; i++) {
		read_root_exact(&readings[i]);
		if (readings[i].wrong)
			r = -EILSEQ;
		owner_tree_close(&readings[i].tree);
	}
	return r;
}
