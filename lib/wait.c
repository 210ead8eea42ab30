// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * wait.c - sleeping until a charge fits, and waking who sleeps.
 */
#define _GNU_SOURCE
#include "owner_private.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Sleeps while *word is value. timeout: relative, NULL for none. May return for no reason; errno is
 * the caller's program's. */
void pcpc_futex_wait(_Atomic uint32_t *word, uint32_t value, const struct timespec *timeout)
{
	int saved = errno;

	(void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, timeout, NULL, 0);
	errno = saved;
}

void pcpc_futex_wake(_Atomic uint32_t *word)
{
	int saved = errno;

	(void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
	errno = saved;
}

/*
 * Waiting is a dialogue in three words. Who waits reads wake, lowers least_wanted to its amount,
 * tries once more, and sleeps while wake is what it read. Who gives units back lowers usage, looks
 * whether the least amount would fit, takes least_wanted away and raises wake; whoever was woken
 * for too little puts its amount there again. All sequentially consistent: the try sees the usage,
 * or the giver sees the amount. An amount that stays behind costs one needless wake-up.
 */
void pcpc_wake_all(struct pcpc_books *books)
{
	if (atomic_exchange(&books->least_wanted, UINT64_MAX) == UINT64_MAX)
		return;
	atomic_fetch_add(&books->wake, 1);
	pcpc_futex_wake(&books->wake);
}

void pcpc_wake_if_room(struct pcpc_books *books)
{
	uint64_t least = atomic_load(&books->least_wanted), max;

	if (least == UINT64_MAX)
		return;
	max = atomic_load(&books->max);
	if (least <= max && atomic_load(&books->usage) <= max - least)
		pcpc_wake_all(books);
}

static void want(struct pcpc_books *books, uint64_t count)
{
	uint64_t least = atomic_load(&books->least_wanted);

	while (count < least && !atomic_compare_exchange_weak(&books->least_wanted, &least, count))
		;
}

/* Until when, by the monotonic clock in ns; negative: for ever. */
static int64_t deadline_after(int64_t timeout_ns)
{
	struct timespec now;
	int64_t deadline;

	if (timeout_ns < 0)
		return -1;
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (__builtin_add_overflow((int64_t)now.tv_sec * 1000000000 + now.tv_nsec, timeout_ns,
				   &deadline))
		return INT64_MAX;
	return deadline;
}

/* What is left until a deadline; false: it has passed. */
static bool time_left(int64_t deadline, struct timespec *ret_left)
{
	struct timespec now;
	int64_t left;

	clock_gettime(CLOCK_MONOTONIC, &now);
	left = deadline - ((int64_t)now.tv_sec * 1000000000 + now.tv_nsec);
	if (left <= 0)
		return false;
	ret_left->tv_sec = left / 1000000000;
	ret_left->tv_nsec = left % 1000000000;
	return true;
}

/* Sleeps until something has changed at over, unless the charge succeeds before, or is refused by
 * another. Meanwhile nothing below over is stocked, so that whatever is given back arrives there.
 */
static int try_then_sleep(struct pcpc_owner *owner, uint64_t count, struct pcpc_owner *over,
			  const struct timespec *timeout)
{
	struct pcpc_books *books = books_of(over);
	struct pcpc_refusal refusal;
	struct pcpc_pin pin;
	uint32_t wake;
	int r;

	pcpc_pin(&pin, books);
	wake = atomic_load(&books->wake);
	want(books, count);
	r = pcpc_charge_internal(owner, count, 0, CHARGE_QUIET, &refusal);
	if (r == -EDQUOT && refusal.over == over && count <= refusal.max)
		pcpc_futex_wait(&books->wake, wake, timeout);
	pcpc_unpin(&pin);
	return r;
}

int pcpc_charge_wait(struct pcpc_owner *owner, uint64_t count, int64_t timeout_ns)
{
	struct pcpc_refusal refusal;
	struct timespec left;
	int64_t deadline;
	int r;

	if (!owner || count > INT64_MAX)
		return -EINVAL;
	deadline = deadline_after(timeout_ns);
	for (;;) {
		r = pcpc_charge_internal(owner, count, 0, CHARGE_QUIET, &refusal);
		if (r != -EDQUOT || count > refusal.max)
			return r;
		if (!may_wait(0))
			return -EAGAIN;
		if (deadline >= 0 && !time_left(deadline, &left))
			return -ETIMEDOUT;
		r = try_then_sleep(owner, count, refusal.over, deadline < 0 ? NULL : &left);
		if (r != -EDQUOT)
			return r;
	}
}
