#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""cache_bench.py DAEMON [--short] - what accounting costs the cache daemon, and what a tenant at its limit costs
its neighbours.

The same daemon in each of its ways of accounting, all up at the same time and loaded in turn by redis-benchmark with
pipelines of 16: requests a second, and the daemon's CPU time for a million requests. Ratios are of neighbours in
time, to no accounting; medians.
"""
import contextlib
import statistics
import sys
import threading

from cache_support import *

require('redis-benchmark')
binary = sys.argv[1]
short = '--short' in sys.argv
ROUNDS = 3 if short else 15
REQUESTS = 100000 if short else 400000
WAYS = ['none', 'pcpcharge', 'atomic', 'locked']


def used(daemon):
    """CPU seconds in user mode, so far."""
    with open(f'/proc/{daemon.process.pid}/stat') as file:
        return int(file.read().rsplit(')', 1)[1].split()[11]) / os.sysconf('SC_CLK_TCK')


def load(daemon, tenant, command, requests, clients):
    return subprocess.Popen(['redis-benchmark', '-p', str(daemon.port), '--user', tenant, '-a', 'password-' + tenant,
                             '-t', command, '-n', str(requests), '-c', str(clients), '-P', '16', '-r', '10000',
                             '-d', '100', '-q'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def measure(daemon, names, command):
    """Requests a second of all tenants at once, and CPU seconds of a million."""
    # whole pipelines, or redis-benchmark may find at its end that something is missing
    each = REQUESTS // len(names) // 16 * 16
    began, cpu = time.monotonic(), used(daemon)
    loads = [load(daemon, name, command, each, max(1, 48 // len(names))) for name in names]
    assert all(one.wait() == 0 for one in loads)
    done = each * len(names)
    return done / (time.monotonic() - began), (used(daemon) - cpu) * 1e6 / done


def compare(daemons, names, command):
    found = {way: [] for way in WAYS}
    for _ in range(ROUNDS):
        for way in random.sample(WAYS, len(WAYS)):
            found[way].append(measure(daemons[way], names, command))
    print(f'{command.upper()}, tenants: {len(names)}, median of {ROUNDS}')
    print('  accounting   requests/s    ratio   CPU s/million    ratio')
    for way in WAYS:
        rates, cpus = zip(*found[way])
        base_rates, base_cpus = zip(*found['none'])
        print(f'  {way:10} {statistics.median(rates):12.0f} '
              f'{statistics.median(a / b for a, b in zip(rates, base_rates)):8.3f} '
              f'{statistics.median(cpus):15.3f} '
              f'{statistics.median(a / max(b, .001) for a, b in zip(cpus, base_cpus)):8.3f}')
    sys.stdout.flush()


def ways():
    names = [f't{i}' for i in range(36)]
    options = tenants(**{name: 'max=1g' for name in names})
    with contextlib.ExitStack() as stack:
        daemons = {way: stack.enter_context(Daemon(binary, *options, accounting=way)) for way in WAYS}
        for group in names[:1], names:
            for command in 'set', 'get':
                compare(daemons, group, command)


# -- neighbours --

def pipeline(daemon, tenant, words, stop):
    """Sends the same commands all the time, and looks at no answer."""
    with Client(daemon, tenant) as client:
        data = request(*words) * 100
        client.socket.settimeout(1)
        with contextlib.suppress(OSError):
            while not stop.is_set():
                client.raw(data)
                client.socket.recv(1 << 20)


def figures(daemon):
    """Of a tenant far below its limit: requests a second, and the time in ms that 99 of 100 take less than."""
    text = subprocess.run(['redis-benchmark', '-p', str(daemon.port), '--user', 'bob', '-a', 'password-bob', '-t', 'set',
                           '-n', str(REQUESTS // 4), '-c', '10', '-r', '1000', '-d', '100', '--csv'],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout
    row = text.strip().split('\n')[-1].replace('"', '').split(',')
    return float(row[1]), float(row[6])


def neighbours():
    beside = {'an idle one': None, 'one that is served': ('GET', 'none'), 'one that is refused': ('SET', 'key', 'x' * 2000)}
    found = {name: [] for name in beside}
    with Daemon(binary, *tenants(alice='max=1m', bob='max=64m')) as daemon:
        with Client(daemon, 'alice') as alice:
            i = 0
            while alice('SET', i, 'x' * 1000) == 'OK':
                i += 1
        for _ in range(ROUNDS):
            for name in random.sample(list(beside), len(beside)):
                stop, thread = threading.Event(), None
                if beside[name]:
                    thread = threading.Thread(target=pipeline, args=(daemon, 'alice', beside[name], stop))
                    thread.start()
                found[name].append(figures(daemon))
                stop.set()
                if thread:
                    thread.join()
        refused = daemon.tenant('alice')['refused']
    print(f'A tenant far below its limit, beside another; no pipelines; median of {ROUNDS}; refused: {refused}')
    for name, pairs in found.items():
        rates, slowest = zip(*pairs)
        print(f'  {name:20} {statistics.median(rates):10.0f} requests/s   p99 {statistics.median(slowest):6.3f} ms')


ways()
neighbours()
