/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * x86_64.h - the sequences of sequences.h for x86-64. Included by that file only.
 *
 * The rseq area is reached as %fs:offset without loading the thread pointer. Its two offsets are
 * memory operands and the stock is found from the word: with five registers less in use, the extern
 * fast path has hardly any to save. Loads are not reordered with loads and stores not with stores,
 * so the acquire of S2 is a plain compare.
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
#define PCPC_STEP_INDEX                   \
	"movq %[field], %%rax\n\t"        \
	"cmpl %[index], %%fs:(%%rax)\n\t" \
	"jne %l[aborted]\n\t"
#endif
/* S2 */
#ifndef PCPC_STEP_GATE
#define PCPC_STEP_GATE            \
	"movq %[word], %%rax\n\t" \
	"andq $-64, %%rax\n\t"    \
	"cmpl $0, (%%rax)\n\t"    \
	"jne %l[closed]\n\t"
#endif
/* S3 */
#ifndef PCPC_STEP_WORD
#define PCPC_STEP_WORD                    \
	"cmpq %[old_word], (%[word])\n\t" \
	"jne %l[changed]\n\t"
#endif
/* S3i, for one slot */
#define PCPC_STEP_OWNER(offset)                 \
	"movq " #offset "(%[stock]), %%rax\n\t" \
	"shrq $44, %%rax\n\t"                   \
	"cmpq %[owner], %%rax\n\t"              \
	"je %l[changed]\n\t"
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

/*
 * One section. steps are what differs between commit and insert. The descriptor is version, flags,
 * start, length, abort address; it is writable because position-independent code relocates it. The
 * abort address is preceded by the signature, as the displacement of an instruction that traps if
 * it is ever run into.
 */
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
	"movq %[rseq], %%rcx\n\t"					\
	"leaq 3b(%%rip), %%rax\n\t"					\
	"movq %%rax, %%fs:8(%%rcx)\n\t"				\
	"1:\n\t"							\
	PCPC_INJECT(1) PCPC_STEP_INDEX					\
	PCPC_INJECT(2) PCPC_STEP_GATE					\
	PCPC_INJECT(3) steps						\
	PCPC_STEP_TWICE PCPC_INJECT(4)					\
	"movq %[new_word], (%[word])\n\t" /* S4: commits */		\
	PCPC_STEP_AFTER							\
	"2:\n\t"							\
	".pushsection __rseq_failure, \"ax?\"\n\t"			\
	".byte 0x0f, 0xb9, 0x3d\n\t"					\
	".long 0x53053053\n\t"						\
	"4:\n\t"							\
	"jmp %l[aborted]\n\t"						\
	".popsection\n\t"
/* clang-format on */

static PCPC_ALWAYS_INLINE uint32_t pcpc_rseq_index(const struct pcpc_place *place)
{
	uint32_t cpu, index;

	/* Volatile, for they change at any moment: advice that S1 confirms. mm_cid reads 0 in an
	 * unregistered thread, so the sign of cpu_id (4 bytes into the area) goes into the answer.
	 */
	__asm__ __volatile__("movl %%fs:4(%1), %0" : "=r"(cpu) : "r"(place->rseq));
	__asm__ __volatile__("movl %%fs:(%1), %0" : "=r"(index) : "r"(place->field));
	return index | (uint32_t)((int32_t)cpu >> 31);
}

/* Commit, to a word that is known by its address. */
static PCPC_ALWAYS_INLINE enum pcpc_outcome pcpc_rseq_commit_at(const struct pcpc_area *area,
								uint32_t index, pcpc_word *word,
								pcpc_word old_word,
								pcpc_word new_word)
{
	__asm__ goto(PCPC_SECTION(PCPC_STEP_WORD)
		     : /* no outputs */
		     : [rseq] "m"(area->rseq), [field] "m"(area->field), [index] "r"(index),
		       [word] "r"(word), [old_word] "r"(old_word), [new_word] "r"(new_word)
		     : "memory", "cc", "rax", "rcx"
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
	__asm__ goto(
		PCPC_SECTION(PCPC_STEP_WORD PCPC_STEP_OWNERS)
		: /* no outputs */
		: [rseq] "m"(place->rseq), [field] "m"(place->field), [index] "r"(place->index),
		  [stock] "r"(stock), [word] "r"(&stock->slot[slot]), [old_word] "r"(old_word),
		  [new_word] "r"(new_word), [owner] "r"(new_word >> PCPC_OWNER_SHIFT)
		: "memory", "cc", "rax", "rcx"
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
	__asm__ __volatile__("movq $0, %%fs:8(%0)" : : "r"(rseq) : "memory");
}
