#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""budget.py SOURCE [--update] - what a hit costs in instructions, against the table budget.txt.

Each compiler that is here builds the library's operations and the inlined ones with one set of flags.
A hit is the straight line from a function's entry to its return on which no conditional jump is
taken; it must issue no locked instruction and no call, and take no jump but the return. Its counts
must be those of the table, where the table is of the same compiler version: a change that costs an
instruction shows, and is explained by whoever makes it. --update writes the table anew.

That hits do run on that line is watched by budget_trace.c, which steps through them in a cache whose
rseq area the kernel does not know; in a real one a step aborts every sequence. Where a process may not
be stepped through, this is left out.
"""
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

source = pathlib.Path(sys.argv[1])
table = source / 'tests/abi/budget.txt'
FLAGS = ['-std=gnu11', '-O2', '-fPIC', '-fvisibility=hidden', f'-I{source}/include']
COLUMNS = ['instructions', 'conditional', 'taken', 'loads', 'stores', 'locked', 'calls']
LIBRARY = [f'{source}/lib/{name}.c' for name in ('cache', 'drain', 'fork', 'percpu')]
FUNCTIONS = {
    'lib/cache.c': {'pcpc_cache_consume': 'consume, called', 'pcpc_cache_refill': 'refill, called'},
    'tests/abi/budget_inline.c': {'hit_consume': 'consume, inlined', 'hit_refill': 'refill, inlined'},
}


def run(*command):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout


def disassemble(obj):
    """Function name -> list of (address, mnemonic, operands), .cold parts as their own."""
    functions, body = {}, None
    for line in run('objdump', '-d', '--no-show-raw-insn', obj).splitlines():
        start = re.match(r'[0-9a-f]+ <(.+)>:$', line)
        if start:
            body = functions[start.group(1)] = []
            continue
        found = re.match(r'\s*([0-9a-f]+):\s+(.*)$', line)
        if found and body is not None:
            body.append((int(found.group(1), 16), found.group(2).split('#')[0].strip()))
    return functions


def touches(text):
    """(loads, stores) of one instruction, in AT&T order: the last operand is the destination."""
    text = re.sub(r'^(?:(?:lock|rep|repz|data16|cs|ds|es|notrack|bnd)\s+)+', '', text)
    mnemonic, _, operands = text.partition(' ')
    if mnemonic.startswith('push'):
        return 0, 1
    if mnemonic.startswith(('pop', 'ret', 'leave')):
        return 1, 0
    if mnemonic.startswith(('lea', 'nop', 'prefetch')) or '(' not in operands and '%fs:' not in operands:
        return 0, 0
    depth, parts = 0, ['']
    for letter in operands:
        depth += {'(': 1, ')': -1}.get(letter, 0)
        if letter == ',' and not depth:
            parts.append('')
        else:
            parts[-1] += letter
    memory = [('(' in part or '%fs:' in part) for part in parts]
    if not memory[-1]:
        return 1, 0
    if mnemonic.startswith(('cmp', 'test')) or len(parts) == 1 and mnemonic.startswith('mul'):
        return 1, 0
    return (0, 1) if mnemonic.startswith('mov') or mnemonic.startswith('set') else (1, 1)


def hit_path(body):
    counts = dict.fromkeys(COLUMNS, 0)
    index = {address: number for number, (address, _) in enumerate(body)}
    number = 0
    for _ in range(1000):
        text = body[number][1]
        mnemonic = text.split()[0]
        counts['instructions'] += 1
        loads, stores = touches(text)
        counts['loads'] += loads
        counts['stores'] += stores
        counts['locked'] += mnemonic == 'lock' or mnemonic.startswith('xchg') and stores
        counts['calls'] += mnemonic.startswith('call')
        if mnemonic.startswith('ret'):
            counts['loads'] -= 1
            return counts
        if mnemonic.startswith('jmp'):
            counts['taken'] += 1
            number = index[int(text.split()[1], 16)]
            continue
        counts['conditional'] += mnemonic.startswith('j')
        number += 1
    sys.exit('no return found')


def trace(compiler, work):
    """Function name -> instructions that a hit executed; None where that cannot be watched."""
    program = f'{work}/budget_trace'
    tests = source / 'tests/abi'
    run(compiler, *FLAGS, f'-I{source}/lib', str(tests / 'budget_trace.c'),
        str(tests / 'budget_inline.c'), *LIBRARY, '-pthread', '-o', program)
    traced = subprocess.run([program], text=True, stdout=subprocess.PIPE)
    if traced.returncode == 77:
        return None
    traced.check_returncode()
    return {name: int(count) for name, count in map(str.split, traced.stdout.splitlines())}


def measure():
    """(compiler, label, counts, instructions executed) of each hit."""
    rows = []
    for compiler in ('gcc', 'clang'):
        if not shutil.which(compiler):
            continue
        version = f"{compiler} {run(compiler, '-dumpversion').strip()}"
        if compiler == 'gcc':
            version = f"{compiler} {run(compiler, '-dumpfullversion').strip()}"
        with tempfile.TemporaryDirectory() as work:
            executed = trace(compiler, work)
            if executed is None:
                print(f'{version}: not stepped through')
            for file, functions in FUNCTIONS.items():
                obj = f'{work}/{pathlib.Path(file).stem}.o'
                run(compiler, *FLAGS, '-c', str(source / file), '-o', obj)
                bodies = disassemble(obj)
                for name, label in functions.items():
                    rows.append((version, label, hit_path(bodies[name]),
                                 executed[name] if executed else None))
    return rows


def read_table():
    rows = {}
    for line in table.read_text().splitlines():
        if line and not line.startswith(('#', 'compiler')):
            compiler, label, *counts = [field.strip() for field in line.split('|')]
            rows[compiler, label] = dict(zip(COLUMNS, map(int, counts)))
    return rows


def write_table(rows):
    lines = ['# SPDX-License-Identifier: MIT OR GPL-2.0-only',
             '# What a hit costs; made by budget.py --update, and compared by it.',
             f"{'compiler':<14} | {'hit':<17} | " + ' | '.join(f'{name:>12}' for name in COLUMNS)]
    for version, label, counts, _ in rows:
        lines.append(f'{version:<14} | {label:<17} | '
                     + ' | '.join(f'{counts[name]:>12}' for name in COLUMNS))
    table.write_text('\n'.join(lines) + '\n')


def main():
    if platform.machine() != 'x86_64' or not shutil.which('objdump'):
        print('skipped: the table is of x86-64, and needs objdump')
        sys.exit(77)
    rows = measure()
    if '--update' in sys.argv:
        write_table(rows)
    known, failed = read_table(), False
    for version, label, counts, executed in rows:
        if executed is not None and executed != counts['instructions']:
            print(f'{version}, {label}: a hit executed {executed} instructions, not the '
                  f"{counts['instructions']} of the straight line")
            failed = True
        for name in ('taken', 'locked', 'calls'):
            if counts[name]:
                print(f'{version}, {label}: {counts[name]} {name}, must be 0')
                failed = True
        wanted = known.get((version, label))
        if wanted is None:
            print(f'{version}, {label}: not in the table, only the rules were checked')
        for name in COLUMNS if wanted else ():
            if counts[name] != wanted[name]:
                print(f'{version}, {label}: {counts[name]} {name}, the table says {wanted[name]}')
                failed = True
    sys.exit(failed)


main()
