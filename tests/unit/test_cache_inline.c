// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_cache_inline.c - the opt-in inline fast path: that it is used, and that an object with an
 * unknown layout shuts it for everybody, with operations as right as before.
 *
 * Linked with the library as programs are. Built twice, the second time with
 * PCPC_INLINE_UNLOADABLE. What the operations do is tested in test_cache_operations.c.
 */
#define _GNU_SOURCE
#define PCPC_INLINE
#include <pcpcharge/pcpcharge.h>

#include "unit_support.h"

#if PCPC_HAVE_RSEQ

extern const ptrdiff_t __rseq_offset __attribute__((weak));

/* This program's own descriptors, not those of the library. */
extern const char __start___rseq_cs[], __stop___rseq_cs[];

static const struct pcpc_marks marks = { .high = 64, .low = 32, .delta_batch = 64 };
static struct pcpc_cache *cache;
static struct pcpc_deferred deferred;

static void teardown(void)
{
	pcpc_cache_destroy(cache);
	cache = NULL;
}

static bool open_cache(enum pcpc_engine engine)
{
	ck_assert(unit_pin(0));
	cache = unit_cache(engine, 8);
	return cache != NULL;
}

static uint32_t limit(void)
{
	return ((const struct pcpc_fast *)(const void *)cache)->limit;
}

static uint32_t nr_cpus(void)
{
	struct pcpc_cache_stats stats = { .size = sizeof(stats) };

	ck_assert_int_eq(pcpc_cache_get_stats(cache, &stats), 0);
	return stats.nr_cpus;
}

/* What the thread's rseq_cs points at. */
static uintptr_t last_descriptor(void)
{
	const char *thread;

#ifdef __x86_64__
	__asm__("movq %%fs:0, %0" : "=r"(thread));
#else
	thread = __builtin_thread_pointer();
#endif
	return *(volatile const uint64_t *)(thread + __rseq_offset + 8);
}

static bool ours(uintptr_t descriptor)
{
	return descriptor >= (uintptr_t)__start___rseq_cs &&
	       descriptor < (uintptr_t)__stop___rseq_cs;
}

enum who { NOBODY, THIS_PROGRAM, THE_LIBRARY };

/* Whose sequence a hit ran last. Preemption clears the pointer, so a few attempts are made. */
static enum who who_served(bool consumes)
{
	uintptr_t descriptor;
	int tries;

	for (tries = 0; tries < 1000; tries++) {
		if (consumes)
			ck_assert(pcpc_cache_consume(cache, 1, 1, 0, &marks, &deferred));
		else
			pcpc_cache_refill(cache, 1, 1, 0, &marks, &deferred);
		descriptor = last_descriptor();
		ck_assert_uint_eq(deferred.owner, 0);
		if (consumes)
			pcpc_cache_refill(cache, 1, 1, 0, &marks, &deferred);
		else
			ck_assert(pcpc_cache_consume(cache, 1, 1, 0, &marks, &deferred));
		if (descriptor)
			return ours(descriptor) ? THIS_PROGRAM : THE_LIBRARY;
	}
	return NOBODY;
}

#ifdef PCPC_INLINE_UNLOADABLE
#define INLINED NOBODY /* it clears the pointer behind it */
#else
#define INLINED THIS_PROGRAM
#endif

/* cache.h: "Only the rseq engine has it". */
START_TEST(the_fast_path_is_open_in_the_rseq_engine_only)
{
	if (!open_cache(_i))
		return;
	ck_assert_uint_eq(limit(), _i == PCPC_ENGINE_RSEQ ? nr_cpus() : 0);
}
END_TEST

/* cache.h: "The two functions below are used in place of the library's." */
START_TEST(a_hit_runs_the_programs_own_sequence)
{
	if (!open_cache(PCPC_ENGINE_RSEQ))
		return;
	pcpc_cache_refill(cache, 1, 40, 0, &marks, &deferred);
	ck_assert_int_eq(who_served(true), INLINED);
	ck_assert_int_eq(who_served(false), INLINED);
}
END_TEST

/* cache.h: what is no plain hit is done by the library. */
START_TEST(what_is_no_hit_is_done_by_the_library)
{
	uintptr_t descriptor = 0;
	int tries;

	if (!open_cache(PCPC_ENGINE_RSEQ))
		return;
	for (tries = 0; tries < 1000 && !descriptor; tries++) {
		pcpc_cache_refill(cache, 1 + 7 * (uint32_t)tries, 5, 0, &marks, &deferred);
		descriptor = last_descriptor();
	}
	ck_assert_uint_ne(descriptor, 0);
	ck_assert(!ours(descriptor));
}
END_TEST

START_TEST(this_layout_changes_nothing)
{
	if (!open_cache(PCPC_ENGINE_RSEQ))
		return;
	pcpc_inline_register(PCPC_LAYOUT);
	ck_assert_uint_eq(limit(), nr_cpus());
}
END_TEST

/* cache.h: "If it is not this library's layout, the inlined fast paths of all objects are shut and
 * every operation is done by the library: slower, and right." Once for all: this test is last. */
START_TEST(an_unknown_layout_shuts_the_fast_path_of_all_caches)
{
	static const uint32_t layouts[] = { PCPC_LAYOUT + 1, PCPC_LAYOUT - 1, UINT32_MAX };
	struct pcpc_cache *older;

	if (!open_cache(PCPC_ENGINE_RSEQ))
		return;
	pcpc_cache_refill(cache, 1, 40, 0, &marks, &deferred);
	pcpc_inline_register(layouts[_i]);
	ck_assert_uint_eq(limit(), 0);
	ck_assert_int_eq(who_served(true), THE_LIBRARY);
	ck_assert_int_eq(who_served(false), THE_LIBRARY);
	ck_assert_uint_eq(pcpc_cache_stocked(cache, 1), 40);
	ck_assert(pcpc_cache_consume(cache, 1, 40, 0, &marks, &deferred));
	ck_assert(!pcpc_cache_consume(cache, 1, 1, 0, &marks, &deferred));
	/* also of caches that are made later, and the right layout does not open it again */
	older = cache;
	pcpc_inline_register(PCPC_LAYOUT);
	ck_assert(open_cache(PCPC_ENGINE_RSEQ));
	ck_assert_uint_eq(limit(), 0);
	pcpc_cache_refill(cache, 1, 40, 0, &marks, &deferred);
	ck_assert_int_eq(who_served(true), THE_LIBRARY);
	pcpc_cache_destroy(older);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("cache inline");
	TCase *tests = unit_case(suite, "inline");

	tcase_add_checked_fixture(tests, NULL, teardown);
	tcase_add_loop_test(tests, the_fast_path_is_open_in_the_rseq_engine_only, PCPC_ENGINE_RSEQ,
			    PCPC_ENGINE_ATOMIC + 1);
	tcase_add_test(tests, a_hit_runs_the_programs_own_sequence);
	tcase_add_test(tests, what_is_no_hit_is_done_by_the_library);
	tcase_add_test(tests, this_layout_changes_nothing);
	tcase_add_loop_test(tests, an_unknown_layout_shuts_the_fast_path_of_all_caches, 0, 3);
	return unit_run(suite);
}

#else

int main(void)
{
	unit_note("skipped: this build has no restartable sequences, so nothing is inlined");
	return UNIT_SKIP;
}

#endif
