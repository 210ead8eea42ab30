/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * malloc_private.h - what the files of libpcpcharge-malloc.so share.
 *
 *	malloc.c           the functions of the C library, and how to use it all
 *	malloc_block.h     how a block knows its owner
 *	malloc_next.c      the next allocator in line, and a little memory until it is known
 *	malloc_charge.c    who pays, and what happens at a limit
 *	malloc_settings.c  the environment
 *	malloc_start.c     begin, end and fork
 *	malloc_report.c    reports at exit and on a signal
 */
#ifndef MALLOC_PRIVATE_H
#define MALLOC_PRIVATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pcpcharge/pcpcharge.h>

#include "pcpcharge_malloc.h"

/*
 * A test program that brings an allocator of its own (a sanitizer's) has these files compiled into
 * it with MALLOC_PREFIX: the functions get another name, and next is the program's allocator.
 */
#ifdef MALLOC_PREFIX
#define MALLOC_JOIN_(prefix, name) prefix##name
#define MALLOC_JOIN(prefix, name) MALLOC_JOIN_(prefix, name)
#define FAMILY(name) MALLOC_JOIN(MALLOC_PREFIX, name)
#else
#define FAMILY(name) name
#endif

#define MALLOC_THREAD_LOCAL _Thread_local __attribute__((tls_model("initial-exec")))

/* -- malloc_next.c -- */

typedef void *malloc_fn(size_t size);
typedef void *calloc_fn(size_t count, size_t size);
typedef void *realloc_fn(void *block, size_t size);
typedef void free_fn(void *block);
typedef size_t usable_fn(void *block);

/* The next allocator. Never NULL: until it has been looked for, these are functions that look. */
struct malloc_next {
	_Atomic(malloc_fn *) malloc;
	_Atomic(calloc_fn *) calloc;
	_Atomic(realloc_fn *) realloc;
	_Atomic(free_fn *) free;
	_Atomic(usable_fn *) usable;
};
extern struct malloc_next malloc_next;

/* Relaxed: a function that was found is the same function whoever found it, and what it needs is
 * its own business; whoever still reads the old one looks once more. */
#define NEXT(function) atomic_load_explicit(&malloc_next.function, memory_order_relaxed)

/* What next is said to have given came from the memory that is used until next is known. Such a
 * block is charged to nobody, and is never freed. */
bool malloc_is_early(const void *base);

/* -- malloc_charge.c -- */

/* What malloc may do; only ever goes from EARLY to OPEN, between OPEN and CHORES, and to CLOSED. */
enum malloc_mode {
	MODE_EARLY, /* the constructor has not run, or there is no domain: charge nobody */
	MODE_OPEN,
	MODE_CHORES, /* charge, but first do what a signal handler or a read-side section left */
	MODE_CLOSED, /* the destructor has run: charge nobody, and give nothing back */
};

/* What everybody reads, and nobody writes once the mode is OPEN, the mode apart. */
struct malloc_state {
	struct pcpc_domain *domain;
	struct pcpc_owner *root;
	uint32_t root_id;
	_Atomic int mode;
};
extern struct malloc_state malloc_state;

struct malloc_thread {
	bool registered;  /* with liburcu-bp: from now on a charge allocates nothing */
	bool registering; /* what is allocated meanwhile is charged to nobody */
	bool forking;	  /* in handlers of pthread_atfork() */
	bool leaving;	  /* the destructors of its keys have run */
};
extern MALLOC_THREAD_LOCAL struct malloc_thread malloc_thread;

#define CHARGED_NOBODY 0u
#define CHARGE_REFUSED UINT32_MAX

/* The same as those without _slow, from the beginning; and what is left where a first try has
 * answered r. */
PCPC_COLD uint32_t malloc_charge_slow(uint64_t cost);
PCPC_COLD uint32_t malloc_charge_hard(struct pcpc_owner *owner, uint64_t cost, int r);
PCPC_COLD void malloc_uncharge_slow(uint32_t id, uint64_t cost);

/* May this thread charge? Acquire: pairs with the store in start(); the domain is made. */
static PCPC_ALWAYS_INLINE bool malloc_is_ready(void)
{
	return PCPC_LIKELY(malloc_thread.registered) &&
	       PCPC_LIKELY(atomic_load_explicit(&malloc_state.mode, memory_order_acquire) ==
			   MODE_OPEN);
}

static PCPC_ALWAYS_INLINE struct pcpc_owner *malloc_active(void)
{
	struct pcpc_owner *owner = pcpc_active(malloc_state.domain);

	return owner ? owner : malloc_state.root;
}

static PCPC_ALWAYS_INLINE uint32_t malloc_id(const struct pcpc_owner *owner)
{
	return owner == malloc_state.root ? malloc_state.root_id : pcpc_owner_id(owner);
}

/* Benchmarks compare with other ways to count, and with none. */
#ifdef MALLOC_RIVAL
#include MALLOC_RIVAL
#else

/* Charges the owner that this thread works for. Returns its id, CHARGED_NOBODY or CHARGE_REFUSED.
 * errno stays. */
static PCPC_ALWAYS_INLINE uint32_t malloc_charge(uint64_t cost)
{
	struct pcpc_owner *owner;
	int r;

	if (!malloc_is_ready())
		return malloc_charge_slow(cost);
	owner = malloc_active();
	r = pcpc_charge_flags(owner, cost, PCPC_NOWAIT, NULL);
	return PCPC_LIKELY(r == 0) ? malloc_id(owner) : malloc_charge_hard(owner, cost, r);
}

/* Gives back to an owner; nothing happens for CHARGED_NOBODY. It lives: it has the units. */
static PCPC_ALWAYS_INLINE void malloc_uncharge(uint32_t id, uint64_t cost)
{
	if (!malloc_is_ready() || id == CHARGED_NOBODY)
		malloc_uncharge_slow(id, cost);
	else
		pcpc_uncharge(id == malloc_state.root_id
				      ? malloc_state.root
				      : pcpc_owner_by_id(malloc_state.domain, id),
			      cost);
}

#endif

/* From now on threads are noticed when they end. */
void malloc_watch_threads(void);

/* A block that a thread frees which is leaving; and all of those, by one that is not. */
PCPC_COLD void malloc_release_late(void *base, uint32_t owner, uint64_t cost);
void malloc_settle_late(void);

/* Who would be charged now. */
uint32_t malloc_payer(void);

/* Something is to be done by a later call: see malloc_do_chores(). Signal-safe. */
void malloc_want_chores(void);

/* -- malloc_settings.c -- */

#define MALLOC_PATH_MAX 4096

struct malloc_settings {
	uint64_t max, high; /* PCPC_UNLIMITED: none */
	enum pcpc_format format;
	int signal;		      /* 0: none */
	bool fork_hooks;	      /* liburcu-bp's are called by the library */
	char report[MALLOC_PATH_MAX]; /* "": none */
};
extern struct malloc_settings malloc_settings;

void malloc_read_settings(void);

/* A line to stderr: the setting, or NULL, and what is wrong. Allocates nothing. */
void malloc_complain(const char *setting, const char *text);

/* -- malloc_report.c -- */

/* Writes a report, if one is wanted. errno stays. */
void malloc_report(void);

/* Has a report written when that signal comes, unless the program handles it already. */
void malloc_report_on(int signal);

/* Takes a wish for a report. */
bool malloc_report_wanted(void);

#endif
