// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * fault_support.c - see fault_support.h.
 */
#define _GNU_SOURCE
#include "fault_support.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cache_private.h"

#ifdef FAULT_TSAN
const char *__tsan_default_options(void);

/* Hundreds of children would each wait a second before their exit. */
const char *__tsan_default_options(void)
{
	return "atexit_sleep_ms=0";
}
#endif

static atomic_int *skipped; /* shared with the processes that tests run in */

void fault_skip(const char *test, const char *reason)
{
	size_t length = strlen(test);

	/* Check calls the function of a test its name and "_fn". */
	if (length > 3 && !strcmp(test + length - 3, "_fn"))
		length -= 3;
	printf("skipped %.*s: %s\n", (int)length, test, reason);
	fflush(stdout);
	if (skipped)
		atomic_fetch_add(skipped, 1);
}

int fault_run(const char *name, TCase *tests)
{
	Suite *suite = suite_create(name);
	SRunner *runner = srunner_create(suite);
	int failed, run;

	skipped = mmap(NULL, sizeof(*skipped), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	MUST(skipped != MAP_FAILED);
	setvbuf(stdout, NULL, _IOLBF, 0);
	tcase_set_timeout(tests, FAULT_TIMEOUT);
	suite_add_tcase(suite, tests);
	srunner_set_fork_status(runner, CK_FORK);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	run = srunner_ntests_run(runner);
	srunner_free(runner);
	if (failed)
		return EXIT_FAILURE;
	return run && atomic_load(skipped) == run ? FAULT_SKIP : EXIT_SUCCESS;
}

struct pcpc_cache *make_cache_of(enum pcpc_engine engine, enum pcpc_index index, uint32_t stocks)
{
	const struct pcpc_cache_config config = {
		.size = sizeof(config), .engine = engine, .index = index, .stocks_per_cpu = stocks
	};
	struct pcpc_cache *cache = NULL;

	MUST(pcpc_cache_create(&config, &cache) == 0);
	MUST(cache);
	return cache;
}

struct pcpc_cache *make_cache(enum pcpc_engine engine, enum pcpc_index index)
{
	return make_cache_of(engine, index, 0);
}

void use_fresh_cache(enum pcpc_engine engine)
{
	struct ledger *fresh = malloc(sizeof(*fresh));
	struct walker walker = { .ledger = fresh, .first_owner = 1, .nr_owners = 40, .random = 3 };
	uint32_t i;

	MUST(fresh);
	ledger_init(fresh, make_cache_of(engine, PCPC_INDEX_CPU, 2));
	for (i = 0; i < 200; i++)
		walker_step(&walker);
	walker_finish(&walker);
	ledger_must_end_empty(fresh);
	pcpc_cache_destroy(fresh->cache);
	free(fresh);
}

static bool config_works(enum pcpc_engine engine, enum pcpc_index index)
{
	const struct pcpc_cache_config config = { .size = sizeof(config),
						  .engine = engine,
						  .index = index };
	struct pcpc_cache *cache = NULL;

	if (pcpc_cache_create(&config, &cache) < 0)
		return false;
	pcpc_cache_destroy(cache);
	return true;
}

bool engine_works(enum pcpc_engine engine)
{
	return config_works(engine, PCPC_INDEX_CPU);
}

bool mm_cid_works(void)
{
	return config_works(PCPC_ENGINE_ATOMIC, PCPC_INDEX_MM_CID);
}

int allowed_cpu(unsigned int nth)
{
	cpu_set_t set;
	int cpu;

	MUST(sched_getaffinity(0, sizeof(set), &set) == 0);
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &set) && nth-- == 0)
			return cpu;
	return -1;
}

int last_allowed_cpu(void)
{
	unsigned int nth = 0;

	while (allowed_cpu(nth + 1) >= 0)
		nth++;
	return allowed_cpu(nth);
}

void pin_to(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	MUST(sched_setaffinity(0, sizeof(set), &set) == 0);
}

bool consume_hits(struct ledger *ledger, uint32_t owner, uint64_t count)
{
	unsigned int tries;

	for (tries = 0; tries < 100; tries++)
		if (ledger_consume(ledger, owner, count, 0))
			return true;
	return false;
}

bool time_left(void)
{
	static time_t began;
	struct timespec now;

	MUST(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
	if (!began)
		began = now.tv_sec;
	return now.tv_sec - began < FAULT_SECONDS;
}

bool all_gates_open(const struct pcpc_cache *cache)
{
	uint32_t index, owner, highest;

	for (index = 0; index < cache->nr_indices; index++) {
		highest = atomic_load(&cache->highest[index]);
		/* One owner of each line. */
		for (owner = 1; owner <= highest; owner += PCPC_STOCK_SLOTS)
			if (PCPC_LOAD(pcpc_cache_stock(cache, index, owner)->gate))
				return false;
	}
	return true;
}

int64_t stocked_delta(const struct pcpc_cache *cache, uint32_t owner)
{
	const struct pcpc_stock *stock;
	uint32_t index, slot;
	int64_t sum = 0;

	for (index = 0; index < cache->nr_indices; index++) {
		stock = pcpc_cache_stock(cache, index, owner);
		for (slot = 0; slot < PCPC_STOCK_SLOTS; slot++)
			if (pcpc_word_owner(PCPC_LOAD(stock->slot[slot])) == owner)
				sum += pcpc_word_delta(PCPC_LOAD(stock->slot[slot]));
	}
	return sum;
}

bool install_filter(const struct sock_filter *code, size_t length, unsigned int flags)
{
	struct sock_fprog program = { .len = (unsigned short)length };
	struct sock_filter own[32];

	MUST(length <= sizeof(own) / sizeof(own[0]));
	memcpy(own, code, length * sizeof(own[0]));
	program.filter = own;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program) == 0;
}

bool deny_membarrier(int error)
{
	const struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned int)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	return install_filter(code, sizeof(code) / sizeof(code[0]), SECCOMP_FILTER_FLAG_TSYNC);
}

int status_of(pid_t child)
{
	int status;

	MUST(child > 0);
	while (waitpid(child, &status, 0) < 0)
		MUST(errno == EINTR);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int run_role(const char *role, char *variable, void (*prepare)(void))
{
	char name[] = "fault", text[64], *arguments[] = { name, text, NULL };
	pid_t child;

	snprintf(text, sizeof(text), "%s", role);
	fflush(stdout);
	child = fork();
	if (child == 0) {
		if (variable)
			putenv(variable);
		if (prepare)
			prepare();
		execv("/proc/self/exe", arguments);
		_exit(126);
	}
	return status_of(child);
}

/* A user namespace of one's own gives the right to mount, where the kernel lets anybody have one.
 */
static bool own_mounts(void)
{
	if (unshare(CLONE_NEWNS) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return false;
	return mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

bool show_possible_cpus(const char *list)
{
	char path[] = "/tmp/pcpcharge-possible-XXXXXX";
	size_t length = strlen(list);
	bool shown;
	int fd;

	if (!own_mounts())
		return false;
	fd = mkstemp(path);
	MUST(fd >= 0);
	MUST(write(fd, list, length) == (ssize_t)length);
	close(fd);
	shown = mount(path, "/sys/devices/system/cpu/possible", NULL, MS_BIND, NULL) == 0;
	unlink(path);
	return shown;
}
