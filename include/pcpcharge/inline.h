/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * inline.h - the fast path of a cache: a hit in the owner's home slot that defers nothing.
 *
 * The library's own functions are built from this text, and cache.h includes it where a program
 * asks for PCPC_INLINE. What it reads of a cache is then part of that program, so it carries a
 * layout number. Everything that is not a plain hit (trim, cleared delta, insert, evict, another
 * slot than home, bad arguments, the atomic engine) answers false, having changed nothing, and is
 * done again out of line.
 */
#ifndef PCPCHARGE_INLINE_H
#define PCPCHARGE_INLINE_H

#include <pcpcharge/base.h>
#include <pcpcharge/stock.h>
#include <pcpcharge/arch/sequences.h>

/* The layout of struct pcpc_fast and of a stock. limit and area never move, whatever this number
 * is: an object of another layout reads them before it finds limit to be 0. */
#define PCPC_LAYOUT 1u

/* What a fast path reads of a cache: one line, and but for the limit nobody writes it once the
 * cache is made. */
struct pcpc_fast {
	uint32_t limit;	       /* indices below this may use the fast path; 0 shuts it */
	uint32_t mask;	       /* words of one index's stocks, less one */
	struct pcpc_area area; /* cpu_id or mm_cid */
	uint64_t stride;       /* bytes of one index's stocks */
	pcpc_word *words;      /* the stocks of index 0 */
} __attribute__((aligned(64)));

PCPC_STATIC_ASSERT(offsetof(struct pcpc_fast, limit) == 0 && offsetof(struct pcpc_fast, area) == 8,
		   "older inlined code finds these two here");

/* Owner id to stock number: (id - 1) / 7, by a multiplication that is exact for every 20-bit id. */
static inline uint32_t pcpc_owner_group(uint32_t owner)
{
	return (uint32_t)((owner - 1u) * (uint64_t)613566757u >> 32);
}

/*
 * An owner's home word at one index, which must be in range. A stock is eight words, the first of
 * them gate and hand, so slot s of stock g is word 8 g + s + 1; and g = (id - 1) / 7,
 * s = id - 1 - 7 g make that id + g.
 */
static PCPC_ALWAYS_INLINE pcpc_word *pcpc_fast_word(const struct pcpc_fast *fast, uint32_t index,
						    uint32_t owner)
{
	pcpc_word *words = (pcpc_word *)((char *)fast->words + index * fast->stride);

	return words + ((owner + pcpc_owner_group(owner)) & fast->mask);
}

#if PCPC_HAVE_RSEQ

/*
 * How a fast path ended; only DONE has changed anything. UNFIT found an argument that it does not
 * serve. FAILED had the new word ready, but the old one did not suit or the commit did not succeed.
 */
enum pcpc_fast_end { PCPC_FAST_DONE, PCPC_FAST_UNFIT, PCPC_FAST_FAILED };

/* Keeps the compiler from merging comparisons into arithmetic: a predicted branch each is cheaper.
 */
#define PCPC_FAST_REQUIRE(condition, otherwise)       \
	do {                                          \
		if (PCPC_UNLIKELY(!(condition)))      \
			return PCPC_FAST_##otherwise; \
		__asm__ __volatile__("");             \
	} while (0)

static PCPC_ALWAYS_INLINE uint32_t pcpc_fast_index(const struct pcpc_fast *fast)
{
	const struct pcpc_place place = { fast->area.rseq, fast->area.field, 0 };

	return pcpc_rseq_index(&place);
}

/*
 * What a word of the owner holds if there is no delta in it: rotated so that the delta stands above
 * the count, any owner's id but this one's and any delta but 0 make it larger than a count can be.
 */
static PCPC_ALWAYS_INLINE uint64_t pcpc_fast_count(pcpc_word word, uint32_t owner)
{
	uint64_t rest = word - ((pcpc_word)owner << PCPC_OWNER_SHIFT);

	return rest >> PCPC_COUNT_SHIFT | rest << (64 - PCPC_COUNT_SHIFT);
}

static PCPC_ALWAYS_INLINE enum pcpc_fast_end pcpc_fast_commit(const struct pcpc_fast *fast,
							      uint32_t index, pcpc_word *word,
							      pcpc_word was, pcpc_word will)
{
	enum pcpc_outcome outcome;

	PCPC_HOOK(SEARCHED);
	outcome = pcpc_rseq_commit_at(&fast->area, index, word, was, will);
#ifdef PCPC_INLINE_UNLOADABLE
	pcpc_rseq_leave(fast->area.rseq);
#endif
	return outcome == PCPC_DONE ? PCPC_FAST_DONE : PCPC_FAST_FAILED;
}

/*
 * Consume, with no delta asked for and none in the word: then none can be full. Each
 * check is one comparison off the path from the word's load to its store, so that the next
 * operation on the same word need not wait for them. After FAILED, *ret_change is how the word
 * would have changed, from which count can be had: so count needs no register of its own.
 */
static PCPC_ALWAYS_INLINE enum pcpc_fast_end pcpc_fast_consume(const struct pcpc_fast *fast,
							       uint32_t owner, uint64_t count,
							       const struct pcpc_marks *marks,
							       pcpc_word *ret_change)
{
	pcpc_word *word, was, will;
	uint32_t index;

	PCPC_FAST_REQUIRE(pcpc_owner_valid(owner), UNFIT);
	PCPC_FAST_REQUIRE(count <= PCPC_COUNT_MAX, UNFIT);
	PCPC_FAST_REQUIRE(marks->delta_batch <= (uint32_t)PCPC_DELTA_MAX, UNFIT);
	index = pcpc_fast_index(fast);
	PCPC_FAST_REQUIRE(index < PCPC_LOAD(fast->limit), UNFIT);
	word = pcpc_fast_word(fast, index, owner);
	was = PCPC_LOAD(*word);
	will = was - (count << PCPC_COUNT_SHIFT);
	*ret_change = was - will;
	/* count <= what is there <= PCPC_COUNT_MAX, in one comparison. (Looking at will instead
	 * would take a word of owner + 1 for this owner's: too few units borrow from the id.) */
	PCPC_FAST_REQUIRE(pcpc_fast_count(was, owner) - count <= PCPC_COUNT_MAX - count, FAILED);
	return pcpc_fast_commit(fast, index, word, was, will);
}

/* Refill, on the same terms. A high of 0 passes only where there is nothing to put. */
static PCPC_ALWAYS_INLINE enum pcpc_fast_end pcpc_fast_refill(const struct pcpc_fast *fast,
							      uint32_t owner, uint64_t count,
							      const struct pcpc_marks *marks,
							      pcpc_word *ret_change)
{
	pcpc_word *word, was, will;
	uint32_t index;

	PCPC_FAST_REQUIRE(pcpc_owner_valid(owner), UNFIT);
	PCPC_FAST_REQUIRE(count <= marks->high, UNFIT);
	PCPC_FAST_REQUIRE(marks->high <= PCPC_COUNT_MAX, UNFIT);
	PCPC_FAST_REQUIRE(marks->low <= marks->high, UNFIT);
	PCPC_FAST_REQUIRE(marks->delta_batch <= (uint32_t)PCPC_DELTA_MAX, UNFIT);
	index = pcpc_fast_index(fast);
	PCPC_FAST_REQUIRE(index < PCPC_LOAD(fast->limit), UNFIT);
	word = pcpc_fast_word(fast, index, owner);
	was = PCPC_LOAD(*word);
	will = was + (count << PCPC_COUNT_SHIFT);
	*ret_change = will - was;
	PCPC_FAST_REQUIRE(pcpc_fast_count(was, owner) <= marks->high - count, FAILED);
	return pcpc_fast_commit(fast, index, word, was, will);
}

#endif

#endif
