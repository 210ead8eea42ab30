// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * bench_contest.c - a few loads that take turns, and their ratios.
 */
#define _GNU_SOURCE
#include "bench.h"

#include <stdlib.h>

/* The first round is not told: it is the first time for everything. */
static void run_rounds(struct bench_load *loads, unsigned int nr_loads, double slice_ns,
		       unsigned int rounds)
{
	unsigned int round, turn;
	struct bench_load *load;

	for (turn = 0; turn < nr_loads; turn++)
		loads[turn].slice(loads[turn].context, slice_ns);
	for (round = 0; round < rounds; round++) {
		for (turn = 0; turn < nr_loads; turn++) {
			load = &loads[(turn + round) % nr_loads];
			load->ns[round] = load->slice(load->context, slice_ns);
		}
	}
}

void bench_contest(struct bench_load *loads, unsigned int nr_loads, double slice_ns,
		   unsigned int rounds)
{
	unsigned int i;

	for (i = 0; i < nr_loads; i++) {
		loads[i].rounds = rounds;
		loads[i].ns = calloc(rounds, sizeof(double));
		if (!loads[i].ns)
			abort();
	}
	run_rounds(loads, nr_loads, slice_ns, rounds);
	for (i = 0; i < nr_loads; i++)
		loads[i].ratio = bench_ratio(loads[i].ns, loads[0].ns, rounds);
	for (i = 0; i < nr_loads; i++) {
		loads[i].median = bench_median(loads[i].ns, rounds);
		loads[i].minimum = loads[i].ns[0];
		free(loads[i].ns);
		loads[i].ns = NULL;
	}
}

void bench_print_contest(const char *title, const char *unit, const struct bench_load *loads,
			 unsigned int nr_loads)
{
	unsigned int i;

	printf("\n%-52s%11s%11s%9s\n", title, unit, "minimum", "ratio");
	for (i = 0; i < nr_loads; i++)
		printf("%-52s%11.1f%11.1f%9.2f\n", loads[i].label, loads[i].median,
		       loads[i].minimum, loads[i].ratio);
}
