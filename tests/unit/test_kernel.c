// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_kernel.c - the machine of kernel.h: CPUs, preemption, interrupts, per-CPU variables, local
 * locks, hotplug (semantics.md 1.2, 1.8 and 1.10).
 */
#define _GNU_SOURCE
#include <pcpcharge/kernel.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "unit_support.h"

#define CPUS 8u

struct line {
	long value;
	char fill[60];
};

static DEFINE_PER_CPU(int, number) = 42;
static DEFINE_PER_CPU(long, events);
static DEFINE_PER_CPU_ALIGNED(struct line, aligned);
static DEFINE_PER_CPU_SHARED_ALIGNED(struct line, apart);
static DEFINE_PER_CPU(local_trylock_t, lock) = INIT_LOCAL_TRYLOCK(lock);

static void eight_cpus(void)
{
	ck_assert_int_eq(pcpc_kernel_set_cpus(CPUS), 0);
}

/* -- per-CPU variables -- */

/* Each begins with the image, and is its own. */
START_TEST(each_cpu_has_its_own_variable)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		ck_assert_int_eq(per_cpu(number, cpu), 42);
		per_cpu(number, cpu) += cpu;
	}
	for_each_possible_cpu(cpu) {
		ck_assert_int_eq(pcpc_kernel_bind(cpu), 0);
		ck_assert_int_eq(smp_processor_id(), cpu);
		ck_assert_int_eq(this_cpu_read(number), 42 + cpu);
		ck_assert_ptr_eq(this_cpu_ptr(&number), per_cpu_ptr(&number, cpu));
		this_cpu_inc(number);
		ck_assert_int_eq(this_cpu_add_return(number, 2), 45 + cpu);
		ck_assert_int_eq(this_cpu_cmpxchg(number, 45 + cpu, 1), 45 + cpu);
		ck_assert_int_eq(this_cpu_xchg(number, 7), 1);
		this_cpu_sub(number, 3);
		__this_cpu_write(number, __this_cpu_read(number) + 1);
		ck_assert_int_eq(per_cpu(number, cpu), 5);
	}
	ck_assert_uint_eq(num_possible_cpus(), CPUS);
	ck_assert_uint_eq(nr_cpu_ids, CPUS);
}
END_TEST

static DEFINE_PER_CPU(int[4], several) = { 1, 2, 3, 4 };

/* The other operations, and arrays. */
START_TEST(every_operation_is_on_this_cpus_variable)
{
	int expected = 5;

	ck_assert_int_eq(pcpc_kernel_bind(2), 0);
	this_cpu_write(number, 8);
	ck_assert_int_eq(this_cpu_inc_return(number), 9);
	ck_assert_int_eq(__this_cpu_dec_return(number), 8);
	ck_assert_int_eq(this_cpu_sub_return(number, 3), 5);
	ck_assert_int_eq(__this_cpu_cmpxchg(number, 4, 1), 5);
	ck_assert(this_cpu_try_cmpxchg(number, &expected, 12));
	ck_assert(!this_cpu_try_cmpxchg(number, &expected, 13) && expected == 12);
	this_cpu_or(number, 3);
	this_cpu_and(number, 6);
	raw_cpu_add(number, 10);
	__this_cpu_inc(number);
	ck_assert_int_eq(per_cpu(number, 2), 17);
	ck_assert_int_eq(per_cpu(number, 1), 42);
	this_cpu_ptr(several)[0] = 11;
	(*this_cpu_ptr(&several))[1] = 12;
	per_cpu(several, 2)[3]++;
	ck_assert_int_eq(this_cpu_read(several[0]), 11);
	ck_assert_int_eq(per_cpu(several, 2)[1] + per_cpu(several, 2)[2], 12 + 3);
	ck_assert_int_eq(per_cpu(several, 2)[3], 5);
	ck_assert_int_eq(per_cpu(several, 3)[0], 1);
}
END_TEST

/* H3: "assert address % 64 (or 128) == 0 for every CPU". */
START_TEST(aligned_variables_are_aligned_on_every_cpu)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		ck_assert_uint_eq((uintptr_t)per_cpu_ptr(&aligned, cpu) % 128, 0);
		ck_assert_uint_eq((uintptr_t)per_cpu_ptr(&apart, cpu) % 128, 0);
	}
}
END_TEST

START_TEST(memory_for_each_cpu_is_allocated_and_given_back)
{
	struct line *line, *other;
	void *filled[1000];
	unsigned int i, j;
	int cpu;

	line = alloc_percpu(struct line);
	other = alloc_percpu(struct line);
	ck_assert(line && other && line != other);
	for_each_possible_cpu(cpu) {
		ck_assert_int_eq(per_cpu_ptr(line, cpu)->value, 0);
		per_cpu_ptr(line, cpu)->value = cpu + 1;
		per_cpu_ptr(other, cpu)->value = -cpu;
	}
	for_each_possible_cpu(cpu)
		ck_assert_int_eq(per_cpu_ptr(line, cpu)->value, cpu + 1);
	free_percpu(line);
	line = alloc_percpu(struct line);
	ck_assert_int_eq(per_cpu_ptr(line, 3)->value, 0);
	/* until there is none, and again */
	for (i = 0; i < 1000 && (filled[i] = alloc_percpu(struct line)); i++)
		;
	ck_assert_uint_lt(i, 1000);
	ck_assert_uint_gt(i, 100);
	for (j = 0; j < i; j += 2)
		free_percpu(filled[j]);
	for (j = 0; j < i; j += 2)
		ck_assert_ptr_nonnull(alloc_percpu(struct line));
	ck_assert_ptr_null(alloc_percpu(struct line));
	free_percpu(NULL);
	ck_assert_int_eq(per_cpu_ptr(other, 3)->value, -3);
}
END_TEST

/* -- preemption -- */

#define THREADS 4
#define ROUNDS 20000

static _Atomic bool stop;

/* Not atomic: right only if nobody else is here, however long it takes. */
static void count_in_section(bool for_long)
{
	long *value, before;

	preempt_disable();
	value = this_cpu_ptr(&events);
	before = READ_ONCE(*value);
	if (for_long)
		sched_yield();
	WRITE_ONCE(*value, before + 1);
	preempt_enable();
}

/* An interrupt undoes nothing of the context that it interrupts: it adds to a word of its own. */
static DEFINE_PER_CPU(long, interrupts);
static _Atomic long handled;

static void on_interrupt(int signal)
{
	long *value;

	(void)signal;
	irq_enter();
	preempt_disable();
	value = this_cpu_ptr(&interrupts);
	WRITE_ONCE(*value, READ_ONCE(*value) + 1);
	preempt_enable();
	irq_exit();
	handled++;
	/* others come here before what was interrupted goes on */
	sched_yield();
}

static void *count_many(void *argument)
{
	int i;

	(void)argument;
	/* the first half all at one CPU, the others where they run */
	(void)pcpc_kernel_bind(1);
	for (i = 0; i < ROUNDS; i++) {
		if (i == ROUNDS / 2)
			(void)pcpc_kernel_bind(-1);
		count_in_section(i % 32 == 0);
		if (i % 64 == 0)
			pthread_kill(pthread_self(), SIGUSR1);
	}
	return NULL;
}

static void *disturb(void *argument)
{
	pthread_t *thread = argument;
	int i = 0;

	while (!atomic_load(&stop)) {
		pthread_kill(thread[i++ % THREADS], SIGUSR1);
		sched_yield();
	}
	return NULL;
}

/* "one thread at a time is at each CPU", with handlers that come at any instruction: plain counters
 * lose nothing. */
START_TEST(one_context_at_a_time_is_at_a_cpu_with_preemption_disabled)
{
	struct sigaction action = { .sa_handler = on_interrupt, .sa_flags = SA_RESTART };
	pthread_t thread[THREADS], disturber;
	long sum = 0, nested = 0;
	int i, cpu;

	sigaction(SIGUSR1, &action, NULL);
	for (i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, count_many, NULL), 0);
	ck_assert_int_eq(pthread_create(&disturber, NULL, disturb, thread), 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	atomic_store(&stop, true);
	pthread_join(disturber, NULL);
	for_each_possible_cpu(cpu) {
		sum += per_cpu(events, cpu);
		nested += per_cpu(interrupts, cpu);
	}
	ck_assert_int_eq(sum, (long)THREADS * ROUNDS);
	ck_assert_int_eq(nested, handled);
	ck_assert_int_ge(handled, THREADS * (ROUNDS / 64));
	ck_assert_int_eq(pcpc_kernel_set_cpus(CPUS), 0);
}
END_TEST

START_TEST(sections_nest_and_stay_where_they_began)
{
	int cpu;

	ck_assert_int_eq(pcpc_kernel_bind(3), 0);
	cpu = get_cpu();
	ck_assert_int_eq(cpu, 3);
	ck_assert_int_eq(pcpc_kernel_bind(5), 0);
	preempt_disable();
	local_bh_disable();
	ck_assert_int_eq(smp_processor_id(), 3);
	local_bh_enable();
	preempt_enable();
	ck_assert_int_eq(smp_processor_id(), 3);
	ck_assert_int_eq(pcpc_kernel_set_cpus(4), -EBUSY);
	put_cpu();
	ck_assert_int_eq(smp_processor_id(), 5);
	migrate_disable();
	ck_assert_int_eq(pcpc_kernel_bind(1), 0);
	migrate_disable();
	migrate_enable();
	ck_assert_int_eq(smp_processor_id(), 5);
	preempt_disable();
	migrate_enable();
	ck_assert_int_eq(smp_processor_id(), 5);
	preempt_enable();
	ck_assert_int_eq(smp_processor_id(), 1);
	ck_assert_int_eq(pcpc_kernel_bind(8), -EINVAL);
	ck_assert_int_eq(pcpc_kernel_bind(-2), -EINVAL);
	ck_assert_int_eq(pcpc_kernel_bind(-1), 0);
	ck_assert_int_eq(pcpc_kernel_set_cpus(0), -EINVAL);
	ck_assert_int_eq(pcpc_kernel_set_cpus(PCPC_KERNEL_CPUS + 1), -EINVAL);
}
END_TEST

static volatile sig_atomic_t seen;

static void note(int signal)
{
	(void)signal;
	irq_enter();
	seen = in_interrupt() ? 1 : 2;
	irq_exit();
}

/* Interrupts that are off come when they are on again. */
START_TEST(interrupts_wait_while_they_are_off)
{
	struct sigaction action = { .sa_handler = note };
	unsigned long outer, inner;

	sigaction(SIGUSR1, &action, NULL);
	local_irq_save(outer);
	local_irq_save(inner);
	raise(SIGUSR1);
	local_irq_restore(inner);
	ck_assert_int_eq(seen, 0);
	local_irq_restore(outer);
	ck_assert_int_eq(seen, 1);
	ck_assert(in_task());
}
END_TEST

/* -- local locks -- */

static bool nested_took;

static void try_lock(int signal)
{
	(void)signal;
	irq_enter();
	nested_took = local_trylock(&lock);
	if (nested_took)
		local_unlock(&lock);
	irq_exit();
}

/* 1.2, 1 and 2: "a nested context on the same CPU can observe it taken"; another CPU's is free. */
START_TEST(a_nested_context_sees_a_local_lock_taken)
{
	struct sigaction action = { .sa_handler = try_lock };
	unsigned long flags, inner;

	sigaction(SIGUSR1, &action, NULL);
	ck_assert_int_eq(pcpc_kernel_bind(2), 0);
	raise(SIGUSR1);
	ck_assert(nested_took);
	ck_assert(local_trylock(&lock));
	raise(SIGUSR1);
	ck_assert(!nested_took);
	ck_assert(!local_trylock(&lock));
	ck_assert(per_cpu(lock, 2).acquired);
	ck_assert(!per_cpu(lock, 3).acquired);
	local_unlock(&lock);
	local_lock(&lock);
	raise(SIGUSR1);
	ck_assert(!nested_took);
	local_unlock(&lock);
	local_lock_irqsave(&lock, flags);
	ck_assert(!local_trylock_irqsave(&lock, inner));
	local_unlock_irqrestore(&lock, flags);
	raise(SIGUSR1);
	ck_assert(nested_took);
	ck_assert_uint_eq(pcpc_kernel_warnings(), 0);
}
END_TEST

/* 1.2, 3: "used only from task context ... asserts not already held". */
START_TEST(a_local_lock_that_is_taken_twice_is_warned_of)
{
	local_lock(&lock);
	local_lock(&lock);
	ck_assert_uint_eq(pcpc_kernel_warnings(), 1);
	local_unlock(&lock);
	preempt_enable();
}
END_TEST

/* -- hotplug -- */

static unsigned int gone, came;

static int on_gone(unsigned int cpu)
{
	gone = cpu;
	/* at another one */
	ck_assert_int_ne(smp_processor_id(), (int)cpu);
	return 0;
}

static int on_came(unsigned int cpu)
{
	came = cpu;
	return 0;
}

/* 1.8: teardown when nobody is there any more. */
START_TEST(a_cpu_that_goes_is_told_of_and_avoided)
{
	int state, cpu, online = 0;

	ck_assert_int_eq(cpuhp_setup_state_nocalls(CPUHP_MM_MEMCQ_DEAD, "dead", NULL, on_gone), 0);
	state = cpuhp_setup_state_nocalls(CPUHP_AP_ONLINE_DYN, "came", on_came, NULL);
	ck_assert_int_gt(state, 0);
	ck_assert_int_eq(pcpc_kernel_bind(3), 0);
	ck_assert_int_eq(pcpc_kernel_cpu_down(3), 0);
	ck_assert_uint_eq(gone, 3);
	ck_assert(!cpu_online(3));
	ck_assert_int_eq(smp_processor_id(), 4);
	ck_assert_int_eq(get_cpu(), 4);
	put_cpu();
	cpus_read_lock();
	for_each_online_cpu(cpu)
		online++;
	cpus_read_unlock();
	ck_assert_int_eq(online, CPUS - 1);
	ck_assert_uint_eq(num_online_cpus(), CPUS - 1);
	ck_assert_int_eq(pcpc_kernel_cpu_down(3), -EINVAL);
	ck_assert_int_eq(pcpc_kernel_cpu_up(3), 0);
	ck_assert_uint_eq(came, 3);
	ck_assert_int_eq(smp_processor_id(), 3);
	ck_assert_int_eq(pcpc_kernel_cpu_up(3), -EINVAL);
	ck_assert_int_eq(pcpc_kernel_cpu_down(CPUS), -EINVAL);
	cpuhp_remove_state_nocalls((enum cpuhp_state)state);
	cpuhp_remove_state_nocalls(CPUHP_MM_MEMCQ_DEAD);
	for (cpu = 0; cpu < (int)CPUS - 1; cpu++)
		ck_assert_int_eq(pcpc_kernel_cpu_down((unsigned int)cpu), 0);
	ck_assert_int_eq(pcpc_kernel_cpu_down(CPUS - 1), -EBUSY);
	ck_assert_uint_eq(gone + came, 6);
}
END_TEST

static _Atomic long counted[THREADS];

static void *count_anywhere(void *argument)
{
	_Atomic long *mine = argument;

	while (!atomic_load(&stop)) {
		(void)pcpc_kernel_bind((int)(*mine % CPUS));
		count_in_section(*mine % 32 == 0);
		migrate_disable();
		this_cpu_inc(number);
		migrate_enable();
		++*mine;
	}
	return NULL;
}

/* Enough has happened beside CPUs that come and go. */
static bool all_have_counted(void)
{
	int i;

	for (i = 0; i < THREADS; i++)
		if (counted[i] < 1000)
			return false;
	return true;
}

static int take_over(unsigned int cpu)
{
	/* plain: nobody is there, and nobody comes */
	per_cpu(apart, cpu).value += per_cpu(events, cpu);
	per_cpu(events, cpu) = 0;
	return 0;
}

/* 1.8, 1: "nothing can run on c any more", so no lock: threads count while CPUs come and go, and
 * what a CPU had when it went is taken without one. */
START_TEST(nothing_is_lost_while_cpus_come_and_go)
{
	long sum = 0, all = 0;
	pthread_t thread[THREADS];
	unsigned int cpu;
	int i;

	ck_assert_int_eq(cpuhp_setup_state_nocalls(CPUHP_MM_MEMCQ_DEAD, "dead", NULL, take_over),
			 0);
	for (i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, count_anywhere, &counted[i]), 0);
	for (i = 0; i < 60 || !all_have_counted(); i++) {
		ck_assert_int_eq(pcpc_kernel_cpu_down((unsigned int)i % CPUS), 0);
		ck_assert_int_eq(pcpc_kernel_cpu_up((unsigned int)i % CPUS), 0);
	}
	atomic_store(&stop, true);
	for (i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		sum += counted[i];
	}
	for_each_possible_cpu(cpu)
		all += per_cpu(events, cpu) + per_cpu(apart, cpu).value;
	ck_assert_int_eq(all, sum);
}
END_TEST

/* -- fork -- */

static void *stay(void *argument)
{
	preempt_disable();
	atomic_store((_Atomic bool *)argument, true);
	while (!atomic_load(&stop))
		sched_yield();
	preempt_enable();
	return NULL;
}

/* kernel.h: after a fork "no CPU is taken by another one". */
START_TEST(a_child_finds_every_cpu_free)
{
	_Atomic bool there = false;
	pthread_t thread;
	pid_t child;
	int status;

	ck_assert_int_eq(pthread_create(&thread, NULL, stay, &there), 0);
	while (!atomic_load(&there))
		sched_yield();
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0) {
		int cpu;

		for_each_possible_cpu(cpu) {
			(void)pcpc_kernel_bind(cpu);
			preempt_disable();
			preempt_enable();
		}
		_exit(0);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("kernel");
	TCase *tests = unit_case(suite, "machine");

	tcase_add_checked_fixture(tests, eight_cpus, NULL);
	tcase_add_test(tests, each_cpu_has_its_own_variable);
	tcase_add_test(tests, every_operation_is_on_this_cpus_variable);
	tcase_add_test(tests, aligned_variables_are_aligned_on_every_cpu);
	tcase_add_test(tests, memory_for_each_cpu_is_allocated_and_given_back);
	tcase_add_test(tests, one_context_at_a_time_is_at_a_cpu_with_preemption_disabled);
	tcase_add_test(tests, sections_nest_and_stay_where_they_began);
	tcase_add_test(tests, interrupts_wait_while_they_are_off);
	tcase_add_test(tests, a_nested_context_sees_a_local_lock_taken);
	tcase_add_test(tests, a_local_lock_that_is_taken_twice_is_warned_of);
	tcase_add_test(tests, a_cpu_that_goes_is_told_of_and_avoided);
	tcase_add_test(tests, nothing_is_lost_while_cpus_come_and_go);
	tcase_add_test(tests, a_child_finds_every_cpu_free);
	return unit_run(suite);
}
