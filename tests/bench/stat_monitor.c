// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * stat_monitor.c - a monitor that reads 10,000 owners once a second, while threads on both CPUs
 * update them: how much of a CPU does it take?
 *
 * It is the CPU time of the monitor's thread that is told: what it waits for, and who else works on
 * this machine, is not in it. Updates come as fast as they can, or at a rate.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "stat_bench.h"
#include "stat_tree.h"

#define NR_OWNERS 10000u
#define NR_PAIRS (NR_OWNERS * STAT_ITEMS)
#define DEPTH 3
#define MAX_PERIODS 64
#define PERIOD_NS 1e9

struct updater {
	struct owner_tree *tree;
	const uint16_t *ids;
	const _Atomic bool *stop;
	pthread_t thread;
	int cpu;
	uint32_t first;
	double pause_ns; /* after every STAT_STEPS updates */
	int64_t *counted;
	uint64_t done;
} __attribute__((aligned(128)));

static void sleep_until(double ns)
{
	const struct timespec at = { (time_t)(ns / 1e9),
				     (long)(ns - (double)(time_t)(ns / 1e9) * 1e9) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL))
		;
}

static void *update(void *argument)
{
	struct updater *updater = argument;
	double next_ns = bench_now_ns();
	uint32_t pair, i, at = updater->first;

	bench_pin(updater->cpu);
	/* Relaxed: a flag. */
	while (!atomic_load_explicit(updater->stop, memory_order_relaxed)) {
		for (i = 0; i < STAT_STEPS; i++) {
			pair = updater->ids[at++ & (BENCH_IDS - 1)];
			pcpc_stat_add(updater->tree->owners[stat_pair_owner(pair)],
				      stat_pair_item(pair), 1);
			updater->counted[pair]++;
		}
		updater->done += STAT_STEPS;
		next_ns += updater->pause_ns;
		if (updater->pause_ns > 0)
			sleep_until(next_ns);
	}
	return NULL;
}

static double thread_cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static const struct monitor {
	const char *label, *csv;
	bool root_first;
	uint32_t nr_items;
	double rate; /* updates a second on each CPU; 0: as fast as they can */
	bool brief;  /* also with --short */
} monitors[] = {
	{ "1 item of each owner", "monitor", false, 1, 0, true },
	{ "root first, then 1 item of each", "monitor_root_first", true, 1, 0, false },
	{ "root first, then 4 items of each", "monitor_items", true, 4, 0, false },
	{ "1 item of each, 200,000 updates/s", "monitor_slow", false, 1, 200e3, false },
};

static void read_all(const struct monitor *monitor, const struct owner_tree *tree)
{
	uint32_t i, item;

	if (monitor->root_first)
		(void)pcpc_stat_read(tree->nodes[0], 0);
	for (i = 1; i <= NR_OWNERS; i++)
		for (item = 0; item < monitor->nr_items; item++)
			(void)pcpc_stat_read(tree->owners[i], item);
}

/* Returns the number of periods; ns: CPU time in each. */
static unsigned int watch(const struct monitor *monitor, const struct owner_tree *tree,
			  double seconds, double ns[MAX_PERIODS])
{
	const double began_ns = bench_now_ns();
	double next_ns = began_ns, started_ns;
	unsigned int period = 0;

	while (period < MAX_PERIODS && (period < 3 || bench_now_ns() - began_ns < seconds * 1e9)) {
		next_ns += PERIOD_NS;
		sleep_until(next_ns);
		started_ns = thread_cpu_ns();
		read_all(monitor, tree);
		ns[period++] = thread_cpu_ns() - started_ns;
	}
	return period;
}

static void report(const struct bench_options *options, const struct monitor *monitor, double *ns,
		   unsigned int periods, double updates)
{
	struct bench_load load = { .label = monitor->label, .rounds = periods };
	double sum = 0;
	char text[80];
	unsigned int i;

	for (i = 0; i < periods; i++)
		sum += ns[i];
	load.median = bench_median(ns, periods);
	load.minimum = ns[0];
	load.ratio = sum / periods / PERIOD_NS;
	printf("%-40s%9.3f%9.3f%9.3f%9.3f%14.2f\n", monitor->label, load.ratio * 100,
	       load.median * 1e-6, load.minimum * 1e-6, ns[periods - 1] * 1e-6, updates * 1e-6);
	bench_append_csv(options, monitor->csv, NR_OWNERS, &load, 1);
	snprintf(text, sizeof(text), "monitor, %% of a CPU: %s", monitor->label);
	bench_note_target(text, "below 1", load.ratio * 100, 0);
}

static bool check(const struct owner_tree *tree, const struct updater *updaters)
{
	uint32_t pair;

	for (pair = 1; pair <= NR_PAIRS; pair++)
		updaters[0].counted[pair] += updaters[1].counted[pair];
	return stat_tree_exact(tree, updaters[0].counted, NR_PAIRS);
}

static void start(struct updater updaters[2], const struct bench_options *options,
		  const struct updater *like)
{
	unsigned int i;

	for (i = 0; i < 2; i++) {
		updaters[i] = *like;
		updaters[i].cpu = options->cpu[options->cpu[1] < 0 ? 0 : i];
		updaters[i].first = i * BENCH_IDS / 2;
		updaters[i].counted = calloc(NR_PAIRS + 1, sizeof(int64_t));
		if (!updaters[i].counted ||
		    pthread_create(&updaters[i].thread, NULL, update, &updaters[i]))
			abort();
	}
}

static int measure(const struct bench_options *options, const struct monitor *monitor,
		   const uint16_t *ids)
{
	const struct stat_tree_config config = { NR_OWNERS, DEPTH, .nr_items = STAT_ITEMS };
	_Atomic bool stop = false;
	struct owner_tree tree;
	const struct updater like = {
		.tree = &tree,
		.ids = ids,
		.stop = &stop,
		.pause_ns = monitor->rate > 0 ? STAT_STEPS * 1e9 / monitor->rate : 0,
	};
	struct updater updaters[2];
	double ns[MAX_PERIODS], began_ns;
	unsigned int i, periods;
	int r = stat_tree_open(&tree, &config);

	if (r < 0)
		return r;
	start(updaters, options, &like);
	began_ns = bench_now_ns();
	periods = watch(monitor, &tree, options->brief ? 3 : 12, ns);
	/* Relaxed: a flag. */
	atomic_store_explicit(&stop, true, memory_order_relaxed);
	for (i = 0; i < 2; i++)
		pthread_join(updaters[i].thread, NULL);
	report(options, monitor, ns, periods,
	       (double)(updaters[0].done + updaters[1].done) * 1e9 / (bench_now_ns() - began_ns));
	r = check(&tree, updaters) ? 0 : -EILSEQ;
	owner_tree_close(&tree);
	free(updaters[0].counted);
	free(updaters[1].counted);
	return r;
}

/* The monitor is where the scheduler puts it. */
static void unpin(const struct bench_options *options)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(options->cpu[0], &set);
	if (options->cpu[1] >= 0)
		CPU_SET(options->cpu[1], &set);
	sched_setaffinity(0, sizeof(set), &set);
}

int stat_measure_monitor(const struct bench_options *options)
{
	uint16_t *ids = bench_alloc(BENCH_IDS * sizeof(*ids));
	int r = ids ? 0 : -ENOMEM;
	size_t i;

	if (r < 0)
		return r;
	unpin(options);
	bench_choose_ids(ids, NR_PAIRS, options->seed);
	printf("\n%-40s%9s%9s%9s%9s%14s\n", "monitor: 10,000 owners once a second", "% of CPU",
	       "ms", "minimum", "maximum", "updates, M/s");
	for (i = 0; r == 0 && i < sizeof(monitors) / sizeof(*monitors); i++)
		if (!options->brief || monitors[i].brief)
			r = measure(options, &monitors[i], ids);
	free(ids);
	return r;
}
