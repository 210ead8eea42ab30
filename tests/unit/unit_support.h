/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * unit_support.h - what the unit and model tests share: running a suite, seeds and random numbers,
 * pinning, the engines that can be had here.
 *
 * Test programs only. The functions are inline so that a test is one file.
 */
#ifndef PCPCHARGE_TESTS_UNIT_SUPPORT_H
#define PCPCHARGE_TESTS_UNIT_SUPPORT_H

#ifndef _GNU_SOURCE
#error "define _GNU_SOURCE first"
#endif

#include <check.h>
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define UNIT_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define UNIT_SANITIZED 1
#endif
#endif
#ifndef UNIT_SANITIZED
#define UNIT_SANITIZED 0
#endif

#if defined(__SANITIZE_THREAD__)
#define UNIT_THREAD_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNIT_THREAD_SANITIZED 1
#endif
#endif
#ifndef UNIT_THREAD_SANITIZED
#define UNIT_THREAD_SANITIZED 0
#endif

#define UNIT_SKIP 77
#define UNIT_TIMEOUT 300 /* seconds for one test: only a hang needs as long */

/* Text that a passing run leaves in the log: seeds, and what could not be tested here. */
__attribute__((format(printf, 1, 2))) static inline void unit_note(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	putchar('\n');
	fflush(stdout);
}

static inline int unit_run(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	int failed;

	fflush(stdout);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

static inline TCase *unit_case(Suite *suite, const char *name)
{
	TCase *tests = tcase_create(name);

	tcase_set_timeout(tests, UNIT_TIMEOUT);
	suite_add_tcase(suite, tests);
	return tests;
}

/* A number from the environment, or the one given. */
static inline uint64_t unit_knob(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

/* PCPC_SEED, or a new one; in both cases it is printed. */
static inline uint64_t unit_seed(void)
{
	struct timespec now;
	uint64_t seed;

	clock_gettime(CLOCK_REALTIME, &now);
	seed = (uint64_t)now.tv_sec * 1000000007u + (uint64_t)now.tv_nsec * 31u +
	       (uint64_t)getpid();
	seed = unit_knob("PCPC_SEED", seed);
	unit_note("PCPC_SEED=0x%" PRIx64, seed);
	return seed;
}

/* splitmix64: good enough, and any state is a good one. */
static inline uint64_t unit_random(uint64_t *state)
{
	uint64_t value = *state += 0x9e3779b97f4a7c15u;

	value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
	value = (value ^ value >> 27) * 0x94d049bb133111ebu;
	return value ^ value >> 31;
}

static inline uint64_t unit_below(uint64_t *state, uint64_t bound)
{
	return unit_random(state) % bound;
}

/* Keeps the calling thread on one CPU: the nth of those it may run on. False: there is none. */
static inline bool unit_pin(int nth)
{
	cpu_set_t allowed, one;
	int cpu;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
		return false;
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &allowed) && nth-- == 0)
			break;
	if (cpu == CPU_SETSIZE)
		return false;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	return sched_setaffinity(0, sizeof(one), &one) == 0;
}

/* The test by each engine; _i says which. */
#define by_each_engine(tests, function) \
	tcase_add_loop_test(tests, function, PCPC_ENGINE_RSEQ, PCPC_ENGINE_ATOMIC + 1)

/* Lets the calling thread run wherever the program may, after unit_pin(). */
static inline void unit_stand_anywhere(void)
{
	cpu_set_t allowed;

	ck_assert_int_eq(sched_getaffinity(getppid(), sizeof(allowed), &allowed), 0);
	ck_assert_int_eq(sched_setaffinity(0, sizeof(allowed), &allowed), 0);
}

#ifdef PCPCHARGE_CACHE_H

static inline const char *unit_engine_name(enum pcpc_engine engine)
{
	return engine == PCPC_ENGINE_RSEQ     ? "rseq"
	       : engine == PCPC_ENGINE_ATOMIC ? "atomic"
					      : "auto";
}

/*
 * A cache with an engine and a number of stocks, its index the CPU number. NULL, and a note, where
 * that engine cannot be had; test_cache_create.c has a test that this is so only where it must be.
 */
static inline struct pcpc_cache *unit_cache(enum pcpc_engine engine, uint32_t stocks_per_cpu)
{
	const struct pcpc_cache_config config = {
		.size = sizeof(config),
		.engine = engine,
		.index = PCPC_INDEX_CPU,
		.stocks_per_cpu = stocks_per_cpu,
	};
	struct pcpc_cache *cache = NULL;
	int r = pcpc_cache_create(&config, &cache);

	if (r == -ENOSYS && engine == PCPC_ENGINE_RSEQ) {
		unit_note("not tested: no %s engine here", unit_engine_name(engine));
		return NULL;
	}
	ck_assert_int_eq(r, 0);
	ck_assert_ptr_nonnull(cache);
	return cache;
}

#endif

#endif
