#!/bin/sh
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# install.sh BUILD QUICKSTART.c - the installed copy is complete: programs are built against it by
# pkg-config, shared and static, as C and as C++, and run. No source or build folder is in reach.
set -eu
build=$1 quickstart=$2
command -v pkg-config >/dev/null || { echo "skipped: no pkg-config"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

DESTDIR=$work/root meson install -C "$build" --no-rebuild >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
pc=$(find "$work/root" -name libpcpcharge.pc)
libdir=$(dirname "$(dirname "$pc")")
export PKG_CONFIG_PATH="${pc%/*}" PKG_CONFIG_SYSROOT_DIR="$work/root" LD_LIBRARY_PATH="$libdir"
[ "$(pkg-config --modversion libpcpcharge)" != "" ]
# Every header that an installed header includes is installed.
for header in $(cd "$work/root" && find . -path '*/pcpcharge/*.h'); do
	sed -n 's/^#include <\(pcpcharge\/.*\)>.*/\1/p' "$work/root/$header"
done | sort -u | while read -r wanted; do
	[ -n "$(find "$work/root" -path "*/include/$wanted")" ] || { echo "$wanted is not installed"; exit 1; }
done

cflags=$(pkg-config --cflags libpcpcharge)
# shellcheck disable=SC2046,SC2086 # lists of flags
{
	cc -O2 -Wall -Wextra -Werror "$quickstart" $cflags $(pkg-config --libs libpcpcharge) -o "$work/shared"
	cc -O2 -DPCPC_INLINE "$quickstart" $cflags $(pkg-config --libs libpcpcharge) -o "$work/inline"
	cc -O2 -static "$quickstart" $cflags $(pkg-config --static --libs libpcpcharge) -o "$work/static"
}
programs="shared inline static"
if command -v c++ >/dev/null; then
	printf '#define PCPC_INLINE\n#include <pcpcharge/pcpcharge.h>\nint main() { return *pcpc_version() != 48; }\n' >"$work/cxx.cc"
	# shellcheck disable=SC2046,SC2086
	{
		c++ -std=c++17 -O2 "$work/cxx.cc" $cflags $(pkg-config --libs libpcpcharge) -o "$work/cxx"
		c++ -std=c++17 -O2 -static "$work/cxx.cc" $cflags \
			$(pkg-config --static --libs libpcpcharge) -o "$work/cxx-static"
	}
	programs="$programs cxx cxx-static"
fi
for program in $programs; do
	"$work/$program" >/dev/null
done
# The shared one really was the library, which stays when it is closed.
ldd "$work/shared" | grep -q libpcpcharge.so.0
readelf -d "$libdir"/libpcpcharge.so.0 | grep -q NODELETE
echo "built and ran: $programs"
