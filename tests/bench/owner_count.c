// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * owner_count.c - the functions of lib/counter.c, wrapped by the linker.
 *
 * Each of them changes one counter by one compare-and-exchange; those that are tried again, because
 * another CPU was quicker, are not told apart. Whoever has taken more than ever before raises the
 * peak, which stands on the same line: one more. Which counter belongs to which owner is seen from
 * outside: the first that a charge changes is that of its owner.
 */
#include "owner_count.h"

#include <stdlib.h>

#include "owner_private.h"

__typeof__(pcpc_counter_take) __real_pcpc_counter_take, __wrap_pcpc_counter_take;
__typeof__(pcpc_counter_give) __real_pcpc_counter_give, __wrap_pcpc_counter_give;
__typeof__(pcpc_counter_force) __real_pcpc_counter_force, __wrap_pcpc_counter_force;

/* Open addressing: three domains, of some 21,000 owners each, fill half of it. */
#define NR_PLACES (1u << 17)

struct place {
	const struct pcpc_books *books; /* NULL: free */
	struct pcpc_owner *owner;
	enum bench_line line;
};

static struct place places[NR_PLACES];
static struct place *learning; /* what is to be learnt of the next counter; NULL: nothing */

static struct place *find(const struct pcpc_books *books)
{
	uint64_t hash = (uint64_t)(uintptr_t)books * 0x9e3779b97f4a7c15u;
	uint32_t i = (uint32_t)(hash >> 47);

	while (places[i].books && places[i].books != books)
		i = (i + 1) % NR_PLACES;
	return &places[i];
}

static void learn(const struct pcpc_books *books)
{
	struct place *place = find(books);

	*place = *learning;
	place->books = books;
	learning = NULL;
}

void owner_count_learn(struct pcpc_owner *owner, enum bench_line line)
{
	struct place what = { .owner = owner, .line = line };
	/* More than any stock holds. */
	const uint64_t count = PCPC_COUNT_MAX + 1;

	learning = &what;
	if (pcpc_charge(owner, count) < 0 || learning)
		abort();
	pcpc_uncharge(owner, count);
}

void owner_count_forget(void)
{
	uint32_t i;

	for (i = 0; i < NR_PLACES; i++)
		places[i] = (struct place){ 0 };
}

static void count(const struct pcpc_books *books, bool taken, uint64_t usage)
{
	const struct place *place = find(books);

	if (!place->books)
		return;
	bench_events.atomics[place->line]++;
	if (taken && usage > pcpc_owner_peak(place->owner)) {
		bench_events.atomics[place->line]++;
		bench_events.peaks++;
	}
	if (place->line == BENCH_LEAF && taken)
		bench_events.misses++;
	if (place->line == BENCH_LEAF && !taken)
		bench_events.settled++;
}

bool __wrap_pcpc_counter_take(struct pcpc_books *books, uint64_t amount, uint64_t *ret_usage)
{
	bool taken = __real_pcpc_counter_take(books, amount, ret_usage);

	if (learning)
		learn(books);
	/* What does not fit is seen by a load. */
	if (taken)
		count(books, true, *ret_usage);
	return taken;
}

uint64_t __wrap_pcpc_counter_give(struct pcpc_books *books, uint64_t amount, uint64_t *ret_usage)
{
	uint64_t given = __real_pcpc_counter_give(books, amount, ret_usage);

	count(books, false, 0);
	return given;
}

bool __wrap_pcpc_counter_force(struct pcpc_books *books, uint64_t amount, uint64_t *ret_usage)
{
	bool taken = __real_pcpc_counter_force(books, amount, ret_usage);

	if (taken)
		count(books, true, *ret_usage);
	return taken;
}
