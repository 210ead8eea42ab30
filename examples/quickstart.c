/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* quickstart.c - two tenants with a limit each, and one for both; a charge that is refused. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <pcpcharge/pcpcharge.h>

static struct pcpc_owner *tenant(struct pcpc_owner *parent, const char *name)
{
	struct pcpc_owner_config config = { .size = sizeof(config), .name = name, .max = 1000000 };
	struct pcpc_owner *owner = NULL;

	return pcpc_owner_create(parent, &config, &owner) < 0 ? NULL : owner;
}

int main(void)
{
	struct pcpc_domain_config bytes = { .size = sizeof(bytes), .name = "memory" };
	struct pcpc_refusal refusal = { 0 };
	struct pcpc_domain *domain;

	bytes.batch = PCPC_BATCH_BYTES; /* the unit is the byte */
	if (pcpc_domain_create(&bytes, &domain) < 0)
		return 1;
	struct pcpc_owner *root = pcpc_domain_root(domain);
	struct pcpc_owner *alice = tenant(root, "alice"), *bob = tenant(root, "bob");
	pcpc_owner_set_max(root, 1500000); /* both together */
	for (int i = 0; i < 1000000 && pcpc_charge(bob, 100) == 0; i++)
		pcpc_uncharge(bob, 100); /* hardly ever a miss; and in the end bob has nothing */
	if (pcpc_charge(alice, 1000000) == 0 && /* her limit, to the byte */
	    pcpc_charge_flags(bob, 600000, 0, &refusal) == -EDQUOT)
		printf("bob: no room for %" PRIu64 " in %s\n", refusal.asked, refusal.name);
	printf("alice %" PRIu64 ", bob %" PRIu64 ", of %" PRIu64 "\n",
	       pcpc_owner_usage_exact(alice), pcpc_owner_usage_exact(bob), refusal.max);
	pcpc_uncharge(alice, 1000000);
	pcpc_owner_destroy(alice);
	pcpc_owner_destroy(bob);
	return refusal.over != root || pcpc_domain_destroy(domain) < 0;
}
