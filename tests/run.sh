#!/bin/sh
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# run.sh [--full] [MESON TEST ARGUMENT...] - installs what is missing, builds, runs all tests. --full: the long
# form of those that have one, about an hour more.
# BUILD: the build directory (default build/tests in the checkout).
set -eu
cd "$(dirname "$0")/.."
build=${BUILD:-build/tests}

# To build; to run the tests that use them (gdb, qemu, the kernel's headers ...).
sh tests/packages.sh gcc libc6-dev meson ninja-build pkg-config liburcu-dev check python3 binutils \
	g++ clang gdb valgrind qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross \
	linux-headers-cloud-amd64 make qemu-system-x86 busybox-static cpio \
	redis-tools chromium \
	libjemalloc2 libmimalloc2.0 bash perl sqlite3 git libpython3.11-testsuite

[ -f "$build/build.ninja" ] || meson setup "$build" --werror
meson compile -C "$build"
if [ "${1-}" = --full ]; then
	shift
	export PCPC_MALLOC_LONG=1 PCPC_MALLOC_ROUNDS="${PCPC_MALLOC_ROUNDS:-10000000}"
	export CACHE_SECONDS="${CACHE_SECONDS:-10}" CACHE_CONNECTIONS="${CACHE_CONNECTIONS:-50}"
	export GUEST_SECONDS="${GUEST_SECONDS:-60}" PCPC_STRESS_SECONDS="${PCPC_STRESS_SECONDS:-30}"
	set -- -t 0 "$@"
fi
meson test -C "$build" --print-errorlogs "$@"
