// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * guest_charge.c - a small charging subsystem in a kernel: one stock a CPU, used from tasks,
 * softirqs and hard interrupts; targeted drains by work on each CPU; and what a dead CPU leaves.
 *
 * A commit is this_cpu_cmpxchg(), which is one instruction for whatever can come between: nothing
 * is disabled, so a task may be moved to another CPU between its search and its commit. It then
 * commits to that CPU's stock, and only if the word there is equal, which is the same state
 * (lib/DESIGN.md, section 4). An insert looks at all slots, so interrupts are off for its few
 * instructions.
 */
#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/irqflags.h>
#include <linux/mutex.h>
#include <linux/workqueue.h>

#include "guest.h"

/* Operations of a CPU between two interrupts that are sent in the middle of one. The second is for
 * where none can come unless something is broken. Primes, so as to meet each kind of operation. */
#define RARELY 61
#define OFTEN 5

static bool guest_commit(u32 slot, u64 old_word, u64 new_word);
static bool guest_insert(u32 slot, u64 old_word, u64 new_word);

#define PCPC_COMMIT(stock, slot, old_word, new_word) guest_commit(slot, old_word, new_word)
#define PCPC_INSERT(stock, slot, old_word, new_word) guest_insert(slot, old_word, new_word)
#define PCPC_HOOK(point) guest_disturb(RARELY)
#include <pcpcharge/stock.h>

struct drain {
	struct work_struct work;
	unsigned long owners;
};

static DEFINE_PER_CPU_ALIGNED(struct pcpc_stock, stocks);
static DEFINE_PER_CPU(struct drain, drains);
static DEFINE_MUTEX(drain_mutex);
static struct guest_tree tree;
static atomic_long_t applied[GUEST_OWNERS + 1];
static int hotplug_state;

static const struct pcpc_marks marks = { GUEST_BATCH, GUEST_LOW, GUEST_DELTA_BATCH };

static bool stored(u32 slot, u64 old_word, u64 new_word)
{
	if (guest_twin != GUEST_COMMIT)
		return this_cpu_cmpxchg(stocks.slot[slot], old_word, new_word) == old_word;
	if (this_cpu_read(stocks.slot[slot]) != old_word)
		return false;
	guest_disturb(RARELY);
	this_cpu_write(stocks.slot[slot], new_word);
	return true;
}

static bool guest_commit(u32 slot, u64 old_word, u64 new_word)
{
	bool done = stored(slot, old_word, new_word);

	if (!done)
		guest_count(GUEST_RETRIED);
	return done;
}

/* Units of an owner in the running CPU's stock; -1 where it has no slot. */
static long stocked_here(u32 owner)
{
	u32 slot;

	for (slot = 0; slot < PCPC_STOCK_SLOTS; slot++) {
		u64 word = this_cpu_read(stocks.slot[slot]);

		if (pcpc_word_owner(word) == owner)
			return pcpc_word_count(word);
	}
	return -1;
}

static bool guest_insert(u32 slot, u64 old_word, u64 new_word)
{
	bool off = guest_twin != GUEST_INSERT, done;
	unsigned long flags = 0;

	if (off)
		local_irq_save(flags);
	done = stocked_here(pcpc_word_owner(new_word)) < 0;
	/* Does nothing while interrupts are off. */
	guest_disturb(OFTEN);
	done = done && guest_commit(slot, old_word, new_word);
	if (off)
		local_irq_restore(flags);
	return done;
}

/* After the stock's step, never during it: an interrupt that comes now finds the stock usable. */
static void settle(const struct pcpc_deferred *deferred)
{
	if (!deferred->owner)
		return;
	if (deferred->delta) {
		atomic_long_add(deferred->delta, &applied[deferred->owner]);
		guest_count(GUEST_DELTAS);
	}
	if (deferred->count)
		guest_counter_uncharge(&tree.owner[deferred->owner], deferred->count);
}

/*
 * With interrupts off what the stock can serve is known before, and nothing comes between. So this
 * is what G6 and semantics.md 1.5 say of a nested context: it is served, whatever it interrupted.
 */
static void expect_served(bool served)
{
	if (irqs_disabled() && !served)
		guest_count(GUEST_BYPASSED);
}

static bool consume(u32 owner, u32 n, int delta)
{
	bool able = stocked_here(owner) >= (long)n, served;
	struct pcpc_deferred deferred;

	served = pcpc_stock_consume(raw_cpu_ptr(&stocks), owner, n, delta, &marks, &deferred);
	settle(&deferred);
	expect_served(served || !able);
	return served;
}

static void refill(u32 owner, u32 n, int delta)
{
	struct pcpc_deferred deferred;

	pcpc_stock_refill(raw_cpu_ptr(&stocks), owner, n, delta, &marks, &deferred);
	expect_served((!n && !delta) || stocked_here(owner) >= 0);
	if (deferred.owner && deferred.owner != owner)
		guest_count(GUEST_EVICTED);
	else if (deferred.count > n)
		guest_count(GUEST_TRIMS);
	settle(&deferred);
}

bool guest_charge(u32 owner, u32 n, int delta)
{
	if (consume(owner, n, delta)) {
		guest_count(GUEST_HITS);
		return true;
	}
	guest_count(GUEST_MISSES);
	if (guest_counter_charge(&tree.owner[owner], GUEST_BATCH)) {
		refill(owner, GUEST_BATCH - n, delta);
		return true;
	}
	if (guest_counter_charge(&tree.owner[owner], n)) {
		refill(owner, 0, delta);
		return true;
	}
	guest_count(GUEST_REFUSED);
	return false;
}

void guest_uncharge(u32 owner, u32 n, int delta)
{
	refill(owner, n, delta);
}

static void settle_word(pcpc_word word)
{
	struct pcpc_deferred deferred;

	pcpc_defer(&deferred, pcpc_word_owner(word), pcpc_word_count(word), pcpc_word_delta(word));
	settle(&deferred);
}

unsigned int guest_take_here(unsigned long owners)
{
	unsigned int taken = 0;
	u32 slot;

	for (slot = 0; slot < PCPC_STOCK_SLOTS; slot++) {
		u64 word;

		do {
			word = this_cpu_read(stocks.slot[slot]);
			if (!(owners >> pcpc_word_owner(word) & 1))
				break;
		} while (this_cpu_cmpxchg(stocks.slot[slot], word, 0) != word);
		if (owners >> pcpc_word_owner(word) & 1) {
			settle_word(word);
			taken++;
		}
	}
	return taken;
}

void guest_check_here(void)
{
	unsigned long seen = 0;
	u32 slot;

	for (slot = 0; slot < PCPC_STOCK_SLOTS; slot++) {
		unsigned long owner = BIT(pcpc_word_owner(this_cpu_read(stocks.slot[slot])));

		if (seen & owner & ~1ul)
			guest_count(GUEST_DOUBLED);
		seen |= owner;
	}
}

static void drain_here(struct work_struct *work)
{
	struct drain *drain = container_of(work, struct drain, work);
	unsigned long flags;

	local_irq_save(flags);
	guest_check_here();
	local_irq_restore(flags);
	guest_count_add(GUEST_DRAINED, guest_take_here(drain->owners));
}

/* Advice, from another CPU: a word that comes after this look is not part of the drain. */
static bool holds_any(int cpu, unsigned long owners)
{
	const struct pcpc_stock *stock = per_cpu_ptr(&stocks, cpu);
	u32 slot;

	for (slot = 0; slot < PCPC_STOCK_SLOTS; slot++)
		if (owners >> pcpc_word_owner(READ_ONCE(stock->slot[slot])) & 1)
			return true;
	return false;
}

void guest_drain(unsigned long owners)
{
	cpumask_var_t asked;
	int cpu;

	if (!zalloc_cpumask_var(&asked, GFP_KERNEL))
		return;
	mutex_lock(&drain_mutex);
	cpus_read_lock();
	for_each_online_cpu(cpu) {
		struct drain *drain = per_cpu_ptr(&drains, cpu);

		if (!holds_any(cpu, owners))
			continue;
		drain->owners = owners;
		cpumask_set_cpu(cpu, asked);
		queue_work_on(cpu, system_wq, &drain->work);
	}
	for_each_cpu(cpu, asked) flush_work(&per_cpu_ptr(&drains, cpu)->work);
	cpus_read_unlock();
	mutex_unlock(&drain_mutex);
	free_cpumask_var(asked);
}

/* Runs before the CPU does: its stock was emptied when it went. */
static int cpu_comes(unsigned int cpu)
{
	u32 slot;

	guest_count(GUEST_ON);
	for (slot = 0; slot < PCPC_STOCK_SLOTS; slot++)
		if (per_cpu_ptr(&stocks, cpu)->slot[slot])
			guest_count(GUEST_LEFT);
	return 0;
}

/* Runs on another CPU, when nothing runs on this one any more (semantics.md, 1.8). */
static int cpu_is_dead(unsigned int cpu)
{
	struct pcpc_stock *stock = per_cpu_ptr(&stocks, cpu);
	u32 slot;

	guest_count(GUEST_OFF);
	for (slot = 0; slot < PCPC_STOCK_SLOTS && guest_twin != GUEST_DEATH; slot++) {
		settle_word(stock->slot[slot]);
		stock->slot[slot] = 0;
	}
	return 0;
}

int guest_charge_start(void)
{
	int cpu;

	guest_tree_init(&tree);
	for_each_possible_cpu(cpu)
		INIT_WORK(&per_cpu_ptr(&drains, cpu)->work, drain_here);
	hotplug_state = cpuhp_setup_state_nocalls(CPUHP_BP_PREPARE_DYN, "pcpc_guest:stocks",
						  cpu_comes, cpu_is_dead);
	return hotplug_state < 0 ? hotplug_state : 0;
}

void guest_charge_stop(void)
{
	cpuhp_remove_state_nocalls(hotplug_state);
}

static void lost(long difference)
{
	guest_count_add(GUEST_LOST, difference < 0 ? -difference : difference);
}

/* All CPUs' words of an owner, those of CPUs that are off too. */
static void sum_stocked(u32 owner, long *ret_count, long *ret_delta)
{
	u32 slot;
	int cpu;

	*ret_count = *ret_delta = 0;
	for_each_possible_cpu(cpu) {
		for (slot = 0; slot < PCPC_STOCK_SLOTS; slot++) {
			u64 word = per_cpu_ptr(&stocks, cpu)->slot[slot];

			if (pcpc_word_owner(word) != owner)
				continue;
			*ret_count += pcpc_word_count(word);
			*ret_delta += pcpc_word_delta(word);
		}
	}
}

/* G1 at rest: usage is what is held and stocked, at every level; statistics are what was asked for.
 */
static void check_sums(const long *held, const long *moved)
{
	long count, delta, group[GUEST_GROUPS] = { 0 }, root = 0;
	u32 owner, i;

	for (owner = 1; owner <= GUEST_OWNERS; owner++) {
		sum_stocked(owner, &count, &delta);
		lost(atomic_long_read(&tree.owner[owner].usage) - held[owner] - count);
		lost(atomic_long_read(&applied[owner]) + delta - moved[owner]);
		group[owner % GUEST_GROUPS] += held[owner] + count;
		root += held[owner] + count;
	}
	for (i = 0; i < GUEST_GROUPS; i++)
		lost(atomic_long_read(&tree.group[i].usage) - group[i]);
	lost(atomic_long_read(&tree.root.usage) - root);
}

void guest_charge_check(const long *held, const long *moved)
{
	long count, delta;
	u32 owner;

	check_sums(held, moved);
	guest_drain(~1ul);
	for (owner = 1; owner <= GUEST_OWNERS; owner++) {
		sum_stocked(owner, &count, &delta);
		lost(count);
		lost(delta);
	}
	check_sums(held, moved);
	if (held[1] > GUEST_MAX)
		lost(held[1] - GUEST_MAX);
}
