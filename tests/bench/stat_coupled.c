// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * stat_coupled.c - a charge that moves its item in the same word, beside a charge and an update of
 * its own.
 *
 * A charge of one unit counts 2, its uncharge takes 1 off again, so that each pair leaves one and
 * something is applied now and then.
 */
#include <errno.h>
#include <stdlib.h>

#include "stat_bench.h"
#include "stat_tree.h"

#define COUPLED_ITEM 0

static struct pcpc_owner *owner_at(void *state, const uint16_t *ids, uint32_t step)
{
	const struct owner_tree *tree = state;

	return tree->owners[ids[step]];
}

static void charge_only(void *state, const uint16_t *ids)
{
	struct pcpc_owner *owner;
	uint32_t i;

	for (i = 0; i < STAT_STEPS; i++) {
		owner = owner_at(state, ids, i);
		if (pcpc_charge(owner, 1) < 0)
			abort();
		pcpc_uncharge(owner, 1);
	}
}

static void charge_coupled(void *state, const uint16_t *ids)
{
	struct pcpc_owner *owner;
	uint32_t i;

	for (i = 0; i < STAT_STEPS; i++) {
		owner = owner_at(state, ids, i);
		if (pcpc_charge_stat(owner, 1, 2) < 0)
			abort();
		pcpc_uncharge_stat(owner, 1, -1);
	}
}

static void charge_separate(void *state, const uint16_t *ids)
{
	struct pcpc_owner *owner;
	uint32_t i;

	for (i = 0; i < STAT_STEPS; i++) {
		owner = owner_at(state, ids, i);
		if (pcpc_charge(owner, 1) < 0)
			abort();
		pcpc_stat_add(owner, COUPLED_ITEM, 2);
		pcpc_uncharge(owner, 1);
		pcpc_stat_add(owner, COUPLED_ITEM, -1);
	}
}

static stat_steps *const kinds[] = { charge_coupled, charge_separate, charge_only };
#define NR_KINDS (sizeof(kinds) / sizeof(*kinds))

static bool exact(const struct owner_tree *tree, const struct stat_load *load)
{
	int64_t expected = load->steps == charge_only ? 0 : (int64_t)load->done;

	return pcpc_stat_read_exact(tree->nodes[0], COUPLED_ITEM) == expected;
}

static void contest(const struct bench_options *options, struct stat_load loads[NR_KINDS],
		    uint32_t nr_owners, unsigned int depth)
{
	struct bench_load contest[NR_KINDS] = {
		BENCH_LOAD("charge_stat, uncharge_stat", stat_load_run, &loads[0]),
		BENCH_LOAD("charge, stat_add, uncharge, stat_add", stat_load_run, &loads[1]),
		BENCH_LOAD("charge, uncharge", stat_load_run, &loads[2]),
	};
	const char *cpus = loads[0].crew ? "two CPUs" : "one CPU";
	char text[80];

	bench_contest(contest, NR_KINDS, 300e3, options->brief ? 40 : 400);
	snprintf(text, sizeof(text), "coupled: %u owners, depth %u, %s", nr_owners, depth, cpus);
	bench_print_contest(text, "ns a pair", contest, NR_KINDS);
	bench_append_csv(options, loads[0].crew ? "coupled_two" : "coupled", nr_owners, contest,
			 NR_KINDS);
	snprintf(text, sizeof(text), "separate / coupled: %u owners, depth %u, %s", nr_owners,
		 depth, cpus);
	bench_note_target(text, "", contest[1].ratio,
			  loads[0].crew ? 0 : contest[1].minimum / contest[0].minimum);
}

static int measure(const struct bench_options *options, struct bench_crew *crew,
		   const uint16_t *ids, uint32_t nr_owners, unsigned int depth)
{
	const struct stat_tree_config config = {
		.nr_owners = nr_owners,
		.depth = depth,
		.nr_items = STAT_ITEMS,
	};
	struct owner_tree trees[NR_KINDS];
	struct stat_load loads[NR_KINDS];
	unsigned int i, opened;
	int r = 0;

	for (i = 0; r == 0 && i < NR_KINDS; i++) {
		loads[i] = (struct stat_load){
			.steps = kinds[i],
			.state = &trees[i],
			.ids = ids,
			.crew = crew,
			.next_beside = BENCH_IDS / 2,
		};
		r = stat_tree_open(&trees[i], &config);
	}
	opened = r < 0 ? i - 1 : i;
	if (r == 0)
		contest(options, loads, nr_owners, depth);
	for (i = 0; i < opened; i++) {
		if (r == 0 && !exact(&trees[i], &loads[i]))
			r = -EILSEQ;
		owner_tree_close(&trees[i]);
	}
	return r;
}

int stat_measure_coupled(const struct bench_options *options)
{
	static const uint32_t owners[] = { 36, 1, 1000 };
	static const unsigned int depths[] = { 1, 6 };
	uint16_t *ids = bench_alloc(BENCH_IDS * sizeof(*ids));
	struct bench_crew crew;
	unsigned int i, d;
	int r = ids ? 0 : -ENOMEM;

	bench_pin(options->cpu[0]);
	if (r == 0 && options->cpu[1] >= 0)
		r = bench_crew_open(&crew, options->cpu[1]);
	if (r < 0)
		return r;
	for (i = 0; r == 0 && i < (options->brief ? 1 : 3); i++) {
		bench_choose_ids(ids, owners[i], options->seed);
		for (d = 0; r == 0 && d < 2; d++) {
			r = measure(options, NULL, ids, owners[i], depths[d]);
			if (r == 0 && options->cpu[1] >= 0)
				r = measure(options, &crew, ids, owners[i], depths[d]);
		}
	}
	if (options->cpu[1] >= 0)
		bench_crew_close(&crew);
	free(ids);
	return r;
}
