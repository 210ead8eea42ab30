// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * malloc_bench.c [--short ...] - what charging costs: malloc() and free() with
 * libpcpcharge-malloc.so before an allocator, and that allocator alone, in one process and slice by
 * slice in turn.
 *
 * The allocator is the C library's; jemalloc or mimalloc where they are preloaded after the
 * library. It is called through pointers, as the library does.
 */
#define _GNU_SOURCE
#include "malloc_load.h"

#include <dlfcn.h>

#include <pcpcharge/pcpcharge.h>

#include "pcpcharge_malloc.h"

/* Contests only: no series of rivals. */
const struct rival *const bench_rivals[] = { NULL };
const unsigned int bench_nr_rivals = 0;

#define NR_TENANTS 100

static struct pcpc_owner *tenants[NR_TENANTS];

/* This thread works for another tenant. */
static void change_tenant(void)
{
	static _Thread_local unsigned int next;

	pcpc_set_active(pcpc_malloc_domain(), tenants[next++ % NR_TENANTS]);
}

/* And for nobody again. */
static void leave_tenants(void)
{
	pcpc_set_active(pcpc_malloc_domain(), NULL);
}

static void *next_function(const char *name, const char **ret_library)
{
	static const char *const libraries[] = { "libjemalloc.so.2", "libmimalloc.so.2",
						 "libc.so.6" };
	void *handle = NULL;

	for (unsigned int i = 0; !handle && i < 3; i++) {
		*ret_library = libraries[i];
		handle = dlopen(libraries[i], RTLD_NOLOAD | RTLD_LAZY);
	}
	return handle ? dlsym(handle, name) : NULL;
}

static void contest(size_t size, size_t kept, bool both, const struct bench_options *options)
{
	const char *library;
	void *(*next_malloc)(size_t) = (void *(*)(size_t))next_function("malloc", &library);
	void (*next_free)(void *) = (void (*)(void *))next_function("free", &library);
	struct load alone = { next_malloc, next_free, size, kept, NULL, NULL };
	struct load process = { malloc, free, size, kept, NULL, NULL };
	struct load others = { malloc, free, size, kept, change_tenant, leave_tenants };
	double (*slice)(void *, double) = both ? load_run_both : load_run;
	struct bench_load loads[] = { BENCH_LOAD(library, slice, &alone),
				      BENCH_LOAD("and the process is charged", slice, &process),
				      BENCH_LOAD("and tenants in turn", slice, &others) };
	char title[80];

	snprintf(title, sizeof(title), "%zu bytes, %zu at a time%s", size, kept,
		 both ? ", both CPUs" : "");
	bench_contest(loads, 3, 200e3, options->brief ? 50 : 500);
	bench_print_contest(title, "ns a pair", loads, 3);
}

static bool make_tenants(void)
{
	struct pcpc_domain *domain = pcpc_malloc_domain();

	for (unsigned int i = 0; i < NR_TENANTS; i++)
		if (!domain || pcpc_owner_create(pcpc_domain_root(domain), NULL, &tenants[i]) < 0)
			return false;
	return true;
}

int main(int argc, char **argv)
{
	static const size_t sizes[] = { 16, 100, 1000, 10000, 100000 };
	struct bench_options options;

	if (!bench_read_options(argc, argv, 5, 30, "", &options) || !make_tenants())
		return 1;
	bench_print_machine(&options);
	bench_pin(options.cpu[0]);
	for (unsigned int i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		contest(sizes[i], 1, false, &options);
		contest(sizes[i], NR_KEPT, false, &options);
	}
	if (options.cpu[1] >= 0 && bench_crew_open(&load_crew, options.cpu[1]) == 0) {
		contest(100, 1, true, &options);
		contest(100, NR_KEPT, true, &options);
		bench_crew_close(&load_crew);
	}
	for (unsigned int i = 0; i < NR_TENANTS; i++)
		if (pcpc_owner_usage_exact(tenants[i]) || pcpc_owner_destroy(tenants[i]) < 0)
			return 1;
	return 0;
}
