#!/bin/sh
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# install.sh BUILD EXAMPLE.c... - the installed copy is complete: programs are built against it by
# pkg-config, shared and static, as C and as C++, and run. No source or build folder is in reach.
set -eu
build=$1
shift
here=$(cd "$(dirname "$0")" && pwd)
command -v pkg-config >/dev/null || { echo "skipped: no pkg-config"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

DESTDIR=$work/root meson install -C "$build" --no-rebuild >"$work/log" 2>&1 || {
	cat "$work/log"
	exit 1
}
pc=$(find "$work/root" -name libpcpcharge.pc)
libdir=$(dirname "$(dirname "$pc")")
export PKG_CONFIG_PATH="${pc%/*}" PKG_CONFIG_SYSROOT_DIR="$work/root" LD_LIBRARY_PATH="$libdir"
[ "$(pkg-config --modversion libpcpcharge)" != "" ]
# Every header that an installed header includes is installed.
for header in $(cd "$work/root" && find . -path '*/pcpcharge/*.h'); do
	sed -n 's/^#include <\(pcpcharge\/.*\)>.*/\1/p' "$work/root/$header"
done | sort -u | while read -r wanted; do
	[ -n "$(find "$work/root" -path "*/include/$wanted")" ] && continue
	echo "$wanted is not installed"
	exit 1
done
# The single file is there, and needs none of the others.
mkdir "$work/copy"
cp "$(find "$work/root" -name pcpcharge_stock.h)" "$here/drop_in.c" "$work/copy"
cc -O2 -Wall -Wextra -Werror "$work/copy/drop_in.c" -o "$work/copy/drop_in"
"$work/copy/drop_in"

cflags=$(pkg-config --cflags libpcpcharge)
libs=$(pkg-config --libs libpcpcharge) static_libs=$(pkg-config --static --libs libpcpcharge)
programs=
for example; do
	name=$(basename "$example" .c)
	# shellcheck disable=SC2086 # lists of flags
	{
		cc -O2 -Wall -Wextra -Werror "$example" $cflags $libs -o "$work/$name-shared"
		cc -O2 -DPCPC_INLINE "$example" $cflags $libs -o "$work/$name-inline"
		cc -O2 -static "$example" $cflags $static_libs -o "$work/$name-static"
	}
	# It really is the library's shared copy.
	ldd "$work/$name-shared" | grep -q libpcpcharge.so.0
	programs="$programs $name-shared $name-inline $name-static"
done
# In the kernel's style; the headers in it are C with GNU extensions.
cat >"$work/memcg.c" <<-'END'
	#include <pcpcharge/memcontrol.h>
	int main(void)
	{
		struct mem_cgroup *memcg;

		if (pcpc_memcg_init(NULL))
			return 1;
		memcg = mem_cgroup_create(NULL, "web");
		if (IS_ERR(memcg) || try_charge_memcg(memcg, GFP_KERNEL, 1))
			return 1;
		if (mem_cgroup_usage(memcg) != 64)
			return 1;
		refill_stock(memcg, 1);
		return mem_cgroup_destroy(memcg) || pcpc_memcg_exit();
	}
END
quota=$(dirname "$1")/kernel-style
# shellcheck disable=SC2086
{
	cc -std=gnu11 -O2 "$work/memcg.c" $cflags $libs -o "$work/memcg-shared"
	cc -std=gnu11 -O2 -static "$work/memcg.c" $cflags $static_libs -o "$work/memcg-static"
	# RCU is that of liburcu.
	cc -std=gnu11 -O2 "$quota"/*.c $cflags $libs -lurcu-bp -o "$work/quota-shared"
	cc -std=gnu11 -O2 -static "$quota"/*.c $cflags $static_libs -o "$work/quota-static"
}
programs="$programs memcg-shared memcg-static quota-shared quota-static"
if command -v c++ >/dev/null; then
	cat >"$work/cxx.cc" <<-'END'
		#define PCPC_INLINE
		#include <pcpcharge/pcpcharge.h>
		int main()
		{
			const pcpc_marks marks = { 64, 32, 64 };
			pcpc_domain_config config = {};
			pcpc_deferred deferred;
			pcpc_domain *domain;
			pcpc_cache *cache;

			if (pcpc_cache_create(nullptr, &cache))
				return 1;
			pcpc_cache_refill(cache, 1, 65, 0, &marks, &deferred);
			pcpc_cache_destroy(cache);
			config.size = sizeof(config);
			config.batch = PCPC_BATCH_PAGES;
			if (deferred.count != 65 || pcpc_domain_create(&config, &domain))
				return 1;
			if (pcpc_charge(pcpc_domain_root(domain), 3))
				return 1;
			pcpc_uncharge(pcpc_domain_root(domain), 3);
			return pcpc_domain_destroy(domain) != 0;
		}
	END
	# shellcheck disable=SC2086
	{
		c++ -std=c++17 -O2 "$work/cxx.cc" $cflags $libs -o "$work/cxx"
		c++ -std=c++17 -O2 -static "$work/cxx.cc" $cflags $static_libs -o "$work/cxx-static"
	}
	programs="$programs cxx cxx-static"
fi
for program in $programs; do
	"$work/$program" >/dev/null 2>&1
done
# The library stays when it is closed.
readelf -d "$libdir"/libpcpcharge.so.0 | grep -q NODELETE
echo "built and ran: $programs"
