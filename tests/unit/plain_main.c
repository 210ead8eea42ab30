// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * plain_main.c - the whole library in one small program without a test framework, for machines that
 * are emulated: create, refill, consume, trim, evict, stocked, drain, by whatever engine there is
 * and by the atomic one. Prints TAP.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdio.h>

#include <pcpcharge/pcpcharge.h>

static const struct pcpc_marks marks = { 64, 32, 64 };
static int done, failed;

static void ok(bool good, const char *what)
{
	printf("%sok %d - %s\n", good ? "" : "not ", ++done, what);
	failed += !good;
}

static bool match_even(uint32_t owner, void *context)
{
	(void)context;
	return owner % 2 == 0;
}

static void add(const struct pcpc_deferred *deferred, void *context)
{
	*(uint64_t *)context += deferred->count;
}

static bool refilled(struct pcpc_cache *cache, uint32_t owner, uint64_t count,
		     struct pcpc_deferred expected)
{
	struct pcpc_deferred deferred;

	pcpc_cache_refill(cache, owner, count, -1, &marks, &deferred);
	return deferred.owner == expected.owner && deferred.count == expected.count &&
	       deferred.delta == expected.delta;
}

static void use(struct pcpc_cache *cache)
{
	struct pcpc_deferred deferred;
	uint64_t taken = 0;
	uint32_t owner;
	bool good = true;

	for (owner = 1; owner <= 7; owner++)
		good = refilled(cache, owner, 40, (struct pcpc_deferred){ 0, 0, 0 }) && good;
	ok(good, "seven owners are stocked");
	ok(refilled(cache, 1, 25, (struct pcpc_deferred){ 1, 33, 0 }), "40 and 25 trim 33");
	ok(refilled(cache, 8, 10, (struct pcpc_deferred){ 1, 32, -2 }),
	   "the eighth evicts the first");
	ok(refilled(cache, 2, 65, (struct pcpc_deferred){ 2, 65, -1 }), "65 bypass");
	ok(pcpc_cache_consume(cache, 3, 40, 1, &marks, &deferred) && !deferred.owner,
	   "40 of 40 hit");
	ok(!pcpc_cache_consume(cache, 3, 1, 0, &marks, &deferred), "and then none");
	ok(!pcpc_cache_consume(cache, 4, (1ull << 32) + 1, 0, &marks, &deferred), "nor 2^32 + 1");
	ok(pcpc_cache_stocked(cache, 5) == 40, "40 are stocked");
	ok(!pcpc_cache_drain(cache, match_even, add, &taken) && taken == 3 * 40 + 10,
	   "owners 2, 4, 6 and 8 are drained");
	ok(pcpc_cache_stocked(cache, 4) == 0 && pcpc_cache_stocked(cache, 5) == 40,
	   "and only they");
}

int main(void)
{
	static const enum pcpc_engine engines[] = { PCPC_ENGINE_AUTO, PCPC_ENGINE_ATOMIC,
						    PCPC_ENGINE_RSEQ };
	static const char *const names[] = { "auto", "rseq", "atomic" };
	struct pcpc_cache_config config = { .size = sizeof(config), .index = PCPC_INDEX_CPU };
	struct pcpc_cache *cache = NULL;
	cpu_set_t here;
	size_t i;
	int r;

	/* One CPU, or what was refilled could be elsewhere. */
	CPU_ZERO(&here);
	CPU_SET((size_t)sched_getcpu(), &here);
	ok(sched_setaffinity(0, sizeof(here), &here) == 0, "the program stays on one CPU");
	config.stocks_per_cpu = 1;
	for (i = 0; i < sizeof(engines) / sizeof(engines[0]); i++) {
		config.engine = engines[i];
		r = pcpc_cache_create(&config, &cache);
		ok(r == 0 || (r == -ENOSYS && engines[i] == PCPC_ENGINE_RSEQ), "create");
		if (r < 0) {
			printf("# no rseq engine here\n");
			continue;
		}
		printf("# engine %s is %s\n", names[engines[i]], names[pcpc_cache_engine(cache)]);
		use(cache);
		pcpc_cache_destroy(cache);
	}
	printf("1..%d\n", done);
	return failed ? 1 : 0;
}
