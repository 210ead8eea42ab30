/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * malloc_support.h - what the tests of libpcpcharge-malloc.so share.
 *
 * Each program is built three times: linked with the library; not, to have it preloaded, for which
 * the library's function is declared weak; and with the library's sources inside, under names that
 * begin with charged_, over whatever allocator the program has, which may be a sanitizer's. A
 * program that finds no domain has failed: then nothing was tested.
 */
#ifndef MALLOC_SUPPORT_H
#define MALLOC_SUPPORT_H

#include <check.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <unistd.h>

#include <pcpcharge/pcpcharge.h>

#include "pcpcharge_malloc.h"

#pragma weak pcpc_malloc_domain

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

/* What a block costs, by malloc_block.h: the size rounded up to 16, at least 16, and 16. */
#define COST(size) ((((size_t)(size) + !(size) + 15) & ~(size_t)15) + 16)

/* Ends the test, or the program. Check's own assertions allocate, and so change what they look at.
 */
#define MUST(condition)                                                 \
	do {                                                            \
		if (!(condition))                                       \
			must_have_been(__FILE__, __LINE__, #condition); \
	} while (0)

static inline _Noreturn void must_have_been(const char *file, int line, const char *condition)
{
	dprintf(STDERR_FILENO, "%s:%d: not so: %s\n", file, line, condition);
	_exit(1);
}

/* The domain; its address must not be known to the compiler to be there. */
static inline struct pcpc_domain *domain_of_malloc(void)
{
	struct pcpc_domain *(*volatile function)(void) = pcpc_malloc_domain;
	struct pcpc_domain *domain = function ? function() : NULL;

	if (!domain) {
		fprintf(stderr, "libpcpcharge-malloc.so is not there, or has no domain\n");
		_Exit(1);
	}
	return domain;
}

/* A tenant below the process, or below another one, that nobody works for yet. max 0: no limit. */
static inline struct pcpc_owner *tenant_below(struct pcpc_owner *parent, uint64_t max)
{
	struct pcpc_owner_config config = { .size = sizeof(config), .name = "tenant", .max = max };
	struct pcpc_owner *owner;

	MUST(pcpc_owner_create(parent, &config, &owner) == 0);
	return owner;
}

static inline struct pcpc_owner *tenant(uint64_t max)
{
	return tenant_below(pcpc_domain_root(domain_of_malloc()), max);
}

static inline struct pcpc_owner *work_for(struct pcpc_owner *owner)
{
	return pcpc_set_active(domain_of_malloc(), owner);
}

#define HELD(owner) pcpc_owner_usage_exact(owner)

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define UNDER_SANITIZER true
#elif defined(__has_feature)
#define UNDER_SANITIZER (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define UNDER_SANITIZER false
#endif

/* The optimiser may not drop a block because nobody looks at it. */
static inline void *seen(void *block)
{
	__asm__ volatile("" : "+r"(block) : : "memory");
	return block;
}

static inline void fill(void *block, size_t size)
{
	unsigned char *byte = block;

	for (size_t i = 0; i < size; i++)
		byte[i] = (unsigned char)(i * 7 + 1);
}

static inline bool is_filled(const void *block, size_t size)
{
	const unsigned char *byte = block;

	for (size_t i = 0; i < size; i++)
		if (byte[i] != (unsigned char)(i * 7 + 1))
			return false;
	return true;
}

/* Chains blocks through their first word, until one is refused. Returns how many there were. */
static inline size_t allocate_until_refused(size_t size, void ***chain)
{
	size_t count = 0;
	void **block;

	while ((block = seen(malloc(size)))) {
		*block = *chain;
		*chain = block;
		count++;
	}
	return count;
}

static inline void free_chain(void **chain)
{
	void **next;

	for (; chain; chain = next) {
		next = *chain;
		free(chain);
	}
}

/* Runs a case; each test in a process of its own. Returns the exit status. */
static inline int run_case(const char *name, TCase *tests)
{
	Suite *suite = suite_create(name);
	SRunner *runner;
	int failed;

	(void)domain_of_malloc();
	tcase_set_timeout(tests, 120);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_set_fork_status(runner, CK_FORK);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}

#endif
