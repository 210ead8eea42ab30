// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * percpu.c - see percpu.h.
 */
#define _GNU_SOURCE
#include "percpu.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <pcpcharge/arch/sequences.h>

#ifndef AT_RSEQ_FEATURE_SIZE
#define AT_RSEQ_FEATURE_SIZE 27
#endif

/* Sizes of struct rseq: as first registered, as the kernel first allocated it, and up to mm_cid. */
#define RSEQ_SIZE_FIRST 20
#define RSEQ_SIZE_ALLOCATED 32
#define RSEQ_SIZE_MM_CID 28

/* More than Linux can have; CPUs beyond would bypass the stocks. */
#define MAX_CPUS 65536

/* glibc 2.35 has them. Weak, so that the library loads where they are not; there it has no
 * sequences. */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

static int membarrier(int command, unsigned int flags, int cpu)
{
	return syscall(SYS_membarrier, command, flags, cpu) < 0 ? -errno : 0;
}

int pcpc_fence_sequences(int cpu)
{
	if (cpu < 0)
		return membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ, 0, 0);
	return membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ, MEMBARRIER_CMD_FLAG_CPU, cpu);
}

#if PCPC_HAVE_RSEQ
/* Registers the process, and makes sure by one call. Registering again is harmless. */
static bool membarrier_works(void)
{
	const long wanted = MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ |
			    MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ;
	long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);

	return commands > 0 && (commands & wanted) == wanted &&
	       membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ, 0, 0) == 0 &&
	       pcpc_fence_sequences(-1) == 0;
}

/* arm64 kernels from 6.19 to 7.0.13 never abort a sequence. Distributions that repaired theirs lose
 * speed only. */
static bool kernel_aborts_sequences(void)
{
#ifdef __aarch64__
	int major = 0, minor = 0, patch = 0;
	struct utsname name;

	if (uname(&name) < 0 || sscanf(name.release, "%d.%d.%d", &major, &minor, &patch) < 2)
		return false;
	if (major == 6)
		return minor < 19;
	return major < 6 || major > 7 || minor > 0 || patch > 13;
#else
	return true;
#endif
}

/* How much of struct rseq the kernel fills. */
static unsigned long feature_size(void)
{
	unsigned long kernel;

	/* These two sizes say only that the area is the original one; it has room up to 32, and the
	 * kernel tells the rest. */
	if (__rseq_size != RSEQ_SIZE_FIRST && __rseq_size != RSEQ_SIZE_ALLOCATED)
		return __rseq_size;
	kernel = getauxval(AT_RSEQ_FEATURE_SIZE);
	if (kernel < RSEQ_SIZE_FIRST)
		return RSEQ_SIZE_FIRST;
	return kernel < RSEQ_SIZE_ALLOCATED ? kernel : RSEQ_SIZE_ALLOCATED;
}
#endif

void pcpc_rseq_detect(struct pcpc_rseq *ret_rseq)
{
	*ret_rseq = (struct pcpc_rseq){ 0 };
#if PCPC_HAVE_RSEQ
	if (!&__rseq_offset || !&__rseq_size || !__rseq_size)
		return;
	struct pcpc_place place = { .rseq = __rseq_offset,
				    .field = __rseq_offset + PCPC_RSEQ_CPU_ID };

	if ((int32_t)pcpc_rseq_index(&place) < 0)
		return;
	ret_rseq->registered = true;
	ret_rseq->area = __rseq_offset;
	ret_rseq->mm_cid = feature_size() >= RSEQ_SIZE_MM_CID;
	ret_rseq->sequences = kernel_aborts_sequences() && membarrier_works();
#endif
}

/* The last number of a list like "0-3,8-11\n", or -1. */
static long last_in_list(const char *list)
{
	const char *end = list + strlen(list), *start;

	while (end > list && !isdigit((unsigned char)end[-1]))
		end--;
	for (start = end; start > list && isdigit((unsigned char)start[-1]); start--)
		;
	return start == end ? -1 : strtol(start, NULL, 10);
}

uint32_t pcpc_possible_cpus(void)
{
	int fd = open("/sys/devices/system/cpu/possible", O_RDONLY | O_CLOEXEC);
	char list[256] = "";
	long last = -1;
	ssize_t length;

	if (fd >= 0) {
		length = read(fd, list, sizeof(list) - 1);
		close(fd);
		/* Too long to be whole: its last number is not the highest. */
		if (length > 0 && length < (ssize_t)sizeof(list) - 1)
			last = last_in_list(list);
	}
	/* Without sysfs. Too small a number costs speed on the CPUs beyond it, for they bypass the
	 * stocks. */
	if (last < 0)
		last = sysconf(_SC_NPROCESSORS_CONF) - 1;
	if (last < 0)
		return 1;
	return last < MAX_CPUS ? (uint32_t)last + 1 : MAX_CPUS;
}

uint32_t pcpc_allowed_cpus(void)
{
	cpu_set_t *set;
	int cpus, count = 0;

	/* The kernel refuses a set smaller than its own. */
	for (cpus = CPU_SETSIZE; cpus <= 1 << 20 && !count; cpus *= 2) {
		set = CPU_ALLOC(cpus);
		if (!set)
			break;
		if (sched_getaffinity(0, CPU_ALLOC_SIZE(cpus), set) == 0)
			count = CPU_COUNT_S(CPU_ALLOC_SIZE(cpus), set);
		CPU_FREE(set);
	}
	return count > 0 ? (uint32_t)count : 1;
}

void *pcpc_map(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		return NULL;
	/* A huge page would make 8 CPUs' untouched stocks resident at once. Refused only where
	 * there are none. */
	(void)madvise(memory, bytes, MADV_NOHUGEPAGE);
	return memory;
}

void pcpc_unmap(void *memory, size_t bytes)
{
	munmap(memory, bytes);
}

uint64_t pcpc_resident(void *memory, size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), pages, done, i;
	unsigned char present[1024];
	uint64_t resident = 0;

	for (done = 0; done < bytes; done += pages * page) {
		pages = (bytes - done + page - 1) / page;
		if (pages > sizeof(present))
			pages = sizeof(present);
		if (mincore((char *)memory + done, pages * page, present) < 0)
			break;
		for (i = 0; i < pages; i++)
			resident += present[i] & 1 ? page : 0;
	}
	return resident;
}
