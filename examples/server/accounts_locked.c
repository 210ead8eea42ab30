// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * accounts_locked.c - the tree of counters behind a locked stock of seven slots a CPU, in the
 * manner of memcg's: a charge that finds the lock taken, or its account in no slot, goes to the
 * counters.
 */
#define _GNU_SOURCE
#include "accounts.h"

#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#define SLOTS 7
#define CPUS 256
#define BATCH 65536u

static struct stock {
	_Alignas(128) atomic_flag taken; /* tried only: whoever finds it taken does without */
	unsigned int hand;
	uint32_t bytes[SLOTS];
	struct tree_account *account[SLOTS];
} stocks[CPUS];

static struct stock *lock_stock(void)
{
	int cpu = sched_getcpu();
	struct stock *stock = &stocks[(cpu < 0 ? 0 : cpu) % CPUS];

	return atomic_flag_test_and_set_explicit(&stock->taken, memory_order_acquire) ? NULL
										      : stock;
}

static void unlock_stock(struct stock *stock)
{
	atomic_flag_clear_explicit(&stock->taken, memory_order_release);
}

static unsigned int find(const struct stock *stock, const struct tree_account *account)
{
	unsigned int slot = 0;

	while (slot < SLOTS && stock->account[slot] != account)
		slot++;
	return slot;
}

static bool consume(struct tree_account *account, uint64_t bytes)
{
	struct stock *stock = lock_stock();
	unsigned int slot;
	bool hit;

	if (!stock)
		return false;
	slot = find(stock, account);
	hit = slot < SLOTS && stock->bytes[slot] >= bytes;
	if (hit)
		stock->bytes[slot] -= (uint32_t)bytes;
	unlock_stock(stock);
	return hit;
}

/* Up to a batch stays; of more than that half a batch does. Settled under the lock, as memcg did.
 */
static void refill(struct tree_account *account, uint64_t bytes)
{
	struct stock *stock = bytes > BATCH ? NULL : lock_stock();
	unsigned int slot;

	if (!stock) {
		tree_give(account, bytes);
		return;
	}
	slot = find(stock, account);
	if (slot == SLOTS) {
		slot = find(stock, NULL);
		if (slot == SLOTS) {
			slot = stock->hand;
			stock->hand = (slot + 1) % SLOTS;
			tree_give(stock->account[slot], stock->bytes[slot]);
		}
		stock->account[slot] = account;
		stock->bytes[slot] = 0;
	}
	stock->bytes[slot] += (uint32_t)bytes;
	if (stock->bytes[slot] > BATCH) {
		tree_give(account, stock->bytes[slot] - BATCH / 2);
		stock->bytes[slot] = BATCH / 2;
	}
	unlock_stock(stock);
}

/* Everything of all CPUs goes back. */
static void drain(void)
{
	unsigned int cpu, slot;

	for (cpu = 0; cpu < CPUS; cpu++) {
		while (atomic_flag_test_and_set_explicit(&stocks[cpu].taken, memory_order_acquire))
			sched_yield();
		for (slot = 0; slot < SLOTS; slot++) {
			if (stocks[cpu].account[slot])
				tree_give(stocks[cpu].account[slot], stocks[cpu].bytes[slot]);
			stocks[cpu].account[slot] = NULL;
		}
		unlock_stock(&stocks[cpu]);
	}
}

static bool charge(struct account *account, uint64_t bytes)
{
	struct tree_account *tree = (struct tree_account *)account, *over;
	bool drained = false;
	int tries;

	for (tries = 0; tries < 16; tries++) {
		if (bytes <= BATCH && consume(tree, bytes))
			return true;
		if (bytes < BATCH && tree_take(tree, BATCH, &over)) {
			refill(tree, BATCH - bytes);
			return true;
		}
		if (tree_take(tree, bytes, &over))
			return true;
		if (!drained) {
			drained = true;
			drain();
		} else if (!tree_make_room(over, bytes + BATCH)) {
			return false;
		}
	}
	return false;
}

static void uncharge(struct account *account, uint64_t bytes)
{
	refill((struct tree_account *)account, bytes);
}

static uint64_t usage(struct account *account)
{
	return atomic_load(&((struct tree_account *)account)->usage);
}

static void figures(struct account *account, struct account_figures *ret_figures)
{
	drain();
	tree_figures(account, ret_figures);
}

static bool report(const char *format, FILE *file)
{
	(void)format;
	(void)file;
	return false;
}

static bool end(void)
{
	drain();
	return tree_end();
}

const struct accounts accounts_locked = {
	.name = "locked",
	.create = tree_create,
	.charge = charge,
	.uncharge = uncharge,
	.usage = usage,
	.figures = figures,
	.report = report,
	.end = end,
};
