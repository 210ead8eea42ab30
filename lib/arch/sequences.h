/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * sequences.h - the contract of the two per-CPU sequences, and who implements them here.
 *
 * Everything that happens in a stock is one of these two:
 *
 *	commit(place, stock, slot, old, new):
 *	    S1  this thread's index != place.index    -> ABORTED
 *	    S2  stock.gate != open                    -> CLOSED
 *	    S3  stock.slot[slot] != old               -> CHANGED
 *	    S4  stock.slot[slot] = new                -> DONE       the committing store
 *
 *	insert(place, stock, slot, old, new):
 *	    S1, S2, S3 as above
 *	    S3i any of the 7 words has new's owner    -> CHANGED
 *	    S4  stock.slot[slot] = new                -> DONE       the committing store
 *
 * What an implementation promises:
 *
 *  - S1 to S4 happen with no other thread running on that index in between: a thread that is
 *    preempted, migrated or interrupted by a signal before S4 has done nothing, and answers
 *    ABORTED. (generic.h has no index; see there.)
 *  - Nothing is stored but S4. Every answer but DONE means that the stock is as it was.
 *  - S2 is inside, not before: a drain closes the gate and then makes every sequence end that saw
 *    it open. A gate that was tested outside could close before the sequence begins. The load in S2
 *    is an acquire (pairs with the release that re-opens the gate, drain_round() in drain.c): S3
 *    must not see a word from before the drain.
 *  - S3i is inside for the same reason: two interrupted inserts would put one owner into two slots.
 *  - The gate is compared as its own four bytes.
 *  - A sequence does not retry; its caller does, PCPC_TRIES times at the most, and reads everything
 *    anew.
 *
 * An architecture file provides, for the restartable sequences,
 *
 *	uint32_t pcpc_rseq_index(place)
 *		the index now; with the top bit set in a thread that is not registered
 *	enum pcpc_outcome pcpc_rseq_commit_at(area, index, word, old, new)
 *		commit, to a slot that is known by its address
 *	enum pcpc_outcome pcpc_rseq_insert(place, stock, slot, old, new)
 *	void pcpc_rseq_leave(rseq)
 *		forget the last descriptor
 *
 * as always_inline functions, so that the extern and the inline fast path are one text. Rules for
 * whoever writes another: asm goto without outputs (gcc 12 miscompiles it with them); the
 * descriptor's address is stored by the instruction just before the start label, and the end label
 * stands just after the committing store; nothing that the section overwrites is needed after an
 * abort; section flags with `?`, or a C++ inline function in two objects does not link. The steps
 * stand in macros only so that a test can leave one out, put a delay between two, or compare twice,
 * and be seen to fail.
 */
#ifndef PCPCHARGE_ARCH_SEQUENCES_H
#define PCPCHARGE_ARCH_SEQUENCES_H

#include <pcpcharge/base.h>

/* ThreadSanitizer does not see into assembly. */
#ifndef PCPC_NO_RSEQ
#if defined(__SANITIZE_THREAD__)
#define PCPC_NO_RSEQ
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PCPC_NO_RSEQ
#endif
#endif
#endif

/* Between the steps: nothing; a test puts delays here. */
#ifndef PCPC_INJECT
#define PCPC_INJECT(point) ""
#endif

#if defined(PCPC_NO_RSEQ)
#define PCPC_HAVE_RSEQ 0
#elif defined(__x86_64__) && defined(__LP64__)
#define PCPC_HAVE_RSEQ 1
#include <pcpcharge/arch/x86_64.h>
#elif defined(__aarch64__) && defined(__LP64__) && defined(__AARCH64EL__)
#define PCPC_HAVE_RSEQ 1
#include <pcpcharge/arch/aarch64.h>
#else
#define PCPC_HAVE_RSEQ 0
#endif

#if PCPC_HAVE_RSEQ
static PCPC_ALWAYS_INLINE enum pcpc_outcome pcpc_rseq_commit(const struct pcpc_place *place,
							     struct pcpc_stock *stock,
							     uint32_t slot, pcpc_word old_word,
							     pcpc_word new_word)
{
	const struct pcpc_area area = { place->rseq, place->field };

	return pcpc_rseq_commit_at(&area, place->index, &stock->slot[slot], old_word, new_word);
}
#endif

#endif
