// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * server_main.c - a cache for many tenants that speaks the protocol of Redis. Each tenant has a
 * limit of its own; at it, commands are refused or its oldest keys go, and nobody else is harmed.
 *
 *	cache [--port=N] [--http-port=N] [--workers=N] [--max=BYTES] [--accounting=WAY]
 *	      [--config=FILE] [--tenant=NAME[:PASSWORD][,max=BYTES][,high=BYTES][,connections=BYTES]
 *	      [,policy=evict|refuse]]...
 *
 * In a file each line is one of these, without the dashes, or begins with # and is a comment. On
 * loopback only.
 * Ends with SIGTERM or SIGINT: status 0 if every byte that was charged has come back.
 */
#define _GNU_SOURCE
#include "server.h"

#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

static bool read_count(const char *text, unsigned int most, unsigned int *ret_count)
{
	char *end;
	unsigned long count = strtoul(text, &end, 10);

	if (end == text || *end || count < 1 || count > most)
		return false;
	*ret_count = (unsigned int)count;
	return true;
}

static bool read_file(const char *path);

static bool read_setting(const char *name, const char *value)
{
	if (!strcmp(name, "port"))
		return read_count(value, 65535, &settings.port);
	if (!strcmp(name, "http-port"))
		return read_count(value, 65535, &settings.http_port);
	if (!strcmp(name, "workers"))
		return read_count(value, MAX_WORKERS, &settings.nr_workers);
	if (!strcmp(name, "max"))
		return parse_size(value, &settings.max);
	if (!strcmp(name, "accounting"))
		return accounts_choose(value);
	if (!strcmp(name, "tenant"))
		return tenant_add(value);
	return !strcmp(name, "config") && read_file(value);
}

static bool read_line(char *line)
{
	char *value;

	line[strcspn(line, "\n")] = '\0';
	line += strspn(line, " \t");
	if (!*line || *line == '#')
		return true;
	value = strpbrk(line, " \t=");
	if (!value)
		return false;
	*value++ = '\0';
	value += strspn(value, " \t=");
	return !value[strcspn(value, " \t")] && strcmp(line, "config") && read_setting(line, value);
}

static bool read_file(const char *path)
{
	FILE *file = fopen(path, "r");
	char line[1024];
	unsigned int nr = 0;
	bool sound = true;

	if (!file) {
		fprintf(stderr, "cache: %s: %s\n", path, strerror(errno));
		return false;
	}
	while (sound && fgets(line, sizeof(line), file)) {
		nr++;
		sound = (strchr(line, '\n') || feof(file)) && read_line(line);
		if (!sound)
			fprintf(stderr, "cache: %s:%u: cannot make sense of this\n", path, nr);
	}
	fclose(file);
	return sound;
}

static bool read_options(int argc, char **argv)
{
	static const struct option options[] = {
		{ "port", required_argument, NULL, 0 },
		{ "http-port", required_argument, NULL, 0 },
		{ "workers", required_argument, NULL, 0 },
		{ "max", required_argument, NULL, 0 },
		{ "accounting", required_argument, NULL, 0 },
		{ "config", required_argument, NULL, 0 },
		{ "tenant", required_argument, NULL, 0 },
		{ NULL, 0, NULL, 0 },
	};
	int which, c;

	/* Whose connections are before they say who they are. */
	if (!tenant_add("nobody,connections=4m"))
		return false;
	while ((c = getopt_long(argc, argv, "", options, &which)) == 0)
		if (!read_setting(options[which].name, optarg)) {
			fprintf(stderr, "cache: --%s=%s: cannot make sense of this\n",
				options[which].name, optarg);
			return false;
		}
	if (c != -1 || optind != argc) {
		fprintf(stderr,
			"usage: cache [--port=N] [--http-port=N] [--workers=N] [--max=BYTES]\n"
			"       [--accounting=none|pcpcharge|atomic|locked] [--config=FILE]\n"
			"       [--tenant=NAME[:PASSWORD][,max=BYTES][,high=BYTES]"
			"[,connections=BYTES]\n       [,policy=evict|refuse]]...\n");
		return false;
	}
	return true;
}

static int listen_on(unsigned int port)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons((uint16_t)port),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -1;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 1024) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

#define OWN_DESCRIPTORS 64 /* that are not connections, nor of a worker */

/* As many descriptors as there may be, and a share of them for each tenant, so that none can take
 * those of the others. */
static void share_descriptors(void)
{
	struct rlimit limit = { 1024, 1024 };
	rlim_t own;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
		(void)getrlimit(RLIMIT_NOFILE, &limit);
	}
	own = OWN_DESCRIPTORS + 2 * settings.nr_workers;
	settings.connections_each =
		(limit.rlim_cur > own ? limit.rlim_cur - own : 1) / settings.nr_tenants;
}

#define TIDY_MS 50
#define ACCEPT_AT_ONCE 64
/* Bytes that the kernel keeps for a client who does not read; charged to nobody. */
#define SEND_BUFFER 131072

static void accept_some(int listener)
{
	const int on = 1, size = SEND_BUFFER;
	int fd, nr;

	for (nr = 0; nr < ACCEPT_AT_ONCE; nr++) {
		fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM))
			(void)poll(NULL, 0, TIDY_MS); /* it would be ready again at once */
		if (fd < 0)
			return;
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
		workers_take(fd);
	}
}

/* Until a signal says that it is over. */
static void run(int listener, int signals)
{
	struct pollfd ready[2] = { { .fd = listener, .events = POLLIN },
				   { .fd = signals, .events = POLLIN } };
	int64_t tidied = store_now(), now;

	while (!(ready[1].revents & POLLIN)) {
		if (poll(ready, 2, TIDY_MS) < 0 && errno != EINTR)
			return;
		if (ready[0].revents & POLLIN)
			accept_some(listener);
		now = store_now();
		if (now - tidied >= TIDY_MS) {
			store_tidy_all();
			tidied = now;
		}
	}
}

static int fail(const char *what)
{
	fprintf(stderr, "cache: %s: %s\n", what, strerror(errno));
	return 1;
}

int main(int argc, char **argv)
{
	int listener, signals;
	sigset_t ending;
	bool empty;

	if (!read_options(argc, argv))
		return 2;
	share_descriptors();
	/* Blocked in all threads; SIGPIPE is of no use to a server. */
	sigemptyset(&ending);
	sigaddset(&ending, SIGTERM);
	sigaddset(&ending, SIGINT);
	(void)pthread_sigmask(SIG_BLOCK, &ending, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
	signals = signalfd(-1, &ending, SFD_CLOEXEC);
	if (signals < 0 || !store_open() || !tenant_make_accounts())
		return fail("cannot start");
	listener = listen_on(settings.port);
	if (listener < 0)
		return fail("cannot listen");
	if (!workers_start() || !http_start())
		return fail("cannot start threads");
	printf("cache: port %u, status on http://127.0.0.1:%u/, accounting: %s\n", settings.port,
	       settings.http_port, accounts->name);
	fflush(stdout);
	run(listener, signals);
	close(listener);
	http_stop();
	workers_stop();
	store_close();
	empty = accounts->end();
	if (!empty)
		fprintf(stderr, "cache: some bytes have not come back\n");
	return empty ? 0 : 1;
}
