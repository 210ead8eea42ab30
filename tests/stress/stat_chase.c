// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * stat_chase.c - flushes of root beside updates of a leaf, as a race: an ancestor's flush counter
 * always gets past the threshold within a bounded number of updates (G11, semantics 5.2.5).
 *
 *	stat_chase rseq|atomic [twin] [--seed N] [--seconds S]
 *
 * In each round one thread flushes root all the time while another updates the leaf. Then the
 * flushes stop, and the leaf is updated by as much as the threshold and once more: by then every
 * level must say that it needs a flush. The twin's walk stops at a level that is past the
 *threshold: a leaf that is a batch ahead of root when the flushes stop gets there first, and root
 *never. With the twin something must be found.
 *
 * Built with the library's sources, whose flushes yield now and then when a counter was cleared.
 */
#define _GNU_SOURCE
#include "stat_chase_hooks.h"
#include "stat_private.h"

#include "owner_stress.h"

#include <pthread.h>

#define DEPTH 4 /* of the leaf */
#define BATCH 64

_Atomic uint32_t violations;
bool chase_stops;

static struct options options = { .seconds = 2 };
static struct pcpc_domain *domain;
static struct pcpc_owner *level[DEPTH + 1]; /* level[0]: root */
static pthread_barrier_t begin, over;
static _Atomic bool flushing, finished;
static uint64_t flushes, overtaken, rounds, sum;

static _Thread_local uint64_t yields;

void chase_step(struct pcpc_owner *owner)
{
	(void)owner;
	if (yields && below(&yields, 2))
		sched_yield();
}

static void *flush_all_the_time(void *context)
{
	(void)context;
	yields = options.seed | 1;
	for (;;) {
		pthread_barrier_wait(&begin);
		if (atomic_load(&finished))
			return NULL;
		while (atomic_load(&flushing)) {
			pcpc_stat_flush(level[0]);
			flushes++;
		}
		pthread_barrier_wait(&over);
	}
}

static void update(uint64_t times)
{
	for (; times; times--) {
		pcpc_stat_add(level[DEPTH], 0, BATCH);
		sum += BATCH;
	}
}

/* Nobody flushes, and this thread alone updates. */
static void check_levels(void)
{
	const uint64_t enough = stat_threshold(domain) / BATCH + 1;
	int i;

	for (i = 0; i < DEPTH; i++)
		if (pcpc_stat_updates(level[i]) < pcpc_stat_updates(level[DEPTH]))
			break;
	overtaken += i < DEPTH;
	update(enough);
	for (i = 0; i <= DEPTH; i++)
		if (!pcpc_stat_needs_flush(level[i]))
			violation("round %" PRIu64 ": depth %d is left behind with %" PRIu64
				  ", the leaf has %" PRIu64,
				  rounds, i, pcpc_stat_updates(level[i]),
				  pcpc_stat_updates(level[DEPTH]));
	/* So this flushes. */
	for (i = 0; i <= DEPTH; i++)
		if (pcpc_stat_read(level[i], 0) != (int64_t)sum)
			violation("round %" PRIu64 ": depth %d has %" PRId64 " of %" PRIu64, rounds,
				  i, pcpc_stat_read(level[i], 0), sum);
}

static void round_of(uint64_t *random)
{
	uint64_t times = 1 + below(random, 60);

	atomic_store(&flushing, true);
	pthread_barrier_wait(&begin);
	for (; times; times--) {
		update(1);
		if (below(random, 2))
			sched_yield();
	}
	atomic_store(&flushing, false);
	pthread_barrier_wait(&over);
	check_levels();
	rounds++;
}

static int open_domain(void)
{
	const struct pcpc_item item = { "item", "" };
	const struct pcpc_domain_config config = {
		.size = sizeof(config),
		.batch = 64,
		.items = &item,
		.nr_items = 1,
		.delta_batch = BATCH,
		.stocks_per_cpu = 1,
		.engine = options.engine,
		.index = PCPC_INDEX_CPU,
	};
	int i, r = pcpc_domain_create(&config, &domain);

	if (r < 0)
		return r;
	level[0] = pcpc_domain_root(domain);
	for (i = 1; i <= DEPTH; i++)
		MUST(pcpc_owner_create(level[i - 1], NULL, &level[i]) == 0);
	return 0;
}

/* Takes its name out of the arguments. */
static void look_for_twin(int *argc, char **argv)
{
	if (*argc < 3 || strcmp(argv[2], "twin"))
		return;
	chase_stops = true;
	memmove(&argv[2], &argv[3], (size_t)(*argc - 2) * sizeof(argv[0]));
	--*argc;
}

static int verdict(void)
{
	printf("  %" PRIu64 " rounds, %" PRIu64 " flushes, %" PRIu64 " times the leaf was ahead\n",
	       rounds, flushes, overtaken);
	if (chase_stops) {
		printf("twin: %s\n", atomic_load(&violations) ? "found, as it must"
							      : "nothing found, and there must be");
		return !atomic_load(&violations);
	}
	if (!overtaken && !atomic_load(&violations)) {
		printf("stat_chase: proved nothing: the leaf was never ahead\n");
		return 1;
	}
	if (!atomic_load(&violations))
		printf("stat_chase: ok\n");
	return atomic_load(&violations) > 0;
}

int main(int argc, char **argv)
{
	uint64_t random;
	pthread_t flusher;
	double start;
	int r;

	look_for_twin(&argc, argv);
	if (!read_options(argc, argv, &options)) {
		fprintf(stderr, "usage: see the heads of stat_chase.c and owner_stress.h\n");
		return 2;
	}
	alarm(60 + 20 * (unsigned int)options.seconds);
	setvbuf(stdout, NULL, _IOLBF, 0);
	r = open_domain();
	if (r == -ENOSYS) {
		printf("stat_chase: skipped: no %s engine here\n", engine_name(options.engine));
		return SKIPPED;
	}
	MUST(r == 0);
	printf("stat_chase: engine %s, --seed %" PRIu64 "\n", engine_name(options.engine),
	       options.seed);
	random = options.seed;
	pthread_barrier_init(&begin, NULL, 2);
	pthread_barrier_init(&over, NULL, 2);
	MUST(pthread_create(&flusher, NULL, flush_all_the_time, NULL) == 0);
	for (start = now(); !atomic_load(&violations) && (now() < start + options.seconds ||
							  ((!overtaken || chase_stops) &&
							   now() < start + 10 * options.seconds));)
		round_of(&random);
	atomic_store(&finished, true);
	pthread_barrier_wait(&begin);
	pthread_join(flusher, NULL);
	return verdict();
}
