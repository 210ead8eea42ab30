// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * memcontrol_high.c - memory.high: who is above it is reclaimed from, and whoever charges there is
 * slowed down.
 */
#define _GNU_SOURCE
#include "memcontrol_private.h"

#include <time.h>

#define RECLAIM_CHUNK 32 /* pages, once reclaiming has begun to help */
#define OVERAGE_SHIFT 20 /* fixed point of an overage: 1 is usage of twice high */
#define SCALE_SHIFT 14
#define LONGEST_MS 2000
#define SHORTEST_MS 10

/* Whom this thread's debt is for. */
static PCPC_THREAD_LOCAL struct mem_cgroup *debtor;

unsigned long pcpc_memcg_reclaim(struct mem_cgroup *memcg, unsigned long nr_pages, gfp_t gfp_mask)
{
	const struct pcpc_memcg_config *config = &pcpc_memcg_system.config;

	return config->reclaim ? config->reclaim(memcg, nr_pages, gfp_mask, config->context) : 0;
}

static bool above_high(const struct mem_cgroup *memcg)
{
	return pcpc_owner_usage(memcg->owner) > pcpc_owner_high(memcg->owner);
}

static unsigned long reclaim_high(struct mem_cgroup *memcg, unsigned long nr_pages, gfp_t gfp_mask)
{
	unsigned long reclaimed = 0;

	for (; !mem_cgroup_is_root(memcg); memcg = parent_mem_cgroup(memcg)) {
		if (!above_high(memcg))
			continue;
		pcpc_memcg_raise(memcg, MEMCG_HIGH);
		reclaimed += pcpc_memcg_reclaim(memcg, nr_pages, gfp_mask);
	}
	return reclaimed;
}

void pcpc_memcg_high_work(struct work_struct *work)
{
	struct memcg *memcg = container_of(work, struct memcg, high_work);

	reclaim_high(&memcg->public, MEMCG_CHARGE_BATCH, GFP_KERNEL);
}

/* By how much of high usage is above it, at the level where that is most. */
static uint64_t worst_overage(const struct mem_cgroup *memcg)
{
	uint64_t usage, high, overage, worst = 0;

	for (; !mem_cgroup_is_root(memcg); memcg = mem_cgroup_from_css(memcg->css.parent)) {
		usage = pcpc_owner_usage(memcg->owner) >> PAGE_SHIFT;
		high = pcpc_owner_high(memcg->owner) >> PAGE_SHIFT;
		if (usage <= high)
			continue;
		overage = ((usage - high) << OVERAGE_SHIFT) / (high ? high : 1);
		worst = overage > worst ? overage : worst;
	}
	return worst;
}

/* How long to sleep for nr_pages charged at an overage, in ms: with its square. */
unsigned long pcpc_memcg_high_delay(unsigned long nr_pages, uint64_t overage)
{
	uint64_t delay;

	/* Beyond that it is the longest in any case, and the square would not fit. */
	if (overage >> (OVERAGE_SHIFT + 4))
		overage = 1ull << (OVERAGE_SHIFT + 4);
	delay = overage * overage / 1024 * 1000 / 1024;
	delay = (delay >> SCALE_SHIFT) * nr_pages / MEMCG_CHARGE_BATCH;
	return delay < LONGEST_MS ? (unsigned long)delay : LONGEST_MS;
}

static void sleep_ms(unsigned long ms)
{
	struct timespec time = { (time_t)(ms / 1000), (long)(ms % 1000) * 1000000 };

	/* A signal ends it. */
	(void)nanosleep(&time, NULL);
}

static void handle_over_high(struct mem_cgroup *memcg, unsigned long nr_pages, gfp_t gfp_mask)
{
	unsigned int retries = MAX_RECLAIM_RETRIES;
	unsigned long wanted = nr_pages, reclaimed, delay;

	while (!task_is_dying()) {
		reclaimed = reclaim_high(memcg, wanted, gfp_mask);
		wanted = RECLAIM_CHUNK;
		delay = pcpc_memcg_high_delay(nr_pages, worst_overage(memcg));
		if (delay <= SHORTEST_MS)
			return;
		if (reclaimed)
			continue;
		if (!retries) {
			sleep_ms(delay);
			return;
		}
		retries--;
	}
}

void pcpc_memcg_handle_over_high(gfp_t gfp_mask)
{
	unsigned long nr_pages = current->memcg_nr_pages_over_high;
	struct mem_cgroup *memcg = debtor;

	if (!nr_pages || !memcg)
		return;
	current->memcg_nr_pages_over_high = 0;
	debtor = NULL;
	handle_over_high(memcg, nr_pages, gfp_mask);
	css_put(&memcg->css);
}

/* A charge has taken nr_pages from the counters of memcg: is some level above high? Tasks pay for
 * it, at once where it is much and they may sleep; for interrupts somebody else does. */
void pcpc_memcg_note_high(struct mem_cgroup *memcg, gfp_t gfp_mask, unsigned long nr_pages)
{
	struct mem_cgroup *level = memcg;

	while (!mem_cgroup_is_root(level) && !above_high(level))
		level = parent_mem_cgroup(level);
	if (mem_cgroup_is_root(level))
		return;
	if (!in_task()) {
		schedule_work(&memcg_of(level)->high_work);
		return;
	}
	current->memcg_nr_pages_over_high += (unsigned int)nr_pages;
	if (debtor != memcg) {
		css_get(&memcg->css);
		if (debtor)
			css_put(&debtor->css);
		debtor = memcg;
	}
	if (current->memcg_nr_pages_over_high > MEMCG_CHARGE_BATCH &&
	    !(current->flags & PF_MEMALLOC) && gfpflags_allow_blocking(gfp_mask))
		pcpc_memcg_handle_over_high(gfp_mask);
}
