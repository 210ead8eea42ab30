// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * quota.c - charging quotas.
 *
 * Every CPU has one stock, a cache line of seven slots, on which only that CPU works: a charge that
 * it serves touches no counter. There is no lock on it. Interrupts may come between any two
 * instructions and use the same stock; a slot that they have changed is noticed when it is to be
 * written. What a stock gives up is settled afterwards, with preemption on again.
 */
#include "quota.h"

#include <pcpcharge/stock.h>

static DEFINE_PER_CPU_ALIGNED(struct pcpc_stock, quota_stock);
static DEFINE_PER_CPU(struct work_struct, quota_work);
static DEFINE_MUTEX(quota_mutex); /* the tree, ids, and one drain at a time */

static const struct pcpc_marks quota_marks = { QUOTA_BATCH, QUOTA_BATCH / 2, 1 };
static struct quota *quotas[QUOTA_MAX_IDS + 1]; /* by id; an id outlives what is stocked for it */
static struct quota root;
static int hotplug_state;

struct quota_events quota_events;

struct quota *quota_root(void)
{
	return &root;
}

/* -- counters -- */

static void give_back(struct quota *quota, const struct quota *top, long nr_pages)
{
	for (; quota != top; quota = quota->parent)
		atomic_long_sub(nr_pages, &quota->usage);
}

/* All levels or none. Added first and compared then: of a charge and a lowering of max at least one
 * sees the other. */
static bool take(struct quota *quota, long nr_pages)
{
	struct quota *level;

	for (level = quota; level; level = level->parent) {
		if (atomic_long_add_return(nr_pages, &level->usage) <= READ_ONCE(level->max))
			continue;
		atomic_long_sub(nr_pages, &level->usage);
		give_back(quota, level, nr_pages);
		return false;
	}
	return true;
}

/* Pages that were stocked for an id go back. Until they have, its quota is not empty; and until the
 * end of this section, not freed. */
static void settle(unsigned int id, long nr_pages)
{
	rcu_read_lock();
	give_back(READ_ONCE(quotas[id]), NULL, nr_pages);
	rcu_read_unlock();
}

/* -- the stock -- */

static bool consume(struct quota *quota, unsigned int nr_pages)
{
	struct pcpc_deferred deferred;
	bool hit;

	preempt_disable();
	hit = pcpc_stock_consume(this_cpu_ptr(&quota_stock), quota->id, nr_pages, 0, &quota_marks,
				 &deferred);
	preempt_enable();
	return hit;
}

static void refill(struct quota *quota, unsigned int nr_pages)
{
	struct pcpc_deferred deferred;

	preempt_disable();
	pcpc_stock_refill(this_cpu_ptr(&quota_stock), quota->id, nr_pages, 0, &quota_marks,
			  &deferred);
	preempt_enable();
	if (!deferred.owner)
		return;
	atomic_long_inc(deferred.owner == quota->id ? &quota_events.trims
						    : &quota_events.evictions);
	settle(deferred.owner, (long)deferred.count);
}

static void drain_stock(struct pcpc_stock *stock)
{
	unsigned int slot;
	pcpc_word word;

	for (slot = 0; slot < PCPC_STOCK_SLOTS; slot++) {
		word = xchg(&stock->slot[slot], 0);
		if (pcpc_word_owner(word))
			settle(pcpc_word_owner(word), pcpc_word_count(word));
	}
}

static void drain_this_cpu(struct work_struct *work)
{
	(void)work;
	migrate_disable();
	drain_stock(this_cpu_ptr(&quota_stock));
	migrate_enable();
	atomic_long_inc(&quota_events.drains);
}

static int drain_dead_cpu(unsigned int cpu)
{
	drain_stock(per_cpu_ptr(&quota_stock, cpu));
	return 0;
}

/* Under quota_mutex: the work items are those of one drain. */
static void drain_online_cpus(void)
{
	int cpu;

	cpus_read_lock();
	for_each_online_cpu(cpu)
		schedule_work_on(cpu, per_cpu_ptr(&quota_work, cpu));
	for_each_online_cpu(cpu)
		flush_work(per_cpu_ptr(&quota_work, cpu));
	cpus_read_unlock();
}

void quota_drain(void)
{
	mutex_lock(&quota_mutex);
	drain_online_cpus();
	mutex_unlock(&quota_mutex);
}

unsigned long quota_stocked(void)
{
	unsigned long sum = 0;
	unsigned int slot;
	int cpu;

	for_each_possible_cpu(cpu)
		for (slot = 0; slot < PCPC_STOCK_SLOTS; slot++)
			sum += pcpc_word_count(
				READ_ONCE(per_cpu_ptr(&quota_stock, cpu)->slot[slot]));
	return sum;
}

/* -- charging -- */

int quota_charge(struct quota *quota, unsigned int nr_pages)
{
	unsigned int batch = max_t(unsigned int, nr_pages, QUOTA_BATCH);

	if (consume(quota, nr_pages)) {
		atomic_long_inc(&quota_events.hits);
		return 0;
	}
	atomic_long_inc(&quota_events.misses);
	if (take(quota, batch)) {
		if (batch > nr_pages)
			refill(quota, batch - nr_pages);
		return 0;
	}
	if (batch > nr_pages && take(quota, nr_pages))
		return 0;
	atomic_long_inc(&quota_events.refusals);
	return -ENOMEM;
}

void quota_uncharge(struct quota *quota, unsigned int nr_pages)
{
	refill(quota, nr_pages);
}

void quota_set_max(struct quota *quota, long max)
{
	WRITE_ONCE(quota->max, max);
}

/* -- the tree -- */

/* An id, and its place in the tree. Under quota_mutex. */
static int enter(struct quota *quota)
{
	unsigned int id = 1;

	while (id <= QUOTA_MAX_IDS && quotas[id])
		id++;
	if (id > QUOTA_MAX_IDS)
		return -ENOSPC;
	quota->id = id;
	WRITE_ONCE(quotas[id], quota);
	if (quota->parent)
		list_add_tail(&quota->siblings, &quota->parent->children);
	return 0;
}

static int start(struct quota *quota, struct quota *parent, const char *name, long max)
{
	int err;

	atomic_long_set(&quota->usage, 0);
	quota->max = max;
	quota->parent = parent;
	quota->name = name;
	INIT_LIST_HEAD(&quota->children);
	mutex_lock(&quota_mutex);
	err = enter(quota);
	mutex_unlock(&quota_mutex);
	return err;
}

struct quota *quota_create(struct quota *parent, const char *name, long max)
{
	struct quota *quota = kzalloc(sizeof(*quota), GFP_KERNEL);
	int err;

	if (!quota)
		return ERR_PTR(-ENOMEM);
	err = start(quota, parent, name, max);
	if (!err)
		return quota;
	kfree(quota);
	return ERR_PTR(err);
}

static bool leave(struct quota *quota)
{
	drain_online_cpus();
	if (!list_empty(&quota->children) || atomic_long_read(&quota->usage))
		return false;
	if (quota->parent)
		list_del(&quota->siblings);
	WRITE_ONCE(quotas[quota->id], NULL);
	return true;
}

int quota_destroy(struct quota *quota)
{
	bool left;

	mutex_lock(&quota_mutex);
	left = leave(quota);
	mutex_unlock(&quota_mutex);
	if (!left)
		return -EBUSY;
	synchronize_rcu();
	kfree(quota);
	return 0;
}

int quota_init(void)
{
	int cpu, err;

	for_each_possible_cpu(cpu)
		INIT_WORK(per_cpu_ptr(&quota_work, cpu), drain_this_cpu);
	err = start(&root, NULL, "root", LONG_MAX);
	if (err)
		return err;
	hotplug_state =
		cpuhp_setup_state_nocalls(CPUHP_BP_PREPARE_DYN, "quota:dead", NULL, drain_dead_cpu);
	return min(hotplug_state, 0);
}

void quota_exit(void)
{
	cpuhp_remove_state_nocalls(hotplug_state);
	mutex_lock(&quota_mutex);
	WARN_ON_ONCE(!leave(&root));
	mutex_unlock(&quota_mutex);
}
