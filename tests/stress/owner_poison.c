// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * owner_poison.c - owners that were freed must not be touched, and must have left nothing behind.
 *
 * Linked with --wrap=pcpc_id_give and --wrap=pcpc_id_take: a sweep gives the id back as the last
 * thing it does with an owner, and creating one takes it as the first. Both hold the tree mutex.
 * AddressSanitizer is told as well, unless a twin is to live on, and so sees reads too.
 */
#define _GNU_SOURCE
#include "owner_stress.h"
#include "stat_private.h"

#if defined(__SANITIZE_ADDRESS__)
#define POISON_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define POISON_ASAN 1
#endif
#endif
#ifdef POISON_ASAN
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(start, size) ((void)(start), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(start, size) ((void)(start), (void)(size))
#endif

#define PATTERN UINT64_C(0xa5a5a5a5a5a5a5a5)
#define BOOKS_WORDS (sizeof(struct pcpc_books) / sizeof(uint64_t))
#define HOT_WORDS (sizeof(struct pcpc_owner) / sizeof(uint64_t))
#define STATE_WORD (offsetof(struct pcpc_books, state) / sizeof(uint64_t))

/* Whole words, atomically: ThreadSanitizer does not know of grace periods. */
typedef uint64_t __attribute__((may_alias)) raw_word;

void __real_pcpc_id_give(struct pcpc_ids *ids, uint32_t id);
void __wrap_pcpc_id_give(struct pcpc_ids *ids, uint32_t id);
uint32_t __real_pcpc_id_take(struct pcpc_ids *ids);
uint32_t __wrap_pcpc_id_take(struct pcpc_ids *ids);

_Atomic uint32_t violations;
bool poison_asan = true;

static struct pcpc_domain *watched;
static void (*when_freed)(struct pcpc_owner *owner);
static unsigned char freed[NR_IDS];
static uint64_t was[NR_IDS][HOT_WORDS]; /* hot lines of those that were freed */

/* What the domain keeps for an owner's statistics, in words; perhaps none. */
static raw_word *block_of(uint32_t id)
{
	return (raw_word *)(watched->stats.blocks + id * watched->stats.block_size);
}

static size_t block_words(void)
{
	return watched->stats.cache ? watched->stats.block_size / sizeof(raw_word) : 0;
}

/* The state is read of owners that are free, too. */
static void set_readable(uint32_t id, bool readable)
{
	char *books = (char *)&watched->books[id];
	size_t begin = STATE_WORD * sizeof(raw_word), end = begin + sizeof(raw_word);

	if (readable) {
		ASAN_UNPOISON_MEMORY_REGION(books, sizeof(struct pcpc_books));
		ASAN_UNPOISON_MEMORY_REGION(&watched->owners[id], sizeof(struct pcpc_owner));
		ASAN_UNPOISON_MEMORY_REGION(block_of(id), block_words() * sizeof(raw_word));
	} else if (poison_asan) {
		ASAN_POISON_MEMORY_REGION(books, begin);
		ASAN_POISON_MEMORY_REGION(books + end, sizeof(struct pcpc_books) - end);
		ASAN_POISON_MEMORY_REGION(&watched->owners[id], sizeof(struct pcpc_owner));
		ASAN_POISON_MEMORY_REGION(block_of(id), block_words() * sizeof(raw_word));
	}
}

/* G14, in the stocks of charges or in those of statistics. */
static void check_slots(const struct pcpc_cache *cache, uint32_t id)
{
	uint32_t index, stock, stocks, slot;
	pcpc_word word;

	for (index = 0; index < cache->nr_indices; index++) {
		stocks = pcpc_stocks_to_scan(cache, index);
		for (stock = 0; stock < stocks; stock++) {
			for (slot = 0; slot < PCPC_STOCK_SLOTS; slot++) {
				word = PCPC_LOAD(
					pcpc_cache_line(cache,
							(size_t)index * cache->stocks_per_cpu +
								stock)
						->slot[slot]);
				if (pcpc_word_owner(word) == id)
					violation("freed, and a slot is left: id %" PRIu32
						  ", 0x%" PRIx64,
						  id, (uint64_t)word);
			}
		}
	}
}

static void check_left(uint32_t id)
{
	struct pcpc_books *books = &watched->books[id];

	if (atomic_load(&books->usage) || atomic_load(&books->refs))
		violation("freed with %" PRIu64 " units and %" PRIu32 " references: id %" PRIu32,
			  atomic_load(&books->usage), atomic_load(&books->refs), id);
	check_slots(watched->cache, id);
	if (watched->stats.cache)
		check_slots(watched->stats.cache, id);
}

static void check_words(const raw_word *words, size_t nr_words, size_t but, uint32_t id,
			const char *what)
{
	size_t i;

	for (i = 0; i < nr_words; i++) {
		if (i != but && PCPC_LOAD(words[i]) != PATTERN) {
			violation("freed, and written to: id %" PRIu32 ", byte %zu of its %s", id,
				  i * sizeof(raw_word), what);
			break;
		}
	}
}

static void check_untouched(uint32_t id)
{
	const raw_word *hot = (const raw_word *)&watched->owners[id];
	size_t i;

	check_words((raw_word *)&watched->books[id], BOOKS_WORDS, STATE_WORD, id, "books");
	check_words(block_of(id), block_words(), SIZE_MAX, id, "statistics");
	for (i = 0; i < HOT_WORDS; i++)
		if (PCPC_LOAD(hot[i]) != was[id][i])
			violation("freed, and written to: id %" PRIu32 ", byte %zu of its hot line",
				  id, i * sizeof(raw_word));
}

static void fill_words(raw_word *words, size_t nr_words, size_t but)
{
	size_t i;

	for (i = 0; i < nr_words; i++)
		if (i != but)
			PCPC_STORE(words[i], PATTERN);
}

static void poison(uint32_t id)
{
	const raw_word *hot = (const raw_word *)&watched->owners[id];
	size_t i;

	fill_words((raw_word *)&watched->books[id], BOOKS_WORDS, STATE_WORD);
	fill_words(block_of(id), block_words(), SIZE_MAX);
	for (i = 0; i < HOT_WORDS; i++)
		was[id][i] = PCPC_LOAD(hot[i]);
	freed[id] = 1;
	set_readable(id, false);
}

void __wrap_pcpc_id_give(struct pcpc_ids *ids, uint32_t id)
{
	__real_pcpc_id_give(ids, id);
	if (!watched || ids != watched->ids)
		return;
	check_left(id);
	if (when_freed)
		when_freed(owner_of(watched, id));
	poison(id);
}

uint32_t __wrap_pcpc_id_take(struct pcpc_ids *ids)
{
	uint32_t id = __real_pcpc_id_take(ids);

	if (!watched || ids != watched->ids || !freed[id])
		return id;
	freed[id] = 0;
	set_readable(id, true);
	check_untouched(id);
	return id;
}

void poison_begin(struct pcpc_domain *domain, void (*freed_function)(struct pcpc_owner *owner))
{
	watched = domain;
	when_freed = freed_function;
}

void poison_end(void)
{
	uint32_t id;

	for (id = 0; id < NR_IDS; id++) {
		if (freed[id]) {
			freed[id] = 0;
			set_readable(id, true);
			check_untouched(id);
		}
	}
	watched = NULL;
}
