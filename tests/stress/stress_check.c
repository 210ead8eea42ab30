// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * stress_check.c - the invariants of the stress program.
 *
 * One line can be checked while its gate is closed and fenced, for nobody writes it then; the books
 * of all owners while everything stands still.
 */
#define _GNU_SOURCE
#include "stress.h"

#include <inttypes.h>
#include <stdio.h>

/* The first of each kind, for the report. */
static struct {
	uint32_t owner;
	int64_t expected, found;
} first[VIOLATIONS];

static const char *const names[VIOLATIONS] = {
	[UNITS_LOST] = "units lost or made",
	[DELTA_LOST] = "delta lost or made",
	[DUPLICATE] = "owner in two slots of one stock",
	[ABOVE_HIGH] = "more stocked than high allows",
	[CHANGED_CLOSED] = "line changed while closed",
	[GATE_LEFT] = "gate left closed",
	[LEFT_AFTER_DRAIN] = "word left after the last drain",
	[BAD_WORD] = "impossible word",
	[TWICE_DIFFERED] = "comparison differed when repeated",
	[DRAIN_FAILED] = "drain failed or was miscounted",
};

/* From anywhere, signal handlers included. A twin goes on until it shows what it must show. */
void stress_violation(enum violation violation, uint32_t owner, int64_t expected, int64_t found)
{
	/* Relaxed: read after the threads have met or ended. */
	if (atomic_fetch_add_explicit(&stress.violations[violation], 1, memory_order_relaxed) ==
	    0) {
		first[violation].owner = owner;
		first[violation].expected = expected;
		first[violation].found = found;
	}
	if (!stress.options.twin || violation == stress.options.violation)
		sem_post(&stress.found);
}

const char *stress_violation_name(enum violation violation)
{
	return names[violation];
}

static uint64_t times(enum violation violation)
{
	return atomic_load_explicit(&stress.violations[violation], memory_order_relaxed);
}

bool stress_violated(void)
{
	uint32_t i;

	if (stress.options.twin)
		return times(stress.options.violation);
	for (i = 0; i < VIOLATIONS; i++)
		if (times((enum violation)i))
			return true;
	return false;
}

void stress_print_violations(void)
{
	uint32_t i;

	for (i = 0; i < VIOLATIONS; i++)
		if (times((enum violation)i))
			printf("  violation: %s, %" PRIu64 " times; first: owner %" PRIu32
			       " expected %" PRId64 " found %" PRId64 "\n",
			       names[i], times((enum violation)i), first[i].owner,
			       first[i].expected, first[i].found);
}

/*
 * The words of one line, which nobody writes now: each belongs here, holds no more than its owner's
 * high, and under restartable sequences no owner has two (G5).
 */
void stress_check_line(const struct pcpc_stock *stock, uint32_t number)
{
	uint32_t slot, other, owner;
	pcpc_word word;

	for (slot = 0; slot < PCPC_STOCK_SLOTS; slot++) {
		word = PCPC_LOAD(stock->slot[slot]);
		owner = pcpc_word_owner(word);
		if (!owner) {
			if (word)
				stress_violation(BAD_WORD, 0, 0, (int64_t)word);
			continue;
		}
		if (owner > stress.options.owners ||
		    (owner - 1) / PCPC_STOCK_SLOTS % stress.cache->stocks_per_cpu != number) {
			stress_violation(BAD_WORD, owner, number, (int64_t)word);
			continue;
		}
		if (pcpc_word_count(word) > stress.marks[owner].high)
			stress_violation(ABOVE_HIGH, owner, stress.marks[owner].high,
					 pcpc_word_count(word));
		for (other = 0; other < slot; other++)
			if (stress.cache->engine == PCPC_ENGINE_RSEQ &&
			    pcpc_word_owner(PCPC_LOAD(stock->slot[other])) == owner)
				stress_violation(DUPLICATE, owner, other, slot);
	}
}

struct pcpc_stock *stress_line(uint32_t index, uint32_t number)
{
	return (struct pcpc_stock *)((char *)stress.cache->fast.words +
				     index * stress.cache->fast.stride) +
	       number;
}

/* The atomic engine may leave an owner in two slots; the next refill, of one unit here, must merge
 * them (G5). */
static void merge_duplicates(struct pcpc_stock *stock)
{
	uint32_t slot, other, owner, seen;
	struct pcpc_deferred deferred;

	for (slot = 1; slot < PCPC_STOCK_SLOTS; slot++) {
		owner = pcpc_word_owner(stock->slot[slot]);
		for (other = 0, seen = 0; other < slot && owner; other++)
			seen += pcpc_word_owner(stock->slot[other]) == owner;
		if (!seen)
			continue;
		stress.check.counts[MERGED]++;
		atomic_fetch_add_explicit(&stress.usage[owner], 1, memory_order_relaxed);
		pcpc_stock_refill(stock, owner, 1, 0, &stress.marks[owner], &deferred);
		stress_settle(&stress.check, &deferred);
		for (other = 0, seen = 0; other < PCPC_STOCK_SLOTS; other++)
			seen += pcpc_word_owner(stock->slot[other]) == owner;
		if (seen > 1)
			stress_violation(DUPLICATE, owner, 1, seen);
	}
}

/* What stands in all the stocks, per owner. */
struct stocked {
	int64_t units[MAX_OWNERS + 1], delta[MAX_OWNERS + 1];
};

static void read_stocks(struct stocked *ret_stocked)
{
	struct pcpc_stock *stock;
	uint32_t index, number, slot, owner;

	*ret_stocked = (struct stocked){ 0 };
	for (index = 0; index < stress.cache->nr_indices; index++) {
		for (number = 0; number < stress.cache->stocks_per_cpu; number++) {
			stock = stress_line(index, number);
			if (stock->gate)
				stress_violation(GATE_LEFT, 0, 0, stock->gate);
			if (stress.cache->engine == PCPC_ENGINE_ATOMIC)
				merge_duplicates(stock);
			stress_check_line(stock, number);
			for (slot = 0; slot < PCPC_STOCK_SLOTS; slot++) {
				owner = pcpc_word_owner(stock->slot[slot]) % (MAX_OWNERS + 1);
				ret_stocked->units[owner] += pcpc_word_count(stock->slot[slot]);
				ret_stocked->delta[owner] += pcpc_word_delta(stock->slot[slot]);
			}
		}
	}
}

/* What all contexts together hold of an owner, and what deltas they asked for. */
static void read_contexts(uint32_t owner, int64_t *ret_held, int64_t *ret_asked)
{
	int64_t held = stress.intruder.context[THREAD].held[owner], asked = 0;
	uint32_t i, level;

	for (i = 0; i < stress.options.threads; i++) {
		for (level = 0; level < LEVELS; level++) {
			held += stress.worker[i].context[level].held[owner];
			asked += stress.worker[i].context[level].asked[owner];
		}
	}
	*ret_held = held;
	*ret_asked = asked;
}

/*
 * While everything stands still: for every owner, usage = held + stocked (G1), all deltas are
 * somewhere, at most high a CPU is stocked (G12), and the library says the same.
 */
void stress_check_books(void)
{
	static struct stocked stocked;
	int64_t held, asked, usage, settled, units, most;
	uint32_t owner;

	read_stocks(&stocked);
	for (owner = 1; owner <= stress.options.owners; owner++) {
		read_contexts(owner, &held, &asked);
		usage = atomic_load_explicit(&stress.usage[owner], memory_order_relaxed);
		settled = atomic_load_explicit(&stress.settled[owner], memory_order_relaxed);
		units = stocked.units[owner];
		most = (int64_t)stress.cache->nr_indices * stress.marks[owner].high;
		if (usage != held + units)
			stress_violation(UNITS_LOST, owner, held + units, usage);
		if (asked != settled + stocked.delta[owner])
			stress_violation(DELTA_LOST, owner, asked, settled + stocked.delta[owner]);
		if (stress.cache->engine == PCPC_ENGINE_RSEQ && units > most)
			stress_violation(ABOVE_HIGH, owner, most, units);
		if ((int64_t)pcpc_cache_stocked(stress.cache, owner) != units)
			stress_violation(UNITS_LOST, owner, units,
					 (int64_t)pcpc_cache_stocked(stress.cache, owner));
	}
}

/* After a last drain of everything. */
void stress_check_empty(void)
{
	uint32_t index, number, slot, owner;

	for (index = 0; index < stress.cache->nr_indices; index++)
		for (number = 0; number < stress.cache->stocks_per_cpu; number++)
			for (slot = 0; slot < PCPC_STOCK_SLOTS; slot++)
				if (stress_line(index, number)->slot[slot])
					stress_violation(
						LEFT_AFTER_DRAIN, 0, 0,
						(int64_t)stress_line(index, number)->slot[slot]);
	for (owner = 1; owner <= stress.options.owners; owner++)
		if (pcpc_cache_stocked(stress.cache, owner))
			stress_violation(LEFT_AFTER_DRAIN, owner, 0,
					 (int64_t)pcpc_cache_stocked(stress.cache, owner));
}
