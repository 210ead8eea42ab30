#!/bin/sh
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# aarch64.sh SOURCE - the cases of sequence_cases.h for the aarch64 sequences, compiled by a cross
# compiler and run by qemu-user, which knows no rseq: the sequences run over a fake area. Then the
# library itself: compiled without a warning, its sections as they must be, and a small program run
# with it, by the atomic engine there.
set -eu
source=$1
for tool in aarch64-linux-gnu-gcc qemu-aarch64; do
	command -v $tool >/dev/null && continue
	echo "skipped: no $tool (packages gcc-aarch64-linux-gnu, qemu-user)"
	exit 77
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unit=$source/tests/unit lib=$source/lib

cross() {
	aarch64-linux-gnu-gcc -std=gnu11 -Wall -Wextra -Werror "-I$source/include" "-I$lib" "$@"
}

for level in 0 2; do
	cross -O$level -static "$unit/sequence_main.c" -o "$work/sequences$level"
	qemu-aarch64 "$work/sequences$level"
done
set -- "$lib/cache.c" "$lib/drain.c" "$lib/fork.c" "$lib/percpu.c"
cross -O2 -fPIC -shared "$@" -o "$work/library.so"
if command -v python3 >/dev/null; then
	python3 "$unit/check_sections.py" "$work/library.so"
fi
cross -O2 -static -pthread "$unit/plain_main.c" "$@" -o "$work/program"
qemu-aarch64 "$work/program"
