// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * bench_crew.c - a second thread that starts its work at the same moment as the first.
 *
 * Both spin until the other is seen to run, so that on a busy machine a slice begins only when both
 * have their CPU. Who waits long gives way, for others work on these CPUs too.
 */
#define _GNU_SOURCE
#include "bench.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

double bench_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

void bench_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		fprintf(stderr, "%s: cannot stay on CPU %d\n", program_invocation_short_name, cpu);
}

static void relax(unsigned int *spins)
{
	if (++*spins % 4096 == 0)
		sched_yield();
#if defined(__x86_64__)
	__builtin_ia32_pause();
#endif
}

/* Acquire, and release where these are stored: what the other did before is seen. */
static void wait_for(_Atomic uint32_t *word, uint32_t value)
{
	unsigned int spins = 0;

	while (atomic_load_explicit(word, memory_order_acquire) != value)
		relax(&spins);
}

static void *crew_thread(void *argument)
{
	struct bench_crew *crew = argument;
	uint32_t turn;

	bench_pin(crew->cpu);
	for (turn = 1;; turn++) {
		wait_for(&crew->called, turn);
		if (!crew->work)
			return NULL;
		atomic_store_explicit(&crew->ready, turn, memory_order_release);
		wait_for(&crew->started, turn);
		crew->work(crew->argument);
		atomic_store_explicit(&crew->done, turn, memory_order_release);
	}
}

int bench_crew_open(struct bench_crew *crew, int cpu)
{
	*crew = (struct bench_crew){ .cpu = cpu };
	return -pthread_create(&crew->thread, NULL, crew_thread, crew);
}

static uint32_t call(struct bench_crew *crew, void (*work)(void *argument), void *argument)
{
	crew->work = work;
	crew->argument = argument;
	return atomic_fetch_add_explicit(&crew->called, 1, memory_order_release) + 1;
}

void bench_crew_begin(struct bench_crew *crew, void (*work)(void *argument), void *argument)
{
	uint32_t turn = call(crew, work, argument);

	wait_for(&crew->ready, turn);
	atomic_store_explicit(&crew->started, turn, memory_order_release);
}

void bench_crew_end(struct bench_crew *crew)
{
	/* Relaxed: only this thread stores it. */
	wait_for(&crew->done, atomic_load_explicit(&crew->called, memory_order_relaxed));
}

void bench_crew_close(struct bench_crew *crew)
{
	call(crew, NULL, NULL);
	pthread_join(crew->thread, NULL);
}
