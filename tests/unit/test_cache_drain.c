// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_cache_drain.c - drains: what they take, what they leave, whom they call, and how drains that
 * wait are served together. By each engine.
 *
 * A drain beside operations of other threads is in ../stress, one that membarrier refuses in
 * ../fault.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>

#include "cache_private.h"
#include "unit_support.h"

static const struct pcpc_marks marks = { .high = 64, .low = 32, .delta_batch = 64 };
static struct pcpc_cache *cache;
static struct pcpc_deferred deferred;

static bool open_cache(enum pcpc_engine engine, uint32_t stocks)
{
	ck_assert(unit_pin(0));
	cache = unit_cache(engine, stocks);
	return cache != NULL;
}

static void teardown(void)
{
	pcpc_cache_destroy(cache);
	cache = NULL;
}

static void refill(uint32_t owner, uint64_t count, int64_t delta)
{
	pcpc_cache_refill(cache, owner, count, delta, &marks, &deferred);
	ck_assert_uint_eq(deferred.owner, 0);
}

static struct pcpc_cache_stats stats_now(void)
{
	struct pcpc_cache_stats stats = { .size = sizeof(stats) };

	ck_assert_int_eq(pcpc_cache_get_stats(cache, &stats), 0);
	return stats;
}

/* What one drain was told. */
#define LEDGER_OWNERS 20001
struct ledger {
	uint32_t from, to; /* owners that match */
	uint32_t step;	   /* and of those every so many */
	uint32_t asked, settled;
	uint32_t empty; /* words with nothing in them that were settled */
	uint64_t count[LEDGER_OWNERS];
	int64_t delta[LEDGER_OWNERS];
	uint32_t times[LEDGER_OWNERS];
};

static struct ledger *ledger_of(uint32_t from, uint32_t to, uint32_t step)
{
	struct ledger *ledger = calloc(1, sizeof(*ledger));

	ck_assert_ptr_nonnull(ledger);
	ledger->from = from;
	ledger->to = to;
	ledger->step = step;
	return ledger;
}

static bool match(uint32_t owner, void *context)
{
	struct ledger *ledger = context;

	ledger->asked++;
	return owner >= ledger->from && owner <= ledger->to &&
	       (owner - ledger->from) % ledger->step == 0;
}

static void settle(const struct pcpc_deferred *taken, void *context)
{
	struct ledger *ledger = context;

	ledger->settled++;
	if (!taken->count && !taken->delta)
		ledger->empty++;
	if (taken->owner >= LEDGER_OWNERS)
		ck_abort_msg("settle for owner %u", taken->owner);
	ledger->count[taken->owner] += taken->count;
	ledger->delta[taken->owner] += taken->delta;
	ledger->times[taken->owner]++;
}

/* How many slots of all CPUs hold an owner, empty ones too. */
static uint32_t slots_of(uint32_t owner)
{
	uint32_t index, slot, found = 0;

	for (index = 0; index < cache->nr_indices; index++)
		for (slot = 0; slot < PCPC_STOCK_SLOTS; slot++)
			found +=
				pcpc_word_owner(
					pcpc_cache_stock(cache, index, owner)->slot[slot]) == owner;
	return found;
}

static bool gates_open(void)
{
	const struct pcpc_stock *stocks = pcpc_cache_stock(cache, 0, 1);
	uint32_t i;

	for (i = 0; i < cache->nr_indices * cache->stocks_per_cpu; i++)
		if (stocks[i].gate)
			return false;
	return true;
}

/* Section 6, drain: "Only matching words are taken, and they become free, the empty ones too." */
START_TEST(a_drain_takes_what_matches_and_nothing_else)
{
	struct ledger *ledger;
	uint32_t owner;

	if (!open_cache(_i, 8))
		return;
	ledger = ledger_of(2, 40, 2);
	for (owner = 1; owner <= 40; owner++)
		refill(owner, owner, -(int64_t)owner);
	/* owners 10 and 11 keep an empty slot, 12 a delta only */
	for (owner = 10; owner <= 12; owner++)
		ck_assert(pcpc_cache_consume(cache, owner, owner, owner < 12 ? owner : 0, &marks,
					     &deferred));
	ck_assert_int_eq(pcpc_cache_drain(cache, match, settle, ledger), 0);
	for (owner = 1; owner <= 40; owner++) {
		bool taken = owner % 2 == 0;
		bool empty = owner == 10 || owner == 11;

		ck_assert_uint_eq(slots_of(owner), taken ? 0 : 1);
		ck_assert_uint_eq(pcpc_cache_stocked(cache, owner), taken || empty ? 0 : owner);
		ck_assert_uint_eq(ledger->times[owner], taken && !empty ? 1 : 0);
		if (!taken || empty)
			continue;
		ck_assert_uint_eq(ledger->count[owner], owner == 12 ? 0 : owner);
		ck_assert_int_eq(ledger->delta[owner], -(int64_t)owner);
	}
	ck_assert_uint_eq(ledger->empty, 0);
	ck_assert_uint_eq(ledger->settled, 19);
	ck_assert(gates_open());
	/* all slots serve as before */
	for (owner = 1; owner <= 40; owner++)
		refill(owner, 1, 0);
	free(ledger);
}
END_TEST

/* The words that do not match stay bit by bit, hand included. */
START_TEST(a_drain_leaves_other_words_as_they_were)
{
	struct ledger *ledger;
	struct pcpc_stock *line, before;
	uint32_t owner, index, slot;

	if (!open_cache(_i, 1))
		return;
	ledger = ledger_of(3, 3, 1);
	for (owner = 1; owner <= 9; owner++) {
		pcpc_cache_refill(cache, owner, 10 + owner, -(int64_t)owner, &marks, &deferred);
		ck_assert_uint_eq(deferred.owner, owner > 7 ? owner - 7 : 0);
	}
	for (index = 0; index < cache->nr_indices; index++) {
		line = pcpc_cache_stock(cache, index, 1);
		if (line->slot[2])
			break;
	}
	ck_assert_uint_lt(index, cache->nr_indices);
	ck_assert_uint_eq(line->hand, 2);
	before = *line;
	ck_assert_int_eq(pcpc_cache_drain(cache, match, settle, ledger), 0);
	ck_assert_uint_eq(ledger->count[3], 13);
	ck_assert_uint_eq(line->slot[2], 0);
	ck_assert_uint_eq(line->hand, before.hand);
	ck_assert_uint_eq(line->gate, 0);
	for (slot = 0; slot < PCPC_STOCK_SLOTS; slot++)
		if (slot != 2)
			ck_assert_uint_eq(line->slot[slot], before.slot[slot]);
	free(ledger);
}
END_TEST

/* semantics.md 1.6.4: "Idempotent: draining an empty stock does nothing." And no CPU is disturbed
 * for nothing (bug H12): no membarrier. */
START_TEST(a_drain_that_finds_nothing_disturbs_nobody)
{
	struct ledger *ledger;

	if (!open_cache(_i, 8))
		return;
	ledger = ledger_of(5, 5, 1);
	ck_assert_int_eq(pcpc_cache_drain(cache, match, settle, ledger), 0);
	refill(1, 10, 0);
	ck_assert_int_eq(pcpc_cache_drain(cache, match, settle, ledger), 0);
	ck_assert_uint_eq(ledger->settled, 0);
	ck_assert_uint_eq(stats_now().membarriers, 0);
	ck_assert_uint_eq(stats_now().drains, 2);
	ck_assert_uint_eq(stats_now().rounds, 2);
	refill(5, 10, 0);
	ck_assert_int_eq(pcpc_cache_drain(cache, match, settle, ledger), 0);
	ck_assert_int_eq(pcpc_cache_drain(cache, match, settle, ledger), 0);
	ck_assert_uint_eq(ledger->settled, 1);
	ck_assert_uint_eq(stats_now().membarriers, _i == PCPC_ENGINE_RSEQ ? 1 : 0);
	free(ledger);
}
END_TEST

START_TEST(a_drain_refuses_bad_arguments)
{
	struct ledger *ledger;

	if (!open_cache(_i, 8))
		return;
	ledger = ledger_of(1, 1, 1);
	refill(1, 10, 0);
	ck_assert_int_eq(pcpc_cache_drain(NULL, match, settle, ledger), -EINVAL);
	ck_assert_int_eq(pcpc_cache_drain(cache, NULL, settle, ledger), -EINVAL);
	ck_assert_int_eq(pcpc_cache_drain(cache, match, NULL, ledger), -EINVAL);
	ck_assert_uint_eq(ledger->asked, 0);
	ck_assert_uint_eq(pcpc_cache_stocked(cache, 1), 10);
	ck_assert_uint_eq(stats_now().drains, 0);
	free(ledger);
}
END_TEST

static int nested_result;
static unsigned int nested_calls;

static bool match_that_drains(uint32_t owner, void *context)
{
	nested_calls++;
	nested_result = pcpc_cache_drain(cache, match, settle, context);
	return match(owner, context);
}

static void settle_that_drains(const struct pcpc_deferred *taken, void *context)
{
	nested_calls++;
	nested_result = pcpc_cache_drain(cache, match, settle, context);
	settle(taken, context);
}

/* cache.h: "-EDEADLK: called by match() or settle()"; and the outer drain goes on. */
START_TEST(a_drain_within_a_drain_is_refused)
{
	struct ledger *ledger;

	if (!open_cache(_i, 8))
		return;
	ledger = ledger_of(1, 1, 1);
	refill(1, 10, 0);
	ck_assert_int_eq(pcpc_cache_drain(cache, match, settle_that_drains, ledger), 0);
	ck_assert_uint_ge(nested_calls, 1);
	ck_assert_int_eq(nested_result, -EDEADLK);
	ck_assert_uint_eq(ledger->count[1], 10);

	nested_calls = 0;
	nested_result = 0;
	refill(1, 10, 0);
	ck_assert_int_eq(pcpc_cache_drain(cache, match_that_drains, settle, ledger), 0);
	ck_assert_uint_ge(nested_calls, 1);
	ck_assert_int_eq(nested_result, -EDEADLK);
	ck_assert_uint_eq(ledger->count[1], 20);
	ck_assert_uint_eq(ledger->settled, 2);
	/* and the next one is served */
	ck_assert_int_eq(pcpc_cache_drain(cache, match, settle, ledger), 0);
	ck_assert(gates_open());
	free(ledger);
}
END_TEST

static void settle_that_works(const struct pcpc_deferred *taken, void *context)
{
	struct pcpc_deferred none;

	ck_assert(gates_open());
	/* the drained owner's slot is free, and everybody is served */
	ck_assert(!pcpc_cache_consume(cache, taken->owner, 1, 0, &marks, &none));
	ck_assert(pcpc_cache_consume(cache, 2, 1, 0, &marks, &none));
	pcpc_cache_refill(cache, 2, 1, 0, &marks, &none);
	ck_assert_uint_eq(none.owner, 0);
	pcpc_cache_refill(cache, taken->owner, 7, 0, &marks, &none);
	ck_assert_uint_eq(none.owner, 0);
	settle(taken, context);
}

/* cache.h, settle: "No gate is closed; it may consume and refill"; and a refill of the drained
 * owner there does not keep the drain going for ever. */
START_TEST(settle_may_consume_and_refill)
{
	struct ledger *ledger;

	if (!open_cache(_i, 8))
		return;
	ledger = ledger_of(1, 1, 1);
	refill(1, 10, 0);
	refill(2, 10, 0);
	ck_assert_int_eq(pcpc_cache_drain(cache, match, settle_that_works, ledger), 0);
	ck_assert_uint_eq(ledger->settled, 1);
	ck_assert_uint_eq(pcpc_cache_stocked(cache, 1), 7);
	ck_assert_uint_eq(pcpc_cache_stocked(cache, 2), 10);
	free(ledger);
}
END_TEST

/* Section 6: "the words go through a fixed buffer, in rounds": more words than it holds. */
START_TEST(more_words_than_the_buffer_are_drained_in_passes)
{
	const uint32_t owners = 20000, lines = (20000 + 6) / 7;
	struct ledger *ledger;
	uint32_t owner;

	ck_assert_uint_gt(owners, PCPC_DRAIN_WORDS);
	if (!open_cache(_i, 4096))
		return;
	ledger = ledger_of(1, owners, 1);
	for (owner = 1; owner <= owners; owner++)
		refill(owner, 1 + owner % 64, (int64_t)(owner % 101) - 50);
	ck_assert_int_eq(pcpc_cache_drain(cache, match, settle, ledger), 0);
	for (owner = 1; owner <= owners; owner++)
		if (ledger->times[owner] != 1 || ledger->count[owner] != 1 + owner % 64 ||
		    ledger->delta[owner] != (int64_t)(owner % 101) - 50 ||
		    pcpc_cache_stocked(cache, owner))
			ck_abort_msg("owner %u: settled %u times, %" PRIu64 " units", owner,
				     ledger->times[owner], ledger->count[owner]);
	ck_assert_uint_eq(ledger->settled, owners);
	ck_assert_uint_eq(stats_now().drains, 1);
	ck_assert_uint_eq(stats_now().rounds, 1);
	if (_i == PCPC_ENGINE_RSEQ)
		ck_assert_uint_eq(stats_now().membarriers,
				  (lines + PCPC_DRAIN_LINES - 1) / PCPC_DRAIN_LINES);
	ck_assert(gates_open());
	free(ledger);
}
END_TEST

static bool match_ends(uint32_t owner, void *context)
{
	(void)context;
	return owner == 1 || owner == PCPC_OWNER_MAX;
}

static void settle_sum(const struct pcpc_deferred *taken, void *context)
{
	*(uint64_t *)context += taken->count;
}

/* A drain must reach the stocks of the highest ids, also where they wrap round the stocks. */
START_TEST(the_lowest_and_the_highest_owner_are_drained_in_caches_of_every_size)
{
	static const uint32_t sizes[] = { 1, 2, 64, 4096, 262144 };
	uint64_t sum;
	size_t i;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		if (!open_cache(_i, sizes[i]))
			return;
		refill(1, 5, 0);
		refill(PCPC_OWNER_MAX, 6, 0);
		sum = 0;
		ck_assert_int_eq(pcpc_cache_drain(cache, match_ends, settle_sum, &sum), 0);
		ck_assert_uint_eq(sum, 11);
		teardown();
	}
}
END_TEST

static void *refill_on_cpu(void *nth)
{
	struct pcpc_deferred none;

	if (!unit_pin((int)(intptr_t)nth))
		return NULL;
	pcpc_cache_refill(cache, 1, 10, 1, &marks, &none);
	return cache;
}

/* Section 6: from the stocks of all CPUs. One membarrier for all of them. */
START_TEST(a_drain_takes_from_every_cpu)
{
	struct ledger *ledger;
	uint32_t cpus = 0;
	pthread_t thread;
	void *refilled;
	int nth;

	cache = unit_cache(_i, 8);
	if (!cache)
		return;
	ledger = ledger_of(1, 1, 1);
	for (nth = 0; nth < 8; nth++) {
		ck_assert_int_eq(
			pthread_create(&thread, NULL, refill_on_cpu, (void *)(intptr_t)nth), 0);
		ck_assert_int_eq(pthread_join(thread, &refilled), 0);
		cpus += refilled != NULL;
	}
	ck_assert_uint_eq(pcpc_cache_stocked(cache, 1), 10 * cpus);
	ck_assert_int_eq(pcpc_cache_drain(cache, match, settle, ledger), 0);
	ck_assert_uint_eq(ledger->count[1], 10 * cpus);
	ck_assert_int_eq(ledger->delta[1], cpus);
	ck_assert_uint_eq(slots_of(1), 0);
	ck_assert_uint_eq(stats_now().membarriers, _i == PCPC_ENGINE_RSEQ ? 1 : 0);
	unit_note("drained from %u CPUs", cpus);
	free(ledger);
}
END_TEST

/* Combining. The first drain's settle waits here, so that all others have to post their wishes. */
#define CROWD 12
static sem_t in_settle, go_on;

static void settle_that_waits(const struct pcpc_deferred *taken, void *context)
{
	sem_post(&in_settle);
	while (sem_wait(&go_on) < 0)
		;
	settle(taken, context);
}

struct drainer {
	pthread_t thread;
	struct ledger *ledger;
	pcpc_settle_fn *settle;
	int result;
};

static void *drain_once(void *argument)
{
	struct drainer *drainer = argument;

	drainer->result = pcpc_cache_drain(cache, match, drainer->settle, drainer->ledger);
	return NULL;
}

static void start(struct drainer *drainer, uint32_t owner, pcpc_settle_fn *how)
{
	drainer->ledger = ledger_of(owner, owner, 1);
	drainer->settle = how;
	ck_assert_int_eq(pthread_create(&drainer->thread, NULL, drain_once, drainer), 0);
}

/* Wishes posted and not yet taken up. Their threads are all blocked, so that the list stands. */
static unsigned int wishes_posted(void)
{
	const struct pcpc_wish *wish = atomic_load(&cache->wishes);
	unsigned int posted = 0;

	for (; wish; wish = wish->next)
		posted++;
	return posted;
}

/* Section 6: "Drains combine: whoever gets the mutex takes all wishes posted so far and does one
 * round for their union". */
START_TEST(drains_that_wait_are_served_by_one_round)
{
	struct drainer first, crowd[CROWD];
	uint32_t i;

	cache = unit_cache(_i, 64);
	if (!cache)
		return;
	ck_assert_int_eq(sem_init(&in_settle, 0, 0), 0);
	ck_assert_int_eq(sem_init(&go_on, 0, 0), 0);
	for (i = 0; i <= CROWD; i++)
		refill(100 + i, 10 + i, 0);
	start(&first, 100, settle_that_waits);
	while (sem_wait(&in_settle) < 0)
		;
	for (i = 0; i < CROWD; i++)
		start(&crowd[i], 101 + i, settle);
	while (wishes_posted() < CROWD)
		sched_yield();
	/* refilled while they wait, before their round: theirs too */
	refill(101, 5, 0);
	sem_post(&go_on);
	ck_assert_int_eq(pthread_join(first.thread, NULL), 0);
	ck_assert_int_eq(first.result, 0);
	ck_assert_uint_eq(first.ledger->count[100], 10);
	ck_assert_uint_eq(first.ledger->settled, 1);
	for (i = 0; i < CROWD; i++) {
		ck_assert_int_eq(pthread_join(crowd[i].thread, NULL), 0);
		ck_assert_int_eq(crowd[i].result, 0);
		ck_assert_uint_eq(crowd[i].ledger->count[101 + i], 11 + i + (i == 0 ? 5 : 0));
		ck_assert_uint_eq(pcpc_cache_stocked(cache, 101 + i), 0);
		free(crowd[i].ledger);
	}
	free(first.ledger);
	ck_assert_uint_eq(stats_now().drains, CROWD + 1);
	ck_assert_uint_eq(stats_now().rounds, 2);
	ck_assert(gates_open());
}
END_TEST

/* cache.h: "Words that match for two of them go to one." */
START_TEST(a_word_that_two_wait_for_goes_to_one)
{
	struct drainer first, second, third;

	cache = unit_cache(_i, 64);
	if (!cache)
		return;
	ck_assert_int_eq(sem_init(&in_settle, 0, 0), 0);
	ck_assert_int_eq(sem_init(&go_on, 0, 0), 0);
	refill(100, 10, 0);
	refill(101, 20, 3);
	start(&first, 100, settle_that_waits);
	while (sem_wait(&in_settle) < 0)
		;
	start(&second, 101, settle);
	start(&third, 101, settle);
	while (wishes_posted() < 2)
		sched_yield();
	sem_post(&go_on);
	ck_assert_int_eq(pthread_join(first.thread, NULL), 0);
	ck_assert_int_eq(pthread_join(second.thread, NULL), 0);
	ck_assert_int_eq(pthread_join(third.thread, NULL), 0);
	ck_assert_int_eq(second.result, 0);
	ck_assert_int_eq(third.result, 0);
	ck_assert_uint_eq(second.ledger->settled + third.ledger->settled, 1);
	ck_assert_uint_eq(second.ledger->count[101] + third.ledger->count[101], 20);
	ck_assert_int_eq(second.ledger->delta[101] + third.ledger->delta[101], 3);
	free(first.ledger);
	free(second.ledger);
	free(third.ledger);
}
END_TEST

/* Section 6: "While its gate is closed a CPU's own operations bypass the stock: nothing waits." */
START_TEST(a_closed_gate_lets_operations_pass_by)
{
	struct pcpc_stock *line;
	uint32_t index;

	if (!open_cache(_i, 1))
		return;
	if (_i != PCPC_ENGINE_RSEQ)
		return; /* has no gate */
	refill(1, 10, 0);
	for (index = 0; index < cache->nr_indices; index++)
		pcpc_cache_stock(cache, index, 1)->gate = 1;
	ck_assert(!pcpc_cache_consume(cache, 1, 1, 0, &marks, &deferred));
	ck_assert_uint_eq(deferred.owner, 0);
	ck_assert(!pcpc_cache_consume(cache, 1, 1, 1, &marks, &deferred));
	ck_assert(pcpc_cache_consume(cache, 1, 0, 0, &marks, &deferred));
	pcpc_cache_refill(cache, 1, 5, 0, &marks, &deferred);
	ck_assert_uint_eq(deferred.owner, 1);
	ck_assert_uint_eq(deferred.count, 5);
	pcpc_cache_refill(cache, 1, 5, -2, &marks, &deferred);
	ck_assert_uint_eq(deferred.count, 5);
	ck_assert_int_eq(deferred.delta, -2);
	pcpc_cache_refill(cache, 2, 6, 0, &marks, &deferred);
	ck_assert_uint_eq(deferred.owner, 2);
	ck_assert_uint_eq(deferred.count, 6);
	for (index = 0; index < cache->nr_indices; index++) {
		line = pcpc_cache_stock(cache, index, 1);
		ck_assert_uint_eq(line->gate, 1);
		line->gate = 0;
	}
	ck_assert_uint_eq(pcpc_cache_stocked(cache, 1), 10);
	ck_assert_uint_eq(pcpc_cache_stocked(cache, 2), 0);
	ck_assert(pcpc_cache_consume(cache, 1, 10, 0, &marks, &deferred));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("cache drain");
	TCase *tests = unit_case(suite, "drain");
	const int first = PCPC_ENGINE_RSEQ, end = PCPC_ENGINE_ATOMIC + 1;

	tcase_add_checked_fixture(tests, NULL, teardown);
	tcase_add_loop_test(tests, a_drain_takes_what_matches_and_nothing_else, first, end);
	tcase_add_loop_test(tests, a_drain_leaves_other_words_as_they_were, first, end);
	tcase_add_loop_test(tests, a_drain_that_finds_nothing_disturbs_nobody, first, end);
	tcase_add_loop_test(tests, a_drain_refuses_bad_arguments, first, end);
	tcase_add_loop_test(tests, a_drain_within_a_drain_is_refused, first, end);
	tcase_add_loop_test(tests, settle_may_consume_and_refill, first, end);
	tcase_add_loop_test(tests, more_words_than_the_buffer_are_drained_in_passes, first, end);
	tcase_add_loop_test(tests,
			    the_lowest_and_the_highest_owner_are_drained_in_caches_of_every_size,
			    first, end);
	tcase_add_loop_test(tests, a_drain_takes_from_every_cpu, first, end);
	tcase_add_loop_test(tests, drains_that_wait_are_served_by_one_round, first, end);
	tcase_add_loop_test(tests, a_word_that_two_wait_for_goes_to_one, first, end);
	tcase_add_loop_test(tests, a_closed_gate_lets_operations_pass_by, first, end);
	return unit_run(suite);
}
