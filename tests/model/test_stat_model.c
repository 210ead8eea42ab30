// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_stat_model.c - random scripts of updates, flushes and reads on a tree of owners that come
 * and go, beside a plain model that knows only what was added, by whom and when. After every step
 * all invariants are looked at.
 *
 * The steps run on two threads that stand on two CPUs, one after the other, on a clock of the
 * test's own, so that every step has one right outcome, or right bounds. PCPC_SEEDS scripts of
 * PCPC_STEPS steps each; a script is repeated by PCPC_SEED=(its seed) PCPC_SEEDS=1.
 */
#define _GNU_SOURCE
#include "stat_support.h"

#define MOST 14 /* owners at a time, the root included */
#define ITEMS 3
#define NODES 2
#define KEYS (ITEMS * NODES)
#define COUPLED 1   /* item, and key: of node 0 */
#define RECENT 2048 /* updates that may be no older than 2 s */

enum life { NONE, LIVE, OFFLINE };

struct model {
	struct pcpc_owner *owner;
	enum life life;
	int parent; /* index; -1: the root */
	uint64_t held;
	uint32_t refs;	    /* that the test took, beside create's */
	int64_t own[KEYS];  /* all that was added to it */
	int64_t gone[KEYS]; /* and to those below it that were freed */
};

struct recent {
	uint64_t time, size;
	int owner;
	uint32_t key;
};

static struct script {
	uint64_t seed, random;
	enum pcpc_engine engine;
	uint32_t step, steps;
	struct model of[MOST];
	struct recent recent[RECENT];
	uint32_t nr_recent;
	uint64_t trace;
} script;

#define MODEL(condition, ...)                                            \
	do {                                                             \
		if (!(condition))                                        \
			model_failed(__LINE__, #condition, __VA_ARGS__); \
	} while (0)

__attribute__((format(printf, 3, 4), noreturn)) static void
model_failed(int line, const char *condition, const char *format, ...)
{
	va_list arguments;
	char text[256];

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	ck_abort_msg("PCPC_SEED=0x%" PRIx64 " PCPC_SEEDS=1, %s engine, step %u, line %d: %s (%s)",
		     script.seed, unit_engine_name(script.engine), script.step, line, condition,
		     text);
	abort();
}

static uint64_t draw(uint64_t bound)
{
	return unit_below(&script.random, bound);
}

static bool chance(uint64_t one_in)
{
	return draw(one_in) == 0;
}

/* Sizes are added up without wrapping. */
static uint64_t size_of(int64_t value)
{
	return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}

static uint64_t sizes(uint64_t one, uint64_t other)
{
	return one > UINT64_MAX - other ? UINT64_MAX : one + other;
}

static uint64_t distance(int64_t one, int64_t other)
{
	return size_of(plus(one, negative_of(other)));
}

/* -- the model -- */

static bool within(int i, int top)
{
	for (; i >= 0; i = script.of[i].parent)
		if (i == top)
			return true;
	return false;
}

/* All that was added in a subtree, those that are gone included. */
static int64_t added_below(int top, uint32_t key)
{
	int64_t sum = 0;
	int i;

	for (i = 0; i < MOST; i++)
		if (script.of[i].life != NONE && within(i, top))
			sum = plus(sum, plus(script.of[i].own[key], script.of[i].gone[key]));
	return sum;
}

/* The part of it that was applied: of those that are gone, all. */
static int64_t applied_below(int top, uint32_t key)
{
	int64_t sum = 0;
	int i;

	for (i = 0; i < MOST; i++)
		if (script.of[i].life != NONE && within(i, top))
			sum = plus(sum,
				   plus(local_of(script.of[i].owner, key), script.of[i].gone[key]));
	return sum;
}

static void note_update(int i, uint32_t key, int64_t delta)
{
	const uint64_t now = atomic_load(&coarse_now);
	uint32_t from, to = 0;

	script.of[i].own[key] = plus(script.of[i].own[key], delta);
	if (script.nr_recent == RECENT) {
		for (from = 0; from < RECENT; from++)
			if (now - script.recent[from].time <= AGE)
				script.recent[to++] = script.recent[from];
		script.nr_recent = to;
	}
	/* more than that: they count as old, and are asked for too early */
	if (script.nr_recent < RECENT)
		script.recent[script.nr_recent++] = (struct recent){ now, size_of(delta), i, key };
}

/* How much was added in the last 2 s by those that live. */
static uint64_t recent_below(int top, uint32_t key)
{
	const uint64_t now = atomic_load(&coarse_now);
	uint64_t sum = 0;
	uint32_t n;

	for (n = 0; n < script.nr_recent; n++)
		if (script.recent[n].key == key && script.recent[n].owner >= 0 &&
		    now - script.recent[n].time <= AGE && within(script.recent[n].owner, top))
			sum = sizes(sum, script.recent[n].size);
	return sum;
}

static bool has_children(int parent, bool live_ones)
{
	int i;

	for (i = 0; i < MOST; i++)
		if (script.of[i].parent == parent &&
		    (script.of[i].life == LIVE || (!live_ones && script.of[i].life == OFFLINE)))
			return true;
	return false;
}

/* May the script name it? Offline ones only while it holds units or a reference. */
static bool reachable(int i)
{
	return script.of[i].life == LIVE ||
	       (script.of[i].life == OFFLINE && (script.of[i].held || script.of[i].refs));
}

static int any(bool (*suits)(int i))
{
	int i = (int)draw(MOST), n;

	for (n = 0; n < MOST; n++, i = (i + 1) % MOST)
		if (suits(i))
			return i;
	return -1;
}

static bool is_live(int i)
{
	return script.of[i].life == LIVE;
}

static bool is_none(int i)
{
	return script.of[i].life == NONE;
}

static bool holds(int i)
{
	return script.of[i].life != NONE && script.of[i].held;
}

static void model_free(int i)
{
	struct model *parent = &script.of[script.of[i].parent];
	uint32_t key, n;

	for (key = 0; key < KEYS; key++)
		parent->gone[key] = plus(parent->gone[key],
					 plus(script.of[i].own[key], script.of[i].gone[key]));
	/* its deltas are nobody's to miss any more */
	for (n = 0; n < script.nr_recent; n++)
		if (script.recent[n].owner == i)
			script.recent[n].owner = -1;
	script.of[i] = (struct model){ .life = NONE, .parent = -1 };
}

/* What the next sweep frees: "without units and references", children before parents. */
static void model_sweep(void)
{
	bool freed;
	int i;

	do {
		freed = false;
		for (i = 1; i < MOST; i++) {
			if (script.of[i].life != OFFLINE || script.of[i].held ||
			    script.of[i].refs || has_children(i, false))
				continue;
			model_free(i);
			freed = true;
		}
	} while (freed);
}

/* -- what is looked at after every step -- */

static void look_at(int i)
{
	struct pcpc_owner *owner = script.of[i].owner;
	struct stat_slots slots;
	uint64_t missed = 0;
	int64_t sum;
	uint32_t key;

	for (key = 0; key < KEYS; key++) {
		slots = stat_slots_of(owner, key);
		sum = plus(local_of(owner, key), slots.delta);
		if (key == COUPLED)
			sum = plus(sum, slots_of(owner).delta);
		/* G10: value + what is in slots = the sum of all updates */
		MODEL(sum == script.of[i].own[key],
		      "owner %d, key %u: %" PRId64 " and %" PRId64 " in slots, of %" PRId64, i, key,
		      local_of(owner, key), sum, script.of[i].own[key]);
		MODEL(slots.slots <= domain->stats.cache->nr_indices, "owner %d, key %u", i, key);
		MODEL(slots.largest < (int64_t)domain->delta_batch, "owner %d, key %u", i, key);
		missed = sizes(missed, distance(applied_below(i, key), total_of(owner, key)));
		script.trace =
			(script.trace + (uint64_t)local_of(owner, key)) * 0x9e3779b97f4a7c15u +
			(uint64_t)total_of(owner, key);
	}
	/* G11: what was applied and is not in the total, the counter tells of */
	MODEL(pcpc_stat_needs_flush(owner) || missed <= updates_of(owner),
	      "owner %d: %" PRIu64 " are missing, %" PRIu64 " were counted", i, missed,
	      updates_of(owner));
	MODEL(pcpc_stat_needs_flush(owner) == (updates_of(owner) > threshold), "owner %d", i);
	script.trace = script.trace * 31 + updates_of(owner);
}

static void look_at_all(void)
{
	int i;

	for (i = 0; i < MOST; i++)
		if (script.of[i].life != NONE)
			look_at(i);
}

/* -- steps -- */

static int64_t draw_delta(void)
{
	static const int64_t rare[] = { INT64_MAX, INT64_MIN, (int64_t)1 << 32, INT32_MIN, 2097151,
					-2097152,  -1,	      (int64_t)1 << 44, 1 << 22 };

	if (chance(60))
		return rare[draw(9)];
	if (chance(10))
		return (int64_t)draw(4 * threshold) - 2 * (int64_t)threshold;
	return (int64_t)draw(81) - 40;
}

static void step_add(void)
{
	int i = any(reachable);
	uint32_t item = (uint32_t)draw(ITEMS), node = (uint32_t)draw(NODES);
	int64_t delta = draw_delta();

	if (chance(3)) {
		pcpc_stat_add_node(script.of[i].owner, node, item, delta);
		note_update(i, node * ITEMS + item, delta);
	} else {
		add(script.of[i].owner, item, delta);
		note_update(i, item, delta);
	}
	if (chance(20))
		pcpc_stat_add_node(script.of[i].owner, node + NODES * (uint32_t)draw(2),
				   item + (uint32_t)ITEMS, delta);
}

static void step_charge(void)
{
	int i = any(reachable), r;
	uint64_t count = chance(4) ? 0 : draw(100);
	int64_t delta = chance(4) ? draw_delta() : (int64_t)draw(21) - 10;

	r = pcpc_charge_stat(script.of[i].owner, count, delta);
	if (script.of[i].life == OFFLINE) {
		MODEL(r == -ESHUTDOWN, "%d", r);
		return;
	}
	MODEL(r == 0, "%d", r);
	script.of[i].held += count;
	note_update(i, COUPLED, delta);
}

static void step_uncharge(void)
{
	int i = any(holds);
	int64_t delta = chance(4) ? draw_delta() : (int64_t)draw(21) - 10;
	uint64_t count;

	if (i < 0)
		return;
	count = chance(3) ? script.of[i].held : 1 + draw(script.of[i].held);
	pcpc_uncharge_stat(script.of[i].owner, count, delta);
	script.of[i].held -= count;
	note_update(i, COUPLED, delta);
}

static void step_flush(void)
{
	int top = any(reachable), i;
	uint32_t key;

	pcpc_stat_flush(script.of[top].owner);
	for (i = 0; i < MOST; i++) {
		if (script.of[i].life == NONE || !within(i, top))
			continue;
		MODEL(updates_of(script.of[i].owner) == 0, "owner %d", i);
		/* semantics 5.5.7: and so total = local + gone + the children's totals */
		for (key = 0; key < KEYS; key++)
			MODEL(total_of(script.of[i].owner, key) == applied_below(i, key),
			      "owner %d, key %u", i, key);
	}
}

/* stat.h: a cheap read misses at most 64 x CPUs of what was applied, and nothing that is older than
 * 2 s. */
static void judge_read(int i, uint32_t item, int64_t value)
{
	int64_t applied = 0, added = 0;
	uint64_t recent = 0;
	uint32_t key;

	for (key = item; key < KEYS; key += ITEMS) {
		applied = plus(applied, applied_below(i, key));
		added = plus(added, added_below(i, key));
		recent = sizes(recent, recent_below(i, key));
	}
	MODEL(distance(applied, value) <= threshold, "owner %d: %" PRId64 " of %" PRId64, i, value,
	      applied);
	MODEL(distance(added, value) <= recent,
	      "owner %d: %" PRId64 " of %" PRId64 ", and %" PRIu64 " since 2 s", i, value, added,
	      recent);
}

static void step_read(void)
{
	uint32_t item = (uint32_t)draw(ITEMS), node = (uint32_t)draw(NODES), key;
	int i = any(reachable);
	int64_t value;

	if (!chance(3)) {
		value = pcpc_stat_read(script.of[i].owner, item);
		judge_read(i, item, value);
		return;
	}
	value = pcpc_stat_read_node(script.of[i].owner, node, item);
	key = node * ITEMS + item;
	MODEL(distance(applied_below(i, key), value) <= threshold, "owner %d", i);
	MODEL(distance(added_below(i, key), value) <= recent_below(i, key), "owner %d", i);
}

static void step_exact(void)
{
	int i = any(reachable);
	uint32_t item = (uint32_t)draw(ITEMS), key;
	int64_t expected = 0;

	for (key = item; key < KEYS; key += ITEMS)
		expected = plus(expected, added_below(i, key));
	MODEL(exactly(script.of[i].owner, item) == expected, "owner %d, item %u: %" PRId64, i, item,
	      expected);
}

static void step_local(void)
{
	int i = any(reachable);
	uint32_t item = (uint32_t)draw(ITEMS), key;
	int64_t expected = 0;

	for (key = item; key < KEYS; key += ITEMS)
		expected = plus(expected, local_of(script.of[i].owner, key));
	MODEL(pcpc_stat_read_local(script.of[i].owner, item) == expected, "owner %d", i);
}

static void step_drain(void)
{
	int top = any(reachable), i;

	(void)pcpc_owner_drain(script.of[top].owner);
	for (i = 0; i < MOST; i++)
		if (script.of[i].life != NONE && within(i, top))
			MODEL(slots_of(script.of[i].owner).delta == 0, "owner %d", i);
}

static void step_create(void)
{
	int parent = any(is_live), i = any(is_none), k, depth = 0;
	uint32_t key;

	if (i < 0)
		return;
	for (k = parent; k >= 0; k = script.of[k].parent)
		depth++;
	if (depth > 6)
		return;
	MODEL(pcpc_owner_create(script.of[parent].owner, NULL, &script.of[i].owner) == 0, "%d", i);
	script.of[i].life = LIVE;
	script.of[i].parent = parent;
	/* G14: it begins at 0 */
	for (key = 0; key < KEYS; key++)
		MODEL(local_of(script.of[i].owner, key) == 0 &&
			      total_of(script.of[i].owner, key) == 0,
		      "owner %d, key %u", i, key);
	MODEL(updates_of(script.of[i].owner) == 0, "owner %d", i);
}

static void step_destroy(void)
{
	int i = any(is_live), r;

	if (i == 0)
		return;
	r = pcpc_owner_destroy(script.of[i].owner);
	MODEL(r == (has_children(i, true) ? -EBUSY : 0), "%d", r);
	if (r == 0)
		script.of[i].life = OFFLINE;
}

static void step_reference(void)
{
	int i = any(reachable);

	if (script.of[i].refs && chance(2)) {
		pcpc_owner_put(script.of[i].owner);
		script.of[i].refs--;
	} else {
		pcpc_owner_get(script.of[i].owner);
		script.of[i].refs++;
	}
}

static void step_poll(void)
{
	pcpc_domain_poll(domain);
	model_sweep();
}

static void step_time(void)
{
	static const uint64_t times[] = {
		1, MS, 300 * MS, AGE / 2, AGE - 1, AGE, AGE + 1, 10 * AGE
	};

	pass(times[draw(8)]);
}

static const struct {
	void (*step)(void);
	uint32_t weight;
} choices[] = {
	{ step_add, 42 },   { step_charge, 8 },	 { step_uncharge, 8 },	{ step_flush, 5 },
	{ step_read, 10 },  { step_exact, 3 },	 { step_local, 1 },	{ step_drain, 1 },
	{ step_create, 6 }, { step_destroy, 4 }, { step_reference, 3 }, { step_poll, 4 },
	{ step_time, 5 },
};

static void one_step(void)
{
	uint32_t what = (uint32_t)draw(100), i = 0;

	while (what >= choices[i].weight)
		what -= choices[i++].weight;
	choices[i].step();
	look_at_all();
}

/* Some steps in a row on one CPU. */
static void run_some(void *context)
{
	uint32_t n = 1 + (uint32_t)draw(12);

	(void)context;
	for (; n && script.step < script.steps; n--, script.step++)
		one_step();
}

static struct worker workers[2];

/* On one of the CPUs too, for the trace tells where deltas are. */
static void clean_up(void *context)
{
	int i;

	(void)context;
	for (i = 0; i < MOST; i++) {
		if (script.of[i].life == NONE)
			continue;
		pcpc_uncharge(script.of[i].owner, script.of[i].held);
		for (; script.of[i].refs; script.of[i].refs--)
			pcpc_owner_put(script.of[i].owner);
		script.of[i].held = 0;
	}
	look_at_all();
	step_poll();
	look_at_all();
}

/* A root of its own, and knobs that a script's seed decides. False: no such engine. */
static bool open_script(void)
{
	static const uint32_t batches[] = { 1, 2, 10, 64, 64, 64, 1000, PCPC_DELTA_MAX };

	if (!open_stats((int)script.engine,
			(struct stat_shape){ .items = ITEMS,
					     .nodes = NODES,
					     .coupled = COUPLED,
					     .delta_batch = batches[draw(8)],
					     .batch = chance(4) ? 1 + (uint32_t)draw(500) : 64,
					     .stocks = 1u << draw(3) }))
		return false;
	unit_stand_anywhere();
	return true;
}

/* One script. Returns what the engines must agree on; 0: no such engine. */
static uint64_t run_script(uint64_t seed, enum pcpc_engine engine, uint32_t steps)
{
	int i;

	memset(&script, 0, sizeof(script));
	script.seed = script.random = seed;
	script.engine = engine;
	script.steps = steps;
	script.trace = 1;
	for (i = 0; i < MOST; i++)
		script.of[i].parent = -1;
	if (!open_script())
		return 0;
	/* once both know a cache, each has its own number where there are no CPU numbers */
	if (!workers[0].thread) {
		worker_start(&workers[0], 0);
		worker_start(&workers[1], 1);
	}
	script.of[0] = (struct model){ .owner = root, .life = LIVE, .parent = -1 };
	for (i = 0; i < 6; i++)
		step_create();
	while (script.step < script.steps)
		worker_run(&workers[draw(2)], run_some, NULL);
	worker_run(&workers[0], clean_up, NULL);
	close_domain();
	return script.trace;
}

static void stop_workers(void)
{
	int i;

	for (i = 0; i < 2 && workers[i].thread; i++)
		worker_stop(&workers[i]);
	close_domain();
}

/* G10, G11, G14 and the bounds of reads, in every script. */
START_TEST(every_script_adds_up)
{
	const uint64_t seeds = unit_knob("PCPC_SEEDS", UNIT_SANITIZED ? 60 : 600);
	const uint32_t steps = (uint32_t)unit_knob("PCPC_STEPS", 150);
	uint64_t first = unit_seed(), i;

	for (i = 0; i < seeds; i++)
		if (!run_script(first + i, (enum pcpc_engine)_i, steps))
			return;
	unit_note("%" PRIu64 " scripts of %u steps by the %s engine", seeds, steps,
		  unit_engine_name((enum pcpc_engine)_i));
}
END_TEST

/* G13: every local, total and counter, after every step. */
START_TEST(engines_agree_on_every_figure)
{
	const uint64_t seeds = unit_knob("PCPC_SEEDS", UNIT_SANITIZED ? 20 : 150);
	const uint32_t steps = (uint32_t)unit_knob("PCPC_STEPS", 150);
	uint64_t first = unit_seed(), by_rseq, by_atomic, i;

	for (i = 0; i < seeds; i++) {
		by_rseq = run_script(first + i, PCPC_ENGINE_RSEQ, steps);
		if (!by_rseq)
			return;
		by_atomic = run_script(first + i, PCPC_ENGINE_ATOMIC, steps);
		ck_assert_msg(by_rseq == by_atomic, "PCPC_SEED=0x%" PRIx64, first + i);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("stat model");
	TCase *tests = unit_case(suite, "model");

	tcase_add_checked_fixture(tests, NULL, stop_workers);
	by_each_engine(tests, every_script_adds_up);
	tcase_add_test(tests, engines_agree_on_every_figure);
	return unit_run(suite);
}
