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
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * The domain has a descriptor for its life, and programs expect the lowest numbers for theirs: a
 * shell would close ours to have number 3. So all below a high number are taken while the domain is
 * made. Not the highest, and some are left, for another constructor may have started a thread.
 */
#define DESCRIPTOR_WANTED 256
#define DESCRIPTORS_LEFT 64

struct filling {
	int numbers[DESCRIPTOR_WANTED];
	int count;
};

static void take_low_numbers(struct filling *filling)
{
	struct rlimit limit;
	int wanted = DESCRIPTOR_WANTED, fd;

	filling->count = 0;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur < 2 * DESCRIPTORS_LEFT)
		return;
	if (limit.rlim_cur < DESCRIPTOR_WANTED + DESCRIPTORS_LEFT)
		wanted = (int)limit.rlim_cur - DESCRIPTORS_LEFT;
	fd = open("/", O_PATH | O_CLOEXEC);
	while (fd >= 0) {
		filling->numbers[filling->count++] = fd;
		if (fd >= wanted - 1 || filling->count == DESCRIPTOR_WANTED)
			break;
		fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	}
}

/* Mostly they are all in a row, and nobody else has one between. */
static void give_low_numbers(const struct filling *filling)
{
	const int *numbers = filling->numbers;
	int i, last = filling->count - 1;

	if (last >= 0 && numbers[last] - numbers[0] == last &&
	    syscall(SYS_close_range, numbers[0], numbers[last], 0) == 0)
		return;
	for (i = 0; i <= last; i++)
		close(numbers[i]);
}

static int make_domain(void)
{
	struct pcpc_domain_config config = {
		.size = sizeof(config), .name = "malloc", .unit = "bytes", .batch = PCPC_BATCH_BYTES
	};
	struct filling filling;
	int r;

	take_low_numbers(&filling);
	r = pcpc_domain_create(&config, &malloc_state.domain);
	give_low_numbers(&filling);
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

	if (mode == MODE_OPEN || mode == MODE_CHORES)
		malloc_report();
}
