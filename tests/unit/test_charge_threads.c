// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_charge_threads.c - charging from many threads, from threads that end, and from signal
 * handlers: no limit is passed, nobody is refused who fits, no unit is lost.
 *
 * Bounded by operations, not by time. Longer and harder runs are in ../stress.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "owner_support.h"

#define MOST_THREADS 24

/* What a crowd of threads works on, with an exact counter beside the limit. */
struct crowd {
	struct pcpc_owner *limited, *leaf[8];
	uint32_t nr_leaves, rounds;
	uint64_t most; /* units asked for at a time */
	uint64_t max;
	_Atomic uint64_t holding, highest, charged, refused, wrong;
	_Atomic uint64_t epoch; /* odd: the limit is the low one, and set_max() has returned */
	uint64_t low;
	_Atomic bool end;
};

static void run_threads(uint32_t nr, void *(*work)(void *context), struct crowd *crowd)
{
	pthread_t thread[MOST_THREADS];
	uint32_t i;

	unit_stand_anywhere();
	for (i = 0; i < nr; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, work, crowd), 0);
	for (i = 0; i < nr; i++)
		pthread_join(thread[i], NULL);
}

static void grow(struct crowd *crowd, uint64_t max)
{
	uint32_t i;

	crowd->max = max;
	crowd->limited = make_owner(root, max, 0);
	for (i = 0; i < crowd->nr_leaves; i++)
		crowd->leaf[i] = child_of(i % 2 ? crowd->limited : child_of(crowd->limited));
}

static void count_in(struct crowd *crowd, uint64_t count)
{
	uint64_t sum = atomic_fetch_add(&crowd->holding, count) + count;
	uint64_t highest = atomic_load(&crowd->highest);

	while (sum > highest && !atomic_compare_exchange_weak(&crowd->highest, &highest, sum))
		;
}

/* Charges, holds, and gives back, possibly what it charged before. */
static void *charge_and_hold(void *context)
{
	struct crowd *crowd = context;
	uint64_t random = (uint64_t)gettid(), count, held[8] = { 0 };
	uint32_t i, which;
	int r;

	for (i = 0; i < crowd->rounds; i++) {
		which = (uint32_t)unit_below(&random, crowd->nr_leaves);
		count = 1 + unit_below(&random, crowd->most);
		if (unit_below(&random, 2) && held[which] >= count) {
			atomic_fetch_sub(&crowd->holding, count);
			pcpc_uncharge(crowd->leaf[which], count);
			held[which] -= count;
			continue;
		}
		/* with two CPUs a thread would seldom meet another */
		if (unit_below(&random, 8) == 0)
			sched_yield();
		r = pcpc_charge(crowd->leaf[which], count);
		if (r == 0) {
			count_in(crowd, count);
			held[which] += count;
			atomic_fetch_add_explicit(&crowd->charged, 1, memory_order_relaxed);
		} else {
			atomic_fetch_add_explicit(&crowd->refused, 1, memory_order_relaxed);
			if (r != -EDQUOT)
				atomic_fetch_add(&crowd->wrong, 1);
			/* or nobody would get anything any more */
			for (which = 0; which < crowd->nr_leaves; which++) {
				atomic_fetch_sub(&crowd->holding, held[which]);
				pcpc_uncharge(crowd->leaf[which], held[which]);
				held[which] = 0;
			}
		}
	}
	for (which = 0; which < crowd->nr_leaves; which++) {
		atomic_fetch_sub(&crowd->holding, held[which]);
		pcpc_uncharge(crowd->leaf[which], held[which]);
	}
	return NULL;
}

/* Until somebody was refused: threads that a busy machine runs one after the other hold little. */
static void run_until_refused(struct crowd *crowd)
{
	int times;

	for (times = 0; times < 100 && !atomic_load(&crowd->refused); times++)
		run_threads(24, charge_and_hold, crowd);
	ck_assert_uint_gt(crowd->refused, 0);
}

static void check_crowd(struct crowd *crowd)
{
	unit_note("%u charges, %u refusals, at most %u of %u held", (unsigned int)crowd->charged,
		  (unsigned int)crowd->refused, (unsigned int)crowd->highest,
		  (unsigned int)crowd->max);
	ck_assert_uint_le(atomic_load(&crowd->highest), crowd->max);
	ck_assert_uint_eq(atomic_load(&crowd->holding), 0);
	ck_assert_uint_eq(atomic_load(&crowd->wrong), 0);
	ck_assert_uint_gt(atomic_load(&crowd->charged), 0);
	ck_assert_uint_eq(pcpc_owner_usage_exact(crowd->limited), 0);
	ck_assert_uint_le(pcpc_owner_peak(crowd->limited), crowd->max);
}

/* G2, asks 10: "24 threads on one owner with a small max and an exact shared counter beside it;
 * never above max". */
START_TEST(asks_10_24_threads_never_pass_a_small_limit)
{
	struct crowd crowd = { .nr_leaves = 1, .most = 5, .rounds = UNIT_SANITIZED ? 300 : 2000 };

	if (!open_domain(_i, 64, 0))
		return;
	grow(&crowd, 100);
	run_until_refused(&crowd);
	check_crowd(&crowd);
}
END_TEST

/* The same below a limit that leaves room to stock, with leaves at two depths. */
START_TEST(asks_10_24_threads_never_pass_a_larger_limit)
{
	struct crowd crowd = { .nr_leaves = 8, .most = 100, .rounds = UNIT_SANITIZED ? 300 : 2000 };

	if (!open_domain(_i, 64, 1))
		return;
	grow(&crowd, 20000);
	run_until_refused(&crowd);
	check_crowd(&crowd);
}
END_TEST

static void *charge_once(void *context)
{
	struct crowd *crowd = context;

	if (pcpc_charge(crowd->leaf[0], 7) == 0) {
		count_in(crowd, 7);
		atomic_fetch_add(&crowd->charged, 1);
		atomic_fetch_sub(&crowd->holding, 7);
		pcpc_uncharge(crowd->leaf[0], 7);
	} else {
		atomic_fetch_add(&crowd->refused, 1);
	}
	return NULL;
}

/* "The same with 10,000 short-lived threads"; asks 11: "thread exit without ceremony". */
START_TEST(asks_11_threads_come_and_go_without_ceremony)
{
	/* of 24 */
	const uint32_t batches =
		(uint32_t)unit_knob("PCPC_THREADS", UNIT_SANITIZED ? 500 : 10000) / 24;
	struct crowd crowd = { .nr_leaves = 1 };
	uint32_t i;

	if (!open_domain(_i, 64, 0))
		return;
	grow(&crowd, 100);
	for (i = 0; i < batches; i++)
		run_threads(24, charge_once, &crowd);
	check_crowd(&crowd);
	ck_assert_uint_eq(crowd.charged + crowd.refused, 24 * batches);
}
END_TEST

/* G3: every thread has a share of its own, and the shares add up to the limit: so at no moment is
 * there too little for anybody, and no charge may be refused. */
static void *use_a_share(void *context)
{
	struct crowd *crowd = context;
	uint64_t random = (uint64_t)gettid(), held[8] = { 0 }, sum = 0, count;
	uint32_t i, which;

	for (i = 0; i < crowd->rounds; i++) {
		which = (uint32_t)unit_below(&random, crowd->nr_leaves);
		count = 1 + unit_below(&random, crowd->most);
		if (sum + count <= crowd->most) {
			if (pcpc_charge(crowd->leaf[which], count) == 0) {
				held[which] += count;
				sum += count;
				atomic_fetch_add_explicit(&crowd->charged, 1, memory_order_relaxed);
			} else {
				atomic_fetch_add(&crowd->wrong, 1);
			}
		} else if (held[which]) {
			count = 1 + unit_below(&random, held[which]);
			pcpc_uncharge(crowd->leaf[which], count);
			held[which] -= count;
			sum -= count;
		}
	}
	for (which = 0; which < crowd->nr_leaves; which++)
		pcpc_uncharge(crowd->leaf[which], held[which]);
	return NULL;
}

START_TEST(nobody_is_refused_while_the_shares_fit)
{
	static const uint64_t shares[] = { 1, 4, 100, 3000 };
	struct crowd crowd;
	unsigned int i;

	if (!open_domain(_i, 64, 1))
		return;
	for (i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
		crowd = (struct crowd){ .nr_leaves = 4,
					.most = shares[i],
					.rounds = UNIT_SANITIZED ? 500 : 3000 };
		grow(&crowd, 4 * shares[i]);
		run_threads(4, use_a_share, &crowd);
		ck_assert_uint_eq(atomic_load(&crowd.wrong), 0);
		ck_assert_uint_gt(atomic_load(&crowd.charged), 100);
		ck_assert_uint_eq(events_of(crowd.limited, PCPC_EVENT_REFUSED), 0);
		ck_assert_uint_eq(pcpc_owner_usage_exact(crowd.limited), 0);
	}
}
END_TEST

/* A charge that began after a lowering had returned, and ended before the next raising began. */
static void *charge_beside_lowering(void *context)
{
	struct crowd *crowd = context;
	uint64_t random = (uint64_t)gettid(), epoch, count, sum;

	while (!atomic_load(&crowd->end)) {
		count = 1 + unit_below(&random, 20);
		epoch = atomic_load(&crowd->epoch);
		if (pcpc_charge(crowd->leaf[unit_below(&random, crowd->nr_leaves)], 0) != 0)
			atomic_fetch_add(&crowd->wrong, 1);
		if (pcpc_charge(crowd->leaf[0], count) != 0)
			continue;
		sum = atomic_fetch_add(&crowd->holding, count) + count;
		if (epoch % 2 && atomic_load(&crowd->epoch) == epoch && sum > crowd->low)
			atomic_fetch_add(&crowd->wrong, 1);
		if (sum > crowd->max)
			atomic_fetch_add(&crowd->wrong, 1);
		atomic_fetch_add_explicit(&crowd->charged, 1, memory_order_relaxed);
		if (unit_below(&random, 4) == 0)
			sched_yield();
		atomic_fetch_sub(&crowd->holding, count);
		pcpc_uncharge(crowd->leaf[0], count);
	}
	return NULL;
}

static void *lower_and_raise(void *context)
{
	struct crowd *crowd = context;
	uint32_t i, k;

	for (i = 0; i < crowd->rounds || atomic_load(&crowd->charged) <= 100; i++) {
		ck_assert_int_eq(pcpc_owner_set_max(crowd->limited, crowd->low), 0);
		atomic_fetch_add(&crowd->epoch, 1);
		for (k = 0; k < 5; k++)
			sched_yield();
		atomic_fetch_add(&crowd->epoch, 1);
		ck_assert_int_eq(pcpc_owner_set_max(crowd->limited, crowd->max), 0);
		for (k = 0; k < 5; k++)
			sched_yield();
	}
	atomic_store(&crowd->end, true);
	return NULL;
}

/* G2: "after a lowering has returned, no charge that does not fit succeeds, stocks included"; asks
 * 16: "lowering a limit ... takes effect". */
START_TEST(asks_16_a_lowered_limit_holds_beside_chargers)
{
	struct crowd crowd = { .nr_leaves = 4, .low = 30, .rounds = UNIT_SANITIZED ? 100 : 300 };
	pthread_t lowering;

	if (!open_domain(_i, 64, 0))
		return;
	unit_stand_anywhere();
	grow(&crowd, 2000);
	ck_assert_int_eq(pthread_create(&lowering, NULL, lower_and_raise, &crowd), 0);
	run_threads(4, charge_beside_lowering, &crowd);
	pthread_join(lowering, NULL);
	ck_assert_uint_eq(atomic_load(&crowd.wrong), 0);
	ck_assert_uint_gt(atomic_load(&crowd.charged), 100);
	ck_assert_uint_eq(pcpc_owner_usage_exact(crowd.limited), 0);
}
END_TEST

static void *manage(void *context)
{
	struct crowd *crowd = context;
	uint64_t random = (uint64_t)gettid(), exact_usage;
	struct pcpc_owner *made;
	struct everybody all;
	uint32_t which;

	while (!atomic_load(&crowd->end)) {
		which = (uint32_t)unit_below(&random, crowd->nr_leaves);
		switch (unit_below(&random, 10)) {
		case 0:
			(void)pcpc_owner_set_max(crowd->limited,
						 crowd->max / 2 + unit_below(&random, crowd->max));
			break;
		case 1:
			(void)pcpc_owner_set_high(crowd->leaf[which], unit_below(&random, 100));
			break;
		case 2:
			(void)pcpc_owner_set_batch(crowd->leaf[which],
						   (uint32_t)unit_below(&random, 100));
			break;
		case 3:
			pcpc_owner_reset_peak(crowd->leaf[which]);
			pcpc_owner_reset_peak(root);
			break;
		case 4:
			(void)pcpc_owner_drain(crowd->leaf[which]);
			break;
		case 5:
			exact_usage = pcpc_owner_usage_exact(crowd->limited);
			if (exact_usage > crowd->max * 2)
				atomic_fetch_add(&crowd->wrong, 1);
			break;
		case 6:
			all = (struct everybody){ 0 };
			pcpc_owner_walk(root, note_owner, &all);
			free(all.owner);
			break;
		case 7:
			if (pcpc_owner_create(crowd->limited, NULL, &made) == 0) {
				if (pcpc_charge(made, 3) == 0)
					pcpc_uncharge(made, 3);
				(void)pcpc_owner_destroy(made);
			}
			break;
		case 8:
			if (pcpc_charge(crowd->leaf[which], 5) == 0) {
				(void)pcpc_transfer(crowd->leaf[which], crowd->leaf[0], 0);
				pcpc_uncharge(crowd->leaf[which], 5);
			}
			break;
		default:
			pcpc_domain_poll(domain);
		}
	}
	return NULL;
}

/* Asks 16: "set_limit, ..., dump, peak reset and destroy on one thread against ... chargers". */
START_TEST(asks_16_settings_change_beside_chargers)
{
	struct crowd crowd = { .nr_leaves = 8, .most = 40, .rounds = UNIT_SANITIZED ? 500 : 4000 };
	pthread_t manager;

	if (!open_domain(_i, 64, 1))
		return;
	unit_stand_anywhere();
	grow(&crowd, 1000);
	ck_assert_int_eq(pthread_create(&manager, NULL, manage, &crowd), 0);
	run_threads(8, charge_and_hold, &crowd);
	atomic_store(&crowd.end, true);
	pthread_join(manager, NULL);
	crowd.max *= 2; /* the highest it ever was */
	ck_assert_uint_le(atomic_load(&crowd.highest), crowd.max);
	ck_assert_uint_eq(atomic_load(&crowd.wrong), 0);
	ck_assert_uint_eq(pcpc_owner_usage_exact(root), 0);
	ck_assert_uint_eq(events_of(root, PCPC_EVENT_UNDERFLOW), 0);
}
END_TEST

/* -- what one thread charges another uncharges -- */

struct pipe {
	struct pcpc_owner *from, *other;
	uint32_t rounds, block;
	uint64_t changes;
};

static void produce(void *context)
{
	struct pipe *pipe = context;
	uint64_t usage = pcpc_owner_usage(pipe->from), now;
	uint32_t i;

	(void)pcpc_set_active(domain, pipe->from);
	for (i = 0; i < pipe->block; i++) {
		ck_assert(pcpc_charge(pcpc_active(domain), 1) == 0);
		now = pcpc_owner_usage(pipe->from);
		pipe->changes += now != usage;
		usage = now;
	}
}

static void release(struct pipe *pipe)
{
	uint64_t usage = pcpc_owner_usage(pipe->from), now;
	uint32_t i;

	for (i = 0; i < pipe->block; i++) {
		pcpc_uncharge(pipe->from, 1);
		now = pcpc_owner_usage(pipe->from);
		pipe->changes += now != usage;
		usage = now;
	}
}

/* Asks 3: "T1 charges X to owner A, T2 (attached to B) releases X using the owner handle ...; after
 * drain A == 0, B == 0, root == 0". Asks 17: "producer CPU/consumer CPU split costs <= 1 parent
 * update per B/2 units". */
START_TEST(asks_3_and_17_one_thread_charges_and_another_uncharges)
{
	struct pipe pipe = { .rounds = (uint32_t)unit_knob("PCPC_ROUNDS", 50), .block = 500 };
	struct worker worker;
	uint32_t i;

	if (!open_domain(_i, 64, 0))
		return;
	worker_start(&worker, 1);
	pipe.from = child_of(root);
	pipe.other = child_of(root);
	(void)pcpc_set_active(domain, pipe.other);
	for (i = 0; i < pipe.rounds; i++) {
		worker_run(&worker, produce, &pipe);
		release(&pipe);
		ck_assert_uint_eq(pcpc_owner_usage_exact(pipe.from), 0);
	}
	ck_assert_ptr_eq(pcpc_active(domain), pipe.other);
	ck_assert_uint_le(pipe.changes, (uint64_t)pipe.rounds * pipe.block / 16);
	(void)pcpc_owner_drain(root);
	ck_assert_uint_eq(pcpc_owner_usage(pipe.from), 0);
	ck_assert_uint_eq(pcpc_owner_usage(pipe.other), 0);
	ck_assert_uint_eq(pcpc_owner_usage(root), 0);
	worker_stop(&worker);
}
END_TEST

/* -- the end of threads and of the program -- */

static pthread_key_t at_the_end;

static void uncharge_at_the_end(void *value)
{
	struct pcpc_owner *leaf = value;

	pcpc_uncharge(leaf, 5);
	ck_assert(pcpc_charge(leaf, 2) == 0);
	pcpc_uncharge(leaf, 2);
}

static void *charge_and_end(void *context)
{
	struct crowd *crowd = context;

	ck_assert_int_eq(pthread_setspecific(at_the_end, crowd->leaf[0]), 0);
	ck_assert_int_eq(pcpc_charge(crowd->leaf[0], 5), 0);
	return NULL;
}

/* Asks 11: "charging from a pthread key destructor". */
START_TEST(asks_11_charging_from_a_key_destructor)
{
	struct crowd crowd = { .nr_leaves = 1 };
	int i;

	if (!open_domain(_i, 64, 0))
		return;
	grow(&crowd, 1000);
	ck_assert_int_eq(pthread_key_create(&at_the_end, uncharge_at_the_end), 0);
	for (i = 0; i < 20; i++)
		run_threads(10, charge_and_end, &crowd);
	ck_assert_uint_eq(pcpc_owner_usage_exact(root), 0);
	ck_assert_uint_eq(events_of(root, PCPC_EVENT_UNDERFLOW), 0);
}
END_TEST

static struct pcpc_owner *exit_leaf;

static void uncharge_at_exit(void)
{
	pcpc_uncharge(exit_leaf, 50);
	if (pcpc_charge(exit_leaf, 1) != 0 || pcpc_owner_usage_exact(root) != 1)
		_exit(9);
	pcpc_uncharge(exit_leaf, 1);
	if (pcpc_owner_destroy(exit_leaf) != 0 || pcpc_domain_destroy(domain) != 0)
		_exit(8);
	_exit(7);
}

/* Asks 11: "and from atexit". */
START_TEST(asks_11_charging_from_atexit)
{
	pid_t child;
	int status;

	if (!open_domain(_i, 64, 0))
		return;
	exit_leaf = child_of(root);
	charge(exit_leaf, 50);
	fflush(NULL);
	child = fork();
	if (child == 0) {
		if (atexit(uncharge_at_exit) != 0)
			_exit(1);
		exit(2);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 7);
	uncharge(exit_leaf, 50);
}
END_TEST

/* -- signal handlers -- */

static struct pcpc_owner *handler_leaf, *handler_gone;
static volatile sig_atomic_t handler_runs, handler_refused;
static uint64_t handler_held, handler_late; /* the main thread's handler alone changes them */

static void charge_in_handler(int number)
{
	int saved = errno;
	int r = pcpc_charge_flags(handler_leaf, 3, PCPC_NOWAIT, NULL);

	(void)number;
	handler_runs++;
	if (r == 0)
		handler_held += 3;
	else
		handler_refused++;
	if (handler_held > 60) {
		pcpc_uncharge(handler_leaf, handler_held);
		handler_held = 0;
	}
	if (handler_late) {
		pcpc_uncharge(handler_gone, 1);
		handler_late--;
	}
	(void)pcpc_owner_usage(handler_leaf);
	(void)pcpc_owner_peak(root);
	(void)pcpc_owner_get(handler_leaf);
	pcpc_owner_put(handler_leaf);
	if (errno != saved)
		abort();
}

/* G8 and asks 19: "a handler that charges on the same CPU never loses or doubles an update": during
 * charges, uncharges, drains, creations, destroys, polls, limits; at its limit too. */
START_TEST(asks_19_a_handler_charges_at_any_moment)
{
	const struct itimerval fast = { { 0, 50 }, { 0, 50 } }, off = { { 0, 0 }, { 0, 0 } };
	struct sigaction action = { .sa_handler = charge_in_handler, .sa_flags = SA_RESTART };
	struct pcpc_owner *limited, *leaf, *made;
	uint64_t random = unit_seed(), held = 0;
	int runs = UNIT_SANITIZED ? 500 : 2000;

	if (!open_domain(_i, 64, 1))
		return;
	limited = make_owner(root, 500, 0);
	leaf = child_of(limited);
	handler_leaf = child_of(limited);
	handler_gone = child_of(root);
	charge(handler_gone, 100000);
	handler_late = 100000;
	ck_assert_int_eq(pcpc_owner_destroy(handler_gone), 0);
	pcpc_thread_register();
	ck_assert_int_eq(sigaction(SIGALRM, &action, NULL), 0);
	ck_assert_int_eq(setitimer(ITIMER_REAL, &fast, NULL), 0);
	while (handler_runs < runs) {
		switch (unit_below(&random, 40)) {
		case 0:
			pcpc_domain_poll(domain);
			break;
		case 1:
			(void)pcpc_owner_drain(root);
			break;
		case 2:
			made = make_owner(limited, 0, 0);
			ck_assert_int_eq(pcpc_owner_destroy(made), 0);
			break;
		case 3:
			ck_assert_int_eq(
				pcpc_owner_set_max(limited, 400 + unit_below(&random, 200)), 0);
			break;
		default:
			if (pcpc_charge(leaf, 5) == 0)
				held += 5;
			if (held > 480 || unit_below(&random, 60) == 0) {
				pcpc_uncharge(leaf, held);
				held = 0;
			}
		}
	}
	ck_assert_int_eq(setitimer(ITIMER_REAL, &off, NULL), 0);
	ck_assert_uint_eq(pcpc_owner_usage_exact(leaf), held);
	ck_assert_uint_eq(pcpc_owner_usage_exact(handler_leaf), handler_held);
	ck_assert_uint_eq(pcpc_owner_usage_exact(limited), held + handler_held);
	ck_assert_uint_eq(pcpc_owner_usage_exact(root), held + handler_held + handler_late);
	ck_assert_uint_eq(events_of(root, PCPC_EVENT_UNDERFLOW), 0);
	ck_assert_int_gt(handler_refused, 0);
	unit_note("%d runs of the handler, %d refused", (int)handler_runs, (int)handler_refused);
	pcpc_uncharge(leaf, held);
	pcpc_uncharge(handler_leaf, handler_held);
	pcpc_uncharge(handler_gone, handler_late);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("charge threads");
	TCase *tests = unit_case(suite, "threads");

	tcase_add_checked_fixture(tests, NULL, close_domain);
	by_each_engine(tests, asks_10_24_threads_never_pass_a_small_limit);
	by_each_engine(tests, asks_10_24_threads_never_pass_a_larger_limit);
	by_each_engine(tests, asks_11_threads_come_and_go_without_ceremony);
	by_each_engine(tests, nobody_is_refused_while_the_shares_fit);
	by_each_engine(tests, asks_16_a_lowered_limit_holds_beside_chargers);
	by_each_engine(tests, asks_16_settings_change_beside_chargers);
	by_each_engine(tests, asks_3_and_17_one_thread_charges_and_another_uncharges);
	by_each_engine(tests, asks_11_charging_from_a_key_destructor);
	by_each_engine(tests, asks_11_charging_from_atexit);
	by_each_engine(tests, asks_19_a_handler_charges_at_any_moment);
	return unit_run(suite);
}
