// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_event.c - which events are counted, when, how often, and for whom. Who is told of them is in
 * test_event_poll.c.
 */
#define _GNU_SOURCE
#include "owner_clock.h"
#include "owner_support.h"

static uint64_t all_events(const struct pcpc_owner *owner)
{
	uint64_t sum = 0;
	unsigned int event;

	for (event = 0; event < PCPC_NR_EVENTS; event++)
		sum += pcpc_owner_events(owner, (enum pcpc_event)event);
	return sum;
}

/* owner.h, PCPC_EVENT_HIGH: "usage rose above high", "once per crossing"; section 7: "HIGH is told
 * once, and again after usage was below 15/16 of high". No batch, so that usage is what is held. */
START_TEST(high_is_raised_once_per_crossing)
{
	struct pcpc_owner *leaf;
	int i;

	if (!open_domain(_i, PCPC_BATCH_NONE, 0))
		return;
	leaf = child_of(child_of(root));
	ck_assert_int_eq(pcpc_owner_set_high(leaf->parent, 1600), 0);
	charge(leaf, 1600); /* at high is not above it */
	ck_assert_uint_eq(events_of(leaf->parent, PCPC_EVENT_HIGH), 0);
	charge(leaf, 1); /* and nothing is refused */
	ck_assert_uint_eq(events_of(leaf->parent, PCPC_EVENT_HIGH), 1);
	ck_assert_uint_eq(events_of(root, PCPC_EVENT_HIGH), 1);
	ck_assert_uint_eq(events_of(leaf, PCPC_EVENT_HIGH), 0);
	for (i = 0; i < 100; i++) {
		charge(leaf, 1000);
		uncharge(leaf, 1000);
	}
	/* down to just above 15/16, and over again: still the same crossing */
	uncharge(leaf, 100);
	charge(leaf, 100);
	ck_assert_uint_eq(events_of(leaf->parent, PCPC_EVENT_HIGH), 1);
	uncharge(leaf, 101);
	ck_assert_uint_eq(pcpc_owner_usage(leaf), 1500);
	charge(leaf, 101);
	ck_assert_uint_eq(events_of(leaf->parent, PCPC_EVENT_HIGH), 1);
	/* down to below it */
	uncharge(leaf, 102);
	charge(leaf, 101);
	ck_assert_uint_eq(events_of(leaf->parent, PCPC_EVENT_HIGH), 1); /* 1,600 */
	charge(leaf, 1);
	ck_assert_uint_eq(events_of(leaf->parent, PCPC_EVENT_HIGH), 2);
	ck_assert_uint_eq(events_of(root, PCPC_EVENT_HIGH), 2);
	uncharge(leaf, 1601);
	ck_assert_uint_eq(all_events(root), 2);
}
END_TEST

/* The same at every level that has a high; counted for an owner and its ancestors. */
START_TEST(high_is_raised_at_every_level_that_has_one)
{
	struct pcpc_owner *top, *mid, *leaf;

	if (!open_domain(_i, PCPC_BATCH_NONE, 0))
		return;
	top = child_of(root);
	mid = child_of(top);
	leaf = child_of(mid);
	ck_assert_int_eq(pcpc_owner_set_high(root, 5000), 0);
	ck_assert_int_eq(pcpc_owner_set_high(top, 4000), 0);
	ck_assert_int_eq(pcpc_owner_set_high(leaf, 3000), 0);
	charge(leaf, 2900);
	ck_assert_uint_eq(all_events(root), 0);
	charge(leaf, 200);
	ck_assert_uint_eq(events_of(leaf, PCPC_EVENT_HIGH), 1);
	ck_assert_uint_eq(events_of(mid, PCPC_EVENT_HIGH), 1); /* of the subtree */
	charge(mid, 3000);
	ck_assert_uint_eq(events_of(leaf, PCPC_EVENT_HIGH), 1);
	ck_assert_uint_eq(events_of(mid, PCPC_EVENT_HIGH), 1);
	ck_assert_uint_eq(events_of(top, PCPC_EVENT_HIGH), 2); /* its own, and the leaf's */
	ck_assert_uint_eq(events_of(root, PCPC_EVENT_HIGH), 3);
	uncharge(leaf, 3100);
	uncharge(mid, 3000);
	/* a refused charge raises none */
	ck_assert_int_eq(pcpc_owner_set_max(root, 6000), 0);
	ck_assert_int_eq(pcpc_charge(leaf, 6001), -EDQUOT);
	ck_assert_uint_eq(events_of(root, PCPC_EVENT_HIGH), 3);
}
END_TEST

/* owner.h, pcpc_owner_set_high(): a high that is set below usage is crossed then. */
START_TEST(a_high_may_be_set_below_usage)
{
	struct pcpc_owner *leaf;

	if (!open_domain(_i, PCPC_BATCH_NONE, 0))
		return;
	leaf = child_of(root);
	charge(leaf, 100);
	ck_assert_int_eq(pcpc_owner_set_high(leaf, 100), 0);
	ck_assert_uint_eq(events_of(leaf, PCPC_EVENT_HIGH), 0);
	ck_assert_int_eq(pcpc_owner_set_high(leaf, 50), 0);
	ck_assert_uint_eq(events_of(leaf, PCPC_EVENT_HIGH), 1);
	charge(leaf, 1);
	ck_assert_uint_eq(events_of(leaf, PCPC_EVENT_HIGH), 1);
	ck_assert_int_eq(pcpc_owner_set_high(leaf, 200), 0);
	charge(leaf, 100);
	ck_assert_uint_eq(events_of(leaf, PCPC_EVENT_HIGH), 2);
	ck_assert_int_eq(pcpc_owner_set_high(leaf, 0), 0); /* above it anyway: no crossing */
	ck_assert_uint_le(events_of(leaf, PCPC_EVENT_HIGH), 3);
	ck_assert_int_eq(pcpc_owner_set_high(leaf, PCPC_UNLIMITED), 0);
	charge(leaf, 1000);
	ck_assert_uint_le(events_of(leaf, PCPC_EVENT_HIGH), 3);
	uncharge(leaf, 1201);
}
END_TEST

/* A high given at creation counts; owner.h, struct pcpc_owner_config. */
START_TEST(high_may_be_given_at_creation)
{
	const struct pcpc_owner_config config = { .size = sizeof(config), .high = 10 };
	struct pcpc_owner *leaf;

	if (!open_domain(_i, PCPC_BATCH_NONE, 0))
		return;
	ck_assert_int_eq(pcpc_owner_create(root, &config, &leaf), 0);
	ck_assert_uint_eq(pcpc_owner_high(leaf), 10);
	charge(leaf, 10);
	ck_assert_uint_eq(all_events(leaf), 0);
	charge(leaf, 1);
	ck_assert_uint_eq(events_of(leaf, PCPC_EVENT_HIGH), 1);
	uncharge(leaf, 11);
}
END_TEST

/* Section 7: "PCPC_EVENT_RELIEVED is raised once after refusals, when usage has come down to 15/16
 * of max". */
START_TEST(relieved_is_raised_once_after_refusals)
{
	struct pcpc_owner *mid, *leaf;
	int i;

	if (!open_domain(_i, 64, 0))
		return;
	mid = make_owner(root, 1600, 0);
	leaf = child_of(mid);
	charge(leaf, 1600);
	uncharge(leaf, 1600);
	ck_assert_uint_eq(events_of(mid, PCPC_EVENT_RELIEVED), 0); /* nobody was refused */
	charge(leaf, 1600);
	for (i = 0; i < 10; i++)
		ck_assert_int_eq(pcpc_charge(leaf, 1), -EDQUOT);
	uncharge(leaf, 99);
	ck_assert_uint_eq(events_of(mid, PCPC_EVENT_RELIEVED), 0);
	uncharge(leaf, 1);
	ck_assert_uint_eq(events_of(mid, PCPC_EVENT_RELIEVED), 1);
	ck_assert_uint_eq(events_of(root, PCPC_EVENT_RELIEVED), 1);
	ck_assert_uint_eq(events_of(leaf, PCPC_EVENT_RELIEVED), 0);
	uncharge(leaf, 1400);
	charge(leaf, 1400);
	uncharge(leaf, 1000);
	ck_assert_uint_eq(events_of(mid, PCPC_EVENT_RELIEVED), 1); /* once */
	charge(leaf, 1100);
	ck_assert_int_eq(pcpc_charge(leaf, 1), -EDQUOT);
	uncharge(leaf, 1600);
	ck_assert_uint_eq(events_of(mid, PCPC_EVENT_RELIEVED), 2);
	/* one that would not fit an empty owner is refused, and there is nothing to come down from
	 */
	ck_assert_int_eq(pcpc_charge(leaf, 1601), -EDQUOT);
	ck_assert_uint_le(events_of(mid, PCPC_EVENT_RELIEVED), 3);
}
END_TEST

/* The same for limits of a few units: jobs, sockets. While it is full it is not relieved. */
START_TEST(relieved_is_not_told_while_it_is_full)
{
	struct pcpc_owner *leaf;
	uint64_t max;

	if (!open_domain(_i, 64, 0))
		return;
	for (max = 40; max >= 1; max--) {
		leaf = make_owner(root, max, 0);
		charge(leaf, max);
		ck_assert_int_eq(pcpc_charge(leaf, 1), -EDQUOT);
		ck_assert_msg(events_of(leaf, PCPC_EVENT_RELIEVED) == 0,
			      "max %u: relieved while full", (unsigned int)max);
		uncharge(leaf, max);
		ck_assert_uint_eq(events_of(leaf, PCPC_EVENT_RELIEVED), 1);
	}
}
END_TEST

/* owner.h: MAX "a charge did not fit at first", REFUSED "was refused for good", RECLAIM, DRAIN. */
static uint64_t free_nothing(struct pcpc_owner *over, uint64_t wanted, void *context)
{
	(void)over;
	(void)wanted;
	(void)context;
	return 0;
}

START_TEST(each_step_at_a_limit_is_counted_where_it_is_and_above)
{
	struct pcpc_owner *top, *mid, *leaf;
	const struct pcpc_owner *level;
	unsigned int i;

	if (!open_domain(_i, 64, 0))
		return;
	top = child_of(root);
	mid = make_owner(top, 3200, 0);
	leaf = child_of(mid);
	ck_assert_int_eq(pcpc_owner_set_reclaim(mid, free_nothing, NULL), 0);
	charge(leaf, 3190);
	charge(leaf, 8);
	charge(leaf, 2); /* fits without a surplus: no event */
	ck_assert_uint_eq(all_events(root), 0);
	for (i = 1; i <= 3; i++) {
		ck_assert_int_eq(pcpc_charge(leaf, 1), -EDQUOT);
		for (level = mid; level; level = level->parent) {
			ck_assert_uint_eq(events_of(level, PCPC_EVENT_MAX), i);
			ck_assert_uint_eq(events_of(level, PCPC_EVENT_REFUSED), i);
			ck_assert_uint_eq(events_of(level, PCPC_EVENT_RECLAIM), i);
			ck_assert_uint_ge(events_of(level, PCPC_EVENT_DRAIN), 1);
			ck_assert_uint_le(events_of(level, PCPC_EVENT_DRAIN), 2);
			ck_assert_uint_eq(events_of(level, PCPC_EVENT_FORCED), 0);
			ck_assert_uint_eq(events_of(level, PCPC_EVENT_UNDERFLOW), 0);
		}
		ck_assert_uint_eq(all_events(leaf), 0);
	}
	uncharge(leaf, 3200);
	/* one that succeeds after all is MAX, not REFUSED */
	mid = make_owner(top, 3200, 0);
	leaf = child_of(mid);
	charge(leaf, 100);
	uncharge(leaf, 40);
	ck_assert_uint_gt(pcpc_owner_stocked(mid), 0);
	charge(leaf, 3200 - 60);
	ck_assert_uint_eq(events_of(mid, PCPC_EVENT_MAX), 1);
	ck_assert_uint_eq(events_of(mid, PCPC_EVENT_DRAIN), 1);
	ck_assert_uint_eq(events_of(mid, PCPC_EVENT_REFUSED), 0);
	/* NOWAIT: MAX as well; semantics 3, d, is the other way */
	ck_assert_int_eq(pcpc_charge_flags(leaf, 3000, PCPC_NOWAIT, NULL), -EAGAIN);
	ck_assert_uint_eq(events_of(mid, PCPC_EVENT_MAX), 2);
	ck_assert_uint_eq(events_of(mid, PCPC_EVENT_REFUSED), 0);
	uncharge(leaf, 3200);
}
END_TEST

/* Style, "Errors": "Uncharging more than is held is counted as an event of that owner ... clamped,
 * and changes nobody else." Asks 8: "does not change any sibling". */
START_TEST(asks_8_an_over_uncharge_changes_nobody_else)
{
	struct pcpc_owner *mid, *bad, *sibling;
	uint64_t found = 0;
	int i;

	if (!open_domain(_i, 64, 0))
		return;
	mid = child_of(root);
	bad = child_of(mid);
	sibling = child_of(mid);
	charge(mid, 7);
	charge(sibling, 500);
	for (i = 1; i <= 20; i++) {
		charge(bad, 100);
		/* more than it has: by one, a little, a batch, and by all that mid has */
		uncharge(bad, 101 + (uint64_t)(i * i * i));
		(void)pcpc_owner_drain(root);
		/* once, or again for what was stocked meanwhile */
		ck_assert_uint_gt(events_of(bad, PCPC_EVENT_UNDERFLOW), found);
		ck_assert_uint_le(events_of(bad, PCPC_EVENT_UNDERFLOW), found + 2);
		found = events_of(bad, PCPC_EVENT_UNDERFLOW);
		ck_assert_uint_eq(events_of(mid, PCPC_EVENT_UNDERFLOW), found);
		ck_assert_uint_eq(events_of(root, PCPC_EVENT_UNDERFLOW), found);
		ck_assert_uint_eq(events_of(sibling, PCPC_EVENT_UNDERFLOW), 0);
		ck_assert_uint_eq(pcpc_owner_usage(bad), 0);
		ck_assert_uint_eq(pcpc_owner_usage(sibling), 500);
		ck_assert_uint_eq(pcpc_owner_usage(mid), 507);
		ck_assert_uint_eq(pcpc_owner_usage(root), 507);
	}
	/* and everybody goes on */
	charge(bad, 10);
	ck_assert_uint_eq(pcpc_owner_usage_exact(bad), 10);
	uncharge(bad, 10);
	uncharge(sibling, 500);
	uncharge(mid, 7);
}
END_TEST

/* Reads are clamped meanwhile: "public reads clamp at 0" (asks 8); the counters never wrap. */
START_TEST(asks_8_reads_never_wrap_after_an_over_uncharge)
{
	uint64_t random = unit_seed(), held = 0, count;
	struct pcpc_owner *mid, *bad, *sibling;
	int i;

	if (!open_domain(_i, 64, 1))
		return;
	mid = child_of(root);
	bad = child_of(mid);
	sibling = child_of(mid);
	charge(sibling, 1000);
	for (i = 0; i < 5000; i++) {
		count = unit_below(&random, 200);
		if (unit_below(&random, 2)) {
			charge(bad, count);
			held += count;
		} else {
			uncharge(bad, count); /* whether it has them or not */
			held -= count < held ? count : held;
		}
		ck_assert_uint_le(pcpc_owner_usage(bad), 1000000);
		ck_assert_uint_le(pcpc_owner_usage_exact(bad), pcpc_owner_usage(bad));
		ck_assert_uint_le(pcpc_owner_usage_exact(mid), pcpc_owner_usage(mid));
		ck_assert_uint_ge(pcpc_owner_usage(mid), 1000);
		ck_assert_uint_ge(pcpc_owner_usage(root), 1000);
		ck_assert_uint_eq(pcpc_owner_usage_exact(sibling), 1000);
	}
	uncharge(bad, INT64_MAX);
	(void)pcpc_owner_drain(root);
	ck_assert_uint_eq(pcpc_owner_usage(bad), 0);
	ck_assert_uint_eq(pcpc_owner_usage(root), 1000);
	ck_assert_uint_gt(events_of(bad, PCPC_EVENT_UNDERFLOW), 0);
	uncharge(sibling, 1000);
}
END_TEST

/* An owner that went is found out as well, at once: nothing of it is stocked. */
START_TEST(asks_8_an_over_uncharge_of_an_owner_that_went)
{
	struct pcpc_owner *bad, *sibling;

	if (!open_domain(_i, 64, 0))
		return;
	bad = pcpc_owner_get(child_of(root));
	sibling = child_of(root);
	charge(bad, 10);
	charge(sibling, 10);
	ck_assert_int_eq(pcpc_owner_destroy(bad), 0);
	pcpc_domain_poll(domain);
	uncharge(bad, 11);
	ck_assert_uint_eq(events_of(bad, PCPC_EVENT_UNDERFLOW), 1);
	uncharge(bad, 1);
	ck_assert_uint_eq(events_of(root, PCPC_EVENT_UNDERFLOW), 2);
	ck_assert_uint_eq(pcpc_owner_usage_exact(root), 10);
	uncharge(sibling, 10);
	pcpc_owner_put(bad);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("event");
	TCase *tests = unit_case(suite, "event");

	tcase_add_checked_fixture(tests, NULL, close_domain);
	by_each_engine(tests, high_is_raised_once_per_crossing);
	by_each_engine(tests, high_is_raised_at_every_level_that_has_one);
	by_each_engine(tests, a_high_may_be_set_below_usage);
	by_each_engine(tests, high_may_be_given_at_creation);
	by_each_engine(tests, relieved_is_raised_once_after_refusals);
	by_each_engine(tests, relieved_is_not_told_while_it_is_full);
	by_each_engine(tests, each_step_at_a_limit_is_counted_where_it_is_and_above);
	by_each_engine(tests, asks_8_an_over_uncharge_changes_nobody_else);
	by_each_engine(tests, asks_8_reads_never_wrap_after_an_over_uncharge);
	by_each_engine(tests, asks_8_an_over_uncharge_of_an_owner_that_went);
	return unit_run(suite);
}
