// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * command_keys.c - the commands that read and change keys.
 */
#include "server.h"

#include <string.h>

static struct place place_of(const struct request *request, size_t argument)
{
	return (struct place){ request->connection->tenant, request->connection->db,
			       request->argument[argument] };
}

static void full(struct request *request)
{
	reply_error(&request->connection->out,
		    "OOM command not allowed when used memory > 'maxmemory'.");
}

static void get_one(struct request *request, size_t argument)
{
	struct place place = place_of(request, argument);

	if (!store_get(&place, &request->connection->out))
		reply_null(&request->connection->out);
}

void command_get(struct request *request)
{
	get_one(request, 1);
}

void command_mget(struct request *request)
{
	size_t i;

	reply_array(&request->connection->out, request->nr_arguments - 1);
	for (i = 1; i < request->nr_arguments; i++)
		get_one(request, i);
}

/* What SET was asked for beside key and value. */
struct set_options {
	const struct bytes *time; /* in units of so many ms */
	int64_t unit;
	bool keeps_time;
	enum store_condition condition;
};

static bool read_time(struct request *request, size_t i, int64_t unit, struct set_options *options)
{
	if (i >= request->nr_arguments || options->time || options->keeps_time)
		return false;
	options->time = &request->argument[i];
	options->unit = unit;
	return true;
}

static bool read_option(struct request *request, size_t *i, struct set_options *options)
{
	const struct bytes *word = &request->argument[*i];

	if (argument_is(word, "nx") && options->condition != STORE_IF_PRESENT) {
		options->condition = STORE_IF_ABSENT;
		return true;
	}
	if (argument_is(word, "xx") && options->condition != STORE_IF_ABSENT) {
		options->condition = STORE_IF_PRESENT;
		return true;
	}
	if (argument_is(word, "keepttl") && !options->time) {
		options->keeps_time = true;
		return true;
	}
	if (argument_is(word, "ex"))
		return read_time(request, ++*i, 1000, options);
	return argument_is(word, "px") && read_time(request, ++*i, 1, options);
}

/* What is wrong with the time; NULL: nothing. */
static const char *expiry_of(const struct set_options *options, int64_t *ret_expiry)
{
	int64_t now = store_now(), time;

	*ret_expiry = options->keeps_time ? -1 : 0;
	if (!options->time)
		return NULL;
	if (!argument_number(options->time, &time))
		return "value is not an integer or out of range";
	if (time <= 0 || time > (INT64_MAX - now) / options->unit)
		return "invalid expire time in 'set' command";
	*ret_expiry = now + time * options->unit;
	return NULL;
}

void command_set(struct request *request)
{
	struct buffer *out = &request->connection->out;
	struct place place = place_of(request, 1);
	struct set_options options = { 0 };
	const char *error = NULL;
	int64_t expiry = 0;
	size_t i;

	for (i = 3; i < request->nr_arguments && !error; i++)
		if (!read_option(request, &i, &options))
			error = "syntax error";
	if (!error)
		error = expiry_of(&options, &expiry);
	if (error) {
		reply_error(out, "ERR %s", error);
		return;
	}
	switch (store_set(&place, request->argument[2], expiry, options.condition)) {
	case STORE_DONE:
		reply_status(out, "OK");
		break;
	case STORE_CONDITION:
		reply_null(out);
		break;
	default:
		full(request);
	}
}

/* One after the other: where the limit is met, those before are set. */
void command_mset(struct request *request)
{
	struct buffer *out = &request->connection->out;
	struct place place;
	size_t i;

	if (request->nr_arguments % 2 == 0) {
		reply_error(out, "ERR wrong number of arguments for 'mset' command");
		return;
	}
	for (i = 1; i < request->nr_arguments; i += 2) {
		place = place_of(request, i);
		if (store_set(&place, request->argument[i + 1], 0, STORE_ALWAYS) != STORE_DONE) {
			full(request);
			return;
		}
	}
	reply_status(out, "OK");
}

static void count(struct request *request, bool (*function)(const struct place *place))
{
	struct place place;
	int64_t nr = 0;
	size_t i;

	for (i = 1; i < request->nr_arguments; i++) {
		place = place_of(request, i);
		nr += function(&place);
	}
	reply_number(&request->connection->out, nr);
}

void command_del(struct request *request)
{
	count(request, store_delete);
}

void command_exists(struct request *request)
{
	count(request, store_has);
}

static void add(struct request *request, int64_t step)
{
	struct buffer *out = &request->connection->out;
	struct place place = place_of(request, 1);
	int64_t value;

	switch (store_add(&place, step, &value)) {
	case STORE_DONE:
		reply_number(out, value);
		break;
	case STORE_NO_NUMBER:
		reply_error(out, "ERR value is not an integer or out of range");
		break;
	case STORE_OVERFLOW:
		reply_error(out, "ERR increment or decrement would overflow");
		break;
	default:
		full(request);
	}
}

void command_incr(struct request *request)
{
	add(request, 1);
}

void command_decr(struct request *request)
{
	add(request, -1);
}

void command_incrby(struct request *request)
{
	int64_t step;

	if (argument_number(&request->argument[2], &step))
		add(request, step);
	else
		reply_error(&request->connection->out,
			    "ERR value is not an integer or out of range");
}

static void expire(struct request *request, int64_t unit)
{
	struct buffer *out = &request->connection->out;
	struct place place = place_of(request, 1);
	int64_t now = store_now(), time;

	if (!argument_number(&request->argument[2], &time))
		reply_error(out, "ERR value is not an integer or out of range");
	else if (time <= 0)
		reply_number(out, store_delete(&place));
	else if (time > (INT64_MAX - now) / unit)
		reply_error(out, "ERR invalid expire time in '%s' command",
			    unit == 1 ? "pexpire" : "expire");
	else
		reply_number(out, store_expire(&place, now + time * unit));
}

void command_expire(struct request *request)
{
	expire(request, 1000);
}

void command_pexpire(struct request *request)
{
	expire(request, 1);
}

static void ttl(struct request *request, int64_t unit)
{
	struct place place = place_of(request, 1);
	int64_t expiry = store_expiry(&place);

	if (expiry >= 0)
		expiry = (expiry - store_now() + unit / 2) / unit;
	reply_number(&request->connection->out, expiry);
}

void command_ttl(struct request *request)
{
	ttl(request, 1000);
}

void command_pttl(struct request *request)
{
	ttl(request, 1);
}

void command_dbsize(struct request *request)
{
	const struct connection *connection = request->connection;

	reply_number(&request->connection->out,
		     (int64_t)atomic_load(&connection->tenant->nr_keys[connection->db]));
}

/* At once, whichever is asked for. */
void command_flushdb(struct request *request)
{
	if (request->nr_arguments == 2 && !argument_is(&request->argument[1], "sync") &&
	    !argument_is(&request->argument[1], "async")) {
		reply_error(&request->connection->out, "ERR syntax error");
		return;
	}
	store_flush(request->connection->tenant, request->connection->db);
	request->connection->yields = true;
	reply_status(&request->connection->out, "OK");
}
