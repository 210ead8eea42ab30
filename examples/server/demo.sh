#!/bin/sh
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# demo.sh CACHE [--keep] - the cache daemon with three tenants under the load of redis-benchmark: one is held
# at its limit and refused, one loses its own oldest keys, the third is unharmed. Then what each way of
# accounting costs. With --keep the daemon stays, until it is told to end.
# PORT, HTTP_PORT: where (default 6390, 6391).
set -eu
cache=$1
keep=${2-}
port=${PORT:-6390} http_port=${HTTP_PORT:-6391}
pid=
said=$(mktemp)
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null || true; rm -f "$said"' EXIT
trap 'exit 1' HUP INT PIPE TERM

start() {
	"$cache" --port="$port" --http-port="$http_port" "$@" >"$said" &
	pid=$!
	until grep -q '^cache: port' "$said"; do
		kill -0 "$pid" 2>/dev/null || { echo "the daemon does not start"; exit 1; }
		sleep 0.02
	done
}

# Its status tells whether every byte that was charged has come back.
stop() {
	kill "$pid"
	wait "$pid"
	pid=
}

# say TENANT COMMAND... - as a client of that tenant
say() {
	tenant=$1
	shift
	redis-cli -p "$port" --no-auth-warning --user "$tenant" --pass "$tenant" "$@"
}

# load TENANT - 30,000 values of 1,000 bytes under random keys
load() {
	redis-benchmark -p "$port" --user "$1" -a "$1" -t set -d 1000 -r 100000 -n 30000 -c 50 -q >/dev/null 2>&1
}

# page PATH - over HTTP, indented
page() {
	python3 -c 'import sys, urllib.request as u; print(u.urlopen(sys.argv[1]).read().decode(), end="")' \
		"http://127.0.0.1:$http_port/$1" | sed 's/^/  /'
}

figure() {
	say "$1" info | tr -d '\r' | sed -n "s/^$2://p"
}

three="--tenant=alice:alice,max=8m,policy=refuse --tenant=bob:bob,max=8m,policy=evict
	--tenant=carol:carol,max=64m"
# shellcheck disable=SC2086 # a list
start $three
say carol set greeting unharmed >/dev/null
echo "Three tenants set 30,000 values of 1,000 bytes each, at once (redis-benchmark stops when it is refused):"
for tenant in alice bob carol; do
	load $tenant &
	loads="${loads-} $!"
done
# shellcheck disable=SC2086 # a list
wait $loads
printf '  %-8s%10s%12s%12s%10s%10s\n' tenant keys bytes limit refused evicted
for tenant in alice bob carol; do
	printf '  %-8s%10s%12s%12s%10s%10s\n' $tenant "$(figure $tenant keys)" \
		"$(figure $tenant used_memory)" "$(figure $tenant maxmemory)" \
		"$(figure $tenant refused_commands)" "$(figure $tenant evicted_keys)"
done
echo "  alice, full, is told:  $(say alice set one "$(printf '%100000s' x)")"
echo "  carol's greeting is:   $(say carol get greeting)"
echo "Who fills the limit that refused her last:"
page refusal
echo "The tree of owners (http://127.0.0.1:$http_port/ shows it as a page, /metrics to Prometheus):"
page tree | sed '/nobody/,$d'
[ "$(figure alice refused_commands)" -gt 0 ] && [ "$(figure bob evicted_keys)" -gt 0 ]
[ "$(figure carol refused_commands)$(figure carol evicted_keys)" = 00 ]
for tenant in alice bob carol; do
	say $tenant flushdb >/dev/null
done
stop

echo "What accounting costs: requests a second of the same daemon, best of three rounds in turn"
ways="none pcpcharge atomic locked"
for round in 1 2 3; do
	for way in $ways; do
		start --accounting=$way --tenant=open,max=256m
		redis-benchmark -p "$port" -t set,get -d 100 -r 10000 -n 100000 -P 16 -c 20 --csv 2>/dev/null |
			tr -d '"' | awk -F, -v way=$way '$2 > 0 { print way, $1, $2 }'
		stop
	done
done | awk -v ways="$ways" '
	$3 > best[$1, $2] { best[$1, $2] = $3 }
	END {
		printf "  %-12s%12s%12s\n", "accounting", "SET/s", "GET/s"
		n = split(ways, way, " ")
		for (i = 1; i <= n; i++)
			printf "  %-12s%12.0f%12.0f\n", way[i], best[way[i], "SET"], best[way[i], "GET"]
	}'

if [ "$keep" = --keep ]; then
	# shellcheck disable=SC2086 # a list
	start $three
	echo "The daemon stays: redis-cli -p $port --user alice --pass alice; status on http://127.0.0.1:$http_port/;"
	echo "to end it: kill $pid"
	pid=
fi
