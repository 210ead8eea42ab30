// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * stat_tree.c - making and checking a tree of owners with items; loads on one CPU or both.
 */
#include "stat_tree.h"

#include <errno.h>
#include <stdlib.h>

int stat_tree_open(struct owner_tree *tree, const struct stat_tree_config *config)
{
	struct pcpc_item *items = calloc(config->nr_items + 1, sizeof(*items));
	const struct pcpc_domain_config domain = {
		.size = sizeof(domain),
		.batch = BENCH_BATCH,
		.items = items,
		.nr_items = config->nr_items,
		.delta_batch = config->delta_batch,
		.engine = config->engine,
		.index = PCPC_INDEX_CPU,
	};
	int r = items ? 0 : -ENOMEM;

	if (r == 0)
		r = owner_tree_open(tree, &domain, config->nr_owners, config->depth,
				    OWNER_TREE_ENDLESS);
	free(items);
	return r;
}

static bool node_exact(struct pcpc_owner *node, uint32_t item, int64_t sum, bool leaf)
{
	return pcpc_stat_read(node, item) == sum &&
	       pcpc_stat_read_local(node, item) == (leaf ? sum : 0);
}

static bool item_exact(const struct owner_tree *tree, uint32_t item, int64_t *sums)
{
	const struct tree_shape *shape = &tree->shape;
	uint32_t i;

	/* After this all is applied and flushed. */
	pcpc_stat_read_exact(tree->nodes[0], item);
	for (i = shape->nr_nodes; i-- > 0;) {
		if (!node_exact(tree->nodes[i], item, sums[i], i >= shape->first_owner))
			return false;
		if (i)
			sums[tree_shape_parent(shape, i)] += sums[i];
	}
	return true;
}

bool stat_tree_exact(const struct owner_tree *tree, const int64_t *counted, uint32_t nr_pairs)
{
	const struct tree_shape *shape = &tree->shape;
	bool exact = true;
	uint32_t item, pair;
	int64_t *sums;

	for (item = 0; exact && item < STAT_ITEMS; item++) {
		sums = calloc(shape->nr_nodes, sizeof(*sums));
		if (!sums)
			abort();
		for (pair = item + 1; pair <= nr_pairs; pair += STAT_ITEMS)
			sums[shape->first_owner + stat_pair_owner(pair) - 1] = counted[pair];
		exact = item_exact(tree, item, sums);
		free(sums);
	}
	return exact;
}

static void run_steps(const struct stat_load *load, uint32_t *next)
{
	load->steps(load->state, &load->ids[*next & (BENCH_IDS - 1)]);
	*next += STAT_STEPS;
}

static void run_beside(void *argument)
{
	struct stat_load *load = argument;

	/* Relaxed: a flag. */
	while (!atomic_load_explicit(&load->stop, memory_order_relaxed)) {
		run_steps(load, &load->next_beside);
		load->done_beside += STAT_STEPS;
	}
}

double stat_load_run(void *context, double ns)
{
	struct stat_load *load = context;
	double started_ns, taken_ns;
	uint64_t done = 0;

	atomic_store_explicit(&load->stop, false, memory_order_relaxed);
	if (load->crew)
		bench_crew_begin(load->crew, run_beside, load);
	started_ns = bench_now_ns();
	do {
		run_steps(load, &load->next);
		done += STAT_STEPS;
		taken_ns = bench_now_ns() - started_ns;
	} while (taken_ns < ns);
	atomic_store_explicit(&load->stop, true, memory_order_relaxed);
	if (load->crew)
		bench_crew_end(load->crew);
	load->done += done + load->done_beside;
	load->done_beside = 0;
	return taken_ns / (double)done;
}
