#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""check_reports.py json|prometheus|promtool PROGRAM - reports are read by real readers, and by strict ones.

json: python3 -m json.tool, and the fields of observe.h. prometheus: a checker of the text exposition
format that is stricter than the format. promtool: promtool check metrics, where it is installed.
PROGRAM is observe_main; each engine that it has, quiet and busy.
"""
import json
import re
import shutil
import subprocess
import sys

LIMIT = 120  # seconds


def fail(text):
    print(text)
    sys.exit(1)


def strict_object(pairs):
    names = [name for name, _ in pairs]
    if len(names) != len(set(names)):
        fail(f'a name twice in one object: {names}')
    return dict(pairs)


def no_constant(text):
    fail(f'{text} is no JSON')


def check_json(data):
    subprocess.run([sys.executable, '-m', 'json.tool'], input=data, check=True, timeout=LIMIT,
                   stdout=subprocess.DEVNULL)
    text = data.decode('utf-8')
    if re.search(r'[\x00-\x09\x0b-\x1f]', text):
        fail('control characters outside of escapes')
    report = json.loads(text, object_pairs_hook=strict_object, parse_constant=no_constant)
    whole = ('cpus', 'nr_owners', 'nr_offline', 'drains', 'sweeps')
    if not all(type(report[name]) is int for name in whole):
        fail('figures of the domain')
    if report['domain'] != 'memory' or report['unit'] != 'bytes':
        fail('names of the domain')
    seen = {None: None}
    for owner in report['owners']:
        if owner['id'] in seen:
            fail(f'{owner["id"]} twice')
        if owner['parent'] not in seen:
            fail(f'{owner["id"]} before its parent')
        seen[owner['id']] = owner
        if owner['parent'] and owner['depth'] != seen[owner['parent']]['depth'] + 1:
            fail('depth')
        for name in ('usage', 'peak', 'stocked', 'left_out', 'left_out_usage'):
            if type(owner[name]) is not int or not 0 <= owner[name] < 2**63:
                fail(f'{name} {owner[name]}')
        for name in ('max', 'high'):
            if owner[name] is not None and not 0 <= owner[name] < 2**63 - 1:
                fail(f'{name} {owner[name]}')
        if list(owner['events']) != ['max', 'high', 'relieved', 'refused', 'forced', 'reclaim',
                                     'drain', 'underflow']:
            fail('events')
        if len(owner['items']) != len(report['items']):
            fail('items')
    by_name = {}
    for owner in report['owners']:
        by_name.setdefault(owner['name'], []).append(owner)
    for name in ('with "quotes"', 'back\\slash', 'new\nline', '\x01\x02\x1f\x7f', '\ufffd' * 2,
                 '\ufffd' * 3, 'café', '\U0001f600', 'x' * 10000, ''):
        if name not in by_name:
            fail(f'nobody is called {name!r}')
    if max(owner['depth'] for owner in report['owners']) != 63:
        fail('the deepest')
    if by_name['x' * 10000][0]['max'] != 2**63 - 2:
        fail('the largest number')
    if not any(owner['events']['refused'] for owner in report['owners']):
        fail('no refusals')
    return f'{len(report["owners"])} owners'


LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\\\|\\"|\\n)*)"')
VALUE = re.compile(r'-?[0-9]+|\+Inf')
NAME = re.compile(r'[a-z_][a-z0-9_]*')


def check_labels(text):
    labels, place = {}, 0
    while True:
        match = LABEL.match(text, place)
        if not match or match[1] in labels:
            fail(f'labels: {text}')
        labels[match[1]] = re.sub(r'\\(.)', lambda m: '\n' if m[1] == 'n' else m[1], match[2])
        place = match.end()
        if place == len(text):
            return labels
        if text[place] != ',':
            fail(f'labels: {text}')
        place += 1


def check_sample(line, name, kind):
    match = re.fullmatch(r'([^{ ]+)\{(.*)\} (\S+)', line)
    if not match or match[1] != name or not VALUE.fullmatch(match[3]):
        fail(f'{line} in {name}')
    if kind == 'counter' and not match[3].isdigit():
        fail(f'{line}: a counter')
    labels = check_labels(match[2])
    if set(labels) not in ({'domain'}, {'domain', 'owner', 'id'}):
        fail(f'{line}: labels')
    return frozenset(labels.items())


def check_prometheus(data):
    text = data.decode('utf-8')
    if not text.endswith('\n'):
        fail('no end of line at the end')
    metrics, series, name, kind, last = set(), set(), None, None, None
    for line in text[:-1].split('\n'):
        if line.startswith('# HELP '):
            _, _, name, help_text = line.split(' ', 3)
            if last == 'head' or name in metrics or not NAME.fullmatch(name):
                fail(f'{line}: twice, or no name, or after no sample')
            if re.search(r'\\[^\\n]', help_text.replace('\\\\', '')):
                fail(f'{line}: escapes')
            metrics.add(name)
            kind, last = None, 'head'
        elif line.startswith('# TYPE '):
            if line.split(' ')[2] != name or kind:
                fail(f'{line}: not after its HELP')
            kind = line.split(' ')[3]
            if kind not in ('gauge', 'counter') or (kind == 'counter') != name.endswith('_total'):
                fail(line)
        else:
            if not kind:
                fail(f'{line}: no TYPE before')
            one = (name, check_sample(line, name, kind))
            if one in series:
                fail(f'{line}: twice')
            series.add(one)
            last = 'sample'
    if last != 'sample':
        fail(f'{name} has no samples')
    usages = [dict(labels) for one, labels in series if one == 'pcpcharge_memory_usage_bytes']
    paths = {labels['owner'] for labels in usages}
    for path in ('memory', 'memory/new\nline/back\\slash', 'memory/with "quotes"/' + '\ufffd' * 2,
                 'memory/a/b', 'memory/ends in \\/\\n'):
        if path not in paths:
            fail(f'no series of {path!r}')
    return f'{len(metrics)} metrics, {len(series)} series'


def check_promtool(data):
    run = subprocess.run(['promtool', 'check', 'metrics'], input=data, timeout=LIMIT,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if run.returncode:
        fail(run.stdout.decode('utf-8', 'replace'))
    return 'promtool has nothing to say'


def main():
    kind, program = sys.argv[1:3]
    if kind == 'promtool' and not shutil.which('promtool'):
        print('skipped: no promtool (Debian package prometheus)')
        sys.exit(77)
    check = {'json': check_json, 'prometheus': check_prometheus, 'promtool': check_promtool}[kind]
    written = 'json' if kind == 'json' else 'prometheus'
    for engine in ('atomic', 'rseq'):
        for more in ([], ['busy']):
            run = subprocess.run([program, engine, written] + more, timeout=LIMIT,
                                 stdout=subprocess.PIPE)
            if run.returncode == 77 and engine == 'rseq':
                print('not tested: no rseq engine here')
                continue
            if run.returncode:
                fail(f'{program} {engine}: {run.returncode}')
            print(engine, *more, check(run.stdout))


main()
