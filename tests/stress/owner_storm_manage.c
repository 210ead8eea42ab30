// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * owner_storm_manage.c - what the threads of the storm do beside charging: settings, readings,
 * drains, walks.
 */
#define _GNU_SOURCE
#include "owner_storm.h"

static void raise_to(_Atomic uint64_t *highest, uint64_t value)
{
	uint64_t old = atomic_load(highest);

	while (old && (value > old || !value) &&
	       !atomic_compare_exchange_weak(highest, &old, value))
		;
}

/* Where more is held than there may be, all the time, not even a stock may serve a charge. */
static void charge_lowered(struct node *node, uint64_t max, uint32_t maxes)
{
	uint64_t held = atomic_load(&node->held);

	if ((held & HELD_MASK) <= max ||
	    pcpc_charge_flags(node->owner, 1, PCPC_NORECLAIM, NULL) != 0)
		return;
	if (atomic_load(&node->held) == held && !atomic_load(&node->forced) &&
	    atomic_load(&node->maxes) == maxes)
		violation("charged above max %" PRIu64 ", beside %" PRIu64 " held", max,
			  held & HELD_MASK);
	pcpc_uncharge(node->owner, 1);
}

/* G2: "after a lowering has returned, no charge that does not fit succeeds, stocks included". Usage
 * may go up for a moment, by a charge that had seen the old max and takes it back. */
static void watch_lowered(struct node *node, uint64_t max, uint32_t maxes)
{
	uint64_t first = pcpc_owner_usage(node->owner), held;

	charge_lowered(node, max, maxes);
	sched_yield();
	held = atomic_load(&node->held) & HELD_MASK;
	if (held > max && held > first && !atomic_load(&node->forced) &&
	    atomic_load(&node->maxes) == maxes)
		violation("held rose from %" PRIu64 " or less to %" PRIu64 " above max %" PRIu64,
			  first, held, max);
}

static void set_max(struct thread *self, struct node *node)
{
	uint64_t max = below(&self->random, 8) ? below(&self->random, 3000) : PCPC_UNLIMITED;
	uint32_t maxes;
	int r;

	if (node->fair || !node->parent)
		return;
	raise_to(&node->highest_max, max == PCPC_UNLIMITED ? 0 : max);
	/* Odd while it is being changed, so that an even number that stays says that it stayed. */
	maxes = atomic_fetch_add(&node->maxes, 1);
	r = pcpc_owner_set_max(node->owner, max);
	if (r != 0)
		violation("set_max answered %d", r);
	if (atomic_fetch_add(&node->maxes, 1) == maxes + 1 && maxes % 2 == 0)
		watch_lowered(node, max, maxes + 2);
	self->counts[MAXES]++;
}

static bool visit(struct pcpc_owner *owner, unsigned int depth, void *context)
{
	struct thread *self = context;

	if (depth > DEEPEST || pcpc_owner_id(owner) == 0 || !*pcpc_owner_name(owner))
		violation("a walk came to depth %u, id %" PRIu32, depth, pcpc_owner_id(owner));
	return below(&self->random, 50) != 0;
}

static void read_all(struct thread *self, struct node *node)
{
	uint64_t highest = atomic_load(&node->highest_max);
	uint64_t exact = pcpc_owner_usage_exact(node->owner);
	uint64_t peak = pcpc_owner_peak(node->owner);

	if (highest && !atomic_load(&node->forced) && highest == atomic_load(&node->highest_max) &&
	    (exact > highest || peak > highest))
		violation("exact usage %" PRIu64 ", peak %" PRIu64 ", never a max above %" PRIu64,
			  exact, peak, highest);
	(void)pcpc_stat_read(node->owner, (uint32_t)below(&self->random, NR_ITEMS));
	if (below(&self->random, 8) == 0)
		(void)pcpc_stat_read_exact(node->owner, (uint32_t)below(&self->random, NR_ITEMS));
	else
		pcpc_stat_flush(node->owner);
	(void)pcpc_owner_stocked(node->owner);
	(void)pcpc_owner_events(node->owner, (enum pcpc_event)below(&self->random, PCPC_NR_EVENTS));
}

static void set_something(struct thread *self, struct node *node)
{
	static const uint32_t batch[] = { 0, 1, 7, 100, PCPC_BATCH_NONE };

	switch (below(&self->random, 8)) {
	case 0:
		set_max(self, node);
		break;
	case 1:
		MUST(pcpc_owner_set_high(node->owner, below(&self->random, 500)) == 0);
		break;
	case 2:
		MUST(pcpc_owner_set_batch(node->owner, batch[below(&self->random, 5)]) == 0);
		break;
	case 3:
		pcpc_owner_reset_peak(node->owner);
		break;
	case 4:
		(void)pcpc_owner_drain(node->owner);
		self->counts[DRAINS]++;
		break;
	case 5:
		pcpc_owner_walk(node->owner, visit, self);
		self->counts[WALKS]++;
		break;
	case 6:
		MUST(pcpc_owner_set_reclaim(node->owner, below(&self->random, 2) ? reclaim : NULL,
					    node) == 0);
		break;
	default:
		read_all(self, node);
	}
}

/* An update of an item, large ones at times; of the holder's owner after destroy too. */
void storm_update(struct thread *self)
{
	int64_t delta = (int64_t)below(&self->random, below(&self->random, 4) ? 41 : 4001) - 20;
	uint32_t item = (uint32_t)below(&self->random, NR_ITEMS);
	struct holding *holding = some_holding(self);

	if (!holding || !storm.has_items)
		return;
	account_item(holding->node, item, delta);
	if (below(&self->random, 2))
		pcpc_stat_add(holding->node->owner, item, delta);
	else
		pcpc_stat_add_node(holding->node->owner, storm.domain->nr_nodes - 1, item, delta);
	self->counts[UPDATES]++;
}

void storm_manage(struct thread *self)
{
	struct node *node = place_take(&self->random);
	struct pcpc_owner *owner;

	if (!node)
		return;
	owner = node->owner;
	set_something(self, node);
	check_node(node);
	node_put(node);
	pcpc_owner_put(owner);
}

void storm_move(struct thread *self)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(below(&self->random, (uint64_t)sysconf(_SC_NPROCESSORS_CONF)), &one);
	(void)sched_setaffinity(0, sizeof(one), &one);
}
