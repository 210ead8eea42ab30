// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * reply.c - buffers that are charged as they grow, and answers in RESP, the protocol of Redis.
 */
#include "server.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_SIZE 1024
/* From here on a buffer grows by that much: doubled, it might take twice what it needs. */
#define LARGE (1u << 20)

bool buffer_reserve(struct buffer *buffer, size_t more)
{
	size_t size = buffer->size ? buffer->size : FIRST_SIZE;
	char *at;

	if (buffer->failed)
		return false;
	/* (It may have shrunk to any size.) */
	while (size - buffer->length < more)
		size += size < LARGE ? size : LARGE;
	if (size == buffer->size)
		return true;
	if (!accounts->charge(buffer->account, size - buffer->size)) {
		buffer->failed = true;
		return false;
	}
	at = realloc(buffer->at, size);
	if (!at) {
		accounts->uncharge(buffer->account, size - buffer->size);
		buffer->failed = true;
		return false;
	}
	buffer->at = at;
	buffer->size = size;
	return true;
}

void buffer_add(struct buffer *buffer, const void *bytes, size_t length)
{
	if (!length || !buffer_reserve(buffer, length))
		return;
	memcpy(buffer->at + buffer->length, bytes, length);
	buffer->length += length;
}

/* To twice of what is in it. */
static void shrink(struct buffer *buffer)
{
	size_t size = 2 * buffer->length;
	char *at = realloc(buffer->at, size);

	if (!at)
		return;
	accounts->uncharge(buffer->account, buffer->size - size);
	buffer->at = at;
	buffer->size = size;
}

size_t buffer_left(const struct buffer *buffer)
{
	return buffer->length - buffer->done;
}

/* The rest moves to the front when it is the smaller part: whoever takes little by little does not
 * have all of it moved each time. */
void buffer_take(struct buffer *buffer, size_t length)
{
	buffer->done += length;
	if (buffer->done < buffer_left(buffer))
		return;
	buffer->length -= buffer->done;
	if (buffer->length)
		memmove(buffer->at, buffer->at + buffer->done, buffer->length);
	buffer->done = 0;
	if (!buffer->length)
		buffer_free(buffer);
	else if (buffer->size > LARGE && buffer->length < buffer->size / 4)
		shrink(buffer);
}

void buffer_free(struct buffer *buffer)
{
	free(buffer->at);
	if (buffer->size)
		accounts->uncharge(buffer->account, buffer->size);
	buffer->at = NULL;
	buffer->done = buffer->length = buffer->size = 0;
}

bool buffer_move(struct buffer *buffer, struct account *account)
{
	if (buffer->size && !accounts->charge(account, buffer->size))
		return false;
	if (buffer->size)
		accounts->uncharge(buffer->account, buffer->size);
	buffer->account = account;
	return true;
}

static void add_line(struct buffer *out, char kind, const char *text)
{
	buffer_add(out, &kind, 1);
	buffer_add(out, text, strlen(text));
	buffer_add(out, "\r\n", 2);
}

void reply_status(struct buffer *out, const char *text)
{
	add_line(out, '+', text);
}

/* A line of its own: what a client has sent may be in it. */
void reply_error(struct buffer *out, const char *format, ...)
{
	char text[512], *c;
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	for (c = text; *c; c++)
		if (*c == '\r' || *c == '\n')
			*c = ' ';
	add_line(out, '-', text);
}

static void add_number(struct buffer *out, char kind, int64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, number);
	add_line(out, kind, text);
}

void reply_number(struct buffer *out, int64_t number)
{
	add_number(out, ':', number);
}

void reply_bulk(struct buffer *out, struct bytes bytes)
{
	add_number(out, '$', (int64_t)bytes.length);
	buffer_add(out, bytes.at, bytes.length);
	buffer_add(out, "\r\n", 2);
}

void reply_text(struct buffer *out, const char *text)
{
	reply_bulk(out, (struct bytes){ text, strlen(text) });
}

void reply_null(struct buffer *out)
{
	add_line(out, '$', "-1");
}

void reply_array(struct buffer *out, size_t nr)
{
	add_number(out, '*', (int64_t)nr);
}
