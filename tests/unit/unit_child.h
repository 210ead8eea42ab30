/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * unit_child.h - children of fork, for tests: what they find wrong ends them with a status, for
 * Check cannot be told; and they are killed where they hang.
 */
#ifndef UNIT_CHILD_H
#define UNIT_CHILD_H

#include <sys/wait.h>

#include "unit_support.h"

#define CHILD_SECONDS 60

#define IN_CHILD(condition)                                                              \
	do {                                                                             \
		if (!(condition)) {                                                      \
			fprintf(stderr, "%s:%d: in the child: %s\n", __FILE__, __LINE__, \
				#condition);                                             \
			_exit(1);                                                        \
		}                                                                        \
	} while (0)

static inline pid_t child_forked(void)
{
	pid_t child;

	fflush(NULL);
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0)
		alarm(CHILD_SECONDS);
	return child;
}

static inline void child_is_well(pid_t child)
{
	int status = 0;

	while (waitpid(child, &status, 0) < 0)
		ck_assert_int_eq(errno, EINTR);
	ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status 0x%x",
		      (unsigned int)status);
}

/* Runs a function in a child, and waits for it. */
static inline void in_child(void (*work)(void *context), void *context)
{
	pid_t child = child_forked();

	if (child == 0) {
		work(context);
		_exit(0);
	}
	child_is_well(child);
}

#endif
