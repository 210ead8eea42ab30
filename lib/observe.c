// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * observe.c - what observe.h declares: reports in each format, to functions and descriptors, the
 * report of a refusal, and figures of a domain. The formats are in report_*.c.
 */
#define _GNU_SOURCE
#include "report_private.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

const char *const pcpc_event_names[PCPC_NR_EVENTS] = {
	[PCPC_EVENT_MAX] = "max",	    [PCPC_EVENT_HIGH] = "high",
	[PCPC_EVENT_RELIEVED] = "relieved", [PCPC_EVENT_REFUSED] = "refused",
	[PCPC_EVENT_FORCED] = "forced",	    [PCPC_EVENT_RECLAIM] = "reclaim",
	[PCPC_EVENT_DRAIN] = "drain",	    [PCPC_EVENT_UNDERFLOW] = "underflow",
};

const char *pcpc_engine_name(const struct pcpc_domain *domain)
{
	return pcpc_cache_engine(domain->cache) == PCPC_ENGINE_RSEQ ? "rseq" : "atomic";
}

/* -- reports -- */

/* Fills in all but the arrays; they are long, and need nothing. -EINVAL: unsound limits. */
static int begin(struct pcpc_report *report, struct pcpc_domain *domain,
		 const struct pcpc_report_config *config, pcpc_write_fn *write, void *context)
{
	uint32_t depth = config->depth;

	if (config->largest > PCPC_REPORT_LARGEST_MAX ||
	    (config->top && config->top->domain != domain))
		return -EINVAL;
	report->out.write = write;
	report->out.context = context;
	report->out.error = 0;
	report->out.used = 0;
	report->domain = domain;
	report->top = config->top ? config->top : pcpc_domain_root(domain);
	report->depth = depth && depth < REPORT_LEVELS ? depth : REPORT_LEVELS;
	report->largest = config->largest;
	report->by_peak = false;
	report->limited = config->depth || config->largest;
	report->nr_levels = 0;
	pthread_mutex_lock(&domain->tree_mutex);
	report->born_before = domain->made;
	pthread_mutex_unlock(&domain->tree_mutex);
	/* So that the domain cannot be destroyed by the write function. */
	pcpc_owner_get(report->top);
	return 0;
}

static int end(struct pcpc_report *report)
{
	int r = pcpc_out_end(&report->out);

	pcpc_owner_put(report->top);
	return r;
}

int pcpc_domain_report_config(struct pcpc_domain *domain, enum pcpc_format format,
			      const struct pcpc_report_config *config, pcpc_write_fn *write,
			      void *context)
{
	const size_t first = offsetof(struct pcpc_report_config, largest) + sizeof(uint32_t);
	struct pcpc_report_config chosen = { .size = sizeof(chosen) };
	struct pcpc_report report;
	int r = 0;

	if (!domain || !write || (unsigned int)format > PCPC_FORMAT_PROMETHEUS)
		return -EINVAL;
	if (config)
		r = pcpc_read_struct(&chosen, sizeof(chosen), first, config);
	if (r == 0)
		r = begin(&report, domain, &chosen, write, context);
	if (r < 0)
		return r;
	switch (format) {
	case PCPC_FORMAT_TEXT:
		pcpc_report_text(&report);
		break;
	case PCPC_FORMAT_JSON:
		pcpc_report_json(&report);
		break;
	case PCPC_FORMAT_PROMETHEUS:
		report.by_peak = true;
		pcpc_report_metrics(&report);
		break;
	}
	return end(&report);
}

int pcpc_domain_report(struct pcpc_domain *domain, enum pcpc_format format, pcpc_write_fn *write,
		       void *context)
{
	return pcpc_domain_report_config(domain, format, NULL, write, context);
}

int pcpc_write_fd(const char *text, size_t length, void *context)
{
	int saved = errno, r = 0;
	long written;

	if (!context)
		return -EINVAL;
	while (length && r == 0) {
		/* Not write(), which is a cancellation point. */
		written = syscall(SYS_write, *(const int *)context, text, length);
		if (written > 0) {
			text += written;
			length -= (size_t)written;
		} else if (written == 0 || errno != EINTR) {
			/* A file that takes nothing and says nothing. */
			r = written ? -errno : -EIO;
		}
	}
	errno = saved;
	return r;
}

int pcpc_domain_report_fd(struct pcpc_domain *domain, enum pcpc_format format, int fd)
{
	return pcpc_domain_report_config(domain, format, NULL, pcpc_write_fd, &fd);
}

/* -- refusals -- */

#define CULPRITS 5u

/* The owner that refused, with a reference, if it still is there; NULL: only its name is. */
static struct pcpc_owner *find_over(struct pcpc_domain *domain, const struct pcpc_refusal *refusal)
{
	struct pcpc_owner *over = pcpc_owner_find(domain, refusal->id);
	char name[sizeof(refusal->name)];

	if (!over)
		return NULL;
	pcpc_cut_name(pcpc_owner_name(over), name, sizeof(name));
	if (strncmp(name, refusal->name, sizeof(name))) {
		pcpc_owner_put(over);
		over = NULL;
	}
	return over;
}

static void put_amount(struct pcpc_out *out, const struct pcpc_domain *domain, uint64_t amount)
{
	pcpc_put_number(out, amount);
	pcpc_put(out, *domain->unit ? " " : "");
	pcpc_put_name(out, domain->unit, PCPC_ESCAPE_TEXT);
}

static void put_refusal(struct pcpc_out *out, const struct pcpc_domain *domain,
			const struct pcpc_refusal *refusal)
{
	char name[sizeof(refusal->name) + 1] = { 0 };

	memcpy(name, refusal->name, sizeof(refusal->name));
	pcpc_put_name(out, domain->name, PCPC_ESCAPE_TEXT);
	pcpc_put(out, ": no room for ");
	put_amount(out, domain, refusal->asked);
	pcpc_put(out, ": ");
	pcpc_put_name(out, name, PCPC_ESCAPE_TEXT);
	pcpc_put(out, " (id ");
	pcpc_put_number(out, refusal->id);
	pcpc_put(out, ") used ");
	pcpc_put_number(out, refusal->usage);
	pcpc_put(out, " of max ");
	pcpc_put_number(out, refusal->max);
	pcpc_put_char(out, '\n');
}

/* ", 12.3 %\n": what a part is of a whole, neither of which stands still. */
static void put_share(struct pcpc_out *out, uint64_t part, uint64_t whole)
{
	uint64_t share;

	for (; whole > UINT64_MAX / 1000; whole /= 2)
		part /= 2;
	part = part < whole ? part : whole;
	share = whole ? part * 1000 / whole : 0;
	pcpc_put(out, ", ");
	pcpc_put_number(out, share / 10);
	pcpc_put_char(out, '.');
	pcpc_put_number(out, share % 10);
	pcpc_put(out, " %\n");
}

struct whole {
	uint64_t usage;
};

static void show_culprit(struct pcpc_report *report, const struct pcpc_level *level, void *context)
{
	const struct whole *whole = context;
	struct pcpc_out *out = &report->out;
	uint64_t usage = pcpc_owner_usage(level->owner);

	if (level->owner == report->top)
		return;
	pcpc_put(out, "  ");
	pcpc_put_name(out, pcpc_owner_name(level->owner), PCPC_ESCAPE_TEXT);
	pcpc_put(out, " (id ");
	pcpc_put_number(out, level->owner->id);
	pcpc_put(out, "): ");
	put_amount(out, report->domain, usage);
	put_share(out, usage, whole->usage);
}

static void show_rest(struct pcpc_report *report, const struct pcpc_level *level, void *context)
{
	const struct whole *whole = context;
	struct pcpc_out *out = &report->out;

	if (level->owner != report->top || !level->left_out)
		return;
	pcpc_put(out, "  ");
	pcpc_put_number(out, level->left_out);
	pcpc_put(out, " more: ");
	put_amount(out, report->domain, level->left_out_usage);
	put_share(out, level->left_out_usage, whole->usage);
}

int pcpc_refusal_report_fd(struct pcpc_domain *domain, const struct pcpc_refusal *refusal, int fd)
{
	struct pcpc_report_config config = { .size = sizeof(config),
					     .depth = 2,
					     .largest = CULPRITS };
	struct pcpc_report report;
	struct whole whole;
	int r;

	if (!domain || !refusal || !refusal->id)
		return -EINVAL;
	config.top = find_over(domain, refusal);
	r = begin(&report, domain, &config, pcpc_write_fd, &fd);
	if (r == 0) {
		put_refusal(&report.out, domain, refusal);
		whole.usage = pcpc_owner_usage(report.top);
		if (config.top)
			pcpc_report_walk(&report, show_culprit, show_rest, &whole);
		r = end(&report);
	}
	pcpc_owner_put(config.top);
	return r;
}

/* -- figures -- */

void pcpc_domain_figures(struct pcpc_domain *domain, struct pcpc_domain_stats *ret_stats)
{
	*ret_stats = (struct pcpc_domain_stats){
		.size = sizeof(*ret_stats),
		.engine = pcpc_cache_engine(domain->cache),
		.nr_cpus = domain->nr_cpus,
		/* Relaxed: counters that say nothing about other data. */
		.drains = atomic_load_explicit(&domain->drains, memory_order_relaxed),
		.sweeps = atomic_load_explicit(&domain->sweeps, memory_order_relaxed),
	};
	pthread_mutex_lock(&domain->tree_mutex);
	ret_stats->nr_owners = domain->nr_owners;
	ret_stats->nr_offline = atomic_load_explicit(&domain->nr_offline, memory_order_relaxed);
	pthread_mutex_unlock(&domain->tree_mutex);
}

static uint64_t resident_of_cache(struct pcpc_cache *cache)
{
	struct pcpc_cache_stats stats = { .size = sizeof(stats) };

	(void)pcpc_cache_get_stats(cache, &stats);
	return stats.bytes_resident;
}

static uint64_t resident_of_stats(struct pcpc_stats *stats, size_t used)
{
	if (!stats->cache)
		return 0;
	return resident_of_cache(stats->cache) + pcpc_resident(stats->changed, NR_IDS / 8) +
	       pcpc_resident(stats->blocks, used * stats->block_size);
}

/* Of the arrays by id, only what was ever used is looked at. */
static uint64_t resident(struct pcpc_domain *domain)
{
	/* Relaxed: a figure. */
	size_t used = atomic_load_explicit(&domain->highest_id, memory_order_relaxed) + 1;

	return resident_of_cache(domain->cache) + resident_of_stats(&domain->stats, used) +
	       pcpc_resident(domain->ids, sizeof(struct pcpc_ids)) +
	       pcpc_resident(domain->owners, used * sizeof(struct pcpc_owner)) +
	       pcpc_resident(domain->books, used * sizeof(struct pcpc_books));
}

/* The size of the first version, which 0 stands for. */
#define FIRST_STATS (offsetof(struct pcpc_domain_stats, bytes_resident) + sizeof(uint64_t))

void pcpc_domain_get_stats(struct pcpc_domain *domain, struct pcpc_domain_stats *ret_stats)
{
	struct pcpc_domain_stats stats;
	size_t size;

	if (!domain || !ret_stats)
		return;
	size = ret_stats->size ? ret_stats->size : FIRST_STATS;
	if (size < FIRST_STATS)
		return;
	pcpc_domain_figures(domain, &stats);
	stats.bytes_resident = resident(domain);
	stats.size = size;
	memset(ret_stats, 0, size);
	memcpy(ret_stats, &stats, size < sizeof(stats) ? size : sizeof(stats));
}
