// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_stat_staged.c - updates beside flushes and sweeps, in interleavings that are made and not
 * waited for; and the broken twin that loses one of them.
 *
 * Linked with stat_staged_stat.c and stat_staged_flush.c in place of stat.c and flush.c, and with
 * --wrap=pcpc_cache_drain.
 */
#define _GNU_SOURCE
#include "stat_staged.h"
#include "stat_support.h"

int __real_pcpc_cache_drain(struct pcpc_cache *cache, pcpc_match_fn *match, pcpc_settle_fn *settle,
			    void *context);
int __wrap_pcpc_cache_drain(struct pcpc_cache *cache, pcpc_match_fn *match, pcpc_settle_fn *settle,
			    void *context);

/* Called when the stat stocks have been drained. */
static void (*_Atomic when_drained)(void);
static bool refused; /* membarrier, for the drains of these stocks */

int __wrap_pcpc_cache_drain(struct pcpc_cache *cache, pcpc_match_fn *match, pcpc_settle_fn *settle,
			    void *context)
{
	void (*hook)(void) = atomic_load(&when_drained);
	int r;

	if (!domain || cache != domain->stats.cache)
		return __real_pcpc_cache_drain(cache, match, settle, context);
	if (refused)
		return -EPERM;
	r = __real_pcpc_cache_drain(cache, match, settle, context);
	if (hook)
		hook();
	return r;
}

static void wait_for(sem_t *semaphore)
{
	while (sem_wait(semaphore) < 0)
		;
}

static struct pcpc_owner *mid, *leaf, *sibling;

static bool open_tree(int engine)
{
	if (!open_stats(engine, (struct stat_shape){ .stocks = 1 }))
		return false;
	mid = child_of(root);
	leaf = child_of(mid);
	sibling = child_of(mid);
	return true;
}

/* -- semantics 5.2.5 -- */

static int batches_in_flush;

static void add_batch_when_leaf_is_cleared(struct pcpc_owner *owner)
{
	if (owner != leaf)
		return;
	batches_in_flush++;
	add(leaf, 1, 64);
}

static void add_batches(uint64_t n)
{
	while (n--)
		add(leaf, 1, 64);
}

/*
 * "A root flush clears leaf, a batch of 64 lands (leaf 64, root 64), the flush then clears root
 * (leaf 64, root 0)", then as many batches as there are CPUs: leaf is past the threshold, root is
 * at it. In their case with 4 CPUs: leaf 320, root 256.
 */
static void leaf_gets_ahead_of_root(void)
{
	add_batches(1);
	batches_in_flush = 0;
	atomic_store(&when_cleared, add_batch_when_leaf_is_cleared);
	pcpc_stat_flush(root);
	atomic_store(&when_cleared, NULL);
	ck_assert_int_eq(batches_in_flush, 1);
	ck_assert_uint_eq(updates_of(leaf), 64);
	ck_assert_uint_eq(updates_of(mid), 0);
	ck_assert_uint_eq(updates_of(root), 0);
	add_batches(threshold / 64);
	ck_assert_uint_eq(updates_of(leaf), threshold + 64);
	ck_assert_uint_eq(updates_of(root), threshold);
	ck_assert(pcpc_stat_needs_flush(leaf));
	ck_assert(!pcpc_stat_needs_flush(root));
}

/* G11: "next batch makes root 320 -> flushable"; and after 100 more (320, 320). */
START_TEST(G11_root_catches_up_with_its_leaf)
{
	if (!open_tree(_i))
		return;
	leaf_gets_ahead_of_root();
	add_batches(1);
	ck_assert_uint_eq(updates_of(root), threshold + 64);
	ck_assert_uint_eq(updates_of(mid), threshold + 64);
	ck_assert(pcpc_stat_needs_flush(root));
	add_batches(100);
	ck_assert_uint_eq(updates_of(leaf), threshold + 64);
	ck_assert_uint_eq(updates_of(root), threshold + 64);
	ck_assert_int_eq(pcpc_stat_read(root, 1), (int64_t)threshold + 64 * 103);
}
END_TEST

/* The walk as it was: "every later update stops at leaf; root stays at 256 for ever", and its reads
 * do not flush. */
START_TEST(twin_whose_walk_stops_leaves_root_behind)
{
	if (!open_tree(_i))
		return;
	leaf_gets_ahead_of_root();
	atomic_store(&walk_stops, true);
	add_batches(101);
	ck_assert_uint_eq(updates_of(leaf), threshold + 64);
	ck_assert_uint_eq(updates_of(root), threshold);
	ck_assert(!pcpc_stat_needs_flush(root));
	/* as it was when the flush ended */
	ck_assert_int_eq(pcpc_stat_read(root, 1), 128);
	ck_assert_int_eq(pcpc_stat_read(leaf, 1), (int64_t)threshold + 64 * 103);
	atomic_store(&walk_stops, false);
}
END_TEST

static void add_batch_at_every_level(struct pcpc_owner *owner)
{
	batches_in_flush++;
	add(leaf, 1, 64);
	add(owner, 2, 100);
}

/* Required: "Updates during a flush are seen by the next one": once, whatever the first one saw. */
START_TEST(updates_during_a_flush_are_seen_by_the_next)
{
	int64_t batches = 0, round;

	if (!open_tree(_i))
		return;
	for (round = 1; round <= 20; round++) {
		add(leaf, 1, 64);
		add(sibling, 0, 70);
		batches_in_flush = 0;
		atomic_store(&when_cleared, add_batch_at_every_level);
		pcpc_stat_flush(round % 2 ? root : mid);
		atomic_store(&when_cleared, NULL);
		ck_assert_int_ge(batches_in_flush, 2);
		batches += batches_in_flush;
		pcpc_stat_flush(root);
		ck_assert_int_eq(total_of(root, 1), 64 * (batches + round));
		ck_assert_int_eq(total_of(mid, 1), 64 * (batches + round));
		ck_assert_int_eq(total_of(leaf, 1), 64 * (batches + round));
		ck_assert_int_eq(total_of(root, 2), 100 * batches);
		ck_assert_int_eq(total_of(sibling, 0), 70 * round);
		pcpc_stat_flush(root);
		ck_assert_int_eq(total_of(root, 1), 64 * (batches + round));
		ck_assert_int_eq(total_of(root, 2), 100 * batches);
	}
}
END_TEST

/* -- every interleaving -- */

/* A thread that does a piece of work up to a number of steps, and waits there. */
struct actor {
	pthread_t thread;
	sem_t begin, paused, go_on;
	void (*work)(void);
	int steps; /* until it pauses; negative: no more */
	bool done;
};

static _Thread_local struct actor *self;

static void count_step(void)
{
	if (!self || self->steps-- != 0)
		return;
	sem_post(&self->paused);
	wait_for(&self->go_on);
}

static void *act(void *actor)
{
	self = actor;
	pcpc_thread_register();
	for (;;) {
		wait_for(&self->begin);
		if (!self->work)
			return NULL;
		self->work();
		self->done = true;
		sem_post(&self->paused);
	}
}

static void actor_start(struct actor *actor)
{
	*actor = (struct actor){ .done = true };
	sem_init(&actor->begin, 0, 0);
	sem_init(&actor->paused, 0, 0);
	sem_init(&actor->go_on, 0, 0);
	ck_assert_int_eq(pthread_create(&actor->thread, NULL, act, actor), 0);
}

static void actor_stop(struct actor *actor)
{
	actor->work = NULL;
	sem_post(&actor->begin);
	pthread_join(actor->thread, NULL);
}

/* So many steps of its work, which it begins if it is not in the middle of it. */
static void actor_steps(struct actor *actor, void (*work)(void), int steps)
{
	actor->steps = steps;
	if (actor->done) {
		actor->done = false;
		actor->work = work;
		sem_post(&actor->begin);
	} else {
		sem_post(&actor->go_on);
	}
	wait_for(&actor->paused);
}

static void actor_finish(struct actor *actor)
{
	while (!actor->done)
		actor_steps(actor, NULL, -1);
}

/* What the update is, and what was there before. */
struct scene {
	const char *name;
	int64_t delta; /* in thresholds, and one more */
	int64_t before_leaf, before_sibling;
	bool flushed_leaf; /* a flush of the leaf alone came before */
	bool of_mid;	   /* the flush beside is mid's */
};

static const struct scene scenes[] = {
	{ "alone", 1, 0, 0, false, false },
	{ "beside a sibling's", 1, 0, 1, false, false },
	{ "after a small one", 1, 1, 0, false, false },
	{ "past the threshold", 1, 100000, 0, false, false },
	{ "after a flush of the leaf", 1, 100000, 0, true, false },
	{ "past it, beside a sibling's", 1, 100000, 100000, false, false },
	{ "with mid's flush", 1, 100000, 1, false, true },
	{ "small ones", 0, 64, 64, false, false },
};

static const struct scene *scene;
static struct actor updater, flusher;
static int64_t sum_leaf, sum_sibling;

static int64_t delta_of(const struct scene *of)
{
	return of->delta ? (int64_t)threshold * of->delta + 1 : 64;
}

static void update_leaf(void)
{
	add(leaf, 1, delta_of(scene));
}

static void flush_beside(void)
{
	pcpc_stat_flush(scene->of_mid ? mid : root);
}

/* Applied at once, whatever the batch. */
static void prepare(const struct scene *of)
{
	scene = of;
	pcpc_stat_flush(mid);
	pcpc_stat_flush(leaf);
	pcpc_stat_flush(root);
	if (of->before_leaf)
		add(leaf, 1, 64 * of->before_leaf);
	if (of->flushed_leaf)
		pcpc_stat_flush(leaf);
	if (of->before_sibling)
		add(sibling, 1, 64 * of->before_sibling);
	sum_leaf += 64 * of->before_leaf + delta_of(of);
	sum_sibling += 64 * of->before_sibling;
}

/* stat.h: what a read misses is at most 64 x CPUs of what was applied; else the counter says so. */
static void level_is_announced(struct pcpc_owner *owner, int64_t applied, const int *at)
{
	ck_assert_msg(pcpc_stat_needs_flush(owner) ||
			      applied - total_of(owner, 1) <= (int64_t)threshold,
		      "%s, steps %d %d %d %d: %" PRId64 " missed at depth %u, counter %" PRIu64,
		      scene->name, at[0], at[1], at[2], at[3], applied - total_of(owner, 1),
		      owner->depth, updates_of(owner));
}

static void total_is(struct pcpc_owner *owner, int64_t expected, const int *at)
{
	ck_assert_msg(total_of(owner, 1) == expected,
		      "%s, steps %d %d %d %d: total %" PRId64 " at depth %u, expected %" PRId64,
		      scene->name, at[0], at[1], at[2], at[3], total_of(owner, 1), owner->depth,
		      expected);
}

static void counter_is_0(struct pcpc_owner *owner, const int *at)
{
	ck_assert_msg(updates_of(owner) == 0,
		      "%s, steps %d %d %d %d: flushed, and the counter of depth %u is %" PRIu64,
		      scene->name, at[0], at[1], at[2], at[3], owner->depth, updates_of(owner));
}

static void check_scene(const int *at)
{
	level_is_announced(leaf, sum_leaf, at);
	level_is_announced(mid, sum_leaf + sum_sibling, at);
	level_is_announced(root, sum_leaf + sum_sibling, at);
	pcpc_stat_flush(root);
	total_is(leaf, sum_leaf, at);
	total_is(sibling, sum_sibling, at);
	total_is(mid, sum_leaf + sum_sibling, at);
	total_is(root, sum_leaf + sum_sibling, at);
	counter_is_0(leaf, at);
	counter_is_0(mid, at);
	counter_is_0(root, at);
}

/* at: steps of the updater, the flusher, the updater again, the flusher again; then both to their
 * ends, the updater first. Returns how many turns ended in the middle of the work: the next one
 * came to its end, so that larger numbers there are the same. */
static int play(const int *at)
{
	struct actor *actor;
	int turns;

	atomic_store(&before_step, count_step);
	for (turns = 0; turns < 4; turns++) {
		actor = turns % 2 ? &flusher : &updater;
		actor_steps(actor, turns % 2 ? flush_beside : update_leaf, at[turns]);
		if (actor->done)
			break;
	}
	if (turns == 0)
		actor_steps(&flusher, flush_beside, -1);
	actor_finish(&updater);
	actor_finish(&flusher);
	atomic_store(&before_step, NULL);
	return turns;
}

#define STEPS 100 /* more than an update or a flush has */

/* All schedules of one scene; a turn that ends its work makes larger numbers of it needless. */
static int play_all(const struct scene *of)
{
	int at[4], turns, plays = 0;

	memset(at, 0, sizeof(at));
	for (;;) {
		prepare(of);
		turns = play(at);
		check_scene(at);
		plays++;
		/* The next: the last turn that was still in the middle goes a step further, or if
		 * it is the fourth to its end. */
		if (turns == 0)
			return plays;
		if (turns < 4)
			memset(&at[turns], 0, sizeof(at) - (size_t)turns * sizeof(at[0]));
		at[turns - 1] += turns < 4 ? 1 : STEPS;
		ck_assert_int_le(at[turns - 1], STEPS);
	}
}

/* Section 8: no update is lost, counted twice, or left unannounced, wherever an update and a flush
 * interrupt each other: both orders, and up to four changes between them. */
START_TEST(every_interleaving_of_an_update_and_a_flush)
{
	int plays = 0;
	uint32_t i;

	if (!open_tree(_i))
		return;
	actor_start(&updater);
	actor_start(&flusher);
	sum_leaf = sum_sibling = 0;
	for (i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++)
		plays += play_all(&scenes[i]);
	unit_note("%d interleavings", plays);
	ck_assert_int_gt(plays, 1000);
	actor_stop(&updater);
	actor_stop(&flusher);
}
END_TEST

/* -- a hit beside a sweep -- */

static sem_t hit_arrived, hit_may_go, hit_over;
static _Thread_local bool hit_waits;

static void hold_hit_up(void)
{
	if (!hit_waits)
		return;
	hit_waits = false;
	sem_post(&hit_arrived);
	wait_for(&hit_may_go);
}

/* Has a slot already, so that the next update is a hit; holds a reference meanwhile. */
static void hit_late(void *context)
{
	(void)context;
	add(leaf, 0, 5);
	add(leaf, 0, -5);
	hit_waits = true;
	add(leaf, 0, 12);
	hit_waits = false;
	pcpc_owner_put(leaf);
	sem_post(&hit_over);
}

/* After the first drain of the sweep. */
static void let_hit_go(void)
{
	atomic_store(&when_drained, NULL);
	sem_post(&hit_may_go);
	wait_for(&hit_over);
}

/*
 * G10 and G14: an update was in the middle of its hit, having found the owner live, when that was
 * destroyed and swept. It commits after the sweep's drain, and gives up its reference, the last
 * one. Its delta must not stay in a slot for the next owner of that id: the drain takes empty words
 * too, so that the commit finds another word than it has read.
 */
START_TEST(a_hit_that_a_sweep_overtakes_is_not_lost)
{
	struct worker worker;
	uint32_t id;

	if (!open_tree(_i))
		return;
	if (!PCPC_HAVE_RSEQ || _i != PCPC_ENGINE_RSEQ) {
		unit_note("not tested: no hit without a section here");
		return;
	}
	sem_init(&hit_arrived, 0, 0);
	sem_init(&hit_may_go, 0, 0);
	sem_init(&hit_over, 0, 0);
	worker_start(&worker, 0);
	id = pcpc_owner_id(leaf);
	pcpc_owner_get(leaf);
	atomic_store(&before_hit, hold_hit_up);
	worker_post(&worker, hit_late, NULL);
	wait_for(&hit_arrived);
	ck_assert_int_eq(pcpc_owner_destroy(leaf), 0);
	atomic_store(&when_drained, let_hit_go);
	pcpc_domain_poll(domain);
	worker_wait(&worker);
	atomic_store(&before_hit, NULL);
	pcpc_domain_poll(domain);
	ck_assert_uint_eq(atomic_load(&domain->nr_offline), 0);
	ck_assert_uint_eq(atomic_load(&domain->books[id].state), OWNER_FREE);
	ck_assert_uint_eq(stat_slots_of(owner_of(domain, id), 0).slots, 0);
	ck_assert_int_eq(exactly(mid, 0), 12);
	ck_assert_int_eq(exactly(root, 0), 12);
	leaf = child_of(root);
	ck_assert_uint_eq(pcpc_owner_id(leaf), id);
	ck_assert_int_eq(exactly(leaf, 0), 0);
	worker_stop(&worker);
}
END_TEST

/* -- drains that are refused -- */

/* stat.h: "Where membarrier is refused, what is in slots is missing": and nothing else, no owner is
 * freed that may have something there, and all of it comes as soon as it can. */
START_TEST(where_drains_are_refused_nothing_is_lost)
{
	uint32_t id;

	if (!open_tree(_i))
		return;
	id = pcpc_owner_id(leaf);
	add(leaf, 1, 5);
	add(leaf, 1, 100);
	add(sibling, 1, 7);
	refused = true;
	ck_assert_int_eq(exactly(mid, 1), 100);
	pass(AGE + 1);
	ck_assert_int_eq(pcpc_stat_read(root, 1), 100);
	ck_assert_int_eq(pcpc_owner_destroy(leaf), 0);
	pcpc_domain_poll(domain);
	ck_assert_uint_eq(atomic_load(&domain->books[id].state), OWNER_OFFLINE);
	ck_assert_int_eq(exactly(root, 1), 100);
	refused = false;
	pcpc_domain_poll(domain);
	ck_assert_uint_eq(atomic_load(&domain->books[id].state), OWNER_FREE);
	ck_assert_int_eq(exactly(root, 1), 112);
}
END_TEST

static sem_t flush_arrived, flush_goes_on;
static struct pcpc_owner *held_up_at;

static void hold_flush_up(struct pcpc_owner *owner)
{
	if (owner != held_up_at)
		return;
	held_up_at = NULL;
	sem_post(&flush_arrived);
	wait_for(&flush_goes_on);
}

static void *flush_root(void *argument)
{
	pcpc_stat_flush(root);
	return argument;
}

static void *read_root(void *argument)
{
	*(int64_t *)argument = pcpc_stat_read(root, 1);
	return argument;
}

/* stat.h, pcpc_stat_read(): "What it misses is at most ... 64 x CPUs of what was applied since the
 * last flush": also while another thread flushes, which has cleared the counter and not yet raised
 * the total. */
START_TEST(a_read_beside_a_flush_misses_no_more_than_another)
{
	pthread_t flushes, reads;
	int64_t value = -1;

	if (!open_tree(_i))
		return;
	(void)pcpc_stat_read(root, 1);
	sem_init(&flush_arrived, 0, 0);
	sem_init(&flush_goes_on, 0, 0);
	add(leaf, 1, 1000000);
	held_up_at = root;
	atomic_store(&when_cleared, hold_flush_up);
	ck_assert_int_eq(pthread_create(&flushes, NULL, flush_root, NULL), 0);
	wait_for(&flush_arrived);
	ck_assert_uint_eq(updates_of(root), 0);
	ck_assert_int_eq(pthread_create(&reads, NULL, read_root, &value), 0);
	/* it may wait for the flush, or be done already */
	sched_yield();
	sem_post(&flush_goes_on);
	pthread_join(reads, NULL);
	pthread_join(flushes, NULL);
	atomic_store(&when_cleared, NULL);
	ck_assert_int_eq(value, 1000000);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("stat staged");
	TCase *tests = unit_case(suite, "staged");

	tcase_add_checked_fixture(tests, NULL, close_domain);
	by_each_engine(tests, G11_root_catches_up_with_its_leaf);
	by_each_engine(tests, twin_whose_walk_stops_leaves_root_behind);
	by_each_engine(tests, updates_during_a_flush_are_seen_by_the_next);
	by_each_engine(tests, every_interleaving_of_an_update_and_a_flush);
	by_each_engine(tests, a_hit_that_a_sweep_overtakes_is_not_lost);
	by_each_engine(tests, where_drains_are_refused_nothing_is_lost);
	by_each_engine(tests, a_read_beside_a_flush_misses_no_more_than_another);
	return unit_run(suite);
}
