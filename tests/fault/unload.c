// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * unload.c - a program that does not know the library, and unloads a plugin that used it, on
 * threads that live on.
 *
 * The kernel reads the descriptor that a thread's rseq_cs points at whenever the thread has been
 * switched out; one that is gone kills the process (rseq.md 0.6). Hence the library stays (-z
 * nodelete), and PCPC_INLINE_UNLOADABLE clears rseq_cs (cache.h, "The inline fast path").
 *
 * Takes the paths of the three plugins. Not linked with fault_support.c, which would bring the
 * library.
 */
#define _GNU_SOURCE
#include <check.h>
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 4
#define SWITCHES 50
#define DEADLY_TRIES 100
#define SKIPPED 77

extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

enum plugin { PLUGIN_EXTERN, PLUGIN_UNLOADABLE, PLUGIN_INLINE, NR_PLUGINS };

static const char *paths[NR_PLUGINS];
static atomic_uint *skips; /* shared with the processes that tests run in */

static void *handle;
static uintptr_t plugin_start, plugin_end;
static unsigned int (*operate)(unsigned int pairs);
static atomic_uint operated, died_pointers;
static atomic_bool go_on;

static uint64_t descriptor(void)
{
	if (!&__rseq_size || !__rseq_size)
		return 0;
	return *(volatile uint64_t *)((char *)__builtin_thread_pointer() + __rseq_offset + 8);
}

static bool in_plugin(uint64_t address)
{
	return address >= plugin_start && address < plugin_end;
}

/* Where the object of the plugin is mapped. */
static int find_plugin(struct dl_phdr_info *info, size_t size, void *path)
{
	uintptr_t end;
	int i;

	(void)size;
	if (strcmp(info->dlpi_name, path))
		return 0;
	plugin_start = UINTPTR_MAX;
	for (i = 0; i < info->dlpi_phnum; i++) {
		if (info->dlpi_phdr[i].p_type != PT_LOAD)
			continue;
		end = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
		if (info->dlpi_addr + info->dlpi_phdr[i].p_vaddr < plugin_start)
			plugin_start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
		if (end > plugin_end)
			plugin_end = end;
	}
	return 1;
}

static int find_library(struct dl_phdr_info *info, size_t size, void *unused)
{
	(void)size;
	(void)unused;
	return strstr(info->dlpi_name, "libpcpcharge.so") != NULL;
}

static bool library_is_loaded(void)
{
	return dl_iterate_phdr(find_library, NULL) != 0;
}

static void *symbol(const char *name)
{
	void *found = dlsym(handle, name);

	ck_assert_ptr_nonnull(found);
	return found;
}

static void load(enum plugin plugin, bool *ret_rseq)
{
	int (*open)(bool *ret_rseq);
	char path[4096];

	handle = dlopen(paths[plugin], RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		ck_abort_msg("%s", dlerror());
	snprintf(path, sizeof(path), "%s", paths[plugin]);
	ck_assert(dl_iterate_phdr(find_plugin, path));
	*(void **)&open = symbol("plugin_open");
	*(void **)&operate = symbol("plugin_operate");
	ck_assert_int_eq(open(ret_rseq), 0);
}

static void unload(enum plugin plugin)
{
	int (*close)(void);

	*(void **)&close = symbol("plugin_close");
	ck_assert_int_eq(close(), 0);
	ck_assert_int_eq(dlclose(handle), 0);
	/* Really gone, or this proves nothing. */
	ck_assert_ptr_null(dlopen(paths[plugin], RTLD_NOW | RTLD_NOLOAD));
	ck_assert(library_is_loaded());
}

static long switches(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw + usage.ru_nivcsw;
}

/* Goes from CPU to CPU and yields until the thread was switched out often. */
static void be_switched(void)
{
	long enough = switches() + SWITCHES;
	cpu_set_t all, one;
	int cpu = 0;

	ck_assert_int_eq(sched_getaffinity(0, sizeof(all), &all), 0);
	while (switches() < enough) {
		do
			cpu = (cpu + 1) % CPU_SETSIZE;
		while (!CPU_ISSET(cpu, &all));
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		ck_assert_int_eq(sched_setaffinity(0, sizeof(one), &one), 0);
		sched_yield();
	}
	ck_assert_int_eq(sched_setaffinity(0, sizeof(all), &all), 0);
}

static void *operate_and_live_on(void *unused)
{
	unsigned int hits, i;

	(void)unused;
	for (i = 0, hits = 0; i < 1000 || !hits; i++)
		hits += operate(10);
	for (i = 0; i < 1000; i++) {
		operate(1);
		if (in_plugin(descriptor()))
			atomic_fetch_add(&died_pointers, 1);
	}
	atomic_fetch_add(&operated, 1);
	while (!atomic_load(&go_on))
		;
	be_switched();
	return NULL;
}

static void use_on_threads_and_unload(enum plugin plugin)
{
	pthread_t threads[THREADS];
	bool rseq;
	int i;

	ck_assert(!library_is_loaded());
	load(plugin, &rseq);
	for (i = 0; i < THREADS; i++)
		ck_assert(!pthread_create(&threads[i], NULL, operate_and_live_on, NULL));
	operate(1000);
	while (atomic_load(&operated) < THREADS)
		sched_yield();
	unload(plugin);
	atomic_store(&go_on, true);
	be_switched();
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	/* No thread has ever pointed into the plugin. */
	ck_assert_uint_eq(atomic_load(&died_pointers), 0);
}

/* Design section 6: "The library is linked -z nodelete". */
START_TEST(plugin_that_calls_the_library_can_be_unloaded)
{
	use_on_threads_and_unload(PLUGIN_EXTERN);
}
END_TEST

/* cache.h: "An object that may be dlclosed defines PCPC_INLINE_UNLOADABLE". */
START_TEST(unloadable_inline_plugin_can_be_unloaded)
{
	use_on_threads_and_unload(PLUGIN_UNLOADABLE);
}
END_TEST

/* The same: "each operation then clears the thread's pointer". A hit is one whose last descriptor
 * was the plugin's own; then nothing is left of it. */
START_TEST(unloadable_inline_operation_leaves_no_descriptor)
{
	unsigned int i, cleared = 0;
	bool rseq;

	load(PLUGIN_UNLOADABLE, &rseq);
	if (!rseq) {
		printf("skipped %s: no rseq engine\n", __func__);
		atomic_fetch_add(skips, 1);
		return;
	}
	operate(10);
	for (i = 0; i < 1000; i++) {
		operate(1);
		ck_assert(!in_plugin(descriptor()));
		cleared += descriptor() == 0;
	}
	/* The rest went out of line, to the library's descriptor. */
	ck_assert_uint_gt(cleared, 900);
	unload(PLUGIN_UNLOADABLE);
}
END_TEST

/* The library that stayed serves the plugin that comes back, and fork (its handlers stayed too). */
START_TEST(plugins_come_and_go)
{
	bool rseq;
	pid_t child;
	int i, status;

	for (i = 0; i < 20; i++) {
		load(i % 2 ? PLUGIN_EXTERN : PLUGIN_UNLOADABLE, &rseq);
		ck_assert_uint_gt(operate(100), 0);
		unload(i % 2 ? PLUGIN_EXTERN : PLUGIN_UNLOADABLE);
		child = fork();
		if (child == 0)
			_exit(EXIT_SUCCESS);
		while (waitpid(child, &status, 0) < 0)
			ck_assert_int_eq(errno, EINTR);
		ck_assert_int_eq(status, 0);
	}
}
END_TEST

static void *operate_and_wait(void *unused)
{
	(void)unused;
	operate(1000);
	do
		operate(1);
	while (!in_plugin(descriptor()));
	atomic_store(&operated, 1);
	while (!atomic_load(&go_on))
		;
	be_switched();
	return NULL;
}

/* Ends by SIGSEGV unless the thread was switched out between its operation and the unloading. */
static void unload_under_a_thread(void)
{
	pthread_t thread;
	bool rseq;

	load(PLUGIN_INLINE, &rseq);
	if (!rseq)
		_exit(SKIPPED);
	ck_assert(!pthread_create(&thread, NULL, operate_and_wait, NULL));
	while (!atomic_load(&operated))
		;
	unload(PLUGIN_INLINE);
	atomic_store(&go_on, true);
	pthread_join(thread, NULL);
	_exit(EXIT_SUCCESS);
}

/* The broken twin: why the two above are as they are. */
START_TEST(plain_inline_plugin_kills_when_unloaded)
{
	int status = 0, tries;
	pid_t child;

	for (tries = 0; tries < DEADLY_TRIES; tries++) {
		fflush(stdout);
		child = fork();
		if (child == 0)
			unload_under_a_thread();
		while (waitpid(child, &status, 0) < 0)
			ck_assert_int_eq(errno, EINTR);
		if (WIFSIGNALED(status) || WEXITSTATUS(status))
			break;
	}
	if (tries == DEADLY_TRIES || (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED)) {
		printf("skipped %s: %s\n", __func__,
		       tries == DEADLY_TRIES ? "never switched out at the right moment"
					     : "no rseq engine");
		atomic_fetch_add(skips, 1);
		return;
	}
	ck_assert(WIFSIGNALED(status));
	ck_assert_int_eq(WTERMSIG(status), SIGSEGV);
}
END_TEST

int main(int argc, char **argv)
{
	Suite *suite = suite_create("fault");
	TCase *tests = tcase_create("unload");
	SRunner *runner;
	int failed, run, i;

	if (argc <= NR_PLUGINS) {
		fprintf(stderr, "wants the plugins: extern, unloadable, inline\n");
		return EXIT_FAILURE;
	}
	for (i = 0; i < NR_PLUGINS; i++)
		paths[i] = argv[1 + i];
	unsetenv("PCPC_ENGINE");
	skips = mmap(NULL, sizeof(*skips), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	tcase_set_timeout(tests, 30);
	tcase_add_test(tests, plugin_that_calls_the_library_can_be_unloaded);
	tcase_add_test(tests, unloadable_inline_plugin_can_be_unloaded);
	tcase_add_test(tests, unloadable_inline_operation_leaves_no_descriptor);
	tcase_add_test(tests, plugins_come_and_go);
	tcase_add_test(tests, plain_inline_plugin_kills_when_unloaded);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_set_fork_status(runner, CK_FORK);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	run = srunner_ntests_run(runner);
	srunner_free(runner);
	if (failed)
		return EXIT_FAILURE;
	return atomic_load(skips) == (unsigned int)run ? SKIPPED : EXIT_SUCCESS;
}
