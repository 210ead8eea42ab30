#!/bin/sh
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# compile.sh SOURCE HEADER - stock.h, pcpcharge_stock.h without any other header of ours in reach, and
# kernel.h, which defines nothing there, compile inside a kernel module, without a warning. Nothing is
# loaded.
set -eu
source=$1
header=$2
headers=
for folder in /usr/src/linux-headers-*-amd64 /usr/src/linux-headers-*-arm64; do
	[ -f "$folder/Makefile" ] && headers=$folder
done
[ -n "$headers" ] || { echo "skipped: no kernel headers (package linux-headers-cloud-amd64)"; exit 77; }
command -v make >/dev/null || { echo "skipped: no make"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The compiler of the kernel's own configuration, where it is there.
cc=$(sed -n 's/^CONFIG_CC_VERSION_TEXT="\([^ ]*\) .*/\1/p' "$headers/.config")
command -v "$cc" >/dev/null || cc=gcc

# module NAME FLAGS - builds the module whose source is in that folder.
module() {
	cat >"$work/$1/Makefile" <<-END
		obj-m := pcpc_stock.o
		ccflags-y := $2 -Wextra -Wno-unused-parameter
	END
	make -s -C "$headers" M="$work/$1" CC="$cc" CONFIG_DEBUG_INFO_BTF_MODULES= modules \
		>"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
	# Only what concerns the header and the module; kernel headers have their own with -Wextra.
	if grep -E '(pcpcharge|pcpc_stock)[^:]*:[0-9]+.*warning' "$work/log"; then
		exit 1
	fi
	[ -f "$work/$1/pcpc_stock.ko" ]
}

mkdir "$work/header" "$work/copy" "$work/kernel"
cp "$source/tests/kernel/pcpc_stock.c" "$work/header"
module header "-I$source/include"
cp "$header" "$work/copy"
sed 's|<pcpcharge/stock.h>|"pcpcharge_stock.h"|' "$source/tests/kernel/pcpc_stock.c" \
	>"$work/copy/pcpc_stock.c"
module copy ""
cp "$source/tests/kernel/pcpc_kernel.c" "$work/kernel/pcpc_stock.c"
module kernel "-I$source/include"
# What kernel.h has for a kernel is includes, and nothing else.
sed '1,/^#ifdef __KERNEL__/d; /^#else/,$d' "$source/include/pcpcharge/kernel.h" >"$work/part"
if grep -v '^#include <linux/.*>$\|^$' "$work/part"; then
	echo "kernel.h defines that in a kernel"
	exit 1
fi
grep -q '^#include <linux/percpu.h>' "$work/part"
echo "built by $cc against ${headers##*/}"
