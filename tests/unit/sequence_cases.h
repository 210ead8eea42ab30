/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * sequence_cases.h - every exit of every per-CPU sequence, one case a behaviour.
 *
 * The sequences are given an rseq area of our own in ordinary thread-local memory, whose index says
 * what the case wants. The kernel does not know that area: nothing is ever aborted by it here, and
 * what the sequence leaves in rseq_cs stays to be looked at. Needs no test framework, so that the
 * same cases run under Check (test_sequences.c) and cross-compiled in an emulator
 * (sequence_main.c).
 *
 * A case returns NULL, or what went wrong.
 */
#ifndef PCPCHARGE_TESTS_SEQUENCE_CASES_H
#define PCPCHARGE_TESTS_SEQUENCE_CASES_H

#include <stdio.h>
#include <string.h>

#include <pcpcharge/stock.h>
#include <pcpcharge/arch/generic.h>
#include <pcpcharge/arch/sequences.h>

typedef const char *sequence_case_fn(void);

struct sequence_case {
	const char *name;
	sequence_case_fn *run;
};

#define CASE_CHECK(condition)                                                             \
	do {                                                                              \
		if (!(condition))                                                         \
			return case_failed("sequence_cases.h:%d: " #condition, __LINE__); \
	} while (0)

static char case_text[256];

static inline const char *case_failed(const char *format, int line)
{
	snprintf(case_text, sizeof(case_text), format, line);
	return case_text;
}

typedef enum pcpc_outcome sequence_fn(const struct pcpc_place *place, struct pcpc_stock *stock,
				      uint32_t slot, pcpc_word old_word, pcpc_word new_word);

#if PCPC_HAVE_RSEQ

/* The kernel's struct rseq, as far as mm_cid. */
struct fake_area {
	uint32_t cpu_id_start, cpu_id;
	uint64_t rseq_cs;
	uint32_t flags, node_id, mm_cid, unused;
} __attribute__((aligned(32)));

struct descriptor {
	uint32_t version, flags;
	uint64_t start, length, abort;
};

#ifdef __x86_64__
#define SIGNATURE 0x53053053u
#else
#define SIGNATURE 0xd428bc00u
#endif

extern const struct descriptor __start___rseq_cs[], __stop___rseq_cs[];
extern const struct descriptor *const __start___rseq_cs_ptr_array[];
extern const struct descriptor *const __stop___rseq_cs_ptr_array[];

static _Thread_local struct fake_area area;

static ptrdiff_t from_thread_pointer(const void *address)
{
	const char *thread;

#ifdef __x86_64__
	__asm__("movq %%fs:0, %0" : "=r"(thread));
#else
	thread = __builtin_thread_pointer();
#endif
	return (const char *)address - thread;
}

#define UNTOUCHED 0x1122334455667788u
#define CPU 5
#define CID 3

static void reset_area(void)
{
	area = (struct fake_area){ .cpu_id_start = CPU,
				   .cpu_id = CPU,
				   .rseq_cs = UNTOUCHED,
				   .flags = 17,
				   .node_id = 19,
				   .mm_cid = CID,
				   .unused = 23 };
}

/* by_cid: the index is mm_cid, else cpu_id. */
static struct pcpc_place place_of(bool by_cid, uint32_t index)
{
	return (struct pcpc_place){
		.rseq = from_thread_pointer(&area),
		.field = from_thread_pointer(by_cid ? &area.mm_cid : &area.cpu_id),
		.index = index,
	};
}

/* Nothing but rseq_cs may have changed. */
static bool area_intact(void)
{
	const struct fake_area expected = { CPU, CPU, area.rseq_cs, 17, 19, CID, 23 };

	return !memcmp(&area, &expected, sizeof(area));
}

static enum pcpc_outcome do_commit(const struct pcpc_place *place, struct pcpc_stock *stock,
				   uint32_t slot, pcpc_word old_word, pcpc_word new_word)
{
	return pcpc_rseq_commit(place, stock, slot, old_word, new_word);
}

static enum pcpc_outcome do_insert(const struct pcpc_place *place, struct pcpc_stock *stock,
				   uint32_t slot, pcpc_word old_word, pcpc_word new_word)
{
	return pcpc_rseq_insert(place, stock, slot, old_word, new_word);
}

/* Does the section end with the committing store: the instruction just before its end a store of
 * eight bytes through a register? */
static inline bool ends_with_store(const struct descriptor *descriptor)
{
	const unsigned char *end =
		(const unsigned char *)(uintptr_t)(descriptor->start + descriptor->length);
#ifdef __x86_64__
	/* REX.W 89 /r, memory operand: 3 bytes, more by a SIB or displacement byte */
	for (int length = 3; length <= 5; length++)
		if ((end[-length] & 0xf8) == 0x48 && end[1 - length] == 0x89 &&
		    (end[2 - length] & 0xc0) != 0xc0)
			return true;
	return false;
#else
	uint32_t instruction;

	memcpy(&instruction, end - 4, sizeof(instruction));
	return (instruction & 0xfffffc00u) == 0xf9000000u; /* str x, [x] */
#endif
}

/* What the sequence left in rseq_cs must be a descriptor that the kernel would accept. */
static const char *check_descriptor(void)
{
	const struct descriptor *descriptor = (const struct descriptor *)(uintptr_t)area.rseq_cs;
	const struct descriptor *const *entry;
	uint32_t signature;
	int found = 0;

	CASE_CHECK(area.rseq_cs != UNTOUCHED);
	CASE_CHECK(descriptor >= __start___rseq_cs && descriptor < __stop___rseq_cs);
	CASE_CHECK((uintptr_t)descriptor % 32 == 0);
	CASE_CHECK(descriptor->version == 0);
	CASE_CHECK(descriptor->flags == 0);
	CASE_CHECK(descriptor->start != 0);
	CASE_CHECK(descriptor->length > 16 && descriptor->length < 1024);
	/* the kernel refuses an abort address inside the range */
	CASE_CHECK(descriptor->abort - descriptor->start >= descriptor->length);
	memcpy(&signature, (const char *)(uintptr_t)descriptor->abort - 4, sizeof(signature));
	CASE_CHECK(signature == SIGNATURE);
	CASE_CHECK(ends_with_store(descriptor));
	for (entry = __start___rseq_cs_ptr_array; entry < __stop___rseq_cs_ptr_array; entry++)
		found += *entry == descriptor;
	CASE_CHECK(found == 1);
	return NULL;
}

#endif

/* A stock of strangers, no two of a kind, its hand somewhere. */
static struct pcpc_stock make_stock(void)
{
	struct pcpc_stock stock = { .gate = 0, .hand = 4 };
	uint32_t slot;

	for (slot = 0; slot < PCPC_STOCK_SLOTS; slot++)
		stock.slot[slot] = pcpc_word_make(101 + slot, 1000 + slot, -5);
	return stock;
}

/*
 * Runs one sequence and checks all it promises for one outcome: the answer, one store or none, and
 * (place not NULL) the descriptor. The new word is of owner new_owner.
 */
static inline const char *expect_outcome(sequence_fn *sequence, const struct pcpc_place *place,
					 struct pcpc_stock *stock, uint32_t slot,
					 pcpc_word old_word, pcpc_word new_word,
					 enum pcpc_outcome expected)
{
	struct pcpc_stock will = *stock;
	enum pcpc_outcome outcome;

	if (expected == PCPC_DONE)
		will.slot[slot] = new_word;
#if PCPC_HAVE_RSEQ
	reset_area();
#endif
	outcome = sequence(place, stock, slot, old_word, new_word);
	CASE_CHECK(outcome == expected);
	CASE_CHECK(!memcmp(stock, &will, sizeof(will)));
#if PCPC_HAVE_RSEQ
	if (place) {
		CASE_CHECK(area_intact());
		return check_descriptor();
	}
#endif
	return NULL;
}

#define EXPECT(...)                                                \
	do {                                                       \
		const char *failure = expect_outcome(__VA_ARGS__); \
		if (failure)                                       \
			return failure;                            \
	} while (0)

/* The word that stock has in a slot, consumed from, and one of an owner who is not there. */
static inline pcpc_word less_of(const struct pcpc_stock *stock, uint32_t slot)
{
	return stock->slot[slot] - pcpc_word_make(0, 7, 0);
}

static const pcpc_word newcomer = UINT64_C(0xabcde) << 44 | UINT64_C(0x123456789ab);

/* The exits that all implementations have. place NULL: no index and no gate (generic.h). */

static inline const char *exit_done(const struct pcpc_place *place, sequence_fn *commit,
				    sequence_fn *insert)
{
	struct pcpc_stock stock;
	uint32_t slot;

	for (slot = 0; slot < PCPC_STOCK_SLOTS; slot++) {
		stock = make_stock();
		EXPECT(commit, place, &stock, slot, stock.slot[slot], less_of(&stock, slot),
		       PCPC_DONE);
		EXPECT(commit, place, &stock, slot, stock.slot[slot], 0, PCPC_DONE);
		stock = make_stock();
		EXPECT(insert, place, &stock, slot, stock.slot[slot], newcomer, PCPC_DONE);
		stock = make_stock();
		stock.slot[slot] = 0;
		EXPECT(insert, place, &stock, slot, 0, newcomer, PCPC_DONE);
		stock = make_stock();
		stock.slot[slot] = UINT64_MAX;
		EXPECT(insert, place, &stock, slot, UINT64_MAX, newcomer, PCPC_DONE);
	}
	return NULL;
}

/* Every single bit of the word counts: section 4, "comparing the whole word". */
static inline const char *exit_changed_word(const struct pcpc_place *place, sequence_fn *commit,
					    sequence_fn *insert)
{
	struct pcpc_stock stock = make_stock();
	uint32_t slot;
	int bit;

	for (slot = 0; slot < PCPC_STOCK_SLOTS; slot++) {
		for (bit = 0; bit < 64; bit++) {
			pcpc_word other = stock.slot[slot] ^ UINT64_C(1) << bit;

			EXPECT(commit, place, &stock, slot, other, less_of(&stock, slot),
			       PCPC_CHANGED);
			EXPECT(insert, place, &stock, slot, other, newcomer, PCPC_CHANGED);
		}
	}
	return NULL;
}

/* The new owner found in each of the 7 slots, the inserted one included; with anything in it. A
 * commit does not look at the others. */
static inline const char *exit_changed_owner(const struct pcpc_place *place, sequence_fn *commit,
					     sequence_fn *insert)
{
	static const pcpc_word rests[] = { 0, 1, UINT64_C(1) << 22, (UINT64_C(1) << 44) - 1 };
	struct pcpc_stock stock;
	uint32_t slot, where;
	size_t i;

	for (slot = 0; slot < PCPC_STOCK_SLOTS; slot++) {
		for (where = 0; where < PCPC_STOCK_SLOTS; where++) {
			for (i = 0; i < sizeof(rests) / sizeof(rests[0]); i++) {
				stock = make_stock();
				stock.slot[where] = newcomer >> 44 << 44 | rests[i];
				EXPECT(insert, place, &stock, slot, stock.slot[slot], newcomer,
				       PCPC_CHANGED);
				EXPECT(commit, place, &stock, slot, stock.slot[slot], newcomer,
				       PCPC_DONE);
			}
		}
	}
	return NULL;
}

/* An owner id that differs in one bit only is another owner. */
static inline const char *exit_other_owner(const struct pcpc_place *place, sequence_fn *insert)
{
	struct pcpc_stock stock;
	uint32_t where;
	int bit;

	for (where = 0; where < PCPC_STOCK_SLOTS; where++) {
		for (bit = 44; bit < 64; bit++) {
			stock = make_stock();
			stock.slot[where] = newcomer ^ UINT64_C(1) << bit;
			EXPECT(insert, place, &stock, 0, stock.slot[0], newcomer, PCPC_DONE);
		}
	}
	return NULL;
}

/* generic.h */

static const char *generic_done_stores_the_word_and_nothing_else(void)
{
	return exit_done(NULL, pcpc_atomic_commit, pcpc_atomic_insert);
}

static const char *generic_changed_by_any_bit_of_the_word(void)
{
	return exit_changed_word(NULL, pcpc_atomic_commit, pcpc_atomic_insert);
}

static const char *generic_insert_changed_by_the_owner_in_any_slot(void)
{
	return exit_changed_owner(NULL, pcpc_atomic_commit, pcpc_atomic_insert);
}

static const char *generic_insert_not_changed_by_a_similar_owner(void)
{
	return exit_other_owner(NULL, pcpc_atomic_insert);
}

static const char *generic_has_no_gate(void)
{
	struct pcpc_stock stock = make_stock();

	stock.gate = 1;
	EXPECT(pcpc_atomic_commit, NULL, &stock, 0, stock.slot[0], 0, PCPC_DONE);
	EXPECT(pcpc_atomic_insert, NULL, &stock, 1, stock.slot[1], newcomer, PCPC_DONE);
	return NULL;
}

#if PCPC_HAVE_RSEQ

/* Runs a group of exits with the index in cpu_id, and in mm_cid. */
static const char *with_both_fields(const char *(*group)(const struct pcpc_place *place))
{
	const struct pcpc_place cpu = place_of(false, CPU), cid = place_of(true, CID);
	const char *failure = group(&cpu);

	return failure ? failure : group(&cid);
}

static const char *group_done(const struct pcpc_place *place)
{
	return exit_done(place, do_commit, do_insert);
}

static const char *done_stores_the_word_and_nothing_else(void)
{
	return with_both_fields(group_done);
}

static const char *group_word(const struct pcpc_place *place)
{
	return exit_changed_word(place, do_commit, do_insert);
}

static const char *changed_by_any_bit_of_the_word(void)
{
	return with_both_fields(group_word);
}

static const char *group_owner(const struct pcpc_place *place)
{
	return exit_changed_owner(place, do_commit, do_insert);
}

static const char *insert_changed_by_the_owner_in_any_slot(void)
{
	return with_both_fields(group_owner);
}

static const char *group_similar(const struct pcpc_place *place)
{
	return exit_other_owner(place, do_insert);
}

static const char *insert_not_changed_by_a_similar_owner(void)
{
	return with_both_fields(group_similar);
}

/* S1: every other index, the one of the other field included. */
static const char *aborted_by_another_index(void)
{
	static const uint32_t others[] = {
		0, 1, 4, 6, CPU | 256, 1u << 31 | CPU, UINT32_MAX, UINT32_MAX - 1
	};
	struct pcpc_stock stock = make_stock();
	struct pcpc_place place;
	uint32_t slot;
	size_t i;
	int field;

	for (field = 0; field <= 1; field++) {
		for (slot = 0; slot < PCPC_STOCK_SLOTS; slot++) {
			for (i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
				place = place_of(field, others[i]);
				EXPECT(do_commit, &place, &stock, slot, stock.slot[slot], 0,
				       PCPC_ABORTED);
				EXPECT(do_insert, &place, &stock, slot, stock.slot[slot], newcomer,
				       PCPC_ABORTED);
			}
		}
		place = place_of(field, field ? CPU : CID);
		EXPECT(do_commit, &place, &stock, 0, stock.slot[0], 0, PCPC_ABORTED);
		EXPECT(do_insert, &place, &stock, 0, stock.slot[0], newcomer, PCPC_ABORTED);
	}
	return NULL;
}

/* S2: any bit of the gate closes it. */
static const char *closed_by_any_bit_of_the_gate(void)
{
	const struct pcpc_place place = place_of(false, CPU);
	struct pcpc_stock stock = make_stock();
	uint32_t slot;
	int bit;

	for (bit = 0; bit < 32; bit++) {
		stock.gate = 1u << bit;
		for (slot = 0; slot < PCPC_STOCK_SLOTS; slot++) {
			EXPECT(do_commit, &place, &stock, slot, stock.slot[slot],
			       less_of(&stock, slot), PCPC_CLOSED);
			EXPECT(do_insert, &place, &stock, slot, stock.slot[slot], newcomer,
			       PCPC_CLOSED);
		}
	}
	return NULL;
}

/* "The gate is compared as its own four bytes." */
static const char *not_closed_by_the_hand(void)
{
	const struct pcpc_place place = place_of(false, CPU);
	struct pcpc_stock stock = make_stock();

	stock.hand = UINT32_MAX;
	EXPECT(do_commit, &place, &stock, 0, stock.slot[0], 0, PCPC_DONE);
	EXPECT(do_insert, &place, &stock, 1, stock.slot[1], newcomer, PCPC_DONE);
	return NULL;
}

/* S1 before S2 before S3 before S3i. */
static const char *answers_in_the_order_of_the_steps(void)
{
	const struct pcpc_place here = place_of(false, CPU), elsewhere = place_of(false, CPU + 1);
	struct pcpc_stock stock = make_stock();

	stock.gate = 1;
	stock.slot[3] = newcomer;
	EXPECT(do_commit, &elsewhere, &stock, 0, 4711, 0, PCPC_ABORTED);
	EXPECT(do_insert, &elsewhere, &stock, 0, 4711, newcomer, PCPC_ABORTED);
	EXPECT(do_commit, &here, &stock, 0, 4711, 0, PCPC_CLOSED);
	EXPECT(do_insert, &here, &stock, 0, 4711, newcomer, PCPC_CLOSED);
	stock.gate = 0;
	EXPECT(do_commit, &here, &stock, 0, 4711, 0, PCPC_CHANGED);
	EXPECT(do_insert, &here, &stock, 0, 4711, newcomer, PCPC_CHANGED);
	return NULL;
}

/* The two sequences in one function have a descriptor each. */
static const char *each_sequence_has_its_own_descriptor(void)
{
	const struct pcpc_place place = place_of(false, CPU);
	struct pcpc_stock stock = make_stock();
	uint64_t of_commit;

	EXPECT(do_commit, &place, &stock, 0, stock.slot[0], 0, PCPC_DONE);
	of_commit = area.rseq_cs;
	EXPECT(do_insert, &place, &stock, 0, stock.slot[0], newcomer, PCPC_DONE);
	CASE_CHECK(area.rseq_cs != of_commit);
	return NULL;
}

static const char *index_is_what_the_field_holds(void)
{
	const struct pcpc_place cpu = place_of(false, 0), cid = place_of(true, 0);

	reset_area();
	CASE_CHECK(pcpc_rseq_index(&cpu) == CPU);
	CASE_CHECK(pcpc_rseq_index(&cid) == CID);
	area.cpu_id = 0;
	area.mm_cid = 4095;
	CASE_CHECK(pcpc_rseq_index(&cpu) == 0);
	CASE_CHECK(pcpc_rseq_index(&cid) == 4095);
	CASE_CHECK(area.rseq_cs == UNTOUCHED);
	return NULL;
}

/* Section 6: an unregistered thread bypasses; mm_cid reads 0 there, so cpu_id decides. */
static const char *index_is_out_of_range_where_not_registered(void)
{
	static const uint32_t unregistered[] = { UINT32_MAX, UINT32_MAX - 1, 1u << 31 };
	const struct pcpc_place cpu = place_of(false, 0), cid = place_of(true, 0);
	size_t i;

	for (i = 0; i < sizeof(unregistered) / sizeof(unregistered[0]); i++) {
		reset_area();
		area.cpu_id = unregistered[i];
		area.mm_cid = 0;
		CASE_CHECK(pcpc_rseq_index(&cpu) >= 1u << 31);
		CASE_CHECK(pcpc_rseq_index(&cid) >= 1u << 31);
		area.mm_cid = CID;
		CASE_CHECK(pcpc_rseq_index(&cid) >= 1u << 31);
	}
	return NULL;
}

static const char *leave_forgets_the_descriptor_and_nothing_else(void)
{
	const struct pcpc_place place = place_of(false, CPU);
	struct pcpc_stock stock = make_stock();

	EXPECT(do_commit, &place, &stock, 0, stock.slot[0], 0, PCPC_DONE);
	pcpc_rseq_leave(place.rseq);
	CASE_CHECK(area.rseq_cs == 0);
	CASE_CHECK(area_intact());
	return NULL;
}

/* Descriptors and the array of pointers to them are one to one. */
static const char *the_pointer_array_names_every_descriptor(void)
{
	const struct descriptor *descriptor;
	const struct descriptor *const *entry;
	int found;

	CASE_CHECK(__stop___rseq_cs - __start___rseq_cs ==
		   __stop___rseq_cs_ptr_array - __start___rseq_cs_ptr_array);
	for (descriptor = __start___rseq_cs; descriptor < __stop___rseq_cs; descriptor++) {
		found = 0;
		for (entry = __start___rseq_cs_ptr_array; entry < __stop___rseq_cs_ptr_array;
		     entry++)
			found += *entry == descriptor;
		CASE_CHECK(found == 1);
	}
	return NULL;
}

#endif

#define SEQUENCE_CASE(name) \
	{                   \
#name, name \
	}

static const struct sequence_case sequence_cases[] = {
	SEQUENCE_CASE(generic_done_stores_the_word_and_nothing_else),
	SEQUENCE_CASE(generic_changed_by_any_bit_of_the_word),
	SEQUENCE_CASE(generic_insert_changed_by_the_owner_in_any_slot),
	SEQUENCE_CASE(generic_insert_not_changed_by_a_similar_owner),
	SEQUENCE_CASE(generic_has_no_gate),
#if PCPC_HAVE_RSEQ
	SEQUENCE_CASE(done_stores_the_word_and_nothing_else),
	SEQUENCE_CASE(changed_by_any_bit_of_the_word),
	SEQUENCE_CASE(insert_changed_by_the_owner_in_any_slot),
	SEQUENCE_CASE(insert_not_changed_by_a_similar_owner),
	SEQUENCE_CASE(aborted_by_another_index),
	SEQUENCE_CASE(closed_by_any_bit_of_the_gate),
	SEQUENCE_CASE(not_closed_by_the_hand),
	SEQUENCE_CASE(answers_in_the_order_of_the_steps),
	SEQUENCE_CASE(each_sequence_has_its_own_descriptor),
	SEQUENCE_CASE(index_is_what_the_field_holds),
	SEQUENCE_CASE(index_is_out_of_range_where_not_registered),
	SEQUENCE_CASE(leave_forgets_the_descriptor_and_nothing_else),
	SEQUENCE_CASE(the_pointer_array_names_every_descriptor),
#endif
};

#define NR_SEQUENCE_CASES ((int)(sizeof(sequence_cases) / sizeof(sequence_cases[0])))

#endif
