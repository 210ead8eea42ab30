// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * out_of_range.c - a thread whose index is not one of the cache's, and a thread whose rseq area is
 * not registered.
 *
 * "A thread that finds itself unregistered (or an index out of range) bypasses the stock"
 * (DESIGN.md section 6). In an unregistered thread the area is plain memory, so any index can be
 * put there.
 */
#define _GNU_SOURCE
#include "fault_support.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cache_private.h"

#ifndef AT_RSEQ_FEATURE_SIZE
#define AT_RSEQ_FEATURE_SIZE 27
#endif
#ifndef AT_RSEQ_ALIGN
#define AT_RSEQ_ALIGN 28
#endif
#define RSEQ_FLAG_UNREGISTER 1
#ifdef __aarch64__
#define SIGNATURE 0xd428bc00u
#else
#define SIGNATURE 0x53053053u
#endif

extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

static unsigned long registered_size; /* what unregister() found to be right */

static char *area(void)
{
	return (char *)__builtin_thread_pointer() + __rseq_offset;
}

static volatile uint32_t *field(size_t offset)
{
	return (volatile uint32_t *)(void *)(area() + offset);
}

static bool registered(void)
{
	return &__rseq_size && &__rseq_offset && __rseq_size && (int32_t)*field(4) >= 0;
}

/* The C library does not tell with which size it registered: the original 32, what the kernel
 * features need, or that rounded up to the alignment. */
static bool unregister(void)
{
	unsigned long feature = getauxval(AT_RSEQ_FEATURE_SIZE), align = getauxval(AT_RSEQ_ALIGN);
	unsigned long sizes[4] = { 32, feature, __rseq_size, 0 };
	uint32_t i;

	if (align)
		sizes[3] = (feature + align - 1) / align * align;
	for (i = 0; i < 4; i++) {
		if (!sizes[i] ||
		    syscall(SYS_rseq, area(), (uint32_t)sizes[i], RSEQ_FLAG_UNREGISTER, SIGNATURE))
			continue;
		registered_size = sizes[i];
		return true;
	}
	return false;
}

static void register_again(void)
{
	MUST(syscall(SYS_rseq, area(), (uint32_t)registered_size, 0, SIGNATURE) == 0);
}

static struct ledger ledger;

/* Nothing is served, nothing is taken, every unit comes back. */
static void must_bypass(int64_t stocked)
{
	int64_t out = atomic_load(&ledger.out[1]);

	MUST(!ledger_consume(&ledger, 1, 1, 0));
	MUST(!ledger_consume(&ledger, 1, 0, 1));
	MUST((int64_t)pcpc_cache_stocked(ledger.cache, 1) == stocked);
	ledger_stock(&ledger, 1, 10, 1);
	MUST(atomic_load(&ledger.out[1]) == out);
	MUST(atomic_load(&ledger.settled[1]) == atomic_load(&ledger.moved[1]));
	MUST((int64_t)pcpc_cache_stocked(ledger.cache, 1) == stocked);
}

static const enum pcpc_index indices[] = { PCPC_INDEX_CPU, PCPC_INDEX_MM_CID };

/* Alone in its process, so its mm_cid is 0, which is also what an unregistered thread reads. */
START_TEST(unregistered_thread_bypasses_and_comes_back)
{
	SKIP_IF(!engine_works(PCPC_ENGINE_RSEQ), "no rseq engine");
	SKIP_IF(indices[_i] == PCPC_INDEX_MM_CID && !mm_cid_works(), "no mm_cid");
	/* On the first CPU: where the kernel writes 0, that is a stock with something in it. */
	pin_to(allowed_cpu(0));
	ledger_init(&ledger, make_cache(PCPC_ENGINE_RSEQ, indices[_i]));
	ledger_stock(&ledger, 1, 30, 0);
	ck_assert(consume_hits(&ledger, 1, 1));
	ledger_refill(&ledger, 1, 1, 0);
	SKIP_IF(!unregister(), "the area cannot be unregistered");
	must_bypass(30);
	/* It may drain: that is a matter of membarrier, not of its own area. */
	ck_assert_int_eq(ledger_drain(&ledger), 0);
	must_bypass(0);
	register_again();
	ledger_stock(&ledger, 1, 30, 0);
	ck_assert_uint_eq(pcpc_cache_stocked(ledger.cache, 1), 30);
	ck_assert(consume_hits(&ledger, 1, 30));
	ledger_refill(&ledger, 1, 30, 0);
	ledger_must_end_empty(&ledger);
	pcpc_cache_destroy(ledger.cache);
}
END_TEST

static void *charge_unregistered(void *unused)
{
	struct walker walker = { .ledger = &ledger, .first_owner = 1, .nr_owners = 7, .random = 9 };
	uint32_t i;

	(void)unused;
	if (!unregister())
		return NULL;
	for (i = 0; i < 20000; i++)
		walker_step(&walker);
	walker_finish(&walker);
	register_again();
	for (i = 0; i < 20000; i++)
		walker_step(&walker);
	walker_finish(&walker);
	return &ledger;
}

/* The same beside registered threads on the same owners (G1). */
START_TEST(unregistered_threads_beside_registered_ones)
{
	struct walker walker = { .ledger = &ledger, .first_owner = 1, .nr_owners = 7, .random = 4 };
	pthread_t threads[3];
	bool skip = false;
	void *done;
	uint32_t i;

	SKIP_IF(!engine_works(PCPC_ENGINE_RSEQ), "no rseq engine");
	SKIP_IF(indices[_i] == PCPC_INDEX_MM_CID && !mm_cid_works(), "no mm_cid");
	ledger_init(&ledger, make_cache(PCPC_ENGINE_RSEQ, indices[_i]));
	for (i = 0; i < 3; i++)
		ck_assert(!pthread_create(&threads[i], NULL, charge_unregistered, NULL));
	for (i = 0; i < 50000; i++) {
		walker_step(&walker);
		if (i % 500 == 0)
			ck_assert_int_eq(ledger_drain(&ledger), 0);
	}
	walker_finish(&walker);
	for (i = 0; i < 3; i++) {
		pthread_join(threads[i], &done);
		skip |= !done;
	}
	ledger_must_end_empty(&ledger);
	pcpc_cache_destroy(ledger.cache);
	SKIP_IF(skip, "the area cannot be unregistered");
}
END_TEST

/* Design section 6: the atomic engine's index is sticky where the area tells none. */
START_TEST(atomic_engine_serves_an_unregistered_thread)
{
	SKIP_IF(!registered(), "the C library registers no rseq area here");
	ledger_init(&ledger, make_cache(PCPC_ENGINE_ATOMIC, PCPC_INDEX_CPU));
	SKIP_IF(!unregister(), "the area cannot be unregistered");
	ledger_stock(&ledger, 1, 30, 0);
	ck_assert(ledger_consume(&ledger, 1, 30, 0));
	ledger_refill(&ledger, 1, 30, 0);
	register_again();
	ledger_must_end_empty(&ledger);
	pcpc_cache_destroy(ledger.cache);
}
END_TEST

/* Design section 6, detection: what an unregistered thread creates is atomic, and RSEQ is refused.
 */
START_TEST(cache_of_an_unregistered_thread_is_atomic)
{
	SKIP_IF(!registered(), "the C library registers no rseq area here");
	SKIP_IF(!unregister(), "the area cannot be unregistered");
	ck_assert(!engine_works(PCPC_ENGINE_RSEQ));
	ledger_init(&ledger, make_cache(PCPC_ENGINE_AUTO, PCPC_INDEX_AUTO));
	ck_assert_int_eq(pcpc_cache_engine(ledger.cache), PCPC_ENGINE_ATOMIC);
	ledger_stock(&ledger, 1, 30, 0);
	register_again();
	ledger_must_end_empty(&ledger);
	pcpc_cache_destroy(ledger.cache);
}
END_TEST

/* rseq.md 0.7: kernels from 6.19 to 7.0.6 leave 0xffffffff in both CPU fields. */
static const uint32_t strange[] = { 0xffffffffu, 0xfffffffeu, 0x80000000u,
				    0x7fffffffu, 0x10000,     0 /* the first one out of range */ };

START_TEST(index_beyond_the_last_bypasses)
{
	uint32_t index = strange[_i];

	SKIP_IF(!engine_works(PCPC_ENGINE_RSEQ), "no rseq engine");
	pin_to(allowed_cpu(0));
	ledger_init(&ledger, make_cache(PCPC_ENGINE_RSEQ, PCPC_INDEX_CPU));
	ledger_stock(&ledger, 1, 30, 0);
	SKIP_IF(!unregister(), "the area cannot be unregistered");
	*field(0) = *field(4) = index ? index : ledger.cache->nr_indices;
	must_bypass(30);
	register_again();
	ledger_must_end_empty(&ledger);
	pcpc_cache_destroy(ledger.cache);
}
END_TEST

/* The same for a registered thread: a cache that has stocks for fewer CPUs than there are. */
START_TEST(cpu_beyond_the_last_index_bypasses)
{
	struct pcpc_cache *cache;
	int first = allowed_cpu(0), last = last_allowed_cpu();

	SKIP_IF(!engine_works(PCPC_ENGINE_RSEQ), "no rseq engine");
	SKIP_IF(first == last, "needs two CPUs");
	cache = make_cache(PCPC_ENGINE_RSEQ, PCPC_INDEX_CPU);
	ledger_init(&ledger, cache);
	pin_to(first);
	ledger_stock(&ledger, 1, 30, 0);
	cache->nr_indices = (uint32_t)last;
	cache->fast.limit = cache->fast_inline.limit = (uint32_t)last;
	pin_to(last);
	must_bypass(30);
	cache->nr_indices = (uint32_t)last + 1;
	ledger_must_end_empty(&ledger);
	pcpc_cache_destroy(cache);
}
END_TEST

static void *walk(void *seed)
{
	struct walker walker = {
		.ledger = &ledger, .first_owner = 1, .nr_owners = 7, .random = (uintptr_t)seed
	};
	uint32_t i;

	for (i = 0; i < 20000; i++)
		walker_step(&walker);
	walker_finish(&walker);
	return NULL;
}

/* Threads that wander between CPUs inside and outside of the range (G1). */
START_TEST(wandering_in_and_out_of_range_loses_nothing)
{
	pthread_t threads[4];
	uint32_t i;

	SKIP_IF(!engine_works(PCPC_ENGINE_RSEQ), "no rseq engine");
	SKIP_IF(last_allowed_cpu() == 0, "needs a CPU that is not the first");
	ledger_init(&ledger, make_cache(PCPC_ENGINE_RSEQ, PCPC_INDEX_CPU));
	ledger.cache->nr_indices = (uint32_t)last_allowed_cpu();
	ledger.cache->fast.limit = ledger.cache->fast_inline.limit = ledger.cache->nr_indices;
	for (i = 0; i < 4; i++)
		ck_assert(!pthread_create(&threads[i], NULL, walk, (void *)(uintptr_t)(i + 1)));
	for (i = 0; i < 100; i++)
		ck_assert_int_eq(ledger_drain(&ledger), 0);
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	ledger_must_end_empty(&ledger);
	pcpc_cache_destroy(ledger.cache);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("out of range");

	unsetenv("PCPC_ENGINE");
	tcase_add_loop_test(tests, unregistered_thread_bypasses_and_comes_back, 0, 2);
	tcase_add_loop_test(tests, unregistered_threads_beside_registered_ones, 0, 2);
	tcase_add_test(tests, atomic_engine_serves_an_unregistered_thread);
	tcase_add_test(tests, cache_of_an_unregistered_thread_is_atomic);
	tcase_add_loop_test(tests, index_beyond_the_last_bypasses, 0,
			    sizeof(strange) / sizeof(strange[0]));
	tcase_add_test(tests, cpu_beyond_the_last_index_bypasses);
	tcase_add_test(tests, wandering_in_and_out_of_range_loses_nothing);
	return fault_run("fault", tests);
}
