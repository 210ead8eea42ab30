// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * connection.c - one client: bytes in, commands, answers out.
 *
 * What a client can make the server keep is bounded, and charged to its tenant: requests by
 * MAX_REQUEST, answers by MAX_PENDING and one answer more, for no command is done while that much
 * waits to be sent.
 */
#define _GNU_SOURCE
#include "server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_AT_ONCE 16384
#define COST 512 /* bytes that a connection is charged beside its buffers */

/* One more connection of a tenant: what it costs, and a share of the descriptors. */
static bool enter(struct tenant *tenant)
{
	if (atomic_fetch_add(&tenant->nr_connections, 1) < settings.connections_each &&
	    accounts->charge(tenant->connections, COST))
		return true;
	atomic_fetch_sub(&tenant->nr_connections, 1);
	return false;
}

static void leave(struct tenant *tenant)
{
	accounts->uncharge(tenant->connections, COST);
	atomic_fetch_sub(&tenant->nr_connections, 1);
}

struct connection *connection_open(int fd, uint64_t id)
{
	struct connection *connection;

	if (!enter(settings.tenant[0]))
		return NULL;
	connection = calloc(1, sizeof(*connection));
	if (!connection) {
		leave(settings.tenant[0]);
		return NULL;
	}
	connection->fd = fd;
	connection->id = id;
	connection->since = store_now();
	connection->tenant = settings.tenant[0];
	connection->in.account = connection->out.account = connection->tenant->connections;
	return connection;
}

void connection_free(struct connection *connection)
{
	close(connection->fd);
	buffer_free(&connection->in);
	buffer_free(&connection->out);
	leave(connection->tenant);
	free(connection);
}

/* With what it keeps; false and nothing changed where the tenant's limits refuse that. */
bool connection_enter_tenant(struct connection *connection, struct tenant *tenant)
{
	struct tenant *before = connection->tenant;

	if (!enter(tenant))
		return false;
	if (!buffer_move(&connection->in, tenant->connections)) {
		leave(tenant);
		return false;
	}
	if (!buffer_move(&connection->out, tenant->connections)) {
		(void)buffer_move(&connection->in, before->connections);
		leave(tenant);
		return false;
	}
	leave(before);
	connection->tenant = tenant;
	connection->authorized = true;
	return true;
}

/* -- requests -- */

/* A request that is read piece by piece: where it is, and what of it is there. */
struct reader {
	const char *at, *end;
	const char *error; /* what is wrong with it */
};

/* A line without its end; false: it is not all there. */
static bool read_line(struct reader *reader, struct bytes *ret_line)
{
	const char *end = memchr(reader->at, '\n', (size_t)(reader->end - reader->at));

	if (!end) {
		if (reader->end - reader->at > MAX_INLINE)
			reader->error = "too big inline request";
		return false;
	}
	*ret_line = (struct bytes){ reader->at, (size_t)(end - reader->at) };
	if (ret_line->length && ret_line->at[ret_line->length - 1] == '\r')
		ret_line->length--;
	reader->at = end + 1;
	return true;
}

/* A length after one character. */
static bool read_length(struct reader *reader, char kind, int64_t most, int64_t *ret_length)
{
	struct bytes line;

	if (reader->at < reader->end && *reader->at != kind) {
		reader->error = "expected '$'";
		return false;
	}
	if (!read_line(reader, &line))
		return false;
	line.at++;
	line.length--;
	if (!argument_number(&line, ret_length) || *ret_length > most ||
	    (kind == '$' && *ret_length < 0)) {
		reader->error = kind == '$' ? "invalid bulk length" : "invalid multibulk length";
		return false;
	}
	return true;
}

static bool read_argument(struct reader *reader, struct bytes *ret_argument)
{
	int64_t length;

	if (!read_length(reader, '$', MAX_REQUEST, &length) ||
	    reader->end - reader->at < length + 2)
		return false;
	*ret_argument = (struct bytes){ reader->at, (size_t)length };
	reader->at += length + 2;
	return true;
}

/* True: the whole request is there, with its arguments in an array to be freed. */
static bool read_array(struct reader *reader, struct request *request)
{
	int64_t nr, i;

	if (!read_length(reader, '*', MAX_ARGUMENTS, &nr))
		return false;
	if (nr <= 0)
		return true;
	/* No more than can be there: an argument takes at least six bytes. */
	if (nr > (reader->end - reader->at) / 6 + 1)
		return false;
	request->argument = calloc((size_t)nr, sizeof(*request->argument));
	if (!request->argument) {
		reader->error = "out of memory";
		return false;
	}
	for (i = 0; i < nr; i++)
		if (!read_argument(reader, &request->argument[i]))
			return false;
	request->nr_arguments = (size_t)nr;
	return true;
}

#define MAX_WORDS 64

/* Words with blanks between them. */
static bool read_inline(struct reader *reader, struct request *request)
{
	const char *at, *end;
	struct bytes line;

	if (!read_line(reader, &line))
		return false;
	request->argument = calloc(MAX_WORDS, sizeof(*request->argument));
	at = line.at;
	end = line.at + line.length;
	while (request->argument && at < end && request->nr_arguments < MAX_WORDS) {
		const char *word = at;

		while (at < end && *at != ' ' && *at != '\t')
			at++;
		if (at > word)
			request->argument[request->nr_arguments++] =
				(struct bytes){ word, (size_t)(at - word) };
		while (at < end && (*at == ' ' || *at == '\t'))
			at++;
	}
	return true;
}

/* Does one request, if one is there. */
static bool do_request(struct connection *connection)
{
	struct request request = { .connection = connection };
	struct reader reader = { connection->in.at + connection->parsed,
				 connection->in.at + connection->in.length, NULL };
	bool whole;

	if (reader.at == reader.end)
		return false;
	whole = *reader.at == '*' ? read_array(&reader, &request) : read_inline(&reader, &request);
	if (whole) {
		connection->parsed = (size_t)(reader.at - connection->in.at);
		if (request.nr_arguments)
			command_run(&request);
	} else if (reader.error) {
		reply_error(&connection->out, "ERR Protocol error: %s", reader.error);
		connection->closing = true;
	}
	free(request.argument);
	return whole;
}

/* -- slowing down -- */

#define PAUSE_MS 50 /* between two commands of a tenant that is over high */

/* May the next command be done now? */
static bool may_go_on(struct connection *connection)
{
	struct tenant *tenant = connection->tenant;

	if (connection->resume_at) {
		if (store_now() < connection->resume_at)
			return false;
		connection->resume_at = 0;
		return true;
	}
	if (!tenant_is_slowed(tenant))
		return true;
	connection->resume_at = store_now() + PAUSE_MS;
	atomic_fetch_add(&tenant->slowed, 1);
	return false;
}

static void do_requests(struct connection *connection)
{
	while (!connection->closing && !connection->out.failed &&
	       connection->out.length < MAX_PENDING && connection->parsed < connection->in.length &&
	       may_go_on(connection) && do_request(connection))
		;
}

/* What is done leaves the buffer, and the buffer goes when it is empty. */
static void forget_parsed(struct connection *connection)
{
	struct buffer *in = &connection->in;

	in->length -= connection->parsed;
	if (in->length)
		memmove(in->at, in->at + connection->parsed, in->length);
	else
		buffer_free(in);
	connection->parsed = 0;
}

/* -- bytes -- */

/* True: something came. */
static bool receive(struct connection *connection)
{
	struct buffer *in = &connection->in;
	ssize_t length;

	if (connection->resume_at || in->length > MAX_REQUEST + MAX_INLINE ||
	    connection->out.length >= MAX_PENDING)
		return false;
	if (!buffer_reserve(in, READ_AT_ONCE)) {
		reply_error(&connection->out, "OOM connection buffers of this tenant are full");
		connection->closing = true;
		return false;
	}
	length = recv(connection->fd, in->at + in->length, in->size - in->length, 0);
	if (length > 0)
		in->length += (size_t)length;
	else if (length == 0 || (errno != EAGAIN && errno != EINTR))
		connection->closing = true;
	return length > 0;
}

static void transmit(struct connection *connection)
{
	struct buffer *out = &connection->out;
	ssize_t length;

	while (out->length) {
		length = send(connection->fd, out->at, out->length, MSG_NOSIGNAL);
		if (length < 0) {
			if (errno != EAGAIN && errno != EINTR) {
				out->length = 0;
				connection->closing = true;
			}
			break;
		}
		out->length -= (size_t)length;
		memmove(out->at, out->at + length, out->length);
	}
	if (!out->length)
		buffer_free(out);
}

bool connection_serve(struct connection *connection)
{
	bool came;

	do {
		came = receive(connection);
		do_requests(connection);
		if (connection->parsed)
			forget_parsed(connection);
		else if (!connection->in.length)
			buffer_free(&connection->in);
		if (connection->in.length > MAX_REQUEST + MAX_INLINE) {
			reply_error(&connection->out, "ERR Protocol error: too big request");
			connection->closing = true;
		}
		transmit(connection);
	} while (came && !connection->closing && !connection->out.failed);
	/* Answers that were refused memory cannot be left out of a stream of them. */
	return !connection->closing && !connection->out.failed;
}
