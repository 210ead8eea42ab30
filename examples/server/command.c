// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * command.c - which commands there are, and those that are not about keys.
 */
#define _GNU_SOURCE
#include "server.h"

#include <fnmatch.h>
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

/* False: it is too long, or no text. */
static bool to_text(const struct bytes *argument, char *text, size_t size)
{
	if (argument->length >= size || memchr(argument->at, '\0', argument->length))
		return false;
	memcpy(text, argument->at, argument->length);
	text[argument->length] = '\0';
	return true;
}

/* How much of it a client is told, at most room. */
static int told(const struct bytes *argument, size_t room)
{
	return (int)(argument->length < room ? argument->length : room);
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

/* name: NULL where only a password is given. False: it was told why not. */
static bool authenticate(struct connection *connection, const struct bytes *name,
			 const struct bytes *password)
{
	char name_text[64] = "", text[80];
	struct tenant *tenant = NULL;

	if ((!name || to_text(name, name_text, sizeof(name_text))) &&
	    to_text(password, text, sizeof(text)))
		tenant = tenant_by_password(name ? name_text : NULL, text);
	if (tenant && connection_enter_tenant(connection, tenant))
		return true;
	reply_error(&connection->out, "%s",
		    tenant ? "ERR max number of clients of this tenant reached, or their buffers "
			     "are full"
			   : "WRONGPASS invalid username-password pair or user is disabled.");
	return false;
}

static void command_auth(struct request *request)
{
	const struct bytes *argument = request->argument;
	bool named = request->nr_arguments == 3;

	if (authenticate(request->connection, named ? &argument[1] : NULL,
			 &argument[named ? 2 : 1]))
		reply_status(&request->connection->out, "OK");
}

/* What can be written in a list of clients. False: it was told why not. */
static bool set_name(struct connection *connection, const struct bytes *name)
{
	size_t i;

	for (i = 0; i < name->length && name->at[i] > ' ' && name->at[i] <= '~'; i++)
		;
	if (i < name->length || !to_text(name, connection->name, sizeof(connection->name))) {
		reply_error(&connection->out, "ERR Client names cannot contain spaces, newlines or "
					      "special characters.");
		return false;
	}
	return true;
}

/* HELLO 2 AUTH name password SETNAME name: who it is, and what it is called. False: it was
 * answered.
 */
static bool hello_options(struct request *request)
{
	struct connection *connection = request->connection;
	const struct bytes *word = request->argument + 2, *end;

	for (end = request->argument + request->nr_arguments; word < end;) {
		if (argument_is(word, "auth") && end - word >= 3) {
			if (!authenticate(connection, &word[1], &word[2]))
				return false;
			word += 3;
		} else if (argument_is(word, "setname") && end - word >= 2) {
			if (!set_name(connection, &word[1]))
				return false;
			word += 2;
		} else {
			reply_error(&connection->out, "ERR Syntax error in HELLO option '%.*s'",
				    told(word, 64), word->at);
			return false;
		}
	}
	return true;
}

static void command_hello(struct request *request)
{
	struct connection *connection = request->connection;
	struct buffer *out = &connection->out;

	if (request->nr_arguments > 1 && !argument_is(&request->argument[1], "2")) {
		reply_error(out, "NOPROTO unsupported protocol version");
		return;
	}
	if (request->nr_arguments > 2 && !hello_options(request))
		return;
	if (!connection->authorized) {
		reply_error(out, "NOAUTH HELLO must be called with the client already "
				 "authenticated, otherwise the HELLO <proto> AUTH <user> <pass> "
				 "option can be used to authenticate the client and select the "
				 "RESP protocol version at the same time");
		return;
	}
	reply_array(out, 6);
	reply_text(out, "server");
	reply_text(out, "pcpcharge-cache");
	reply_text(out, "proto");
	reply_number(out, 2);
	reply_text(out, "id");
	reply_number(out, (int64_t)connection->id);
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
		if (set_name(connection, &request->argument[2]))
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
	connection->yields = true;
}

enum { MAXMEMORY, DATABASES, SAVE, APPENDONLY, NR_CONFIG };

static const char *const config_names[NR_CONFIG] = { [MAXMEMORY] = "maxmemory",
						     [DATABASES] = "databases",
						     [SAVE] = "save",
						     [APPENDONLY] = "appendonly" };

static void reply_config(struct buffer *out, const struct tenant *tenant, unsigned int which)
{
	char value[24] = "";

	if (which == MAXMEMORY)
		snprintf(value, sizeof(value), "%" PRIu64, tenant->max);
	else if (which == DATABASES)
		snprintf(value, sizeof(value), "%d", NR_DBS);
	else if (which == APPENDONLY)
		strcpy(value, "no");
	reply_text(out, config_names[which]);
	reply_text(out, value);
}

/* What clients ask for; the name may have * and the like in it. */
static void command_config(struct request *request)
{
	struct connection *connection = request->connection;
	struct buffer *out = &connection->out;
	unsigned int i, nr = 0;
	char pattern[64];

	if (!argument_is(&request->argument[1], "get") || request->nr_arguments != 3 ||
	    !to_text(&request->argument[2], pattern, sizeof(pattern))) {
		reply_error(out,
			    "ERR unknown subcommand or wrong number of arguments for 'config'");
		return;
	}
	for (i = 0; i < NR_CONFIG; i++)
		nr += !fnmatch(pattern, config_names[i], FNM_CASEFOLD);
	reply_array(out, 2 * nr);
	for (i = 0; i < NR_CONFIG; i++)
		if (!fnmatch(pattern, config_names[i], FNM_CASEFOLD))
			reply_config(out, connection->tenant, i);
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

/* Bytes of a wrong command's name, and of its arguments, that the client is told. */
#define TOLD 128

/* As Redis says it, to the blank at the end. */
static void unknown(struct request *request)
{
	const struct bytes *word = request->argument;
	char text[2 * TOLD] = "";
	size_t i, length = 0;

	for (i = 1; i < request->nr_arguments && length < TOLD; i++)
		length += (size_t)snprintf(text + length, sizeof(text) - length, "'%.*s' ",
					   told(&word[i], TOLD - length), word[i].at);
	reply_error(&request->connection->out,
		    "ERR unknown command '%.*s', with args beginning with: %s", told(word, TOLD),
		    word->at, text);
}

/* A page in a browser can send requests of HTTP here, with commands of its choice in them. */
static bool is_http(const struct bytes *name)
{
	return argument_is(name, "post") || argument_is(name, "host:");
}

void command_run(struct request *request)
{
	struct connection *connection = request->connection;
	const struct bytes *name = &request->argument[0];
	const struct command *command = commands;

	while (command < commands + NR_COMMANDS && !argument_is(name, command->name))
		command++;
	atomic_fetch_add_explicit(&connection->tenant->commands, 1, memory_order_relaxed);
	if (is_http(name)) {
		connection->closing = true;
		return;
	}
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
