#!/bin/sh
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# headers_kernel.sh INCLUDE URCU-FLAG... -- HEADER... - kernel.h and memcontrol.h compile alone, and
# beside every other public header in any order, as C with GNU extensions; their parts and C++ are
# refused with a word why; and no other public header includes them.
set -eu
include=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
flags="-std=gnu11 -O2 -Wall -Wextra -Wshadow -Wundef -Wstrict-prototypes -Werror -I$include"
while [ "$1" != -- ]; do
	flags="$flags $1"
	shift
done
shift
compilers=0

refused() {
	expected=$1
	shift
	if "$@" -c -o "$work/out.o" 2>"$work/log"; then
		echo "not refused: $*"
		exit 1
	fi
	grep -q "$expected" "$work/log"
}

for cc in gcc clang; do
	command -v $cc >/dev/null || continue
	compilers=$((compilers + 1))
	for header in kernel memcontrol; do
		printf '#include <pcpcharge/%s.h>\n' $header >"$work/alone.c"
		{
			printf '#include <stdatomic.h>\n#include <urcu-bp.h>\n'
			cat "$work/alone.c"
			printf '#include <pcpcharge/%s>\n' "$@"
		} >"$work/before.c"
		{
			printf '#include <pcpcharge/%s>\n' "$@"
			cat "$work/alone.c"
			printf '#include <stdatomic.h>\n#include <urcu-bp.h>\n'
		} >"$work/after.c"
		for file in alone before after; do
			for more in "" -DPCPC_INLINE -O0; do
				# shellcheck disable=SC2086 # lists of flags
				$cc $flags $more -c "$work/$file.c" -o "$work/out.o"
			done
		done
	done
	for part in "$include"/pcpcharge/kernel/*.h; do
		printf '#include <pcpcharge/kernel/%s>\n' "${part##*/}" >"$work/part.c"
		# shellcheck disable=SC2086
		refused 'include <pcpcharge/kernel.h>' $cc $flags "$work/part.c"
	done
done
for cxx in g++ clang++; do
	command -v $cxx >/dev/null || continue
	printf '#include <pcpcharge/kernel.h>\n' >"$work/alone.cc"
	refused 'for C' $cxx "-I$include" "$work/alone.cc"
done
for header; do
	if grep -nE 'include.*(kernel|memcontrol)' "$include/pcpcharge/$header"; then
		echo "$header includes what defines the kernel's names"
		exit 1
	fi
done
[ $compilers -gt 0 ] || { echo "skipped: no compiler"; exit 77; }
echo "2 headers, $compilers compilers"
