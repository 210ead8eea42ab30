// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * fork.c - the list of live caches, and what fork does to them.
 *
 * A drain that another thread has begun does not exist in the child: its gates would stay closed
 * and its taken words be lost. So fork waits for drains to end and holds their mutexes meanwhile.
 * The child inherits both registrations (the restartable sequences' and membarrier's) and all
 * stocks as they were.
 *
 * Lock order: list mutex, then the drain mutexes in list order. So a settle function, which runs
 * under a drain mutex, must not fork, create or destroy a cache.
 */
#include "cache_private.h"

static pthread_mutex_t list_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct pcpc_cache *list;

static void fork_prepare(void)
{
	struct pcpc_cache *cache;

	pthread_mutex_lock(&list_mutex);
	for (cache = list; cache; cache = cache->next)
		pthread_mutex_lock(&cache->drain_mutex);
}

static void fork_parent(void)
{
	struct pcpc_cache *cache;

	for (cache = list; cache; cache = cache->next)
		pthread_mutex_unlock(&cache->drain_mutex);
	pthread_mutex_unlock(&list_mutex);
}

static void fork_child(void)
{
	struct pcpc_cache *cache;

	for (cache = list; cache; cache = cache->next) {
		/* Wishes of threads that are not here: nobody waits for them. */
		atomic_store_explicit(&cache->wishes, NULL, memory_order_relaxed);
		pthread_mutex_unlock(&cache->drain_mutex);
	}
	pthread_mutex_unlock(&list_mutex);
}

int pcpc_fork_add(struct pcpc_cache *cache)
{
	static bool installed;
	int r = 0;

	pthread_mutex_lock(&list_mutex);
	if (!installed)
		r = -pthread_atfork(fork_prepare, fork_parent, fork_child);
	if (r == 0) {
		installed = true;
		cache->next = list;
		list = cache;
	}
	pthread_mutex_unlock(&list_mutex);
	return r;
}

void pcpc_fork_remove(struct pcpc_cache *cache)
{
	struct pcpc_cache **link;

	pthread_mutex_lock(&list_mutex);
	for (link = &list; *link != cache; link = &(*link)->next)
		;
	*link = cache->next;
	pthread_mutex_unlock(&list_mutex);
}

void pcpc_fork_each(void (*visit)(struct pcpc_cache *cache))
{
	struct pcpc_cache *cache;

	pthread_mutex_lock(&list_mutex);
	for (cache = list; cache; cache = cache->next)
		visit(cache);
	pthread_mutex_unlock(&list_mutex);
}
