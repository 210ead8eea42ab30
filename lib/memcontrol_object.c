// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * memcontrol_object.c - obj_cgroups: charges by the byte, to whatever mem_cgroup they belong to at
 * the time. When it goes offline they pass to its parent, so what they hold keeps nobody alive.
 */
#define _GNU_SOURCE
#include "memcontrol_private.h"

#include <stdlib.h>

struct obj_cgroup {
	atomic_long refs;
	/* Release when it changes, acquire when it is followed: for what stands in the mem_cgroup.
	 * That lives until a grace period after it was changed. */
	_Atomic(struct memcg *) memcg;
	struct list_head siblings; /* under the objects' mutex */
	struct obj_cgroup *_Atomic next_dead;
};

static DEFINE_MUTEX(objects_mutex);	  /* lists of objects; innermost */
static _Atomic(struct obj_cgroup *) dead; /* to be freed by somebody who may take a mutex */

/* -- lifetime -- */

int pcpc_memcg_make_object(struct memcg *memcg)
{
	struct obj_cgroup *objcg = calloc(1, sizeof(*objcg));

	if (!objcg)
		return -ENOMEM;
	atomic_store(&objcg->refs, 1);
	atomic_store(&objcg->memcg, memcg);
	INIT_LIST_HEAD(&memcg->objects);
	mutex_lock(&objects_mutex);
	list_add(&objcg->siblings, &memcg->objects);
	mutex_unlock(&objects_mutex);
	/* Release: pairs with pcpc_memcg_get_object(). */
	atomic_store_explicit(&memcg->object, objcg, memory_order_release);
	return 0;
}

bool pcpc_memcg_object_tryget(struct obj_cgroup *objcg)
{
	long refs;

	if (!objcg)
		return true;
	refs = atomic_load_explicit(&objcg->refs, memory_order_relaxed);
	while (refs > 0)
		if (atomic_compare_exchange_weak_explicit(&objcg->refs, &refs, refs + 1,
							  memory_order_relaxed,
							  memory_order_relaxed))
			return true;
	return false;
}

/* The last one only notes it: this may be an interrupt. Acquire and release: whoever frees it comes
 * after all who used it. */
void pcpc_memcg_object_put(struct obj_cgroup *objcg)
{
	struct obj_cgroup *first;

	if (!objcg || atomic_fetch_sub_explicit(&objcg->refs, 1, memory_order_acq_rel) != 1)
		return;
	first = atomic_load_explicit(&dead, memory_order_relaxed);
	do {
		atomic_store_explicit(&objcg->next_dead, first, memory_order_relaxed);
	} while (!atomic_compare_exchange_weak_explicit(&dead, &first, objcg, memory_order_release,
							memory_order_relaxed));
}

/* Frees those that nobody refers to. In tasks, outside any read-side section. */
void pcpc_memcg_reap_objects(void)
{
	struct obj_cgroup *list, *objcg, *next;

	/* Acquire: pairs with the release in pcpc_memcg_object_put(). */
	list = atomic_exchange_explicit(&dead, NULL, memory_order_acquire);
	if (!list)
		return;
	mutex_lock(&objects_mutex);
	for (objcg = list; objcg; objcg = objcg->next_dead)
		list_del(&objcg->siblings);
	mutex_unlock(&objects_mutex);
	pcpc_grace();
	for (objcg = list; objcg; objcg = next) {
		next = objcg->next_dead;
		free(objcg);
	}
}

void pcpc_memcg_reparent_objects(struct memcg *memcg)
{
	struct memcg *parent = memcg_of(parent_mem_cgroup(&memcg->public));
	struct obj_cgroup *own = atomic_load(&memcg->object), *objcg;

	atomic_store(&memcg->object, NULL);
	mutex_lock(&objects_mutex);
	list_for_each_entry(objcg, &memcg->objects, siblings)
		atomic_store_explicit(&objcg->memcg, parent, memory_order_release);
	list_splice_init(&memcg->objects, &parent->objects);
	mutex_unlock(&objects_mutex);
	pcpc_memcg_object_put(own);
}

/* -- whose it is -- */

struct obj_cgroup *pcpc_memcg_get_object(struct mem_cgroup *memcg)
{
	struct obj_cgroup *objcg = NULL;

	urcu_bp_read_lock();
	for (; !mem_cgroup_is_root(memcg); memcg = parent_mem_cgroup(memcg)) {
		objcg = atomic_load_explicit(&memcg_of(memcg)->object, memory_order_acquire);
		if (objcg && pcpc_memcg_object_tryget(objcg))
			break;
		objcg = NULL;
	}
	urcu_bp_read_unlock();
	return objcg;
}

struct mem_cgroup *pcpc_memcg_of_object(struct obj_cgroup *objcg)
{
	if (!objcg)
		return pcpc_memcg_root();
	return &atomic_load_explicit(&objcg->memcg, memory_order_acquire)->public;
}

/* Where the reference is refused it has just been passed on to the parent, who is alive. */
struct mem_cgroup *pcpc_memcg_get_of_object(struct obj_cgroup *objcg)
{
	struct mem_cgroup *memcg;

	urcu_bp_read_lock();
	do {
		memcg = pcpc_memcg_of_object(objcg);
	} while (!css_tryget(&memcg->css));
	urcu_bp_read_unlock();
	return memcg;
}

/* -- charging -- */

int pcpc_memcg_object_charge(struct obj_cgroup *objcg, gfp_t gfp_mask, size_t size)
{
	struct mem_cgroup *memcg;
	bool hit;
	int r;

	if (!objcg || !size)
		return 0;
	urcu_bp_read_lock();
	hit = pcpc_memcg_consume_bytes(pcpc_memcg_of_object(objcg), size);
	urcu_bp_read_unlock();
	if (hit)
		return 0;
	memcg = pcpc_memcg_get_of_object(objcg);
	r = pcpc_memcg_charge_bytes(memcg, gfp_mask, size);
	css_put(&memcg->css);
	return r;
}

void pcpc_memcg_object_uncharge(struct obj_cgroup *objcg, size_t size)
{
	if (!objcg)
		return;
	urcu_bp_read_lock();
	pcpc_uncharge(pcpc_memcg_of_object(objcg)->owner, size);
	urcu_bp_read_unlock();
}
