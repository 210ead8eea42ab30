// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_cache_create.c - making and unmaking caches: configurations good and bad, the environment,
 * engines and indices, and what is reported of them.
 *
 * Linked with the library as programs are. Memory that cannot be had is in ../fault.
 */
#define _GNU_SOURCE
#include <pcpcharge/pcpcharge.h>
#include <pcpcharge/arch/sequences.h>

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "unit_support.h"

extern const unsigned int __rseq_size __attribute__((weak));

/* Where ret_cache points before a call that must leave it alone. */
static char elsewhere[64];
#define untouched ((struct pcpc_cache *)(void *)elsewhere)

static int create(const struct pcpc_cache_config *config)
{
	struct pcpc_cache *cache = untouched;
	int r = pcpc_cache_create(config, &cache);

	if (r == 0) {
		ck_assert_ptr_ne(cache, untouched);
		ck_assert_ptr_nonnull(cache);
		pcpc_cache_destroy(cache);
	} else {
		/* api.md: "leave ret_* untouched on failure" */
		ck_assert_ptr_eq(cache, untouched);
	}
	return r;
}

static struct pcpc_cache_config plain_config(void)
{
	return (struct pcpc_cache_config){ .size = sizeof(struct pcpc_cache_config) };
}

static struct pcpc_cache_stats stats_of(const struct pcpc_cache_config *config)
{
	struct pcpc_cache_stats stats = { .size = sizeof(stats) };
	struct pcpc_cache *cache = NULL;

	ck_assert_int_eq(pcpc_cache_create(config, &cache), 0);
	ck_assert_int_eq(pcpc_cache_get_stats(cache, &stats), 0);
	ck_assert_int_eq(pcpc_cache_engine(cache), stats.engine);
	pcpc_cache_destroy(cache);
	return stats;
}

/* cache.h: "All zero but size means the defaults"; section 5: 4,096 stocks. */
START_TEST(no_configuration_means_the_defaults)
{
	struct pcpc_cache_config config = plain_config();
	struct pcpc_cache_stats none = stats_of(NULL), zero = stats_of(&config);

	ck_assert_mem_eq(&none, &zero, sizeof(none));
	ck_assert_uint_eq(none.stocks_per_cpu, 4096);
	ck_assert_uint_ge(none.nr_cpus, 1);
	ck_assert_uint_ge(none.nr_cpus, (uint32_t)sysconf(_SC_NPROCESSORS_ONLN));
	ck_assert(none.engine == PCPC_ENGINE_RSEQ || none.engine == PCPC_ENGINE_ATOMIC);
	ck_assert(none.index == PCPC_INDEX_CPU || none.index == PCPC_INDEX_MM_CID);
}
END_TEST

/* House style: "Destroy accepts NULL"; cache.h: engine of NULL is AUTO. */
START_TEST(null_is_no_cache)
{
	pcpc_cache_destroy(NULL);
	ck_assert_int_eq(pcpc_cache_engine(NULL), PCPC_ENGINE_AUTO);
	ck_assert_uint_eq(pcpc_cache_stocked(NULL, 1), 0);
	ck_assert_int_eq(pcpc_cache_create(NULL, NULL), -EINVAL);
}
END_TEST

/* cache.h: -EINVAL "size is too small". */
START_TEST(a_size_below_the_first_version_is_refused)
{
	const size_t first = offsetof(struct pcpc_cache_config, stocks_per_cpu) + sizeof(uint32_t);
	struct pcpc_cache_config config = plain_config();

	for (config.size = 0; config.size < first; config.size++)
		ck_assert_int_eq(create(&config), -EINVAL);
	config.size = first;
	ck_assert_int_eq(create(&config), 0);
}
END_TEST

/* cache.h: "or names fields this library does not know with values in them" */
START_TEST(unknown_fields_must_be_zero)
{
	struct {
		struct pcpc_cache_config known;
		unsigned char unknown[24];
	} config = { .known = { .size = sizeof(config) } };
	size_t i;

	ck_assert_int_eq(create(&config.known), 0);
	for (i = 0; i < sizeof(config.unknown); i++) {
		config.unknown[i] = 1;
		ck_assert_int_eq(create(&config.known), -EINVAL);
		config.known.size = sizeof(config.known) + i;
		ck_assert_int_eq(create(&config.known), 0); /* not reached by size */
		config.known.size = sizeof(config);
		config.unknown[i] = 0;
	}
	ck_assert_int_eq(create(&config.known), 0);
}
END_TEST

/* cache.h: -EINVAL "an unknown engine or index" */
START_TEST(unknown_engines_and_indices_are_refused)
{
	static const int unknown[] = { 3, 4, 255, -1, INT32_MIN, INT32_MAX };
	struct pcpc_cache_config config;
	size_t i;

	for (i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
		config = plain_config();
		memcpy(&config.engine, &unknown[i], sizeof(config.engine));
		ck_assert_int_eq(create(&config), -EINVAL);
		config = plain_config();
		memcpy(&config.index, &unknown[i], sizeof(config.index));
		ck_assert_int_eq(create(&config), -EINVAL);
	}
}
END_TEST

/* cache.h: "rounded up to a power of two, at most 262,144" */
START_TEST(stocks_are_rounded_up_and_bounded)
{
	static const uint32_t asked[][2] = { { 1, 1 },	     { 2, 2 },		{ 3, 4 },
					     { 5, 8 },	     { 4097, 8192 },	{ 131073, 262144 },
					     { 4096, 4096 }, { 262144, 262144 } };
	struct pcpc_cache_config config = plain_config();
	size_t i;

	for (i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		config.stocks_per_cpu = asked[i][0];
		ck_assert_uint_eq(stats_of(&config).stocks_per_cpu, asked[i][1]);
	}
	config.stocks_per_cpu = 262145;
	ck_assert_int_eq(create(&config), -EINVAL);
	config.stocks_per_cpu = UINT32_MAX;
	ck_assert_int_eq(create(&config), -EINVAL);
}
END_TEST

/* Section 6: "It can be forced by configuration". */
START_TEST(the_atomic_engine_can_always_be_had)
{
	struct pcpc_cache_config config = plain_config();

	config.engine = PCPC_ENGINE_ATOMIC;
	ck_assert_int_eq(stats_of(&config).engine, PCPC_ENGINE_ATOMIC);
}
END_TEST

/* Whether sequences work here, asked in another way than the library does. */
static bool sequences_work(void)
{
#if PCPC_HAVE_RSEQ && defined(__x86_64__)
	long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);

	return &__rseq_size && __rseq_size > 0 && commands > 0 &&
	       (commands & MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ) &&
	       syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ, 0, 0) == 0;
#else
	return false;
#endif
}

/* Other tests leave the rseq engine out where it cannot be had: this one sees to it that it can
 * where it must. cache.h: default "rseq where it works". */
START_TEST(the_rseq_engine_is_the_default_where_it_works)
{
	struct pcpc_cache_config config = plain_config();
	bool works = sequences_work();

#if !defined(__x86_64__)
	unit_note("not tested: only x86-64 knows what to expect");
	return;
#endif
	unit_note("restartable sequences %s here", works ? "work" : "do not work");
	ck_assert_int_eq(stats_of(NULL).engine, works ? PCPC_ENGINE_RSEQ : PCPC_ENGINE_ATOMIC);
	config.engine = PCPC_ENGINE_RSEQ;
	ck_assert_int_eq(create(&config), works ? 0 : -ENOSYS);
}
END_TEST

/* Section 6: "by PCPC_ENGINE=atomic|rseq in the environment"; cache.h: "-EINVAL ... neither". */
START_TEST(the_environment_chooses_where_the_program_does_not)
{
	static const char *const garbage[] = { "Atomic", "atomic ", " rseq", "rseq,atomic",
					       "auto",	 "0",	    "atomi", "atomicc" };
	bool works = sequences_work();
	size_t i;

	setenv("PCPC_ENGINE", "atomic", 1);
	ck_assert_int_eq(stats_of(NULL).engine, PCPC_ENGINE_ATOMIC);
	setenv("PCPC_ENGINE", "rseq", 1);
	ck_assert_int_eq(create(NULL), works ? 0 : -ENOSYS);
	if (works)
		ck_assert_int_eq(stats_of(NULL).engine, PCPC_ENGINE_RSEQ);
	for (i = 0; i < sizeof(garbage) / sizeof(garbage[0]); i++) {
		setenv("PCPC_ENGINE", garbage[i], 1);
		ck_assert_int_eq(create(NULL), -EINVAL);
	}
	setenv("PCPC_ENGINE", "", 1);
	ck_assert_int_eq(create(NULL), 0);
}
END_TEST

/* cache.h: AUTO is what the environment decides; an engine that was asked for stays. */
START_TEST(the_configuration_beats_the_environment)
{
	struct pcpc_cache_config config = plain_config();

	config.engine = PCPC_ENGINE_ATOMIC;
	setenv("PCPC_ENGINE", "rseq", 1);
	ck_assert_int_eq(stats_of(&config).engine, PCPC_ENGINE_ATOMIC);
	setenv("PCPC_ENGINE", "garbage", 1);
	ck_assert_int_eq(stats_of(&config).engine, PCPC_ENGINE_ATOMIC);
	if (!sequences_work())
		return;
	config.engine = PCPC_ENGINE_RSEQ;
	setenv("PCPC_ENGINE", "atomic", 1);
	ck_assert_int_eq(stats_of(&config).engine, PCPC_ENGINE_RSEQ);
}
END_TEST

/* Section 6: the index is the CPU number, or mm_cid where there is one and the process may run on
 * less than half of the possible CPUs. */
START_TEST(the_index_is_the_one_that_was_asked_for)
{
	struct pcpc_cache_config config = plain_config();
	struct pcpc_cache_stats stats = stats_of(NULL);
	cpu_set_t allowed;
	int r;

	ck_assert_int_eq(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
	if (2 * (uint64_t)CPU_COUNT(&allowed) >= stats.nr_cpus)
		ck_assert_int_eq(stats.index, PCPC_INDEX_CPU);
	config.index = PCPC_INDEX_CPU;
	ck_assert_int_eq(stats_of(&config).index, PCPC_INDEX_CPU);
	config.index = PCPC_INDEX_MM_CID;
	r = create(&config);
	if (r == -ENOSYS) {
		unit_note("not tested: no mm_cid here");
		return;
	}
	ck_assert_int_eq(r, 0);
	ck_assert_int_eq(stats_of(&config).index, PCPC_INDEX_MM_CID);
	if (2 * (uint64_t)CPU_COUNT(&allowed) < stats.nr_cpus)
		ck_assert_int_eq(stats.index, PCPC_INDEX_MM_CID);
}
END_TEST

/* A cache is its own: any number at a time, destroyed in any order. */
START_TEST(caches_are_separate)
{
	const struct pcpc_marks marks = { 64, 32, 64 };
	struct pcpc_deferred deferred;
	struct pcpc_cache *caches[5];
	int i;

	ck_assert(unit_pin(0));
	for (i = 0; i < 5; i++) {
		ck_assert_int_eq(pcpc_cache_create(NULL, &caches[i]), 0);
		pcpc_cache_refill(caches[i], 1, 10 + (uint64_t)i, 0, &marks, &deferred);
	}
	pcpc_cache_destroy(caches[2]);
	pcpc_cache_destroy(caches[0]);
	pcpc_cache_destroy(caches[4]);
	ck_assert_uint_eq(pcpc_cache_stocked(caches[1], 1), 11);
	ck_assert_uint_eq(pcpc_cache_stocked(caches[3], 1), 13);
	pcpc_cache_destroy(caches[1]);
	pcpc_cache_destroy(caches[3]);
}
END_TEST

#define TEXT_OF(value) #value
#define TEXT(value) TEXT_OF(value)

START_TEST(the_version_is_that_of_the_headers)
{
	ck_assert_str_eq(pcpc_version(), TEXT(PCPC_VERSION_MAJOR) "." TEXT(
						 PCPC_VERSION_MINOR) "." TEXT(PCPC_VERSION_PATCH));
}
END_TEST

static void settle(const struct pcpc_deferred *deferred, void *context)
{
	*(uint64_t *)context += deferred->count;
}

static bool match_1(uint32_t owner, void *context)
{
	(void)context;
	return owner == 1;
}

#define REQUIRE(condition)                         \
	do {                                       \
		if (!(condition))                  \
			return 1 + __LINE__ % 127; \
	} while (0)

/* What is true in a process whose C library registers no rseq area. Exit status: 1 + the line that
 * is not, modulo 127. */
static int without_rseq(void)
{
	const struct pcpc_marks marks = { 64, 32, 64 };
	struct pcpc_cache_config config = plain_config();
	struct pcpc_cache *cache = untouched;
	struct pcpc_deferred deferred;
	uint64_t settled = 0;

	unsetenv("PCPC_ENGINE");
	config.engine = PCPC_ENGINE_RSEQ;
	REQUIRE(pcpc_cache_create(&config, &cache) == -ENOSYS);
	config.engine = PCPC_ENGINE_AUTO;
	config.index = PCPC_INDEX_MM_CID;
	REQUIRE(pcpc_cache_create(&config, &cache) == -ENOSYS);
	setenv("PCPC_ENGINE", "rseq", 1);
	REQUIRE(pcpc_cache_create(NULL, &cache) == -ENOSYS);
	unsetenv("PCPC_ENGINE");
	REQUIRE(cache == untouched);
	REQUIRE(pcpc_cache_create(NULL, &cache) == 0);
	REQUIRE(pcpc_cache_engine(cache) == PCPC_ENGINE_ATOMIC);
	/* and it works, by a sticky index */
	pcpc_cache_refill(cache, 1, 40, 3, &marks, &deferred);
	REQUIRE(deferred.owner == 0);
	REQUIRE(pcpc_cache_consume(cache, 1, 10, 0, &marks, &deferred));
	REQUIRE(pcpc_cache_stocked(cache, 1) == 30);
	REQUIRE(pcpc_cache_drain(cache, match_1, settle, &settled) == 0);
	REQUIRE(settled == 30);
	pcpc_cache_destroy(cache);
	return 0;
}

/* cache.h: "-ENOSYS: the engine or index that was asked for does not work here"; section 6: the
 * atomic engine is "used where rseq is not". */
START_TEST(no_rseq_engine_where_the_thread_is_not_registered)
{
	pid_t child = fork();
	int status;

	ck_assert_int_ge(child, 0);
	if (child == 0) {
		setenv("GLIBC_TUNABLES", "glibc.pthread.rseq=0", 1);
		execl("/proc/self/exe", "test_cache_create", "--without-rseq", (char *)NULL);
		_exit(126);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status));
	ck_assert_msg(WEXITSTATUS(status) == 0, "status %d: 1 + line modulo 127",
		      WEXITSTATUS(status));
}
END_TEST

static void clean_environment(void)
{
	unsetenv("PCPC_ENGINE");
}

int main(int argc, char **argv)
{
	Suite *suite;
	TCase *tests;

	if (argc == 2 && !strcmp(argv[1], "--without-rseq"))
		return without_rseq();
	suite = suite_create("cache create");
	tests = unit_case(suite, "create");
	tcase_add_checked_fixture(tests, clean_environment, clean_environment);
	tcase_add_test(tests, no_configuration_means_the_defaults);
	tcase_add_test(tests, null_is_no_cache);
	tcase_add_test(tests, a_size_below_the_first_version_is_refused);
	tcase_add_test(tests, unknown_fields_must_be_zero);
	tcase_add_test(tests, unknown_engines_and_indices_are_refused);
	tcase_add_test(tests, stocks_are_rounded_up_and_bounded);
	tcase_add_test(tests, the_atomic_engine_can_always_be_had);
	tcase_add_test(tests, the_rseq_engine_is_the_default_where_it_works);
	tcase_add_test(tests, the_environment_chooses_where_the_program_does_not);
	tcase_add_test(tests, the_configuration_beats_the_environment);
	tcase_add_test(tests, the_index_is_the_one_that_was_asked_for);
	tcase_add_test(tests, caches_are_separate);
	tcase_add_test(tests, the_version_is_that_of_the_headers);
	tcase_add_test(tests, no_rseq_engine_where_the_thread_is_not_registered);
	return unit_run(suite);
}
