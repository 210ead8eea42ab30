// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * command.c - which commands there are, and those that are not about keys.
 */
#define _GNU_SOURCE
#include "server.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool argument_is(const struct bytes *argument, const char *word)
{
	return argument->length == strlen(word) &&
	       !strncasecmp(argument->at, word, argument->length);
}

/* The whole of it, as it would be written: no blanks, no plus, no leading zeros. */
bool argument_number(const struct bytes *argument, int64_t *ret_number)
{
	char text[24], same[24];
	int64_t number;

	if (!argument->length || argument->length >= sizeof(text))
		return false;
	memcpy(text, argument->at, argument->length);
	text[argument->length] = '\0';
	number = strtoll(text, NULL, 10);
	if ((size_t)snprintf(same, sizeof(same), "%" PRId64, number) != argument->length ||
	    memcmp(same, text, argument->length))
		return false;
	*ret_number = number;
	return true;
}

static void to_text(const struct bytes *argument, char *text, size_t size)
{
	size_t length = argument->length < size ? argument->length : size - 1;

	memcpy(text, argument->at, length);
	text[length] = '\0';
}

/* -- connections -- */

static void command_ping(struct request *request)
{
	if (request->nr_arguments > 1)
		reply_bulk(&request->connection->out, request->argument[1]);
	else
		reply_status(&request->connection->out, "PONG");
}

static void command_echo(struct request *request)
{
	reply_bulk(&request->connection->out, request->argument[1]);
}

static void enter(struct request *request, struct tenant *tenant)
{
	struct buffer *out = &request->connection->out;

	if (!tenant)
		reply_error(out, "WRONGPASS invalid username-password pair or user is disabled.");
	else if (!connection_enter_tenant(request->connection, tenant))
		reply_error(out, "ERR max number of clients of this tenant reached, or their "
				 "buffers are full");
	else
		reply_status(out, "OK");
}

static void command_auth(struct request *request)
{
	char name[64], password[80];

	if (request->nr_arguments == 2) {
		to_text(&request->argument[1], password, sizeof(password));
		enter(request, tenant_by_password(NULL, password));
		return;
	}
	to_text(&request->argument[1], name, sizeof(name));
	to_text(&request->argument[2], password, sizeof(password));
	enter(request, tenant_by_password(name, password));
}

static void command_hello(struct request *request)
{
	struct buffer *out = &request->connection->out;

	if (request->nr_arguments > 1 && !argument_is(&request->argument[1], "2")) {
		reply_error(out, "NOPROTO unsupported protocol version");
		return;
	}
	reply_array(out, 6);
	reply_text(out, "server");
	reply_text(out, "pcpcharge-cache");
	reply_text(out, "proto");
	reply_number(out, 2);
	reply_text(out, "id");
	reply_number(out, (int64_t)request->connection->id);
}

static void command_select(struct request *request)
{
	struct connection *connection = request->connection;
	int64_t db;

	if (!argument_number(&request->argument[1], &db)) {
		reply_error(&connection->out, "ERR value is not an integer or out of range");
	} else if (db < 0 || db >= NR_DBS) {
		reply_error(&connection->out, "ERR DB index is out of range");
	} else {
		connection->db = (unsigned int)db;
		reply_status(&connection->out, "OK");
	}
}

static void command_quit(struct request *request)
{
	reply_status(&request->connection->out, "OK");
	request->connection->closing = true;
}

static void command_client(struct request *request)
{
	struct connection *connection = request->connection;
	const struct bytes *word = &request->argument[1];

	if (argument_is(word, "id")) {
		reply_number(&connection->out, (int64_t)connection->id);
	} else if (argument_is(word, "getname")) {
		if (*connection->name)
			reply_text(&connection->out, connection->name);
		else
			reply_null(&connection->out);
	} else if (argument_is(word, "setname") && request->nr_arguments == 3) {
		to_text(&request->argument[2], connection->name, sizeof(connection->name));
		reply_status(&connection->out, "OK");
	} else if (argument_is(word, "setinfo") && request->nr_arguments == 4) {
		reply_status(&connection->out, "OK");
	} else {
		reply_error(&connection->out, "ERR unknown subcommand or wrong number of arguments"
					      " for 'client'");
	}
}

/* -- the server -- */

static void info_of(FILE *file, struct tenant *tenant)
{
	struct account_figures figures, connections;
	uint64_t keys = 0;
	unsigned int db;

	accounts->figures(tenant->account, &figures);
	accounts->figures(tenant->connections, &connections);
	for (db = 0; db < NR_DBS; db++)
		keys += atomic_load(&tenant->nr_keys[db]);
	fprintf(file,
		"# Memory\r\nused_memory:%" PRIu64 "\r\nused_memory_connections:%" PRIu64
		"\r\nused_memory_peak:%" PRIu64 "\r\nmaxmemory:%" PRIu64
		"\r\nmaxmemory_policy:%s\r\n",
		figures.usage, connections.usage, figures.peak, tenant->max,
		tenant->evicts ? "evict-oldest" : "noeviction");
	fprintf(file,
		"# Stats\r\nkeys:%" PRIu64 "\r\nevicted_keys:%" PRIu64 "\r\nexpired_keys:%" PRIu64
		"\r\nrefused_commands:%" PRIu64 "\r\nslowed:%" PRIu64
		"\r\nconnected_clients:%" PRIu64 "\r\n",
		keys, atomic_load(&tenant->evicted), atomic_load(&tenant->expired),
		atomic_load(&tenant->refused), atomic_load(&tenant->slowed),
		atomic_load(&tenant->nr_connections));
}

/* Of the client's own tenant, and of nobody else. */
static void command_info(struct request *request)
{
	struct connection *connection = request->connection;
	char *text = NULL;
	size_t length = 0;
	FILE *file = open_memstream(&text, &length);

	if (!file) {
		reply_error(&connection->out, "ERR out of memory");
		return;
	}
	fprintf(file, "# Server\r\nserver_name:pcpcharge-cache\r\naccounting:%s\r\ntenant:%s\r\n",
		accounts->name, connection->tenant->name);
	info_of(file, connection->tenant);
	fclose(file);
	reply_bulk(&connection->out, (struct bytes){ text, length });
	free(text);
}

/* Some names that clients ask for. */
static void command_config(struct request *request)
{
	struct connection *connection = request->connection;
	struct buffer *out = &connection->out;
	char number[24];

	if (!argument_is(&request->argument[1], "get") || request->nr_arguments != 3) {
		reply_error(out,
			    "ERR unknown subcommand or wrong number of arguments for 'config'");
		return;
	}
	if (argument_is(&request->argument[2], "maxmemory")) {
		snprintf(number, sizeof(number), "%" PRIu64, connection->tenant->max);
	} else if (argument_is(&request->argument[2], "databases")) {
		snprintf(number, sizeof(number), "%d", NR_DBS);
	} else if (argument_is(&request->argument[2], "save")) {
		number[0] = '\0';
	} else if (argument_is(&request->argument[2], "appendonly")) {
		strcpy(number, "no");
	} else {
		reply_array(out, 0);
		return;
	}
	reply_array(out, 2);
	reply_bulk(out, request->argument[2]);
	reply_text(out, number);
}

static command_fn command_command;

/* -- all of them -- */

enum { OPEN = 1 }; /* without a tenant too */

static const struct command {
	const char *name;
	command_fn *function;
	size_t least, most; /* arguments, with the name */
	unsigned int flags;
} commands[] = {
	{ "get", command_get, 2, 2, 0 },
	{ "set", command_set, 3, 16, 0 },
	{ "ping", command_ping, 1, 2, OPEN },
	{ "mget", command_mget, 2, MAX_ARGUMENTS, 0 },
	{ "mset", command_mset, 3, MAX_ARGUMENTS, 0 },
	{ "del", command_del, 2, MAX_ARGUMENTS, 0 },
	{ "exists", command_exists, 2, MAX_ARGUMENTS, 0 },
	{ "incr", command_incr, 2, 2, 0 },
	{ "decr", command_decr, 2, 2, 0 },
	{ "incrby", command_incrby, 3, 3, 0 },
	{ "expire", command_expire, 3, 3, 0 },
	{ "pexpire", command_pexpire, 3, 3, 0 },
	{ "ttl", command_ttl, 2, 2, 0 },
	{ "pttl", command_pttl, 2, 2, 0 },
	{ "dbsize", command_dbsize, 1, 1, 0 },
	{ "flushdb", command_flushdb, 1, 2, 0 },
	{ "select", command_select, 2, 2, 0 },
	{ "echo", command_echo, 2, 2, 0 },
	{ "auth", command_auth, 2, 3, OPEN },
	{ "hello", command_hello, 1, 8, OPEN },
	{ "info", command_info, 1, 2, 0 },
	{ "config", command_config, 2, 8, 0 },
	{ "client", command_client, 2, 8, OPEN },
	{ "command", command_command, 1, 64, OPEN },
	{ "quit", command_quit, 1, 8, OPEN },
};

#define NR_COMMANDS (sizeof(commands) / sizeof(commands[0]))

/* COMMAND lists their names, COMMAND COUNT says how many there are, anything else is nothing. */
static void command_command(struct request *request)
{
	struct buffer *out = &request->connection->out;
	size_t i;

	if (request->nr_arguments > 1 && argument_is(&request->argument[1], "count")) {
		reply_number(out, NR_COMMANDS);
		return;
	}
	if (request->nr_arguments > 1) {
		reply_array(out, 0);
		return;
	}
	reply_array(out, NR_COMMANDS);
	for (i = 0; i < NR_COMMANDS; i++)
		reply_text(out, commands[i].name);
}

#define TOLD                                                                                \
	128 /* bytes of a wrong command's name and of its arguments that the client is told \
	     */

/* As Redis says it, to the blank at the end. */
static void unknown(struct request *request)
{
	char name[TOLD + 1], text[2 * TOLD] = "";
	size_t i, length = 0;
	int room;

	to_text(&request->argument[0], name, sizeof(name));
	for (i = 1; i < request->nr_arguments && length < TOLD; i++) {
		char word[TOLD + 1];

		room = (int)(TOLD - length);
		to_text(&request->argument[i], word, sizeof(word));
		length += (size_t)snprintf(text + length, sizeof(text) - length, "'%.*s' ", room,
					   word);
	}
	reply_error(&request->connection->out,
		    "ERR unknown command '%s', with args beginning with: %s", name, text);
}

void command_run(struct request *request)
{
	struct connection *connection = request->connection;
	const struct bytes *name = &request->argument[0];
	const struct command *command = commands;

	while (command < commands + NR_COMMANDS && !argument_is(name, command->name))
		command++;
	atomic_fetch_add_explicit(&connection->tenant->commands, 1, memory_order_relaxed);
	if (command == commands + NR_COMMANDS)
		unknown(request);
	else if (request->nr_arguments < command->least || request->nr_arguments > command->most)
		reply_error(&connection->out, "ERR wrong number of arguments for '%s' command",
			    command->name);
	else if (!connection->authorized && !(command->flags & OPEN))
		reply_error(&connection->out, "NOAUTH Authentication required.");
	else
		command->function(request);
}
