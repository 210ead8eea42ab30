// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * budget_trace.c - counts the instructions that hits do execute, by single steps.
 *
 * Stepping aborts every restartable sequence, for the kernel sees the thread stop inside one. So
 * the cache is given a false rseq area, of which the kernel knows nothing: a thread-local variable
 * that says CPU 0. Nothing is aborted then, and nothing need be, for there is one thread. The slow
 * paths that fill the stock are those of the atomic engine.
 *
 * Prints a function's name and how many instructions one call of it took, its return included.
 */
#define _GNU_SOURCE
#include "cache_private.h"

#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define OWNER 10
#define STOCKED 40
#define STEPS 100000 /* in all; what is not found by then is not executed */

bool hit_consume(struct pcpc_cache *cache, uint32_t owner, struct pcpc_deferred *ret_deferred);
void hit_refill(struct pcpc_cache *cache, uint32_t owner, struct pcpc_deferred *ret_deferred);

static const struct {
	const char *name;
	void (*entry)(void);
} functions[] = {
	{ "pcpc_cache_consume", (void (*)(void))pcpc_cache_consume },
	{ "pcpc_cache_refill", (void (*)(void))pcpc_cache_refill },
	{ "hit_consume", (void (*)(void))hit_consume },
	{ "hit_refill", (void (*)(void))hit_refill },
};
#define FUNCTIONS (sizeof(functions) / sizeof(*functions))

static _Thread_local struct {
	uint32_t cpu_id_start, cpu_id;
	uint64_t rseq_cs;
	uint32_t flags, node_id, mm_cid, padding;
} false_area __attribute__((aligned(32)));

static struct pcpc_cache *make_cache(const struct pcpc_marks *marks)
{
	struct pcpc_cache_config config = { .size = sizeof(config), .engine = PCPC_ENGINE_ATOMIC };
	struct pcpc_deferred deferred;
	struct pcpc_cache *cache;

	if (pcpc_cache_create(&config, &cache) < 0)
		return NULL;
	cache->fast.area.rseq = (char *)&false_area - (char *)__builtin_thread_pointer();
	cache->fast.area.field = cache->fast.area.rseq + PCPC_RSEQ_CPU_ID;
	cache->fast.limit = 1;
	cache->fast_inline = cache->fast;
	pcpc_cache_refill(cache, OWNER, STOCKED, 0, marks, &deferred);
	return cache;
}

/* The process that is stepped through. */
static int run_hits(struct pcpc_cache *cache, const struct pcpc_marks *marks)
{
	struct pcpc_deferred deferred;
	bool right = true;

	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
		return 77;
	raise(SIGSTOP);
	right = pcpc_cache_consume(cache, OWNER, 3, 0, marks, &deferred) && right;
	pcpc_cache_refill(cache, OWNER, 2, 0, marks, &deferred);
	right = !deferred.owner && hit_consume(cache, OWNER, &deferred) && right;
	hit_refill(cache, OWNER, &deferred);
	right = !deferred.owner && right;
	return right && pcpc_cache_stocked(cache, OWNER) == STOCKED - 3 + 2 ? 0 : 1;
}

static bool step(pid_t child, struct user_regs_struct *ret_registers)
{
	int status;

	return ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) == 0 &&
	       waitpid(child, &status, 0) == child && WIFSTOPPED(status) &&
	       ptrace(PTRACE_GETREGS, child, NULL, ret_registers) == 0;
}

/* Steps to each function in turn, and through it. Returns how many of them were seen. */
static unsigned int step_through(pid_t child)
{
	unsigned int found = 0, steps, entered = 0;
	struct user_regs_struct registers;
	unsigned long long outside = 0;

	for (steps = 0; steps < STEPS && found < FUNCTIONS && step(child, &registers); steps++) {
		if (!outside && registers.rip == (uintptr_t)functions[found].entry) {
			outside = registers.rsp + sizeof(void *);
			entered = steps;
		} else if (outside && registers.rsp == outside) {
			printf("%s %u\n", functions[found++].name, steps - entered);
			outside = 0;
		}
	}
	return found;
}

int main(void)
{
	static const struct pcpc_marks marks = { 64, 32, 64 };
	struct pcpc_cache *cache = make_cache(&marks);
	unsigned int found;
	int status;
	pid_t child;

	if (!cache)
		return 77;
	child = fork();
	if (child == 0)
		_exit(run_hits(cache, &marks));
	if (child < 0 || waitpid(child, &status, 0) != child || !WIFSTOPPED(status))
		return 77;
	found = step_through(child);
	ptrace(PTRACE_CONT, child, NULL, NULL);
	if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status))
		return 1;
	pcpc_cache_destroy(cache);
	return found == FUNCTIONS ? 0 : 1;
}
