// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * cache.c - the charge cache: creation, and consume and refill on the running CPU's stock.
 *
 * The two public operations are the fast path of inline.h and, where that does not serve, a cold
 * function that does the whole operation by the engine of the cache. The cache of an atomic engine
 * has a limit of no indices, so that one comparison sends it there too. Draining is in drain.c.
 */
#define _GNU_SOURCE
#include "cache_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_STOCKS 4096u
#define MAX_STOCKS (1u << 18) /* every owner id has a slot of its own from 149,797 on */

/* Set once an object was loaded whose inlined code knows another layout. Under the list mutex of
 * fork.c, like the limits it decides; relaxed, for no other data goes with it. */
static atomic_bool inline_shut;

#define TEXT_OF(value) #value
#define VERSION_TEXT(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

const char *pcpc_version(void)
{
	return VERSION_TEXT(PCPC_VERSION_MAJOR, PCPC_VERSION_MINOR, PCPC_VERSION_PATCH);
}

/* A number per thread for the atomic engine, where the C library gives no CPU number. Initial-exec:
 * no allocation at the first touch, which may be in a signal handler. */
static _Thread_local uint32_t sticky_index __attribute__((tls_model("initial-exec")));

static uint32_t sticky(uint32_t nr_indices)
{
	static _Atomic uint32_t last;

	/* Relaxed: any spread will do. A handler that interrupts this takes a number too, and one
	 * of the two is kept. */
	if (!sticky_index)
		sticky_index = 1 + (atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) &
				    0x3fffffff);
	return sticky_index % nr_indices;
}

/* Where the running thread is now. False: no index of this cache, bypass. */
bool pcpc_cache_locate(const struct pcpc_cache *cache, struct pcpc_place *ret_place)
{
	*ret_place =
		(struct pcpc_place){ cache->fast.area.rseq, cache->fast.area.field, UINT32_MAX };
#if PCPC_HAVE_RSEQ
	if (cache->fast.area.rseq)
		ret_place->index = pcpc_rseq_index(ret_place);
#endif
	if (ret_place->index < cache->nr_indices)
		return true;
	if (cache->engine != PCPC_ENGINE_ATOMIC)
		return false;
	ret_place->index = sticky(cache->nr_indices);
	return true;
}

#if PCPC_HAVE_RSEQ
static const struct pcpc_primitives rseq_primitives = { pcpc_rseq_commit, pcpc_rseq_insert, false };
#endif
static const struct pcpc_primitives atomic_primitives = { pcpc_atomic_commit, pcpc_atomic_insert,
							  true };

enum pcpc_outcome pcpc_cache_commit(const struct pcpc_cache *cache, const struct pcpc_place *place,
				    struct pcpc_stock *stock, uint32_t slot, pcpc_word old_word,
				    pcpc_word new_word)
{
#if PCPC_HAVE_RSEQ
	if (cache->engine == PCPC_ENGINE_RSEQ)
		return pcpc_rseq_commit(place, stock, slot, old_word, new_word);
#endif
	(void)cache;
	return pcpc_atomic_commit(place, stock, slot, old_word, new_word);
}

static enum pcpc_outcome try_consume(const struct pcpc_cache *cache, struct pcpc_stock *stock,
				     const struct pcpc_place *place,
				     const struct pcpc_request *request,
				     struct pcpc_deferred *ret_deferred)
{
#if PCPC_HAVE_RSEQ
	if (cache->engine == PCPC_ENGINE_RSEQ)
		return pcpc_stock_try_consume(stock, place, &rseq_primitives, request,
					      ret_deferred);
#endif
	(void)cache;
	return pcpc_stock_try_consume(stock, place, &atomic_primitives, request, ret_deferred);
}

static enum pcpc_outcome try_refill(const struct pcpc_cache *cache, struct pcpc_stock *stock,
				    const struct pcpc_place *place, struct pcpc_request *request,
				    struct pcpc_deferred *ret_deferred)
{
#if PCPC_HAVE_RSEQ
	if (cache->engine == PCPC_ENGINE_RSEQ)
		return pcpc_stock_try_refill(stock, place, &rseq_primitives, request, ret_deferred);
#endif
	(void)cache;
	return pcpc_stock_try_refill(stock, place, &atomic_primitives, request, ret_deferred);
}

static PCPC_COLD bool consume_slow(struct pcpc_cache *cache, uint32_t owner, uint64_t count,
				   int64_t delta, const struct pcpc_marks *marks,
				   struct pcpc_deferred *ret_deferred)
{
	const struct pcpc_request request = { owner, count, delta, marks };
	enum pcpc_outcome outcome = PCPC_CHANGED;
	struct pcpc_place place;
	unsigned int tries;

	if (!ret_deferred)
		return false;
	pcpc_defer(ret_deferred, 0, 0, 0);
	if (!cache || !marks || !pcpc_owner_valid(owner))
		return false;
	if (pcpc_request_empty(&request))
		return true;
	for (tries = 0; tries < PCPC_TRIES && (outcome == PCPC_CHANGED || outcome == PCPC_ABORTED);
	     tries++) {
		if (!pcpc_cache_locate(cache, &place))
			break;
		outcome = try_consume(cache, pcpc_cache_stock(cache, place.index, owner), &place,
				      &request, ret_deferred);
	}
	return outcome == PCPC_DONE;
}

/* Before an insert, so that whoever drains after it scans far enough. Acquire-release: pairs with
 * itself and with the load in pcpc_stocks_to_scan(), where this insert has happened before
 * that drain. Rises a few times in the life of a cache. */
void pcpc_note_highest(struct pcpc_cache *cache, uint32_t index, uint32_t owner)
{
	uint32_t highest = atomic_load_explicit(&cache->highest[index], memory_order_relaxed);

	while (PCPC_UNLIKELY(owner > highest) &&
	       !atomic_compare_exchange_weak_explicit(&cache->highest[index], &highest, owner,
						      memory_order_acq_rel, memory_order_relaxed))
		;
}

static PCPC_COLD void refill_slow(struct pcpc_cache *cache, uint32_t owner, uint64_t count,
				  int64_t delta, const struct pcpc_marks *marks,
				  struct pcpc_deferred *ret_deferred)
{
	struct pcpc_request request = { owner, count, delta, marks };
	enum pcpc_outcome outcome = PCPC_CHANGED;
	struct pcpc_place place;
	unsigned int tries;

	if (!ret_deferred)
		return;
	pcpc_defer(ret_deferred, 0, 0, 0);
	if (pcpc_request_empty(&request))
		return;
	if (cache && marks && !pcpc_request_bypasses(&request)) {
		for (tries = 0;
		     tries < PCPC_TRIES && (outcome == PCPC_CHANGED || outcome == PCPC_ABORTED);
		     tries++) {
			if (!pcpc_cache_locate(cache, &place))
				break;
			pcpc_note_highest(cache, place.index, owner);
			outcome = try_refill(cache, pcpc_cache_stock(cache, place.index, owner),
					     &place, &request, ret_deferred);
		}
	}
	/* The request, not the arguments: it may have grown by what was merged into it. */
	if (outcome != PCPC_DONE)
		pcpc_defer(ret_deferred, owner, request.count, request.delta);
}

#if PCPC_HAVE_RSEQ
/*
 * After a fast path that got as far as the word. count is read back from how the word would have
 * changed: so the fast path need not keep it beside the operands of the sequence.
 */
static PCPC_COLD bool consume_again(struct pcpc_cache *cache, uint32_t owner, pcpc_word change,
				    const struct pcpc_marks *marks,
				    struct pcpc_deferred *ret_deferred)
{
	return consume_slow(cache, owner, change >> PCPC_COUNT_SHIFT, 0, marks, ret_deferred);
}

static PCPC_COLD void refill_again(struct pcpc_cache *cache, uint32_t owner, pcpc_word change,
				   const struct pcpc_marks *marks,
				   struct pcpc_deferred *ret_deferred)
{
	refill_slow(cache, owner, change >> PCPC_COUNT_SHIFT, 0, marks, ret_deferred);
}

/* A branch each, see PCPC_FAST_REQUIRE(). */
static PCPC_ALWAYS_INLINE enum pcpc_fast_end fast_arguments(const struct pcpc_cache *cache,
							    int64_t delta,
							    const struct pcpc_marks *marks,
							    const struct pcpc_deferred *deferred)
{
	PCPC_FAST_REQUIRE(!delta, UNFIT);
	PCPC_FAST_REQUIRE(cache, UNFIT);
	PCPC_FAST_REQUIRE(marks, UNFIT);
	PCPC_FAST_REQUIRE(deferred, UNFIT);
	return PCPC_FAST_DONE;
}

bool pcpc_cache_consume(struct pcpc_cache *cache, uint32_t owner, uint64_t count, int64_t delta,
			const struct pcpc_marks *marks, struct pcpc_deferred *ret_deferred)
{
	enum pcpc_fast_end end = fast_arguments(cache, delta, marks, ret_deferred);
	pcpc_word change;

	if (PCPC_LIKELY(end == PCPC_FAST_DONE))
		end = pcpc_fast_consume(&cache->fast, owner, count, marks, &change);
	if (PCPC_LIKELY(end == PCPC_FAST_DONE)) {
		pcpc_defer(ret_deferred, 0, 0, 0);
		return true;
	}
	if (end == PCPC_FAST_FAILED)
		return consume_again(cache, owner, change, marks, ret_deferred);
	return consume_slow(cache, owner, count, delta, marks, ret_deferred);
}

void pcpc_cache_refill(struct pcpc_cache *cache, uint32_t owner, uint64_t count, int64_t delta,
		       const struct pcpc_marks *marks, struct pcpc_deferred *ret_deferred)
{
	enum pcpc_fast_end end = fast_arguments(cache, delta, marks, ret_deferred);
	pcpc_word change;

	if (PCPC_LIKELY(end == PCPC_FAST_DONE))
		end = pcpc_fast_refill(&cache->fast, owner, count, marks, &change);
	if (PCPC_LIKELY(end == PCPC_FAST_DONE))
		pcpc_defer(ret_deferred, 0, 0, 0);
	else if (end == PCPC_FAST_FAILED)
		refill_again(cache, owner, change, marks, ret_deferred);
	else
		refill_slow(cache, owner, count, delta, marks, ret_deferred);
}

#else

bool pcpc_cache_consume(struct pcpc_cache *cache, uint32_t owner, uint64_t count, int64_t delta,
			const struct pcpc_marks *marks, struct pcpc_deferred *ret_deferred)
{
	return consume_slow(cache, owner, count, delta, marks, ret_deferred);
}

void pcpc_cache_refill(struct pcpc_cache *cache, uint32_t owner, uint64_t count, int64_t delta,
		       const struct pcpc_marks *marks, struct pcpc_deferred *ret_deferred)
{
	refill_slow(cache, owner, count, delta, marks, ret_deferred);
}

#endif

/* Copies what the caller gave; fields it does not have are 0. -EINVAL for too few bytes, and for
 * values in fields that are not known. */
int pcpc_read_struct(void *ret, size_t known, size_t first, const void *given)
{
	const unsigned char *bytes = given;
	size_t size, i;

	memcpy(&size, given, sizeof(size));
	if (size < first)
		return -EINVAL;
	for (i = known; i < size; i++)
		if (bytes[i])
			return -EINVAL;
	memset(ret, 0, known);
	memcpy(ret, given, size < known ? size : known);
	return 0;
}

static int read_config(const struct pcpc_cache_config *config, struct pcpc_cache_config *ret_config)
{
	const size_t first = offsetof(struct pcpc_cache_config, stocks_per_cpu) + sizeof(uint32_t);
	int r = 0;

	*ret_config = (struct pcpc_cache_config){ .size = sizeof(*ret_config) };
	if (config)
		r = pcpc_read_struct(ret_config, sizeof(*ret_config), first, config);
	if (r < 0)
		return r;
	if ((unsigned int)ret_config->engine > PCPC_ENGINE_ATOMIC ||
	    (unsigned int)ret_config->index > PCPC_INDEX_MM_CID ||
	    ret_config->stocks_per_cpu > MAX_STOCKS)
		return -EINVAL;
	return 0;
}

/* What the environment says counts where the program left the choice open. */
static int choose_engine(enum pcpc_engine *engine, const struct pcpc_rseq *rseq)
{
	const char *text = secure_getenv("PCPC_ENGINE");

	if (*engine == PCPC_ENGINE_AUTO && text && *text) {
		if (!strcmp(text, "atomic"))
			*engine = PCPC_ENGINE_ATOMIC;
		else if (!strcmp(text, "rseq"))
			*engine = PCPC_ENGINE_RSEQ;
		else
			return -EINVAL;
	}
	if (*engine == PCPC_ENGINE_AUTO)
		*engine = rseq->sequences ? PCPC_ENGINE_RSEQ : PCPC_ENGINE_ATOMIC;
	return *engine == PCPC_ENGINE_RSEQ && !rseq->sequences ? -ENOSYS : 0;
}

static int choose_index(enum pcpc_index *index, const struct pcpc_rseq *rseq, uint32_t nr_indices)
{
	if (*index == PCPC_INDEX_AUTO)
		*index = rseq->mm_cid && 2 * (uint64_t)pcpc_allowed_cpus() < nr_indices
				 ? PCPC_INDEX_MM_CID
				 : PCPC_INDEX_CPU;
	return *index == PCPC_INDEX_MM_CID && !rseq->mm_cid ? -ENOSYS : 0;
}

static size_t round_up(size_t bytes, size_t step)
{
	return (bytes + step - 1) / step * step;
}

/*
 * Reserves the mapping and fills in what never changes. The two lines that every operation reads
 * stand at the end of a page: a processor that tells a load from an earlier store by the low 12
 * bits of their addresses then confuses them with the stocks of ids from 435 on, not with those of
 * the first ids, which every program has. (Three times slower, in one process out of ten.)
 */
static struct pcpc_cache *map_cache(uint32_t stocks, uint32_t nr_indices)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), start = page - 2 * sizeof(struct pcpc_fast);
	size_t offset =
		round_up(start + sizeof(struct pcpc_cache) + nr_indices * sizeof(uint32_t), page);
	size_t stride = stocks * sizeof(struct pcpc_stock);
	size_t bytes;
	struct pcpc_cache *cache;
	char *mapping;

	/* Where size_t is narrow. */
	if (__builtin_mul_overflow(stride, nr_indices, &bytes) ||
	    __builtin_add_overflow(bytes, offset, &bytes))
		return NULL;
	mapping = pcpc_map(bytes);
	if (!mapping)
		return NULL;
	cache = (struct pcpc_cache *)(mapping + start);
	cache->mapping = mapping;
	cache->nr_indices = nr_indices;
	cache->stocks_per_cpu = stocks;
	cache->mapped = bytes;
	cache->stocks_offset = offset;
	cache->highest = (_Atomic uint32_t *)(cache + 1);
	cache->fast.mask = stocks * (PCPC_STOCK_SLOTS + 1) - 1;
	cache->fast.stride = stride;
	cache->fast.words = (pcpc_word *)(mapping + offset);
	return cache;
}

/* Opens or shuts the inlined fast path of one cache. */
static void set_inline_limit(struct pcpc_cache *cache)
{
	bool shut = atomic_load_explicit(&inline_shut, memory_order_relaxed);

	PCPC_STORE(cache->fast_inline.limit, shut ? 0 : cache->fast.limit);
}

int pcpc_cache_create(const struct pcpc_cache_config *config, struct pcpc_cache **ret_cache)
{
	struct pcpc_cache_config chosen;
	uint32_t stocks = 1, nr_indices = pcpc_possible_cpus();
	struct pcpc_cache *cache;
	struct pcpc_rseq rseq;
	int r;

	if (!ret_cache)
		return -EINVAL;
	r = read_config(config, &chosen);
	if (r < 0)
		return r;
	pcpc_rseq_detect(&rseq);
	r = choose_engine(&chosen.engine, &rseq);
	if (r == 0)
		r = choose_index(&chosen.index, &rseq, nr_indices);
	if (r < 0)
		return r;
	while (stocks < (chosen.stocks_per_cpu ? chosen.stocks_per_cpu : DEFAULT_STOCKS))
		stocks *= 2;
	cache = map_cache(stocks, nr_indices);
	if (!cache)
		return -ENOMEM;
	cache->engine = chosen.engine;
	cache->index = chosen.index;
	if (rseq.registered) {
		cache->fast.area.rseq = rseq.area;
		cache->fast.area.field =
			rseq.area +
			(chosen.index == PCPC_INDEX_MM_CID ? PCPC_RSEQ_MM_CID : PCPC_RSEQ_CPU_ID);
	}
	cache->fast.limit = chosen.engine == PCPC_ENGINE_RSEQ ? nr_indices : 0;
	cache->fast_inline = cache->fast;
	cache->fast_inline.limit = 0;
	pthread_mutex_init(&cache->drain_mutex, NULL);
	r = pcpc_fork_add(cache);
	if (r < 0) {
		pcpc_unmap(cache->mapping, cache->mapped);
		return r;
	}
	/* By way of the list, so that it cannot pass pcpc_inline_register() by. */
	pcpc_fork_each(set_inline_limit);
	*ret_cache = cache;
	return 0;
}

void pcpc_cache_destroy(struct pcpc_cache *cache)
{
	if (!cache)
		return;
	pcpc_fork_remove(cache);
	pthread_mutex_destroy(&cache->drain_mutex);
	pcpc_unmap(cache->mapping, cache->mapped);
}

void pcpc_inline_register(uint32_t layout)
{
	if (layout == PCPC_LAYOUT)
		return;
	atomic_store_explicit(&inline_shut, true, memory_order_relaxed);
	pcpc_fork_each(set_inline_limit);
}

enum pcpc_engine pcpc_cache_engine(const struct pcpc_cache *cache)
{
	return cache ? cache->engine : PCPC_ENGINE_AUTO;
}

uint64_t pcpc_cache_stocked(struct pcpc_cache *cache, uint32_t owner)
{
	struct pcpc_stock *stock;
	uint64_t stocked = 0;
	uint32_t index, slot;
	pcpc_word word;

	if (!cache || !pcpc_owner_valid(owner))
		return 0;
	for (index = 0; index < cache->nr_indices; index++) {
		/* Relaxed: a snapshot. What happened before the call is seen. */
		if (atomic_load_explicit(&cache->highest[index], memory_order_relaxed) < owner)
			continue;
		stock = pcpc_cache_stock(cache, index, owner);
		for (slot = 0; slot < PCPC_STOCK_SLOTS; slot++) {
			word = PCPC_LOAD(stock->slot[slot]);
			if (pcpc_word_owner(word) == owner)
				stocked += pcpc_word_count(word);
		}
	}
	return stocked;
}

bool pcpc_cache_peek(struct pcpc_cache *cache, uint32_t owner, uint32_t *ret_count)
{
	struct pcpc_stock *stock;
	struct pcpc_place place;
	pcpc_word word;
	uint32_t slot;

	*ret_count = 0;
	if (!pcpc_cache_locate(cache, &place))
		return false;
	stock = pcpc_cache_stock(cache, place.index, owner);
	for (slot = 0; slot < PCPC_STOCK_SLOTS; slot++) {
		word = PCPC_LOAD(stock->slot[slot]);
		if (pcpc_word_owner(word) == owner) {
			*ret_count = pcpc_word_count(word);
			return true;
		}
	}
	return false;
}

uint64_t pcpc_cache_sum(struct pcpc_cache *cache, pcpc_match_fn *match, void *context)
{
	uint32_t index, stocks, i, slot;
	struct pcpc_stock *line;
	uint64_t sum = 0;
	pcpc_word word;

	for (index = 0; index < cache->nr_indices; index++) {
		stocks = pcpc_stocks_to_scan(cache, index);
		for (i = 0; i < stocks; i++) {
			line = pcpc_cache_line(cache, (size_t)index * cache->stocks_per_cpu + i);
			for (slot = 0; slot < PCPC_STOCK_SLOTS; slot++) {
				/* Acquire: match may look at what stood ready before the word. */
				word = __atomic_load_n(&line->slot[slot], __ATOMIC_ACQUIRE);
				if (pcpc_word_count(word) && match(pcpc_word_owner(word), context))
					sum += pcpc_word_count(word);
			}
		}
	}
	return sum;
}

int pcpc_cache_get_stats(struct pcpc_cache *cache, struct pcpc_cache_stats *ret_stats)
{
	struct pcpc_cache_stats stats = { 0 };
	size_t size;

	if (!cache || !ret_stats || ret_stats->size < sizeof(stats))
		return -EINVAL;
	size = ret_stats->size;
	stats.size = size;
	stats.engine = cache->engine;
	stats.index = cache->index;
	stats.nr_cpus = cache->nr_indices;
	stats.stocks_per_cpu = cache->stocks_per_cpu;
	/* Relaxed: counters that say nothing about other data. */
	stats.drains = atomic_load_explicit(&cache->drains, memory_order_relaxed);
	stats.rounds = atomic_load_explicit(&cache->rounds, memory_order_relaxed);
	stats.membarriers = atomic_load_explicit(&cache->membarriers, memory_order_relaxed);
	stats.bytes_resident = pcpc_resident((char *)cache->mapping + cache->stocks_offset,
					     cache->mapped - cache->stocks_offset);
	memset(ret_stats, 0, size);
	memcpy(ret_stats, &stats, sizeof(stats));
	return 0;
}
