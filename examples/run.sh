#!/bin/sh
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# run.sh - installs what is missing, builds, runs the examples and a short benchmark table.
# BUILD: the build directory (default build/examples in the checkout).
set -eu
cd "$(dirname "$0")/.."
build=${BUILD:-build/examples}

sh tests/packages.sh gcc libc6-dev meson ninja-build pkg-config liburcu-dev

[ -f "$build/build.ninja" ] || meson setup "$build" -Dtests=false --buildtype=release >/dev/null
meson compile -C "$build" >/dev/null

echo "quickstart: alice uses her limit up; bob is within his, but the limit of both refuses him"
"$build/examples/quickstart"
echo
echo "counters: the charge cache alone, with counters of the program's own; four million operations"
"$build/examples/counters"
echo
echo "report: what tenants use, and who fills the limit that refuses one; also json, prometheus"
"$build/examples/report"
echo
echo "kernel-style: a charging subsystem in the kernel's style; a module of the same sources tells the same"
"$build/examples/kernel-style/quota" 2>&1 | tee "$build/quota.txt" | tail -n 1
diff examples/kernel-style/quota_trace.txt "$build/quota.txt"
echo
"$build/tests/bench/cache_bench" --short
