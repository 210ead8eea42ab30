// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * connection.c - one client: bytes in, commands, answers out; in turns, so that nobody who has much
 * to say keeps others waiting.
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
#define READ_MOST 262144
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

	if (tenant == before && connection->authorized)
		return true;
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

/* -- slowing down -- */

#define PAUSE_MS 50	/* between two commands of a tenant that is over high */
#define LONGEST_MS 1000 /* that a connection waits, however many the tenant has */

/* When a slowed connection may go on: one after the other, so that many of them are not faster. */
static int64_t next_turn(struct tenant *tenant)
{
	int64_t now = store_now(), last = atomic_load(&tenant->last_turn), next;

	do {
		next = (last > now ? last : now) + PAUSE_MS;
		if (next > now + LONGEST_MS)
			return now + LONGEST_MS;
	} while (!atomic_compare_exchange_weak(&tenant->last_turn, &last, next));
	return next;
}

/* May the next command be done now? */
static bool may_go_on(struct connection *connection)
{
	struct tenant *tenant = connection->tenant;

	if (!tenant_is_slowed(tenant)) {
		connection->resume_at = 0;
		return true;
	}
	if (!connection->resume_at) {
		connection->resume_at = next_turn(tenant);
		atomic_fetch_add(&tenant->slowed, 1);
	}
	if (store_now() < connection->resume_at)
		return false;
	connection->resume_at = 0;
	return true;
}

#define TURN 64 /* commands, until others have theirs */

/* True: it was not for want of requests that it stopped. */
static bool do_requests(struct connection *connection)
{
	int done;

	connection->yields = false;
	for (done = 0; !connection->closing && !connection->out.failed; done++) {
		if (!request_is_there(connection))
			break;
		if (done == TURN || connection->yields ||
		    buffer_left(&connection->out) >= MAX_PENDING)
			return true;
		if (!may_go_on(connection))
			break;
		request_do(connection);
	}
	return false;
}

/* -- bytes -- */

/* Keys whose time is over do not keep a request out. */
static bool reserve(struct connection *connection)
{
	struct buffer *in = &connection->in;

	if (buffer_reserve(in, READ_AT_ONCE))
		return true;
	in->failed = false;
	return store_tidy(connection->tenant) && buffer_reserve(in, READ_AT_ONCE);
}

static void receive(struct connection *connection)
{
	struct buffer *in = &connection->in;
	size_t room;
	ssize_t length;

	if (!connection_reads(connection))
		return;
	if (!reserve(connection)) {
		reply_error(&connection->out, "OOM connection buffers of this tenant are full");
		connection->closing = true;
		return;
	}
	room = in->size - in->length;
	length = recv(connection->fd, in->at + in->length, room < READ_MOST ? room : READ_MOST, 0);
	if (length > 0)
		in->length += (size_t)length;
	else if (length == 0 || (errno != EAGAIN && errno != EINTR))
		connection->closing = true;
}

static void transmit(struct connection *connection)
{
	struct buffer *out = &connection->out;
	ssize_t length = 0;

	while (buffer_left(out) && length >= 0) {
		length = send(connection->fd, out->at + out->done, buffer_left(out), MSG_NOSIGNAL);
		if (length > 0)
			buffer_take(out, (size_t)length);
	}
	if (length < 0 && errno != EAGAIN && errno != EINTR)
		connection->gone = true;
}

bool connection_reads(const struct connection *connection)
{
	return !connection->resume_at && !connection->more && !connection->closing &&
	       buffer_left(&connection->out) < MAX_PENDING;
}

/* One turn: what came, some commands, what can be sent. */
bool connection_serve(struct connection *connection)
{
	receive(connection);
	connection->more = do_requests(connection);
	if (!buffer_left(&connection->in))
		buffer_free(&connection->in);
	transmit(connection);
	/* Answers that were refused memory cannot be left out of a stream of them. */
	if (connection->gone || connection->out.failed)
		return false;
	return !connection->closing || buffer_left(&connection->out);
}
