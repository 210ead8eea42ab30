// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * report_out.c - text that goes out in pieces, through a buffer of fixed size; numbers; and names,
 * which may be anything, in a form that cannot be taken for something else.
 */
#include "report_private.h"

#include <string.h>

static void flush(struct pcpc_out *out)
{
	int r;

	if (out->used && !out->error) {
		r = out->write(out->buffer, out->used, out->context);
		out->error = r < 0 ? r : 0;
	}
	out->used = 0;
}

void pcpc_put_char(struct pcpc_out *out, char c)
{
	if (out->used == sizeof(out->buffer))
		flush(out);
	out->buffer[out->used++] = c;
}

void pcpc_put(struct pcpc_out *out, const char *text)
{
	while (*text)
		pcpc_put_char(out, *text++);
}

int pcpc_out_end(struct pcpc_out *out)
{
	flush(out);
	return out->error;
}

unsigned int pcpc_digits(uint64_t number)
{
	unsigned int digits = 1;

	while (number /= 10)
		digits++;
	return digits;
}

void pcpc_put_number(struct pcpc_out *out, uint64_t number)
{
	char digits[20];
	unsigned int i = 0;

	do {
		digits[i++] = (char)('0' + number % 10);
	} while (number /= 10);
	while (i)
		pcpc_put_char(out, digits[--i]);
}

void pcpc_put_signed(struct pcpc_out *out, int64_t number)
{
	if (number < 0)
		pcpc_put_char(out, '-');
	pcpc_put_number(out, number < 0 ? -(uint64_t)number : (uint64_t)number);
}

static void pad(struct pcpc_out *out, size_t used, size_t width)
{
	for (; used < width; used++)
		pcpc_put_char(out, ' ');
}

void pcpc_put_column(struct pcpc_out *out, uint64_t number, unsigned int width)
{
	pad(out, pcpc_digits(number), width);
	pcpc_put_number(out, number);
}

void pcpc_put_right(struct pcpc_out *out, const char *text, unsigned int width)
{
	pad(out, strlen(text), width);
	pcpc_put(out, text);
}

/* The next character of a text that has not ended. Returns how many bytes it has; 0: the byte is
 * not UTF-8 (RFC 3629: neither too long a form, nor a surrogate, nor beyond U+10FFFF). */
static unsigned int decode(const char *text, uint32_t *ret_character)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *byte = (const unsigned char *)text;
	unsigned int length, i;
	uint32_t character;

	if (byte[0] < 0x80)
		length = 1;
	else
		length = byte[0] < 0xc0 ? 0 : byte[0] < 0xe0 ? 2 : byte[0] < 0xf0 ? 3 : 4;
	if (!length || byte[0] >= 0xf8)
		return 0;
	character = length == 1 ? byte[0] : byte[0] & (0x7fu >> length);
	/* Ends at the end of the text, for that is no continuation. */
	for (i = 1; i < length; i++) {
		if ((byte[i] & 0xc0) != 0x80)
			return 0;
		character = character << 6 | (byte[i] & 0x3f);
	}
	if (character < least[length] || character > 0x10ffff ||
	    (character >= 0xd800 && character <= 0xdfff))
		return 0;
	*ret_character = character;
	return length;
}

static void put_hex(struct pcpc_out *out, const char *before, uint32_t character,
		    unsigned int digits)
{
	pcpc_put(out, before);
	while (digits--)
		pcpc_put_char(out, "0123456789abcdef"[character >> 4 * digits & 15]);
}

/* Characters that a terminal or a line takes for something else: C0, DEL and C1, and what turns
 * the direction of writing or ends a line. */
static bool is_control(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x061c || c == 0x200e || c == 0x200f ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

/* False: it stands for itself. */
static bool put_escaped(struct pcpc_out *out, uint32_t c, enum pcpc_escape escape)
{
	if (c == '\\' ||
	    (c == '"' && (escape == PCPC_ESCAPE_JSON || escape == PCPC_ESCAPE_LABEL))) {
		pcpc_put_char(out, '\\');
		pcpc_put_char(out, (char)c);
	} else if (c == '\n') {
		pcpc_put(out, "\\n");
	} else if (escape == PCPC_ESCAPE_JSON && c < 0x20) {
		put_hex(out, "\\u", c, 4);
	} else if (escape == PCPC_ESCAPE_TEXT && is_control(c)) {
		put_hex(out, c < 0x80 ? "\\x" : "\\u", c, c < 0x80 ? 2 : 4);
	} else {
		return false;
	}
	return true;
}

void pcpc_put_name(struct pcpc_out *out, const char *name, enum pcpc_escape escape)
{
	unsigned int length;
	uint32_t character;

	for (; *name && !out->error; name += length) {
		length = decode(name, &character);
		if (!length) {
			pcpc_put(out, "\xef\xbf\xbd");
			length = 1;
		} else if (!put_escaped(out, character, escape)) {
			for (unsigned int i = 0; i < length; i++)
				pcpc_put_char(out, name[i]);
		}
	}
}
