// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * rival_extern.c - the charge cache called as a library: each engine, and each index.
 */
#include "rival_ours.h"

static struct ours extern_state = { .engine = PCPC_ENGINE_RSEQ, .index = PCPC_INDEX_CPU };
static struct ours mm_cid_state = { .engine = PCPC_ENGINE_RSEQ, .index = PCPC_INDEX_MM_CID };
static struct ours atomic_state = { .engine = PCPC_ENGINE_ATOMIC, .index = PCPC_INDEX_CPU };

const struct rival rival_extern = {
	.name = "ours_extern",
	.label = "ours, called",
	.state = &extern_state,
	OURS_RIVAL,
};
const struct rival rival_mm_cid = {
	.name = "ours_mm_cid",
	.label = "ours, called, by mm_cid",
	.state = &mm_cid_state,
	OURS_RIVAL,
};
const struct rival rival_atomic = {
	.name = "ours_atomic",
	.label = "ours, called, atomic engine",
	.state = &atomic_state,
	OURS_RIVAL,
};
