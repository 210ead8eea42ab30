// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * memcontrol.c - memcg on top of owners: charging mem_cgroups.
 *
 * A mem_cgroup is an owner of a domain in kernel style whose unit is the byte; how much is taken,
 * stocked and given up is the owners' business. Here is what memcg does around that: the tries of a
 * charge, who is reclaimed from or killed, limits, events. The tree is in memcontrol_tree.c, what
 * happens above high in memcontrol_high.c, charges by the byte in memcontrol_object.c, statistics
 * in memcontrol_stat.c.
 */
#define _GNU_SOURCE
#include "memcontrol_private.h"

#include <errno.h>
#include <stdlib.h>

#include <pcpcharge/stat.h>

/* -- events -- */

/* Relaxed: figures. */
void pcpc_memcg_raise(struct mem_cgroup *memcg, enum memcg_memory_event event)
{
	atomic_fetch_add_explicit(&memcg_of(memcg)->events_local[event], 1, memory_order_relaxed);
	for (; !mem_cgroup_is_root(memcg); memcg = parent_mem_cgroup(memcg))
		atomic_fetch_add_explicit(&memcg_of(memcg)->events[event], 1, memory_order_relaxed);
}

unsigned long pcpc_memcg_raised(const struct mem_cgroup *memcg, enum memcg_memory_event event,
				bool local)
{
	const atomic_ulong *events =
		local ? memcg_of(memcg)->events_local : memcg_of(memcg)->events;

	return atomic_load_explicit(&events[event], memory_order_relaxed);
}

/* -- the stock -- */

bool pcpc_memcg_consume_bytes(struct mem_cgroup *memcg, uint64_t size)
{
	struct pcpc_owner *owner = memcg->owner;
	struct pcpc_deferred deferred;
	struct pcpc_marks marks;
	bool hit;

	urcu_bp_read_lock();
	marks = marks_of(owner, pcpc_effective_batch(owner));
	hit = pcpc_cache_consume(owner->domain->cache, owner->id, size, 0, &marks, &deferred);
	pcpc_settle_deferred(owner->domain, &deferred);
	urcu_bp_read_unlock();
	return hit;
}

bool pcpc_memcg_consume(struct mem_cgroup *memcg, unsigned int nr_pages)
{
	return nr_pages <= MEMCG_CHARGE_BATCH &&
	       pcpc_memcg_consume_bytes(memcg, bytes_of(nr_pages));
}

void pcpc_memcg_refill(struct mem_cgroup *memcg, unsigned int nr_pages)
{
	if (VM_WARN_ON_ONCE(mem_cgroup_is_root(memcg)))
		return;
	pcpc_uncharge(memcg->owner, bytes_of(nr_pages));
}

/* Of several that drain at once one does, so that they do not queue up behind each other; acquire
 * and release, like a mutex that is only tried. */
void pcpc_memcg_drain(struct mem_cgroup *root_memcg)
{
	static atomic_flag draining = ATOMIC_FLAG_INIT;

	if (!in_task() || atomic_flag_test_and_set_explicit(&draining, memory_order_acquire))
		return;
	(void)pcpc_owner_drain(root_memcg->owner);
	atomic_flag_clear_explicit(&draining, memory_order_release);
}

/* -- charging -- */

/* A charge in progress. */
struct attempt {
	struct mem_cgroup *memcg, *over; /* over: where it did not fit last */
	gfp_t gfp_mask;
	uint64_t size;
	unsigned long nr_pages; /* size, rounded up */
	unsigned int retries;
	enum greed greed;
	bool drained, killed, told;
};

enum verdict { RETRY, REFUSE, FORCE };

/* One try: the stock, a batch, then the stock and exactly the amount. Never a batch again once that
 * did not fit. */
static bool try_once(struct attempt *attempt, unsigned long *ret_nr_pages)
{
	struct pcpc_climb climb = { .owner = attempt->memcg->owner, .count = attempt->size };
	bool done;

	urcu_bp_read_lock();
	done = pcpc_climb(&climb, attempt->greed);
	urcu_bp_read_unlock();
	attempt->greed = GREED_NONE;
	if (done)
		*ret_nr_pages = pages_of(climb.taken);
	else
		attempt->over = memcg_of_owner(climb.over);
	return done;
}

static unsigned long margin_of(const struct mem_cgroup *memcg)
{
	const struct pcpc_books *books = books_of(memcg->owner);
	uint64_t max = atomic_load(&books->max), usage = atomic_load(&books->usage);

	return usage < max ? (max - usage) >> PAGE_SHIFT : 0;
}

static bool kill_for(struct mem_cgroup *over, gfp_t gfp_mask, int order)
{
	const struct pcpc_memcg_config *config = &pcpc_memcg_system.config;

	/* Nobody is killed for what smaller charges could do without. */
	if (order > PAGE_ALLOC_COSTLY_ORDER)
		return false;
	pcpc_memcg_raise(over, MEMCG_OOM);
	if (!config->kill || !config->kill(over, gfp_mask, order, config->context))
		return false;
	pcpc_memcg_raise(over, MEMCG_OOM_KILL);
	return true;
}

static int order_of(unsigned long nr_pages)
{
	int order = 0;

	while (1ul << order < nr_pages)
		order++;
	return order;
}

/* It did not fit at over: what next? */
static enum verdict make_room(struct attempt *attempt)
{
	unsigned long reclaimed;

	if (current->flags & PF_MEMALLOC)
		return FORCE;
	if (current->in_memcg_oom || !gfpflags_allow_blocking(attempt->gfp_mask))
		return REFUSE;
	pcpc_memcg_raise(attempt->over, MEMCG_MAX);
	attempt->told = true;
	reclaimed = pcpc_memcg_reclaim(attempt->over, attempt->nr_pages, attempt->gfp_mask);
	if (margin_of(attempt->over) >= attempt->nr_pages)
		return RETRY;
	if (!attempt->drained) {
		attempt->drained = true;
		pcpc_memcg_drain(attempt->over);
		return RETRY;
	}
	if (attempt->gfp_mask & __GFP_NORETRY)
		return REFUSE;
	if (reclaimed && attempt->nr_pages <= 1ul << PAGE_ALLOC_COSTLY_ORDER)
		return RETRY;
	if (attempt->retries) {
		attempt->retries--;
		return RETRY;
	}
	if (attempt->gfp_mask & __GFP_RETRY_MAYFAIL || (attempt->killed && task_is_dying()))
		return REFUSE;
	if (!kill_for(attempt->over, attempt->gfp_mask, order_of(attempt->nr_pages)))
		return REFUSE;
	attempt->killed = true;
	attempt->retries = MAX_RECLAIM_RETRIES;
	return RETRY;
}

/* Over every max; false: past all that a counter can hold. */
static bool charge_by_force(struct attempt *attempt)
{
	bool done;

	if (!attempt->told)
		pcpc_memcg_raise(attempt->over, MEMCG_MAX);
	urcu_bp_read_lock();
	done = pcpc_climb_by_force(attempt->memcg->owner, attempt->size, 0);
	urcu_bp_read_unlock();
	return done;
}

int pcpc_memcg_charge_bytes(struct mem_cgroup *memcg, gfp_t gfp_mask, uint64_t size)
{
	struct attempt attempt = { .memcg = memcg,
				   .gfp_mask = gfp_mask,
				   .size = size,
				   .nr_pages = pages_of(size),
				   .retries = MAX_RECLAIM_RETRIES };
	enum verdict verdict = RETRY;
	unsigned long taken;

	attempt.greed = gfpflags_allow_spinning(gfp_mask) ? GREED_BATCH : GREED_NONE;
	while (verdict == RETRY) {
		if (try_once(&attempt, &taken)) {
			if (taken)
				pcpc_memcg_note_high(memcg, gfp_mask, taken);
			return 0;
		}
		verdict = make_room(&attempt);
	}
	if (verdict == REFUSE && !(gfp_mask & (__GFP_NOFAIL | __GFP_HIGH)))
		return -ENOMEM;
	return charge_by_force(&attempt) ? 0 : -ENOMEM;
}

int pcpc_memcg_try_charge(struct mem_cgroup *memcg, gfp_t gfp_mask, unsigned int nr_pages)
{
	if (mem_cgroup_is_root(memcg) || !nr_pages)
		return 0;
	return pcpc_memcg_charge_bytes(memcg, gfp_mask, bytes_of(nr_pages));
}

/* -- limits -- */

unsigned long pcpc_memcg_usage(const struct mem_cgroup *memcg)
{
	return pages_of(pcpc_owner_usage(memcg->owner));
}

static uint64_t limit_of(unsigned long nr_pages)
{
	return nr_pages >= PAGE_COUNTER_MAX ? PCPC_UNLIMITED : bytes_of(nr_pages);
}

/* Until usage is at most a limit: one drain, then reclaims, of which 16 may fail, then killing
 * where that is asked for. */
static void shrink(struct mem_cgroup *memcg, uint64_t limit, bool kill)
{
	unsigned int retries = MAX_RECLAIM_RETRIES;
	bool drained = false;
	uint64_t usage;

	while ((usage = pcpc_owner_usage(memcg->owner)) > limit && !task_is_dying()) {
		if (!drained) {
			drained = true;
			pcpc_memcg_drain(memcg);
			continue;
		}
		if (retries) {
			if (!pcpc_memcg_reclaim(memcg, pages_of(usage - limit), GFP_KERNEL))
				retries--;
			continue;
		}
		if (!kill || !kill_for(memcg, GFP_KERNEL, 0))
			return;
	}
}

int pcpc_memcg_set_max(struct mem_cgroup *memcg, unsigned long nr_pages, bool nonblock)
{
	uint64_t max = limit_of(nr_pages);

	if (mem_cgroup_is_root(memcg))
		return -EINVAL;
	(void)pcpc_store_max(memcg->owner, max);
	if (!nonblock)
		shrink(memcg, max, true);
	return 0;
}

void pcpc_memcg_set_high(struct mem_cgroup *memcg, unsigned long nr_pages, bool nonblock)
{
	uint64_t high = limit_of(nr_pages);

	(void)pcpc_owner_set_high(memcg->owner, high);
	if (!nonblock)
		shrink(memcg, high, false);
}
