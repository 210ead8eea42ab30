// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * accounts_pcpcharge.c - accounts are owners of one domain, which counts bytes.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <pcpcharge/pcpcharge.h>

#include "accounts.h"

#define MAX_ACCOUNTS 4096

static struct pcpc_domain *domain;

static struct reclaim {
	account_reclaim_fn *function;
	void *context;
} reclaims[MAX_ACCOUNTS];
static struct pcpc_owner *owners[MAX_ACCOUNTS]; /* parents first; [0] is the root */
static unsigned int nr_owners;

static uint64_t reclaim(struct pcpc_owner *over, uint64_t wanted, void *context)
{
	const struct reclaim *reclaim = context;

	(void)over;
	return reclaim->function(wanted, reclaim->context);
}

static struct pcpc_owner *make_root(const char *name)
{
	struct pcpc_domain_config config = {
		.size = sizeof(config), .name = name, .unit = "bytes", .batch = PCPC_BATCH_BYTES
	};

	return pcpc_domain_create(&config, &domain) < 0 ? NULL : pcpc_domain_root(domain);
}

static struct pcpc_owner *make_child(struct pcpc_owner *parent, const char *name)
{
	struct pcpc_owner_config config = { .size = sizeof(config), .name = name };
	struct pcpc_owner *owner;

	return pcpc_owner_create(parent, &config, &owner) < 0 ? NULL : owner;
}

static struct account *create(struct account *parent, const char *name, uint64_t max, uint64_t high,
			      account_reclaim_fn *function, void *context)
{
	struct pcpc_owner *owner;

	if (nr_owners == MAX_ACCOUNTS)
		return NULL;
	owner = parent ? make_child((struct pcpc_owner *)parent, name) : make_root(name);
	if (!owner)
		return NULL;
	if ((max && pcpc_owner_set_max(owner, max) < 0) ||
	    (high && pcpc_owner_set_high(owner, high) < 0))
		return NULL;
	if (function) {
		reclaims[nr_owners] = (struct reclaim){ function, context };
		(void)pcpc_owner_set_reclaim(owner, reclaim, &reclaims[nr_owners]);
	}
	owners[nr_owners++] = owner;
	return (struct account *)owner;
}

/* The last one, for whoever asks who fills a limit. */
static struct pcpc_refusal last_refusal;
static pthread_mutex_t refusal_mutex = PTHREAD_MUTEX_INITIALIZER;

static bool charge(struct account *account, uint64_t bytes)
{
	struct pcpc_refusal refusal;
	int r = pcpc_charge_flags((struct pcpc_owner *)account, bytes, 0, &refusal);

	if (r == -EDQUOT) {
		pthread_mutex_lock(&refusal_mutex);
		last_refusal = refusal;
		pthread_mutex_unlock(&refusal_mutex);
	}
	return r == 0;
}

static void uncharge(struct account *account, uint64_t bytes)
{
	pcpc_uncharge((struct pcpc_owner *)account, bytes);
}

static uint64_t usage(struct account *account)
{
	return pcpc_owner_usage((struct pcpc_owner *)account);
}

static void figures(struct account *account, struct account_figures *ret_figures)
{
	struct pcpc_owner *owner = (struct pcpc_owner *)account;

	*ret_figures =
		(struct account_figures){ pcpc_owner_usage_exact(owner), pcpc_owner_peak(owner),
					  pcpc_owner_max(owner), pcpc_owner_high(owner),
					  pcpc_owner_events(owner, PCPC_EVENT_REFUSED) };
}

static int write_to_file(const char *text, size_t length, void *context)
{
	return fwrite(text, 1, length, context) == length ? 0 : -EIO;
}

/* What the library has to say of it goes to a descriptor, and from there to the file. */
static bool report_refusal(FILE *file)
{
	struct pcpc_refusal refusal;
	FILE *lines;
	bool done;
	int c;

	pthread_mutex_lock(&refusal_mutex);
	refusal = last_refusal;
	pthread_mutex_unlock(&refusal_mutex);
	lines = refusal.over ? tmpfile() : NULL;
	if (!lines)
		return false;
	done = pcpc_refusal_report_fd(domain, &refusal, fileno(lines)) == 0;
	rewind(lines);
	while ((c = getc(lines)) != EOF)
		putc(c, file);
	fclose(lines);
	return done;
}

static bool report(const char *format, FILE *file)
{
	enum pcpc_format form = PCPC_FORMAT_PROMETHEUS;

	if (!strcmp(format, "refusal"))
		return report_refusal(file);
	if (!strcmp(format, "json"))
		form = PCPC_FORMAT_JSON;
	else if (!strcmp(format, "text"))
		form = PCPC_FORMAT_TEXT;
	return pcpc_domain_report(domain, form, write_to_file, file) == 0;
}

static bool end(void)
{
	while (nr_owners > 1)
		(void)pcpc_owner_destroy(owners[--nr_owners]);
	nr_owners = 0;
	return pcpc_domain_destroy(domain) == 0;
}

const struct accounts accounts_pcpcharge = {
	.name = "pcpcharge",
	.create = create,
	.charge = charge,
	.uncharge = uncharge,
	.usage = usage,
	.figures = figures,
	.report = report,
	.end = end,
};
