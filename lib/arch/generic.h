/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * generic.h - commit and insert as C11 compare-and-exchange: the reference, the fallback, and what
 * sanitizers run.
 *
 * The contract is in sequences.h. Two things differ here. The index need not be right, since any
 * number of threads may work on one stock, and there is no gate, since a drain takes each word by
 * compare-and-exchange as well. And the words tested by an insert may change before its store, so
 * that racing inserts can put an owner into two slots; the next refill that sees it merges them
 * (pcpc_stock_search() in stock.h).
 *
 * Never used on words that other threads change in restartable sequences: an exchange between their
 * compare and their store is lost.
 */
#ifndef PCPCHARGE_ARCH_GENERIC_H
#define PCPCHARGE_ARCH_GENERIC_H

#include <pcpcharge/base.h>

/*
 * Acquire-release on success: whoever takes units from a word pairs with whoever put them there
 * (take_word() in drain.c and every other exchange of this word), so that what that thread did
 * before is seen too. Relaxed on failure: the caller reads again.
 */
static inline enum pcpc_outcome pcpc_atomic_commit(const struct pcpc_place *place,
						   struct pcpc_stock *stock, uint32_t slot,
						   pcpc_word old_word, pcpc_word new_word)
{
	(void)place;
	return __atomic_compare_exchange_n(&stock->slot[slot], &old_word, new_word, false,
					   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)
		       ? PCPC_DONE
		       : PCPC_CHANGED;
}

static inline enum pcpc_outcome pcpc_atomic_insert(const struct pcpc_place *place,
						   struct pcpc_stock *stock, uint32_t slot,
						   pcpc_word old_word, pcpc_word new_word)
{
	uint32_t other;

	for (other = 0; other < PCPC_STOCK_SLOTS; other++)
		if (PCPC_LOAD(stock->slot[other]) >> PCPC_OWNER_SHIFT ==
		    new_word >> PCPC_OWNER_SHIFT)
			return PCPC_CHANGED;
	return pcpc_atomic_commit(place, stock, slot, old_word, new_word);
}

#endif
