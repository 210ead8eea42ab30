// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_eventfd.c - the eventfd in an event loop, and domains that have none. When it is readable,
 * for whom, is test_event_poll.c; what fork does to it test_owner_fork.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "owner_support.h"
#include "unit_child.h"

static _Atomic uint64_t told; /* refusals */

static void count_told(struct pcpc_owner *owner, enum pcpc_event event, void *context)
{
	(void)owner;
	(void)context;
	if (event == PCPC_EVENT_REFUSED)
		atomic_fetch_add(&told, 1);
}

/* A leaf below a limit that is used up and known to be; from here on what happens is counted. */
static struct pcpc_owner *full_leaf(void)
{
	struct pcpc_owner *leaf = child_of(make_owner(root, 1600, 0));

	charge(leaf, 1600);
	ck_assert_int_eq(pcpc_charge(leaf, 1), -EDQUOT);
	ck_assert_int_eq(pcpc_owner_set_notify(root, count_told, NULL), 0);
	atomic_store(&told, 0);
	return leaf;
}

/* Polls when the eventfd says so, as an event loop does. */
static void *event_loop(void *context)
{
	struct pollfd ready = { .fd = pcpc_domain_eventfd(domain), .events = POLLIN };
	_Atomic bool *end = context;

	while (!atomic_load(end))
		if (poll(&ready, 1, 10) == 1)
			pcpc_domain_poll(domain);
	return NULL;
}

/* No event is lost between a ring and a poll: each round waits for the loop to tell. */
START_TEST(an_event_loop_misses_nothing)
{
	const int rounds = UNIT_SANITIZED ? 500 : 3000;
	_Atomic bool end = false;
	struct pcpc_owner *leaf;
	pthread_t thread;
	uint64_t before;
	int i;

	if (!open_domain(_i, 64, 0))
		return;
	leaf = full_leaf();
	ck_assert_int_eq(pthread_create(&thread, NULL, event_loop, &end), 0);
	for (i = 0; i < rounds; i++) {
		before = atomic_load(&told);
		ck_assert_int_eq(pcpc_charge_flags(leaf, 1, PCPC_NOWAIT, NULL), -EDQUOT);
		UNTIL(atomic_load(&told) > before);
	}
	atomic_store(&end, true);
	pthread_join(thread, NULL);
	uncharge(leaf, 1600);
	pcpc_domain_poll(domain);
	ck_assert_int_eq(pcpc_owner_set_notify(root, NULL, NULL), 0);
}
END_TEST

/* -- PCPC_DOMAIN_NO_EVENTFD -- */

/* The number the next descriptor gets: those that are open are below it, or closed between. */
static int next_number(void)
{
	int fd = open("/", O_PATH | O_CLOEXEC);

	close(fd);
	return fd;
}

static bool open_without_eventfd(int engine)
{
	struct pcpc_domain_config config = domain_config((enum pcpc_engine)engine, 64);

	config.flags = PCPC_DOMAIN_NO_EVENTFD;
	return create_domain(&config);
}

/* owner.h: "No eventfd, and so no descriptor"; "-EBADF". */
START_TEST(a_domain_without_eventfd_has_no_descriptor)
{
	const int number = next_number();

	if (!open_without_eventfd(_i))
		return;
	ck_assert_int_eq(next_number(), number);
	ck_assert_int_eq(pcpc_domain_eventfd(domain), -EBADF);
}
END_TEST

/* owner.h: "Poll now and then instead". What is due is done as ever. */
START_TEST(a_domain_without_eventfd_polls_as_ever)
{
	struct pcpc_owner *leaf;
	int round;

	if (!open_without_eventfd(_i))
		return;
	leaf = full_leaf();
	for (round = 1; round <= 3; round++) {
		ck_assert_int_eq(pcpc_charge_flags(leaf, 1, PCPC_NOWAIT, NULL), -EDQUOT);
		ck_assert_uint_eq(atomic_load(&told), round - 1);
		pcpc_domain_poll(domain);
		ck_assert_uint_eq(atomic_load(&told), round);
	}
	uncharge(leaf, 1600);
	ck_assert_int_eq(pcpc_owner_set_notify(root, NULL, NULL), 0);
	/* A limit that only poll may make sure of: some of it is stocked. */
	leaf = make_owner(root, 10000, 0);
	charge(leaf, 60);
	uncharge(leaf, 60);
	ck_assert_int_eq(pcpc_charge_flags(leaf, 10000, PCPC_NOWAIT, NULL), -EAGAIN);
	pcpc_domain_poll(domain);
	ck_assert_int_eq(pcpc_charge_flags(leaf, 10000, PCPC_NOWAIT, NULL), 0);
	uncharge(leaf, 10000);
}
END_TEST

struct expected {
	struct pcpc_owner *leaf;
	int number;
};

static void poll_without_eventfd(void *context)
{
	const struct expected *expected = context;

	IN_CHILD(next_number() == expected->number);
	IN_CHILD(pcpc_domain_eventfd(domain) == -EBADF);
	IN_CHILD(pcpc_charge_flags(expected->leaf, 1, PCPC_NOWAIT, NULL) == -EDQUOT);
	pcpc_domain_poll(domain);
	IN_CHILD(atomic_load(&told) == 1);
}

/* A child of fork has the descriptors of its parent, and no more. */
START_TEST(fork_gives_a_domain_without_eventfd_none)
{
	struct expected expected = { .number = next_number() };

	if (!open_without_eventfd(_i))
		return;
	expected.leaf = full_leaf();
	in_child(poll_without_eventfd, &expected);
	uncharge(expected.leaf, 1600);
	ck_assert_int_eq(pcpc_owner_set_notify(root, NULL, NULL), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("eventfd");
	TCase *tests = unit_case(suite, "eventfd");

	tcase_add_checked_fixture(tests, NULL, close_domain);
	by_each_engine(tests, an_event_loop_misses_nothing);
	by_each_engine(tests, a_domain_without_eventfd_has_no_descriptor);
	by_each_engine(tests, a_domain_without_eventfd_polls_as_ever);
	by_each_engine(tests, fork_gives_a_domain_without_eventfd_none);
	return unit_run(suite);
}
