// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_owner_fork.c - fork (G9): the child can do everything, whatever other threads were doing,
 * and the parent notices nothing.
 */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "owner_support.h"
#include "unit_child.h"

/* How often liburcu-bp's fork hooks were called: these stand before its own. */
static _Atomic int before_calls, parent_calls, child_calls;

static void call_next(const char *name)
{
	void (*next)(void);

	*(void **)&next = dlsym(RTLD_NEXT, name);
	if (!next)
		abort();
	next();
}

void urcu_bp_before_fork(void)
{
	atomic_fetch_add(&before_calls, 1);
	call_next("urcu_bp_before_fork");
}

void urcu_bp_after_fork_parent(void)
{
	atomic_fetch_add(&parent_calls, 1);
	call_next("urcu_bp_after_fork_parent");
}

void urcu_bp_after_fork_child(void)
{
	atomic_fetch_add(&child_calls, 1);
	call_next("urcu_bp_after_fork_child");
}

static struct pcpc_owner *create_in_child(struct pcpc_owner *parent, uint64_t max)
{
	const struct pcpc_owner_config config = { .size = sizeof(config), .max = max };
	struct pcpc_owner *owner = NULL;

	IN_CHILD(pcpc_owner_create(parent, &config, &owner) == 0);
	return owner;
}

static bool count_visit(struct pcpc_owner *owner, unsigned int depth, void *context)
{
	(void)owner;
	(void)depth;
	++*(uint32_t *)context;
	return true;
}

/* Everything a program does, on owners of its own. */
static void do_everything(void)
{
	struct pcpc_owner *limited, *leaf, *other;
	struct pcpc_refusal refusal;
	uint32_t seen = 0;
	int i;

	limited = create_in_child(root, 2000);
	leaf = create_in_child(limited, 0);
	other = create_in_child(limited, 0);
	for (i = 0; i < 100; i++) {
		IN_CHILD(pcpc_charge(leaf, 20) == 0);
		IN_CHILD(pcpc_charge(other, 0) == 0);
	}
	IN_CHILD(pcpc_charge_flags(other, 1, 0, &refusal) == -EDQUOT);
	IN_CHILD(refusal.over == limited);
	IN_CHILD(pcpc_charge_wait(other, 1, 1000) == -ETIMEDOUT);
	pcpc_uncharge(leaf, 500);
	IN_CHILD(pcpc_charge_wait(other, 1, -1) == 0);
	IN_CHILD(pcpc_transfer(leaf, other, 99) == 0);
	IN_CHILD(pcpc_owner_usage_exact(limited) == 1501);
	IN_CHILD(pcpc_owner_set_max(limited, 10) == 0);
	IN_CHILD(pcpc_charge(leaf, 1) == -EDQUOT);
	IN_CHILD(pcpc_charge_flags(leaf, 1, PCPC_FORCE | PCPC_NOWAIT, NULL) == 0);
	(void)pcpc_owner_drain(root);
	pcpc_owner_walk(root, count_visit, &seen);
	IN_CHILD(seen >= 4);
	IN_CHILD(pcpc_owner_destroy(leaf) == 0);
	pcpc_uncharge(leaf, 1402);
	pcpc_uncharge(other, 100);
	IN_CHILD(pcpc_owner_usage_exact(limited) == 0);
	IN_CHILD(pcpc_owner_destroy(other) == 0);
	IN_CHILD(pcpc_owner_destroy(limited) == 0);
	pcpc_domain_poll(domain);
}

struct state {
	uint64_t usage, stock, peak, events;
	uint32_t nr_owners, offline;
	bool rings;
};

static struct state state_of(struct pcpc_owner *leaf)
{
	struct state state;
	unsigned int event;

	memset(&state, 0, sizeof(state));
	state.usage = pcpc_owner_usage(leaf) + 1000 * pcpc_owner_usage(root);
	state.stock = stock_of(leaf) + 1000 * stock_of(root);
	state.peak = pcpc_owner_peak(root);
	state.nr_owners = domain->nr_owners;
	state.offline = atomic_load(&domain->nr_offline);
	for (event = 0; event < PCPC_NR_EVENTS; event++)
		state.events += pcpc_owner_events(root, (enum pcpc_event)event);
	state.rings = rung();
	return state;
}

static void alone(void *context)
{
	struct pcpc_owner *leaf = context;

	IN_CHILD(pcpc_owner_usage_exact(leaf) == 100);
	IN_CHILD(pcpc_owner_usage_exact(root) == 100);
	do_everything();
	/* what it inherited is its own as well, and it may end the domain */
	pcpc_uncharge(leaf, 100);
	IN_CHILD(pcpc_domain_destroy(domain) == -EBUSY);
	IN_CHILD(pcpc_owner_destroy(leaf) == 0);
	IN_CHILD(pcpc_domain_destroy(domain) == 0);
}

/* G9: "the child can charge, uncharge, drain, create, destroy and exit; ... the parent notices
 * nothing".
 */
START_TEST(a_child_does_everything_and_the_parent_notices_nothing)
{
	struct state before, after;
	struct pcpc_owner *leaf;
	int i;

	if (!open_domain(_i, 64, 0))
		return;
	leaf = child_of(root);
	charge(leaf, 130);
	uncharge(leaf, 30);
	for (i = 0; i < 3; i++) {
		before = state_of(leaf);
		in_child(alone, leaf);
		after = state_of(leaf);
		ck_assert_mem_eq(&before, &after, sizeof(after));
	}
	uncharge(leaf, 100);
}
END_TEST

static void with_a_grandchild(void *context)
{
	do_everything();
	in_child(alone, context);
	IN_CHILD(pcpc_owner_usage_exact(context) == 100);
	do_everything();
}

START_TEST(a_grandchild_does_everything)
{
	struct pcpc_owner *leaf;

	if (!open_domain(_i, 64, 0))
		return;
	leaf = child_of(root);
	charge(leaf, 100);
	in_child(with_a_grandchild, leaf);
	ck_assert_uint_eq(pcpc_owner_usage_exact(leaf), 100);
	uncharge(leaf, 100);
}
END_TEST

/* -- beside busy threads -- */

#define THREADS 6

struct busy {
	struct pcpc_owner *limited, *leaf[4], *mine;
	_Atomic bool end;
	_Atomic uint64_t steps;
	uint64_t held; /* by the forking thread, of mine */
};

static void *work(void *context)
{
	struct busy *busy = context;
	uint64_t random = (uint64_t)gettid(), held[4] = { 0 }, count;
	struct pcpc_owner *made;
	uint32_t which;

	while (!atomic_load(&busy->end)) {
		which = (uint32_t)unit_below(&random, 4);
		count = 1 + unit_below(&random, 60);
		switch (unit_below(&random, 60)) {
		case 0:
			(void)pcpc_owner_drain(root);
			break;
		case 1:
			pcpc_domain_poll(domain);
			break;
		case 2:
			if (pcpc_owner_create(busy->limited, NULL, &made) == 0) {
				if (pcpc_charge(made, 2) == 0)
					pcpc_uncharge(made, 2);
				(void)pcpc_owner_destroy(made);
			}
			break;
		case 3:
			(void)pcpc_owner_set_max(busy->limited, 500 + unit_below(&random, 500));
			break;
		default:
			if (held[which] > 100) {
				pcpc_uncharge(busy->leaf[which], held[which]);
				held[which] = 0;
			} else if (pcpc_charge(busy->leaf[which], count) == 0) {
				held[which] += count;
			} else {
				pcpc_uncharge(busy->leaf[which], held[which]);
				held[which] = 0;
			}
		}
		atomic_fetch_add_explicit(&busy->steps, 1, memory_order_relaxed);
	}
	for (which = 0; which < 4; which++)
		pcpc_uncharge(busy->leaf[which], held[which]);
	return NULL;
}

static void beside_nobody_any_more(void *context)
{
	struct busy *busy = context;
	uint32_t i;

	/* "usage is at least what it holds" */
	IN_CHILD(pcpc_owner_usage_exact(busy->mine) >= busy->held);
	IN_CHILD(pcpc_owner_usage(busy->mine) >= busy->held);
	do_everything();
	pcpc_uncharge(busy->mine, busy->held);
	IN_CHILD(pcpc_charge_flags(busy->mine, 5, PCPC_FORCE, NULL) == 0);
	pcpc_uncharge(busy->mine, 5);
	for (i = 0; i < 4; i++) {
		IN_CHILD(pcpc_charge_flags(busy->leaf[i], 5, PCPC_FORCE, NULL) == 0);
		IN_CHILD(pcpc_owner_usage(busy->leaf[i]) >= 5);
		pcpc_uncharge(busy->leaf[i], 5);
	}
	(void)pcpc_owner_drain(root);
	/* every unit of the others stays there, and nothing of its own */
	IN_CHILD(pcpc_owner_usage_exact(busy->mine) < 128);
	IN_CHILD(events_of(busy->mine, PCPC_EVENT_UNDERFLOW) == 0);
	IN_CHILD(pcpc_owner_destroy(busy->mine) == 0);
	pcpc_domain_poll(domain);
}

/* G9, asks 12: "fork from 1 thread while 63 charge: child can charge, read, destroy and exit". A
 * thousand times: PCPC_FORKS=1000. */
START_TEST(asks_12_fork_beside_threads_that_charge)
{
	const uint32_t forks = (uint32_t)unit_knob("PCPC_FORKS", UNIT_SANITIZED ? 10 : 30);
	struct busy busy = { .held = 0 };
	pthread_t thread[THREADS];
	uint32_t i;

	if (!open_domain(_i, 64, 1))
		return;
	unit_stand_anywhere();
	busy.limited = make_owner(root, 1000, 0);
	busy.mine = child_of(busy.limited);
	for (i = 0; i < 4; i++)
		busy.leaf[i] = child_of(busy.limited);
	for (i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, work, &busy), 0);
	for (i = 0; i < forks; i++) {
		uint64_t steps = atomic_load(&busy.steps);

		if (pcpc_charge(busy.mine, 7) == 0)
			busy.held += 7;
		in_child(beside_nobody_any_more, &busy);
		UNTIL(atomic_load(&busy.steps) > steps + 100);
	}
	atomic_store(&busy.end, true);
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	ck_assert_uint_eq(pcpc_owner_usage_exact(busy.mine), busy.held);
	ck_assert_uint_eq(pcpc_owner_usage_exact(root), busy.held);
	ck_assert_uint_eq(events_of(root, PCPC_EVENT_UNDERFLOW), 0);
	uncharge(busy.mine, busy.held);
}
END_TEST

/* -- what threads that are not in the child were in the middle of -- */

struct middle {
	struct pcpc_owner *limited, *leaf;
	sem_t entered, leave;
	unsigned int calls;
};

static uint64_t block_in_reclaim(struct pcpc_owner *over, uint64_t wanted, void *context)
{
	struct middle *middle = context;

	(void)over;
	(void)wanted;
	sem_post(&middle->entered);
	while (sem_wait(&middle->leave) < 0)
		;
	return 0;
}

static uint64_t free_in_reclaim(struct pcpc_owner *over, uint64_t wanted, void *context)
{
	struct middle *middle = context;

	(void)over;
	(void)wanted;
	middle->calls++;
	pcpc_uncharge(middle->leaf, 100);
	return 100;
}

static void reclaim_in_child(void *context)
{
	struct middle *middle = context;

	IN_CHILD(pcpc_owner_set_reclaim(middle->limited, free_in_reclaim, middle) == 0);
	/* nobody reclaims any more: this does */
	IN_CHILD(pcpc_charge(middle->leaf, 10) == 0);
	IN_CHILD(middle->calls == 1);
	/* nobody waits any more, and nobody has the cap pinned */
	IN_CHILD(!awaited(middle->limited));
	IN_CHILD(!pins_of(middle->limited));
	do_everything();
}

/* fork.c: "nobody waits, reclaims, or needs a cap to stay 0". */
START_TEST(nobody_waits_or_reclaims_in_the_child)
{
	struct worker reclaimer, waiter;
	struct middle middle = { 0 };
	struct job one, two;

	if (!open_domain(_i, 64, 0))
		return;
	worker_start(&reclaimer, -1);
	worker_start(&waiter, -1);
	sem_init(&middle.entered, 0, 0);
	sem_init(&middle.leave, 0, 0);
	middle.limited = make_owner(root, 1000, 0);
	middle.leaf = child_of(middle.limited);
	charge(middle.leaf, 1000);
	two = (struct job){ .owner = middle.leaf, .count = 5, .timeout_ns = 60000000000 };
	worker_post(&waiter, job_charge_wait, &two);
	UNTIL(awaited(middle.limited));
	ck_assert_int_eq(pcpc_owner_set_reclaim(middle.limited, block_in_reclaim, &middle), 0);
	one = (struct job){ .owner = middle.leaf, .count = 5 };
	worker_post(&reclaimer, job_charge, &one);
	while (sem_wait(&middle.entered) < 0)
		;
	in_child(reclaim_in_child, &middle);
	/* the parent's are where they were */
	ck_assert(awaited(middle.limited));
	ck_assert_int_eq(pcpc_owner_set_reclaim(middle.limited, NULL, NULL), 0);
	sem_post(&middle.leave);
	worker_wait(&reclaimer);
	ck_assert_int_eq(one.result, -EDQUOT);
	pcpc_uncharge(middle.leaf, 5);
	worker_wait(&waiter);
	ck_assert_int_eq(two.result, 0);
	uncharge(middle.leaf, 1000);
	worker_stop(&reclaimer);
	worker_stop(&waiter);
}
END_TEST

struct reader {
	sem_t entered, leave;
};

static void job_read(void *context)
{
	struct reader *reader = context;

	urcu_bp_read_lock();
	sem_post(&reader->entered);
	while (sem_wait(&reader->leave) < 0)
		;
	urcu_bp_read_unlock();
}

static void poll_in_child(void *context)
{
	struct pcpc_owner *leaf = create_in_child(root, 100);

	(void)context;
	IN_CHILD(pcpc_owner_destroy(leaf) == 0);
	pcpc_domain_poll(domain); /* two grace periods */
	do_everything();
}

/* A thread that was in a read-side section is not waited for in the child: the library drives
 * liburcu-bp's hooks, once for each fork. */
START_TEST(readers_of_the_parent_are_not_waited_for)
{
	struct reader reader;
	struct worker worker;

	if (!open_domain(_i, 64, 0))
		return;
	worker_start(&worker, -1);
	sem_init(&reader.entered, 0, 0);
	sem_init(&reader.leave, 0, 0);
	worker_post(&worker, job_read, &reader);
	while (sem_wait(&reader.entered) < 0)
		;
	in_child(poll_in_child, NULL);
	ck_assert_int_eq(atomic_load(&before_calls), 1);
	ck_assert_int_eq(atomic_load(&parent_calls), 1);
	in_child(poll_in_child, NULL);
	ck_assert_int_eq(atomic_load(&before_calls), 2);
	sem_post(&reader.leave);
	worker_wait(&worker);
	worker_stop(&worker);
}
END_TEST

static void hooks_in_child(void *context)
{
	IN_CHILD(atomic_load(&child_calls) == *(int *)context);
	poll_in_child(NULL);
}

static void drive_before(void)
{
	urcu_bp_before_fork();
}

static void drive_parent(void)
{
	urcu_bp_after_fork_parent();
}

static void drive_child(void)
{
	urcu_bp_after_fork_child();
}

/* owner.h, PCPC_DOMAIN_NO_FORK_HOOKS: "The program drives liburcu-bp's fork hooks itself: this
 * domain must not." Twice would hang. Also where another domain does not say so. */
START_TEST(a_program_may_drive_the_hooks_itself)
{
	struct pcpc_domain_config config = domain_config((enum pcpc_engine)_i, 64);
	struct pcpc_domain *other = NULL;
	struct reader reader;
	struct worker worker;
	int times = 0;

	config.flags = PCPC_DOMAIN_NO_FORK_HOOKS;
	if (!create_domain(&config))
		return;
	in_child(hooks_in_child, &times); /* a single thread needs none */
	ck_assert_int_eq(atomic_load(&before_calls), 0);
	ck_assert_int_eq(atomic_load(&parent_calls), 0);
	ck_assert_int_eq(pthread_atfork(drive_before, drive_parent, drive_child), 0);
	config.flags = 0;
	ck_assert_int_eq(pcpc_domain_create(&config, &other), 0);
	worker_start(&worker, -1);
	sem_init(&reader.entered, 0, 0);
	sem_init(&reader.leave, 0, 0);
	worker_post(&worker, job_read, &reader);
	while (sem_wait(&reader.entered) < 0)
		;
	times = 1;
	in_child(hooks_in_child, &times);
	ck_assert_int_eq(atomic_load(&before_calls), 1);
	ck_assert_int_eq(atomic_load(&parent_calls), 1);
	sem_post(&reader.leave);
	worker_wait(&worker);
	worker_stop(&worker);
	ck_assert_int_eq(pcpc_domain_destroy(other), 0);
}
END_TEST

/* -- the eventfd -- */

static void poll_and_look(void *context)
{
	(void)context;
	IN_CHILD(rung());
	pcpc_domain_poll(domain);
	IN_CHILD(!rung());
}

/* G9, "the parent notices nothing": a child that polls does not take the parent's bell away. */
START_TEST(a_poll_in_the_child_leaves_the_parents_eventfd_readable)
{
	struct pcpc_owner *leaf;

	if (!open_domain(_i, 64, 0))
		return;
	leaf = make_owner(root, 10000, 0);
	charge(leaf, 60);
	uncharge(leaf, 60);
	ck_assert_int_eq(pcpc_charge_flags(leaf, 10000, PCPC_NOWAIT, NULL), -EAGAIN);
	ck_assert(rung());
	in_child(poll_and_look, NULL);
	ck_assert(rung());
	pcpc_domain_poll(domain);
	ck_assert(!rung());
	ck_assert_uint_eq(pcpc_owner_usage(leaf), 0);
}
END_TEST

static void ring_in_child(void *context)
{
	IN_CHILD(!rung());
	IN_CHILD(pcpc_charge_flags(context, 10000, PCPC_NOWAIT, NULL) == -EAGAIN);
	IN_CHILD(rung());
}

/* And what arises in the child does not ring in the parent. */
START_TEST(an_event_of_the_child_does_not_ring_in_the_parent)
{
	struct pcpc_owner *leaf;

	if (!open_domain(_i, 64, 0))
		return;
	leaf = make_owner(root, 10000, 0);
	charge(leaf, 60);
	uncharge(leaf, 60);
	ck_assert(!rung());
	in_child(ring_in_child, leaf);
	ck_assert(!rung());
	/* and the parent's own still does */
	ck_assert_int_eq(pcpc_charge_flags(leaf, 10000, PCPC_NOWAIT, NULL), -EAGAIN);
	ck_assert(rung());
	pcpc_domain_poll(domain);
}
END_TEST

/* -- fork from a callback -- */

struct forker {
	struct pcpc_owner *leaf;
	unsigned int calls, fork_in_call;
	bool forked, in_child;
	pid_t child;
};

static uint64_t fork_in_reclaim(struct pcpc_owner *over, uint64_t wanted, void *context)
{
	struct forker *forker = context;

	(void)over;
	(void)wanted;
	if (++forker->calls == forker->fork_in_call) {
		fflush(NULL);
		forker->child = fork();
		forker->in_child = forker->child == 0;
		if (forker->in_child)
			alarm(PATIENCE);
	}
	return 0;
}

static void end_of_forker(struct forker *forker)
{
	int status;

	ck_assert_int_gt(forker->child, 0);
	ck_assert_int_eq(waitpid(forker->child, &status, 0), forker->child);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 0);
}

/* asks 7 and 12: a callback may do anything, fork included; the call goes on in both. */
START_TEST(a_reclaim_function_may_fork)
{
	struct forker forker = { .fork_in_call = 1 };
	struct pcpc_owner *limited;
	int r;

	if (!open_domain(_i, 64, 0))
		return;
	limited = make_owner(root, 1000, 0);
	forker.leaf = child_of(limited);
	charge(forker.leaf, 1000);
	ck_assert_int_eq(pcpc_owner_set_reclaim(limited, fork_in_reclaim, &forker), 0);
	r = pcpc_charge(forker.leaf, 1);
	if (forker.in_child) {
		IN_CHILD(r == -EDQUOT);
		IN_CHILD(!pins_of(limited));
		IN_CHILD(pcpc_charge(forker.leaf, 1) == -EDQUOT);
		IN_CHILD(forker.calls == 2);
		do_everything();
		pcpc_uncharge(forker.leaf, 1000);
		_exit(0);
	}
	ck_assert_int_eq(r, -EDQUOT);
	end_of_forker(&forker);
	uncharge(forker.leaf, 1000);
}
END_TEST

/* The same where the forking thread has the cap pinned itself, for it is about to wait. */
START_TEST(a_reclaim_function_may_fork_in_a_call_that_waits)
{
	struct forker forker = { .fork_in_call = 2 };
	struct pcpc_owner *limited;
	int r;

	if (!open_domain(_i, 64, 0))
		return;
	limited = make_owner(root, 1000, 0);
	forker.leaf = child_of(limited);
	charge(forker.leaf, 1000);
	ck_assert_int_eq(pcpc_owner_set_reclaim(limited, fork_in_reclaim, &forker), 0);
	r = pcpc_charge_wait(forker.leaf, 1, 50000000);
	if (forker.in_child) {
		IN_CHILD(r == -ETIMEDOUT);
		IN_CHILD(!pins_of(limited));
		_exit(0);
	}
	ck_assert_int_eq(r, -ETIMEDOUT);
	ck_assert_uint_ge(forker.calls, 2);
	end_of_forker(&forker);
	uncharge(forker.leaf, 1000);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("owner fork");
	TCase *tests = unit_case(suite, "fork");

	/* a fork that hangs is the failure to expect here */
	tcase_set_timeout(tests, PATIENCE);
	tcase_add_checked_fixture(tests, NULL, close_domain);
	by_each_engine(tests, a_child_does_everything_and_the_parent_notices_nothing);
	by_each_engine(tests, a_grandchild_does_everything);
	by_each_engine(tests, asks_12_fork_beside_threads_that_charge);
	by_each_engine(tests, nobody_waits_or_reclaims_in_the_child);
	by_each_engine(tests, readers_of_the_parent_are_not_waited_for);
	by_each_engine(tests, a_program_may_drive_the_hooks_itself);
	by_each_engine(tests, a_poll_in_the_child_leaves_the_parents_eventfd_readable);
	by_each_engine(tests, an_event_of_the_child_does_not_ring_in_the_parent);
	by_each_engine(tests, a_reclaim_function_may_fork);
	by_each_engine(tests, a_reclaim_function_may_fork_in_a_call_that_waits);
	return unit_run(suite);
}
