// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * owner_poison.c - owners that were freed must not be touched, and must have left nothing behind.
 *
 * Linked with --wrap=pcpc_id_give and --wrap=pcpc_id_take: a sweep gives the id back as the last
 * thing it does with an owner, and creating one takes it as the first. Both hold the tree mutex.
 * AddressSanitizer is told as well, and so sees reads too.
 */
#define _GNU_SOURCE
#include "owner_stress.h"

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

#define PATTERN 0xa5

void __real_pcpc_id_give(struct pcpc_ids *ids, uint32_t id);
void __wrap_pcpc_id_give(struct pcpc_ids *ids, uint32_t id);
uint32_t __real_pcpc_id_take(struct pcpc_ids *ids);
uint32_t __wrap_pcpc_id_take(struct pcpc_ids *ids);

_Atomic uint32_t violations;

static struct pcpc_domain *watched;
static void (*when_freed)(struct pcpc_owner *owner);
static unsigned char freed[NR_IDS];
static struct pcpc_owner was[NR_IDS]; /* hot lines of those that were freed */

/* The state is read of owners that are free, too. */
static size_t state_begin(void)
{
	return offsetof(struct pcpc_books, state) & ~(size_t)7;
}

static void set_readable(uint32_t id, bool readable)
{
	char *books = (char *)&watched->books[id];
	size_t begin = state_begin(), end = begin + 8;

	if (readable) {
		ASAN_UNPOISON_MEMORY_REGION(books, sizeof(struct pcpc_books));
		ASAN_UNPOISON_MEMORY_REGION(&watched->owners[id], sizeof(struct pcpc_owner));
	} else {
		ASAN_POISON_MEMORY_REGION(books, begin);
		ASAN_POISON_MEMORY_REGION(books + end, sizeof(struct pcpc_books) - end);
		ASAN_POISON_MEMORY_REGION(&watched->owners[id], sizeof(struct pcpc_owner));
	}
}

static void check_left(uint32_t id)
{
	struct pcpc_books *books = &watched->books[id];
	uint32_t index, slot;
	pcpc_word word;

	if (atomic_load(&books->usage) || atomic_load(&books->refs))
		violation("freed with %" PRIu64 " units and %" PRIu32 " references: id %" PRIu32,
			  atomic_load(&books->usage), atomic_load(&books->refs), id);
	for (index = 0; index < watched->cache->nr_indices; index++) {
		for (slot = 0; slot < PCPC_STOCK_SLOTS; slot++) {
			word = PCPC_LOAD(pcpc_cache_stock(watched->cache, index, id)->slot[slot]);
			if (pcpc_word_owner(word) == id)
				violation("freed, and a slot is left (G14): id %" PRIu32
					  ", %" PRIu32 " units, delta %" PRId32,
					  id, pcpc_word_count(word), pcpc_word_delta(word));
		}
	}
}

static void check_untouched(uint32_t id)
{
	const unsigned char *byte = (const unsigned char *)&watched->books[id];
	const size_t state = offsetof(struct pcpc_books, state);
	size_t i;

	for (i = 0; i < sizeof(struct pcpc_books); i++) {
		if (byte[i] != PATTERN && (i < state || i >= state + sizeof(uint32_t))) {
			violation("freed, and written to: id %" PRIu32 ", byte %zu of its books",
				  id, i);
			break;
		}
	}
	if (memcmp(&was[id], &watched->owners[id], sizeof(struct pcpc_owner)) != 0)
		violation("freed, and its hot line was written to: id %" PRIu32, id);
}

void __wrap_pcpc_id_give(struct pcpc_ids *ids, uint32_t id)
{
	uint32_t state;

	__real_pcpc_id_give(ids, id);
	if (!watched || ids != watched->ids)
		return;
	check_left(id);
	if (when_freed)
		when_freed(owner_of(watched, id));
	state = atomic_load(&watched->books[id].state);
	memset((void *)&watched->books[id], PATTERN, sizeof(struct pcpc_books));
	atomic_store(&watched->books[id].state, state);
	memcpy((void *)&was[id], (void *)&watched->owners[id], sizeof(struct pcpc_owner));
	freed[id] = 1;
	set_readable(id, false);
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
