// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * owner_hits.c - does a hit cost the same at every depth? Trees of three depths take turns.
 */
#include "owner_bench.h"

#include <errno.h>
#include <stdlib.h>

#include "owner_tree.h"

static const unsigned int depths[] = { 1, 3, 6 };
#define NR_DEPTHS (sizeof(depths) / sizeof(*depths))

static double run(void *context, double ns)
{
	return owner_pairs_run(context, ns);
}

static int measure(const struct bench_options *options, const uint16_t *ids, uint32_t nr_owners)
{
	struct bench_load loads[NR_DEPTHS] = { { .label = "depth 1" },
					       { .label = "depth 3" },
					       { .label = "depth 6" } };
	struct owner_tree trees[NR_DEPTHS];
	struct owner_pairs pairs[NR_DEPTHS];
	char title[64];
	unsigned int i;
	int r = 0;

	for (i = 0; r == 0 && i < NR_DEPTHS; i++) {
		pairs[i] = (struct owner_pairs){ .tree = &trees[i], .ids = ids };
		loads[i].slice = run;
		loads[i].context = &pairs[i];
		r = owner_tree_open(&trees[i], NULL, nr_owners, depths[i], OWNER_TREE_ENDLESS);
	}
	if (r == 0) {
		bench_contest(loads, NR_DEPTHS, 500e3, options->brief ? 100 : 1000);
		snprintf(title, sizeof(title), "hits at any depth, %u owners", nr_owners);
		bench_print_contest(title, "ns a pair", loads, NR_DEPTHS);
		bench_append_csv(options, "hits", nr_owners, loads, NR_DEPTHS);
		snprintf(title, sizeof(title), "a hit at depth 6 / depth 1, %u owners", nr_owners);
		bench_note_target(title, "1", loads[NR_DEPTHS - 1].ratio,
				  loads[NR_DEPTHS - 1].minimum / loads[0].minimum);
	} else {
		i--;
	}
	while (i-- > 0)
		owner_tree_close(&trees[i]);
	return r;
}

int owner_measure_hits(const struct bench_options *options)
{
	static const uint32_t owners[] = { 36, 1000, 20000 };
	uint16_t *ids = bench_alloc(BENCH_IDS * sizeof(*ids));
	int r = ids ? 0 : -ENOMEM;
	unsigned int i;

	bench_pin(options->cpu[0]);
	for (i = 0; r == 0 && i < (options->brief ? 1 : 3); i++) {
		bench_choose_ids(ids, owners[i], options->seed);
		r = measure(options, ids, owners[i]);
	}
	free(ids);
	return r;
}
