// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * owner_figures.c - memory of an owner, making and destroying owners, and reading usage exactly.
 */
#define _GNU_SOURCE
#include "owner_bench.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "owner_tree.h"

#define NR_MEASURED 20000u

/* Bytes of this process that are in memory, to the page. */
static long resident(void)
{
	FILE *file = fopen("/proc/self/smaps_rollup", "r");
	char line[128];
	long kib = -1;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "Rss: %ld kB", &kib) == 1)
			break;
	if (file)
		fclose(file);
	return kib < 0 ? kib : kib * 1024;
}

static void charge_all(void *argument)
{
	struct owner_tree *tree = argument;
	uint32_t i;

	for (i = 1; i <= tree->shape.nr_owners; i++)
		if (pcpc_charge(tree->owners[i], 1) < 0)
			abort();
}

static int charge_on_both(struct owner_tree *tree, const struct bench_options *options)
{
	struct bench_crew crew;
	int r;

	charge_all(tree);
	if (options->cpu[1] < 0)
		return 0;
	r = bench_crew_open(&crew, options->cpu[1]);
	if (r < 0)
		return r;
	bench_crew_begin(&crew, charge_all, tree);
	bench_crew_end(&crew);
	bench_crew_close(&crew);
	return 0;
}

/* A tree of one owner first: what belongs to the process and the domain is in memory then. Large
 * pages would make this a matter of luck. */
static int measure_bytes(const struct bench_options *options)
{
	struct owner_tree small, tree;
	long before, made, used;
	int r;

	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	r = owner_tree_open(&small, NULL, 1, 1, OWNER_TREE_ENDLESS);
	if (r < 0)
		return r;
	r = charge_on_both(&small, options);
	owner_tree_close(&small);
	before = resident();
	if (r == 0)
		r = owner_tree_open(&tree, NULL, NR_MEASURED, 1, OWNER_TREE_ENDLESS);
	if (r < 0)
		return r;
	/* The array of handles is the program's. */
	made = resident() - before - (long)(NR_MEASURED * sizeof(*tree.nodes));
	r = charge_on_both(&tree, options);
	used = resident() - before - (long)(NR_MEASURED * sizeof(*tree.nodes));
	owner_tree_close(&tree);
	prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
	if (before < 0)
		return -ENOSYS;
	printf("\nbytes an owner, resident, of %u without statistics\n", NR_MEASURED);
	printf("%-52s%11.1f\n%-52s%11.1f\n", "made", (double)made / NR_MEASURED,
	       "charged on every CPU, so with stocks", (double)used / NR_MEASURED);
	bench_note_target("bytes an owner, made", "512 or less", (double)made / NR_MEASURED,
			  (double)made / NR_MEASURED);
	bench_note_target("bytes an owner, charged on every CPU", "", (double)used / NR_MEASURED,
			  (double)used / NR_MEASURED);
	return r;
}

/* -- create and destroy -- */

struct turnover {
	struct owner_tree tree;
	struct bench_crew *crew; /* NULL: the other CPU is idle */
	bool charges;
	_Atomic bool stop;
};

static void create_and_destroy(struct turnover *turnover)
{
	struct pcpc_owner_config config = { .size = sizeof(config), .name = "tenant", .max = 1000 };
	struct pcpc_owner *owner;

	if (pcpc_owner_create(turnover->tree.owners[1], &config, &owner) < 0)
		abort();
	if (turnover->charges) {
		if (pcpc_charge(owner, 1) < 0)
			abort();
		pcpc_uncharge(owner, 1);
	}
	if (pcpc_owner_destroy(owner) < 0)
		abort();
}

static void charge_beside(void *argument)
{
	struct turnover *turnover = argument;
	struct pcpc_owner *owner = turnover->tree.owners[2];

	/* Relaxed: a flag. */
	while (!atomic_load_explicit(&turnover->stop, memory_order_relaxed)) {
		if (pcpc_charge(owner, 1) < 0)
			abort();
		pcpc_uncharge(owner, 1);
	}
}

static double run_turnover(void *context, double ns)
{
	struct turnover *turnover = context;
	uint64_t pairs = 0;
	double started_ns, taken_ns;

	atomic_store_explicit(&turnover->stop, false, memory_order_relaxed);
	if (turnover->crew)
		bench_crew_begin(turnover->crew, charge_beside, turnover);
	started_ns = bench_now_ns();
	do {
		create_and_destroy(turnover);
		pairs++;
	} while (pairs % 64 || bench_now_ns() - started_ns < ns);
	/* Sweeps those that are left: nothing is put off. */
	pcpc_domain_poll(turnover->tree.domain);
	taken_ns = bench_now_ns() - started_ns;
	atomic_store_explicit(&turnover->stop, true, memory_order_relaxed);
	if (turnover->crew)
		bench_crew_end(turnover->crew);
	return taken_ns / (double)pairs;
}

static int measure_turnover(const struct bench_options *options)
{
	struct turnover turnover[3] = { { .charges = false },
					{ .charges = true },
					{ .charges = true } };
	struct bench_load loads[3] = {
		BENCH_LOAD("never charged", run_turnover, &turnover[0]),
		BENCH_LOAD("charged and uncharged", run_turnover, &turnover[1]),
		BENCH_LOAD("likewise, while the other CPU charges", run_turnover, &turnover[2]),
	};
	const unsigned int nr_loads = options->cpu[1] < 0 ? 2 : 3;
	struct bench_crew crew;
	unsigned int i;
	int r = 0;

	for (i = 0; r == 0 && i < nr_loads; i++)
		r = owner_tree_open(&turnover[i].tree, NULL, 2, 1, OWNER_TREE_ENDLESS);
	if (r == 0 && nr_loads == 3)
		r = bench_crew_open(&crew, options->cpu[1]);
	if (r < 0)
		return r;
	turnover[2].crew = &crew;
	bench_contest(loads, nr_loads, options->brief ? 10e6 : 50e6, options->brief ? 7 : 21);
	bench_print_contest("create and destroy, sweeps included", "ns a pair", loads, nr_loads);
	bench_append_csv(options, "turnover", 1, loads, nr_loads);
	for (i = 0; i < nr_loads; i++) {
		printf("  %-44s%10.0f a second\n", loads[i].label, 1e9 / loads[i].median);
		owner_tree_close(&turnover[i].tree);
	}
	if (nr_loads == 3)
		bench_crew_close(&crew);
	return 0;
}

/* -- reading usage -- */

struct reading {
	struct owner_tree tree;
	struct pcpc_owner *owner;
	uint64_t held;
};

static double run_exact(void *context, double ns)
{
	const struct reading *reading = context;
	const double started_ns = bench_now_ns();
	uint64_t reads = 0;
	double taken_ns;

	do {
		if (pcpc_owner_usage_exact(reading->owner) != reading->held)
			abort();
		reads++;
		taken_ns = bench_now_ns() - started_ns;
	} while (taken_ns < ns);
	return taken_ns / (double)reads;
}

static double run_bound(void *context, double ns)
{
	const struct reading *reading = context;
	const double started_ns = bench_now_ns();
	uint64_t reads = 0;
	double taken_ns;
	uint32_t i;

	do {
		for (i = 0; i < 256; i++)
			if (pcpc_owner_usage(reading->owner) < reading->held)
				abort();
		reads += 256;
		taken_ns = bench_now_ns() - started_ns;
	} while (taken_ns < ns);
	return taken_ns / (double)reads;
}

static int open_reading(struct reading *reading, uint32_t nr_owners,
			const struct bench_options *options)
{
	int r = owner_tree_open(&reading->tree, NULL, nr_owners, 1, OWNER_TREE_ENDLESS);

	if (r == 0)
		r = charge_on_both(&reading->tree, options);
	reading->owner = reading->tree.nodes[0];
	reading->held = (uint64_t)nr_owners * (options->cpu[1] < 0 ? 1 : 2);
	return r;
}

static int measure_reading(const struct bench_options *options)
{
	static const uint32_t sizes[] = { 1, 36, 1000, 20000 };
	struct reading readings[6];
	struct bench_load loads[] = {
		BENCH_LOAD("usage_exact, root above 1 owner", run_exact, &readings[0]),
		BENCH_LOAD("usage_exact, root above 36", run_exact, &readings[1]),
		BENCH_LOAD("usage_exact, root above 1,000", run_exact, &readings[2]),
		BENCH_LOAD("usage_exact, root above 20,000", run_exact, &readings[3]),
		BENCH_LOAD("usage_exact, 1 owner of 20,000", run_exact, &readings[4]),
		BENCH_LOAD("usage, root above 20,000", run_bound, &readings[5]),
	};
	const unsigned int nr_loads = sizeof(loads) / sizeof(*loads);
	unsigned int i;
	int r = 0;

	for (i = 0; r == 0 && i < 4; i++)
		r = open_reading(&readings[i], sizes[i], options);
	if (r < 0)
		return r;
	readings[4] = readings[5] = readings[3];
	readings[4].owner = readings[3].tree.owners[10000];
	readings[4].held = readings[3].held / 20000;
	bench_contest(loads, nr_loads, options->brief ? 1e6 : 10e6, options->brief ? 9 : 21);
	bench_print_contest("reading usage", "ns each", loads, nr_loads);
	bench_append_csv(options, "reading", 0, loads, nr_loads);
	for (i = 0; i < 4; i++)
		owner_tree_close(&readings[i].tree);
	return 0;
}

int owner_measure_figures(const struct bench_options *options)
{
	int r;

	bench_pin(options->cpu[0]);
	r = measure_bytes(options);
	if (r == 0)
		r = measure_turnover(options);
	if (r == 0)
		r = measure_reading(options);
	return r;
}
