// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * stat_storm.c - many threads, and their signal handlers, update statistics of owners that come and
 * go, while others read, flush, drain and fork (G8, G9, G10, G11, G14).
 *
 *	stat_storm rseq|atomic [--seed N] [--threads N] [--seconds S] [--forks N]
 *
 * The seed decides on batches and the number of stocks as well, so runs differ a good deal.
 */
#define _GNU_SOURCE
#include "stat_storm.h"

#define ROUND 0.02	  /* seconds */
#define FORKING_ROUND 0.3 /* a thread that waits for its child holds all up */

struct storm storm;

static const struct {
	const char *name;
	uint64_t least; /* else the run has proved nothing */
} count_info[COUNTS] = {
	[UPDATES] = { "updates", 10000 },
	[LATE] = { "late ones", 10 },
	[CHARGES] = { "charges", 1000 },
	[READS] = { "reads", 1000 },
	[EXACT_READS] = { "exact reads", 20 },
	[FLUSHES] = { "flushes", 100 },
	[DRAINS] = { "drains", 5 },
	[CREATED] = { "created", 50 },
	[DESTROYED] = { "destroyed", 50 },
	[POLLS] = { "polls", 20 },
	[MOVES] = { "moves", 5 },
	[FORKS] = { "forks", 0 },
	[SIGNALS] = { "handlers", 100 },
};

static uint64_t count_of(int what)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < storm.options.threads; i++)
		sum += storm.thread[i].counts[what];
	return sum;
}

/* Seconds after which what has not happened will not. */
static unsigned int patience(void)
{
	return (unsigned int)(10 * storm.options.seconds) + storm.options.forks;
}

/* The first count that is too low, or -1. */
static int missing(void)
{
	int i;

	if (count_of(FORKS) < storm.options.forks)
		return FORKS;
	for (i = 0; i < COUNTS; i++)
		if (count_of(i) < count_info[i].least)
			return i;
	return atomic_load(&storm.freed) ? -1 : DESTROYED;
}

static int open_domain(uint64_t *random)
{
	static const struct pcpc_item items[NR_ITEMS] = { { "rising", "" },
							  { "paired", "" },
							  { "coupled", "units" } };
	static const uint32_t delta_batch[] = { 1, 8, 64, 64, 500 };
	struct pcpc_domain_config config = {
		.size = sizeof(config),
		.name = "storm",
		.batch = 1 + (uint32_t)below(random, 100),
		.items = items,
		.nr_items = NR_ITEMS,
		.nr_nodes = NR_NUMA,
		.coupled_item = COUPLED,
		.delta_batch = delta_batch[below(random, 5)],
		.stocks_per_cpu = 1u << below(random, 4),
		.engine = storm.options.engine,
		.index = PCPC_INDEX_CPU,
	};

	return pcpc_domain_create(&config, &storm.domain);
}

static void plant_tree(void)
{
	static const int parent[NR_FIXED] = { 0, 0, 1, 2, 1, 0 };
	int i;

	pthread_mutex_init(&storm.nodes_lock, NULL);
	for (i = 0; i < NR_FIXED; i++)
		storm.fixed[i] = node_create(i ? storm.fixed[parent[i]] : NULL);
	for (i = 0; i < NR_PLACES; i++)
		pthread_mutex_init(&storm.place[i].lock, NULL);
}

static void start(uint64_t *random)
{
	struct thread *thread;
	uint32_t i;

	pthread_barrier_init(&storm.rendezvous, NULL, storm.options.threads + 1);
	storm_set_handler();
	for (i = 0; i < storm.options.threads; i++) {
		thread = &storm.thread[i];
		thread->random = random_of(random);
		thread->handler_random = random_of(random);
		MUST(pthread_create(&thread->thread, NULL, load, thread) == 0);
	}
}

static void sleep_for(double seconds)
{
	double end = now() + seconds;

	while (now() < end)
		usleep(1000);
}

/* Rounds until something is wrong, or it is long enough and enough has happened. */
static uint32_t run(void)
{
	double begin = now(), length = storm.options.seconds, spent;
	bool enough = false;
	uint32_t rounds;

	pthread_barrier_wait(&storm.rendezvous);
	for (rounds = 0; !enough; rounds++) {
		sleep_for(storm.options.forks ? FORKING_ROUND : ROUND);
		atomic_store(&storm.paused, true);
		pthread_barrier_wait(&storm.rendezvous);
		check_books();
		spent = now() - begin;
		enough = atomic_load(&violations) || spent > patience() ||
			 (spent > length && missing() < 0);
		atomic_store(&storm.finished, enough);
		atomic_store(&storm.paused, enough);
		pthread_barrier_wait(&storm.rendezvous);
	}
	return rounds;
}

static void end(void)
{
	uint32_t i;

	for (i = 0; i < storm.options.threads; i++)
		pthread_join(storm.thread[i].thread, NULL);
	destroy_places();
	check_end();
	poison_end();
	if (!atomic_load(&violations) && pcpc_domain_destroy(storm.domain) != 0)
		violation("the domain is busy at the end");
}

static int verdict(uint32_t rounds)
{
	int i;

	printf("  %" PRIu32 " rounds", rounds);
	for (i = 0; i < COUNTS; i++)
		printf(", %" PRIu64 " %s", count_of(i), count_info[i].name);
	printf(", %" PRIu64 " freed\n", atomic_load(&storm.freed));
	if (atomic_load(&violations))
		return 1;
	i = missing();
	if (i >= 0) {
		printf("stat_storm: proved nothing: %" PRIu64 " %s\n", count_of(i),
		       count_info[i].name);
		return 1;
	}
	printf("stat_storm: ok\n");
	return 0;
}

int main(int argc, char **argv)
{
	uint64_t random;
	uint32_t rounds;
	int r;

	storm.options.threads = 4;
	storm.options.seconds = 2;
	if (!read_options(argc, argv, &storm.options) || storm.options.threads - 1 >= MAX_THREADS) {
		fprintf(stderr, "usage: see the heads of stat_storm.c and owner_stress.h\n");
		return 2;
	}
	alarm(60 + 2 * patience());
	setvbuf(stdout, NULL, _IOLBF, 0);
	random = storm.options.seed;
	r = open_domain(&random);
	if (r == -ENOSYS) {
		printf("stat_storm: skipped: no %s engine here\n",
		       engine_name(storm.options.engine));
		return SKIPPED;
	}
	MUST(r == 0);
	plant_tree();
	printf("stat_storm: engine %s, batch %" PRIu32 ", delta batch %" PRIu32 ", %" PRIu32
	       " stocks a CPU, %" PRIu32 " threads, --seed %" PRIu64 "\n",
	       engine_name(storm.options.engine), storm.domain->batch, storm.domain->delta_batch,
	       storm.domain->stats.cache->stocks_per_cpu, storm.options.threads,
	       storm.options.seed);
	poison_begin(storm.domain, check_freed);
	start(&random);
	rounds = run();
	end();
	return verdict(rounds);
}
