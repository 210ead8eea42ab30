/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * owner_stress.h - what the stress programs of owners share: options, random numbers, time, and how
 * they say that something is wrong.
 *
 *	PROGRAM rseq|atomic [--seed N] [--threads N] [--seconds S] [--forks N]
 *
 * PCPC_SEED, PCPC_STRESS_THREADS, PCPC_STRESS_SECONDS and PCPC_FORKS in the environment do the same
 * (the last one only where there are forks, and before the argument). Exit
 *status: 0 nothing was found wrong and enough has happened to say so; 1 something was, or too
 *little has happened; 77 this machine cannot run it.
 */
#ifndef OWNER_STRESS_H
#define OWNER_STRESS_H

#ifndef _GNU_SOURCE
#error "define _GNU_SOURCE first"
#endif

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "owner_private.h"

#define SKIPPED 77

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* It kills children that start threads, and holds signals back until a thread makes a call. */
#if defined(__SANITIZE_THREAD__)
#define THREAD_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define THREAD_SANITIZED 1
#endif
#endif
#ifndef THREAD_SANITIZED
#define THREAD_SANITIZED 0
#endif

struct options {
	enum pcpc_engine engine;
	uint64_t seed;
	uint32_t threads, forks;
	double seconds;
};

/* splitmix64 */
static inline uint64_t random_of(uint64_t *state)
{
	uint64_t value = *state += 0x9e3779b97f4a7c15u;

	value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
	value = (value ^ value >> 27) * 0x94d049bb133111ebu;
	return value ^ value >> 31;
}

static inline uint64_t below(uint64_t *state, uint64_t bound)
{
	return random_of(state) % bound;
}

static inline double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static inline double knob(const char *name, double otherwise)
{
	const char *text = getenv(name);

	return text && *text ? strtod(text, NULL) : otherwise;
}

static inline uint64_t some_seed(void)
{
	const char *text = getenv("PCPC_SEED");
	struct timespec time;

	if (text && *text)
		return strtoull(text, NULL, 0);
	clock_gettime(CLOCK_REALTIME, &time);
	return (uint64_t)time.tv_sec * 1000000007u + (uint64_t)time.tv_nsec;
}

/* False: an argument nobody knows. */
static inline bool read_options(int argc, char **argv, struct options *options)
{
	static const struct option known[] = {
		{ "seed", 1, NULL, 'r' },  { "threads", 1, NULL, 't' }, { "seconds", 1, NULL, 's' },
		{ "forks", 1, NULL, 'f' }, { NULL, 0, NULL, 0 },
	};
	int option;

	options->seed = some_seed();
	options->threads = (uint32_t)knob("PCPC_STRESS_THREADS", options->threads);
	options->seconds = knob("PCPC_STRESS_SECONDS", options->seconds);
	while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
		if (option == 'r')
			options->seed = strtoull(optarg, NULL, 0);
		else if (option == 't')
			options->threads = (uint32_t)strtoul(optarg, NULL, 0);
		else if (option == 's')
			options->seconds = strtod(optarg, NULL);
		else if (option == 'f')
			options->forks = (uint32_t)knob("PCPC_FORKS", strtod(optarg, NULL));
		else
			return false;
	}
	if (optind != argc - 1)
		return false;
	options->engine = strcmp(argv[optind], "atomic") ? PCPC_ENGINE_RSEQ : PCPC_ENGINE_ATOMIC;
	return options->engine == PCPC_ENGINE_ATOMIC || !strcmp(argv[optind], "rseq");
}

static inline const char *engine_name(enum pcpc_engine engine)
{
	return engine == PCPC_ENGINE_RSEQ ? "rseq" : "atomic";
}

/* How often something was found wrong; in owner_poison.c. */
extern _Atomic uint32_t violations;

/* Tells of it, the first few times, in one write: other threads and children do the same. */
__attribute__((format(printf, 1, 2))) static inline void violation(const char *format, ...)
{
	char text[256];
	va_list arguments;
	int length;

	if (atomic_fetch_add(&violations, 1) >= 20)
		return;
	va_start(arguments, format);
	length = vsnprintf(text, sizeof(text) - 1, format, arguments);
	va_end(arguments);
	if (length > (int)sizeof(text) - 2)
		length = (int)sizeof(text) - 2;
	text[length] = '\n';
	(void)!write(STDOUT_FILENO, text, (size_t)length + 1);
}

/* What the rest cannot do without. */
#define MUST(condition)                                                                         \
	do {                                                                                    \
		if (!(condition)) {                                                             \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
			_exit(1);                                                               \
		}                                                                               \
	} while (0)

/* owner_poison.c: from now on owners of this domain are looked at when a sweep frees them (no
 * units, no reference, no word in any slot, and what freed() says), then their books are filled
 * with a pattern, and whoever writes there is found out when the id is used again or at the end. */
void poison_begin(struct pcpc_domain *domain, void (*freed)(struct pcpc_owner *owner));
void poison_end(void);
extern bool poison_asan; /* tell AddressSanitizer too, which ends the program at once */

#endif
