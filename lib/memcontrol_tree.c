// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * memcontrol_tree.c - the tree of mem_cgroups: beginning and end of all and of each.
 */
#define _GNU_SOURCE
#include "memcontrol_private.h"

#include <errno.h>
#include <stdlib.h>

struct memcg_system pcpc_memcg_system;

static DEFINE_MUTEX(tree_mutex); /* who is online; taken before those of owners */

struct mem_cgroup *pcpc_memcg_root(void)
{
	return pcpc_memcg_system.root ? &pcpc_memcg_system.root->public : NULL;
}

struct pcpc_domain *pcpc_memcg_domain(void)
{
	return pcpc_memcg_system.domain;
}

/*
 * The end of a mem_cgroup whom nobody refers to any more. What is still charged to it is charged to
 * objects that belong to its parent since it went offline: its parent's counter has that already,
 * so it only leaves this one.
 */
static void free_memcg(struct work_struct *work)
{
	struct memcg *memcg = container_of(work, struct memcg, free_work);
	struct mem_cgroup *parent = parent_mem_cgroup(&memcg->public);
	struct pcpc_owner *owner = memcg->public.owner;

	(void)cancel_work_sync(&memcg->high_work);
	/* Offline, so from a grace period on nothing is stocked for it; the second one ends what
	 * others have evicted. Those who found it by an object are gone after the first. */
	(void)pcpc_owner_get(owner);
	(void)pcpc_owner_destroy(owner);
	pcpc_grace();
	(void)pcpc_owner_drain(owner);
	pcpc_grace();
	(void)pcpc_transfer(owner, parent->owner, pcpc_owner_usage(owner));
	pcpc_owner_put(owner);
	free(memcg);
	css_put(&parent->css);
}

static void release_memcg(struct cgroup_subsys_state *css)
{
	schedule_work(&memcg_of(mem_cgroup_from_css(css))->free_work);
}

static struct memcg *new_memcg(struct mem_cgroup *parent)
{
	struct memcg *memcg = calloc(1, sizeof(*memcg));

	if (!memcg)
		return NULL;
	memcg->vmstats.memcg = &memcg->public;
	memcg->public.vmstats = &memcg->vmstats;
	INIT_WORK(&memcg->high_work, pcpc_memcg_high_work);
	INIT_WORK(&memcg->free_work, free_memcg);
	INIT_LIST_HEAD(&memcg->objects);
	pcpc_kernel_css_init(&memcg->public.css, parent ? &parent->css : NULL, release_memcg);
	return memcg;
}

/* Goes online: from here on it can be charged by the byte, and holds its parent. Under the tree's
 * mutex. */
static int make_online(struct memcg *memcg, struct mem_cgroup *parent, const char *name)
{
	struct pcpc_owner_config config = { .size = sizeof(config),
					    .name = name,
					    .context = memcg };
	int r;

	if (memcg_of(parent)->offline)
		return -ESHUTDOWN;
	r = pcpc_owner_create(parent->owner, &config, &memcg->public.owner);
	if (r < 0)
		return r;
	r = pcpc_memcg_make_object(memcg);
	if (r < 0) {
		(void)pcpc_owner_destroy(memcg->public.owner);
		return r;
	}
	css_get(&parent->css);
	memcg_of(parent)->nr_online++;
	return 0;
}

struct mem_cgroup *pcpc_memcg_create(struct mem_cgroup *parent, const char *name)
{
	struct memcg *memcg;
	int r;

	if (!pcpc_memcg_system.domain)
		return ERR_PTR(-ENODEV);
	pcpc_memcg_reap_objects();
	if (!parent)
		parent = pcpc_memcg_root();
	memcg = new_memcg(parent);
	if (!memcg)
		return ERR_PTR(-ENOMEM);
	mutex_lock(&tree_mutex);
	r = make_online(memcg, parent, name);
	mutex_unlock(&tree_mutex);
	if (r < 0) {
		free(memcg);
		return ERR_PTR(r);
	}
	return &memcg->public;
}

/* Under the tree's mutex: one of several is the one. */
static int make_offline(struct mem_cgroup *memcg)
{
	if (memcg_of(memcg)->offline)
		return -EINVAL;
	if (memcg_of(memcg)->nr_online)
		return -EBUSY;
	memcg_of(parent_mem_cgroup(memcg))->nr_online--;
	memcg_of(memcg)->offline = true;
	return 0;
}

int pcpc_memcg_destroy(struct mem_cgroup *memcg)
{
	int r;

	if (!memcg || mem_cgroup_is_root(memcg))
		return -EINVAL;
	mutex_lock(&tree_mutex);
	r = make_offline(memcg);
	mutex_unlock(&tree_mutex);
	if (r < 0)
		return r;
	pcpc_memcg_reparent_objects(memcg_of(memcg));
	(void)pcpc_owner_drain(memcg->owner);
	pcpc_kernel_css_kill(&memcg->css);
	pcpc_memcg_reap_objects();
	return 0;
}

/* -- beginning and end -- */

static int read_config(const struct pcpc_memcg_config *config, struct pcpc_memcg_config *ret_config)
{
	const size_t first = offsetof(struct pcpc_memcg_config, context) + sizeof(void *);

	*ret_config = (struct pcpc_memcg_config){ .size = sizeof(*ret_config) };
	return config ? pcpc_read_struct(ret_config, sizeof(*ret_config), first, config) : 0;
}

static int make_domain(const struct pcpc_memcg_config *chosen, struct pcpc_domain **ret_domain)
{
	struct pcpc_item items[MEMCG_NR_ITEMS];
	const struct pcpc_domain_config config = {
		.size = sizeof(config),
		.name = "memory",
		.unit = "bytes",
		.batch = MEMCG_CHARGE_BATCH * PAGE_SIZE,
		.items = items,
		.nr_items = MEMCG_NR_ITEMS,
		.nr_nodes = chosen->nr_nodes,
		.delta_batch = MEMCG_CHARGE_BATCH * PAGE_SIZE,
		.stocks_per_cpu = chosen->stocks_per_cpu ? chosen->stocks_per_cpu : 1,
		.engine = (enum pcpc_engine)chosen->engine,
		.index = (enum pcpc_index)chosen->index,
		.flags = PCPC_DOMAIN_KERNEL,
	};

	pcpc_memcg_describe_items(items);
	return pcpc_domain_create(&config, ret_domain);
}

int pcpc_memcg_init(const struct pcpc_memcg_config *config)
{
	struct pcpc_memcg_config chosen;
	struct pcpc_domain *domain;
	struct memcg *root;
	int r;

	if (pcpc_memcg_system.domain)
		return -EBUSY;
	r = read_config(config, &chosen);
	if (r < 0)
		return r;
	r = make_domain(&chosen, &domain);
	if (r < 0)
		return r;
	root = new_memcg(NULL);
	if (!root) {
		(void)pcpc_domain_destroy(domain);
		return -ENOMEM;
	}
	domain->stats.unit = PAGE_SIZE;
	root->public.owner = pcpc_domain_root(domain);
	books_of(root->public.owner)->context = root;
	pcpc_memcg_system = (struct memcg_system){ chosen, domain, root };
	return 0;
}

int pcpc_memcg_exit(void)
{
	struct memcg_system *system = &pcpc_memcg_system;

	if (!system->domain)
		return 0;
	/* Those who were put last free their parents' references in turn. */
	flush_scheduled_work();
	pcpc_memcg_reap_objects();
	if (!list_empty(&system->root->objects) || pcpc_domain_destroy(system->domain) < 0)
		return -EBUSY;
	free(system->root);
	*system = (struct memcg_system){ 0 };
	return 0;
}
