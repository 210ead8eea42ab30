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
#include "owner_stress.h"

#include <signal.h>
#include <sys/wait.h>

#define NR_OWNERS 6
#define NR_YOUNG 4
#define MAX_THREADS 16
#define LEVELS 3
#define MOST_HELD 300
#define STRANGE_ERRNO 4242

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* Units of an owner that came and goes; while there are any it lives. */
struct young {
	struct pcpc_owner *owner;
	uint64_t units;
};

/* What a handler may find itself in the middle of. */
enum doing {
	CHARGING,
	UNCHARGING,
	TRANSFERRING,
	DRAINING,
	POLLING,
	CREATING,
	DESTROYING,
	SETTING_MAX,
	WAITING,
	FORKING,
	ELSE,
	DOINGS
};

static const char *const doing_names[DOINGS] = {
	"charges",	"uncharges",	  "transfers", "drains", "polls",    "creations",
	"destructions", "changes of max", "waits",     "forks",	 "the rest",
};

struct books {
	uint64_t random;
	uint64_t held[NR_OWNERS];
	int64_t asked[NR_OWNERS];
	struct young young[NR_YOUNG];
	uint64_t runs;
};

struct thread {
	pthread_t thread;
	timer_t timer[LEVELS - 1];
	volatile sig_atomic_t level, doing;
	struct books books[LEVELS];
	struct pcpc_owner *volatile young; /* handlers may charge it while it stands here */
	uint64_t operations, forks, created;
};

static struct options options = { .threads = 2, .seconds = 2 };
static struct pcpc_domain *domain;
/* Under the root a limited one, below that a limited one again: 1 in 0, 2 and 3 in 1, 4 in 0; 5 is
 * the root. */
static struct pcpc_owner *owner[NR_OWNERS];
static struct thread threads[MAX_THREADS];
static _Thread_local struct thread *self;
static _Atomic uint64_t interrupted[DOINGS], refusals, lates; /* of handlers */

static bool is_below(int which, int top)
{
	static const int parent[NR_OWNERS] = { 5, 0, 1, 1, 0, -1 };

	while (which >= 0 && which != top)
		which = parent[which];
	return which >= 0;
}

/* -- what handlers do -- */

static void charge_in_handler(struct books *books, int which)
{
	static const unsigned int flags[] = { PCPC_NOWAIT, PCPC_NOWAIT,
					      PCPC_NOWAIT | PCPC_NORECLAIM };
	uint64_t count = 1 + below(&books->random, 12);
	int r;

	if (books->held[which] > MOST_HELD)
		return;
	r = pcpc_charge_flags(owner[which], count, flags[below(&books->random, 3)], NULL);
	if (r == 0)
		books->held[which] += count;
	else if (r == -EDQUOT || r == -EAGAIN)
		atomic_fetch_add(&refusals, 1);
	else
		violation("a charge in a handler answered %d", r);
}

static void uncharge_in_handler(struct books *books, int which)
{
	int64_t delta = (int64_t)below(&books->random, 21) - 10;
	uint64_t count = books->held[which];

	if (count && below(&books->random, 2))
		count = 1 + below(&books->random, count);
	books->held[which] -= count;
	if (below(&books->random, 2)) {
		books->asked[which] += delta;
		pcpc_uncharge_stat(owner[which], count, delta);
	} else {
		pcpc_uncharge(owner[which], count);
	}
}

/* One that may be going offline just now, and is freed when nothing of it is held any more. */
static void use_young(struct books *books, struct pcpc_owner *one)
{
	struct young *young = &books->young[below(&books->random, NR_YOUNG)];
	int r;

	if (young->owner) {
		atomic_fetch_add(&lates, 1);
		pcpc_uncharge(young->owner, young->units);
		*young = (struct young){ 0 };
	} else if (one) {
		young->units = 1 + below(&books->random, 30);
		r = pcpc_charge_flags(one, young->units, PCPC_NOWAIT, NULL);
		if (r == 0)
			young->owner = one;
		else if (r != -ESHUTDOWN && r != -EDQUOT && r != -EAGAIN)
			violation("a charge of a young owner answered %d", r);
	}
}

static void read_in_handler(int which)
{
	struct pcpc_owner *active = pcpc_set_active(domain, owner[which]);

	(void)pcpc_owner_usage(owner[which]);
	(void)pcpc_owner_peak(owner[which]);
	pcpc_owner_put(pcpc_owner_get(owner[which]));
	if (pcpc_active(domain) != owner[which])
		violation("another owner is active than was set");
	(void)pcpc_set_active(domain, active);
}

static void again(struct books *books, int timer)
{
	const struct itimerspec soon = {
		.it_value.tv_nsec = 10000 + (long)below(&books->random, SANITIZED ? 500000 : 50000)
	};

	(void)timer_settime(self->timer[timer], 0, &soon, NULL);
}

static void handle(int number)
{
	struct books *books = &self->books[++self->level];
	struct pcpc_owner *young = self->young;
	int saved = errno, which = (int)below(&books->random, NR_OWNERS), i;

	errno = STRANGE_ERRNO;
	books->runs++;
	atomic_fetch_add_explicit(&interrupted[self->doing], 1, memory_order_relaxed);
	for (i = 0; i < 3; i++) {
		charge_in_handler(books, which);
		if (below(&books->random, 2))
			uncharge_in_handler(books, (int)below(&books->random, NR_OWNERS));
	}
	use_young(books, young);
	if (below(&books->random, 4) == 0)
		read_in_handler(which);
	if (errno != STRANGE_ERRNO)
		violation("errno became %d in a handler", errno);
	errno = saved;
	self->level--;
	again(books, number == SIGUSR2);
}

static void start_timers(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID };
	int i;

	event.sigev_notify_thread_id = gettid();
	for (i = 0; i < LEVELS - 1; i++) {
		event.sigev_signo = i ? SIGUSR2 : SIGUSR1;
		MUST(timer_create(CLOCK_MONOTONIC, &event, &self->timer[i]) == 0);
		again(&self->books[0], i);
	}
}

static void set_handlers_mask(int how)
{
	sigset_t both;

	sigemptyset(&both);
	sigaddset(&both, SIGUSR1);
	sigaddset(&both, SIGUSR2);
	pthread_sigmask(how, &both, NULL);
}

/* Handlers do not run any more when it returns. */
static void stop_timers(void)
{
	int i;

	set_handlers_mask(SIG_BLOCK);
	for (i = 0; i < LEVELS - 1; i++)
		(void)timer_delete(self->timer[i]);
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
		books->asked[which] += stat ? delta : 0;
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

	self->doing = what < 2	   ? ELSE
		      : what < 10  ? TRANSFERRING
		      : what < 505 ? CHARGING
				   : UNCHARGING;
	if (what < 2)
		manage(books, which);
	else if (what < 10)
		transfer(books, which, (int)below(&books->random, NR_OWNERS));
	else if (what < 505)
		charge(books, which);
	else
		uncharge(books, which);
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

static void check_books(void)
{
	uint64_t held, level;
	int64_t asked;
	uint32_t i;
	int which;

	(void)pcpc_owner_drain(owner[5]);
	for (which = 0; which < NR_OWNERS; which++) {
		held = 0;
		asked = 0;
		for (i = 0; i < options.threads; i++) {
			held += held_below(&threads[i], which);
			for (level = 0; level < LEVELS; level++)
				asked += threads[i].books[level].asked[which];
		}
		if (pcpc_owner_usage(owner[which]) != held)
			violation("owner %d: usage %" PRIu64 ", held %" PRIu64, which,
				  pcpc_owner_usage(owner[which]), held);
		if (atomic_load(&books_of(owner[which])->coupled) != asked)
			violation("owner %d: deltas of %" PRId64 ", asked for %" PRId64, which,
				  atomic_load(&books_of(owner[which])->coupled), asked);
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
	if (!enough() || runs[1] < 1000 || !runs[2]) {
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
	const struct pcpc_domain_config config = {
		.size = sizeof(config),
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
	struct sigaction action = { .sa_handler = handle, .sa_flags = SA_RESTART };
	uint64_t random = options.seed;
	uint32_t i, level;

	sigemptyset(&action.sa_mask);
	MUST(sigaction(SIGUSR1, &action, NULL) == 0);
	MUST(sigaction(SIGUSR2, &action, NULL) == 0);
	set_handlers_mask(SIG_BLOCK);
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
