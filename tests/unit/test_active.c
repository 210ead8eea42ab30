// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_active.c - the owner a thread works for: per thread, per domain, whatever the number of
 * domains.
 */
#define _GNU_SOURCE
#include <signal.h>

#include "owner_support.h"

#define DOMAINS 20 /* more than have a place in thread-local memory */

static struct pcpc_domain *many[DOMAINS];
static struct pcpc_owner *owner_in[DOMAINS];

static bool open_many(int engine)
{
	struct pcpc_domain_config config = domain_config((enum pcpc_engine)engine, 64);
	int i;

	if (!open_domain(engine, 64, 0))
		return false;
	for (i = 0; i < DOMAINS; i++) {
		ck_assert_int_eq(pcpc_domain_create(&config, &many[i]), 0);
		owner_in[i] = child_of(pcpc_domain_root(many[i]));
	}
	return true;
}

static void close_many(void)
{
	int i;

	for (i = 0; i < DOMAINS && many[i]; i++) {
		ck_assert_int_eq(pcpc_owner_destroy(owner_in[i]), 0);
		ck_assert_int_eq(pcpc_domain_destroy(many[i]), 0);
		many[i] = NULL;
	}
	close_domain();
}

/* charge.h: "set returns the previous one", "a new thread has none (NULL)". */
START_TEST(set_returns_the_previous_one)
{
	struct pcpc_owner *first, *second;

	if (!open_domain(_i, 64, 0))
		return;
	first = child_of(root);
	second = child_of(root);
	ck_assert_ptr_null(pcpc_active(domain));
	ck_assert_ptr_null(pcpc_set_active(domain, first));
	ck_assert_ptr_eq(pcpc_active(domain), first);
	ck_assert_ptr_eq(pcpc_set_active(domain, second), first);
	ck_assert_ptr_eq(pcpc_set_active(domain, NULL), second);
	ck_assert_ptr_null(pcpc_active(domain));
	ck_assert_ptr_null(pcpc_active(NULL));
	ck_assert_ptr_null(pcpc_set_active(NULL, first));
	/* "Holds no reference and flushes nothing" */
	charge(first, 1);
	(void)pcpc_set_active(domain, first);
	ck_assert_uint_eq(atomic_load(&books_of(first)->refs), 1);
	ck_assert_uint_eq(stock_of(first), 8);
	(void)pcpc_set_active(domain, second);
	ck_assert_uint_eq(stock_of(first), 8);
	uncharge(first, 1);
}
END_TEST

struct scope {
	struct pcpc_owner *seen[DOMAINS], *set[DOMAINS];
};

static void other_thread(void *context)
{
	struct scope *scope = context;
	int i;

	for (i = 0; i < DOMAINS; i++) {
		scope->seen[i] = pcpc_active(many[i]);
		ck_assert_ptr_null(pcpc_set_active(many[i], scope->set[i]));
	}
	for (i = 0; i < DOMAINS; i++)
		ck_assert_ptr_eq(pcpc_active(many[i]), scope->set[i]);
}

/* "per thread and per domain": none of 20 domains sees another's, and no thread another's. */
START_TEST(each_thread_has_one_per_domain)
{
	struct scope scope = { .set = { NULL } };
	struct worker worker;
	int i;

	if (!open_many(_i))
		return;
	worker_start(&worker, -1);
	for (i = 0; i < DOMAINS; i++) {
		ck_assert_ptr_null(pcpc_active(many[i]));
		ck_assert_ptr_null(pcpc_set_active(many[i], owner_in[i]));
		scope.set[i] = pcpc_domain_root(many[i]);
	}
	worker_run(&worker, other_thread, &scope);
	for (i = 0; i < DOMAINS; i++) {
		ck_assert_ptr_null(scope.seen[i]);
		ck_assert_ptr_eq(pcpc_active(many[i]), owner_in[i]);
	}
	worker_stop(&worker);
}
END_TEST

/* A domain that takes the place of one that is gone begins with none, in every thread. */
START_TEST(a_later_domain_begins_with_none)
{
	struct pcpc_domain_config config = domain_config((enum pcpc_engine)_i, 64);
	struct scope scope = { .set = { NULL } };
	struct worker worker;
	int i, round;

	if (!open_many(_i))
		return;
	worker_start(&worker, -1);
	for (round = 0; round < 4; round++) {
		for (i = 0; i < DOMAINS; i++) {
			(void)pcpc_set_active(many[i], owner_in[i]);
			scope.set[i] = owner_in[i];
			scope.seen[i] = root;
		}
		worker_run(&worker, other_thread, &scope);
		for (i = 0; i < DOMAINS; i++)
			ck_assert_ptr_null(scope.seen[i]);
		/* in another order each time, so that places and keys change hands */
		for (i = 0; i < DOMAINS; i++) {
			int which = (i * 7 + round) % DOMAINS;

			ck_assert_int_eq(pcpc_owner_destroy(owner_in[which]), 0);
			ck_assert_int_eq(pcpc_domain_destroy(many[which]), 0);
		}
		for (i = 0; i < DOMAINS; i++) {
			ck_assert_int_eq(pcpc_domain_create(&config, &many[i]), 0);
			owner_in[i] = child_of(pcpc_domain_root(many[i]));
			ck_assert_ptr_null(pcpc_active(many[i]));
		}
	}
	worker_stop(&worker);
}
END_TEST

/* Asks 11 and 15: nested scopes, switched many times, charge whom they say. */
START_TEST(asks_15_switching_charges_whom_it_names)
{
	struct pcpc_owner *tenant[10], *outer;
	uint64_t held[10] = { 0 }, random = unit_seed();
	uint32_t i, inner, which;

	if (!open_domain(_i, 64, 0))
		return;
	for (i = 0; i < 10; i++)
		tenant[i] = child_of(root);
	for (i = 0; i < 5000; i++) {
		which = (uint32_t)unit_below(&random, 10);
		inner = (uint32_t)unit_below(&random, 10);
		outer = pcpc_set_active(domain, tenant[which]);
		charge(pcpc_active(domain), 2);
		held[which] += 2;
		ck_assert_ptr_eq(pcpc_set_active(domain, tenant[inner]), tenant[which]);
		charge(pcpc_active(domain), 3);
		held[inner] += 3;
		ck_assert_ptr_eq(pcpc_set_active(domain, tenant[which]), tenant[inner]);
		(void)pcpc_set_active(domain, outer);
		ck_assert_ptr_eq(pcpc_active(domain), outer);
	}
	for (i = 0; i < 10; i++) {
		ck_assert_uint_eq(pcpc_owner_usage_exact(tenant[i]), held[i]);
		uncharge(tenant[i], held[i]);
	}
}
END_TEST

static struct pcpc_owner *_Atomic seen_in_handler;

static void look(int signal)
{
	(void)signal;
	atomic_store(&seen_in_handler, pcpc_active(domain));
	(void)pcpc_set_active(domain, pcpc_active(domain));
}

/* charge.h: "both are signal-safe". */
START_TEST(a_handler_sees_whom_its_thread_works_for)
{
	struct sigaction action = { .sa_handler = look };
	struct pcpc_owner *leaf;

	if (!open_domain(_i, 64, 0))
		return;
	ck_assert_int_eq(sigaction(SIGUSR1, &action, NULL), 0);
	leaf = child_of(root);
	(void)pcpc_set_active(domain, leaf);
	ck_assert_int_eq(raise(SIGUSR1), 0);
	ck_assert_ptr_eq(atomic_load(&seen_in_handler), leaf);
	ck_assert_ptr_eq(pcpc_active(domain), leaf);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("active");
	TCase *tests = unit_case(suite, "active");

	tcase_add_checked_fixture(tests, NULL, close_many);
	by_each_engine(tests, set_returns_the_previous_one);
	by_each_engine(tests, each_thread_has_one_per_domain);
	by_each_engine(tests, a_later_domain_begins_with_none);
	by_each_engine(tests, asks_15_switching_charges_whom_it_names);
	by_each_engine(tests, a_handler_sees_whom_its_thread_works_for);
	return unit_run(suite);
}
