// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * rival_inline.c - the charge cache with its fast path compiled in.
 */
#define PCPC_INLINE
#include "rival_ours.h"

static struct ours inline_state = { .engine = PCPC_ENGINE_RSEQ, .index = PCPC_INDEX_CPU };

const struct rival rival_inline = {
	.name = "ours_inline",
	.label = "ours, inlined",
	.state = &inline_state,
	OURS_RIVAL,
};
