// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * owner_signals.c - signal handlers that charge and uncharge at any instruction of everything that
 *the library does (G8): two timers a thread, so that one handler interrupts the other as well, each
 *some 10 to 60 us after its last run.
 *
 *	owner_signals rseq|atomic [--seed N] [--threads N] [--seconds S]
 *
 * Every flow of control (a thread, its first handler, a second inside that) keeps books of its own;
 *at the end all of them are added up, and must be what the library says.
 */
#define _GNU_SOURCE
#include "owner_signals.h"

#include <sys/wait.h>

static const char *const doing_names[DOINGS] = {
	"charges",	  "uncharges", "transfers", "drains", "polls", "creations", "destructions",
	"changes of max", "waits",     "updates",   "reads",  "forks", "the rest",
};

static struct options options = { .threads = 2, .seconds = 2 };
struct pcpc_domain *domain;
/* Under the root a limited one, below that a limited one again: 1 in 0, 2 and 3 in 1, 4 in 0; 5 is
 * the root. */
struct pcpc_owner *owner[NR_OWNERS];
static struct thread threads[MAX_THREADS];
_Thread_local struct thread *self;

static bool is_below(int which, int top)
{
	static const int parent[NR_OWNERS] = { 5, 0, 1, 1, 0, -1 };

	while (which >= 0 && which != top)
		which = parent[which];
	return which >= 0;
}

/* -- what is interrupted -- */

static void charge(struct books *books, int which)
{
	uint64_t count = 1 + below(&books->random, below(&books->random, 4) ? 8 : 100);
	unsigned int flags[] = { 0, 0, 0, 0, PCPC_NOWAIT, PCPC_NORECLAIM };
	int64_t delta = (int64_t)below(&books->random, 21) - 10;
	bool stat = below(&books->random, 4) == 0;
	int r;

	if (stat)
		r = pcpc_charge_stat(owner[which], count, delta);
	else
		r = pcpc_charge_flags(owner[which], count, flags[below(&books->random, 6)], NULL);
	if (r == 0) {
		books->held[which] += count;
		books->moved[0][which] += stat ? delta : 0;
	} else if (r == -EDQUOT || r == -EAGAIN) {
		/* Or nothing would ever fit. */
		pcpc_uncharge(owner[which], books->held[which]);
		books->held[which] = 0;
	} else {
		violation("a charge answered %d", r);
	}
}

static void uncharge(struct books *books, int which)
{
	uint64_t count = books->held[which];

	if (!count)
		return;
	if (count < MOST_HELD)
		count = 1 + below(&books->random, count);
	books->held[which] -= count;
	pcpc_uncharge(owner[which], count);
}

static void update(struct books *books, int which)
{
	int64_t delta = (int64_t)below(&books->random, 61) - 20;
	uint32_t item = (uint32_t)below(&books->random, NR_ITEMS);

	books->moved[item][which] += delta;
	pcpc_stat_add(owner[which], item, delta);
}

static void transfer(struct books *books, int from, int to)
{
	uint64_t count = books->held[from] ? 1 + below(&books->random, books->held[from]) : 0;
	int r = pcpc_transfer(owner[from], owner[to], count);

	if (r == 0) {
		books->held[from] -= count;
		books->held[to] += count;
	} else if (r != -EDQUOT && r != -EAGAIN) {
		violation("a transfer answered %d", r);
	}
}

/* The life of an owner, with handlers charging it all the way. */
static void raise_young(struct books *books)
{
	const struct pcpc_owner_config config = { .size = sizeof(config),
						  .max = below(&books->random, 2) ? 0 : 100 };
	struct pcpc_owner *young = NULL;
	uint64_t end = below(&books->random, 300);

	self->doing = CREATING;
	MUST(pcpc_owner_create(owner[1], &config, &young) == 0);
	self->doing = UNCHARGING;
	pcpc_owner_get(young);
	self->young = young;
	for (; end; end--)
		uncharge(books, (int)below(&books->random, NR_OWNERS));
	self->doing = DESTROYING;
	MUST(pcpc_owner_destroy(young) == 0);
	self->young = NULL;
	pcpc_owner_put(young);
	self->doing = ELSE;
	self->created++;
}

static bool visit(struct pcpc_owner *one, unsigned int depth, void *context)
{
	(void)context;
	return pcpc_owner_id(one) && depth <= 3;
}

static void manage(struct books *books, int which)
{
	int r = 0;

	switch (below(&books->random, 8)) {
	case 0:
		self->doing = DRAINING;
		(void)pcpc_owner_drain(owner[which]);
		self->doing = READING;
		(void)pcpc_stat_read_exact(owner[which], (uint32_t)below(&books->random, NR_ITEMS));
		break;
	case 1:
		self->doing = POLLING;
		pcpc_domain_poll(domain);
		break;
	case 2:
	case 3:
		raise_young(books);
		break;
	case 4:
		self->doing = SETTING_MAX;
		r = pcpc_owner_set_max(owner[below(&books->random, 2)],
				       500 + below(&books->random, 5000));
		break;
	case 5:
		pcpc_owner_walk(owner[which], visit, NULL);
		(void)pcpc_owner_usage_exact(owner[which]);
		break;
	case 6:
		pcpc_owner_reset_peak(owner[which]);
		(void)pcpc_owner_set_batch(owner[which], 1 + (uint32_t)below(&books->random, 100));
		break;
	default:
		self->doing = WAITING;
		r = pcpc_charge_wait(owner[which], 1, 50000);
		books->held[which] += r == 0;
		r = r == -ETIMEDOUT || r == -EAGAIN ? 0 : r;
	}
	if (r != 0)
		violation("a call answered %d", r);
}

static void step(struct books *books)
{
	int which = (int)below(&books->random, NR_OWNERS);
	uint64_t what = below(&books->random, 1000);

	if (what < self->manages) {
		manage(books, which);
	} else if (what < 60) {
		self->doing = TRANSFERRING;
		transfer(books, which, (int)below(&books->random, NR_OWNERS));
	} else if (what < 150) {
		self->doing = UPDATING;
		update(books, which);
	} else if (what < 580) {
		self->doing = CHARGING;
		charge(books, which);
	} else {
		self->doing = UNCHARGING;
		uncharge(books, which);
	}
	self->doing = ELSE;
	self->operations++;
}

/* -- fork -- */

/* What this thread and its handlers hold in a subtree. */
static uint64_t held_below(const struct thread *thread, int top)
{
	uint64_t sum = 0;
	int level, which;

	for (level = 0; level < LEVELS; level++)
		for (which = 0; which < NR_OWNERS; which++)
			if (is_below(which, top))
				sum += thread->books[level].held[which];
	return sum;
}

static int in_child(void)
{
	int i;

	alarm(60);
	for (i = 0; i < NR_OWNERS; i++)
		if (pcpc_owner_usage(owner[i]) < held_below(self, i))
			violation("in a child: usage %" PRIu64 ", %" PRIu64 " held",
				  pcpc_owner_usage(owner[i]), held_below(self, i));
	start_timers();
	set_handlers_mask(SIG_UNBLOCK);
	for (i = 0; i < 500; i++)
		step(&self->books[0]);
	raise_young(&self->books[0]);
	pcpc_domain_poll(domain);
	stop_timers();
	return atomic_load(&violations) > 0;
}

/* The timers go on, and hit fork itself; the child has none, and starts its own. */
static void fork_once(void)
{
	int status = 0;
	pid_t child;

	self->doing = FORKING;
	child = fork();
	self->doing = ELSE;
	MUST(child >= 0);
	if (child == 0)
		_exit(in_child());
	while (waitpid(child, &status, 0) < 0)
		MUST(errno == EINTR);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		violation("a child ended with status 0x%x", (unsigned int)status);
	self->forks++;
}

static bool enough(void)
{
	int i;

	if (THREAD_SANITIZED)
		return true;
	for (i = 0; i < DOINGS; i++)
		if (!atomic_load(&interrupted[i]))
			return false;
	return atomic_load(&refusals) && atomic_load(&lates);
}

static void *run(void *thread)
{
	double begin = now(), end = begin + options.seconds, next = begin;

	self = thread;
	pcpc_thread_register();
	start_timers();
	set_handlers_mask(SIG_UNBLOCK);
	do {
		/* What handlers have not met yet is done more often when time is over. */
		self->manages = now() < end ? 2 : 40;
		for (int i = 0; i < 64; i++)
			step(&self->books[0]);
		if (now() >= next) {
			fork_once();
			next = now() + 0.05;
		}
	} while (!atomic_load(&violations) &&
		 (now() < end || (!enough() && now() < begin + 10 * options.seconds)));
	stop_timers();
	return NULL;
}

/* -- the end -- */

/* What all flows of control hold in a subtree, or have moved an item by. */
static uint64_t all_held(int top)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < options.threads; i++)
		sum += held_below(&threads[i], top);
	return sum;
}

static int64_t all_moved(int top, uint32_t item)
{
	uint32_t i, level;
	int64_t sum = 0;
	int which;

	for (i = 0; i < options.threads; i++)
		for (level = 0; level < LEVELS; level++)
			for (which = 0; which < NR_OWNERS; which++)
				if (is_below(which, top))
					sum += threads[i].books[level].moved[item][which];
	return sum;
}

static void check_books(void)
{
	uint32_t item;
	int which;

	(void)pcpc_owner_drain(owner[5]);
	for (which = 0; which < NR_OWNERS; which++) {
		if (pcpc_owner_usage(owner[which]) != all_held(which))
			violation("owner %d: usage %" PRIu64 ", held %" PRIu64, which,
				  pcpc_owner_usage(owner[which]), all_held(which));
		for (item = 0; item < NR_ITEMS; item++)
			if (pcpc_stat_read_exact(owner[which], item) != all_moved(which, item))
				violation("owner %d: item %" PRIu32 " is %" PRId64
					  ", moved by %" PRId64,
					  which, item, pcpc_stat_read_exact(owner[which], item),
					  all_moved(which, item));
	}
}

static void give_young_back(void)
{
	struct young *young;
	uint32_t i, level, k;

	for (i = 0; i < options.threads; i++) {
		for (level = 0; level < LEVELS; level++) {
			for (k = 0; k < NR_YOUNG; k++) {
				young = &threads[i].books[level].young[k];
				if (young->owner)
					pcpc_uncharge(young->owner, young->units);
			}
		}
	}
}

static void give_back(void)
{
	uint32_t i, level;
	int which;

	for (i = 0; i < options.threads; i++)
		for (level = 0; level < LEVELS; level++)
			for (which = 0; which < NR_OWNERS; which++)
				pcpc_uncharge(owner[which], threads[i].books[level].held[which]);
}

static void close_all(void)
{
	static const int order[] = { 2, 3, 1, 4, 0 };
	int i;

	give_young_back();
	check_books();
	give_back();
	for (i = 0; i < NR_OWNERS - 1; i++)
		MUST(pcpc_owner_destroy(owner[order[i]]) == 0);
	pcpc_domain_poll(domain);
	if (pcpc_owner_events(owner[5], PCPC_EVENT_UNDERFLOW))
		violation("an underflow");
	poison_end();
	if (pcpc_domain_destroy(domain) != 0)
		violation("the domain is busy at the end");
}

static int verdict(void)
{
	uint64_t operations = 0, runs[LEVELS] = { 0 }, forks = 0, created = 0;
	uint32_t i, level;

	for (i = 0; i < options.threads; i++) {
		operations += threads[i].operations;
		forks += threads[i].forks;
		created += threads[i].created;
		for (level = 1; level < LEVELS; level++) {
			runs[level] += threads[i].books[level].runs;
		}
	}
	printf("  %" PRIu64 " operations, %" PRIu64 " runs of handlers, %" PRIu64
	       " inside another, %" PRIu64 " refused, %" PRIu64 " late, %" PRIu64
	       " owners, %" PRIu64 " forks\n",
	       operations, runs[1] + runs[2], runs[2], atomic_load(&refusals), atomic_load(&lates),
	       created, forks);
	printf("  handlers in the middle of:");
	for (i = 0; i < DOINGS; i++)
		printf(" %" PRIu64 " %s%s", atomic_load(&interrupted[i]), doing_names[i],
		       i < DOINGS - 1 ? "," : "\n");
	if (atomic_load(&violations))
		return 1;
	if (!enough() || (!THREAD_SANITIZED && (runs[1] < 1000 || !runs[2]))) {
		printf("owner_signals: proved nothing: too little has happened\n");
		return 1;
	}
	printf("owner_signals: ok\n");
	return 0;
}

static struct pcpc_owner *make_owner(struct pcpc_owner *parent, uint64_t max)
{
	const struct pcpc_owner_config config = { .size = sizeof(config), .max = max };
	struct pcpc_owner *one = NULL;

	MUST(pcpc_owner_create(parent, &config, &one) == 0);
	return one;
}

static int open_domain(void)
{
	static const struct pcpc_item items[NR_ITEMS] = { { "moved", "units" }, { "other", "" } };
	const struct pcpc_domain_config config = {
		.size = sizeof(config),
		.items = items,
		.nr_items = NR_ITEMS,
		.batch = 32,
		.delta_batch = 40,
		.stocks_per_cpu = 1,
		.engine = options.engine,
		.index = PCPC_INDEX_CPU,
	};
	int r = pcpc_domain_create(&config, &domain);

	if (r < 0)
		return r;
	owner[5] = pcpc_domain_root(domain);
	owner[0] = make_owner(owner[5], 6000);
	owner[1] = make_owner(owner[0], 4000);
	owner[2] = make_owner(owner[1], 0);
	owner[3] = make_owner(owner[1], 400);
	owner[4] = make_owner(owner[0], 0);
	poison_begin(domain, NULL);
	return 0;
}

static void start(void)
{
	uint64_t random = options.seed;
	uint32_t i, level;

	set_handlers();
	for (i = 0; i < options.threads; i++) {
		for (level = 0; level < LEVELS; level++)
			threads[i].books[level].random = random_of(&random);
		MUST(pthread_create(&threads[i].thread, NULL, run, &threads[i]) == 0);
	}
}

int main(int argc, char **argv)
{
	uint32_t i;
	int r;

	if (!read_options(argc, argv, &options) || options.threads - 1 >= MAX_THREADS) {
		fprintf(stderr, "usage: see the heads of owner_signals.c and owner_stress.h\n");
		return 2;
	}
	alarm(60 + 20 * (unsigned int)options.seconds);
	setvbuf(stdout, NULL, _IOLBF, 0);
	r = open_domain();
	if (r == -ENOSYS) {
		printf("owner_signals: skipped: no %s engine here\n", engine_name(options.engine));
		return SKIPPED;
	}
	MUST(r == 0);
	printf("owner_signals: engine %s, %" PRIu32 " threads, --seed %" PRIu64 "\n",
	       engine_name(options.engine), options.threads, options.seed);
	start();
	for (i = 0; i < options.threads; i++)
		pthread_join(threads[i].thread, NULL);
	close_all();
	return verdict();
}
