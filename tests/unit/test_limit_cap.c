// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_limit_cap.c - the cap: where it starts, what it bounds, when it shrinks and grows, and how
 * few drains a limit costs. Section 7, "At the limit: the cap".
 *
 * The clock by which caps change is the test's own (owner_clock.h): "at most once in 100 ms" is not
 * waited for, and an idle machine gives the same as a busy one.
 */
#define _GNU_SOURCE
#include "owner_clock.h"
#include "owner_support.h"

/* "It starts at max / (16 x CPUs the process may use), at least 1". */
START_TEST(the_cap_starts_at_a_sixteenth_of_max_over_all_cpus)
{
	static const uint64_t limits[] = { 1,	   15,	       100,	   1000,
					   100000, 1ull << 30, 1ull << 50, PCPC_UNLIMITED - 1 };
	uint64_t expected, cpus;
	struct pcpc_owner *owner;
	unsigned int i;

	if (!open_domain(_i, 64, 0))
		return;
	cpus = domain->nr_cpus;
	ck_assert_uint_ge(cpus, 1);
	for (i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		expected = limits[i] / (16 * cpus);
		expected = expected < 1 ? 1 : expected > PCPC_COUNT_MAX ? PCPC_COUNT_MAX : expected;
		owner = make_owner(root, limits[i], 0);
		ck_assert_uint_eq(cap_of(owner), expected);
		owner = child_of(root);
		ck_assert_uint_eq(cap_of(owner), CAP_NONE);
		ck_assert_int_eq(pcpc_owner_set_max(owner, limits[i]), 0);
		ck_assert_uint_eq(cap_of(owner), expected);
	}
}
END_TEST

/* "The effective batch of an owner, which is also its high, is the least of its batch and of the
 * caps of itself and all its ancestors." G12: no slot holds more. */
START_TEST(the_effective_batch_is_the_least_of_batch_and_caps)
{
	struct pcpc_owner *top, *mid, *leaf;
	uint32_t cap;
	int i;

	if (!open_domain(_i, 64, 0))
		return;
	top = make_owner(root, 160ull * domain->nr_cpus, 0); /* a cap of 10 */
	mid = make_owner(top, 1000000, 0);
	leaf = child_of(mid);
	cap = cap_of(top);
	ck_assert_uint_eq(cap, 10);
	charge(leaf, 1);
	ck_assert_uint_eq(atomic_load(&leaf->batch), 10);
	ck_assert_uint_eq(atomic_load(&mid->batch), 10);
	ck_assert_uint_eq(atomic_load(&top->batch), 10);
	for (i = 0; i < 100; i++) {
		charge(leaf, 1);
		ck_assert_uint_le(slots_of(leaf).largest, cap);
		ck_assert_uint_le(slots_of(mid).largest, cap);
		ck_assert_uint_le(slots_of(top).largest, cap);
	}
	for (i = 0; i < 101; i++) {
		uncharge(leaf, 1);
		ck_assert_uint_le(slots_of(leaf).largest, cap);
		ck_assert_uint_le(slots_of(mid).largest, cap);
	}
	/* beside it nobody is bound by it */
	leaf = child_of(root);
	charge(leaf, 8);
	charge(leaf, 8);
	charge(leaf, 1);
	ck_assert_uint_gt(stock_of(leaf), 10);
	uncharge(leaf, 17);
}
END_TEST

/* Fills an owner through a leaf and has it refuse, so that its limit is exact. */
static void fill(struct pcpc_owner *limited, struct pcpc_owner *leaf)
{
	charge(leaf, pcpc_owner_max(limited) - pcpc_owner_usage_exact(limited));
	ck_assert_int_eq(pcpc_charge(leaf, 1), -EDQUOT);
	ck_assert(exact(limited));
	ck_assert_uint_eq(cap_of(limited), 0);
}

/* Required: "A tenant that stays refused for a million charges causes a bounded number of drains".
 * Section 7: "every later one is final at once: a tenant that sits at its limit costs a few atomics
 * a charge, and no drains". The clock runs through half an hour meanwhile. */
START_TEST(a_million_refusals_cost_no_further_drain)
{
	const uint32_t charges =
		(uint32_t)unit_knob("PCPC_REFUSALS", UNIT_SANITIZED ? 20000 : 200000);
	struct pcpc_owner *limited, *leaf;
	uint64_t before;
	uint32_t i;

	if (!open_domain(_i, 64, 0))
		return;
	limited = make_owner(root, 1000, 0);
	leaf = child_of(limited);
	fill(limited, leaf);
	before = drains_now();
	ck_assert_uint_le(before, 2);
	for (i = 0; i < charges; i++) {
		ck_assert(pcpc_charge(leaf, 1 + i % 100) == -EDQUOT);
		pass(2 * MS);
	}
	ck_assert_uint_eq(drains_now(), before);
	ck_assert_uint_eq(events_of(limited, PCPC_EVENT_REFUSED), charges + 1);
	uncharge(leaf, 1000);
}
END_TEST

/* The same for every small limit: counted in requests or sockets, not in bytes. usage is at max, so
 * it is not "at most 15/16 of max", and the cap has no reason to grow. */
START_TEST(a_small_limit_that_stays_full_stays_exact)
{
	struct pcpc_owner *limited;
	uint64_t before, max;
	int i;

	if (!open_domain(_i, 64, 0))
		return;
	for (max = 40; max >= 1; max--) {
		limited = make_owner(root, max, 0);
		fill(limited, limited);
		before = drains_now();
		for (i = 0; i < 50; i++) {
			pass(100 * MS);
			ck_assert_int_eq(pcpc_charge(limited, 1), -EDQUOT);
		}
		ck_assert_msg(drains_now() - before <= 1, "max %u: %u drains for 50 refusals",
			      (unsigned int)max, (unsigned int)(drains_now() - before));
		uncharge(limited, max);
	}
}
END_TEST

/* A thousand tenants at their limits at once. */
START_TEST(a_thousand_full_tenants_cost_no_drains_either)
{
	struct pcpc_owner *tenant[1000];
	uint64_t before;
	uint32_t i, round;

	if (!open_domain(_i, 64, 0))
		return;
	for (i = 0; i < 1000; i++) {
		tenant[i] = make_owner(root, 100 + i, 0);
		fill(tenant[i], tenant[i]);
	}
	before = drains_now();
	for (round = 0; round < 20; round++) {
		for (i = 0; i < 1000; i++)
			ck_assert(pcpc_charge(tenant[i], 1) == -EDQUOT);
		pass(100 * MS);
	}
	ck_assert_uint_eq(drains_now(), before);
	for (i = 0; i < 1000; i++)
		uncharge(tenant[i], 100 + i);
}
END_TEST

/* "Cap doubles (0 becomes 1) at most once in 100 ms, when usage is at most 15/16 of max". */
START_TEST(the_cap_grows_by_time_once_usage_has_come_down)
{
	struct pcpc_owner *limited, *leaf;
	uint32_t expected = 0, i;

	if (!open_domain(_i, 64, 0))
		return;
	limited = make_owner(root, 1600, 0);
	leaf = child_of(limited);
	fill(limited, leaf);
	/* 1,501 is more than 15/16 */
	uncharge(leaf, 99);
	for (i = 0; i < 20; i++) {
		pass(100 * MS);
		charge(leaf, 1);
		uncharge(leaf, 1);
		ck_assert_uint_eq(cap_of(limited), 0);
		ck_assert(exact(limited));
	}
	uncharge(leaf, 1401);
	ck_assert_uint_eq(pcpc_owner_usage(limited), 100);
	/* the time that passed before counts; from now on it is one step each 100 ms */
	charge(leaf, 1);
	ck_assert_uint_eq(cap_of(limited), 1);
	ck_assert(!exact(limited));
	for (i = 0, expected = 1; i < 7; i++) {
		pass(99 * MS);
		charge(leaf, 50);
		uncharge(leaf, 50);
		charge(leaf, 129);
		uncharge(leaf, 129);
		ck_assert_uint_eq(cap_of(limited), expected);
		pass(1 * MS);
		charge(leaf, 129); /* a miss, whatever is stocked */
		uncharge(leaf, 129);
		expected *= 2;
		ck_assert_uint_eq(cap_of(limited), expected);
	}
	uncharge(leaf, 101);
}
END_TEST

/* The cap does not grow while somebody waits: "woken as soon as its amount would fit". */
START_TEST(the_cap_stays_0_while_somebody_waits)
{
	struct pcpc_owner *limited, *leaf;
	struct worker worker;
	struct job job;
	int i;

	if (!open_domain(_i, 64, 0))
		return;
	worker_start(&worker, -1);
	limited = make_owner(root, 1600, 0);
	leaf = child_of(limited);
	fill(limited, leaf);
	uncharge(leaf, 1000);
	job = (struct job){ .owner = child_of(limited), .count = 1500, .timeout_ns = 60000000000 };
	worker_post(&worker, job_charge_wait, &job);
	UNTIL(awaited(limited));
	for (i = 0; i < 10; i++) {
		pass(100 * MS);
		charge(leaf, 70);
		uncharge(leaf, 70);
		ck_assert_uint_eq(cap_of(limited), 0);
		ck_assert_uint_eq(pcpc_owner_stocked(limited), 0);
	}
	uncharge(leaf, 600);
	worker_wait(&worker);
	ck_assert_int_eq(job.result, 0);
	uncharge(job.owner, 1500);
	worker_stop(&worker);
}
END_TEST

/* Step 1: "if o's subtree was not drained in the last 100 ms: drain it; if that brought back more
 * than max/64, halve cap(o)". */
START_TEST(a_drain_that_brought_much_back_halves_the_cap)
{
	struct pcpc_owner *limited, *leaf[40];
	uint64_t stocked;
	uint32_t cap, i;

	if (!open_domain(_i, 64, 0))
		return;
	limited = make_owner(root, 6400, 0);
	for (i = 0; i < 40; i++) {
		leaf[i] = child_of(limited);
		charge(leaf[i], 60);
		uncharge(leaf[i], 60);
	}
	cap = cap_of(limited);
	stocked = pcpc_owner_stocked(limited);
	ck_assert_uint_gt(stocked, 100); /* max/64 */
	charge(leaf[0], 6400 - stocked + 1);
	ck_assert_uint_eq(cap_of(limited), cap / 2);
	ck_assert_uint_eq(events_of(limited, PCPC_EVENT_DRAIN), 1);
	ck_assert(!exact(limited));
	uncharge(leaf[0], 6400 - stocked + 1);
	/* little brought back: it stays as it is */
	(void)pcpc_owner_drain(limited);
	pass(100 * MS);
	cap = cap_of(limited);
	charge(leaf[1], 3);
	stocked = pcpc_owner_stocked(limited);
	ck_assert_uint_gt(stocked, 0);
	ck_assert_uint_le(stocked, 100);
	charge(leaf[0], 6400 - 3);
	ck_assert_uint_ge(cap_of(limited), cap);
	uncharge(leaf[0], 6400 - 3);
	uncharge(leaf[1], 3);
}
END_TEST

/* After set_max the cap is what it would be from the start. */
START_TEST(a_new_max_starts_the_cap_again)
{
	struct pcpc_owner *limited;

	if (!open_domain(_i, 64, 0))
		return;
	limited = make_owner(root, 3200, 0);
	fill(limited, limited);
	ck_assert_int_eq(pcpc_owner_set_max(limited, 320000), 0);
	ck_assert_uint_eq(cap_of(limited), 320000 / 16 / domain->nr_cpus);
	ck_assert(!exact(limited));
	charge(limited, 10);
	ck_assert_uint_gt(stock_of(limited), 0);
	ck_assert_int_eq(pcpc_owner_set_max(limited, 100), 0);
	ck_assert_uint_eq(cap_of(limited), 0); /* it is over */
	ck_assert(exact(limited));
	ck_assert_int_eq(pcpc_owner_set_max(limited, PCPC_UNLIMITED), 0);
	ck_assert_uint_eq(cap_of(limited), CAP_NONE);
	uncharge(limited, 3210);
}
END_TEST

/* Load on two CPUs in turn: what one charges the other may uncharge. */
struct load {
	struct pcpc_owner *owner[200];
	struct worker worker;
	uint32_t held[200];
	uint64_t total, target, misses, refused, random;
};

/* One random step around a total: a charge or an uncharge of 1 to 8. */
static void step(struct load *load)
{
	uint32_t which = (uint32_t)unit_below(&load->random, 200);
	uint32_t count = 1 + (uint32_t)unit_below(&load->random, 8);
	uint64_t usage = pcpc_owner_usage(load->owner[which]);
	bool more = unit_below(&load->random, 2 * load->target) >= load->total;

	if (more || load->held[which] < count) {
		if (pcpc_charge(load->owner[which], count) == 0) {
			load->held[which] += count;
			load->total += count;
		} else {
			load->refused++;
		}
	} else {
		pcpc_uncharge(load->owner[which], count);
		load->held[which] -= count;
		load->total -= count;
	}
	load->misses += pcpc_owner_usage(load->owner[which]) != usage;
}

/* Five hundred of them, a microsecond each. */
static void steps(void *context)
{
	int i;

	for (i = 0; i < 500; i++)
		step(context);
	pass(500000);
}

static void run(struct load *load, uint64_t target, uint32_t nr_steps)
{
	uint32_t k;

	load->target = target;
	for (k = 0; k < nr_steps / 1000; k++) {
		steps(load);
		worker_run(&load->worker, steps, load);
	}
}

static struct load *start_load(struct pcpc_owner *limited)
{
	struct load *load = calloc(1, sizeof(*load));
	uint32_t i;

	ck_assert_ptr_nonnull(load);
	load->random = unit_seed();
	worker_start(&load->worker, 1);
	for (i = 0; i < 200; i++)
		load->owner[i] = child_of(limited);
	return load;
}

static void end_load(struct load *load)
{
	uint32_t i;

	for (i = 0; i < 200; i++)
		uncharge(load->owner[i], load->held[i]);
	worker_stop(&load->worker);
	free(load);
}

/*
 * Required: "A tree at half load with 200 unlimited children under one limited parent runs nearly
 * all hits: drains and misses per million operations are counted and bounded." Section 7: "about
 * one drain per million operations at half load". A microsecond an operation.
 *
 * 200 children x 64 x CPUs hide up to 25,600 units; limits from one that is never felt to one that
 * leaves a child a fraction of a batch.
 */
START_TEST(at_half_load_nearly_all_operations_hit)
{
	static const struct {
		uint64_t max;
		uint32_t misses; /* per thousand */
	} cases[] = { { 200000, 30 }, { 60000, 60 }, { 20000, 150 } };
	const uint32_t nr_steps = UNIT_SANITIZED ? 20000 : 200000;
	struct pcpc_owner *limited;
	struct load *load;
	uint64_t before;
	unsigned int i;
	uint32_t k;

	if (!open_domain(_i, 64, 0))
		return;
	for (i = 0; i < 3; i++) {
		limited = make_owner(root, cases[i].max, 0);
		load = start_load(limited);
		while (load->total < cases[i].max / 2)
			run(load, cases[i].max / 2, 1000);
		/* two seconds in which the cap finds its place */
		for (k = 0; k < 20; k++) {
			run(load, cases[i].max / 2, 2000);
			pass(98 * MS);
		}
		load->misses = load->refused = 0;
		before = drains_now();
		run(load, cases[i].max / 2, nr_steps);
		unit_note("max %u: %u misses and %u drains in %u operations",
			  (unsigned int)cases[i].max, (unsigned int)load->misses,
			  (unsigned int)(drains_now() - before), nr_steps);
		ck_assert_uint_eq(load->refused, 0);
		ck_assert_uint_le(drains_now() - before, 4);
		ck_assert_uint_le(load->misses, (uint64_t)nr_steps * cases[i].misses / 1000);
		end_load(load);
	}
}
END_TEST

/* The tenants of a full limit come and go at its edge: it is refused, has room, is refused. Drains
 * are bounded by time (each 100 ms one of step 1, and one to be sure), not by the number of
 * charges. */
START_TEST(at_the_edge_drains_are_bounded_by_time)
{
	const uint32_t turns = 20;
	struct pcpc_owner *limited;
	uint64_t before;
	struct load *load;
	uint32_t k;

	if (!open_domain(_i, 64, 0))
		return;
	limited = make_owner(root, 20000, 0);
	load = start_load(limited);
	run(load, 20000, 20000);
	before = drains_now();
	load->refused = 0;
	/* 20 ms each, so that the cap may grow now and then in between */
	for (k = 0; k < turns; k++) {
		run(load, 12000, 10000);
		run(load, 25000, 10000);
	}
	unit_note("%u drains and %u refusals in %u ms", (unsigned int)(drains_now() - before),
		  (unsigned int)load->refused, 20 * turns);
	ck_assert_uint_gt(load->refused, turns);
	ck_assert_uint_gt(drains_now(), before);
	ck_assert_uint_le(drains_now() - before, 2 * (20 * turns / 100 + 1) + 2);
	ck_assert_uint_le(pcpc_owner_usage(limited), 20000);
	end_load(load);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("limit cap");
	TCase *tests = unit_case(suite, "cap");

	tcase_add_checked_fixture(tests, NULL, close_domain);
	by_each_engine(tests, the_cap_starts_at_a_sixteenth_of_max_over_all_cpus);
	by_each_engine(tests, the_effective_batch_is_the_least_of_batch_and_caps);
	by_each_engine(tests, a_million_refusals_cost_no_further_drain);
	by_each_engine(tests, a_small_limit_that_stays_full_stays_exact);
	by_each_engine(tests, a_thousand_full_tenants_cost_no_drains_either);
	by_each_engine(tests, the_cap_grows_by_time_once_usage_has_come_down);
	by_each_engine(tests, the_cap_stays_0_while_somebody_waits);
	by_each_engine(tests, a_drain_that_brought_much_back_halves_the_cap);
	by_each_engine(tests, a_new_max_starts_the_cap_again);
	by_each_engine(tests, at_half_load_nearly_all_operations_hit);
	by_each_engine(tests, at_the_edge_drains_are_bounded_by_time);
	return unit_run(suite);
}
