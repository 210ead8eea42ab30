// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * kernel_rcu.c - behind kernel.h: kfree_rcu(). All else of RCU is liburcu's.
 *
 * A rcu_head has room for one pointer beside the link, and call_rcu() wants it for a function. So
 * what is to be freed waits on a list; one call at a time frees what was on it when it was made.
 */
#define _GNU_SOURCE
#include <pcpcharge/kernel.h>

/* What a rcu_head is while it waits. */
struct freed {
	struct llist_node node;
	void *pointer;
};

static_assert(sizeof(struct freed) <= sizeof(struct rcu_head));

static LLIST_HEAD(waiting);	  /* for a call */
static struct llist_node *called; /* what the call that is made frees; nobody else looks */
static struct rcu_head head;
static int calling;

static void free_called(struct rcu_head *unused);

/* By whoever has made calling 1. */
static void call(void)
{
	called = llist_del_all(&waiting);
	call_rcu(&head, free_called);
}

/* calling is 0 before waiting is looked at again, by full barriers: pairs with
 * pcpc_kernel_free_rcu(), which adds and then looks at calling. One of them calls. */
static void free_called(struct rcu_head *unused)
{
	struct freed *freed, *next;

	(void)unused;
	llist_for_each_entry_safe(freed, next, called, node) kfree(freed->pointer);
	xchg(&calling, 0);
	if (!llist_empty(&waiting) && !xchg(&calling, 1))
		call();
}

void pcpc_kernel_free_rcu(struct rcu_head *place, void *pointer)
{
	struct freed *freed = (struct freed *)(void *)place;

	freed->pointer = pointer;
	llist_add(&freed->node, &waiting);
	if (!xchg(&calling, 1))
		call();
}
