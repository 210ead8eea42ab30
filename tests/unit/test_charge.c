// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_charge.c - charging and uncharging below every limit: hits and misses, how much is taken
 * beyond what is asked, who serves a miss, what an eviction does, batches, amounts.
 *
 * Figures are worked out by hand from section 7: a slot that ran dry takes a full batch in all, an
 * owner without a slot here n + batch/8; an interior owner's batch is 8 times that of the level
 * below; a slot above high is trimmed to half.
 */
#define _GNU_SOURCE
#include "owner_support.h"

static void expect(const struct pcpc_owner *owner, uint64_t usage, uint64_t stock)
{
	ck_assert_uint_eq(pcpc_owner_usage(owner), usage);
	ck_assert_uint_eq(stock_of(owner), stock);
}

/* Section 7, surplus; section 9, usage and stocked. */
START_TEST(the_first_miss_takes_an_eighth_of_a_batch_more)
{
	struct pcpc_owner *leaf;

	if (!open_domain(_i, 64, 0))
		return;
	leaf = child_of(root);
	charge(leaf, 1);
	expect(leaf, 1 + 8, 8);
	expect(root, 9 + 64, 64); /* its batch is 512 */
	ck_assert_uint_eq(pcpc_owner_usage_exact(leaf), 1);
	ck_assert_uint_eq(pcpc_owner_usage_exact(root), 1);
	ck_assert_uint_eq(pcpc_owner_stocked(leaf), 8);
	ck_assert_uint_eq(pcpc_owner_stocked(root), 72);
	uncharge(leaf, 1);
	expect(leaf, 9, 9);
}
END_TEST

/* Section 7: "consume(o, n) hits -> done": no counter moves, at any level. Semantics 3, a. */
START_TEST(hits_touch_no_counter)
{
	struct pcpc_owner *leaf;
	int i;

	if (!open_domain(_i, 64, 0))
		return;
	leaf = child_of(child_of(root));
	charge(leaf, 1);
	for (i = 7; i >= 0; i--) {
		charge(leaf, 1);
		expect(leaf, 9, (uint64_t)i);
		expect(leaf->parent, 9 + 64, 64);
		expect(root, 9 + 64 + 512, 512);
	}
	for (i = 1; i <= 9; i++) {
		uncharge(leaf, 1);
		expect(leaf, 9, (uint64_t)i);
	}
	for (i = 0; i < 1000; i++) {
		charge(leaf, 9);
		uncharge(leaf, 9);
		expect(leaf, 9, 9);
	}
	expect(leaf->parent, 9 + 64, 64);
	expect(root, 9 + 64 + 512, 512);
}
END_TEST

/* Section 7: "a slot that ran dry takes a full batch in all". */
START_TEST(a_dry_slot_takes_a_full_batch_in_all)
{
	struct pcpc_owner *leaf;
	int i;

	if (!open_domain(_i, 64, 0))
		return;
	leaf = child_of(root);
	charge(leaf, 6); /* takes 14, stocks 8 */
	charge(leaf, 5); /* a hit */
	expect(leaf, 14, 3);
	charge(leaf, 5); /* too few: takes 64 in all, 59 of them beside the 3 */
	expect(leaf, 78, 62);
	charge(leaf, 62);
	expect(leaf, 78, 0);
	expect(root, 14 + 64, 0);
	charge(leaf, 1);
	expect(leaf, 142, 63);
	/* the root was asked for 64, had none, and takes 512 in all */
	expect(root, 78 + 512, 448);
	/* for more than a batch there is no surplus */
	charge(leaf, 100);
	expect(leaf, 242, 63);
	expect(root, 590, 348);
	for (i = 0; i < 63; i++)
		charge(leaf, 1);
	expect(leaf, 242, 0);
	expect(root, 590, 348);
	uncharge(leaf, 6 + 5 + 5 + 62 + 1 + 100 + 63);
}
END_TEST

/* Section 7: "charge that amount to the parent, the same way (its stock may serve it)". */
START_TEST(the_parents_stock_serves_a_childs_miss)
{
	struct pcpc_owner *mid, *leaf[9];
	uint64_t stock = 64;
	int i;

	if (!open_domain(_i, 64, 0))
		return;
	mid = child_of(root);
	for (i = 0; i < 9; i++)
		leaf[i] = child_of(mid);
	charge(leaf[0], 1);
	expect(mid, 73, 64);
	expect(root, 585, 512);
	/* seven siblings, each new here: nothing above their own counters changes */
	for (i = 1; i <= 7; i++) {
		charge(leaf[i], 1);
		stock -= 9;
		expect(leaf[i], 9, 8);
		expect(mid, 73, stock);
		expect(root, 585, 512);
	}
	/* 1 is left, 9 are asked for: a full batch in all, from the root's stock */
	charge(leaf[8], 1);
	expect(mid, 73 + 512, 1 + 503);
	expect(root, 585, 0);
	for (i = 0; i < 9; i++)
		uncharge(leaf[i], 1);
}
END_TEST

/* Section 4: above high a slot is trimmed to low. Section 7: settle "refill the parent's stock". */
START_TEST(what_is_trimmed_goes_to_the_parents_stock)
{
	struct pcpc_owner *leaf;

	if (!open_domain(_i, 64, 0))
		return;
	leaf = child_of(root);
	charge(leaf, 200);
	expect(leaf, 208, 8);
	expect(root, 208 + 64, 64);
	uncharge(leaf, 56); /* 64: still fits */
	expect(leaf, 208, 64);
	uncharge(leaf, 4); /* 68: 32 stay, 36 go */
	expect(leaf, 172, 32);
	expect(root, 272, 100);
	/* more than a batch bypasses the stock: the parent's takes it */
	uncharge(leaf, 100);
	expect(leaf, 72, 32);
	expect(root, 272, 200);
	uncharge(leaf, 40);
}
END_TEST

/* Section 7: units that the parent's stock has no room for go on up. */
START_TEST(settling_climbs_level_by_level)
{
	struct pcpc_owner *mid, *leaf;

	if (!open_domain(_i, 64, 0))
		return;
	mid = child_of(root);
	leaf = child_of(mid);
	charge(leaf, 100000);
	expect(leaf, 100008, 8);
	expect(mid, 100008 + 64, 64);
	expect(root, 100072 + 512, 512);
	uncharge(leaf, 500); /* bypasses 64; mid: 564 > 512, keeps 256, 308 go; root: 820 */
	expect(leaf, 99508, 8);
	expect(mid, 100072 - 308, 256);
	expect(root, 100584, 820);
	uncharge(leaf, 99500); /* bypasses 64, 512 and 4,096 */
	expect(leaf, 8, 8);
	expect(mid, 264, 256);
	expect(root, 1084, 820);
}
END_TEST

static void use_line(struct pcpc_owner **filler, int nr)
{
	int i;

	for (i = 0; i < nr; i++) {
		filler[i] = child_of(root);
		charge(filler[i], 1);
	}
}

static struct pcpc_stock *line_here(const struct pcpc_owner *owner)
{
	struct pcpc_cache *cache = domain->cache;
	uint32_t index, slot;

	for (index = 0; index < cache->nr_indices; index++)
		for (slot = 0; slot < PCPC_STOCK_SLOTS; slot++)
			if (pcpc_word_owner(
				    pcpc_cache_stock(cache, index, owner->id)->slot[slot]) ==
			    owner->id)
				return pcpc_cache_stock(cache, index, owner->id);
	ck_abort_msg("owner %u has no slot", owner->id);
}

/* The next eviction takes this owner's slot. The hand is a hint, so it may be put anywhere. */
static void point_hand_at(const struct pcpc_owner *victim)
{
	struct pcpc_stock *stock = line_here(victim);
	uint32_t slot;

	for (slot = 0; slot < PCPC_STOCK_SLOTS; slot++)
		if (pcpc_word_owner(stock->slot[slot]) == victim->id)
			stock->hand = slot;
	ck_assert_uint_gt(stock_of(victim), 0);
}

/* Section 7: a leaf's refill evicts; what the victim had goes to its parent's stock. */
START_TEST(a_victim_of_a_leaf_is_settled_into_its_parents_stock)
{
	struct pcpc_owner *mid, *victim, *last, *filler[5];
	int i;

	if (!open_domain(_i, 64, 1))
		return;
	ck_assert_int_eq(pcpc_owner_set_batch(root, PCPC_BATCH_NONE), 0);
	mid = child_of(root);
	victim = child_of(mid);
	last = make_owner(root, 0, 64);
	charge(victim, 1);
	use_line(filler, 5);
	expect(victim, 9, 8);
	expect(mid, 73, 64);
	point_hand_at(victim);
	charge(last, 1);
	expect(last, 9, 8);
	expect(victim, 1, 0);
	expect(mid, 73, 72);
	ck_assert_uint_eq(pcpc_owner_usage_exact(root), 7);
	uncharge(victim, 1);
	uncharge(last, 1);
	for (i = 0; i < 5; i++)
		uncharge(filler[i], 1);
}
END_TEST

struct family {
	struct pcpc_owner *mid, *leaf;	   /* mid will want a slot */
	struct pcpc_owner *other, *victim; /* victim will lose its own */
	struct pcpc_owner *filler[4];
};

/* A line of other, victim, leaf and four more, where the hand is on victim and mid has no slot. */
static void full_line(struct family *family)
{
	ck_assert_int_eq(pcpc_owner_set_batch(root, PCPC_BATCH_NONE), 0);
	family->mid = child_of(root);
	family->leaf = child_of(family->mid);
	family->other = child_of(root);
	family->victim = child_of(family->other);
	charge(family->victim, 1);
	expect(family->other, 73, 64);
	use_line(family->filler, 4);
}

static void end_family(struct family *family)
{
	int i;

	for (i = 0; i < 4; i++)
		uncharge(family->filler[i], 1);
	uncharge(family->victim, 1);
}

/* Section 7: "A refill of an interior owner may evict, but its victim is settled by walking the
 * counters to the root, with no further refill: nothing cascades sideways." Here the interior
 * refill is the surplus of a charge. */
START_TEST(a_victim_of_an_interior_owners_charge_is_settled_straight)
{
	struct family family;

	if (!open_domain(_i, 64, 1))
		return;
	full_line(&family);
	point_hand_at(family.victim);
	/* the line: other, victim, four fillers; the seventh is for leaf, and mid finds it full */
	charge(family.leaf, 100);
	expect(family.leaf, 108, 8);
	ck_assert_uint_eq(slots_of(family.mid).slots, 1);
	ck_assert_uint_eq(slots_of(family.victim).slots, 0);
	expect(family.victim, 1, 0);
	expect(family.other, 73 - 8, 64);
	uncharge(family.leaf, 100);
	end_family(&family);
}
END_TEST

/* The same where the interior refill is what an uncharge has trimmed off a leaf. */
START_TEST(a_victim_of_an_interior_owners_settlement_is_settled_straight)
{
	struct family family;
	uint64_t before;

	if (!open_domain(_i, 64, 1))
		return;
	full_line(&family);
	ck_assert_int_eq(pcpc_owner_set_batch(family.mid, PCPC_BATCH_NONE), 0);
	charge(family.leaf, 100);
	ck_assert_int_eq(pcpc_owner_set_batch(family.mid, 512), 0);
	expect(family.leaf, 108, 8);
	expect(family.mid, 108, 0);
	point_hand_at(family.victim);
	before = pcpc_owner_usage(root);
	uncharge(family.leaf, 60); /* 68: keeps 32, 36 go to mid, which evicts victim's 8 */
	expect(family.leaf, 72, 32);
	expect(family.mid, 108, 36);
	expect(family.victim, 1, 0);
	expect(family.other, 73 - 8, 64);
	ck_assert_uint_eq(pcpc_owner_usage(root), before - 8);
	uncharge(family.leaf, 40);
	end_family(&family);
}
END_TEST

/* Section 7: "batch of an interior owner is 8 times that of the level below, within the count
 * field". */
START_TEST(batches_grow_eightfold_with_every_level)
{
	static const uint32_t batch[] = { 64,	  512,	   4096,	   32768,
					  262144, 2097152, PCPC_COUNT_MAX, PCPC_COUNT_MAX };
	struct pcpc_owner *owner;
	int level;

	if (!open_domain(_i, 64, 0))
		return;
	owner = root;
	ck_assert_uint_eq(atomic_load(&books_of(root)->own_batch), 64);
	for (level = 0; level < 7; level++)
		owner = child_of(owner);
	for (level = 0; level < 8; level++, owner = owner->parent)
		ck_assert_uint_eq(atomic_load(&books_of(owner)->own_batch), batch[level]);
}
END_TEST

/* owner.h: "batch: 0: the domain's"; one that was given stays, and counts for the level above. */
START_TEST(a_given_batch_stays_and_counts_above)
{
	struct pcpc_owner *mid, *leaf;

	if (!open_domain(_i, 64, 0))
		return;
	mid = make_owner(root, 0, 100);
	ck_assert_uint_eq(atomic_load(&books_of(root)->own_batch), 800);
	leaf = make_owner(mid, 0, 1000);
	ck_assert_uint_eq(atomic_load(&books_of(mid)->own_batch), 100);
	charge(leaf, 1);
	expect(leaf, 126, 125);
	ck_assert_int_eq(pcpc_owner_set_batch(leaf, 16), 0);
	ck_assert_uint_eq(atomic_load(&books_of(leaf)->own_batch), 16);
	ck_assert_int_eq(pcpc_owner_set_batch(leaf, 0), 0);
	ck_assert_uint_eq(atomic_load(&books_of(leaf)->own_batch), 64);
	uncharge(leaf, 1);
}
END_TEST

/* owner.h: "PCPC_BATCH_NONE: this owner does not stock". */
START_TEST(an_owner_without_a_batch_stocks_nothing)
{
	struct pcpc_owner *leaf, *below;
	int i;

	if (!open_domain(_i, 64, 0))
		return;
	leaf = make_owner(root, 0, PCPC_BATCH_NONE);
	for (i = 1; i <= 200; i++) {
		charge(leaf, 1);
		expect(leaf, (uint64_t)i, 0);
	}
	ck_assert_uint_eq(slots_of(leaf).slots, 0);
	expect(root, 201, 1); /* 1 + 8, and a full batch of 64 whenever those were used */
	for (i = 199; i >= 0; i--) {
		uncharge(leaf, 1);
		expect(leaf, (uint64_t)i, 0);
	}
	expect(root, 36, 36); /* 65 after 64 of them, and then after every 33: trimmed to 32 */
	/* its children may stock all the same */
	below = child_of(leaf);
	charge(below, 1);
	expect(below, 9, 8);
	uncharge(below, 1);
}
END_TEST

/* The same where the domain says so for everybody. */
START_TEST(a_domain_without_a_batch_is_exact_at_every_moment)
{
	struct pcpc_owner *leaf;

	if (!open_domain(_i, PCPC_BATCH_NONE, 0))
		return;
	leaf = child_of(child_of(root));
	charge(leaf, 7);
	expect(leaf, 7, 0);
	expect(leaf->parent, 7, 0);
	expect(root, 7, 0);
	uncharge(leaf, 3);
	expect(root, 4, 0);
	uncharge(leaf, 4);
}
END_TEST

/* owner.h, pcpc_owner_set_batch(): "Slots that hold more are trimmed by their next use". Section 4:
 * "units that are stocked may always be used, also when high has just become 0". */
START_TEST(a_smaller_batch_trims_at_the_next_refill)
{
	struct pcpc_owner *leaf;

	if (!open_domain(_i, 64, 0))
		return;
	leaf = child_of(root);
	charge(leaf, 10);
	uncharge(leaf, 10);
	charge(leaf, 18);
	charge(leaf, 1);
	expect(leaf, 82, 63);
	ck_assert_int_eq(pcpc_owner_set_batch(leaf, 8), 0);
	charge(leaf, 3);
	expect(leaf, 82, 60);
	uncharge(leaf, 1);
	expect(leaf, 82 - 57, 4);
	ck_assert_int_eq(pcpc_owner_set_batch(leaf, PCPC_BATCH_NONE), 0);
	charge(leaf, 3);
	expect(leaf, 25, 1);
	uncharge(leaf, 3);
	expect(leaf, 22, 1);
	charge(leaf, 1);
	expect(leaf, 22, 0);
	uncharge(leaf, 22);
	expect(leaf, 0, 0);
}
END_TEST

/* api.md: "Amounts are uint64_t units"; charge.h: 0..INT64_MAX. The shifts of the slot word wrap at
 * 2^22, 2^42 and 2^44. G1 at every one. */
START_TEST(every_amount_up_to_the_largest_is_counted)
{
	static const uint64_t amounts[] = { 1,
					    63,
					    64,
					    65,
					    PCPC_COUNT_MAX - 1,
					    PCPC_COUNT_MAX,
					    PCPC_COUNT_MAX + 1ull,
					    1ull << 32,
					    (1ull << 32) + 1,
					    1ull << 42,
					    (1ull << 42) + 1,
					    (1ull << 44) + 3,
					    1ull << 62,
					    INT64_MAX - 1,
					    INT64_MAX };
	static const uint32_t batches[] = { 64, PCPC_COUNT_MAX, PCPC_BATCH_NONE };
	struct pcpc_owner *leaf;
	unsigned int i, b, again;

	if (!open_domain(_i, 64, 0))
		return;
	for (b = 0; b < 3; b++) {
		leaf = make_owner(child_of(root), 0, batches[b]);
		for (i = 0; i < sizeof(amounts) / sizeof(amounts[0]); i++) {
			/* first without a slot, then with an own one */
			for (again = 0; again < 3; again++) {
				charge(leaf, amounts[i]);
				ck_assert_uint_eq(pcpc_owner_usage_exact(leaf), amounts[i]);
				ck_assert_uint_eq(pcpc_owner_usage_exact(leaf->parent), amounts[i]);
				ck_assert_uint_eq(pcpc_owner_usage_exact(root), amounts[i]);
				uncharge(leaf, amounts[i]);
				ck_assert_uint_eq(pcpc_owner_usage_exact(leaf), 0);
				ck_assert_uint_eq(pcpc_owner_usage_exact(root), 0);
			}
		}
	}
	ck_assert_uint_eq(events_of(root, PCPC_EVENT_UNDERFLOW), 0);
}
END_TEST

/* owner.h: PCPC_UNLIMITED is INT64_MAX, and a counter never goes beyond. */
START_TEST(an_unlimited_owner_is_full_at_int64_max)
{
	struct pcpc_owner *leaf, *sibling;

	if (!open_domain(_i, 64, 0))
		return;
	leaf = child_of(root);
	sibling = child_of(root);
	charge(leaf, INT64_MAX - 10);
	charge(sibling, 10);
	ck_assert_int_eq(pcpc_charge(leaf, 1), -EDQUOT);
	ck_assert_int_eq(pcpc_charge(leaf, INT64_MAX), -EDQUOT);
	ck_assert_uint_eq(pcpc_owner_usage(root), INT64_MAX);
	uncharge(sibling, 3);
	charge(leaf, 3);
	ck_assert_int_eq(pcpc_charge(sibling, 1), -EDQUOT);
	uncharge(leaf, INT64_MAX - 7);
	uncharge(sibling, 7);
}
END_TEST

/* Required: "NULL, amounts above INT64_MAX ...: clear errors, nothing changed"; charge.h. */
START_TEST(bad_arguments_change_nothing)
{
	static const uint64_t amounts[] = { (uint64_t)INT64_MAX + 1, UINT64_MAX - 1, UINT64_MAX };
	struct pcpc_refusal refusal, untouched;
	struct pcpc_owner *leaf;
	unsigned int i;

	if (!open_domain(_i, 64, 0))
		return;
	leaf = child_of(root);
	memset(&refusal, 0x5a, sizeof(refusal));
	untouched = refusal;
	ck_assert_int_eq(pcpc_charge(NULL, 1), -EINVAL);
	ck_assert_int_eq(pcpc_charge_flags(NULL, 1, 0, &refusal), -EINVAL);
	ck_assert_int_eq(pcpc_charge_stat(NULL, 1, 1), -EINVAL);
	ck_assert_int_eq(pcpc_charge_wait(NULL, 1, 0), -EINVAL);
	pcpc_uncharge(NULL, 1);
	pcpc_uncharge_stat(NULL, 1, 1);
	charge(leaf, 1); /* so that there is a slot */
	for (i = 0; i < 3; i++) {
		ck_assert_int_eq(pcpc_charge(leaf, amounts[i]), -EINVAL);
		ck_assert_int_eq(pcpc_charge_flags(leaf, amounts[i], PCPC_FORCE, &refusal),
				 -EINVAL);
		ck_assert_int_eq(pcpc_charge_flags(leaf, amounts[i], PCPC_NOWAIT, &refusal),
				 -EINVAL);
		ck_assert_int_eq(pcpc_charge_stat(leaf, amounts[i], 1), -EINVAL);
		ck_assert_int_eq(pcpc_charge_wait(leaf, amounts[i], 0), -EINVAL);
		pcpc_uncharge(leaf, amounts[i]);
		pcpc_uncharge_stat(leaf, amounts[i], 1);
	}
	for (i = 3; i < 32; i++) {
		ck_assert_int_eq(pcpc_charge_flags(leaf, 1, 1u << i, &refusal), -EINVAL);
		ck_assert_int_eq(pcpc_charge_flags(leaf, 0, 1u << i, &refusal), -EINVAL);
	}
	ck_assert_mem_eq(&refusal, &untouched, sizeof(refusal));
	expect(leaf, 9, 8);
	expect(root, 73, 64);
	ck_assert_int_eq(coupled_of(leaf), 0);
	uncharge(leaf, 1);
}
END_TEST

/* Section 4: "n = 0 with d = 0 is a no-op". */
START_TEST(nothing_is_charged_by_zero)
{
	struct pcpc_owner *leaf;

	if (!open_domain(_i, 64, 0))
		return;
	leaf = make_owner(root, 100, 0);
	ck_assert_int_eq(pcpc_charge(leaf, 0), 0);
	ck_assert_int_eq(pcpc_charge_flags(leaf, 0, PCPC_FORCE | PCPC_NOWAIT, NULL), 0);
	ck_assert_int_eq(pcpc_charge_wait(leaf, 0, 0), 0);
	pcpc_uncharge(leaf, 0);
	ck_assert_uint_eq(slots_of(leaf).slots, 0);
	expect(leaf, 0, 0);
	expect(root, 0, 0);
	/* also where nothing else fits, and beside a slot */
	charge(leaf, 100);
	ck_assert_int_eq(pcpc_charge(leaf, 0), 0);
	ck_assert_int_eq(pcpc_charge(leaf, 1), -EDQUOT);
	ck_assert_int_eq(pcpc_charge(leaf, 0), 0);
	pcpc_uncharge(leaf, 0);
	ck_assert_uint_eq(pcpc_owner_usage_exact(leaf), 100);
	uncharge(leaf, 100);
}
END_TEST

/* G12: at most CPUs x batch units of an owner are stocked, after any load. Asks 17: "cached credit
 * never exceeds the documented cap (test reads every slot after random load)". */
START_TEST(asks_17_no_slot_ever_holds_more_than_a_batch)
{
	static const uint32_t batches[] = { 1, 2, 3, 7, 64, 1000, PCPC_COUNT_MAX };
	uint64_t random = unit_seed(), held[7] = { 0 }, count, i;
	struct pcpc_owner *leaf[7];
	unsigned int which;

	if (!open_domain(_i, 64, 1))
		return;
	for (which = 0; which < 7; which++)
		leaf[which] = make_owner(root, 0, batches[which]);
	for (i = 0; i < 30000; i++) {
		which = (unsigned int)unit_below(&random, 7);
		count = unit_below(&random, 1 + 2ull * batches[which]);
		if (unit_below(&random, 2) || held[which] < count) {
			charge(leaf[which], count);
			held[which] += count;
		} else {
			uncharge(leaf[which], count);
			held[which] -= count;
		}
		ck_assert_uint_le(slots_of(leaf[which]).largest, batches[which]);
		ck_assert_uint_le(slots_of(leaf[which]).slots, 1); /* G5 */
		ck_assert_uint_le(slots_of(root).largest, PCPC_COUNT_MAX);
		ck_assert_uint_eq(pcpc_owner_usage_exact(leaf[which]), held[which]);
	}
	for (which = 0; which < 7; which++)
		uncharge(leaf[which], held[which]);
}
END_TEST

/* Asks 17: "Alternating +1/-1 at any boundary ... causes <= 2 parent updates". */
START_TEST(asks_17_going_back_and_forth_at_a_boundary_stays_in_the_stock)
{
	uint64_t changes, usage, now;
	struct pcpc_owner *leaf;
	uint32_t start, i;

	if (!open_domain(_i, 64, 0))
		return;
	leaf = child_of(root);
	charge(leaf, 1000);
	for (start = 0; start <= 130; start++) {
		charge(leaf, 1);
		changes = 0;
		usage = pcpc_owner_usage(leaf);
		for (i = 0; i < 2000; i++) {
			if ((i + start) % 2)
				charge(leaf, 1);
			else
				uncharge(leaf, 1);
			now = pcpc_owner_usage(leaf);
			changes += now != usage;
			usage = now;
		}
		ck_assert_uint_le(changes, 2);
	}
	uncharge(leaf, 1131);
}
END_TEST

/* charge.h: "and move the domain's coupled item of the owner by delta"; section 4. */
START_TEST(deltas_move_the_coupled_item_and_none_is_lost)
{
	static const int64_t large[] = { 63,
					 64,
					 -64,
					 PCPC_DELTA_MAX,
					 -PCPC_DELTA_MAX - 1,
					 PCPC_DELTA_MAX + 1,
					 -PCPC_DELTA_MAX - 2,
					 INT32_MAX,
					 INT32_MIN,
					 1ll << 40,
					 -(1ll << 40) };
	uint64_t random = unit_seed(), held = 0, count;
	struct pcpc_owner *mid, *leaf;
	int64_t expected = 0, delta;
	int i;

	if (!open_domain(_i, 64, 1))
		return;
	mid = child_of(root);
	leaf = child_of(mid);
	for (i = 0; i < 20000; i++) {
		delta = (int64_t)unit_below(&random, 41) - 20;
		if (!unit_below(&random, 50))
			delta = large[unit_below(&random, 11)];
		count = unit_below(&random, unit_below(&random, 4) ? 4 : 200);
		if (unit_below(&random, 2)) {
			ck_assert_int_eq(pcpc_charge_stat(leaf, count, delta), 0);
			held += count;
		} else {
			count = count < held ? count : held;
			pcpc_uncharge_stat(leaf, count, delta);
			held -= count;
		}
		expected += delta;
		ck_assert_int_eq(coupled_of(leaf), expected);
		ck_assert_uint_eq(pcpc_owner_usage_exact(leaf), held);
		if (!unit_below(&random, 500))
			(void)pcpc_owner_drain(root);
	}
	ck_assert_int_eq(coupled_of(mid), 0);
	ck_assert_int_eq(coupled_of(root), 0);
	(void)pcpc_owner_drain(root);
	ck_assert_int_eq(pcpc_stat_read_local(leaf, 0), expected);
	/* small deltas stay in the slot until they are 64 */
	expected = pcpc_stat_read_local(leaf, 0);
	for (i = 1; i < 64; i++) {
		ck_assert_int_eq(pcpc_charge_stat(leaf, 0, 1), 0);
		ck_assert_int_eq(slots_of(leaf).delta, i);
		ck_assert_int_eq(pcpc_stat_read_local(leaf, 0), expected);
	}
	pcpc_uncharge_stat(leaf, 0, 1);
	ck_assert_int_eq(slots_of(leaf).delta, 0);
	ck_assert_int_eq(pcpc_stat_read_local(leaf, 0), expected + 64);
	uncharge(leaf, held);
}
END_TEST

/* A victim's delta goes with its units, and to the victim. */
START_TEST(an_evicted_owner_keeps_its_delta)
{
	struct pcpc_owner *leaf[20];
	uint64_t i;

	if (!open_domain(_i, 64, 1))
		return;
	for (i = 0; i < 20; i++) {
		leaf[i] = child_of(root);
		ck_assert_int_eq(pcpc_charge_stat(leaf[i], 1, (int64_t)i - 10), 0);
	}
	for (i = 0; i < 20; i++) {
		ck_assert_int_eq(coupled_of(leaf[i]), (int64_t)i - 10);
		ck_assert_uint_eq(pcpc_owner_usage_exact(leaf[i]), 1);
		pcpc_uncharge_stat(leaf[i], 1, 10 - (int64_t)i);
		ck_assert_int_eq(coupled_of(leaf[i]), 0);
	}
}
END_TEST

/* G1 with many owners in few slots: all of a domain's figures, one by one. */
START_TEST(usage_is_what_is_held_and_stocked_and_the_childrens_usage)
{
	uint64_t random = unit_seed(), held[60] = { 0 }, sum[60], count;
	struct pcpc_owner *owner[60];
	uint32_t i, step, which;

	if (!open_domain(_i, 64, 1 + (uint32_t)unit_below(&random, 4)))
		return;
	owner[0] = root;
	for (i = 1; i < 60; i++)
		owner[i] = child_of(owner[unit_below(&random, i)]);
	for (step = 0; step < 5000; step++) {
		which = (uint32_t)unit_below(&random, 60);
		count = unit_below(&random, 100);
		if (unit_below(&random, 2) || held[which] < count) {
			charge(owner[which], count);
			held[which] += count;
		} else {
			uncharge(owner[which], count);
			held[which] -= count;
		}
		memset(sum, 0, sizeof(sum));
		for (i = 59; i; i--)
			sum[owner[i]->parent->id - 1] += pcpc_owner_usage(owner[i]);
		for (i = 0; i < 60; i++)
			ck_assert_uint_eq(pcpc_owner_usage(owner[i]),
					  held[i] + stock_of(owner[i]) + sum[i]);
	}
	for (i = 0; i < 60; i++)
		uncharge(owner[i], held[i]);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("charge");
	TCase *tests = unit_case(suite, "charge");

	tcase_add_checked_fixture(tests, NULL, close_domain);
	by_each_engine(tests, the_first_miss_takes_an_eighth_of_a_batch_more);
	by_each_engine(tests, hits_touch_no_counter);
	by_each_engine(tests, a_dry_slot_takes_a_full_batch_in_all);
	by_each_engine(tests, the_parents_stock_serves_a_childs_miss);
	by_each_engine(tests, what_is_trimmed_goes_to_the_parents_stock);
	by_each_engine(tests, settling_climbs_level_by_level);
	by_each_engine(tests, a_victim_of_a_leaf_is_settled_into_its_parents_stock);
	by_each_engine(tests, a_victim_of_an_interior_owners_charge_is_settled_straight);
	by_each_engine(tests, a_victim_of_an_interior_owners_settlement_is_settled_straight);
	by_each_engine(tests, batches_grow_eightfold_with_every_level);
	by_each_engine(tests, a_given_batch_stays_and_counts_above);
	by_each_engine(tests, an_owner_without_a_batch_stocks_nothing);
	by_each_engine(tests, a_domain_without_a_batch_is_exact_at_every_moment);
	by_each_engine(tests, a_smaller_batch_trims_at_the_next_refill);
	by_each_engine(tests, every_amount_up_to_the_largest_is_counted);
	by_each_engine(tests, an_unlimited_owner_is_full_at_int64_max);
	by_each_engine(tests, bad_arguments_change_nothing);
	by_each_engine(tests, nothing_is_charged_by_zero);
	by_each_engine(tests, asks_17_no_slot_ever_holds_more_than_a_batch);
	by_each_engine(tests, asks_17_going_back_and_forth_at_a_boundary_stays_in_the_stock);
	by_each_engine(tests, deltas_move_the_coupled_item_and_none_is_lost);
	by_each_engine(tests, an_evicted_owner_keeps_its_delta);
	by_each_engine(tests, usage_is_what_is_held_and_stocked_and_the_childrens_usage);
	return unit_run(suite);
}
