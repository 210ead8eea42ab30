// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * stress.c - does the charge cache keep every unit under threads, signals, migrations, drains and
 * evictions, all at once?
 *
 *	stress [--engine auto|rseq|atomic] [--expect rseq|atomic] [--index auto|cpu|mm_cid]
 *	       [--stocks N] [--owners N] [--threads N] [--seconds S] [--seed N] [--period N]
 *
 * A thread is interrupted every --period microseconds.
 *
 * PCPC_STRESS_SECONDS in the environment makes runs longer than the default (with meson test, give
 * -t 0 as well). Exit status: 0 nothing was found wrong and enough has happened to say so; 1
 * something was, or too little has happened; 77 this machine cannot run it.
 *
 * The same program, built against a library with one thing left out, is a broken twin (STRESS_TWIN
 * names it): that one answers 0 as soon as it has found what must go wrong (STRESS_SHOWS), and 1 if
 * it does not in 20 seconds. STRESS_STAGED is the load and the delays of the twins; with nothing
 * left out it is their control.
 */
#define _GNU_SOURCE
#include "stress.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SKIPPED 77
#define CPUS_KNOWN 16384

#ifdef STRESS_TWIN
#define DEFAULT_SECONDS 20.0
#define ROUND_NS 30000000L
#else
#define DEFAULT_SECONDS 3.0
#define ROUND_NS 100000000L
#endif
#define PATIENCE 10.0 /* times the length asked for, where the counts are not reached sooner */

struct stress stress;

static const struct {
	const char *name;
	uint64_t least; /* else the run has proved nothing */
} count_info[COUNTS] = {
	[HITS] = { "hits", 1000 },
	[EVICTIONS] = { "evictions", 200 },
	[TRIMS] = { "trims", 50 },
	[SIGNALS] = { "signals", 50 },
	[MIGRATIONS] = { "migrations", 20 },
	[DRAINS] = { "drains", 50 },
	[CHARGES] = { "charges", 1000 },
	[UNCHARGES] = { "uncharges", 1000 },
	[BYPASSES] = { "bypasses", 20 },
	[CLEARED] = { "cleared deltas", 20 },
	[DRAINED] = { "words drained", 50 },
	[NESTED] = { "nested operations", 0 },
	[ATTEMPTS] = { "attempts", 0 },
	[MERGED] = { "duplicates merged", 0 },
	[CLOSED] = { "closed lines watched", 0 },
};

static int skip(const char *reason)
{
	printf("stress: skipped: %s\n", reason);
	return SKIPPED;
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* The position of a word in a list that ends with NULL, or -1. */
static int one_of(const char *const *words, const char *word)
{
	int i;

	for (i = 0; words[i]; i++)
		if (!strcmp(words[i], word))
			return i;
	return -1;
}

static const char *const engines[] = { "auto", "rseq", "atomic", NULL };
static const char *const indices[] = { "auto", "cpu", "mm_cid", NULL };

static void default_options(struct options *options)
{
	const char *seconds = getenv("PCPC_STRESS_SECONDS");
	struct timespec time;

	clock_gettime(CLOCK_REALTIME, &time);
	*options = (struct options){
		.stocks = 4,
		.owners = 56,
		.threads = 8,
		.seed = (uint64_t)time.tv_sec * 1000000007u + (uint64_t)time.tv_nsec,
		.seconds = DEFAULT_SECONDS,
		.period = 400,
	};
#ifdef STRESS_TWIN
	options->twin = STRESS_TWIN;
	options->violation = STRESS_SHOWS;
	options->engine = PCPC_ENGINE_RSEQ;
	options->index = PCPC_INDEX_CPU;
#else
	if (seconds && strtod(seconds, NULL) > 0)
		options->seconds = strtod(seconds, NULL);
#endif
#ifdef STRESS_STAGED
	/* One line a CPU, so that those who must meet do. */
	options->stocks = 1;
	options->owners = 14;
#endif
	(void)seconds;
}

/* False: an argument nobody knows. */
static bool read_options(int argc, char **argv, struct options *options)
{
	static const struct option known[] = {
		{ "engine", 1, NULL, 'e' },  { "expect", 1, NULL, 'x' },
		{ "index", 1, NULL, 'i' },   { "stocks", 1, NULL, 'l' },
		{ "owners", 1, NULL, 'o' },  { "threads", 1, NULL, 't' },
		{ "seconds", 1, NULL, 's' }, { "seed", 1, NULL, 'r' },
		{ "period", 1, NULL, 'p' },  { NULL, 0, NULL, 0 },
	};
	int option, word = 0;

	while (word >= 0 && (option = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (option) {
		case 'e':
			word = one_of(engines, optarg);
			options->engine = (enum pcpc_engine)word;
			break;
		case 'x':
			word = one_of(engines, optarg);
			options->expected = (enum pcpc_engine)word;
			break;
		case 'i':
			word = one_of(indices, optarg);
			options->index = (enum pcpc_index)word;
			break;
		case 'l':
			options->stocks = (uint32_t)strtoul(optarg, NULL, 0);
			break;
		case 'o':
			options->owners = (uint32_t)strtoul(optarg, NULL, 0);
			break;
		case 't':
			options->threads = (uint32_t)strtoul(optarg, NULL, 0);
			break;
		case 's':
			options->seconds = strtod(optarg, NULL);
			break;
		case 'p':
			options->period = (uint32_t)strtoul(optarg, NULL, 0);
			break;
		case 'r':
			options->seed = strtoull(optarg, NULL, 0);
			break;
		default:
			return false;
		}
	}
	return word >= 0 && optind == argc && options->stocks && options->owners - 1 < MAX_OWNERS &&
	       options->threads - 1 < MAX_THREADS && options->seconds > 0 &&
	       options->period - 1 < 999999;
}

/* A few of the CPUs the process may run on, and no others from now on. */
static void choose_cpus(void)
{
	static const size_t size = CPU_ALLOC_SIZE(CPUS_KNOWN);
	cpu_set_t allowed[CPUS_KNOWN / CPU_SETSIZE], used[CPUS_KNOWN / CPU_SETSIZE];
	int cpu;

	CPU_ZERO_S(size, used);
	if (sched_getaffinity(0, size, allowed) < 0)
		return;
	for (cpu = 0; cpu < CPUS_KNOWN && stress.nr_cpus < MAX_CPUS; cpu++) {
		if (CPU_ISSET_S((size_t)cpu, size, allowed)) {
			CPU_SET_S((size_t)cpu, size, used);
			stress.cpus[stress.nr_cpus++] = cpu;
		}
	}
	(void)sched_setaffinity(0, size, used);
}

/* Small, so that everything happens often; different, so that a mistake between owners shows. */
static void choose_marks(void)
{
	uint32_t owner;

	for (owner = 1; owner <= stress.options.owners; owner++) {
		stress.marks[owner].high = 8 + owner * 37 % 57;
		stress.marks[owner].low = stress.marks[owner].high / 2;
		stress.marks[owner].delta_batch = 1 + owner % 64;
	}
}

static uint64_t count_of(enum count count)
{
	uint64_t sum = stress.check.counts[count];
	uint32_t i, level;

	for (i = 0; i < stress.options.threads; i++)
		for (level = 0; level < LEVELS; level++)
			sum += stress.worker[i].context[level].counts[count];
	for (i = 0; i < 2; i++)
		sum += stress.drainer[i].context[THREAD].counts[count];
	return sum;
}

/* The first count that is too low, or -1. */
static int missing_count(void)
{
	int i;

	for (i = 0; i < COUNTS; i++) {
		if (i == MIGRATIONS && stress.nr_cpus < 2)
			continue;
		if (count_of((enum count)i) < count_info[i].least)
			return i;
	}
	return -1;
}

static void wait_for_round(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += ROUND_NS;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	while (sem_timedwait(&stress.found, &until) < 0 && errno == EINTR)
		;
}

static void set_flag(atomic_bool *flag, bool value)
{
	/* Release: pairs with paused() in stress_load.c. Who sees the pause over may write the
	 * books that were read in it. */
	atomic_store_explicit(flag, value, memory_order_release);
}

/* Rounds until something is wrong, or it is long enough and enough has happened. Ends with all
 * threads gone. Returns how many. */
static uint32_t run(void)
{
	double begin = now(), length = stress.options.seconds, spent;
	bool enough = false;
	uint32_t rounds;

	for (rounds = 0;; rounds++) {
		pthread_barrier_wait(&stress.rendezvous);
		if (rounds)
			stress_check_books();
		spent = now() - begin;
		enough = stress_violated() || spent > PATIENCE * length ||
			 (spent > length && (stress.options.twin || missing_count() < 0));
		set_flag(&stress.finished, enough);
		set_flag(&stress.paused, enough);
		pthread_barrier_wait(&stress.rendezvous);
		if (enough)
			break;
		wait_for_round();
		set_flag(&stress.paused, true);
	}
	stress_join();
	return rounds;
}

static void print_report(uint32_t rounds, double spent)
{
	struct pcpc_cache_stats stats = { .size = sizeof(stats) };
	int i;

	if (pcpc_cache_get_stats(stress.cache, &stats) < 0 || stats.drains != count_of(DRAINS))
		stress_violation(DRAIN_FAILED, 0, (int64_t)count_of(DRAINS), (int64_t)stats.drains);
	printf("  %.1f s, %" PRIu32 " rounds, %" PRIu64 " drain rounds, %" PRIu64 " fences", spent,
	       rounds, stats.rounds, stats.membarriers);
	for (i = 0; i < COUNTS; i++)
		printf(", %" PRIu64 " %s", count_of((enum count)i), count_info[i].name);
	printf("\n");
}

static int verdict(double spent)
{
	int missing = missing_count();

	stress_print_violations();
	if (stress.options.twin && stress_violated()) {
		printf("twin %s: %s after %.2f s, as it must\n", stress.options.twin,
		       stress_violation_name(stress.options.violation), spent);
		return 0;
	}
	if (stress.options.twin) {
		printf("twin %s: nothing found: the stress program does not see what it must see\n",
		       stress.options.twin);
		return 1;
	}
	if (stress_violated())
		return 1;
	if (missing >= 0) {
		printf("stress: proved nothing: %" PRIu64 " %s, wanted at least %" PRIu64 "\n",
		       count_of((enum count)missing), count_info[missing].name,
		       count_info[missing].least);
		return 1;
	}
	printf("stress: ok\n");
	return 0;
}

static int create_cache(void)
{
	struct pcpc_cache_config config = {
		.size = sizeof(config),
		.engine = stress.options.engine,
		.index = stress.options.index,
		.stocks_per_cpu = stress.options.stocks,
	};

	return pcpc_cache_create(&config, &stress.cache);
}

/* Everything after the cache exists. */
static int stress_cache(void)
{
	double begin = now(), spent;
	uint32_t rounds;

	choose_marks();
	set_flag(&stress.paused, true);
	sem_init(&stress.found, 0, 0);
	pthread_barrier_init(&stress.rendezvous, NULL, stress_parties());
	if (!stress_start())
		return skip("no threads to be had");
	rounds = run();
	spent = now() - begin;
	/* A twin has shown it, or it has not. */
	if (!stress.options.twin) {
		stress_drain_all();
		stress_check_empty();
		stress_check_books();
	}
	print_report(rounds, spent);
	pthread_barrier_destroy(&stress.rendezvous);
	sem_destroy(&stress.found);
	return verdict(spent);
}

int main(int argc, char **argv)
{
	int r;

	default_options(&stress.options);
	if (!read_options(argc, argv, &stress.options)) {
		fprintf(stderr, "usage: see the head of stress.c\n");
		return 2;
	}
	choose_cpus();
	if (stress.options.twin && stress.nr_cpus < 2)
		return skip("two CPUs are needed for this race");
	r = create_cache();
	if (r == -ENOSYS)
		return skip("this engine or index does not work here");
	if (r < 0) {
		printf("stress: no cache: %s\n", strerror(-r));
		return 1;
	}
	/* Line by line, so that something is there to be read if the run never ends. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("stress: engine %s, index %s, %" PRIu32 " CPUs, %" PRIu32 " stocks each, %" PRIu32
	       " owners, %" PRIu32 " threads, --seed %" PRIu64 "\n",
	       engines[stress.cache->engine], indices[stress.cache->index], stress.nr_cpus,
	       stress.cache->stocks_per_cpu, stress.options.owners, stress.options.threads,
	       stress.options.seed);
#ifdef STRESS_TWICE
	signal(SIGILL, stress_trap);
	signal(SIGTRAP, stress_trap);
#endif
	if (stress.options.expected && stress.options.expected != stress.cache->engine) {
		printf("stress: expected engine %s\n", engines[stress.options.expected]);
		r = 1;
	} else {
		r = stress_cache();
	}
	pcpc_cache_destroy(stress.cache);
	return r;
}
