/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * fault_support.h - what the tests of hostile surroundings share: a runner that knows skips, CPUs,
 * seccomp filters, children, and the inside of a cache.
 *
 * Every test runs in a process of its own (Check forks, whatever CK_FORK says), so that it may
 * leave filters, affinities and mounts behind.
 */
#ifndef FAULT_SUPPORT_H
#define FAULT_SUPPORT_H

#include <check.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <pcpcharge/cache.h>

#include "fault_ledger.h"

#if defined(__SANITIZE_THREAD__)
#define FAULT_TSAN
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FAULT_TSAN
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define FAULT_ASAN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FAULT_ASAN
#endif
#endif
#if defined(FAULT_TSAN) || defined(FAULT_ASAN)
#define FAULT_SANITIZED 1
#else
#define FAULT_SANITIZED 0
#endif

/* For a function that a sanitizer may call before it is ready for code it has instrumented. */
#if defined(__has_attribute)
#if __has_attribute(disable_sanitizer_instrumentation)
#define UNINSTRUMENTED __attribute__((disable_sanitizer_instrumentation))
#endif
#endif
#ifndef UNINSTRUMENTED
#define UNINSTRUMENTED
#endif

typedef void fork_handler(void);

/* Seconds after which a test is taken to hang, and its whole process group is killed. */
#define FAULT_TIMEOUT 40

/* Seconds that loops which only gain by repetition may take on a machine that is busy with other
 * things; else they end by their counts, much sooner. */
#define FAULT_SECONDS 10

/* A process that skips as a whole exits with this; Meson knows it. */
#define FAULT_SKIP 77

/* Leaves a test that does not fit this machine or build. */
#define SKIP_IF(condition, reason)                    \
	do {                                          \
		if (condition) {                      \
			fault_skip(__func__, reason); \
			return;                       \
		}                                     \
	} while (0)

void fault_skip(const char *test, const char *reason);

/* Runs all tests of a case. Returns the exit status: FAULT_SKIP if every one of them skipped. */
int fault_run(const char *name, TCase *tests);

/* A cache with that engine and index; engine and index must work here. */
struct pcpc_cache *make_cache(enum pcpc_engine engine, enum pcpc_index index);

/* The same with so many stocks a CPU, 0 for the default: few make owners of several groups share.
 */
struct pcpc_cache *make_cache_of(enum pcpc_engine engine, enum pcpc_index index, uint32_t stocks);

/* Makes a cache with books of its own, does a little of everything, to the unit, and destroys it.
 */
void use_fresh_cache(enum pcpc_engine engine);

/* The engine can be had in this process. */
bool engine_works(enum pcpc_engine engine);
bool mm_cid_works(void);

/* The nth CPU this process may run on, or -1. */
int allowed_cpu(unsigned int nth);
int last_allowed_cpu(void);

/* The calling thread, and where it was may be anywhere. */
void pin_to(int cpu);

/* Retries until the stock serves it, for a thread may be preempted in every try; false: it does not
 * after so many that this is not the reason. */
bool consume_hits(struct ledger *ledger, uint32_t owner, uint64_t count);

/* FAULT_SECONDS have not yet passed since this was first asked in this process. */
bool time_left(void);

/* Every gate of a cache is open. */
bool all_gates_open(const struct pcpc_cache *cache);

/* The sum of what slots hold for one owner as delta, while nobody moves it. */
int64_t stocked_delta(const struct pcpc_cache *cache, uint32_t owner);

/* A filter for this thread (flags 0) or for all of the process (SECCOMP_FILTER_FLAG_TSYNC), which
 * stays. False: not to be had here. */
bool install_filter(const struct sock_filter *code, size_t length, unsigned int flags);

/* membarrier answers this error from now on, in all threads. */
bool deny_membarrier(int error);

/* Exit status of a child, or 128 + its signal. Waits for it. */
int status_of(pid_t child);

/* Runs this program again with a role as its only argument, in the environment plus one variable
 * (NAME=value, or NULL). Before its exec the child calls prepare() unless NULL. */
int run_role(const char *role, char *variable, void (*prepare)(void));

/* From now on /sys/devices/system/cpu/possible reads like this, for this process. False: no right
 * to. */
bool show_possible_cpus(const char *list);

#endif
