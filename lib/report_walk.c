// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * report_walk.c - the owners that a report shows, one after the other, within limits.
 *
 * Every owner from top down to the one that is shown is held by a reference, so that each keeps its
 * place among its siblings while no lock is held. Where only the largest children are wanted, they
 * are chosen when their parent is reached: one pass over its children, the best in an array. Of
 * those that were chosen only the ids are kept, one level after the other in one array; whoever is
 * gone when its turn comes is passed over.
 */
#include "report_private.h"

#include <string.h>

/* Room for the children of a level: what the levels below need at the least is kept free. */
static uint32_t room_for(const struct pcpc_report *report, const struct pcpc_level *level)
{
	uint32_t depth = pcpc_level_depth(report, level);
	uint32_t kept = REPORT_CHOSEN_LEAST * (REPORT_LEVELS - 2 - depth);
	uint32_t room = REPORT_CHOSEN - level->end - kept;

	return report->largest < room ? report->largest : room;
}

static void leave_out(struct pcpc_level *level, uint64_t usage)
{
	level->left_out++;
	level->left_out_usage += usage;
}

/* Puts a child in its place among the largest so far. Children come newest first; of equal ones the
 * oldest go first, so that who is new does not push out who is there. */
static void rank_child(struct pcpc_report *report, struct pcpc_level *level, uint32_t room,
		       const struct pcpc_rank *child)
{
	uint32_t nr = level->end - level->next, place = nr;

	if (nr == room) {
		if (!room || child->key < report->rank[nr - 1].key) {
			leave_out(level, child->usage);
			return;
		}
		leave_out(level, report->rank[nr - 1].usage);
		place--;
	} else {
		level->end++;
	}
	for (; place && report->rank[place - 1].key <= child->key; place--)
		report->rank[place] = report->rank[place - 1];
	report->rank[place] = *child;
}

/* Chooses the children to be shown, and adds up what the others use. */
static void choose(struct pcpc_report *report, struct pcpc_level *level, uint32_t room)
{
	struct pcpc_rank rank;
	struct pcpc_owner *child = NULL;
	uint32_t i;

	while ((child = pcpc_owner_child(level->owner, child, report->born_before))) {
		rank.id = child->id;
		rank.usage = pcpc_owner_usage(child);
		rank.key = report->by_peak ? pcpc_owner_peak(child) : rank.usage;
		rank_child(report, level, room, &rank);
	}
	for (i = level->next; i < level->end; i++)
		report->chosen[i] = report->rank[i - level->next].id;
}

static struct pcpc_owner *next_chosen(struct pcpc_report *report, struct pcpc_level *level)
{
	struct pcpc_owner *child;

	pcpc_owner_put(level->last);
	level->last = NULL;
	while (level->next < level->end) {
		child = pcpc_owner_find(report->domain, report->chosen[level->next++]);
		/* Whoever is younger has its id now. */
		if (child && books_of(child)->born < report->born_before)
			return child;
		pcpc_owner_put(child);
	}
	return NULL;
}

static struct pcpc_owner *next_child(struct pcpc_report *report, struct pcpc_level *level)
{
	struct pcpc_owner *child;

	if (report->largest)
		return next_chosen(report, level);
	if (pcpc_level_depth(report, level) + 1 == report->depth)
		return NULL;
	child = pcpc_owner_child(level->owner, level->last, report->born_before);
	level->last = NULL;
	return child;
}

/* Takes over the reference. */
static struct pcpc_level *enter(struct pcpc_report *report, struct pcpc_owner *owner)
{
	struct pcpc_level *level = &report->level[report->nr_levels++];

	*level = (struct pcpc_level){ .owner = owner };
	if (report->nr_levels > 1)
		level->next = level->end = level[-1].end;
	if (report->nr_levels == report->depth)
		choose(report, level, 0);
	else if (report->largest)
		choose(report, level, room_for(report, level));
	return level;
}

static void leave(struct pcpc_report *report, struct pcpc_level *level)
{
	pcpc_owner_put(level->last);
	report->nr_levels--;
	if (report->nr_levels)
		level[-1].last = level->owner;
	else
		pcpc_owner_put(level->owner);
}

void pcpc_report_walk(struct pcpc_report *report, pcpc_show_fn *show, pcpc_show_fn *after,
		      void *context)
{
	struct pcpc_level *level = enter(report, pcpc_owner_get(report->top));
	struct pcpc_owner *child;

	show(report, level, context);
	for (;;) {
		child = report->out.error ? NULL : next_child(report, level);
		if (child) {
			level = enter(report, child);
			show(report, level, context);
			continue;
		}
		if (after && !report->out.error)
			after(report, level, context);
		leave(report, level);
		if (!report->nr_levels)
			return;
		level--;
	}
}

void pcpc_figures_of(const struct pcpc_owner *owner, struct pcpc_figures *ret_figures)
{
	*ret_figures = (struct pcpc_figures){
		.usage = pcpc_owner_usage(owner),
		.max = pcpc_owner_max(owner),
		.high = pcpc_owner_high(owner),
		.peak = pcpc_owner_peak(owner),
		.stocked = pcpc_cache_stocked(owner->domain->cache, owner->id),
	};
}
