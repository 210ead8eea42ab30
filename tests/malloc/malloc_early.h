/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * malloc_early.h - what a program asks malloc_early.c.
 */
#ifndef MALLOC_EARLY_H
#define MALLOC_EARLY_H

#include <stdbool.h>

#include "pcpcharge_malloc.h"

/* Its constructor ran when there was no domain yet. */
bool early_was_early(void);

/* Changes and frees what its constructor made, and makes new blocks. */
void early_go_on(void);

/* It is preloaded, not linked. */
#pragma weak early_was_early
#pragma weak early_go_on
#pragma weak pcpc_malloc_domain

#endif
