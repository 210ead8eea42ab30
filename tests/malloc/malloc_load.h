/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * malloc_load.h - what the benchmarks of malloc() measure: pairs of an allocation and its end, on
 * one CPU or on both at the same time.
 */
#ifndef MALLOC_LOAD_H
#define MALLOC_LOAD_H

#include <stdint.h>
#include <stdlib.h>

#include "bench.h"

#define NR_KEPT 1024

struct load {
	void *(*allocate)(size_t size);
	void (*release)(void *block);
	size_t size;
	size_t kept;	    /* blocks that are held at a time: 1 is a pair */
	void (*turn)(void); /* before each round of these; NULL: nothing */
	void (*end)(void);  /* after the last; NULL: nothing */
};

/* Allocates and frees for about ns; the blocks go in the order they came. ns a pair. */
static inline double load_run(void *context, double ns)
{
	static _Thread_local void *kept[NR_KEPT];
	const struct load *load = context;
	double begun = bench_now_ns(), now;
	uint64_t pairs = 0;

	do {
		for (size_t done = 0; done < NR_KEPT; done += load->kept) {
			if (load->turn)
				load->turn();
			for (size_t i = 0; i < load->kept; i++) {
				kept[i] = load->allocate(load->size);
				*(volatile char *)kept[i] = 1;
			}
			for (size_t i = 0; i < load->kept; i++)
				load->release(kept[i]);
		}
		pairs += NR_KEPT;
		now = bench_now_ns();
	} while (now - begun < ns);
	if (load->end)
		load->end();
	return (now - begun) / (double)pairs;
}

/* To be opened on the other CPU before load_run_both(). */
static struct bench_crew load_crew;

struct load_second {
	void *load;
	double ns;
};

static inline void load_run_second(void *argument)
{
	struct load_second *second = argument;

	(void)load_run(second->load, second->ns);
}

/* The same on the other CPU at the same time. */
static inline double load_run_both(void *context, double ns)
{
	struct load_second second = { context, ns };
	double mine;

	bench_crew_begin(&load_crew, load_run_second, &second);
	mine = load_run(context, ns);
	bench_crew_end(&load_crew);
	return mine;
}

#endif
