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

/* The layout of struct pcpc_fast and of a stock. The place of limit never changes, whatever this
 * number is. */
#define PCPC_LAYOUT 1u

/* What a fast path reads of a cache, one line that nobody writes after the cache is made. */
struct pcpc_fast {
	uint32_t limit;	 /* indices below this may use the fast path; 0 shuts it: the one word that
			    can change */
	uint32_t mask;	 /* stocks of one index, less one */
	uint64_t stride; /* bytes of one index's stocks */
	ptrdiff_t rseq;	 /* see struct pcpc_place */
	ptrdiff_t field; /* cpu_id or mm_cid */
	struct pcpc_stock *stocks; /* index 0 */
} __attribute__((aligned(64)));

/* Owner id to stock number: (id - 1) / 7, by a multiplication that is exact for every 20-bit id. */
static inline uint32_t pcpc_owner_group(uint32_t owner)
{
	return (uint32_t)((owner - 1u) * (uint64_t)613566757u >> 32);
}

/* The stock of an owner at one index, which must be in range. */
static PCPC_ALWAYS_INLINE struct pcpc_stock *pcpc_fast_stock(const struct pcpc_fast *fast,
							     uint32_t index, uint32_t group)
{
	return (struct pcpc_stock *)((char *)fast->stocks + index * fast->stride) +
	       (group & fast->mask);
}

#if PCPC_HAVE_RSEQ

/* How a fast path ended. After FAST_UNFIT nothing was tried; after FAST_FAILED the commit did not
 * succeed. Neither has changed anything. */
enum pcpc_fast_end { PCPC_FAST_DONE, PCPC_FAST_UNFIT, PCPC_FAST_FAILED };

/* The word of a slot before and after: all that is needed to tell what was asked for. */
struct pcpc_fast_words {
	pcpc_word was, will;
};

/* Keeps the compiler from merging comparisons into arithmetic: a predicted branch each is cheaper.
 */
#define PCPC_FAST_REQUIRE(condition)             \
	do {                                     \
		if (PCPC_UNLIKELY(!(condition))) \
			return PCPC_FAST_UNFIT;  \
		__asm__ __volatile__("");        \
	} while (0)

/* The delta_batch up to which the sum of a delta in a slot and one below the batch cannot come
 * round the 22-bit field. */
#define PCPC_FAST_BATCH_MAX (1u << 20)

/*
 * The steps that consume and refill share: add to the count (as bits of a word, modulo 2^64) and to
 * the delta, and commit. What a full delta or too few units leave to the slow path is told by one
 * comparison each; the word itself is only added to, so that the next operation on it need not wait
 * for the checks.
 */
static PCPC_ALWAYS_INLINE enum pcpc_fast_end
pcpc_fast_operate(const struct pcpc_fast *fast, uint32_t owner, bool consume, uint64_t count,
		  int64_t delta, const struct pcpc_marks *marks, struct pcpc_fast_words *ret_words)
{
	struct pcpc_place place = { fast->rseq, fast->field, 0 };
	uint32_t batch = marks->delta_batch, group, slot;
	enum pcpc_outcome outcome;
	struct pcpc_stock *stock;
	pcpc_word was, will;

	PCPC_FAST_REQUIRE(pcpc_owner_valid(owner));
	PCPC_FAST_REQUIRE(count <= PCPC_COUNT_MAX);
	PCPC_FAST_REQUIRE(batch - 1u < PCPC_FAST_BATCH_MAX);
	PCPC_FAST_REQUIRE((uint64_t)delta + batch - 1 < 2 * (uint64_t)batch - 1);
	place.index = pcpc_rseq_index(&place);
	PCPC_FAST_REQUIRE(place.index < PCPC_LOAD(fast->limit));
	group = pcpc_owner_group(owner);
	slot = owner - 1u - group * PCPC_STOCK_SLOTS;
	stock = pcpc_fast_stock(fast, place.index, group);
	was = PCPC_LOAD(stock->slot[slot]);
	PCPC_FAST_REQUIRE(pcpc_word_owner(was) == owner);
	if (consume)
		PCPC_FAST_REQUIRE(pcpc_word_count(was) >= count);
	else
		PCPC_FAST_REQUIRE(pcpc_word_count(was) + count <= marks->high);
	/* -batch < sum < batch, in the arithmetic of the field */
	PCPC_FAST_REQUIRE((((uint32_t)was + (uint32_t)delta + batch - 1) & PCPC_DELTA_MASK) <
			  2 * batch - 1);
	will = consume ? was - (count << PCPC_COUNT_SHIFT) : was + (count << PCPC_COUNT_SHIFT);
	will ^= (was ^ (was + (uint64_t)delta)) & PCPC_DELTA_MASK;
	PCPC_HOOK(SEARCHED);
	outcome = pcpc_rseq_commit(&place, stock, slot, was, will);
#ifdef PCPC_INLINE_UNLOADABLE
	pcpc_rseq_leave(&place);
#endif
	ret_words->was = was;
	ret_words->will = will;
	return outcome == PCPC_DONE ? PCPC_FAST_DONE : PCPC_FAST_FAILED;
}

static PCPC_ALWAYS_INLINE enum pcpc_fast_end
pcpc_fast_consume(const struct pcpc_fast *fast, uint32_t owner, uint64_t count, int64_t delta,
		  const struct pcpc_marks *marks, struct pcpc_fast_words *ret_words)
{
	return pcpc_fast_operate(fast, owner, true, count, delta, marks, ret_words);
}

static PCPC_ALWAYS_INLINE enum pcpc_fast_end
pcpc_fast_refill(const struct pcpc_fast *fast, uint32_t owner, uint64_t count, int64_t delta,
		 const struct pcpc_marks *marks, struct pcpc_fast_words *ret_words)
{
	PCPC_FAST_REQUIRE(marks->high - 1u < PCPC_COUNT_MAX);
	PCPC_FAST_REQUIRE(marks->low <= marks->high);
	return pcpc_fast_operate(fast, owner, false, count, delta, marks, ret_words);
}

#endif

#endif
