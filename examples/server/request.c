// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * request.c - requests, out of the bytes that came: an array of strings, or a line of words.
 *
 * Bytes are looked at once, however many pieces they come in: how far is kept with the connection.
 * Only when all of a request is there are its arguments gathered.
 */
#include "server.h"

#include <stdlib.h>
#include <string.h>

/* Bytes that are read piece by piece. */
struct reader {
	const char *at, *end;
	const char *error; /* what is wrong with them */
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

/* False: it is not all there, and the reader stays before it. */
static bool read_argument(struct reader *reader, struct bytes *ret_argument)
{
	const char *begin = reader->at;
	int64_t length;

	if (!read_length(reader, '$', MAX_REQUEST, &length) ||
	    reader->end - reader->at < length + 2) {
		reader->at = begin;
		return false;
	}
	*ret_argument = (struct bytes){ reader->at, (size_t)length };
	reader->at += length + 2;
	return true;
}

/* -- is it all there? -- */

static bool scan_array(struct scan *scan, struct reader *reader)
{
	struct bytes argument;

	if (!scan->begun) {
		if (!read_length(reader, '*', MAX_ARGUMENTS, &scan->nr_left))
			return false;
		scan->begun = true;
	}
	for (; scan->nr_left > 0; scan->nr_left--)
		if (!read_argument(reader, &argument))
			return false;
	return true;
}

static struct reader reader_of(const struct connection *connection)
{
	const struct buffer *in = &connection->in;

	return (struct reader){ in->at + in->done, in->at + in->length, NULL };
}

static void give_up(struct connection *connection, const char *error)
{
	reply_error(&connection->out, "ERR Protocol error: %s", error);
	connection->closing = true;
}

bool request_is_there(struct connection *connection)
{
	struct reader reader = reader_of(connection);
	struct scan *scan = &connection->scan;
	const char *begin = reader.at;
	struct bytes line;
	bool whole;

	if (scan->whole || begin == reader.end)
		return scan->whole;
	reader.at += scan->at;
	whole = *begin == '*' ? scan_array(scan, &reader) : read_line(&reader, &line);
	scan->at = (size_t)(reader.at - begin);
	scan->whole = whole;
	if (reader.error)
		give_up(connection, reader.error);
	else if (!whole && reader.end - begin > MAX_REQUEST + MAX_INLINE)
		give_up(connection, "too big request");
	return whole;
}

/* -- doing it -- */

/* What it takes beside a few arguments is charged while it lasts. */
static bool make_room(struct request *request, size_t nr)
{
	request->argument = request->few;
	if (nr <= FEW)
		return true;
	if (!accounts->charge(request->payer, nr * sizeof(*request->argument)))
		return false;
	request->argument = calloc(nr, sizeof(*request->argument));
	if (request->argument)
		return true;
	accounts->uncharge(request->payer, nr * sizeof(*request->argument));
	return false;
}

static void give_room(struct request *request)
{
	if (request->argument == request->few)
		return;
	free(request->argument);
	accounts->uncharge(request->payer, request->nr_arguments * sizeof(*request->argument));
}

/* All of it is there, and has been found sound. */
static bool gather_array(struct reader *reader, struct request *request)
{
	int64_t nr = 0;
	size_t i;

	(void)read_length(reader, '*', MAX_ARGUMENTS, &nr);
	if (!make_room(request, nr > 0 ? (size_t)nr : 0))
		return false;
	request->nr_arguments = nr > 0 ? (size_t)nr : 0;
	for (i = 0; i < request->nr_arguments; i++)
		(void)read_argument(reader, &request->argument[i]);
	return true;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* Words with blanks between them. */
static bool gather_line(struct reader *reader, struct request *request)
{
	struct bytes line = { NULL, 0 };
	const char *at, *end, *word;

	(void)read_line(reader, &line);
	request->argument = request->few;
	for (at = line.at, end = at + line.length; at < end;) {
		for (word = at; at < end && !is_blank(*at); at++)
			;
		if (at > word && request->nr_arguments == FEW)
			return false;
		if (at > word)
			request->few[request->nr_arguments++] =
				(struct bytes){ word, (size_t)(at - word) };
		while (at < end && is_blank(*at))
			at++;
	}
	return true;
}

void request_do(struct connection *connection)
{
	struct request request = { .connection = connection,
				   .payer = connection->tenant->connections };
	struct reader reader = reader_of(connection);

	if (*reader.at == '*') {
		if (!gather_array(&reader, &request)) {
			reply_error(&connection->out,
				    "OOM connection buffers of this tenant are full");
			connection->closing = true;
			return;
		}
	} else if (!gather_line(&reader, &request)) {
		give_up(connection, "too many words");
		return;
	}
	if (request.nr_arguments)
		command_run(&request);
	give_room(&request);
	buffer_take(&connection->in, connection->scan.at);
	connection->scan = (struct scan){ 0 };
}
