// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_event_poll.c - who is told of events, when, by whom, and that the eventfd is readable
 * whenever poll has something to do.
 */
#define _GNU_SOURCE
#include "owner_support.h"

#define MOST_TOLD 64

struct told {
	unsigned int nr;
	struct {
		struct pcpc_owner *owner;
		enum pcpc_event event;
		pthread_t thread;
	} of[MOST_TOLD];
	void (*also)(struct told *told, struct pcpc_owner *owner, enum pcpc_event event);
	struct pcpc_owner *help, *help2;
	struct pcpc_domain *other;
	int result;
};

static void tell(struct pcpc_owner *owner, enum pcpc_event event, void *context)
{
	struct told *told = context;

	ck_assert_uint_lt(told->nr, MOST_TOLD);
	told->of[told->nr].owner = owner;
	told->of[told->nr].event = event;
	told->of[told->nr++].thread = pthread_self();
	if (told->also)
		told->also(told, owner, event);
}

static unsigned int times(const struct told *told, const struct pcpc_owner *owner,
			  enum pcpc_event event)
{
	unsigned int i, found = 0;

	for (i = 0; i < told->nr; i++)
		found += told->of[i].owner == owner && told->of[i].event == event;
	return found;
}

static void ask(struct pcpc_owner *owner, struct told *told)
{
	ck_assert_int_eq(pcpc_owner_set_notify(owner, tell, told), 0);
}

/* A leaf below a limit that is used up and known to be. */
static struct pcpc_owner *full_leaf(uint64_t max)
{
	struct pcpc_owner *leaf = child_of(make_owner(root, max, 0));

	charge(leaf, max);
	ck_assert_int_eq(pcpc_charge(leaf, 1), -EDQUOT);
	return leaf;
}

/* owner.h: "Tells of an event of owner, itself or below the one that asked"; section 7: "for the
 * owner and each ancestor that asked". */
START_TEST(the_owner_and_each_ancestor_that_asked_are_told)
{
	struct told of_root = { 0 }, of_mid = { 0 }, of_leaf = { 0 }, of_other = { 0 };
	struct pcpc_owner *mid, *leaf;

	if (!open_domain(_i, 64, 0))
		return;
	mid = make_owner(child_of(root), 100, 0);
	leaf = child_of(mid);
	ask(root, &of_root);
	ask(mid, &of_mid);
	ask(leaf, &of_leaf);
	ask(child_of(mid), &of_other);
	ck_assert_int_eq(pcpc_charge(leaf, 101), -EDQUOT);
	/* told when the charge returns; both name mid, where it happened */
	ck_assert_uint_eq(times(&of_mid, mid, PCPC_EVENT_MAX), 1);
	ck_assert_uint_eq(times(&of_mid, mid, PCPC_EVENT_REFUSED), 1);
	ck_assert_uint_eq(times(&of_root, mid, PCPC_EVENT_MAX), 1);
	ck_assert_uint_eq(times(&of_root, mid, PCPC_EVENT_REFUSED), 1);
	ck_assert_uint_eq(of_leaf.nr, 0); /* it is below */
	ck_assert_uint_eq(of_other.nr, 0);
	ck_assert(pthread_equal(of_mid.of[0].thread, pthread_self()));
	ck_assert(!rung());
	/* the leaf's own event goes up to all three */
	ck_assert_int_eq(pcpc_owner_set_high(leaf, 10), 0);
	charge(leaf, 50);
	ck_assert_uint_eq(times(&of_leaf, leaf, PCPC_EVENT_HIGH), 1);
	ck_assert_uint_eq(times(&of_mid, leaf, PCPC_EVENT_HIGH), 1);
	ck_assert_uint_eq(times(&of_root, leaf, PCPC_EVENT_HIGH), 1);
	/* who takes it away is not told any more */
	ck_assert_int_eq(pcpc_owner_set_notify(mid, NULL, NULL), 0);
	ck_assert_int_eq(pcpc_charge(leaf, 101), -EDQUOT);
	ck_assert_uint_eq(times(&of_mid, mid, PCPC_EVENT_REFUSED), 1);
	ck_assert_uint_eq(times(&of_root, mid, PCPC_EVENT_REFUSED), 2);
	uncharge(leaf, 50);
	ck_assert_int_eq(pcpc_owner_set_notify(root, NULL, NULL), 0);
}
END_TEST

/* owner.h: "Events that arise where no callback may run (NOWAIT, uncharge, ...) come from poll";
 * the eventfd: "readable when poll has something to do". */
START_TEST(nowait_and_uncharge_leave_it_to_poll)
{
	struct told told = { 0 };
	struct pcpc_owner *leaf;

	if (!open_domain(_i, 64, 0))
		return;
	leaf = full_leaf(1600);
	pcpc_domain_poll(domain);
	ask(root, &told);
	ck_assert(!rung());
	ck_assert_int_eq(pcpc_charge_flags(leaf, 1, PCPC_NOWAIT, NULL), -EDQUOT);
	ck_assert_uint_eq(told.nr, 0);
	ck_assert(rung());
	pcpc_domain_poll(domain);
	ck_assert_uint_eq(times(&told, leaf->parent, PCPC_EVENT_REFUSED), 1);
	ck_assert(!rung());
	told.nr = 0;
	pcpc_uncharge(leaf, 1600);
	ck_assert_uint_eq(told.nr, 0);
	ck_assert(rung());
	pcpc_domain_poll(domain);
	ck_assert_uint_eq(times(&told, leaf->parent, PCPC_EVENT_RELIEVED), 1);
	ck_assert_uint_eq(told.nr, 1);
	/* FORCE with NOWAIT, and HIGH */
	told.nr = 0;
	ck_assert_int_eq(pcpc_owner_set_high(leaf->parent, 1000), 0);
	ck_assert_int_eq(pcpc_charge_flags(leaf, 1601, PCPC_NOWAIT | PCPC_FORCE, NULL), 0);
	ck_assert_uint_eq(told.nr, 0);
	ck_assert(rung());
	pcpc_domain_poll(domain);
	ck_assert_uint_eq(times(&told, leaf->parent, PCPC_EVENT_FORCED), 1);
	ck_assert_uint_eq(times(&told, leaf->parent, PCPC_EVENT_HIGH), 1);
	/* an underflow, from uncharge */
	told.nr = 0;
	pcpc_uncharge(leaf, 5000);
	ck_assert(rung());
	pcpc_domain_poll(domain);
	ck_assert_uint_eq(times(&told, leaf, PCPC_EVENT_UNDERFLOW), 1);
	ck_assert(!rung());
	(void)pcpc_owner_drain(root);
	ck_assert_int_eq(pcpc_owner_set_notify(root, NULL, NULL), 0);
}
END_TEST

/* Section 7: inside the caller's read-side section no callback may run; asks 7, no lock is held. */
START_TEST(inside_a_read_side_section_nobody_is_told)
{
	struct told told = { 0 };
	struct pcpc_owner *leaf;

	if (!open_domain(_i, 64, 0))
		return;
	leaf = full_leaf(1600);
	pcpc_domain_poll(domain);
	ask(root, &told);
	urcu_bp_read_lock();
	ck_assert_int_eq(pcpc_charge(leaf, 1), -EDQUOT);
	ck_assert_uint_eq(told.nr, 0);
	ck_assert(rung());
	urcu_bp_read_unlock();
	pcpc_domain_poll(domain);
	ck_assert_uint_eq(times(&told, leaf->parent, PCPC_EVENT_REFUSED), 1);
	uncharge(leaf, 1600);
	pcpc_domain_poll(domain);
	ck_assert_int_eq(pcpc_owner_set_notify(root, NULL, NULL), 0);
}
END_TEST

/* A later call that may call back does so, also for what others have left. */
START_TEST(the_next_charge_that_may_delivers_what_others_left)
{
	struct told told = { 0 };
	struct pcpc_owner *leaf;

	if (!open_domain(_i, 64, 0))
		return;
	leaf = full_leaf(1600);
	ask(root, &told);
	ck_assert_int_eq(pcpc_charge_flags(leaf, 1, PCPC_NOWAIT, NULL), -EDQUOT);
	ck_assert_uint_eq(told.nr, 0);
	charge(child_of(root), 0);
	ck_assert_uint_eq(times(&told, leaf->parent, PCPC_EVENT_REFUSED), 1);
	told.nr = 0;
	pcpc_domain_poll(domain);
	ck_assert_uint_eq(told.nr, 0); /* once */
	ck_assert(!rung());
	uncharge(leaf, 1600);
	pcpc_domain_poll(domain);
	ck_assert_int_eq(pcpc_owner_set_notify(root, NULL, NULL), 0);
}
END_TEST

/* Nobody asked: nothing is queued, and the eventfd is silent. */
START_TEST(without_anybody_who_asked_the_eventfd_is_silent)
{
	struct pcpc_owner *leaf;

	if (!open_domain(_i, 64, 0))
		return;
	leaf = full_leaf(1600);
	ck_assert_int_eq(pcpc_charge_flags(leaf, 1, PCPC_NOWAIT, NULL), -EDQUOT);
	pcpc_uncharge(leaf, 1600);
	pcpc_uncharge(leaf, 1);
	ck_assert(!rung());
	ck_assert_ptr_null(atomic_load(&domain->pending));
	(void)pcpc_owner_drain(root);
}
END_TEST

static void do_everything(struct told *told, struct pcpc_owner *owner, enum pcpc_event event)
{
	struct pcpc_owner *made = NULL;

	(void)event;
	told->also = NULL; /* once is enough */
	ck_assert(!urcu_bp_read_ongoing());
	ck_assert_int_eq(pthread_mutex_trylock(&domain->tree_mutex), 0);
	pthread_mutex_unlock(&domain->tree_mutex);
	ck_assert_int_eq(pthread_mutex_trylock(&domain->sweep_mutex), 0);
	pthread_mutex_unlock(&domain->sweep_mutex);
	ck_assert_int_eq(pthread_mutex_trylock(&domain->cache->drain_mutex), 0);
	pthread_mutex_unlock(&domain->cache->drain_mutex);
	/* with a reference on it */
	ck_assert_uint_ge(atomic_load(&books_of(owner)->refs), 2);
	ck_assert_int_eq(pcpc_owner_create(owner, NULL, &made), 0);
	ck_assert_int_eq(pcpc_charge_flags(made, 5, PCPC_FORCE, NULL), 0);
	pcpc_uncharge(made, 5);
	ck_assert_int_eq(pcpc_owner_destroy(made), 0);
	ck_assert_int_eq(pcpc_charge(told->help, 100), 0);
	pcpc_uncharge(told->help, 100);
	(void)pcpc_owner_drain(root);
	ck_assert_int_eq(pcpc_owner_set_max(told->help, 10), 0);
	pcpc_domain_poll(domain);
	ck_assert_int_eq(pcpc_owner_set_notify(owner, NULL, NULL), 0);
}

/* Required: "Callbacks run with no lock held and never inside an RCU read-side section"; asks 7.
 */
START_TEST(asks_7_a_callback_may_do_everything)
{
	struct told told = { .also = do_everything }, of_root = { .also = do_everything };
	struct pcpc_owner *leaf;

	if (!open_domain(_i, 64, 0))
		return;
	told.help = of_root.help = child_of(root);
	leaf = full_leaf(1600);
	ask(leaf->parent, &told);
	ck_assert_int_eq(pcpc_charge(leaf, 1), -EDQUOT);
	ck_assert_uint_ge(told.nr, 1);
	/* the same from poll */
	ck_assert_int_eq(pcpc_owner_set_max(told.help, PCPC_UNLIMITED), 0);
	told.also = do_everything;
	ask(leaf->parent, &told);
	ck_assert_int_eq(pcpc_charge_flags(leaf, 1, PCPC_NOWAIT, NULL), -EDQUOT);
	pcpc_domain_poll(domain);
	ck_assert_ptr_null((void *)(uintptr_t)told.also);
	uncharge(leaf, 1600);
	pcpc_domain_poll(domain);
}
END_TEST

static void refuse_another(struct told *told, struct pcpc_owner *owner, enum pcpc_event event)
{
	if (owner != told->help->parent && event == PCPC_EVENT_REFUSED)
		told->result = pcpc_charge(told->help, 1);
}

static void refuse_another_nowait(struct told *told, struct pcpc_owner *owner,
				  enum pcpc_event event)
{
	if (owner != told->help->parent && event == PCPC_EVENT_REFUSED)
		told->result = pcpc_charge_flags(told->help, 1, PCPC_NOWAIT, NULL);
}

static void relieve_another(struct told *told, struct pcpc_owner *owner, enum pcpc_event event)
{
	if (owner != told->help->parent && event == PCPC_EVENT_REFUSED)
		pcpc_uncharge(told->help, 1600);
}

/* Whatever arises inside a callback is not lost: when the outermost call is done, it has been told,
 * or the eventfd says that poll will. For charges, NOWAIT and uncharges; told by a charge, and by
 * poll. */
START_TEST(an_event_inside_a_callback_is_told_or_rung)
{
	void (*const also[])(struct told *, struct pcpc_owner *,
			     enum pcpc_event) = { refuse_another, refuse_another_nowait,
						  relieve_another };
	static const enum pcpc_event event[] = { PCPC_EVENT_REFUSED, PCPC_EVENT_REFUSED,
						 PCPC_EVENT_RELIEVED };
	struct told told = { 0 };
	struct pcpc_owner *leaf, *other;
	int i;

	if (!open_domain(_i, 64, 0))
		return;
	leaf = full_leaf(1600);
	told.help = other = full_leaf(1600);
	ask(leaf->parent, &told);
	ask(other->parent, &told);
	for (i = 0; i < 6; i++) {
		pcpc_domain_poll(domain);
		told.nr = 0;
		told.also = also[i % 3];
		ck_assert_int_eq(pcpc_charge_flags(leaf, 1, i < 3 ? 0 : PCPC_NOWAIT, NULL),
				 -EDQUOT);
		if (i >= 3) {
			ck_assert(rung());
			pcpc_domain_poll(domain);
		}
		ck_assert_uint_eq(times(&told, leaf->parent, PCPC_EVENT_REFUSED), 1);
		ck_assert_msg(times(&told, other->parent, event[i % 3]) == 1 || rung(),
			      "case %d: neither told nor rung", i);
		told.also = NULL;
		pcpc_domain_poll(domain);
		ck_assert_uint_eq(times(&told, other->parent, event[i % 3]), 1);
		if (i % 3 == 2) {
			charge(other, 1600);
			ck_assert_int_eq(pcpc_charge(other, 1), -EDQUOT);
		}
	}
	uncharge(leaf, 1600);
	uncharge(other, 1600);
	pcpc_domain_poll(domain);
}
END_TEST

static bool rung_at(struct pcpc_domain *of)
{
	struct pollfd ready = { .fd = pcpc_domain_eventfd(of), .events = POLLIN };

	return poll(&ready, 1, 0) == 1;
}

/* The same across domains: a callback of one domain works in another. */
START_TEST(an_event_in_another_domain_is_told_or_rung)
{
	struct pcpc_domain_config config = domain_config((enum pcpc_engine)_i, 64);
	void (*const also[])(struct told *, struct pcpc_owner *,
			     enum pcpc_event) = { refuse_another, refuse_another_nowait,
						  relieve_another };
	static const enum pcpc_event event[] = { PCPC_EVENT_REFUSED, PCPC_EVENT_REFUSED,
						 PCPC_EVENT_RELIEVED };
	struct told told = { 0 }, told_other = { 0 };
	struct pcpc_domain *first, *other = NULL;
	struct pcpc_owner *leaf;
	int i;

	if (!open_domain(_i, 64, 0))
		return;
	first = domain;
	ck_assert_int_eq(pcpc_domain_create(&config, &other), 0);
	leaf = full_leaf(1600);
	root = pcpc_domain_root(other);
	told.help = full_leaf(1600);
	root = pcpc_domain_root(first);
	ask(leaf->parent, &told);
	ask(told.help->parent, &told_other);
	for (i = 0; i < 6; i++) {
		pcpc_domain_poll(first);
		pcpc_domain_poll(other);
		told.nr = told_other.nr = 0;
		told.also = also[i % 3];
		ck_assert_int_eq(pcpc_charge_flags(leaf, 1, i < 3 ? 0 : PCPC_NOWAIT, NULL),
				 -EDQUOT);
		if (i >= 3)
			pcpc_domain_poll(first);
		ck_assert_msg(times(&told_other, told.help->parent, event[i % 3]) == 1 ||
				      rung_at(other),
			      "case %d: neither told nor rung", i);
		told.also = NULL;
		pcpc_domain_poll(other);
		ck_assert_uint_eq(times(&told_other, told.help->parent, event[i % 3]), 1);
		if (i % 3 == 2) {
			charge(told.help, 1600);
			ck_assert_int_eq(pcpc_charge(told.help, 1), -EDQUOT);
		}
	}
	uncharge(leaf, 1600);
	uncharge(told.help, 1600);
	pcpc_domain_poll(first);
	domain = other;
	root = pcpc_domain_root(other);
	close_domain();
	domain = first;
	root = pcpc_domain_root(first);
}
END_TEST

struct two_domains {
	struct pcpc_owner *theirs, *holder;
	uint64_t calls;
};

static uint64_t reclaim_by_theirs(struct pcpc_owner *over, uint64_t wanted, void *context)
{
	struct two_domains *two = context;

	(void)over;
	two->calls++;
	/* what it evicts was charged in both domains */
	pcpc_uncharge(two->theirs, 1600);
	pcpc_uncharge(two->holder, wanted);
	return wanted;
}

/* And from a reclaim function: what it uncharges in another domain may relieve somebody there. */
START_TEST(an_event_inside_reclaim_in_another_domain_is_told_or_rung)
{
	struct pcpc_domain_config config = domain_config((enum pcpc_engine)_i, 64);
	struct pcpc_domain *first, *other = NULL;
	struct two_domains two = { 0 };
	struct told told = { 0 };
	struct pcpc_owner *leaf;

	if (!open_domain(_i, 64, 0))
		return;
	first = domain;
	ck_assert_int_eq(pcpc_domain_create(&config, &other), 0);
	root = pcpc_domain_root(other);
	two.theirs = full_leaf(1600);
	root = pcpc_domain_root(first);
	leaf = full_leaf(1600);
	two.holder = leaf;
	ask(two.theirs->parent, &told);
	ck_assert_int_eq(pcpc_owner_set_reclaim(leaf->parent, reclaim_by_theirs, &two), 0);
	charge(leaf, 10);
	ck_assert_uint_eq(two.calls, 1);
	ck_assert_uint_eq(events_of(two.theirs->parent, PCPC_EVENT_RELIEVED), 1);
	ck_assert(times(&told, two.theirs->parent, PCPC_EVENT_RELIEVED) == 1 || rung_at(other));
	pcpc_domain_poll(other);
	ck_assert_uint_eq(times(&told, two.theirs->parent, PCPC_EVENT_RELIEVED), 1);
	uncharge(leaf, pcpc_owner_usage_exact(leaf));
	domain = other;
	root = pcpc_domain_root(other);
	close_domain();
	domain = first;
	root = pcpc_domain_root(first);
}
END_TEST

/* section 7: callbacks "hold a reference on their owner": it may be destroyed while it waits to be
 * told, and its ancestors are told all the same. */
START_TEST(an_owner_that_went_is_still_told_of)
{
	struct told told = { 0 };
	struct pcpc_owner *leaf;
	uint32_t id;

	if (!open_domain(_i, 64, 0))
		return;
	leaf = make_owner(root, 1600, 0);
	id = leaf->id;
	charge(leaf, 1600);
	ck_assert_int_eq(pcpc_charge(leaf, 1), -EDQUOT);
	ask(root, &told);
	ask(leaf, &told);
	pcpc_uncharge(leaf, 1600);
	ck_assert_int_eq(pcpc_owner_destroy(leaf), 0);
	ck_assert(rung());
	pcpc_domain_poll(domain);
	ck_assert_uint_eq(times(&told, leaf, PCPC_EVENT_RELIEVED),
			  1); /* the root's; its own is gone */
	ck_assert_uint_eq(atomic_load(&domain->books[id].state), OWNER_FREE);
	ck_assert_int_eq(pcpc_owner_set_notify(root, NULL, NULL), 0);
}
END_TEST

/* owner.h: "several of one kind may have become one"; but the counts are right. */
START_TEST(several_of_a_kind_may_become_one)
{
	struct told told = { 0 };
	struct pcpc_owner *leaf;
	uint64_t before;
	int i;

	if (!open_domain(_i, 64, 0))
		return;
	leaf = full_leaf(1600);
	ask(root, &told);
	before = events_of(root, PCPC_EVENT_REFUSED);
	for (i = 0; i < 100; i++)
		ck_assert_int_eq(pcpc_charge_flags(leaf, 1, PCPC_NOWAIT, NULL), -EDQUOT);
	pcpc_domain_poll(domain);
	ck_assert_uint_ge(times(&told, leaf->parent, PCPC_EVENT_REFUSED), 1);
	ck_assert_uint_le(times(&told, leaf->parent, PCPC_EVENT_REFUSED), 100);
	ck_assert_uint_eq(events_of(root, PCPC_EVENT_REFUSED), before + 100);
	uncharge(leaf, 1600);
	pcpc_domain_poll(domain);
	ck_assert_int_eq(pcpc_owner_set_notify(root, NULL, NULL), 0);
}
END_TEST

/* Readable, then not: one poll is enough, and the next event rings again; many owners at once. */
START_TEST(the_eventfd_rings_again_after_each_poll)
{
	struct told told = { 0 };
	struct pcpc_owner *leaf[20];
	int i, round;

	if (!open_domain(_i, 64, 0))
		return;
	for (i = 0; i < 20; i++)
		leaf[i] = full_leaf(1600);
	ask(root, &told);
	for (round = 0; round < 50; round++) {
		told.nr = 0;
		for (i = 0; i < 20; i++)
			ck_assert_int_eq(pcpc_charge_flags(leaf[i], 1, PCPC_NOWAIT, NULL), -EDQUOT);
		ck_assert(rung());
		pcpc_domain_poll(domain);
		ck_assert(!rung());
		for (i = 0; i < 20; i++)
			ck_assert_uint_eq(times(&told, leaf[i]->parent, PCPC_EVENT_REFUSED), 1);
	}
	told.nr = 0;
	for (i = 0; i < 20; i++)
		pcpc_uncharge(leaf[i], 1600);
	pcpc_domain_poll(domain);
	ck_assert_uint_eq(told.nr, 20);
	ck_assert_int_eq(pcpc_owner_set_notify(root, NULL, NULL), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("event poll");
	TCase *tests = unit_case(suite, "poll");

	tcase_add_checked_fixture(tests, NULL, close_domain);
	by_each_engine(tests, the_owner_and_each_ancestor_that_asked_are_told);
	by_each_engine(tests, nowait_and_uncharge_leave_it_to_poll);
	by_each_engine(tests, inside_a_read_side_section_nobody_is_told);
	by_each_engine(tests, the_next_charge_that_may_delivers_what_others_left);
	by_each_engine(tests, without_anybody_who_asked_the_eventfd_is_silent);
	by_each_engine(tests, asks_7_a_callback_may_do_everything);
	by_each_engine(tests, an_event_inside_a_callback_is_told_or_rung);
	by_each_engine(tests, an_event_in_another_domain_is_told_or_rung);
	by_each_engine(tests, an_event_inside_reclaim_in_another_domain_is_told_or_rung);
	by_each_engine(tests, an_owner_that_went_is_still_told_of);
	by_each_engine(tests, several_of_a_kind_may_become_one);
	by_each_engine(tests, the_eventfd_rings_again_after_each_poll);
	return unit_run(suite);
}
