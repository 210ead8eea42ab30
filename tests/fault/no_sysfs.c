// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * no_sysfs.c - the list of possible CPUs cannot be read, or says odd things.
 *
 * Creation must not depend on it: a number too small only makes the CPUs beyond it bypass
 * (DESIGN.md section 6: "the index is range-checked in every operation").
 */
#define _GNU_SOURCE
#include "fault_support.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cache_private.h"

#ifdef FAULT_ASAN
const char *__asan_default_options(void);

/* The leak checker opens files. */
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}
#endif

static struct ledger ledger;

static bool deny_open(void)
{
	const struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
#ifdef SYS_open
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_open, 1, 0),
#endif
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	return install_filter(code, sizeof(code) / sizeof(code[0]), 0);
}

/* Creates with the defaults, does its work on every CPU there is, and balances to the unit. */
static uint32_t must_work(void)
{
	struct pcpc_cache_stats stats = { .size = sizeof(stats) };
	struct walker walker = {
		.ledger = &ledger, .first_owner = 1, .nr_owners = 20, .random = 5
	};
	int cpus[2] = { allowed_cpu(0), last_allowed_cpu() };
	uint32_t i;

	ledger_init(&ledger, make_cache(PCPC_ENGINE_AUTO, PCPC_INDEX_CPU));
	MUST(pcpc_cache_get_stats(ledger.cache, &stats) == 0);
	for (i = 0; i < 10000; i++) {
		if (i % 1000 == 0)
			pin_to(cpus[i / 1000 % 2]);
		walker_step(&walker);
	}
	walker_finish(&walker);
	if (pcpc_cache_engine(ledger.cache) == PCPC_ENGINE_RSEQ &&
	    stats.nr_cpus > (uint32_t)cpus[1]) {
		ledger_stock(&ledger, 1, 20, 0);
		MUST(consume_hits(&ledger, 1, 20));
		ledger_refill(&ledger, 1, 20, 0);
	}
	ledger_must_end_empty(&ledger);
	pcpc_cache_destroy(ledger.cache);
	return stats.nr_cpus;
}

/* What creation asks for beside the engines' own calls: it can do without each. */
static bool deny_what_is_optional(void)
{
	const struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_getaffinity, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mincore, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	return install_filter(code, sizeof(code) / sizeof(code[0]), 0);
}

/* Design section 6: detection only ever chooses; and figures that cannot be had are 0. */
START_TEST(optional_system_calls_fail)
{
	struct pcpc_cache_stats stats = { .size = sizeof(stats) };
	uint32_t i;

	SKIP_IF(!deny_what_is_optional(), "no seccomp filters here");
	ledger_init(&ledger, make_cache(PCPC_ENGINE_AUTO, PCPC_INDEX_AUTO));
	for (i = 1; i <= LEDGER_OWNERS; i++) {
		ledger_stock(&ledger, i, 20, 1);
		if (ledger_consume(&ledger, i, 5, 1))
			ledger_refill(&ledger, i, 5, -1);
	}
	ck_assert_int_eq(pcpc_cache_get_stats(ledger.cache, &stats), 0);
	ck_assert_uint_eq(stats.bytes_resident, 0);
	ledger_must_end_empty(&ledger);
	pcpc_cache_destroy(ledger.cache);
}
END_TEST

START_TEST(opening_any_file_fails)
{
	SKIP_IF(!deny_open(), "no seccomp filters here");
	ck_assert_int_lt(open("/sys/devices/system/cpu/possible", O_RDONLY), 0);
	ck_assert_uint_ge(must_work(), 1);
}
END_TEST

START_TEST(no_descriptor_is_left)
{
	const struct rlimit none = { 0, 0 };

	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	ck_assert_int_lt(open("/sys/devices/system/cpu/possible", O_RDONLY), 0);
	ck_assert_uint_ge(must_work(), 1);
}
END_TEST

static const struct {
	const char *list;
	uint32_t indices; /* 0: whatever sysconf says */
} lists[] = {
	{ "", 0 },	{ "\n", 0 },	      { "garbage\n", 0 },
	{ "0\n", 1 }, /* the machine may have more: they bypass */
	{ "0-1\n", 2 }, { "0-3,8-11\n", 12 }, { "0,2,4,9\n", 10 },
	{ "7\n", 8 },	{ "0-8191\n", 8192 }, { "0-3", 4 },
};

/* The size is the highest id plus one, not the count: ids may be sparse (rseq.md 1.3, New CPUs). */
START_TEST(list_reads_as)
{
	uint32_t indices;

	SKIP_IF(!show_possible_cpus(lists[_i].list), "no right to mount");
	indices = must_work();
	if (lists[_i].indices)
		ck_assert_uint_eq(indices, lists[_i].indices);
	else
		ck_assert_uint_ge(indices, 1);
}
END_TEST

/* A list that does not fit the buffer must not be taken for its first part. */
START_TEST(list_is_very_long)
{
	char list[2048] = "";
	int id;

	for (id = 0; id < 400; id += 2)
		sprintf(list + strlen(list), "%s%d", id ? "," : "", id);
	SKIP_IF(!show_possible_cpus(list), "no right to mount");
	must_work();
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("no sysfs");

	unsetenv("PCPC_ENGINE");
	tcase_add_test(tests, optional_system_calls_fail);
	tcase_add_test(tests, opening_any_file_fails);
	tcase_add_test(tests, no_descriptor_is_left);
	tcase_add_loop_test(tests, list_reads_as, 0, sizeof(lists) / sizeof(lists[0]));
	tcase_add_test(tests, list_is_very_long);
	return fault_run("fault", tests);
}
