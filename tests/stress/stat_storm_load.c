// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * stat_storm_load.c - what the threads of the storm do: they update, charge with deltas, create and
 * destroy, and now and then read, flush, drain, poll and fork.
 */
#define _GNU_SOURCE
#include "stat_storm.h"

_Thread_local struct thread *storm_self;

/* A node of some place, with a reference on its owner; or NULL. */
struct node *place_take(uint64_t *random)
{
	struct place *place = &storm.place[below(random, NR_PLACES)];
	struct node *node;

	pthread_mutex_lock(&place->lock);
	node = place->node;
	if (node)
		pcpc_owner_get(node->owner);
	pthread_mutex_unlock(&place->lock);
	return node;
}

static void create(struct thread *self)
{
	struct place *place = &storm.place[below(&self->random, NR_PLACES)];
	struct node *parent = place_take(&self->random), *node;

	if (!parent || below(&self->random, 2)) {
		if (parent)
			pcpc_owner_put(parent->owner);
		parent = storm.fixed[below(&self->random, NR_FIXED)];
		pcpc_owner_get(parent->owner);
	}
	pthread_mutex_lock(&place->lock);
	if (!place->node) {
		node = node_create(parent);
		if (node) {
			place->node = node;
			self->counts[CREATED]++;
		}
	}
	pthread_mutex_unlock(&place->lock);
	pcpc_owner_put(parent->owner);
}

/* Some are updated once more after they went. */
static void destroy(struct thread *self)
{
	struct place *place = &storm.place[below(&self->random, NR_PLACES)];
	bool late = below(&self->random, 2);
	struct node *node;
	int r;

	pthread_mutex_lock(&place->lock);
	node = place->node;
	if (node) {
		pcpc_owner_get(node->owner);
		r = pcpc_owner_destroy(node->owner);
		if (r == 0)
			place->node = NULL;
		else if (r != -EBUSY)
			violation("destroy answered %d", r);
		self->counts[DESTROYED] += r == 0;
		late = late && r == 0;
	}
	pthread_mutex_unlock(&place->lock);
	if (!node)
		return;
	if (late) {
		update(node, &self->random);
		self->counts[LATE]++;
	}
	pcpc_owner_put(node->owner);
}

void destroy_places(void)
{
	bool left = true;
	uint32_t i;

	/* Parents may stand before their children. */
	while (left) {
		left = false;
		for (i = 0; i < NR_PLACES; i++) {
			if (!storm.place[i].node)
				continue;
			if (pcpc_owner_destroy(storm.place[i].node->owner) == 0)
				storm.place[i].node = NULL;
			else
				left = true;
		}
	}
}

/* -- updates -- */

static int64_t some_delta(uint64_t *random)
{
	static const int64_t rare[] = { INT64_MAX, INT64_MIN,  (int64_t)1 << 32,    INT32_MIN,
					1 << 21,   -(1 << 21), -((int64_t)1 << 44), 4096 };

	if (below(random, 200) == 0)
		return rare[below(random, 8)];
	return (int64_t)below(random, 61) - 30;
}

static void raise_all(struct node *node, _Atomic int64_t *(*figure)(struct node *node), int64_t by)
{
	for (; node; node = node->parent)
		atomic_fetch_add(figure(node), by);
}

static _Atomic int64_t *begun(struct node *node)
{
	return &node->begun;
}

static _Atomic int64_t *finished(struct node *node)
{
	return &node->finished;
}

/* One update of an owner that the caller has a reference on, or that is fixed. In handlers too. */
void update(struct node *node, uint64_t *random)
{
	uint32_t numa = (uint32_t)below(random, NR_NUMA);
	int64_t delta;

	if (below(random, 3)) {
		delta = below(random, 50) ? 1 + (int64_t)below(random, 20)
					  : (int64_t)below(random, 1000);
		atomic_fetch_add(&node->asked[numa * NR_ITEMS + RISING], delta);
		raise_all(node, begun, delta);
		pcpc_stat_add_node(node->owner, numa, RISING, delta);
		raise_all(node, finished, delta);
	} else {
		delta = some_delta(random);
		if (below(random, 2)) {
			atomic_fetch_add(&node->asked[PAIRED], delta);
			pcpc_stat_add(node->owner, PAIRED, delta);
		} else {
			atomic_fetch_add(&node->asked[numa * NR_ITEMS + PAIRED], delta);
			pcpc_stat_add_node(node->owner, numa, PAIRED, delta);
		}
	}
}

/* For some time handlers update the same. */
static void update_some(struct thread *self)
{
	struct node *node = place_take(&self->random);
	uint64_t n = 1 + below(&self->random, 100);

	if (!node || below(&self->random, 2)) {
		if (node)
			pcpc_owner_put(node->owner);
		node = storm.fixed[below(&self->random, NR_FIXED)];
		pcpc_owner_get(node->owner);
	}
	self->young = node;
	for (; n; n--) {
		update(node, &self->random);
		self->counts[UPDATES]++;
	}
	self->young = NULL;
	pcpc_owner_put(node->owner);
}

/* -- charges with deltas -- */

static void give_back(struct holding *holding, uint64_t units)
{
	struct node *node = holding->node;

	holding->units -= units;
	if (!holding->units)
		holding->node = NULL;
	atomic_fetch_sub(&node->asked[COUPLED], (int64_t)units);
	pcpc_uncharge_stat(node->owner, units, -(int64_t)units);
}

static void charge(struct thread *self)
{
	struct holding *holding = &self->holding[below(&self->random, NR_HOLDINGS)];
	struct node *node;
	uint64_t units;
	int r;

	if (holding->node) {
		units = holding->units;
		give_back(holding,
			  below(&self->random, 2) ? units : 1 + below(&self->random, units));
		return;
	}
	node = place_take(&self->random);
	if (!node)
		return;
	units = 1 + below(&self->random, below(&self->random, 20) ? 40 : 5000);
	atomic_fetch_add(&node->asked[COUPLED], (int64_t)units);
	r = pcpc_charge_stat(node->owner, units, (int64_t)units);
	self->counts[CHARGES]++;
	if (r == 0) {
		*holding = (struct holding){ node, units };
	} else {
		atomic_fetch_sub(&node->asked[COUPLED], (int64_t)units);
		if (r != -ESHUTDOWN)
			violation("a charge answered %d", r);
	}
	/* Units keep it. */
	pcpc_owner_put(node->owner);
}

/* -- the rest -- */

static void move(struct thread *self)
{
	cpu_set_t allowed, one;
	int cpu = (int)below(&self->random, CPU_SETSIZE), i;

	if (sched_getaffinity(getpid(), sizeof(allowed), &allowed) < 0)
		return;
	for (i = 0; i < CPU_SETSIZE && !CPU_ISSET(cpu, &allowed); i++)
		cpu = (cpu + 1) % CPU_SETSIZE;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	(void)sched_setaffinity(0, sizeof(one), below(&self->random, 2) ? &allowed : &one);
	self->counts[MOVES]++;
}

static void manage(struct thread *self)
{
	switch (below(&self->random, 40)) {
	case 0:
		(void)pcpc_owner_drain(storm.fixed[below(&self->random, NR_FIXED)]->owner);
		self->counts[DRAINS]++;
		break;
	case 1:
	case 2:
		pcpc_domain_poll(storm.domain);
		self->counts[POLLS]++;
		break;
	case 3:
		move(self);
		break;
	case 4:
		if (storm.options.forks && below(&self->random, 4) == 0)
			storm_fork(self);
		break;
	case 5:
		sched_yield();
		break;
	default:
		if (below(&self->random, 2))
			create(self);
		else
			destroy(self);
	}
}

static void step(struct thread *self)
{
	uint64_t what = below(&self->random, 100);
	struct node *node;

	if (what < 50) {
		update_some(self);
	} else if (what < 70) {
		charge(self);
	} else if (what < 85) {
		node = below(&self->random, 2) ? place_take(&self->random) : NULL;
		read_node(self, node ? node : storm.fixed[below(&self->random, NR_FIXED)]);
		if (node)
			pcpc_owner_put(node->owner);
	} else {
		manage(self);
	}
}

void *load(void *thread)
{
	struct thread *self = thread;
	uint32_t i;

	storm_self = self;
	pcpc_thread_register();
	storm_start_timer(self);
	pthread_barrier_wait(&storm.rendezvous);
	for (;;) {
		while (!atomic_load_explicit(&storm.paused, memory_order_relaxed))
			step(self);
		pthread_barrier_wait(&storm.rendezvous);
		pthread_barrier_wait(&storm.rendezvous);
		if (atomic_load(&storm.finished))
			break;
	}
	storm_stop_timer(self);
	for (i = 0; i < NR_HOLDINGS; i++)
		if (self->holding[i].node)
			give_back(&self->holding[i], self->holding[i].units);
	return NULL;
}
