// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_cache_memory.c - what a cache costs: address space, resident memory; and how its figures are
 * asked for.
 */
#define _GNU_SOURCE
#include "cache_private.h"
#include "unit_support.h"

static const struct pcpc_marks marks = { .high = 64, .low = 32, .delta_batch = 64 };

static struct pcpc_cache_stats stats_of(struct pcpc_cache *cache)
{
	struct pcpc_cache_stats stats = { .size = sizeof(stats) };

	ck_assert_int_eq(pcpc_cache_get_stats(cache, &stats), 0);
	return stats;
}

static bool match_all(uint32_t owner, void *context)
{
	(void)owner;
	(void)context;
	return true;
}

static void forget(const struct pcpc_deferred *deferred, void *context)
{
	(void)deferred;
	(void)context;
}

/* Section 5: "default 4,096: 256 KiB of address space a CPU". */
START_TEST(a_cpu_takes_256_kib_of_address_space)
{
	struct pcpc_cache *cache = unit_cache(_i, 0);
	size_t stocks;

	if (!cache)
		return;
	stocks = 4096 * 64 * (size_t)cache->nr_indices;
	ck_assert_uint_eq(cache->fast.stride, 256 * 1024);
	ck_assert_uint_eq(cache->mapped - cache->stocks_offset, stocks);
	/* and all the rest, the drain's buffer included, is below that of one CPU */
	ck_assert_uint_lt(cache->stocks_offset, 256 * 1024);
	pcpc_cache_destroy(cache);
}
END_TEST

/* Section 5: "touched lazily ... Unused lines are never touched and cost no memory." */
START_TEST(a_fresh_cache_occupies_no_memory)
{
	struct pcpc_cache *cache = unit_cache(_i, 0);
	struct pcpc_deferred deferred;

	if (!cache)
		return;
	ck_assert_uint_eq(stats_of(cache).bytes_resident, 0);
	/* nor by looking, nor by what bypasses */
	ck_assert_uint_eq(pcpc_cache_stocked(cache, 1), 0);
	ck_assert_int_eq(pcpc_cache_drain(cache, match_all, forget, NULL), 0);
	pcpc_cache_refill(cache, 1, 65, 0, &marks, &deferred);
	ck_assert_uint_eq(deferred.count, 65);
	ck_assert_uint_eq(stats_of(cache).bytes_resident, 0);
	pcpc_cache_destroy(cache);
}
END_TEST

/* Section 5: "a process with seven owners uses one line a CPU, one with 1,000 uses 143". */
START_TEST(memory_is_in_proportion_to_the_owners)
{
	static const uint32_t crowds[] = { 1, 7, 448, 449, 1000, 20000 };
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct pcpc_deferred deferred;
	struct pcpc_cache *cache;
	uint64_t lines, pages;
	uint32_t owner;
	size_t i;

	ck_assert(unit_pin(0));
	for (i = 0; i < sizeof(crowds) / sizeof(crowds[0]); i++) {
		cache = unit_cache(_i, 0);
		if (!cache)
			return;
		for (owner = 1; owner <= crowds[i]; owner++) {
			pcpc_cache_refill(cache, owner, 1, 0, &marks, &deferred);
			ck_assert_uint_eq(deferred.owner, 0);
		}
		lines = (crowds[i] + 6) / 7;
		pages = (lines * 64 + page - 1) / page;
		ck_assert_uint_eq(stats_of(cache).bytes_resident, pages * page);
		pcpc_cache_destroy(cache);
	}
}
END_TEST

/* Section 5 and bug H3: every stock of every CPU is a line of its own. */
START_TEST(every_stock_is_aligned)
{
	static const uint32_t sizes[] = { 1, 2, 4, 64, 4096 };
	struct pcpc_cache *cache;
	uint32_t index, owner;
	size_t i;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		cache = unit_cache(_i, sizes[i]);
		if (!cache)
			return;
		ck_assert_uint_eq((uintptr_t)cache % 64, 0);
		for (index = 0; index < cache->nr_indices; index++)
			for (owner = 1; owner < 60; owner += 7)
				ck_assert_uint_eq(
					(uintptr_t)pcpc_cache_stock(cache, index, owner) % 64, 0);
		pcpc_cache_destroy(cache);
	}
}
END_TEST

/* Section 5: "Owner id belongs to stock (id - 1) / 7 mod nr_stocks and its home slot there is
 * (id - 1) mod 7": for every id there can be. */
START_TEST(every_owner_is_at_the_home_the_design_gives_it)
{
	static const uint32_t sizes[] = { 1, 2, 4096, 262144 };
	struct pcpc_cache *cache;
	struct pcpc_stock *stocks, *stock;
	uint32_t owner;
	size_t i;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		cache = unit_cache(_i, sizes[i]);
		if (!cache)
			return;
		stocks = pcpc_cache_stock(cache, 0, 1);
		for (owner = 1; owner <= PCPC_OWNER_MAX; owner++) {
			stock = stocks + (owner - 1) / 7 % sizes[i];
			if (pcpc_cache_stock(cache, 0, owner) != stock ||
			    pcpc_home(owner) != (owner - 1) % 7 ||
			    pcpc_fast_word(&cache->fast, 0, owner) != &stock->slot[(owner - 1) % 7])
				ck_abort_msg("owner %u of %u stocks", owner, sizes[i]);
		}
		pcpc_cache_destroy(cache);
	}
}
END_TEST

/* cache.h: sizes, of callers older and younger than the library. */
START_TEST(stats_know_their_size)
{
	struct {
		struct pcpc_cache_stats known;
		unsigned char unknown[32];
	} younger;
	struct pcpc_cache_stats stats, before;
	struct pcpc_cache *cache = unit_cache(_i, 8);
	size_t i;

	if (!cache)
		return;
	memset(&stats, 0x5a, sizeof(stats));
	for (stats.size = 0; stats.size < sizeof(stats); stats.size++) {
		before = stats;
		ck_assert_int_eq(pcpc_cache_get_stats(cache, &stats), -EINVAL);
		ck_assert_mem_eq(&stats, &before, sizeof(stats));
	}
	ck_assert_int_eq(pcpc_cache_get_stats(cache, NULL), -EINVAL);
	ck_assert_int_eq(pcpc_cache_get_stats(NULL, &stats), -EINVAL);
	ck_assert_int_eq(pcpc_cache_get_stats(cache, &stats), 0);
	ck_assert_uint_eq(stats.size, sizeof(stats));
	ck_assert_int_eq(stats.engine, _i);
	ck_assert_int_eq(stats.index, PCPC_INDEX_CPU);
	ck_assert_uint_eq(stats.stocks_per_cpu, 8);
	ck_assert_uint_eq(stats.nr_cpus, cache->nr_indices);
	ck_assert_uint_eq(stats.drains + stats.rounds + stats.membarriers, 0);

	memset(&younger, 0x5a, sizeof(younger));
	younger.known.size = sizeof(younger);
	ck_assert_int_eq(pcpc_cache_get_stats(cache, &younger.known), 0);
	ck_assert_uint_eq(younger.known.size, sizeof(younger));
	ck_assert_uint_eq(younger.known.stocks_per_cpu, 8);
	for (i = 0; i < sizeof(younger.unknown); i++)
		ck_assert_uint_eq(younger.unknown[i], 0);
	pcpc_cache_destroy(cache);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("cache memory");
	TCase *tests = unit_case(suite, "memory");
	const int first = PCPC_ENGINE_RSEQ, end = PCPC_ENGINE_ATOMIC + 1;

	tcase_add_loop_test(tests, a_cpu_takes_256_kib_of_address_space, first, end);
	tcase_add_loop_test(tests, a_fresh_cache_occupies_no_memory, first, end);
	tcase_add_loop_test(tests, memory_is_in_proportion_to_the_owners, first, end);
	tcase_add_loop_test(tests, every_stock_is_aligned, first, end);
	tcase_add_loop_test(tests, every_owner_is_at_the_home_the_design_gives_it, first, end);
	tcase_add_loop_test(tests, stats_know_their_size, first, end);
	return unit_run(suite);
}
