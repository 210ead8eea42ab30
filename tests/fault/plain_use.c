// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * plain_use.c - a small honest program, to be run under tools: creates, charges on threads, drains,
 * forks, reads the figures, destroys.
 *
 * Usage: plain_use [atomic|rseq]. Fails if AUTO has not chosen that engine, or a unit is missing.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fault_ledger.h"

#define THREADS 3
#define STEPS 3000

static struct ledger ledger;

static void *walk(void *seed)
{
	struct walker walker = {
		.ledger = &ledger, .first_owner = 1, .nr_owners = 20, .random = (uintptr_t)seed
	};
	uint32_t i;

	for (i = 0; i < STEPS; i++) {
		walker_step(&walker);
		if (i % 500 == 0)
			MUST(ledger_drain(&ledger) == 0);
	}
	walker_finish(&walker);
	return NULL;
}

int main(int argc, char **argv)
{
	struct pcpc_cache_config config = { .size = sizeof(config), .stocks_per_cpu = 2 };
	struct pcpc_cache_stats stats = { .size = sizeof(stats) };
	enum pcpc_engine wanted = PCPC_ENGINE_AUTO;
	struct pcpc_cache *cache;
	pthread_t threads[THREADS];
	int status, i;
	pid_t child;

	if (argc > 1)
		wanted = strcmp(argv[1], "rseq") ? PCPC_ENGINE_ATOMIC : PCPC_ENGINE_RSEQ;
	MUST(pcpc_cache_create(&config, &cache) == 0);
	MUST(wanted == PCPC_ENGINE_AUTO || pcpc_cache_engine(cache) == wanted);
	ledger_init(&ledger, cache);
	for (i = 0; i < THREADS; i++)
		MUST(!pthread_create(&threads[i], NULL, walk, (void *)(uintptr_t)(i + 1)));
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	MUST(pcpc_cache_get_stats(cache, &stats) == 0);
	MUST(stats.drains == THREADS * (STEPS / 500));
	child = fork();
	MUST(child >= 0);
	if (child) {
		MUST(waitpid(child, &status, 0) == child);
		MUST(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS);
	}
	ledger_must_end_empty(&ledger);
	pcpc_cache_destroy(cache);
	return EXIT_SUCCESS;
}
