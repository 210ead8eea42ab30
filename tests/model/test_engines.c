// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_engines.c - the engines agree (G13): one random script, on one CPU, gives the same words,
 * the same answers and the same deferred amounts under each engine, and those of the plain model.
 *
 * The same file is built with the inline fast path, and with that of unloadable objects.
 * PCPC_SEEDS: how many scripts (default 2,500); PCPC_SEED: where they begin.
 */
#define _GNU_SOURCE
#include <pcpcharge/cache.h>

#include "model_support.h"

#define STEPS 200
#define STOCKS_MAX 8

/* Many owners to few stocks, so that they live in each other's homes and are evicted; the ids begin
 * after first. */
struct shape {
	uint32_t nr_stocks, nr_owners, first;
};

/* One step of a script. */
struct step {
	enum { CONSUME, REFILL, DRAIN } what;
	struct plain_request request;
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

static struct step some_step(uint64_t *random, const struct shape *shape)
{
	static const uint32_t highs[] = { 64, 64, 8, 1, PCPC_COUNT_MAX, 0, PCPC_COUNT_MAX + 1u };
	static const uint32_t batches[] = {
		64, 64, 4, 1, 0, PCPC_DELTA_MAX, PCPC_DELTA_MAX + 1u, 1 << 20
	};
	struct step step = { .what = unit_below(random, 2) ? CONSUME : REFILL };
	uint32_t owner = shape->first + 1 + (uint32_t)unit_below(random, shape->nr_owners);
	uint32_t high = highs[unit_below(random, sizeof(highs) / sizeof(*highs))];
	uint32_t batch = batches[unit_below(random, sizeof(batches) / sizeof(*batches))];
	uint32_t low = unit_below(random, 20) ? high / 2 : high + 1;

	if (unit_below(random, 50) == 0)
		step.what = DRAIN;
	else if (unit_below(random, 100) == 0)
		owner = unit_below(random, 2) ? 0 : PCPC_OWNER_MAX + 1;
	step.request = plain_request_of(owner, some_count(random, high), some_delta(random, batch),
					high, low, batch);
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
	drained.count += deferred->count;
	drained.delta += deferred->delta;
}

static struct answer run_step(struct pcpc_cache *cache, const struct step *step)
{
	uint32_t owner = (uint32_t)step->request.owner;

	switch (step->what) {
	case CONSUME:
		return cache_consume(cache, &step->request);
	case REFILL:
		return cache_refill(cache, &step->request);
	case DRAIN:
		break;
	}
	drained = (struct plain_slot){ owner, 0, 0 };
	ck_assert_int_eq(pcpc_cache_drain(cache, is_owner, add_drained, &owner), 0);
	return (struct answer){ false, drained };
}

static struct answer model_step(struct plain_cache *model, const struct step *step)
{
	struct answer answer = { false, { 0, 0, 0 } };

	switch (step->what) {
	case CONSUME:
		answer.hit = plain_cache_consume(model, &step->request, &answer.deferred);
		break;
	case REFILL:
		plain_cache_refill(model, &step->request, &answer.deferred);
		break;
	case DRAIN:
		answer.deferred = plain_cache_drain(model, step->request.owner);
		break;
	}
	return answer;
}

static bool same_stocks(const struct pcpc_stock *stocks, const struct plain_cache *model)
{
	int i;

	for (i = 0; i < model->nr_stocks; i++)
		if (!same_stock(&stocks[i], &model->stocks[i]))
			return false;
	return true;
}

/* What one shape is run on. stocks: of this CPU in each cache. */
struct bed {
	struct pcpc_cache *caches[NR_ENGINES];
	struct pcpc_stock *stocks[NR_ENGINES];
	struct plain_cache model;
};

static void check_step(const struct bed *bed, int engine, const struct step *step,
		       struct answer answer, struct answer expected)
{
	const struct plain_request *request = &step->request;

	if (answer.hit == expected.hit && same_slot(answer.deferred, expected.deferred) &&
	    same_stocks(bed->stocks[engine], &bed->model))
		return;
	ck_abort_msg("engine %s: %s of owner %u, %" PRIu64 " and %" PRId64 ", marks %u %u %u: "
		     "hit %d, model %d; deferred %u:%" PRIu64 ":%" PRId64 ", model %u:%" PRIu64
		     ":%" PRId64 "; stocks %s",
		     unit_engine_name(engines[engine]),
		     step->what == CONSUME  ? "consume"
		     : step->what == REFILL ? "refill"
					    : "drain",
		     (uint32_t)request->owner, (uint64_t)request->count, (int64_t)request->delta,
		     (uint32_t)request->high, (uint32_t)request->low,
		     (uint32_t)request->delta_batch, answer.hit, expected.hit,
		     (uint32_t)answer.deferred.owner, (uint64_t)answer.deferred.count,
		     (int64_t)answer.deferred.delta, (uint32_t)expected.deferred.owner,
		     (uint64_t)expected.deferred.count, (int64_t)expected.deferred.delta,
		     same_stocks(bed->stocks[engine], &bed->model) ? "agree" : "differ");
}

static void run_script(struct bed *bed, const struct shape *shape, uint64_t random)
{
	struct answer expected;
	struct step step;
	int i, engine;

	memset(bed->model.stocks, 0, shape->nr_stocks * sizeof(*bed->model.stocks));
	for (engine = 0; engine < NR_ENGINES; engine++)
		if (bed->caches[engine])
			memset(bed->stocks[engine], 0,
			       shape->nr_stocks * sizeof(struct pcpc_stock));
	for (i = 0; i < STEPS; i++) {
		step = some_step(&random, shape);
		expected = model_step(&bed->model, &step);
		for (engine = 0; engine < NR_ENGINES; engine++)
			if (bed->caches[engine])
				check_step(bed, engine, &step, run_step(bed->caches[engine], &step),
					   expected);
	}
}

static const struct shape shapes[] = {
	{ 1, 5, 0 },  { 1, 12, 0 },  { 2, 40, 0 },
	{ 4, 30, 0 }, { 8, 200, 0 }, { 2, 20, PCPC_OWNER_MAX - 20 },
};

/* G13, and section 4's transitions with section 5's search, insert and eviction. */
START_TEST(engines_and_model_agree)
{
	const struct shape *shape = &shapes[_i];
	const int nr_shapes = sizeof(shapes) / sizeof(*shapes);
	uint64_t scripts = unit_knob("PCPC_SEEDS", 2500) / (uint64_t)nr_shapes + 1;
	struct plain_stock model_stocks[STOCKS_MAX];
	struct bed bed = { .model = { (int)shape->nr_stocks, model_stocks } };
	uint64_t random = unit_seed();
	int engine;

	ck_assert(unit_pin(0));
	for (engine = 0; engine < NR_ENGINES; engine++) {
		bed.caches[engine] = unit_cache(engines[engine], shape->nr_stocks);
		if (bed.caches[engine])
			bed.stocks[engine] = stocks_here(bed.caches[engine]);
	}
	while (scripts--)
		run_script(&bed, shape, unit_random(&random));
	for (engine = 0; engine < NR_ENGINES; engine++)
		pcpc_cache_destroy(bed.caches[engine]);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("engines");

	tcase_add_loop_test(unit_case(suite, "model"), engines_and_model_agree, 0,
			    sizeof(shapes) / sizeof(*shapes));
	return unit_run(suite);
}
