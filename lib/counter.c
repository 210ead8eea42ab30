// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * counter.c - the usage counter of one owner against its max.
 */
#include "owner_private.h"

/*
 * Takes amount if usage stays within max; then *ret_usage is the new usage. If it does not, there
 * was a moment at which amount did not fit: max is read before usage and after.
 *
 * Compare-and-exchange, so that an amount that does not fit is never seen by others. All
 * sequentially consistent: pairs with pcpc_owner_set_max(), which stores max and then reads usage,
 * while whoever takes something changes usage and must then look at max again. At least one of the
 * two sees the other.
 */
bool pcpc_counter_take(struct pcpc_books *books, uint64_t amount, uint64_t *ret_usage)
{
	uint64_t usage, max;

	for (;;) {
		max = atomic_load(&books->max);
		usage = atomic_load(&books->usage);
		if (amount > max || usage > max - amount) {
			if (atomic_load(&books->max) == max)
				return false;
		} else if (atomic_compare_exchange_weak(&books->usage, &usage, usage + amount)) {
			*ret_usage = usage + amount;
			return true;
		}
	}
}

/* Takes amount whatever max says; false only where the sum would pass PCPC_UNLIMITED. */
bool pcpc_counter_force(struct pcpc_books *books, uint64_t amount, uint64_t *ret_usage)
{
	uint64_t usage = atomic_load(&books->usage);

	do {
		if (usage > PCPC_UNLIMITED - amount)
			return false;
	} while (!atomic_compare_exchange_weak(&books->usage, &usage, usage + amount));
	*ret_usage = usage + amount;
	return true;
}

/*
 * Gives amount back, or what there is; returns how much that was. Sequentially consistent: pairs
 * with pcpc_charge_wait(), which says that it waits and then looks at usage, while this changes
 * usage and its caller then looks who waits.
 */
uint64_t pcpc_counter_give(struct pcpc_books *books, uint64_t amount, uint64_t *ret_usage)
{
	uint64_t usage = atomic_load_explicit(&books->usage, memory_order_relaxed), given;

	do {
		given = amount < usage ? amount : usage;
	} while (!atomic_compare_exchange_weak(&books->usage, &usage, usage - given));
	*ret_usage = usage - given;
	return given;
}

/* Relaxed: a maximum needs no order. */
void pcpc_counter_peak(struct pcpc_books *books, uint64_t usage)
{
	uint64_t peak = atomic_load_explicit(&books->peak, memory_order_relaxed);

	while (usage > peak &&
	       !atomic_compare_exchange_weak_explicit(&books->peak, &peak, usage,
						      memory_order_relaxed, memory_order_relaxed))
		;
}
