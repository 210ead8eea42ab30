#!/bin/sh
# SPDX-License-Identifier: MIT OR GPL-2.0-only
#
# valgrind.sh - under valgrind there is no rseq, so AUTO must be the atomic engine (DESIGN.md
# section 6; rseq.md 2.3), and memcheck must find no error and no leak.
#
# Usage: valgrind.sh PROGRAM SANITIZERS. Exits with 77 where there is no valgrind.
set -u

program=$1
sanitizers=$2

skip() {
	echo "skipped: $1"
	exit 77
}

check() {
	valgrind --quiet --error-exitcode=1 --leak-check=full --show-leak-kinds=all \
		--errors-for-leak-kinds=all "$1" atomic >"$directory/output" 2>&1
}

command -v valgrind >/dev/null || skip "no valgrind"
[ "$sanitizers" = none ] || skip "built with $sanitizers, which valgrind cannot run"
unset PCPC_ENGINE

# Whatever valgrind cannot do here for any program is not ours.
valgrind --quiet --error-exitcode=1 true >/dev/null 2>&1 || skip "valgrind runs no program here"

directory=$(mktemp -d) || exit 1
trap 'rm -rf "$directory"' EXIT
check "$program"
status=$?
# Older than the compiler's debugging information: then without.
if [ "$status" -ne 0 ] && grep -q 'debuginfo reader' "$directory/output"; then
	strip -g -o "$directory/program" "$program" || skip "valgrind does not read this format"
	check "$directory/program"
	status=$?
fi
cat "$directory/output"
exit "$status"
