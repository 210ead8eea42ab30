// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * owner_fork.c - the list of live domains, and what fork does to them. fork.c has the caches, and
 * calls what is here.
 *
 * What other threads were in the middle of moving stays counted in the child: usage there is at
 * least what it holds.
 *
 * Lock order: the list mutex of fork.c; liburcu-bp's own; of each domain its tree mutex, of each
 * its flush mutex; the drain mutexes. A read-side section may wait for a tree mutex or for a drain,
 * so fork takes those after grace periods have been stopped, or nobody would let the grace period
 * in progress end. Hence: no thread waits for a grace period under a tree or a drain mutex; none
 * has its first contact with liburcu-bp under one; none makes or destroys a domain or a cache
 * inside a read-side section.
 *
 * A sweep mutex, under which grace periods are waited for, is not taken: what a sweep has in hand
 * is changed under the tree mutex only, so the child takes it over, and makes the mutex anew.
 */
#define _GNU_SOURCE
#include "owner_private.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Under the list mutex. */
static struct pcpc_domain *domains;
static bool drives_urcu; /* liburcu-bp's hooks too; decided by the domains that were made */
static bool urcu_decided;
static sigset_t mask_before;

static void prepare(void)
{
	struct pcpc_domain *domain;
	sigset_t all;

	/* Nothing that handlers of the program's call may wait for what is taken here. */
	pcpc_thread_register();
	pcpc_this_thread.forking = true;
	/* No signal handler of this thread comes between until the child's lists are in order. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &mask_before);
	if (drives_urcu)
		urcu_bp_before_fork();
	for (domain = domains; domain; domain = domain->next)
		pthread_mutex_lock(&domain->tree_mutex);
	for (domain = domains; domain; domain = domain->next)
		pthread_mutex_lock(&domain->flush_mutex);
}

static void let_go(void (*after_fork)(void))
{
	struct pcpc_domain *domain;

	for (domain = domains; domain; domain = domain->next) {
		pthread_mutex_unlock(&domain->flush_mutex);
		pthread_mutex_unlock(&domain->tree_mutex);
	}
	if (drives_urcu)
		after_fork();
	pcpc_this_thread.forking = false;
	pthread_sigmask(SIG_SETMASK, &mask_before, NULL);
}

static void in_parent(void)
{
	let_go(urcu_bp_after_fork_parent);
}

/* -- what threads that are not here were doing; no store where nothing changes, so that the child's
 * memory stays the parent's -- */

/* Nobody waits. A wait that this very thread is in tries again before it sleeps. */
static void reset_waiting(struct pcpc_books *books)
{
	if (atomic_load(&books->least_wanted) == UINT64_MAX)
		return;
	atomic_store(&books->least_wanted, UINT64_MAX);
	atomic_fetch_add(&books->wake, 1);
}

/* Nobody reclaims but perhaps this thread, and nobody needs a cap to stay 0. */
static void reset_limit(struct pcpc_owner *owner)
{
	struct pcpc_books *books = books_of(owner);

	if (atomic_load(&books->reclaiming) && pcpc_this_thread.reclaiming != owner)
		atomic_store(&books->reclaiming, 0);
	if (atomic_load(&books->cap) & CAP_PINS)
		atomic_fetch_and(&books->cap, ~CAP_PINS);
}

static void mark_list(struct pcpc_owner *owner)
{
	for (; owner; owner = atomic_load(&books_of(owner)->pending_next))
		atomic_fetch_or(&books_of(owner)->marks, MARK_SEEN);
}

/* An owner that another thread had taken off the list, or was about to put there, goes on it. */
static void reset_pending(struct pcpc_owner *owner)
{
	uint32_t marks = atomic_load(&books_of(owner)->marks);

	if (marks & MARK_SEEN)
		atomic_fetch_and(&books_of(owner)->marks, ~MARK_SEEN);
	else if (marks & MARK_QUEUED)
		pcpc_pending_push(owner);
}

/* The eventfd is one object for parent and child: the child gets its own, under the same number. */
static void replace_eventfd(int number)
{
	int fd;

	close(number);
	fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (fd >= 0 && fd != number) {
		(void)dup3(fd, number, O_CLOEXEC);
		close(fd);
	}
}

static void reset_bell(struct pcpc_domain *domain)
{
	if (domain->eventfd >= 0)
		replace_eventfd(domain->eventfd);
	atomic_store(&domain->rung, false);
	if (atomic_load(&domain->pending))
		atomic_store(&domain->untold, true);
	if (atomic_load(&domain->pending) || domain->first_offline)
		pcpc_want_sweep(domain);
}

static void reset_domain(struct pcpc_domain *domain)
{
	uint32_t id;

	mark_list(atomic_load(&domain->pending));
	if (pcpc_this_thread.delivering == domain)
		mark_list(pcpc_this_thread.in_hand);
	for (id = 1; id <= domain->highest_id; id++) {
		if (atomic_load(&domain->books[id].state) == OWNER_FREE)
			continue;
		reset_waiting(&domain->books[id]);
		reset_limit(owner_of(domain, id));
		reset_pending(owner_of(domain, id));
		pcpc_stat_after_fork(owner_of(domain, id));
	}
	pthread_mutex_init(&domain->sweep_mutex, NULL);
	pcpc_put_back_offline(domain);
	reset_bell(domain);
}

static void in_child(void)
{
	struct pcpc_domain *domain;
	struct pcpc_pin *pin;

	for (domain = domains; domain; domain = domain->next)
		reset_domain(domain);
	/* What this thread keeps at 0 stays so: fork may be called by a callback. */
	for (pin = pcpc_this_thread.pins; pin; pin = pin->outer)
		atomic_fetch_add(&pin->books->cap, CAP_PIN);
	let_go(urcu_bp_after_fork_child);
}

/* The handlers are there, for the domain has a cache. */
void pcpc_fork_add_domain(struct pcpc_domain *domain)
{
	static const struct pcpc_fork_level level = { prepare, in_parent, in_child };

	pcpc_fork_lock(&level);
	/* One domain that asks for it is enough: the program drives them for all. */
	if (domain->flags & PCPC_DOMAIN_NO_FORK_HOOKS)
		drives_urcu = false;
	else if (!urcu_decided)
		drives_urcu = true;
	urcu_decided = true;
	domain->next = domains;
	domains = domain;
	pcpc_fork_unlock();
}

void pcpc_fork_remove_domain(struct pcpc_domain *domain)
{
	struct pcpc_domain **link;

	pcpc_fork_lock(NULL);
	for (link = &domains; *link != domain; link = &(*link)->next)
		;
	*link = domain->next;
	pcpc_fork_unlock();
}
