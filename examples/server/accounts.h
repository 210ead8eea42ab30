/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * accounts.h - who uses how many bytes, and may use no more: one interface, and four ways behind
 * it, of which the command line chooses one. So that the cost of each can be seen in the same
 * program.
 *
 * Any thread may charge and uncharge. Accounts are made before the threads are, and freed after
 * them.
 */
#ifndef SERVER_ACCOUNTS_H
#define SERVER_ACCOUNTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct account;

/* Frees some bytes of an account's subtree; returns how many. */
typedef uint64_t account_reclaim_fn(uint64_t wanted, void *context);

struct account_figures {
	uint64_t usage, peak, max, high, refusals;
};

struct accounts {
	const char *name;
	/* parent is NULL for the first, which is the server's. max and high: 0: none. reclaim may
	 * be NULL. NULL: no memory. */
	struct account *(*create)(struct account *parent, const char *name, uint64_t max,
				  uint64_t high, account_reclaim_fn *reclaim, void *context);
	bool (*charge)(struct account *account, uint64_t bytes); /* false: refused */
	void (*uncharge)(struct account *account, uint64_t bytes);
	/* Now, or a little more: what stocks have counts. */
	uint64_t (*usage)(struct account *account);
	/* Without what stocks have. */
	void (*figures)(struct account *account, struct account_figures *ret_figures);
	/* "text", "json", "prometheus": the whole tree; "refusal": the last one, and who fills that
	 * limit. False: there is none. */
	bool (*report)(const char *format, FILE *file);
	/* True if nothing is charged any more; frees all accounts. */
	bool (*end)(void);
};

extern const struct accounts accounts_none, accounts_pcpcharge, accounts_atomic, accounts_locked;

/* accounts.c */
extern const struct accounts *accounts; /* the way that was chosen */
bool accounts_choose(const char *name);

/* A tree of counters that two of the ways share. */
struct tree_account {
	_Alignas(128) _Atomic uint64_t usage;
	_Atomic uint64_t peak, refusals;
	_Alignas(128) struct tree_account *parent, *next;
	uint64_t max, high;
	account_reclaim_fn *reclaim;
	void *context;
	unsigned int id;
};

struct account *tree_create(struct account *parent, const char *name, uint64_t max, uint64_t high,
			    account_reclaim_fn *reclaim, void *context);
bool tree_take(struct tree_account *account, uint64_t bytes, struct tree_account **ret_over);
void tree_give(struct tree_account *account, uint64_t bytes);
void tree_figures(struct account *account, struct account_figures *ret_figures);
bool tree_make_room(struct tree_account *over, uint64_t bytes);
bool tree_end(void);

#endif
