// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_observe_fd.c - reports to file descriptors of all kinds.
 */
#define _GNU_SOURCE
#include "observe_support.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>

START_TEST(errors_of_a_descriptor_are_returned)
{
	enum pcpc_format format;
	int ends[2], fd, r;

	if (!open_bushy(_i))
		return;
	signal(SIGPIPE, SIG_IGN);
	for (format = PCPC_FORMAT_TEXT; format <= PCPC_FORMAT_PROMETHEUS; format++) {
		errno = 12345;
		ck_assert_int_eq(pcpc_domain_report_fd(domain, format, -1), -EBADF);
		fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
		ck_assert_int_ge(fd, 0);
		errno = 12345;
		ck_assert_int_eq(pcpc_domain_report_fd(domain, format, fd), -ENOSPC);
		ck_assert_int_eq(errno, 12345);
		close(fd);
		ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
		close(ends[0]);
		errno = 12345;
		ck_assert_int_eq(pcpc_domain_report_fd(domain, format, ends[1]), -EPIPE);
		ck_assert_int_eq(errno, 12345);
		close(ends[1]);
		/* nobody reads: it fills up */
		ck_assert_int_eq(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
		(void)fcntl(ends[1], F_SETPIPE_SZ, 4096);
		do
			r = pcpc_domain_report_fd(domain, format, ends[1]);
		while (r == 0);
		ck_assert_int_eq(r, -EAGAIN);
		close(ends[0]);
		close(ends[1]);
	}
	assert_no_references();
	fd = 1;
	ck_assert_int_eq(pcpc_write_fd("", 0, &fd), 0);
	ck_assert_int_eq(pcpc_write_fd("x", 1, NULL), -EINVAL);
}
END_TEST

struct reader {
	int fd;
	struct text text;
};

/* Slowly, and few bytes at a time, so that writes are partial. */
static void *read_all(void *context)
{
	struct reader *reader = context;
	char piece[97];
	ssize_t length;

	while ((length = read(reader->fd, piece, sizeof(piece))) != 0) {
		if (length > 0)
			(void)collect(piece, (size_t)length, &reader->text);
		sched_yield();
	}
	return NULL;
}

static void nothing(int number)
{
	(void)number;
}

static _Atomic bool storm;

static void *interrupt(void *context)
{
	const pthread_t *whom = context;

	while (atomic_load(&storm)) {
		pthread_kill(*whom, SIGUSR1);
		usleep(50);
	}
	return NULL;
}

/* A reader of a small pipe, and a handler without SA_RESTART that interrupts this thread. */
struct stormy {
	struct reader reader;
	pthread_t thread, interrupter, self;
	int end;
};

static void stormy_begin(struct stormy *stormy)
{
	const struct sigaction action = { .sa_handler = nothing };
	int ends[2];

	sigaction(SIGUSR1, &action, NULL);
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	(void)fcntl(ends[1], F_SETPIPE_SZ, 4096);
	*stormy = (struct stormy){ .reader.fd = ends[0], .self = pthread_self(), .end = ends[1] };
	atomic_store(&storm, true);
	pthread_create(&stormy->thread, NULL, read_all, &stormy->reader);
	pthread_create(&stormy->interrupter, NULL, interrupt, &stormy->self);
}

static char *stormy_end(struct stormy *stormy)
{
	atomic_store(&storm, false);
	pthread_join(stormy->interrupter, NULL);
	close(stormy->end);
	pthread_join(stormy->thread, NULL);
	close(stormy->reader.fd);
	return stormy->reader.text.data;
}

/* "partial writes and EINTR of fds handled": each byte arrives once. */
START_TEST(interrupted_writes_are_continued)
{
	enum pcpc_format format;
	struct stormy stormy;
	char *expected, *text;

	if (!open_bushy(_i))
		return;
	for (format = PCPC_FORMAT_TEXT; format <= PCPC_FORMAT_PROMETHEUS; format++) {
		expected = report_of(format, NULL);
		stormy_begin(&stormy);
		ck_assert_int_eq(pcpc_domain_report_fd(domain, format, stormy.end), 0);
		text = stormy_end(&stormy);
		ck_assert_str_eq(text, expected);
		free(text);
		free(expected);
	}
}
END_TEST

#define MUCH 200000u

/* A pipe takes pieces of a report whole or not at all; more than 4,096 bytes it takes in parts. */
START_TEST(partial_writes_are_continued)
{
	char *much = calloc(1, MUCH + 1), *text;
	struct stormy stormy;
	unsigned int i;
	int ends[2];

	for (i = 0; i < MUCH; i++)
		much[i] = (char)(1 + i % 251);
	stormy_begin(&stormy);
	ck_assert_int_eq(pcpc_write_fd(much, MUCH, &stormy.end), 0);
	text = stormy_end(&stormy);
	ck_assert_str_eq(text, much);
	free(text);
	/* nobody reads the rest */
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	ck_assert_int_eq(pcpc_write_fd(much, MUCH, &ends[1]), -EAGAIN);
	ck_assert_int_gt(read(ends[0], much, MUCH), 0);
	close(ends[0]);
	close(ends[1]);
	free(much);
}
END_TEST

/* "from where it stands": a file is appended to, not begun again. */
START_TEST(pcpc_write_fd_goes_with_limits)
{
	const struct pcpc_report_config config = { sizeof(config), NULL, 1, 0 };
	int fd = memfd_create("report", MFD_CLOEXEC);
	char text[4096] = { 0 }, *expected;
	size_t length;

	if (!open_bushy(_i))
		return;
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(
		pcpc_domain_report_config(domain, PCPC_FORMAT_JSON, &config, pcpc_write_fd, &fd),
		0);
	ck_assert_int_eq(
		pcpc_domain_report_config(domain, PCPC_FORMAT_JSON, &config, pcpc_write_fd, &fd),
		0);
	expected = report_of(PCPC_FORMAT_JSON, &config);
	length = strlen(expected);
	ck_assert_int_eq(pread(fd, text, sizeof(text) - 1, 0), (ssize_t)(2 * length));
	ck_assert_int_eq(memcmp(text, expected, length), 0);
	ck_assert_int_eq(memcmp(text + length, expected, length), 0);
	free(expected);
	close(fd);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("observe fd");
	TCase *tests = unit_case(suite, "fd");

	tcase_add_checked_fixture(tests, NULL, close_domain);
	by_each_engine(tests, errors_of_a_descriptor_are_returned);
	by_each_engine(tests, interrupted_writes_are_continued);
	tcase_add_test(tests, partial_writes_are_continued);
	by_each_engine(tests, pcpc_write_fd_goes_with_limits);
	return unit_run(suite);
}
