// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * stat_storm_signal.c - a timer for each thread, whose handler updates statistics in the middle of
 * whatever the thread is doing (G8).
 */
#define _GNU_SOURCE
#include "stat_storm.h"

#include <signal.h>

#define STRANGE_ERRNO 4242

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

static void again(struct thread *self)
{
	const struct itimerspec soon = {
		.it_value.tv_nsec =
			20000 + (long)below(&self->handler_random, SANITIZED ? 1000000 : 200000)
	};

	(void)timer_settime(self->timer, 0, &soon, NULL);
}

/* The signal-safe calls. While all stands still it does nothing. */
static void handle(int number)
{
	struct thread *self = storm_self;
	struct node *young = self->young, *node;
	int saved = errno, i;

	(void)number;
	if (!atomic_load(&storm.paused)) {
		errno = STRANGE_ERRNO;
		for (i = 0; i < 4; i++) {
			node = young && i % 2 ? young
					      : storm.fixed[below(&self->handler_random, NR_FIXED)];
			update(node, &self->handler_random);
			(void)pcpc_stat_read_local(node->owner, RISING);
			(void)pcpc_stat_needs_flush(node->owner);
		}
		self->counts[SIGNALS]++;
		if (errno != STRANGE_ERRNO)
			violation("errno became %d in a handler", errno);
	}
	errno = saved;
	again(self);
}

void storm_set_handler(void)
{
	struct sigaction action = { .sa_handler = handle, .sa_flags = SA_RESTART };
	sigset_t blocked;

	sigemptyset(&action.sa_mask);
	MUST(sigaction(SIGUSR1, &action, NULL) == 0);
	/* Until a thread is ready for it. */
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &blocked, NULL);
}

void storm_start_timer(struct thread *self)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1 };
	sigset_t wanted;

	event.sigev_notify_thread_id = gettid();
	MUST(timer_create(CLOCK_MONOTONIC, &event, &self->timer) == 0);
	sigemptyset(&wanted);
	sigaddset(&wanted, SIGUSR1);
	pthread_sigmask(SIG_UNBLOCK, &wanted, NULL);
	again(self);
}

/* The handler does not run any more when it returns. */
void storm_stop_timer(struct thread *self)
{
	sigset_t blocked;

	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &blocked, NULL);
	(void)timer_delete(self->timer);
}
