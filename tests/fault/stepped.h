/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * stepped.h - the marks of stepped.c.
 */
#ifndef STEPPED_H
#define STEPPED_H

void stepping_begins(void);
void stepping_ends(void);

/* How many of the consumes hit. */
extern volatile int stepped_hits;

#endif
