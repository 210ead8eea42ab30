// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * owner_refused.c - what a refusal costs, and how often refusals drain.
 */
#include "owner_bench.h"

#include <errno.h>
#include <stdlib.h>

#include "owner_tree.h"

#define HELD 1000 /* units of each tenant, which are its max */
#define STEP 32	  /* refusals between two looks at the clock */
#define MILLION 1000000u

/* Tenants that hold all they may, or all that the root may. */
struct refused {
	struct owner_tree tree;
	uint32_t nr_tenants;
	unsigned int depth, flags;
	bool at_root;
	bool warm; /* has been refused before: from then on it is counted */
	uint64_t refusals, drains;
	double busy_ns;
};

static uint64_t drains_of(const struct refused *refused)
{
	return pcpc_owner_events(refused->tree.nodes[0], PCPC_EVENT_DRAIN);
}

static double run(void *context, double ns)
{
	struct refused *refused = context;
	struct pcpc_owner *tenant = refused->tree.owners[1];
	const double started_ns = bench_now_ns();
	uint64_t refusals = 0, drains = drains_of(refused);
	double taken_ns;
	uint32_t i;

	do {
		for (i = 0; i < STEP; i++)
			if (!pcpc_charge_flags(tenant, 1, refused->flags, NULL))
				abort();
		refusals += STEP;
		taken_ns = bench_now_ns() - started_ns;
	} while (taken_ns < ns);
	if (refused->warm) {
		refused->refusals += refusals;
		refused->drains += drains_of(refused) - drains;
		refused->busy_ns += taken_ns;
	}
	refused->warm = true;
	return taken_ns / (double)refusals;
}

/* memcg's walk: a batch, then what is needed. No drain, and no reclaim. */
static double run_walk(void *context, double ns)
{
	struct counter *counter = &((struct tree *)context)->owners[1];
	const double started_ns = bench_now_ns();
	uint64_t refusals = 0;
	double taken_ns;
	uint32_t i;

	do {
		for (i = 0; i < STEP; i++)
			if (counter_charge(counter, BENCH_BATCH) || counter_charge(counter, 1))
				abort();
		refusals += STEP;
		taken_ns = bench_now_ns() - started_ns;
	} while (taken_ns < ns);
	return taken_ns / (double)refusals;
}

static int open_refused(struct refused *refused)
{
	struct owner_tree *tree = &refused->tree;
	uint32_t i;
	int r;

	r = owner_tree_open(tree, NULL, refused->nr_tenants, refused->depth,
			    refused->at_root ? OWNER_TREE_ENDLESS : HELD);
	if (r < 0)
		return r;
	if (refused->at_root)
		r = pcpc_owner_set_max(tree->nodes[0], (uint64_t)HELD * refused->nr_tenants);
	for (i = 1; r == 0 && i <= refused->nr_tenants; i++)
		r = pcpc_charge(tree->owners[i], HELD);
	return r;
}

static int check_and_close(struct refused *refused)
{
	uint64_t held = pcpc_owner_usage_exact(refused->tree.nodes[0]);

	owner_tree_close(&refused->tree);
	return held == (uint64_t)HELD * refused->nr_tenants ? 0 : -EILSEQ;
}

static int open_walk(struct tree *tree, unsigned int depth, bool at_root)
{
	int r = tree_open(tree, 1, depth);

	if (r == 0 && at_root)
		tree->counters[0].max = BENCH_HELD;
	else if (r == 0)
		tree->owners[1].max = BENCH_HELD;
	return r;
}

static int measure_cost(const struct bench_options *options)
{
	static struct refused refused[] = {
		{ .nr_tenants = 1, .depth = 1 },
		{ .nr_tenants = 1, .depth = 6 },
		{ .nr_tenants = 1, .depth = 6, .at_root = true },
		{ .nr_tenants = 1, .depth = 1, .flags = PCPC_NOWAIT },
	};
	struct tree walks[2];
	struct bench_load loads[] = {
		BENCH_LOAD("by its own max, depth 1", run, &refused[0]),
		BENCH_LOAD("by its own max, depth 6", run, &refused[1]),
		BENCH_LOAD("by the root's max, depth 6", run, &refused[2]),
		BENCH_LOAD("by its own max, depth 1, PCPC_NOWAIT", run, &refused[3]),
		BENCH_LOAD("memcg's walk (no drain): own max, depth 1", run_walk, &walks[0]),
		BENCH_LOAD("memcg's walk (no drain): root's max, depth 6", run_walk, &walks[1]),
	};
	const unsigned int nr_loads = sizeof(loads) / sizeof(*loads);
	unsigned int i;
	int r = 0, q;

	for (i = 0; r == 0 && i < 4; i++)
		r = open_refused(&refused[i]);
	if (r == 0)
		r = open_walk(&walks[0], 1, false);
	if (r == 0)
		r = open_walk(&walks[1], 6, true);
	if (r < 0)
		return r;
	bench_contest(loads, nr_loads, options->brief ? 5e6 : 50e6, options->brief ? 9 : 21);
	bench_print_contest("a tenant refused all the time", "ns each", loads, nr_loads);
	bench_append_csv(options, "refused", 1, loads, nr_loads);
	for (i = 0; i < 4; i++) {
		printf("  %-40s%8.2f drains/s, %.2f a million refusals\n", loads[i].label,
		       (double)refused[i].drains * 1e9 / refused[i].busy_ns,
		       (double)refused[i].drains * 1e6 / (double)refused[i].refusals);
		q = check_and_close(&refused[i]);
		r = q < 0 ? q : r;
	}
	tree_close(&walks[0]);
	tree_close(&walks[1]);
	return r;
}

/* From the first refusal on, in turn. */
static int measure_million(uint32_t nr_tenants)
{
	struct refused refused = { .nr_tenants = nr_tenants, .depth = 1 };
	double started_ns, first_ns, taken_ns;
	uint64_t first_drains;
	char text[80];
	uint32_t i;
	int r = open_refused(&refused);

	if (r < 0)
		return r;
	started_ns = bench_now_ns();
	for (i = 0; i < nr_tenants; i++)
		if (!pcpc_charge(refused.tree.owners[1 + i], 1))
			abort();
	first_ns = bench_now_ns() - started_ns;
	first_drains = drains_of(&refused);
	for (; i < MILLION; i++)
		if (!pcpc_charge(refused.tree.owners[1 + i % nr_tenants], 1))
			abort();
	taken_ns = bench_now_ns() - started_ns - first_ns;
	printf("%-5u tenant%s: %llu drains for the first refusal of each (%.1f us each), "
	       "%llu for the others (%.0f ns each)\n",
	       nr_tenants, nr_tenants == 1 ? "" : "s", (unsigned long long)first_drains,
	       first_ns / 1e3 / nr_tenants,
	       (unsigned long long)(drains_of(&refused) - first_drains),
	       taken_ns / (MILLION - nr_tenants));
	snprintf(text, sizeof(text), "drains in a million refused charges, %u tenants", nr_tenants);
	bench_note_target(text, "bounded", (double)drains_of(&refused),
			  (double)drains_of(&refused));
	return check_and_close(&refused);
}

int owner_measure_refused(const struct bench_options *options)
{
	int r;

	bench_pin(options->cpu[0]);
	r = measure_cost(options);
	if (r < 0)
		return r;
	printf("\na million refused charges\n");
	r = measure_million(1);
	if (r == 0)
		r = measure_million(1000);
	return r;
}
