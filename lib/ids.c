// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * ids.c - which owner ids of a domain are in use; lowest free first, in four steps. The caller
 * holds the tree mutex.
 */
#include "owner_private.h"

static uint32_t first_zero(uint64_t bits)
{
	return (uint32_t)__builtin_ctzll(~bits);
}

/* The lowest free id; 0: none. */
uint32_t pcpc_id_take(struct pcpc_ids *ids)
{
	uint32_t i, word, group;

	for (i = 0; i < sizeof(ids->fuller) / sizeof(ids->fuller[0]); i++)
		if (~ids->fuller[i])
			break;
	if (i == sizeof(ids->fuller) / sizeof(ids->fuller[0]))
		return 0;
	group = i * 64 + first_zero(ids->fuller[i]);
	word = group * 64 + first_zero(ids->full[group]);
	i = word * 64 + first_zero(ids->used[word]);
	ids->used[word] |= 1ull << i % 64;
	if (!~ids->used[word])
		ids->full[group] |= 1ull << word % 64;
	if (!~ids->full[group])
		ids->fuller[group / 64] |= 1ull << group % 64;
	return i;
}

void pcpc_id_give(struct pcpc_ids *ids, uint32_t id)
{
	ids->used[id / 64] &= ~(1ull << id % 64);
	ids->full[id / 64 / 64] &= ~(1ull << id / 64 % 64);
	ids->fuller[id / 64 / 64 / 64] &= ~(1ull << id / 64 / 64 % 64);
}
