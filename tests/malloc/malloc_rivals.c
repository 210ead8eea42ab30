// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * malloc_rivals.c [--short ...] - a pair of malloc() and free() of 64 bytes: the allocator alone,
 * and libpcpcharge-malloc.so before it: with no accounting, with one shared counter, and as it is.
 * In one process, slice by slice in turn.
 */
#define _GNU_SOURCE
#include "bench.h"

#include <stdlib.h>

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
#define NR_KEPT 256

struct load {
	void *(*allocate)(size_t size);
	void (*release)(void *block);
	size_t kept; /* blocks that are held at a time: 1 is a pair */
};

/* ns a pair. */
static double run(void *context, double ns)
{
	static _Thread_local void *kept[NR_KEPT];
	const struct load *load = context;
	double begun = bench_now_ns(), now;
	uint64_t pairs = 0;
	size_t done, i;

	do {
		for (done = 0; done < NR_KEPT; done += load->kept) {
			for (i = 0; i < load->kept; i++) {
				kept[i] = load->allocate(SIZE);
				*(volatile char *)kept[i] = 1;
			}
			for (i = 0; i < load->kept; i++)
				load->release(kept[i]);
		}
		pairs += NR_KEPT;
		now = bench_now_ns();
	} while (now - begun < ns);
	return (now - begun) / (double)pairs;
}

static struct bench_crew crew;

struct second {
	struct load *load;
	double ns;
};

static void run_second(void *argument)
{
	struct second *second = argument;

	(void)run(second->load, second->ns);
}

/* The same on the other CPU at the same time. */
static double run_both(void *context, double ns)
{
	struct second second = { context, ns };
	double mine;

	bench_crew_begin(&crew, run_second, &second);
	mine = run(context, ns);
	bench_crew_end(&crew);
	return mine;
}

static void contest(size_t kept, bool both, const struct bench_options *options)
{
	struct load alone = { malloc, free, kept };
	struct load none = { none_malloc, none_free, kept };
	struct load shared = { atomic_malloc, atomic_free, kept };
	struct load charged = { charged_malloc, charged_free, kept };
	double (*slice)(void *, double) = both ? run_both : run;
	struct bench_load loads[] = { BENCH_LOAD("no accounting", slice, &none),
				      BENCH_LOAD("the allocator alone", slice, &alone),
				      BENCH_LOAD("one shared counter", slice, &shared),
				      BENCH_LOAD("libpcpcharge", slice, &charged) };
	char title[80];

	snprintf(title, sizeof(title), "64 bytes, %zu at a time%s", kept,
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
	if (options.cpu[1] >= 0 && bench_crew_open(&crew, options.cpu[1]) == 0) {
		contest(1, true, &options);
		contest(NR_KEPT, true, &options);
		bench_crew_close(&crew);
	}
	return 0;
}
