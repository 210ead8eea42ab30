#!/bin/sh
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# compile.sh SOURCE - stock.h compiles inside a kernel module, without a warning. Nothing is loaded.
set -eu
source=$1
headers=
for folder in /usr/src/linux-headers-*-amd64 /usr/src/linux-headers-*-arm64; do
	[ -f "$folder/Makefile" ] && headers=$folder
done
[ -n "$headers" ] || { echo "skipped: no kernel headers (package linux-headers-amd64)"; exit 77; }
command -v make >/dev/null || { echo "skipped: no make"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cp "$source/tests/kernel/pcpc_stock.c" "$work"
# The compiler of the kernel's own configuration, where it is there.
cc=$(sed -n 's/^CONFIG_CC_VERSION_TEXT="\([^ ]*\) .*/\1/p' "$headers/.config")
command -v "$cc" >/dev/null || cc=gcc
cat >"$work/Makefile" <<END
obj-m := pcpc_stock.o
ccflags-y := -I$source/include -Wextra -Wno-unused-parameter
END
make -s -C "$headers" M="$work" CC="$cc" CONFIG_DEBUG_INFO_BTF_MODULES= modules >"$work/log" 2>&1 ||
	{ cat "$work/log"; exit 1; }
# Only what concerns the header and the module; kernel headers have their own with -Wextra.
if grep -E '(pcpcharge|pcpc_stock)[^:]*:[0-9]+.*warning' "$work/log"; then
	exit 1
fi
[ -f "$work/pcpc_stock.ko" ]
echo "built by $cc against ${headers##*/}"
