/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * owner_tree.h - a domain with a tree of owners in the shape that the rivals' trees have.
 */
#ifndef PCPCHARGE_BENCH_OWNER_TREE_H
#define PCPCHARGE_BENCH_OWNER_TREE_H

#include <pcpcharge/charge.h>

#include "rivals.h"

struct owner_tree {
	struct pcpc_domain *domain;
	struct pcpc_owner **nodes;  /* by node of the shape; the root is the first */
	struct pcpc_owner **owners; /* 1..nr_owners; of owner 0, which does not exist */
	struct tree_shape shape;
};

#define OWNER_TREE_ENDLESS ((uint64_t)INT64_MAX / 2) /* a max that is tested and never reached */

/* max: of each of the last level; those above have OWNER_TREE_ENDLESS. domain may be NULL. */
int owner_tree_open(struct owner_tree *tree, const struct pcpc_domain_config *domain,
		    uint32_t nr_owners, unsigned int depth, uint64_t max);
/* Gives back what is held, whatever that is. Aborts where units were made: the domain is busy. */
void owner_tree_close(struct owner_tree *tree);

/* A load: charges and uncharges of one unit, of owners by a list. */
struct owner_pairs {
	struct owner_tree *tree;
	const uint16_t *ids; /* BENCH_IDS of them */
	uint32_t next;
};
/* For that long; returns ns a pair. */
double owner_pairs_run(struct owner_pairs *pairs, double ns);

#endif
