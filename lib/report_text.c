// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * report_text.c - the report for people: a tree in columns.
 *
 * A first walk measures the columns. Names come last in a line, so their lengths do not matter; a
 * figure that has grown by a digit since puts its line out of step, no more.
 */
#include "report_private.h"

#include <string.h>

#include <pcpcharge/stat.h>

enum column { ID, USAGE, MAX, HIGH, PEAK, STOCKED, NR_COLUMNS };

static const char *const titles[NR_COLUMNS] = { "id", "usage", "max", "high", "peak", "stocked" };

struct columns {
	unsigned int width[NR_COLUMNS];
};

/* PCPC_UNLIMITED, which is no usage, stands for "-". */
static void read_row(const struct pcpc_owner *owner, uint64_t row[NR_COLUMNS])
{
	struct pcpc_figures figures;

	pcpc_figures_of(owner, &figures);
	row[ID] = owner->id;
	row[USAGE] = figures.usage;
	row[MAX] = figures.max;
	row[HIGH] = figures.high;
	row[PEAK] = figures.peak;
	row[STOCKED] = figures.stocked;
}

static bool is_limit(enum column column)
{
	return column == MAX || column == HIGH;
}

static void measure(struct pcpc_report *report, const struct pcpc_level *level, void *context)
{
	struct columns *columns = context;
	uint64_t row[NR_COLUMNS];
	unsigned int digits;
	enum column column;

	(void)report;
	read_row(level->owner, row);
	for (column = ID; column < NR_COLUMNS; column++) {
		if (is_limit(column) && row[column] == PCPC_UNLIMITED)
			continue;
		digits = pcpc_digits(row[column]);
		if (digits > columns->width[column])
			columns->width[column] = digits;
	}
}

static void put_row(struct pcpc_out *out, const uint64_t row[NR_COLUMNS],
		    const struct columns *columns)
{
	enum column column;

	for (column = ID; column < NR_COLUMNS; column++) {
		if (is_limit(column) && row[column] == PCPC_UNLIMITED)
			pcpc_put_right(out, "-", columns->width[column]);
		else
			pcpc_put_column(out, row[column], columns->width[column]);
		pcpc_put(out, "  ");
	}
}

static void indent(struct pcpc_out *out, unsigned int depth)
{
	while (depth--)
		pcpc_put(out, "  ");
}

/* "  [max 3, refused 1]" of those that are not 0. */
static void put_events(struct pcpc_out *out, const struct pcpc_owner *owner)
{
	const char *before = "  [";
	unsigned int event;
	uint64_t count;

	for (event = 0; event < PCPC_NR_EVENTS; event++) {
		count = pcpc_owner_events(owner, (enum pcpc_event)event);
		if (!count)
			continue;
		pcpc_put(out, before);
		pcpc_put(out, pcpc_event_names[event]);
		pcpc_put_char(out, ' ');
		pcpc_put_number(out, count);
		before = ", ";
	}
	if (*before == ',')
		pcpc_put_char(out, ']');
}

/* "  {file 4096 bytes, maps 2}" likewise. */
static void put_items(struct pcpc_out *out, struct pcpc_owner *owner)
{
	const struct pcpc_domain *domain = owner->domain;
	const char *before = "  {";
	int64_t value;
	uint32_t item;

	for (item = 0; item < domain->nr_items && !out->error; item++) {
		value = pcpc_stat_read(owner, item);
		if (!value)
			continue;
		pcpc_put(out, before);
		pcpc_put_name(out, domain->items[item].name, PCPC_ESCAPE_TEXT);
		pcpc_put_char(out, ' ');
		pcpc_put_signed(out, value);
		if (*domain->items[item].unit)
			pcpc_put_char(out, ' ');
		pcpc_put_name(out, domain->items[item].unit, PCPC_ESCAPE_TEXT);
		before = ", ";
	}
	if (*before == ',')
		pcpc_put_char(out, '}');
}

static void show_owner(struct pcpc_report *report, const struct pcpc_level *level, void *context)
{
	uint64_t row[NR_COLUMNS];

	read_row(level->owner, row);
	put_row(&report->out, row, context);
	indent(&report->out, pcpc_level_depth(report, level));
	pcpc_put_name(&report->out, pcpc_owner_name(level->owner), PCPC_ESCAPE_TEXT);
	put_events(&report->out, level->owner);
	put_items(&report->out, level->owner);
	pcpc_put_char(&report->out, '\n');
}

static void show_left_out(struct pcpc_report *report, const struct pcpc_level *level, void *context)
{
	const struct columns *columns = context;
	struct pcpc_out *out = &report->out;
	enum column column;

	if (!level->left_out)
		return;
	for (column = ID; column < NR_COLUMNS; column++) {
		if (column == USAGE)
			pcpc_put_column(out, level->left_out_usage, columns->width[column]);
		else
			pcpc_put_right(out, "", columns->width[column]);
		pcpc_put(out, "  ");
	}
	indent(out, pcpc_level_depth(report, level) + 1);
	pcpc_put_number(out, level->left_out);
	pcpc_put(out, " more\n");
}

static void put_figure(struct pcpc_out *out, const char *before, uint64_t number, const char *after)
{
	pcpc_put(out, before);
	pcpc_put_number(out, number);
	pcpc_put(out, after);
}

static void put_head(struct pcpc_report *report)
{
	const struct pcpc_domain *domain = report->domain;
	struct pcpc_out *out = &report->out;
	struct pcpc_domain_stats stats;

	pcpc_domain_figures(report->domain, &stats);
	pcpc_put_name(out, domain->name, PCPC_ESCAPE_TEXT);
	pcpc_put(out, *domain->unit ? ", in " : "");
	pcpc_put_name(out, domain->unit, PCPC_ESCAPE_TEXT);
	put_figure(out, ": ", stats.nr_owners, " owners, ");
	put_figure(out, "", stats.nr_offline, " of them offline; ");
	pcpc_put(out, pcpc_engine_name(domain));
	put_figure(out, " engine, CPUs: ", stats.nr_cpus, "; drains: ");
	put_figure(out, "", stats.drains, ", sweeps: ");
	put_figure(out, "", stats.sweeps, "\n");
}

void pcpc_report_text(struct pcpc_report *report)
{
	struct columns columns;
	enum column column;

	for (column = ID; column < NR_COLUMNS; column++)
		columns.width[column] = (unsigned int)strlen(titles[column]);
	pcpc_report_walk(report, measure, NULL, &columns);
	put_head(report);
	for (column = ID; column < NR_COLUMNS; column++) {
		pcpc_put_right(&report->out, titles[column], columns.width[column]);
		pcpc_put(&report->out, "  ");
	}
	pcpc_put(&report->out, "owner\n");
	pcpc_report_walk(report, show_owner, show_left_out, &columns);
}
