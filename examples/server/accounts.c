// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * accounts.c - which way of accounting there is, and the tree of shared counters: the simple one,
 * in which every charge changes every level's counter.
 */
#include "accounts.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

const struct accounts *accounts = &accounts_pcpcharge;

bool accounts_choose(const char *name)
{
	static const struct accounts *const ways[] = { &accounts_none, &accounts_pcpcharge,
						       &accounts_atomic, &accounts_locked };
	unsigned int i;

	for (i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (!strcmp(ways[i]->name, name)) {
			accounts = ways[i];
			return true;
		}
	return false;
}

/* -- a tree of counters -- */

static struct tree_account *all;

struct account *tree_create(struct account *parent, const char *name, uint64_t max, uint64_t high,
			    account_reclaim_fn *reclaim, void *context)
{
	struct tree_account *account = aligned_alloc(128, sizeof(*account));

	(void)name;
	if (!account)
		return NULL;
	memset(account, 0, sizeof(*account));
	account->parent = (struct tree_account *)parent;
	account->max = max ? max : UINT64_MAX;
	account->high = high ? high : UINT64_MAX;
	account->reclaim = reclaim;
	account->context = context;
	account->id = all ? all->id + 1 : 1;
	account->next = all;
	all = account;
	return (struct account *)account;
}

/* Relaxed: a figure. */
static void raise_peak(struct tree_account *account, uint64_t usage)
{
	uint64_t peak = atomic_load_explicit(&account->peak, memory_order_relaxed);

	while (usage > peak &&
	       !atomic_compare_exchange_weak_explicit(&account->peak, &peak, usage,
						      memory_order_relaxed, memory_order_relaxed))
		;
}

static void give_up_to(struct tree_account *account, const struct tree_account *end, uint64_t bytes)
{
	for (; account != end; account = account->parent)
		atomic_fetch_sub(&account->usage, bytes);
}

/* At every level, or at none: added first, and taken back where it is too much. */
bool tree_take(struct tree_account *account, uint64_t bytes, struct tree_account **ret_over)
{
	struct tree_account *level;
	uint64_t usage;

	for (level = account; level; level = level->parent) {
		usage = atomic_fetch_add(&level->usage, bytes) + bytes;
		if (usage > level->max) {
			atomic_fetch_sub(&level->usage, bytes);
			give_up_to(account, level, bytes);
			*ret_over = level;
			return false;
		}
		raise_peak(level, usage);
	}
	return true;
}

void tree_give(struct tree_account *account, uint64_t bytes)
{
	give_up_to(account, NULL, bytes);
}

bool tree_make_room(struct tree_account *over, uint64_t bytes)
{
	if (over->reclaim && over->reclaim(bytes, over->context))
		return true;
	atomic_fetch_add(&over->refusals, 1);
	return false;
}

void tree_figures(struct account *account, struct account_figures *ret_figures)
{
	struct tree_account *tree = (struct tree_account *)account;

	*ret_figures = (struct account_figures){ tree->usage, tree->peak, tree->max, tree->high,
						 tree->refusals };
}

bool tree_end(void)
{
	struct tree_account *account;
	bool empty = true;

	while ((account = all)) {
		empty = empty && !atomic_load(&account->usage);
		all = account->next;
		free(account);
	}
	return empty;
}

static bool charge(struct account *account, uint64_t bytes)
{
	struct tree_account *over;
	int tries;

	for (tries = 0; tries < 16; tries++) {
		if (tree_take((struct tree_account *)account, bytes, &over))
			return true;
		if (!tree_make_room(over, bytes))
			return false;
	}
	return false;
}

static void uncharge(struct account *account, uint64_t bytes)
{
	tree_give((struct tree_account *)account, bytes);
}

static uint64_t usage(struct account *account)
{
	return atomic_load(&((struct tree_account *)account)->usage);
}

static bool report(const char *format, FILE *file)
{
	(void)format;
	(void)file;
	return false;
}

const struct accounts accounts_atomic = {
	.name = "atomic",
	.create = tree_create,
	.charge = charge,
	.uncharge = uncharge,
	.usage = usage,
	.figures = tree_figures,
	.report = report,
	.end = tree_end,
};

/* -- none -- */

static bool charge_nobody(struct account *account, uint64_t bytes)
{
	(void)account;
	(void)bytes;
	return true;
}

static void uncharge_nobody(struct account *account, uint64_t bytes)
{
	(void)account;
	(void)bytes;
}

static uint64_t no_usage(struct account *account)
{
	(void)account;
	return 0;
}

const struct accounts accounts_none = {
	.name = "none",
	.create = tree_create,
	.charge = charge_nobody,
	.uncharge = uncharge_nobody,
	.usage = no_usage,
	.figures = tree_figures,
	.report = report,
	.end = tree_end,
};
