// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_kernel_basics.c - atomics, locks, memory, arithmetic, warnings and tasks of kernel.h.
 */
#define _GNU_SOURCE
#include <pcpcharge/kernel.h>

#include <pthread.h>
#include <stdatomic.h>

#include "unit_support.h"

/* -- atomics, locks -- */

START_TEST(atomics_answer_as_in_a_kernel)
{
	unsigned long bits[2] = { 0, 0 };
	atomic_long_t number = ATOMIC_LONG_INIT(5);
	atomic_t small = ATOMIC_INIT(-1);
	long expected = 9, other = 4;

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
	ck_assert_int_eq(atomic_long_fetch_or_acquire(6, &number), 0);
	ck_assert_int_eq(atomic_long_add_return_release(1, &number), 7);
	ck_assert_int_eq(atomic_long_xchg_relaxed(&number, 3), 7);
	ck_assert_int_eq(atomic_long_cmpxchg_relaxed(&number, 3, -1), 3);
	ck_assert(atomic_long_inc_and_test(&number));
	ck_assert_int_eq(xchg_acquire(&expected, 2), 7);
	ck_assert_int_eq(cmpxchg_release(&expected, 2, 4), 2);
	ck_assert(try_cmpxchg_acquire(&expected, &other, 5) && expected == 5);
	ck_assert(!try_cmpxchg_relaxed(&expected, &other, 6) && other == 5);
	smp_store_mb(expected, 1);
	ck_assert_int_eq(smp_load_acquire(&expected), 1);
	ck_assert(!test_and_set_bit(70, bits) && test_and_set_bit(70, bits));
	set_bit(1, bits);
	ck_assert(test_bit(1, bits) && bits[1] == BIT(6));
	clear_bit(1, bits);
	ck_assert(!test_bit(1, bits) && test_and_clear_bit(70, bits) && !bits[1]);
}
END_TEST

static atomic_long_t total;
static atomic_t users = ATOMIC_INIT(1);
static unsigned long flags_of_all;
static _Atomic long nr_won;

static void *count_and_flag(void *argument)
{
	int i;

	(void)argument;
	for (i = 0; i < 20000; i++) {
		atomic_long_inc(&total);
		atomic_long_add(2, &total);
		(void)atomic_long_sub_return(1, &total);
		if (atomic_inc_not_zero(&users))
			(void)atomic_dec_and_test(&users);
		if (!test_and_set_bit(i % 8, &flags_of_all)) {
			nr_won++;
			clear_bit(i % 8, &flags_of_all);
		}
	}
	return NULL;
}

START_TEST(atomics_of_many_threads_lose_nothing)
{
	pthread_t thread[4];
	int i;

	for (i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, count_and_flag, NULL);
	for (i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	ck_assert_int_eq(atomic_long_read(&total), 4 * 20000 * 2);
	ck_assert_int_eq(atomic_read(&users), 1);
	ck_assert_int_gt(nr_won, 0);
	ck_assert_uint_eq(flags_of_all, 0);
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

/* -- memory -- */

struct large {
	u8 one;
	struct page_counter counter;
};

/* "so that what is of a type with ____cacheline_aligned is": page counters stand in memory that
 * kzalloc() gives. */
START_TEST(memory_is_aligned_by_its_size)
{
	struct large *large = kzalloc(sizeof(*large), GFP_KERNEL);
	unsigned char *bytes;
	size_t size, i;

	ck_assert_uint_eq((uintptr_t)large % 128, 0);
	page_counter_init(&large->counter, NULL, false);
	kfree(large);
	for (size = 1; size <= 4096; size *= 2) {
		bytes = kmalloc(size, GFP_KERNEL);
		ck_assert_uint_eq((uintptr_t)bytes % (size < 128 ? size : 128), 0);
		memset(bytes, 0xff, size);
		kfree(bytes);
		bytes = kcalloc(size, 3, GFP_KERNEL);
		for (i = 0; i < 3 * size; i++)
			ck_assert_uint_eq(bytes[i], 0);
		kfree(bytes);
	}
	ck_assert_ptr_null(kcalloc(SIZE_MAX / 2, 3, GFP_KERNEL | __GFP_NOWARN));
	kfree(NULL);
}
END_TEST

/* -- small things -- */

START_TEST(arithmetic_and_pointers)
{
	struct large entry;
	int calls = 0, left_one = 1, right_one = 2;

	ck_assert_int_eq(min(calls++, 5), 0);
	ck_assert_int_eq(calls, 1);
	ck_assert_int_eq(max(min(3, 4), max(1, 2)), 3);
	ck_assert_int_eq(clamp(11, 0, 10), 10);
	ck_assert_uint_eq(min_t(unsigned int, -1, 7), 7);
	swap(left_one, right_one);
	ck_assert(left_one == 2 && right_one == 1);
	ck_assert_ptr_eq(container_of(&entry.counter, struct large, counter), &entry);
	ck_assert(IS_ERR(ERR_PTR(-ENOMEM)) && PTR_ERR(ERR_PTR(-ENOMEM)) == -ENOMEM);
	ck_assert(!IS_ERR(&entry) && IS_ERR_OR_NULL(NULL));
	ck_assert_uint_eq(round_up(4097u, 4096u), 8192);
	ck_assert_uint_eq(DIV_ROUND_UP(4097u, 4096u), 2);
	ck_assert(gfpflags_allow_blocking(GFP_KERNEL) && !gfpflags_allow_blocking(GFP_ATOMIC));
	ck_assert(gfpflags_allow_spinning(GFP_NOWAIT) && !gfpflags_allow_spinning(0));
	BUILD_BUG_ON(sizeof(u64) != 8);
	static_assert(sizeof(s8) == 1);
	static_assert(sizeof(u16) == 2, "u16");
}
END_TEST

/* As in the kernel: of types of one sign, or with a constant that is not below 0, min() and max()
 * take the wider one. */
START_TEST(min_and_max_of_two_types)
{
	unsigned long wide = 1UL << 40;
	unsigned int nr_pages = 70;
	u8 small = 200;
	s8 low = -3;
	long negative = -1;

	ck_assert_uint_eq(min(nr_pages, 64U), 64);
	ck_assert_uint_eq(max(wide, nr_pages), wide);
	ck_assert_uint_eq(min(wide, 5), 5);
	ck_assert_uint_eq(max(0, wide), wide);
	ck_assert_int_eq(min(small, negative), -1);
	ck_assert_uint_eq(min(small, wide), 200);
	ck_assert_int_eq(max(low, negative), -1);
	ck_assert_uint_eq(clamp(nr_pages, 1, 64), 64);
	ck_assert_uint_eq(min(PAGE_SIZE, nr_pages), 70);
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

/* A line, with what the condition or the text says; the text of one that is not true is not made.
 */
START_TEST(a_warning_is_one_line)
{
	int ends[2], saved = dup(STDERR_FILENO), calls = 0;
	char text[400] = "";

	ck_assert_int_eq(pipe(ends), 0);
	dup2(ends[1], STDERR_FILENO);
	ck_assert(WARN(calls == 0, "%d of %s\n", 7, "seven"));
	ck_assert(!WARN_ONCE(calls, "%d", ++calls));
	ck_assert(WARN_ON(!calls));
	dup2(saved, STDERR_FILENO);
	ck_assert_int_gt(read(ends[0], text, sizeof(text) - 1), 0);
	ck_assert_ptr_nonnull(strstr(text, ": 7 of seven\nWARNING: "));
	ck_assert_ptr_nonnull(strstr(text, ": !calls\n"));
	ck_assert_uint_eq(pcpc_kernel_warnings(), 2);
	ck_assert_int_eq(calls, 0);
	close(ends[0]);
	close(ends[1]);
	close(saved);
}
END_TEST

/* memalloc_noreclaim_save() and _restore() nest; a nested context is no task. */
START_TEST(a_task_remembers_what_it_may_not)
{
	unsigned int outer, inner;
	unsigned long begin = jiffies;

	outer = memalloc_noreclaim_save();
	inner = memalloc_noreclaim_save();
	ck_assert(current->flags & PF_MEMALLOC);
	memalloc_noreclaim_restore(inner);
	ck_assert(current->flags & PF_MEMALLOC);
	memalloc_noreclaim_restore(outer);
	ck_assert(!(current->flags & PF_MEMALLOC));
	ck_assert(!current->memcg_nr_pages_over_high && !current->in_memcg_oom);
	ck_assert(in_task());
	irq_enter();
	ck_assert(in_interrupt());
	irq_exit();
	ck_assert(in_task() && !task_is_dying());
	msleep(20);
	ck_assert(time_before(begin, jiffies) && time_after(jiffies, begin));
	ck_assert_uint_eq(msecs_to_jiffies(2000), 2 * HZ);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("kernel basics");
	TCase *tests = unit_case(suite, "basics");

	tcase_add_test(tests, atomics_answer_as_in_a_kernel);
	tcase_add_test(tests, atomics_of_many_threads_lose_nothing);
	tcase_add_test(tests, locks_exclude);
	tcase_add_test(tests, memory_is_aligned_by_its_size);
	tcase_add_test(tests, arithmetic_and_pointers);
	tcase_add_test(tests, min_and_max_of_two_types);
	tcase_add_test(tests, warnings_are_counted);
	tcase_add_test(tests, a_warning_is_one_line);
	tcase_add_test(tests, a_task_remembers_what_it_may_not);
	return unit_run(suite);
}
