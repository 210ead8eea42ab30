#!/bin/sh
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# headers.sh INCLUDE HEADER... - every public header compiles alone, as C11 and as C++17, by each
# compiler that is here, and defines no macro that is not prefixed; stock.h also without a libc; an
# architecture's file refuses to be included alone; and the inline fast path in two C++ objects
# links (its sections must not stand in the way of merging), also where two compilers made them.
set -eu
include=$1
shift
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
flags="-O2 -Wall -Wextra -Wshadow -Wundef -Werror -I$include"
compilers=0

# The macros that are defined after including a file, by name.
macros() {
	"$@" -dM -E | sed 's/^#define \([A-Za-z0-9_]*\).*/\1/' | sort -u
}

for cc in gcc clang; do
	command -v $cc >/dev/null || continue
	compilers=$((compilers + 1))
	printf '#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n' >"$work/none.c"
	macros $cc -std=c11 "$work/none.c" >"$work/before"
	for header; do
		printf '#include <pcpcharge/%s>\n' "$header" >"$work/one.c"
		for macros in "" -DPCPC_INLINE "-DPCPC_INLINE -DPCPC_INLINE_UNLOADABLE" \
			-DPCPC_NO_RSEQ; do
			# shellcheck disable=SC2086 # lists of flags
			$cc -std=c11 $flags $macros -c "$work/one.c" -o "$work/out.o"
		done
		macros $cc -std=c11 -DPCPC_INLINE "-I$include" "$work/one.c" >"$work/after"
		comm -13 "$work/before" "$work/after" >"$work/new"
		if grep -vE '^(PCPC_|PCPCHARGE_|pcpc_cache_(consume|refill)$)' "$work/new"; then
			echo "$header defines these macros, which are not prefixed ($cc)"
			exit 1
		fi
		# without optimisation and in position-dependent code
		# shellcheck disable=SC2086
		$cc -std=c11 $flags -O0 -fno-pie -DPCPC_INLINE -c "$work/one.c" -o "$work/out.o"
	done
	# Nothing but the compiler's own stdbool.h, stddef.h and stdint.h.
	printf '#include <pcpcharge/stock.h>\n' >"$work/free.c"
	own=$($cc -print-file-name=include)
	# shellcheck disable=SC2086
	$cc -std=c11 -ffreestanding -nostdinc -isystem "$own" $flags -c "$work/free.c" \
		-o "$work/free.o"
	for arch in x86_64 aarch64; do
		printf '#include <pcpcharge/arch/%s.h>\n' $arch >"$work/arch.c"
		if $cc -std=c11 "-I$include" -c "$work/arch.c" -o "$work/out.o" 2>"$work/log"; then
			echo "arch/$arch.h can be included alone ($cc)"
			exit 1
		fi
		grep -q 'include arch/sequences.h' "$work/log"
	done
done
halves=
for cxx in g++ clang++; do
	command -v $cxx >/dev/null || continue
	compilers=$((compilers + 1))
	for header; do
		printf '#include <pcpcharge/%s>\n' "$header" >"$work/one.cc"
		for macros in "" -DPCPC_INLINE; do
			# shellcheck disable=SC2086
			$cxx -std=c++17 $flags $macros -c "$work/one.cc" -o "$work/out.o"
		done
	done
	for level in 0 2; do
		for half in 1 2; do
			# shellcheck disable=SC2086
			$cxx -std=c++17 $flags -O$level -DHALF=$half -fPIC \
				-c "$here/inline_twice.cc" -o "$work/$cxx$half.o"
		done
		$cxx -shared "$work/${cxx}1.o" "$work/${cxx}2.o" -o "$work/both.so"
	done
	halves="$halves $cxx"
done
if [ "$halves" = " g++ clang++" ]; then
	g++ -shared "$work/g++1.o" "$work/clang++2.o" -o "$work/both.so"
	g++ -shared "$work/clang++1.o" "$work/g++2.o" -o "$work/both.so"
fi
[ $compilers -gt 0 ] || { echo "skipped: no compiler"; exit 77; }
echo "$# headers, $compilers compilers"
