/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * aarch64.h - the sequences of sequences.h for 64-bit Arm, little-endian. Included by that file
 * only.
 *
 * S2 is a load-acquire: without it the load of S3 could be satisfied with a word from before a
 * drain although S2 sees the gate that this drain has opened again, and the committing store would
 * bring drained units back.
 */
#ifndef PCPCHARGE_ARCH_SEQUENCES_H
#error "include arch/sequences.h"
#endif

/* Before the section (empty; a test puts a misplaced step here). */
#ifndef PCPC_STEP_BEFORE
#define PCPC_STEP_BEFORE ""
#endif
/* S1 */
#ifndef PCPC_STEP_INDEX
#define PCPC_STEP_INDEX          \
	"ldr w9, [%[field]]\n\t" \
	"cmp w9, %w[index]\n\t"  \
	"b.ne %l[aborted]\n\t"
#endif
/* S2; pairs with the release that re-opens the gate, drain_round() in drain.c */
#ifndef PCPC_STEP_GATE
#define PCPC_STEP_GATE             \
	"and x9, %[word], -64\n\t" \
	"ldar w9, [x9]\n\t"        \
	"cbnz w9, %l[closed]\n\t"
#endif
/* S3 */
#ifndef PCPC_STEP_WORD
#define PCPC_STEP_WORD            \
	"ldr x9, [%[word]]\n\t"   \
	"cmp x9, %[old_word]\n\t" \
	"b.ne %l[changed]\n\t"
#endif
/* S3i, for one slot */
#define PCPC_STEP_OWNER(offset)               \
	"ldr x9, [%[stock], " #offset "]\n\t" \
	"lsr x9, x9, 44\n\t"                  \
	"cmp x9, %[owner]\n\t"                \
	"b.eq %l[changed]\n\t"
#ifndef PCPC_STEP_OWNERS
#define PCPC_STEP_OWNERS    \
	PCPC_STEP_OWNER(8)  \
	PCPC_STEP_OWNER(16) \
	PCPC_STEP_OWNER(24) \
	PCPC_STEP_OWNER(32) \
	PCPC_STEP_OWNER(40) \
	PCPC_STEP_OWNER(48) \
	PCPC_STEP_OWNER(56)
#endif
/* Compare again before the store (empty; a test build does, and traps on a difference). */
#ifndef PCPC_STEP_TWICE
#define PCPC_STEP_TWICE ""
#endif
/* Between S4 and the end label: nothing. */
#ifndef PCPC_STEP_AFTER
#define PCPC_STEP_AFTER ""
#endif

/* One section; see x86_64.h. The signature is a BRK in code byte order. The branch back may go
 * through a veneer, so x16 and x17 are clobbered. */
/* clang-format off */
#define PCPC_SECTION(steps)						\
	".pushsection __rseq_cs, \"aw?\"\n\t"				\
	".balign 32\n\t"						\
	"3:\n\t"							\
	".long 0, 0\n\t"						\
	".quad 1f, 2f - 1f, 4f\n\t"					\
	".popsection\n\t"						\
	".pushsection __rseq_cs_ptr_array, \"aw?\"\n\t"			\
	".quad 3b\n\t"							\
	".popsection\n\t"						\
	PCPC_STEP_BEFORE						\
	"adrp x9, 3b\n\t"						\
	"add x9, x9, :lo12:3b\n\t"					\
	"str x9, [%[area], 8]\n\t"					\
	"1:\n\t"							\
	PCPC_INJECT(1) PCPC_STEP_INDEX					\
	PCPC_INJECT(2) PCPC_STEP_GATE					\
	PCPC_INJECT(3) steps						\
	PCPC_STEP_TWICE PCPC_INJECT(4)					\
	"str %[new_word], [%[word]]\n\t" /* S4: commits */		\
	PCPC_STEP_AFTER							\
	"2:\n\t"							\
	".pushsection __rseq_failure, \"ax?\"\n\t"			\
	".inst 0xd428bc00\n\t"						\
	"4:\n\t"							\
	"b %l[aborted]\n\t"						\
	".popsection\n\t"
/* clang-format on */

static PCPC_ALWAYS_INLINE char *pcpc_rseq_pointer(ptrdiff_t offset)
{
	return (char *)__builtin_thread_pointer() + offset;
}

static PCPC_ALWAYS_INLINE uint32_t pcpc_rseq_index(const struct pcpc_place *place)
{
	/* Volatile, for they change at any moment: advice that S1 confirms. mm_cid reads 0 in an
	 * unregistered thread, so the sign of cpu_id (4 bytes into the area) goes into the answer.
	 */
	int32_t cpu = *(volatile int32_t *)pcpc_rseq_pointer(place->rseq + 4);

	return *(volatile uint32_t *)pcpc_rseq_pointer(place->field) | (uint32_t)(cpu >> 31);
}

/* Commit, to a word that is known by its address. */
static PCPC_ALWAYS_INLINE enum pcpc_outcome pcpc_rseq_commit_at(const struct pcpc_area *area,
								uint32_t index, pcpc_word *word,
								pcpc_word old_word,
								pcpc_word new_word)
{
	__asm__ goto(PCPC_SECTION(PCPC_STEP_WORD)
		     : /* no outputs */
		     : [area] "r"(pcpc_rseq_pointer(area->rseq)),
		       [field] "r"(pcpc_rseq_pointer(area->field)), [index] "r"(index),
		       [word] "r"(word), [old_word] "r"(old_word), [new_word] "r"(new_word)
		     : "memory", "cc", "x9", "x16", "x17"
		     : aborted, closed, changed);
	return PCPC_DONE;
aborted:
	return PCPC_ABORTED;
closed:
	return PCPC_CLOSED;
changed:
	return PCPC_CHANGED;
}

static PCPC_ALWAYS_INLINE enum pcpc_outcome pcpc_rseq_insert(const struct pcpc_place *place,
							     struct pcpc_stock *stock,
							     uint32_t slot, pcpc_word old_word,
							     pcpc_word new_word)
{
	__asm__ goto(PCPC_SECTION(PCPC_STEP_WORD PCPC_STEP_OWNERS)
		     : /* no outputs */
		     : [area] "r"(pcpc_rseq_pointer(place->rseq)),
		       [field] "r"(pcpc_rseq_pointer(place->field)), [index] "r"(place->index),
		       [stock] "r"(stock), [word] "r"(&stock->slot[slot]), [old_word] "r"(old_word),
		       [new_word] "r"(new_word), [owner] "r"(new_word >> PCPC_OWNER_SHIFT)
		     : "memory", "cc", "x9", "x16", "x17"
		     : aborted, closed, changed);
	return PCPC_DONE;
aborted:
	return PCPC_ABORTED;
closed:
	return PCPC_CLOSED;
changed:
	return PCPC_CHANGED;
}

static PCPC_ALWAYS_INLINE void pcpc_rseq_leave(ptrdiff_t rseq)
{
	*(volatile uint64_t *)pcpc_rseq_pointer(rseq + 8) = 0;
}
