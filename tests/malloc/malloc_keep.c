// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * malloc_keep.c BYTES [SIGNAL] - a program that does not know what stands below it: it allocates so
 * many bytes and keeps them. With a signal, it raises that, makes one more call, and ends without
 * any exit handler. Exit status 2: there was no memory.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	size_t size = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
	char *volatile kept = malloc(size);

	if (!kept)
		return errno == ENOMEM ? 2 : 3;
	memset(kept, 1, size);
	if (argc > 2) {
		raise(atoi(argv[2]));
		kept = realloc(kept, size + 1);
		_exit(0);
	}
	puts("kept");
	return 0;
}
