/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * memcontrol_private.h - the inside of mem_cgroups, shared by the files of memcontrol.
 */
#ifndef PCPCHARGE_MEMCONTROL_PRIVATE_H
#define PCPCHARGE_MEMCONTROL_PRIVATE_H

#include <pcpcharge/memcontrol.h>

#include "owner_private.h"

struct memcg_vmstats {
	struct mem_cgroup *memcg;
};

/* All of a mem_cgroup. */
struct memcg {
	struct mem_cgroup public; /* first */
	struct memcg_vmstats vmstats;
	atomic_ulong events[MEMCG_NR_MEMORY_EVENTS], events_local[MEMCG_NR_MEMORY_EVENTS];
	struct work_struct high_work, free_work;
	_Atomic(struct obj_cgroup *) object; /* that new charges by the byte use; NULL: offline */
	struct list_head objects;	     /* all that belong to it; under the objects' mutex */
	unsigned int nr_online;		     /* children; under the tree's mutex, as is the next */
	bool offline;
};

/* The one tree of a process; domain is NULL before it is made. */
struct memcg_system {
	struct pcpc_memcg_config config;
	struct pcpc_domain *domain;
	struct memcg *root;
};

extern struct memcg_system pcpc_memcg_system;

static inline struct memcg *memcg_of(const struct mem_cgroup *memcg)
{
	return (struct memcg *)(uintptr_t)memcg;
}

static inline struct mem_cgroup *memcg_of_owner(const struct pcpc_owner *owner)
{
	return books_of(owner)->context;
}

static inline uint64_t bytes_of(unsigned long nr_pages)
{
	return (uint64_t)nr_pages << PAGE_SHIFT;
}

/* Rounded up. */
static inline unsigned long pages_of(uint64_t bytes)
{
	return (unsigned long)((bytes + PAGE_SIZE - 1) >> PAGE_SHIFT);
}

/* memcontrol.c */
bool pcpc_memcg_consume_bytes(struct mem_cgroup *memcg, uint64_t size);
int pcpc_memcg_charge_bytes(struct mem_cgroup *memcg, gfp_t gfp_mask, uint64_t size);

/* memcontrol_high.c */
void pcpc_memcg_note_high(struct mem_cgroup *memcg, gfp_t gfp_mask, unsigned long nr_pages);
void pcpc_memcg_high_work(struct work_struct *work);
unsigned long pcpc_memcg_reclaim(struct mem_cgroup *memcg, unsigned long nr_pages, gfp_t gfp_mask);
unsigned long pcpc_memcg_high_delay(unsigned long nr_pages, uint64_t overage);

/* memcontrol_object.c */
int pcpc_memcg_make_object(struct memcg *memcg);
void pcpc_memcg_reap_objects(void);
void pcpc_memcg_reparent_objects(struct memcg *memcg);

/* memcontrol_stat.c */
#define MEMCG_NR_ITEMS (MEMCG_NR_STAT + NR_VM_EVENT_ITEMS + 1)
void pcpc_memcg_describe_items(struct pcpc_item items[MEMCG_NR_ITEMS]);

#endif
