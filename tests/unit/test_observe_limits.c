// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_observe_limits.c - reports on a part of a tree: subtree, levels, the largest children, and
 * what is said of those left out; deep and wide trees; configurations that are refused.
 */
#define _GNU_SOURCE
#include "observe_support.h"

static struct pcpc_report_config limits(struct pcpc_owner *top, uint32_t depth, uint32_t largest)
{
	return (struct pcpc_report_config){ sizeof(struct pcpc_report_config), top, depth,
					    largest };
}

/* The line of an owner in a JSON report, by its id, which must be there once; the caller frees it.
 */
static char *line_of(const char *json, uint32_t id)
{
	char key[32];
	const char *line;

	snprintf(key, sizeof(key), "\n{\"id\":%u,", id);
	ck_assert_msg(occurrences(json, key) == 1, "%u times %s in:\n%s", occurrences(json, key),
		      key, json);
	line = strstr(json, key) + 1;
	return strndup(line, strcspn(line, "\n"));
}

static bool shows(const char *json, uint32_t id)
{
	char key[32];

	snprintf(key, sizeof(key), "\n{\"id\":%u,", id);
	return strstr(json, key) != NULL;
}

static void assert_left_out(const char *json, uint32_t id, uint64_t owners, uint64_t usage)
{
	char *line = line_of(json, id);

	ck_assert_uint_eq(number_after(line, "\"left_out\":"), owners);
	ck_assert_uint_eq(number_after(line, "\"left_out_usage\":"), usage);
	free(line);
}

/* ids: root 1; a 2 with 8, 9 below; b 3; c 4; d 5; e 6; f 7 */
static bool open_tree(int engine)
{
	static const uint64_t usages[] = { 10, 60, 20, 50, 30, 50 };
	static const char *const names[] = { "a", "b", "c", "d", "e", "f" };
	struct pcpc_owner *owner[6];
	unsigned int i;

	if (!open_named(engine, "r", "", NULL, 0))
		return false;
	for (i = 0; i < 6; i++)
		owner[i] = using(root, names[i], usages[i]);
	using(owner[0], "x", 1);
	using(owner[0], "y", 90);
	units_left = true;
	return true;
}

/* Required: "depth and top-N limits". a has 101, b 60, d and f 50, e 30, c 20; 311 in all. */
START_TEST(the_largest_children_come_first_and_the_others_in_sum)
{
	struct pcpc_report_config config = limits(NULL, 0, 3);
	char *text;

	if (!open_tree(_i))
		return;
	text = report_of(PCPC_FORMAT_TEXT, &config);
	ck_assert_str_eq(strstr(text, "id  usage"),
			 "id  usage  max  high  peak  stocked  owner\n"
			 " 1    311    -     -   311        0  r\n"
			 " 2    101    -     -   101        0    a\n"
			 " 9     90    -     -    90        0      y\n"
			 " 8      1    -     -     1        0      x\n"
			 " 3     60    -     -    60        0    b\n"
			 " 5     50    -     -    50        0    d\n"
			 "      100                              3 more\n");
	free(text);
	text = report_of(PCPC_FORMAT_JSON, &config);
	assert_left_out(text, 1, 3, 100);
	assert_left_out(text, 2, 0, 0);
	ck_assert(!shows(text, 4) && !shows(text, 6) && !shows(text, 7));
	free(text);
}
END_TEST

/* observe.h: "levels, that of top included". */
START_TEST(levels_below_the_depth_are_left_out)
{
	struct pcpc_report_config config = limits(NULL, 1, 0);
	char *text;

	if (!open_tree(_i))
		return;
	text = report_of(PCPC_FORMAT_JSON, &config);
	ck_assert_uint_eq(occurrences(text, "\"id\":"), 1);
	assert_left_out(text, 1, 6, 311);
	free(text);
	config.depth = 2;
	text = report_of(PCPC_FORMAT_JSON, &config);
	ck_assert_uint_eq(occurrences(text, "\"id\":"), 7);
	assert_left_out(text, 1, 0, 0);
	assert_left_out(text, 2, 2, 91);
	assert_left_out(text, 3, 0, 0);
	free(text);
	text = report_of(PCPC_FORMAT_TEXT, &config);
	assert_has(text, "    a\n       91                                2 more\n");
	free(text);
	/* both limits */
	config.largest = 1;
	text = report_of(PCPC_FORMAT_JSON, &config);
	ck_assert_uint_eq(occurrences(text, "\"id\":"), 2);
	assert_left_out(text, 1, 5, 210);
	assert_left_out(text, 2, 2, 91);
	free(text);
	/* deeper than any tree is */
	config = limits(NULL, UINT32_MAX, 0);
	text = report_of(PCPC_FORMAT_JSON, &config);
	ck_assert_uint_eq(occurrences(text, "\"id\":"), 9);
	free(text);
}
END_TEST

START_TEST(a_subtree_is_shown_from_its_top)
{
	struct pcpc_report_config config;
	char *text;

	if (!open_tree(_i))
		return;
	config = limits(owner_of(domain, 2), 0, 0);
	text = report_of(PCPC_FORMAT_JSON, &config);
	ck_assert_uint_eq(occurrences(text, "\"id\":"), 3);
	assert_has(text, "[\n{\"id\":2,\"parent\":1,\"depth\":1,");
	free(text);
	text = report_of(PCPC_FORMAT_TEXT, &config);
	assert_has(text, "\n 2    101    -     -   101        0  a\n");
	free(text);
	/* labels are those of the whole report */
	text = report_of(PCPC_FORMAT_PROMETHEUS, &config);
	assert_has(text, "pcpcharge_r_usage{domain=\"r\",owner=\"r/a/x\",id=\"8\"} 1\n");
	assert_lacks(text, "owner=\"r\"");
	free(text);
}
END_TEST

/* observe.h: what was an owner of its own may be the top when it is offline. */
START_TEST(a_top_that_went_is_shown)
{
	struct pcpc_report_config config;
	struct pcpc_owner *gone;
	char *text;

	if (!open_named(_i, "r", "", NULL, 0))
		return;
	gone = using(root, "gone", 3);
	ck_assert_int_eq(pcpc_owner_destroy(gone), 0);
	config = limits(gone, 0, 0);
	text = report_of(PCPC_FORMAT_JSON, &config);
	assert_has(text, "\"name\":\"gone\",\"usage\":3,");
	free(text);
	pcpc_uncharge(gone, 3);
}
END_TEST

/* observe.h: in PROMETHEUS "the largest are chosen by peak, not by usage", and what is left out has
 * series "also where they are 0". */
START_TEST(series_do_not_vanish_with_usage)
{
	struct pcpc_report_config config = limits(NULL, 0, 2);
	static const char *const series = "r_usage{domain=\"r\",owner=\"r/b\",id=\"3\"} ";
	char *text;

	if (!open_tree(_i))
		return;
	text = report_of(PCPC_FORMAT_PROMETHEUS, &config);
	ck_assert_uint_eq(number_after(text, series), 60);
	assert_lacks(text, "r/d");
	ck_assert_uint_eq(number_after(text, "r_left_out{domain=\"r\",owner=\"r\",id=\"1\"} "), 4);
	ck_assert_uint_eq(
		number_after(text, "r_left_out_usage{domain=\"r\",owner=\"r\",id=\"1\"} "), 150);
	ck_assert_uint_eq(number_after(text, "r_left_out{domain=\"r\",owner=\"r/b\",id=\"3\"} "),
			  0);
	free(text);
	uncharge(owner_of(domain, 3), 60); /* now it uses the least */
	text = report_of(PCPC_FORMAT_PROMETHEUS, &config);
	ck_assert_uint_eq(number_after(text, series), 0);
	assert_lacks(text, "r/d");
	ck_assert_uint_eq(number_after(text, "r_left_out{domain=\"r\",owner=\"r\",id=\"1\"} "), 4);
	free(text);
	text = report_of(PCPC_FORMAT_JSON, &config);
	ck_assert(!shows(text, 3) && shows(text, 5));
	free(text);
	/* everything fits: the figures are there all the same */
	config = limits(NULL, 0, PCPC_REPORT_LARGEST_MAX);
	text = report_of(PCPC_FORMAT_PROMETHEUS, &config);
	ck_assert_uint_eq(number_after(text, "r_left_out{domain=\"r\",owner=\"r\",id=\"1\"} "), 0);
	free(text);
}
END_TEST

/* Who is new does not push out who is there, where they are equal. */
START_TEST(of_equal_children_the_oldest_stay)
{
	struct pcpc_report_config config = limits(NULL, 0, 2);
	unsigned int i;
	char *text;

	if (!open_named(_i, "r", "", NULL, 0))
		return;
	for (i = 0; i < 5; i++)
		(void)named(root, "equal");
	text = report_of(PCPC_FORMAT_JSON, &config);
	ck_assert(shows(text, 2) && shows(text, 3));
	ck_assert_uint_eq(occurrences(text, "\"id\":"), 3);
	free(text);
}
END_TEST

START_TEST(unsound_configurations_are_refused)
{
	struct {
		struct pcpc_report_config known;
		unsigned char later[16];
	} longer = { .known = { .size = sizeof(longer) } };
	struct pcpc_report_config config = limits(NULL, 0, 0);
	struct pcpc_domain *mine, *other = NULL;
	struct text text = { 0 };
	struct pcpc_owner *top;

	if (!open_named(_i, "r", "", NULL, 0))
		return;
	mine = domain;
	top = root;
	ck_assert(open_named(_i, "other", "", NULL, 0));
	other = domain;
	domain = mine;
	root = top;
	config.top = pcpc_domain_root(other);
	ck_assert_int_eq(
		pcpc_domain_report_config(domain, PCPC_FORMAT_JSON, &config, collect, &text),
		-EINVAL);
	config = limits(NULL, 0, PCPC_REPORT_LARGEST_MAX + 1);
	ck_assert_int_eq(
		pcpc_domain_report_config(domain, PCPC_FORMAT_JSON, &config, collect, &text),
		-EINVAL);
	config = limits(NULL, 0, 0);
	config.size--;
	ck_assert_int_eq(
		pcpc_domain_report_config(domain, PCPC_FORMAT_JSON, &config, collect, &text),
		-EINVAL);
	longer.later[15] = 1;
	ck_assert_int_eq(
		pcpc_domain_report_config(domain, PCPC_FORMAT_JSON, &longer.known, collect, &text),
		-EINVAL);
	ck_assert_int_eq(pcpc_domain_report(NULL, PCPC_FORMAT_JSON, collect, &text), -EINVAL);
	ck_assert_int_eq(pcpc_domain_report(domain, PCPC_FORMAT_JSON, NULL, &text), -EINVAL);
	ck_assert_int_eq(pcpc_domain_report(domain, (enum pcpc_format)3, collect, &text), -EINVAL);
	ck_assert_int_eq(pcpc_domain_report(domain, (enum pcpc_format) - 1, collect, &text),
			 -EINVAL);
	ck_assert_int_eq(pcpc_domain_report_fd(NULL, PCPC_FORMAT_JSON, 1), -EINVAL);
	ck_assert_uint_eq(text.calls, 0);
	longer.later[15] = 0;
	ck_assert_int_eq(
		pcpc_domain_report_config(domain, PCPC_FORMAT_JSON, &longer.known, collect, &text),
		0);
	free(text.data);
	ck_assert_int_eq(pcpc_domain_destroy(other), 0);
}
END_TEST

/* Required: depth 64; every format, and the path from the root down. */
START_TEST(a_tree_of_sixty_four_levels_is_shown)
{
	struct pcpc_owner *owner;
	char *text, expected[256], *end = expected;
	unsigned int i;

	if (!open_named(_i, "r", "", NULL, 0))
		return;
	owner = root;
	for (i = 0; i < PCPC_DEPTH_MAX; i++)
		owner = named(owner, "n");
	charge(owner, 5);
	text = report_of(PCPC_FORMAT_TEXT, NULL);
	snprintf(expected, sizeof(expected), "  %*s\n", 2 * PCPC_DEPTH_MAX + 1, "n");
	assert_has(text, expected);
	free(text);
	text = report_of(PCPC_FORMAT_JSON, NULL);
	assert_has(text, "{\"id\":65,\"parent\":64,\"depth\":64,\"name\":\"n\",\"usage\":5,");
	free(text);
	text = report_of(PCPC_FORMAT_PROMETHEUS, NULL);
	end += sprintf(end, "owner=\"r");
	for (i = 0; i < PCPC_DEPTH_MAX; i++)
		end += sprintf(end, "/n");
	sprintf(end, "\",id=\"65\"} 5\n");
	assert_has(text, expected);
	free(text);
	uncharge(owner, 5);
}
END_TEST

#define WIDE 10000u

START_TEST(ten_thousand_children_are_shown_once_each)
{
	struct pcpc_report_config config = limits(NULL, 0, PCPC_REPORT_LARGEST_MAX);
	const char *line;
	uint64_t left_out = 0, last = UINT64_MAX, usage;
	unsigned char *seen;
	unsigned int i;
	char *text;

	if (!open_named(_i, "r", "", NULL, 0))
		return;
	for (i = 0; i < WIDE; i++)
		using(root, "n", i * 7919u % WIDE); /* each usage below 10,000 once */
	units_left = true;
	text = report_of(PCPC_FORMAT_JSON, NULL);
	seen = calloc(WIDE + 2, 1);
	for (line = text; (line = strstr(line, "\n{\"id\":")); line += 7)
		seen[strtoul(line + 7, NULL, 10)]++;
	for (i = 1; i <= WIDE + 1; i++)
		ck_assert_uint_eq(seen[i], 1);
	free(seen);
	free(text);
	text = report_of(PCPC_FORMAT_JSON, &config);
	ck_assert_uint_eq(occurrences(text, "\"parent\":1,"), PCPC_REPORT_LARGEST_MAX);
	for (i = 0; i < WIDE - PCPC_REPORT_LARGEST_MAX; i++)
		left_out += i;
	assert_left_out(text, 1, WIDE - PCPC_REPORT_LARGEST_MAX, left_out);
	for (line = text; (line = strstr(line, "\"name\":\"n\",\"usage\":")); line++) {
		usage = strtoull(line + 19, NULL, 10);
		ck_assert(last == UINT64_MAX ? usage == WIDE - 1 : usage == last - 1);
		last = usage;
	}
	ck_assert_uint_eq(last, WIDE - PCPC_REPORT_LARGEST_MAX);
	free(text);
}
END_TEST

#define SIBLINGS 100u

/* observe.h: where many stand beside one another on several levels, "those far down show fewer of
 * their children, 8 at least. They are counted as left out." */
START_TEST(no_level_goes_empty_where_room_is_short)
{
	struct pcpc_report_config config = limits(NULL, 0, PCPC_REPORT_LARGEST_MAX);
	uint64_t shown, left_out, least = UINT64_MAX;
	struct pcpc_owner *path[PCPC_DEPTH_MAX + 1];
	char *text, *line, key[32];
	unsigned int level, i;

	if (!open_named(_i, "r", "", NULL, 0))
		return;
	path[0] = root;
	for (level = 1; level <= PCPC_DEPTH_MAX; level++) {
		path[level] = named(path[level - 1], "n");
		for (i = 1; i < SIBLINGS; i++)
			(void)named(path[level - 1], "n");
	}
	charge(path[PCPC_DEPTH_MAX], 1); /* so that those of the path are the largest */
	text = report_of(PCPC_FORMAT_JSON, &config);
	for (level = 0; level < PCPC_DEPTH_MAX; level++) {
		snprintf(key, sizeof(key), "\"parent\":%u,", path[level]->id);
		shown = occurrences(text, key);
		line = line_of(text, path[level]->id);
		left_out = number_after(line, "\"left_out\":");
		free(line);
		ck_assert_uint_eq(shown + left_out, SIBLINGS);
		ck_assert_uint_ge(shown, 8);
		least = shown < least ? shown : least;
		/* 2,048 places, less 8 for each level below */
		if (level < 14)
			ck_assert_uint_eq(shown, SIBLINGS);
	}
	ck_assert_uint_eq(least, 8);
	free(text);
	uncharge(path[PCPC_DEPTH_MAX], 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("observe limits");
	TCase *tests = unit_case(suite, "limits");

	tcase_add_checked_fixture(tests, NULL, close_domain);
	by_each_engine(tests, the_largest_children_come_first_and_the_others_in_sum);
	by_each_engine(tests, levels_below_the_depth_are_left_out);
	by_each_engine(tests, a_subtree_is_shown_from_its_top);
	by_each_engine(tests, a_top_that_went_is_shown);
	by_each_engine(tests, series_do_not_vanish_with_usage);
	by_each_engine(tests, of_equal_children_the_oldest_stay);
	by_each_engine(tests, unsound_configurations_are_refused);
	by_each_engine(tests, a_tree_of_sixty_four_levels_is_shown);
	by_each_engine(tests, ten_thousand_children_are_shown_once_each);
	by_each_engine(tests, no_level_goes_empty_where_room_is_short);
	return unit_run(suite);
}
