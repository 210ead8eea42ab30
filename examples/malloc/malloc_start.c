// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * malloc_start.c - begin, end and fork.
 *
 * The constructor makes the domain; what is allocated before is charged to nobody. The destructor
 * writes the report, and from then on nothing is charged or given back: what comes later may find
 * liburcu-bp gone. Whatever fails here is told on stderr, and leaves the program as it would be
 * without this library.
 */
#define _GNU_SOURCE
#include "malloc_private.h"

#include <errno.h>
#include <pthread.h>

static int make_domain(void)
{
	/* No descriptor: programs close those they do not know, and expect the lowest numbers for
	 * their own. */
	struct pcpc_domain_config config = {
		.size = sizeof(config),
		.name = "malloc",
		.unit = "bytes",
		.batch = PCPC_BATCH_BYTES,
		.flags = PCPC_DOMAIN_NO_EVENTFD |
			 (malloc_settings.fork_hooks ? 0 : PCPC_DOMAIN_NO_FORK_HOOKS),
	};
	int r = pcpc_domain_create(&config, &malloc_state.domain);

	if (r < 0)
		return r;
	malloc_state.root = pcpc_domain_root(malloc_state.domain);
	malloc_state.root_id = pcpc_owner_id(malloc_state.root);
	r = pcpc_owner_set_high(malloc_state.root, malloc_settings.high);
	return r < 0 ? r : pcpc_owner_set_max(malloc_state.root, malloc_settings.max);
}

static void begin_fork(void)
{
	malloc_thread.forking = true;
}

static void end_fork(void)
{
	malloc_thread.forking = false;
}

static __attribute__((constructor)) void start(void)
{
	int saved = errno, r;

	malloc_read_settings();
	/* The next allocator's fork handlers are to be installed before the library's, which must
	 * not find it locked; and ours after, which stand around them. */
	NEXT(free)(NEXT(malloc)(1));
	malloc_watch_threads();
	r = make_domain();
	if (r == 0)
		r = -pthread_atfork(begin_fork, end_fork, end_fork);
	if (r < 0) {
		malloc_complain(NULL, "cannot make the domain; nothing is charged or limited");
	} else {
		/* Release: pairs with malloc_is_ready(). */
		atomic_store_explicit(&malloc_state.mode, MODE_OPEN, memory_order_release);
		if (malloc_settings.signal)
			malloc_report_on(malloc_settings.signal);
	}
	errno = saved;
}

static __attribute__((destructor)) void end(void)
{
	int mode = atomic_exchange(&malloc_state.mode, MODE_CLOSED);

	if (mode != MODE_OPEN && mode != MODE_CHORES)
		return;
	malloc_settle_late();
	malloc_report();
}
