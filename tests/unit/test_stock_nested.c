// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_stock_nested.c - operations on one stock that are interrupted by others on the same stock,
 * at the places where it matters: after the search and before the commit, and between an eviction
 * and its settling.
 *
 * PCPC_HOOK stands for the signal handler or interrupt. Real handlers at any instruction are in
 * ../stress.
 */
#define _GNU_SOURCE
#include <stdint.h>

static void hook_SEARCHED(void);
static void hook_EVICTED(void);

#define PCPC_HOOK(point) hook_##point()
#include <pcpcharge/stock.h>

#include "unit_support.h"

static const struct pcpc_marks marks = { .high = 64, .low = 32, .delta_batch = 64 };
static struct pcpc_stock stock;
static struct pcpc_deferred deferred, nested;

/* What the next hook does; cleared before it is called, so that it happens once. */
static void (*at_searched)(void), (*at_evicted)(void);

static void call_once(void (**place)(void))
{
	void (*action)(void) = *place;

	*place = NULL;
	if (action)
		action();
}

static void hook_SEARCHED(void)
{
	call_once(&at_searched);
}

static void hook_EVICTED(void)
{
	call_once(&at_evicted);
}

static void setup(void)
{
	memset(&stock, 0, sizeof(stock));
	at_searched = at_evicted = NULL;
}

static void fill(void)
{
	uint32_t slot;

	for (slot = 0; slot < PCPC_STOCK_SLOTS; slot++)
		stock.slot[slot] = pcpc_word_make(1 + slot, 10, 3);
}

static void expect_deferred(const struct pcpc_deferred *got, uint32_t owner, uint64_t count,
			    int64_t delta)
{
	ck_assert_uint_eq(got->owner, owner);
	ck_assert_uint_eq(got->count, count);
	ck_assert_int_eq(got->delta, delta);
}

static uint32_t slots_of(uint32_t owner)
{
	uint32_t slot, found = 0;

	for (slot = 0; slot < PCPC_STOCK_SLOTS; slot++)
		found += pcpc_word_owner(stock.slot[slot]) == owner;
	return found;
}

static void nested_consume_8(void)
{
	ck_assert(pcpc_stock_consume(&stock, 1, 8, 0, &marks, &nested));
}

/* G1: units that a handler took in between are not there any more. */
START_TEST(a_consume_that_was_overtaken_looks_again)
{
	struct pcpc_stock after;

	fill();
	at_searched = nested_consume_8;
	ck_assert(!pcpc_stock_consume(&stock, 1, 3, 1, &marks, &deferred));
	expect_deferred(&deferred, 0, 0, 0);
	ck_assert_uint_eq(stock.slot[0], pcpc_word_make(1, 2, 3));
	after = stock;
	at_searched = nested_consume_8;
	ck_assert(!pcpc_stock_consume(&stock, 1, 3, 1, &marks, &deferred));
	ck_assert_mem_eq(&stock, &after, sizeof(stock));
}
END_TEST

static void nested_insert_99(void)
{
	pcpc_stock_refill(&stock, 99, 20, 1, &marks, &nested);
	expect_deferred(&nested, 0, 0, 0);
}

/* G5: two interrupted inserts of one owner end in one slot. The handler takes the slot that was
 * found, or another one that came free meanwhile. */
START_TEST(interrupted_inserts_of_one_owner_share_a_slot)
{
	fill();
	stock.slot[4] = 0;
	at_searched = nested_insert_99;
	pcpc_stock_refill(&stock, 99, 5, 1, &marks, &deferred);
	expect_deferred(&deferred, 0, 0, 0);
	ck_assert_uint_eq(slots_of(99), 1);
	ck_assert_uint_eq(stock.slot[4], pcpc_word_make(99, 25, 2));
}
END_TEST

static void nested_free_and_insert_99(void)
{
	stock.slot[0] = 0;
	nested_insert_99();
}

START_TEST(an_insert_elsewhere_by_a_handler_is_seen)
{
	fill();
	stock.slot[4] = 0;
	at_searched = nested_free_and_insert_99; /* home of 99 is slot 0 */
	pcpc_stock_refill(&stock, 99, 5, 1, &marks, &deferred);
	ck_assert_uint_eq(slots_of(99), 1);
	ck_assert_uint_eq(stock.slot[0], pcpc_word_make(99, 25, 2));
	ck_assert_uint_eq(stock.slot[4], 0);
}
END_TEST

static void nested_insert_98(void)
{
	pcpc_stock_refill(&stock, 98, 20, 1, &marks, &nested);
}

/* G1: two evictions that race for one victim evict two. */
START_TEST(interrupted_evictions_take_different_victims)
{
	fill();
	at_searched = nested_insert_98;
	pcpc_stock_refill(&stock, 99, 5, 1, &marks, &deferred);
	expect_deferred(&nested, 1, 10, 3);
	expect_deferred(&deferred, 2, 10, 3);
	ck_assert_uint_eq(stock.slot[0], pcpc_word_make(98, 20, 1));
	ck_assert_uint_eq(stock.slot[1], pcpc_word_make(99, 5, 1));
}
END_TEST

static void nested_consume_of_the_new_owner(void)
{
	ck_assert(pcpc_stock_consume(&stock, 99, 5, 0, &marks, &nested));
}

/* semantics.md 1.5.2: before the victim is settled the stock serves already. */
START_TEST(a_handler_can_hit_before_the_victim_is_settled)
{
	fill();
	at_evicted = nested_consume_of_the_new_owner;
	pcpc_stock_refill(&stock, 99, 5, 1, &marks, &deferred);
	expect_deferred(&deferred, 1, 10, 3);
	ck_assert_uint_eq(stock.slot[0], pcpc_word_make(99, 0, 1));
}
END_TEST

/* stock.h: "a lost step of the hand is harmless": the newcomer of the outer eviction is taken by
 * the handler's, and handed back like anybody. */
START_TEST(a_handler_may_evict_before_the_hand_moves)
{
	fill();
	at_evicted = nested_insert_98;
	pcpc_stock_refill(&stock, 99, 5, 1, &marks, &deferred);
	expect_deferred(&deferred, 1, 10, 3);
	expect_deferred(&nested, 99, 5, 1);
	ck_assert_uint_eq(slots_of(99), 0);
	ck_assert_uint_eq(slots_of(98), 1);
	ck_assert_uint_lt(stock.hand, PCPC_STOCK_SLOTS);
}
END_TEST

static void nested_there_and_back(void)
{
	ck_assert(pcpc_stock_consume(&stock, 1, 4, 2, &marks, &nested));
	pcpc_stock_refill(&stock, 1, 4, -2, &marks, &nested);
}

/* Section 4: "Comparing the whole word makes A-B-A harmless, because an equal word is an equal
 * state." */
START_TEST(there_and_back_is_as_if_nothing_had_been)
{
	fill();
	at_searched = nested_there_and_back;
	ck_assert(pcpc_stock_consume(&stock, 1, 10, 0, &marks, &deferred));
	ck_assert_uint_eq(stock.slot[0], pcpc_word_make(1, 0, 3));
}
END_TEST

/* The random part: every hook may do anything, three deep. */
static uint64_t state;
static uint32_t owners;
static unsigned int depth;
static uint64_t put, back;
static int64_t moved, applied;

static void random_operation(void);

static void maybe_nest(void)
{
	if (depth < 3 && unit_below(&state, 3) == 0)
		random_operation();
	at_searched = at_evicted = maybe_nest;
}

static void random_operation(void)
{
	const struct pcpc_marks some = { 64, (uint32_t)unit_below(&state, 65),
					 (uint32_t)unit_below(&state, 20) };
	uint32_t owner = 1 + (uint32_t)unit_below(&state, owners);
	uint64_t count = unit_below(&state, 66);
	int64_t delta = (int64_t)unit_below(&state, 21) - 10;
	struct pcpc_deferred out;

	depth++;
	at_searched = at_evicted = maybe_nest;
	if (unit_below(&state, 2)) {
		pcpc_stock_refill(&stock, owner, count, delta, &some, &out);
		put += count;
		moved += delta;
	} else if (pcpc_stock_consume(&stock, owner, count, delta, &some, &out)) {
		back += count;
		moved += delta;
	}
	back += out.count;
	applied += out.delta;
	depth--;
}

static void check_all(void)
{
	uint64_t stocked = 0;
	int64_t held = 0;
	uint32_t slot, owner;

	for (slot = 0; slot < PCPC_STOCK_SLOTS; slot++) {
		stocked += pcpc_word_count(stock.slot[slot]);
		held += pcpc_word_delta(stock.slot[slot]);
		owner = pcpc_word_owner(stock.slot[slot]);
		if (owner && slots_of(owner) != 1)
			ck_abort_msg("owner %u is in %u slots", owner, slots_of(owner));
	}
	if (put != back + stocked || moved != applied + held)
		ck_abort_msg("lost: put %" PRIu64 ", back %" PRIu64 ", stocked %" PRIu64, put, back,
			     stocked);
}

/* G1, G5: conservation and one slot an owner, whatever interrupts what. */
START_TEST(random_interruptions_lose_nothing)
{
	uint64_t steps = unit_knob("PCPC_STEPS", 300000);

	state = unit_seed();
	for (owners = 4; owners <= 12; owners += 4) {
		setup();
		put = back = 0;
		moved = applied = 0;
		for (uint64_t step = 0; step < steps / 3; step++) {
			random_operation();
			check_all();
		}
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("stock nested");
	TCase *tests = unit_case(suite, "nested");

	tcase_add_checked_fixture(tests, setup, NULL);
	tcase_add_test(tests, a_consume_that_was_overtaken_looks_again);
	tcase_add_test(tests, interrupted_inserts_of_one_owner_share_a_slot);
	tcase_add_test(tests, an_insert_elsewhere_by_a_handler_is_seen);
	tcase_add_test(tests, interrupted_evictions_take_different_victims);
	tcase_add_test(tests, a_handler_can_hit_before_the_victim_is_settled);
	tcase_add_test(tests, a_handler_may_evict_before_the_hand_moves);
	tcase_add_test(tests, there_and_back_is_as_if_nothing_had_been);
	tcase_add_test(tests, random_interruptions_lose_nothing);
	return unit_run(suite);
}
