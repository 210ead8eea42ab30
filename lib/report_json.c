// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * report_json.c - the report as one JSON object. Owners stand in a flat array, each with its
 * parent's id: some readers refuse what is nested as deeply as a tree of owners can be.
 */
#include "report_private.h"

#include <pcpcharge/stat.h>

static void put_key(struct pcpc_out *out, const char *before, const char *key)
{
	pcpc_put(out, before);
	pcpc_put_char(out, '"');
	pcpc_put(out, key);
	pcpc_put(out, "\":");
}

/* A field that is not the first of its object. */
static void put_field(struct pcpc_out *out, const char *key, uint64_t value)
{
	put_key(out, ",", key);
	pcpc_put_number(out, value);
}

static void put_limit(struct pcpc_out *out, const char *key, uint64_t limit)
{
	put_key(out, ",", key);
	if (limit == PCPC_UNLIMITED)
		pcpc_put(out, "null");
	else
		pcpc_put_number(out, limit);
}

static void put_string(struct pcpc_out *out, const char *before, const char *key, const char *value)
{
	put_key(out, before, key);
	pcpc_put_char(out, '"');
	pcpc_put_name(out, value, PCPC_ESCAPE_JSON);
	pcpc_put_char(out, '"');
}

static void put_events(struct pcpc_out *out, const struct pcpc_owner *owner)
{
	unsigned int event;

	put_key(out, ",", "events");
	for (event = 0; event < PCPC_NR_EVENTS; event++) {
		put_key(out, event ? "," : "{", pcpc_event_names[event]);
		pcpc_put_number(out, pcpc_owner_events(owner, (enum pcpc_event)event));
	}
	pcpc_put_char(out, '}');
}

static void put_items(struct pcpc_out *out, struct pcpc_owner *owner)
{
	uint32_t item;

	put_key(out, ",", "items");
	pcpc_put_char(out, '[');
	for (item = 0; item < owner->domain->nr_items && !out->error; item++) {
		if (item)
			pcpc_put_char(out, ',');
		pcpc_put_signed(out, pcpc_stat_read(owner, item));
	}
	pcpc_put_char(out, ']');
}

static void show_owner(struct pcpc_report *report, const struct pcpc_level *level, void *context)
{
	const char **before = context;
	struct pcpc_owner *owner = level->owner;
	struct pcpc_out *out = &report->out;
	struct pcpc_figures figures;

	pcpc_figures_of(owner, &figures);
	pcpc_put(out, *before);
	*before = ",";
	put_key(out, "\n{", "id");
	pcpc_put_number(out, owner->id);
	put_key(out, ",", "parent");
	if (owner->parent)
		pcpc_put_number(out, owner->parent->id);
	else
		pcpc_put(out, "null");
	put_field(out, "depth", owner->depth);
	put_string(out, ",", "name", pcpc_owner_name(owner));
	put_field(out, "usage", figures.usage);
	put_limit(out, "max", figures.max);
	put_limit(out, "high", figures.high);
	put_field(out, "peak", figures.peak);
	put_field(out, "stocked", figures.stocked);
	put_field(out, "left_out", level->left_out);
	put_field(out, "left_out_usage", level->left_out_usage);
	put_events(out, owner);
	put_items(out, owner);
	pcpc_put_char(out, '}');
}

static void put_item_names(struct pcpc_out *out, const struct pcpc_domain *domain)
{
	uint32_t item;

	put_key(out, ",", "items");
	pcpc_put_char(out, '[');
	for (item = 0; item < domain->nr_items && !out->error; item++) {
		put_string(out, item ? ",{" : "{", "name", domain->items[item].name);
		put_string(out, ",", "unit", domain->items[item].unit);
		pcpc_put_char(out, '}');
	}
	pcpc_put_char(out, ']');
}

void pcpc_report_json(struct pcpc_report *report)
{
	const struct pcpc_domain *domain = report->domain;
	struct pcpc_out *out = &report->out;
	struct pcpc_domain_stats stats;
	const char *before = "";

	pcpc_domain_figures(report->domain, &stats);
	put_string(out, "{", "domain", domain->name);
	put_string(out, ",", "unit", domain->unit);
	put_string(out, ",", "engine", pcpc_engine_name(domain));
	put_field(out, "cpus", stats.nr_cpus);
	put_field(out, "nr_owners", stats.nr_owners);
	put_field(out, "nr_offline", stats.nr_offline);
	put_field(out, "drains", stats.drains);
	put_field(out, "sweeps", stats.sweeps);
	put_item_names(out, domain);
	put_key(out, ",\n", "owners");
	pcpc_put_char(out, '[');
	pcpc_report_walk(report, show_owner, NULL, &before);
	pcpc_put(out, "\n]}\n");
}
