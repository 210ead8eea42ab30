// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * owner_signals_handler.c - the timers of owner_signals, and what their handlers do: all that
 * owners allow there.
 */
#define _GNU_SOURCE
#include "owner_signals.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

_Atomic uint64_t interrupted[DOINGS], refusals, lates;

static void charge_in_handler(struct books *books, int which)
{
	static const unsigned int flags[] = { PCPC_NOWAIT, PCPC_NOWAIT,
					      PCPC_NOWAIT | PCPC_NORECLAIM };
	uint64_t count = 1 + below(&books->random, 12);
	int r;

	if (books->held[which] > MOST_HELD)
		return;
	r = pcpc_charge_flags(owner[which], count, flags[below(&books->random, 3)], NULL);
	if (r == 0)
		books->held[which] += count;
	else if (r == -EDQUOT || r == -EAGAIN)
		atomic_fetch_add(&refusals, 1);
	else
		violation("a charge in a handler answered %d", r);
}

static void uncharge_in_handler(struct books *books, int which)
{
	int64_t delta = (int64_t)below(&books->random, 21) - 10;
	uint64_t count = books->held[which];

	if (count && below(&books->random, 2))
		count = 1 + below(&books->random, count);
	books->held[which] -= count;
	if (below(&books->random, 2)) {
		books->moved[0][which] += delta;
		pcpc_uncharge_stat(owner[which], count, delta);
	} else {
		pcpc_uncharge(owner[which], count);
	}
}

static void update_in_handler(struct books *books, int which)
{
	int64_t delta = (int64_t)below(&books->random, 61) - 20;
	uint32_t item = (uint32_t)below(&books->random, NR_ITEMS);

	books->moved[item][which] += delta;
	pcpc_stat_add(owner[which], item, delta);
}

/* One that may be going offline just now, and is freed when nothing of it is held any more. */
static void use_young(struct books *books, struct pcpc_owner *one)
{
	struct young *young = &books->young[below(&books->random, NR_YOUNG)];
	int r;

	if (young->owner) {
		atomic_fetch_add(&lates, 1);
		pcpc_uncharge(young->owner, young->units);
		*young = (struct young){ 0 };
	} else if (one) {
		young->units = 1 + below(&books->random, 30);
		r = pcpc_charge_flags(one, young->units, PCPC_NOWAIT, NULL);
		if (r == 0)
			young->owner = one;
		else if (r != -ESHUTDOWN && r != -EDQUOT && r != -EAGAIN)
			violation("a charge of a young owner answered %d", r);
	}
}

static void read_in_handler(int which)
{
	struct pcpc_owner *active = pcpc_set_active(domain, owner[which]);

	(void)pcpc_owner_usage(owner[which]);
	(void)pcpc_owner_peak(owner[which]);
	(void)pcpc_stat_read_local(owner[which], 0);
	pcpc_owner_put(pcpc_owner_get(owner[which]));
	if (pcpc_active(domain) != owner[which])
		violation("another owner is active than was set");
	(void)pcpc_set_active(domain, active);
}

static void again(struct books *books, int timer)
{
	const struct itimerspec soon = {
		.it_value.tv_nsec = 10000 + (long)below(&books->random, SANITIZED ? 500000 : 50000)
	};

	(void)timer_settime(self->timer[timer], 0, &soon, NULL);
}

static void handle(int number)
{
	struct books *books = &self->books[++self->level];
	struct pcpc_owner *young = self->young;
	int saved = errno, which = (int)below(&books->random, NR_OWNERS), i;

	errno = STRANGE_ERRNO;
	books->runs++;
	atomic_fetch_add_explicit(&interrupted[self->doing], 1, memory_order_relaxed);
	for (i = 0; i < 3; i++) {
		charge_in_handler(books, which);
		if (below(&books->random, 2))
			uncharge_in_handler(books, (int)below(&books->random, NR_OWNERS));
	}
	update_in_handler(books, which);
	use_young(books, young);
	if (below(&books->random, 4) == 0)
		read_in_handler(which);
	if (errno != STRANGE_ERRNO)
		violation("errno became %d in a handler", errno);
	errno = saved;
	self->level--;
	again(books, number == SIGUSR2);
}

void start_timers(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID };
	int i;

	event.sigev_notify_thread_id = gettid();
	for (i = 0; i < LEVELS - 1; i++) {
		event.sigev_signo = i ? SIGUSR2 : SIGUSR1;
		MUST(timer_create(CLOCK_MONOTONIC, &event, &self->timer[i]) == 0);
		again(&self->books[0], i);
	}
}

void set_handlers_mask(int how)
{
	sigset_t both;

	sigemptyset(&both);
	sigaddset(&both, SIGUSR1);
	sigaddset(&both, SIGUSR2);
	pthread_sigmask(how, &both, NULL);
}

/* Handlers do not run any more when it returns. */
void stop_timers(void)
{
	int i;

	set_handlers_mask(SIG_BLOCK);
	for (i = 0; i < LEVELS - 1; i++)
		(void)timer_delete(self->timer[i]);
}

void set_handlers(void)
{
	struct sigaction action = { .sa_handler = handle, .sa_flags = SA_RESTART };

	sigemptyset(&action.sa_mask);
	MUST(sigaction(SIGUSR1, &action, NULL) == 0);
	MUST(sigaction(SIGUSR2, &action, NULL) == 0);
	set_handlers_mask(SIG_BLOCK);
}
