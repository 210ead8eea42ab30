// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * owner_siblings.c - is a tenant slowed down by others that are at their limits?
 *
 * One thread charges and uncharges 35 owners that are far from any limit. Meanwhile a thread on
 * another CPU spins, or works for siblings of these as fast as it can, which are at their limits.
 */
#include "owner_bench.h"

#include <errno.h>
#include <stdlib.h>

#include "owner_tree.h"

#define NR_FREE 35
#define NR_LIMITED 1000
#define HELD 100 /* units of each limited owner, which are its max */

struct siblings {
	struct owner_tree tree; /* owners 1..NR_FREE, NR_LIMITED twice, and one that has room */
	uint16_t *ids;
	struct owner_pairs pairs;
	struct bench_crew *crew;
} __attribute__((aligned(128)));

/* What the other thread does. */
struct other {
	struct siblings *siblings;
	void (*step)(struct pcpc_owner *owner);
	uint32_t first_owner, nr_owners; /* of the limited ones */
	bool warm;			 /* the first slice is over: from then on it is counted */
	_Atomic bool stop;
	uint64_t slice_steps, steps, drains;
	double busy_ns;
} __attribute__((aligned(128)));

static void idle(struct pcpc_owner *owner)
{
	(void)owner;
}

static void room(struct pcpc_owner *owner)
{
	if (pcpc_charge(owner, 1) < 0)
		abort();
	pcpc_uncharge(owner, 1);
}

static void refused(struct pcpc_owner *owner)
{
	if (!pcpc_charge(owner, 1))
		abort();
}

/* One goes, one comes, and one finds no room. */
static void turnover(struct pcpc_owner *owner)
{
	pcpc_uncharge(owner, 1);
	if (pcpc_charge(owner, 1) < 0 || !pcpc_charge(owner, 1))
		abort();
}

/* After a new max nothing is known: what was made sure of before has to be made sure of again. */
static void refused_anew(struct pcpc_owner *owner)
{
	pcpc_owner_set_max(owner, HELD + 1);
	pcpc_owner_set_max(owner, HELD);
	refused(owner);
}

/* Every owner at least once. */
static void work_beside(void *argument)
{
	struct other *other = argument;
	struct pcpc_owner *const *owners =
		&other->siblings->tree.owners[NR_FREE + 1 + other->first_owner];
	uint64_t steps = 0;
	uint32_t next = 0;

	/* Relaxed: a flag. */
	while (steps < other->nr_owners ||
	       !atomic_load_explicit(&other->stop, memory_order_relaxed)) {
		other->step(owners[next]);
		next = next + 1 < other->nr_owners ? next + 1 : 0;
		steps++;
	}
	other->slice_steps = steps;
}

static double run(void *context, double ns)
{
	struct other *other = context;
	struct siblings *siblings = other->siblings;
	const struct pcpc_owner *root = siblings->tree.nodes[0];
	uint64_t drains = pcpc_owner_events(root, PCPC_EVENT_DRAIN);
	const double started_ns = bench_now_ns();
	double pair_ns;

	atomic_store_explicit(&other->stop, false, memory_order_relaxed);
	bench_crew_begin(siblings->crew, work_beside, other);
	pair_ns = owner_pairs_run(&siblings->pairs, ns);
	atomic_store_explicit(&other->stop, true, memory_order_relaxed);
	bench_crew_end(siblings->crew);
	if (other->warm) {
		other->busy_ns += bench_now_ns() - started_ns;
		other->steps += other->slice_steps;
		other->drains += pcpc_owner_events(root, PCPC_EVENT_DRAIN) - drains;
	}
	other->warm = true;
	return pair_ns;
}

static int open_siblings(struct siblings *siblings, uint64_t seed)
{
	struct owner_tree *tree = &siblings->tree;
	uint16_t *ids = bench_alloc(BENCH_IDS * sizeof(*ids));
	uint32_t i;
	int r;

	if (!ids)
		return -ENOMEM;
	bench_choose_ids(ids, NR_FREE, seed);
	siblings->ids = ids;
	siblings->pairs = (struct owner_pairs){ .tree = tree, .ids = ids };
	r = owner_tree_open(tree, NULL, NR_FREE + 2 * NR_LIMITED + 1, 1, OWNER_TREE_ENDLESS);
	for (i = 1; r == 0 && i <= 2 * NR_LIMITED; i++) {
		r = pcpc_owner_set_max(tree->owners[NR_FREE + i], HELD);
		if (r == 0)
			r = pcpc_charge(tree->owners[NR_FREE + i], HELD);
	}
	return r;
}

static int check_and_close(struct siblings *siblings)
{
	uint64_t held = pcpc_owner_usage_exact(siblings->tree.nodes[0]);

	owner_tree_close(&siblings->tree);
	free(siblings->ids);
	return held == (uint64_t)HELD * 2 * NR_LIMITED ? 0 : -EILSEQ;
}

static void contest(const struct bench_options *options, struct siblings *siblings)
{
	struct other others[] = {
		{ .step = idle, .nr_owners = 1 },
		{ .step = room, .first_owner = 2 * NR_LIMITED, .nr_owners = 1 },
		{ .step = refused, .nr_owners = 1 },
		{ .step = refused, .nr_owners = NR_LIMITED },
		{ .step = turnover, .nr_owners = 1 },
		{ .step = turnover, .nr_owners = NR_LIMITED },
		{ .step = refused_anew, .first_owner = NR_LIMITED, .nr_owners = NR_LIMITED },
	};
	struct bench_load loads[] = {
		BENCH_LOAD("spins", run, &others[0]),
		BENCH_LOAD("charges one that has room", run, &others[1]),
		BENCH_LOAD("1 tenant is refused all the time", run, &others[2]),
		BENCH_LOAD("1,000 tenants are refused in turn", run, &others[3]),
		BENCH_LOAD("1 tenant at its limit, with turnover", run, &others[4]),
		BENCH_LOAD("1,000 tenants at their limits, with turnover", run, &others[5]),
		BENCH_LOAD("1,000 tenants get a new max and are refused", run, &others[6]),
	};
	const unsigned int nr_loads = sizeof(loads) / sizeof(*loads);
	char text[80];
	unsigned int i;

	for (i = 0; i < nr_loads; i++)
		others[i].siblings = siblings;
	bench_contest(loads, nr_loads, options->brief ? 20e6 : 150e6, options->brief ? 7 : 15);
	bench_print_contest("siblings, while the other CPU", "ns a pair", loads, nr_loads);
	bench_append_csv(options, "siblings", NR_FREE, loads, nr_loads);
	for (i = 2; i < nr_loads; i++) {
		snprintf(text, sizeof(text), "siblings: %s", loads[i].label);
		bench_note_target(text, others[i].step == refused_anew ? "" : "1.10 or less",
				  loads[i].ratio, loads[i].minimum / loads[0].minimum);
		printf("  %-44s%10.1f drains/s, %.1f a million refusals, %.0f ns a step\n",
		       loads[i].label, (double)others[i].drains * 1e9 / others[i].busy_ns,
		       (double)others[i].drains * 1e6 / (double)others[i].steps,
		       others[i].busy_ns / (double)others[i].steps);
	}
}

int owner_measure_siblings(const struct bench_options *options)
{
	struct siblings siblings = { 0 };
	struct bench_crew crew;
	int r, q;

	if (options->cpu[1] < 0) {
		printf("\nsiblings: needs a second CPU\n");
		return 0;
	}
	bench_pin(options->cpu[0]);
	r = open_siblings(&siblings, options->seed);
	if (r == 0)
		r = bench_crew_open(&crew, options->cpu[1]);
	if (r < 0)
		return r;
	siblings.crew = &crew;
	contest(options, &siblings);
	bench_crew_close(&crew);
	q = check_and_close(&siblings);
	return q < 0 ? q : r;
}
