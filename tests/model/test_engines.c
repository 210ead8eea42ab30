// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_engines.c - the engines agree (G13): one random script, on one CPU, gives the same words,
 * the same answers and the same deferred amounts under each engine, and those of the plain model.
 *
 * The same file is built with the inline fast path. PCPC_SEEDS: how many scripts (default 300);
 * PCPC_SEED: where they begin.
 */
#define _GNU_SOURCE
#include <pcpcharge/cache.h>

#include "cache_private.h"
#include "plain_model.h"
#include "unit_support.h"

#define STEPS 200
#define NR_ENGINES 2

static const enum pcpc_engine engines[NR_ENGINES] = { PCPC_ENGINE_RSEQ, PCPC_ENGINE_ATOMIC };

/* One step of a script. */
struct step {
	enum { CONSUME, REFILL, DRAIN } what;
	uint32_t owner;
	uint64_t count;
	int64_t delta;
	struct pcpc_marks marks;
};

/* What it has done. */
struct answer {
	bool hit;
	struct plain_slot deferred;
};

/* Values around the bounds more often than others. */
static uint64_t some_count(uint64_t *random, uint32_t high)
{
	static const uint64_t odd[] = {
		0, PCPC_COUNT_MAX, PCPC_COUNT_MAX + 1ull, (1ull << 32) + 1, INT64_MAX, UINT64_MAX
	};

	switch (unit_below(random, 8)) {
	case 0:
		return odd[unit_below(random, sizeof(odd) / sizeof(*odd))];
	case 1:
		return high - 1 + unit_below(random, 3);
	default:
		return unit_below(random, 8);
	}
}

static int64_t some_delta(uint64_t *random, uint32_t batch)
{
	static const int64_t odd[] = { PCPC_DELTA_MIN,	   PCPC_DELTA_MIN - 1, PCPC_DELTA_MAX,
				       PCPC_DELTA_MAX + 1, INT64_MIN,	       INT64_MAX };

	switch (unit_below(random, 16)) {
	case 0:
		return odd[unit_below(random, sizeof(odd) / sizeof(*odd))];
	case 1:
		return (int64_t)batch - 1 + (int64_t)unit_below(random, 3);
	case 2:
		return -((int64_t)batch - 1 + (int64_t)unit_below(random, 3));
	case 3:
	case 4:
		return (int64_t)unit_below(random, 9) - 4;
	default:
		return 0;
	}
}

static struct step some_step(uint64_t *random, uint32_t nr_owners)
{
	static const uint32_t highs[] = { 64, 64, 8, 1, PCPC_COUNT_MAX, 0, PCPC_COUNT_MAX + 1u };
	static const uint32_t batches[] = { 64, 64, 4, 1, 0, PCPC_DELTA_MAX, PCPC_DELTA_MAX + 1u };
	struct step step = { .what = unit_below(random, 2) ? CONSUME : REFILL };

	step.owner = 1 + (uint32_t)unit_below(random, nr_owners);
	if (unit_below(random, 50) == 0)
		step.what = DRAIN;
	if (unit_below(random, 100) == 0)
		step.owner = unit_below(random, 2) ? 0 : PCPC_OWNER_MAX + 1;
	step.marks.high = highs[unit_below(random, sizeof(highs) / sizeof(*highs))];
	step.marks.low = unit_below(random, 20) ? step.marks.high / 2 : step.marks.high + 1;
	step.marks.delta_batch = batches[unit_below(random, sizeof(batches) / sizeof(*batches))];
	step.count = some_count(random, step.marks.high);
	step.delta = some_delta(random, step.marks.delta_batch);
	return step;
}

static bool is_owner(uint32_t owner, void *context)
{
	return owner == *(const uint32_t *)context;
}

static struct plain_slot drained;

static void add_drained(const struct pcpc_deferred *deferred, void *context)
{
	ck_assert_uint_eq(deferred->owner, *(const uint32_t *)context);
	drained.owner = deferred->owner;
	drained.count += deferred->count;
	drained.delta += deferred->delta;
}

static struct plain_slot plain_deferred(const struct pcpc_deferred *deferred)
{
	return (struct plain_slot){ deferred->owner, deferred->count, deferred->delta };
}

static struct answer run_step(struct pcpc_cache *cache, const struct step *step)
{
	struct answer answer = { false, { 0, 0, 0 } };
	struct pcpc_deferred deferred;
	uint32_t owner = step->owner;

	switch (step->what) {
	case CONSUME:
		answer.hit = pcpc_cache_consume(cache, owner, step->count, step->delta,
						&step->marks, &deferred);
		answer.deferred = plain_deferred(&deferred);
		break;
	case REFILL:
		pcpc_cache_refill(cache, owner, step->count, step->delta, &step->marks, &deferred);
		answer.deferred = plain_deferred(&deferred);
		break;
	case DRAIN:
		drained = (struct plain_slot){ 0, 0, 0 };
		ck_assert_int_eq(pcpc_cache_drain(cache, is_owner, add_drained, &owner), 0);
		answer.deferred = drained;
		break;
	}
	return answer;
}

static struct answer model_step(struct plain_cache *model, const struct step *step)
{
	struct plain_request request =
		plain_request_of(step->owner, step->count, step->delta, step->marks.high,
				 step->marks.low, step->marks.delta_batch);
	struct answer answer = { false, { 0, 0, 0 } };

	switch (step->what) {
	case CONSUME:
		answer.hit = plain_cache_consume(model, &request, &answer.deferred);
		break;
	case REFILL:
		plain_cache_refill(model, &request, &answer.deferred);
		break;
	case DRAIN:
		if (step->owner >= 1 && step->owner <= PCPC_OWNER_MAX)
			answer.deferred = plain_cache_drain(model, step->owner);
		break;
	}
	return answer;
}

/* Nothing deferred is one thing, however it is written; and so is a drained slot that was empty. */
static bool same(struct plain_slot left, struct plain_slot right)
{
	if (!left.count && !left.delta)
		return !right.count && !right.delta;
	return left.owner == right.owner && left.count == right.count && left.delta == right.delta;
}

/* The stocks of the CPU this thread is pinned to. */
static void compare_stocks(struct pcpc_cache *cache, uint32_t index,
			   const struct plain_cache *model)
{
	struct pcpc_stock *stocks = pcpc_cache_line(cache, (size_t)index * cache->stocks_per_cpu);
	int i, slot;

	for (i = 0; i < model->nr_stocks; i++) {
		ck_assert_uint_eq(stocks[i].gate, 0);
		ck_assert_uint_eq(stocks[i].hand, (uint32_t)model->stocks[i].hand);
		for (slot = 0; slot < PLAIN_SLOTS; slot++)
			ck_assert_uint_eq(stocks[i].slot[slot],
					  plain_word_of(model->stocks[i].slot[slot]));
	}
}

static void run_script(uint64_t seed, uint32_t nr_stocks, uint32_t nr_owners)
{
	struct plain_cache model = { .nr_stocks = (int)nr_stocks };
	struct pcpc_cache *caches[NR_ENGINES];
	struct answer expected, answer;
	struct step step;
	uint64_t random = seed;
	int cpu, i, engine;

	cpu = sched_getcpu();
	model.stocks = calloc(nr_stocks, sizeof(*model.stocks));
	ck_assert_ptr_nonnull(model.stocks);
	for (engine = 0; engine < NR_ENGINES; engine++)
		caches[engine] = unit_cache(engines[engine], nr_stocks);
	for (i = 0; i < STEPS; i++) {
		step = some_step(&random, nr_owners);
		expected = model_step(&model, &step);
		for (engine = 0; engine < NR_ENGINES; engine++) {
			if (!caches[engine])
				continue;
			answer = run_step(caches[engine], &step);
			ck_assert_msg(answer.hit == expected.hit &&
					      same(answer.deferred, expected.deferred),
				      "seed 0x%" PRIx64 ", step %d, engine %s: %d of owner %u, "
				      "%" PRIu64 " and %" PRId64 ", marks %u %u %u: hit %d not %d, "
				      "deferred %ld %ld not %ld %ld",
				      seed, i, unit_engine_name(engines[engine]), step.what,
				      step.owner, step.count, step.delta, step.marks.high,
				      step.marks.low, step.marks.delta_batch, answer.hit,
				      expected.hit, (long)answer.deferred.count,
				      (long)answer.deferred.delta, (long)expected.deferred.count,
				      (long)expected.deferred.delta);
			/* Without an rseq area the atomic engine has a number of its own. */
			if (caches[engine]->fast.area.rseq)
				compare_stocks(caches[engine], (uint32_t)cpu, &model);
		}
	}
	for (engine = 0; engine < NR_ENGINES; engine++)
		pcpc_cache_destroy(caches[engine]);
	free(model.stocks);
}

/* G13, and section 4's transitions with section 5's search, insert and eviction. */
START_TEST(engines_and_model_agree)
{
	/* Many owners to few stocks, so that they live in each other's homes and are evicted. */
	static const uint32_t shapes[][2] = {
		{ 1, 5 }, { 1, 12 }, { 2, 40 }, { 4, 30 }, { 8, 200 }
	};
	uint64_t seeds = unit_knob("PCPC_SEEDS", 300), seed = unit_seed(), i;
	const uint32_t *shape;

	ck_assert(unit_pin(0));
	for (i = 0; i < seeds; i++) {
		shape = shapes[i % (sizeof(shapes) / sizeof(*shapes))];
		run_script(seed + i, shape[0], shape[1]);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("engines");

	tcase_add_test(unit_case(suite, "model"), engines_and_model_agree);
	return unit_run(suite);
}
