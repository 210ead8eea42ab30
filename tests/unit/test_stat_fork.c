// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_stat_fork.c - statistics in a child of fork, whatever its parent's threads were doing.
 *
 * Linked with stat_staged_stat.c and stat_staged_flush.c in place of stat.c and flush.c.
 */
#define _GNU_SOURCE
#include "stat_staged.h"
#include "stat_support.h"
#include "unit_child.h"

/* G9: the child has what was there, goes on from it, and the parent notices nothing. */
START_TEST(G9_a_child_goes_on_with_what_was_there)
{
	struct pcpc_owner *mid, *leaf, *own;
	pid_t child;

	if (!open_stats(_i, (struct stat_shape){ .stocks = 1 }))
		return;
	mid = child_of(root);
	leaf = child_of(mid);
	add(leaf, 1, 5);
	add(leaf, 1, 100);
	pcpc_stat_flush(root);
	add(leaf, 1, 6);
	child = child_forked();
	if (child == 0) {
		IN_CHILD(pcpc_stat_read_exact(root, 1) == 111);
		add(leaf, 1, 1000);
		add(mid, 1, 3);
		IN_CHILD(pcpc_stat_read_exact(leaf, 1) == 1111);
		IN_CHILD(pcpc_stat_read_exact(root, 1) == 1114);
		IN_CHILD(pcpc_owner_create(mid, NULL, &own) == 0);
		add(own, 1, 7);
		IN_CHILD(pcpc_owner_destroy(own) == 0);
		pcpc_domain_poll(domain);
		IN_CHILD(pcpc_stat_read_exact(mid, 1) == 1121);
		IN_CHILD(pcpc_owner_destroy(leaf) == 0);
		IN_CHILD(pcpc_owner_destroy(mid) == 0);
		pass(AGE + 1);
		IN_CHILD(pcpc_stat_read(root, 1) == 1121);
		IN_CHILD(pcpc_domain_destroy(domain) == 0);
		_exit(0);
	}
	child_is_well(child);
	ck_assert_int_eq(exactly(leaf, 1), 111);
	ck_assert_int_eq(exactly(root, 1), 111);
}
END_TEST

struct busy {
	struct pcpc_owner *leaf;
	_Atomic bool end;
	_Atomic uint64_t added;
};

static void *add_all_the_time(void *context)
{
	struct busy *busy = context;

	while (!atomic_load(&busy->end)) {
		add(busy->leaf, 1, 1);
		atomic_fetch_add(&busy->added, 1);
	}
	return NULL;
}

static void *read_all_the_time(void *context)
{
	struct busy *busy = context;
	struct pcpc_owner *owner;

	while (!atomic_load(&busy->end)) {
		pcpc_stat_flush(root);
		(void)pcpc_stat_read_exact(root, 1);
		pass(AGE + 1);
		(void)pcpc_stat_read(busy->leaf, 1);
		if (pcpc_owner_create(busy->leaf, NULL, &owner) == 0) {
			add(owner, 2, 3);
			(void)pcpc_owner_destroy(owner);
		}
		pcpc_domain_poll(domain);
	}
	return NULL;
}

/* What two threads at most may have taken out of a slot, and not yet applied. */
#define IN_HAND (2 * 64)

/* G9: "whatever other threads were doing": flushing, draining and sweeping. What their updates,
 * which never end there, were moving may be missing in the child; it does not come later. */
START_TEST(G9_a_child_of_busy_threads_can_do_all)
{
	struct busy busy = { 0 };
	pthread_t adder, reader;
	struct pcpc_owner *own;
	int64_t before, value;
	pid_t child;
	int i;

	if (!open_stats(_i, (struct stat_shape){ .stocks = 1 }))
		return;
	unit_stand_anywhere();
	busy.leaf = child_of(root);
	ck_assert_int_eq(pthread_create(&adder, NULL, add_all_the_time, &busy), 0);
	ck_assert_int_eq(pthread_create(&reader, NULL, read_all_the_time, &busy), 0);
	for (i = 0; i < (UNIT_SANITIZED ? 20 : 100); i++) {
		before = (int64_t)atomic_load(&busy.added);
		child = child_forked();
		if (child == 0) {
			value = pcpc_stat_read_exact(root, 1);
			IN_CHILD(value >= before - IN_HAND);
			IN_CHILD(value <= (int64_t)atomic_load(&busy.added) + 1);
			add(busy.leaf, 1, 1000);
			value += 1000;
			IN_CHILD(pcpc_stat_read_exact(root, 1) == value);
			IN_CHILD(pcpc_owner_create(root, NULL, &own) == 0);
			add(own, 1, 7);
			add(own, 1, 70);
			pcpc_stat_flush(own);
			IN_CHILD(pcpc_stat_read_exact(own, 1) == 77);
			IN_CHILD(pcpc_owner_destroy(own) == 0);
			pcpc_domain_poll(domain);
			IN_CHILD(pcpc_stat_read_exact(root, 1) == value + 77);
			_exit(0);
		}
		child_is_well(child);
	}
	atomic_store(&busy.end, true);
	pthread_join(adder, NULL);
	pthread_join(reader, NULL);
	ck_assert_int_eq(exactly(root, 1), (int64_t)atomic_load(&busy.added));
}
END_TEST

/* -- an update that is held up -- */

#define MUCH 100000 /* more than a slot takes: applied by the call itself */

static sem_t arrived, leave;
static _Thread_local int steps_left = -1;

static void stop_at_step(void)
{
	if (steps_left < 0 || steps_left-- > 0)
		return;
	sem_post(&arrived);
	while (sem_wait(&leave) < 0)
		;
}

struct updater {
	struct pcpc_owner *leaf;
	int step;
	bool done;
};

static void *update(void *context)
{
	struct updater *updater = context;

	steps_left = updater->step;
	add(updater->leaf, 1, MUCH);
	/* no step was left to stop at */
	updater->done = steps_left >= 0;
	steps_left = -1;
	if (updater->done)
		sem_post(&arrived);
	return NULL;
}

/* G10 in a child: after a flush of root, totals are what was applied, below and at each level. */
static void check_identity(struct pcpc_owner *mid, struct pcpc_owner *leaf)
{
	int64_t local = pcpc_stat_read_local(leaf, 1);

	IN_CHILD(local == 0 || local == MUCH);
	pcpc_stat_flush(root);
	IN_CHILD(pcpc_stat_total(leaf, -1, 1) == local);
	IN_CHILD(pcpc_stat_total(mid, -1, 1) == local);
	IN_CHILD(pcpc_stat_total(root, -1, 1) == local);
	add(leaf, 1, MUCH);
	IN_CHILD(pcpc_stat_read_exact(root, 1) == local + MUCH);
	_exit(0);
}

/* G9, G10: fork between any two steps of an update. It is in the child or it is not, as a whole. */
START_TEST(G10_holds_in_a_child_whatever_step_an_update_was_at)
{
	struct updater updater = { 0 };
	struct pcpc_owner *mid;
	pthread_t thread;
	pid_t child;

	for (; !updater.done; updater.step++) {
		if (!open_stats(_i, (struct stat_shape){ .stocks = 1 }))
			return;
		mid = child_of(root);
		updater.leaf = child_of(mid);
		sem_init(&arrived, 0, 0);
		sem_init(&leave, 0, 0);
		atomic_store(&before_step, stop_at_step);
		ck_assert_int_eq(pthread_create(&thread, NULL, update, &updater), 0);
		while (sem_wait(&arrived) < 0)
			;
		child = child_forked();
		if (child == 0)
			check_identity(mid, updater.leaf);
		child_is_well(child);
		sem_post(&leave);
		pthread_join(thread, NULL);
		atomic_store(&before_step, NULL);
		ck_assert_int_eq(exactly(root, 1), MUCH);
		close_domain();
	}
	/* before it, between amount and mark, and at the marks of three levels at least */
	ck_assert_int_gt(updater.step, 5);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("stat fork");
	TCase *tests = unit_case(suite, "fork");

	tcase_add_checked_fixture(tests, NULL, close_domain);
	by_each_engine(tests, G9_a_child_goes_on_with_what_was_there);
	by_each_engine(tests, G9_a_child_of_busy_threads_can_do_all);
	by_each_engine(tests, G10_holds_in_a_child_whatever_step_an_update_was_at);
	return unit_run(suite);
}
