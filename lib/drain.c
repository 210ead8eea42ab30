// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * drain.c - taking owners' words out of the stocks of all CPUs.
 *
 * Restartable sequences of other CPUs cannot be locked out, only made to end. So a drain closes the
 * gates of the lines that hold something it wants, makes every sequence end that may have seen them
 * open (one membarrier for all CPUs), takes the words, opens the gates, and only then settles.
 * While a gate is closed its CPU bypasses that line; nothing waits. The atomic engine takes each
 * word by compare-and-exchange and has no gate.
 *
 * Callers that wait for the mutex have posted their wishes before; whoever gets it serves all of
 * them.
 */
#define _GNU_SOURCE
#include "cache_private.h"

#include <errno.h>

/* A broken twin leaves the fence out, and must be seen to lose units. */
#ifndef PCPC_FENCE
#define PCPC_FENCE(cpu) pcpc_fence_sequences(cpu)
#endif

/* Where a round stopped, and the next begins. */
struct cursor {
	uint32_t index, stock;
};

/* The first wish that wants this word; NULL for none, and for a free slot. */
static struct pcpc_wish *wanted_by(struct pcpc_wish *wishes, pcpc_word word)
{
	struct pcpc_wish *wish;

	if (!pcpc_word_owner(word))
		return NULL;
	for (wish = wishes; wish; wish = wish->next)
		if (wish->match(pcpc_word_owner(word), wish->context))
			return wish;
	return NULL;
}

/* Empty words count: a refill may be about to fill one. */
static bool line_wanted(struct pcpc_wish *wishes, const struct pcpc_stock *stock)
{
	uint32_t slot;

	/* Acquire: match may look at what stood ready before the word. What was stocked before the
	 * call is seen, and the rest is not promised. */
	for (slot = 0; slot < PCPC_STOCK_SLOTS; slot++)
		if (wanted_by(wishes, __atomic_load_n(&stock->slot[slot], __ATOMIC_ACQUIRE)))
			return true;
	return false;
}

/* How many stocks of one index can hold anything. The acquire pairs with pcpc_note_highest() in
 * cache.c.
 */
uint32_t pcpc_stocks_to_scan(const struct pcpc_cache *cache, uint32_t index)
{
	uint32_t highest = atomic_load_explicit(&cache->highest[index], memory_order_acquire),
		 groups;

	if (!highest)
		return 0;
	groups = pcpc_owner_group(highest) + 1;
	return groups < cache->stocks_per_cpu ? groups : cache->stocks_per_cpu;
}

/* Lists the lines of this round in cache->line, as many as the buffer of words has room for; moves
 * the cursor past them. */
static uint32_t find_lines(struct pcpc_cache *cache, struct pcpc_wish *wishes,
			   struct cursor *cursor)
{
	uint32_t found = 0, line, stocks;

	for (; cursor->index < cache->nr_indices; cursor->index++, cursor->stock = 0) {
		stocks = pcpc_stocks_to_scan(cache, cursor->index);
		for (; cursor->stock < stocks; cursor->stock++) {
			line = cursor->index * cache->stocks_per_cpu + cursor->stock;
			if (!line_wanted(wishes, pcpc_cache_line(cache, line)))
				continue;
			if (found == PCPC_DRAIN_LINES)
				return found;
			cache->line[found++] = line;
		}
	}
	return found;
}

static void set_gates(struct pcpc_cache *cache, uint32_t lines, uint32_t gate, int order)
{
	uint32_t i;

	for (i = 0; i < lines; i++)
		__atomic_store_n(&pcpc_cache_line(cache, cache->line[i])->gate, gate, order);
}

/* Close the gates of this round, and wait until no sequence that saw one open is running. */
static int close_gates(struct pcpc_cache *cache, uint32_t lines)
{
	uint32_t first = cache->line[0] / cache->stocks_per_cpu;
	uint32_t last = cache->line[lines - 1] / cache->stocks_per_cpu;
	int r;

	/* Pairs with S2 of every sequence, by way of the fence: a sequence either sees this or is
	 * made to end by it. */
	set_gates(cache, lines, 1, __ATOMIC_SEQ_CST);
	atomic_fetch_add_explicit(&cache->membarriers, 1, memory_order_relaxed);
	/* One CPU can be fenced alone, but not the holder of a concurrency id, which may run
	 * anywhere. */
	r = PCPC_FENCE(first == last && cache->index == PCPC_INDEX_CPU ? (int)first : -1);
	if (r < 0)
		set_gates(cache, lines, 0, __ATOMIC_RELEASE);
	return r;
}

/* Takes a word out of its slot if it is still wanted, and says what and for whom; false: not any
 * more. */
static bool take_word(const struct pcpc_cache *cache, struct pcpc_wish *wishes, pcpc_word *slot,
		      struct pcpc_taken *ret_taken)
{
	pcpc_word word = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
	struct pcpc_wish *wish = wanted_by(wishes, word);

	if (cache->engine == PCPC_ENGINE_RSEQ) {
		/* Relaxed: the fence has ordered every earlier store before this, and nobody else
		 * writes while the gate is closed. The release that opens it orders the store
		 * before later sequences. */
		if (wish)
			PCPC_STORE(*slot, 0);
	} else {
		/* Acquire-release: pairs with pcpc_atomic_commit() in generic.h. */
		while (wish && !__atomic_compare_exchange_n(slot, &word, 0, false, __ATOMIC_ACQ_REL,
							    __ATOMIC_ACQUIRE))
			wish = wanted_by(wishes, word);
	}
	*ret_taken = (struct pcpc_taken){ word, wish };
	return wish != NULL;
}

static uint32_t take_words(struct pcpc_cache *cache, struct pcpc_wish *wishes, uint32_t lines)
{
	uint32_t i, slot, taken = 0;
	pcpc_word *slots;

	for (i = 0; i < lines; i++) {
		slots = pcpc_cache_line(cache, cache->line[i])->slot;
		for (slot = 0; slot < PCPC_STOCK_SLOTS; slot++)
			if (take_word(cache, wishes, &slots[slot], &cache->taken[taken]))
				taken++;
	}
	return taken;
}

static void settle_words(struct pcpc_cache *cache, uint32_t taken)
{
	struct pcpc_deferred deferred;
	struct pcpc_wish *wish;
	pcpc_word word;
	uint32_t i;

	for (i = 0; i < taken; i++) {
		word = cache->taken[i].word;
		wish = cache->taken[i].wish;
		pcpc_defer(&deferred, pcpc_word_owner(word), pcpc_word_count(word),
			   pcpc_word_delta(word));
		if (!pcpc_word_vacant(word))
			wish->settle(&deferred, wish->context);
	}
}

/* All wishes, over all stocks, in as many passes as the buffer needs. */
static int drain_round(struct pcpc_cache *cache, struct pcpc_wish *wishes)
{
	struct cursor cursor = { 0, 0 };
	uint32_t lines, taken;
	int r;

	atomic_fetch_add_explicit(&cache->rounds, 1, memory_order_relaxed);
	while ((lines = find_lines(cache, wishes, &cursor))) {
		if (cache->engine == PCPC_ENGINE_RSEQ) {
			r = close_gates(cache, lines);
			if (r < 0)
				return r;
		}
		taken = take_words(cache, wishes, lines);
		/* Release: pairs with S2. Whoever sees the gate open sees the words taken. */
		if (cache->engine == PCPC_ENGINE_RSEQ)
			set_gates(cache, lines, 0, __ATOMIC_RELEASE);
		settle_words(cache, taken);
	}
	return 0;
}

static void post_wish(struct pcpc_cache *cache, struct pcpc_wish *wish)
{
	wish->next = atomic_load_explicit(&cache->wishes, memory_order_relaxed);
	/* Release: pairs with the exchange in serve_wishes(). */
	while (!atomic_compare_exchange_weak_explicit(&cache->wishes, &wish->next, wish,
						      memory_order_release, memory_order_relaxed))
		;
}

/* Under the mutex: one round for all wishes posted so far. */
static void serve_wishes(struct pcpc_cache *cache)
{
	/* Acquire: pairs with post_wish(). */
	struct pcpc_wish *wishes =
		atomic_exchange_explicit(&cache->wishes, NULL, memory_order_acquire);
	int r = drain_round(cache, wishes);

	for (; wishes; wishes = wishes->next) {
		wishes->result = r;
		wishes->served = true;
		atomic_fetch_add_explicit(&cache->drains, 1, memory_order_relaxed);
	}
}

int pcpc_cache_drain(struct pcpc_cache *cache, pcpc_match_fn *match, pcpc_settle_fn *settle,
		     void *context)
{
	struct pcpc_wish wish = { .match = match, .settle = settle, .context = context };
	pthread_t self = pthread_self();

	if (!cache || !match || !settle)
		return -EINVAL;
	/* Relaxed: only this thread stores its own id. */
	if (pthread_equal(atomic_load_explicit(&cache->drainer, memory_order_relaxed), self))
		return -EDEADLK;
	post_wish(cache, &wish);
	pthread_mutex_lock(&cache->drain_mutex);
	if (!wish.served) {
		atomic_store_explicit(&cache->drainer, self, memory_order_relaxed);
		serve_wishes(cache);
		atomic_store_explicit(&cache->drainer, (pthread_t)0, memory_order_relaxed);
	}
	pthread_mutex_unlock(&cache->drain_mutex);
	return wish.result;
}
