/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * kernel/page_counter.h - part of kernel.h: hierarchical counters with limits, which behave as
 * those of the kernel to the letter, for code that uses them. Owners (owner.h) are what this
 * library counts with itself: theirs refuse nobody falsely.
 *
 * Amounts are pages. Any thread may charge and uncharge, signal handlers too. Who sets limits takes
 * turns. What figures may be off is said at them.
 */
#ifndef PCPCHARGE_KERNEL_PAGE_COUNTER_H
#define PCPCHARGE_KERNEL_PAGE_COUNTER_H

#ifndef PCPCHARGE_KERNEL_H
#error "include <pcpcharge/kernel.h>"
#endif

#if LONG_MAX > 0x7fffffff
#define PAGE_COUNTER_MAX ((unsigned long)LONG_MAX / PAGE_SIZE)
#else
#define PAGE_COUNTER_MAX ((unsigned long)LONG_MAX)
#endif

struct page_counter {
	atomic_long_t usage;
	unsigned long failcnt; /* refusals here; some may be missing */

	/* Set from above by page_counter_calculate_protection(). */
	unsigned long emin, elow;
	atomic_long_t min_usage, low_usage; /* min(usage, min), of which the parent has the sum */
	atomic_long_t children_min_usage, children_low_usage;
	/* The highest usage, ever and since a reset. Attempts that were refused further up count;
	 * of several at once one may be missing. */
	unsigned long watermark, local_watermark;

	_Alignas(128) bool protection_support;
	bool track_failcnt;
	unsigned long min, low, high, max;
	struct page_counter *parent;
};

/** page_counter_init: usage 0, no limit. parent may be NULL, and outlives it. */
static inline void page_counter_init(struct page_counter *counter, struct page_counter *parent,
				     bool protection_support)
{
	*counter = (struct page_counter){ .max = PAGE_COUNTER_MAX,
					  .high = PAGE_COUNTER_MAX,
					  .parent = parent,
					  .protection_support = protection_support };
}

static inline unsigned long page_counter_read(const struct page_counter *counter)
{
	return (unsigned long)atomic_long_read(&counter->usage);
}

/** pcpc_kernel_counter_try: add nr_pages at every level, and compare with limits if there is a
 * ret_fail: false and who refused, with every usage as it was. See page_counter_try_charge(). */
PCPC_API bool pcpc_kernel_counter_try(struct page_counter *counter, unsigned long nr_pages,
				      struct page_counter **ret_fail);
PCPC_API void pcpc_kernel_counter_cancel(struct page_counter *counter, unsigned long nr_pages);
PCPC_API int pcpc_kernel_counter_set_max(struct page_counter *counter, unsigned long nr_pages);
PCPC_API void pcpc_kernel_counter_protect(struct page_counter *counter);
PCPC_API int pcpc_kernel_counter_parse(const char *text, const char *max, unsigned long *ret_pages);
PCPC_API void pcpc_kernel_counter_protection(struct page_counter *root,
					     struct page_counter *counter, bool recursive);

/** page_counter_charge: at every level, whatever the limits. */
static inline void page_counter_charge(struct page_counter *counter, unsigned long nr_pages)
{
	(void)pcpc_kernel_counter_try(counter, nr_pages, NULL);
}

/**
 * page_counter_try_charge: at every level, or none. Adds first and compares then, from counter
 * upwards: so while a large attempt is being refused, a small one that would fit may be too.
 *
 * Returns true, or false with *fail, where usage would have passed max.
 */
static inline bool page_counter_try_charge(struct page_counter *counter, unsigned long nr_pages,
					   struct page_counter **fail)
{
	return pcpc_kernel_counter_try(counter, nr_pages, fail);
}

/** page_counter_cancel: at one level. More than there is warns once, and leaves 0. */
static inline void page_counter_cancel(struct page_counter *counter, unsigned long nr_pages)
{
	pcpc_kernel_counter_cancel(counter, nr_pages);
}

/** page_counter_uncharge: at every level. */
static inline void page_counter_uncharge(struct page_counter *counter, unsigned long nr_pages)
{
	for (; counter; counter = counter->parent)
		page_counter_cancel(counter, nr_pages);
}

/** page_counter_set_max: returns 0, or -EBUSY with max as it was: usage is above it. Of a charge
 * and this at least one sees the other. */
static inline int page_counter_set_max(struct page_counter *counter, unsigned long nr_pages)
{
	return pcpc_kernel_counter_set_max(counter, nr_pages);
}

static inline void page_counter_set_high(struct page_counter *counter, unsigned long nr_pages)
{
	WRITE_ONCE(counter->high, nr_pages);
}

static inline void page_counter_set_min(struct page_counter *counter, unsigned long nr_pages)
{
	WRITE_ONCE(counter->min, nr_pages);
	pcpc_kernel_counter_protect(counter);
}

static inline void page_counter_set_low(struct page_counter *counter, unsigned long nr_pages)
{
	WRITE_ONCE(counter->low, nr_pages);
	pcpc_kernel_counter_protect(counter);
}

static inline void page_counter_reset_watermark(struct page_counter *counter)
{
	unsigned long usage = page_counter_read(counter);

	/* Local first: it is never above the other. */
	WRITE_ONCE(counter->local_watermark, usage);
	WRITE_ONCE(counter->watermark, usage);
}

/** page_counter_memparse: the word in max, or bytes with a suffix k, m, g, t, p, e, rounded down to
 * pages. Returns 0, or -EINVAL with *nr_pages untouched. */
static inline int page_counter_memparse(const char *buf, const char *max, unsigned long *nr_pages)
{
	return pcpc_kernel_counter_parse(buf, max, nr_pages);
}

/** page_counter_calculate_protection: emin and elow of counter, from those of its parent: so from
 * above, level by level. root: where the reclaim begins, which is not protected itself. recursive:
 * what children leave of their parent's protection is shared by usage. */
static inline void page_counter_calculate_protection(struct page_counter *root,
						     struct page_counter *counter,
						     bool recursive_protection)
{
	pcpc_kernel_counter_protection(root, counter, recursive_protection);
}

#endif
