#!/bin/sh
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# malloc_programs.sh NAME LIBRARY NEXT PYTHON SOURCES - a program that nobody here wrote, under the library and
# NEXT after it (empty: the C library): it must do what it does without; its reports must be in order; and
# with a limit it must end as it ends without memory, by its own message, not by a crash.
# PCPC_MALLOC_LONG: longer runs.
# shellcheck disable=SC2016 # what other shells and perl are to expand
set -eu
name=$1 library=$(realpath "$2") next=$3 python=$4 sources=$5
here=$(cd "$(dirname "$0")" && pwd)
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
long=${PCPC_MALLOC_LONG:-}
unset PCPC_MALLOC_LONG

fail() {
	exec >&2
	echo "FAILED: $name: $*"
	tail -n 40 "$directory/out" "$directory/err" 2>/dev/null || true
	exit 1
}

skip() {
	echo "$*"
	exit 77
}

needs() {
	command -v "$1" >/dev/null || skip "no $1 here"
}

# under [NAME=VALUE...] COMMAND...: runs it under the library.
under() {
	env LD_PRELOAD="$library${next:+:$next}" PCPC_MALLOC_FORMAT=json \
		PCPC_MALLOC_REPORT="$directory/report.%p" "$@"
}

# reports: prints what all processes held and refused.
reports() {
	"$python" "$here/malloc_check_report.py" "$directory"/report.* || fail "report"
	rm -f "$directory"/report.*
}

# same COMMAND...: does and says the same under the library as without.
same() {
	"$@" >"$directory/without" 2>"$directory/err" || fail "does not work at all: $*"
	under "$@" >"$directory/out" 2>"$directory/err" || fail "status $?: $*"
	cmp "$directory/without" "$directory/out" || fail "says something else: $*"
	reports >/dev/null
}

# works COMMAND...: works under the library.
works() {
	under "$@" >"$directory/out" 2>"$directory/err" || fail "status $?: $*"
	reports >/dev/null
}

# limited MAX STATUS MESSAGE COMMAND...: with a limit, ends with that status and message.
limited() {
	max=$1 expected=$2 message=$3 status=0
	shift 3
	under PCPC_MALLOC_MAX="$max" "$@" >"$directory/out" 2>"$directory/err" || status=$?
	[ "$status" = "$expected" ] || fail "status $status under $max: $*"
	cat "$directory/out" "$directory/err" | grep -qiE "$message" || fail "no message under $max: $*"
	refused=$(reports)
	[ "${refused#* }" -gt 0 ] || fail "no refusal under $max: $*"
}

try_bash() {
	needs bash
	cat >"$directory/script" <<'END'
declare -A seen
lines=()
while read -r number text; do
	lines+=("$text")
	seen[$text]=$((number * 2))
done < <(for ((i = 0; i < 5000; i++)); do echo "$i line-$((i * 7919 % 5000))"; done)
echo "${#lines[@]} ${seen[line-77]} ${lines[*]:100:5}"
printf '%s\n' "${lines[@]}" | sort | uniq | wc -l
text=$(printf '%*s' 20000 "" | tr ' ' x)
echo "${#text} $(echo "${text//x/yz}" | wc -c)"
exec 3>"$1"
(echo "inner $(echo nested $(echo twice))" >&3) | cat
for i in 1 2 3 4 5; do (trap 'exit 0' USR1; while :; do :; done) & kill -USR1 $!; wait $!; done 2>/dev/null
echo end >&3
exec 3>&-
cat "$1"
END
	same bash "$directory/script" "$directory/file"
	limited 16M 2 "cannot allocate" bash -c 'x=$(head -c 50000000 /dev/zero | tr "\0" x); echo ${#x}'
}

# Its own regression tests, with all of its allocations going through malloc().
try_python() {
	needs python3.11
	modules="test_array test_bytes test_deque test_dict test_list test_memoryview test_mmap test_struct
		test_thread test_zlib"
	[ -z "$long" ] || modules="$modules test_ast test_collections test_ctypes test_descr test_fork1 test_gc
		test_itertools test_json test_memoryio test_pickle test_queue test_re test_set"
	python3.11 -c "import test.test_zlib, test.test_dict" 2>/dev/null || skip "no libpython3.11-testsuite here"
	# shellcheck disable=SC2086 # a list
	(cd "$directory" && works PYTHONMALLOC=malloc python3.11 -B -m test -j 1 $modules)
	limited 64M 1 MemoryError python3.11 -c 'kept = [bytearray(1000000) for i in range(1000)]'
	# Whoever gets over it goes on.
	works PCPC_MALLOC_MAX=64M python3.11 -c '
kept = []
for round in range(5):
    try:
        while True:
            kept.append(bytearray(1000000))
    except MemoryError:
        assert len(kept) > 50
        kept.clear()
'
}

try_perl() {
	needs perl
	same perl -e 'my %h; $h{$_ * 7919 % 40009} = "x" x ($_ % 100) for 1 .. 40000;
		my @k = sort { $a <=> $b } keys %h; print scalar(@k), " $k[77] ", length(join("", @h{@k})), "\n";
		my $s = join(",", @k); $s =~ s/(\d)(\d)/$2$1/g; print length($s), " ", substr($s, 1000, 20), "\n";
		for my $i (1 .. 5) { my $pid = fork; if (!$pid) { my @a = (1 .. 100000); exit $i } waitpid $pid, 0; print $? >> 8 }'
	limited 32M 1 "out of memory" perl -e 'my @kept; push @kept, "x" x 100000 . $_ for 1 .. 1000; print "done"'
}

try_sqlite() {
	needs sqlite3
	rows=200000
	[ -z "$long" ] || rows=2000000
	cat >"$directory/script" <<END
pragma journal_mode = off;
begin;
create table t (id integer primary key, name text, value real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < $rows)
	insert into t select i, printf('name %d', i * 7919 % $rows), i / 3.0 from n;
create index by_name on t (name);
update t set name = name || ' more' where id % 3 = 0;
delete from t where id % 7 = 0;
commit;
select count(*), sum(value), min(name), max(name) from t;
select substr(name, 1, 7) as part, count(*) from t group by part order by 2 desc, 1 limit 5;
pragma integrity_check;
END
	same sqlite3 :memory: ".read $directory/script"
	limited 8M 1 "out of memory" sqlite3 -bail :memory: ".read $directory/script"
}

try_git() {
	needs git
	git -C "$sources" rev-parse --git-dir >/dev/null 2>&1 || skip "the sources are no git repository"
	works git clone -q --no-hardlinks "file://$sources" "$directory/clone"
	same git -C "$directory/clone" fsck --full --strict
	same git -C "$directory/clone" log --stat -n 50 --format=%H
	works git -C "$directory/clone" repack -adfq --threads=4
	works git -C "$directory/clone" fsck --full
	limited 1M 128 "out of memory|malloc failed" git -C "$directory/clone" log -p --format=%H
}

try_gcc() {
	needs gcc
	set -- gcc -std=gnu11 -O2 -w "-I$sources/include" "-I$sources/lib" -c "$sources/lib/cache.c" -o
	"$@" "$directory/without.o" || fail "does not compile at all"
	works "$@" "$directory/under.o"
	cmp "$directory/without.o" "$directory/under.o" || fail "compiles to something else"
	limited 2M 1 "out of memory|cannot allocate" "$@" "$directory/limited.o"
}

redis_start() {
	rm -f "$directory/socket"
	under PCPC_MALLOC_MAX="$1" "$directory/redis-server" --port 0 --unixsocket "$directory/socket" --dir "$directory" \
		--save "" --appendonly no >"$directory/log" 2>&1 &
	server=$!
	trap 'kill -9 $server 2>/dev/null || true; rm -rf "$directory"' EXIT
	until redis-cli -s "$directory/socket" ping 2>/dev/null | grep -q PONG; do
		kill -0 $server 2>/dev/null || { cat "$directory/log"; fail "does not start"; }
	done
}

try_redis() {
	needs redis-benchmark
	# One program with several names; this one is there without a package that starts a server.
	needs redis-check-rdb
	ln -s "$(command -v redis-check-rdb)" "$directory/redis-server"
	number=5000
	[ -z "$long" ] || number=500000
	redis_start 1G
	redis-benchmark -s "$directory/socket" -q -n $number -c 20 -P 8 -d 500 -r 10000 \
		-t set,get,incr,lpush,rpop,sadd,hset,zadd,lrange_100,mset >"$directory/out" 2>&1 || fail "benchmark"
	redis-cli -s "$directory/socket" info memory >"$directory/out"
	redis-cli -s "$directory/socket" shutdown nosave >/dev/null 2>&1 || true
	wait $server || fail "status $?"
	[ "$(reports | cut -d ' ' -f 2)" = 0 ] || fail "refused"
	# It ends itself, by abort(), when it has no memory, and says so.
	redis_start 24M
	redis-benchmark -s "$directory/socket" -q -n 5000 -d 100000 -r 100000 -t set >/dev/null 2>&1 || true
	wait $server && fail "went on without memory"
	grep -q "Out Of Memory allocating" "$directory/log" || { cat "$directory/log"; fail "no message"; }
}

if [ -n "$next" ] && LD_PRELOAD=$next /bin/true 2>&1 | grep -q .; then
	skip "no $next here"
fi
"try_$name"
