/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * owner_twins_hooks.h - what owner_twins.c puts into the library. Given to the compiler by
 * -include, before every source, so it includes nothing itself.
 */
#ifndef OWNER_TWINS_HOOKS_H
#define OWNER_TWINS_HOOKS_H

enum twins_grace { GRACE_LIVE, GRACE_IN_HAND, GRACE_SURPLUS, GRACE_EVICTED, GRACES };
void twins_grace(enum twins_grace which);
__UINT64_TYPE__ twins_units_left(__UINT64_TYPE__ usage);

#define PCPC_GRACE(which) twins_grace(GRACE_##which)
#define PCPC_UNITS_LEFT(books) twins_units_left(atomic_load(&(books)->usage))

#endif
