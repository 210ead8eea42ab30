// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * http.c - metrics and the status page, over HTTP on loopback, by one thread: it answers one
 * request at a time, and a client has a second to ask and another to read.
 */
#define _GNU_SOURCE
#include "server.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
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

static void send_answer(int fd, const char *status, const char *type, const char *body,
			size_t length, bool with_body)
{
	char head[256];

	snprintf(head, sizeof(head),
		 "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
		 "Cache-Control: no-store\r\nConnection: close\r\n\r\n",
		 status, type, length);
	send_all(fd, head, strlen(head));
	if (with_body)
		send_all(fd, body, length);
}

static void respond(int fd, const char *path, bool with_body)
{
	const char *type = "text/plain";
	char *body = NULL;
	size_t length = 0;
	FILE *file = open_memstream(&body, &length);
	bool found;

	if (!file)
		return;
	found = answer(path, file, &type);
	fclose(file);
	send_answer(fd, found ? "200 OK" : "404 Not Found", type, body, length, with_body);
	free(body);
}

/* Who asks for another host was led here by somebody else's name for this one. */
static bool is_for_us(const char *text)
{
	static const char *const names[] = { "127.0.0.1", "localhost", "[::1]" };
	const char *host = strcasestr(text, "\nHost:");
	size_t i, length;

	if (!host)
		return true;
	host += strlen("\nHost:");
	host += strspn(host, " \t");
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		length = strlen(names[i]);
		if (!strncasecmp(host, names[i], length) && strchr(":\r\n", host[length]))
			return true;
	}
	return false;
}

/* -- clients -- */

#define MAX_CLIENTS 32 /* at a time; the oldest gives way */

static struct client {
	int64_t deadline; /* 0: nobody */
	int fd;
	size_t length;
	char text[4096]; /* what it has said */
} clients[MAX_CLIENTS];

static void end_client(struct client *client)
{
	close(client->fd);
	client->deadline = 0;
}

static void serve(struct client *client)
{
	const char *text = client->text;
	char method[8], path[256];

	if (sscanf(text, "%7s %255s HTTP/1.", method, path) != 2 || !strstr(text, " HTTP/1."))
		send_answer(client->fd, "400 Bad Request", "text/plain", "", 0, false);
	else if (!is_for_us(text))
		send_answer(client->fd, "403 Forbidden", "text/plain", "", 0, false);
	else if (strcmp(method, "GET") && strcmp(method, "HEAD"))
		send_answer(client->fd, "405 Method Not Allowed", "text/plain", "", 0, false);
	else
		respond(client->fd, path, *method == 'G');
	end_client(client);
}

/* All that it has to say is there, or no more will come: it is served, or it ends. */
static void hear(struct client *client)
{
	size_t room = sizeof(client->text) - 1 - client->length;
	ssize_t got = recv(client->fd, client->text + client->length, room, MSG_DONTWAIT);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got > 0)
		client->length += (size_t)got;
	client->text[client->length] = '\0';
	if (strstr(client->text, "\r\n\r\n"))
		serve(client);
	else if (got <= 0 || (size_t)got == room)
		end_client(client);
}

static struct client *free_place(void)
{
	struct client *client, *oldest = clients;

	for (client = clients; client < clients + MAX_CLIENTS; client++)
		if (client->deadline < oldest->deadline)
			oldest = client;
	if (oldest->deadline)
		end_client(oldest);
	return oldest;
}

/* False: http_stop() has shut the listener down. */
static bool take_client(void)
{
	const struct timeval patience = { PATIENCE_MS / 1000, 0 };
	struct client *client;
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0)
		return errno != EINVAL;
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	client = free_place();
	client->fd = fd;
	client->length = 0;
	client->deadline = store_now() + PATIENCE_MS;
	return true;
}

/* Nobody waits for another who is slow to ask. */
static void *run(void *argument)
{
	struct pollfd ready[MAX_CLIENTS + 1];
	bool listening = true;
	unsigned int i;

	(void)argument;
	while (listening) {
		for (i = 0; i < MAX_CLIENTS; i++)
			ready[i] = (struct pollfd){ clients[i].deadline ? clients[i].fd : -1,
						    POLLIN, 0 };
		ready[MAX_CLIENTS] = (struct pollfd){ listener, POLLIN, 0 };
		if (poll(ready, MAX_CLIENTS + 1, PATIENCE_MS) < 0)
			continue;
		for (i = 0; i < MAX_CLIENTS; i++)
			if (ready[i].revents)
				hear(&clients[i]);
			else if (clients[i].deadline && store_now() > clients[i].deadline)
				end_client(&clients[i]);
		if (ready[MAX_CLIENTS].revents)
			listening = take_client();
	}
	for (i = 0; i < MAX_CLIENTS; i++)
		if (clients[i].deadline)
			end_client(&clients[i]);
	return NULL;
}

bool http_start(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons((uint16_t)settings.http_port),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int on = 1;

	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	return listener >= 0 &&
	       setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
	       bind(listener, (struct sockaddr *)&address, sizeof(address)) == 0 &&
	       listen(listener, 16) == 0 && pthread_create(&thread, NULL, run, NULL) == 0;
}

void http_stop(void)
{
	/* Ends the thread. */
	(void)shutdown(listener, SHUT_RDWR);
	pthread_join(thread, NULL);
	close(listener);
}
