/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * owner_private.h - the inside of domains and owners, shared by the files of their level.
 */
#ifndef PCPCHARGE_OWNER_PRIVATE_H
#define PCPCHARGE_OWNER_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <urcu-bp.h>

#include <pcpcharge/charge.h>
#include <pcpcharge/inline.h>

#include "cache_private.h"

/*
 * ThreadSanitizer does not see into liburcu, and is told: what a read-side section did comes before
 * the end of a grace period that has waited for it.
 */
#if defined(__SANITIZE_THREAD__)
#define PCPC_TELLS_SECTIONS 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PCPC_TELLS_SECTIONS 1
#endif
#endif
#ifdef PCPC_TELLS_SECTIONS
#include <sanitizer/tsan_interface.h>

extern char pcpc_sections;

static inline void pcpc_read_unlock(void)
{
	__tsan_release(&pcpc_sections);
	urcu_bp_read_unlock();
}

#undef urcu_bp_read_unlock
#define urcu_bp_read_unlock() pcpc_read_unlock()
#define PCPC_AFTER_SECTIONS() __tsan_acquire(&pcpc_sections)
#else
#define PCPC_AFTER_SECTIONS() ((void)0)
#endif

/* The hot line: all that a hit reads, in one dense array indexed by id, so that lines that are read
 * stand beside lines that are read. The public handle points here. */
struct pcpc_owner {
	uint32_t id;
	_Atomic uint32_t
		limit; /* indices below it may use the fast path; 0: offline, or no such path */
	_Atomic uint32_t batch; /* the effective one, and so the high mark; written by slow paths */
	uint32_t depth;		/* of the root: 0 */
	struct pcpc_owner *parent;
	struct pcpc_domain *domain;
	pcpc_word *word; /* its home word at index 0 */
	uint64_t stride; /* from one index to the next */
	struct pcpc_area area;
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct pcpc_owner) == 64, "a hit reads one line of its owner");

enum owner_state { OWNER_FREE, OWNER_LIVE, OWNER_OFFLINE };

/* Bits of marks, above one bit for every event that waits to be told. */
#define MARK_EVENTS ((1u << PCPC_NR_EVENTS) - 1)
#define MARK_QUEUED \
	(1u << 8) /* stands on the domain's list of what is pending; has a reference for it */
#define MARK_UNSURE (1u << 9)	   /* a charge could not wait: poll makes sure */
#define MARK_ABOVE_HIGH (1u << 10) /* EVENT_HIGH was raised, and usage has not come down since */
#define MARK_REFUSED (1u << 11)	   /* a charge was refused, and usage has not come down since */
#define MARK_SEEN (1u << 12)	   /* for owner_fork.c alone */

/*
 * How much any slot of a subtree may stock just now, in one word that changes as a whole:
 * 63..44 a number that changes whenever "exact" is set anew or max changes, 43..24 pins (charges
 * and waiters that need the cap to stay 0), 23 exact (0 was made sure of: nothing of the subtree is
 * stocked, nor on its way), 22..0 the cap.
 */
#define CAP_MASK 0x7fffffu
#define CAP_NONE CAP_MASK /* no limit, no cap */
#define CAP_EXACT (1ull << 23)
#define CAP_PIN (1ull << 24)
#define CAP_PINS (0xfffffull << 24)
#define CAP_NEW (1ull << 44)

typedef _Atomic uint64_t atomic_u64;

/* A name that is too long to stand in the books. */
struct pcpc_long_name {
	struct pcpc_long_name *next; /* of those to be freed */
	char text[];
};

/* The rest of an owner. What misses write, what they read, and what they do not touch stand 128
 * bytes apart. */
struct pcpc_books {
	_Alignas(128) atomic_u64 usage;
	atomic_u64 peak;
	atomic_u64 least_wanted; /* by those who wait, or less; UINT64_MAX: nobody to wake */
	_Atomic uint32_t wake;	 /* futex: rises when a waiter may fit */
	_Atomic uint32_t marks;
	_Atomic(struct pcpc_owner *) pending_next; /* on the domain's list, while MARK_QUEUED */
	atomic_u64 unsure;		   /* the largest amount that poll is to make sure of */
	atomic_u64 events[PCPC_NR_EVENTS]; /* of the subtree */

	_Alignas(128) atomic_u64 max;
	atomic_u64 high;
	atomic_u64 cap;
	_Atomic uint32_t own_batch; /* before any cap; rises with the levels below unless given */
	_Atomic uint32_t widest; /* the largest own batch that the subtree ever had; caps beyond it
				    are idle */
	_Atomic uint32_t state;	 /* enum owner_state */
	bool batch_given;	 /* under the tree mutex, like what follows */
	void *context;		 /* constant */
	pcpc_reclaim_fn *reclaim;
	void *reclaim_context;
	pcpc_notify_fn *notify;
	void *notify_context;
	struct pcpc_long_name *long_name; /* or NULL; constant */
	char short_name[24];		  /* constant */

	_Alignas(128) atomic_u64 changed_at; /* the cap, by the coarse clock, in ns */
	atomic_u64 drained_at;
	atomic_u64 brought_back; /* by the last drain */
	_Atomic bool freed; /* the reclaim function has freed something since the cap changed */
	_Atomic uint32_t
		reclaiming; /* futex: 1 while a reclaim function runs; 2: somebody sleeps */
	_Atomic uint32_t refs;

	/* Under the tree mutex. */
	uint32_t nr_live_children;
	_Atomic uint32_t first_child; /* an id; offline ones too until they are freed */
	uint32_t next, previous;      /* siblings, likewise */
	uint32_t next_offline;
	bool was_idle; /* before a sweep's last grace period */

	uint64_t born; /* how many owners the domain had made before; constant */
};

_Static_assert(PCPC_NR_EVENTS <= 8, "bits of marks");
_Static_assert(sizeof(struct pcpc_owner) + sizeof(struct pcpc_books) <= 512, "bytes of an owner");
_Static_assert(offsetof(struct pcpc_books, max) == 128, "what misses write stands apart");
_Static_assert(offsetof(struct pcpc_books, changed_at) == 256, "and what they read");

#define NR_IDS (PCPC_OWNER_MAX + 1u)

/* Ids in use, lowest free first: a bit each, and above it a bit for every 64 that are all in use.
 */
struct pcpc_ids {
	uint64_t used[NR_IDS / 64], full[NR_IDS / 64 / 64], fuller[NR_IDS / 64 / 64 / 64];
};

/* The statistics of a domain; cache is NULL where it has none. */
struct pcpc_stats {
	struct pcpc_cache *cache;
	char *blocks; /* by id, see stat_private.h */
	size_t block_size, totals_at;
	atomic_u64 *changed; /* a bit for each id: something was applied that is not flushed */
	uint32_t nr_keys;    /* items x nodes */
	uint32_t unit;	     /* of an item, for the threshold: 64 of them a CPU */
	uint64_t passed_by; /* marks, by flushes that they did not concern; under the flush mutex */
};

struct pcpc_domain {
	/* Constant. */
	struct pcpc_cache *cache;
	struct pcpc_stats stats;
	struct pcpc_item *items;
	uint32_t nr_items, nr_nodes, coupled_item;
	struct pcpc_owner *owners; /* by id */
	struct pcpc_books *books;  /* by id */
	struct pcpc_ids *ids;
	uint32_t batch, delta_batch;
	uint32_t nr_cpus; /* that the process may run on, when the domain was made */
	int eventfd;	  /* -1: none */
	unsigned int flags;
	uint64_t serial;	  /* no other domain has had it; 0 while being made */
	unsigned int active_slot; /* of the threads' active owners; NR_ACTIVE: in active_key */
	pthread_key_t active_key;
	char *name, *unit;

	/* Written now and then, from anywhere. */
	_Alignas(128) _Atomic(struct pcpc_owner *) pending;
	_Atomic bool rung;	    /* the eventfd is readable */
	_Atomic bool untold;	    /* an owner on the list has events */
	_Atomic bool sweep_wanted;  /* an offline owner may have become idle since the last sweep */
	_Atomic bool charges_move;  /* a charge has moved the coupled item */
	_Atomic uint32_t nr_notify; /* owners that asked to be told */
	_Atomic uint32_t nr_offline;
	_Atomic uint32_t sweep_at; /* sweep when that many are offline */
	atomic_u64 drains, sweeps;
	_Atomic bool flushing;	       /* counters may be cleared whose totals are not raised yet */
	atomic_u64 stats_drained_at;   /* for reads, by the coarse clock, in ns */
	atomic_u64 coupled_drained_at; /* likewise the charge slots */

	pthread_mutex_t sweep_mutex; /* one sweep at a time */
	pthread_mutex_t tree_mutex;  /* ids, links, callbacks */
	pthread_mutex_t flush_mutex; /* one flush at a time; totals */
	uint32_t first_offline;	     /* under the tree mutex */
	uint32_t sweeping;	     /* the offline owners that a sweep has in hand; likewise */
	uint32_t nr_owners;	     /* under the tree mutex */
	_Atomic uint32_t highest_id; /* written under the tree mutex */
	uint64_t made;		     /* owners, ever; under the tree mutex */

	struct pcpc_domain *next; /* under the list mutex of fork.c */
};

static inline struct pcpc_books *books_of(const struct pcpc_owner *owner)
{
	return &owner->domain->books[owner->id];
}

static inline struct pcpc_owner *owner_of(const struct pcpc_domain *domain, uint32_t id)
{
	return &domain->owners[id];
}

static inline const char *name_of(const struct pcpc_books *books)
{
	return books->long_name ? books->long_name->text : books->short_name;
}

/* Acquire: pairs with the release in pcpc_owner_destroy(); inside a read-side section. */
static inline bool owner_offline(const struct pcpc_owner *owner)
{
	return atomic_load_explicit(&books_of(owner)->state, memory_order_acquire) == OWNER_OFFLINE;
}

/* What charges have moved, if anything: a domain without items has no deltas in its charge words.
 */
void pcpc_stat_apply(struct pcpc_owner *owner, uint32_t key, int64_t delta);
static inline void apply_coupled(struct pcpc_owner *owner, int64_t delta)
{
	pcpc_stat_apply(owner, owner->domain->coupled_item, delta);
}

/* Does everything go to the counters up to the root, as in the kernel? */
static inline bool kernel_style(const struct pcpc_domain *domain)
{
	return domain->flags & PCPC_DOMAIN_KERNEL;
}

/* The watermarks of an owner's slots; batch: its effective one. */
static inline struct pcpc_marks marks_of(const struct pcpc_owner *owner, uint32_t batch)
{
	return (struct pcpc_marks){ batch, batch / 2, owner->domain->delta_batch };
}

/* At most 15/16 of a limit, and below it: a limit has come off. */
static inline bool well_below(uint64_t usage, uint64_t limit)
{
	return usage < limit && usage <= limit - limit / 16;
}

/* counter.c */
bool pcpc_counter_take(struct pcpc_books *books, uint64_t amount, uint64_t *ret_usage);
bool pcpc_counter_force(struct pcpc_books *books, uint64_t amount, uint64_t *ret_usage);
uint64_t pcpc_counter_give(struct pcpc_books *books, uint64_t amount, uint64_t *ret_usage);
void pcpc_counter_peak(struct pcpc_books *books, uint64_t usage);

/* settle.c; all inside a read-side section */
uint64_t pcpc_give(struct pcpc_owner *owner, uint64_t amount);
void pcpc_settle(struct pcpc_owner *owner, uint64_t count, int64_t delta);
void pcpc_settle_straight(struct pcpc_owner *owner, uint64_t count, int64_t delta);
void pcpc_settle_deferred(struct pcpc_domain *domain, const struct pcpc_deferred *deferred);
void pcpc_check_high(struct pcpc_owner *owner, uint64_t usage);
void pcpc_check_relieved(struct pcpc_owner *owner);

/* climb.c; inside a read-side section */

/* How much a climb takes beyond the amount. Each next kind is tried when the one before did not
 * fit. */
enum greed {
	GREED_BATCH,   /* full batches */
	GREED_AT_HAND, /* as much of a batch as lies in the parent's stock */
	GREED_NONE,    /* nothing but the amount is asked of anybody */
};

/* A climb: from an owner to a top, which is not climbed itself (NULL: past the root). */
struct pcpc_climb {
	struct pcpc_owner *owner;
	const struct pcpc_owner *top;
	uint64_t count;
	int64_t delta;
	struct pcpc_owner *over; /* out: who refused; then every level is as it was */
	uint64_t cap;		 /* out: the cap word of that owner, just before */
	uint64_t taken;		 /* out: by the owner's counter; 0: its stock served it */
	bool reached;		 /* out: the top, and no stock on the way served it */
	bool surplus;		 /* out: some level took one */
};

bool pcpc_climb(struct pcpc_climb *climb, enum greed greed);
bool pcpc_climb_by_force(struct pcpc_owner *owner, uint64_t count, int64_t delta);

/* charge.c */
int pcpc_charge_internal(struct pcpc_owner *owner, uint64_t count, int64_t delta,
			 unsigned int flags, struct pcpc_refusal *ret_refusal);
void pcpc_cut_name(const char *name, char *ret_name, size_t size);

/* A cap that this thread holds at 0; on the stack of whoever does. */
struct pcpc_pin {
	struct pcpc_books *books;
	struct pcpc_pin *outer;
};

/* What a charge that did not fit has tried so far; all zero at first. */
struct pcpc_trial {
	struct pcpc_owner *over; /* where it did not fit last */
	uint64_t cap;		 /* its cap word just before it did not fit */
	struct pcpc_pin pin;	 /* until the charge is over */
	unsigned int rounds, reclaims;
	bool pinned, drained, reclaimed;
};

/* Internal flags beside the public ones. */
#define CHARGE_QUIET \
	(1u << 30) /* a refusal is not the last word, if count may ever fit: no event */
#define CHARGE_PUBLIC (PCPC_NOWAIT | PCPC_FORCE | PCPC_NORECLAIM)

/* cap.c */
#define PCPC_INTERVAL_NS 100000000 /* between two changes of a cap, and two drains for a charge */
uint32_t pcpc_effective_batch(struct pcpc_owner *owner);
uint32_t pcpc_first_cap(const struct pcpc_domain *domain, uint64_t max);
uint64_t pcpc_now(void); /* the coarse clock, ns */
bool pcpc_long_ago(atomic_u64 *figure);
bool pcpc_due(atomic_u64 *figure);
void pcpc_halve_cap(struct pcpc_books *books);
void pcpc_restart_cap(struct pcpc_owner *owner);
void pcpc_pin(struct pcpc_pin *pin, struct pcpc_books *books);
void pcpc_unpin(struct pcpc_pin *pin);

/* limit.c */
void pcpc_trial_look(struct pcpc_trial *trial, struct pcpc_owner *over, uint64_t cap);
int pcpc_make_room(struct pcpc_trial *trial, uint64_t count, unsigned int flags);
void pcpc_trial_end(struct pcpc_trial *trial);
void pcpc_leave_to_poll(struct pcpc_owner *over, uint64_t count);
void pcpc_make_sure(struct pcpc_owner *over);
int pcpc_drain_subtree(struct pcpc_owner *over, uint64_t *ret_back);
bool pcpc_store_max(struct pcpc_owner *owner, uint64_t max);

/* stat.c, flush.c: what the owners level needs of statistics */
int pcpc_stat_init(struct pcpc_domain *domain, const struct pcpc_domain_config *config);
void pcpc_stat_end(struct pcpc_domain *domain);
void pcpc_stat_begin(struct pcpc_owner *owner);	 /* it is new */
void pcpc_stat_retire(struct pcpc_owner *owner); /* it is about to be freed; under the tree mutex */
void pcpc_stat_after_fork(const struct pcpc_owner *owner); /* marks what its parent had not */
int64_t pcpc_stat_total(const struct pcpc_owner *owner, int node, uint32_t item);
int pcpc_stat_drain(struct pcpc_domain *domain, pcpc_match_fn *match, void *context);

/* wait.c */
struct timespec;
void pcpc_futex_wait(_Atomic uint32_t *word, uint32_t value, const struct timespec *timeout);
void pcpc_futex_wake(_Atomic uint32_t *word);
void pcpc_wake_if_room(struct pcpc_books *books);
void pcpc_wake_all(struct pcpc_books *books);

/* event.c */
void pcpc_raise(struct pcpc_owner *owner, enum pcpc_event event);
void pcpc_queue(struct pcpc_owner *owner, uint32_t marks);
void pcpc_ring(struct pcpc_domain *domain);
struct pcpc_domain *pcpc_promise(struct pcpc_domain *domain);
void pcpc_deliver(struct pcpc_domain *domain, struct pcpc_domain *before);
struct pcpc_owner *pcpc_pending_take(struct pcpc_domain *domain);
void pcpc_pending_push(struct pcpc_owner *owner);

/* ids.c; under the tree mutex */
uint32_t pcpc_id_take(struct pcpc_ids *ids);
void pcpc_id_give(struct pcpc_ids *ids, uint32_t id);

/* owner.c */
bool pcpc_within(const struct pcpc_owner *owner, const struct pcpc_owner *top);
bool pcpc_id_within(uint32_t id, void *top); /* a match function */
bool pcpc_batch_sound(uint32_t batch);
int pcpc_long_name(const char *name, struct pcpc_long_name **ret_name);
void pcpc_free_names(struct pcpc_long_name *names);
void pcpc_owner_init(struct pcpc_domain *domain, uint32_t id, struct pcpc_owner *parent,
		     const struct pcpc_owner_config *config, struct pcpc_long_name *name);
void pcpc_owner_set_live(struct pcpc_owner *owner);
void pcpc_owner_unlink(struct pcpc_owner *child); /* under the tree mutex */
struct pcpc_owner *pcpc_owner_child(struct pcpc_owner *parent, struct pcpc_owner *after,
				    uint64_t born_before);
struct pcpc_owner *pcpc_owner_find(struct pcpc_domain *domain, uint32_t id);

/* sweep.c */
void pcpc_sweep(struct pcpc_domain *domain);
void pcpc_sweep_if_due(struct pcpc_domain *domain);
void pcpc_sweep_later(struct pcpc_domain *domain);
void pcpc_want_sweep(struct pcpc_domain *domain);
void pcpc_put_back_offline(struct pcpc_domain *domain); /* under the tree mutex */

/* active.c */
#define NR_ACTIVE 8
int pcpc_active_init(struct pcpc_domain *domain);
void pcpc_active_end(struct pcpc_domain *domain);

/* owner_fork.c: every live domain is on one list, like the caches. */
void pcpc_fork_add_domain(struct pcpc_domain *domain);
void pcpc_fork_remove_domain(struct pcpc_domain *domain);

/* What this thread is doing. */
struct pcpc_thread {
	struct pcpc_owner *reclaiming; /* its own reclaim function runs for that owner */
	/* The domain whose events it will tell of when the call in progress is done. Atomic for
	 * signal handlers of this thread. */
	_Atomic(struct pcpc_domain *) promised;
	struct pcpc_domain *delivering; /* it calls back just now */
	struct pcpc_owner *in_hand;	/* the rest of the list that it calls back for */
	struct pcpc_pin *pins;		/* innermost first */
	bool forking;			/* it holds what fork holds */
};

#define PCPC_THREAD_LOCAL _Thread_local __attribute__((tls_model("initial-exec")))

extern PCPC_THREAD_LOCAL struct pcpc_thread pcpc_this_thread;

/* liburcu waits in poll(), with its mutex locked: a thread that is cancelled there would leave it
 * so.
 */
static inline void pcpc_grace(void)
{
	int before;

	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	urcu_bp_synchronize_rcu();
	PCPC_AFTER_SECTIONS();
	(void)pthread_setcancelstate(before, &before);
}

/* Broken twins leave one out, and must be seen to free too early or to refuse what fits. */
#ifndef PCPC_GRACE
#define PCPC_GRACE(which) pcpc_grace()
#endif

/* May this call wait for a grace period? */
static inline bool may_wait(unsigned int flags)
{
	return !(flags & PCPC_NOWAIT) && !pcpc_this_thread.forking && !urcu_bp_read_ongoing();
}

#endif
