// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * staged_drain.c - another thread drains, or this one is moved, in the middle of an operation (G1).
 */
#define _GNU_SOURCE
#include "staged.h"

static bool rseq(void)
{
	return staged_engine == PCPC_ENGINE_RSEQ;
}

/*
 * One attempt that is stopped at SEARCHED to let action happen. A sequence may be preempted at any
 * time and then answers ABORTED, having done nothing; that is tried again, and only that.
 */
static enum pcpc_outcome refill_around(void (*prepare)(void), void (*action)(void), uint32_t owner,
				       struct pcpc_deferred *ret_deferred)
{
	enum pcpc_outcome outcome;

	do {
		prepare();
		staged_at(STAGED_SEARCHED, action);
		outcome = staged_try_refill(owner, 3, ret_deferred);
		ck_assert(staged_done(STAGED_SEARCHED));
	} while (outcome == PCPC_ABORTED);
	return outcome;
}

static void five_of_owner_1(void)
{
	staged_drain();
	staged_settled[1] = staged_settled[2] = 0;
	staged_assert_deferred(staged_refill(1, 5), 0, 0);
}

static void five_of_owner_2(void)
{
	staged_drain();
	staged_settled[1] = staged_settled[2] = 0;
	staged_assert_deferred(staged_refill(2, 5), 0, 0);
}

START_TEST(drained_between_search_and_commit_a_refill_changes_nothing)
{
	struct pcpc_deferred deferred;

	ck_assert_int_eq(refill_around(five_of_owner_1, staged_drain, 1, &deferred), PCPC_CHANGED);
	staged_assert_deferred(deferred, 0, 0);
	ck_assert_uint_eq(staged_settled[1], 5);
	ck_assert_uint_eq(staged_stocked(1), 0);
}
END_TEST

START_TEST(drained_between_search_and_commit_a_whole_refill_starts_over)
{
	staged_refill(1, 5);
	staged_at(STAGED_SEARCHED, staged_drain);
	staged_assert_deferred(staged_refill(1, 3), 0, 0);
	ck_assert(staged_done(STAGED_SEARCHED));
	ck_assert_uint_eq(staged_settled[1], 5);
	ck_assert_uint_eq(staged_stocked(1), 3);
	ck_assert_uint_eq(staged_slots_of(1), 1);
}
END_TEST

START_TEST(drained_between_search_and_commit_a_consume_misses)
{
	staged_refill(1, 5);
	staged_at(STAGED_SEARCHED, staged_drain);
	ck_assert(!staged_consume(1, 3));
	ck_assert(staged_done(STAGED_SEARCHED));
	ck_assert_uint_eq(staged_settled[1], 5);
	ck_assert_uint_eq(staged_stocked(1), 0);
}
END_TEST

/* An equal word is an equal state: the slot was free before the drain of another, and is after. */
START_TEST(insert_into_a_slot_that_is_free_again_goes_in)
{
	struct pcpc_deferred deferred;

	ck_assert_int_eq(refill_around(five_of_owner_2, staged_drain, 1, &deferred), PCPC_DONE);
	staged_assert_deferred(deferred, 0, 0);
	ck_assert_uint_eq(staged_settled[2], 5);
	ck_assert_uint_eq(staged_stocked(1), 3);
}
END_TEST

START_TEST(drained_between_search_and_commit_an_eviction_becomes_an_insert)
{
	uint32_t owner;

	staged_fill();
	staged_at(STAGED_SEARCHED, staged_drain);
	staged_assert_deferred(staged_refill(8, 3), 0, 0);
	ck_assert(staged_done(STAGED_SEARCHED));
	for (owner = 1; owner <= PCPC_STOCK_SLOTS; owner++)
		ck_assert_uint_eq(staged_settled[owner], 10 * owner);
	ck_assert_uint_eq(staged_stocked(8), 3);
}
END_TEST

/* Under the atomic engine there is no gate: the drain finds another word than it saw, and takes
 * that. */
START_TEST(refill_meets_a_closed_gate)
{
	struct pcpc_deferred deferred;
	enum pcpc_outcome outcome;

	five_of_owner_1();
	staged_at(STAGED_SEARCHED, staged_drain_begin);
	outcome = staged_try_refill(1, 3, &deferred);
	ck_assert(staged_done(STAGED_SEARCHED));
	staged_drain_end();
	/* Preempted in that sequence, it need not have come as far as the gate. */
	if (rseq())
		ck_assert(outcome == PCPC_CLOSED || outcome == PCPC_ABORTED);
	else
		ck_assert_int_eq(outcome, PCPC_DONE);
	staged_assert_deferred(deferred, 0, 0);
	ck_assert_uint_eq(staged_settled[1], rseq() ? 5 : 8);
	ck_assert_uint_eq(staged_stocked(1), 0);
}
END_TEST

START_TEST(whole_refill_bypasses_a_closed_gate)
{
	struct pcpc_deferred deferred;

	staged_refill(1, 5);
	staged_at(STAGED_SEARCHED, staged_drain_begin);
	deferred = staged_refill(1, 3);
	ck_assert(staged_done(STAGED_SEARCHED));
	staged_drain_end();
	staged_assert_deferred(deferred, rseq() ? 1 : 0, rseq() ? 3 : 0);
	ck_assert_uint_eq(staged_settled[1], rseq() ? 5 : 8);
	ck_assert_uint_eq(staged_stocked(1), 0);
}
END_TEST

START_TEST(consume_misses_at_a_closed_gate)
{
	bool hit;

	staged_refill(1, 5);
	staged_at(STAGED_SEARCHED, staged_drain_begin);
	hit = staged_consume(1, 3);
	ck_assert(staged_done(STAGED_SEARCHED));
	staged_drain_end();
	ck_assert_int_eq(hit, !rseq());
	ck_assert_uint_eq(staged_settled[1], rseq() ? 5 : 2);
	ck_assert_uint_eq(staged_stocked(1), 0);
}
END_TEST

/* The gate is the line's: it is closed to owners who are not drained as well. */
START_TEST(insert_bypasses_a_gate_that_was_closed_for_another)
{
	struct pcpc_deferred deferred;

	staged_refill(2, 5);
	staged_at(STAGED_SEARCHED, staged_drain_begin);
	deferred = staged_refill(1, 3);
	ck_assert(staged_done(STAGED_SEARCHED));
	staged_assert_deferred(deferred, rseq() ? 1 : 0, rseq() ? 3 : 0);
	ck_assert_uint_eq(staged_stocked(1), rseq() ? 0 : 3);
	ck_assert_uint_eq(staged_stocked(2), 5);
	staged_drain_end();
	ck_assert_uint_eq(staged_settled[2], 5);
}
END_TEST

START_TEST(eviction_bypasses_a_closed_gate)
{
	struct pcpc_deferred deferred;
	uint64_t all = 0;
	uint32_t owner;

	staged_fill();
	staged_at(STAGED_SEARCHED, staged_drain_begin);
	deferred = staged_refill(8, 3);
	ck_assert(staged_done(STAGED_SEARCHED));
	staged_drain_end();
	/* Atomic: the drain stands at owner 1's word and finds that of owner 8 in its place. */
	staged_assert_deferred(deferred, rseq() ? 8 : 1, rseq() ? 3 : 10);
	for (owner = 1; owner <= 8; owner++)
		all += staged_settled[owner] + staged_stocked(owner);
	ck_assert_uint_eq(all + deferred.count, 280 + 3);
}
END_TEST

static bool moved;

static void move(void)
{
	moved = staged_move();
}

/* S1: the word it computed from belongs to a CPU that the thread has left. Nothing is at stake
 * under the atomic engine. */
START_TEST(moved_between_search_and_commit_a_refill_is_aborted)
{
	struct pcpc_deferred deferred;
	enum pcpc_outcome outcome;

	five_of_owner_1();
	staged_at(STAGED_SEARCHED, move);
	outcome = staged_try_refill(1, 3, &deferred);
	ck_assert(staged_done(STAGED_SEARCHED));
	staged_assert_deferred(deferred, 0, 0);
	if (rseq() && moved)
		ck_assert_int_eq(outcome, PCPC_ABORTED);
	else if (!rseq())
		ck_assert_int_eq(outcome, PCPC_DONE);
	ck_assert_uint_eq(staged_stocked(1), outcome == PCPC_DONE ? 8 : 5);
}
END_TEST

START_TEST(moved_between_search_and_commit_a_whole_refill_goes_to_the_new_cpu)
{
	five_of_owner_1();
	staged_at(STAGED_SEARCHED, move);
	staged_assert_deferred(staged_refill(1, 3), 0, 0);
	ck_assert(staged_done(STAGED_SEARCHED));
	ck_assert_uint_eq(pcpc_word_count(staged_stock->slot[0]), rseq() && moved ? 5 : 8);
	ck_assert_uint_eq(staged_stocked(1), 8);
	staged_drain();
	ck_assert_uint_eq(staged_settled[1], 8);
}
END_TEST

/* The victim's units are with the one who evicts it: a drain does not see them, and they are not
 * lost. */
START_TEST(drain_between_eviction_and_settling_does_not_see_the_victim)
{
	struct pcpc_deferred deferred;
	uint32_t owner;

	staged_fill();
	staged_at(STAGED_EVICTED, staged_drain);
	deferred = staged_refill(8, 3);
	ck_assert(staged_done(STAGED_EVICTED));
	staged_assert_deferred(deferred, 1, 10);
	ck_assert_uint_eq(staged_settled[1], 0);
	for (owner = 2; owner <= PCPC_STOCK_SLOTS; owner++)
		ck_assert_uint_eq(staged_settled[owner], 10 * owner);
	ck_assert_uint_eq(staged_settled[8], 3);
	for (owner = 1; owner <= 8; owner++)
		ck_assert_uint_eq(staged_stocked(owner), 0);
}
END_TEST

void staged_add_drain_tests(TCase *tests)
{
	tcase_add_test(tests, drained_between_search_and_commit_a_refill_changes_nothing);
	tcase_add_test(tests, drained_between_search_and_commit_a_whole_refill_starts_over);
	tcase_add_test(tests, drained_between_search_and_commit_a_consume_misses);
	tcase_add_test(tests, insert_into_a_slot_that_is_free_again_goes_in);
	tcase_add_test(tests, drained_between_search_and_commit_an_eviction_becomes_an_insert);
	tcase_add_test(tests, refill_meets_a_closed_gate);
	tcase_add_test(tests, whole_refill_bypasses_a_closed_gate);
	tcase_add_test(tests, consume_misses_at_a_closed_gate);
	tcase_add_test(tests, insert_bypasses_a_gate_that_was_closed_for_another);
	tcase_add_test(tests, eviction_bypasses_a_closed_gate);
	tcase_add_test(tests, moved_between_search_and_commit_a_refill_is_aborted);
	tcase_add_test(tests, moved_between_search_and_commit_a_whole_refill_goes_to_the_new_cpu);
	tcase_add_test(tests, drain_between_eviction_and_settling_does_not_see_the_victim);
}
