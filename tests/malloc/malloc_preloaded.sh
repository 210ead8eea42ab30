#!/bin/sh
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# malloc_preloaded.sh LIBRARY NEXT PROGRAM [ARGUMENT...] - runs a program with the library preloaded, and
# after it another allocator unless NEXT is empty. Skips where there is no such allocator.
set -eu
library=$(realpath "$1") next=$2
shift 2
if [ -n "$next" ] && LD_PRELOAD=$next /bin/true 2>&1 | grep -q .; then
	echo "no $next here"
	exit 77
fi
PCPC_TEST_NEXT=$next
[ -z "$next" ] || export PCPC_TEST_NEXT
LD_PRELOAD=$library${next:+:$next} exec "$@"
