#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""malloc_programs_bench.py LIBRARY NONE ATOMIC [--short] - CPU time of programs under libpcpcharge-malloc.so,
under the same with no accounting, and with one shared counter. They run in turn; ratios are of neighbours.
"""
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

short = '--short' in sys.argv
libraries = dict(zip(('libpcpcharge', 'none', 'atomic'), [name for name in sys.argv[1:] if name != '--short']))
ROUNDS = 3 if short else 11

OBJECTS = """
import json
text = json.dumps([{'name': 'n%d' % i, 'values': list(range(i % 50)), 'more': {'x': 'y' * (i % 200)}} for i in range(4000)])
for _ in range(8):
    json.dumps(json.loads(text))
"""


def environment(library):
    return dict(os.environ, LD_PRELOAD=library, PYTHONMALLOC='malloc', PYTHONHASHSEED='0')


def python_time(library):
    """Every object is a block of malloc()."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, '-c', OBJECTS], env=environment(library), check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def cpu_time(pid):
    with open(f'/proc/{pid}/stat') as file:
        fields = file.read().rsplit(')', 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def redis_time(library):
    """Redis itself, as Debian's redis-tools has it under another name; with the C library's allocator before its own
    where that is preloaded."""
    with tempfile.TemporaryDirectory() as directory:
        server, socket = os.path.join(directory, 'redis-server'), os.path.join(directory, 'socket')
        os.symlink(shutil.which('redis-check-rdb'), server)
        process = subprocess.Popen([server, '--port', '0', '--unixsocket', socket, '--save', '', '--dir', directory],
                                   env=environment(library), stdout=subprocess.DEVNULL)
        while not os.path.exists(socket):
            time.sleep(0.01)
        load = ['redis-benchmark', '-s', socket, '-q', '-c', '20', '-P', '16', '-r', '100000', '-d', '64',
                '-n', '100000' if short else '500000', '-t', 'set,lpush,lpop']
        subprocess.run(load, stdout=subprocess.DEVNULL, check=True)
        used = cpu_time(process.pid)
        process.kill()
        process.wait()
    return used


def compare(name, measure):
    times = {way: [] for way in libraries}
    for _ in range(ROUNDS):
        for way in random.sample(list(libraries), len(libraries)):
            times[way].append(measure(libraries[way]))
    print(f'{name}: CPU seconds, median of {ROUNDS}, and the median of ratios to no accounting')
    for way, found in times.items():
        ratio = statistics.median(one / none for one, none in zip(found, times['none']))
        print(f'  {way:14} {statistics.median(found):8.3f} {ratio:8.3f}')
    sys.stdout.flush()


compare('python3, json, every object a block', python_time)
if shutil.which('redis-check-rdb') and shutil.which('redis-benchmark'):
    compare('redis-server, SET, LPUSH, LPOP of 64 bytes', redis_time)
else:
    print('redis-server: no redis-tools here')
