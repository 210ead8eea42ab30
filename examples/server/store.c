// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * store.c - keys and values: reading and changing them.
 */
#define _GNU_SOURCE
#include "store_private.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static struct bytes value_of(const struct entry *entry)
{
	return (struct bytes){ entry->text + entry->key_length, entry->value_length };
}

/* Charged before it is allocated, for at least what malloc() will give. NULL: refused. */
static struct entry *make_entry(const struct place *place, struct bytes value, size_t room)
{
	size_t size = sizeof(struct entry) + place->key.length + room;
	uint64_t cost = (size + 15) / 16 * 16 + 16 + KEY_OVERHEAD;
	struct entry *entry;

	if (!store_charge(place->tenant, cost)) {
		atomic_fetch_add(&place->tenant->refused, 1);
		return NULL;
	}
	entry = malloc(size);
	if (!entry) {
		accounts->uncharge(place->tenant->keys, cost);
		return NULL;
	}
	cds_lfht_node_init(&entry->node);
	entry->tenant = place->tenant;
	entry->cost = cost;
	atomic_init(&entry->expiry, 0);
	atomic_init(&entry->used, false);
	entry->db = place->db;
	entry->key_length = (uint32_t)place->key.length;
	entry->value_length = (uint32_t)value.length;
	memcpy(entry->text, place->key.at, place->key.length);
	memcpy(entry->text + place->key.length, value.at, value.length);
	return entry;
}

/* -- reading -- */

#define REPLY_ROOM 32 /* what an answer takes beside the value, at most */

/* Room for the answer is made outside the section, where charging may wait; the value may have
 * changed by then. */
bool store_get(const struct place *place, struct buffer *out)
{
	struct entry *entry;
	size_t room = 0;

	do {
		if (room && !buffer_reserve(out, room))
			return true;
		store_begin_reading();
		entry = entry_find(place);
		room = entry ? entry->value_length + REPLY_ROOM : 0;
		if (entry && out->size - out->length >= room) {
			if (!atomic_load_explicit(&entry->used, memory_order_relaxed))
				atomic_store_explicit(&entry->used, true, memory_order_relaxed);
			reply_bulk(out, value_of(entry));
			room = 0;
		}
		store_end_reading();
	} while (room);
	return entry != NULL;
}

bool store_has(const struct place *place)
{
	bool has;

	store_begin_reading();
	has = entry_find(place) != NULL;
	store_end_reading();
	return has;
}

int64_t store_expiry(const struct place *place)
{
	int64_t expiry = -2;
	struct entry *entry;

	store_begin_reading();
	entry = entry_find(place);
	if (entry)
		expiry = atomic_load(&entry->expiry) ? atomic_load(&entry->expiry) : -1;
	store_end_reading();
	return expiry;
}

/* -- changing -- */

enum store_answer store_set(const struct place *place, struct bytes value, int64_t expiry,
			    enum store_condition condition)
{
	struct entry *entry = make_entry(place, value, value.length), *alive;
	bool applies;

	if (!entry)
		return STORE_FULL;
	store_lock(place->tenant);
	alive = entry_find(place);
	applies = condition == STORE_ALWAYS || (condition == STORE_IF_PRESENT) == (alive != NULL);
	if (applies) {
		if (expiry < 0)
			expiry = alive ? atomic_load(&alive->expiry) : 0;
		atomic_store(&entry->expiry, expiry);
		entry_put_in(place, entry);
	}
	store_unlock(place->tenant);
	if (!applies)
		entry_free(entry);
	return applies ? STORE_DONE : STORE_CONDITION;
}

static bool number_of(struct bytes value, int64_t *ret_number)
{
	return argument_number(&value, ret_number);
}

#define NUMBER_ROOM 24

enum store_answer store_add(const struct place *place, int64_t step, int64_t *ret_value)
{
	struct entry *entry = make_entry(place, (struct bytes){ "", 0 }, NUMBER_ROOM);
	enum store_answer answer = STORE_DONE;
	struct entry *alive;
	int64_t value = 0;

	if (!entry)
		return STORE_FULL;
	store_lock(place->tenant);
	alive = entry_find(place);
	if (alive && !number_of(value_of(alive), &value))
		answer = STORE_NO_NUMBER;
	else if (__builtin_add_overflow(value, step, &value))
		answer = STORE_OVERFLOW;
	if (answer == STORE_DONE) {
		entry->value_length = (uint32_t)snprintf(entry->text + entry->key_length,
							 NUMBER_ROOM, "%" PRId64, value);
		if (alive)
			atomic_store(&entry->expiry, atomic_load(&alive->expiry));
		entry_put_in(place, entry);
	}
	store_unlock(place->tenant);
	if (answer != STORE_DONE)
		entry_free(entry);
	*ret_value = value;
	return answer;
}

bool store_delete(const struct place *place)
{
	struct entry *entry;

	store_lock(place->tenant);
	entry = entry_find(place);
	if (entry)
		entry_remove(entry);
	store_unlock(place->tenant);
	return entry != NULL;
}

bool store_expire(const struct place *place, int64_t expiry)
{
	struct entry *entry;

	store_lock(place->tenant);
	entry = entry_find(place);
	if (entry && !atomic_exchange(&entry->expiry, expiry))
		place->tenant->nr_expiring++;
	store_unlock(place->tenant);
	return entry != NULL;
}
