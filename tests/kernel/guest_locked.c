// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * guest_locked.c - memcg's locked stock of seven owners, for contrast: what a lock and settling
 * under it cost the contexts that interrupt its holder (semantics.md, 1.2 to 1.5, and bug H6).
 *
 * The lock is a byte that is tested and set with preemption disabled: nothing but an interrupt on
 * the same CPU can find it taken, and an interrupt must not wait for it. Its charge then goes to
 * the counters of all levels, and so does its uncharge.
 */
#include <linux/cpumask.h>
#include <linux/preempt.h>

#include "guest.h"

#define SLOTS 7

struct locked_stock {
	u8 taken, settling, hand;
	u8 count[SLOTS], owner[SLOTS];
};

static DEFINE_PER_CPU_ALIGNED(struct locked_stock, locked_stocks);
static struct guest_tree tree;

/* NULL: an operation that this one interrupted has it. */
static struct locked_stock *take(void)
{
	struct locked_stock *stock;

	preempt_disable();
	stock = this_cpu_ptr(&locked_stocks);
	if (READ_ONCE(stock->taken)) {
		guest_count(GUEST_LOCKED_BYPASSED);
		if (READ_ONCE(stock->settling))
			guest_count(GUEST_LOCKED_SETTLING);
		preempt_enable();
		return NULL;
	}
	WRITE_ONCE(stock->taken, 1);
	barrier();
	return stock;
}

static void release(struct locked_stock *stock)
{
	barrier();
	WRITE_ONCE(stock->taken, 0);
	preempt_enable();
}

/* As memcg did before deferral: the counters are touched while the stock is taken. */
static void settle(struct locked_stock *stock, u32 owner, u32 n)
{
	WRITE_ONCE(stock->settling, 1);
	barrier();
	guest_counter_uncharge(&tree.owner[owner], n);
	barrier();
	WRITE_ONCE(stock->settling, 0);
}

static bool consume(u32 owner, u32 n)
{
	struct locked_stock *stock = take();
	bool served = false;
	u32 slot;

	if (!stock)
		return false;
	for (slot = 0; slot < SLOTS && stock->owner[slot] != owner; slot++)
		;
	if (slot < SLOTS && stock->count[slot] >= n) {
		stock->count[slot] -= n;
		served = true;
	}
	release(stock);
	return served;
}

/* The owner's slot, else a free one, else that of a victim, who is settled. */
static u32 make_slot(struct locked_stock *stock, u32 owner)
{
	u32 slot;

	for (slot = 0; slot < SLOTS; slot++)
		if (stock->owner[slot] == owner)
			return slot;
	for (slot = 0; slot < SLOTS; slot++)
		if (!stock->owner[slot])
			break;
	if (slot == SLOTS) {
		slot = stock->hand;
		stock->hand = (slot + 1) % SLOTS;
		settle(stock, stock->owner[slot], stock->count[slot]);
	}
	stock->owner[slot] = owner;
	stock->count[slot] = 0;
	return slot;
}

static void refill(u32 owner, u32 n)
{
	struct locked_stock *stock = take();
	u32 slot, sum;

	if (!stock) {
		guest_counter_uncharge(&tree.owner[owner], n);
		return;
	}
	slot = make_slot(stock, owner);
	sum = stock->count[slot] + n;
	stock->count[slot] = sum <= GUEST_BATCH ? sum : GUEST_LOW;
	if (sum > GUEST_BATCH)
		settle(stock, owner, sum - GUEST_LOW);
	release(stock);
}

bool guest_locked_charge(u32 owner, u32 n)
{
	if (consume(owner, n)) {
		guest_count(GUEST_LOCKED_HITS);
		return true;
	}
	if (guest_counter_charge(&tree.owner[owner], GUEST_BATCH)) {
		refill(owner, GUEST_BATCH - n);
		return true;
	}
	return guest_counter_charge(&tree.owner[owner], n);
}

void guest_locked_uncharge(u32 owner, u32 n)
{
	refill(owner, n);
}

void guest_locked_start(void)
{
	guest_tree_init(&tree);
}

/* That the contrast is a stock which works: it loses nothing either. */
void guest_locked_check(const long *held)
{
	long sum[GUEST_OWNERS + 1] = { 0 };
	u32 owner, slot;
	int cpu;

	for_each_possible_cpu(cpu) {
		const struct locked_stock *stock = per_cpu_ptr(&locked_stocks, cpu);

		for (slot = 0; slot < SLOTS; slot++)
			sum[stock->owner[slot]] += stock->count[slot];
	}
	for (owner = 1; owner <= GUEST_OWNERS; owner++)
		if (atomic_long_read(&tree.owner[owner].usage) != held[owner] + sum[owner])
			guest_count(GUEST_LOST);
}
