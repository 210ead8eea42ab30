// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_kernel_work.c - work items of kernel.h.
 */
#define _GNU_SOURCE
#include <pcpcharge/kernel.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "unit_support.h"

static DEFINE_PER_CPU(int, done_at);

static void eight_cpus(void)
{
	ck_assert_int_eq(pcpc_kernel_set_cpus(8), 0);
}

/* -- work -- */

static _Atomic int done;
static _Atomic bool has_begun, may_go_on;
static struct work_struct inner, again;

static void do_here(struct work_struct *work)
{
	(void)work;
	ck_assert(in_task());
	this_cpu_inc(done_at);
	done++;
}

/* semantics.md 1.6, 3: "The drain work runs on the target CPU, task context only". */
START_TEST(work_runs_at_the_cpu_that_was_asked_for)
{
	struct work_struct work[8];
	int cpu;

	for_each_online_cpu(cpu) {
		INIT_WORK(&work[cpu], do_here);
		ck_assert(schedule_work_on(cpu, &work[cpu]));
	}
	for_each_online_cpu(cpu)
		flush_work(&work[cpu]);
	for_each_online_cpu(cpu)
		ck_assert_int_eq(per_cpu(done_at, cpu), 1);
	ck_assert_int_eq(done, 8);
}
END_TEST

static void wait_to_go_on(struct work_struct *work)
{
	(void)work;
	atomic_store(&has_begun, true);
	while (!atomic_load(&may_go_on))
		sched_yield();
	done++;
}

static void begin(struct work_struct *work)
{
	atomic_store(&may_go_on, false);
	atomic_store(&has_begun, false);
	ck_assert(schedule_work(work));
	while (!atomic_load(&has_begun))
		sched_yield();
}

/* "false if it was queued already"; while it runs it may be queued again; cancel takes back what
 * has not begun, behind something that runs, and waits for what has. */
START_TEST(work_is_queued_once_and_can_be_cancelled)
{
	struct work_struct first, second;

	INIT_WORK(&first, wait_to_go_on);
	INIT_WORK(&second, do_here);
	begin(&first);
	ck_assert(queue_work(system_wq, &second));
	ck_assert(!queue_work(system_wq, &second));
	ck_assert(cancel_work_sync(&second));
	ck_assert(!cancel_work_sync(&second));
	ck_assert(!flush_work(&second));
	ck_assert(schedule_work(&first));
	ck_assert(!schedule_work(&first));
	atomic_store(&may_go_on, true);
	(void)cancel_work_sync(&first);
	ck_assert(!flush_work(&first));
	/* the first time it ran; the second may have begun before it was cancelled */
	ck_assert_int_ge(done, 1);
	done = 0;
	ck_assert(schedule_work(&second));
	flush_scheduled_work();
	ck_assert_int_eq(done, 1);
}
END_TEST

static int left = 5;

static void flush_inner(struct work_struct *work)
{
	(void)work;
	INIT_WORK(&inner, do_here);
	schedule_work_on(6, &inner);
	flush_work(&inner);
	ck_assert_int_eq(per_cpu(done_at, 6), 1);
	ck_assert_int_eq(smp_processor_id(), 2);
}

static void queue_again(struct work_struct *work)
{
	if (--left)
		schedule_work(work);
}

/* Work may wait for other work, and queue itself. */
START_TEST(work_waits_for_work_and_queues_itself)
{
	struct work_struct outer;

	INIT_WORK(&outer, flush_inner);
	schedule_work_on(2, &outer);
	flush_work(&outer);
	ck_assert_int_eq(done, 1);
	INIT_WORK(&again, queue_again);
	schedule_work(&again);
	flush_scheduled_work();
	ck_assert_int_eq(left, 0);
}
END_TEST

static struct work_struct from_interrupt;

static void queue_from_interrupt(int signal)
{
	(void)signal;
	irq_enter();
	schedule_work_on(1, &from_interrupt);
	irq_exit();
}

/* semantics.md 1.10, 4: what an interrupt may not do is left to work. */
START_TEST(an_interrupt_queues_work)
{
	struct sigaction action = { .sa_handler = queue_from_interrupt };

	sigaction(SIGUSR1, &action, NULL);
	INIT_WORK(&from_interrupt, do_here);
	raise(SIGUSR1);
	flush_work(&from_interrupt);
	ck_assert_int_eq(per_cpu(done_at, 1), 1);
}
END_TEST

/* kernel.h: "work that was queued is done by a thread of its own". */
START_TEST(a_child_does_what_was_queued)
{
	struct work_struct first, second;
	pid_t child;
	int status;

	/* It kills children that start threads. */
	if (UNIT_THREAD_SANITIZED)
		return;
	INIT_WORK(&first, wait_to_go_on);
	INIT_WORK(&second, do_here);
	begin(&first);
	schedule_work(&second);
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0) {
		/* what ran is not there, what was queued is */
		flush_scheduled_work();
		atomic_store(&may_go_on, true);
		schedule_work(&first);
		flush_work(&first);
		_exit(done == 2 ? 0 : 1);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	atomic_store(&may_go_on, true);
	flush_scheduled_work();
	ck_assert_int_eq(done, 2);
}
END_TEST

static void wait_inside(struct work_struct *work)
{
	(void)work;
	INIT_WORK(&inner, wait_to_go_on);
	schedule_work(&inner);
	flush_work(&inner);
}

/* The worker was in the middle of work that waits for work: in the child there is neither. */
START_TEST(a_child_does_not_wait_for_work_inside_work)
{
	struct work_struct outer, other;
	pid_t child;
	int status;

	if (UNIT_THREAD_SANITIZED)
		return;
	INIT_WORK(&outer, wait_inside);
	INIT_WORK(&other, do_here);
	schedule_work(&outer);
	while (!atomic_load(&has_begun))
		sched_yield();
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0) {
		flush_scheduled_work();
		schedule_work(&other);
		flush_scheduled_work();
		_exit(done == 1 ? 0 : 1);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	atomic_store(&may_go_on, true);
	flush_scheduled_work();
}
END_TEST

/* semantics.md 1.7, 5: work is queued to a queue of its owner's, which ends when all is done. */
START_TEST(a_queue_ends_when_all_is_done)
{
	struct workqueue_struct *queue = alloc_workqueue("memcg %d", WQ_PERCPU, 0, 1);
	struct work_struct work;

	ck_assert_ptr_nonnull(queue);
	INIT_WORK(&work, do_here);
	ck_assert(queue_work_on(5, queue, &work));
	destroy_workqueue(queue);
	ck_assert_int_eq(per_cpu(done_at, 5), 1);
}
END_TEST

static struct work_struct at_six;

/* kernel.h: "Work that is queued for it is done at another". */
START_TEST(work_for_a_cpu_that_is_off_is_done_at_another)
{
	struct work_struct first;

	INIT_WORK(&first, wait_to_go_on);
	INIT_WORK(&at_six, do_here);
	begin(&first);
	schedule_work_on(6, &at_six);
	ck_assert_int_eq(pcpc_kernel_cpu_down(6), 0);
	atomic_store(&may_go_on, true);
	flush_work(&at_six);
	ck_assert_int_eq(per_cpu(done_at, 6), 0);
	ck_assert_int_eq(per_cpu(done_at, 7), 1);
	ck_assert_int_eq(pcpc_kernel_cpu_up(6), 0);
	schedule_work_on(6, &at_six);
	flush_work(&at_six);
	ck_assert_int_eq(per_cpu(done_at, 6), 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("kernel work");
	TCase *tests = unit_case(suite, "work");

	tcase_add_checked_fixture(tests, eight_cpus, NULL);
	tcase_add_test(tests, work_runs_at_the_cpu_that_was_asked_for);
	tcase_add_test(tests, work_is_queued_once_and_can_be_cancelled);
	tcase_add_test(tests, work_waits_for_work_and_queues_itself);
	tcase_add_test(tests, an_interrupt_queues_work);
	tcase_add_test(tests, a_child_does_what_was_queued);
	tcase_add_test(tests, a_child_does_not_wait_for_work_inside_work);
	tcase_add_test(tests, a_queue_ends_when_all_is_done);
	tcase_add_test(tests, work_for_a_cpu_that_is_off_is_done_at_another);
	return unit_run(suite);
}
