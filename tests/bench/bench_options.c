// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * bench_options.c - the command line, and running a benchmark's parts: the same for all of them.
 */
#define _GNU_SOURCE
#include "bench.h"

#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* The first two CPUs this process may run on; -1 where there is no second. */
static void choose_cpus(int cpu[2])
{
	cpu_set_t set;
	int i, found = 0;

	cpu[0] = 0;
	cpu[1] = -1;
	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return;
	for (i = 0; i < CPU_SETSIZE && found < 2; i++)
		if (CPU_ISSET(i, &set))
			cpu[found++] = i;
}

static void usage(double brief_seconds, double full_seconds, const char *parts)
{
	fprintf(stderr,
		"usage: %s [--short] [--only=PART] [--seconds=S] [--seed=N] [--cpus=A,B]\n"
		"       [--csv=FILE] [--svg=FILE --script=plot.gp] [--lose]\n"
		"  --short    few numbers of owners, within 15 s\n"
		"  --only     one of: %s\n"
		"  --seconds  for all series together (default %.0f; %.0f with --short)\n"
		"  --lose     lose one unit of each block, to see the check fail\n",
		program_invocation_short_name, parts, full_seconds, brief_seconds);
}

static bool read_option(int c, struct bench_options *options)
{
	switch (c) {
	case 'b':
		options->brief = true;
		return true;
	case 'l':
		options->lose = true;
		return true;
	case 'o':
		options->only = optarg;
		return true;
	case 't':
		options->seconds = atof(optarg);
		return true;
	case 's':
		options->seed = strtoull(optarg, NULL, 0);
		return true;
	case 'c':
		return sscanf(optarg, "%d,%d", &options->cpu[0], &options->cpu[1]) == 2;
	case 'f':
		options->csv = optarg;
		return true;
	case 'g':
		options->svg = optarg;
		return true;
	case 'p':
		options->script = optarg;
		return true;
	default:
		return false;
	}
}

bool bench_read_options(int argc, char **argv, double brief_seconds, double full_seconds,
			const char *parts, struct bench_options *ret_options)
{
	static const struct option names[] = {
		{ "short", no_argument, NULL, 'b' },
		{ "only", required_argument, NULL, 'o' },
		{ "seconds", required_argument, NULL, 't' },
		{ "seed", required_argument, NULL, 's' },
		{ "cpus", required_argument, NULL, 'c' },
		{ "csv", required_argument, NULL, 'f' },
		{ "svg", required_argument, NULL, 'g' },
		{ "script", required_argument, NULL, 'p' },
		{ "lose", no_argument, NULL, 'l' },
		{ NULL, 0, NULL, 0 },
	};
	bool sound = true;
	int c;

	*ret_options = (struct bench_options){ .seed = 1 };
	choose_cpus(ret_options->cpu);
	while (sound && (c = getopt_long(argc, argv, "", names, NULL)) != -1)
		sound = read_option(c, ret_options);
	if (!ret_options->seconds)
		ret_options->seconds = ret_options->brief ? brief_seconds : full_seconds;
	sound = sound && optind == argc && (!ret_options->only || strstr(parts, ret_options->only));
	if (!sound)
		usage(brief_seconds, full_seconds, parts);
	return sound;
}

bool bench_wants(const struct bench_options *options, const char *part)
{
	return !options->only || !strcmp(options->only, part);
}

int bench_run_parts(const struct bench_part *parts, size_t nr_parts,
		    const struct bench_options *options)
{
	int failed = 0, r;
	size_t i;

	/* The line with the names; contests append. */
	if (options->csv && bench_write_csv(NULL, 0, options->csv) < 0)
		fprintf(stderr, "%s: cannot write %s\n", program_invocation_short_name,
			options->csv);
	bench_print_machine(options);
	for (i = 0; i < nr_parts; i++) {
		if (!bench_wants(options, parts[i].name))
			continue;
		r = parts[i].measure(options);
		fflush(stdout);
		if (r < 0) {
			fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name,
				parts[i].name, r == -EILSEQ ? "totals are wrong" : strerror(-r));
			failed = 1;
		}
	}
	bench_print_targets();
	return failed;
}
