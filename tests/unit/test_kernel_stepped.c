// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_kernel_stepped.c - an interrupt between any two instructions of preempt_disable() and its
 * like, in kernel.h: the processor traps after each, and the handler is a nested context that comes
 * to the same CPU and leaves it (semantics.md 1.2, 1 and 2). x86-64 only.
 */
#define _GNU_SOURCE
#include <pcpcharge/kernel.h>

#include <pthread.h>
#include <signal.h>

#include "unit_support.h"

#define CPUS 8u

static DEFINE_PER_CPU(long, nested);

/* The trap flag; the kernel of the machine has it off in handlers. */
static inline __attribute__((always_inline)) void step(bool on)
{
#ifdef __x86_64__
	/* beside the red zone */
	if (on)
		__asm__ volatile("leaq -128(%%rsp), %%rsp; pushfq; orq $0x100, (%%rsp); popfq;"
				 "leaq 128(%%rsp), %%rsp" ::
					 : "memory", "cc");
	else
		__asm__ volatile("leaq -128(%%rsp), %%rsp; pushfq; andq $~0x100, (%%rsp); popfq;"
				 "leaq 128(%%rsp), %%rsp" ::
					 : "memory", "cc");
#else
	(void)on;
#endif
}

static void handle_steps(void (*handler)(int signal))
{
	struct sigaction action = { .sa_handler = handler };

	sigaction(SIGTRAP, &action, NULL);
	ck_assert_int_eq(pcpc_kernel_set_cpus(CPUS), 0);
}

static volatile int inside = -1; /* the CPU that the interrupted section is at */
static volatile long nr_steps, nr_elsewhere;

/* Binds the thread to another CPU each time, so that the interrupted context would choose another
 * one after each instruction. */
static void visit(int signal)
{
	long *value;

	(void)signal;
	irq_enter();
	(void)pcpc_kernel_bind((int)(nr_steps++ % CPUS));
	preempt_disable();
	value = this_cpu_ptr(&nested);
	WRITE_ONCE(*value, READ_ONCE(*value) + 1);
	if (inside >= 0 && smp_processor_id() != inside)
		nr_elsewhere++;
	preempt_enable();
	migrate_disable();
	migrate_enable();
	irq_exit();
}

static void go_through_sections(void)
{
	preempt_disable();
	inside = smp_processor_id();
	migrate_disable();
	preempt_disable();
	preempt_enable();
	inside = -1;
	preempt_enable();
	inside = smp_processor_id();
	preempt_disable();
	migrate_enable();
	inside = -1;
	preempt_enable();
}

/* A section stays where it began, whoever comes in between, and leaves nothing behind. */
START_TEST(an_interrupt_after_every_instruction_leaves_a_section_where_it_is)
{
	long sum = 0;
	int i, cpu;

	handle_steps(visit);
	for (i = 0; i < 50; i++) {
		step(true);
		go_through_sections();
		step(false);
		/* nobody is at any CPU */
		ck_assert_int_eq(pcpc_kernel_set_cpus(CPUS), 0);
	}
	for_each_possible_cpu(cpu)
		sum += per_cpu(nested, cpu);
	ck_assert_int_eq(nr_elsewhere, 0);
	ck_assert_int_gt(nr_steps, 50 * 100);
	ck_assert_int_eq(sum, nr_steps);
}
END_TEST

static _Atomic bool may_enter, has_entered, may_leave;
static volatile long nr_seen, chosen_step;

static void *enter_and_stay(void *argument)
{
	(void)argument;
	(void)pcpc_kernel_bind(1);
	while (!may_enter)
		sched_yield();
	preempt_disable();
	has_entered = true;
	while (!may_leave)
		sched_yield();
	preempt_enable();
	return NULL;
}

/* Up to the chosen instruction an interrupt comes and goes; then another thread gets a chance. */
static void visit_until(int signal)
{
	int i;

	(void)signal;
	if (nr_seen > chosen_step)
		return;
	irq_enter();
	preempt_disable();
	preempt_enable();
	irq_exit();
	if (nr_seen++ < chosen_step)
		return;
	may_enter = true;
	for (i = 0; i < 20 && !has_entered; i++)
		sched_yield();
}

/* An interrupt may have left the CPU before the interrupted preempt_enable() does, and somebody
 * else may have come: who is not sent away. For each instruction of it. */
START_TEST(a_section_that_ends_does_not_end_another_threads)
{
	pthread_t other;

	handle_steps(visit_until);
	ck_assert_int_eq(pcpc_kernel_bind(1), 0);
	for (chosen_step = 0; chosen_step <= nr_seen; chosen_step++) {
		may_enter = has_entered = may_leave = false;
		nr_seen = 0;
		ck_assert_int_eq(pthread_create(&other, NULL, enter_and_stay, NULL), 0);
		preempt_disable();
		step(true);
		preempt_enable();
		step(false);
		may_enter = true;
		while (!has_entered)
			sched_yield();
		ck_assert_int_eq(pcpc_kernel_set_cpus(CPUS), -EBUSY);
		may_leave = true;
		pthread_join(other, NULL);
		ck_assert_int_eq(pcpc_kernel_set_cpus(CPUS), 0);
	}
	ck_assert_int_gt(nr_seen, 10);
	unit_note("%ld instructions", nr_seen);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("kernel stepped");
	TCase *tests = unit_case(suite, "stepped");

#ifndef __x86_64__
	printf("skipped: this processor's trap flag is not known\n");
	return UNIT_SKIP;
#endif
	if (UNIT_SANITIZED) {
		printf("skipped: sanitizers delay or count signals\n");
		return UNIT_SKIP;
	}
	tcase_add_test(tests, an_interrupt_after_every_instruction_leaves_a_section_where_it_is);
	tcase_add_test(tests, a_section_that_ends_does_not_end_another_threads);
	return unit_run(suite);
}
