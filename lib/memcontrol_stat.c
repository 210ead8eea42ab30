// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * memcontrol_stat.c - the statistics of mem_cgroups, on those of owners.
 *
 * Every item is kept in one unit, the byte, and an event counts as a page: so one batch, of 64
 * pages, and one threshold are right for all of them, and items that are counted by the byte ask
 * for no more flushes than others.
 */
#define _GNU_SOURCE
#include "memcontrol_private.h"

#include <stdlib.h>

#include <pcpcharge/stat.h>

#define FIRST_EVENT MEMCG_NR_STAT
#define UPDATES (MEMCG_NR_ITEMS - 1) /* pages that have changed in figures that are not ours */

static const struct {
	const char *name;
	int64_t size; /* of one, in bytes */
} items[MEMCG_NR_ITEMS] = {
	[NR_INACTIVE_ANON] = { "inactive_anon", PAGE_SIZE },
	[NR_ACTIVE_ANON] = { "active_anon", PAGE_SIZE },
	[NR_INACTIVE_FILE] = { "inactive_file", PAGE_SIZE },
	[NR_ACTIVE_FILE] = { "active_file", PAGE_SIZE },
	[NR_UNEVICTABLE] = { "unevictable", PAGE_SIZE },
	[NR_SLAB_RECLAIMABLE_B] = { "slab_reclaimable", 1 },
	[NR_SLAB_UNRECLAIMABLE_B] = { "slab_unreclaimable", 1 },
	[WORKINGSET_REFAULT_ANON] = { "workingset_refault_anon", PAGE_SIZE },
	[WORKINGSET_REFAULT_FILE] = { "workingset_refault_file", PAGE_SIZE },
	[NR_ANON_MAPPED] = { "anon", PAGE_SIZE },
	[NR_FILE_MAPPED] = { "file_mapped", PAGE_SIZE },
	[NR_FILE_PAGES] = { "file", PAGE_SIZE },
	[NR_FILE_DIRTY] = { "file_dirty", PAGE_SIZE },
	[NR_WRITEBACK] = { "file_writeback", PAGE_SIZE },
	[NR_SHMEM] = { "shmem", PAGE_SIZE },
	[NR_KERNEL_STACK_KB] = { "kernel_stack", 1024 },
	[NR_PAGETABLE] = { "pagetables", PAGE_SIZE },
	[MEMCG_SOCK] = { "sock", PAGE_SIZE },
	[MEMCG_PERCPU_B] = { "percpu", 1 },
	[MEMCG_VMALLOC] = { "vmalloc", PAGE_SIZE },
	[MEMCG_KMEM] = { "kernel", PAGE_SIZE },
	[MEMCG_ZSWAP_B] = { "zswap", 1 },
	[MEMCG_ZSWAPPED] = { "zswapped", PAGE_SIZE },
	[FIRST_EVENT + PGFAULT] = { "pgfault", PAGE_SIZE },
	[FIRST_EVENT + PGMAJFAULT] = { "pgmajfault", PAGE_SIZE },
	[FIRST_EVENT + PGREFILL] = { "pgrefill", PAGE_SIZE },
	[FIRST_EVENT + PGSCAN_KSWAPD] = { "pgscan_kswapd", PAGE_SIZE },
	[FIRST_EVENT + PGSCAN_DIRECT] = { "pgscan_direct", PAGE_SIZE },
	[FIRST_EVENT + PGSTEAL_KSWAPD] = { "pgsteal_kswapd", PAGE_SIZE },
	[FIRST_EVENT + PGSTEAL_DIRECT] = { "pgsteal_direct", PAGE_SIZE },
	[FIRST_EVENT + PGACTIVATE] = { "pgactivate", PAGE_SIZE },
	[FIRST_EVENT + PGDEACTIVATE] = { "pgdeactivate", PAGE_SIZE },
	[FIRST_EVENT + PGLAZYFREE] = { "pglazyfree", PAGE_SIZE },
	[FIRST_EVENT + PGLAZYFREED] = { "pglazyfreed", PAGE_SIZE },
	[UPDATES] = { "updates", PAGE_SIZE },
};

void pcpc_memcg_describe_items(struct pcpc_item ret_items[MEMCG_NR_ITEMS])
{
	int i;

	for (i = 0; i < MEMCG_NR_ITEMS; i++)
		ret_items[i] = (struct pcpc_item){ items[i].name, "bytes" };
}

static bool known(const struct mem_cgroup *memcg, int nid, int item, int first, int end)
{
	return !WARN_ON_ONCE(item < first || item >= end || nid < 0 ||
			     (uint32_t)nid >= memcg->owner->domain->nr_nodes);
}

void pcpc_memcg_mod_state(struct mem_cgroup *memcg, int nid, int item, long value)
{
	if (known(memcg, nid, item, 0, MEMCG_NR_STAT))
		pcpc_stat_add_node(memcg->owner, (uint32_t)nid, (uint32_t)item,
				   value * items[item].size);
}

void pcpc_memcg_count(struct mem_cgroup *memcg, enum vm_event_item event, unsigned long count)
{
	if (known(memcg, 0, (int)event, 0, NR_VM_EVENT_ITEMS))
		pcpc_stat_add(memcg->owner, FIRST_EVENT + event, (int64_t)(count << PAGE_SHIFT));
}

void pcpc_memcg_updated(struct mem_cgroup *memcg, long value, int cpu)
{
	if (WARN_ON_ONCE(cpu < 0 || cpu >= (int)nr_cpu_ids))
		return;
	pcpc_stat_add(memcg->owner, UPDATES, labs(value) * (int64_t)PAGE_SIZE);
}

/* -- flushing and reading -- */

bool pcpc_memcg_needs_flush(const struct memcg_vmstats *vmstats)
{
	return pcpc_stat_needs_flush(vmstats->memcg->owner);
}

/* What is in slots belongs to it, as what is in per-CPU arrays does in the kernel. */
void pcpc_memcg_flush(struct mem_cgroup *memcg, bool force)
{
	if (!memcg)
		memcg = pcpc_memcg_root();
	if (memcg && (force || pcpc_stat_needs_flush(memcg->owner)))
		(void)pcpc_stat_read_exact(memcg->owner, UPDATES);
}

static long in_units(int64_t bytes, int item)
{
	return bytes > 0 ? (long)(bytes / items[item].size) : 0;
}

long pcpc_memcg_state(const struct mem_cgroup *memcg, int nid, int item, bool local)
{
	if (!known(memcg, nid < 0 ? 0 : nid, item, 0, MEMCG_NR_STAT))
		return 0;
	if (local)
		return in_units(pcpc_stat_read_local(memcg->owner, (uint32_t)item), item);
	return in_units(pcpc_stat_total(memcg->owner, nid, (uint32_t)item), item);
}

unsigned long pcpc_memcg_counted(const struct mem_cgroup *memcg, enum vm_event_item event,
				 bool local)
{
	const int item = FIRST_EVENT + (int)event;

	if (!known(memcg, 0, (int)event, 0, NR_VM_EVENT_ITEMS))
		return 0;
	return (unsigned long)in_units(local ? pcpc_stat_read_local(memcg->owner, (uint32_t)item)
					     : pcpc_stat_total(memcg->owner, -1, (uint32_t)item),
				       item);
}
