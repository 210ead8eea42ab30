// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * fork.c - the list of live caches, and what fork does to them.
 *
 * A drain that another thread has begun does not exist in the child: its gates would stay closed
 * and its taken words be lost. So fork waits for drains to end and holds their mutexes meanwhile.
 * The child inherits both registrations (the restartable sequences' and membarrier's) and all
 * stocks as they were.
 *
 * Lock order: list mutex, those of the level above (owner_fork.c), then the drain mutexes in list
 * order. So a settle function, which runs under a drain mutex, must not fork, create or destroy a
 * cache.
 */
#include "cache_private.h"

static pthread_mutex_t list_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct pcpc_cache *list;
static const struct pcpc_fork_level *above; /* once there was a domain */

/* How often this thread's fork has entered the handlers: they may be installed more than once. */
static _Thread_local unsigned int depth __attribute__((tls_model("initial-exec")));

static void fork_prepare(void)
{
	struct pcpc_cache *cache;

	if (depth++)
		return;
	pthread_mutex_lock(&list_mutex);
	if (above)
		above->prepare();
	for (cache = list; cache; cache = cache->next) {
		pthread_mutex_lock(&cache->drain_mutex);
		/* A handler of the program's that drains gets -EDEADLK. */
		atomic_store_explicit(&cache->drainer, pthread_self(), memory_order_relaxed);
	}
}

static void let_go(void (*above_too)(void))
{
	struct pcpc_cache *cache;

	for (cache = list; cache; cache = cache->next) {
		atomic_store_explicit(&cache->drainer, (pthread_t)0, memory_order_relaxed);
		pthread_mutex_unlock(&cache->drain_mutex);
	}
	if (above_too)
		above_too();
	pthread_mutex_unlock(&list_mutex);
}

static void fork_parent(void)
{
	if (!--depth)
		let_go(above ? above->parent : NULL);
}

static void fork_child(void)
{
	struct pcpc_cache *cache;

	if (--depth)
		return;
	/* Wishes of threads that are not here: nobody waits for them. */
	for (cache = list; cache; cache = cache->next)
		atomic_store_explicit(&cache->wishes, NULL, memory_order_relaxed);
	let_go(above ? above->child : NULL);
}

/*
 * Installs the handlers, before anything that they protect is locked: another thread may fork at
 * any moment of this, and a lock that is held then would be held in the child by nobody. So no lock
 * keeps two threads from installing them twice, which the handlers put up with.
 */
static int install(void)
{
	static atomic_bool installed;
	int r;

	/* Relaxed: once more does no harm. */
	if (atomic_load_explicit(&installed, memory_order_relaxed))
		return 0;
	r = pthread_atfork(fork_prepare, fork_parent, fork_child);
	if (r == 0)
		atomic_store_explicit(&installed, true, memory_order_relaxed);
	return -r;
}

int pcpc_fork_add(struct pcpc_cache *cache)
{
	int r = install();

	if (r < 0)
		return r;
	pthread_mutex_lock(&list_mutex);
	cache->next = list;
	list = cache;
	pthread_mutex_unlock(&list_mutex);
	return 0;
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

void pcpc_fork_lock(const struct pcpc_fork_level *level)
{
	pthread_mutex_lock(&list_mutex);
	if (level)
		above = level;
}

void pcpc_fork_unlock(void)
{
	pthread_mutex_unlock(&list_mutex);
}
