// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_sequences.c - runs sequence_cases.h natively. Section 6 and arch/sequences.h.
 */
#define _GNU_SOURCE
#include "sequence_cases.h"
#include "unit_support.h"

START_TEST(sequence_keeps_its_contract)
{
	const char *failure = sequence_cases[_i].run();

	ck_assert_msg(!failure, "%s: %s", sequence_cases[_i].name, failure);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sequences");

	tcase_add_loop_test(unit_case(suite, "cases"), sequence_keeps_its_contract, 0,
			    NR_SEQUENCE_CASES);
#if !PCPC_HAVE_RSEQ
	unit_note("not tested: this build has no restartable sequences");
#endif
	return unit_run(suite);
}
