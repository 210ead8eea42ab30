// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * stat_layout.c - does it matter how far what updates write is from what reads read?
 *
 * A small copy of an owner's block of statistics (lib/stat_private.h), three times: what updates
 * write and what flushes write and reads read are 128 bytes apart, as in the library; 64; or
 * together on a line. One thread applies deltas to a few owners, as pcpc_stat_apply() does without
 * its walk; one on another CPU reads their totals, and flushes now and then.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>

#include "stat_bench.h"

#define NR_BLOCKS 16u
#define NR_KEYS 2u /* as many as fit on a line with the rest */
#define BLOCK_SIZE 256u
#define FLUSH_EVERY 1024 /* rounds of reads */
#define STEPS 64	 /* rounds between two looks at the clock */

struct applied {
	_Atomic uint64_t updates;
	_Atomic int64_t local[NR_KEYS];
};

struct total {
	_Atomic int64_t total;
	int64_t seen;
};

_Static_assert(sizeof(struct applied) <= 24 && 24 + NR_KEYS * sizeof(struct total) <= 64,
	       "a block fits a line");

struct layout {
	char *blocks;
	size_t apart;
	struct bench_crew *crew;
	uint64_t rounds_read, rounds_updated;
	int64_t sum; /* of what was read: it must not be left out */

	_Alignas(128) _Atomic bool stop;
} __attribute__((aligned(128)));

static struct applied *applied_of(const struct layout *layout, uint32_t block)
{
	return (struct applied *)(layout->blocks + block * BLOCK_SIZE);
}

static struct total *totals_of(const struct layout *layout, uint32_t block)
{
	return (struct total *)(layout->blocks + block * BLOCK_SIZE + layout->apart);
}

static void update_round(struct layout *layout)
{
	struct applied *applied;
	uint32_t i;

	for (i = 0; i < NR_BLOCKS; i++) {
		applied = applied_of(layout, i);
		atomic_fetch_add(&applied->local[i % NR_KEYS], 1);
		atomic_fetch_add(&applied->updates, 1);
	}
	layout->rounds_updated++;
}

/* Relaxed: one flusher. */
static void flush(struct layout *layout)
{
	struct total *totals;
	int64_t local;
	uint32_t i, key;

	for (i = 0; i < NR_BLOCKS; i++) {
		atomic_store(&applied_of(layout, i)->updates, 0);
		totals = totals_of(layout, i);
		for (key = 0; key < NR_KEYS; key++) {
			local = atomic_load(&applied_of(layout, i)->local[key]);
			atomic_fetch_add_explicit(&totals[key].total, local - totals[key].seen,
						  memory_order_relaxed);
			totals[key].seen = local;
		}
	}
}

static void read_round(struct layout *layout)
{
	uint32_t i, key;

	if (++layout->rounds_read % FLUSH_EVERY == 0)
		flush(layout);
	for (i = 0; i < NR_BLOCKS; i++)
		for (key = 0; key < NR_KEYS; key++)
			layout->sum += atomic_load_explicit(&totals_of(layout, i)[key].total,
							    memory_order_relaxed);
	__asm__ __volatile__("" : : : "memory");
}

static void until_stop(struct layout *layout, void (*round)(struct layout *layout))
{
	/* Relaxed: a flag. */
	while (!atomic_load_explicit(&layout->stop, memory_order_relaxed))
		round(layout);
}

static void updates_beside(void *argument)
{
	until_stop(argument, update_round);
}

static void reads_beside(void *argument)
{
	until_stop(argument, read_round);
}

/* ns for one block. */
static double run(struct layout *layout, double ns, void (*round)(struct layout *layout),
		  void (*beside)(void *argument))
{
	double started_ns, taken_ns;
	uint64_t rounds = 0;
	unsigned int i;

	atomic_store_explicit(&layout->stop, false, memory_order_relaxed);
	bench_crew_begin(layout->crew, beside, layout);
	started_ns = bench_now_ns();
	do {
		for (i = 0; i < STEPS; i++)
			round(layout);
		rounds += STEPS;
		taken_ns = bench_now_ns() - started_ns;
	} while (taken_ns < ns);
	atomic_store_explicit(&layout->stop, true, memory_order_relaxed);
	bench_crew_end(layout->crew);
	return taken_ns / (double)(rounds * NR_BLOCKS);
}

static double run_reads(void *context, double ns)
{
	return run(context, ns, read_round, updates_beside);
}

static double run_updates(void *context, double ns)
{
	return run(context, ns, update_round, reads_beside);
}

static bool exact(struct layout *layout)
{
	uint32_t i, key;
	int64_t expected;

	flush(layout);
	for (i = 0; i < NR_BLOCKS; i++)
		for (key = 0; key < NR_KEYS; key++) {
			expected = i % NR_KEYS == key ? (int64_t)layout->rounds_updated : 0;
			if (totals_of(layout, i)[key].total != expected)
				return false;
		}
	return true;
}

static void contest(const struct bench_options *options, struct layout layouts[3], const char *what,
		    double (*slice)(void *context, double ns), const char *csv)
{
	struct bench_load loads[] = {
		BENCH_LOAD("128 bytes apart, as in the library", slice, &layouts[0]),
		BENCH_LOAD("64 bytes apart", slice, &layouts[1]),
		BENCH_LOAD("together on a line", slice, &layouts[2]),
	};
	char text[80];

	bench_contest(loads, 3, 300e3, options->brief ? 60 : 1000);
	snprintf(text, sizeof(text), "layout: %s of an owner", what);
	bench_print_contest(text, "ns", loads, 3);
	bench_append_csv(options, csv, NR_BLOCKS, loads, 3);
	snprintf(text, sizeof(text), "layout, 64 / 128 bytes apart: %s", what);
	bench_note_target(text, "", loads[1].ratio, 0);
	snprintf(text, sizeof(text), "layout, together / 128 bytes apart: %s", what);
	bench_note_target(text, "", loads[2].ratio, 0);
}

static void quote(void)
{
	printf("  memcg's layouts, on two sockets with 80 CPUs, whose prefetcher takes pairs of "
	       "lines (semantics.md 6.7),\n  M pages/s as it was, with cold data beside what is "
	       "read, and with updates that read less:\n"
	       "  shmem, 20 threads 4.74 -> 5.59 -> 5.77; shmem, 80 threads 7.94 -> 8.66 -> 8.82; "
	       "anon, 20 threads 3.04 -> 3.08 -> 3.10\n");
}

int stat_measure_layout(const struct bench_options *options)
{
	static const size_t apart[3] = { 128, 64, 24 };
	struct layout layouts[3];
	struct bench_crew crew;
	unsigned int i;
	int r = 0;

	if (options->cpu[1] < 0) {
		printf("\nlayout: needs a second CPU\n");
		return 0;
	}
	bench_pin(options->cpu[0]);
	for (i = 0; i < 3; i++) {
		layouts[i] = (struct layout){ .apart = apart[i], .crew = &crew };
		layouts[i].blocks = bench_alloc(NR_BLOCKS * BLOCK_SIZE);
		if (!layouts[i].blocks)
			abort();
	}
	r = bench_crew_open(&crew, options->cpu[1]);
	if (r < 0)
		return r;
	contest(options, layouts, "reads", run_reads, "layout_reads");
	contest(options, layouts, "updates", run_updates, "layout_updates");
	quote();
	bench_crew_close(&crew);
	for (i = 0; i < 3; i++) {
		if (!exact(&layouts[i]))
			r = -EILSEQ;
		free(layouts[i].blocks);
	}
	return r;
}
