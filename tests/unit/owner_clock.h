/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * owner_clock.h - a coarse clock that stands still until a test moves it: what the library does "at
 * most once in 100 ms" then happens when the test says so, on any machine.
 *
 * Replaces clock_gettime() of the program, so include it in one file of a program only.
 */
#ifndef PCPCHARGE_TESTS_OWNER_CLOCK_H
#define PCPCHARGE_TESTS_OWNER_CLOCK_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000ull

/* What the coarse clock shows, ns. It begins late enough for the first drain to be due. */
static _Atomic uint64_t coarse_now = 1000000 * MS;

int clock_gettime(clockid_t id, struct timespec *now)
{
	uint64_t coarse = atomic_load(&coarse_now);

	if (id != CLOCK_MONOTONIC_COARSE)
		return (int)syscall(SYS_clock_gettime, id, now);
	now->tv_sec = (time_t)(coarse / 1000000000u);
	now->tv_nsec = (long)(coarse % 1000000000u);
	return 0;
}

static inline void pass(uint64_t ns)
{
	atomic_fetch_add(&coarse_now, ns);
}

#endif
