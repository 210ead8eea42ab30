// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_memcontrol_object.c - obj_cgroups: charges by the byte, going offline, and who is freed when
 * (semantics.md 2).
 */
#define _GNU_SOURCE
#include <pthread.h>

#include "memcontrol_support.h"

static uint64_t bytes_used(const struct mem_cgroup *of)
{
	return pcpc_owner_usage(of->owner);
}

static struct obj_cgroup *object_of(struct mem_cgroup *of)
{
	struct obj_cgroup *objcg = get_obj_cgroup_from_memcg(of);

	ck_assert_ptr_nonnull(objcg);
	return objcg;
}

/* 2.4 with one stock for pages and bytes: a miss takes a batch, hits touch no counter, and a page
 * is served from what bytes left. */
START_TEST(objects_and_pages_share_a_stock)
{
	struct obj_cgroup *objcg;

	if (!open_memcg(_i))
		return;
	objcg = object_of(memcg);
	ck_assert_int_eq(obj_cgroup_charge(objcg, GFP_KERNEL, 92), 0);
	usage_is(64);
	ck_assert_int_eq(obj_cgroup_charge(objcg, GFP_KERNEL, 4000), 0);
	ck_assert(consume_stock(memcg, 62));
	usage_is(64);
	ck_assert_uint_eq(pcpc_cache_stocked(memcg->owner->domain->cache, memcg->owner->id),
			  2 * PAGE_SIZE - 4092);
	refill_stock(memcg, 62);
	obj_cgroup_uncharge(objcg, 4000);
	obj_cgroup_uncharge(objcg, 92);
	drain_all_stock(memcg);
	ck_assert_uint_eq(bytes_used(memcg), 0);
	obj_cgroup_put(objcg);
}
END_TEST

/* 2.2, 4: "A library must use size_t throughout": 4 GiB is not 0. */
START_TEST(four_gigabytes_are_not_nothing)
{
	struct obj_cgroup *objcg;

	if (!open_memcg(_i))
		return;
	objcg = object_of(memcg);
	ck_assert_int_eq(obj_cgroup_charge(objcg, GFP_KERNEL, (size_t)1 << 32), 0);
	ck_assert_uint_eq(bytes_used(memcg), (uint64_t)1 << 32);
	ck_assert_int_eq(mem_cgroup_set_max(memcg, 1ul << 20, true), 0);
	ck_assert_int_eq(obj_cgroup_charge(objcg, GFP_NOWAIT, ((size_t)1 << 32) + 1), -ENOMEM);
	obj_cgroup_uncharge(objcg, (size_t)1 << 32);
	ck_assert_uint_eq(bytes_used(memcg), 0);
	obj_cgroup_put(objcg);
}
END_TEST

/* 2.4, 1: "On failure nothing changes"; 2.4, 4: the root has no object. */
START_TEST(a_refused_object_changes_nothing)
{
	struct obj_cgroup *objcg;

	if (!open_memcg(_i))
		return;
	ck_assert_ptr_null(get_obj_cgroup_from_memcg(root_mem_cgroup));
	ck_assert_int_eq(obj_cgroup_charge(NULL, GFP_KERNEL, 100), 0);
	obj_cgroup_uncharge(NULL, 100);
	objcg = object_of(memcg);
	ck_assert_int_eq(mem_cgroup_set_max(memcg, 1, true), 0);
	ck_assert_int_eq(obj_cgroup_charge(objcg, GFP_KERNEL, 4096), 0);
	ck_assert_int_eq(obj_cgroup_charge(objcg, GFP_KERNEL, 1), -ENOMEM);
	ck_assert_uint_eq(bytes_used(memcg), 4096);
	obj_cgroup_uncharge(objcg, 4096);
	obj_cgroup_put(objcg);
}
END_TEST

static uint32_t nr_owners(void)
{
	struct pcpc_domain_stats stats = { .size = sizeof(stats) };

	flush_scheduled_work();
	pcpc_domain_poll(pcpc_memcg_domain());
	pcpc_domain_get_stats(pcpc_memcg_domain(), &stats);
	return stats.nr_owners;
}

/* 2.8, 2 and 5, 2.4, 5: objects pass to the parent with what they hold; the parent's usage is the
 * same before and after; later charges are the parent's; nothing of the dead one is left. */
START_TEST(objects_pass_to_the_parent_when_a_memcg_goes_offline)
{
	struct obj_cgroup *objcg;

	if (!open_memcg(_i))
		return;
	objcg = object_of(memcg);
	ck_assert_int_eq(obj_cgroup_charge(objcg, GFP_KERNEL, 10000), 0);
	ck_assert_uint_eq(nr_owners(), 3);
	ck_assert_int_eq(mem_cgroup_destroy(memcg), 0);
	memcg = NULL;
	ck_assert_uint_eq(bytes_used(top), 10000);
	ck_assert_ptr_eq(obj_cgroup_memcg(objcg), top);
	ck_assert_ptr_eq(get_mem_cgroup_from_objcg(objcg), top);
	mem_cgroup_put(top);
	obj_cgroup_get(objcg);
	ck_assert(obj_cgroup_tryget(objcg));
	obj_cgroup_put(objcg);
	obj_cgroup_put(objcg);
	ck_assert_uint_eq(nr_owners(), 2);
	ck_assert_uint_eq(bytes_used(top), 10000);
	ck_assert_int_eq(obj_cgroup_charge(objcg, GFP_KERNEL, 5), 0);
	obj_cgroup_uncharge(objcg, 10005);
	drain_all_stock(top);
	ck_assert_uint_eq(bytes_used(top), 0);
	ck_assert_uint_eq(bytes_used(root_mem_cgroup), 0);
	obj_cgroup_put(objcg);
}
END_TEST

/* 2.8, 4: charges for one who is offline find an object above; 2.8, 6: a direct reference keeps it,
 * and charges of who holds that still work. */
START_TEST(an_offline_memcg_lives_while_somebody_refers_to_it)
{
	struct obj_cgroup *objcg;

	if (!open_memcg(_i))
		return;
	ck_assert(mem_cgroup_tryget(memcg));
	ck_assert_int_eq(charge_pages(70), 0);
	ck_assert_int_eq(mem_cgroup_destroy(memcg), 0);
	ck_assert_int_eq(mem_cgroup_destroy(memcg), -EINVAL);
	ck_assert(IS_ERR(mem_cgroup_create(memcg, "late")));
	ck_assert_uint_eq(nr_owners(), 3);
	objcg = object_of(memcg);
	ck_assert_ptr_eq(obj_cgroup_memcg(objcg), top);
	obj_cgroup_put(objcg);
	ck_assert_int_eq(charge_pages(1), 0);
	refill_stock(memcg, 1);
	refill_stock(memcg, 70);
	drain_all_stock(memcg);
	usage_is(0);
	mem_cgroup_put(memcg);
	memcg = NULL;
	ck_assert_uint_eq(nr_owners(), 2);
}
END_TEST

/* cgroup core: -EBUSY with children that are online; offline ones are no hindrance. */
START_TEST(a_memcg_with_children_online_stays)
{
	struct mem_cgroup *child;

	if (!open_memcg(_i))
		return;
	child = mem_cgroup_create(memcg, "child");
	ck_assert_int_eq(mem_cgroup_destroy(memcg), -EBUSY);
	ck_assert_int_eq(mem_cgroup_destroy(NULL), -EINVAL);
	ck_assert_int_eq(mem_cgroup_destroy(root_mem_cgroup), -EINVAL);
	ck_assert(mem_cgroup_tryget(child));
	ck_assert_int_eq(mem_cgroup_destroy(child), 0);
	ck_assert_int_eq(mem_cgroup_destroy(memcg), 0);
	memcg = NULL;
	ck_assert_uint_eq(nr_owners(), 4);
	mem_cgroup_put(child);
	ck_assert_uint_eq(nr_owners(), 2);
}
END_TEST

/* H28 and 1.7, 3: "consume to exactly 0, offline, expect final put": slots keep nobody. */
START_TEST(an_empty_slot_keeps_nobody)
{
	if (!open_memcg(_i))
		return;
	ck_assert_int_eq(charge_pages(64), 0);
	refill_stock(memcg, 64);
	ck_assert(consume_stock(memcg, 64));
	pcpc_uncharge(memcg->owner, bytes_of(64));
	drain_all_stock(memcg);
	ck_assert_int_eq(mem_cgroup_destroy(memcg), 0);
	memcg = NULL;
	ck_assert_uint_eq(nr_owners(), 2);
}
END_TEST

/* pcpc_memcg_exit: "-EBUSY: mem_cgroups, objects or charges are left". */
START_TEST(the_tree_stays_while_anything_is_left)
{
	struct obj_cgroup *objcg;

	if (!open_memcg(_i))
		return;
	ck_assert_int_eq(pcpc_memcg_init(NULL), -EBUSY);
	objcg = object_of(memcg);
	ck_assert_int_eq(mem_cgroup_destroy(memcg), 0);
	ck_assert_int_eq(mem_cgroup_destroy(top), 0);
	memcg = top = NULL;
	ck_assert_int_eq(pcpc_memcg_exit(), -EBUSY);
	obj_cgroup_put(objcg);
	ck_assert_int_eq(pcpc_memcg_exit(), 0);
	ck_assert_int_eq(pcpc_memcg_exit(), 0);
	ck_assert_ptr_null(pcpc_memcg_domain());
	ck_assert(IS_ERR(mem_cgroup_create(NULL, "early")));
}
END_TEST

/* -- threads -- */

#define ROUNDS 30
#define CHARGES 2000

static struct obj_cgroup *shared[ROUNDS];
static _Atomic unsigned int created;
static _Atomic bool over;

/* Charges and uncharges whatever objects there are, while they change hands; every byte goes back.
 */
static void *use_objects(void *argument)
{
	uint64_t random = (uint64_t)(uintptr_t)argument;
	struct obj_cgroup *objcg;
	unsigned int i, newest;
	size_t size;

	while (!atomic_load(&over)) {
		newest = atomic_load(&created);
		for (i = 0; i < CHARGES && newest; i++) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			objcg = shared[newest - 1 - (random >> 33) % (newest < 4 ? newest : 4)];
			size = 1 + (random >> 40) % 20000;
			if (obj_cgroup_charge(objcg, i % 2 ? GFP_KERNEL : GFP_NOWAIT, size) == 0)
				obj_cgroup_uncharge(objcg, size);
		}
	}
	return NULL;
}

/* 2.7, 3 and 2.8, 8: "Any interleaving of alloc/free/drain across CPUs ends with pages == 0", and
 * all who are dead are gone. */
START_TEST(objects_are_charged_while_their_memcgs_come_and_go)
{
	struct mem_cgroup *middle, *leaf;
	pthread_t thread[3];
	unsigned int i;

	if (!open_memcg(_i))
		return;
	unit_stand_anywhere();
	for (i = 0; i < 3; i++)
		ck_assert_int_eq(
			pthread_create(&thread[i], NULL, use_objects, (void *)(uintptr_t)(i + 1)),
			0);
	for (i = 0; i < ROUNDS; i++) {
		middle = mem_cgroup_create(memcg, NULL);
		leaf = mem_cgroup_create(middle, NULL);
		(void)mem_cgroup_set_max(leaf, 50, true);
		shared[i] = object_of(leaf);
		atomic_store(&created, i + 1);
		drain_all_stock(memcg);
		ck_assert_int_eq(mem_cgroup_destroy(leaf), 0);
		if (i % 3 == 0)
			drain_all_stock(root_mem_cgroup);
		ck_assert_int_eq(mem_cgroup_destroy(middle), 0);
	}
	atomic_store(&over, true);
	for (i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	drain_all_stock(root_mem_cgroup);
	usage_is(0);
	ck_assert_uint_eq(nr_owners(), 3);
	ck_assert_uint_eq(pcpc_owner_events(root_mem_cgroup->owner, PCPC_EVENT_UNDERFLOW), 0);
	for (i = 0; i < ROUNDS; i++)
		obj_cgroup_put(shared[i]);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("memcontrol object");
	TCase *tests = unit_case(suite, "object");

	tcase_add_checked_fixture(tests, NULL, close_memcg);
	by_each_engine(tests, objects_and_pages_share_a_stock);
	by_each_engine(tests, four_gigabytes_are_not_nothing);
	by_each_engine(tests, a_refused_object_changes_nothing);
	by_each_engine(tests, objects_pass_to_the_parent_when_a_memcg_goes_offline);
	by_each_engine(tests, an_offline_memcg_lives_while_somebody_refers_to_it);
	by_each_engine(tests, a_memcg_with_children_online_stays);
	by_each_engine(tests, an_empty_slot_keeps_nobody);
	by_each_engine(tests, the_tree_stays_while_anything_is_left);
	by_each_engine(tests, objects_are_charged_while_their_memcgs_come_and_go);
	return unit_run(suite);
}
