/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * memcontrol_support.h - what the tests of mem_cgroups share: the tree, and a program that stands
 * in for the rest of the kernel, which reclaims and kills as it is told and counts.
 */
#ifndef MEMCONTROL_SUPPORT_H
#define MEMCONTROL_SUPPORT_H

#include <pcpcharge/observe.h>
#include <pcpcharge/stat.h>

#include "memcontrol_private.h"
#include "unit_support.h"

static struct mem_cgroup *top, *memcg; /* memcg is below top, top below the root */

/* What the reclaim and the kill function do, and how often they were called. */
static struct {
	struct mem_cgroup *from; /* whose pages can be reclaimed; NULL: none */
	unsigned long pages;	 /* how many there are */
	unsigned long kill;	 /* how many pages the next kill frees */
	unsigned int reclaims, kills;
	struct mem_cgroup *last_over;
	unsigned long last_nr_pages;
	int last_order;
} rest;

static inline unsigned long reclaim_as_told(struct mem_cgroup *over, unsigned long nr_pages,
					    gfp_t gfp_mask, void *context)
{
	unsigned long freed = nr_pages < rest.pages ? nr_pages : rest.pages;

	(void)gfp_mask;
	ck_assert_ptr_eq(context, &rest);
	rest.reclaims++;
	rest.last_over = over;
	rest.last_nr_pages = nr_pages;
	if (!rest.from || !freed)
		return 0;
	rest.pages -= freed;
	/* above a batch it goes to the counters */
	pcpc_uncharge(rest.from->owner, bytes_of(freed));
	return freed;
}

static inline bool kill_as_told(struct mem_cgroup *over, gfp_t gfp_mask, int order, void *context)
{
	(void)gfp_mask;
	ck_assert_ptr_eq(context, &rest);
	rest.kills++;
	rest.last_over = over;
	rest.last_order = order;
	if (!rest.kill)
		return false;
	pcpc_uncharge(rest.from->owner, bytes_of(rest.kill));
	rest.kill = 0;
	return true;
}

/* On the first CPU. False where there is no such engine here. */
static inline bool open_memcg(int engine)
{
	const struct pcpc_memcg_config config = { .size = sizeof(config),
						  .engine = engine,
						  .index = PCPC_INDEX_CPU,
						  .reclaim = reclaim_as_told,
						  .kill = kill_as_told,
						  .context = &rest };
	int r = pcpc_memcg_init(&config);

	memset(&rest, 0, sizeof(rest));
	if (r == -ENOSYS && engine == PCPC_ENGINE_RSEQ) {
		unit_note("not tested: no %s engine here", unit_engine_name(engine));
		return false;
	}
	ck_assert_int_eq(r, 0);
	ck_assert(unit_pin(0));
	top = mem_cgroup_create(NULL, "top");
	ck_assert(!IS_ERR(top));
	memcg = mem_cgroup_create(top, "memcg");
	ck_assert(!IS_ERR(memcg));
	return true;
}

/* Nothing is charged any more: all goes, and the root is at 0 (CONS). */
static inline void close_memcg(void)
{
	if (!pcpc_memcg_domain())
		return;
	if (memcg)
		ck_assert_int_eq(mem_cgroup_destroy(memcg), 0);
	ck_assert_int_eq(mem_cgroup_destroy(top), 0);
	memcg = top = NULL;
	ck_assert_int_eq(pcpc_memcg_exit(), 0);
}

/* Pages that a stock of some CPU has of one mem_cgroup alone. */
static inline unsigned long stock_of(const struct mem_cgroup *of)
{
	return pcpc_cache_stocked(of->owner->domain->cache, of->owner->id) >> PAGE_SHIFT;
}

static inline void usage_is(unsigned long pages)
{
	ck_assert_uint_eq(mem_cgroup_usage(memcg), pages);
	ck_assert_uint_eq(mem_cgroup_usage(top), pages);
	ck_assert_uint_eq(mem_cgroup_usage(root_mem_cgroup), pages);
}

static inline int charge_pages(unsigned int pages)
{
	return try_charge_memcg(memcg, GFP_KERNEL, pages);
}

static inline unsigned long told(const struct mem_cgroup *of, enum memcg_memory_event event)
{
	return memcg_memory_events(of, event, false);
}

#endif
