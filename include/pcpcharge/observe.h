/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * observe.h - reports: what the owners of a domain use, who fills a limit, and figures of a domain.
 *
 * A report is written piece by piece through a function of the caller's, while charging goes on.
 * Nothing is allocated, and the stack it needs is bounded (about 16 KiB, beside what the function
 * needs). It is no snapshot: each owner's figures are read when it is its turn. Owners that are
 * made after the report began are not in it, and those that go while it is written may be missing;
 * none is in it twice. Offline owners are not shown; what they still use is in the figures of those
 * above.
 *
 * Unless a function says otherwise: any number of threads may call it at a time, it may block, it
 * must not be called from a signal handler or a handler of pthread_atfork(), and it returns 0 or a
 * negative errno.
 */
#ifndef PCPCHARGE_OBSERVE_H
#define PCPCHARGE_OBSERVE_H

#include <pcpcharge/charge.h>
#include <pcpcharge/owner.h>

PCPC_BEGIN_DECLS

/*
 * All are UTF-8. Names stand as they were given, with what the format demands escaped; a byte that
 * is not UTF-8 becomes U+FFFD.
 *
 * TEXT: for people, and free to change. A line for the domain, a line that names the columns, and a
 * line for each owner, indented below its parent. "-" is no limit. "stocked" is what lies in the
 * owner's own slots, without those below it. Events and items follow where they are not 0. Control
 * characters and backslashes in names are escaped.
 *
 * JSON (RFC 8259): one object:
 *	domain, unit        strings
 *	engine              "rseq" or "atomic"
 *	cpus, nr_owners, nr_offline, drains, sweeps     as in struct pcpc_domain_stats
 *	items               array of { name, unit }
 *	owners              array, parents before their children, of
 *		id, parent, depth   parent: an id, or null for the root; depth: 0 for the root
 *		name                string
 *		usage, peak, stocked
 *		max, high           null: unlimited
 *		left_out, left_out_usage    see struct pcpc_report_config; 0 without
 *		events              object: max, high, relieved, refused, forced, reclaim, drain,
 *		                    underflow
 *		items               array of numbers, in the order of the items above
 * Numbers are whole, and up to 64 bits wide: a reader that keeps them as doubles loses the end of
 * those above 2^53. Fields may be added.
 *
 * PROMETHEUS: the text exposition format, version 0.0.4. Names begin with pcpcharge_<domain>_, so
 * that the reports of several domains can stand in one document if their names differ in this form,
 * and none is another's with _ and an item's after it. For each owner, with the labels domain,
 * owner (the names from the root down, joined by '/') and id (for names may be equal, or have '/'
 * in them; it may be used again when its owner is gone):
 *	..._usage, ..._max, ..._high, ..._peak  gauges; max and high are +Inf where unlimited
 *	..._left_out, ..._left_out_usage        gauges; only with limits, see below
 *	..._event_<name>_total                  counters
 *	..._item_<name>                         gauges
 * and with the label domain alone, as in struct pcpc_domain_stats:
 *	..._owners, ..._owners_offline          gauges
 *	..._drains_total, ..._sweeps_total      counters
 * Where the unit is "bytes", _bytes is appended to what is in units, and to an item with that unit.
 * In names, letters become small, and whatever is not a letter, digit or '_' becomes '_'; they are
 * cut after 64 characters. Items that would be called the same get their number after two '_'.
 *
 * Events count for the subtree, owners that are gone included. So the counters of an owner never
 * fall while it lives, whoever dies below it; what an owner that went has counted stays in those of
 * its ancestors, and only its own series end.
 */
enum pcpc_format { PCPC_FORMAT_TEXT, PCPC_FORMAT_JSON, PCPC_FORMAT_PROMETHEUS };

/*
 * Receives the next piece of a report: length bytes, at least 1, not terminated; pieces end
 * anywhere. Returns 0, or a negative errno, with which the report stops.
 *
 * Runs with no lock held and outside any read-side section, and may do anything: block, charge,
 * create and destroy owners, write another report. It must return, by no other way.
 */
typedef int pcpc_write_fn(const char *text, size_t length, void *context);

#define PCPC_REPORT_LARGEST_MAX 128u

/*
 * Which owners to show. All zero but size: everything.
 *
 * Each owner that is shown says how many of its children are left out, and what those use together,
 * themselves and all below them: in TEXT below its children, in JSON and PROMETHEUS as figures of
 * its own, which are there also where they are 0. So sums stay whole.
 *
 * In PROMETHEUS the largest are chosen by peak, not by usage: a peak does not fall (unless it is
 * reset), so an owner's series do not come and go with its usage. They end when others have
 * outgrown it. Every metric makes the choice anew; while peaks rise, one owner may have samples of
 * some metrics only.
 */
struct pcpc_report_config {
	size_t size;		/* sizeof(struct pcpc_report_config) */
	struct pcpc_owner *top; /* the caller holds a reference or units of it; NULL: the root */
	uint32_t depth;		/* levels, that of top included; 0: all */
	uint32_t largest;	/* children of each owner, the largest first; at most
				   PCPC_REPORT_LARGEST_MAX; 0: all, in no order */
};

/**
 * pcpc_domain_report_config: report on a part of a domain.
 * @config: may be NULL: everything
 * @write: called until the report is complete, or it returns less than 0
 * @context: for write
 *
 * One path has room for 2,048 chosen children: where so many stand beside one another on several
 * levels, those far down show fewer of their children, 8 at least. They are counted as left out.
 *
 * Returns 0; -EINVAL: domain or write is NULL, no such format, a size this library does not know,
 * top is of another domain, largest out of range; else what write returned, after which it was not
 * called again.
 *
 * Threads: as said above. Takes the mutex of the tree for a moment for each owner; holds a
 * reference on the owner that it is at and on those above it while write runs, so
 * pcpc_domain_destroy() answers -EBUSY there. Cost: in proportion to the owners that are shown or
 * chosen from, in PROMETHEUS times the metrics; items are read by pcpc_stat_read().
 */
PCPC_API int pcpc_domain_report_config(struct pcpc_domain *domain, enum pcpc_format format,
				       const struct pcpc_report_config *config,
				       pcpc_write_fn *write, void *context);

/** pcpc_domain_report: pcpc_domain_report_config() of everything. */
PCPC_API int pcpc_domain_report(struct pcpc_domain *domain, enum pcpc_format format,
				pcpc_write_fn *write, void *context);

/**
 * pcpc_domain_report_fd: pcpc_domain_report() to a file descriptor, from where it stands.
 *
 * Returns as pcpc_domain_report(), or what write(2) answered: -EBADF, -ENOSPC, -EPIPE; -EAGAIN
 * where fd is non-blocking and full. What was written by then stays. Interrupted and partial writes
 * are continued. A pipe that nobody reads raises SIGPIPE, as ever. Is no cancellation point.
 */
PCPC_API int pcpc_domain_report_fd(struct pcpc_domain *domain, enum pcpc_format format, int fd);

/**
 * pcpc_write_fd: a write function for file descriptors, for pcpc_domain_report_config().
 * @context: points to the descriptor, an int
 *
 * Returns 0 or what write(2) answered, as pcpc_domain_report_fd() does; -EINVAL if context is NULL.
 * Signal-safe, if writing does not block.
 */
PCPC_API int pcpc_write_fd(const char *text, size_t length, void *context);

/**
 * pcpc_refusal_report_fd: tell a refusal to people: who refused, and who fills it.
 * @domain: the one that the refusal is from
 * @refusal: as pcpc_charge_flags() left it, at any time after; over is not looked at
 * @fd: as in pcpc_domain_report_fd()
 *
 * One line with the name of the owner that refused, its max and usage then, and what was asked.
 * Then up to five lines with its children that use most now, and their share of what it uses now,
 * and one line for the rest. They are left out if there is no live owner any more with that id and
 * (as far as the refusal has it) that name.
 *
 * Returns as pcpc_domain_report_fd(); -EINVAL also if refusal is NULL or names no owner.
 */
PCPC_API int pcpc_refusal_report_fd(struct pcpc_domain *domain, const struct pcpc_refusal *refusal,
				    int fd);

/* Figures of one domain. size is set by the caller (0 stands for the first version's); a library
 * that knows fewer fields fills those, and sets the others to 0. */
struct pcpc_domain_stats {
	size_t size;		 /* sizeof(struct pcpc_domain_stats) */
	enum pcpc_engine engine; /* in use */
	uint32_t nr_cpus;	 /* the process could run on when the domain was made */
	uint32_t nr_owners;	 /* that have an id: live, the root included, and offline */
	uint32_t nr_offline;	 /* of them: destroyed, and not yet swept */
	uint64_t drains;	 /* for charges, for limits, for reads of the coupled item, and by
				    pcpc_owner_drain() */
	uint64_t sweeps;	 /* of offline owners; those that found none are not in it */
	uint64_t bytes_resident; /* in memory now: stocks and owners, in whole pages; names that are
				    longer than 23 bytes are not in it. Pages of zeroes that were
				    looked at are */
};

/**
 * pcpc_domain_get_stats: figures of one domain; a snapshot.
 *
 * Does nothing if an argument is NULL or size is smaller than the first version's. Asks the kernel
 * for resident pages, which takes time in proportion to the stocks' address space and to the
 * highest id there was.
 */
PCPC_API void pcpc_domain_get_stats(struct pcpc_domain *domain,
				    struct pcpc_domain_stats *ret_stats);

PCPC_END_DECLS

#endif
