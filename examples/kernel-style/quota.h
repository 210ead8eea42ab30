/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * quota.h - pages that groups of tasks may use, in the manner of a small kernel subsystem: a tree
 * of quotas with limits, charged from a per-CPU stock.
 *
 * Compiled unchanged in user space (with pcpcharge/kernel.h) and as part of a module.
 */
#ifndef QUOTA_H
#define QUOTA_H

#include <pcpcharge/kernel.h>

#define QUOTA_BATCH 64	 /* pages that a miss takes at once, and the most that a slot holds */
#define QUOTA_MAX_IDS 32 /* quotas at a time */

struct quota {
	atomic_long_t usage; /* pages of the subtree, stocked ones included */
	long max;	     /* READ_ONCE; may be below usage */
	struct quota *parent;
	struct list_head children, siblings; /* under quota_mutex */
	unsigned int id;
	const char *name;
};

struct quota_events {
	atomic_long_t hits, misses, refusals, evictions, trims, drains;
};

extern struct quota_events quota_events;

int quota_init(void);
void quota_exit(void); /* every quota but the root is gone, and nothing is charged */

struct quota *quota_root(void);
struct quota *quota_create(struct quota *parent, const char *name, long max); /* or ERR_PTR */
int quota_destroy(struct quota *quota); /* -EBUSY: children or pages are left */
int quota_charge(struct quota *quota, unsigned int nr_pages);	 /* 0 or -ENOMEM; any context */
void quota_uncharge(struct quota *quota, unsigned int nr_pages); /* any context */
void quota_set_max(struct quota *quota, long max);
void quota_drain(void); /* every CPU's stock goes back to the counters; may sleep */
unsigned long quota_stocked(void);

int quota_script(void); /* a scripted day, told line by line; 0 or what creating said */

#endif
