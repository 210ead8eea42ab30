#!/bin/sh
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# drop_in.sh HEADER SOURCE - pcpcharge_stock.h is one file that people copy: it compiles with nothing
# else of ours in reach, does what stock.h does, and stands beside the other headers in any order, but
# not beside those of another version. That a module compiles it is in ../kernel/compile.sh.
set -eu
header=$1
source=$2
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/tree" "$work/out"
cp "$header" "$here/drop_in.c" "$work/tree"
cd "$work/tree"
flags="-O2 -Wall -Wextra -Werror -Wundef -Wshadow"
compilers=0

grep -q '^/\* SPDX-License-Identifier: MIT OR GPL-2.0-only \*/$' pcpcharge_stock.h
if grep -n '#include.*pcpcharge' pcpcharge_stock.h; then
	echo "includes another header of ours"
	exit 1
fi

# Each header first; with the drop-in twice; with primitives of the program's own.
cat >"$work/out/after.c" <<'END'
#include "pcpcharge_stock.h"
#include <pcpcharge/pcpcharge.h>
#include <pcpcharge/arch/generic.h>
#include "pcpcharge_stock.h"
END
cat >"$work/out/before.c" <<'END'
#include <pcpcharge/pcpcharge.h>
#include <pcpcharge/stock.h>
#include "pcpcharge_stock.h"
END
cat >"$work/out/base.c" <<'END'
#include <pcpcharge/base.h>
#include "pcpcharge_stock.h"
#include <pcpcharge/stock.h>
END
sed 's/^#define PCPC_VERSION_MINOR .*/#define PCPC_VERSION_MINOR 999/' pcpcharge_stock.h \
	>"$work/out/newer.h"
cat >"$work/out/skew.c" <<'END'
#include "newer.h"
#include "pcpcharge_stock.h"
END

# try COMPILER LANGUAGE STANDARD
try() {
	command -v "$1" >/dev/null || return 0
	compilers=$((compilers + 1))
	for extra in "" -DOWN_PRIMITIVES; do
		# shellcheck disable=SC2086 # lists of flags
		"$1" -x "$2" "-std=$3" $flags $extra drop_in.c -o "$work/out/program"
		"$work/out/program"
	done
	for order in after before base; do
		for extra in "" -DPCPC_INLINE; do
			# shellcheck disable=SC2086
			"$1" -x "$2" "-std=$3" $flags $extra -I. "-I$source/include" \
				-c "$work/out/$order.c" -o "$work/out/order.o"
		done
	done
	if "$1" -x "$2" "-std=$3" -I. -c "$work/out/skew.c" -o "$work/out/skew.o" 2>"$work/out/log"; then
		echo "two versions in one translation unit pass ($1)"
		exit 1
	fi
	grep -q 'beside headers of another version' "$work/out/log"
}

try gcc c c11
try clang c c11
try g++ c++ c++17
try clang++ c++ c++17
[ $compilers -gt 0 ] || { echo "skipped: no compiler"; exit 77; }
echo "$compilers compilers"
