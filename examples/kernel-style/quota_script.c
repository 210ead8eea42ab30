// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * quota_script.c - a scripted day of a few quotas, on one CPU, told line by line: the same lines in
 * user space and in a kernel.
 */
#include "quota.h"

enum { WEB, MAIL, FIRST_SMALL, NR_QUOTAS = FIRST_SMALL + 7 };

static struct quota *quotas[NR_QUOTAS];

static void tell(const char *what, const struct quota *quota, unsigned int nr_pages, int result)
{
	pr_info("quota: %s %s %u: %d; web %ld mail %ld root %ld, stocked %lu\n", what, quota->name,
		nr_pages, result, atomic_long_read(&quotas[WEB]->usage),
		atomic_long_read(&quotas[MAIL]->usage), atomic_long_read(&quota_root()->usage),
		quota_stocked());
}

static void charge(int which, unsigned int nr_pages)
{
	tell("charge", quotas[which], nr_pages, quota_charge(quotas[which], nr_pages));
}

static void uncharge(int which, unsigned int nr_pages)
{
	quota_uncharge(quotas[which], nr_pages);
	tell("uncharge", quotas[which], nr_pages, 0);
}

/* A batch, hits, more than a batch, a trim. */
static void play_stock(void)
{
	charge(WEB, 1);
	charge(WEB, 63);
	charge(WEB, 1);
	charge(WEB, 100);
	uncharge(WEB, 100);
	uncharge(WEB, 1);
	uncharge(WEB, 64);
}

/* mail, below web, may have 100 pages: a batch fits once, then exact amounts, then none. */
static void play_limit(void)
{
	charge(MAIL, 64);
	charge(MAIL, 30);
	charge(MAIL, 6);
	charge(MAIL, 1);
	quota_set_max(quotas[MAIL], 200);
	charge(MAIL, 1);
	uncharge(MAIL, 101);
}

/* More quotas than a stock has slots. */
static void play_eviction(void)
{
	int i;

	for (i = FIRST_SMALL; i < NR_QUOTAS; i++)
		charge(i, 2);
	for (i = FIRST_SMALL; i < NR_QUOTAS; i++)
		uncharge(i, 2);
}

static void play(struct work_struct *work)
{
	(void)work;
	play_stock();
	play_limit();
	play_eviction();
}

/* Where the script is played: always the same stock. */
static void play_on_first_cpu(void)
{
	static struct work_struct work;
	int cpu, first = -1;

	for_each_online_cpu(cpu)
		if (first < 0)
			first = cpu;
	INIT_WORK(&work, play);
	schedule_work_on(first, &work);
	flush_work(&work);
}

/* Drained, each is empty; who has children stays. */
static void take_down(void)
{
	int i;

	quota_drain();
	tell("drain", quota_root(), 0, 0);
	pr_info("quota: destroy web: %d\n", quota_destroy(quotas[WEB]));
	for (i = NR_QUOTAS - 1; i >= 0; i--)
		pr_info("quota: destroy: %d\n", quota_destroy(quotas[i]));
	pr_info("quota: %ld hits, %ld misses, %ld refusals, %ld evictions, %ld trims; root %ld\n",
		atomic_long_read(&quota_events.hits), atomic_long_read(&quota_events.misses),
		atomic_long_read(&quota_events.refusals), atomic_long_read(&quota_events.evictions),
		atomic_long_read(&quota_events.trims), atomic_long_read(&quota_root()->usage));
}

int quota_script(void)
{
	static const char *const names[NR_QUOTAS] = { "web", "mail", "a", "b", "c",
						      "d",   "e",    "f", "g" };
	struct quota *quota;
	int i;

	for (i = 0; i < NR_QUOTAS; i++) {
		quota = quota_create(i == MAIL ? quotas[WEB] : quota_root(), names[i],
				     i == MAIL ? 100 : 10000);
		if (IS_ERR(quota))
			return PTR_ERR(quota);
		quotas[i] = quota;
	}
	play_on_first_cpu();
	take_down();
	return 0;
}
