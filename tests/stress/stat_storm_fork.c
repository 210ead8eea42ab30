// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * stat_storm_fork.c - forks in the middle of the storm, and what the child does (G9).
 *
 * The child has one thread. What the others' updates were moving just then may be missing there, or
 * come late.
 */
#define _GNU_SOURCE
#include "stat_storm.h"

#include <sys/wait.h>

/* A failed check ends the child. */
#define IN_CHILD(condition)                                                                 \
	do {                                                                                \
		if (!(condition)) {                                                         \
			violation("%s:%d: in a child: %s", __FILE__, __LINE__, #condition); \
			_exit(1);                                                           \
		}                                                                           \
	} while (0)

/* A thread and its handler may each have a delta in hand, of its own and of one it evicted. */
static int64_t in_hand(void)
{
	return 4 * (int64_t)storm.options.threads * (int64_t)storm.domain->delta_batch;
}

static struct pcpc_owner *create(struct pcpc_owner *parent)
{
	struct node *node = calloc(1, sizeof(*node));
	const struct pcpc_owner_config config = { .size = sizeof(config), .context = node };
	struct pcpc_owner *owner = NULL;

	IN_CHILD(node);
	IN_CHILD(pcpc_owner_create(parent, &config, &owner) == 0);
	return owner;
}

/* All on owners of its own, of which it knows everything. */
static void use_own_tree(void)
{
	struct pcpc_owner *top = create(storm.fixed[0]->owner), *leaf = create(top);
	int i;

	for (i = 1; i <= 100; i++)
		pcpc_stat_add(leaf, RISING, i);
	IN_CHILD(pcpc_stat_read_exact(top, RISING) == 5050);
	atomic_fetch_add(&storm.fixed[0]->begun, 5050);
	atomic_fetch_add(&storm.fixed[0]->finished, 5050);
	pcpc_stat_add_node(leaf, 1, PAIRED, INT64_MIN);
	pcpc_stat_flush(storm.fixed[0]->owner);
	IN_CHILD(pcpc_charge_stat(leaf, 100, 77) == 0);
	IN_CHILD(pcpc_stat_read_exact(top, COUPLED) == 77);
	IN_CHILD(pcpc_owner_destroy(leaf) == 0);
	pcpc_stat_add(leaf, PAIRED, 5);
	IN_CHILD(pcpc_stat_read_exact(top, PAIRED) == INT64_MIN + 5);
	pcpc_uncharge_stat(leaf, 100, -77);
	pcpc_domain_poll(storm.domain);
	IN_CHILD(pcpc_stat_read_exact(top, COUPLED) == 0);
	IN_CHILD(pcpc_stat_read_exact(top, RISING) == 5050);
	IN_CHILD(pcpc_stat_read_local(top, RISING) == 0);
	IN_CHILD(pcpc_owner_destroy(top) == 0);
}

static void use_inherited(void)
{
	struct node *node;
	int64_t least, value, late;
	int i;

	for (i = NR_FIXED; i--;) {
		node = storm.fixed[i];
		least = atomic_load(&node->finished);
		value = pcpc_stat_read_exact(node->owner, RISING);
		IN_CHILD(value >= least - in_hand());
		IN_CHILD(value <= atomic_load(&node->begun));
		pcpc_stat_add(node->owner, RISING, 1000);
		late = pcpc_stat_read_exact(node->owner, RISING) - value - 1000;
		IN_CHILD(late >= 0 && late <= in_hand());
		pcpc_stat_add(node->owner, RISING, -1000);
	}
}

static void in_child(struct thread *self)
{
	uint32_t i;

	alarm(60);
	storm.is_child = true;
	use_own_tree();
	use_inherited();
	/* What it holds goes back, and what it updates is there. */
	for (i = 0; i < NR_HOLDINGS; i++)
		if (self->holding[i].node)
			pcpc_uncharge_stat(self->holding[i].node->owner, self->holding[i].units, 0);
	storm_start_timer(self);
	for (i = 0; i < 200; i++)
		update(storm.fixed[i % NR_FIXED], &self->random);
	storm_stop_timer(self);
	pcpc_domain_poll(storm.domain);
	use_own_tree();
	_exit(atomic_load(&violations) > 0);
}

void storm_fork(struct thread *self)
{
	uint32_t found = atomic_load(&violations);
	int status = 0;
	pid_t child;

	if (atomic_fetch_add(&storm.forks, 1) >= storm.options.forks)
		return;
	child = fork();
	MUST(child >= 0);
	if (child == 0) {
		atomic_store(&violations, 0);
		in_child(self);
	}
	while (waitpid(child, &status, 0) < 0)
		MUST(errno == EINTR);
	if (WIFSIGNALED(status) || WEXITSTATUS(status))
		violation("a child ended with status 0x%x, %" PRIu32 " were found before",
			  (unsigned int)status, found);
	self->counts[FORKS]++;
}
