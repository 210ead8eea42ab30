#!/bin/sh
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# run.sh [MESON TEST ARGUMENT...] - installs what is missing, builds, runs all tests.
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
meson test -C "$build" --print-errorlogs "$@"
