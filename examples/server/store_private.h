/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * store_private.h - entries, as store.c, store_room.c and table.c know them.
 */
#ifndef STORE_PRIVATE_H
#define STORE_PRIVATE_H

#include "server.h"

#include <urcu-bp.h>
#include <urcu/rculfhash.h>

/* A key and its value, in one block; constant but for expiry and used. */
struct entry {
	struct cds_lfht_node node;
	struct entry *newer, *older; /* under the tenant's mutex; newer: the next of a list, too */
	struct tenant *tenant;
	uint64_t cost; /* bytes charged for it */
	_Atomic int64_t expiry;
	_Atomic bool used; /* read since it was last looked at by store_reclaim() */
	uint32_t db, key_length, value_length;
	char text[]; /* key, value */
};

/* -- table.c -- */

void table_fit(void);		      /* outside any read-side section; by one thread */
void entry_free(struct entry *entry); /* and uncharge: nobody else has seen it, or can any more */
void entry_free_list(struct entry *list); /* after one grace period; outside any section */
bool entry_is_over(const struct entry *entry);

/* A read-side section. In it entry_find() may be called, and what it has found stays. */
void store_begin_reading(void);
void store_end_reading(void);
struct entry *entry_find(const struct place *place); /* NULL: none, or its time is over */

/* The tenant's mutex, and a read-side section. Who unlocks frees garbage where there is much. */
void store_lock(struct tenant *tenant);
void store_unlock(struct tenant *tenant);

/* Between the two. To put in replaces what was there under that key, if anything, in one step. */
void entry_put_in(const struct place *place, struct entry *entry);
void entry_take_out(struct entry *entry, struct entry **list);
void entry_remove(struct entry *entry); /* it is garbage */
void entry_renew(struct entry *entry);	/* it is the newest */
struct entry *store_take_garbage(struct tenant *tenant);

/* -- store_room.c -- */

bool store_charge(struct tenant *tenant, uint64_t cost);

#endif
