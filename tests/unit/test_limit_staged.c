// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_limit_staged.c - limits, in interleavings that are made and not waited for: a charge that
 * has looked at max and not yet taken, a surplus that is counted and not yet stocked; and drains
 * that are refused.
 *
 * Linked with owner_staged_counter.c in place of counter.c, and with --wrap=pcpc_cache_refill and
 * --wrap=pcpc_cache_drain.
 */
#define _GNU_SOURCE
#include "owner_staged_counter.h"
#include "owner_support.h"

void __real_pcpc_cache_refill(struct pcpc_cache *cache, uint32_t owner, uint64_t count,
			      int64_t delta, const struct pcpc_marks *marks,
			      struct pcpc_deferred *ret_deferred);
void __wrap_pcpc_cache_refill(struct pcpc_cache *cache, uint32_t owner, uint64_t count,
			      int64_t delta, const struct pcpc_marks *marks,
			      struct pcpc_deferred *ret_deferred);
int __real_pcpc_cache_drain(struct pcpc_cache *cache, pcpc_match_fn *match, pcpc_settle_fn *settle,
			    void *context);
int __wrap_pcpc_cache_drain(struct pcpc_cache *cache, pcpc_match_fn *match, pcpc_settle_fn *settle,
			    void *context);

static bool membarrier_refused;
static sem_t arrived, go_on;
static _Atomic(const void *) counter_held_up; /* whoever is about to change it is, once */
static _Atomic uint32_t refill_held_up;	      /* the id whose refill is, once */

static void wait_for(sem_t *semaphore)
{
	while (sem_wait(semaphore) < 0)
		;
}

static void hold_up_counter(const void *word)
{
	const void *expected = word;

	if (!atomic_compare_exchange_strong(&counter_held_up, &expected, NULL))
		return;
	sem_post(&arrived);
	wait_for(&go_on);
}

void __wrap_pcpc_cache_refill(struct pcpc_cache *cache, uint32_t owner, uint64_t count,
			      int64_t delta, const struct pcpc_marks *marks,
			      struct pcpc_deferred *ret_deferred)
{
	uint32_t expected = owner;

	if (count && atomic_compare_exchange_strong(&refill_held_up, &expected, 0)) {
		sem_post(&arrived);
		wait_for(&go_on);
	}
	__real_pcpc_cache_refill(cache, owner, count, delta, marks, ret_deferred);
}

int __wrap_pcpc_cache_drain(struct pcpc_cache *cache, pcpc_match_fn *match, pcpc_settle_fn *settle,
			    void *context)
{
	return membarrier_refused ? -EPERM : __real_pcpc_cache_drain(cache, match, settle, context);
}

static void start(struct worker *first, struct worker *second)
{
	worker_start(first, 0);
	worker_start(second, 1);
	sem_init(&arrived, 0, 0);
	sem_init(&go_on, 0, 0);
	atomic_store(&before_exchange, hold_up_counter);
}

struct call {
	struct job job;
	_Atomic pid_t thread;
	_Atomic bool done;
};

static void call_charge(void *context)
{
	struct call *call = context;

	atomic_store(&call->thread, gettid());
	job_charge(&call->job);
	atomic_store(&call->done, true);
}

/* It is over, or its thread sleeps: waits for somebody. */
static bool over_or_asleep(struct call *call)
{
	char path[64], state = '?';
	FILE *file;

	if (atomic_load(&call->done))
		return true;
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)atomic_load(&call->thread));
	file = fopen(path, "r");
	if (file) {
		if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
			state = '?';
		fclose(file);
	}
	return state == 'S';
}

/* G2 and section 7: "compare-and-exchange against max, then max is read again, so that of a charge
 * and a concurrent lowering at least one sees the other". The charge saw the old max; set_max() saw
 * usage without it, and has returned. */
START_TEST(a_charge_that_saw_the_old_max_does_not_pass_the_new_one)
{
	struct worker first, second;
	struct pcpc_owner *leaf;
	struct job job;

	if (!open_domain(_i, PCPC_BATCH_NONE, 0))
		return;
	start(&first, &second);
	leaf = make_owner(root, 1000, 0);
	charge(leaf, 10);
	atomic_store(&counter_held_up, &books_of(leaf)->usage);
	job = (struct job){ .owner = leaf, .count = 500 };
	worker_post(&first, job_charge, &job);
	wait_for(&arrived);
	ck_assert_int_eq(pcpc_owner_set_max(leaf, 100), 0);
	ck_assert_uint_eq(pcpc_owner_usage(leaf), 10);
	sem_post(&go_on);
	worker_wait(&first);
	ck_assert_int_eq(job.result, -EDQUOT);
	ck_assert_uint_eq(pcpc_owner_usage(leaf), 10);
	ck_assert_uint_eq(pcpc_owner_usage(root), 10);
	uncharge(leaf, 10);
	worker_stop(&first);
	worker_stop(&second);
}
END_TEST

/* The same where the amount still fits: nobody is refused. */
START_TEST(a_charge_that_saw_the_old_max_passes_where_it_fits)
{
	struct worker first, second;
	struct pcpc_owner *leaf;
	struct job job;

	if (!open_domain(_i, PCPC_BATCH_NONE, 0))
		return;
	start(&first, &second);
	leaf = make_owner(root, 1000, 0);
	charge(leaf, 10);
	atomic_store(&counter_held_up, &books_of(leaf)->usage);
	job = (struct job){ .owner = leaf, .count = 90 };
	worker_post(&first, job_charge, &job);
	wait_for(&arrived);
	ck_assert_int_eq(pcpc_owner_set_max(leaf, 100), 0);
	sem_post(&go_on);
	worker_wait(&first);
	ck_assert_int_eq(job.result, 0);
	ck_assert_int_eq(pcpc_charge(leaf, 1), -EDQUOT);
	uncharge(leaf, 100);
	worker_stop(&first);
	worker_stop(&second);
}
END_TEST

/*
 * G3: "never because of stocked or surplus units": one thread has counted a surplus and is about to
 * stock it. Another, who asks for all that is left beside what is held, must not be refused
 * meanwhile: "wait for a grace period (slow paths are read-side sections, so no surplus is in
 * flight any more)".
 */
START_TEST(a_surplus_in_flight_refuses_nobody)
{
	struct worker first, second;
	struct pcpc_owner *limited, *leaf, *other;
	struct call call = { .done = false };
	struct job job;

	if (!open_domain(_i, 64, 0))
		return;
	start(&first, &second);
	limited = make_owner(root, 20000, 0);
	leaf = child_of(limited);
	other = child_of(limited);
	atomic_store(&refill_held_up, leaf->id);
	job = (struct job){ .owner = leaf, .count = 1 };
	worker_post(&first, job_charge, &job);
	wait_for(&arrived);
	ck_assert_uint_gt(pcpc_owner_usage(limited), 1); /* the surplus is counted */
	call.job = (struct job){ .owner = other, .count = 19999, .result = 1 };
	worker_post(&second, call_charge, &call);
	UNTIL(over_or_asleep(&call));
	sem_post(&go_on);
	worker_wait(&first);
	worker_wait(&second);
	ck_assert_int_eq(job.result, 0);
	ck_assert_int_eq(call.job.result, 0);
	ck_assert_uint_eq(pcpc_owner_usage(limited), 20000);
	uncharge(leaf, 1);
	uncharge(other, 19999);
	worker_stop(&first);
	worker_stop(&second);
}
END_TEST

/* G12 and section 7, lowering: the same surplus must not be stocked after set_max() has returned,
 * for from there it would be handed out though it does not fit. */
START_TEST(a_surplus_in_flight_is_not_stocked_below_a_lowered_limit)
{
	struct worker first, second;
	struct pcpc_owner *limited, *leaf;
	struct job job, late;

	if (!open_domain(_i, 64, 0))
		return;
	start(&first, &second);
	limited = make_owner(root, 20000, 0);
	leaf = child_of(limited);
	charge(child_of(limited), 100);
	atomic_store(&refill_held_up, leaf->id);
	job = (struct job){ .owner = leaf, .count = 1 };
	worker_post(&first, job_charge, &job);
	wait_for(&arrived);
	/* it has to wait for the surplus, so somebody else lets that go on */
	late = (struct job){ .owner = leaf, .count = 1 };
	sem_post(&go_on);
	ck_assert_int_eq(pcpc_owner_set_max(limited, 50), 0);
	ck_assert_uint_eq(pcpc_owner_stocked(limited), 0);
	worker_wait(&first);
	ck_assert_int_eq(job.result, 0);
	ck_assert_uint_eq(pcpc_owner_stocked(limited), 0);
	worker_run(&first, job_charge, &late);
	ck_assert_int_eq(late.result, -EDQUOT);
	ck_assert_uint_eq(pcpc_owner_usage(limited), 101);
	uncharge(leaf, 1);
	uncharge(pcpc_owner_by_id(domain, 4), 100);
	worker_stop(&first);
	worker_stop(&second);
}
END_TEST

/* charge.h: -EAGAIN where "membarrier is refused"; owner.h: the eventfd is "readable when poll has
 * something to do". A poll that cannot find out either has nothing left to do, and does not ring
 * for itself. */
START_TEST(poll_does_not_ring_for_itself_where_membarrier_is_refused)
{
	struct pcpc_owner *leaf;

	if (!open_domain(_i, PCPC_BATCH_NONE, 0))
		return;
	leaf = make_owner(root, 100, 0);
	charge(leaf, 100);
	membarrier_refused = true;
	ck_assert_int_eq(pcpc_charge_flags(leaf, 1, PCPC_NOWAIT, NULL), -EAGAIN);
	ck_assert(rung());
	pcpc_domain_poll(domain);
	ck_assert(!rung());
	/* One that may wait cannot be sure either, and leaves it to poll once more. */
	ck_assert_int_eq(pcpc_charge(leaf, 1), -EAGAIN);
	ck_assert(rung());
	pcpc_domain_poll(domain);
	ck_assert(!rung());
	membarrier_refused = false;
	ck_assert_int_eq(pcpc_charge(leaf, 1), -EDQUOT);
	uncharge(leaf, 100);
}
END_TEST

struct cancelled {
	struct call call; /* its thread, and whether it is over */
	struct pcpc_owner *owner;
	int refused;
	_Atomic bool survived;
};

static void *charge_cancelled(void *argument)
{
	struct cancelled *cancelled = argument;

	/* Pending, until a cancellation point. */
	pthread_cancel(pthread_self());
	atomic_store(&cancelled->call.thread, gettid());
	cancelled->refused = pcpc_charge(cancelled->owner, 91);
	atomic_store(&cancelled->survived, true);
	atomic_store(&cancelled->call.done, true);
	pthread_testcancel();
	return NULL;
}

static void stay_in_section(void *context)
{
	(void)context;
	urcu_bp_read_lock();
	sem_post(&arrived);
	wait_for(&go_on);
	urcu_bp_read_unlock();
}

/* charge.h: "Is no cancellation point": not even while it waits for a grace period, whose mutex
 * would stay locked. */
START_TEST(a_cancelled_thread_ends_its_charge_first)
{
	struct cancelled cancelled = { .refused = 1 };
	struct worker first, second;
	pthread_t thread;
	void *result;

	if (!open_domain(_i, 64, 0))
		return;
	start(&first, &second);
	cancelled.owner = make_owner(root, 100, 0);
	charge(cancelled.owner, 10);
	worker_post(&first, stay_in_section, NULL);
	wait_for(&arrived);
	ck_assert_int_eq(pthread_create(&thread, NULL, charge_cancelled, &cancelled), 0);
	while (!atomic_load(&cancelled.call.thread) || !over_or_asleep(&cancelled.call))
		sched_yield();
	sem_post(&go_on);
	worker_wait(&first);
	pthread_join(thread, &result);
	ck_assert_ptr_eq(result, PTHREAD_CANCELED);
	ck_assert(atomic_load(&cancelled.survived));
	ck_assert_int_eq(cancelled.refused, -EDQUOT);
	uncharge(cancelled.owner, 10);
	worker_stop(&first);
	worker_stop(&second);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("limit staged");
	TCase *tests = unit_case(suite, "staged");

	tcase_add_checked_fixture(tests, NULL, close_domain);
	by_each_engine(tests, a_charge_that_saw_the_old_max_does_not_pass_the_new_one);
	by_each_engine(tests, a_charge_that_saw_the_old_max_passes_where_it_fits);
	by_each_engine(tests, a_surplus_in_flight_refuses_nobody);
	by_each_engine(tests, a_surplus_in_flight_is_not_stocked_below_a_lowered_limit);
	by_each_engine(tests, poll_does_not_ring_for_itself_where_membarrier_is_refused);
	by_each_engine(tests, a_cancelled_thread_ends_its_charge_first);
	return unit_run(suite);
}
