/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * owner_disturbed.h - how often owner_disturbed.c disturbs.
 */
#ifndef PCPCHARGE_TESTS_OWNER_DISTURBED_H
#define PCPCHARGE_TESTS_OWNER_DISTURBED_H

#include <stdatomic.h>
#include <stdint.h>

extern _Atomic uint32_t disturbed; /* one atomic step in so many; 0: none */

#endif
