// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * malloc_storm.c [ROUNDS] - blocks go from thread to thread and from tenant to tenant, while
 * tenants come and go, and limits refuse.
 *
 * Threads swap blocks through a table: each allocates for one tenant, and frees or resizes what it
 * gets for whoever it is from. One thread looks at usage all the time: it is never above a limit
 * (G2). In the end everybody has 0 (G1, G7), and nobody is left of those that were destroyed (G14).
 */
#define _GNU_SOURCE
#include "malloc_support.h"

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#define NR_WORKERS 4
#define NR_TENANTS 12
#define NR_PLACES 512
#define GROUP_MAX (6 * MIB)
#define TENANT_MAX (3 * MIB / 4)

/* Stands in every block, as far as it fits: whoever gets the block looks. */
struct stamp {
	size_t size;
	uint64_t check;
};

static _Atomic(void *) places[NR_PLACES];
static struct pcpc_owner *group, *tenants[NR_TENANTS];
static pthread_mutex_t tenants_mutex = PTHREAD_MUTEX_INITIALIZER;
static long rounds_each;
static atomic_long refused, served, replaced;
static atomic_bool over;

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static uint64_t check_of(const void *block, size_t size)
{
	return (uintptr_t)block ^ size * 0x9e3779b97f4a7c15u;
}

static void stamp(void *block, size_t size)
{
	*(struct stamp *)block = (struct stamp){ size, check_of(block, size) };
	((char *)block)[size - 1] = 77;
}

static size_t must_be_stamped(void *block)
{
	struct stamp stamp = *(struct stamp *)block;

	MUST(stamp.check == check_of(block, stamp.size));
	MUST(((char *)block)[stamp.size - 1] == 77);
	return stamp.size;
}

/* Mostly small, at times large; enough in the table to run into limits. */
static size_t random_size(uint64_t *random)
{
	unsigned int kind = next_random(random) % 64;
	size_t most = kind == 0 ? 300000 : kind < 8 ? 30000 : 1000;

	return sizeof(struct stamp) + 1 + next_random(random) % most;
}

static void *allocate_some(uint64_t *random)
{
	size_t size = random_size(random);
	void *block;

	switch (next_random(random) % 4) {
	case 0:
		block = calloc(1, size);
		break;
	case 1:
		block = memalign((size_t)1 << next_random(random) % 13, size);
		break;
	default:
		block = malloc(size);
	}
	/* Relaxed, as all these counts: looked at when all have ended. */
	atomic_fetch_add_explicit(block ? &served : &refused, 1, memory_order_relaxed);
	if (block)
		stamp(block, size);
	return block;
}

static void *resize_some(void *block, uint64_t *random)
{
	size_t size = random_size(random);
	void *resized = realloc(block, size);

	if (!resized) {
		must_be_stamped(block);
		atomic_fetch_add_explicit(&refused, 1, memory_order_relaxed);
		return block;
	}
	stamp(resized, size);
	return resized;
}

static struct pcpc_owner *limited_tenant(void)
{
	struct pcpc_owner_config config = { .size = sizeof(config), .max = TENANT_MAX };
	struct pcpc_owner *owner;

	MUST(pcpc_owner_create(group, &config, &owner) == 0);
	return owner;
}

/* A new tenant takes the place of one whose blocks live on. */
static void replace_one(uint64_t *random)
{
	struct pcpc_owner **place = &tenants[next_random(random) % NR_TENANTS], *old;

	work_for(NULL);
	pthread_mutex_lock(&tenants_mutex);
	old = *place;
	*place = limited_tenant();
	pthread_mutex_unlock(&tenants_mutex);
	MUST(pcpc_owner_destroy(old) == 0);
	atomic_fetch_add_explicit(&replaced, 1, memory_order_relaxed);
}

static struct pcpc_owner *pick(uint64_t *random)
{
	struct pcpc_owner *owner;

	pthread_mutex_lock(&tenants_mutex);
	owner = pcpc_owner_get(tenants[next_random(random) % NR_TENANTS]);
	pthread_mutex_unlock(&tenants_mutex);
	return owner;
}

static void one_round(uint64_t *random)
{
	void *block = allocate_some(random);

	block = atomic_exchange_explicit(&places[next_random(random) % NR_PLACES], block,
					 memory_order_acq_rel);
	if (!block)
		return;
	must_be_stamped(block);
	if (next_random(random) % 4 == 0)
		block = resize_some(block, random);
	must_be_stamped(block);
	free(block);
}

static void *work(void *seed)
{
	uint64_t random = (uintptr_t)seed * 0x9e3779b97f4a7c15u;
	struct pcpc_owner *owner = pick(&random);

	for (long round = 0; round < rounds_each; round++) {
		if (round % 32 == 0) {
			work_for(NULL);
			pcpc_owner_put(owner);
			owner = pick(&random);
			work_for(owner);
		}
		one_round(&random);
		if (round % 2048 == 2047) {
			replace_one(&random);
			work_for(owner);
		}
	}
	work_for(NULL);
	pcpc_owner_put(owner);
	return NULL;
}

/* Usage counts what is stocked too, and still is never above. */
static void *watch(void *unused)
{
	uint64_t random = 1;

	while (!atomic_load(&over)) {
		struct pcpc_owner *owner = pick(&random);

		MUST(pcpc_owner_usage(owner) <= TENANT_MAX);
		MUST(pcpc_owner_usage(group) <= GROUP_MAX);
		pcpc_owner_put(owner);
	}
	return unused;
}

static void begin(void)
{
	struct pcpc_owner_config config = { .size = sizeof(config),
					    .name = "group",
					    .max = GROUP_MAX };

	MUST(pcpc_owner_create(pcpc_domain_root(domain_of_malloc()), &config, &group) == 0);
	for (int i = 0; i < NR_TENANTS; i++)
		tenants[i] = limited_tenant();
}

static void finish(void)
{
	struct pcpc_domain_stats stats = { .size = sizeof(stats) };

	for (int i = 0; i < NR_PLACES; i++)
		free(atomic_load(&places[i]));
	for (int i = 0; i < NR_TENANTS; i++) {
		MUST(HELD(tenants[i]) == 0);
		MUST(pcpc_owner_events(tenants[i], PCPC_EVENT_UNDERFLOW) == 0);
		MUST(pcpc_owner_destroy(tenants[i]) == 0);
	}
	MUST(HELD(group) == 0);
	MUST(pcpc_owner_destroy(group) == 0);
	pcpc_domain_poll(domain_of_malloc());
	pcpc_domain_get_stats(domain_of_malloc(), &stats);
	MUST(stats.nr_offline == 0 && stats.nr_owners == 1);
	/* A run that has seen too little of something has proved nothing. */
	MUST(refused > 100 && served > 10 * refused && replaced > NR_TENANTS);
	printf("%ld served, %ld refused, %ld tenants replaced, %" PRIu64 " drains\n", served,
	       refused, replaced, stats.drains);
}

int main(int argc, char **argv)
{
	const char *rounds = argc > 1 ? argv[1] : getenv("PCPC_MALLOC_ROUNDS");
	pthread_t workers[NR_WORKERS], watcher;

	rounds_each = (rounds ? atol(rounds) : 1000000) / NR_WORKERS;
	begin();
	MUST(pthread_create(&watcher, NULL, watch, NULL) == 0);
	for (uintptr_t i = 0; i < NR_WORKERS; i++)
		MUST(pthread_create(&workers[i], NULL, work, (void *)(i + 1)) == 0);
	for (int i = 0; i < NR_WORKERS; i++)
		MUST(pthread_join(workers[i], NULL) == 0);
	atomic_store(&over, true);
	MUST(pthread_join(watcher, NULL) == 0);
	finish();
	return 0;
}
