// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * observe_main.c - writes reports to standard output, for check_reports.py.
 *
 * observe_main ENGINE FORMAT [busy]: engine rseq or atomic; format text, json or prometheus. The
 * names are those that readers stumble over. With "busy", a thread charges, creates and destroys
 * meanwhile, and two domains and a limited report of a third stand in one PROMETHEUS document.
 * Exits with 77 where there is no such engine.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pcpcharge/pcpcharge.h>

static const char *const names[] = {
	"plain",
	"with \"quotes\"",
	"back\\slash",
	"new\nline",
	"tab\t",
	"\x01\x02\x1f\x7f",
	"a/b",
	"a",
	"",
	"\xff\xfe",
	"\xc0\xaf",
	"\xed\xa0\x80",
	"\xe2\x82",
	"caf\xc3\xa9",
	"\xf0\x9f\x98\x80",
	"{}=,# HELP x",
	"\\n",
	"plain",
	"plain",
	"ends in \\",
};
#define NR_NAMES (sizeof(names) / sizeof(names[0]))

static const struct pcpc_item items[] = {
	{ "file mapped", "bytes" },
	{ "file-mapped", "bytes" },
	{ "rss_bytes", "" },
	{ "rss", "bytes" },
	{ "\"\\\n\xff", "\"\\\n" },
	{ "", "" },
	{ NULL, NULL },
	{ "Anon", "pages" },
};
#define NR_ITEMS (sizeof(items) / sizeof(items[0]))

#define CHECK(call)                                                        \
	do {                                                               \
		int r_ = (call);                                           \
		if (r_ < 0) {                                              \
			fprintf(stderr, "%s: %s\n", #call, strerror(-r_)); \
			exit(1);                                           \
		}                                                          \
	} while (0)

static enum pcpc_engine engine;

static struct pcpc_owner *owner_of(struct pcpc_owner *parent, const char *name, uint64_t max)
{
	const struct pcpc_owner_config config = { .size = sizeof(config),
						  .name = name,
						  .max = max };
	struct pcpc_owner *owner;

	CHECK(pcpc_owner_create(parent, &config, &owner));
	return owner;
}

static struct pcpc_domain *domain_of(const char *name, const char *unit)
{
	const struct pcpc_domain_config config = {
		.size = sizeof(config),
		.name = name,
		.unit = unit,
		.batch = 64,
		.items = items,
		.nr_items = NR_ITEMS,
		.engine = engine,
	};
	struct pcpc_domain *domain;
	int r = pcpc_domain_create(&config, &domain);

	if (r == -ENOSYS) {
		printf("skipped: no such engine here\n");
		exit(77);
	}
	CHECK(r);
	return domain;
}

/* Two levels of all names; a deep path; a long name; limits, refusals, large numbers. */
static struct pcpc_domain *populated(const char *name, const char *unit)
{
	struct pcpc_domain *domain = domain_of(name, unit);
	struct pcpc_owner *root = pcpc_domain_root(domain), *owner;
	static char longest[10001];
	size_t i, j;

	for (i = 0; i < NR_NAMES; i++) {
		owner = owner_of(root, names[i], i % 3 ? 0 : 1000 * (i + 1));
		for (j = 0; j < NR_NAMES; j++)
			CHECK(pcpc_charge(owner_of(owner, names[j], 0), i + j));
		(void)pcpc_charge(owner, 1000000 * (i + 1));
	}
	CHECK(pcpc_owner_set_high(owner, PCPC_UNLIMITED - 1));
	memset(longest, 'x', sizeof(longest) - 1);
	owner = owner_of(root, longest, PCPC_UNLIMITED - 1);
	CHECK(pcpc_charge(owner, PCPC_UNLIMITED / 2));
	for (i = 2; i < PCPC_DEPTH_MAX; i++)
		owner = owner_of(owner, "deep", 0);
	CHECK(pcpc_charge(owner, 1));
	return domain;
}

static _Atomic bool go_on = true;

static void *live(void *context)
{
	struct pcpc_owner *root = pcpc_domain_root(context), *owner;
	unsigned int i;

	for (i = 0; atomic_load(&go_on); i++) {
		owner = owner_of(root, names[i % NR_NAMES], 0);
		CHECK(pcpc_charge(owner, 100));
		pcpc_uncharge(owner, 100);
		CHECK(pcpc_owner_destroy(owner));
		if (i % 16 == 0)
			pcpc_domain_poll(context);
	}
	return NULL;
}

static void report_busy(struct pcpc_domain *domain, enum pcpc_format format)
{
	const struct pcpc_report_config config = { sizeof(config), NULL, 0, 3 };
	struct pcpc_domain *second = domain_of("pages", "pages");
	struct pcpc_domain *third = populated("Third \"kind\"", "");
	pthread_t thread;
	int fd = 1, r;

	r = pthread_create(&thread, NULL, live, domain);
	CHECK(-r);
	CHECK(pcpc_domain_report_fd(domain, format, 1));
	if (format == PCPC_FORMAT_PROMETHEUS) {
		CHECK(pcpc_domain_report_fd(second, format, 1));
		CHECK(pcpc_domain_report_config(third, format, &config, pcpc_write_fd, &fd));
	}
	atomic_store(&go_on, false);
	pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	static const char *const formats[] = { "text", "json", "prometheus" };
	struct pcpc_domain *domain;
	enum pcpc_format format;

	if (argc < 3)
		return 2;
	engine = strcmp(argv[1], "rseq") ? PCPC_ENGINE_ATOMIC : PCPC_ENGINE_RSEQ;
	for (format = PCPC_FORMAT_TEXT; format < PCPC_FORMAT_PROMETHEUS; format++)
		if (!strcmp(argv[2], formats[format]))
			break;
	domain = populated("memory", "bytes");
	if (argc > 3)
		report_busy(domain, format);
	else
		CHECK(pcpc_domain_report_fd(domain, format, 1));
	/* The domains are left with what is in them, which no search for leaks would see through.
	 */
	_exit(0);
}
