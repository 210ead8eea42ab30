// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * owner_tree.c - making and ending a tree of owners.
 */
#include "owner_tree.h"

#include <errno.h>
#include <stdlib.h>

#include "bench.h"

#define STEP 256 /* pairs between two looks at the clock */

static int create_nodes(struct owner_tree *tree, uint64_t max)
{
	struct pcpc_owner_config config = { .size = sizeof(config) };
	const struct tree_shape *shape = &tree->shape;
	struct pcpc_owner *parent;
	uint32_t i;
	int r;

	tree->nodes[0] = pcpc_domain_root(tree->domain);
	r = pcpc_owner_set_max(tree->nodes[0], OWNER_TREE_ENDLESS);
	for (i = 1; r == 0 && i < shape->nr_nodes; i++) {
		config.max = i < shape->first_owner ? OWNER_TREE_ENDLESS : max;
		parent = tree->nodes[tree_shape_parent(shape, i)];
		r = pcpc_owner_create(parent, &config, &tree->nodes[i]);
	}
	return r;
}

int owner_tree_open(struct owner_tree *tree, const struct pcpc_domain_config *domain,
		    uint32_t nr_owners, unsigned int depth, uint64_t max)
{
	const struct pcpc_domain_config plain = { .size = sizeof(plain), .batch = BENCH_BATCH };
	int r;

	tree_shape_init(&tree->shape, nr_owners, depth);
	tree->nodes = calloc(tree->shape.nr_nodes, sizeof(*tree->nodes));
	if (!tree->nodes)
		return -ENOMEM;
	tree->owners = tree->nodes + tree->shape.first_owner - 1;
	r = pcpc_domain_create(domain ? domain : &plain, &tree->domain);
	if (r < 0) {
		free(tree->nodes);
		return r;
	}
	r = create_nodes(tree, max);
	if (r < 0)
		owner_tree_close(tree);
	return r;
}

/* Children first. */
void owner_tree_close(struct owner_tree *tree)
{
	struct pcpc_owner *owner;
	uint32_t i;

	for (i = tree->shape.nr_nodes; i-- > 1;) {
		owner = tree->nodes[i];
		if (owner && i >= tree->shape.first_owner)
			pcpc_uncharge(owner, pcpc_owner_usage_exact(owner));
		pcpc_owner_destroy(owner);
	}
	if (pcpc_domain_destroy(tree->domain) < 0)
		abort();
	free(tree->nodes);
}

double owner_pairs_run(struct owner_pairs *pairs, double ns)
{
	const double started_ns = bench_now_ns();
	struct pcpc_owner *owner;
	uint64_t done = 0;
	double taken_ns;
	uint32_t i;

	do {
		for (i = 0; i < STEP; i++) {
			owner = pairs->tree->owners[pairs->ids[pairs->next++ & (BENCH_IDS - 1)]];
			if (pcpc_charge(owner, 1) < 0)
				abort();
			pcpc_uncharge(owner, 1);
		}
		done += STEP;
		taken_ns = bench_now_ns() - started_ns;
	} while (taken_ns < ns);
	return taken_ns / (double)done;
}
