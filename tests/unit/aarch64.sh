#!/bin/sh
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# aarch64.sh SOURCE - the cases of sequence_cases.h for the aarch64 sequences, compiled by a cross
# compiler and run by qemu-user, which knows no rseq: the sequences run over a fake area. Also that
# the library compiles for it without a warning.
set -eu
source=$1
for tool in aarch64-linux-gnu-gcc qemu-aarch64; do
	command -v $tool >/dev/null || { echo "skipped: no $tool (packages gcc-aarch64-linux-gnu, qemu-user)"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

flags="-std=gnu11 -O2 -Wall -Wextra -Werror -I$source/include -I$source/lib -I$source/tests/unit"
for level in 0 2; do
	# shellcheck disable=SC2086 # a list of flags
	aarch64-linux-gnu-gcc $flags -O$level -static "$source/tests/unit/sequence_main.c" -o "$work/sequences$level"
	qemu-aarch64 "$work/sequences$level"
done
for file in cache drain fork percpu; do
	# shellcheck disable=SC2086
	aarch64-linux-gnu-gcc $flags -fPIC -c "$source/lib/$file.c" -o "$work/$file.o"
done
