// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * store.c - keys and values, in one lock-free hash table of liburcu.
 *
 * Reading takes no lock. Whatever changes a tenant's keys has the tenant's mutex: the table, the
 * list from oldest to newest, and the numbers agree under it. An entry is charged before it is
 * made, and uncharged when its memory is freed: after a grace period, so usage is never less than
 * what is there. Until then it is the tenant's garbage, which goes when there is much of it, when
 * room is wanted, or soon. Charging may call store_reclaim(), which takes the mutex: so nobody
 * charges under it, nor inside a read-side section.
 */
#define _GNU_SOURCE
#include "server.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include <urcu-bp.h>
#include <urcu/rculfhash.h>

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
	table = cds_lfht_new_flavor(1024, 64, 0, CDS_LFHT_AUTO_RESIZE | CDS_LFHT_ACCOUNTING,
				    &urcu_bp_flavor, NULL);
	return table != NULL;
}

static struct bytes value_of(const struct entry *entry)
{
	return (struct bytes){ entry->text + entry->key_length, entry->value_length };
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

static bool is_over(const struct entry *entry)
{
	int64_t expiry = atomic_load_explicit(&entry->expiry, memory_order_relaxed);

	return expiry && expiry <= store_now();
}

static void end_reading(void)
{
	COMES_BEFORE();
	urcu_bp_read_unlock();
}

/* Inside a read-side section. */
static struct entry *find(const struct place *place)
{
	struct cds_lfht_iter iter;
	struct cds_lfht_node *node;

	cds_lfht_lookup(table, hash(place), matches, place, &iter);
	node = cds_lfht_iter_get_node(&iter);
	COMES_AFTER();
	return node ? entry_of_node(node) : NULL;
}

static struct entry *find_alive(const struct place *place)
{
	struct entry *entry = find(place);

	return entry && !is_over(entry) ? entry : NULL;
}

/* -- entries -- */

static void free_entry(struct entry *entry)
{
	COMES_AFTER();
	accounts->uncharge(entry->tenant->keys, entry->cost);
	free(entry);
}

/* After one grace period for all of a list. */
static void free_list(struct entry *list)
{
	struct entry *entry;

	if (!list)
		return;
	urcu_bp_synchronize_rcu();
	while ((entry = list)) {
		list = entry->newer;
		free_entry(entry);
	}
}

/* -- room -- */

static uint64_t keys_of_all(bool exact)
{
	struct account_figures figures;
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < settings.nr_tenants; i++) {
		if (exact)
			accounts->figures(settings.tenant[i]->keys, &figures);
		sum += exact ? figures.usage : accounts->usage(settings.tenant[i]->keys);
	}
	return sum;
}

/* Of the whole server's limit, too, an eighth is left for connections. */
static bool server_has_room(uint64_t cost)
{
	uint64_t most = settings.max - settings.max / 8;

	return !settings.max || keys_of_all(false) + cost <= most ||
	       keys_of_all(true) + cost <= most;
}

static bool charge_once(struct tenant *tenant, uint64_t cost)
{
	return server_has_room(cost) && accounts->charge(tenant->keys, cost);
}

#define TIDY_ROUNDS 16 /* for one charge */

/* What is over and what is garbage does not keep others out; who evicts gives way where it is the
 * server that is full. */
static bool charge(struct tenant *tenant, uint64_t cost)
{
	int rounds;

	for (rounds = 0; rounds < TIDY_ROUNDS; rounds++) {
		if (charge_once(tenant, cost))
			return true;
		if (!store_tidy(tenant))
			break;
	}
	return tenant->evicts && store_reclaim(cost, tenant) && charge_once(tenant, cost);
}

/* -- entries -- */

/* Charged before it is allocated, for at least what malloc() will give. NULL: refused. */
static struct entry *make_entry(const struct place *place, struct bytes value, size_t room)
{
	size_t size = sizeof(struct entry) + place->key.length + room;
	uint64_t cost = (size + 15) / 16 * 16 + 16 + KEY_OVERHEAD;
	struct entry *entry;

	if (!charge(place->tenant, cost)) {
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

/* Under the tenant's mutex, like all that follow. */
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

static void forget(struct entry *entry)
{
	unlink_entry(entry);
	atomic_fetch_sub(&entry->tenant->nr_keys[entry->db], 1);
}

/* Takes an entry out, into a list. */
static void take_out(struct entry *entry, struct entry **list)
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

static void remove_entry(struct entry *entry)
{
	(void)cds_lfht_del(table, &entry->node);
	forget(entry);
	throw_away(entry);
}

/* In place of what was there under that key, if anything: readers find one or the other. */
static void put_in(const struct place *place, struct entry *entry)
{
	struct cds_lfht_node *node;

	COMES_BEFORE();
	node = cds_lfht_add_replace(table, hash(place), matches, place, &entry->node);
	if (node) {
		forget(entry_of_node(node));
		throw_away(entry_of_node(node));
	}
	link_newest(entry);
	atomic_fetch_add(&entry->tenant->nr_keys[entry->db], 1);
}

static void lock(struct tenant *tenant)
{
	pthread_mutex_lock(&tenant->mutex);
	urcu_bp_read_lock();
}

static struct entry *take_garbage(struct tenant *tenant)
{
	struct entry *list = tenant->garbage;

	tenant->garbage = NULL;
	tenant->nr_garbage = 0;
	return list;
}

#define GARBAGE_MOST 256 /* entries, before whoever adds one frees them */

static void unlock(struct tenant *tenant)
{
	struct entry *list = tenant->nr_garbage < GARBAGE_MOST ? NULL : take_garbage(tenant);

	end_reading();
	pthread_mutex_unlock(&tenant->mutex);
	free_list(list);
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
		urcu_bp_read_lock();
		entry = find_alive(place);
		room = entry ? entry->value_length + REPLY_ROOM : 0;
		if (entry && out->size - out->length >= room) {
			if (!atomic_load_explicit(&entry->used, memory_order_relaxed))
				atomic_store_explicit(&entry->used, true, memory_order_relaxed);
			reply_bulk(out, value_of(entry));
			room = 0;
		}
		end_reading();
	} while (room);
	return entry != NULL;
}

bool store_has(const struct place *place)
{
	bool has;

	urcu_bp_read_lock();
	has = find_alive(place) != NULL;
	end_reading();
	return has;
}

int64_t store_expiry(const struct place *place)
{
	int64_t expiry = -2;
	struct entry *entry;

	urcu_bp_read_lock();
	entry = find_alive(place);
	if (entry)
		expiry = atomic_load(&entry->expiry) ? atomic_load(&entry->expiry) : -1;
	end_reading();
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
	lock(place->tenant);
	alive = find_alive(place);
	applies = condition == STORE_ALWAYS || (condition == STORE_IF_PRESENT) == (alive != NULL);
	if (applies) {
		if (expiry < 0)
			expiry = alive ? atomic_load(&alive->expiry) : 0;
		atomic_store(&entry->expiry, expiry);
		put_in(place, entry);
	}
	unlock(place->tenant);
	if (!applies)
		free_entry(entry);
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
	lock(place->tenant);
	alive = find_alive(place);
	if (alive && !number_of(value_of(alive), &value))
		answer = STORE_NO_NUMBER;
	else if (__builtin_add_overflow(value, step, &value))
		answer = STORE_OVERFLOW;
	if (answer == STORE_DONE) {
		entry->value_length = (uint32_t)snprintf(entry->text + entry->key_length,
							 NUMBER_ROOM, "%" PRId64, value);
		if (alive)
			atomic_store(&entry->expiry, atomic_load(&alive->expiry));
		put_in(place, entry);
	}
	unlock(place->tenant);
	if (answer != STORE_DONE)
		free_entry(entry);
	*ret_value = value;
	return answer;
}

bool store_delete(const struct place *place)
{
	struct entry *entry;
	bool alive = false;

	lock(place->tenant);
	entry = find(place);
	if (entry) {
		alive = !is_over(entry);
		remove_entry(entry);
	}
	unlock(place->tenant);
	return alive;
}

bool store_expire(const struct place *place, int64_t expiry)
{
	struct entry *entry;

	lock(place->tenant);
	entry = find_alive(place);
	if (entry)
		atomic_store(&entry->expiry, expiry);
	unlock(place->tenant);
	return entry != NULL;
}

/* When it returns, the memory is free and uncharged. */
void store_flush(struct tenant *tenant, unsigned int db)
{
	struct entry *entry, *older, *list;

	lock(tenant);
	list = take_garbage(tenant);
	/* No further than there are any: who flushes often has put them in just now. */
	for (entry = tenant->oldest.last; entry && atomic_load(&tenant->nr_keys[db]);
	     entry = older) {
		older = entry->older;
		if (entry->db == db)
			take_out(entry, &list);
	}
	unlock(tenant);
	free_list(list);
}

/* -- at the limit -- */

#define PASSED_BY_MOST 64 /* for one victim, for all others wait meanwhile */

/* The next victim: the oldest that was not read since it was last passed by. Those that were begin
 * anew; after so many of them, the oldest. */
static struct entry *choose_victim(struct tenant *tenant)
{
	struct entry *entry = tenant->oldest.first;
	int passed;

	for (passed = 0; entry && passed < PASSED_BY_MOST && atomic_exchange(&entry->used, false);
	     passed++) {
		unlink_entry(entry);
		link_newest(entry);
		entry = tenant->oldest.first;
	}
	return entry;
}

/* The reclaim function of a tenant's account: garbage goes, and its own oldest keys. */
uint64_t store_reclaim(uint64_t wanted, void *context)
{
	struct entry *entry, *list;
	struct tenant *tenant = context;
	uint64_t freed = 0, nr = 0;

	lock(tenant);
	list = take_garbage(tenant);
	for (entry = list; entry; entry = entry->newer)
		freed += entry->cost;
	for (; freed < wanted && (entry = choose_victim(tenant)); nr++) {
		freed += entry->cost;
		take_out(entry, &list);
	}
	unlock(tenant);
	free_list(list);
	atomic_fetch_add(&tenant->evicted, nr);
	return freed;
}

/* -- what nobody asks for any more -- */

#define LOOK_AT 256 /* entries a time */

/* Some entries are looked at, from where the last time ended, and go if their time is over. */
static void expire_some(struct tenant *tenant)
{
	struct entry *entry;
	unsigned int looked;

	if (!tenant->looked_at)
		tenant->looked_at = tenant->oldest.first;
	for (looked = 0; looked < LOOK_AT && (entry = tenant->looked_at); looked++) {
		tenant->looked_at = entry->newer;
		if (is_over(entry)) {
			remove_entry(entry);
			atomic_fetch_add(&tenant->expired, 1);
		}
	}
}

/* What is over, and garbage. */
static void tidy(struct tenant *tenant, struct entry **list)
{
	struct entry *entry, *garbage;

	lock(tenant);
	expire_some(tenant);
	garbage = take_garbage(tenant);
	unlock(tenant);
	while ((entry = garbage)) {
		garbage = entry->newer;
		entry->newer = *list;
		*list = entry;
	}
}

bool store_tidy(struct tenant *tenant)
{
	struct entry *list = NULL;
	bool any;

	tidy(tenant, &list);
	any = list != NULL;
	free_list(list);
	return any;
}

/* With one grace period for all of it. */
void store_tidy_all(void)
{
	struct entry *list = NULL;
	unsigned int i;

	for (i = 0; i < settings.nr_tenants; i++)
		tidy(settings.tenant[i], &list);
	free_list(list);
}

void store_close(void)
{
	unsigned int i, db;

	for (i = 0; i < settings.nr_tenants; i++)
		for (db = 0; db < NR_DBS; db++)
			store_flush(settings.tenant[i], db);
	(void)cds_lfht_destroy(table, NULL);
}
