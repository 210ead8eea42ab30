// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_observe.c - what reports say, in each format: figures, events, items, and names of all
 * kinds. Real readers of the formats are in check_reports.py.
 *
 * Linked with --wrap=pcpc_stat_read: an item's value is what the test says.
 */
#define _GNU_SOURCE
#include "observe_support.h"

#include <pcpcharge/stat.h>

static int64_t item_values[8];

int64_t __wrap_pcpc_stat_read(struct pcpc_owner *owner, uint32_t item);

int64_t __wrap_pcpc_stat_read(struct pcpc_owner *owner, uint32_t item)
{
	ck_assert_uint_lt(item, owner->domain->nr_items);
	return owner == root ? item_values[item] : 0;
}

static const char *engine_name(int engine)
{
	return unit_engine_name((enum pcpc_engine)engine);
}

/* root 130 of 1000, a 100 of 100 and refused once, b 30, and c below b 10 */
static bool open_small(int engine)
{
	static const struct pcpc_item items[] = { { "file", "bytes" }, { "maps", NULL } };
	struct pcpc_owner *a, *b, *c;

	if (!open_named(engine, "memory", "bytes", items, 2))
		return false;
	a = using(root, "a", 100);
	b = using(root, "b", 20);
	c = using(b, "c", 10);
	ck_assert_int_eq(pcpc_owner_set_max(root, 1000), 0);
	ck_assert_int_eq(pcpc_owner_set_max(a, 100), 0);
	ck_assert_int_eq(pcpc_owner_set_high(c, 12345), 0);
	ck_assert_int_eq(pcpc_charge(a, 1), -EDQUOT);
	item_values[0] = 4096;
	item_values[1] = -2;
	units_left = true;
	return true;
}

/* observe.h, TEXT. Required: "text tree". */
START_TEST(text_is_a_tree_in_columns)
{
	char *text, expected[1024];
	uint64_t drained;

	if (!open_small(_i))
		return;
	text = report_of(PCPC_FORMAT_TEXT, NULL);
	snprintf(expected, sizeof(expected),
		 "memory, in bytes: 4 owners, 0 of them offline; %s engine, CPUs: %u; drains: ",
		 engine_name(_i), domain->nr_cpus);
	ck_assert_int_eq(strncmp(text, expected, strlen(expected)), 0);
	assert_has(text, ", sweeps: 0\n");
	/* how often a refusal drains is not for this test to say, but that it does */
	drained = events_of(root, PCPC_EVENT_DRAIN);
	ck_assert_uint_ge(drained, 1);
	snprintf(expected, sizeof(expected),
		 "id  usage   max   high  peak  stocked  owner\n"
		 " 1    130  1000      -   130        0  memory"
		 "  [max 1, refused 1, drain %" PRIu64 "]  {file 4096 bytes, maps -2}\n"
		 " 3     30     -      -    30        0    b\n"
		 " 4     10     -  12345    10        0      c\n"
		 " 2    100   100      -   100        0    a"
		 "  [max 1, refused 1, drain %" PRIu64 "]\n",
		 drained, drained);
	ck_assert_str_eq(strchr(text, '\n') + 1, expected);
	free(text);
}
END_TEST

/* observe.h, JSON: each field, in full. */
START_TEST(json_is_one_object)
{
	char *text, expected[2048], events[128];
	uint64_t drained;

	if (!open_small(_i))
		return;
	text = report_of(PCPC_FORMAT_JSON, NULL);
	drained = events_of(root, PCPC_EVENT_DRAIN);
	ck_assert_uint_eq(drained, events_of(owner_of(domain, 2), PCPC_EVENT_DRAIN));
	snprintf(events, sizeof(events),
		 "{\"max\":1,\"high\":0,\"relieved\":0,\"refused\":1,\"forced\":0,\"reclaim\":0,"
		 "\"drain\":%" PRIu64 ",\"underflow\":0}",
		 drained);
#define NO_EVENTS                                                                        \
	"{\"max\":0,\"high\":0,\"relieved\":0,\"refused\":0,\"forced\":0,\"reclaim\":0," \
	"\"drain\":0,\"underflow\":0}"
	snprintf(expected, sizeof(expected),
		 "{\"domain\":\"memory\",\"unit\":\"bytes\",\"engine\":\"%s\",\"cpus\":%u,"
		 "\"nr_owners\":4,\"nr_offline\":0,\"drains\":%" PRIu64 ",\"sweeps\":0,"
		 "\"items\":[{\"name\":\"file\",\"unit\":\"bytes\"},"
		 "{\"name\":\"maps\",\"unit\":\"\"}],\n"
		 "\"owners\":[\n"
		 "{\"id\":1,\"parent\":null,\"depth\":0,\"name\":\"memory\",\"usage\":130,"
		 "\"max\":1000,\"high\":null,\"peak\":130,\"stocked\":0,\"left_out\":0,"
		 "\"left_out_usage\":0,\"events\":%s,\"items\":[4096,-2]},\n"
		 "{\"id\":3,\"parent\":1,\"depth\":1,\"name\":\"b\",\"usage\":30,"
		 "\"max\":null,\"high\":null,\"peak\":30,\"stocked\":0,\"left_out\":0,"
		 "\"left_out_usage\":0,\"events\":" NO_EVENTS ",\"items\":[0,0]},\n"
		 "{\"id\":4,\"parent\":3,\"depth\":2,\"name\":\"c\",\"usage\":10,"
		 "\"max\":null,\"high\":12345,\"peak\":10,\"stocked\":0,\"left_out\":0,"
		 "\"left_out_usage\":0,\"events\":" NO_EVENTS ",\"items\":[0,0]},\n"
		 "{\"id\":2,\"parent\":1,\"depth\":1,\"name\":\"a\",\"usage\":100,"
		 "\"max\":100,\"high\":null,\"peak\":100,\"stocked\":0,\"left_out\":0,"
		 "\"left_out_usage\":0,\"events\":%s,\"items\":[0,0]}\n"
		 "]}\n",
		 engine_name(_i), domain->nr_cpus, drains_now(), events, events);
	ck_assert_str_eq(text, expected);
	free(text);
}
END_TEST

/* observe.h, PROMETHEUS; asks 1: "lists usage/peak/limit/failcnt per owner". */
START_TEST(prometheus_has_each_metric_in_one_piece)
{
	char *text;

	if (!open_small(_i))
		return;
	text = report_of(PCPC_FORMAT_PROMETHEUS, NULL);
	assert_has(text, "# TYPE pcpcharge_memory_owners gauge\n"
			 "pcpcharge_memory_owners{domain=\"memory\"} 4\n");
	assert_has(text, "pcpcharge_memory_owners_offline{domain=\"memory\"} 0\n");
	assert_has(text, "# TYPE pcpcharge_memory_drains_total counter\n");
	assert_has(text, "pcpcharge_memory_sweeps_total{domain=\"memory\"} 0\n");
	assert_has(
		text,
		"# HELP pcpcharge_memory_usage_bytes What the owner and all below it use, "
		"stocked units included, in bytes.\n"
		"# TYPE pcpcharge_memory_usage_bytes gauge\n"
		"pcpcharge_memory_usage_bytes{domain=\"memory\",owner=\"memory\",id=\"1\"} 130\n"
		"pcpcharge_memory_usage_bytes{domain=\"memory\",owner=\"memory/b\",id=\"3\"} 30\n"
		"pcpcharge_memory_usage_bytes{domain=\"memory\",owner=\"memory/b/c\",id=\"4\"} "
		"10\n"
		"pcpcharge_memory_usage_bytes{domain=\"memory\",owner=\"memory/a\",id=\"2\"} "
		"100\n"
		"# HELP pcpcharge_memory_max_bytes ");
	assert_has(text, "pcpcharge_memory_max_bytes{domain=\"memory\",owner=\"memory/a\",id=\"2\"}"
			 " 100\n");
	assert_has(text, "pcpcharge_memory_max_bytes{domain=\"memory\",owner=\"memory/b\",id=\"3\"}"
			 " +Inf\n");
	assert_has(text, "pcpcharge_memory_high_bytes{domain=\"memory\",owner=\"memory/b/c\","
			 "id=\"4\"} 12345\n");
	assert_has(text, "pcpcharge_memory_peak_bytes{domain=\"memory\",owner=\"memory\",id=\"1\"}"
			 " 130\n");
	assert_has(text, "# TYPE pcpcharge_memory_event_refused_total counter\n"
			 "pcpcharge_memory_event_refused_total{domain=\"memory\",owner=\"memory\","
			 "id=\"1\"} 1\n");
	assert_has(text, "# HELP pcpcharge_memory_item_file_bytes Item file of the owner and all "
			 "below it, in bytes.\n"
			 "# TYPE pcpcharge_memory_item_file_bytes gauge\n"
			 "pcpcharge_memory_item_file_bytes{domain=\"memory\",owner=\"memory\","
			 "id=\"1\"} 4096\n");
	assert_has(text, "pcpcharge_memory_item_maps{domain=\"memory\",owner=\"memory\",id=\"1\"}"
			 " -2\n");
	/* without limits nothing is left out */
	assert_lacks(text, "left_out");
	/* 4 of the domain, 4 figures, 8 events, 2 items */
	ck_assert_uint_eq(occurrences(text, "# HELP "), 18);
	ck_assert_uint_eq(occurrences(text, "# TYPE "), 18);
	free(text);
}
END_TEST

/* Every byte that is not UTF-8 by RFC 3629 (section 4) becomes one U+FFFD. */
#define BAD "\xef\xbf\xbd"
static const struct {
	const char *name, *text, *json, *label;
} spellings[] = {
	{ "", "", "", "" },
	{ "a\"b", "a\"b", "a\\\"b", "a\\\"b" },
	{ "a\\b", "a\\\\b", "a\\\\b", "a\\\\b" },
	{ "a\nb", "a\\nb", "a\\nb", "a\\nb" },
	{ "a\tb\rc", "a\\x09b\\x0dc", "a\\u0009b\\u000dc", "a\tb\rc" },
	{ "\x01\x1f\x7f", "\\x01\\x1f\\x7f", "\\u0001\\u001f\x7f", "\x01\x1f\x7f" },
	{ "a/b {c}=d,e", "a/b {c}=d,e", "a/b {c}=d,e", "a/b {c}=d,e" },
	{ "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
	  "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80" },
	/* the ends of the ranges: U+0080, U+07FF, U+0800, U+D7FF, U+E000, U+FFFF, U+10000,
	 * U+10FFFF; U+0080 is a control character */
	{ "\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf\xf0\x90\x80\x80"
	  "\xf4\x8f\xbf\xbf",
	  "\\u0080\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf\xf0\x90\x80\x80"
	  "\xf4\x8f\xbf\xbf",
	  "\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf\xf0\x90\x80\x80"
	  "\xf4\x8f\xbf\xbf",
	  "\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf\xf0\x90\x80\x80"
	  "\xf4\x8f\xbf\xbf" },
	/* no such byte; a continuation alone; too long a form; a surrogate; beyond the end */
	{ "x\xff\xfe\xf5\xf8y", "x" BAD BAD BAD BAD "y", "x" BAD BAD BAD BAD "y",
	  "x" BAD BAD BAD BAD "y" },
	{ "\x80\xbf", BAD BAD, BAD BAD, BAD BAD },
	{ "\xc0\xaf\xc1\xbf", BAD BAD BAD BAD, BAD BAD BAD BAD, BAD BAD BAD BAD },
	{ "\xe0\x9f\xbf", BAD BAD BAD, BAD BAD BAD, BAD BAD BAD },
	{ "\xed\xa0\x80", BAD BAD BAD, BAD BAD BAD, BAD BAD BAD },
	{ "\xf0\x8f\xbf\xbf", BAD BAD BAD BAD, BAD BAD BAD BAD, BAD BAD BAD BAD },
	{ "\xf4\x90\x80\x80", BAD BAD BAD BAD, BAD BAD BAD BAD, BAD BAD BAD BAD },
	/* cut off, at the end and before another character */
	{ "\xe2\x82", BAD BAD, BAD BAD, BAD BAD },
	{ "\xc3\"", BAD "\"", BAD "\\\"", BAD "\\\"" },
	{ "\xf0\x9f\x98\n", BAD BAD BAD "\\n", BAD BAD BAD "\\n", BAD BAD BAD "\\n" },
	/* U+202E turns what follows round */
	{ "a\xe2\x80\xae"
	  "b",
	  "a\\u202eb",
	  "a\xe2\x80\xae"
	  "b",
	  "a\xe2\x80\xae"
	  "b" },
};
#define NR_SPELLINGS (sizeof(spellings) / sizeof(spellings[0]))

/* Required: "escaped labels"; observe.h: "a byte that is not UTF-8 becomes U+FFFD". */
START_TEST(names_of_all_kinds_are_escaped)
{
	char *text, *json, *metrics, expected[256];
	struct pcpc_owner *owner;
	unsigned int i;

	if (!open_named(PCPC_ENGINE_ATOMIC, "d", NULL, NULL, 0))
		return;
	for (i = 0; i < NR_SPELLINGS; i++) {
		owner = named(root, spellings[i].name);
		text = report_of(PCPC_FORMAT_TEXT, NULL);
		json = report_of(PCPC_FORMAT_JSON, NULL);
		metrics = report_of(PCPC_FORMAT_PROMETHEUS, NULL);
		snprintf(expected, sizeof(expected), "        0    %s\n", spellings[i].text);
		assert_has(text, expected);
		snprintf(expected, sizeof(expected), "\"name\":\"%s\",", spellings[i].json);
		assert_has(json, expected);
		snprintf(expected, sizeof(expected), "owner=\"d/%s\",id=\"%u\"} 0\n",
			 spellings[i].label, owner->id);
		ck_assert_uint_eq(occurrences(metrics, expected), 2 + 8); /* not max and high */
		free(text);
		free(json);
		free(metrics);
		ck_assert_int_eq(pcpc_owner_destroy(owner), 0);
	}
}
END_TEST

/* The same where a domain or an item has such a name; a HELP line has no quotes to escape. */
START_TEST(names_of_domains_and_items_are_escaped_too)
{
	static const struct pcpc_item items[] = { { "i\"\\\n\xff", "u\"\\\n\xff" } };
	char *text;

	item_values[0] = 1;
	if (!open_named(PCPC_ENGINE_ATOMIC, "d\"\\\n\xff", "u\"\\\n\xff", items, 1))
		return;
	text = report_of(PCPC_FORMAT_TEXT, NULL);
	assert_has(text, "d\"\\\\\\n" BAD ", in u\"\\\\\\n" BAD ": 1 owners");
	assert_has(text, "  {i\"\\\\\\n" BAD " 1 u\"\\\\\\n" BAD "}\n");
	free(text);
	text = report_of(PCPC_FORMAT_JSON, NULL);
	assert_has(text, "{\"domain\":\"d\\\"\\\\\\n" BAD "\",\"unit\":\"u\\\"\\\\\\n" BAD "\",");
	assert_has(text, "[{\"name\":\"i\\\"\\\\\\n" BAD "\",\"unit\":\"u\\\"\\\\\\n" BAD "\"}]");
	free(text);
	text = report_of(PCPC_FORMAT_PROMETHEUS, NULL);
	assert_has(text, "# HELP pcpcharge_d_item_i Item i\"\\\\\\n" BAD
			 " of the owner and all below it, in u\"\\\\\\n" BAD ".\n");
	assert_has(text, "pcpcharge_d_item_i{domain=\"d\\\"\\\\\\n" BAD
			 "\",owner=\"d\\\"\\\\\\n" BAD "\",id=\"1\"} 1\n");
	free(text);
}
END_TEST

#define LONG 10000

START_TEST(a_name_of_ten_thousand_characters_stands_in_full)
{
	enum pcpc_format format;
	char *text, name[LONG + 1];

	memset(name, 'n', LONG);
	name[LONG] = '\0';
	if (!open_named(_i, name, name, NULL, 0))
		return;
	(void)named(root, name);
	for (format = PCPC_FORMAT_TEXT; format <= PCPC_FORMAT_PROMETHEUS; format++) {
		text = report_of(format, NULL);
		/* the domain, its unit, the root and the child at least */
		ck_assert_uint_ge(occurrences(text, name), 4);
		free(text);
	}
	/* the name of a metric is cut (observe.h) */
	text = report_of(PCPC_FORMAT_PROMETHEUS, NULL);
	name[64] = '\0';
	ck_assert_uint_ge(occurrences(text, "# TYPE pcpcharge_n"), 16);
	ck_assert_uint_eq(strspn(strstr(text, "# TYPE pcpcharge_") + 17, "n"), 64);
	free(text);
}
END_TEST

/* observe.h: what becomes of names in names; "Items that would be called the same get their number
 * after two '_'." */
START_TEST(names_of_metrics_are_sound_and_differ)
{
	static const struct pcpc_item items[] = {
		{ "a-b", "" },	    { "A  B", "" },	 { "__a_b__", "" },  { "a b c", "" },
		{ "rss", "bytes" }, { "rss_bytes", "" }, { "\xc3\xa9", "" }, { NULL, NULL },
	};
	static const char *const names[] = {
		"item_a_b__0",	     "item_a_b__1",	  "item_a_b__2", "item_a_b_c",
		"item_rss_bytes__4", "item_rss_bytes__5", "item___6",	 "item___7",
	};
	char *text, expected[128];
	unsigned int i;

	if (!open_named(_i, "9 My.Domain!", "bytes", items, 8))
		return;
	text = report_of(PCPC_FORMAT_PROMETHEUS, NULL);
	for (i = 0; i < 8; i++) {
		snprintf(expected, sizeof(expected), "# TYPE pcpcharge_9_my_domain_%s gauge\n",
			 names[i]);
		ck_assert_msg(occurrences(text, expected) == 1, "no %s in:\n%s", expected, text);
	}
	assert_has(text, "\npcpcharge_9_my_domain_usage_bytes{domain=\"9 My.Domain!\",");
	free(text);
}
END_TEST

/* pcpc_domain_config: "NULL: empty". */
START_TEST(a_domain_may_have_no_name_and_no_unit)
{
	char *text;

	if (!open_named(_i, NULL, NULL, NULL, 0))
		return;
	text = report_of(PCPC_FORMAT_TEXT, NULL);
	ck_assert_int_eq(strncmp(text, ": 1 owners, 0 of them", 21), 0);
	free(text);
	text = report_of(PCPC_FORMAT_JSON, NULL);
	assert_has(text, "{\"domain\":\"\",\"unit\":\"\",");
	assert_has(text, "\"items\":[],\n");
	assert_has(text, ",\"items\":[]}\n]}\n");
	free(text);
	text = report_of(PCPC_FORMAT_PROMETHEUS, NULL);
	assert_has(text, "\n# TYPE pcpcharge_usage gauge\n"
			 "pcpcharge_usage{domain=\"\",owner=\"\",id=\"1\"} 0\n");
	free(text);
}
END_TEST

/* observe.h: numbers "are whole, and up to 64 bits wide"; "null: unlimited". */
START_TEST(large_numbers_stand_as_they_are)
{
	static const struct pcpc_item items[] = { { "least", "" }, { "most", "" } };
	struct pcpc_owner *owner;
	char *text;

	item_values[0] = INT64_MIN;
	item_values[1] = INT64_MAX;
	if (!open_named(_i, "d", "", items, 2))
		return;
	owner = using(root, "a", PCPC_UNLIMITED - 1);
	ck_assert_int_eq(pcpc_owner_set_high(root, PCPC_UNLIMITED - 1), 0);
	text = report_of(PCPC_FORMAT_JSON, NULL);
	assert_has(text, "\"usage\":9223372036854775806,\"max\":null,"
			 "\"high\":9223372036854775806,\"peak\":9223372036854775806,");
	assert_has(text, "\"items\":[-9223372036854775808,9223372036854775807]");
	free(text);
	text = report_of(PCPC_FORMAT_TEXT, NULL);
	assert_has(text, " 1  9223372036854775806    -  9223372036854775806  9223372036854775806"
			 "        0  d  {least -9223372036854775808, most 9223372036854775807}\n");
	free(text);
	text = report_of(PCPC_FORMAT_PROMETHEUS, NULL);
	assert_has(text, "pcpcharge_d_item_least{domain=\"d\",owner=\"d\",id=\"1\"}"
			 " -9223372036854775808\n");
	assert_has(text, "pcpcharge_d_usage{domain=\"d\",owner=\"d/a\",id=\"2\"}"
			 " 9223372036854775806\n");
	free(text);
	uncharge(owner, PCPC_UNLIMITED - 1);
}
END_TEST

/* observe.h: "stocked" is what lies in the owner's own slots. */
START_TEST(stocked_units_are_shown_with_their_owner)
{
	struct pcpc_owner *owner;
	char *text, expected[128];

	if (!open_domain(_i, 64, 0))
		return;
	owner = child_of(root);
	charge(owner, 10);
	uncharge(owner, 4);
	ck_assert_uint_gt(stock_of(owner), 0);
	text = report_of(PCPC_FORMAT_JSON, NULL);
	snprintf(expected, sizeof(expected),
		 "\"parent\":1,\"depth\":1,\"name\":\"\",\"usage\":%" PRIu64
		 ",\"max\":null,\"high\":null,\"peak\":%" PRIu64 ",\"stocked\":%" PRIu64 ",",
		 pcpc_owner_usage(owner), pcpc_owner_peak(owner), stock_of(owner));
	assert_has(text, expected);
	snprintf(expected, sizeof(expected), "\"stocked\":%" PRIu64 ",", stock_of(root));
	assert_has(text, expected);
	free(text);
	uncharge(owner, 6);
}
END_TEST

/* Required: "monotonic counters that survive the death of owners". Conventions: "memory.stat
 * counters went backwards". */
START_TEST(counters_of_ancestors_survive_the_death_of_owners)
{
	struct pcpc_owner *mid, *leaf;
	unsigned int i;
	char *text;

	if (!open_named(_i, "d", "", NULL, 0))
		return;
	mid = named(root, "mid");
	for (i = 1; i <= 3; i++) {
		leaf = named(mid, "leaf");
		ck_assert_int_eq(pcpc_owner_set_max(leaf, 1), 0);
		ck_assert_int_eq(pcpc_charge(leaf, 2), -EDQUOT);
		ck_assert_int_eq(pcpc_owner_destroy(leaf), 0);
		pcpc_domain_poll(domain);
		text = report_of(PCPC_FORMAT_PROMETHEUS, NULL);
		assert_lacks(text, "leaf");
		ck_assert_uint_eq(
			number_after(text,
				     "event_refused_total{domain=\"d\",owner=\"d\",id=\"1\"} "),
			i);
		ck_assert_uint_eq(
			number_after(text,
				     "event_refused_total{domain=\"d\",owner=\"d/mid\",id=\"2\"} "),
			i);
		free(text);
	}
}
END_TEST

/* observe.h: "Offline owners are not shown; what they still use is in the figures of those above."
 */
START_TEST(offline_owners_are_counted_and_not_shown)
{
	struct pcpc_owner *gone;
	char *text;

	if (!open_named(_i, "d", "", NULL, 0))
		return;
	gone = using(root, "gone", 7);
	ck_assert_int_eq(pcpc_owner_destroy(gone), 0);
	text = report_of(PCPC_FORMAT_TEXT, NULL);
	assert_lacks(text, "gone");
	assert_has(text, "d: 2 owners, 1 of them offline;");
	assert_has(text, " 1      7    -     -     7        0  d\n");
	free(text);
	text = report_of(PCPC_FORMAT_PROMETHEUS, NULL);
	assert_has(text, "pcpcharge_d_owners_offline{domain=\"d\"} 1\n");
	free(text);
	pcpc_uncharge(gone, 7);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("observe");
	TCase *tests = unit_case(suite, "observe");

	tcase_add_checked_fixture(tests, NULL, close_domain);
	by_each_engine(tests, text_is_a_tree_in_columns);
	by_each_engine(tests, json_is_one_object);
	by_each_engine(tests, prometheus_has_each_metric_in_one_piece);
	tcase_add_test(tests, names_of_all_kinds_are_escaped);
	tcase_add_test(tests, names_of_domains_and_items_are_escaped_too);
	by_each_engine(tests, a_name_of_ten_thousand_characters_stands_in_full);
	by_each_engine(tests, names_of_metrics_are_sound_and_differ);
	by_each_engine(tests, a_domain_may_have_no_name_and_no_unit);
	by_each_engine(tests, large_numbers_stand_as_they_are);
	by_each_engine(tests, stocked_units_are_shown_with_their_owner);
	by_each_engine(tests, counters_of_ancestors_survive_the_death_of_owners);
	by_each_engine(tests, offline_owners_are_counted_and_not_shown);
	return unit_run(suite);
}
