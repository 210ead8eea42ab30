// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * page_counter.c - the page counters of kernel.h, which behave as the kernel's do, where that can
 * be told. Nothing of this library counts with them.
 */
#define _GNU_SOURCE
#include <pcpcharge/kernel.h>

#include <ctype.h>

/* -- protection -- */

/* Usage below a setting is protected; the parent is told by how much that has changed. */
static void propagate(atomic_long_t *own, atomic_long_t *sum, long usage, unsigned long setting)
{
	long is = min(usage, (long)min(setting, PAGE_COUNTER_MAX)), was;

	if (is == atomic_long_read(own))
		return;
	was = atomic_long_xchg(own, is);
	if (is != was)
		atomic_long_add(is - was, sum);
}

static void propagate_protected(struct page_counter *counter, long usage)
{
	struct page_counter *parent = counter->parent;

	if (!parent || !counter->protection_support)
		return;
	propagate(&counter->min_usage, &parent->children_min_usage, usage, READ_ONCE(counter->min));
	propagate(&counter->low_usage, &parent->children_low_usage, usage, READ_ONCE(counter->low));
}

void pcpc_kernel_counter_protect(struct page_counter *counter)
{
	for (; counter; counter = counter->parent)
		propagate_protected(counter, atomic_long_read(&counter->usage));
}

/* What of a parent's protection a counter gets. sum: what all its children could claim. */
static unsigned long effective(unsigned long usage, unsigned long parent_usage,
			       unsigned long setting, unsigned long parent_effective,
			       unsigned long sum, bool recursive)
{
	unsigned long claimed = min(usage, setting), got = claimed;

	if (sum > parent_effective)
		return (unsigned long)((unsigned __int128)claimed * parent_effective / sum);
	/* What nobody claims is shared by how much each has beyond its claim. */
	if (recursive && parent_effective > sum && parent_usage > sum && usage > claimed)
		got += (unsigned long)((unsigned __int128)(parent_effective - sum) *
				       (usage - claimed) / (parent_usage - sum));
	return got;
}

void pcpc_kernel_counter_protection(struct page_counter *root, struct page_counter *counter,
				    bool recursive)
{
	struct page_counter *parent = counter->parent;
	unsigned long usage = page_counter_read(counter), parent_usage;

	if (counter == root || !usage)
		return;
	if (parent == root) {
		counter->emin = READ_ONCE(counter->min);
		counter->elow = READ_ONCE(counter->low);
		return;
	}
	/* root is not above it */
	if (!parent)
		return;
	parent_usage = page_counter_read(parent);
	WRITE_ONCE(counter->emin,
		   effective(usage, parent_usage, READ_ONCE(counter->min), READ_ONCE(parent->emin),
			     (unsigned long)atomic_long_read(&parent->children_min_usage),
			     recursive));
	WRITE_ONCE(counter->elow,
		   effective(usage, parent_usage, READ_ONCE(counter->low), READ_ONCE(parent->elow),
			     (unsigned long)atomic_long_read(&parent->children_low_usage),
			     recursive));
}

/* -- counting -- */

/* Of several at once a lower one may win: a figure. The local one first, for it is never above. */
static void raise_watermark(struct page_counter *counter, unsigned long usage)
{
	if (usage <= READ_ONCE(counter->local_watermark))
		return;
	WRITE_ONCE(counter->local_watermark, usage);
	if (usage > READ_ONCE(counter->watermark))
		WRITE_ONCE(counter->watermark, usage);
}

void pcpc_kernel_counter_cancel(struct page_counter *counter, unsigned long nr_pages)
{
	long usage = atomic_long_sub_return((long)nr_pages, &counter->usage);

	/* Read as unsigned it would refuse every charge from now on. */
	if (WARN_ONCE(usage < 0, "page_counter underflow: %ld nr_pages=%lu", usage, nr_pages)) {
		usage = 0;
		atomic_long_set(&counter->usage, 0);
	}
	propagate_protected(counter, usage);
}

static void cancel_below(struct page_counter *counter, const struct page_counter *end,
			 unsigned long nr_pages)
{
	for (; counter != end; counter = counter->parent)
		pcpc_kernel_counter_cancel(counter, nr_pages);
}

/* Added first and compared then, each with a full barrier: pairs with
 * pcpc_kernel_counter_set_max(), which stores max and then reads usage. */
bool pcpc_kernel_counter_try(struct page_counter *counter, unsigned long nr_pages,
			     struct page_counter **ret_fail)
{
	const bool counts = counter->track_failcnt;
	struct page_counter *level;
	long usage;

	for (level = counter; level; level = level->parent) {
		usage = atomic_long_add_return((long)nr_pages, &level->usage);
		if (ret_fail && (unsigned long)usage > READ_ONCE(level->max)) {
			atomic_long_sub((long)nr_pages, &level->usage);
			/* Not atomic: of two refusals at once one may be missing. */
			if (counts)
				WRITE_ONCE(level->failcnt, READ_ONCE(level->failcnt) + 1);
			*ret_fail = level;
			cancel_below(counter, level, nr_pages);
			return false;
		}
		propagate_protected(level, usage);
		raise_watermark(level, (unsigned long)usage);
	}
	return true;
}

int pcpc_kernel_counter_set_max(struct page_counter *counter, unsigned long nr_pages)
{
	unsigned long usage, before;

	for (;;) {
		usage = page_counter_read(counter);
		if (usage > nr_pages)
			return -EBUSY;
		before = xchg(&counter->max, nr_pages);
		if (page_counter_read(counter) <= usage || nr_pages >= before)
			return 0;
		/* Somebody charged meanwhile, and may not have seen the new one. */
		WRITE_ONCE(counter->max, before);
		cond_resched();
	}
}

/* -- text -- */

static unsigned int shift_of(char suffix)
{
	static const char suffixes[] = "kmgtpe";
	const char *found = suffix ? strchr(suffixes, tolower((unsigned char)suffix)) : NULL;

	return found ? 10 * (unsigned int)(found - suffixes + 1) : 0;
}

int pcpc_kernel_counter_parse(const char *text, const char *max, unsigned long *ret_pages)
{
	unsigned long long bytes;
	unsigned int shift;
	int saved;
	char *end;

	if (!strcmp(text, max)) {
		*ret_pages = PAGE_COUNTER_MAX;
		return 0;
	}
	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	saved = errno;
	bytes = strtoull(text, &end, 0);
	errno = saved;
	shift = shift_of(*end);
	if (end[shift > 0])
		return -EINVAL;
	bytes = bytes > ULLONG_MAX >> shift ? ULLONG_MAX : bytes << shift;
	*ret_pages = (unsigned long)min(bytes / PAGE_SIZE, (unsigned long long)PAGE_COUNTER_MAX);
	return 0;
}
