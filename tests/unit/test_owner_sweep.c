// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_owner_sweep.c - sweeps beside late uncharges, references, evictions and creations: nothing
 * is freed that somebody still works with. Staged where it can be, else many rounds.
 *
 * Linked with --wrap=pcpc_raise, so that a call can be held up where an event arises, and with
 * --wrap=free, which stands for an allocator that uses the library.
 */
#define _GNU_SOURCE
#include "owner_support.h"

void __real_pcpc_raise(struct pcpc_owner *owner, enum pcpc_event event);
void __wrap_pcpc_raise(struct pcpc_owner *owner, enum pcpc_event event);

static _Atomic(struct pcpc_owner *) held_up; /* whose RELIEVED is held up */
static sem_t arrived, go_on;

void __wrap_pcpc_raise(struct pcpc_owner *owner, enum pcpc_event event)
{
	if (event == PCPC_EVENT_RELIEVED && owner == atomic_load(&held_up)) {
		sem_post(&arrived);
		while (sem_wait(&go_on) < 0)
			;
	}
	__real_pcpc_raise(owner, event);
}

void __real_free(void *block);
void __wrap_free(void *block);

static unsigned int polls_left; /* in calls of free() */

void __wrap_free(void *block)
{
	if (block && polls_left) {
		polls_left--;
		atomic_store(&domain->sweep_wanted, true);
		pcpc_domain_poll(domain);
	}
	__real_free(block);
}

static void ignore(struct pcpc_owner *owner, enum pcpc_event event, void *context)
{
	(void)owner;
	(void)event;
	(void)context;
}

static void job_poll(void *context)
{
	*(_Atomic pid_t *)context = gettid();
	pcpc_domain_poll(domain);
}

/* Does that thread sleep? */
static bool asleep(pid_t thread)
{
	char path[64], state = '?';
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)thread);
	file = fopen(path, "r");
	if (file) {
		ck_assert_int_eq(fscanf(file, "%*d (%*[^)]) %c", &state), 1);
		fclose(file);
	}
	return state == 'S';
}

/*
 * G14 and section 7, Lifetime: the last late uncharge of an owner brings its usage to 0 and then
 * raises RELIEVED, which puts it on the list of those to tell about. A sweep that finds it idle in
 * between must not free it: it stands on that list.
 */
START_TEST(an_owner_that_is_about_to_be_told_of_is_not_freed)
{
	struct worker uncharger, sweeper;
	_Atomic pid_t thread = 0;
	struct pcpc_owner *leaf;
	uint64_t drains;
	struct job job;

	if (!open_domain(_i, 64, 0))
		return;
	worker_start(&uncharger, -1);
	worker_start(&sweeper, -1);
	sem_init(&arrived, 0, 0);
	sem_init(&go_on, 0, 0);
	ck_assert_int_eq(pcpc_owner_set_notify(root, ignore, NULL), 0);
	leaf = make_owner(root, 1600, 0);
	charge(leaf, 1600);
	ck_assert_int_eq(pcpc_charge(leaf, 1), -EDQUOT);
	pcpc_domain_poll(domain);
	ck_assert_int_eq(pcpc_owner_destroy(leaf), 0);
	/* the sweep is past its first grace period, and waits to drain */
	pthread_mutex_lock(&domain->cache->drain_mutex);
	drains = atomic_load(&domain->cache->drains);
	worker_post(&sweeper, job_poll, &thread);
	UNTIL(atomic_load(&domain->cache->wishes));
	/* the last units come back: usage is 0 */
	atomic_store(&held_up, leaf);
	job = (struct job){ .owner = leaf, .count = 1600 };
	worker_post(&uncharger, job_uncharge, &job);
	while (sem_wait(&arrived) < 0)
		;
	/* now it drains, looks who is idle, and then sleeps: waits for the uncharger, or is done */
	pthread_mutex_unlock(&domain->cache->drain_mutex);
	UNTIL(atomic_load(&domain->cache->drains) > drains);
	UNTIL(asleep(atomic_load(&thread)));
	atomic_store(&held_up, NULL);
	sem_post(&go_on);
	worker_wait(&uncharger);
	worker_wait(&sweeper);
	if (atomic_load(&books_of(leaf)->marks) & MARK_QUEUED)
		ck_assert_uint_ne(atomic_load(&books_of(leaf)->state), OWNER_FREE);
	pcpc_domain_poll(domain);
	pcpc_domain_poll(domain);
	ck_assert_uint_eq(atomic_load(&domain->books[2].state), OWNER_FREE);
	ck_assert_int_eq(pcpc_owner_set_notify(root, NULL, NULL), 0);
	worker_stop(&uncharger);
	worker_stop(&sweeper);
}
END_TEST

/* -- many rounds -- */

#define THREADS 3

struct storm {
	_Atomic(struct pcpc_owner *) shared; /* whoever takes it has the reference */
	_Atomic bool end;
	_Atomic uint64_t late, refused, charged;
	pthread_barrier_t barrier;
	uint32_t rounds;
};

/* Takes a handle with a reference, charges it while it goes offline, and uncharges late. */
static void *late_uncharger(void *context)
{
	struct storm *storm = context;
	struct pcpc_owner *owner;
	uint64_t random, held;
	int i, r;

	random = (uint64_t)gettid();
	while (!atomic_load(&storm->end)) {
		owner = atomic_exchange(&storm->shared, NULL);
		if (!owner) {
			sched_yield();
			continue;
		}
		held = 0;
		for (i = 0; i < 20; i++) {
			r = pcpc_charge(owner, 3);
			ck_assert(r == 0 || r == -ESHUTDOWN);
			if (r == 0) {
				held += 3;
				atomic_fetch_add_explicit(&storm->charged, 1, memory_order_relaxed);
			} else {
				atomic_fetch_add_explicit(&storm->refused, 1, memory_order_relaxed);
			}
			if (unit_below(&random, 2) && held) {
				pcpc_uncharge(owner, 3);
				held -= 3;
			}
		}
		if (unit_below(&random, 2)) {
			/* units keep it as well as a reference does */
			if (!held && pcpc_charge(owner, 1) == 0)
				held = 1;
			if (held) {
				pcpc_owner_put(owner);
				owner = pcpc_owner_by_id(domain, pcpc_owner_id(owner));
				ck_assert_ptr_nonnull(owner);
				atomic_fetch_add_explicit(&storm->late, 1, memory_order_relaxed);
				pcpc_uncharge(owner, held);
				continue;
			}
		}
		pcpc_uncharge(owner, held);
		pcpc_owner_put(owner);
	}
	return NULL;
}

/* Asks 9 and 16: "destroy racing charge", sweeps and creations all the time, few slots so that they
 * evict each other; in the end everything is back. Chargers hold a reference or units. */
START_TEST(asks_9_destroy_and_sweep_beside_chargers)
{
	struct storm storm = { .rounds = UNIT_SANITIZED ? 2000 : 8000 };
	struct pcpc_owner *owner, *mid, *left;
	pthread_t thread[THREADS];
	uint32_t i;

	if (!open_domain(_i, 64, 1))
		return;
	unit_stand_anywhere();
	mid = child_of(root);
	for (i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, late_uncharger, &storm), 0);
	for (i = 0; i < storm.rounds; i++) {
		owner = pcpc_owner_get(child_of(mid));
		left = atomic_exchange(&storm.shared, owner);
		pcpc_owner_put(left);
		/* some as soon as somebody works with them, the others at once */
		if (i % 2)
			UNTIL(!atomic_load(&storm.shared));
		ck_assert_int_eq(pcpc_owner_destroy(owner), 0);
		if (i % 16 == 0)
			pcpc_domain_poll(domain);
	}
	atomic_store(&storm.end, true);
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	pcpc_owner_put(atomic_load(&storm.shared));
	pcpc_domain_poll(domain);
	ck_assert_uint_eq(atomic_load(&domain->nr_offline), 0);
	ck_assert_uint_eq(domain->nr_owners, 2);
	ck_assert_uint_eq(pcpc_owner_usage_exact(root), 0);
	ck_assert_uint_eq(events_of(root, PCPC_EVENT_UNDERFLOW), 0);
	unit_note("%u charges, %u of owners that went, %u late uncharges",
		  (unsigned int)atomic_load(&storm.charged),
		  (unsigned int)atomic_load(&storm.refused),
		  (unsigned int)atomic_load(&storm.late));
	ck_assert_uint_gt(atomic_load(&storm.charged), 0);
	ck_assert_uint_gt(atomic_load(&storm.late), 0);
}
END_TEST

static void *sweep_all_the_time(void *context)
{
	struct storm *storm = context;

	while (!atomic_load(&storm->end))
		pcpc_domain_poll(domain);
	return NULL;
}

static void *walk_all_the_time(void *context)
{
	struct storm *storm = context;
	struct everybody all;

	while (!atomic_load(&storm->end)) {
		all = (struct everybody){ 0 };
		pcpc_owner_walk(root, note_owner, &all);
		free(all.owner);
		(void)pcpc_owner_usage_exact(root);
		(void)pcpc_owner_drain(root);
	}
	return NULL;
}

/* Asks 16: the tree changes, is read, drained and swept by several threads at once. */
START_TEST(asks_16_trees_change_while_they_are_walked_and_swept)
{
	struct storm storm = { .rounds = UNIT_SANITIZED ? 500 : 3000 };
	struct pcpc_owner *owner[8];
	pthread_t sweeper, walker;
	uint32_t i, k;

	if (!open_domain(_i, 64, 2))
		return;
	unit_stand_anywhere();
	ck_assert_int_eq(pthread_create(&sweeper, NULL, sweep_all_the_time, &storm), 0);
	ck_assert_int_eq(pthread_create(&walker, NULL, walk_all_the_time, &storm), 0);
	for (i = 0; i < storm.rounds; i++) {
		for (k = 0; k < 8; k++) {
			owner[k] = child_of(k % 3 ? owner[k - 1] : root);
			charge(owner[k], 1 + k);
		}
		for (k = 8; k--;) {
			if (i % 2)
				uncharge(owner[k], 1 + k);
			ck_assert_int_eq(pcpc_owner_destroy(owner[k]), 0);
			if (i % 2 == 0)
				uncharge(owner[k], 1 + k);
		}
	}
	atomic_store(&storm.end, true);
	pthread_join(sweeper, NULL);
	pthread_join(walker, NULL);
	pcpc_domain_poll(domain);
	ck_assert_uint_eq(domain->nr_owners, 1);
	ck_assert_uint_eq(pcpc_owner_usage_exact(root), 0);
	ck_assert_uint_eq(events_of(root, PCPC_EVENT_UNDERFLOW), 0);
}
END_TEST

/* A sweep frees names. Where free() charges and does what is due, it may sweep: so no lock is held.
 */
START_TEST(a_free_inside_a_sweep_may_sweep)
{
	const struct pcpc_owner_config config = {
		.size = sizeof(config), .name = "a name that is too long to stand in the books"
	};
	struct pcpc_owner *owner;
	int i;

	if (!open_domain(_i, 64, 0))
		return;
	for (i = 0; i < 3; i++) {
		ck_assert_int_eq(pcpc_owner_create(root, &config, &owner), 0);
		ck_assert_int_eq(pcpc_owner_destroy(owner), 0);
	}
	polls_left = 2;
	pcpc_domain_poll(domain);
	ck_assert_uint_eq(polls_left, 0);
	ck_assert_uint_eq(domain->nr_owners, 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("owner sweep");
	TCase *tests = unit_case(suite, "sweep");

	tcase_add_checked_fixture(tests, NULL, close_domain);
	by_each_engine(tests, an_owner_that_is_about_to_be_told_of_is_not_freed);
	by_each_engine(tests, asks_9_destroy_and_sweep_beside_chargers);
	by_each_engine(tests, a_free_inside_a_sweep_may_sweep);
	by_each_engine(tests, asks_16_trees_change_while_they_are_walked_and_swept);
	return unit_run(suite);
}
