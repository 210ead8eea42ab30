// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * malloc_report.c - reports of the domain: at exit, and when a signal has asked for one.
 *
 * A report takes a mutex of the domain, so the handler of the signal only leaves a mark, which the
 * next call that charges or gives back acts on. A process that makes no such call has nothing new
 * to tell. There is no thread that waits for marks: a library below somebody else's program had
 * better start none.
 */
#define _GNU_SOURCE
#include "malloc_private.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static atomic_bool wanted;

/* Appends to a path. False: no room. */
static bool append(char *path, size_t *length, const char *text, size_t count)
{
	if (count >= MALLOC_PATH_MAX - *length)
		return false;
	memcpy(path + *length, text, count);
	*length += count;
	path[*length] = '\0';
	return true;
}

static bool append_pid(char *path, size_t *length)
{
	char digits[16], *first = digits + sizeof(digits);
	pid_t pid = getpid();

	for (; pid; pid /= 10)
		*--first = (char)('0' + pid % 10);
	return append(path, length, first, (size_t)(digits + sizeof(digits) - first));
}

/* The file's name, with %p replaced. ret_own: there was one. */
static bool expand(char *path, bool *ret_own)
{
	const char *from = malloc_settings.report, *mark;
	size_t length = 0;

	*ret_own = false;
	while ((mark = strstr(from, "%p"))) {
		if (!append(path, &length, from, (size_t)(mark - from)) ||
		    !append_pid(path, &length))
			return false;
		*ret_own = true;
		from = mark + 2;
	}
	return append(path, &length, from, strlen(from));
}

/* A file, or what takes everything at once. Waits for nobody; and a name with the process's id in
 * it is nobody's link. */
static int open_report(void)
{
	const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
	char path[MALLOC_PATH_MAX];
	struct stat stat;
	bool own;
	int fd;

	if (!expand(path, &own))
		return -1;
	fd = open(path, flags | (own ? O_TRUNC | O_NOFOLLOW : O_APPEND), 0666);
	if (fd >= 0 && (fstat(fd, &stat) < 0 || S_ISFIFO(stat.st_mode) || S_ISSOCK(stat.st_mode))) {
		close(fd);
		return -1;
	}
	return fd;
}

void malloc_report(void)
{
	int saved = errno, fd;

	if (!strcmp(malloc_settings.report, "stderr")) {
		(void)pcpc_domain_report_fd(malloc_state.domain, malloc_settings.format,
					    STDERR_FILENO);
	} else if (*malloc_settings.report) {
		fd = open_report();
		if (fd < 0 ||
		    pcpc_domain_report_fd(malloc_state.domain, malloc_settings.format, fd) < 0)
			malloc_complain(malloc_settings.report, "cannot write the report");
		if (fd >= 0)
			close(fd);
	}
	errno = saved;
}

static void leave_mark(int signal)
{
	(void)signal;
	atomic_store(&wanted, true);
	malloc_want_chores();
}

bool malloc_report_wanted(void)
{
	return atomic_exchange(&wanted, false);
}

void malloc_report_on(int signal)
{
	struct sigaction action = { .sa_handler = leave_mark, .sa_flags = SA_RESTART | SA_ONSTACK },
			 before;

	sigemptyset(&action.sa_mask);
	if (sigaction(signal, NULL, &before) < 0 || before.sa_handler != SIG_DFL ||
	    sigaction(signal, &action, NULL) < 0)
		malloc_complain("PCPC_MALLOC_SIGNAL", "cannot be handled, or is; left out");
}
