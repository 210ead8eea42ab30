// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * owner_storm_fork.c - forks in the middle of the storm, from any thread, from inside reclaim
 * functions too; and what the child does (G9).
 *
 * The child has one thread, the tree as it was, and units of that thread. What the others held, and
 * what they were moving, stays counted.
 */
#define _GNU_SOURCE
#include "owner_storm.h"

#include <sys/wait.h>

/* A failed check ends the child. */
#define IN_CHILD(condition)                                                                 \
	do {                                                                                \
		if (!(condition)) {                                                         \
			violation("%s:%d: in a child: %s", __FILE__, __LINE__, #condition); \
			_exit(1);                                                           \
		}                                                                           \
	} while (0)

static struct pcpc_owner *create(struct pcpc_owner *parent, uint64_t max)
{
	struct node *node = node_new(NULL);
	const struct pcpc_owner_config config = {
		.size = sizeof(config), .name = "of a child", .max = max, .context = node
	};
	struct pcpc_owner *owner = NULL;

	IN_CHILD(pcpc_owner_create(parent, &config, &owner) == 0);
	return owner;
}

static void *charge_beside(void *owner)
{
	int i;

	for (i = 0; i < 200; i++) {
		IN_CHILD(pcpc_charge(owner, 3) == 0);
		pcpc_uncharge(owner, 3);
	}
	return NULL;
}

/* All on owners of its own, of which it knows everything. */
static void use_own_tree(struct thread *self)
{
	struct pcpc_owner *limited = create(storm.root->owner, 1000);
	struct pcpc_owner *one = create(limited, 0), *other = create(limited, 0);
	pthread_t thread;

	if (!THREAD_SANITIZED)
		IN_CHILD(pthread_create(&thread, NULL, charge_beside, one) == 0);
	IN_CHILD(pcpc_charge(other, 900) == 0);
	(void)pcpc_owner_drain(storm.root->owner);
	IN_CHILD(pcpc_charge(other, 97) == 0);
	if (!THREAD_SANITIZED)
		pthread_join(thread, NULL);
	IN_CHILD(pcpc_charge(one, 3) == 0);
	IN_CHILD(pcpc_owner_usage_exact(limited) == 1000);
	/* Inside a reclaim function it may not sleep. */
	if (!self->reclaiming)
		IN_CHILD(pcpc_charge_wait(one, 1, 1000) == -ETIMEDOUT);
	IN_CHILD(pcpc_charge(one, 1) == -EDQUOT);
	if (storm.has_items) {
		pcpc_stat_add(one, 1, 5);
		pcpc_stat_add(other, 1, -2000);
		IN_CHILD(pcpc_stat_read_exact(limited, 1) == -1995);
	}
	IN_CHILD(pcpc_transfer(other, one, 7) == 0);
	IN_CHILD(pcpc_owner_set_max(limited, 10) == 0);
	pcpc_uncharge(other, 990);
	IN_CHILD(pcpc_charge_flags(other, 1, PCPC_FORCE | PCPC_NOWAIT, NULL) == 0);
	IN_CHILD(pcpc_owner_destroy(one) == 0);
	pcpc_uncharge(one, 10);
	pcpc_uncharge(other, 1);
	IN_CHILD(pcpc_owner_usage_exact(limited) == 0);
	IN_CHILD(pcpc_owner_destroy(other) == 0);
	IN_CHILD(pcpc_owner_destroy(limited) == 0);
}

/* Nobody else reclaims or waits any more, so this comes to an end. */
static void charge_inherited(struct pcpc_owner *owner)
{
	int r = pcpc_charge(owner, 20);

	IN_CHILD(r == 0 || r == -EDQUOT || r == -ESHUTDOWN || r == -EAGAIN);
	if (r == 0)
		pcpc_uncharge(owner, 20);
}

/* What it inherited: usage is at least what is held, and its own units go back. */
static void use_inherited(struct thread *self)
{
	struct holding *holding;
	struct pcpc_owner *owner;
	uint32_t i;

	check_node(storm.fair);
	for (i = 0; i < NR_HOLDINGS; i++) {
		holding = &self->holding[i];
		if (!holding->units || holding->in_use)
			continue;
		check_node(holding->node);
		owner = holding->node->owner;
		i % 2 ? (void)pcpc_owner_drain(owner) : pcpc_domain_poll(storm.domain);
		IN_CHILD(pcpc_owner_usage_exact(owner) >= holding->units);
		/* Not for reclaim: it is what keeps the owner meanwhile. */
		holding->in_use = true;
		charge_inherited(owner);
		account(holding->node, NULL, holding->units, false);
		pcpc_uncharge(owner, holding->units);
		if (holding->reference)
			pcpc_owner_put(owner);
	}
}

static bool visit(struct pcpc_owner *owner, unsigned int depth, void *context)
{
	++*(uint32_t *)context;
	/* No call but perhaps this thread's own is in progress. */
	IN_CHILD(storm_self->reclaiming || !(atomic_load(&books_of(owner)->cap) & CAP_PINS));
	return depth <= DEEPEST && pcpc_owner_id(owner);
}

static void in_child(struct thread *self)
{
	uint32_t seen = 0;

	alarm(60);
	storm.is_child = true;
	use_own_tree(self);
	use_inherited(self);
	pcpc_owner_walk(storm.root->owner, visit, &seen);
	IN_CHILD(seen >= 2);
	use_own_tree(self);
	pcpc_domain_poll(storm.domain);
	(void)pcpc_owner_drain(storm.root->owner);
	IN_CHILD(pcpc_domain_destroy(storm.domain) == (self->reclaiming ? -EDEADLK : -EBUSY));
	IN_CHILD(pcpc_owner_events(storm.root->owner, PCPC_EVENT_UNDERFLOW) == 0);
	/* With destructors and without. */
	if (getpid() % 2 && !SANITIZED)
		exit(atomic_load(&violations) > 0);
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
