/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * malloc_next_failing.h - telling malloc_next_failing.c when to fail, and asking what it gave out.
 */
#ifndef MALLOC_NEXT_FAILING_H
#define MALLOC_NEXT_FAILING_H

/* From now on so many calls are served; negative: all. */
void next_fail_after(long calls);

/* Blocks given out and not yet freed. */
long next_balance(void);

/* A block of its own, for free() only, that begins with a page; the page in front is not there. */
void *next_behind_hole(void);

/* It is preloaded, not linked. */
#pragma weak next_fail_after
#pragma weak next_balance
#pragma weak next_behind_hole

#endif
