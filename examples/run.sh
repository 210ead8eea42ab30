#!/bin/sh
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# run.sh [--keep] - installs what is missing, builds, and runs the main job: a cache daemon with tenants, loaded
# by the clients of Redis. With --keep the daemon stays up, and run.sh says how to talk to it.
# BUILD: the build directory (default build/examples in the checkout).
set -eu
cd "$(dirname "$0")/.."
build=${BUILD:-build/examples}
case $build in /*) ;; *) build=$PWD/$build ;; esac

sh tests/packages.sh gcc libc6-dev meson ninja-build pkg-config liburcu-dev redis-tools python3

[ -f "$build/build.ninja" ] || meson setup "$build" -Dtests=false --buildtype=release >/dev/null
meson compile -C "$build" >/dev/null

echo "quickstart: alice uses her limit up; bob is within his, but the limit of both refuses him"
"$build/examples/quickstart"
echo
sh examples/server/demo.sh "$build/examples/server/cache" "${1-}"
echo
echo "malloc: python3, which knows nothing of this library, is given 64 MiB and wants 100,000 blocks of 10,000 bytes"
LD_PRELOAD=$build/examples/malloc/libpcpcharge-malloc.so PCPC_MALLOC_MAX=64M \
	PCPC_MALLOC_REPORT=stderr /usr/bin/python3 -c '
blocks = []
try:
    for i in range(100000):
        blocks.append(bytes(10000))
except MemoryError:
    held = len(blocks)
    blocks.clear()
    print(f"MemoryError after {held} blocks; freed, and went on")
'
echo
echo "kernel-style: a charging subsystem in the kernel's style; a module of the same sources tells the same"
"$build/examples/kernel-style/quota" 2>"$build/quota.txt"
diff examples/kernel-style/quota_trace.txt "$build/quota.txt"
tail -n 1 "$build/quota.txt"
