// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_owner_model.c - random scripts on a tree of owners, beside a plain model that is exact: what
 * each owner's callers hold, and the limits. After every step all invariants are looked at.
 *
 * A charge that may wait must succeed if and only if it fits beside what is held at every level
 * (G2, G3). The steps run on two threads that stand on two CPUs, one after the other, so that every
 * step has one right outcome; the clock is the test's own. PCPC_SEEDS scripts of PCPC_STEPS steps
 * each; a script is repeated by PCPC_SEED=(its seed) PCPC_SEEDS=1.
 */
#define _GNU_SOURCE
#include "owner_clock.h"
#include "owner_support.h"

#define MOST 24	   /* owners at a time, the root included */
#define TALL 4096u /* amounts that are drawn seldom */

enum life { NONE, LIVE, OFFLINE };

/* What the model knows of an owner. Nothing of it is ever read from the library, but for the
 * largest batch, which only bounds its slots. */
struct model {
	struct pcpc_owner *owner;
	enum life life;
	int parent; /* index; -1: the root */
	uint32_t id;
	uint64_t held, max;
	int64_t delta;
	uint32_t refs;	       /* that the test took, beside create's */
	uint64_t refused;      /* final refusals here */
	bool reclaims, forced; /* forced: over its max by a forced charge */
	uint32_t largest_batch;
	/* before the step */
	uint64_t usage, peak;
	int64_t coupled;
};

static struct script {
	uint64_t seed, random;
	enum pcpc_engine engine;
	bool limits; /* false: nothing refuses, and the engines must agree to the last word */
	uint32_t step, steps;
	struct model of[MOST];
	int spared;	    /* whose units a reclaim function must not take now; -1: nobody's */
	unsigned int calls; /* of reclaim functions in this step */
	bool forces, sets;  /* what this step may have done to a limit */
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

static uint64_t below(uint64_t bound)
{
	return unit_below(&script.random, bound);
}

static bool chance(uint64_t one_in)
{
	return below(one_in) == 0;
}

/* -- the model -- */

static bool within(int i, int top)
{
	for (; i >= 0; i = script.of[i].parent)
		if (i == top)
			return true;
	return false;
}

static uint64_t held_below(int top)
{
	uint64_t sum = 0;
	int i;

	for (i = 0; i < MOST; i++)
		if (script.of[i].life != NONE && within(i, top))
			sum += script.of[i].held;
	return sum;
}

static bool fits_at(int i, uint64_t count)
{
	uint64_t held = held_below(i), max = script.of[i].max;

	return count <= max && held <= max - count;
}

/* At every level from i up to top, which is not looked at (-1: all of them). */
static bool fits(int i, int top, uint64_t count)
{
	for (; i != top; i = script.of[i].parent)
		if (!fits_at(i, count))
			return false;
	return true;
}

static int index_of(const struct pcpc_owner *owner)
{
	int i;

	for (i = 0; i < MOST; i++)
		if (script.of[i].life != NONE && script.of[i].owner == owner)
			return i;
	return -1;
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
	int i = (int)below(MOST), n;

	for (n = 0; n < MOST; n++, i = (i + 1) % MOST)
		if (suits(i))
			return i;
	return -1;
}

static bool is_live(int i)
{
	return script.of[i].life == LIVE;
}

static bool holds(int i)
{
	return script.of[i].life != NONE && script.of[i].held;
}

static bool is_none(int i)
{
	return script.of[i].life == NONE;
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
			script.of[i] = (struct model){ .life = NONE, .parent = -1 };
			freed = true;
		}
	} while (freed);
}

/* -- what is looked at after every step -- */

static void look_at(int i)
{
	struct model *model = &script.of[i];
	struct pcpc_owner *owner = model->owner;
	struct slots slots = slots_of(owner);
	uint64_t usage = pcpc_owner_usage(owner), children = 0, refused = 0;
	uint64_t stocked = 0;
	uint32_t batch = atomic_load(&books_of(owner)->own_batch);
	int k;

	for (k = 0; k < MOST; k++) {
		if (script.of[k].life == NONE || !within(k, i))
			continue;
		if (script.of[k].parent == i)
			children += pcpc_owner_usage(script.of[k].owner);
		stocked += stock_of(script.of[k].owner);
		refused += script.of[k].refused;
	}
	/* G1 */
	MODEL(usage == model->held + slots.count + children,
	      "owner %d: usage %" PRIu64 ", held %" PRIu64 ", stocked %" PRIu64
	      ", children %" PRIu64,
	      i, usage, model->held, slots.count, children);
	MODEL(coupled_of(owner) == model->delta, "owner %d", i);
	/* section 9 */
	if (chance(4)) {
		MODEL(pcpc_owner_stocked(owner) == stocked, "owner %d", i);
		MODEL(pcpc_owner_usage_exact(owner) == held_below(i), "owner %d", i);
	}
	MODEL(pcpc_owner_max(owner) == model->max, "owner %d", i);
	/* G5, G12 */
	model->largest_batch = batch > model->largest_batch ? batch : model->largest_batch;
	MODEL(slots.slots <= domain->cache->nr_indices, "owner %d: %u slots", i, slots.slots);
	MODEL(slots.largest <= model->largest_batch, "owner %d: %u in a slot", i, slots.largest);
	MODEL(!exact(owner) || stocked == 0, "owner %d is exact, %" PRIu64 " stocked", i, stocked);
	/* G2: over max only by force, or since max was lowered; and then it does not rise */
	if (usage <= model->max)
		model->forced = false;
	else
		MODEL(script.forces || script.sets || usage <= model->usage, "owner %d: %" PRIu64,
		      i, usage);
	MODEL(pcpc_owner_peak(owner) >= usage, "owner %d", i);
	/* for the owner and its ancestors; those that are gone still count above */
	MODEL(pcpc_owner_events(owner, PCPC_EVENT_REFUSED) >= refused, "owner %d", i);
	MODEL(pcpc_owner_events(owner, PCPC_EVENT_UNDERFLOW) == 0, "owner %d", i);
	if (!script.limits)
		script.trace = (script.trace + usage) * 0x9e3779b97f4a7c15u + slots.count;
}

static void look_at_all(void)
{
	int i;

	for (i = 0; i < MOST; i++)
		if (script.of[i].life != NONE)
			look_at(i);
}

static void remember_all(void)
{
	struct model *model;
	int i;

	for (i = 0; i < MOST; i++) {
		model = &script.of[i];
		if (model->life == NONE)
			continue;
		model->usage = pcpc_owner_usage(model->owner);
		model->peak = pcpc_owner_peak(model->owner);
		model->coupled = coupled_of(model->owner);
	}
}

/* G4: "a refused charge leaves nothing behind at any level". */
static void nothing_left_behind(void)
{
	struct model *model;
	int i;

	if (script.calls)
		return; /* a reclaim function may have done anything */
	for (i = 0; i < MOST; i++) {
		model = &script.of[i];
		if (model->life == NONE)
			continue;
		MODEL(pcpc_owner_usage(model->owner) <= model->usage, "owner %d", i);
		MODEL(pcpc_owner_peak(model->owner) == model->peak, "owner %d", i);
		MODEL(coupled_of(model->owner) == model->coupled, "owner %d", i);
	}
}

/* It succeeded although it does not fit: only where an owner is over its max by force, and what was
 * handed out had been counted there before (it lay in a stock). */
static void forced_before(int i, int top, uint64_t count)
{
	struct model *model;

	for (; i != top; i = script.of[i].parent) {
		model = &script.of[i];
		if (!fits_at(i, count))
			MODEL(model->forced && pcpc_owner_usage(model->owner) <= model->usage,
			      "owner %d: %" PRIu64 " more than its max", i, count);
	}
}

/* -- steps -- */

static uint64_t reclaim(struct pcpc_owner *over, uint64_t wanted, void *context)
{
	int top = index_of(over), i = (int)below(MOST), n;
	uint64_t freed = 0, part;

	(void)context;
	script.calls++;
	MODEL(top >= 0 && script.of[top].reclaims, "reclaim of %d", top);
	MODEL(wanted > 0, "%d", top);
	if (chance(8))
		return 0;
	for (n = 0; n < MOST && freed < wanted; n++, i = (i + 1) % MOST) {
		if (!holds(i) || i == script.spared || !within(i, top))
			continue;
		part = wanted - freed < script.of[i].held ? wanted - freed : script.of[i].held;
		if (chance(4))
			part = (part + 1) / 2;
		script.of[i].held -= part;
		pcpc_uncharge(script.of[i].owner, part);
		freed += part;
	}
	return freed;
}

static uint64_t draw_amount(int i)
{
	uint64_t room;

	switch (below(8)) {
	case 0:
		return below(3);
	case 1:
		return below(TALL);
	case 2:
		return chance(20) ? (1ull << 32) + below(3) : below(600);
	case 3: /* just what is left at some level, or next to it */
		for (; i > 0 && chance(2); i = script.of[i].parent)
			;
		room = held_below(i) < script.of[i].max ? script.of[i].max - held_below(i) : 0;
		if (room > TALL)
			return below(TALL);
		return room + below(3) > 0 ? room + below(3) : 1;
	default:
		return 1 + below(70);
	}
}

static int64_t draw_delta(void)
{
	if (chance(2))
		return 0;
	return chance(10) ? (int64_t)below(1u << 23) - (1 << 22) : (int64_t)below(41) - 20;
}

/* What a charge said, against the model. top: where the climb ends (a transfer), or -1. */
static void judge(int i, int top, uint64_t count, int r, bool waits,
		  const struct pcpc_refusal *refusal)
{
	int over;

	if (r == 0) {
		if (count && !fits(i, top, count))
			forced_before(i, top, count);
		return;
	}
	nothing_left_behind();
	if (r == -EDQUOT) {
		MODEL(!fits(i, top, count), "false refusal of %" PRIu64 " for %d", count, i);
		if (!refusal)
			return;
		over = index_of(refusal->over);
		MODEL(over >= 0 && within(i, over) && !fits_at(over, count),
		      "%d does not refuse %" PRIu64, over, count);
		MODEL(refusal->id == script.of[over].id && refusal->asked == count &&
			      refusal->max == script.of[over].max,
		      "%d", over);
		return;
	}
	MODEL(r == -EAGAIN && !waits, "%d for %" PRIu64 " of %d", r, count, i);
	if (!refusal)
		return;
	over = index_of(refusal->over);
	MODEL(over >= 0 && within(i, over), "%d", over);
	MODEL(count > script.of[over].max || script.of[over].usage > script.of[over].max - count ||
		      script.of[over].forced,
	      "%d had room for %" PRIu64, over, count);
}

/* A final refusal is an event of the one who refused. */
static void count_refusal(const struct pcpc_refusal *refusal, uint64_t before)
{
	MODEL(pcpc_owner_events(root, PCPC_EVENT_REFUSED) == before + 1, "%s", "not counted");
	script.of[index_of(refusal->over)].refused++;
}

static void step_charge(void)
{
	static const unsigned int choices[] = { 0, 0, 0, PCPC_NORECLAIM, PCPC_NOWAIT, PCPC_NOWAIT };
	unsigned int flags = choices[below(6)];
	uint64_t before = pcpc_owner_events(root, PCPC_EVENT_REFUSED), count;
	struct pcpc_refusal refusal = { 0 };
	bool section = script.limits && chance(12);
	int i = any(reachable), r;

	count = draw_amount(i);
	if (section)
		urcu_bp_read_lock();
	r = pcpc_charge_flags(script.of[i].owner, count, flags, &refusal);
	if (section)
		urcu_bp_read_unlock();
	if (script.of[i].life == OFFLINE) {
		MODEL(r == -ESHUTDOWN, "%d", r);
		nothing_left_behind();
		return;
	}
	judge(i, -1, count, r, !section && !(flags & PCPC_NOWAIT), &refusal);
	if (r == 0)
		script.of[i].held += count;
	else if (r == -EDQUOT)
		count_refusal(&refusal, before);
	if (section || flags)
		MODEL(script.calls == 0, "%u calls", script.calls);
	else if (r == -EDQUOT && script.of[index_of(refusal.over)].reclaims && count <= refusal.max)
		MODEL(script.calls > 0, "%s", "refused without reclaim");
}

/* The same with a delta, or waiting for no time at all. */
static void step_charge_otherwise(void)
{
	int i = any(is_live), r;
	int64_t delta = 0;
	uint64_t count = draw_amount(i);

	if (chance(3)) {
		r = pcpc_charge_wait(script.of[i].owner, count, 0);
		if (r == -ETIMEDOUT) {
			MODEL(!fits(i, -1, count), "false time-out of %" PRIu64 " for %d", count,
			      i);
			nothing_left_behind();
			return;
		}
		MODEL(r == 0 || r == -EDQUOT, "%d", r);
	} else {
		delta = draw_delta();
		r = pcpc_charge_stat(script.of[i].owner, count, delta);
	}
	judge(i, -1, count, r, true, NULL);
	if (r == 0) {
		script.of[i].held += count;
		script.of[i].delta += delta;
	}
}

static void step_force(void)
{
	uint64_t before = pcpc_owner_events(root, PCPC_EVENT_FORCED), count;
	int i = any(is_live), k, r;
	bool room = true, fit;

	count = draw_amount(i);
	for (k = i; k >= 0; k = script.of[k].parent)
		room &= count <= script.of[k].max && script.of[k].usage <= script.of[k].max - count;
	fit = fits(i, -1, count);
	script.forces = true;
	r = pcpc_charge_flags(script.of[i].owner, count,
			      chance(2) ? PCPC_FORCE : PCPC_FORCE | PCPC_NOWAIT, NULL);
	MODEL(r == 0, "%d", r);
	script.of[i].held += count;
	before = pcpc_owner_events(root, PCPC_EVENT_FORCED) - before;
	MODEL(before <= 1, "%" PRIu64, before);
	/* it counts "only in the last case" */
	MODEL(!room || before == 0, "%s", "counted though it fit");
	for (k = i; k >= 0; k = script.of[k].parent) {
		if (pcpc_owner_usage(script.of[k].owner) > script.of[k].max)
			script.of[k].forced = true;
		/* nothing that was counted before served it at a level where it does not fit */
		if (!fit && pcpc_owner_usage(script.of[k].owner) > script.of[k].max &&
		    pcpc_owner_usage(script.of[k].owner) > script.of[k].usage)
			MODEL(before == 1, "owner %d: over, and not counted", k);
	}
}

static void step_uncharge(void)
{
	int i = any(holds);
	uint64_t count;
	int64_t delta;

	if (i < 0)
		return;
	count = chance(4) ? script.of[i].held : 1 + below(script.of[i].held);
	if (chance(2) && count > 70)
		count = 1 + below(70);
	delta = chance(3) ? draw_delta() : 0;
	if (delta)
		pcpc_uncharge_stat(script.of[i].owner, count, delta);
	else
		pcpc_uncharge(script.of[i].owner, count);
	script.of[i].held -= count;
	script.of[i].delta += delta;
}

static int common_top(int from, int to)
{
	while (!within(from, to))
		to = script.of[to].parent;
	return to;
}

static void step_transfer(void)
{
	int from = any(holds), to = any(reachable), top, r;
	uint64_t count;

	if (from < 0)
		return;
	count = 1 + below(script.of[from].held);
	top = common_top(from, to);
	script.spared = from;
	r = pcpc_transfer(script.of[from].owner, script.of[to].owner, count);
	script.spared = -1;
	if (from == to) {
		MODEL(r == 0, "%d", r);
		return;
	}
	if (script.of[to].life == OFFLINE) {
		MODEL(r == -ESHUTDOWN, "%d", r);
		return;
	}
	if (r == 0) {
		/* it fits beside what was held before */
		script.of[from].held -= count;
		judge(to, top, count, r, true, NULL);
		script.of[to].held += count;
	} else {
		judge(to, top, count, r, true, NULL);
	}
}

static void step_set_max(void)
{
	int i = any(is_live), r;
	uint64_t max;

	switch (below(6)) {
	case 0:
		max = PCPC_UNLIMITED;
		break;
	case 1:
		max = held_below(i) + below(5);
		break;
	case 2:
		max = held_below(i) / 2;
		break;
	case 3:
		max = script.of[i].usage;
		break;
	default:
		max = below(2) ? below(40) : below(20000);
	}
	script.sets = true;
	r = pcpc_owner_set_max(script.of[i].owner, max);
	MODEL(r == 0, "%d", r);
	script.of[i].max = max;
	script.of[i].forced = false;
	/* "in force when it returns, stocked units included" */
	if (held_below(i) > max)
		MODEL(pcpc_owner_usage(script.of[i].owner) == held_below(i), "owner %d", i);
}

static void step_settings(void)
{
	static const uint32_t batches[] = { 0, 1, 2, 8, 64, 500, PCPC_BATCH_NONE };
	int i = any(is_live);

	switch (below(4)) {
	case 0:
		MODEL(pcpc_owner_set_batch(script.of[i].owner, batches[below(7)]) == 0, "%d", i);
		break;
	case 1:
		MODEL(pcpc_owner_set_high(script.of[i].owner, below(1000)) == 0, "%d", i);
		break;
	case 2:
		pcpc_owner_reset_peak(script.of[i].owner);
		break;
	default:
		if (!script.limits)
			break;
		script.of[i].reclaims = !script.of[i].reclaims;
		MODEL(pcpc_owner_set_reclaim(script.of[i].owner,
					     script.of[i].reclaims ? reclaim : NULL, NULL) == 0,
		      "%d", i);
	}
}

static void step_drain(void)
{
	int i = any(is_live);
	uint64_t stocked = pcpc_owner_stocked(script.of[i].owner);

	MODEL(pcpc_owner_drain(script.of[i].owner) == stocked, "owner %d", i);
	MODEL(pcpc_owner_stocked(script.of[i].owner) == 0, "owner %d", i);
}

static void step_create(void)
{
	static const uint32_t batches[] = { 0, 0, 0, 0, 1, 7, 300, PCPC_BATCH_NONE };
	struct pcpc_owner_config config = { .size = sizeof(config) };
	int parent = any(is_live), i = any(is_none), k, depth = 0;
	uint32_t id;
	int r;

	if (i < 0)
		return;
	for (k = parent; k >= 0; k = script.of[k].parent)
		depth++;
	if (depth > 7)
		return;
	if (script.limits && chance(2))
		config.max = chance(3) ? 1 + below(40) : 1 + below(10000);
	config.batch = batches[below(8)];
	r = pcpc_owner_create(script.of[parent].owner, &config, &script.of[i].owner);
	MODEL(r == 0, "%d", r);
	/* "dense, lowest free first", offline ones not free yet */
	for (id = 1;; id++) {
		for (k = 0; k < MOST; k++)
			if (k != i && script.of[k].life != NONE && script.of[k].id == id)
				break;
		if (k == MOST)
			break;
	}
	MODEL(pcpc_owner_id(script.of[i].owner) == id, "id %u, expected %u",
	      pcpc_owner_id(script.of[i].owner), id);
	script.of[i].life = LIVE;
	script.of[i].parent = parent;
	script.of[i].id = id;
	script.of[i].max = config.max ? config.max : PCPC_UNLIMITED;
}

static void step_destroy(void)
{
	int i = any(is_live), r;

	r = pcpc_owner_destroy(script.of[i].owner);
	if (i == 0) {
		MODEL(r == -EINVAL, "%d", r);
	} else if (has_children(i, true)) {
		MODEL(r == -EBUSY, "%d", r);
	} else {
		MODEL(r == 0, "%d", r);
		script.of[i].life = OFFLINE;
		script.of[i].reclaims = false;
	}
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

static bool count_live(struct pcpc_owner *owner, unsigned int depth, void *context)
{
	int i = index_of(owner), k, expected = -1;

	for (k = i; k >= 0; k = script.of[k].parent)
		expected++;
	MODEL(i >= 0 && script.of[i].life == LIVE && (int)depth == expected, "owner %d", i);
	++*(int *)context;
	return true;
}

static void step_poll(void)
{
	int seen = 0, live = 0, i;

	pcpc_domain_poll(domain);
	model_sweep();
	pcpc_owner_walk(root, count_live, &seen);
	for (i = 0; i < MOST; i++) {
		live += script.of[i].life == LIVE;
		if (script.of[i].life != NONE)
			MODEL(pcpc_owner_by_id(domain, script.of[i].id) == script.of[i].owner, "%d",
			      i);
	}
	MODEL(seen == live, "%d of %d", seen, live);
}

static void step_time(void)
{
	static const uint64_t times[] = { 1, 4, 50, 99, 100, 101, 1000, 100000 };

	pass(times[below(8)] * MS);
}

static void one_step(void)
{
	uint64_t what = below(100);

	script.calls = 0;
	script.forces = script.sets = false;
	remember_all();
	if (what < 34)
		step_charge();
	else if (what < 42)
		step_charge_otherwise();
	else if (what < 66)
		step_uncharge();
	else if (what < 69)
		script.limits ? step_force() : step_uncharge();
	else if (what < 75)
		step_transfer();
	else if (what < 80)
		script.limits ? step_set_max() : step_charge();
	else if (what < 83)
		step_settings();
	else if (what < 84)
		step_drain();
	else if (what < 90)
		step_create();
	else if (what < 92)
		step_destroy();
	else if (what < 93)
		step_reference();
	else if (what < 96)
		step_poll();
	else
		step_time();
	look_at_all();
}

/* Some steps in a row on one CPU. */
static void run_some(void *context)
{
	uint32_t n = 1 + (uint32_t)below(12);

	(void)context;
	for (; n && script.step < script.steps; n--, script.step++)
		one_step();
}

static struct worker workers[2];

/* On one of the CPUs too, for the trace tells where units are. */
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
}

/* One script. Returns what the engines must agree on; 0: no such engine. */
static uint64_t run_script(uint64_t seed, enum pcpc_engine engine, bool limits, uint32_t steps)
{
	struct pcpc_domain_config config = domain_config(engine, 64);
	int i;

	memset(&script, 0, sizeof(script));
	script = (struct script){ .seed = seed,
				  .random = seed,
				  .engine = engine,
				  .limits = limits,
				  .steps = steps,
				  .spared = -1,
				  .trace = 1 };
	for (i = 0; i < MOST; i++)
		script.of[i].parent = -1;
	config.items = &(struct pcpc_item){ "moved", "units" };
	config.nr_items = 1;
	config.flags = chance(4) ? PCPC_DOMAIN_KERNEL : 0;
	config.batch = chance(8) ? 1 + (uint32_t)below(500) : 64;
	config.stocks_per_cpu = 1u << below(3); /* few slots, so that they evict each other */
	if (!create_domain(&config))
		return 0;
	/* once both know a cache, each has its own number where there are no CPU numbers */
	if (!workers[0].thread) {
		worker_start(&workers[0], 0);
		worker_start(&workers[1], 1);
	}
	script.of[0] = (struct model){
		.owner = root, .life = LIVE, .parent = -1, .id = 1, .max = PCPC_UNLIMITED
	};
	for (i = 0; i < 6; i++)
		step_create();
	while (script.step < script.steps)
		worker_run(&workers[below(2)], run_some, NULL);
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

/* G1 to G5, G7, G12, G14, in every script. */
START_TEST(every_script_does_what_the_model_says)
{
	const uint64_t seeds = unit_knob("PCPC_SEEDS", UNIT_SANITIZED ? 100 : 1500);
	const uint32_t steps = (uint32_t)unit_knob("PCPC_STEPS", 80);
	uint64_t first = unit_seed(), i;

	for (i = 0; i < seeds; i++)
		if (!run_script(first + i, (enum pcpc_engine)_i, true, steps))
			return;
	unit_note("%" PRIu64 " scripts of %u steps by the %s engine", seeds, steps,
		  unit_engine_name((enum pcpc_engine)_i));
}
END_TEST

/* G13: "the same single-threaded script gives the same results under each" engine: here every
 * counter and every slot's content, after every step. (Where limits are felt the fast path of one
 * engine looks at its cap less often; results, which the model decides, are the same.) */
START_TEST(engines_agree_on_every_figure)
{
	const uint64_t seeds = unit_knob("PCPC_SEEDS", UNIT_SANITIZED ? 50 : 300);
	const uint32_t steps = (uint32_t)unit_knob("PCPC_STEPS", 80);
	uint64_t first = unit_seed(), by_rseq, by_atomic, i;

	for (i = 0; i < seeds; i++) {
		by_rseq = run_script(first + i, PCPC_ENGINE_RSEQ, false, steps);
		if (!by_rseq)
			return;
		by_atomic = run_script(first + i, PCPC_ENGINE_ATOMIC, false, steps);
		ck_assert_msg(by_rseq == by_atomic, "PCPC_SEED=0x%" PRIx64, first + i);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("owner model");
	TCase *tests = unit_case(suite, "model");

	tcase_add_checked_fixture(tests, NULL, stop_workers);
	by_each_engine(tests, every_script_does_what_the_model_says);
	tcase_add_test(tests, engines_agree_on_every_figure);
	return unit_run(suite);
}
