// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * guest_run.c - rounds of load with a check after each, and one line with what came of it:
 *
 *	pcpc_guest: stocks twin=none seed=N rounds=N sound: hits=... misses=... ...
 *
 * "sound": everything adds up, and enough of everything has happened; "idle": something has not
 * happened, so nothing is proved; "broken": it does not add up. Which of the last two and why is in
 * the figures: those that are wrong have a mark.
 */
#define pr_fmt(format) KBUILD_MODNAME ": " format

#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/sched.h>

#include "guest.h"

#define PATIENCE 20 /* rounds */

/* least: fewer prove nothing, and the run goes on; 0: there must be none. */
static const struct {
	const char *name;
	unsigned long least;
} counts[GUEST_COUNTS] = {
	[GUEST_HITS] = { "hits", 10000 },
	[GUEST_MISSES] = { "misses", 10000 },
	[GUEST_REFUSED] = { "refused", 100 },
	[GUEST_TRIMS] = { "trims", 1000 },
	[GUEST_EVICTED] = { "evicted", 1000 },
	[GUEST_DELTAS] = { "deltas", 1000 },
	[GUEST_DRAINED] = { "drained", 100 },
	[GUEST_SOFT] = { "soft", 1000 },
	[GUEST_HARD] = { "hard", 1000 },
	[GUEST_MIGRATED] = { "migrated", 50 },
	[GUEST_RETRIED] = { "retried", 100 },
	[GUEST_OFF] = { "off", 5 },
	[GUEST_ON] = { "on", 5 },
	[GUEST_BYPASSED] = { "bypassed", 0 },
	[GUEST_DOUBLED] = { "doubled", 0 },
	[GUEST_LEFT] = { "left", 0 },
	[GUEST_LOST] = { "lost", 0 },
	[GUEST_LOCKED_HITS] = { "locked_hits", 1000 },
	[GUEST_LOCKED_BYPASSED] = { "locked_bypassed", 20 },
	[GUEST_LOCKED_SETTLING] = { "locked_settling", 5 },
};

static const char *const twins[] = {
	[GUEST_WHOLE] = "none",
	[GUEST_COMMIT] = "commit",
	[GUEST_INSERT] = "insert",
	[GUEST_DEATH] = "death",
};

static bool wrong(enum guest_count what)
{
	unsigned long n = guest_counted(what);

	return counts[what].least ? n < counts[what].least : n;
}

static bool broken(void)
{
	u32 i;

	for (i = 0; i < GUEST_COUNTS; i++)
		if (!counts[i].least && wrong(i))
			return true;
	return false;
}

static bool idle(void)
{
	u32 i;

	for (i = 0; i < GUEST_COUNTS; i++)
		if (counts[i].least && wrong(i))
			return true;
	return false;
}

static void tell(unsigned int rounds)
{
	static char line[800];
	int at = 0;
	u32 i;

	for (i = 0; i < GUEST_COUNTS; i++)
		at += scnprintf(line + at, sizeof(line) - at, " %s=%lu%s", counts[i].name,
				guest_counted(i), wrong(i) ? "(!)" : "");
	pr_notice("stocks twin=%s seed=%u rounds=%u %s:%s\n", twins[guest_twin], guest_seed, rounds,
		  broken() ? "broken"
		  : idle() ? "idle"
			   : "sound",
		  line);
}

static void check(void)
{
	struct guest_books sum;

	guest_load_sum(&sum);
	guest_charge_check(sum.held, sum.moved);
	guest_locked_check(sum.locked);
}

/* A second of everything at once, then a look at the books while a CPU is off. */
static int round_of_load(void)
{
	int r = guest_load_start();

	if (!r)
		schedule_timeout_uninterruptible(HZ);
	guest_load_stop();
	if (!r)
		check();
	return r;
}

/* As long as was asked for, and on until it has proved something, but not for ever. */
static bool another_round(unsigned int done)
{
	if (broken())
		return false;
	return done < guest_seconds ||
	       (done < guest_seconds + PATIENCE && (idle() || guest_twin != GUEST_WHOLE));
}

int guest_run(void)
{
	unsigned int rounds = 0;
	int r;

	guest_load_init();
	guest_locked_start();
	r = guest_charge_start();
	if (r)
		return r;
	while (!r && another_round(rounds)) {
		r = round_of_load();
		rounds++;
	}
	/* In the end nobody holds anything: every counter must be 0. */
	guest_all_cpus_on();
	guest_load_give_back();
	check();
	guest_charge_stop();
	if (!r)
		tell(rounds);
	return r;
}
