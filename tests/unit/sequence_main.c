// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * sequence_main.c - runs sequence_cases.h without a test framework, and prints TAP.
 */
#include "sequence_cases.h"

int main(void)
{
	const char *failure;
	int i, failed = 0;

	printf("1..%d\n", NR_SEQUENCE_CASES);
	for (i = 0; i < NR_SEQUENCE_CASES; i++) {
		failure = sequence_cases[i].run();
		printf("%sok %d - %s\n", failure ? "not " : "", i + 1, sequence_cases[i].name);
		if (failure)
			printf("# %s\n", failure);
		failed += failure != NULL;
	}
	return failed ? 1 : 0;
}
