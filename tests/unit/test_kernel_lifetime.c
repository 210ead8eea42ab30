// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_kernel_lifetime.c - references, lists and RCU of kernel.h.
 */
#define _GNU_SOURCE
#include <pcpcharge/kernel.h>

#include <pthread.h>
#include <stdatomic.h>

#include "unit_support.h"

/* -- references -- */

static int released;

static void count_release(struct cgroup_subsys_state *css)
{
	(void)css;
	released++;
}

/* semantics.md 5.7: "zero ... only then"; "tryget fails only at zero; tryget_live also fails once
 * killed"; "Kill must happen exactly once". */
START_TEST(a_css_is_released_once_after_its_kill)
{
	struct cgroup_subsys_state css;

	pcpc_kernel_css_init(&css, NULL, count_release);
	css_get(&css);
	css_get_many(&css, 2);
	ck_assert(css_tryget(&css));
	ck_assert(css_tryget_online(&css));
	css_put(&css);
	ck_assert(!css_is_dying(&css));
	pcpc_kernel_css_kill(&css);
	ck_assert(css_is_dying(&css));
	ck_assert(!css_tryget_online(&css));
	ck_assert(css_tryget(&css));
	css_put_many(&css, 4);
	ck_assert_int_eq(released, 0);
	pcpc_kernel_css_kill(&css);
	ck_assert_uint_eq(pcpc_kernel_warnings(), 1);
	css_put(&css);
	ck_assert_int_eq(released, 1);
	ck_assert(!css_tryget(&css));
	ck_assert(percpu_ref_is_zero(&css.refcnt));
}
END_TEST

/* 5.7: "An owner cannot be freed before kill": not even where references are put that nobody had.
 * After it, what is put beyond the last warns, and releases nothing again. */
START_TEST(a_css_is_not_released_before_its_kill)
{
	struct cgroup_subsys_state css;

	pcpc_kernel_css_init(&css, NULL, count_release);
	css_put(&css);
	ck_assert_int_eq(released, 0);
	ck_assert(css_tryget_online(&css));
	pcpc_kernel_css_kill(&css);
	ck_assert_int_eq(released, 1);
	css_put(&css);
	ck_assert_int_eq(released, 1);
	ck_assert_uint_eq(pcpc_kernel_warnings(), 1);
}
END_TEST

static struct cgroup_subsys_state shared;

static void *use_for_a_while(void *argument)
{
	long *nr_used = argument;

	while (css_tryget_online(&shared)) {
		ck_assert(css_tryget(&shared));
		css_put_many(&shared, 2);
		++*nr_used;
	}
	return NULL;
}

/* 5.7: "Kill must happen exactly once"; "the last put ... frees", whoever puts it. */
START_TEST(a_css_that_threads_use_is_released_once)
{
	pthread_t thread[3];
	long nr_used[3];
	int round, i;

	for (round = 1; round <= 200; round++) {
		pcpc_kernel_css_init(&shared, NULL, count_release);
		for (i = 0; i < 3; i++)
			pthread_create(&thread[i], NULL, use_for_a_while, &nr_used[i]);
		pcpc_kernel_css_kill(&shared);
		for (i = 0; i < 3; i++)
			pthread_join(thread[i], NULL);
		ck_assert_int_eq(released, round);
	}
	ck_assert_uint_eq(pcpc_kernel_warnings(), 0);
}
END_TEST

/* -- lists -- */

struct entry {
	int number;
	struct list_head siblings;
	struct llist_node node;
};

START_TEST(lists_keep_their_order)
{
	struct entry entries[4], *entry, *next;
	struct list_head *position;
	LIST_HEAD(list);
	LIST_HEAD(other);
	int i, expected = 0;

	ck_assert(list_empty(&list));
	list_splice_init(&list, &other);
	for (i = 0; i < 4; i++) {
		entries[i].number = i;
		list_add_tail(&entries[i].siblings, &list);
	}
	list_for_each_entry(entry, &list, siblings)
		ck_assert_int_eq(entry->number, expected++);
	list_for_each_entry_reverse(entry, &list, siblings)
		ck_assert_int_eq(entry->number, --expected);
	list_for_each(position, &list) expected++;
	list_move_tail(&entries[0].siblings, &list);
	ck_assert_int_eq(list_last_entry(&list, struct entry, siblings)->number, 0);
	list_move(&entries[3].siblings, &list);
	ck_assert_int_eq(list_first_entry(&list, struct entry, siblings)->number, 3);
	list_splice_init(&list, &other);
	ck_assert(list_empty(&list));
	list_for_each_entry_safe(entry, next, &other, siblings)
		list_del_init(&entry->siblings);
	ck_assert(list_empty(&other) && expected == 4);
	ck_assert_ptr_null(list_first_entry_or_null(&other, struct entry, siblings));
	list_add(&entries[0].siblings, &other);
	list_del(&entries[0].siblings);
	ck_assert(list_empty(&other));
}
END_TEST

static LLIST_HEAD(pushed);

static void *push_many(void *argument)
{
	struct entry *entries = argument;
	int i;

	for (i = 0; i < 1000; i++)
		llist_add(&entries[i].node, &pushed);
	return NULL;
}

START_TEST(lists_without_a_lock_lose_nothing)
{
	static struct entry entries[3][1000];
	struct entry *entry, *next;
	struct llist_node *node;
	pthread_t thread[3];
	int i, found = 0;

	for (i = 0; i < 3; i++)
		pthread_create(&thread[i], NULL, push_many, entries[i]);
	while (found < 3000)
		for (node = llist_reverse_order(llist_del_all(&pushed)); node; node = node->next)
			found++;
	for (i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	ck_assert(llist_empty(&pushed));
	ck_assert_int_eq(found, 3000);
	ck_assert(llist_add(&entries[0][0].node, &pushed));
	ck_assert(!llist_add(&entries[0][1].node, &pushed));
	llist_for_each_entry_safe(entry, next, llist_del_all(&pushed), node) entry->number =
		found++;
	llist_for_each_entry(entry, NULL, node) found++;
	/* newest first */
	ck_assert_int_eq(entries[0][1].number, 3000);
	ck_assert_int_eq(entries[0][0].number, 3001);
	ck_assert_int_eq(found, 3002);
}
END_TEST

/* -- RCU -- */

struct node {
	long value, same;
	struct rcu_head rcu;
};

static struct node *published;
static _Atomic bool stop;
static _Atomic long nr_looks;

/* What is read stays as it was published, until the section ends. */
static void *look(void *argument)
{
	struct node *node;

	(void)argument;
	while (!atomic_load(&stop)) {
		rcu_read_lock();
		node = rcu_dereference(published);
		ck_assert(!node || node->value == node->same);
		rcu_read_unlock();
		nr_looks++;
	}
	return NULL;
}

/* semantics.md 9: "free owners by call_rcu": nothing is freed under a reader, and in the end
 * nothing is left; the sanitizer of addresses would tell. */
START_TEST(what_readers_look_at_is_freed_after_them)
{
	struct node *node, *old = NULL;
	pthread_t reader[2];
	int i;

	if (UNIT_THREAD_SANITIZED) {
		unit_note("not tested: ThreadSanitizer does not know the order of liburcu's "
			  "pointers");
		return;
	}
	for (i = 0; i < 2; i++)
		pthread_create(&reader[i], NULL, look, NULL);
	for (i = 0; i < 5000 || nr_looks < 1000; i++) {
		node = kzalloc(sizeof(*node), GFP_KERNEL);
		node->value = node->same = i;
		old = rcu_dereference_protected(published, true);
		rcu_assign_pointer(published, node);
		kfree_rcu(old, rcu);
		if (i % 512 == 0)
			synchronize_rcu();
	}
	atomic_store(&stop, true);
	for (i = 0; i < 2; i++)
		pthread_join(reader[i], NULL);
	old = rcu_access_pointer(published);
	RCU_INIT_POINTER(published, NULL);
	synchronize_rcu();
	kfree(old);
}
END_TEST

static struct node *watched;
static _Atomic bool is_read, reader_may_end, was_freed;

/* Whoever frees in this program: for the test below. */
void __real_free(void *pointer);
void __wrap_free(void *pointer);
void __wrap_free(void *pointer)
{
	if (pointer && pointer == watched)
		atomic_store(&was_freed, true);
	__real_free(pointer);
}

static void *read_for_long(void *argument)
{
	(void)argument;
	rcu_read_lock();
	atomic_store(&is_read, true);
	while (!atomic_load(&reader_may_end))
		sched_yield();
	/* a grace period cannot end before this */
	ck_assert(!atomic_load(&was_freed));
	rcu_read_unlock();
	return NULL;
}

/* kfree_rcu(): "after a grace period", the first and those that wait while it lasts. */
START_TEST(kfree_rcu_waits_for_a_reader)
{
	struct node *first = kzalloc(sizeof(*first), GFP_KERNEL);
	pthread_t reader;

	watched = kzalloc(sizeof(*watched), GFP_KERNEL);
	pthread_create(&reader, NULL, read_for_long, NULL);
	while (!atomic_load(&is_read))
		sched_yield();
	kfree_rcu(first, rcu);
	kfree_rcu(watched, rcu);
	first = NULL;
	kfree_rcu(first, rcu);
	atomic_store(&reader_may_end, true);
	pthread_join(reader, NULL);
	while (!atomic_load(&was_freed))
		sched_yield();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("kernel lifetime");
	TCase *tests = unit_case(suite, "lifetime");

	tcase_add_test(tests, a_css_is_released_once_after_its_kill);
	tcase_add_test(tests, a_css_is_not_released_before_its_kill);
	tcase_add_test(tests, a_css_that_threads_use_is_released_once);
	tcase_add_test(tests, lists_keep_their_order);
	tcase_add_test(tests, lists_without_a_lock_lose_nothing);
	tcase_add_test(tests, what_readers_look_at_is_freed_after_them);
	tcase_add_test(tests, kfree_rcu_waits_for_a_reader);
	return unit_run(suite);
}
