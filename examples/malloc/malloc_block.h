/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * malloc_block.h - how a block knows its owner: 16 bytes in front of what the program gets.
 *
 * What is charged is what the next allocator is asked for: the size, rounded up to 16, the 16 bytes
 * in front, and the alignment where that is above 16. It is the same over every allocator, and all
 * that malloc_usable_size() promises is paid for; what the next allocator rounds up, or keeps for
 * itself, is not in it.
 *
 *	word      63..20 cost / 16    19..0 owner id, 0: nobody was charged
 *	offset    where the block begins, in front of the program's pointer, / 16
 *	tag       made from the address: a block without it is another allocator's
 *
 * A stray write to it may send a block to another owner, as one to the C library's own header may
 * do worse. The tag is wiped by free(): what a block has cost is not given back twice, and a block
 * that is freed twice is the next allocator's to complain about.
 */
#ifndef MALLOC_BLOCK_H
#define MALLOC_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pcpcharge/base.h>

#define BLOCK_GRAIN 16u
#define BLOCK_OWNER_BITS 20
#define BLOCK_PAGE 4096u /* no page is smaller */
#define BLOCK_COST_MAX ((uint64_t)1 << 47)
#define BLOCK_ALIGNMENT_MAX ((size_t)1 << 35)

struct block_header {
	uint64_t word;
	uint32_t offset, tag;
};

PCPC_STATIC_ASSERT(sizeof(struct block_header) == BLOCK_GRAIN, "keeps alignment");
PCPC_STATIC_ASSERT(PCPC_OWNER_MAX < 1u << BLOCK_OWNER_BITS, "ids fit");

/* A block as it was found. */
struct block {
	char *base; /* as the next allocator knows it */
	uint64_t cost;
	uint32_t owner;
	size_t usable;
};

/* What a block of size bytes costs; 0: no allocator has that much. */
static inline uint64_t block_cost(size_t size, size_t alignment)
{
	uint64_t cost;

	if (size > BLOCK_COST_MAX - 2 * BLOCK_GRAIN || alignment > BLOCK_ALIGNMENT_MAX)
		return 0;
	cost = ((uint64_t)size + !size + BLOCK_GRAIN - 1) & ~(uint64_t)(BLOCK_GRAIN - 1);
	cost += alignment > BLOCK_GRAIN ? alignment : BLOCK_GRAIN;
	return cost <= BLOCK_COST_MAX ? cost : 0;
}

static inline struct block_header *block_header(const void *pointer)
{
	return (struct block_header *)((uintptr_t)pointer - BLOCK_GRAIN);
}

static inline uint32_t block_tag(const void *pointer)
{
	return (uint32_t)(((uint64_t)(uintptr_t)pointer * 0x9e3779b97f4a7c15u) >> 32) ^ 0x70637063u;
}

/* Makes the block at base one of an owner. Returns the program's pointer. */
static inline void *block_make(void *base, uint64_t cost, uint32_t owner, size_t alignment)
{
	uintptr_t first = (uintptr_t)base + BLOCK_GRAIN;
	char *pointer = (char *)base + BLOCK_GRAIN;
	struct block_header *header;

	if (alignment > BLOCK_GRAIN)
		pointer += -first & (alignment - 1);
	header = block_header(pointer);
	header->word = cost / BLOCK_GRAIN << BLOCK_OWNER_BITS | owner;
	header->offset = (uint32_t)((size_t)(pointer - (char *)base) / BLOCK_GRAIN);
	header->tag = block_tag(pointer);
	return pointer;
}

/* The header may be looked at without asking: it is on the page of the pointer. */
static inline bool block_is_near(const void *pointer)
{
	return !((uintptr_t)pointer & (BLOCK_GRAIN - 1)) && (uintptr_t)pointer & (BLOCK_PAGE - 1);
}

static inline bool block_is_tagged(const void *pointer)
{
	return block_header(pointer)->tag == block_tag(pointer);
}

static inline struct block block_read(void *pointer)
{
	const struct block_header *header = block_header(pointer);
	size_t offset = (size_t)header->offset * BLOCK_GRAIN;
	uint64_t cost = (header->word >> BLOCK_OWNER_BITS) * BLOCK_GRAIN;

	return (struct block){ (char *)pointer - offset, cost, header->word & PCPC_OWNER_MAX,
			       cost - offset };
}

#endif
