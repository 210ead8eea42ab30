// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_malloc_process.c - limits where something else is going on: fork, vfork, callbacks,
 * cancellation, small stacks.
 */
#define _GNU_SOURCE
#include "malloc_support.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <urcu-bp.h>

extern char **environ;

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

#if defined(__SANITIZE_ADDRESS__)
void __asan_handle_no_return(void);
#else
static void __asan_handle_no_return(void)
{
}
#endif

/* Whoever is cancelled leaves frames without returning, which AddressSanitizer must be told. */
static void may_be_cancelled(void)
{
	__asan_handle_no_return();
	pthread_testcancel();
}

static void *allocate_for_ever(void *owner)
{
	void **chain = NULL;

	work_for(owner);
	for (;;) {
		(void)allocate_until_refused(4000, &chain);
		free_chain(chain);
		chain = NULL;
		may_be_cancelled();
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
	may_be_cancelled();
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

/* -- threads that end -- */

#define NR_KEYS 40 /* the C library then frees memory of a thread after its last destructors */

static pthread_key_t keys[NR_KEYS];

static void *allocate_once(void *owner)
{
	pcpc_set_active(domain_of_malloc(), owner);
	MUST(pthread_setspecific(keys[NR_KEYS - 1], owner) == 0);
	free(seen(malloc(100)));
	return NULL;
}

static void run_threads(struct pcpc_owner *owner, int count)
{
	pthread_t thread;

	while (count--) {
		MUST(pthread_create(&thread, NULL, allocate_once, owner) == 0);
		MUST(pthread_join(thread, NULL) == 0);
	}
}

static long resident(void)
{
	char text[64] = "", *end;
	int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);

	MUST(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	(void)strtol(text, &end, 10);
	return strtol(end, NULL, 10) * sysconf(_SC_PAGESIZE);
}

/* What is freed when the thread has left liburcu-bp's list does not put it there again, for ever;
 * and reaches its owner. Without batches every call is a slow path, which needs the list. */
START_TEST(threads_that_end_leave_nothing_behind)
{
	struct pcpc_owner *owner = tenant(0);
	long before;

	for (int i = 0; i < NR_KEYS; i++)
		MUST(pthread_key_create(&keys[i], NULL) == 0);
	MUST(pcpc_owner_set_batch(owner, PCPC_BATCH_NONE) == 0);
	run_threads(owner, 500);
	before = resident();
	run_threads(owner, 6000);
	MUST(UNDER_SANITIZER || resident() - before < 1 << 20);
	/* a later call does what they could not */
	free(seen(malloc(100)));
	MUST(HELD(owner) == 0);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("process");

	tcase_add_test(tests, a_child_of_fork_goes_on_by_itself);
	tcase_add_test(tests, forks_while_others_allocate_at_a_limit);
	tcase_add_test(tests, vfork_and_posix_spawn);
	tcase_add_test(tests, a_callback_may_allocate);
	tcase_add_test(tests, reclaim_functions_are_not_called);
	tcase_add_test(tests, threads_may_be_cancelled_at_a_limit);
	tcase_add_test(tests, a_thread_may_be_cancelled_in_a_grace_period);
	tcase_add_test(tests, the_smallest_stack_is_enough);
	tcase_add_test(tests, threads_that_end_leave_nothing_behind);
	return run_case("malloc process", tests);
}
