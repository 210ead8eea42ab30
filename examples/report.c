/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* report.c - tenants with statistics; who refuses, who fills the limit, and what all of them use.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <pcpcharge/pcpcharge.h>

enum { REQUESTS, SENT };

static const struct pcpc_item items[] = { { "requests", "" }, { "sent", "bytes" } };

static struct pcpc_owner *tenant(struct pcpc_owner *parent, const char *name, uint64_t max)
{
	struct pcpc_owner_config config = { .size = sizeof(config), .name = name, .max = max };
	struct pcpc_owner *owner = NULL;

	return pcpc_owner_create(parent, &config, &owner) < 0 ? NULL : owner;
}

/* One request: memory for as long as it takes, and two figures. */
static int serve(struct pcpc_owner *owner, uint64_t bytes, struct pcpc_refusal *ret_refusal)
{
	int r = pcpc_charge_flags(owner, bytes, 0, ret_refusal);

	if (r < 0)
		return r;
	pcpc_stat_add(owner, REQUESTS, 1);
	pcpc_stat_add(owner, SENT, 1500);
	pcpc_uncharge(owner, bytes);
	return 0;
}

int main(int argc, char **argv)
{
	struct pcpc_domain_config config = { .size = sizeof(config),
					     .name = "memory",
					     .unit = "bytes",
					     .batch = PCPC_BATCH_BYTES,
					     .items = items,
					     .nr_items = 2 };
	enum pcpc_format format = argc > 1 && !strcmp(argv[1], "json") ? PCPC_FORMAT_JSON
				  : argc > 1 && !strcmp(argv[1], "prometheus")
					  ? PCPC_FORMAT_PROMETHEUS
					  : PCPC_FORMAT_TEXT;
	struct pcpc_refusal refusal = { 0 };
	struct pcpc_domain *domain;
	int r = 0;

	if (pcpc_domain_create(&config, &domain) < 0)
		return 1;
	struct pcpc_owner *web = tenant(pcpc_domain_root(domain), "web", 3000000);
	struct pcpc_owner *small = tenant(web, "small", 0), *large = tenant(web, "large", 2900000);

	for (int i = 0; i < 100000 && r == 0; i++)
		r = serve(i % 4 ? small : large, 1000, &refusal);
	if (r < 0 || pcpc_charge(large, 2900000) < 0 || serve(small, 200000, &refusal) != -EDQUOT)
		return 1;
	pcpc_refusal_report_fd(domain, &refusal, STDERR_FILENO);
	if (pcpc_stat_read_exact(web, REQUESTS) != 100000)
		return 1;
	r = pcpc_domain_report_fd(domain, format, STDOUT_FILENO);
	pcpc_uncharge(large, 2900000);
	pcpc_owner_destroy(small);
	pcpc_owner_destroy(large);
	pcpc_owner_destroy(web);
	return r < 0 || pcpc_domain_destroy(domain) < 0;
}
