// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * drop_in.c - a program that has copied pcpcharge_stock.h and nothing else: seven owners, a hit, a
 * miss, a trim, an eviction and a bypass, with values worked out by hand (G1, and the table of
 * transitions in lib/DESIGN.md, section 4). C11 and C++17; with the primitives that the header
 * brings, and with the plain ones of pcpc_stock(3).
 */
#ifdef OWN_PRIMITIVES
#define PCPC_COMMIT(stock, slot, old_word, new_word) \
	((stock)->slot[slot] == (old_word) && ((stock)->slot[slot] = (new_word), true))
#define PCPC_INSERT PCPC_COMMIT
#endif
#include "pcpcharge_stock.h"

#include <stdio.h>

static int failed;

static void expect(const char *what, bool right)
{
	if (!right) {
		printf("%s\n", what);
		failed = 1;
	}
}

static bool holds(const struct pcpc_deferred *deferred, uint32_t owner, uint64_t count,
		  int64_t delta)
{
	return deferred->owner == owner && deferred->count == count && deferred->delta == delta;
}

static void one_owner(struct pcpc_stock *stock, const struct pcpc_marks *marks)
{
	struct pcpc_deferred deferred;

	expect("an empty stock serves nobody",
	       !pcpc_stock_consume(stock, 1, 1, 0, marks, &deferred) && holds(&deferred, 0, 0, 0));
	pcpc_stock_refill(stock, 1, 40, 0, marks, &deferred);
	expect("40 units are stocked",
	       stock->slot[0] == pcpc_word_make(1, 40, 0) && holds(&deferred, 0, 0, 0));
	expect("15 of them are used, and the delta moves",
	       pcpc_stock_consume(stock, 1, 15, -3, marks, &deferred) &&
		       stock->slot[0] == pcpc_word_make(1, 25, -3));
	pcpc_stock_refill(stock, 1, 40, -5, marks, &deferred);
	expect("65 are trimmed to 32, and the full delta is cleared",
	       stock->slot[0] == pcpc_word_make(1, 32, 0) && holds(&deferred, 1, 33, -8));
	pcpc_stock_refill(stock, 1, 65, 0, marks, &deferred);
	expect("more than high bypasses",
	       stock->slot[0] == pcpc_word_make(1, 32, 0) && holds(&deferred, 1, 65, 0));
}

static void eighth_owner(struct pcpc_stock *stock, const struct pcpc_marks *marks)
{
	struct pcpc_deferred deferred;
	uint32_t owner;

	for (owner = 2; owner <= 7; owner++)
		pcpc_stock_refill(stock, owner, owner, 0, marks, &deferred);
	expect("each in its home slot", stock->slot[6] == pcpc_word_make(7, 7, 0));
	pcpc_stock_refill(stock, 8, 5, 1, marks, &deferred);
	expect("the eighth evicts the first", stock->slot[0] == pcpc_word_make(8, 5, 1) &&
						      holds(&deferred, 1, 32, 0) &&
						      stock->hand == 1);
}

int main(void)
{
	static struct pcpc_stock stock;
	const struct pcpc_marks marks = { 64, 32, 8 };

	one_owner(&stock, &marks);
	eighth_owner(&stock, &marks);
	return failed;
}
