// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_limit_reclaim.c - reclaim functions: when they are called and for how much, one at a time,
 * what they may do, and that an owner that is full all day and reclaims keeps stocking.
 */
#define _GNU_SOURCE
#include "owner_clock.h"
#include "owner_support.h"

/* Something to free: units held by one owner, and how the function was called. */
struct pool {
	struct pcpc_owner *holder;
	uint64_t held;
	uint64_t at_most; /* units freed by one call */
	uint64_t wanted;  /* by the last call */
	unsigned int calls;
	void (*also)(struct pool *pool); /* what else it does */
	struct pcpc_owner *over, *help;
	int result;
};

static uint64_t free_some(struct pcpc_owner *over, uint64_t wanted, void *context)
{
	struct pool *pool = context;
	uint64_t freed = wanted < pool->held ? wanted : pool->held;

	if (freed > pool->at_most)
		freed = pool->at_most;
	pool->calls++;
	pool->wanted = wanted;
	pool->over = over;
	if (pool->also)
		pool->also(pool);
	pcpc_uncharge(pool->holder, freed);
	pool->held -= freed;
	return freed;
}

/* A limited owner whose limit a holder below it has used up, and which may be freed from there. */
static struct pcpc_owner *full_pool(struct pool *pool, uint64_t max)
{
	struct pcpc_owner *limited = make_owner(root, max, 0);

	pool->holder = child_of(limited);
	pool->held = max;
	if (!pool->at_most)
		pool->at_most = UINT64_MAX;
	charge(pool->holder, max);
	ck_assert_int_eq(pcpc_owner_set_reclaim(limited, free_some, pool), 0);
	return limited;
}

/* Section 7, step 2: "call it, ..., asking for n and a batch": before the limit has become exact
 * its effective batch is what its cap allows. */
START_TEST(reclaim_is_asked_for_the_amount_and_a_batch)
{
	struct pool pool = { 0 };
	struct pcpc_owner *limited, *leaf;

	if (!open_domain(_i, 64, 0))
		return;
	limited = full_pool(&pool, 32000);
	leaf = child_of(limited);
	charge(leaf, 100);
	ck_assert_uint_eq(pool.calls, 1);
	ck_assert_ptr_eq(pool.over, limited);
	/* its own batch is 512; 16 CPUs of its cap are a sixteenth of max */
	ck_assert_uint_eq(
		pool.wanted,
		100 + (32000 / 16 / domain->nr_cpus < 512 ? 32000 / 16 / domain->nr_cpus : 512));
	ck_assert_uint_eq(events_of(limited, PCPC_EVENT_RECLAIM), 1);
	ck_assert_uint_eq(events_of(root, PCPC_EVENT_RECLAIM), 1);
	ck_assert_uint_eq(events_of(leaf, PCPC_EVENT_RECLAIM), 0);
	ck_assert_uint_eq(events_of(limited, PCPC_EVENT_REFUSED), 0);
	ck_assert(!exact(limited));
	uncharge(leaf, 100);
	uncharge(pool.holder, pool.held);
}
END_TEST

/* Step 2: "up to 16 times while it frees something". Semantics 3, 12, has 16 retries too. */
START_TEST(reclaim_is_called_up_to_16_times_while_it_frees)
{
	struct pool pool = { .at_most = 1 };
	struct pcpc_owner *limited, *leaf;

	if (!open_domain(_i, 64, 0))
		return;
	limited = full_pool(&pool, 32000);
	leaf = child_of(limited);
	charge(leaf, 16);
	ck_assert_uint_eq(pool.calls, 16);
	ck_assert_uint_eq(pcpc_owner_usage(limited), 32000);
	/* 16 are not enough for 17; what was freed remains free */
	ck_assert_int_eq(pcpc_charge(leaf, 17), -EDQUOT);
	ck_assert_uint_eq(pool.calls, 32);
	ck_assert_uint_eq(pcpc_owner_usage(limited), 31984);
	charge(leaf, 16);
	ck_assert_uint_eq(pool.calls, 32);
	/* what frees nothing is not asked again */
	pool.at_most = 0;
	ck_assert_int_eq(pcpc_charge(leaf, 1), -EDQUOT);
	ck_assert_uint_eq(pool.calls, 33);
	/* nor is one that was taken away */
	ck_assert_int_eq(pcpc_owner_set_reclaim(limited, NULL, NULL), 0);
	ck_assert_int_eq(pcpc_charge(leaf, 1), -EDQUOT);
	ck_assert_uint_eq(pool.calls, 33);
	uncharge(leaf, 32);
	uncharge(pool.holder, pool.held);
}
END_TEST

/* Reclaim is of the owner that is full, and of nobody above or below. Semantics 3, i. */
START_TEST(the_owner_that_refuses_reclaims)
{
	struct pool above = { .at_most = UINT64_MAX }, below = { .at_most = UINT64_MAX },
		    pool = { 0 };
	struct pcpc_owner *limited, *leaf;

	if (!open_domain(_i, 64, 0))
		return;
	limited = full_pool(&pool, 1000);
	leaf = child_of(limited);
	above.holder = below.holder = leaf;
	ck_assert_int_eq(pcpc_owner_set_reclaim(root, free_some, &above), 0);
	ck_assert_int_eq(pcpc_owner_set_reclaim(leaf, free_some, &below), 0);
	charge(leaf, 10);
	ck_assert_uint_eq(pool.calls, 1);
	ck_assert_uint_eq(above.calls, 0);
	ck_assert_uint_eq(below.calls, 0);
	uncharge(leaf, 10);
	uncharge(pool.holder, pool.held);
}
END_TEST

/* Step 1 comes first: where a drain makes room nobody is asked. Semantics 3, j, is the other way.
 */
START_TEST(stocks_are_drained_before_anybody_reclaims)
{
	struct pool pool = { 0 };
	struct pcpc_owner *limited, *leaf;

	if (!open_domain(_i, 64, 0))
		return;
	limited = full_pool(&pool, 32000);
	leaf = child_of(limited);
	uncharge(pool.holder, 60);
	pool.held -= 60;
	ck_assert_uint_gt(stock_of(pool.holder), 0);
	pass(100 * MS);
	charge(leaf, 60);
	ck_assert_uint_eq(pool.calls, 0);
	ck_assert_uint_eq(events_of(limited, PCPC_EVENT_DRAIN), 1);
	uncharge(leaf, 60);
	uncharge(pool.holder, pool.held);
}
END_TEST

/* Section 7: "What that thread uncharges inside the function enters no stock from its owner up to
 * o". So not one unit too much is asked for, however deep the holder is. */
START_TEST(units_freed_inside_reclaim_enter_no_stock_below_the_limit)
{
	struct pool pool = { .at_most = 64 };
	struct pcpc_owner *limited, *leaf;
	int i;

	if (!open_domain(_i, 64, 0))
		return;
	pool.held = 32000;
	limited = make_owner(root, 32000, 0);
	leaf = child_of(limited);
	pool.holder = limited;
	for (i = 0; i < 5; i++)
		pool.holder = child_of(pool.holder);
	charge(pool.holder, 32000);
	ck_assert_int_eq(pcpc_owner_set_reclaim(limited, free_some, &pool), 0);
	charge(leaf, 64);
	ck_assert_uint_eq(pool.calls, 1);
	ck_assert_uint_eq(pcpc_owner_usage(limited), 32000);
	ck_assert_uint_eq(pcpc_owner_usage(pool.holder), 32000 - 64);
	ck_assert_uint_eq(pcpc_owner_stocked(limited), 0);
	/* outside the function the same thread stocks as ever */
	pass(1000 * MS);
	uncharge(pool.holder, 10000);
	charge(leaf, 1);
	ck_assert_uint_gt(pcpc_owner_stocked(limited), 0);
	uncharge(leaf, 65);
	uncharge(pool.holder, 32000 - 64 - 10000);
}
END_TEST

static void try_charge_again(struct pool *pool)
{
	/* still full: the function runs before it frees */
	pool->result = pcpc_charge(pool->help, 30000);
}

/* owner.h: "A charge made inside does not reclaim." Asks 7: "recursion > 1". */
START_TEST(asks_7_a_charge_inside_reclaim_does_not_reclaim)
{
	struct pool pool = { .also = try_charge_again };
	struct pcpc_owner *limited, *leaf;

	if (!open_domain(_i, 64, 0))
		return;
	limited = full_pool(&pool, 32000);
	leaf = child_of(limited);
	pool.help = child_of(limited);
	charge(leaf, 100);
	ck_assert_uint_eq(pool.calls, 1);
	ck_assert_int_eq(pool.result, -EDQUOT);
	uncharge(leaf, 100);
	uncharge(pool.holder, pool.held);
}
END_TEST

static bool count_one(struct pcpc_owner *owner, unsigned int depth, void *context)
{
	(void)owner;
	(void)depth;
	++*(uint32_t *)context;
	return true;
}

static void do_everything(struct pool *pool)
{
	struct pcpc_owner *owner = NULL, *other_limit;
	uint32_t seen = 0, i;

	/* charges and uncharges, beside and below the limit */
	ck_assert_int_eq(pcpc_charge(root, 100), 0);
	pcpc_uncharge(root, 100);
	ck_assert_int_eq(pcpc_charge(pool->help, 10), 0);
	pcpc_uncharge(pool->help, 10);
	ck_assert_int_eq(pcpc_charge_flags(pool->holder, 10, PCPC_FORCE, NULL), 0);
	pcpc_uncharge(pool->holder, 10);
	/* another limit, which it may run into */
	other_limit = make_owner(root, 50, 0);
	ck_assert_int_eq(pcpc_charge(other_limit, 50), 0);
	ck_assert_int_eq(pcpc_charge(other_limit, 1), -EDQUOT);
	pcpc_uncharge(other_limit, 50);
	ck_assert_int_eq(pcpc_owner_destroy(other_limit), 0);
	/* owners come and go, so many that a sweep is due */
	for (i = 0; i < 1100; i++) {
		ck_assert_int_eq(pcpc_owner_create(pool->over, NULL, &owner), 0);
		ck_assert_int_eq(pcpc_owner_destroy(owner), 0);
	}
	(void)pcpc_owner_drain(pool->over);
	(void)pcpc_owner_drain(root);
	pcpc_domain_poll(domain);
	pcpc_owner_walk(root, count_one, &seen);
	ck_assert_uint_eq(seen, 5); /* root, the limit, holder, leaf, help */
	(void)pcpc_owner_usage_exact(pool->over);
	ck_assert_int_eq(pcpc_owner_set_max(pool->over, pcpc_owner_max(pool->over)), 0);
	ck_assert_int_eq(pcpc_transfer(pool->holder, pool->help, 5), 0);
	ck_assert_int_eq(pcpc_transfer(pool->help, pool->holder, 5), 0);
}

/* Asks 7: "A reclaim callback that charges, releases, creates and destroys owners, and prints the
 * tree completes without deadlock". */
START_TEST(asks_7_reclaim_may_do_everything)
{
	struct pool pool = { .also = do_everything };
	struct pcpc_owner *limited, *leaf;

	if (!open_domain(_i, 64, 0))
		return;
	limited = full_pool(&pool, 32000);
	leaf = child_of(limited);
	pool.help = child_of(root);
	pool.over = limited;
	charge(leaf, 100);
	ck_assert_uint_eq(pool.calls, 1);
	ck_assert_uint_eq(pcpc_owner_usage_exact(limited), pool.held + 100);
	uncharge(leaf, 100);
	uncharge(pool.holder, pool.held);
}
END_TEST

static void hold_locks(struct pool *pool)
{
	(void)pool;
	ck_assert(!urcu_bp_read_ongoing());
	ck_assert_int_eq(pthread_mutex_trylock(&domain->tree_mutex), 0);
	pthread_mutex_unlock(&domain->tree_mutex);
	ck_assert_int_eq(pthread_mutex_trylock(&domain->sweep_mutex), 0);
	pthread_mutex_unlock(&domain->sweep_mutex);
	ck_assert_int_eq(pthread_mutex_trylock(&domain->cache->drain_mutex), 0);
	pthread_mutex_unlock(&domain->cache->drain_mutex);
}

/* Asks 7: "no library lock is held during callbacks"; owner.h: "outside any read-side section". */
START_TEST(asks_7_no_lock_is_held_around_reclaim)
{
	struct pool pool = { .also = hold_locks };
	struct pcpc_owner *limited, *leaf;

	if (!open_domain(_i, 64, 0))
		return;
	limited = full_pool(&pool, 32000);
	leaf = child_of(limited);
	charge(leaf, 100);
	ck_assert_uint_eq(pool.calls, 1);
	uncharge(leaf, 100);
	uncharge(pool.holder, pool.held);
}
END_TEST

static void let_the_owner_go(struct pool *pool)
{
	uint32_t before = (uint32_t)atomic_load(&books_of(pool->over)->refs);

	/* create's, the children's, and one for the call */
	ck_assert_uint_ge(before, 3);
	ck_assert_int_eq(pcpc_owner_set_reclaim(pool->over, NULL, NULL), 0);
	pcpc_domain_poll(domain);
	ck_assert_ptr_nonnull(pcpc_owner_by_id(domain, pool->over->id));
}

/* owner.h: callbacks "hold a reference on their owner"; set_reclaim(NULL) while it runs. */
START_TEST(reclaim_may_take_itself_away)
{
	struct pool pool = { .also = let_the_owner_go };
	struct pcpc_owner *limited, *leaf;

	if (!open_domain(_i, 64, 0))
		return;
	limited = full_pool(&pool, 32000);
	leaf = child_of(limited);
	charge(leaf, 100);
	charge(leaf, 100);
	ck_assert_uint_eq(pool.calls, 1);
	ck_assert_int_eq(pcpc_charge(leaf, 32000), -EDQUOT);
	ck_assert_uint_eq(pool.calls, 1);
	uncharge(leaf, 200);
	uncharge(pool.holder, pool.held);
}
END_TEST

/* -- several threads -- */

#define THREADS 4

struct shared {
	struct pcpc_owner *limited, *holder, *leaf;
	_Atomic uint64_t held;
	_Atomic int inside, most_inside;
	_Atomic unsigned int calls, refused;
	uint32_t rounds;
};

static uint64_t free_shared(struct pcpc_owner *over, uint64_t wanted, void *context)
{
	struct shared *shared = context;
	uint64_t held = atomic_load(&shared->held), freed;
	int inside = atomic_fetch_add(&shared->inside, 1) + 1;

	ck_assert_ptr_eq(over, shared->limited);
	if (inside > atomic_load(&shared->most_inside))
		atomic_store(&shared->most_inside, inside);
	atomic_fetch_add(&shared->calls, 1);
	sched_yield(); /* long enough for others to come */
	do {
		freed = wanted < held ? wanted : held;
	} while (!atomic_compare_exchange_weak(&shared->held, &held, held - freed));
	pcpc_uncharge(shared->holder, freed);
	atomic_fetch_sub(&shared->inside, 1);
	return freed;
}

static void *use_up(void *context)
{
	struct shared *shared = context;
	uint32_t i;

	for (i = 0; i < shared->rounds; i++) {
		if (pcpc_charge(shared->leaf, 50) == 0) {
			/* it becomes a part of what can be freed */
			ck_assert_int_eq(pcpc_transfer(shared->leaf, shared->holder, 50), 0);
			atomic_fetch_add(&shared->held, 50);
		} else {
			atomic_fetch_add(&shared->refused, 1);
		}
		pass(50000);
	}
	return NULL;
}

/* Section 7, step 2: "one caller at a time (others wait for it and try again)". */
START_TEST(one_thread_reclaims_at_a_time)
{
	struct shared shared = { .rounds = UNIT_SANITIZED ? 1000 : 5000 };
	pthread_t thread[THREADS];
	int i;

	if (!open_domain(_i, 64, 0))
		return;
	shared.limited = make_owner(root, 10000, 0);
	shared.holder = child_of(shared.limited);
	shared.leaf = child_of(shared.limited);
	charge(shared.holder, 10000);
	shared.held = 10000;
	ck_assert_int_eq(pcpc_owner_set_reclaim(shared.limited, free_shared, &shared), 0);
	for (i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, use_up, &shared), 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	ck_assert_int_eq(atomic_load(&shared.most_inside), 1);
	ck_assert_uint_gt(atomic_load(&shared.calls), 10);
	ck_assert_uint_eq(events_of(root, PCPC_EVENT_RECLAIM), atomic_load(&shared.calls));
	ck_assert_uint_eq(pcpc_owner_usage_exact(shared.limited), atomic_load(&shared.held));
	unit_note("%u calls, %u refusals", atomic_load(&shared.calls),
		  atomic_load(&shared.refused));
	uncharge(shared.holder, atomic_load(&shared.held));
}
END_TEST

struct queue {
	struct pcpc_owner *limited, *leaf;
	sem_t entered, leave;
	unsigned int calls;
};

static uint64_t block(struct pcpc_owner *over, uint64_t wanted, void *context)
{
	struct queue *queue = context;

	(void)over;
	(void)wanted;
	queue->calls++;
	sem_post(&queue->entered);
	while (sem_wait(&queue->leave) < 0)
		;
	pcpc_uncharge(queue->leaf, 1000);
	return 1000;
}

/* The same, staged: while one is inside, another waits, is not refused, and then finds room. */
START_TEST(whoever_comes_meanwhile_waits_for_the_one_inside)
{
	struct worker first, second;
	struct job one, two, three;
	struct queue queue = { 0 };
	struct worker third;

	if (!open_domain(_i, 64, 0))
		return;
	worker_start(&first, -1);
	worker_start(&second, -1);
	worker_start(&third, -1);
	sem_init(&queue.entered, 0, 0);
	sem_init(&queue.leave, 0, 0);
	queue.limited = make_owner(root, 1000, 0);
	queue.leaf = child_of(queue.limited);
	charge(queue.leaf, 1000);
	ck_assert_int_eq(pcpc_owner_set_reclaim(queue.limited, block, &queue), 0);
	one = two = (struct job){ .owner = child_of(queue.limited), .count = 100, .result = 1 };
	worker_post(&first, job_charge, &one);
	while (sem_wait(&queue.entered) < 0)
		;
	worker_post(&second, job_charge, &two);
	/* NORECLAIM and NOWAIT do not wait for it */
	three = (struct job){ .owner = queue.leaf, .count = 100, .flags = PCPC_NORECLAIM };
	worker_run(&third, job_charge, &three);
	ck_assert_int_eq(three.result, -EDQUOT);
	three.flags = PCPC_NOWAIT;
	worker_run(&third, job_charge, &three);
	ck_assert_int_eq(three.result, -EDQUOT); /* exact by now */
	ck_assert_int_eq(two.result, 1);
	ck_assert_uint_eq(queue.calls, 1);
	sem_post(&queue.leave);
	worker_wait(&first);
	worker_wait(&second);
	ck_assert_int_eq(one.result, 0);
	ck_assert_int_eq(two.result, 0);
	ck_assert_uint_eq(queue.calls, 1);
	uncharge(one.owner, 200);
	worker_stop(&first);
	worker_stop(&second);
	worker_stop(&third);
}
END_TEST

/* -- a full cache -- */

#define TENANTS 36

struct cache {
	struct pcpc_owner *limited, *tenant[TENANTS];
	struct worker worker;
	uint64_t held[TENANTS], calls, misses, refused, random;
	uint32_t hand;
};

/* Frees what is wanted, from one tenant after the other. */
static uint64_t evict(struct pcpc_owner *over, uint64_t wanted, void *context)
{
	struct cache *cache = context;
	uint64_t freed = 0, part;
	int looked;

	(void)over;
	cache->calls++;
	for (looked = 0; looked < TENANTS && freed < wanted; looked++) {
		cache->hand = (cache->hand + 1) % TENANTS;
		part = wanted - freed;
		part = part < cache->held[cache->hand] ? part : cache->held[cache->hand];
		pcpc_uncharge(cache->tenant[cache->hand], part);
		cache->held[cache->hand] -= part;
		freed += part;
	}
	return freed;
}

static void put(void *context)
{
	struct cache *cache = context;
	uint32_t which, i;
	uint64_t usage;

	for (i = 0; i < 100; i++) {
		which = (uint32_t)unit_below(&cache->random, TENANTS);
		usage = pcpc_owner_usage(cache->tenant[which]);
		if (pcpc_charge(cache->tenant[which], 1) == 0)
			cache->held[which]++;
		else
			cache->refused++;
		cache->misses += pcpc_owner_usage(cache->tenant[which]) != usage;
	}
	pass(100000);
}

/*
 * Section 7: "a full cache (root at its max all day, its reclaim function evicting) keeps stocking
 * and stays fast; it only evicts what stocks could hide, which is kept near max/64". A microsecond
 * a charge, on two CPUs; at first for three seconds, in which the cap finds its place.
 */
START_TEST(a_full_cache_that_reclaims_keeps_stocking)
{
	const uint32_t rounds = UNIT_SANITIZED ? 100 : 1000;
	struct cache cache = { .random = unit_seed() };
	uint64_t before, hidden = 0, i;

	if (!open_domain(_i, 64, 0))
		return;
	worker_start(&cache.worker, 1);
	cache.limited = make_owner(root, 100000, 0);
	ck_assert_int_eq(pcpc_owner_set_reclaim(cache.limited, evict, &cache), 0);
	for (i = 0; i < TENANTS; i++)
		cache.tenant[i] = child_of(cache.limited);
	for (i = 0; pcpc_owner_usage(cache.limited) < 99000; i++)
		put(&cache);
	for (i = 0; i < 300; i++) {
		if (i % 2)
			put(&cache);
		else
			worker_run(&cache.worker, put, &cache);
		pass(10 * MS);
	}
	before = drains_now();
	cache.calls = cache.misses = 0;
	for (i = 0; i < rounds; i++) {
		if (i % 2)
			put(&cache);
		else
			worker_run(&cache.worker, put, &cache);
		hidden += pcpc_owner_stocked(cache.limited);
	}
	unit_note("%u charges: %u misses, %u calls of reclaim, %u drains, %u units stocked",
		  100 * rounds, (unsigned int)cache.misses, (unsigned int)cache.calls,
		  (unsigned int)(drains_now() - before), (unsigned int)(hidden / rounds));
	ck_assert_uint_eq(cache.refused, 0);
	ck_assert_uint_le(drains_now() - before, rounds / 1000 + 2);
	/* most charges hit, and a call of reclaim serves many */
	ck_assert_uint_le(cache.misses, 100 * rounds * 2 / 5);
	ck_assert_uint_le(cache.calls, 100 * rounds / 15);
	ck_assert_uint_le(hidden / rounds, 100000 / 16);
	ck_assert(!exact(cache.limited));
	for (i = 0; i < TENANTS; i++)
		uncharge(cache.tenant[i], cache.held[i]);
	worker_stop(&cache.worker);
}
END_TEST

/* "when the reclaim function has freed something since": after it has been exact, a cache that can
 * evict again becomes fast again, though it stays full. */
START_TEST(a_full_cache_recovers_from_being_exact)
{
	struct pool pool = { 0 };
	struct pcpc_owner *limited, *leaf;
	uint32_t i, last = 0;

	if (!open_domain(_i, 64, 0))
		return;
	limited = full_pool(&pool, 100000);
	leaf = child_of(limited);
	ck_assert_int_eq(pcpc_owner_set_reclaim(limited, NULL, NULL), 0);
	ck_assert_int_eq(pcpc_charge(leaf, 1), -EDQUOT);
	ck_assert(exact(limited));
	ck_assert_int_eq(pcpc_owner_set_reclaim(limited, free_some, &pool), 0);
	for (i = 0; i < 8; i++) {
		pass(100 * MS);
		charge(leaf, 600); /* more than a batch each: misses */
		charge(leaf, 600);
		ck_assert_uint_ge(cap_of(limited), last);
		last = cap_of(limited);
	}
	ck_assert_uint_ge(last, 64);
	ck_assert(!exact(limited));
	uncharge(leaf, 8 * 1200);
	uncharge(pool.holder, pool.held);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("limit reclaim");
	TCase *tests = unit_case(suite, "reclaim");

	tcase_add_checked_fixture(tests, NULL, close_domain);
	by_each_engine(tests, reclaim_is_asked_for_the_amount_and_a_batch);
	by_each_engine(tests, reclaim_is_called_up_to_16_times_while_it_frees);
	by_each_engine(tests, the_owner_that_refuses_reclaims);
	by_each_engine(tests, stocks_are_drained_before_anybody_reclaims);
	by_each_engine(tests, units_freed_inside_reclaim_enter_no_stock_below_the_limit);
	by_each_engine(tests, asks_7_a_charge_inside_reclaim_does_not_reclaim);
	by_each_engine(tests, asks_7_reclaim_may_do_everything);
	by_each_engine(tests, asks_7_no_lock_is_held_around_reclaim);
	by_each_engine(tests, reclaim_may_take_itself_away);
	by_each_engine(tests, one_thread_reclaims_at_a_time);
	by_each_engine(tests, whoever_comes_meanwhile_waits_for_the_one_inside);
	by_each_engine(tests, a_full_cache_that_reclaims_keeps_stocking);
	by_each_engine(tests, a_full_cache_recovers_from_being_exact);
	return unit_run(suite);
}
