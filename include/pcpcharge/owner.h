/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * owner.h - domains and their trees of owners: who is charged, with which limits.
 *
 * A domain counts one kind of resource, in units of its own (bytes, pages, sockets). Its owners
 * form a tree under one root; whatever an owner is charged, its ancestors are charged too. An owner
 * with a max is never over it, and a charge is refused only when there is no room: units that lie
 * in stocks are taken back first. Charging itself is in charge.h.
 *
 * An owner lives as long as somebody holds a reference (create gives one, destroy takes it) or
 * units of it. Whoever calls in with a handle must hold one or the other during the call.
 *
 * Unless a function says otherwise: any number of threads may call it at a time, it may block, it
 * must not be called from a signal handler, and it returns 0 or a negative errno, with ret_*
 * untouched on failure. Functions that wait for a grace period of liburcu-bp (destroy, poll,
 * set_max, drains, charges without PCPC_NOWAIT) never do so inside a read-side section of the
 * caller. In handlers of pthread_atfork(), where this library holds its mutexes, only what is
 * signal-safe may be called. A child of fork may call everything; its eventfds have their old
 * numbers, and are its own.
 *
 * Batches: an owner without children keeps the batch of its domain, and one with children eight
 * times that of the level below, unless it was given one.
 */
#ifndef PCPCHARGE_OWNER_H
#define PCPCHARGE_OWNER_H

#include <pcpcharge/base.h>
#include <pcpcharge/cache.h>

PCPC_BEGIN_DECLS

struct pcpc_domain;
struct pcpc_owner;

#define PCPC_UNLIMITED ((uint64_t)INT64_MAX)
#define PCPC_BATCH_PAGES 64u	   /* a good batch where the unit is the page */
#define PCPC_BATCH_BYTES 65536u	   /* ... where it is the byte */
#define PCPC_BATCH_NONE UINT32_MAX /* this owner does not stock */
#define PCPC_DEPTH_MAX 64	   /* levels below the root */

/* A statistic of a domain. Both strings are copied; NULL: empty. */
struct pcpc_item {
	const char *name, *unit;
};

/* All zero but size and batch means the defaults. Strings are copied. */
struct pcpc_domain_config {
	size_t size;		 /* sizeof(struct pcpc_domain_config) */
	const char *name, *unit; /* "memory", "bytes"; NULL: empty */
	uint32_t batch;		 /* units, 1..PCPC_COUNT_MAX, or PCPC_BATCH_NONE; must be given */
	const struct pcpc_item *items; /* what statistics there are (stat.h); copied */
	uint32_t nr_items, nr_nodes;   /* their product is at most 4,096; no nodes: 1 */
	uint32_t coupled_item; /* the item that charge deltas move; without items they move nothing
				*/
	uint32_t delta_batch;  /* 1..PCPC_DELTA_MAX; 0: max(64, 2 x CPUs) */
	uint32_t stocks_per_cpu; /* as in struct pcpc_cache_config */
	enum pcpc_engine engine;
	enum pcpc_index index;
	unsigned int flags; /* PCPC_DOMAIN_... */
};

/* The program calls liburcu-bp's fork hooks itself, so this library must not: they take mutexes
 * that two callers cannot take. One domain that is made with it decides for the whole process. The
 * program calls them around fork(), or by handlers of pthread_atfork() that it installs after it
 * has made the first domain. */
#define PCPC_DOMAIN_NO_FORK_HOOKS 1u

/* Batching to the letter of Linux memcg, for programs that expect its numbers. A charge that its
 * stock does not serve takes a whole batch, or the amount where that is larger, from every counter
 * up to the root, and stocks the rest for its own owner; where that does not fit it takes exactly
 * the amount. What is given up leaves every counter up to the root likewise: the stocks of
 * ancestors serve their own charges only, and their batch is not raised. How much is stocked does
 * not depend on max until a refusal had to be made sure of. All guarantees hold as ever. */
#define PCPC_DOMAIN_KERNEL 2u

/* No eventfd, and so no descriptor: for a library below programs that close descriptors which are
 * not theirs, as daemons and shells do. A number that was closed and used again would be written to
 * when something is due, and replaced in a child of fork. Poll now and then instead. */
#define PCPC_DOMAIN_NO_EVENTFD 4u

/**
 * pcpc_domain_create: make a domain with a root that has no limit.
 * @config: not kept; batch must be given
 * @ret_domain: the caller's to destroy
 *
 * Reserves 448 MiB of address space for a million owners, beside its stocks; pages are touched as
 * owners are made. With items 24 MiB more for each item and node, 256 MiB at least, and as many
 * stocks again.
 *
 * Returns 0; -EINVAL: a NULL argument, a size this library does not know, batch missing or out of
 * range, delta_batch out of range, items NULL though nr_items is not 0, coupled_item not below
 * nr_items, nr_items x nr_nodes above PCPC_ITEM_MAX + 1, unknown flags, and what
 * pcpc_cache_create() refuses; -ENOSYS: the engine or index does not work here; -ENOMEM; -EMFILE,
 * -ENFILE: no descriptor or thread-specific key is to be had; -EDEADLK: called inside a read-side
 * section of liburcu-bp.
 */
PCPC_API int pcpc_domain_create(const struct pcpc_domain_config *config,
				struct pcpc_domain **ret_domain);

/**
 * pcpc_domain_destroy: free a domain, after a sweep and a drain. NULL is allowed.
 *
 * Events that are pending are told first. Returns 0; -EBUSY: owners, units or references of the
 * root are left, or membarrier is refused and units are stocked; the domain lives on; -EDEADLK:
 * called inside a read-side section of liburcu-bp, or by a callback of this domain. Nothing else
 * may use the domain at the same time.
 */
PCPC_API int pcpc_domain_destroy(struct pcpc_domain *domain);

/** pcpc_domain_root: the root, which lives as long as the domain. Signal-safe. */
PCPC_API struct pcpc_owner *pcpc_domain_root(struct pcpc_domain *domain);

/**
 * pcpc_domain_poll: do what is due: call back for events that arose where no callback may run, make
 * sure of limits for charges that were not allowed to wait, sweep offline owners.
 *
 * May wait for a grace period of liburcu-bp; inside a read-side section of the caller it does
 * nothing, and the eventfd stays readable. Callbacks run here.
 */
PCPC_API void pcpc_domain_poll(struct pcpc_domain *domain);

/** pcpc_domain_eventfd: readable when poll has something to do. The domain's: do not close it.
 * -EBADF: made with PCPC_DOMAIN_NO_EVENTFD. Signal-safe. */
PCPC_API int pcpc_domain_eventfd(struct pcpc_domain *domain);

/* All zero but size means the defaults. */
struct pcpc_owner_config {
	size_t size; /* sizeof(struct pcpc_owner_config) */
	const char *name;
	uint64_t max, high; /* units; 0: unlimited */
	uint32_t batch;	    /* units, 1..PCPC_COUNT_MAX, or PCPC_BATCH_NONE; 0: the domain's */
	void *context;
};

/**
 * pcpc_owner_create: make an owner below parent.
 * @parent: live
 * @config: may be NULL; the name is copied
 * @ret_owner: with one reference, which pcpc_owner_destroy() takes
 *
 * Returns 0; -EINVAL: a NULL argument, a size this library does not know, max, high or batch out of
 * range, more than PCPC_DEPTH_MAX levels; -ESHUTDOWN: parent is offline; -ENOSPC: PCPC_OWNER_MAX
 * owners exist, or have not been swept; -ENOMEM. May sweep.
 */
PCPC_API int pcpc_owner_create(struct pcpc_owner *parent, const struct pcpc_owner_config *config,
			       struct pcpc_owner **ret_owner);

/**
 * pcpc_owner_destroy: take an owner offline and give up the reference that create gave.
 *
 * Calls on it after that need a reference or units of it: charges (forced ones too) get -ESHUTDOWN,
 * also those that wait, and uncharges still arrive. Its callbacks are taken away, those of its
 * ancestors stay. It is freed by a sweep that finds no units and no references.
 *
 * Returns 0, also for NULL; -EBUSY: live children exist; -EINVAL: the root, or offline already. May
 * sweep.
 */
PCPC_API int pcpc_owner_destroy(struct pcpc_owner *owner);

/** pcpc_owner_get, pcpc_owner_put: one more reference, for handles shared between threads; one
 * less. Both accept NULL, never block, and are signal-safe. */
PCPC_API struct pcpc_owner *pcpc_owner_get(struct pcpc_owner *owner);
PCPC_API void pcpc_owner_put(struct pcpc_owner *owner);

/* Constant while the owner lives; signal-safe. The id may be reused after. */
PCPC_API uint32_t pcpc_owner_id(const struct pcpc_owner *owner);
PCPC_API struct pcpc_owner *pcpc_owner_parent(const struct pcpc_owner *owner);
PCPC_API const char *pcpc_owner_name(const struct pcpc_owner *owner);
PCPC_API void *pcpc_owner_context(const struct pcpc_owner *owner);

/** pcpc_owner_by_id: the owner of whom the caller holds units or a reference, offline or not; NULL
 * if there is none of that id. Signal-safe. */
PCPC_API struct pcpc_owner *pcpc_owner_by_id(struct pcpc_domain *domain, uint32_t id);

typedef bool pcpc_visit_fn(struct pcpc_owner *owner, unsigned int depth, void *context);

/**
 * pcpc_owner_walk: visit an owner (depth 0) and its live descendants, parents first, until visit
 * says false. No lock is held meanwhile: visit may do anything, and owners that are created or
 * destroyed during the walk may be visited or not.
 */
PCPC_API void pcpc_owner_walk(struct pcpc_owner *owner, pcpc_visit_fn *visit, void *context);

/**
 * pcpc_owner_set_max: the limit, in units, 0..PCPC_UNLIMITED (0 is a limit of zero here).
 *
 * In force when it returns, stocked units included; takes back nothing that is held, so usage may
 * stay above it. Wakes those who wait. May call back.
 *
 * Returns 0; -EINVAL; where usage is above max, with the limit stored but units still stocked:
 * -EAGAIN inside a read-side section of liburcu-bp (poll sees to it), or what membarrier answered.
 */
PCPC_API int pcpc_owner_set_max(struct pcpc_owner *owner, uint64_t max);

/** pcpc_owner_set_high: when usage rises above this, PCPC_EVENT_HIGH is raised, and again after
 * usage was below 15/16 of it; nothing is refused. Stocked units count: before slowing somebody
 * down, ask pcpc_owner_usage_exact(). 0..PCPC_UNLIMITED. Returns 0 or -EINVAL. Never blocks. */
PCPC_API int pcpc_owner_set_high(struct pcpc_owner *owner, uint64_t high);

/** pcpc_owner_set_batch: 1..PCPC_COUNT_MAX, PCPC_BATCH_NONE, or 0 for the domain's. Slots that hold
 * more are trimmed by their next use. Returns 0 or -EINVAL. */
PCPC_API int pcpc_owner_set_batch(struct pcpc_owner *owner, uint32_t batch);

/* Signal-safe, both. */
PCPC_API uint64_t pcpc_owner_max(const struct pcpc_owner *owner);
PCPC_API uint64_t pcpc_owner_high(const struct pcpc_owner *owner);

/** pcpc_owner_usage: an upper bound of what the subtree holds, in one load. Signal-safe. */
PCPC_API uint64_t pcpc_owner_usage(const struct pcpc_owner *owner);

/** pcpc_owner_stocked: what the subtree has in stocks of all CPUs; a snapshot. For an owner without
 * children one line a CPU is looked at, else all of them. */
PCPC_API uint64_t pcpc_owner_stocked(struct pcpc_owner *owner);

/** pcpc_owner_usage_exact: usage less what is stocked. Exact while the subtree is quiet, else off
 * by what moved meanwhile; never below 0 nor above usage. Takes nothing out. */
PCPC_API uint64_t pcpc_owner_usage_exact(struct pcpc_owner *owner);

/** pcpc_owner_peak: the highest usage since creation or reset. A refused charge does not raise it.
 * A charge that another thread is just making may not be in it yet. Signal-safe. */
PCPC_API uint64_t pcpc_owner_peak(const struct pcpc_owner *owner);
PCPC_API void pcpc_owner_reset_peak(struct pcpc_owner *owner);

/** pcpc_owner_drain: take what the subtree stocks out of all CPUs and give it back. Returns the
 * units given back, less those that a drain beside it took; 0 also where membarrier is refused.
 * Blocks. May call back. */
PCPC_API uint64_t pcpc_owner_drain(struct pcpc_owner *owner);

/**
 * A reclaim function frees units of an owner at its max. wanted includes a batch: free that much at
 * once and the owner stays fast at its limit. Returns the units it freed; 0 gives up.
 *
 * One at a time per owner, with no lock held and outside any read-side section; charges that do not
 * fit there meanwhile wait for it. It may charge, uncharge, create, destroy and drain; a charge
 * made inside does not reclaim, whatever its owner and domain. What it uncharges below over enters
 * no stock.
 */
typedef uint64_t pcpc_reclaim_fn(struct pcpc_owner *over, uint64_t wanted, void *context);

/** NULL takes it away. A call in progress is not waited for. Returns 0 or -EINVAL. */
PCPC_API int pcpc_owner_set_reclaim(struct pcpc_owner *owner, pcpc_reclaim_fn *reclaim,
				    void *context);

enum pcpc_event {
	PCPC_EVENT_MAX,	      /* a charge did not fit at first */
	PCPC_EVENT_HIGH,      /* usage rose above high */
	PCPC_EVENT_RELIEVED,  /* after refusals, usage is at most 15/16 of max, and below it */
	PCPC_EVENT_REFUSED,   /* a charge was refused for good */
	PCPC_EVENT_FORCED,    /* a forced charge went over a max */
	PCPC_EVENT_RECLAIM,   /* the reclaim function was called */
	PCPC_EVENT_DRAIN,     /* stocks were drained for a charge or a limit */
	PCPC_EVENT_UNDERFLOW, /* more was uncharged than held: clamped, and nobody else changed */
	PCPC_NR_EVENTS
};

/**
 * Tells of an event of owner, which is the one that asked or below it; with a reference on it, no
 * lock held, outside any read-side section. Runs in any call that may wait (a charge without
 * PCPC_NOWAIT, set_max, transfer, drain, poll), in several threads at once, for events of other
 * threads too, and may do what a reclaim function may. Events that arise where no callback may run
 * (PCPC_NOWAIT, uncharge, signal handlers, callbacks) come from pcpc_domain_poll(). Several of one
 * kind may have become one.
 */
typedef void pcpc_notify_fn(struct pcpc_owner *owner, enum pcpc_event event, void *context);

/** NULL takes it away. A call in progress is not waited for. Returns 0 or -EINVAL. */
PCPC_API int pcpc_owner_set_notify(struct pcpc_owner *owner, pcpc_notify_fn *notify, void *context);

/** pcpc_owner_events: how often it happened in the subtree, owners that are gone included.
 * Signal-safe. */
PCPC_API uint64_t pcpc_owner_events(const struct pcpc_owner *owner, enum pcpc_event event);

/**
 * pcpc_thread_register: for threads in which signal handlers charge, uncharge or count. Others are
 * registered with liburcu-bp, which takes a mutex, by their first call that no stock serves.
 *
 * Registration ends in a destructor of a thread-specific key. What a thread calls after the last of
 * those (allocators are called then, for the C library frees memory of the thread) registers it
 * anew, and nobody ends that: it costs memory, and time in each grace period. Leave such calls to
 * another thread.
 */
PCPC_API void pcpc_thread_register(void);

PCPC_END_DECLS

#endif
