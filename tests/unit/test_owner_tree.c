// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_owner_tree.c - domains and their trees: making owners and finding them, names, ids, parents,
 * depth, walks, and which owners may go.
 *
 * What becomes of owners that went is in test_owner_lifetime.c.
 */
#define _GNU_SOURCE
#include "owner_support.h"

static struct pcpc_owner *named(struct pcpc_owner *parent, const char *name, void *context)
{
	const struct pcpc_owner_config config = { .size = sizeof(config),
						  .name = name,
						  .context = context };
	struct pcpc_owner *owner = NULL;

	ck_assert_int_eq(pcpc_owner_create(parent, &config, &owner), 0);
	return owner;
}

/* owner.h: "make a domain with a root that has no limit"; section 4: ids from 1 on. */
START_TEST(a_new_domain_has_a_root_and_nothing_else)
{
	unsigned int event;

	if (!open_domain(_i, 64, 0))
		return;
	ck_assert_uint_eq(pcpc_owner_id(root), 1);
	ck_assert_ptr_null(pcpc_owner_parent(root));
	ck_assert_str_eq(pcpc_owner_name(root), "test");
	ck_assert_ptr_null(pcpc_owner_context(root));
	ck_assert_uint_eq(pcpc_owner_max(root), PCPC_UNLIMITED);
	ck_assert_uint_eq(pcpc_owner_high(root), PCPC_UNLIMITED);
	ck_assert_uint_eq(pcpc_owner_usage(root), 0);
	ck_assert_uint_eq(pcpc_owner_usage_exact(root), 0);
	ck_assert_uint_eq(pcpc_owner_stocked(root), 0);
	ck_assert_uint_eq(pcpc_owner_peak(root), 0);
	ck_assert_uint_eq(pcpc_owner_drain(root), 0);
	for (event = 0; event < PCPC_NR_EVENTS; event++)
		ck_assert_uint_eq(pcpc_owner_events(root, (enum pcpc_event)event), 0);
	ck_assert_int_ge(pcpc_domain_eventfd(domain), 0);
	ck_assert(!rung());
	ck_assert_int_eq(pcpc_cache_engine(domain->cache), _i);
}
END_TEST

/* owner.h, pcpc_owner_create(): "config: may be NULL"; "0: unlimited". */
START_TEST(an_owner_without_a_configuration_has_the_defaults)
{
	const struct pcpc_owner_config zero = { .size = sizeof(zero) };
	const struct pcpc_owner_config *configs[] = { NULL, &zero };
	struct pcpc_owner *owner = NULL;
	unsigned int i;

	if (!open_domain(_i, 64, 0))
		return;
	for (i = 0; i < 2; i++) {
		ck_assert_int_eq(pcpc_owner_create(root, configs[i], &owner), 0);
		ck_assert_uint_eq(pcpc_owner_max(owner), PCPC_UNLIMITED);
		ck_assert_uint_eq(pcpc_owner_high(owner), PCPC_UNLIMITED);
		ck_assert_str_eq(pcpc_owner_name(owner), "");
		ck_assert_ptr_null(pcpc_owner_context(owner));
		ck_assert_ptr_eq(pcpc_owner_parent(owner), root);
		ck_assert_uint_eq(pcpc_owner_usage(owner), 0);
		ck_assert_uint_eq(pcpc_owner_peak(owner), 0);
		ck_assert_uint_eq(atomic_load(&books_of(owner)->own_batch), 64);
	}
}
END_TEST

/* owner.h: "the name is copied"; every length around what an owner keeps in place. */
START_TEST(names_are_copied_whatever_their_length)
{
	static const size_t lengths[] = { 0,  1,  22, 23,  24,	 25,	30,	 31,
					  32, 33, 63, 255, 4096, 65535, 1000000, 1 };
	const unsigned int nr = sizeof(lengths) / sizeof(lengths[0]);
	struct pcpc_owner *owner[sizeof(lengths) / sizeof(lengths[0])];
	char letter[2] = "", *name;
	const char *kept;
	unsigned int i;

	if (!open_domain(_i, 64, 0))
		return;
	for (i = 0; i < nr; i++) {
		name = malloc(lengths[i] + 1);
		ck_assert_ptr_nonnull(name);
		memset(name, 'a' + (int)i, lengths[i]);
		name[lengths[i]] = '\0';
		owner[i] = named(root, name, &owner[i]);
		memset(name, '!', lengths[i]);
		free(name);
	}
	for (i = 0; i < nr; i++) {
		kept = pcpc_owner_name(owner[i]);
		ck_assert_uint_eq(strlen(kept), lengths[i]);
		letter[0] = (char)('a' + i);
		ck_assert_uint_eq(strspn(kept, letter), lengths[i]);
		ck_assert_ptr_eq(pcpc_owner_context(owner[i]), &owner[i]);
	}
	/* names need not be unique, nor ASCII */
	ck_assert_str_eq(pcpc_owner_name(named(root, "\xc3\xa9\n\"", NULL)), "\xc3\xa9\n\"");
	ck_assert_str_eq(pcpc_owner_name(named(root, "\xc3\xa9\n\"", NULL)), "\xc3\xa9\n\"");
}
END_TEST

/* owner.h: domain strings are copied; NULL is empty. */
START_TEST(a_domain_copies_its_strings)
{
	struct pcpc_domain_config config = domain_config((enum pcpc_engine)_i, 64);
	char name[] = "memory of this test, longer than a short name", unit[] = "bytes";

	config.name = name;
	config.unit = unit;
	if (!create_domain(&config))
		return;
	memset(name, '!', sizeof(name) - 1);
	memset(unit, '!', sizeof(unit) - 1);
	ck_assert_str_eq(pcpc_owner_name(root), "memory of this test, longer than a short name");
	close_domain();
	config.name = config.unit = NULL;
	ck_assert(create_domain(&config));
	ck_assert_str_eq(pcpc_owner_name(root), "");
}
END_TEST

/* Section 4: "Ids are per domain, dense, lowest free first." */
START_TEST(ids_are_dense_and_the_lowest_free_comes_first)
{
	struct pcpc_owner *owner[300];
	uint32_t i;

	if (!open_domain(_i, 64, 0))
		return;
	for (i = 0; i < 300; i++) {
		owner[i] = child_of(i % 7 ? owner[i - 1] : root);
		ck_assert_uint_eq(pcpc_owner_id(owner[i]), i + 2);
	}
	/* one in the middle of a branch, with what is below it */
	for (i = 104; i >= 102; i--)
		ck_assert_int_eq(pcpc_owner_destroy(owner[i]), 0);
	pcpc_domain_poll(domain);
	ck_assert_uint_eq(pcpc_owner_id(child_of(root)), 104);
	ck_assert_uint_eq(pcpc_owner_id(child_of(root)), 105);
	ck_assert_uint_eq(pcpc_owner_id(child_of(root)), 106);
	ck_assert_uint_eq(pcpc_owner_id(child_of(root)), 302);
}
END_TEST

/* The same over the words of the bitmap that ids are found in: 64 and 4,096. */
START_TEST(freed_ids_are_taken_again_from_the_lowest)
{
	static const uint32_t gone[] = { 2, 3, 63, 64, 65, 127, 128, 129, 4095, 4096, 4097, 5001 };
	const uint32_t nr = sizeof(gone) / sizeof(gone[0]);
	uint32_t i;

	if (!open_domain(_i, 64, 0))
		return;
	for (i = 2; i <= 5001; i++)
		ck_assert_uint_eq(pcpc_owner_id(child_of(root)), i);
	for (i = 0; i < nr; i++)
		ck_assert_int_eq(pcpc_owner_destroy(pcpc_owner_by_id(domain, gone[nr - 1 - i])), 0);
	pcpc_domain_poll(domain);
	for (i = 0; i < nr; i++)
		ck_assert_uint_eq(pcpc_owner_id(child_of(root)), gone[i]);
	ck_assert_uint_eq(pcpc_owner_id(child_of(root)), 5002);
}
END_TEST

/* Section 7: "reuse their ids" only after a sweep; issue: "only when nothing can still name them".
 */
START_TEST(an_id_is_not_reused_before_the_sweep)
{
	struct pcpc_owner *first, *second;

	if (!open_domain(_i, 64, 0))
		return;
	first = child_of(root);
	ck_assert_int_eq(pcpc_owner_destroy(first), 0);
	second = child_of(root);
	ck_assert_uint_eq(pcpc_owner_id(second), 3);
	ck_assert_ptr_ne(first, second);
	pcpc_domain_poll(domain);
	ck_assert_ptr_null(pcpc_owner_by_id(domain, 2));
	ck_assert_uint_eq(pcpc_owner_id(child_of(root)), 2);
}
END_TEST

/* Ids are per domain: two domains do not disturb each other. */
START_TEST(domains_have_ids_of_their_own)
{
	struct pcpc_domain_config config = domain_config((enum pcpc_engine)_i, 64);
	struct pcpc_domain *other = NULL;
	struct pcpc_owner *owner, *theirs;

	if (!open_domain(_i, 64, 0))
		return;
	ck_assert_int_eq(pcpc_domain_create(&config, &other), 0);
	owner = child_of(root);
	theirs = child_of(pcpc_domain_root(other));
	ck_assert_uint_eq(pcpc_owner_id(owner), 2);
	ck_assert_uint_eq(pcpc_owner_id(theirs), 2);
	ck_assert_ptr_eq(pcpc_owner_by_id(other, 2), theirs);
	ck_assert_ptr_eq(pcpc_owner_by_id(domain, 2), owner);
	charge(owner, 1000);
	ck_assert_uint_eq(pcpc_owner_usage(theirs), 0);
	ck_assert_uint_eq(pcpc_owner_usage(pcpc_domain_root(other)), 0);
	uncharge(owner, 1000);
	ck_assert_int_eq(pcpc_owner_destroy(theirs), 0);
	ck_assert_int_eq(pcpc_domain_destroy(other), 0);
}
END_TEST

/* owner.h, pcpc_owner_by_id(). */
START_TEST(an_id_leads_to_its_owner_and_an_unused_one_nowhere)
{
	struct pcpc_owner *owner;

	if (!open_domain(_i, 64, 0))
		return;
	owner = child_of(child_of(root));
	ck_assert_ptr_eq(pcpc_owner_by_id(domain, 1), root);
	ck_assert_ptr_eq(pcpc_owner_by_id(domain, 3), owner);
	ck_assert_ptr_null(pcpc_owner_by_id(domain, 0));
	ck_assert_ptr_null(pcpc_owner_by_id(domain, 4));
	ck_assert_ptr_null(pcpc_owner_by_id(domain, PCPC_OWNER_MAX));
	ck_assert_ptr_null(pcpc_owner_by_id(domain, PCPC_OWNER_MAX + 1));
	ck_assert_ptr_null(pcpc_owner_by_id(domain, UINT32_MAX));
	ck_assert_ptr_null(pcpc_owner_by_id(NULL, 1));
	/* who went but is charged is still found, by whoever holds units of it */
	charge(owner, 5);
	ck_assert_int_eq(pcpc_owner_destroy(owner), 0);
	pcpc_domain_poll(domain);
	ck_assert_ptr_eq(pcpc_owner_by_id(domain, 3), owner);
	uncharge(pcpc_owner_by_id(domain, 3), 5);
	pcpc_domain_poll(domain);
	ck_assert_ptr_null(pcpc_owner_by_id(domain, 3));
}
END_TEST

/* owner.h: "more than PCPC_DEPTH_MAX levels": 64 below the root are fine, 65 are not. */
START_TEST(sixty_four_levels_are_fine_and_one_more_is_not)
{
	struct pcpc_owner *owner, *deeper;
	int level;

	if (!open_domain(_i, 64, 0))
		return;
	owner = root;
	for (level = 1; level <= 64; level++) {
		deeper = child_of(owner);
		ck_assert_ptr_eq(pcpc_owner_parent(deeper), owner);
		owner = deeper;
	}
	ck_assert_int_eq(pcpc_owner_create(owner, NULL, &deeper), -EINVAL);
	ck_assert_ptr_eq(deeper, owner);
	ck_assert_uint_eq(pcpc_owner_id(owner), 65);
	/* the deepest is charged, and so is every level above it */
	charge(owner, 1000);
	for (deeper = owner; deeper; deeper = pcpc_owner_parent(deeper))
		ck_assert_uint_eq(pcpc_owner_usage_exact(deeper), 1000);
	uncharge(owner, 1000);
	for (deeper = owner; deeper; deeper = pcpc_owner_parent(deeper))
		ck_assert_uint_eq(pcpc_owner_usage_exact(deeper), 0);
	/* a place that is free again is free */
	ck_assert_int_eq(pcpc_owner_destroy(owner), 0);
	owner = pcpc_owner_by_id(domain, 64);
	ck_assert_int_eq(pcpc_owner_create(owner, NULL, &deeper), 0);
}
END_TEST

/* Semantics 3, i: a refusal at the very top, seen from the very bottom; and at every level. */
START_TEST(every_one_of_sixty_four_levels_can_refuse)
{
	struct pcpc_owner *owner[65];
	struct pcpc_refusal refusal;
	int level, over;

	if (!open_domain(_i, 64, 0))
		return;
	owner[0] = root;
	for (level = 1; level <= 64; level++)
		owner[level] = child_of(owner[level - 1]);
	for (over = 0; over <= 64; over++) {
		ck_assert_int_eq(pcpc_owner_set_max(owner[over], 1000), 0);
		ck_assert_int_eq(pcpc_charge_flags(owner[64], 1001, 0, &refusal), -EDQUOT);
		ck_assert_ptr_eq(refusal.over, owner[over]);
		charge(owner[64], 1000);
		ck_assert_int_eq(pcpc_charge_flags(owner[64], 1, 0, &refusal), -EDQUOT);
		ck_assert_ptr_eq(refusal.over, owner[over]);
		uncharge(owner[64], 1000);
		ck_assert_int_eq(pcpc_owner_set_max(owner[over], PCPC_UNLIMITED), 0);
		(void)pcpc_owner_drain(root);
		for (level = 0; level <= 64; level++)
			ck_assert_uint_eq(pcpc_owner_usage(owner[level]), 0);
	}
}
END_TEST

/* owner.h: "-EBUSY with live children", "offline ones do not count"; the root is not destroyed. */
START_TEST(an_owner_with_live_children_stays)
{
	struct pcpc_owner *mid, *first, *second;

	if (!open_domain(_i, 64, 0))
		return;
	mid = child_of(root);
	first = child_of(mid);
	second = child_of(mid);
	ck_assert_int_eq(pcpc_owner_destroy(mid), -EBUSY);
	charge(mid, 1); /* as before: it is live */
	uncharge(mid, 1);
	ck_assert_int_eq(pcpc_owner_destroy(first), 0);
	ck_assert_int_eq(pcpc_owner_destroy(mid), -EBUSY);
	charge(second, 10);
	ck_assert_int_eq(pcpc_owner_destroy(second), 0);
	/* second is offline, charged, and not swept */
	ck_assert_int_eq(pcpc_owner_destroy(mid), 0);
	ck_assert_int_eq(pcpc_owner_destroy(root), -EINVAL);
	ck_assert_int_eq(pcpc_owner_destroy(NULL), 0);
	uncharge(second, 10);
}
END_TEST

/* owner.h: "-ESHUTDOWN: parent is offline"; destroying twice is -EINVAL. */
START_TEST(an_owner_that_went_has_no_more_children_and_does_not_go_twice)
{
	struct pcpc_owner *owner, *child;

	if (!open_domain(_i, 64, 0))
		return;
	child = root;
	owner = pcpc_owner_get(child_of(root));
	ck_assert_int_eq(pcpc_owner_destroy(owner), 0);
	ck_assert_int_eq(pcpc_owner_create(owner, NULL, &child), -ESHUTDOWN);
	ck_assert_ptr_eq(child, root);
	ck_assert_int_eq(pcpc_owner_destroy(owner), -EINVAL);
	ck_assert_int_eq(pcpc_owner_destroy(owner), -EINVAL);
	pcpc_domain_poll(domain);
	ck_assert_int_eq(pcpc_owner_destroy(owner), -EINVAL);
	pcpc_owner_put(owner);
	/* nothing of the failed call was left: the next id is the next */
	pcpc_domain_poll(domain);
	ck_assert_uint_eq(pcpc_owner_id(child_of(root)), 2);
}
END_TEST

struct visits {
	uint32_t nr, stop_after;
	uint32_t id[64];
	unsigned int depth[64];
};

static bool visit(struct pcpc_owner *owner, unsigned int depth, void *context)
{
	struct visits *visits = context;

	visits->id[visits->nr] = pcpc_owner_id(owner);
	visits->depth[visits->nr++] = depth;
	return visits->nr != visits->stop_after;
}

static uint32_t position(const struct visits *visits, uint32_t id)
{
	uint32_t i, found = UINT32_MAX;

	for (i = 0; i < visits->nr; i++) {
		if (visits->id[i] != id)
			continue;
		ck_assert_uint_eq(found, UINT32_MAX); /* once */
		found = i;
	}
	return found;
}

/* owner.h: "visit an owner (depth 0) and its live descendants, parents first, until visit says
 * false". */
START_TEST(a_walk_visits_everybody_once_and_parents_first)
{
	struct visits visits = { 0 };
	struct pcpc_owner *owner[40];
	uint32_t i, of;

	if (!open_domain(_i, 64, 0))
		return;
	owner[0] = root;
	for (i = 1; i < 40; i++)
		owner[i] = child_of(owner[(i - 1) / 3]);
	pcpc_owner_walk(root, visit, &visits);
	ck_assert_uint_eq(visits.nr, 40);
	for (i = 1; i < 40; i++) {
		of = position(&visits, i + 1);
		ck_assert_uint_lt(of, 40);
		ck_assert_uint_lt(position(&visits, (i - 1) / 3 + 1), of);
		ck_assert_uint_eq(visits.depth[of], owner[i]->depth);
	}
	/* from the middle: depths count from there, and nobody from beside it */
	visits = (struct visits){ 0 };
	pcpc_owner_walk(owner[2], visit, &visits);
	ck_assert_uint_eq(visits.id[0], 3);
	ck_assert_uint_eq(visits.depth[0], 0);
	ck_assert_uint_eq(visits.nr, 13); /* itself, 3 children, 9 of theirs */
	ck_assert_uint_eq(position(&visits, 2), UINT32_MAX);
	ck_assert_uint_eq(position(&visits, 4), UINT32_MAX);
	/* stops when it is told */
	visits = (struct visits){ .stop_after = 5 };
	pcpc_owner_walk(root, visit, &visits);
	ck_assert_uint_eq(visits.nr, 5);
	/* not those that went */
	ck_assert_int_eq(pcpc_owner_destroy(owner[39]), 0);
	ck_assert_int_eq(pcpc_owner_destroy(owner[20]), 0);
	visits = (struct visits){ 0 };
	pcpc_owner_walk(root, visit, &visits);
	ck_assert_uint_eq(visits.nr, 38);
	ck_assert_uint_eq(position(&visits, 40), UINT32_MAX);
	ck_assert_uint_eq(position(&visits, 21), UINT32_MAX);
	pcpc_owner_walk(NULL, visit, &visits);
	pcpc_owner_walk(root, NULL, NULL);
	ck_assert_uint_eq(visits.nr, 38);
}
END_TEST

static bool busy_visit(struct pcpc_owner *owner, unsigned int depth, void *context)
{
	uint32_t *visited = context;
	struct pcpc_owner *child = NULL;

	ck_assert_uint_eq(owner->depth, depth);
	++*visited;
	charge(owner, 1);
	uncharge(owner, 1);
	/* itself, where it is a leaf; and a child of its own, while there is room */
	if (owner != root && pcpc_owner_destroy(owner) == 0) {
		ck_assert_int_eq(pcpc_owner_create(owner, NULL, &child), -ESHUTDOWN);
	} else if (*visited < 200) {
		ck_assert_int_eq(pcpc_owner_create(owner, NULL, &child), 0);
	}
	pcpc_domain_poll(domain);
	return *visited < 1000;
}

/* owner.h: "No lock is held meanwhile: visit may do anything". */
START_TEST(a_walk_holds_no_lock_and_survives_changes)
{
	struct pcpc_owner *mid;
	uint32_t visited = 0, i;

	if (!open_domain(_i, 64, 0))
		return;
	for (i = 0; i < 30; i++) {
		mid = child_of(root);
		child_of(mid);
		child_of(mid);
	}
	pcpc_owner_walk(root, busy_visit, &visited);
	ck_assert_uint_gt(visited, 90);
	pcpc_domain_poll(domain);
}
END_TEST

/* A walk keeps nobody: after it, and a sweep, those that went are gone (G14). */
START_TEST(a_walk_leaves_no_references)
{
	struct visits visits = { 0 }, stopped = { .stop_after = 2 };
	struct pcpc_owner *mid;

	if (!open_domain(_i, 64, 0))
		return;
	mid = child_of(root);
	child_of(mid);
	child_of(mid);
	pcpc_owner_walk(root, visit, &visits);
	pcpc_owner_walk(root, visit, &stopped);
	ck_assert_uint_eq(atomic_load(&books_of(mid)->refs), 3); /* create's, and two children */
	ck_assert_uint_eq(atomic_load(&books_of(root)->refs), 2);
}
END_TEST

/* House style: public functions check their arguments. */
START_TEST(null_is_no_owner)
{
	if (!open_domain(_i, 64, 0))
		return;
	ck_assert_ptr_null(pcpc_domain_root(NULL));
	ck_assert_int_eq(pcpc_domain_destroy(NULL), 0);
	ck_assert_int_lt(pcpc_domain_eventfd(NULL), 0);
	pcpc_domain_poll(NULL);
	ck_assert_ptr_null(pcpc_owner_get(NULL));
	pcpc_owner_put(NULL);
	ck_assert_uint_eq(pcpc_owner_id(NULL), 0);
	ck_assert_ptr_null(pcpc_owner_parent(NULL));
	ck_assert_ptr_null(pcpc_owner_name(NULL));
	ck_assert_ptr_null(pcpc_owner_context(NULL));
	ck_assert_uint_eq(pcpc_owner_max(NULL), 0);
	ck_assert_uint_eq(pcpc_owner_high(NULL), 0);
	ck_assert_uint_eq(pcpc_owner_usage(NULL), 0);
	ck_assert_uint_eq(pcpc_owner_usage_exact(NULL), 0);
	ck_assert_uint_eq(pcpc_owner_stocked(NULL), 0);
	ck_assert_uint_eq(pcpc_owner_peak(NULL), 0);
	pcpc_owner_reset_peak(NULL);
	ck_assert_uint_eq(pcpc_owner_drain(NULL), 0);
	ck_assert_uint_eq(pcpc_owner_events(NULL, PCPC_EVENT_MAX), 0);
	ck_assert_uint_eq(pcpc_owner_events(root, PCPC_NR_EVENTS), 0);
	ck_assert_uint_eq(pcpc_owner_events(root, (enum pcpc_event) - 1), 0);
	ck_assert_int_eq(pcpc_owner_set_max(NULL, 1), -EINVAL);
	ck_assert_int_eq(pcpc_owner_set_high(NULL, 1), -EINVAL);
	ck_assert_int_eq(pcpc_owner_set_batch(NULL, 1), -EINVAL);
	ck_assert_int_eq(pcpc_owner_set_reclaim(NULL, NULL, NULL), -EINVAL);
	ck_assert_int_eq(pcpc_owner_set_notify(NULL, NULL, NULL), -EINVAL);
	ck_assert_ptr_nonnull(pcpc_version());
	pcpc_thread_register();
	pcpc_thread_register();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("owner tree");
	TCase *tests = unit_case(suite, "tree");

	tcase_add_checked_fixture(tests, NULL, close_domain);
	by_each_engine(tests, a_new_domain_has_a_root_and_nothing_else);
	by_each_engine(tests, an_owner_without_a_configuration_has_the_defaults);
	by_each_engine(tests, names_are_copied_whatever_their_length);
	by_each_engine(tests, a_domain_copies_its_strings);
	by_each_engine(tests, ids_are_dense_and_the_lowest_free_comes_first);
	by_each_engine(tests, freed_ids_are_taken_again_from_the_lowest);
	by_each_engine(tests, an_id_is_not_reused_before_the_sweep);
	by_each_engine(tests, domains_have_ids_of_their_own);
	by_each_engine(tests, an_id_leads_to_its_owner_and_an_unused_one_nowhere);
	by_each_engine(tests, sixty_four_levels_are_fine_and_one_more_is_not);
	by_each_engine(tests, every_one_of_sixty_four_levels_can_refuse);
	by_each_engine(tests, an_owner_with_live_children_stays);
	by_each_engine(tests, an_owner_that_went_has_no_more_children_and_does_not_go_twice);
	by_each_engine(tests, a_walk_visits_everybody_once_and_parents_first);
	by_each_engine(tests, a_walk_holds_no_lock_and_survives_changes);
	by_each_engine(tests, a_walk_leaves_no_references);
	by_each_engine(tests, null_is_no_owner);
	return unit_run(suite);
}
