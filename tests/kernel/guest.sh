#!/bin/sh
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# guest.sh SOURCE BUILD - boots a Linux guest of 8 CPUs under software emulation and loads the module
# pcpc_guest in it: the stock at work in a real kernel, on this_cpu_cmpxchg(), from tasks, softirqs and
# hard interrupts, with drains and CPUs that go and come (G1, G5, G6 of lib/DESIGN.md; semantics.md 1.5,
# 1.8 and bug H6). Then its twins, each of which leaves something out and must be found broken. Before
# them examples/kernel-style as a module, which must tell there what it tells as a program.
#
# GUEST_SECONDS: how long the first run is (default 5). Nothing of the guest is installed: its kernel
# is unpacked below BUILD, and kept there.
set -eu
source=$1
work=$2/guest
seconds=${GUEST_SECONDS:-5}

skip() {
	echo "skipped: $*"
	exit 77
}

# The newest headers of the flavour that boots fastest; their version is that of the kernel.
find_headers() {
	headers=
	for folder in /usr/src/linux-headers-*-cloud-amd64; do
		[ -f "$folder/Makefile" ] && headers=$folder
	done
	version=${headers##*/linux-headers-}
	kernel=$work/linux-$version/boot/vmlinuz-$version
}

# Unpacks the package of that kernel below $work; false where it cannot be had.
fetch_kernel() {
	rm -rf "$work/fetch" "$work/linux-$version"
	mkdir -p "$work/fetch" &&
		(cd "$work/fetch" &&
			apt-get -qq -o APT::Sandbox::User=root download "linux-image-$version") &&
		dpkg -x "$work"/fetch/linux-image-*.deb "$work/fetch/root" &&
		mv "$work/fetch/root" "$work/linux-$version" &&
		[ -f "$kernel" ]
}

# The lists may be older than what the mirror has, and the headers too.
get_kernel() {
	[ -f "$kernel" ] || fetch_kernel && return
	[ "$(id -u)" = 0 ] && apt-get -qq update || return 1
	fetch_kernel && return
	apt-get -qq install --no-install-recommends linux-headers-cloud-amd64 >/dev/null || return 1
	find_headers
	fetch_kernel
}

build_modules() {
	rm -rf "$work/module"
	mkdir -p "$work/module"
	cp "$source"/tests/kernel/Kbuild "$source"/tests/kernel/*.[ch] \
		"$source"/examples/kernel-style/quota*.[ch] "$work/module"
	rm "$work/module/quota_main.c"
	cc=$(sed -n 's/^CONFIG_CC_VERSION_TEXT="\([^ ]*\) .*/\1/p' "$headers/.config")
	command -v "$cc" >/dev/null || cc=gcc
	make -s -C "$headers" M="$work/module" PCPC_SOURCE="$source" CC="$cc" \
		CONFIG_DEBUG_INFO_BTF_MODULES= modules >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
	if grep warning: "$work/log"; then
		exit 1
	fi
}

make_initramfs() {
	rm -rf "$work/root"
	mkdir -p "$work/root/bin" "$work/root/dev"
	cp "$(command -v busybox)" "$work/root/bin"
	cp "$source/tests/kernel/guest_init.sh" "$work/root/init"
	for module in pcpc_stock pcpc_quota pcpc_guest; do
		strip --strip-debug -o "$work/root/$module.ko" "$work/module/$module.ko"
	done
	cat >"$work/root/plan" <<-END
		pcpc_stock
		pcpc_quota
		pcpc_guest twin=0 seconds=$seconds
		pcpc_guest twin=1 seconds=1
		pcpc_guest twin=2 seconds=1
		pcpc_guest twin=3 seconds=1
	END
	(cd "$work/root" && find . | cpio --quiet -o -H newc | gzip -1) >"$work/initramfs"
}

# loglevel=7: the modules' lines, and whatever a kernel has to complain about. preempt=full: tasks are
# preempted in the middle of operations. The rest is what emulation needs to boot fast.
boot() {
	timeout $((240 + 3 * seconds)) qemu-system-x86_64 -accel tcg,thread=multi -smp 8 -m 512 \
		-kernel "$kernel" -initrd "$work/initramfs" -nodefaults -no-reboot -display none \
		-serial stdio -append "console=ttyS0 loglevel=7 panic=-1 preempt=full \
		sysctl.kernel.hung_task_timeout_secs=30 mitigations=off nokaslr lpj=4000000 no_timer_check" \
		</dev/null >"$work/console" 2>&1
}

failed=
fail() {
	echo "$*"
	failed=1
}

# expect TWIN PATTERN - the twin's verdict.
expect() {
	grep -q "pcpc_guest: stocks twin=$1 .*$2" "$work/console" || fail "twin $1: no verdict with: $2"
}

command -v dpkg >/dev/null || skip "needs Debian"
[ "$(uname -m)$(dpkg --print-architecture)" = x86_64amd64 ] || skip "needs amd64"
sh "$source/tests/packages.sh" qemu-system-x86 busybox-static cpio make linux-headers-cloud-amd64 ||
	skip "packages are missing"
find_headers
get_kernel || skip "no linux-image-$version: neither in $work nor from the mirror"
build_modules
make_initramfs
boot || fail "the guest did not power off by itself (status $?)"

tr -d '\r' <"$work/console" | grep -a 'pcpc_guest: stocks\|could not be loaded' || true
grep -q 'guest: end of plan' "$work/console" || fail "the plan was not carried out"
if grep -a 'could not be loaded' "$work/console"; then
	fail "a module was refused"
fi
# What a kernel prints when something is wrong with it. None of it is allowed.
complaints='WARNING:|BUG:|INFO:|Oops|Call Trace|Kernel panic|[Ll]ockup|rcu.*stall|general protection'
complaints="$complaints|unable to handle|blocked for more than|while atomic|corruption|UBSAN|nobody cared"
status=0
grep -aE "$complaints" "$work/console" || status=$?
[ $status = 1 ] || fail "the kernel complains (or grep does: $status)"
grep -ao 'quota: .*' "$work/console" | tr -d '\r' |
	diff -u "$source/examples/kernel-style/quota_trace.txt" - || fail "the quotas tell another trace"
expect none ' sound:'
expect commit ' broken:.* lost=[0-9]*(!)'
expect insert ' broken:.* doubled=[0-9]*(!)'
expect death ' broken:.* left=[0-9]*(!)'
[ -z "$failed" ] || { cat "$work/console"; exit 1; }
