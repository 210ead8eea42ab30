// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * owner_full.c - a cache whose root is at its max all the time, beside the same cache below it.
 *
 * 36 tenants put entries of one unit into a cache that holds a given number of them, oldest out
 * first. Below the limit the cache counts its entries itself, and evicts one for each that comes.
 * At the limit nobody counts: the root's max is the size of the cache, and its reclaim function
 * evicts what is wanted. So in either load every charge is matched by an uncharge.
 */
#include "owner_bench.h"

#include <errno.h>
#include <stdlib.h>

#include "owner_tree.h"

#define NR_TENANTS 36
#define STEP 64 /* charges between two looks at the clock */

struct full_cache;

/*
 * What one thread has put in, in a ring. That thread alone puts in. Entries are taken out by that
 * thread too, or by reclaim functions, of which one runs at a time.
 */
struct side {
	struct full_cache *cache;
	uint8_t *ring; /* tenants */
	uint32_t mask, random;
	_Atomic uint32_t first, end; /* oldest entry; behind the newest */
	uint64_t charges, refused;
	double ns; /* what the running slice may take */
} __attribute__((aligned(128)));

struct full_cache {
	struct owner_tree tree;
	struct bench_crew *crew; /* NULL: one CPU */
	uint32_t max;		 /* entries */
	bool reclaims, by_tenant;
	struct side side[2];
	uint64_t reclaimed, calls; /* written by whoever reclaims */
};

/* Acquire: pairs with put_in(), of another thread perhaps. */
static uint32_t entries_of(struct side *side)
{
	return atomic_load_explicit(&side->end, memory_order_acquire) -
	       atomic_load_explicit(&side->first, memory_order_relaxed);
}

/* Relaxed: there are more places than entries, so nobody waits for this one. */
static uint32_t oldest_out(struct side *side)
{
	uint32_t first = atomic_load_explicit(&side->first, memory_order_relaxed);

	atomic_store_explicit(&side->first, first + 1, memory_order_relaxed);
	return side->ring[first & side->mask];
}

static uint64_t evict_each(struct side *side, uint64_t wanted)
{
	uint32_t left = entries_of(side);
	uint64_t evicted = 0;

	for (; evicted < wanted && left; evicted++, left--)
		pcpc_uncharge(side->cache->tree.owners[oldest_out(side)], 1);
	return evicted;
}

/* Adds up what is to go, so that each tenant is uncharged once. */
static uint64_t evict_by_tenant(struct side *side, uint64_t wanted)
{
	uint32_t gone[NR_TENANTS + 1] = { 0 }, left = entries_of(side), tenant;
	uint64_t evicted = 0;

	for (; evicted < wanted && left; evicted++, left--)
		gone[oldest_out(side)]++;
	for (tenant = 1; tenant <= NR_TENANTS; tenant++)
		if (gone[tenant])
			pcpc_uncharge(side->cache->tree.owners[tenant], gone[tenant]);
	return evicted;
}

/* Evicts from whichever thread has more. */
static uint64_t reclaim(struct pcpc_owner *over, uint64_t wanted, void *context)
{
	struct full_cache *cache = context;
	struct side *side = cache->side;
	uint64_t evicted;

	(void)over;
	if (entries_of(&side[1]) > entries_of(&side[0]))
		side++;
	evicted = cache->by_tenant ? evict_by_tenant(side, wanted) : evict_each(side, wanted);
	cache->calls++;
	cache->reclaimed += evicted;
	return evicted;
}

/* xorshift */
static uint32_t choose_tenant(struct side *side)
{
	side->random ^= side->random << 13;
	side->random ^= side->random >> 17;
	side->random ^= side->random << 5;
	return 1 + (uint32_t)((uint64_t)side->random * NR_TENANTS >> 32);
}

static void put_in(struct side *side)
{
	uint32_t tenant = choose_tenant(side), end;

	side->charges++;
	if (pcpc_charge(side->cache->tree.owners[tenant], 1) < 0) {
		side->refused++;
		return;
	}
	/* Release: pairs with entries_of(). */
	end = atomic_load_explicit(&side->end, memory_order_relaxed);
	side->ring[end & side->mask] = (uint8_t)tenant;
	atomic_store_explicit(&side->end, end + 1, memory_order_release);
}

static void work(void *argument)
{
	struct side *side = argument;
	struct full_cache *cache = side->cache;
	const uint32_t share = cache->max / (cache->crew ? 2 : 1);
	const double started_ns = bench_now_ns();
	uint32_t i;

	do {
		for (i = 0; i < STEP; i++) {
			put_in(side);
			if (!cache->reclaims && entries_of(side) > share)
				pcpc_uncharge(cache->tree.owners[oldest_out(side)], 1);
		}
	} while (bench_now_ns() - started_ns < side->ns);
}

static double run(void *context, double ns)
{
	struct full_cache *cache = context;
	struct side *side = cache->side;
	uint64_t charges = side[0].charges + side[1].charges;
	const double started_ns = bench_now_ns();
	double taken_ns;

	side[0].ns = side[1].ns = ns;
	if (cache->crew)
		bench_crew_begin(cache->crew, work, &side[1]);
	work(&side[0]);
	if (cache->crew)
		bench_crew_end(cache->crew);
	taken_ns = bench_now_ns() - started_ns;
	charges = side[0].charges + side[1].charges - charges;
	return taken_ns * (cache->crew ? 2 : 1) / (double)charges;
}

static int open_side(struct side *side, struct full_cache *cache, uint32_t random)
{
	uint32_t size = 1;

	while (size <= cache->max)
		size *= 2;
	*side = (struct side){ .cache = cache, .mask = size - 1, .random = random };
	side->ring = bench_alloc(size);
	return side->ring ? 0 : -ENOMEM;
}

static int open_cache(struct full_cache *cache)
{
	struct pcpc_owner *root;
	int r = owner_tree_open(&cache->tree, NULL, NR_TENANTS, 1, OWNER_TREE_ENDLESS);

	if (r < 0)
		return r;
	root = cache->tree.nodes[0];
	r = pcpc_owner_set_max(root, cache->reclaims ? cache->max : 2ull * cache->max);
	if (r == 0 && cache->reclaims)
		r = pcpc_owner_set_reclaim(root, reclaim, cache);
	if (r == 0)
		r = open_side(&cache->side[0], cache, 0x9e3779b9);
	if (r == 0)
		r = open_side(&cache->side[1], cache, 0x7f4a7c15);
	return r;
}

/* Are there as many units as there are entries, and no more than there may be? */
static int close_cache(struct full_cache *cache)
{
	uint64_t held = pcpc_owner_usage_exact(cache->tree.nodes[0]);
	uint64_t entries = (uint64_t)entries_of(&cache->side[0]) + entries_of(&cache->side[1]);
	uint64_t peak = pcpc_owner_peak(cache->tree.nodes[0]);

	if (held != entries || (cache->reclaims && peak > cache->max))
		fprintf(stderr, "owner_full: %llu held, %llu entries, peak %llu, max %u\n",
			(unsigned long long)held, (unsigned long long)entries,
			(unsigned long long)peak, cache->max);
	free(cache->side[0].ring);
	free(cache->side[1].ring);
	owner_tree_close(&cache->tree);
	return held == entries && (!cache->reclaims || peak <= cache->max) ? 0 : -EILSEQ;
}

static void fill(struct full_cache *cache)
{
	const uint32_t share = cache->max / (cache->crew ? 2 : 1);
	struct side *side;
	unsigned int i;

	for (i = 0; i < (cache->crew ? 2 : 1); i++) {
		side = &cache->side[i];
		while (entries_of(side) < share && !cache->calls)
			put_in(side);
	}
}

/* Without the other loads between: drains and caps go by the clock. */
static void print_events(struct full_cache *cache, const char *label, double ns)
{
	const struct pcpc_owner *root = cache->tree.nodes[0];
	struct side *side = cache->side;
	uint64_t drains = pcpc_owner_events(root, PCPC_EVENT_DRAIN);
	double charges;

	cache->calls = cache->reclaimed = 0;
	side[0].charges = side[1].charges = side[0].refused = side[1].refused = 0;
	run(cache, ns);
	drains = pcpc_owner_events(root, PCPC_EVENT_DRAIN) - drains;
	charges = (double)(side[0].charges + side[1].charges);
	printf("  %-44s%6.1f drains/s, %.2f reclaims per 1,000 charges of %.0f units, "
	       "%llu of %.0f refused\n",
	       label, (double)drains * 1e9 / ns, (double)cache->calls * 1e3 / charges,
	       cache->calls ? (double)cache->reclaimed / (double)cache->calls : 0,
	       (unsigned long long)(side[0].refused + side[1].refused), charges);
}

static void note_target(const char *title, const struct bench_load *below,
			const struct bench_load *full)
{
	char text[80];

	snprintf(text, sizeof(text), "%s%s", title,
		 ((struct full_cache *)full->context)->by_tenant ? ", by tenant" : "");
	bench_note_target(text, "2 or less", full->ratio, full->minimum / below->minimum);
}

static int measure(const struct bench_options *options, uint32_t max, struct bench_crew *crew)
{
	struct full_cache caches[3] = {
		{ .max = max, .crew = crew },
		{ .max = max, .crew = crew, .reclaims = true },
		{ .max = max, .crew = crew, .reclaims = true, .by_tenant = true },
	};
	struct bench_load loads[3] = {
		{ .label = "below the limit" },
		{ .label = "at the limit, entries uncharged one by one" },
		{ .label = "at the limit, uncharged by tenant" },
	};
	char title[64];
	unsigned int i;
	int r = 0, q;

	for (i = 0; r == 0 && i < 3; i++) {
		loads[i].slice = run;
		loads[i].context = &caches[i];
		r = open_cache(&caches[i]);
		if (r == 0)
			fill(&caches[i]);
	}
	if (r < 0)
		return r;
	bench_contest(loads, 3, options->brief ? 40e6 : 200e6, options->brief ? 5 : 11);
	snprintf(title, sizeof(title), "full cache of %u units, %s", max,
		 crew ? "two CPUs" : "one CPU");
	bench_print_contest(title, "ns a charge", loads, 3);
	bench_append_csv(options, crew ? "full_two" : "full", max, loads, 3);
	for (i = 1; i < 3; i++)
		note_target(title, &loads[0], &loads[i]);
	for (i = 0; i < 3; i++) {
		if (caches[i].reclaims)
			print_events(&caches[i], loads[i].label, options->brief ? 300e6 : 2e9);
		q = close_cache(&caches[i]);
		r = q < 0 ? q : r;
	}
	return r;
}

int owner_measure_full(const struct bench_options *options)
{
	static const uint32_t sizes[] = { 64000, 4000, 1000000 };
	const unsigned int nr_sizes = options->brief ? 2 : 3;
	struct bench_crew crew;
	unsigned int i;
	int r = 0;

	bench_pin(options->cpu[0]);
	for (i = 0; r == 0 && i < nr_sizes; i++)
		r = measure(options, sizes[i], NULL);
	if (r < 0 || options->cpu[1] < 0)
		return r;
	r = bench_crew_open(&crew, options->cpu[1]);
	if (r < 0)
		return r;
	for (i = 0; r == 0 && i < nr_sizes; i++)
		r = measure(options, sizes[i], &crew);
	bench_crew_close(&crew);
	return r;
}
