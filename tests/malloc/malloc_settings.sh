#!/bin/sh
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# malloc_settings.sh LIBRARY KEEP PYTHON HOOKS - the environment of libpcpcharge-malloc.so: limits, reports in every
# format and at every occasion, and what is malformed, which must never keep a program from running.
# shellcheck disable=SC2016,SC3045 # what another shell is to expand; ulimit -v: dash and bash have it
set -eu
library=$(realpath "$1") keep=$2 python=$3 hooks=$4
here=$(cd "$(dirname "$0")" && pwd)
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT

fail() {
	exec >&2
	echo "FAILED: $*"
	cat "$directory/out" "$directory/err" 2>/dev/null || true
	exit 1
}

# run STATUS [NAME=VALUE...] PROGRAM [ARGUMENT...]: the program under the library ends with that status.
run() {
	expected=$1
	shift
	status=0
	env LD_PRELOAD="$library" "$@" >"$directory/out" 2>"$directory/err" || status=$?
	[ "$status" = "$expected" ] || fail "status $status: $*"
}

quiet() {
	[ ! -s "$directory/err" ] || fail "a message where there should be none"
}

complains() {
	grep -q "^libpcpcharge-malloc: .*$1" "$directory/err" || fail "no message about $1"
}

json() {
	rm -f "$directory"/report.*
	run "$@"
	"$python" "$here/malloc_check_report.py" "$directory"/report.* || fail "report"
}

# Charged is exactly what is held: two runs differ by what they keep, and the 16 bytes of either block.
set -- PCPC_MALLOC_REPORT="$directory/report.%p" PCPC_MALLOC_FORMAT=json
little=$(json 0 "$@" "$keep" 1000)
much=$(json 0 "$@" "$keep" 7001000)
quiet
[ $((${much% *} - ${little% *})) = 7000000 ] || fail "held $little, $much"

# Limits, with each suffix; a refusal is the program's ENOMEM, and counted.
for size in 4M 4096k 4194304; do
	run 0 PCPC_MALLOC_MAX=$size "$keep" 3000000
	quiet
	[ "$(json 2 "$@" PCPC_MALLOC_MAX=$size "$keep" 5000000 | cut -d ' ' -f 2)" = 1 ] || fail "refused"
done
run 0 PCPC_MALLOC_MAX=1G PCPC_MALLOC_HIGH=1T "$keep" 5000000
quiet
run 0 PCPC_MALLOC_HIGH=1M PCPC_MALLOC_REPORT=stderr "$keep" 5000000
grep -q "high 1" "$directory/err" || fail "high is not in the report"

# Formats.
run 0 PCPC_MALLOC_REPORT="$directory/prometheus.%p" PCPC_MALLOC_FORMAT=prometheus "$keep" 100
grep -q '^pcpcharge_malloc_usage_bytes{domain="malloc",' "$directory"/prometheus.* || fail "prometheus"
run 0 PCPC_MALLOC_REPORT="$directory/appended" "$keep" 100
run 0 PCPC_MALLOC_REPORT="$directory/appended" PCPC_MALLOC_FORMAT=text "$keep" 100
quiet
[ "$(grep -c "^malloc, in bytes" "$directory/appended")" = 2 ] || fail "reports are not appended"

# On a signal, by the next call: this program ends without exit handlers. One that is ignored stays so.
for name in USR1 10; do
	json 0 "$@" PCPC_MALLOC_SIGNAL=$name "$keep" 100 10 >/dev/null
	quiet
done
(
	trap '' USR1
	run 0 PCPC_MALLOC_SIGNAL=USR1 PCPC_MALLOC_REPORT="$directory/ignored" "$keep" 100 10
)
complains PCPC_MALLOC_SIGNAL
[ ! -e "$directory/ignored" ] || fail "a signal that was ignored"

# Malformed: told, and left out.
for wrong in MAX= MAX=0 MAX=x MAX=-1 MAX=1.5G MAX=12KB MAX=12Q MAX=99999999999999999999 MAX=9999999999T \
	HIGH=G HIGH=0 FORMAT=xml SIGNAL=KILL SIGNAL=9 SIGNAL=0 SIGNAL=1000 SIGNAL=USR3 SIGNAL=11 SIGNAL=6 \
	FORK_HOOKS=yes FORK_HOOKS=2; do
	run 0 "PCPC_MALLOC_$wrong" "$keep" 5000000
	[ "$(cat "$directory/out")" = kept ] || fail "output"
	if [ "$wrong" = MAX= ]; then quiet; else complains "PCPC_MALLOC_${wrong%%=*}"; fi
done
run 0 PCPC_MALLOC_REPORT="$(printf '%5000s' x)" "$keep" 100
complains PCPC_MALLOC_REPORT
run 0 PCPC_MALLOC_REPORT="$directory/no/such/directory" "$keep" 100
complains "cannot write the report"

# No room for the domain's address space: nothing is charged, and the program runs.
(
	ulimit -v 300000
	run 0 PCPC_MALLOC_MAX=1M "$keep" 5000000
)
complains "cannot make the domain"

# The library has no descriptor of its own: numbers are the program's, in its children too.
run 0 sh -c 'exec 3>"$0"; (echo inner >&3); echo outer >&3; ls /proc/self/fd' "$directory/three"
[ "$(cat "$directory/three")" = "inner
outer" ] || fail "descriptor 3"
sh -c 'exec 3>"$0"; ls /proc/self/fd' "$directory/three" >"$directory/without"
cmp "$directory/out" "$directory/without" || fail "descriptors"

# A report that nobody reads keeps nobody waiting; and a link that somebody has planted stays what it is.
mkfifo "$directory/fifo"
run 0 PCPC_MALLOC_REPORT="$directory/fifo" "$keep" 100
complains "cannot write the report"
echo planted >"$directory/target"
run 0 sh -c 'ln -s "$0/target" "$0/report.$$"; PCPC_MALLOC_REPORT="$0/report.%p" exec "$1" 100' "$directory" "$keep"
complains "cannot write the report"
[ "$(cat "$directory/target")" = planted ] || fail "a planted link"

# Only one may call liburcu-bp's fork hooks.
run 0 PCPC_MALLOC_FORK_HOOKS=0 timeout 60 "$hooks"
quiet
