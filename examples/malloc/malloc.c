// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * malloc.c - libpcpcharge-malloc.so: a malloc that charges the tenants of a process.
 *
 * Stands before the allocator that a program has (the C library's, or jemalloc or mimalloc if they
 * are preloaded after it), charges every block to an owner, and gives it back to that owner when
 * it is freed, by whatever thread, and after the owner was destroyed too. A charge that does not
 * fit makes malloc() return NULL with ENOMEM.
 *
 *	LD_PRELOAD=libpcpcharge-malloc.so program
 *	LD_PRELOAD=libpcpcharge-malloc.so:libjemalloc.so.2 program
 *	cc program.c -lpcpcharge-malloc -lpcpcharge       tenants: see pcpcharge_malloc.h
 *
 * Environment, read once at the start; not in set-user-ID programs. What is malformed is told on
 * stderr, and left out: the program runs in any case.
 *	PCPC_MALLOC_MAX       limit of the process: bytes, or with K, M, G, T (powers of 1,024)
 *	PCPC_MALLOC_HIGH      usage above it is counted as an event, and shows in reports
 *	PCPC_MALLOC_REPORT    where reports go: "stderr", or a file. %p in its name becomes the
 *	                      process's id, and each report replaces the last; without %p reports
 *	                      are appended
 *	PCPC_MALLOC_FORMAT    "text" (default), "json", "prometheus"
 *	PCPC_MALLOC_SIGNAL    write a report when it comes: "USR1", "USR2", "HUP" or a number. Its
 *	                      handler only leaves a mark. The next call of this library that any
 *	                      thread makes writes the report, before it returns; a thread that
 *	                      allocates needs 24 KiB of stack for that. A program that handles the
 *	                      signal itself keeps it
 *	PCPC_MALLOC_FORK_HOOKS  "0" for programs that call liburcu-bp's fork hooks themselves, which
 *	                      only one may: without it fork() would wait for ever
 * Reports are also written at exit(); not at _exit(), exec or death by a signal.
 *
 * What is charged: see malloc_block.h. What is not: what was allocated before this library's
 * constructor ran; what others get by mmap; the operators of C++ where the next allocator brings
 * its own, as jemalloc does. With no active owner the process is charged, which is the root.
 *
 * What a program may notice: malloc_usable_size() is the size, rounded up to 16; an alignment
 * above 16 costs that many bytes of address space; 448 MiB of address space are reserved; a block
 * that begins with a page costs a system call when it is freed. fork and posix_spawn are as ever;
 * the child of a vfork must not allocate (it never may). A child of fork has its parent's charges,
 * and its own from then on. At a limit a call may wait for a grace period of liburcu-bp, though not
 * inside a read-side section: a program that uses liburcu-bp itself, and has threads that wait for
 * a lock inside one, must not allocate while it holds that lock, as it must not wait for a grace
 * period then. realloc() may fail though it makes a block smaller: where who pays from then on is
 * at a limit, and where an alignment above 16 is lost. aligned_alloc() takes powers of two only. A
 * filter of system calls has to let membarrier and rt_sigprocmask pass. What a thread allocates
 * after the destructors of its keys is charged to nobody.
 */
#define _GNU_SOURCE
#include "malloc_private.h"
#include "malloc_block.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

PCPC_API void *FAMILY(malloc)(size_t size);
PCPC_API void *FAMILY(calloc)(size_t count, size_t size);
PCPC_API void *FAMILY(realloc)(void *pointer, size_t size);
PCPC_API void *FAMILY(reallocarray)(void *pointer, size_t count, size_t size);
PCPC_API void FAMILY(free)(void *pointer);
PCPC_API int FAMILY(posix_memalign)(void **ret_pointer, size_t alignment, size_t size);
PCPC_API void *FAMILY(aligned_alloc)(size_t alignment, size_t size);
PCPC_API void *FAMILY(memalign)(size_t alignment, size_t size);
PCPC_API void *FAMILY(valloc)(size_t size);
PCPC_API void *FAMILY(pvalloc)(size_t size);
PCPC_API size_t FAMILY(malloc_usable_size)(void *pointer);

static PCPC_COLD void *no_memory(void)
{
	errno = ENOMEM;
	return NULL;
}

/* -- other people's blocks -- */

/* The page in front of a page may not be there. The kernel looks at a set of signals before it
 * looks what to do with it, and nothing can be done by that name. errno stays. */
static bool is_readable(const void *word)
{
	int saved = errno;
	long r = syscall(SYS_rt_sigprocmask, ~0, word, NULL, 8);
	bool readable = r == 0 || errno != EFAULT;

	errno = saved;
	return readable;
}

static PCPC_COLD bool is_ours_slow(const void *pointer)
{
	return !((uintptr_t)pointer & (BLOCK_GRAIN - 1)) && is_readable(block_header(pointer)) &&
	       block_is_tagged(pointer);
}

static PCPC_ALWAYS_INLINE bool is_ours(const void *pointer)
{
	return PCPC_LIKELY(block_is_near(pointer)) ? block_is_tagged(pointer)
						   : is_ours_slow(pointer);
}

/* -- making and freeing -- */

/* noinline: each of its callers is one jump. */
static PCPC_COLD void *undo(uint32_t owner, uint64_t cost)
{
	malloc_uncharge(owner, cost);
	return no_memory();
}

static PCPC_ALWAYS_INLINE void *allocate(size_t size, size_t alignment, bool zeroed)
{
	uint64_t cost = block_cost(size, alignment);
	uint32_t owner;
	void *base;

	if (PCPC_UNLIKELY(!cost))
		return no_memory();
	owner = malloc_charge(cost);
	if (PCPC_UNLIKELY(owner == CHARGE_REFUSED))
		return no_memory();
	base = zeroed ? NEXT(calloc)(1, cost) : NEXT(malloc)(cost);
	if (PCPC_UNLIKELY(!base))
		return undo(owner, cost);
	return block_make(base, cost, owner, alignment);
}

static void *allocate_aligned(size_t alignment, size_t size)
{
	return allocate(size, alignment, false);
}

/* A block that nobody was charged for may be from before next was known. */
static PCPC_COLD void release_uncharged(void *base)
{
	if (!malloc_is_early(base))
		NEXT(free)(base);
}

/* After the block: until then its owner holds it. */
static PCPC_ALWAYS_INLINE void release(void *pointer)
{
	struct block block = block_read(pointer);
	int saved = errno;

	block_header(pointer)->tag = 0;
	if (PCPC_UNLIKELY(block.owner == CHARGED_NOBODY)) {
		release_uncharged(block.base);
	} else if (PCPC_UNLIKELY(malloc_thread.leaving)) {
		malloc_release_late(block.base, block.owner, block.cost);
	} else {
		NEXT(free)(block.base);
		malloc_uncharge(block.owner, block.cost);
	}
	errno = saved;
}

/* -- changing the size -- */

/* To a block of its own, for next would lose the alignment, or did not give the old one. */
static void *move(void *pointer, size_t usable, size_t size)
{
	void *moved = allocate(size, BLOCK_GRAIN, false);

	if (!moved)
		return NULL;
	memcpy(moved, pointer, usable < size ? usable : size);
	FAMILY(free)(pointer);
	return moved;
}

/* What a change of size has been charged, and to whom; taken back if it fails. */
struct change {
	uint32_t owner;
	uint64_t taken, old; /* old: what the block's owner gets back if it succeeds */
};

/* Whoever changes the size pays for the block from then on. Where that is who paid before, only for
 * the difference: so a block may grow to the limit. */
static bool charge_change(const struct block *block, uint64_t cost, struct change *ret_change)
{
	uint64_t more = cost > block->cost ? cost - block->cost : 0;
	uint32_t owner = malloc_payer();

	if (owner == block->owner && owner != CHARGED_NOBODY) {
		if (more)
			owner = malloc_charge(more);
		*ret_change = (struct change){ owner, more, block->cost + more - cost };
		if (owner == block->owner)
			return true;
		/* Its owner is at its limit; or has just been destroyed, and another has paid. */
		if (owner == CHARGE_REFUSED)
			return false;
		malloc_uncharge(owner, more);
	}
	owner = malloc_charge(cost);
	*ret_change = (struct change){ owner, cost, block->cost };
	return owner != CHARGE_REFUSED;
}

static void *resize(void *pointer, size_t size)
{
	struct block block = block_read(pointer);
	uint64_t cost = block_cost(size, BLOCK_GRAIN);
	struct change change;
	void *base;

	if (block.base != (char *)pointer - BLOCK_GRAIN || malloc_is_early(block.base) ||
	    malloc_thread.leaving)
		return move(pointer, block.usable, size);
	if (!cost || !charge_change(&block, cost, &change))
		return no_memory();
	/* Nothing of ours is left behind where it moves. */
	block_header(pointer)->tag = 0;
	base = NEXT(realloc)(block.base, cost);
	if (!base) {
		block_header(pointer)->tag = block_tag(pointer);
		return undo(change.owner, change.taken);
	}
	malloc_uncharge(block.owner, change.old);
	return block_make(base, cost, change.owner, BLOCK_GRAIN);
}

/* -- the C library's functions -- */

void *FAMILY(malloc)(size_t size)
{
	return allocate(size, BLOCK_GRAIN, false);
}

void *FAMILY(calloc)(size_t count, size_t size)
{
	size_t product;

	if (__builtin_mul_overflow(count, size, &product))
		return no_memory();
	return allocate(product, BLOCK_GRAIN, true);
}

void FAMILY(free)(void *pointer)
{
	if (!pointer)
		return;
	if (PCPC_LIKELY(is_ours(pointer)))
		release(pointer);
	else
		NEXT(free)(pointer);
}

/* As glibc does: size 0 frees, and returns NULL. */
void *FAMILY(realloc)(void *pointer, size_t size)
{
	if (!pointer)
		return FAMILY(malloc)(size);
	if (!size) {
		FAMILY(free)(pointer);
		return NULL;
	}
	return is_ours(pointer) ? resize(pointer, size) : NEXT(realloc)(pointer, size);
}

void *FAMILY(reallocarray)(void *pointer, size_t count, size_t size)
{
	size_t product;

	if (__builtin_mul_overflow(count, size, &product))
		return no_memory();
	return FAMILY(realloc)(pointer, product);
}

static bool is_power_of_two(size_t number)
{
	return number && !(number & (number - 1));
}

/* Says by its result what the others say by errno, and leaves that alone. */
int FAMILY(posix_memalign)(void **ret_pointer, size_t alignment, size_t size)
{
	int saved = errno;
	void *pointer;

	if (!is_power_of_two(alignment) || alignment % sizeof(void *))
		return EINVAL;
	pointer = allocate_aligned(alignment, size);
	errno = saved;
	if (!pointer)
		return ENOMEM;
	*ret_pointer = pointer;
	return 0;
}

void *FAMILY(aligned_alloc)(size_t alignment, size_t size)
{
	if (is_power_of_two(alignment))
		return allocate_aligned(alignment, size);
	errno = EINVAL;
	return NULL;
}

/* As glibc does: the next power of two. */
void *FAMILY(memalign)(size_t alignment, size_t size)
{
	size_t power = BLOCK_GRAIN;

	if (alignment > SIZE_MAX / 2 + 1) {
		errno = EINVAL;
		return NULL;
	}
	while (power < alignment)
		power *= 2;
	return allocate_aligned(power, size);
}

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

void *FAMILY(valloc)(size_t size)
{
	return allocate_aligned(page_size(), size);
}

void *FAMILY(pvalloc)(size_t size)
{
	size_t page = page_size();

	if (size > SIZE_MAX - page)
		return no_memory();
	return allocate_aligned(page, (size + page - 1) & ~(page - 1));
}

size_t FAMILY(malloc_usable_size)(void *pointer)
{
	if (!pointer)
		return 0;
	return is_ours(pointer) ? block_read(pointer).usable : NEXT(usable)(pointer);
}
