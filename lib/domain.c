// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * domain.c - domains: making, polling and freeing them.
 */
#define _GNU_SOURCE
#include "stat_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ROOT_ID 1u

static void free_domain(struct pcpc_domain *domain)
{
	if (domain->books) {
		pcpc_free_names(domain->books[ROOT_ID].long_name);
		pcpc_unmap(domain->books, NR_IDS * sizeof(struct pcpc_books));
	}
	if (domain->owners)
		pcpc_unmap(domain->owners, NR_IDS * sizeof(struct pcpc_owner));
	if (domain->ids)
		pcpc_unmap(domain->ids, sizeof(struct pcpc_ids));
	if (domain->eventfd >= 0)
		close(domain->eventfd);
	pcpc_active_end(domain);
	pcpc_stat_end(domain);
	pcpc_cache_destroy(domain->cache);
	free(domain->name);
	free(domain->unit);
	pthread_mutex_destroy(&domain->tree_mutex);
	pthread_mutex_destroy(&domain->sweep_mutex);
	pthread_mutex_destroy(&domain->flush_mutex);
	free(domain);
}

#define KNOWN_FLAGS (PCPC_DOMAIN_NO_FORK_HOOKS | PCPC_DOMAIN_KERNEL | PCPC_DOMAIN_NO_EVENTFD)

static int check_domain_config(const struct pcpc_domain_config *config,
			       struct pcpc_domain_config *ret_config)
{
	const size_t first = offsetof(struct pcpc_domain_config, flags) + sizeof(unsigned int);
	int r;

	if (!config)
		return -EINVAL;
	r = pcpc_read_struct(ret_config, sizeof(*ret_config), first, config);
	if (r < 0)
		return r;
	if (!ret_config->batch || !pcpc_batch_sound(ret_config->batch) ||
	    ret_config->delta_batch > (uint32_t)PCPC_DELTA_MAX ||
	    ret_config->flags & ~KNOWN_FLAGS ||
	    (ret_config->nr_items &&
	     (!ret_config->items || ret_config->coupled_item >= ret_config->nr_items)) ||
	    (uint64_t)ret_config->nr_items * (ret_config->nr_nodes ? ret_config->nr_nodes : 1) >
		    PCPC_ITEM_MAX + 1)
		return -EINVAL;
	return 0;
}

static int build_domain(struct pcpc_domain *domain, const struct pcpc_domain_config *config)
{
	struct pcpc_cache_config cache = { sizeof(cache), config->engine, config->index,
					   config->stocks_per_cpu };
	struct pcpc_owner_config root = { .size = sizeof(root), .name = config->name };
	struct pcpc_long_name *name;
	int r;

	r = pcpc_cache_create(&cache, &domain->cache);
	if (r < 0)
		return r;
	if (!(config->flags & PCPC_DOMAIN_NO_EVENTFD)) {
		domain->eventfd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		if (domain->eventfd < 0)
			return -errno;
	}
	domain->name = strdup(config->name ? config->name : "");
	domain->unit = strdup(config->unit ? config->unit : "");
	domain->ids = pcpc_map(sizeof(struct pcpc_ids));
	domain->owners = pcpc_map(NR_IDS * sizeof(struct pcpc_owner));
	domain->books = pcpc_map(NR_IDS * sizeof(struct pcpc_books));
	if (!domain->name || !domain->unit || !domain->ids || !domain->owners || !domain->books)
		return -ENOMEM;
	domain->flags = config->flags;
	domain->batch = config->batch;
	domain->nr_cpus = pcpc_allowed_cpus();
	domain->delta_batch = config->delta_batch;
	if (!domain->delta_batch)
		domain->delta_batch = 2 * domain->nr_cpus > 64 ? 2 * domain->nr_cpus : 64;
	r = pcpc_stat_init(domain, config);
	if (r < 0)
		return r;
	pcpc_sweep_later(domain);
	domain->ids->used[0] = 1;
	domain->highest_id = pcpc_id_take(domain->ids);
	domain->nr_owners = 1;
	domain->made = 1;
	r = pcpc_long_name(config->name, &name);
	if (r < 0)
		return r;
	pcpc_owner_init(domain, ROOT_ID, NULL, &root, name);
	atomic_store(&domain->books[ROOT_ID].widest, domain->books[ROOT_ID].own_batch);
	pcpc_owner_set_live(owner_of(domain, ROOT_ID));
	r = pcpc_active_init(domain);
	if (r == 0)
		pcpc_fork_add_domain(domain);
	return r;
}

int pcpc_domain_create(const struct pcpc_domain_config *config, struct pcpc_domain **ret_domain)
{
	struct pcpc_domain_config chosen;
	struct pcpc_domain *domain;
	int r;

	if (!ret_domain)
		return -EINVAL;
	r = check_domain_config(config, &chosen);
	if (r < 0)
		return r;
	/* Lock order, see owner_fork.c. */
	if (!may_wait(0))
		return -EDEADLK;
	domain = aligned_alloc(_Alignof(struct pcpc_domain), sizeof(*domain));
	if (!domain)
		return -ENOMEM;
	memset(domain, 0, sizeof(*domain));
	domain->eventfd = -1;
	pthread_mutex_init(&domain->tree_mutex, NULL);
	pthread_mutex_init(&domain->sweep_mutex, NULL);
	pthread_mutex_init(&domain->flush_mutex, NULL);
	r = build_domain(domain, &chosen);
	if (r < 0) {
		free_domain(domain);
		return r;
	}
	*ret_domain = domain;
	return 0;
}

/* Makes sure of limits for those who could not, and leaves pending what else is. The marks are
 * taken off first, so that a charge that is refused from now on puts its own. */
static void work_off_unsure(struct pcpc_domain *domain)
{
	struct pcpc_owner *owner, *next;
	uint32_t marks;

	for (owner = pcpc_pending_take(domain); owner; owner = next) {
		next = atomic_load_explicit(&books_of(owner)->pending_next, memory_order_relaxed);
		marks = atomic_fetch_and(&books_of(owner)->marks,
					 ~(MARK_UNSURE | MARK_QUEUED | MARK_EVENTS));
		if (marks & MARK_UNSURE)
			pcpc_make_sure(owner);
		if (marks & MARK_EVENTS)
			pcpc_queue(owner, marks & MARK_EVENTS);
		pcpc_owner_put(owner);
	}
}

static bool busy(struct pcpc_domain *domain)
{
	bool others;

	pthread_mutex_lock(&domain->tree_mutex);
	others = domain->nr_owners > 1;
	pthread_mutex_unlock(&domain->tree_mutex);
	return others || pcpc_owner_usage(owner_of(domain, ROOT_ID)) ||
	       atomic_load(&domain->books[ROOT_ID].refs) > 1;
}

#define LAST_ROUNDS 16 /* callbacks may cause further events, but not for ever */

int pcpc_domain_destroy(struct pcpc_domain *domain)
{
	struct pcpc_domain *before;
	unsigned int rounds = 0;

	if (!domain)
		return 0;
	if (!may_wait(0) || pcpc_this_thread.delivering == domain ||
	    (pcpc_this_thread.reclaiming && pcpc_this_thread.reclaiming->domain == domain))
		return -EDEADLK;
	do {
		before = pcpc_promise(domain);
		work_off_unsure(domain);
		(void)pcpc_owner_drain(owner_of(domain, ROOT_ID));
		pcpc_sweep(domain);
		pcpc_deliver(domain, before);
	} while (atomic_load(&domain->pending) && ++rounds < LAST_ROUNDS);
	if (busy(domain))
		return -EBUSY;
	pcpc_fork_remove_domain(domain);
	free_domain(domain);
	return 0;
}

struct pcpc_owner *pcpc_domain_root(struct pcpc_domain *domain)
{
	return domain ? owner_of(domain, ROOT_ID) : NULL;
}

int pcpc_domain_eventfd(struct pcpc_domain *domain)
{
	if (!domain)
		return -EINVAL;
	return domain->eventfd >= 0 ? domain->eventfd : -EBADF;
}

void pcpc_domain_poll(struct pcpc_domain *domain)
{
	struct pcpc_domain *before;
	int saved = errno;
	uint64_t rung;

	/* What cannot be done here stays to be done, and the eventfd readable. */
	if (!domain || !may_wait(0))
		return;
	/* In this order: who rings in between finds it rung, and has left its work to be seen
	 * below. Pairs with pcpc_ring(). */
	if (domain->eventfd >= 0)
		(void)syscall(SYS_read, domain->eventfd, &rung, sizeof(rung));
	errno = saved;
	atomic_exchange(&domain->rung, false);
	before = pcpc_promise(domain);
	work_off_unsure(domain);
	/* First, for owners that are to be told of have a reference. */
	pcpc_deliver(domain, before);
	if (atomic_load(&domain->sweep_wanted))
		pcpc_sweep(domain);
}
