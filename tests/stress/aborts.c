// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * aborts.c - does this kernel really abort restartable sequences?
 *
 *	aborts            each kind of disturbance must abort every sequence it falls into
 *	aborts --broken   the same without a descriptor: each must be seen to abort nothing
 *
 * The library's engine is right only where a sequence that is preempted, migrated, interrupted by a
 * signal, or fenced by a membarrier does not go on. (arm64 kernels 6.19 to 7.0.13 let it.) Here a
 * sequence waits, and watches a number that changes only after the disturbance that it is about: if
 * it ever sees the change, it was not aborted. Nothing depends on how long anything takes.
 */
#define _GNU_SOURCE
#include "percpu.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <pcpcharge/arch/sequences.h>

#define SKIPPED 77
#define WANTED 25  /* disturbed sequences of each kind */
#define TRIES 5000 /* to get them: sequences may also be aborted by others, or begin too late */
#define BUDGET (1ull << 31) /* loops a sequence waits: a second or so */
#define HEAD_START 2000	    /* loops a disturber leaves the sequence to begin: only saves tries */

#if PCPC_HAVE_RSEQ

enum end {
	ABORTED,
	SEEN,	/* went on after the disturbance */
	LATE,	/* had not begun when the disturbance did */
	EXPIRED /* waited in vain */
};

/*
 * Numbers of rounds: the last that main has asked for, the last whose disturbance has begun, the
 * last whose disturbance is over. Assembly reads them, so they are not of atomic type.
 */
static uint32_t asked, begun, over, committed;
static atomic_bool finished; /* relaxed: it only has to be seen at some time */
static pid_t main_thread;
static cpu_set_t cpus[2]; /* one CPU each; the same twice if there is only one */

/*
 * One sequence. It begins only if the disturbance of this round has not, and then waits for the end
 * of it. mask is all ones, or 0 for a null descriptor. The committing store is of no use but to be
 * one.
 */
static enum end wait_in_sequence(ptrdiff_t rseq, uint64_t mask, uint32_t round)
{
#if defined(__x86_64__)
	/* clang-format off */
	__asm__ goto(
		".pushsection __rseq_cs, \"aw?\"\n\t"
		".balign 32\n\t"
		"3:\n\t"
		".long 0, 0\n\t"
		".quad 1f, 2f - 1f, 4f\n\t"
		".popsection\n\t"
		".pushsection __rseq_cs_ptr_array, \"aw?\"\n\t"
		".quad 3b\n\t"
		".popsection\n\t"
		"leaq 3b(%%rip), %%rax\n\t"
		"andq %[mask], %%rax\n\t"
		"movq %%rax, %%fs:8(%[rseq])\n\t"
		"1:\n\t"
		"cmpl %[before], (%[begun])\n\t"
		"jne %l[late]\n\t"
		"movl (%[over]), %%ecx\n\t"
		"movq %[budget], %%rdx\n\t"
		"5:\n\t"
		"cmpl %%ecx, (%[over])\n\t"
		"jne %l[seen]\n\t"
		"decq %%rdx\n\t"
		"jnz 5b\n\t"
		"movl $1, (%[committed])\n\t"
		"2:\n\t"
		".pushsection __rseq_failure, \"ax?\"\n\t"
		".byte 0x0f, 0xb9, 0x3d\n\t"
		".long 0x53053053\n\t"
		"4:\n\t"
		"jmp %l[aborted]\n\t"
		".popsection\n\t"
		: /* no outputs */
		: [rseq] "r"(rseq), [mask] "r"(mask), [before] "r"(round - 1), [begun] "r"(&begun),
		  [over] "r"(&over), [budget] "r"(BUDGET), [committed] "r"(&committed)
		: "memory", "cc", "rax", "rcx", "rdx"
		: aborted, seen, late);
	/* clang-format on */
#else
	char *area = (char *)__builtin_thread_pointer() + rseq;

	/* clang-format off */
	__asm__ goto(
		".pushsection __rseq_cs, \"aw?\"\n\t"
		".balign 32\n\t"
		"3:\n\t"
		".long 0, 0\n\t"
		".quad 1f, 2f - 1f, 4f\n\t"
		".popsection\n\t"
		".pushsection __rseq_cs_ptr_array, \"aw?\"\n\t"
		".quad 3b\n\t"
		".popsection\n\t"
		"adrp x9, 3b\n\t"
		"add x9, x9, :lo12:3b\n\t"
		"and x9, x9, %[mask]\n\t"
		"str x9, [%[area], 8]\n\t"
		"1:\n\t"
		"ldar w9, [%[begun]]\n\t"
		"cmp w9, %w[before]\n\t"
		"b.ne %l[late]\n\t"
		"ldr w10, [%[over]]\n\t"
		"mov x11, %[budget]\n\t"
		"5:\n\t"
		"ldr w9, [%[over]]\n\t"
		"cmp w9, w10\n\t"
		"b.ne %l[seen]\n\t"
		"subs x11, x11, 1\n\t"
		"b.ne 5b\n\t"
		"mov w9, 1\n\t"
		"str w9, [%[committed]]\n\t"
		"2:\n\t"
		".pushsection __rseq_failure, \"ax?\"\n\t"
		".inst 0xd428bc00\n\t"
		"4:\n\t"
		"b %l[aborted]\n\t"
		".popsection\n\t"
		: /* no outputs */
		: [area] "r"(area), [mask] "r"(mask), [before] "r"(round - 1), [begun] "r"(&begun),
		  [over] "r"(&over), [budget] "r"(BUDGET), [committed] "r"(&committed)
		: "memory", "cc", "x9", "x10", "x11", "x16", "x17"
		: aborted, seen, late);
	/* clang-format on */
#endif
	return EXPIRED;
aborted:
	return ABORTED;
seen:
	return SEEN;
late:
	return LATE;
}

/* Acquire and release: asked, begun and over are handed to and fro between the two threads. */
static uint32_t read_word(const uint32_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static void write_word(uint32_t *word, uint32_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
}

/* Nothing: that it runs at all, on the CPU of the sequence, is the disturbance. */
static void preempt(uint32_t round)
{
	write_word(&over, round);
}

static void on_signal(int signal)
{
	(void)signal;
	write_word(&over, read_word(&begun));
}

static void send_signal(uint32_t round)
{
	(void)round;
	/* over is written by the handler. */
	syscall(SYS_tgkill, getpid(), main_thread, SIGUSR1);
}

static void fence(uint32_t round)
{
	if (pcpc_fence_sequences(-1) == 0)
		write_word(&over, round);
}

static void migrate(uint32_t round)
{
	if (sched_setaffinity(main_thread, sizeof(cpus[0]), &cpus[round % 2]) == 0)
		write_word(&over, round);
}

struct kind {
	const char *name;
	void (*disturb)(uint32_t round);
	int cpu; /* of the disturber: 0 that of the sequence, 1 another, -1 any */
	bool two_cpus, membarrier;
};

static const struct kind kinds[] = {
	{ "preempted", preempt, 0, false, false },
	{ "interrupted by a signal", send_signal, -1, false, false },
	{ "fenced by a membarrier", fence, 1, true, true },
	{ "migrated", migrate, -1, true, false },
};

static void *disturb(void *argument)
{
	const struct kind *kind = argument;
	volatile uint32_t head_start;
	uint32_t round;

	if (kind->cpu >= 0)
		(void)sched_setaffinity(0, sizeof(cpus[0]), &cpus[kind->cpu]);
	while (!atomic_load_explicit(&finished, memory_order_relaxed)) {
		round = read_word(&asked);
		if (round == begun) {
			if (kind->cpu)
				sched_yield();
			continue;
		}
		for (head_start = 0; kind->cpu && head_start < HEAD_START; head_start++)
			;
		write_word(&begun, round);
		kind->disturb(round);
		/* By now the sequence is aborted or has seen it; main asks again when it knows. */
	}
	return NULL;
}

struct tally {
	uint32_t aborted, seen, late, expired, other;
};

static uint32_t disturbed(const struct tally *tally)
{
	return tally->aborted + tally->seen;
}

static void run_rounds(ptrdiff_t rseq, uint64_t mask, struct tally *tally)
{
	uint32_t round;

	for (round = 1; round <= TRIES && disturbed(tally) < WANTED; round++) {
		write_word(&asked, round);
		switch (wait_in_sequence(rseq, mask, round)) {
		case ABORTED:
			/* By somebody else, where the disturbance had not even begun. */
			if (read_word(&begun) == round)
				tally->aborted++;
			else
				tally->other++;
			break;
		case SEEN:
			tally->seen++;
			break;
		case LATE:
			tally->late++;
			break;
		case EXPIRED:
			tally->expired++;
			break;
		}
		while (read_word(&over) != round)
			sched_yield();
	}
}

/* False: no thread to be had. */
static bool run_kind(const struct kind *kind, ptrdiff_t rseq, uint64_t mask, struct tally *tally)
{
	pthread_t thread;

	asked = begun = over = 0;
	*tally = (struct tally){ 0 };
	atomic_store_explicit(&finished, false, memory_order_relaxed);
	(void)sched_setaffinity(0, sizeof(cpus[0]), &cpus[0]);
	if (pthread_create(&thread, NULL, disturb, (void *)(uintptr_t)kind) != 0)
		return false;
	run_rounds(rseq, mask, tally);
	atomic_store_explicit(&finished, true, memory_order_relaxed);
	pthread_join(thread, NULL);
	printf("aborts: %s: %u aborted, %u went on (too late %u, aborted by others %u, "
	       "expired %u)\n",
	       kind->name, tally->aborted, tally->seen, tally->late, tally->other, tally->expired);
	return true;
}

/* Two CPUs for cpus[]. Returns how many there are, at most 2. */
static int choose_cpus(void)
{
	cpu_set_t allowed;
	int cpu, found = 0;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
		return 0;
	for (cpu = 0; cpu < CPU_SETSIZE && found < 2; cpu++)
		if (CPU_ISSET(cpu, &allowed))
			CPU_SET(cpu, &cpus[found++]);
	if (found == 1)
		cpus[1] = cpus[0];
	return found;
}

static int run(ptrdiff_t rseq, bool membarrier, bool broken)
{
	int nr_cpus = choose_cpus(), result = 0;
	struct tally tally;
	size_t i;

	if (!nr_cpus)
		return SKIPPED;
	main_thread = (pid_t)syscall(SYS_gettid);
	signal(SIGUSR1, on_signal);
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if ((kinds[i].two_cpus && nr_cpus < 2) || (kinds[i].membarrier && !membarrier)) {
			printf("aborts: %s: not tried, it cannot be had here\n", kinds[i].name);
			continue;
		}
		if (!run_kind(&kinds[i], rseq, broken ? 0 : UINT64_MAX, &tally))
			return SKIPPED;
		if ((broken ? tally.seen : tally.aborted) < WANTED)
			result = 1;
	}
	return result;
}

int main(int argc, char **argv)
{
	bool broken = argc > 1 && !strcmp(argv[1], "--broken");
	struct pcpc_rseq rseq;
	int result;

	pcpc_rseq_detect(&rseq);
	if (!rseq.registered) {
		printf("aborts: skipped: the C library has not registered rseq\n");
		return SKIPPED;
	}
	result = run(rseq.area, pcpc_fence_sequences(-1) == 0, broken);
	if (result == 1 && !broken && !rseq.sequences) {
		printf("aborts: skipped: this kernel does not abort, and the library knows it\n");
		return SKIPPED;
	}
	printf("aborts: %s\n", result ? "not as it must be" : "ok");
	return result;
}

#else

int main(void)
{
	printf("aborts: skipped: no restartable sequences in this build\n");
	return SKIPPED;
}

#endif
