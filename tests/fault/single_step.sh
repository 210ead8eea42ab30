#!/bin/sh
# SPDX-License-Identifier: MIT OR GPL-2.0-only
#
# single_step.sh - gdb's stepi over whole operations must come to their end (DESIGN.md section 6:
# retries are bounded), and the program must find its sums right afterwards.
#
# Usage: single_step.sh PROGRAM ENGINE. Exits with 77 where there is no gdb, or it may not trace.
set -u

program=$1
engine=$2
most_steps=30000

skip() {
	echo "skipped: $1"
	exit 77
}

command -v gdb >/dev/null || skip "no gdb"
"$program" "$engine"
case $? in
0) ;;
77) skip "no $engine engine" ;;
*) exit 1 ;;
esac

output=$(mktemp) || exit 1
trap 'rm -f "$output"' EXIT

# The program ends at full speed, so that its own verdict is the status.
gdb --nx --batch --return-child-result -ex "set \$most_steps = $most_steps" \
	-x "$(dirname "$0")/single_step.gdb" --args "$program" "$engine" >"$output" 2>&1
status=$?

grep '^took' "$output"
if grep -q -i -E 'not permitted|could not trace|cannot trace' "$output"; then
	skip "gdb may not trace here"
fi
steps=$(sed -n 's/^took \([0-9]*\) steps.*/\1/p' "$output")
if [ "${steps:-0}" -lt 500 ]; then
	echo "it was not stepped:"
	tail -n 20 "$output"
	exit 1
fi
if [ "$steps" -ge "$most_steps" ]; then
	echo "no end after $steps steps"
	exit 1
fi
exit "$status"
