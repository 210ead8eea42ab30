// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * store_room.c - room for entries: limits, what gives way at them, and what goes by itself.
 *
 * Charging may call store_reclaim(), which takes the tenant's mutex: so nobody charges under it,
 * nor inside a read-side section.
 */
#include "store_private.h"

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
bool store_charge(struct tenant *tenant, uint64_t cost)
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

/* When it returns, the memory is free and uncharged. */
void store_flush(struct tenant *tenant, unsigned int db)
{
	struct entry *entry, *older, *list;

	store_lock(tenant);
	list = store_take_garbage(tenant);
	/* No further than there are any: who flushes often has put them in just now. */
	for (entry = tenant->oldest.last; entry && atomic_load(&tenant->nr_keys[db]);
	     entry = older) {
		older = entry->older;
		if (entry->db == db)
			entry_take_out(entry, &list);
	}
	store_unlock(tenant);
	entry_free_list(list);
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
		entry_renew(entry);
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

	store_lock(tenant);
	list = store_take_garbage(tenant);
	for (entry = list; entry; entry = entry->newer)
		freed += entry->cost;
	for (; freed < wanted && (entry = choose_victim(tenant)); nr++) {
		freed += entry->cost;
		entry_take_out(entry, &list);
	}
	store_unlock(tenant);
	entry_free_list(list);
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

	if (!tenant->nr_expiring)
		return;
	if (!tenant->looked_at)
		tenant->looked_at = tenant->oldest.first;
	for (looked = 0; looked < LOOK_AT && (entry = tenant->looked_at); looked++) {
		tenant->looked_at = entry->newer;
		if (entry_is_over(entry)) {
			entry_remove(entry);
			atomic_fetch_add(&tenant->expired, 1);
		}
	}
}

/* What is over, and garbage. */
static void tidy(struct tenant *tenant, struct entry **list)
{
	struct entry *entry, *garbage;

	store_lock(tenant);
	expire_some(tenant);
	garbage = store_take_garbage(tenant);
	store_unlock(tenant);
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
	entry_free_list(list);
	return any;
}

/* With one grace period for all of it. */
void store_tidy_all(void)
{
	struct entry *list = NULL;
	unsigned int i;

	for (i = 0; i < settings.nr_tenants; i++)
		tidy(settings.tenant[i], &list);
	entry_free_list(list);
	table_fit();
}
