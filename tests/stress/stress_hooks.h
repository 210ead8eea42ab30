/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * stress_hooks.h - what the injection build, the compare-twice build and the broken twins put into
 * the library's sequences.
 *
 * Given to the compiler by -include, before every source of the library: so it includes nothing
 * itself, for they define _GNU_SOURCE first. The functions behind it are in stress_inject.c.
 *
 * Each TWIN_ macro takes one thing out that the design says is needed, and the stress program must
 * then find what it is needed for. The delays are drawn anew before every sequence (stress_hook()),
 * and a twin draws those longer that widen the window it has opened.
 */
#ifndef STRESS_HOOKS_H
#define STRESS_HOOKS_H

/* Loops to spend: before a section, after its steps 1 to 4 (PCPC_INJECT), after its committing
 * store, and between a comparison and its repetition. */
enum { STRESS_SPIN_BEFORE = 0, STRESS_SPIN_AFTER = 5, STRESS_SPIN_TWICE = 6, STRESS_SPINS = 7 };
extern _Thread_local __UINT32_TYPE__ stress_spin[STRESS_SPINS];

enum stress_point { STRESS_SEARCHED, STRESS_EVICTED };
void stress_hook(enum stress_point point);
int stress_fence(int cpu);
void stress_store_header(void *stock, __UINT32_TYPE__ next);

#define PCPC_HOOK(point) stress_hook(STRESS_##point)
#define PCPC_FENCE(cpu) stress_fence(cpu)

/* A delay as assembly text. Uses the scratch register the sequences leave free, and numeric labels
 * that they do not use. */
#if defined(__x86_64__)
/* clang-format off */
#define STRESS_SPIN(n)						\
	"movl %%fs:stress_spin@tpoff+4*" #n ", %%eax\n\t"	\
	"testl %%eax, %%eax\n\t"				\
	"jz 6f\n\t"						\
	"5:\n\t"						\
	"decl %%eax\n\t"					\
	"jnz 5b\n\t"						\
	"6:\n\t"
/* clang-format on */
#elif defined(__aarch64__)
/* clang-format off */
#define STRESS_SPIN(n)						\
	"mrs x9, tpidr_el0\n\t"					\
	"add x9, x9, :tprel_hi12:stress_spin, lsl 12\n\t"	\
	"add x9, x9, :tprel_lo12_nc:stress_spin\n\t"		\
	"ldr w9, [x9, 4 * " #n "]\n\t"				\
	"cbz w9, 6f\n\t"					\
	"5:\n\t"						\
	"subs w9, w9, 1\n\t"					\
	"b.ne 5b\n\t"						\
	"6:\n\t"
/* clang-format on */
#else
#define STRESS_SPIN(n) ""
#endif

#define PCPC_INJECT(point) STRESS_SPIN(point)

/* S1 and S3 once more, after a delay; a trap if one of them would now answer something else. */
#ifdef STRESS_TWICE
#if defined(__x86_64__)
/* clang-format off */
#define PCPC_STEP_TWICE				\
	STRESS_SPIN(6)						\
	"movq %[field], %%rax\n\t"			\
	"cmpl %[index], %%fs:(%%rax)\n\t"		\
	"jne 7f\n\t"					\
	"cmpq %[old_word], (%[word])\n\t"		\
	"je 8f\n\t"					\
	"7:\n\t"					\
	"ud2\n\t"					\
	"8:\n\t"
/* clang-format on */
#elif defined(__aarch64__)
/* clang-format off */
#define PCPC_STEP_TWICE				\
	STRESS_SPIN(6)						\
	"ldr w9, [%[field]]\n\t"			\
	"cmp w9, %w[index]\n\t"				\
	"b.ne 7f\n\t"					\
	"ldr x9, [%[word]]\n\t"				\
	"cmp x9, %[old_word]\n\t"			\
	"b.eq 8f\n\t"					\
	"7:\n\t"					\
	"brk 1\n\t"					\
	"8:\n\t"
/* clang-format on */
#endif
#endif

/* S2 before the section: the gate closes, and the fence comes and goes, after it was looked at. */
#ifdef TWIN_GATE_BEFORE
#if defined(__x86_64__)
#define PCPC_STEP_BEFORE          \
	"movq %[word], %%rax\n\t" \
	"andq $-64, %%rax\n\t"    \
	"cmpl $0, (%%rax)\n\t"    \
	"jne %l[closed]\n\t" STRESS_SPIN(0)
#elif defined(__aarch64__)
#define PCPC_STEP_BEFORE           \
	"and x9, %[word], -64\n\t" \
	"ldar w9, [x9]\n\t"        \
	"cbnz w9, %l[closed]\n\t" STRESS_SPIN(0)
#endif
#define PCPC_STEP_GATE ""
#endif

/* No S1: a thread that was moved works on the stock of the CPU it came from. */
#ifdef TWIN_NO_INDEX
#define PCPC_STEP_INDEX ""
#endif

/* The end label behind one more instruction (and a delay before that, for it takes long to be
 * interrupted at one given instruction): a sequence that has committed is aborted and done again.
 */
#ifdef TWIN_LATE_END
#define PCPC_STEP_AFTER STRESS_SPIN(5) "nop\n\t"
#endif

/* The hand stored together with the gate: a gate that was closed meanwhile is open again. */
#ifdef TWIN_WIDE_HAND
#define PCPC_STORE_HAND(stock, next) stress_store_header((stock), (next))
#endif

/* No S3i: whoever was interrupted before its insert does not see that it was made meanwhile. */
#ifdef TWIN_NO_OWNERS
#define PCPC_STEP_OWNERS ""
#endif

/* TWIN_NO_FENCE (no membarrier) is in stress_fence(), TWIN_INTRUDER (one thread that uses
 * compare-and-exchange among restartable sequences) in intrude(), both in stress_inject.c. */

#endif
