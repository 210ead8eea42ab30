// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_observe_refusal.c - the report that names the culprit, and the figures of a domain.
 */
#define _GNU_SOURCE
#include "observe_support.h"

#include <fcntl.h>
#include <sys/mman.h>

/* What the report of a refusal says; the caller frees it. */
static char *told(const struct pcpc_refusal *refusal)
{
	int fd = memfd_create("report", MFD_CLOEXEC);
	char *text = calloc(1, 65536);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pcpc_refusal_report_fd(domain, refusal, fd), 0);
	ck_assert_int_gt(pread(fd, text, 65535, 0), 0);
	close(fd);
	return text;
}

/* Asks 1: "For a 3-level tree with one hog, a refused charge returns a record with: the failing
 * ancestor, its limit and usage, the request, and the top-N children". */
START_TEST(asks_1_the_refusal_names_who_refused_and_who_fills_it)
{
	static const uint64_t usages[] = { 10, 700, 20, 40, 30, 50, 25 };
	static const char *const names[] = { "ann", "hog", "bob", "cleo", "dan", "eve", "finn" };
	struct pcpc_owner *owner[7], *team;
	struct pcpc_refusal refusal;
	unsigned int i;
	char *text;

	if (!open_named(_i, "memory", "bytes", NULL, 0))
		return;
	team = named(root, "team");
	ck_assert_int_eq(pcpc_owner_set_max(team, 1000), 0);
	for (i = 0; i < 7; i++)
		owner[i] = using(team, names[i], usages[i]);
	ck_assert_int_eq(pcpc_charge_flags(owner[0], 126, 0, &refusal), -EDQUOT);
	text = told(&refusal);
	/* of 875: 80 %, 5.71, 4.57, 3.42, 2.85; and 30 of the others, 3.42 */
	ck_assert_str_eq(text, "memory: no room for 126 bytes: team (id 2) used 875 of max 1000\n"
			       "  hog (id 4): 700 bytes, 80.0 %\n"
			       "  eve (id 8): 50 bytes, 5.7 %\n"
			       "  cleo (id 6): 40 bytes, 4.5 %\n"
			       "  dan (id 7): 30 bytes, 3.4 %\n"
			       "  finn (id 9): 25 bytes, 2.8 %\n"
			       "  2 more: 30 bytes, 3.4 %\n");
	free(text);
	/* the first line is of then, the rest of now */
	uncharge(owner[1], 700);
	text = told(&refusal);
	assert_has(text, "used 875 of max 1000\n  eve (id 8): 50 bytes, 28.5 %\n");
	assert_has(text, "  2 more: 10 bytes, 5.7 %\n");
	free(text);
	for (i = 0; i < 7; i++)
		if (i != 1)
			uncharge(owner[i], usages[i]);
	text = told(&refusal);
	assert_has(text, "bytes, 0.0 %\n");
	free(text);
}
END_TEST

/* "The owner may be gone": then the copies are all there is. */
START_TEST(an_owner_that_went_is_named_all_the_same)
{
	static const char line[] = "r: no room for 2: gone (id 2) used 0 of max 1\n";
	struct pcpc_owner *gone, *other;
	struct pcpc_refusal refusal;
	char *text;

	if (!open_named(_i, "r", NULL, NULL, 0))
		return;
	gone = named(root, "gone");
	ck_assert_int_eq(pcpc_owner_set_max(gone, 1), 0);
	ck_assert_int_eq(pcpc_charge_flags(gone, 2, 0, &refusal), -EDQUOT);
	ck_assert_int_eq(pcpc_owner_destroy(gone), 0);
	text = told(&refusal);
	ck_assert_str_eq(text, line);
	free(text);
	pcpc_domain_poll(domain);
	text = told(&refusal);
	ck_assert_str_eq(text, line);
	free(text);
	/* its id is another's by now, whose children are none of its business */
	other = named(root, "other");
	ck_assert_uint_eq(other->id, refusal.id);
	(void)named(other, "child");
	text = told(&refusal);
	ck_assert_str_eq(text, line);
	free(text);
	/* an id that nobody ever had */
	refusal.id = PCPC_OWNER_MAX;
	text = told(&refusal);
	assert_has(text, "gone (id 1048575) used");
	free(text);
	refusal.id = UINT32_MAX;
	text = told(&refusal);
	assert_has(text, "gone (id 4294967295) used");
	free(text);
}
END_TEST

/* The refusal has 31 characters of a name: it is found by those. */
START_TEST(a_long_name_is_cut_and_its_owner_found)
{
	static const char name[] = "0123456789012345678901234567890-and-more";
	struct pcpc_refusal refusal;
	struct pcpc_owner *owner;
	char *text;

	if (!open_named(_i, "r", "", NULL, 0))
		return;
	owner = named(root, name);
	(void)named(owner, "child\n\xff");
	ck_assert_int_eq(pcpc_owner_set_max(owner, 1), 0);
	ck_assert_int_eq(pcpc_charge_flags(owner, 2, 0, &refusal), -EDQUOT);
	text = told(&refusal);
	ck_assert_str_eq(
		text, "r: no room for 2: 0123456789012345678901234567890 (id 2) used 0 of max 1\n"
		      "  child\\n\xef\xbf\xbd (id 3): 0, 0.0 %\n");
	free(text);
	/* not terminated: the caller's own mistake, and no read beyond */
	memset(refusal.name, 'x', sizeof(refusal.name));
	text = told(&refusal);
	assert_has(text, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx (id 2) used");
	free(text);
}
END_TEST

/* Not in the midst of a character of UTF-8; and what is none does not lose more than one would. */
START_TEST(a_name_is_cut_where_a_character_ends)
{
	static const struct {
		const char *name, *cut;
	} names[] = {
		{ "29 bytes before the two parts \xc3\xa9t\xc3\xa9",
		  "29 bytes before the two parts " },
		{ "31 with the euro as the las \xe2\x82\xac, ",
		  "31 with the euro as the las \xe2\x82\xac" },
		{ "32 with the euro as the last \xe2\x82\xac", "32 with the euro as the last " },
		{ "four bytes, of which 3 fit: \xf0\x9f\x98\x80", "four bytes, of which 3 fit: " },
		{ "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80"
		  "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80",
		  "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80"
		  "\x80\x80\x80\x80\x80\x80\x80\x80" },
	};
	struct pcpc_refusal refusal;
	struct pcpc_owner *owner;
	unsigned int i;
	char *text;

	if (!open_named(_i, "r", "", NULL, 0))
		return;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		owner = named(root, names[i].name);
		(void)named(owner, "child");
		ck_assert_int_eq(pcpc_owner_set_max(owner, 1), 0);
		ck_assert_int_eq(pcpc_charge_flags(owner, 2, 0, &refusal), -EDQUOT);
		ck_assert_str_eq(refusal.name, names[i].cut);
		/* and it is known again */
		text = told(&refusal);
		assert_has(text, "\n  child (id ");
		free(text);
	}
}
END_TEST

/* Shares of the largest numbers there are. */
START_TEST(shares_do_not_overflow)
{
	struct pcpc_refusal refusal;
	struct pcpc_owner *owner;
	char *text;

	if (!open_named(_i, "r", "", NULL, 0))
		return;
	owner = using(root, "most", PCPC_UNLIMITED / 4 * 3);
	(void)using(root, "rest", PCPC_UNLIMITED - PCPC_UNLIMITED / 4 * 3);
	units_left = true;
	ck_assert_int_eq(pcpc_charge_flags(owner, 1, 0, &refusal), -EDQUOT);
	text = told(&refusal);
	assert_has(text, "used 9223372036854775807 of max 9223372036854775807\n");
	assert_has(text, "  most (id 2): 6917529027641081853, 74.9 %\n");
	assert_has(text, "  rest (id 3): 2305843009213693954, 25.0 %\n");
	free(text);
}
END_TEST

START_TEST(errors_of_a_refusal_report_are_returned)
{
	struct pcpc_refusal refusal = { .id = 1, .name = "r" }, none = { 0 };
	int fd;

	if (!open_named(_i, "r", "", NULL, 0))
		return;
	ck_assert_int_eq(pcpc_refusal_report_fd(NULL, &refusal, 1), -EINVAL);
	ck_assert_int_eq(pcpc_refusal_report_fd(domain, NULL, 1), -EINVAL);
	ck_assert_int_eq(pcpc_refusal_report_fd(domain, &none, 1), -EINVAL);
	errno = 12345;
	ck_assert_int_eq(pcpc_refusal_report_fd(domain, &refusal, -1), -EBADF);
	ck_assert_int_eq(errno, 12345);
	fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pcpc_refusal_report_fd(domain, &refusal, fd), -ENOSPC);
	close(fd);
	ck_assert_uint_eq(atomic_load(&books_of(root)->refs), 1);
}
END_TEST

/* -- pcpc_domain_get_stats() -- */

static struct pcpc_domain_stats stats_now(void)
{
	struct pcpc_domain_stats stats = { .size = sizeof(stats) };

	pcpc_domain_get_stats(domain, &stats);
	ck_assert_uint_eq(stats.size, sizeof(stats));
	return stats;
}

/* Required: "engine, CPUs, owners, drains, sweeps, resident bytes". */
START_TEST(figures_of_a_domain_are_those_of_its_life)
{
	struct pcpc_owner *owner, *kept;
	struct pcpc_domain_stats stats;
	uint64_t drains;

	if (!open_domain(_i, 64, 0))
		return;
	stats = stats_now();
	ck_assert_int_eq(stats.engine, _i);
	ck_assert_uint_ge(stats.nr_cpus, 1);
	ck_assert_uint_eq(stats.nr_owners, 1);
	ck_assert_uint_eq(stats.nr_offline, 0);
	ck_assert_uint_eq(stats.drains, 0);
	ck_assert_uint_eq(stats.sweeps, 0);
	owner = child_of(root);
	kept = pcpc_owner_get(child_of(root));
	ck_assert_uint_eq(stats_now().nr_owners, 3);
	ck_assert_int_eq(pcpc_owner_destroy(owner), 0);
	ck_assert_int_eq(pcpc_owner_destroy(kept), 0);
	stats = stats_now();
	ck_assert_uint_eq(stats.nr_owners, 3);
	ck_assert_uint_eq(stats.nr_offline, 2);
	pcpc_domain_poll(domain);
	stats = stats_now();
	ck_assert_uint_eq(stats.nr_owners, 2);
	ck_assert_uint_eq(stats.nr_offline, 1);
	ck_assert_uint_eq(stats.sweeps, 1);
	drains = stats.drains;
	(void)pcpc_owner_drain(root);
	ck_assert_uint_eq(stats_now().drains, drains + 1);
	pcpc_owner_put(kept);
	pcpc_domain_poll(domain);
	ck_assert_uint_eq(stats_now().nr_owners, 1);
}
END_TEST

#define MANY 10000u

START_TEST(resident_bytes_grow_with_owners_and_stocks)
{
	struct pcpc_domain_config config = domain_config((enum pcpc_engine)_i, 64);
	uint64_t before, after;
	struct pcpc_owner *owner = NULL;
	unsigned int i;

	/* without items: their blocks would be counted too */
	if (!create_domain(&config))
		return;
	before = stats_now().bytes_resident;
	ck_assert_uint_gt(before, 0);
	ck_assert_uint_lt(before, 1u << 20);
	for (i = 0; i < MANY; i++)
		owner = child_of(root);
	after = stats_now().bytes_resident;
	ck_assert_uint_ge(after, before + (MANY - 64) * 448ull);
	/* two arrays, whose last pages are not full; ids */
	ck_assert_uint_le(after, before + MANY * 448ull + (1u << 17));
	charge(owner, 1);
	ck_assert_uint_gt(stats_now().bytes_resident, after);
	uncharge(owner, 1);
}
END_TEST

/* observe.h: "a library that knows fewer fields fills those, and sets the others to 0"; "Does
 * nothing if ... size is smaller than the first version's." */
START_TEST(the_size_of_the_figures_is_heeded)
{
	union {
		struct pcpc_domain_stats stats;
		unsigned char bytes[sizeof(struct pcpc_domain_stats) + 32];
	} wide, expected;
	size_t i;

	if (!open_domain(_i, 64, 0))
		return;
	memset(&wide, 0x5a, sizeof(wide));
	wide.stats.size = sizeof(struct pcpc_domain_stats) - 1;
	expected = wide;
	pcpc_domain_get_stats(domain, &wide.stats);
	ck_assert_int_eq(memcmp(&wide, &expected, sizeof(wide)), 0);
	pcpc_domain_get_stats(NULL, &wide.stats);
	pcpc_domain_get_stats(domain, NULL);
	ck_assert_int_eq(memcmp(&wide, &expected, sizeof(wide)), 0);
	/* 0 stands for the first version's */
	wide.stats.size = 0;
	pcpc_domain_get_stats(domain, &wide.stats);
	ck_assert_uint_eq(wide.stats.size, sizeof(struct pcpc_domain_stats));
	ck_assert_uint_eq(wide.stats.nr_owners, 1);
	ck_assert_uint_eq(wide.bytes[sizeof(struct pcpc_domain_stats)], 0x5a);
	memset(&wide, 0x5a, sizeof(wide));
	wide.stats.size = sizeof(struct pcpc_domain_stats) + 16;
	pcpc_domain_get_stats(domain, &wide.stats);
	ck_assert_uint_eq(wide.stats.size, sizeof(struct pcpc_domain_stats) + 16);
	ck_assert_uint_eq(wide.stats.nr_owners, 1);
	for (i = sizeof(struct pcpc_domain_stats); i < sizeof(wide); i++)
		ck_assert_uint_eq(wide.bytes[i],
				  i < sizeof(struct pcpc_domain_stats) + 16 ? 0 : 0x5a);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("observe refusal");
	TCase *tests = unit_case(suite, "refusal");

	tcase_add_checked_fixture(tests, NULL, close_domain);
	by_each_engine(tests, asks_1_the_refusal_names_who_refused_and_who_fills_it);
	by_each_engine(tests, an_owner_that_went_is_named_all_the_same);
	by_each_engine(tests, a_long_name_is_cut_and_its_owner_found);
	by_each_engine(tests, a_name_is_cut_where_a_character_ends);
	by_each_engine(tests, shares_do_not_overflow);
	by_each_engine(tests, errors_of_a_refusal_report_are_returned);
	by_each_engine(tests, figures_of_a_domain_are_those_of_its_life);
	by_each_engine(tests, resident_bytes_grow_with_owners_and_stocks);
	by_each_engine(tests, the_size_of_the_figures_is_heeded);
	return unit_run(suite);
}
