// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * stat_storm_read.c - flushes and reads, and what must be true of an item that only ever rises: it
 * never falls, is never above what was begun, and an exact read is never below what had returned.
 */
#define _GNU_SOURCE
#include "stat_storm.h"

static void raise_seen(struct node *node, int64_t value)
{
	int64_t seen = atomic_load(&node->seen);

	while (seen < value && !atomic_compare_exchange_weak(&node->seen, &seen, value))
		;
}

static void check_rising(struct node *node, int64_t value, int64_t least, const char *how)
{
	int64_t most = atomic_load(&node->begun);

	if (value < least || value > most)
		violation("%s at depth %" PRIu32 ": %" PRId64 ", not in %" PRId64 "..%" PRId64, how,
			  node->owner->depth, value, least, most);
	raise_seen(node, value);
}

static void read_exactly(struct node *node)
{
	int64_t least = atomic_load(&node->finished), seen = atomic_load(&node->seen);

	check_rising(node, pcpc_stat_read_exact(node->owner, RISING), least > seen ? least : seen,
		     "exact read");
}

static void read_cheaply(struct node *node)
{
	int64_t seen = atomic_load(&node->seen);

	check_rising(node, pcpc_stat_read(node->owner, RISING), seen, "read");
}

/* Of an owner that the caller has a reference on. */
void read_node(struct thread *self, struct node *node)
{
	bool section = below(&self->random, 8) == 0;
	uint64_t what = below(&self->random, 20);

	/* There an exact read may miss what somebody has just evicted. */
	if (section && what > 0)
		urcu_bp_read_lock();
	if (what == 0) {
		read_exactly(node);
		self->counts[EXACT_READS]++;
	} else if (what < 6) {
		pcpc_stat_flush(node->owner);
		self->counts[FLUSHES]++;
	} else if (what < 7) {
		(void)pcpc_stat_read(node->owner, COUPLED);
		(void)pcpc_stat_read_node(node->owner, 1, PAIRED);
	} else if (what < 8) {
		(void)pcpc_stat_read_exact(node->owner, PAIRED);
	} else {
		read_cheaply(node);
		(void)pcpc_stat_read_local(node->owner, RISING);
		self->counts[READS]++;
	}
	if (section && what > 0)
		urcu_bp_read_unlock();
}
