// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * owner_storm.c - many threads do everything that owners allow, on a tree that changes all the time
 * (G1, G2, G3, G7, G14).
 *
 *	owner_storm rseq|atomic [--seed N] [--threads N] [--seconds S] [--forks N]
 *
 * The seed decides on batches and the number of stocks as well, so runs differ a good deal.
 */
#define _GNU_SOURCE
#include "owner_storm.h"

#define ROUND 0.02	  /* seconds */
#define FORKING_ROUND 0.3 /* a thread that waits for its child holds all up */

struct storm storm;

static const struct {
	const char *name;
	uint64_t least; /* else the run has proved nothing */
} count_info[COUNTS] = {
	[CHARGES] = { "charges", 1000 },     [UNCHARGES] = { "uncharges", 1000 },
	[REFUSALS] = { "refusals", 20 },     [UNSURE] = { "unsure", 5 },
	[SHUT] = { "of offline owners", 1 }, [TIMED_OUT] = { "timed out", 1 },
	[FORCED] = { "forced", 20 },	     [TRANSFERS] = { "transfers", 20 },
	[WAITS] = { "waits", 10 },	     [CREATED] = { "created", 20 },
	[DESTROYED] = { "destroyed", 20 },   [DRAINS] = { "drains", 5 },
	[POLLS] = { "polls", 20 },	     [RECLAIMS] = { "reclaims", 5 },
	[MAXES] = { "limits set", 5 },	     [WALKS] = { "walks", 5 },
	[UPDATES] = { "updates", 0 },	     [FORKS] = { "forks", 0 },
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
	static const uint32_t batch[] = { 1, 8, 64, 1000 };
	static const struct pcpc_item items[NR_ITEMS] = { { "moved", "units" }, { "other", "" } };
	struct pcpc_domain_config config = {
		.size = sizeof(config),
		.name = "storm",
		.batch = batch[below(random, 4)],
		.delta_batch = 1 + (uint32_t)below(random, 100),
		.stocks_per_cpu = 1u << below(random, 4),
		.engine = storm.options.engine,
		.index = PCPC_INDEX_CPU,
	};

	storm.has_items = below(random, 4) > 0;
	if (storm.has_items) {
		config.items = items;
		config.nr_items = NR_ITEMS;
		config.nr_nodes = (uint32_t)below(random, 3);
	}
	return pcpc_domain_create(&config, &storm.domain);
}

static void start(uint64_t *random)
{
	uint32_t i;

	pthread_mutex_init(&storm.mail_lock, NULL);
	pthread_barrier_init(&storm.rendezvous, NULL, storm.options.threads + 1);
	for (i = 0; i < storm.options.threads; i++) {
		storm.thread[i].random = random_of(random);
		MUST(pthread_create(&storm.thread[i].thread, NULL, load, &storm.thread[i]) == 0);
	}
}

/* Looks at the moment, for the length of a round. */
static void watch(uint64_t *random)
{
	double end = now() + (storm.options.forks ? FORKING_ROUND : ROUND);
	struct pcpc_owner *owner;
	struct node *node;

	while (now() < end) {
		node = place_take(random);
		if (node) {
			owner = node->owner;
			check_node(node);
			node_put(node);
			pcpc_owner_put(owner);
		}
		usleep(20);
	}
}

/* Rounds until something is wrong, or it is long enough and enough has happened. */
static uint32_t run(uint64_t *random)
{
	double begin = now(), length = storm.options.seconds, spent;
	bool enough = false;
	uint32_t rounds;

	pthread_barrier_wait(&storm.rendezvous);
	for (rounds = 0; !enough; rounds++) {
		watch(random);
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

static void give_mail_back(void)
{
	int i;

	for (i = 0; i < NR_MAIL; i++) {
		struct holding *mail = &storm.mail[i];

		if (!mail->node)
			continue;
		account(mail->node, NULL, mail->units, false);
		if (mail->reference)
			pcpc_owner_put(mail->node->owner);
		pcpc_uncharge(mail->node->owner, mail->units);
		node_put(mail->node);
	}
}

static void end(void)
{
	uint32_t i;

	for (i = 0; i < storm.options.threads; i++)
		pthread_join(storm.thread[i].thread, NULL);
	give_mail_back();
	place_destroy_all();
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
	printf(", %" PRIu64 " freed, %" PRIu64 " told\n", atomic_load(&storm.freed),
	       atomic_load(&storm.told));
	if (atomic_load(&violations))
		return 1;
	i = missing();
	if (i >= 0) {
		printf("owner_storm: proved nothing: %" PRIu64 " %s\n", count_of(i),
		       count_info[i].name);
		return 1;
	}
	printf("owner_storm: ok\n");
	return 0;
}

int main(int argc, char **argv)
{
	uint64_t random;
	uint32_t rounds;
	int r;

	storm.options.threads = 6;
	storm.options.seconds = 2;
	if (!read_options(argc, argv, &storm.options) || storm.options.threads - 1 >= MAX_THREADS) {
		fprintf(stderr, "usage: see the heads of owner_storm.c and owner_stress.h\n");
		return 2;
	}
	alarm(60 + 2 * patience());
	setvbuf(stdout, NULL, _IOLBF, 0);
	random = storm.options.seed;
	MUST(pthread_atfork(tree_before_fork, tree_after_fork, tree_after_fork) == 0);
	r = open_domain(&random);
	if (r == -ENOSYS) {
		printf("owner_storm: skipped: no %s engine here\n",
		       engine_name(storm.options.engine));
		return SKIPPED;
	}
	MUST(r == 0);
	tree_begin(&random);
	printf("owner_storm: engine %s, batch %" PRIu32 ", delta batch %" PRIu32 ", %" PRIu32
	       " stocks a CPU, %" PRIu32 " items, %" PRIu32 " threads, shares of %" PRIu64
	       ", --seed %" PRIu64 "\n",
	       engine_name(storm.options.engine), storm.domain->batch, storm.domain->delta_batch,
	       storm.domain->cache->stocks_per_cpu, storm.domain->stats.nr_keys,
	       storm.options.threads, storm.fair_share, storm.options.seed);
	poison_begin(storm.domain, check_freed);
	start(&random);
	rounds = run(&random);
	end();
	return verdict(rounds);
}
