// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * malloc_settings.c - the environment, read before anything is charged. Nothing here allocates.
 */
#define _GNU_SOURCE
#include "malloc_private.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

struct malloc_settings malloc_settings = { .max = PCPC_UNLIMITED,
					   .high = PCPC_UNLIMITED,
					   .fork_hooks = true };

static struct iovec piece(const char *text)
{
	return (struct iovec){ (void *)(uintptr_t)text, strlen(text) };
}

/* In one write: many processes may share stderr. */
void malloc_complain(const char *setting, const char *text)
{
	struct iovec line[] = { piece("libpcpcharge-malloc: "), piece(setting ? setting : ""),
				piece(setting ? ": " : ""), piece(text), piece("\n") };

	if (writev(STDERR_FILENO, line, sizeof(line) / sizeof(line[0])) < 0)
		return; /* there is nobody to tell */
}

/* Digits; moves *text behind them. False: none, or too many. */
static bool read_number(const char **text, uint64_t *ret_number)
{
	const char *at = *text;
	uint64_t number = 0;

	for (; *at >= '0' && *at <= '9'; at++)
		if (__builtin_mul_overflow(number, 10u, &number) ||
		    __builtin_add_overflow(number, (uint64_t)(*at - '0'), &number))
			return false;
	if (at == *text)
		return false;
	*text = at;
	*ret_number = number;
	return true;
}

static bool read_size(const char *text, uint64_t *ret_size)
{
	static const char suffixes[] = "KkMmGgTt";
	const char *suffix;
	uint64_t size;

	if (!read_number(&text, &size))
		return false;
	if (*text) {
		suffix = strchr(suffixes, *text);
		if (!suffix || text[1] ||
		    __builtin_mul_overflow(size, (uint64_t)1 << ((suffix - suffixes) / 2 + 1) * 10,
					   &size))
			return false;
	}
	if (!size || size >= PCPC_UNLIMITED)
		return false;
	*ret_size = size;
	return true;
}

static bool read_format(const char *text, enum pcpc_format *ret_format)
{
	static const char *const names[] = { [PCPC_FORMAT_TEXT] = "text",
					     [PCPC_FORMAT_JSON] = "json",
					     [PCPC_FORMAT_PROMETHEUS] = "prometheus" };
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strcmp(text, names[i])) {
			*ret_format = (enum pcpc_format)i;
			return true;
		}
	}
	return false;
}

/* What a fault raises comes again when its handler returns, for ever; abort() likewise. */
static bool is_fault(uint64_t number)
{
	return number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL ||
	       number == SIGTRAP || number == SIGSYS || number == SIGABRT;
}

static bool read_signal(const char *text, int *ret_signal)
{
	static const struct {
		const char *name;
		int signal;
	} known[] = { { "USR1", SIGUSR1 }, { "USR2", SIGUSR2 }, { "HUP", SIGHUP } };
	uint64_t number;
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (!strcmp(text, known[i].name)) {
			*ret_signal = known[i].signal;
			return true;
		}
	}
	if (!read_number(&text, &number) || *text || !number || number > (uint64_t)SIGRTMAX ||
	    is_fault(number))
		return false;
	*ret_signal = (int)number;
	return true;
}

static bool read_switch(const char *text, bool *ret_on)
{
	if (strcmp(text, "0") && strcmp(text, "1"))
		return false;
	*ret_on = *text == '1';
	return true;
}

static bool read_path(const char *text)
{
	if (!*text || strlen(text) >= MALLOC_PATH_MAX)
		return false;
	strcpy(malloc_settings.report, text);
	return true;
}

/* An empty setting is none. */
static const char *setting(const char *name)
{
	const char *text = secure_getenv(name);

	return text && *text ? text : NULL;
}

void malloc_read_settings(void)
{
	const char *text;

	if ((text = setting("PCPC_MALLOC_MAX")) && !read_size(text, &malloc_settings.max))
		malloc_complain("PCPC_MALLOC_MAX", "not a size above 0, such as 512M; no limit");
	if ((text = setting("PCPC_MALLOC_HIGH")) && !read_size(text, &malloc_settings.high))
		malloc_complain("PCPC_MALLOC_HIGH", "not a size above 0, such as 400M; left out");
	if ((text = setting("PCPC_MALLOC_REPORT")) && !read_path(text))
		malloc_complain("PCPC_MALLOC_REPORT", "too long; no report");
	if ((text = setting("PCPC_MALLOC_FORMAT")) && !read_format(text, &malloc_settings.format))
		malloc_complain("PCPC_MALLOC_FORMAT", "not text, json or prometheus; text");
	if ((text = setting("PCPC_MALLOC_SIGNAL")) && !read_signal(text, &malloc_settings.signal))
		malloc_complain("PCPC_MALLOC_SIGNAL",
				"not USR1, USR2, HUP or a number, or a fault; left out");
	if ((text = setting("PCPC_MALLOC_FORK_HOOKS")) &&
	    !read_switch(text, &malloc_settings.fork_hooks))
		malloc_complain("PCPC_MALLOC_FORK_HOOKS", "not 0 or 1; 1");
}
