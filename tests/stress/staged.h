/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * staged.h - what the staged races share: one stock that all owners of a test are in, an action at
 * a hook, and drains by another thread, whole or stopped in the middle.
 *
 * Every test runs with a fresh, empty cache of one stock per CPU and stays on one CPU. Its
 * expected values are worked out by hand; units are conserved where they add up.
 */
#ifndef STAGED_H
#define STAGED_H

#include <check.h>
#include <stdbool.h>
#include <stdint.h>

#include "cache_private.h"

#define STAGED_OWNERS 20

extern enum pcpc_engine staged_engine;
extern struct pcpc_cache *staged_cache;
extern struct pcpc_stock *staged_stock;	     /* of the CPU the test runs on */
extern const struct pcpc_marks staged_marks; /* high 100, low 50, delta_batch 10 */

/* What drains have handed to their settle function. */
extern uint64_t staged_settled[STAGED_OWNERS + 1];
extern int64_t staged_settled_delta[STAGED_OWNERS + 1];

/* Does action once, when this thread next comes to point; then it goes on. */
void staged_at(enum staged_point point, void (*action)(void));
/* The same inside a signal handler. */
void staged_signal_at(enum staged_point point, void (*action)(void));
/* Has it been done? */
bool staged_done(enum staged_point point);

/* One attempt at a refill or consume, without the retries and the bypass of the whole operation. */
enum pcpc_outcome staged_try_refill(uint32_t owner, uint64_t count,
				    struct pcpc_deferred *ret_deferred);
enum pcpc_outcome staged_try_consume(uint32_t owner, uint64_t count);

/* The whole operations, with no delta. */
bool staged_consume(uint32_t owner, uint64_t count);
struct pcpc_deferred staged_refill(uint32_t owner, uint64_t count);

/* Another thread drains everything while this one waits. */
void staged_drain(void);
/* Another thread begins to drain everything and stops in match(), when the gates are closed and no
 * word is taken yet; and goes on to its end. */
void staged_drain_begin(void);
void staged_drain_end(void);

/* Stocks 10 units of owner 1 in slot 0, 20 of owner 2 in slot 1 and so on to 70 in slot 6. */
void staged_fill(void);
uint32_t staged_slots_of(uint32_t owner);
uint64_t staged_stocked(uint32_t owner);

/* Moves this thread to another CPU. False: there is none. */
bool staged_move(void);

void staged_assert_deferred(struct pcpc_deferred deferred, uint32_t owner, uint64_t count);

void staged_add_drain_tests(TCase *tests);
void staged_add_nested_tests(TCase *tests);

#endif
