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
	struct entry *newer,
		*older; /* under the tenant's mutex; newer: next in a list of garbage */
	struct tenant *tenant;
	uint64_t cost; /* bytes charged for it */
	_Atomic int64_t expiry;
	_Atomic bool used; /* read since it was last looked at by store_reclaim() */
	uint32_t db, key_length, value_length;
	char text[]; /* key, value */
};

/* -- table.c; all but the first four under the tenant's mutex -- */

void entry_free(struct entry *entry); /* and uncharge */
/* All of a list, after one grace period. */
void entry_free_list(struct entry *list);
bool entry_is_over(const struct entry *entry);

void table_fit(void); /* outside any read-side section; by one thread */

/* The tenant's mutex, and a read-side section. Who unlocks frees garbage where there is much. */
void store_lock(struct tenant *tenant);
void store_unlock(struct tenant *tenant);
void store_begin_reading(void);
void store_end_reading(void);

/* Inside a read-side section; NULL: there is none, or its time is over. */
struct entry *entry_find(const struct place *place);
/* In place of what was there under that key, if anything: readers find one or the other. */
void entry_put_in(const struct place *place, struct entry *entry);
void entry_take_out(struct entry *entry, struct entry **list);
void entry_remove(struct entry *entry); /* it is garbage */
void entry_renew(struct entry *entry);	/* it is the newest */
struct entry *store_take_garbage(struct tenant *tenant);

/* -- store_room.c -- */

bool store_charge(struct tenant *tenant, uint64_t cost);

#endif
