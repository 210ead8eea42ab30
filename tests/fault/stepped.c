// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * stepped.c - the program that single_step.c and single_step.gdb take apart: a consume, a refill
 * and a drain between two marks, then the sums.
 *
 * Usage: stepped rseq|atomic. Exits with 0 if the sums are right, with 77 where that engine cannot
 * be had. Without a debugger it does the same at full speed.
 */
#include <stdlib.h>
#include <string.h>

#include "fault_ledger.h"
#include "stepped.h"

static struct ledger ledger;

/* Nothing but two addresses to step from and to. */
__attribute__((noinline)) void stepping_begins(void)
{
	__asm__ __volatile__("");
}

__attribute__((noinline)) void stepping_ends(void)
{
	__asm__ __volatile__("");
}

volatile int stepped_hits;

int main(int argc, char **argv)
{
	struct pcpc_cache_config config = { .size = sizeof(config) };
	struct pcpc_cache *cache;

	if (argc != 2)
		return EXIT_FAILURE;
	config.engine = strcmp(argv[1], "rseq") ? PCPC_ENGINE_ATOMIC : PCPC_ENGINE_RSEQ;
	if (pcpc_cache_create(&config, &cache) < 0)
		return 77;
	ledger_init(&ledger, cache);
	ledger_stock(&ledger, 1, 30, 4);

	stepping_begins();
	/* A hit or a miss, in the stock or back at the counter: whichever, it must end. */
	if (ledger_consume(&ledger, 1, 10, 1)) {
		stepped_hits = 1;
		ledger_refill(&ledger, 1, 10, 1);
	}
	ledger_stock(&ledger, 1, 5, 2);
	ledger_stock(&ledger, 2, 6, 3);
	MUST(ledger_drain(&ledger) == 0);
	stepping_ends();

	ledger_must_end_empty(&ledger);
	pcpc_cache_destroy(cache);
	return EXIT_SUCCESS;
}
