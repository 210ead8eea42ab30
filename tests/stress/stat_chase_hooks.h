/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * stat_chase_hooks.h - what stat_chase.c puts into the library. Given to the compiler by -include,
 * before every source, so it includes nothing itself.
 */
#ifndef STAT_CHASE_HOOKS_H
#define STAT_CHASE_HOOKS_H

struct pcpc_owner;
void chase_step(struct pcpc_owner *owner);
extern _Bool chase_stops; /* the twin */

#define PCPC_FLUSH_STEP(owner) chase_step(owner)
#define PCPC_PAST_THRESHOLD      \
	{                        \
		if (chase_stops) \
			break;   \
		continue;        \
	}

#endif
