// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * malloc_ends.c WAY - a process that ends in one of several ways, with frees after everything; over
 * malloc_early.c. Exit status 0: all is well. What it leaves is in the report, if one is wanted.
 */
#define _GNU_SOURCE
#include "malloc_support.h"

#include "malloc_early.h"

#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define NR_KEYS 20
#define NR_THREADS 50

static pthread_key_t keys[NR_KEYS];
static struct pcpc_owner *payer;

/* What stands in a key: its index, and how often it was renewed. */
struct renewed {
	int key, rounds;
};

static void put_into_key(int key, int rounds, size_t size)
{
	struct renewed *block = seen(malloc(size));

	MUST(block);
	*block = (struct renewed){ key, rounds };
	MUST(pthread_setspecific(keys[key], block) == 0);
}

/* Leaves something for the next round, as long as the C library has rounds: some of them come after
 * the thread has left liburcu-bp. */
static void free_and_renew(void *value)
{
	struct renewed was = *(struct renewed *)value;

	free(value);
	work_for(payer);
	free(seen(malloc(100000)));
	if (was.rounds < PTHREAD_DESTRUCTOR_ITERATIONS - 1)
		put_into_key(was.key, was.rounds + 1, 50000);
}

static void *fill_keys(void *unused)
{
	(void)unused;
	work_for(payer);
	for (int i = 0; i < NR_KEYS; i++)
		put_into_key(i, 0, 70000);
	return NULL;
}

static void allocate_at_exit(void)
{
	void *block = seen(malloc(200000));

	MUST(block);
	free(block);
}

static void *exit_from_thread(void *unused)
{
	fill_keys(unused);
	exit(0);
}

/* Threads end with blocks in their keys; all of it comes back (G1). */
static void end_threads(void)
{
	pthread_t threads[NR_THREADS];

	for (int i = 0; i < NR_THREADS; i++)
		MUST(pthread_create(&threads[i], NULL, fill_keys, NULL) == 0);
	for (int i = 0; i < NR_THREADS; i++)
		MUST(pthread_join(threads[i], NULL) == 0);
}

static int end_by(const char *way)
{
	char name[] = "true", *arguments[] = { name, NULL };
	pthread_t thread;

	if (!strcmp(way, "return"))
		return 0;
	if (!strcmp(way, "exit"))
		exit(0);
	if (!strcmp(way, "quick"))
		_exit(0);
	if (!strcmp(way, "exec"))
		return execv("/bin/true", arguments);
	if (!strcmp(way, "thread")) {
		MUST(pthread_create(&thread, NULL, exit_from_thread, NULL) == 0);
		pthread_join(thread, NULL);
	}
	if (!strcmp(way, "last")) /* the main thread goes first; the last one's end is the exit */
		pthread_exit(fill_keys(NULL));
	return 1;
}

int main(int argc, char **argv)
{
	struct pcpc_owner *root = pcpc_domain_root(domain_of_malloc());
	uint64_t before;
	void *kept;

	MUST(argc == 2 && early_was_early());
	MUST(atexit(allocate_at_exit) == 0);
	payer = tenant(0);
	for (int i = 0; i < NR_KEYS; i++)
		MUST(pthread_key_create(&keys[i], free_and_renew) == 0);
	early_go_on();
	end_threads();
	MUST(HELD(payer) == 0);
	before = HELD(root);
	kept = seen(malloc(12345678));
	MUST(HELD(root) == before + COST(12345678) && kept);
	return end_by(argv[1]);
}
