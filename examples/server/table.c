// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * table.c - all entries, in one lock-free hash table of liburcu.
 *
 * Reading takes no lock. Whatever changes a tenant's keys has the tenant's mutex: the table, the
 * list from oldest to newest, and the numbers agree under it. An entry is charged before it is
 * made, and uncharged when its memory is freed: after a grace period, so usage is never less than
 * what is there. Until then it is the tenant's garbage, which goes when there is much of it, when
 * room is wanted, or soon.
 */
#define _GNU_SOURCE
#include "store_private.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#define FIRST_SIZE 1024ul /* buckets, and the fewest */

static struct cds_lfht *table;
static uint64_t seed;

/*
 * ThreadSanitizer does not see into liburcu: that whoever finds an entry sees what was written
 * before it was put in, and that whoever frees one after a grace period comes after all who had
 * found it.
 */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SEES_THREADS 1
#endif
#endif
#ifdef SEES_THREADS
#include <sanitizer/tsan_interface.h>
#define COMES_BEFORE() __tsan_release(&table)
#define COMES_AFTER() __tsan_acquire(&table)
#else
#define COMES_BEFORE() ((void)0)
#define COMES_AFTER() ((void)0)
#endif

static struct entry *entry_of_node(struct cds_lfht_node *node)
{
	return (struct entry *)((char *)node - offsetof(struct entry, node));
}

int64_t store_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

bool store_open(void)
{
	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		return false;
	table = cds_lfht_new_flavor(FIRST_SIZE, FIRST_SIZE, 0, 0, &urcu_bp_flavor, NULL);
	return table != NULL;
}

/* As many buckets as there are keys, about. Not left to the table, whose own way to grow now and
 * then comes to a stop in liburcu 0.13: what asks for it may forget that it has been done. */
void table_fit(void)
{
	static unsigned long size = FIRST_SIZE;
	unsigned long wanted = FIRST_SIZE;
	uint64_t keys = 0;
	unsigned int i, db;

	for (i = 0; i < settings.nr_tenants; i++)
		for (db = 0; db < NR_DBS; db++)
			keys += atomic_load_explicit(&settings.tenant[i]->nr_keys[db],
						     memory_order_relaxed);
	while (wanted < keys)
		wanted *= 2;
	if (wanted <= size && wanted >= size / 4)
		return;
	cds_lfht_resize(table, wanted);
	size = wanted;
}

/* Seeded, so that no client can choose keys that meet in one bucket of the table, which all share.
 */
static unsigned long hash(const struct place *place)
{
	uint64_t sum = seed ^ ((uintptr_t)place->tenant * 31 + place->db);
	size_t i;

	for (i = 0; i < place->key.length; i++)
		sum = (sum ^ (unsigned char)place->key.at[i]) * 0x100000001b3u;
	return (unsigned long)(sum ^ sum >> 32);
}

static int matches(struct cds_lfht_node *node, const void *key)
{
	const struct entry *entry = entry_of_node(node);
	const struct place *place = key;

	COMES_AFTER();
	return entry->tenant == place->tenant && entry->db == place->db &&
	       entry->key_length == place->key.length &&
	       !memcmp(entry->text, place->key.at, place->key.length);
}

bool entry_is_over(const struct entry *entry)
{
	int64_t expiry = atomic_load_explicit(&entry->expiry, memory_order_relaxed);

	return expiry && expiry <= store_now();
}

void store_begin_reading(void)
{
	urcu_bp_read_lock();
}

void store_end_reading(void)
{
	COMES_BEFORE();
	urcu_bp_read_unlock();
}

struct entry *entry_find(const struct place *place)
{
	struct cds_lfht_iter iter;
	struct cds_lfht_node *node;

	cds_lfht_lookup(table, hash(place), matches, place, &iter);
	node = cds_lfht_iter_get_node(&iter);
	COMES_AFTER();
	return node && !entry_is_over(entry_of_node(node)) ? entry_of_node(node) : NULL;
}

/* -- freeing -- */

void entry_free(struct entry *entry)
{
	COMES_AFTER();
	accounts->uncharge(entry->tenant->keys, entry->cost);
	free(entry);
}

void entry_free_list(struct entry *list)
{
	struct entry *entry;

	if (!list)
		return;
	urcu_bp_synchronize_rcu();
	while ((entry = list)) {
		list = entry->newer;
		entry_free(entry);
	}
}

/* -- changing; under the tenant's mutex -- */

static void link_newest(struct entry *entry)
{
	struct entry_list *list = &entry->tenant->oldest;

	entry->older = list->last;
	entry->newer = NULL;
	*(list->last ? &list->last->newer : &list->first) = entry;
	list->last = entry;
}

static void unlink_entry(struct entry *entry)
{
	struct entry_list *list = &entry->tenant->oldest;

	if (entry->tenant->looked_at == entry)
		entry->tenant->looked_at = entry->newer;
	*(entry->older ? &entry->older->newer : &list->first) = entry->newer;
	*(entry->newer ? &entry->newer->older : &list->last) = entry->older;
}

void entry_renew(struct entry *entry)
{
	unlink_entry(entry);
	link_newest(entry);
}

static void forget(struct entry *entry)
{
	unlink_entry(entry);
	entry->tenant->nr_expiring -= atomic_load(&entry->expiry) != 0;
	atomic_fetch_sub(&entry->tenant->nr_keys[entry->db], 1);
}

void entry_take_out(struct entry *entry, struct entry **list)
{
	(void)cds_lfht_del(table, &entry->node);
	forget(entry);
	entry->newer = *list;
	*list = entry;
}

static void throw_away(struct entry *entry)
{
	entry->newer = entry->tenant->garbage;
	entry->tenant->garbage = entry;
	entry->tenant->nr_garbage++;
}

void entry_remove(struct entry *entry)
{
	(void)cds_lfht_del(table, &entry->node);
	forget(entry);
	throw_away(entry);
}

void entry_put_in(const struct place *place, struct entry *entry)
{
	struct cds_lfht_node *node;

	COMES_BEFORE();
	node = cds_lfht_add_replace(table, hash(place), matches, place, &entry->node);
	if (node) {
		forget(entry_of_node(node));
		throw_away(entry_of_node(node));
	}
	link_newest(entry);
	entry->tenant->nr_expiring += atomic_load(&entry->expiry) != 0;
	atomic_fetch_add(&entry->tenant->nr_keys[entry->db], 1);
}

void store_lock(struct tenant *tenant)
{
	pthread_mutex_lock(&tenant->mutex);
	store_begin_reading();
}

struct entry *store_take_garbage(struct tenant *tenant)
{
	struct entry *list = tenant->garbage;

	tenant->garbage = NULL;
	tenant->nr_garbage = 0;
	return list;
}

#define GARBAGE_MOST 256 /* entries, before whoever adds one frees them */

void store_unlock(struct tenant *tenant)
{
	struct entry *list = tenant->nr_garbage < GARBAGE_MOST ? NULL : store_take_garbage(tenant);

	store_end_reading();
	pthread_mutex_unlock(&tenant->mutex);
	entry_free_list(list);
}

void store_close(void)
{
	unsigned int i, db;

	for (i = 0; i < settings.nr_tenants; i++)
		for (db = 0; db < NR_DBS; db++)
			store_flush(settings.tenant[i], db);
	(void)cds_lfht_destroy(table, NULL);
}
