// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * http.c - metrics and the status page, over HTTP on loopback: one request at a time, by one
 * thread, which waits for no client longer than a second.
 */
#define _GNU_SOURCE
#include "server.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int listener = -1;
static pthread_t thread;

static void put_json_text(FILE *file, const char *text)
{
	fputc('"', file);
	for (; *text; text++)
		if (*text == '"' || *text == '\\')
			fprintf(file, "\\%c", *text);
		else if ((unsigned char)*text < 0x20)
			fprintf(file, "\\u%04x", *text);
		else
			fputc(*text, file);
	fputc('"', file);
}

/* What the status page draws. */
static void put_tenant(FILE *file, struct tenant *tenant)
{
	struct account_figures all, connections;
	uint64_t keys = 0;
	unsigned int db;

	accounts->figures(tenant->account, &all);
	accounts->figures(tenant->connections, &connections);
	for (db = 0; db < NR_DBS; db++)
		keys += atomic_load(&tenant->nr_keys[db]);
	fprintf(file, "{\"name\":");
	put_json_text(file, tenant->name);
	fprintf(file,
		",\"usage\":%" PRIu64 ",\"connections\":%" PRIu64 ",\"peak\":%" PRIu64
		",\"max\":%" PRIu64 ",\"keys_max\":%" PRIu64 ",\"high\":%" PRIu64
		",\"keys\":%" PRIu64 ",\"clients\":%" PRIu64,
		all.usage, connections.usage, all.peak, tenant->max, tenant->keys_max, tenant->high,
		keys, atomic_load(&tenant->nr_connections));
	fprintf(file,
		",\"refused\":%" PRIu64 ",\"evicted\":%" PRIu64 ",\"slowed\":%" PRIu64
		",\"commands\":%" PRIu64 "}",
		atomic_load(&tenant->refused), atomic_load(&tenant->evicted),
		atomic_load(&tenant->slowed), atomic_load(&tenant->commands));
}

static void put_status(FILE *file)
{
	struct account_figures server;
	unsigned int i;

	accounts->figures(settings.server, &server);
	fprintf(file,
		"{\"accounting\":\"%s\",\"usage\":%" PRIu64 ",\"max\":%" PRIu64 ",\"tenants\":[",
		accounts->name, server.usage, settings.max);
	for (i = 0; i < settings.nr_tenants; i++) {
		if (i)
			fputc(',', file);
		put_tenant(file, settings.tenant[i]);
	}
	fprintf(file, "]}\n");
}

static void put_counter(FILE *file, const char *name, const char *help, size_t offset)
{
	unsigned int i;

	fprintf(file, "# HELP cache_%s %s\n# TYPE cache_%s counter\n", name, help, name);
	for (i = 0; i < settings.nr_tenants; i++) {
		fprintf(file, "cache_%s{tenant=", name);
		put_json_text(file, settings.tenant[i]->name);
		fprintf(file, "} %" PRIu64 "\n",
			*(_Atomic uint64_t *)((char *)settings.tenant[i] + offset));
	}
}

/* The library's own report, and what the daemon counts. */
static void put_metrics(FILE *file)
{
	(void)accounts->report("prometheus", file);
	put_counter(file, "commands_total", "Commands of a tenant's connections.",
		    offsetof(struct tenant, commands));
	put_counter(file, "refused_total", "Commands that a limit refused.",
		    offsetof(struct tenant, refused));
	put_counter(file, "evicted_total", "Keys that made room for others.",
		    offsetof(struct tenant, evicted));
	put_counter(file, "expired_total", "Keys whose time was over.",
		    offsetof(struct tenant, expired));
	put_counter(file, "slowed_total", "How often a connection had to wait above high.",
		    offsetof(struct tenant, slowed));
}

static bool answer(const char *path, FILE *file, const char **ret_type)
{
	*ret_type = "text/plain; charset=utf-8";
	if (!strcmp(path, "/")) {
		*ret_type = "text/html; charset=utf-8";
		fputs(status_page, file);
	} else if (!strcmp(path, "/status.json")) {
		*ret_type = "application/json";
		put_status(file);
	} else if (!strcmp(path, "/metrics")) {
		*ret_type = "text/plain; version=0.0.4; charset=utf-8";
		put_metrics(file);
	} else if (!strcmp(path, "/tree")) {
		if (!accounts->report("text", file))
			fprintf(file, "no report of %s\n", accounts->name);
	} else if (!strcmp(path, "/refusal")) {
		if (!accounts->report("refusal", file))
			fprintf(file, "nothing was refused\n");
	} else {
		return false;
	}
	return true;
}

#define PATIENCE_MS 1000 /* with who is slow to ask, and again with who is slow to read */

static void send_all(int fd, const char *text, size_t length)
{
	int64_t deadline = store_now() + PATIENCE_MS;
	ssize_t sent;

	while (length && store_now() < deadline &&
	       (sent = send(fd, text, length, MSG_NOSIGNAL)) > 0) {
		text += sent;
		length -= (size_t)sent;
	}
}

static void respond(int fd, const char *path)
{
	const char *type = "text/plain";
	char *body = NULL, head[256];
	size_t length = 0;
	FILE *file = open_memstream(&body, &length);
	bool found;

	if (!file)
		return;
	found = answer(path, file, &type);
	fclose(file);
	snprintf(head, sizeof(head),
		 "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
		 "Cache-Control: no-store\r\nConnection: close\r\n\r\n",
		 found ? "200 OK" : "404 Not Found", type, length);
	send_all(fd, head, strlen(head));
	send_all(fd, body, length);
	free(body);
}

/* The first line is all that counts; the rest is read until the blank one. */
static void serve(int fd)
{
	const struct timeval second = { 1, 0 };
	int64_t deadline = store_now() + PATIENCE_MS;
	char text[4096], path[256];
	size_t length = 0;
	ssize_t got;

	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof(second));
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &second, sizeof(second));
	text[0] = '\0';
	while (length < sizeof(text) - 1 && !strstr(text, "\r\n\r\n") && store_now() < deadline &&
	       (got = recv(fd, text + length, sizeof(text) - 1 - length, 0)) > 0) {
		length += (size_t)got;
		text[length] = '\0';
	}
	if (sscanf(text, "GET %255s HTTP/1.", path) == 1)
		respond(fd, path);
	close(fd);
}

static void *run(void *argument)
{
	int fd;

	(void)argument;
	/* Until http_stop() has shut it down; whoever went before it was accepted is no reason. */
	while ((fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0 || errno != EINVAL)
		if (fd >= 0)
			serve(fd);
	return NULL;
}

bool http_start(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons((uint16_t)settings.http_port),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int on = 1;

	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return listener >= 0 &&
	       setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
	       bind(listener, (struct sockaddr *)&address, sizeof(address)) == 0 &&
	       listen(listener, 16) == 0 && pthread_create(&thread, NULL, run, NULL) == 0;
}

void http_stop(void)
{
	/* Ends the accept. */
	(void)shutdown(listener, SHUT_RDWR);
	pthread_join(thread, NULL);
	close(listener);
}
