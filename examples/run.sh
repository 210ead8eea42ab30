#!/bin/sh
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# run.sh - installs what is missing, builds, runs the quickstart and a short benchmark table.
# BUILD: the build directory (default build/examples in the checkout).
set -eu
cd "$(dirname "$0")/.."
build=${BUILD:-build/examples}

sh tests/packages.sh gcc libc6-dev meson ninja-build pkg-config

[ -f "$build/build.ninja" ] || meson setup "$build" -Dtests=false --buildtype=release >/dev/null
meson compile -C "$build" >/dev/null

echo "quickstart: two tenants, four million operations"
"$build/examples/quickstart"
echo
"$build/tests/bench/cache_bench" --short
