/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * owner_staged_counter.h - the hook of owner_staged_counter.c.
 */
#ifndef PCPCHARGE_TESTS_OWNER_STAGED_COUNTER_H
#define PCPCHARGE_TESTS_OWNER_STAGED_COUNTER_H

#include <stdatomic.h>

/* Called with the counter that is about to be changed; NULL: nobody is. */
extern void (*_Atomic before_exchange)(const void *word);

#endif
