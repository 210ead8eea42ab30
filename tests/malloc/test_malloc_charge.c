// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_malloc_charge.c - who pays, limits, and what must not go wrong at them.
 */
#define _GNU_SOURCE
#include "malloc_support.h"

#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <urcu-bp.h>

extern char **environ;

/* Chains blocks through their first word, until one is refused. Returns how many there were. */
static size_t allocate_until_refused(size_t size, void ***chain)
{
	size_t count = 0;
	void **block;

	while ((block = seen(malloc(size)))) {
		*block = *chain;
		*chain = block;
		count++;
	}
	return count;
}

static void free_chain(void **chain)
{
	void **next;

	for (; chain; chain = next) {
		next = *chain;
		free(chain);
	}
}

START_TEST(each_owner_pays_for_its_own)
{
	struct pcpc_owner *alice = tenant(0), *bob = tenant(0);
	void *hers, *his;

	work_for(alice);
	hers = seen(malloc(1000));
	MUST(work_for(bob) == alice);
	his = seen(calloc(10, 100));
	free(hers);
	work_for(NULL);
	MUST(HELD(alice) == 0);
	MUST(HELD(bob) == 1024);
	free(his);
	MUST(HELD(bob) == 0);
}
END_TEST

START_TEST(without_an_owner_the_process_pays)
{
	struct pcpc_owner *root = pcpc_domain_root(domain_of_malloc());
	uint64_t before = HELD(root);
	void *block = seen(malloc(100 * MIB));

	MUST(HELD(root) == before + 100 * MIB + 16);
	free(block);
	MUST(HELD(root) == before);
}
END_TEST

/* G2, G3: exactly as many as fit, whatever lies in stocks. */
START_TEST(a_limit_is_exact)
{
	struct pollfd due = { pcpc_domain_eventfd(domain_of_malloc()), POLLIN, 0 };
	struct pcpc_owner *owner = tenant(MIB);
	void **chain = NULL;

	work_for(owner);
	errno = 0;
	MUST(allocate_until_refused(1000, &chain) == 1024);
	MUST(errno == ENOMEM);
	MUST(!malloc(1));
	MUST(!calloc(1, 1));
	MUST(!memalign(64, 1));
	work_for(NULL);
	/* Nothing is left for pcpc_domain_poll(). */
	MUST(poll(&due, 1, 0) == 0);
	MUST(pcpc_owner_usage(owner) == MIB);
	free_chain(chain);
	MUST(HELD(owner) == 0);
}
END_TEST

/* The old block stays, with what is in it. */
START_TEST(a_refused_realloc_leaves_the_block)
{
	struct pcpc_owner *owner = tenant(MIB);
	char *block, *aligned;

	work_for(owner);
	block = seen(malloc(500000));
	aligned = seen(memalign(4096, 100000));
	fill(block, 500000);
	fill(aligned, 100000);
	errno = 0;
	MUST(!realloc(block, 1000000));
	MUST(errno == ENOMEM);
	errno = 0;
	MUST(!realloc(aligned, 1000000));
	MUST(errno == ENOMEM);
	work_for(NULL);
	MUST(is_filled(block, 500000));
	MUST(is_filled(aligned, 100000));
	MUST(HELD(owner) == COST(500000) + 100000 + 4096);
	free(block);
	free(aligned);
	MUST(HELD(owner) == 0);
}
END_TEST

/* Only the difference is asked for. */
START_TEST(a_block_may_grow_to_the_limit)
{
	struct pcpc_owner *owner = tenant(MIB);
	char *block;

	work_for(owner);
	block = seen(malloc(MIB - 200000));
	fill(block, MIB - 200000);
	block = seen(realloc(block, MIB - 16));
	MUST(block);
	MUST(is_filled(block, MIB - 200000));
	MUST(HELD(owner) == MIB);
	MUST(!malloc(1));
	block = seen(realloc(block, 1000));
	MUST(HELD(owner) == 1024);
	work_for(NULL);
	free(block);
}
END_TEST

START_TEST(who_changes_the_size_pays_from_then_on)
{
	struct pcpc_owner *alice = tenant(0), *bob = tenant(10000);
	char *block;

	work_for(alice);
	block = seen(malloc(1000));
	fill(block, 1000);
	work_for(bob);
	MUST(!realloc(block, 20000));
	MUST(HELD(alice) == 1024);
	block = seen(realloc(block, 5000));
	work_for(NULL);
	MUST(is_filled(block, 1000));
	MUST(HELD(alice) == 0);
	MUST(HELD(bob) == COST(5000));
	free(block);
	MUST(HELD(bob) == 0);
}
END_TEST

static void *free_it(void *block)
{
	free(block);
	return NULL;
}

/* G7, G14. */
START_TEST(a_free_reaches_an_owner_that_was_destroyed)
{
	struct pcpc_domain_stats stats = { .size = sizeof(stats) };
	struct pcpc_owner *root = pcpc_domain_root(domain_of_malloc()), *owner = tenant(0);
	void *one, *two;
	pthread_t thread;

	work_for(owner);
	one = seen(malloc(30 * MIB));
	two = seen(malloc(1000));
	work_for(NULL);
	MUST(pcpc_owner_destroy(owner) == 0);
	MUST(HELD(root) >= 30 * MIB + 1024);
	MUST(pthread_create(&thread, NULL, free_it, one) == 0);
	MUST(pthread_join(thread, NULL) == 0);
	pcpc_domain_get_stats(domain_of_malloc(), &stats);
	MUST(stats.nr_offline == 1);
	MUST(HELD(root) < 30 * MIB);
	free(two);
	pcpc_domain_poll(domain_of_malloc());
	pcpc_domain_get_stats(domain_of_malloc(), &stats);
	MUST(stats.nr_offline == 0);
	MUST(stats.nr_owners == 1);
}
END_TEST

/* A thread may go on for a while on behalf of an owner that is gone; it has a reference. */
START_TEST(an_offline_owner_falls_to_those_above)
{
	struct pcpc_owner *above = tenant(0), *owner = tenant_below(above, 0);
	void *block;

	pcpc_owner_get(owner);
	work_for(owner);
	MUST(pcpc_owner_destroy(owner) == 0);
	block = seen(malloc(1000));
	MUST(block);
	block = seen(realloc(block, 2000));
	work_for(NULL);
	MUST(HELD(above) == COST(2000));
	free(block);
	MUST(HELD(above) == 0);
	pcpc_owner_put(owner);
}
END_TEST

static int pin_to_cpu(int nth)
{
	cpu_set_t allowed, one;

	CPU_ZERO(&one);
	MUST(sched_getaffinity(0, sizeof(allowed), &allowed) == 0);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &allowed) && nth-- == 0) {
			CPU_SET(cpu, &one);
			return sched_setaffinity(0, sizeof(one), &one);
		}
	}
	return -1;
}

/* Leaves units of an owner in the stock of another CPU. */
static void *stock_elsewhere(void *owner)
{
	if (pin_to_cpu(1) == 0) {
		work_for(owner);
		free(seen(malloc(10000)));
	}
	return NULL;
}

/* charge.h: inside the program's own section nobody waits for a grace period. What could not be
 * made sure of there is made good by a later call. */
START_TEST(a_read_side_section_of_the_program_does_not_hang)
{
	struct pcpc_owner *owner = tenant(MIB);
	pthread_t thread;
	void *first, *second;

	MUST(pin_to_cpu(0) == 0);
	MUST(pthread_create(&thread, NULL, stock_elsewhere, owner) == 0);
	MUST(pthread_join(thread, NULL) == 0);
	work_for(owner);
	urcu_bp_read_lock();
	errno = 0;
	first = seen(malloc(MIB - 16));
	MUST(first || errno == ENOMEM);
	MUST(!malloc(2 * MIB));
	urcu_bp_read_unlock();
	second = first ? first : seen(malloc(MIB - 16));
	MUST(second);
	work_for(NULL);
	free(second);
	MUST(HELD(owner) == 0);
}
END_TEST

/* G9. The child has its parent's charges, and its own from then on; the parent notices nothing. */
START_TEST(a_child_of_fork_goes_on_by_itself)
{
	struct pcpc_owner *owner = tenant(MIB);
	void *block, **chain = NULL;
	int status;
	pid_t child;

	work_for(owner);
	block = seen(malloc(MIB / 2 - 16));
	child = fork();
	MUST(child >= 0);
	if (child == 0) {
		size_t count = allocate_until_refused(1000, &chain);

		free_chain(chain);
		free(block);
		_exit(count != 512 || HELD(owner) != 0);
	}
	MUST(waitpid(child, &status, 0) == child);
	MUST(status == 0);
	MUST(HELD(owner) == MIB / 2);
	MUST(allocate_until_refused(1000, &chain) == 512);
	free_chain(chain);
	free(block);
	work_for(NULL);
	MUST(HELD(owner) == 0);
}
END_TEST

static atomic_bool stop;

static void *churn(void *owner)
{
	work_for(owner);
	while (!atomic_load(&stop))
		free(seen(malloc(5000)));
	return NULL;
}

/* fork_during_drain.c has the library's side; here the next allocator's locks are in it too. */
START_TEST(forks_while_others_allocate_at_a_limit)
{
	struct pcpc_owner *owner = tenant(64 * KIB);
	pthread_t threads[3];
	int status;

	for (int i = 0; i < 3; i++)
		MUST(pthread_create(&threads[i], NULL, churn, owner) == 0);
	for (int i = 0; i < 100; i++) {
		pid_t child = fork();

		MUST(child >= 0);
		if (child == 0) {
			void *block = seen(malloc(100000));
			struct pcpc_owner *own = tenant(MIB);

			free(block);
			work_for(own);
			free(seen(malloc(1000)));
			_exit(HELD(own) != 0);
		}
		MUST(waitpid(child, &status, 0) == child);
		MUST(status == 0);
	}
	atomic_store(&stop, true);
	for (int i = 0; i < 3; i++)
		MUST(pthread_join(threads[i], NULL) == 0);
	MUST(HELD(owner) == 0);
}
END_TEST

/* Neither runs fork handlers; the child's memory is the parent's until it execs. */
START_TEST(vfork_and_posix_spawn)
{
	char name[] = "true", *arguments[] = { name, NULL };
	struct pcpc_owner *owner = tenant(0);
	int status;
	pid_t child;

	work_for(owner);
	child = vfork();
	if (child == 0) {
		execv("/bin/true", arguments);
		_exit(1);
	}
	MUST(waitpid(child, &status, 0) == child);
	MUST(status == 0);
	MUST(posix_spawn(&child, "/bin/true", NULL, NULL, arguments, environ) == 0);
	MUST(waitpid(child, &status, 0) == child);
	MUST(status == 0);
	free(seen(malloc(1000)));
	work_for(NULL);
	MUST(HELD(owner) == 0);
}
END_TEST

static int notified;

static void allocate_in_callback(struct pcpc_owner *owner, enum pcpc_event event, void *context)
{
	(void)owner;
	(void)event;
	(void)context;
	notified++;
	free(seen(malloc(100000)));
}

/* owner.h: callbacks run in calls that may wait, so inside malloc() at a limit too. */
START_TEST(a_callback_may_allocate)
{
	struct pcpc_owner *owner = tenant(MIB);
	void **chain = NULL;

	MUST(pcpc_owner_set_notify(owner, allocate_in_callback, NULL) == 0);
	work_for(owner);
	MUST(allocate_until_refused(1000, &chain) == 1024);
	free_chain(chain);
	work_for(NULL);
	pcpc_domain_poll(domain_of_malloc());
	MUST(notified > 0);
	MUST(HELD(owner) == 0);
}
END_TEST

static uint64_t must_not_run(struct pcpc_owner *over, uint64_t wanted, void *context)
{
	(void)over;
	(void)wanted;
	(void)context;
	abort();
}

/* malloc() may be called with any lock held that a reclaim function takes. */
START_TEST(reclaim_functions_are_not_called)
{
	struct pcpc_owner *owner = tenant(MIB);

	MUST(pcpc_owner_set_reclaim(owner, must_not_run, NULL) == 0);
	work_for(owner);
	MUST(!malloc(MIB));
	work_for(NULL);
}
END_TEST

static void *allocate_for_ever(void *owner)
{
	void **chain = NULL;

	work_for(owner);
	for (;;) {
		(void)allocate_until_refused(4000, &chain);
		free_chain(chain);
		chain = NULL;
		pthread_testcancel();
	}
	return NULL;
}

/* malloc() is no cancellation point: whoever is cancelled at a limit leaves no lock behind. */
START_TEST(threads_may_be_cancelled_at_a_limit)
{
	struct pcpc_owner *owner = tenant(MIB);
	pthread_t thread;
	void *result;

	for (int i = 0; i < 50; i++) {
		uint64_t before = pcpc_owner_events(owner, PCPC_EVENT_REFUSED);

		MUST(pthread_create(&thread, NULL, allocate_for_ever, owner) == 0);
		while (pcpc_owner_events(owner, PCPC_EVENT_REFUSED) == before)
			sched_yield();
		MUST(pthread_cancel(thread) == 0);
		MUST(pthread_join(thread, &result) == 0);
		MUST(result == PTHREAD_CANCELED);
		MUST(HELD(owner) == 0);
	}
}
END_TEST

static _Atomic pid_t waiter;

static void *allocate_beyond(void *owner)
{
	work_for(owner);
	atomic_store(&waiter, gettid());
	MUST(!malloc(2000));
	pthread_testcancel();
	return NULL;
}

/* The state of a thread of this process, as the kernel tells: S while it sleeps. */
static char state_of(pid_t thread)
{
	char path[64], line[256] = "";
	const char *end;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)thread);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	MUST(fd >= 0 && read(fd, line, sizeof(line) - 1) > 0);
	close(fd);
	end = strrchr(line, ')');
	return end ? end[2] : '?';
}

/* The same, made: a thread waits for a grace period, which sleeps in poll(), and is cancelled there
 * while this one keeps it from ending. */
START_TEST(a_thread_may_be_cancelled_in_a_grace_period)
{
	struct pcpc_owner *owner = tenant(64 * KIB);
	pthread_t thread;
	void *result, *kept;

	work_for(owner);
	kept = seen(malloc(63 * KIB));
	work_for(NULL);
	urcu_bp_read_lock();
	MUST(pthread_create(&thread, NULL, allocate_beyond, owner) == 0);
	while (!atomic_load(&waiter) || state_of(waiter) != 'S')
		sched_yield();
	MUST(pthread_cancel(thread) == 0);
	urcu_bp_read_unlock();
	MUST(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
	urcu_bp_synchronize_rcu();
	free(kept);
	MUST(HELD(owner) == 0);
}
END_TEST

static void *allocate_on_little_stack(void *owner)
{
	void **chain = NULL;

	work_for(owner);
	(void)allocate_until_refused(1000, &chain);
	free_chain(chain);
	return NULL;
}

START_TEST(the_smallest_stack_is_enough)
{
	struct pcpc_owner *owner = tenant(MIB);
	pthread_attr_t attributes;
	pthread_t thread;

	MUST(pthread_attr_init(&attributes) == 0);
	MUST(pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN) == 0);
	for (int i = 0; i < 50; i++) {
		MUST(pthread_create(&thread, &attributes, allocate_on_little_stack, owner) == 0);
		MUST(pthread_join(thread, NULL) == 0);
	}
	MUST(HELD(owner) == 0);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("charge");

	tcase_add_test(tests, each_owner_pays_for_its_own);
	tcase_add_test(tests, without_an_owner_the_process_pays);
	tcase_add_test(tests, a_limit_is_exact);
	tcase_add_test(tests, a_refused_realloc_leaves_the_block);
	tcase_add_test(tests, a_block_may_grow_to_the_limit);
	tcase_add_test(tests, who_changes_the_size_pays_from_then_on);
	tcase_add_test(tests, a_free_reaches_an_owner_that_was_destroyed);
	tcase_add_test(tests, an_offline_owner_falls_to_those_above);
	tcase_add_test(tests, a_read_side_section_of_the_program_does_not_hang);
	tcase_add_test(tests, a_child_of_fork_goes_on_by_itself);
	tcase_add_test(tests, forks_while_others_allocate_at_a_limit);
	tcase_add_test(tests, vfork_and_posix_spawn);
	tcase_add_test(tests, a_callback_may_allocate);
	tcase_add_test(tests, reclaim_functions_are_not_called);
	tcase_add_test(tests, threads_may_be_cancelled_at_a_limit);
	tcase_add_test(tests, a_thread_may_be_cancelled_in_a_grace_period);
	tcase_add_test(tests, the_smallest_stack_is_enough);
	return run_case("malloc charge", tests);
}
