// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * no_memory.c - creation without memory: for the mapping, and for the fork handlers.
 *
 * Contract of pcpc_cache_create(): "-ENOMEM", and ret_cache is "untouched on failure". The failures
 * are made through the linker's --wrap, and one by a real limit.
 */
#define _GNU_SOURCE
#include "fault_support.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "percpu.h"

void *__real_pcpc_map(size_t bytes);
void __real_pcpc_unmap(void *memory, size_t bytes);
int __real_pthread_atfork(fork_handler *prepare, fork_handler *parent, fork_handler *child);
void *__wrap_pcpc_map(size_t bytes);
void __wrap_pcpc_unmap(void *memory, size_t bytes);
int __wrap_pthread_atfork(fork_handler *prepare, fork_handler *parent, fork_handler *child);

static bool map_fails, atfork_fails;
static unsigned int atforks;
static size_t mapped; /* bytes, now */

void *__wrap_pcpc_map(size_t bytes)
{
	void *memory = map_fails ? NULL : __real_pcpc_map(bytes);

	if (memory)
		mapped += bytes;
	return memory;
}

void __wrap_pcpc_unmap(void *memory, size_t bytes)
{
	mapped -= bytes;
	__real_pcpc_unmap(memory, bytes);
}

UNINSTRUMENTED int __wrap_pthread_atfork(fork_handler *prepare, fork_handler *parent,
					 fork_handler *child)
{
	atforks++;
	return atfork_fails ? ENOMEM : __real_pthread_atfork(prepare, parent, child);
}

static int marker;
#define UNTOUCHED ((struct pcpc_cache *)(void *)&marker)

/* The library works as ever: one that was refused has left nothing half made. */
static void must_work_and_fork(void)
{
	static struct ledger ledger;
	pid_t child;

	ledger_init(&ledger, make_cache(PCPC_ENGINE_AUTO, PCPC_INDEX_AUTO));
	ledger_stock(&ledger, 1, 20, 1);
	child = fork();
	if (child == 0) {
		ledger_must_end_empty(&ledger);
		_exit(EXIT_SUCCESS);
	}
	ck_assert_int_eq(status_of(child), EXIT_SUCCESS);
	ledger_must_end_empty(&ledger);
	pcpc_cache_destroy(ledger.cache);
}

START_TEST(no_mapping_is_enomem_and_leaves_nothing)
{
	struct pcpc_cache *cache = UNTOUCHED;
	uint32_t i;

	/* A sanitizer has called it too. */
	atforks = 0;
	map_fails = true;
	for (i = 0; i < 100; i++) {
		ck_assert_int_eq(pcpc_cache_create(NULL, &cache), -ENOMEM);
		ck_assert_ptr_eq(cache, UNTOUCHED);
	}
	ck_assert_uint_eq(atforks, 0);
	map_fails = false;
	must_work_and_fork();
	ck_assert_uint_eq(mapped, 0);
}
END_TEST

START_TEST(no_fork_handlers_is_enomem_and_leaves_nothing)
{
	struct pcpc_cache *cache = UNTOUCHED;
	uint32_t i;

	atforks = 0;
	atfork_fails = true;
	for (i = 0; i < 100; i++) {
		ck_assert_int_eq(pcpc_cache_create(NULL, &cache), -ENOMEM);
		ck_assert_ptr_eq(cache, UNTOUCHED);
		ck_assert_uint_eq(mapped, 0);
	}
	ck_assert_uint_eq(atforks, 100);
	atfork_fails = false;
	must_work_and_fork();
	must_work_and_fork();
	/* Once installed they stay. */
	ck_assert_uint_eq(atforks, 101);
	ck_assert_uint_eq(mapped, 0);
}
END_TEST

static size_t address_space(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	unsigned long pages = 0;

	MUST(file);
	MUST(fscanf(file, "%lu", &pages) == 1);
	fclose(file);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* A limit on address space that leaves room for everything but the largest cache. */
START_TEST(address_space_limit_is_enomem)
{
	const struct pcpc_cache_config large = { .size = sizeof(large), .stocks_per_cpu = 1 << 18 };
	struct pcpc_cache *cache = UNTOUCHED;
	struct rlimit limit;
	size_t before;

	SKIP_IF(FAULT_SANITIZED, "sanitizers need address space of their own");
	must_work_and_fork();
	before = address_space();
	ck_assert_int_eq(getrlimit(RLIMIT_AS, &limit), 0);
	limit.rlim_cur = before + (8 << 20);
	ck_assert_int_eq(setrlimit(RLIMIT_AS, &limit), 0);
	ck_assert_int_eq(pcpc_cache_create(&large, &cache), -ENOMEM);
	ck_assert_ptr_eq(cache, UNTOUCHED);
	ck_assert_uint_eq(address_space(), before);
	limit.rlim_cur = limit.rlim_max;
	ck_assert_int_eq(setrlimit(RLIMIT_AS, &limit), 0);
	ck_assert_int_eq(pcpc_cache_create(&large, &cache), 0);
	pcpc_cache_destroy(cache);
	ck_assert_uint_eq(address_space(), before);
	ck_assert_uint_eq(mapped, 0);
}
END_TEST

/* A program that locks all of its future memory, and may not lock as much as the stocks take. */
START_TEST(locked_memory_limit_is_enomem)
{
	const struct rlimit limit = { 64 << 10, 64 << 10 };
	struct pcpc_cache *cache = UNTOUCHED;

	SKIP_IF(FAULT_SANITIZED, "sanitizers do not let memory be locked");
	ck_assert_int_eq(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
	/* The limit is not for root. */
	SKIP_IF(geteuid() == 0 && setuid(65534) < 0, "cannot give up root");
	SKIP_IF(mlockall(MCL_FUTURE) < 0, "cannot lock memory here");
	ck_assert_int_eq(pcpc_cache_create(NULL, &cache), -ENOMEM);
	ck_assert_ptr_eq(cache, UNTOUCHED);
	ck_assert_uint_eq(mapped, 0);
	ck_assert_int_eq(munlockall(), 0);
	must_work_and_fork();
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("no memory");

	unsetenv("PCPC_ENGINE");
	tcase_add_test(tests, no_mapping_is_enomem_and_leaves_nothing);
	tcase_add_test(tests, no_fork_handlers_is_enomem_and_leaves_nothing);
	tcase_add_test(tests, address_space_limit_is_enomem);
	tcase_add_test(tests, locked_memory_limit_is_enomem);
	return fault_run("fault", tests);
}
