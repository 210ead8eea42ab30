/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * report_private.h - the inside of reports: text that goes out in pieces, and the walk that all
 * formats share.
 */
#ifndef PCPCHARGE_REPORT_PRIVATE_H
#define PCPCHARGE_REPORT_PRIVATE_H

#include <pcpcharge/observe.h>

#include "owner_private.h"

/* -- report_out.c: text on its way to a write function -- */

/* After the first error nothing is written any more, so nobody but loops needs to look at it. */
struct pcpc_out {
	pcpc_write_fn *write;
	void *context;
	int error;
	size_t used;
	char buffer[1024];
};

enum pcpc_escape {
	PCPC_ESCAPE_TEXT,  /* a line of a terminal */
	PCPC_ESCAPE_JSON,  /* a string, without its quotes */
	PCPC_ESCAPE_LABEL, /* likewise, in PROMETHEUS */
	PCPC_ESCAPE_HELP,  /* a comment there: quotes stand for themselves */
};

void pcpc_put(struct pcpc_out *out, const char *text);
void pcpc_put_char(struct pcpc_out *out, char c);
void pcpc_put_number(struct pcpc_out *out, uint64_t number);
void pcpc_put_signed(struct pcpc_out *out, int64_t number);
void pcpc_put_column(struct pcpc_out *out, uint64_t number, unsigned int width);
void pcpc_put_right(struct pcpc_out *out, const char *text, unsigned int width);
void pcpc_put_name(struct pcpc_out *out, const char *name, enum pcpc_escape escape);
unsigned int pcpc_digits(uint64_t number);

/* Hands out what is left. Returns 0, or the first error. */
int pcpc_out_end(struct pcpc_out *out);

/* -- report_walk.c: the owners that a report shows, one after the other -- */

#define REPORT_LEVELS (PCPC_DEPTH_MAX + 1u)
#define REPORT_CHOSEN 2048u
#define REPORT_CHOSEN_LEAST 8u

/* An owner that is shown, or above one that is. */
struct pcpc_level {
	struct pcpc_owner *owner; /* with a reference */
	struct pcpc_owner *last;  /* the child that was shown last, with one too; or NULL */
	uint32_t next, end;	  /* in chosen: the children still to be shown */
	uint32_t left_out;	  /* live children that are not */
	uint64_t left_out_usage;
};

struct pcpc_rank {
	uint64_t key, usage;
	uint32_t id;
};

struct pcpc_report {
	struct pcpc_out out;
	struct pcpc_domain *domain;
	struct pcpc_owner *top;
	uint32_t depth;	      /* levels, 1..REPORT_LEVELS */
	uint32_t largest;     /* 0: all */
	bool by_peak;	      /* are the largest those */
	bool limited;	      /* something may be left out */
	uint64_t born_before; /* as in pcpc_owner_child() */

	uint32_t nr_levels;
	struct pcpc_level level[REPORT_LEVELS];
	uint32_t chosen[REPORT_CHOSEN]; /* ids, of one level after the other */
	struct pcpc_rank rank[PCPC_REPORT_LARGEST_MAX];
};

/* What a walk does at an owner; with no lock held. */
typedef void pcpc_show_fn(struct pcpc_report *report, const struct pcpc_level *level,
			  void *context);

/* Shows the owners of a report, parents first; after (or NULL) comes after the last child. Ends
 * early when there is an error. */
void pcpc_report_walk(struct pcpc_report *report, pcpc_show_fn *show, pcpc_show_fn *after,
		      void *context);

/* How many levels below top. */
static inline unsigned int pcpc_level_depth(const struct pcpc_report *report,
					    const struct pcpc_level *level)
{
	return (unsigned int)(level - report->level);
}

/* What is read of an owner when it is its turn. */
struct pcpc_figures {
	uint64_t usage, max, high, peak, stocked;
};

void pcpc_figures_of(const struct pcpc_owner *owner, struct pcpc_figures *ret_figures);

/* What is read of a domain, but for the resident pages. */
void pcpc_domain_figures(struct pcpc_domain *domain, struct pcpc_domain_stats *ret_stats);

extern const char *const pcpc_event_names[PCPC_NR_EVENTS];
const char *pcpc_engine_name(const struct pcpc_domain *domain);

/* -- the formats -- */
void pcpc_report_text(struct pcpc_report *report);
void pcpc_report_json(struct pcpc_report *report);
void pcpc_report_metrics(struct pcpc_report *report);

#endif
