// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * owner_storm_load.c - what the threads of the storm do: everything that owner.h and charge.h
 * allow.
 */
#define _GNU_SOURCE
#include "owner_storm.h"

_Thread_local struct thread *storm_self;

static void uncharge(struct thread *self)
{
	struct holding *holding = some_holding(self);

	if (!holding)
		return;
	give_back(self, holding,
		  below(&self->random, 2) ? holding->units
					  : 1 + below(&self->random, holding->units));
}

/* -- charging -- */

/* How the next charge is made. */
enum way { PLAIN, NOWAIT, NORECLAIM, FORCE, FORCE_NOWAIT, STAT, IN_SECTION, WAIT, WAYS };

struct call {
	enum way way;
	struct node *node;
	uint64_t units;
	int64_t delta;
	struct pcpc_refusal refusal;
	bool has_refusal;
};

static void mark_forced(struct node *node)
{
	for (; node; node = node->parent)
		atomic_store(&node->forced, true);
}

static int call_flags(struct call *call, unsigned int flags)
{
	int r;

	memset(&call->refusal, 0, sizeof(call->refusal));
	r = pcpc_charge_flags(call->node->owner, call->units, flags, &call->refusal);
	call->has_refusal = r == -EDQUOT || r == -EAGAIN;
	return r;
}

static int call_charge(struct thread *self, struct call *call)
{
	struct pcpc_owner *owner = call->node->owner;
	int r;

	switch (call->way) {
	case NOWAIT:
		return call_flags(call, PCPC_NOWAIT);
	case NORECLAIM:
		return call_flags(call, PCPC_NORECLAIM);
	case FORCE:
	case FORCE_NOWAIT:
		self->counts[FORCED]++;
		mark_forced(call->node);
		return call_flags(call, call->way == FORCE ? PCPC_FORCE : PCPC_FORCE | PCPC_NOWAIT);
	case STAT:
		call->delta = (int64_t)below(&self->random, 41) - 20;
		return pcpc_charge_stat(owner, call->units, call->delta);
	case IN_SECTION:
		urcu_bp_read_lock();
		r = call_flags(call, 0);
		urcu_bp_read_unlock();
		return r;
	case WAIT:
		self->counts[WAITS]++;
		return pcpc_charge_wait(owner, call->units, (int64_t)below(&self->random, 300000));
	default:
		return below(&self->random, 2) ? call_flags(call, 0)
					       : pcpc_charge(owner, call->units);
	}
}

/* May the call answer -EAGAIN? Others may, but only where limits change all the time. */
static bool may_be_unsure(const struct call *call)
{
	return call->way == NOWAIT || call->way == FORCE_NOWAIT || call->way == IN_SECTION;
}

static void check_refusal(const struct call *call, int r)
{
	const struct pcpc_refusal *refusal = &call->refusal;
	const struct pcpc_owner *level = call->node->owner;

	while (level && level != refusal->over)
		level = pcpc_owner_parent(level);
	if (!level || refusal->id != pcpc_owner_id(level) || refusal->asked != call->units)
		violation("%d from %p, id %" PRIu32 ", asked %" PRIu64 " of %" PRIu64, r,
			  (void *)refusal->over, refusal->id, refusal->asked, call->units);
}

/* What is not 0. */
static void not_charged(struct thread *self, const struct call *call, int r)
{
	if (call->has_refusal)
		check_refusal(call, r);
	if (r == -ESHUTDOWN)
		self->counts[SHUT]++;
	else if (r == -EDQUOT)
		self->counts[REFUSALS]++;
	else if (r == -EAGAIN)
		self->counts[UNSURE]++;
	else if (r == -ETIMEDOUT && call->way == WAIT)
		self->counts[TIMED_OUT]++;
	else
		violation("a charge answered %d, way %d", r, (int)call->way);
	if (r == -EDQUOT && (call->way == FORCE || call->way == FORCE_NOWAIT))
		violation("a forced charge was refused");
	/* G3 */
	if (call->node->fair && r != -ESHUTDOWN && !(r == -EAGAIN && may_be_unsure(call)))
		violation("false refusal: %d for %" PRIu64 ", way %d, share %" PRIu64 " of %" PRIu64
			  ", over %s, usage %" PRIu64 ", max %" PRIu64,
			  r, call->units, (int)call->way, self->share, storm.fair_share,
			  call->refusal.name, call->refusal.usage, call->refusal.max);
}

static enum way some_way(struct thread *self, const struct node *node)
{
	enum way way = (enum way)below(&self->random, 3 * WAYS);

	/* Forced charges would break the shares; waiting inside reclaim is not allowed. */
	if (way >= WAYS || (node->fair && (way == FORCE || way == FORCE_NOWAIT)) ||
	    (self->reclaiming && way == WAIT))
		return PLAIN;
	return way;
}

static uint64_t some_amount(struct thread *self, const struct node *node)
{
	static const uint64_t most[] = { 1, 10, 10, 100, 3000 };
	uint64_t units = 1 + below(&self->random, most[below(&self->random, 5)]);
	uint64_t room = storm.fair_share - self->share;

	if (!node->fair || units <= room)
		return units;
	return room ? 1 + below(&self->random, room) : 0;
}

static void charge_node(struct thread *self, struct node *node)
{
	struct call call = { .way = some_way(self, node), .node = node };
	struct holding *holding = holding_for(self, node);
	int r;

	call.units = some_amount(self, node);
	if (!holding || !call.units)
		return;
	/* Not for reclaim, which may run during the call. */
	holding->in_use = true;
	if (node->fair)
		self->share += call.units;
	r = call_charge(self, &call);
	if (node->fair)
		self->share -= call.units;
	holding->in_use = false;
	self->counts[CHARGES]++;
	if (r == 0) {
		account_item(node, 0, call.delta);
		hold(self, holding, node, call.units);
	} else {
		not_charged(self, &call, r);
	}
}

static void charge(struct thread *self)
{
	struct node *node = place_take(&self->random);
	struct pcpc_owner *owner;

	if (!node)
		return;
	owner = node->owner;
	charge_node(self, node);
	node_put(node);
	pcpc_owner_put(owner);
}

/* By units that are held alone: the handle comes from the id. */
static void charge_by_id(struct thread *self)
{
	struct holding *holding = some_holding(self);
	struct pcpc_owner *owner;

	if (!holding)
		return;
	owner = holding->node->owner;
	if (pcpc_owner_by_id(storm.domain, pcpc_owner_id(owner)) != owner)
		violation("id %" PRIu32 " finds another owner", pcpc_owner_id(owner));
	charge_node(self, holding->node);
}

/* -- transfer -- */

static void transfer_to(struct thread *self, struct holding *from, struct node *node,
			uint64_t units)
{
	struct holding *to = holding_for(self, node);
	const struct node *top = common_top(node, from->node);
	int r;

	if (!to || from == to)
		return;
	from->in_use = to->in_use = true;
	account(from->node, top, units, false);
	if (node->fair)
		self->share += units;
	r = pcpc_transfer(from->node->owner, node->owner, units);
	if (node->fair)
		self->share -= units;
	from->in_use = to->in_use = false;
	self->counts[TRANSFERS]++;
	if (r < 0) {
		account(from->node, top, units, true);
		if (r != -EDQUOT && r != -ESHUTDOWN && r != -EAGAIN)
			violation("a transfer answered %d", r);
		if (node->fair && r != -ESHUTDOWN)
			violation("false refusal of a transfer: %d for %" PRIu64, r, units);
		return;
	}
	/* hold() counts them in all the way up; the common part had them all the time. */
	account((struct node *)(uintptr_t)top, NULL, units, false);
	hold(self, to, node, units);
	if (from->node->fair)
		self->share -= units;
	from->units -= units;
	if (!from->units)
		empty_holding(from);
}

static void transfer(struct thread *self)
{
	struct holding *from = some_holding(self);
	struct node *node = from ? place_take(&self->random) : NULL;
	struct pcpc_owner *owner;
	uint64_t units;

	if (!node)
		return;
	owner = node->owner;
	units = 1 + below(&self->random, from->units);
	/* Into the shares only what fits beside what was there. */
	if (node != from->node && (!node->fair || units <= storm.fair_share - self->share))
		transfer_to(self, from, node, units);
	node_put(node);
	pcpc_owner_put(owner);
}

static void step(struct thread *self)
{
	switch (below(&self->random, 100)) {
	case 0:
		self->counts[CREATED] += (uint64_t)place_create(&self->random);
		break;
	case 1:
		self->counts[DESTROYED] += (uint64_t)place_destroy(&self->random);
		break;
	case 2:
		pcpc_domain_poll(storm.domain);
		self->counts[POLLS]++;
		break;
	case 3:
	case 4:
	case 5:
		storm_manage(self);
		break;
	case 11:
	case 12:
	case 13:
		storm_update(self);
		break;
	case 6:
	case 7:
		swap_mail(self);
		break;
	case 8:
		sched_yield();
		break;
	case 10:
		if (storm.options.forks && below(&self->random, 8) == 0)
			storm_fork(self);
		break;
	case 9:
		if (below(&self->random, 8) == 0)
			storm_move(self);
		break;
	default:
		switch (below(&self->random, 16)) {
		case 0:
		case 1:
			transfer(self);
			break;
		case 2:
			charge_by_id(self);
			break;
		default:
			if (below(&self->random, 2))
				charge(self);
			else
				uncharge(self);
		}
	}
}

/* Frees what this thread has below, and now and then does other things that are allowed here. */
uint64_t reclaim(struct pcpc_owner *over, uint64_t wanted, void *context)
{
	struct thread *self = storm_self;
	struct node *node = context;
	uint64_t freed = 0, units;
	uint32_t i;

	(void)over;
	if (!self || self->reclaiming)
		return 0;
	self->reclaiming = true;
	self->counts[RECLAIMS]++;
	if (below(&self->random, 16) == 0)
		step(self);
	for (i = 0; i < NR_HOLDINGS && freed < wanted && below(&self->random, 16); i++) {
		struct holding *holding = &self->holding[i];

		if (holding->in_use || !holding->units || !within(holding->node, node))
			continue;
		units = holding->units < wanted - freed ? holding->units : wanted - freed;
		give_back(self, holding, units);
		freed += units;
	}
	self->reclaiming = false;
	return freed;
}

void count_event(struct pcpc_owner *owner, enum pcpc_event event, void *context)
{
	(void)context;
	if (!pcpc_owner_id(owner) || (unsigned int)event >= PCPC_NR_EVENTS)
		violation("told of event %d", (int)event);
	atomic_fetch_add_explicit(&storm.told, 1, memory_order_relaxed);
}

void *load(void *thread)
{
	struct thread *self = thread;

	storm_self = self;
	pthread_barrier_wait(&storm.rendezvous);
	for (;;) {
		while (!atomic_load_explicit(&storm.paused, memory_order_relaxed))
			step(self);
		pthread_barrier_wait(&storm.rendezvous);
		pthread_barrier_wait(&storm.rendezvous);
		if (atomic_load(&storm.finished))
			break;
	}
	give_all_back(self);
	return NULL;
}
