/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * memcontrol.h - memcg's own names, on top of owners: for code that charges a struct mem_cgroup and
 * is to run, be tested and be fuzzed in user space.
 *
 * A mem_cgroup is an owner of a domain with PCPC_DOMAIN_KERNEL, whose unit is the byte: pages and
 * bytes share one stock of seven slots a CPU. What a call does to counters, stocks and events is
 * what memcg documents or does; lib/DESIGN.md has the list, with what differs and why. The program
 * stands in for the rest of the kernel: it says how pages are reclaimed and who is killed (struct
 * pcpc_memcg_config). No swap, no cgroup v1, no protection (page_counter in kernel.h has the sums).
 *
 * C only, like kernel.h. Under __KERNEL__ this is <linux/memcontrol.h>. Every function here is
 * static inline and calls one of libpcpcharge with the prefix pcpc_memcg_, so that a program may
 * define these names itself instead of including this.
 *
 * Unless a function says otherwise: any thread may call it; the caller holds a reference of the
 * mem_cgroup (css_get()) or something charged to it; amounts are pages unless they are called size.
 * Signal handlers are interrupts: what memcg may do there is safe there, in a thread that is
 * registered (pcpc_thread_register()) and with irq_enter() and irq_exit() around.
 */
#ifndef PCPCHARGE_MEMCONTROL_H
#define PCPCHARGE_MEMCONTROL_H

#ifdef __KERNEL__
#include <linux/memcontrol.h>
#else

#include <pcpcharge/base.h>
#include <pcpcharge/kernel.h>

struct pcpc_domain;
struct pcpc_owner;

#define MEMCG_CHARGE_BATCH 64U
#define MAX_RECLAIM_RETRIES 16
#define PAGE_ALLOC_COSTLY_ORDER 3

enum memcg_memory_event {
	MEMCG_HIGH,	/* usage was above high, and was reclaimed from for it */
	MEMCG_MAX,	/* a charge did not fit */
	MEMCG_OOM,	/* reclaim did not help, and somebody was to be killed */
	MEMCG_OOM_KILL, /* the kill function made room */
	MEMCG_NR_MEMORY_EVENTS
};

/* Items with _B are counted in bytes, with _KB in KiB, all others in pages. */
enum node_stat_item {
	NR_INACTIVE_ANON,
	NR_ACTIVE_ANON,
	NR_INACTIVE_FILE,
	NR_ACTIVE_FILE,
	NR_UNEVICTABLE,
	NR_SLAB_RECLAIMABLE_B,
	NR_SLAB_UNRECLAIMABLE_B,
	WORKINGSET_REFAULT_ANON,
	WORKINGSET_REFAULT_FILE,
	NR_ANON_MAPPED,
	NR_FILE_MAPPED,
	NR_FILE_PAGES,
	NR_FILE_DIRTY,
	NR_WRITEBACK,
	NR_SHMEM,
	NR_KERNEL_STACK_KB,
	NR_PAGETABLE,
	NR_VM_NODE_STAT_ITEMS
};

enum memcg_stat_item {
	MEMCG_SOCK = NR_VM_NODE_STAT_ITEMS,
	MEMCG_PERCPU_B,
	MEMCG_VMALLOC,
	MEMCG_KMEM,
	MEMCG_ZSWAP_B,
	MEMCG_ZSWAPPED,
	MEMCG_NR_STAT
};

enum vm_event_item {
	PGFAULT,
	PGMAJFAULT,
	PGREFILL,
	PGSCAN_KSWAPD,
	PGSCAN_DIRECT,
	PGSTEAL_KSWAPD,
	PGSTEAL_DIRECT,
	PGACTIVATE,
	PGDEACTIVATE,
	PGLAZYFREE,
	PGLAZYFREED,
	NR_VM_EVENT_ITEMS
};

struct memcg_vmstats; /* what has been counted for one mem_cgroup, and when to flush it */
struct obj_cgroup;

/* Made by mem_cgroup_create() only; the library has more behind it. */
struct mem_cgroup {
	struct cgroup_subsys_state css;
	struct memcg_vmstats *vmstats;
	struct pcpc_owner *owner; /* for reports and figures; charge it by these functions */
};

/* Where a page or an object is counted. */
struct lruvec {
	struct mem_cgroup *memcg;
	int nid;
};

/* All that is needed of a socket. */
struct sock {
	struct mem_cgroup *sk_memcg;
};

/**
 * What the program does in place of the kernel. Both run in the calling task, with no lock held,
 * and may charge, uncharge and destroy.
 *
 * reclaim: uncharge up to nr_pages in the subtree of memcg; returns how many.
 * kill: make room in the subtree of memcg, at any cost; true if that was possible.
 */
typedef unsigned long pcpc_memcg_reclaim_fn(struct mem_cgroup *memcg, unsigned long nr_pages,
					    gfp_t gfp_mask, void *context);
typedef bool pcpc_memcg_kill_fn(struct mem_cgroup *memcg, gfp_t gfp_mask, int order, void *context);

/* All zero but size means the defaults. */
struct pcpc_memcg_config {
	size_t size;			/* sizeof(struct pcpc_memcg_config) */
	uint32_t nr_nodes;		/* 0: 1 */
	uint32_t stocks_per_cpu;	/* 0: 1, memcg's seven slots */
	int engine;			/* enum pcpc_engine */
	int index;			/* enum pcpc_index */
	pcpc_memcg_reclaim_fn *reclaim; /* NULL: nothing can be reclaimed */
	pcpc_memcg_kill_fn *kill;	/* NULL: nobody can be killed */
	void *context;			/* of both */
};

/**
 * pcpc_memcg_init: make the tree of mem_cgroups, with its root. config may be NULL.
 *
 * One tree a process. Returns 0; -EBUSY: there is one; otherwise as pcpc_domain_create(). Not
 * beside any other function of this header.
 */
PCPC_API int pcpc_memcg_init(const struct pcpc_memcg_config *config);

/** pcpc_memcg_exit: free it. Returns 0, also where there is none, or -EBUSY: mem_cgroups, objects
 * or charges are left. Not beside any other function of this header. */
PCPC_API int pcpc_memcg_exit(void);

/** pcpc_memcg_domain: for reports (observe.h); NULL before pcpc_memcg_init(). */
PCPC_API struct pcpc_domain *pcpc_memcg_domain(void);

/* What the functions below call. */
PCPC_API struct mem_cgroup *pcpc_memcg_root(void);
PCPC_API struct mem_cgroup *pcpc_memcg_create(struct mem_cgroup *parent, const char *name);
PCPC_API int pcpc_memcg_destroy(struct mem_cgroup *memcg);
PCPC_API bool pcpc_memcg_consume(struct mem_cgroup *memcg, unsigned int nr_pages);
PCPC_API void pcpc_memcg_refill(struct mem_cgroup *memcg, unsigned int nr_pages);
PCPC_API void pcpc_memcg_drain(struct mem_cgroup *root_memcg);
PCPC_API int pcpc_memcg_try_charge(struct mem_cgroup *memcg, gfp_t gfp_mask, unsigned int nr_pages);
PCPC_API struct obj_cgroup *pcpc_memcg_get_object(struct mem_cgroup *memcg);
PCPC_API bool pcpc_memcg_object_tryget(struct obj_cgroup *objcg);
PCPC_API void pcpc_memcg_object_put(struct obj_cgroup *objcg);
PCPC_API struct mem_cgroup *pcpc_memcg_of_object(struct obj_cgroup *objcg);
PCPC_API struct mem_cgroup *pcpc_memcg_get_of_object(struct obj_cgroup *objcg);
PCPC_API int pcpc_memcg_object_charge(struct obj_cgroup *objcg, gfp_t gfp_mask, size_t size);
PCPC_API void pcpc_memcg_object_uncharge(struct obj_cgroup *objcg, size_t size);
PCPC_API int pcpc_memcg_set_max(struct mem_cgroup *memcg, unsigned long nr_pages, bool nonblock);
PCPC_API void pcpc_memcg_set_high(struct mem_cgroup *memcg, unsigned long nr_pages, bool nonblock);
PCPC_API unsigned long pcpc_memcg_usage(const struct mem_cgroup *memcg);
PCPC_API void pcpc_memcg_handle_over_high(gfp_t gfp_mask);
PCPC_API void pcpc_memcg_raise(struct mem_cgroup *memcg, enum memcg_memory_event event);
PCPC_API unsigned long pcpc_memcg_raised(const struct mem_cgroup *memcg,
					 enum memcg_memory_event event, bool local);
PCPC_API void pcpc_memcg_mod_state(struct mem_cgroup *memcg, int nid, int item, long value);
PCPC_API void pcpc_memcg_count(struct mem_cgroup *memcg, enum vm_event_item item,
			       unsigned long count);
PCPC_API void pcpc_memcg_updated(struct mem_cgroup *memcg, long value, int cpu);
PCPC_API bool pcpc_memcg_needs_flush(const struct memcg_vmstats *vmstats);
PCPC_API void pcpc_memcg_flush(struct mem_cgroup *memcg, bool force);
PCPC_API long pcpc_memcg_state(const struct mem_cgroup *memcg, int nid, int item, bool local);
PCPC_API unsigned long pcpc_memcg_counted(const struct mem_cgroup *memcg, enum vm_event_item item,
					  bool local);

/* -- the tree -- */

#define root_mem_cgroup (pcpc_memcg_root())

static inline bool mem_cgroup_is_root(const struct mem_cgroup *memcg)
{
	return memcg == pcpc_memcg_root();
}

static inline struct mem_cgroup *mem_cgroup_from_css(struct cgroup_subsys_state *css)
{
	return css ? container_of(css, struct mem_cgroup, css) : NULL;
}

static inline struct mem_cgroup *parent_mem_cgroup(struct mem_cgroup *memcg)
{
	return mem_cgroup_from_css(memcg->css.parent);
}

static inline bool mem_cgroup_is_descendant(struct mem_cgroup *memcg, struct mem_cgroup *root)
{
	while (memcg && memcg != root)
		memcg = parent_mem_cgroup(memcg);
	return memcg == root;
}

static inline bool mem_cgroup_tryget(struct mem_cgroup *memcg)
{
	return !memcg || css_tryget(&memcg->css);
}

static inline void mem_cgroup_put(struct mem_cgroup *memcg)
{
	if (memcg)
		css_put(&memcg->css);
}

/**
 * mem_cgroup_create: a mem_cgroup below parent (NULL: below the root) with one reference, which
 * mem_cgroup_destroy() takes; the name is copied and may be NULL. The part of the cgroup core.
 *
 * Returns it, or an ERR_PTR of -ENODEV (no pcpc_memcg_init()), -ESHUTDOWN (parent is offline), or
 * what pcpc_owner_create() answers.
 */
static inline struct mem_cgroup *mem_cgroup_create(struct mem_cgroup *parent, const char *name)
{
	return pcpc_memcg_create(parent, name);
}

/**
 * mem_cgroup_destroy: take it offline: its obj_cgroups, with what is charged to them, pass to its
 * parent, its stocks are drained, and the first reference is dropped. Charges of who holds another
 * reference still work; when the last is put, it is freed by a work item.
 *
 * Returns 0; -EBUSY: it has children that are online; -EINVAL: NULL, the root, or offline already.
 * May sleep.
 */
static inline int mem_cgroup_destroy(struct mem_cgroup *memcg)
{
	return pcpc_memcg_destroy(memcg);
}

/* -- pages -- */

/** consume_stock: nr_pages from the stock of this CPU; false: it has not as many, and nothing has
 * changed. Safe in interrupts. */
static inline bool consume_stock(struct mem_cgroup *memcg, unsigned int nr_pages)
{
	return pcpc_memcg_consume(memcg, nr_pages);
}

/** refill_stock: pages that the counters have, into the stock of this CPU, or what is too much for
 * it back to the counters. Safe in interrupts. */
static inline void refill_stock(struct mem_cgroup *memcg, unsigned int nr_pages)
{
	pcpc_memcg_refill(memcg, nr_pages);
}

/** drain_all_stock: what the subtree has in stocks of all CPUs goes back to the counters before it
 * returns; where another drain is under way nothing happens. In tasks only. */
static inline void drain_all_stock(struct mem_cgroup *root_memcg)
{
	pcpc_memcg_drain(root_memcg);
}

/**
 * try_charge_memcg: charge pages to a mem_cgroup and all above it.
 * @gfp_mask: without __GFP_DIRECT_RECLAIM it does not sleep, reclaim, drain or kill; without any
 * reclaim bit it takes exactly nr_pages; __GFP_NOFAIL and __GFP_HIGH go over a max; __GFP_NORETRY
 * and __GFP_RETRY_MAYFAIL give up sooner
 *
 * Returns 0, also for the root, which is not charged, or -ENOMEM with every counter as before. What
 * it does between is semantics of memcg: see lib/DESIGN.md. Without __GFP_DIRECT_RECLAIM safe in
 * interrupts.
 */
static inline int try_charge_memcg(struct mem_cgroup *memcg, gfp_t gfp_mask, unsigned int nr_pages)
{
	return pcpc_memcg_try_charge(memcg, gfp_mask, nr_pages);
}

/** mem_cgroup_usage: pages of the subtree, stocked ones included, rounded up. */
static inline unsigned long mem_cgroup_usage(const struct mem_cgroup *memcg)
{
	return pcpc_memcg_usage(memcg);
}

/**
 * mem_cgroup_set_max: the limit; PAGE_COUNTER_MAX: none. It is in force at once. Where usage is
 * above, and unless nonblock, it then drains once, reclaims, and kills, until usage is below, or
 * nothing helps. As a write to memory.max. Returns 0, or -EINVAL for the root.
 */
static inline int mem_cgroup_set_max(struct mem_cgroup *memcg, unsigned long nr_pages,
				     bool nonblock)
{
	return pcpc_memcg_set_max(memcg, nr_pages, nonblock);
}

/** mem_cgroup_set_high: the same for memory.high, and nobody is killed. */
static inline void mem_cgroup_set_high(struct mem_cgroup *memcg, unsigned long nr_pages,
				       bool nonblock)
{
	pcpc_memcg_set_high(memcg, nr_pages, nonblock);
}

/** mem_cgroup_handle_over_high: what a task does on its way back to user mode: reclaims for what it
 * charged above high (current->memcg_nr_pages_over_high), and sleeps up to 2 s where that did not
 * help. For the mem_cgroup that it charged last, which has a reference for that: so a thread calls
 * this before it ends. */
static inline void mem_cgroup_handle_over_high(gfp_t gfp_mask)
{
	pcpc_memcg_handle_over_high(gfp_mask);
}

/* -- sockets -- */

static inline struct mem_cgroup *mem_cgroup_from_sk(const struct sock *sk)
{
	return sk->sk_memcg;
}

/* -- events of memory.events -- */

/** memcg_memory_event: count an event of memcg, and of all above it but the root. Safe in
 * interrupts. */
static inline void memcg_memory_event(struct mem_cgroup *memcg, enum memcg_memory_event event)
{
	pcpc_memcg_raise(memcg, event);
}

/** memcg_memory_events: how many there were in the subtree, or with local of memcg alone. */
static inline unsigned long memcg_memory_events(const struct mem_cgroup *memcg,
						enum memcg_memory_event event, bool local)
{
	return pcpc_memcg_raised(memcg, event, local);
}

/* -- statistics -- */

/** mod_memcg_state: change an item of memcg. An item that does not exist: one warning, and nothing
 * else. Safe in interrupts. */
static inline void mod_memcg_state(struct mem_cgroup *memcg, enum memcg_stat_item idx, int val)
{
	pcpc_memcg_mod_state(memcg, 0, (int)idx, val);
}

/** mod_memcg_lruvec_state: change an item of memcg on a node. */
static inline void mod_memcg_lruvec_state(struct lruvec *lruvec, enum node_stat_item idx, int val)
{
	pcpc_memcg_mod_state(lruvec->memcg, lruvec->nid, (int)idx, val);
}

/** count_memcg_events: count what happens in memory management. */
static inline void count_memcg_events(struct mem_cgroup *memcg, enum vm_event_item idx,
				      unsigned long count)
{
	pcpc_memcg_count(memcg, idx, count);
}

/** memcg_rstat_updated: val pages of memcg have changed in figures that the program keeps itself,
 * so that whoever reads them knows when to flush. A cpu that does not exist: one warning. */
static inline void memcg_rstat_updated(struct mem_cgroup *memcg, long val, int cpu)
{
	pcpc_memcg_updated(memcg, val, cpu);
}

/** memcg_vmstats_needs_flush: have more than 64 pages a CPU changed since the last flush? */
static inline bool memcg_vmstats_needs_flush(const struct memcg_vmstats *vmstats)
{
	return pcpc_memcg_needs_flush(vmstats);
}

/** mem_cgroup_flush_stats: bring the figures of the subtree up to date, if enough has changed; NULL
 * is the root. May sleep. */
static inline void mem_cgroup_flush_stats(struct mem_cgroup *memcg)
{
	pcpc_memcg_flush(memcg, false);
}

/** mem_cgroup_flush_stats_forced: in any case. */
static inline void mem_cgroup_flush_stats_forced(struct mem_cgroup *memcg)
{
	pcpc_memcg_flush(memcg, true);
}

/* As of the last flush, for the subtree; _local: of memcg alone. In the unit of the item, at least
 * 0. */
static inline unsigned long memcg_page_state(const struct mem_cgroup *memcg, int idx)
{
	return (unsigned long)pcpc_memcg_state(memcg, -1, idx, false);
}

static inline unsigned long memcg_page_state_local(const struct mem_cgroup *memcg, int idx)
{
	return (unsigned long)pcpc_memcg_state(memcg, -1, idx, true);
}

static inline unsigned long lruvec_page_state(const struct lruvec *lruvec, enum node_stat_item idx)
{
	return (unsigned long)pcpc_memcg_state(lruvec->memcg, lruvec->nid, (int)idx, false);
}

static inline unsigned long memcg_events(const struct mem_cgroup *memcg, enum vm_event_item idx)
{
	return pcpc_memcg_counted(memcg, idx, false);
}

static inline unsigned long memcg_events_local(const struct mem_cgroup *memcg,
					       enum vm_event_item idx)
{
	return pcpc_memcg_counted(memcg, idx, true);
}

/** mem_cgroup_sk_charge: try_charge_memcg() for a socket, counted as MEMCG_SOCK. False: refused. */
static inline bool mem_cgroup_sk_charge(const struct sock *sk, unsigned int nr_pages,
					gfp_t gfp_mask)
{
	struct mem_cgroup *memcg = mem_cgroup_from_sk(sk);

	if (try_charge_memcg(memcg, gfp_mask, nr_pages))
		return false;
	mod_memcg_state(memcg, MEMCG_SOCK, (int)nr_pages);
	return true;
}

/** mem_cgroup_sk_uncharge: the way back. Safe in interrupts. */
static inline void mem_cgroup_sk_uncharge(const struct sock *sk, unsigned int nr_pages)
{
	struct mem_cgroup *memcg = mem_cgroup_from_sk(sk);

	mod_memcg_state(memcg, MEMCG_SOCK, -(int)nr_pages);
	refill_stock(memcg, nr_pages);
}

/* -- objects: charges by the byte, which outlive their mem_cgroup -- */

/** get_obj_cgroup_from_memcg: the obj_cgroup to charge for memcg, or where memcg is offline for the
 * nearest above it that is not; with a reference. NULL for the root. */
static inline struct obj_cgroup *get_obj_cgroup_from_memcg(struct mem_cgroup *memcg)
{
	return pcpc_memcg_get_object(memcg);
}

static inline bool obj_cgroup_tryget(struct obj_cgroup *objcg)
{
	return pcpc_memcg_object_tryget(objcg);
}

static inline void obj_cgroup_get(struct obj_cgroup *objcg)
{
	(void)pcpc_memcg_object_tryget(objcg);
}

/** obj_cgroup_put: NULL is allowed. Safe in interrupts. */
static inline void obj_cgroup_put(struct obj_cgroup *objcg)
{
	pcpc_memcg_object_put(objcg);
}

/** obj_cgroup_memcg: who is charged just now; valid within the caller's rcu_read_lock(). */
static inline struct mem_cgroup *obj_cgroup_memcg(struct obj_cgroup *objcg)
{
	return pcpc_memcg_of_object(objcg);
}

/** get_mem_cgroup_from_objcg: the same with a reference. */
static inline struct mem_cgroup *get_mem_cgroup_from_objcg(struct obj_cgroup *objcg)
{
	return pcpc_memcg_get_of_object(objcg);
}

/** obj_cgroup_charge: charge size bytes to whom objcg belongs just now. Returns as
 * try_charge_memcg(). */
static inline int obj_cgroup_charge(struct obj_cgroup *objcg, gfp_t gfp_mask, size_t size)
{
	return pcpc_memcg_object_charge(objcg, gfp_mask, size);
}

/** obj_cgroup_uncharge: give size bytes back to whom objcg belongs just now. Safe in interrupts. */
static inline void obj_cgroup_uncharge(struct obj_cgroup *objcg, size_t size)
{
	pcpc_memcg_object_uncharge(objcg, size);
}

#endif
#endif
