// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * malloc_rivals.c [--short ...] - a pair of malloc() and free() of 64 bytes: the allocator alone,
 * and libpcpcharge-malloc.so before it: with no accounting, with one shared counter, and as it is.
 * In one process, slice by slice in turn.
 */
#define _GNU_SOURCE
#include "malloc_load.h"

/* Contests only: no series of rivals. */
const struct rival *const bench_rivals[] = { NULL };
const unsigned int bench_nr_rivals = 0;

void *none_malloc(size_t size);
void none_free(void *block);
void *atomic_malloc(size_t size);
void atomic_free(void *block);
void *charged_malloc(size_t size);
void charged_free(void *block);

#define SIZE 64

static void contest(size_t kept, bool both, const struct bench_options *options)
{
	struct load alone = { malloc, free, SIZE, kept, NULL, NULL };
	struct load none = { none_malloc, none_free, SIZE, kept, NULL, NULL };
	struct load shared = { atomic_malloc, atomic_free, SIZE, kept, NULL, NULL };
	struct load charged = { charged_malloc, charged_free, SIZE, kept, NULL, NULL };
	double (*slice)(void *, double) = both ? load_run_both : load_run;
	struct bench_load loads[] = { BENCH_LOAD("no accounting", slice, &none),
				      BENCH_LOAD("the allocator alone", slice, &alone),
				      BENCH_LOAD("one shared counter", slice, &shared),
				      BENCH_LOAD("libpcpcharge", slice, &charged) };
	char title[80];

	snprintf(title, sizeof(title), "%d bytes, %zu at a time%s", SIZE, kept,
		 both ? ", both CPUs" : "");
	bench_contest(loads, 4, 200e3, options->brief ? 50 : 500);
	bench_print_contest(title, "ns a pair", loads, 4);
}

int main(int argc, char **argv)
{
	struct bench_options options;

	if (!bench_read_options(argc, argv, 5, 30, "", &options))
		return 1;
	bench_print_machine(&options);
	bench_pin(options.cpu[0]);
	contest(1, false, &options);
	contest(NR_KEPT, false, &options);
	if (options.cpu[1] >= 0 && bench_crew_open(&load_crew, options.cpu[1]) == 0) {
		contest(1, true, &options);
		contest(NR_KEPT, true, &options);
		bench_crew_close(&load_crew);
	}
	return 0;
}
