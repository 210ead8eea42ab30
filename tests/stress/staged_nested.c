// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * staged_nested.c - a signal handler operates on the stock in the middle of an operation of its own
 * thread: between the search and the commit, and between an eviction and its settling.
 *
 * (semantics.md 1.5: what is deferred is settled after the stock is whole again, so that a nested
 * operation finds a stock it can use.)
 */
#include "staged.h"

/* What the nested operation got; asserted by the test itself, outside the handler. */
static struct {
	bool hit, victim_hit;
	struct pcpc_deferred deferred;
} nested;

/* Owner 1's slot holds 10; the test's own operation is on owner 1. */

static void consume_3(void)
{
	nested.hit = staged_consume(1, 3);
}

static void consume_7(void)
{
	nested.hit = staged_consume(1, 7);
}

static void refill_5(void)
{
	nested.deferred = staged_refill(1, 5);
}

START_TEST(consume_in_a_consume_takes_its_units_first)
{
	staged_refill(1, 10);
	staged_signal_at(STAGED_SEARCHED, consume_3);
	ck_assert(staged_consume(1, 4));
	ck_assert(staged_done(STAGED_SEARCHED));
	ck_assert(nested.hit);
	ck_assert_uint_eq(staged_stocked(1), 10 - 3 - 4);
}
END_TEST

START_TEST(consume_in_a_consume_leaves_too_little)
{
	staged_refill(1, 10);
	staged_signal_at(STAGED_SEARCHED, consume_7);
	ck_assert(!staged_consume(1, 4));
	ck_assert(staged_done(STAGED_SEARCHED));
	ck_assert(nested.hit);
	ck_assert_uint_eq(staged_stocked(1), 3);
}
END_TEST

START_TEST(refill_in_a_consume_adds_its_units)
{
	staged_refill(1, 10);
	staged_signal_at(STAGED_SEARCHED, refill_5);
	ck_assert(staged_consume(1, 4));
	ck_assert(staged_done(STAGED_SEARCHED));
	staged_assert_deferred(nested.deferred, 0, 0);
	ck_assert_uint_eq(staged_stocked(1), 10 + 5 - 4);
}
END_TEST

START_TEST(consume_in_a_refill_takes_its_units)
{
	staged_refill(1, 10);
	staged_signal_at(STAGED_SEARCHED, consume_7);
	staged_assert_deferred(staged_refill(1, 4), 0, 0);
	ck_assert(staged_done(STAGED_SEARCHED));
	ck_assert(nested.hit);
	ck_assert_uint_eq(staged_stocked(1), 10 - 7 + 4);
}
END_TEST

START_TEST(refill_in_a_refill_adds_to_it)
{
	staged_refill(1, 10);
	staged_signal_at(STAGED_SEARCHED, refill_5);
	staged_assert_deferred(staged_refill(1, 4), 0, 0);
	ck_assert(staged_done(STAGED_SEARCHED));
	staged_assert_deferred(nested.deferred, 0, 0);
	ck_assert_uint_eq(staged_stocked(1), 10 + 5 + 4);
	ck_assert_uint_eq(staged_slots_of(1), 1);
}
END_TEST

/* 92 + 5 + 4 = 101 is above high: down to low, which is 50. */
START_TEST(refill_in_a_refill_makes_it_trim)
{
	staged_refill(1, 92);
	staged_signal_at(STAGED_SEARCHED, refill_5);
	staged_assert_deferred(staged_refill(1, 4), 1, 51);
	ck_assert(staged_done(STAGED_SEARCHED));
	staged_assert_deferred(nested.deferred, 0, 0);
	ck_assert_uint_eq(staged_stocked(1), 50);
}
END_TEST

/* 98 + 4 would have trimmed; 98 - 3 + 4 = 99 does not. */
START_TEST(consume_in_a_trim_makes_room)
{
	staged_refill(1, 98);
	staged_signal_at(STAGED_SEARCHED, consume_3);
	staged_assert_deferred(staged_refill(1, 4), 0, 0);
	ck_assert(staged_done(STAGED_SEARCHED));
	ck_assert(nested.hit);
	ck_assert_uint_eq(staged_stocked(1), 99);
}
END_TEST

static void move_delta(void)
{
	pcpc_cache_consume(staged_cache, 1, 1, 6, &staged_marks, &nested.deferred);
}

/* 6 is below delta_batch, 10; 6 + 6 is not, and leaves the slot whole, once. */
START_TEST(delta_moved_in_a_consume_is_cleared_once)
{
	struct pcpc_deferred deferred;

	staged_refill(1, 10);
	staged_signal_at(STAGED_SEARCHED, move_delta);
	ck_assert(pcpc_cache_consume(staged_cache, 1, 1, 6, &staged_marks, &deferred));
	ck_assert(staged_done(STAGED_SEARCHED));
	ck_assert_uint_eq(nested.deferred.owner, 0);
	ck_assert_uint_eq(deferred.owner, 1);
	ck_assert_uint_eq(deferred.count, 0);
	ck_assert_int_eq(deferred.delta, 12);
	staged_drain();
	ck_assert_uint_eq(staged_settled[1], 8);
	ck_assert_int_eq(staged_settled_delta[1], 0);
}
END_TEST

/* G5 */
START_TEST(insert_in_an_insert_of_the_same_owner_makes_one_slot)
{
	staged_signal_at(STAGED_SEARCHED, refill_5);
	staged_assert_deferred(staged_refill(1, 4), 0, 0);
	ck_assert(staged_done(STAGED_SEARCHED));
	staged_assert_deferred(nested.deferred, 0, 0);
	ck_assert_uint_eq(staged_slots_of(1), 1);
	ck_assert_uint_eq(staged_stocked(1), 9);
}
END_TEST

static void empty_5_and_insert_8(void)
{
	nested.hit = staged_consume(5, 50);
	nested.deferred = staged_refill(8, 2);
}

/* G5, S3i. The word that the outer insert wants to replace is as it was, yet its owner has another
 * slot by now. */
START_TEST(insert_elsewhere_in_an_eviction_for_the_same_owner_makes_one_slot)
{
	staged_fill();
	staged_signal_at(STAGED_SEARCHED, empty_5_and_insert_8);
	staged_assert_deferred(staged_refill(8, 3), 0, 0);
	ck_assert(staged_done(STAGED_SEARCHED));
	ck_assert(nested.hit);
	staged_assert_deferred(nested.deferred, 0, 0);
	ck_assert_uint_eq(staged_slots_of(8), 1);
	ck_assert_uint_eq(staged_stocked(8), 5);
	ck_assert_uint_eq(staged_stocked(1), 10);
}
END_TEST

static void empty_2_and_insert_8(void)
{
	nested.hit = staged_consume(2, 20);
	nested.deferred = staged_refill(8, 2);
}

/* The same into two vacant slots: owner 5's is the lowest when the outer insert searches, owner 2's
 * when the nested one does. */
START_TEST(insert_elsewhere_in_an_insert_of_the_same_owner_makes_one_slot)
{
	staged_fill();
	ck_assert(staged_consume(5, 50));
	staged_signal_at(STAGED_SEARCHED, empty_2_and_insert_8);
	staged_assert_deferred(staged_refill(8, 3), 0, 0);
	ck_assert(staged_done(STAGED_SEARCHED));
	ck_assert(nested.hit);
	staged_assert_deferred(nested.deferred, 0, 0);
	ck_assert_uint_eq(staged_slots_of(8), 1);
	ck_assert_uint_eq(staged_stocked(8), 5);
	ck_assert_uint_eq(staged_slots_of(5), 1);
}
END_TEST

static void insert_9(void)
{
	nested.deferred = staged_refill(9, 2);
}

/* Each takes its own victim: the nested one owner 1, the outer one the next at the hand. */
START_TEST(eviction_in_an_eviction_takes_another_victim)
{
	staged_fill();
	staged_signal_at(STAGED_SEARCHED, insert_9);
	staged_assert_deferred(staged_refill(8, 3), 2, 20);
	ck_assert(staged_done(STAGED_SEARCHED));
	staged_assert_deferred(nested.deferred, 1, 10);
	ck_assert_uint_eq(staged_stocked(8), 3);
	ck_assert_uint_eq(staged_stocked(9), 2);
}
END_TEST

static void consume_the_victim(void)
{
	nested.hit = staged_consume(1, 10);
}

/* The victim's last units were used: its slot is vacant, and another word than was searched. */
START_TEST(victim_emptied_in_an_eviction_loses_nothing)
{
	staged_fill();
	staged_signal_at(STAGED_SEARCHED, consume_the_victim);
	staged_assert_deferred(staged_refill(8, 3), 0, 0);
	ck_assert(staged_done(STAGED_SEARCHED));
	ck_assert(nested.hit);
	ck_assert_uint_eq(staged_slots_of(1), 0);
	ck_assert_uint_eq(staged_stocked(8), 3);
}
END_TEST

static void consume_at_evicted(void)
{
	nested.hit = staged_consume(8, 2) && staged_consume(2, 20);
	nested.victim_hit = staged_consume(1, 1);
}

/* semantics.md 1.5.2: while the victim waits to be settled the stock serves everyone else. */
START_TEST(consume_between_eviction_and_settling_can_hit)
{
	staged_fill();
	staged_signal_at(STAGED_EVICTED, consume_at_evicted);
	staged_assert_deferred(staged_refill(8, 3), 1, 10);
	ck_assert(staged_done(STAGED_EVICTED));
	ck_assert(nested.hit);
	ck_assert(!nested.victim_hit);
	ck_assert_uint_eq(staged_stocked(8), 1);
	ck_assert_uint_eq(staged_stocked(2), 0);
}
END_TEST

static void refill_the_victim(void)
{
	nested.deferred = staged_refill(1, 4);
}

/* The hand has not moved yet, so the owner that has just come is evicted by the one it replaced. */
START_TEST(victim_comes_back_between_eviction_and_settling)
{
	staged_fill();
	staged_signal_at(STAGED_EVICTED, refill_the_victim);
	staged_assert_deferred(staged_refill(8, 3), 1, 10);
	ck_assert(staged_done(STAGED_EVICTED));
	staged_assert_deferred(nested.deferred, 8, 3);
	ck_assert_uint_eq(staged_stocked(1), 4);
	ck_assert_uint_eq(staged_slots_of(1), 1);
	ck_assert_uint_eq(staged_stocked(8), 0);
}
END_TEST

/* Put there by hand, for the window in pcpc_atomic_insert() is a few instructions. */
static void make_duplicates(void)
{
	ck_assert_int_eq(staged_engine, PCPC_ENGINE_ATOMIC);
	staged_refill(8, 1);
	staged_refill(2, 9);
	staged_stock->slot[0] = pcpc_word_make(8, 3, 1);
	staged_stock->slot[4] = pcpc_word_make(8, 5, -2);
	staged_stock->slot[6] = pcpc_word_make(8, 7, 4);
}

/* G5, atomic engine */
START_TEST(duplicates_are_merged_by_the_next_refill)
{
	if (staged_engine != PCPC_ENGINE_ATOMIC)
		return;
	make_duplicates();
	staged_assert_deferred(staged_refill(8, 2), 0, 0);
	ck_assert_uint_eq(staged_slots_of(8), 1);
	ck_assert_uint_eq(staged_stocked(8), 3 + 5 + 7 + 2);
	staged_drain();
	ck_assert_uint_eq(staged_settled[8], 17);
	ck_assert_int_eq(staged_settled_delta[8], 3);
	ck_assert_uint_eq(staged_settled[2], 9);
}
END_TEST

START_TEST(duplicates_serve_a_consume_and_are_drained)
{
	if (staged_engine != PCPC_ENGINE_ATOMIC)
		return;
	make_duplicates();
	ck_assert(staged_consume(8, 6));
	ck_assert_uint_eq(staged_stocked(8), 3 + 5 + 1);
	staged_drain();
	ck_assert_uint_eq(staged_settled[8], 9);
	ck_assert_int_eq(staged_settled_delta[8], 3);
	ck_assert_uint_eq(staged_slots_of(8), 0);
}
END_TEST

void staged_add_nested_tests(TCase *tests)
{
	tcase_add_test(tests, consume_in_a_consume_takes_its_units_first);
	tcase_add_test(tests, consume_in_a_consume_leaves_too_little);
	tcase_add_test(tests, refill_in_a_consume_adds_its_units);
	tcase_add_test(tests, consume_in_a_refill_takes_its_units);
	tcase_add_test(tests, refill_in_a_refill_adds_to_it);
	tcase_add_test(tests, refill_in_a_refill_makes_it_trim);
	tcase_add_test(tests, consume_in_a_trim_makes_room);
	tcase_add_test(tests, delta_moved_in_a_consume_is_cleared_once);
	tcase_add_test(tests, insert_in_an_insert_of_the_same_owner_makes_one_slot);
	tcase_add_test(tests, insert_elsewhere_in_an_eviction_for_the_same_owner_makes_one_slot);
	tcase_add_test(tests, insert_elsewhere_in_an_insert_of_the_same_owner_makes_one_slot);
	tcase_add_test(tests, eviction_in_an_eviction_takes_another_victim);
	tcase_add_test(tests, victim_emptied_in_an_eviction_loses_nothing);
	tcase_add_test(tests, consume_between_eviction_and_settling_can_hit);
	tcase_add_test(tests, victim_comes_back_between_eviction_and_settling);
	tcase_add_test(tests, duplicates_are_merged_by_the_next_refill);
	tcase_add_test(tests, duplicates_serve_a_consume_and_are_drained);
}
