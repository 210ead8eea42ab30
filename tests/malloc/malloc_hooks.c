// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * malloc_hooks.c - a program that calls liburcu-bp's fork hooks itself, as its documents say.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <urcu-bp.h>

int main(void)
{
	int i, status;
	pid_t child;

	if (pthread_atfork(urcu_bp_before_fork, urcu_bp_after_fork_parent,
			   urcu_bp_after_fork_child))
		return 1;
	for (i = 0; i < 3; i++) {
		child = fork();
		if (child == 0) {
			urcu_bp_synchronize_rcu();
			free(malloc(100000));
			_exit(0);
		}
		if (child < 0 || waitpid(child, &status, 0) != child || status)
			return 1;
	}
	return 0;
}
