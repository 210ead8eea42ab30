/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * cache.h - the charge cache: the stocks of all CPUs.
 *
 * For programs with counters of their own. Units that were taken from a counter in batches are kept
 * on the CPU that runs (refill), used there for two or three nanoseconds each (consume), and taken
 * back from all CPUs when they are wanted (drain). What an operation takes out of a stock it hands
 * back in a struct pcpc_deferred, and the caller settles it afterwards: it gives the units back to
 * its counter and adds the delta to its statistic. The cache itself never touches a counter.
 *
 * A cache keeps no reference on any owner: an id is a number here. Do not reuse one before it is
 * drained.
 *
 * Define PCPC_INLINE before the first include to have the hit path of pcpc_cache_consume() and
 * pcpc_cache_refill() compiled into your code (see the end of this file).
 */
#ifndef PCPCHARGE_CACHE_H
#define PCPCHARGE_CACHE_H

#include <pcpcharge/base.h>
#include <pcpcharge/stock.h>

PCPC_BEGIN_DECLS

struct pcpc_cache;

/* How words are changed: one way per cache, chosen when it is created and never mixed. */
enum pcpc_engine {
	PCPC_ENGINE_AUTO,   /* PCPC_ENGINE in the environment (atomic, rseq), else rseq where it
			       works, else atomic */
	PCPC_ENGINE_RSEQ,   /* restartable sequences: Linux 5.10, glibc 2.35, x86-64 or aarch64 */
	PCPC_ENGINE_ATOMIC, /* compare-and-exchange: everywhere */
};

/* What tells stocks apart. */
enum pcpc_index {
	PCPC_INDEX_AUTO,   /* mm_cid where there is one and the process may run on less than half of
			      the possible CPUs */
	PCPC_INDEX_CPU,	   /* the CPU number */
	PCPC_INDEX_MM_CID, /* the kernel's concurrency id (Linux 6.3): as many stocks as threads run
			      at once */
};

/* All zero but size means the defaults. */
struct pcpc_cache_config {
	size_t size;		 /* sizeof(struct pcpc_cache_config) */
	enum pcpc_engine engine; /* default PCPC_ENGINE_AUTO */
	enum pcpc_index index;	 /* default PCPC_INDEX_AUTO */
	uint32_t stocks_per_cpu; /* 64 bytes each; rounded up to a power of two, at most 262,144; 0:
				    4,096 */
};

/**
 * pcpc_cache_create: make a cache, all stocks empty.
 * @config: may be NULL for the defaults; not kept
 * @ret_cache: the new cache, the caller's to destroy; untouched on failure
 *
 * Reserves address space for every CPU the machine may ever have; memory is used where owners are.
 *
 * Returns 0; -EINVAL: ret_cache is NULL, size is too small or names fields this library does not
 * know with values in them, an unknown engine or index, too many stocks, or PCPC_ENGINE in the
 * environment is neither atomic nor rseq; -ENOSYS: the engine or index that was asked for does not
 * work here; -ENOMEM.
 *
 * Threads: any number at a time, not from signal handlers or fork handlers. The first call of a
 * process registers it for membarrier, which takes some microseconds, longer once it has threads.
 *
 * Fork: the child has the same cache with what its stocks held. The first call also installs fork
 * handlers, which hold the drains' mutexes while a process forks. So if fork handlers of yours take
 * a lock that a settle function takes, install them before the first call; and do not fork with
 * such a lock held. Make the first cache before several threads fork. Where domains exist
 * (owner.h) and other threads fork, caches are not made or destroyed inside a read-side section of
 * liburcu-bp.
 */
PCPC_API int pcpc_cache_create(const struct pcpc_cache_config *config,
			       struct pcpc_cache **ret_cache);

/**
 * pcpc_cache_destroy: free a cache. Units that are still stocked are forgotten: drain first to have
 * them back.
 * @cache: may be NULL
 *
 * Threads: nothing else may use the cache, now or later. Not from signal handlers, nor from a match
 * or settle function.
 */
PCPC_API void pcpc_cache_destroy(struct pcpc_cache *cache);

/**
 * pcpc_cache_engine: the engine in use, PCPC_ENGINE_RSEQ or PCPC_ENGINE_ATOMIC; PCPC_ENGINE_AUTO if
 * cache is NULL. Safe everywhere.
 */
PCPC_API enum pcpc_engine pcpc_cache_engine(const struct pcpc_cache *cache);

/**
 * pcpc_cache_consume: take units for an owner out of the running CPU's stock.
 * @cache: the cache
 * @owner: 1..PCPC_OWNER_MAX
 * @count: units, any value; more than is stocked here is a miss
 * @delta: to move the coupled statistic by; outside PCPC_DELTA_MIN..PCPC_DELTA_MAX is a miss
 * @marks: only delta_batch is read
 * @ret_deferred: set in every case, to owner 0 where there is nothing to settle
 *
 * Returns true if the stock served all of it, else false and nothing has changed: the units are not
 * here, the stock is being drained, eight attempts were interrupted, or an argument is NULL or out
 * of range. Take them from your counter then, and refill what you took too much. No units and no
 * delta is a no-op and true.
 *
 * Threads: any number at a time, signal handlers at any instruction included. Never blocks, locks,
 * allocates or calls the system. Gives no ordering: a consume does not see what another thread did
 * before its refill, beyond the units.
 */
PCPC_API bool pcpc_cache_consume(struct pcpc_cache *cache, uint32_t owner, uint64_t count,
				 int64_t delta, const struct pcpc_marks *marks,
				 struct pcpc_deferred *ret_deferred);

/**
 * pcpc_cache_refill: put units of an owner, already taken from its counter, into the running CPU's
 * stock.
 * @cache: the cache
 * @owner: 1..PCPC_OWNER_MAX
 * @count: units, any value; more than high bypasses the stock
 * @delta: to move the coupled statistic by; outside the field, or full in an insert, bypasses the
 * stock
 * @marks: see struct pcpc_marks; any of them out of range bypasses the stock
 * @ret_deferred: what the caller must settle now, owner 0 where there is nothing
 *
 * Cannot fail: what the stock does not take (bypass) is deferred whole and no slot changes. It
 * defers what it trimmed or cleared of the owner's own slot, or the word of another owner whom it
 * evicted, never both. (The atomic engine may add to it what it finds in a second slot of the
 * owner, which racing inserts have left.) NULL or bad arguments bypass, so that nothing is lost:
 * what was given stands in ret_deferred, also for an owner out of range. With ret_deferred NULL
 * nothing is done and the units stay with the caller.
 *
 * Threads and ordering: as pcpc_cache_consume().
 */
PCPC_API void pcpc_cache_refill(struct pcpc_cache *cache, uint32_t owner, uint64_t count,
				int64_t delta, const struct pcpc_marks *marks,
				struct pcpc_deferred *ret_deferred);

/* Shall this owner's words be taken? Quick, and calls nothing of ours, for gates are closed. May be
 * asked more than once about one word, and by another thread that drains at the same time. */
typedef bool pcpc_match_fn(uint32_t owner, void *context);

/*
 * Receives one word that was taken: never an empty one. No gate is closed. It may consume and
 * refill; it must not drain (this cache or another), fork, create or destroy a cache, or take a
 * lock that somebody holds who drains; and like match() it must return, by no other way. Of the
 * calls on owners (owner.h) it may make those that are signal-safe, in threads that are registered.
 * May be called by another thread that drains at the same time, while the one that asked waits.
 */
typedef void pcpc_settle_fn(const struct pcpc_deferred *deferred, void *context);

/**
 * pcpc_cache_drain: take every word for which match() says yes out of the stocks of all CPUs and
 * hand it to settle().
 * @cache: the cache
 * @match: which owners, not NULL
 * @settle: where their units and deltas go, not NULL
 * @context: for both
 *
 * When it returns, everything that was stocked for those owners before the call has been settled,
 * and their slots were free once; what a refill in progress had taken out is that refill's to
 * settle. While a stock is drained its own CPU bypasses it; nothing waits
 * for a drain but another drain, and drains that wait are served together by the next round. Words
 * that match for two of them go to one.
 *
 * Returns 0; -EINVAL: an argument is NULL; -EDEADLK: called by match(), settle() or a fork handler;
 * else what
 * membarrier answered (-EPERM where a seccomp filter came later): the stocks are open again, and
 * what had not been settled by then is still in them.
 *
 * Threads: any number at a time; blocks. Not from signal handlers. Fork waits for a drain to end.
 * What was done before a refill whose units it takes has happened before settle() is called.
 */
PCPC_API int pcpc_cache_drain(struct pcpc_cache *cache, pcpc_match_fn *match,
			      pcpc_settle_fn *settle, void *context);

/**
 * pcpc_cache_stocked: the units stocked for one owner on all CPUs, a snapshot that is exact while
 * nobody moves them.
 *
 * Returns 0 for a NULL cache or an owner out of range. Safe everywhere; looks at one stock a CPU.
 */
PCPC_API uint64_t pcpc_cache_stocked(struct pcpc_cache *cache, uint32_t owner);

/* Figures of one cache. size is set by the caller; a library that knows fewer fields fills those.
 */
struct pcpc_cache_stats {
	size_t size;		 /* sizeof(struct pcpc_cache_stats) */
	enum pcpc_engine engine; /* in use */
	enum pcpc_index index;	 /* in use: PCPC_INDEX_CPU or PCPC_INDEX_MM_CID */
	uint32_t nr_cpus;	 /* indices there are stocks for */
	uint32_t stocks_per_cpu;
	uint64_t drains;	 /* calls of pcpc_cache_drain() that were served, or failed */
	uint64_t rounds;	 /* rounds they took; fewer where they combined */
	uint64_t membarriers;	 /* system calls those made, refused ones too */
	uint64_t bytes_resident; /* of stocks, in memory now; pages of zeroes that were looked at
				    too */
};

/**
 * pcpc_cache_get_stats: figures of one cache; counters are a snapshot.
 *
 * Returns 0; -EINVAL: an argument is NULL or size is smaller than the first version's. Threads:
 * any; not from signal handlers (it asks the kernel for the resident pages, which costs as much as
 * there is address space).
 */
PCPC_API int pcpc_cache_get_stats(struct pcpc_cache *cache, struct pcpc_cache_stats *ret_stats);

/**
 * pcpc_inline_register: tells the library which layout an object with inlined fast paths was
 * compiled for. Called by such an object when it is loaded, by itself. If it is not this library's
 * layout, the inlined fast paths of all objects are shut and every operation is done by the
 * library: slower, and right.
 */
PCPC_API void pcpc_inline_register(uint32_t layout);

PCPC_END_DECLS

/*
 * The inline fast path, opt-in. The two functions below are used in place of the library's. Only
 * the rseq engine has it; elsewhere the call is made as ever.
 *
 * An object that uses it must never be dlclosed: a thread may still point at one of the object's
 * sequence descriptors, and the kernel kills a thread whose descriptor is gone. An object that may
 * be dlclosed defines PCPC_INLINE_UNLOADABLE as well; each operation then clears the thread's
 * pointer, for one more store. (The shared library
 * itself is never unloaded; the static one is part of whatever it is linked into.)
 */
#ifdef PCPC_INLINE
#include <pcpcharge/inline.h>

#if PCPC_HAVE_RSEQ

/* Before other constructors, for they may already charge. */
static void __attribute__((constructor(101), used)) pcpc_inline_loaded(void)
{
	pcpc_inline_register(PCPC_LAYOUT);
}

static PCPC_ALWAYS_INLINE bool pcpc_cache_consume_inline(struct pcpc_cache *cache, uint32_t owner,
							 uint64_t count, int64_t delta,
							 const struct pcpc_marks *marks,
							 struct pcpc_deferred *ret_deferred)
{
	const struct pcpc_fast *fast = (const struct pcpc_fast *)(const void *)cache;
	pcpc_word change;

	if (PCPC_LIKELY(cache && marks && ret_deferred && !delta) &&
	    PCPC_LIKELY(pcpc_fast_consume(fast, owner, count, marks, &change) == PCPC_FAST_DONE)) {
		pcpc_defer(ret_deferred, 0, 0, 0);
		return true;
	}
	return pcpc_cache_consume(cache, owner, count, delta, marks, ret_deferred);
}

static PCPC_ALWAYS_INLINE void pcpc_cache_refill_inline(struct pcpc_cache *cache, uint32_t owner,
							uint64_t count, int64_t delta,
							const struct pcpc_marks *marks,
							struct pcpc_deferred *ret_deferred)
{
	const struct pcpc_fast *fast = (const struct pcpc_fast *)(const void *)cache;
	pcpc_word change;

	if (PCPC_LIKELY(cache && marks && ret_deferred && !delta) &&
	    PCPC_LIKELY(pcpc_fast_refill(fast, owner, count, marks, &change) == PCPC_FAST_DONE))
		pcpc_defer(ret_deferred, 0, 0, 0);
	else
		pcpc_cache_refill(cache, owner, count, delta, marks, ret_deferred);
}

#define pcpc_cache_consume(...) pcpc_cache_consume_inline(__VA_ARGS__)
#define pcpc_cache_refill(...) pcpc_cache_refill_inline(__VA_ARGS__)

#endif
#endif

#endif
