#!/bin/sh
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# headers.sh INCLUDE HEADER... - every public header compiles alone, as C11 and as C++17, by each
# compiler that is here; stock.h also without a hosted libc; and the inline fast path in two C++
# objects links (its sections must not stand in the way of merging).
set -eu
include=$1
shift
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
flags="-O2 -Wall -Wextra -Werror -I$include"
compilers=0

for cc in gcc clang; do
	command -v $cc >/dev/null || continue
	compilers=$((compilers + 1))
	for header; do
		name=${header##*/}
		for macros in "" -DPCPC_INLINE "-DPCPC_INLINE -DPCPC_INLINE_UNLOADABLE" -DPCPC_NO_RSEQ; do
			printf '#include <pcpcharge/%s>\n' "$name" >"$work/$name.c"
			# shellcheck disable=SC2086 # lists of flags
			$cc -std=c11 $flags $macros -c "$work/$name.c" -o "$work/out.o"
		done
	done
	printf '#include <pcpcharge/stock.h>\n' >"$work/free.c"
	# shellcheck disable=SC2086
	$cc -std=c11 -ffreestanding -nostdlib $flags -c "$work/free.c" -o "$work/free.o"
done
for cxx in g++ clang++; do
	command -v $cxx >/dev/null || continue
	compilers=$((compilers + 1))
	for header; do
		name=${header##*/}
		printf '#include <pcpcharge/%s>\n' "$name" >"$work/$name.cc"
		# shellcheck disable=SC2086
		$cxx -std=c++17 $flags -DPCPC_INLINE -c "$work/$name.cc" -o "$work/out.o"
	done
	for half in 1 2; do
		# shellcheck disable=SC2086
		$cxx -std=c++17 $flags -DHALF=$half -fPIC -c "$here/inline_twice.cc" -o "$work/half$half.o"
	done
	$cxx -shared "$work/half1.o" "$work/half2.o" -o "$work/both.so"
done
[ $compilers -gt 0 ] || { echo "skipped: no compiler"; exit 77; }
echo "$# headers, $compilers compilers"
