/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * kernel/list.h - part of kernel.h: lists, on those of liburcu; and lists that are pushed to
 * without a lock.
 */
#ifndef PCPCHARGE_KERNEL_LIST_H
#define PCPCHARGE_KERNEL_LIST_H

#ifndef PCPCHARGE_KERNEL_H
#error "include <pcpcharge/kernel.h>"
#endif

#include <urcu/list.h>

#define list_head cds_list_head
#define LIST_HEAD(name) CDS_LIST_HEAD(name)
#define LIST_HEAD_INIT(name) CDS_LIST_HEAD_INIT(name)
#define list_entry(pointer, type, member) container_of(pointer, type, member)
#define list_first_entry(list, type, member) list_entry((list)->next, type, member)
#define list_last_entry(list, type, member) list_entry((list)->prev, type, member)
#define list_first_entry_or_null(list, type, member) \
	(list_empty(list) ? NULL : list_first_entry(list, type, member))
#define list_for_each(position, list) \
	for ((position) = (list)->next; (position) != (list); (position) = (position)->next)
#define list_for_each_entry_reverse(entry, list, member)                       \
	for ((entry) = list_entry((list)->prev, __typeof__(*(entry)), member); \
	     &(entry)->member != (list);                                       \
	     (entry) = list_entry((entry)->member.prev, __typeof__(*(entry)), member))
#define list_for_each_entry(entry, list, member)                               \
	for ((entry) = list_entry((list)->next, __typeof__(*(entry)), member); \
	     &(entry)->member != (list);                                       \
	     (entry) = list_entry((entry)->member.next, __typeof__(*(entry)), member))
#define list_for_each_entry_safe(entry, following, list, member)                          \
	for ((entry) = list_entry((list)->next, __typeof__(*(entry)), member),            \
	    (following) = list_entry((entry)->member.next, __typeof__(*(entry)), member); \
	     &(entry)->member != (list); (entry) = (following),                           \
	    (following) = list_entry((entry)->member.next, __typeof__(*(entry)), member))

static inline void INIT_LIST_HEAD(struct list_head *list)
{
	CDS_INIT_LIST_HEAD(list);
}

static inline void list_add(struct list_head *entry, struct list_head *list)
{
	cds_list_add(entry, list);
}

static inline void list_add_tail(struct list_head *entry, struct list_head *list)
{
	cds_list_add_tail(entry, list);
}

static inline void list_del(struct list_head *entry)
{
	cds_list_del(entry);
}

static inline void list_del_init(struct list_head *entry)
{
	cds_list_del_init(entry);
}

static inline void list_move(struct list_head *entry, struct list_head *list)
{
	cds_list_move(entry, list);
}

static inline void list_move_tail(struct list_head *entry, struct list_head *list)
{
	cds_list_del(entry);
	cds_list_add_tail(entry, list);
}

static inline bool list_empty(const struct list_head *list)
{
	return list->next == list;
}

/* All of a list to the front of another; the first is empty then. */
static inline void list_splice_init(struct list_head *from, struct list_head *to)
{
	if (list_empty(from))
		return;
	cds_list_splice(from, to);
	CDS_INIT_LIST_HEAD(from);
}

/* -- pushed to from anywhere, taken as a whole; newest first -- */

struct llist_node {
	struct llist_node *next;
};

struct llist_head {
	struct llist_node *first;
};

#define LLIST_HEAD(name) struct llist_head name = { NULL }
#define llist_entry(pointer, type, member) container_of(pointer, type, member)

#define llist_for_each(position, node) \
	for ((position) = (node); (position); (position) = (position)->next)
/* From a node that was taken, or none. The link is looked at before the entry is: a node that is
 * NULL has no entry. */
#define llist_for_each_entry(entry, node, member)                                             \
	for ((entry) = pcpc_kernel_llist_entry(node, offsetof(__typeof__(*(entry)), member)); \
	     (entry); (entry) = pcpc_kernel_llist_entry((entry)->member.next,                 \
							offsetof(__typeof__(*(entry)), member)))
#define llist_for_each_entry_safe(entry, following, node, member)                               \
	for ((entry) = pcpc_kernel_llist_entry(node, offsetof(__typeof__(*(entry)), member));   \
	     (entry) && ((following) = pcpc_kernel_llist_entry(                                 \
				 (entry)->member.next, offsetof(__typeof__(*(entry)), member)), \
			true);                                                                  \
	     (entry) = (following))

static inline void *pcpc_kernel_llist_entry(struct llist_node *node, size_t offset)
{
	return node ? (char *)node - offset : NULL;
}

static inline void init_llist_head(struct llist_head *list)
{
	list->first = NULL;
}

static inline bool llist_empty(const struct llist_head *list)
{
	return !READ_ONCE(list->first);
}

/* True: it was empty. A full barrier, so that what the entry holds is seen by who takes it. */
static inline bool llist_add(struct llist_node *node, struct llist_head *list)
{
	struct llist_node *first = READ_ONCE(list->first);

	do {
		WRITE_ONCE(node->next, first);
	} while (!try_cmpxchg(&list->first, &first, node));
	return !first;
}

static inline struct llist_node *llist_del_all(struct llist_head *list)
{
	return xchg(&list->first, NULL);
}

static inline struct llist_node *llist_reverse_order(struct llist_node *node)
{
	struct llist_node *reversed = NULL, *next;

	for (; node; node = next) {
		next = node->next;
		node->next = reversed;
		reversed = node;
	}
	return reversed;
}

#endif
