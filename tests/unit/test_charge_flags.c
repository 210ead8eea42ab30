// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_charge_flags.c - refusals and what they say, what a refused charge leaves behind (nothing),
 * and the flags: FORCE, NOWAIT, NORECLAIM; charges inside a read-side section of the caller.
 */
#define _GNU_SOURCE
#include "owner_clock.h"
#include "owner_support.h"

#define LEVELS_HERE 6

struct figures {
	uint64_t usage, peak, exact;
	int64_t coupled;
};

static struct figures figures_of(struct pcpc_owner *owner)
{
	return (struct figures){ pcpc_owner_usage(owner), pcpc_owner_peak(owner),
				 pcpc_owner_usage_exact(owner), coupled_of(owner) };
}

static struct pcpc_owner *named(struct pcpc_owner *parent, const char *name, uint64_t max)
{
	const struct pcpc_owner_config config = { .size = sizeof(config),
						  .name = name,
						  .max = max };
	struct pcpc_owner *owner = NULL;

	ck_assert_int_eq(pcpc_owner_create(parent, &config, &owner), 0);
	return owner;
}

/* Leaves units of an owner stocked here, and room for them taken: usage is above what is held. */
static void strand(struct pcpc_owner *owner)
{
	charge(owner, 60);
	uncharge(owner, 60);
	ck_assert_uint_gt(stock_of(owner), 0);
}

/* G4: "a refused charge leaves nothing behind at any level: usage, peak, statistics"; semantics 4,
 * 3: there the peak of the levels below had been raised. Every level refuses once. */
START_TEST(refused_charge_leaves_every_level_unchanged)
{
	static const unsigned int flags[] = { 0, PCPC_NORECLAIM, PCPC_NOWAIT };
	struct figures before[LEVELS_HERE], after;
	struct pcpc_owner *owner[LEVELS_HERE];
	struct pcpc_refusal refusal;
	unsigned int i, over, f;

	if (!open_domain(_i, 64, 0))
		return;
	owner[0] = root;
	for (i = 1; i < LEVELS_HERE; i++)
		owner[i] = child_of(owner[i - 1]);
	ck_assert_int_eq(pcpc_charge_stat(owner[LEVELS_HERE - 1], 500, 7), 0);
	for (over = 0; over < LEVELS_HERE; over++) {
		ck_assert_int_eq(pcpc_owner_set_max(owner[over], 1000), 0);
		(void)pcpc_owner_drain(root);
		for (f = 0; f < 6; f++) {
			for (i = 0; i < LEVELS_HERE; i++)
				before[i] = figures_of(owner[i]);
			ck_assert_int_eq(pcpc_charge_flags(owner[LEVELS_HERE - 1],
							   f < 3 ? 501 : 1001, flags[f % 3],
							   &refusal),
					 -EDQUOT);
			ck_assert_ptr_eq(refusal.over, owner[over]);
			ck_assert_int_eq(pcpc_charge_stat(owner[LEVELS_HERE - 1], 501, 3), -EDQUOT);
			for (i = 0; i < LEVELS_HERE; i++) {
				after = figures_of(owner[i]);
				ck_assert_mem_eq(&before[i], &after, sizeof(after));
			}
		}
		ck_assert_int_eq(pcpc_owner_set_max(owner[over], PCPC_UNLIMITED), 0);
	}
	/* the peak was never above what was really used: 500 and the surpluses of that charge */
	ck_assert_uint_eq(pcpc_owner_peak(owner[LEVELS_HERE - 1]), 508);
	pcpc_uncharge_stat(owner[LEVELS_HERE - 1], 500, -7);
}
END_TEST

/* Asks 18: "a failed try-charge at any ancestor leaves peak unchanged at all levels", where the
 * charge would have fit with less surplus. */
START_TEST(asks_18_a_surplus_that_was_dropped_is_in_no_peak)
{
	struct pcpc_owner *mid, *leaf;

	if (!open_domain(_i, 64, 0))
		return;
	mid = make_owner(root, 3200, 0);
	leaf = child_of(mid);
	charge(leaf, 3199); /* with 8 beside it there is no room at mid */
	ck_assert_uint_eq(pcpc_owner_usage(leaf), 3199);
	ck_assert_uint_eq(pcpc_owner_peak(leaf), 3199);
	ck_assert_uint_eq(pcpc_owner_peak(mid), 3199);
	ck_assert_uint_eq(pcpc_owner_peak(root), 3199);
	uncharge(leaf, 3199);
}
END_TEST

/* charge.h, struct pcpc_refusal; asks 1: which limit, which owner, how much; semantics 3, i. */
START_TEST(a_refusal_names_the_ancestor_and_its_figures)
{
	static const char long_name[] = "exactly thirty-two characters ab and then some";
	struct pcpc_owner *mid, *leaf, *other;
	struct pcpc_refusal refusal;

	if (!open_domain(_i, 64, 0))
		return;
	mid = named(root, long_name, 1000);
	leaf = named(mid, "leaf", 5000);
	other = child_of(mid);
	charge(other, 600);
	memset(&refusal, 0x5a, sizeof(refusal));
	ck_assert_int_eq(pcpc_charge_flags(leaf, 401, 0, &refusal), -EDQUOT);
	ck_assert_ptr_eq(refusal.over, mid);
	ck_assert_uint_eq(refusal.id, pcpc_owner_id(mid));
	ck_assert_uint_eq(strlen(refusal.name), 31);
	ck_assert(!strncmp(refusal.name, long_name, 31));
	ck_assert_uint_eq(refusal.max, 1000);
	ck_assert_uint_eq(refusal.usage, 600);
	ck_assert_uint_eq(refusal.asked, 401);
	/* without a record the same */
	ck_assert_int_eq(pcpc_charge_flags(leaf, 401, 0, NULL), -EDQUOT);
	/* the leaf itself, and more than its max */
	ck_assert_int_eq(pcpc_charge_flags(leaf, 5001, 0, &refusal), -EDQUOT);
	ck_assert_ptr_eq(refusal.over, leaf);
	ck_assert_str_eq(refusal.name, "leaf");
	ck_assert_uint_eq(refusal.max, 5000);
	ck_assert_uint_eq(refusal.usage, 0);
	ck_assert_uint_eq(refusal.asked, 5001);
	/* nothing is left of the longer name */
	ck_assert_uint_eq(refusal.name[6], 0);
	uncharge(other, 600);
}
END_TEST

/* charge.h: "written on -EDQUOT and -EAGAIN only". */
START_TEST(a_refusal_is_written_only_when_there_is_one)
{
	struct pcpc_refusal refusal, untouched;
	struct pcpc_owner *leaf;

	if (!open_domain(_i, 64, 0))
		return;
	leaf = make_owner(root, 10000, 0);
	memset(&refusal, 0x5a, sizeof(refusal));
	untouched = refusal;
	ck_assert_int_eq(pcpc_charge_flags(leaf, 100, 0, &refusal), 0);
	ck_assert_int_eq(pcpc_charge_flags(leaf, 1, 0, &refusal), 0);
	ck_assert_int_eq(pcpc_charge_flags(leaf, 99899, PCPC_FORCE, &refusal), 0);
	ck_assert_mem_eq(&refusal, &untouched, sizeof(refusal));
	uncharge(leaf, 100000);
	strand(leaf);
	ck_assert_int_eq(pcpc_charge_flags(leaf, 10000, PCPC_NOWAIT, &refusal), -EAGAIN);
	ck_assert_ptr_eq(refusal.over, leaf);
	ck_assert_uint_eq(refusal.asked, 10000);
	ck_assert_uint_eq(refusal.max, 10000);
	ck_assert_uint_ge(refusal.usage, 1);
}
END_TEST

/* Section 7: "n above max is refused at once, finally, without a drain". */
START_TEST(more_than_max_is_refused_at_once)
{
	static const unsigned int flags[] = { 0, PCPC_NORECLAIM, PCPC_NOWAIT };
	struct pcpc_owner *mid, *leaf;
	uint64_t before;
	unsigned int i;

	if (!open_domain(_i, 64, 0))
		return;
	mid = make_owner(root, 10000, 0);
	leaf = child_of(mid);
	strand(leaf);
	before = drains_now();
	for (i = 0; i < 3; i++) {
		ck_assert_int_eq(pcpc_charge_flags(leaf, 10001, flags[i], NULL), -EDQUOT);
		ck_assert_int_eq(pcpc_charge_flags(leaf, 1ull << 40, flags[i], NULL), -EDQUOT);
	}
	ck_assert_int_eq(pcpc_charge_wait(leaf, 10001, -1), -EDQUOT);
	ck_assert_uint_eq(drains_now(), before);
	ck_assert_uint_eq(events_of(mid, PCPC_EVENT_DRAIN), 0);
	ck_assert(!exact(mid));
	ck_assert_uint_gt(stock_of(leaf), 0);
	ck_assert(!rung());
}
END_TEST

/* Section 7: "FORCE tries batch, then exactly n, then takes exactly n regardless; it counts as
 * forced only in the last case". Semantics 3, e and 14. */
START_TEST(a_forced_charge_counts_only_where_it_went_over)
{
	struct pcpc_owner *mid, *leaf;
	struct pcpc_refusal refusal;

	if (!open_domain(_i, 64, 0))
		return;
	mid = make_owner(root, 3200, 0);
	leaf = child_of(mid);
	ck_assert_int_eq(pcpc_charge_flags(leaf, 3190, PCPC_FORCE, NULL), 0);
	ck_assert_uint_eq(pcpc_owner_usage(leaf), 3198); /* with a surplus, it fits */
	ck_assert_int_eq(pcpc_charge_flags(leaf, 8, PCPC_FORCE, NULL), 0);
	ck_assert_int_eq(pcpc_charge_flags(leaf, 2, PCPC_FORCE, NULL), 0); /* exactly that fits */
	ck_assert_uint_eq(pcpc_owner_usage(leaf), 3200);
	ck_assert_uint_eq(events_of(root, PCPC_EVENT_FORCED), 0);
	ck_assert_int_eq(pcpc_charge_flags(leaf, 5, PCPC_FORCE, NULL), 0);
	ck_assert_uint_eq(pcpc_owner_usage(leaf), 3205);
	ck_assert_uint_eq(pcpc_owner_usage(mid), 3205);
	ck_assert_uint_eq(pcpc_owner_usage_exact(root), 3205);
	ck_assert_uint_eq(pcpc_owner_peak(mid), 3205);
	ck_assert_uint_eq(events_of(leaf, PCPC_EVENT_FORCED), 0); /* it was mid that was over */
	ck_assert_uint_eq(events_of(mid, PCPC_EVENT_FORCED), 1);
	ck_assert_uint_eq(events_of(root, PCPC_EVENT_FORCED), 1);
	/* more than max, and beside flags that make no difference */
	ck_assert_int_eq(pcpc_charge_flags(leaf, 4000, PCPC_FORCE | PCPC_NOWAIT, NULL), 0);
	ck_assert_int_eq(pcpc_charge_flags(leaf, 1, PCPC_FORCE | PCPC_NORECLAIM, NULL), 0);
	ck_assert_uint_eq(events_of(mid, PCPC_EVENT_FORCED), 3);
	ck_assert_uint_eq(events_of(mid, PCPC_EVENT_REFUSED), 0);
	/* what is over the limit keeps others out, until it has gone */
	ck_assert_int_eq(pcpc_charge_flags(leaf, 1, 0, &refusal), -EDQUOT);
	ck_assert_uint_eq(refusal.usage, 7206);
	ck_assert_uint_eq(refusal.max, 3200);
	uncharge(leaf, 7206 - 3199);
	charge(leaf, 1);
	ck_assert_int_eq(pcpc_charge(leaf, 1), -EDQUOT);
	uncharge(leaf, 3200);
}
END_TEST

/* The same with its delta. */
START_TEST(a_forced_charge_of_zero_max_is_counted_at_every_level)
{
	struct pcpc_owner *leaf;

	if (!open_domain(_i, 64, 0))
		return;
	leaf = child_of(child_of(root));
	ck_assert_int_eq(pcpc_owner_set_max(leaf->parent, 0), 0);
	ck_assert_int_eq(pcpc_charge(leaf, 1), -EDQUOT);
	ck_assert_int_eq(pcpc_charge_flags(leaf, 70, PCPC_FORCE, NULL), 0);
	ck_assert_uint_eq(pcpc_owner_usage_exact(leaf), 70);
	ck_assert_uint_eq(pcpc_owner_usage_exact(leaf->parent), 70);
	ck_assert_uint_eq(pcpc_owner_usage_exact(root), 70);
	ck_assert_uint_eq(stock_of(leaf), 0);
	uncharge(leaf, 70);
	ck_assert_uint_eq(pcpc_owner_usage(leaf), 0);
}
END_TEST

/* G1 with amounts that add up to more than 64 bits: either a forced charge is refused, or it is
 * counted; usage is never below what was charged. (counter.c: "never beyond INT64_MAX in all".) */
START_TEST(forced_charges_never_wrap_a_counter)
{
	struct pcpc_owner *leaf;
	uint64_t held = 0;
	int i;

	if (!open_domain(_i, 64, 0))
		return;
	units_left = true;
	leaf = child_of(root);
	for (i = 0; i < 6; i++) {
		if (pcpc_charge_flags(leaf, INT64_MAX, PCPC_FORCE, NULL) == 0) {
			ck_assert_uint_le(held, UINT64_MAX - INT64_MAX);
			held += INT64_MAX;
		}
		ck_assert_uint_ge(pcpc_owner_usage(leaf), held);
		ck_assert_uint_ge(pcpc_owner_usage(root), held);
	}
}
END_TEST

/* Section 7: NOWAIT answers -EAGAIN where it cannot be sure; it drains nothing; poll does what a
 * waiting charge would have done, and the eventfd says so. */
START_TEST(nowait_does_not_drain_and_poll_does)
{
	struct pcpc_owner *mid, *leaf;
	uint64_t before;

	if (!open_domain(_i, 64, 0))
		return;
	mid = make_owner(root, 10000, 0);
	leaf = child_of(mid);
	strand(leaf);
	before = drains_now();
	ck_assert_int_eq(pcpc_charge_flags(leaf, 10000, PCPC_NOWAIT, NULL), -EAGAIN);
	ck_assert_int_eq(pcpc_charge_flags(leaf, 10000, PCPC_NOWAIT, NULL), -EAGAIN);
	ck_assert_uint_eq(drains_now(), before);
	ck_assert_uint_gt(stock_of(leaf), 0);
	ck_assert_uint_eq(events_of(mid, PCPC_EVENT_REFUSED), 0);
	ck_assert(rung());
	pcpc_domain_poll(domain);
	ck_assert(!rung());
	ck_assert_uint_eq(pcpc_owner_usage(mid), 0);
	ck_assert_int_eq(pcpc_charge_flags(leaf, 10000, PCPC_NOWAIT, NULL), 0);
	/* a drain was enough for that one; for the next poll makes sure */
	ck_assert_int_eq(pcpc_charge_flags(leaf, 1, PCPC_NOWAIT, NULL), -EAGAIN);
	pcpc_domain_poll(domain);
	/* it is certain now, so the answer is final without waiting */
	ck_assert_int_eq(pcpc_charge_flags(leaf, 1, PCPC_NOWAIT, NULL), -EDQUOT);
	ck_assert(!rung());
	ck_assert_uint_eq(events_of(mid, PCPC_EVENT_REFUSED), 1);
	uncharge(leaf, 10000);
}
END_TEST

/* Required: "Programs that only use NOWAIT and call poll reach the last unit of every limit." */
START_TEST(with_nowait_alone_the_last_unit_is_reached)
{
	struct pcpc_owner *mid, *leaf[20];
	struct job job = { .count = 50 };
	struct worker worker;
	uint64_t held = 0, polls = 0, of[20] = { 0 };
	uint32_t i;
	int r = 0;

	if (!open_domain(_i, 64, 0))
		return;
	worker_start(&worker, 1);
	mid = make_owner(root, 5000, 0);
	for (i = 0; i < 20; i++) {
		job.owner = leaf[i] = child_of(mid);
		worker_run(&worker, job_strand, &job);
	}
	for (i = 0; r != -EDQUOT; i = (i + 1) % 20) {
		r = pcpc_charge_flags(leaf[i], 7, PCPC_NOWAIT, NULL);
		if (r == 0) {
			held += 7;
			of[i] += 7;
			/* another CPU goes on stocking */
			job.owner = leaf[i];
			job.count = 1;
			job.flags = PCPC_NOWAIT;
			if (i % 5 == 0) {
				worker_run(&worker, job_charge, &job);
				if (job.result == 0)
					worker_run(&worker, job_uncharge, &job);
			}
			continue;
		}
		if (r == -EAGAIN) {
			ck_assert(rung());
			pcpc_domain_poll(domain);
			ck_assert_uint_lt(++polls, 1000);
		}
	}
	ck_assert_uint_eq(held, 4998);
	ck_assert_int_eq(pcpc_charge_flags(leaf[0], 2, PCPC_NOWAIT, NULL), 0);
	ck_assert_int_eq(pcpc_charge_flags(leaf[0], 1, PCPC_NOWAIT, NULL), -EDQUOT);
	ck_assert_uint_eq(pcpc_owner_usage_exact(mid), 5000);
	uncharge(leaf[0], 2);
	for (i = 0; i < 20; i++)
		uncharge(leaf[i], of[i]);
	worker_stop(&worker);
}
END_TEST

static uint64_t count_calls(struct pcpc_owner *over, uint64_t wanted, void *context)
{
	(void)over;
	(void)wanted;
	++*(unsigned int *)context;
	return 0;
}

/* charge.h: NORECLAIM "drain, but call no reclaim function"; NOWAIT neither. */
START_TEST(noreclaim_drains_but_calls_nobody)
{
	struct pcpc_owner *mid, *leaf;
	unsigned int calls = 0;

	if (!open_domain(_i, 64, 0))
		return;
	mid = make_owner(root, 10000, 0);
	leaf = child_of(mid);
	ck_assert_int_eq(pcpc_owner_set_reclaim(mid, count_calls, &calls), 0);
	strand(leaf);
	ck_assert_int_eq(pcpc_charge_flags(leaf, 10000, PCPC_NOWAIT, NULL), -EAGAIN);
	ck_assert_uint_eq(calls, 0);
	ck_assert_int_eq(pcpc_charge_flags(leaf, 10000, PCPC_NORECLAIM, NULL), 0);
	ck_assert_int_eq(pcpc_charge_flags(leaf, 1, PCPC_NORECLAIM, NULL), -EDQUOT);
	ck_assert_uint_eq(calls, 0);
	ck_assert_uint_gt(events_of(mid, PCPC_EVENT_DRAIN), 0);
	ck_assert_uint_eq(events_of(mid, PCPC_EVENT_RECLAIM), 0);
	ck_assert_int_eq(pcpc_charge_flags(leaf, 1, 0, NULL), -EDQUOT);
	ck_assert_uint_eq(calls, 1); /* freed nothing: not asked again */
	ck_assert_uint_eq(events_of(mid, PCPC_EVENT_RECLAIM), 1);
	uncharge(leaf, 10000);
}
END_TEST

/* Required: "A charge made inside the caller's own urcu-bp read-side section never hangs."
 * Section 7: it answers -EAGAIN, as NOWAIT does. */
START_TEST(inside_a_read_side_section_a_charge_does_not_wait)
{
	struct pcpc_owner *mid, *leaf;
	unsigned int calls = 0;
	uint64_t before;

	if (!open_domain(_i, 64, 0))
		return;
	mid = make_owner(root, 10000, 0);
	leaf = child_of(mid);
	ck_assert_int_eq(pcpc_owner_set_reclaim(mid, count_calls, &calls), 0);
	strand(leaf);
	before = drains_now();
	urcu_bp_read_lock();
	ck_assert_int_eq(pcpc_charge(leaf, 5), 0);
	ck_assert_int_eq(pcpc_charge(leaf, 9999), -EAGAIN);
	ck_assert_int_eq(pcpc_charge_flags(leaf, 9999, PCPC_NORECLAIM, NULL), -EAGAIN);
	ck_assert_int_eq(pcpc_charge_stat(leaf, 9999, 1), -EAGAIN);
	ck_assert_int_eq(pcpc_charge_wait(leaf, 9999, -1), -EAGAIN);
	ck_assert_int_eq(pcpc_charge(leaf, 10001), -EDQUOT);
	urcu_bp_read_lock(); /* they nest */
	ck_assert_int_eq(pcpc_charge(leaf, 9999), -EAGAIN);
	urcu_bp_read_unlock();
	pcpc_uncharge(leaf, 5);
	ck_assert_int_eq(pcpc_owner_set_max(mid, 1), -EAGAIN);
	ck_assert_uint_eq(pcpc_owner_max(mid), 1);
	urcu_bp_read_unlock();
	ck_assert_uint_eq(drains_now(), before);
	ck_assert_uint_eq(calls, 0);
	/* what was left undone is done by poll: the limit is in force */
	ck_assert(rung());
	pcpc_domain_poll(domain);
	ck_assert_uint_eq(pcpc_owner_usage(mid), 0);
	charge(leaf, 1);
	ck_assert_int_eq(pcpc_charge(leaf, 1), -EDQUOT);
	uncharge(leaf, 1);
}
END_TEST

/* owner.h, poll: inside a read-side section "poll does nothing"; eventfd: "readable when poll has
 * something to do", and it has still. */
START_TEST(poll_inside_a_read_side_section_leaves_the_bell_rung)
{
	struct pcpc_owner *leaf;

	if (!open_domain(_i, 64, 0))
		return;
	leaf = make_owner(root, 10000, 0);
	strand(leaf);
	ck_assert_int_eq(pcpc_charge_flags(leaf, 10000, PCPC_NOWAIT, NULL), -EAGAIN);
	ck_assert(rung());
	urcu_bp_read_lock();
	pcpc_domain_poll(domain);
	urcu_bp_read_unlock();
	ck_assert_uint_gt(stock_of(leaf), 0);
	ck_assert(rung());
	pcpc_domain_poll(domain);
	ck_assert_uint_eq(pcpc_owner_usage(leaf), 0);
	ck_assert(!rung());
}
END_TEST

/* Nor does it where the refusal is certain already. */
START_TEST(inside_a_read_side_section_a_wait_does_not_sleep)
{
	struct pcpc_owner *leaf;
	int r;

	if (!open_domain(_i, 64, 0))
		return;
	leaf = make_owner(root, 100, 0);
	charge(leaf, 100);
	ck_assert_int_eq(pcpc_charge(leaf, 1), -EDQUOT);
	ck_assert(exact(leaf));
	urcu_bp_read_lock();
	r = pcpc_charge_wait(leaf, 1, 200000000);
	urcu_bp_read_unlock();
	/* charge.h: "-EAGAIN inside a read-side section of liburcu-bp" */
	ck_assert_int_eq(r, -EAGAIN);
	uncharge(leaf, 100);
}
END_TEST

/* Semantics 3, c: the exact amount is tried before anybody is drained or refused. */
START_TEST(without_room_for_a_batch_the_amount_alone_is_taken)
{
	struct pcpc_owner *leaf;
	uint64_t before;
	int i;

	if (!open_domain(_i, 64, 0))
		return;
	leaf = make_owner(root, 10, 0);
	before = drains_now();
	for (i = 1; i <= 10; i++)
		charge(leaf, 1);
	ck_assert_uint_eq(pcpc_owner_usage_exact(leaf), 10);
	ck_assert_uint_eq(drains_now(), before);
	ck_assert_uint_eq(events_of(leaf, PCPC_EVENT_MAX), 0);
	uncharge(leaf, 10);
}
END_TEST

static void ignore(struct pcpc_owner *owner, enum pcpc_event event, void *context)
{
	(void)owner;
	(void)event;
	(void)context;
}

/* G6, G8: with every lock of the library taken by somebody, charges with NOWAIT, uncharges,
 * references and reads of usage still end: hits, misses, evictions, refusals, events, late
 * uncharges. */
START_TEST(nowait_and_uncharge_take_no_lock)
{
	struct pcpc_owner *limited, *leaf[20], *gone;
	uint64_t held[20] = { 0 }, random = unit_seed(), count;
	uint32_t i, which;

	if (!open_domain(_i, 64, 1))
		return;
	limited = make_owner(root, 3000, 0);
	for (i = 0; i < 20; i++)
		leaf[i] = child_of(i % 2 ? limited : root);
	gone = child_of(limited);
	charge(gone, 500);
	ck_assert_int_eq(pcpc_owner_set_notify(root, ignore, NULL), 0);
	ck_assert_int_eq(pcpc_owner_destroy(gone), 0);
	pcpc_thread_register();
	alarm(PATIENCE); /* it would hang */
	pthread_mutex_lock(&domain->sweep_mutex);
	pthread_mutex_lock(&domain->tree_mutex);
	pthread_mutex_lock(&domain->cache->drain_mutex);
	for (i = 0; i < 20000; i++) {
		which = (uint32_t)unit_below(&random, 20);
		count = 1 + unit_below(&random, unit_below(&random, 10) ? 9 : 900);
		if (unit_below(&random, 3) == 0) {
			count = count < held[which] ? count : held[which];
			pcpc_uncharge_stat(leaf[which], count, (int64_t)count);
			held[which] -= count;
		} else if (pcpc_charge_flags(leaf[which], count,
					     PCPC_NOWAIT | (i % 10 ? 0 : PCPC_FORCE), NULL) == 0) {
			held[which] += count;
		}
		if (i % 40 == 0)
			pcpc_uncharge(gone, 1);
		pcpc_owner_put(pcpc_owner_get(leaf[which]));
		(void)pcpc_owner_usage(limited);
	}
	for (i = 0; i < 20; i++)
		pcpc_uncharge(leaf[i], held[i]);
	pthread_mutex_unlock(&domain->cache->drain_mutex);
	pthread_mutex_unlock(&domain->tree_mutex);
	pthread_mutex_unlock(&domain->sweep_mutex);
	alarm(0);
	ck_assert_uint_gt(events_of(limited, PCPC_EVENT_MAX), 100);
	ck_assert_uint_gt(events_of(limited, PCPC_EVENT_FORCED), 10);
	pcpc_domain_poll(domain);
	ck_assert_int_eq(pcpc_owner_set_notify(root, NULL, NULL), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("charge flags");
	TCase *tests = unit_case(suite, "flags");

	tcase_add_checked_fixture(tests, NULL, close_domain);
	by_each_engine(tests, refused_charge_leaves_every_level_unchanged);
	by_each_engine(tests, asks_18_a_surplus_that_was_dropped_is_in_no_peak);
	by_each_engine(tests, a_refusal_names_the_ancestor_and_its_figures);
	by_each_engine(tests, a_refusal_is_written_only_when_there_is_one);
	by_each_engine(tests, more_than_max_is_refused_at_once);
	by_each_engine(tests, a_forced_charge_counts_only_where_it_went_over);
	by_each_engine(tests, a_forced_charge_of_zero_max_is_counted_at_every_level);
	by_each_engine(tests, forced_charges_never_wrap_a_counter);
	by_each_engine(tests, nowait_does_not_drain_and_poll_does);
	by_each_engine(tests, with_nowait_alone_the_last_unit_is_reached);
	by_each_engine(tests, noreclaim_drains_but_calls_nobody);
	by_each_engine(tests, inside_a_read_side_section_a_charge_does_not_wait);
	by_each_engine(tests, poll_inside_a_read_side_section_leaves_the_bell_rung);
	by_each_engine(tests, inside_a_read_side_section_a_wait_does_not_sleep);
	by_each_engine(tests, nowait_and_uncharge_take_no_lock);
	by_each_engine(tests, without_room_for_a_batch_the_amount_alone_is_taken);
	return unit_run(suite);
}
