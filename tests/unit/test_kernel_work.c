// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_kernel_work.c - work items, locks, lists, atomics and references of kernel.h.
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

static struct work_struct inner, again;
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

/* -- references -- */

static int released;

static void count_release(struct cgroup_subsys_state *css)
{
	(void)css;
	released++;
}

/* semantics.md 5.7: "zero ... only then"; "tryget fails only at zero; tryget_live also fails once
 * killed"; "Kill must happen exactly once". */
START_TEST(a_css_is_released_once_after_its_kill)
{
	struct cgroup_subsys_state css;

	pcpc_kernel_css_init(&css, NULL, count_release);
	css_get(&css);
	css_get_many(&css, 2);
	ck_assert(css_tryget(&css));
	ck_assert(css_tryget_online(&css));
	css_put(&css);
	ck_assert(!css_is_dying(&css));
	pcpc_kernel_css_kill(&css);
	ck_assert(css_is_dying(&css));
	ck_assert(!css_tryget_online(&css));
	ck_assert(css_tryget(&css));
	css_put_many(&css, 4);
	ck_assert_int_eq(released, 0);
	pcpc_kernel_css_kill(&css);
	ck_assert_uint_eq(pcpc_kernel_warnings(), 1);
	css_put(&css);
	ck_assert_int_eq(released, 1);
	ck_assert(!css_tryget(&css));
	ck_assert(percpu_ref_is_zero(&css.refcnt));
}
END_TEST

/* -- lists -- */

struct entry {
	int number;
	struct list_head siblings;
	struct llist_node node;
};

START_TEST(lists_keep_their_order)
{
	struct entry entries[4], *entry, *next;
	LIST_HEAD(list);
	LIST_HEAD(other);
	int i, expected = 0;

	ck_assert(list_empty(&list));
	list_splice_init(&list, &other);
	for (i = 0; i < 4; i++) {
		entries[i].number = i;
		list_add_tail(&entries[i].siblings, &list);
	}
	list_for_each_entry(entry, &list, siblings)
		ck_assert_int_eq(entry->number, expected++);
	list_move(&entries[3].siblings, &list);
	ck_assert_int_eq(list_first_entry(&list, struct entry, siblings)->number, 3);
	list_splice_init(&list, &other);
	ck_assert(list_empty(&list));
	list_for_each_entry_safe(entry, next, &other, siblings)
		list_del_init(&entry->siblings);
	ck_assert(list_empty(&other) && expected == 4);
	list_add(&entries[0].siblings, &other);
	list_del(&entries[0].siblings);
	ck_assert(list_empty(&other));
}
END_TEST

static LLIST_HEAD(pushed);

static void *push_many(void *argument)
{
	struct entry *entries = argument;
	int i;

	for (i = 0; i < 1000; i++)
		llist_add(&entries[i].node, &pushed);
	return NULL;
}

START_TEST(lists_without_a_lock_lose_nothing)
{
	static struct entry entries[3][1000];
	struct llist_node *node;
	pthread_t thread[3];
	int i, found = 0;

	for (i = 0; i < 3; i++)
		pthread_create(&thread[i], NULL, push_many, entries[i]);
	while (found < 3000)
		for (node = llist_reverse_order(llist_del_all(&pushed)); node; node = node->next)
			found++;
	for (i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	ck_assert(llist_empty(&pushed));
	ck_assert_int_eq(found, 3000);
	ck_assert(llist_add(&entries[0][0].node, &pushed));
	ck_assert(!llist_add(&entries[0][1].node, &pushed));
}
END_TEST

/* -- atomics, locks -- */

START_TEST(atomics_answer_as_in_a_kernel)
{
	unsigned long bits[2] = { 0, 0 };
	atomic_long_t number = ATOMIC_LONG_INIT(5);
	atomic_t small = ATOMIC_INIT(-1);
	long expected = 9;

	ck_assert_int_eq(atomic_long_add_return(3, &number), 8);
	ck_assert_int_eq((atomic_long_fetch_add)(1, &number), 8);
	ck_assert_int_eq((atomic_long_fetch_sub)(2, &number), 9);
	ck_assert(!atomic_long_try_cmpxchg(&number, &expected, 1));
	ck_assert_int_eq(expected, 7);
	ck_assert_int_eq(atomic_long_cmpxchg(&number, 7, 1), 7);
	ck_assert_int_eq(atomic_long_xchg(&number, 0), 1);
	ck_assert(!atomic_long_inc_not_zero(&number));
	ck_assert(atomic_inc_return(&small) == 0 && atomic_add_unless(&small, 2, 5));
	ck_assert(atomic_sub_and_test(2, &small) && !atomic_dec_and_test(&small));
	ck_assert(!test_and_set_bit(70, bits) && test_and_set_bit(70, bits));
	set_bit(1, bits);
	ck_assert(test_bit(1, bits) && bits[1] == BIT(6));
	clear_bit(1, bits);
	ck_assert(!test_bit(1, bits) && test_and_clear_bit(70, bits) && !bits[1]);
}
END_TEST

static DEFINE_SPINLOCK(spin);
static DEFINE_MUTEX(mutex);
static long guarded;

static void *count_under_locks(void *argument)
{
	unsigned long flags;
	int i;

	(void)argument;
	for (i = 0; i < 5000; i++) {
		if (i % 4 == 0) {
			spin_lock_irqsave(&spin, flags);
			guarded++;
			spin_unlock_irqrestore(&spin, flags);
		} else if (i % 4 == 1 && spin_trylock(&spin)) {
			guarded++;
			spin_unlock(&spin);
		} else {
			spin_lock(&spin);
			guarded++;
			spin_unlock(&spin);
		}
	}
	return NULL;
}

START_TEST(locks_exclude)
{
	pthread_t thread[4];
	int i;

	for (i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, count_under_locks, NULL);
	for (i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	ck_assert_int_eq(guarded, 20000);
	ck_assert(mutex_trylock(&mutex));
	ck_assert(!mutex_trylock(&mutex));
	mutex_unlock(&mutex);
}
END_TEST

/* -- small things -- */

START_TEST(arithmetic_and_pointers)
{
	struct entry entry;
	int calls = 0, left_one = 1, right_one = 2;

	ck_assert_int_eq(min(calls++, 5), 0);
	ck_assert_int_eq(calls, 1);
	ck_assert_int_eq(max(min(3, 4), max(1, 2)), 3);
	ck_assert_int_eq(clamp(11, 0, 10), 10);
	ck_assert_uint_eq(min_t(unsigned int, -1, 7), 7);
	swap(left_one, right_one);
	ck_assert(left_one == 2 && right_one == 1);
	ck_assert_ptr_eq(container_of(&entry.node, struct entry, node), &entry);
	ck_assert(IS_ERR(ERR_PTR(-ENOMEM)) && PTR_ERR(ERR_PTR(-ENOMEM)) == -ENOMEM);
	ck_assert(!IS_ERR(&entry) && IS_ERR_OR_NULL(NULL));
	ck_assert_uint_eq(round_up(4097u, 4096u), 8192);
	ck_assert_uint_eq(DIV_ROUND_UP(4097u, 4096u), 2);
	ck_assert(gfpflags_allow_blocking(GFP_KERNEL) && !gfpflags_allow_blocking(GFP_ATOMIC));
	ck_assert(gfpflags_allow_spinning(GFP_NOWAIT) && !gfpflags_allow_spinning(0));
	BUILD_BUG_ON(sizeof(u64) != 8);
}
END_TEST

/* "warn once" is once for each place; each WARN_ON() is one. */
START_TEST(warnings_are_counted)
{
	int i;

	for (i = 0; i < 3; i++) {
		ck_assert(WARN_ON_ONCE(i >= 0));
		ck_assert(VM_WARN_ON_ONCE(i >= 0));
	}
	ck_assert_uint_eq(pcpc_kernel_warnings(), 2);
	for (i = 0; i < 3; i++)
		ck_assert(WARN_ON(i >= 0));
	ck_assert(!WARN_ON(i < 0) && !WARN_ON_ONCE(i < 0));
	ck_assert_uint_eq(pcpc_kernel_warnings(), 5);
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
	tcase_add_test(tests, a_css_is_released_once_after_its_kill);
	tcase_add_test(tests, lists_keep_their_order);
	tcase_add_test(tests, lists_without_a_lock_lose_nothing);
	tcase_add_test(tests, atomics_answer_as_in_a_kernel);
	tcase_add_test(tests, locks_exclude);
	tcase_add_test(tests, arithmetic_and_pointers);
	tcase_add_test(tests, warnings_are_counted);
	return unit_run(suite);
}
