// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_owner_lifetime.c - what becomes of owners that went: late uncharges, references, sweeps, and
 * that in the end nothing is left of them.
 *
 * Races between a sweep and others are in test_owner_sweep.c.
 */
#define _GNU_SOURCE
#include "owner_support.h"

static bool is_free(uint32_t id)
{
	return atomic_load(&domain->books[id].state) == OWNER_FREE;
}

static uint32_t offline_now(void)
{
	return atomic_load(&domain->nr_offline);
}

/* How many slots of all CPUs name an id, empty ones too. */
static uint32_t slots_naming(uint32_t id)
{
	return slots_of(&domain->owners[id]).slots;
}

/* G7, asks 9: "late releases through the old handle"; section 7: late uncharges "are settled
 * directly". Every level stays exact all the time. */
START_TEST(asks_9_an_uncharge_after_destroy_reaches_its_owner)
{
	struct pcpc_owner *mid, *leaf, *level;
	uint64_t held = 100;
	uint32_t id;

	if (!open_domain(_i, 64, 0))
		return;
	mid = child_of(root);
	leaf = child_of(mid);
	id = leaf->id;
	charge(leaf, 100);
	ck_assert_int_eq(pcpc_owner_destroy(leaf), 0);
	while (held) {
		for (level = leaf; level; level = level->parent)
			ck_assert_uint_eq(pcpc_owner_usage_exact(level), held);
		if (held % 10 == 0)
			pcpc_domain_poll(domain);
		ck_assert(!is_free(id));
		/* nothing of it is stocked once it was swept */
		if (held <= 100 - 10)
			ck_assert_uint_eq(pcpc_owner_usage(leaf), held);
		pcpc_uncharge(leaf, 1);
		held--;
	}
	ck_assert(rung());
	pcpc_domain_poll(domain);
	ck_assert(is_free(id));
	ck_assert_uint_eq(pcpc_owner_usage_exact(root), 0);
	ck_assert_uint_eq(events_of(root, PCPC_EVENT_UNDERFLOW), 0);
}
END_TEST

/* G7, asks 3: "releases X using the owner handle stored with the object", from another thread. */
START_TEST(asks_3_another_thread_uncharges_an_owner_that_went)
{
	struct worker worker;
	struct pcpc_owner *leaf;
	struct job job;

	if (!open_domain(_i, 64, 0))
		return;
	worker_start(&worker, 1);
	leaf = child_of(root);
	charge(leaf, 500);
	ck_assert_int_eq(pcpc_owner_destroy(leaf), 0);
	job = (struct job){ .owner = leaf, .count = 400 };
	worker_run(&worker, job_uncharge, &job);
	ck_assert_uint_eq(pcpc_owner_usage_exact(leaf), 100);
	ck_assert_uint_eq(pcpc_owner_usage_exact(root), 100);
	pcpc_domain_poll(domain);
	job.count = 100;
	worker_run(&worker, job_uncharge, &job);
	pcpc_domain_poll(domain);
	ck_assert_uint_eq(offline_now(), 0);
	worker_stop(&worker);
}
END_TEST

/* charge.h: "-ESHUTDOWN: the owner is offline", forced ones too; nothing changed. */
START_TEST(an_owner_that_went_is_not_charged)
{
	static const unsigned int flags[] = { 0,
					      PCPC_NOWAIT,
					      PCPC_FORCE,
					      PCPC_NORECLAIM,
					      PCPC_NOWAIT | PCPC_FORCE,
					      PCPC_NOWAIT | PCPC_FORCE | PCPC_NORECLAIM };
	struct pcpc_refusal refusal, untouched;
	struct pcpc_owner *leaf, *other;
	uint64_t usage, stock;
	unsigned int i, swept;

	if (!open_domain(_i, 64, 0))
		return;
	leaf = pcpc_owner_get(make_owner(root, 1000, 0));
	other = child_of(root);
	charge(leaf, 100);
	uncharge(leaf, 50);
	charge(other, 10);
	ck_assert_uint_gt(stock_of(leaf), 0); /* a charge could hit */
	ck_assert_int_eq(pcpc_owner_destroy(leaf), 0);
	memset(&refusal, 0x5a, sizeof(refusal));
	untouched = refusal;
	for (swept = 0; swept < 2; swept++) {
		usage = pcpc_owner_usage(leaf);
		stock = stock_of(leaf);
		for (i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
			ck_assert_int_eq(pcpc_charge_flags(leaf, 1, flags[i], &refusal),
					 -ESHUTDOWN);
			ck_assert_int_eq(pcpc_charge_flags(leaf, 0, flags[i], &refusal),
					 -ESHUTDOWN);
			ck_assert_int_eq(pcpc_charge_flags(leaf, 5000, flags[i], &refusal),
					 -ESHUTDOWN);
		}
		ck_assert_int_eq(pcpc_charge(leaf, 1), -ESHUTDOWN);
		ck_assert_int_eq(pcpc_charge_stat(leaf, 1, 5), -ESHUTDOWN);
		ck_assert_int_eq(pcpc_charge_wait(leaf, 1, -1), -ESHUTDOWN);
		ck_assert_int_eq(pcpc_transfer(other, leaf, 1), -ESHUTDOWN);
		ck_assert_uint_eq(pcpc_owner_usage(leaf), usage);
		ck_assert_uint_eq(stock_of(leaf), stock);
		ck_assert_int_eq(coupled_of(leaf), 0);
		ck_assert_uint_eq(events_of(leaf, PCPC_EVENT_FORCED), 0);
		ck_assert_uint_eq(events_of(leaf, PCPC_EVENT_MAX), 0);
		pcpc_domain_poll(domain);
	}
	ck_assert_mem_eq(&refusal, &untouched, sizeof(refusal));
	/* but what is held can still be moved away, and its deltas arrive */
	ck_assert_int_eq(pcpc_transfer(leaf, other, 20), 0);
	ck_assert_uint_eq(pcpc_owner_usage_exact(leaf), 30);
	ck_assert_uint_eq(pcpc_owner_usage_exact(other), 30);
	pcpc_uncharge_stat(leaf, 30, -7);
	ck_assert_int_eq(coupled_of(leaf), -7);
	uncharge(other, 30);
	pcpc_owner_put(leaf);
}
END_TEST

/* Section 7: "An owner lives as long as someone holds a reference". */
START_TEST(a_reference_keeps_an_owner)
{
	char name[] = "a name that is longer than what an owner keeps in place";
	const struct pcpc_owner_config config = { .size = sizeof(config),
						  .name = name,
						  .context = name };
	struct pcpc_owner *mid, *leaf;
	int i;

	if (!open_domain(_i, 64, 0))
		return;
	mid = child_of(root);
	ck_assert_int_eq(pcpc_owner_create(mid, &config, &leaf), 0);
	for (i = 0; i < 3; i++)
		ck_assert_ptr_eq(pcpc_owner_get(leaf), leaf);
	ck_assert_int_eq(pcpc_owner_destroy(leaf), 0);
	ck_assert_int_eq(pcpc_owner_destroy(mid), 0);
	for (i = 0; i < 3; i++) {
		pcpc_domain_poll(domain);
		ck_assert_str_eq(pcpc_owner_name(leaf), name);
		ck_assert_ptr_eq(pcpc_owner_context(leaf), name);
		ck_assert_uint_eq(pcpc_owner_id(leaf), 3);
		/* a child keeps its ancestors */
		ck_assert_ptr_eq(pcpc_owner_parent(leaf), mid);
		ck_assert(!is_free(2) && !is_free(3));
		ck_assert(!rung());
		pcpc_owner_put(leaf);
	}
	ck_assert(rung());
	pcpc_domain_poll(domain);
	ck_assert(is_free(2) && is_free(3));
}
END_TEST

/* Section 7, sweep: "drain the offline owners' words from charge and stat stocks, settle them". */
START_TEST(a_sweep_takes_what_an_owner_left_in_stocks_of_all_cpus)
{
	struct worker worker;
	struct pcpc_owner *leaf;
	struct job job;

	if (!open_domain(_i, 64, 0))
		return;
	worker_start(&worker, 1);
	leaf = child_of(root);
	job = (struct job){ .owner = leaf, .count = 5 };
	worker_run(&worker, job_strand, &job);
	charge(leaf, 3);
	uncharge(leaf, 3);
	ck_assert_uint_gt(stock_of(leaf), two_stocks() ? 20 : 10);
	ck_assert_int_eq(pcpc_owner_destroy(leaf), 0);
	/* offline it still stands where it was */
	ck_assert_uint_gt(stock_of(leaf), 10);
	pcpc_domain_poll(domain);
	ck_assert_uint_eq(slots_naming(2), 0);
	ck_assert(is_free(2));
	ck_assert_uint_eq(pcpc_owner_usage_exact(root), 0);
	worker_stop(&worker);
}
END_TEST

/* G14: "no memory, no id, no slot is left of an owner", wherever it had been. */
START_TEST(nothing_is_left_of_owners_that_went)
{
	struct pcpc_owner *owner[50];
	uint32_t i;

	if (!open_domain(_i, 64, 2))
		return;
	for (i = 0; i < 50; i++) {
		owner[i] = child_of(i % 5 ? owner[i - 1] : root);
		ck_assert_int_eq(pcpc_charge_stat(owner[i], i + 1, -3), 0);
	}
	for (i = 50; i--;)
		ck_assert_int_eq(pcpc_owner_destroy(owner[i]), 0);
	ck_assert_uint_eq(offline_now(), 50);
	pcpc_domain_poll(domain);
	ck_assert_uint_eq(offline_now(), 50); /* all of them hold units */
	for (i = 0; i < 50; i++)
		uncharge(owner[i], i + 1);
	pcpc_domain_poll(domain);
	ck_assert_uint_eq(offline_now(), 0);
	ck_assert_uint_eq(domain->nr_owners, 1);
	ck_assert_uint_eq(atomic_load(&books_of(root)->refs), 1);
	ck_assert_uint_eq(books_of(root)->first_child, 0);
	for (i = 2; i <= 51; i++) {
		ck_assert_uint_eq(slots_naming(i), 0);
		ck_assert(is_free(i));
	}
	ck_assert_uint_eq(pcpc_owner_usage_exact(root), 0);
	for (i = 2; i <= 51; i++) {
		owner[0] = child_of(root);
		ck_assert_uint_eq(pcpc_owner_id(owner[0]), i);
		ck_assert_uint_eq(pcpc_owner_usage(owner[0]), 0);
		ck_assert_uint_eq(pcpc_owner_peak(owner[0]), 0);
		ck_assert_int_eq(coupled_of(owner[0]), 0);
	}
}
END_TEST

/* Events count "owners that are gone included" (owner.h). */
START_TEST(what_an_owner_counted_stays_with_its_ancestors)
{
	struct pcpc_owner *mid, *leaf;
	int i;

	if (!open_domain(_i, 64, 0))
		return;
	mid = child_of(root);
	for (i = 1; i <= 5; i++) {
		leaf = make_owner(mid, 10, 0);
		ck_assert_int_eq(pcpc_charge(leaf, 11), -EDQUOT);
		ck_assert_int_eq(pcpc_charge_flags(leaf, 11, PCPC_FORCE, NULL), 0);
		uncharge(leaf, 12); /* one more than it has */
		(void)pcpc_owner_drain(leaf);
		ck_assert_int_eq(pcpc_owner_destroy(leaf), 0);
		pcpc_domain_poll(domain);
		ck_assert(is_free(3));
		ck_assert_uint_eq(events_of(mid, PCPC_EVENT_REFUSED), i);
		ck_assert_uint_eq(events_of(mid, PCPC_EVENT_FORCED), i);
		ck_assert_uint_eq(events_of(mid, PCPC_EVENT_UNDERFLOW), i);
		ck_assert_uint_eq(events_of(root, PCPC_EVENT_UNDERFLOW), i);
	}
}
END_TEST

/* Section 7: a parent goes after its children, also if all of them went at once; 64 levels deep. */
START_TEST(a_whole_branch_goes_in_one_sweep)
{
	struct pcpc_owner *owner[64];
	int i;

	if (!open_domain(_i, 64, 0))
		return;
	for (i = 0; i < 64; i++)
		owner[i] = child_of(i ? owner[i - 1] : root);
	charge(owner[63], 1);
	for (i = 63; i >= 0; i--)
		ck_assert_int_eq(pcpc_owner_destroy(owner[i]), 0);
	pcpc_domain_poll(domain);
	ck_assert_uint_eq(offline_now(), 64); /* one unit keeps the branch */
	ck_assert_uint_eq(pcpc_owner_usage_exact(root), 1);
	uncharge(owner[63], 1);
	pcpc_domain_poll(domain);
	ck_assert_uint_eq(offline_now(), 0);
}
END_TEST

/* Late uncharges pass ancestors that are offline too, and arrive above them. */
START_TEST(a_late_uncharge_passes_offline_ancestors)
{
	struct pcpc_owner *top, *mid, *leaf;

	if (!open_domain(_i, 64, 0))
		return;
	top = child_of(root);
	mid = child_of(top);
	leaf = child_of(mid);
	charge(leaf, 40);
	charge(mid, 2);
	ck_assert_int_eq(pcpc_owner_destroy(leaf), 0);
	ck_assert_int_eq(pcpc_owner_destroy(mid), 0);
	pcpc_domain_poll(domain);
	ck_assert_uint_eq(pcpc_owner_usage(leaf), 40);
	ck_assert_uint_eq(pcpc_owner_usage(mid), 42);
	uncharge(leaf, 39);
	ck_assert_uint_eq(pcpc_owner_usage(mid), 3);
	ck_assert_uint_eq(slots_of(mid).slots, 0);
	ck_assert_uint_eq(pcpc_owner_usage_exact(top), 3);
	uncharge(leaf, 1);
	uncharge(mid, 2);
}
END_TEST

/* Section 7: "from create or destroy when 1,000 are waiting". */
START_TEST(a_thousand_that_wait_are_swept_without_being_asked)
{
	struct pcpc_owner *owner;
	uint32_t i, most = 0;

	if (!open_domain(_i, 64, 0))
		return;
	for (i = 0; i < 5000; i++) {
		owner = child_of(root);
		charge(owner, 1);
		uncharge(owner, 1);
		ck_assert_int_eq(pcpc_owner_destroy(owner), 0);
		if (offline_now() > most)
			most = offline_now();
	}
	ck_assert_uint_le(most, 1001);
	ck_assert_uint_ge(most, 900);
	ck_assert_uint_le(domain->highest_id, 1003);
	/* by create as well */
	for (i = 0; i < 500; i++)
		ck_assert_int_eq(pcpc_owner_destroy(child_of(root)), 0);
	atomic_store(&domain->sweep_at, 10);
	child_of(root);
	ck_assert_uint_eq(offline_now(), 0);
}
END_TEST

/* A thousand that cannot go yet do not make every further destroy sweep in vain. */
START_TEST(owners_that_stay_offline_do_not_cause_a_sweep_each_time)
{
	struct pcpc_owner *owner[1500];
	uint64_t before;
	uint32_t i;

	if (!open_domain(_i, 64, 0))
		return;
	for (i = 0; i < 1500; i++) {
		owner[i] = child_of(root);
		charge(owner[i], 1);
		ck_assert_int_eq(pcpc_owner_destroy(owner[i]), 0);
	}
	before = atomic_load(&domain->sweeps);
	for (i = 0; i < 900; i++)
		ck_assert_int_eq(pcpc_owner_destroy(child_of(root)), 0);
	ck_assert_uint_le(atomic_load(&domain->sweeps) - before, 1);
	for (i = 0; i < 1500; i++)
		uncharge(owner[i], 1);
}
END_TEST

static uint64_t resident_bytes(void)
{
	unsigned long pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	ck_assert_ptr_nonnull(file);
	ck_assert_int_eq(fscanf(file, "%*u %lu", &pages), 1);
	fclose(file);
	return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Required: "Bytes per owner at most 512 without statistics"; "up to a million owners a domain":
 * a tenth of it, all charged and in the tree at once. */
START_TEST(a_hundred_thousand_owners)
{
	struct pcpc_domain_config config = domain_config((enum pcpc_engine)_i, 64);
	const uint32_t nr = 100000, tops = 1000;
	struct pcpc_owner **owner;
	uint64_t before;
	uint32_t i;

	/* without items: their blocks would be counted too */
	if (!create_domain(&config))
		return;
	owner = malloc(nr * sizeof(*owner));
	ck_assert_ptr_nonnull(owner);
	memset(owner, 0, nr * sizeof(*owner)); /* so that it is resident before */
	before = resident_bytes();
	for (i = 0; i < nr; i++) {
		owner[i] = make_owner(i < tops ? root : owner[i % tops], 1000000, 0);
		ck_assert(owner[i]->id == i + 2);
	}
	if (!UNIT_SANITIZED)
		ck_assert_uint_le(resident_bytes() - before, nr * 512ull + (1u << 20));
	for (i = 0; i < nr; i++)
		ck_assert(pcpc_charge(owner[i], 1 + i % 3) == 0);
	/* 33,333 times 1 + 2 + 3, and the last with 1 */
	ck_assert_uint_eq(pcpc_owner_usage_exact(root), 33333u * 6 + 1);
	for (i = 0; i < nr; i++)
		pcpc_uncharge(owner[i], 1 + i % 3);
	ck_assert_uint_eq(pcpc_owner_usage_exact(root), 0);
	for (i = nr; i--;)
		ck_assert(pcpc_owner_destroy(owner[i]) == 0);
	pcpc_domain_poll(domain);
	ck_assert_uint_eq(domain->nr_owners, 1);
	ck_assert_uint_eq(child_of(root)->id, 2);
	free(owner);
}
END_TEST

/* Required: "with memory flat over ten million"; asks 9: "10^6 create/destroy cycles leave RSS
 * flat". PCPC_PAIRS=10000000 for all of it. */
START_TEST(asks_9_memory_is_flat_over_many_pairs)
{
	const uint64_t pairs = unit_knob("PCPC_PAIRS", UNIT_SANITIZED ? 20000 : 100000);
	const struct pcpc_owner_config config = {
		.size = sizeof(config), .name = "a name that has to be allocated, it is long"
	};
	struct pcpc_owner *top, *owner;
	uint64_t i, before = 0, after;

	if (!open_domain(_i, 64, 0))
		return;
	top = child_of(root);
	for (i = 0; i < pairs; i++) {
		ck_assert(pcpc_owner_create(top, i % 8 ? NULL : &config, &owner) == 0);
		if (i % 4 == 0) {
			ck_assert(pcpc_charge(owner, 3) == 0);
			pcpc_uncharge(owner, 3);
		}
		ck_assert(pcpc_owner_destroy(owner) == 0);
		if (i == pairs / 10)
			before = resident_bytes();
	}
	after = resident_bytes();
	if (!UNIT_SANITIZED)
		ck_assert_uint_le(after, before + (256u << 10));
	ck_assert_uint_le(domain->highest_id, 1003);
	ck_assert_uint_eq(pcpc_owner_usage_exact(root), 0);
}
END_TEST

/* owner.h, pcpc_domain_destroy(): "-EBUSY: owners or units are left, and the domain lives on". */
START_TEST(a_domain_with_owners_or_units_stays)
{
	struct pcpc_owner *leaf;

	if (!open_domain(_i, 64, 0))
		return;
	leaf = child_of(root);
	ck_assert_int_eq(pcpc_domain_destroy(domain), -EBUSY);
	charge(leaf, 10);
	charge(root, 3);
	ck_assert_int_eq(pcpc_domain_destroy(domain), -EBUSY);
	ck_assert_int_eq(pcpc_owner_destroy(leaf), 0);
	ck_assert_int_eq(pcpc_domain_destroy(domain), -EBUSY);
	ck_assert_uint_eq(pcpc_owner_usage_exact(root), 13);
	uncharge(leaf, 10);
	ck_assert_int_eq(pcpc_domain_destroy(domain), -EBUSY); /* the root's 3 */
	ck_assert_uint_eq(pcpc_owner_usage_exact(root), 3);
	/* and is as good as before */
	leaf = child_of(root);
	charge(leaf, 100);
	uncharge(leaf, 100);
	pcpc_owner_get(leaf);
	ck_assert_int_eq(pcpc_owner_destroy(leaf), 0);
	uncharge(root, 3);
	ck_assert_int_eq(pcpc_domain_destroy(domain), -EBUSY); /* a reference */
	pcpc_owner_put(leaf);
}
END_TEST

/* owner.h: "-EDEADLK: called inside a read-side section of liburcu-bp"; and nobody waits there. */
START_TEST(inside_a_read_side_section_nothing_is_swept)
{
	struct pcpc_owner *leaf;
	uint32_t i;

	if (!open_domain(_i, 64, 0))
		return;
	leaf = child_of(root);
	urcu_bp_read_lock();
	ck_assert_int_eq(pcpc_domain_destroy(domain), -EDEADLK);
	ck_assert_int_eq(pcpc_owner_destroy(leaf), 0);
	pcpc_domain_poll(domain);
	ck_assert_uint_eq(offline_now(), 1);
	for (i = 0; i < 1100; i++)
		ck_assert_int_eq(pcpc_owner_destroy(child_of(root)), 0);
	ck_assert_uint_eq(offline_now(), 1101);
	ck_assert_int_eq(pcpc_domain_destroy(domain), -EDEADLK);
	urcu_bp_read_unlock();
	pcpc_domain_poll(domain);
	ck_assert_uint_eq(offline_now(), 0);
}
END_TEST

/* G14 and pcpc_domain_destroy(): what a domain still meant to make sure of for an owner is no
 * reason to stay, once that owner went. */
START_TEST(an_owner_that_poll_should_look_at_may_go)
{
	struct pcpc_owner *leaf;

	if (!open_domain(_i, 64, 0))
		return;
	leaf = make_owner(root, 10000, 0);
	charge(leaf, 60);
	uncharge(leaf, 60); /* 68 are more than 64: 32 stay stocked */
	ck_assert_int_eq(pcpc_charge_flags(leaf, 9990, PCPC_NOWAIT, NULL), -EAGAIN);
	ck_assert_int_eq(pcpc_owner_destroy(leaf), 0);
	ck_assert_int_eq(pcpc_domain_destroy(domain), 0);
	domain = NULL;
}
END_TEST

static void ignore(struct pcpc_owner *owner, enum pcpc_event event, void *context)
{
	(void)owner;
	(void)event;
	(void)context;
}

/* Nobody asks any more, so nothing is queued any more: whatever order owners and callbacks go in.
 */
START_TEST(an_owner_takes_its_callback_along)
{
	struct pcpc_owner *leaf;
	int i;

	if (!open_domain(_i, 64, 0))
		return;
	for (i = 0; i < 4; i++) {
		leaf = pcpc_owner_get(child_of(root));
		if (i & 1)
			ck_assert_int_eq(pcpc_owner_set_notify(leaf, ignore, NULL), 0);
		ck_assert_int_eq(pcpc_owner_destroy(leaf), 0);
		if (i & 2) /* late, but its caller has a reference */
			ck_assert_int_eq(pcpc_owner_set_notify(leaf, ignore, NULL), 0);
		pcpc_owner_put(leaf);
		pcpc_domain_poll(domain);
		ck_assert_uint_eq(offline_now(), 0);
		ck_assert_uint_eq(atomic_load(&domain->nr_notify), 0);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("owner lifetime");
	TCase *tests = unit_case(suite, "lifetime");

	tcase_add_checked_fixture(tests, NULL, close_domain);
	by_each_engine(tests, asks_9_an_uncharge_after_destroy_reaches_its_owner);
	by_each_engine(tests, asks_3_another_thread_uncharges_an_owner_that_went);
	by_each_engine(tests, an_owner_that_went_is_not_charged);
	by_each_engine(tests, a_reference_keeps_an_owner);
	by_each_engine(tests, a_sweep_takes_what_an_owner_left_in_stocks_of_all_cpus);
	by_each_engine(tests, nothing_is_left_of_owners_that_went);
	by_each_engine(tests, what_an_owner_counted_stays_with_its_ancestors);
	by_each_engine(tests, a_whole_branch_goes_in_one_sweep);
	by_each_engine(tests, a_late_uncharge_passes_offline_ancestors);
	by_each_engine(tests, a_thousand_that_wait_are_swept_without_being_asked);
	by_each_engine(tests, owners_that_stay_offline_do_not_cause_a_sweep_each_time);
	by_each_engine(tests, a_hundred_thousand_owners);
	by_each_engine(tests, asks_9_memory_is_flat_over_many_pairs);
	by_each_engine(tests, a_domain_with_owners_or_units_stays);
	by_each_engine(tests, inside_a_read_side_section_nothing_is_swept);
	by_each_engine(tests, an_owner_that_poll_should_look_at_may_go);
	by_each_engine(tests, an_owner_takes_its_callback_along);
	return unit_run(suite);
}
