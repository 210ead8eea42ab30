// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_charge_wait.c - sleeping until a charge fits: who is woken, by what, and when; that nobody
 * sleeps on when there is room.
 *
 * Linked with owner_disturbed.c in place of the library's own settle.c and wait.c.
 */
#define _GNU_SOURCE
#include "owner_disturbed.h"
#include "owner_support.h"

#define SECOND 1000000000ll
#define LONG (20 * SECOND) /* nobody must need as long */

/* charge.h: returns of pcpc_charge_wait(). */
START_TEST(what_fits_is_charged_at_once)
{
	struct pcpc_owner *leaf;

	if (!open_domain(_i, 64, 0))
		return;
	leaf = make_owner(root, 100, 0);
	ck_assert_int_eq(pcpc_charge_wait(leaf, 60, -1), 0);
	ck_assert_int_eq(pcpc_charge_wait(leaf, 40, 0), 0);
	ck_assert_uint_eq(pcpc_owner_usage_exact(leaf), 100);
	ck_assert_int_eq(pcpc_charge_wait(leaf, 0, 0), 0);
	ck_assert_int_eq(pcpc_charge_wait(leaf, 101, -1), -EDQUOT);
	ck_assert(!awaited(leaf));
	uncharge(leaf, 100);
}
END_TEST

/* timeout_ns: none, some, and one that no clock can hold. A time-out leaves nothing behind (G4). */
START_TEST(a_time_out_comes_in_time_and_leaves_nothing)
{
	static const int64_t timeouts[] = { 0, 1, 1000, 20000000 };
	struct pcpc_owner *leaf, *sibling;
	uint64_t start, usage, peak;
	unsigned int i;

	if (!open_domain(_i, 64, 0))
		return;
	leaf = child_of(make_owner(root, 100, 0));
	sibling = child_of(leaf->parent);
	charge(sibling, 95);
	ck_assert_int_eq(pcpc_charge(leaf, 6), -EDQUOT);
	usage = pcpc_owner_usage(leaf->parent);
	peak = pcpc_owner_peak(root);
	for (i = 0; i < sizeof(timeouts) / sizeof(timeouts[0]); i++) {
		start = nanoseconds();
		ck_assert_int_eq(pcpc_charge_wait(leaf, 6, timeouts[i]), -ETIMEDOUT);
		ck_assert_uint_ge(nanoseconds() - start, (uint64_t)timeouts[i]);
		ck_assert_uint_eq(pcpc_owner_usage(leaf->parent), usage);
		ck_assert_uint_eq(pcpc_owner_usage(leaf), 0);
		ck_assert_uint_eq(pcpc_owner_peak(leaf), 0);
		ck_assert_uint_eq(pcpc_owner_peak(root), peak);
	}
	/* the cap is free again */
	ck_assert_uint_eq(pins_of(leaf->parent), 0);
	/* it was quiet about what is not final */
	ck_assert_uint_eq(events_of(root, PCPC_EVENT_REFUSED), 1);
	charge(leaf, 5);
	ck_assert_int_eq(pcpc_charge_wait(leaf, 1, 0), -ETIMEDOUT);
	/* what it waited for stays behind, and wakes once for nothing, but not again */
	uncharge(leaf, 5);
	uncharge(sibling, 1);
	ck_assert(!awaited(leaf->parent));
	charge(sibling, 1);
	ck_assert_int_eq(pcpc_charge_wait(leaf, 5, INT64_MAX), 0);
	uncharge(leaf, 5);
	uncharge(sibling, 95);
}
END_TEST

struct waiter {
	struct worker worker;
	struct job job;
};

static void begin_wait(struct waiter *waiter, struct pcpc_owner *owner, uint64_t count,
		       int64_t timeout_ns)
{
	worker_start(&waiter->worker, -1);
	waiter->job = (struct job){
		.owner = owner, .count = count, .timeout_ns = timeout_ns, .result = 1
	};
	worker_post(&waiter->worker, job_charge_wait, &waiter->job);
}

static int end_wait(struct waiter *waiter)
{
	worker_wait(&waiter->worker);
	worker_stop(&waiter->worker);
	return waiter->job.result;
}

/* Section 7: "any settle after which a waiter's amount would fit wakes it". With a time-out that is
 * too long to be the reason. */
START_TEST(an_uncharge_that_makes_room_wakes)
{
	struct pcpc_owner *limited, *leaf, *other;
	struct waiter waiter;
	int64_t timeout;
	int i;

	if (!open_domain(_i, 64, 0))
		return;
	limited = make_owner(root, 10000, 0);
	leaf = child_of(child_of(limited));
	other = child_of(limited);
	for (i = 0; i < 20; i++) {
		timeout = i % 2 ? LONG : -1;
		charge(other, 10000);
		begin_wait(&waiter, leaf, 500, timeout);
		UNTIL(awaited(limited));
		/* not enough yet */
		pcpc_uncharge(other, 499);
		UNTIL(awaited(limited));
		pcpc_uncharge(other, 1);
		ck_assert_int_eq(end_wait(&waiter), 0);
		ck_assert_uint_eq(pcpc_owner_usage(leaf), 500);
		ck_assert_uint_eq(pcpc_owner_usage(limited), 10000);
		uncharge(other, 9500);
		uncharge(leaf, 500);
	}
}
END_TEST

/* The same in small change that would otherwise be stocked, from another CPU. */
START_TEST(small_uncharges_on_another_cpu_wake)
{
	struct pcpc_owner *limited, *leaf, *other;
	struct worker elsewhere;
	struct waiter waiter;
	struct job job;
	int i;

	if (!open_domain(_i, 64, 0))
		return;
	worker_start(&elsewhere, 1);
	limited = make_owner(root, 10000, 0);
	leaf = child_of(limited);
	other = child_of(limited);
	/* stocks there are warm, and would take every one of these */
	job = (struct job){ .owner = other, .count = 10000 };
	worker_run(&elsewhere, job_strand, &job);
	worker_run(&elsewhere, job_charge, &job);
	begin_wait(&waiter, leaf, 40, LONG);
	UNTIL(awaited(limited));
	job.count = 1;
	for (i = 0; i < 40; i++) {
		UNTIL(awaited(limited)); /* still */
		worker_run(&elsewhere, job_uncharge, &job);
	}
	ck_assert_int_eq(end_wait(&waiter), 0);
	uncharge(leaf, 40);
	uncharge(other, 9960);
	worker_stop(&elsewhere);
}
END_TEST

/* Section 7: set_max wakes; owner.h. */
START_TEST(a_raised_limit_wakes)
{
	struct pcpc_owner *limited, *leaf;
	struct waiter waiter;

	if (!open_domain(_i, 64, 0))
		return;
	limited = make_owner(root, 100, 0);
	leaf = child_of(limited);
	charge(leaf, 100);
	begin_wait(&waiter, leaf, 20, LONG);
	UNTIL(awaited(limited));
	ck_assert_int_eq(pcpc_owner_set_max(limited, 119), 0);
	UNTIL(awaited(limited)); /* still */
	ck_assert_int_eq(pcpc_owner_set_max(limited, 120), 0);
	ck_assert_int_eq(end_wait(&waiter), 0);
	ck_assert_uint_eq(pcpc_owner_usage(limited), 120);
	uncharge(leaf, 120);
}
END_TEST

/* Whatever lowers usage wakes: a transfer out of the subtree, a drain, a child's end. */
START_TEST(a_transfer_out_of_the_subtree_wakes)
{
	struct pcpc_owner *limited, *leaf, *outside;
	struct waiter waiter;

	if (!open_domain(_i, 64, 0))
		return;
	limited = make_owner(root, 100, 0);
	leaf = child_of(limited);
	outside = child_of(root);
	charge(leaf, 100);
	begin_wait(&waiter, leaf, 20, LONG);
	UNTIL(awaited(limited));
	ck_assert_int_eq(pcpc_transfer(leaf, outside, 20), 0);
	ck_assert_int_eq(end_wait(&waiter), 0);
	ck_assert_uint_eq(pcpc_owner_usage(limited), 100);
	uncharge(outside, 20);
	uncharge(leaf, 100);
}
END_TEST

/* A late uncharge of an owner that went, below the limit. */
START_TEST(a_late_uncharge_wakes)
{
	struct pcpc_owner *limited, *leaf, *gone;
	struct waiter waiter;

	if (!open_domain(_i, 64, 0))
		return;
	limited = make_owner(root, 100, 0);
	leaf = child_of(limited);
	gone = child_of(limited);
	charge(gone, 100);
	ck_assert_int_eq(pcpc_owner_destroy(gone), 0);
	begin_wait(&waiter, leaf, 20, LONG);
	UNTIL(awaited(limited));
	pcpc_uncharge(gone, 20);
	ck_assert_int_eq(end_wait(&waiter), 0);
	pcpc_uncharge(gone, 80);
	uncharge(leaf, 20);
}
END_TEST

/* One after the other refuses: it waits at each. */
START_TEST(a_waiter_goes_on_to_the_next_limit)
{
	struct pcpc_owner *top, *mid, *leaf, *beside;
	struct waiter waiter;

	if (!open_domain(_i, 64, 0))
		return;
	top = make_owner(root, 200, 0);
	mid = make_owner(top, 100, 0);
	leaf = child_of(mid);
	beside = child_of(top);
	charge(leaf, 100);
	charge(beside, 100);
	begin_wait(&waiter, leaf, 50, LONG);
	UNTIL(awaited(mid));
	ck_assert_int_eq(pcpc_owner_set_max(mid, 150), 0);
	UNTIL(awaited(top));
	pcpc_uncharge(beside, 50);
	ck_assert_int_eq(end_wait(&waiter), 0);
	ck_assert(!awaited(mid) && !awaited(top));
	uncharge(leaf, 150);
	uncharge(beside, 50);
}
END_TEST

/* Several amounts: whoever fits gets it, the others sleep on. */
START_TEST(of_several_waiters_each_is_woken_when_it_fits)
{
	struct pcpc_owner *limited, *leaf;
	struct waiter waiter[4];
	int i;

	if (!open_domain(_i, 64, 0))
		return;
	limited = make_owner(root, 1000, 0);
	leaf = child_of(limited);
	charge(leaf, 1000);
	for (i = 0; i < 4; i++) {
		begin_wait(&waiter[i], child_of(limited), 100u << i, LONG);
		UNTIL(pins_of(limited) == (uint64_t)i + 1);
	}
	/* 100, 200, 400, 800: room for each in turn */
	for (i = 0; i < 4; i++) {
		pcpc_uncharge(leaf, 100u << i);
		ck_assert_int_eq(end_wait(&waiter[i]), 0);
		uncharge(waiter[i].job.owner, 100u << i);
		charge(leaf, 100u << i);
		if (i < 3)
			UNTIL(awaited(limited)); /* the others still */
	}
	uncharge(leaf, 1000);
}
END_TEST

/* charge.h: "-EDQUOT if count is above a max", also when that becomes so; and "-ESHUTDOWN". */
START_TEST(a_waiter_learns_that_it_never_will_fit)
{
	struct pcpc_owner *limited, *leaf;
	struct waiter waiter;

	if (!open_domain(_i, 64, 0))
		return;
	limited = make_owner(root, 100, 0);
	leaf = pcpc_owner_get(child_of(limited));
	charge(limited, 100);
	begin_wait(&waiter, leaf, 50, 3 * SECOND);
	UNTIL(awaited(limited));
	ck_assert_int_eq(pcpc_owner_destroy(leaf), 0);
	pcpc_uncharge(limited, 50);
	ck_assert_int_eq(end_wait(&waiter), -ESHUTDOWN);
	pcpc_owner_put(leaf);
	leaf = child_of(limited);
	charge(limited, 50);
	begin_wait(&waiter, leaf, 50, 3 * SECOND);
	UNTIL(awaited(limited));
	ck_assert_int_eq(pcpc_owner_set_max(limited, 49), 0);
	pcpc_uncharge(limited, 60);
	ck_assert_int_eq(end_wait(&waiter), -EDQUOT);
	uncharge(limited, 40);
}
END_TEST

static uint64_t give_ten(struct pcpc_owner *over, uint64_t wanted, void *context)
{
	(void)over;
	(void)wanted;
	pcpc_uncharge(context, 10);
	return 10;
}

/* It reclaims as a charge does, so where something can be freed there is nothing to wait for. */
START_TEST(a_waiter_reclaims_first)
{
	struct pcpc_owner *limited, *leaf;

	if (!open_domain(_i, 64, 0))
		return;
	limited = make_owner(root, 100, 0);
	leaf = child_of(limited);
	charge(leaf, 100);
	ck_assert_int_eq(pcpc_charge_wait(leaf, 5, 0), -ETIMEDOUT);
	ck_assert_int_eq(pcpc_owner_set_reclaim(limited, give_ten, leaf), 0);
	ck_assert_int_eq(pcpc_charge_wait(leaf, 5, 0), 0);
	ck_assert_uint_eq(pcpc_owner_usage(limited), 95);
	uncharge(leaf, 95);
}
END_TEST

/* -- no lost wake-up -- */

struct crowd {
	struct pcpc_owner *limited;
	struct pcpc_owner *leaf;
	uint64_t most; /* units asked for at a time */
	uint32_t rounds;
	_Atomic uint32_t lost, other;
	_Atomic uint64_t holding, highest; /* beside the limit: G2 */
};

static void *take_turns(void *context)
{
	struct crowd *crowd = context;
	uint64_t random = (uint64_t)gettid(), count, sum, highest;
	uint32_t i;
	int r;

	for (i = 0; i < crowd->rounds; i++) {
		count = 1 + unit_below(&random, crowd->most);
		r = pcpc_charge_wait(crowd->leaf, count, 5 * SECOND);
		if (r != 0) {
			atomic_fetch_add(r == -ETIMEDOUT ? &crowd->lost : &crowd->other, 1);
			return NULL;
		}
		sum = atomic_fetch_add(&crowd->holding, count) + count;
		highest = atomic_load(&crowd->highest);
		while (sum > highest &&
		       !atomic_compare_exchange_weak(&crowd->highest, &highest, sum))
			;
		if (unit_below(&random, 2))
			sched_yield();
		atomic_fetch_sub(&crowd->holding, count);
		pcpc_uncharge(crowd->leaf, count);
	}
	return NULL;
}

/* Nobody but those who wait gives anything back, so a lost wake-up ends in a time-out. */
static void run_crowd(uint32_t threads, uint64_t max, uint64_t most, uint32_t rounds,
		      uint32_t one_in)
{
	struct crowd crowd = { .most = most, .rounds = rounds };
	pthread_t thread[8];
	uint32_t i;

	unit_stand_anywhere();
	crowd.limited = make_owner(root, max, 0);
	crowd.leaf = child_of(crowd.limited);
	atomic_store_explicit(&disturbed, one_in, memory_order_relaxed);
	for (i = 0; i < threads; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, take_turns, &crowd), 0);
	for (i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	atomic_store_explicit(&disturbed, 0, memory_order_relaxed);
	ck_assert_uint_eq(atomic_load(&crowd.lost), 0);
	ck_assert_uint_eq(atomic_load(&crowd.other), 0);
	ck_assert_uint_le(atomic_load(&crowd.highest), max);
	ck_assert_uint_eq(pcpc_owner_usage_exact(crowd.limited), 0);
}

/* Required: "no lost wake-up". Two take turns at a single unit. */
START_TEST(two_who_take_turns_never_sleep_on)
{
	if (!open_domain(_i, 64, 0))
		return;
	run_crowd(2, 1, 1, UNIT_SANITIZED ? 500 : 1500, 0);
	run_crowd(2, 1, 1, UNIT_SANITIZED ? 500 : 1500, 2);
}
END_TEST

/* More of them, with amounts that differ: one stops waiting while another begins. */
START_TEST(a_crowd_that_takes_turns_never_sleeps_on)
{
	if (!open_domain(_i, 64, 0))
		return;
	run_crowd(3, 1, 1, UNIT_SANITIZED ? 300 : 1000, 2);
	run_crowd(4, 10, 10, UNIT_SANITIZED ? 300 : 1000, 3);
	run_crowd(6, 1000, 700, UNIT_SANITIZED ? 200 : 500, 4);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("charge wait");
	TCase *tests = unit_case(suite, "wait");

	tcase_add_checked_fixture(tests, NULL, close_domain);
	by_each_engine(tests, what_fits_is_charged_at_once);
	by_each_engine(tests, a_time_out_comes_in_time_and_leaves_nothing);
	by_each_engine(tests, an_uncharge_that_makes_room_wakes);
	by_each_engine(tests, small_uncharges_on_another_cpu_wake);
	by_each_engine(tests, a_raised_limit_wakes);
	by_each_engine(tests, a_transfer_out_of_the_subtree_wakes);
	by_each_engine(tests, a_late_uncharge_wakes);
	by_each_engine(tests, a_waiter_goes_on_to_the_next_limit);
	by_each_engine(tests, of_several_waiters_each_is_woken_when_it_fits);
	by_each_engine(tests, a_waiter_learns_that_it_never_will_fit);
	by_each_engine(tests, a_waiter_reclaims_first);
	by_each_engine(tests, two_who_take_turns_never_sleep_on);
	by_each_engine(tests, a_crowd_that_takes_turns_never_sleeps_on);
	return unit_run(suite);
}
