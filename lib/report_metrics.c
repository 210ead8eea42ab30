// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * report_metrics.c - the report in the text exposition format of Prometheus, version 0.0.4.
 *
 * The format wants all samples of a metric in one piece, so each metric is a walk of its own.
 */
#include "report_private.h"

#include <string.h>

#include <pcpcharge/stat.h>

#define CLEAN_LENGTH 64u

enum kind {
	KIND_USAGE,
	KIND_MAX,
	KIND_HIGH,
	KIND_PEAK,
	KIND_LEFT_OUT,
	KIND_LEFT_OUT_USAGE,
	KIND_EVENT,
	KIND_ITEM,
	KIND_DOMAIN, /* one sample, not of an owner */
};

/* Enough for every name: two parts of CLEAN_LENGTH, the words around them, and a number. */
#define NAME_SIZE (2 * CLEAN_LENGTH + 64)

struct metric {
	enum kind kind;
	uint32_t which;	   /* event, item */
	const char *title; /* its name without domain, unit and _total */
	const char *help, *help_name, *help_end;
	bool counter;
	bool in_units; /* of the domain */
	char name[NAME_SIZE];
};

/* -- names -- */

struct clean {
	char text[CLEAN_LENGTH + 1];
};

static char clean_char(char c)
{
	if (c >= 'A' && c <= 'Z')
		return (char)(c - 'A' + 'a');
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ? c : '_';
}

/* What may stand in a name: without '_' at its ends, and never two of them together. */
static struct clean clean_name(const char *name)
{
	struct clean clean = { { 0 } };
	size_t length = 0;
	char c;

	for (; *name && length < CLEAN_LENGTH; name++) {
		c = clean_char(*name);
		if (c != '_' || (length && clean.text[length - 1] != '_'))
			clean.text[length++] = c;
	}
	if (length && clean.text[length - 1] == '_')
		clean.text[length - 1] = '\0';
	return clean;
}

static bool in_bytes(const char *unit)
{
	return !strcmp(unit, "bytes");
}

/* The name of an item less what tells it from one of the same name. */
struct item_name {
	struct clean clean;
	bool suffix; /* _bytes */
};

static struct item_name item_name(const struct pcpc_item *item)
{
	struct item_name name = { clean_name(item->name), in_bytes(item->unit) };
	size_t length = strlen(name.clean.text);

	/* It may say so itself. */
	if (length > 6 && !strcmp(name.clean.text + length - 6, "_bytes")) {
		name.clean.text[length - 6] = '\0';
		name.suffix = true;
	}
	return name;
}

static bool has_namesake(const struct pcpc_domain *domain, uint32_t which,
			 const struct item_name *name)
{
	struct item_name other;
	uint32_t item;

	for (item = 0; item < domain->nr_items; item++) {
		if (item == which)
			continue;
		other = item_name(&domain->items[item]);
		if (other.suffix == name->suffix && !strcmp(other.clean.text, name->clean.text))
			return true;
	}
	return false;
}

static void append(struct metric *metric, const char *text)
{
	size_t length = strlen(metric->name);

	/* Always fits, see NAME_SIZE. */
	while (*text && length + 1 < sizeof(metric->name))
		metric->name[length++] = *text++;
	metric->name[length] = '\0';
}

static void append_number(struct metric *metric, uint32_t number)
{
	char digits[11] = { 0 }, *digit = digits + sizeof(digits) - 1;

	do {
		*--digit = (char)('0' + number % 10);
	} while (number /= 10);
	append(metric, digit);
}

static void append_item(struct metric *metric, const struct pcpc_domain *domain)
{
	struct item_name name = item_name(&domain->items[metric->which]);

	append(metric, name.clean.text);
	if (name.suffix)
		append(metric, "_bytes");
	if (has_namesake(domain, metric->which, &name)) {
		append(metric, "__");
		append_number(metric, metric->which);
	}
}

static void make_name(struct metric *metric, const struct pcpc_domain *domain)
{
	const struct clean clean = clean_name(domain->name);

	metric->name[0] = '\0';
	append(metric, "pcpcharge_");
	append(metric, clean.text);
	append(metric, *clean.text ? "_" : "");
	if (metric->kind == KIND_EVENT)
		append(metric, "event_");
	append(metric, metric->title);
	if (metric->kind == KIND_ITEM)
		append_item(metric, domain);
	if (metric->in_units && in_bytes(domain->unit))
		append(metric, "_bytes");
	if (metric->counter)
		append(metric, "_total");
}

static void put_head(struct pcpc_report *report, struct metric *metric)
{
	struct pcpc_out *out = &report->out;
	const char *unit = metric->in_units ? report->domain->unit : "";

	make_name(metric, report->domain);
	if (metric->kind == KIND_ITEM)
		unit = report->domain->items[metric->which].unit;
	pcpc_put(out, "# HELP ");
	pcpc_put(out, metric->name);
	pcpc_put_char(out, ' ');
	pcpc_put(out, metric->help);
	pcpc_put_name(out, metric->help_name, PCPC_ESCAPE_HELP);
	pcpc_put(out, metric->help_end);
	pcpc_put(out, *unit ? ", in " : "");
	pcpc_put_name(out, unit, PCPC_ESCAPE_HELP);
	pcpc_put(out, ".\n# TYPE ");
	pcpc_put(out, metric->name);
	pcpc_put(out, metric->counter ? " counter\n" : " gauge\n");
}

/* -- samples -- */

static void put_label(struct pcpc_out *out, const char *before, const char *label)
{
	pcpc_put(out, before);
	pcpc_put(out, label);
	pcpc_put(out, "=\"");
}

/* The names from the root down. */
static void put_path(struct pcpc_out *out, const struct pcpc_owner *owner)
{
	const struct pcpc_owner *path[REPORT_LEVELS];
	uint32_t nr = 0;

	for (; owner; owner = owner->parent)
		path[nr++] = owner;
	while (nr--) {
		pcpc_put_name(out, pcpc_owner_name(path[nr]), PCPC_ESCAPE_LABEL);
		if (nr)
			pcpc_put_char(out, '/');
	}
}

/* owner NULL: the domain. */
static void put_series(struct pcpc_report *report, const struct metric *metric,
		       const struct pcpc_owner *owner)
{
	struct pcpc_out *out = &report->out;

	pcpc_put(out, metric->name);
	put_label(out, "{", "domain");
	pcpc_put_name(out, report->domain->name, PCPC_ESCAPE_LABEL);
	if (owner) {
		put_label(out, "\",", "owner");
		put_path(out, owner);
		put_label(out, "\",", "id");
		pcpc_put_number(out, owner->id);
	}
	pcpc_put(out, "\"} ");
}

static void put_limit(struct pcpc_out *out, uint64_t limit)
{
	if (limit == PCPC_UNLIMITED)
		pcpc_put(out, "+Inf");
	else
		pcpc_put_number(out, limit);
}

static void put_value(struct pcpc_out *out, const struct metric *metric,
		      const struct pcpc_level *level)
{
	struct pcpc_owner *owner = level->owner;

	switch (metric->kind) {
	case KIND_USAGE:
		pcpc_put_number(out, pcpc_owner_usage(owner));
		break;
	case KIND_MAX:
		put_limit(out, pcpc_owner_max(owner));
		break;
	case KIND_HIGH:
		put_limit(out, pcpc_owner_high(owner));
		break;
	case KIND_PEAK:
		pcpc_put_number(out, pcpc_owner_peak(owner));
		break;
	case KIND_LEFT_OUT:
		pcpc_put_number(out, level->left_out);
		break;
	case KIND_LEFT_OUT_USAGE:
		pcpc_put_number(out, level->left_out_usage);
		break;
	case KIND_EVENT:
		pcpc_put_number(out, pcpc_owner_events(owner, (enum pcpc_event)metric->which));
		break;
	case KIND_ITEM:
		pcpc_put_signed(out, pcpc_stat_read(owner, metric->which));
		break;
	case KIND_DOMAIN:
		break;
	}
}

static void show_sample(struct pcpc_report *report, const struct pcpc_level *level, void *context)
{
	put_series(report, context, level->owner);
	put_value(&report->out, context, level);
	pcpc_put_char(&report->out, '\n');
}

static void put_metric(struct pcpc_report *report, struct metric *metric)
{
	if (report->out.error)
		return;
	put_head(report, metric);
	pcpc_report_walk(report, show_sample, NULL, metric);
}

static void put_domain_metric(struct pcpc_report *report, const char *title, const char *help,
			      bool counter, uint64_t value)
{
	struct metric metric = {
		.kind = KIND_DOMAIN,
		.title = title,
		.help = help,
		.help_name = "",
		.help_end = "",
		.counter = counter,
	};

	put_head(report, &metric);
	put_series(report, &metric, NULL);
	pcpc_put_number(&report->out, value);
	pcpc_put_char(&report->out, '\n');
}

static void put_domain_metrics(struct pcpc_report *report)
{
	struct pcpc_domain_stats stats;

	pcpc_domain_figures(report->domain, &stats);
	put_domain_metric(report, "owners", "Owners, offline ones included", false,
			  stats.nr_owners);
	put_domain_metric(report, "owners_offline", "Owners that are destroyed and not yet swept",
			  false, stats.nr_offline);
	put_domain_metric(report, "drains", "Drains of subtrees", true, stats.drains);
	put_domain_metric(report, "sweeps", "Sweeps of offline owners", true, stats.sweeps);
}

static const struct {
	const char *title, *help;
	bool in_units;
} figures[] = {
	[KIND_USAGE] = { "usage", "What the owner and all below it use, stocked units included",
			 true },
	[KIND_MAX] = { "max", "Limit of usage", true },
	[KIND_HIGH] = { "high", "Usage above which a warning is given", true },
	[KIND_PEAK] = { "peak", "Highest usage since creation or reset", true },
	[KIND_LEFT_OUT] = { "left_out", "Children that have no series of their own", false },
	[KIND_LEFT_OUT_USAGE] = { "left_out_usage",
				  "Usage of children that have no series of their own", true },
};

void pcpc_report_metrics(struct pcpc_report *report)
{
	uint32_t which, nr_figures = report->limited ? KIND_LEFT_OUT_USAGE + 1 : KIND_PEAK + 1;
	struct metric metric;

	put_domain_metrics(report);
	for (which = 0; which < nr_figures; which++) {
		metric = (struct metric){ .kind = (enum kind)which,
					  .title = figures[which].title,
					  .help = figures[which].help,
					  .help_name = "",
					  .help_end = "",
					  .in_units = figures[which].in_units };
		put_metric(report, &metric);
	}
	for (which = 0; which < PCPC_NR_EVENTS; which++) {
		metric = (struct metric){ .kind = KIND_EVENT,
					  .which = which,
					  .title = pcpc_event_names[which],
					  .help = "Events of kind ",
					  .help_name = pcpc_event_names[which],
					  .help_end = " at the owner and all below it",
					  .counter = true };
		put_metric(report, &metric);
	}
	for (which = 0; which < report->domain->nr_items; which++) {
		metric = (struct metric){ .kind = KIND_ITEM,
					  .which = which,
					  .title = "item_",
					  .help = "Item ",
					  .help_name = report->domain->items[which].name,
					  .help_end = " of the owner and all below it" };
		put_metric(report, &metric);
	}
}
