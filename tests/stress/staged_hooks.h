/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * staged_hooks.h - stops an operation between its search and its commit, and between an eviction
 * and its settling. Given to the compiler by -include; includes nothing, see stress_hooks.h.
 */
#ifndef STAGED_HOOKS_H
#define STAGED_HOOKS_H

enum staged_point { STAGED_SEARCHED, STAGED_EVICTED, STAGED_POINTS };
void staged_hook(enum staged_point point);

#define PCPC_HOOK(point) staged_hook(STAGED_##point)

#endif
