/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * percpu.h - what this machine and process offer: CPUs, restartable sequences, membarrier, lazily
 * touched memory.
 *
 * Asks the system and answers; keeps no state but what the system itself keeps. Errors are negative
 * errno.
 */
#ifndef PCPCHARGE_PERCPU_H
#define PCPCHARGE_PERCPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Offsets in the kernel's struct rseq. */
#define PCPC_RSEQ_CPU_ID 4
#define PCPC_RSEQ_MM_CID 24

struct pcpc_rseq {
	bool registered; /* the C library registered this thread: its cpu_id is kept up to date */
	bool sequences;	 /* and sequences are aborted as they must be, and membarrier can make them
			    end */
	bool mm_cid;	 /* and the kernel fills the concurrency id */
	ptrdiff_t area;	 /* from the thread pointer */
};

void pcpc_rseq_detect(struct pcpc_rseq *ret_rseq);

/* One more than the highest CPU id this machine may ever have; at least 1. Ids may be sparse and
 * CPUs offline. */
uint32_t pcpc_possible_cpus(void);

/* CPUs this process may run on now; at least 1. */
uint32_t pcpc_allowed_cpus(void);

/* Makes every sequence that is running end: on one CPU, or on all (cpu < 0). Returns 0 or negative
 * errno. */
int pcpc_fence_sequences(int cpu);

/* Zeroed memory that costs nothing until it is touched, and no huge pages under it. NULL: no
 * memory. */
void *pcpc_map(size_t bytes);
void pcpc_unmap(void *memory, size_t bytes);

/* How much of a mapping is in memory now. */
uint64_t pcpc_resident(void *memory, size_t bytes);

#endif
