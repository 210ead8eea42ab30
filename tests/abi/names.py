#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""names.py SOURCE LIBRARY.so - the names of the interface agree with each other.

Exported symbols, the version map, and the declarations marked PCPC_API are one set; every macro that
a public header defines is prefixed; every public function has a manual page and is used somewhere in
the tests (those that memcontrol.h and kernel.h call in functions of the kernel's names: by these);
every pcpc_name() that a comment or document mentions is declared; and where a comment says
"name() in file.c", that file has such a function.
"""
import pathlib
import re
import subprocess
import sys

source, library = pathlib.Path(sys.argv[1]), sys.argv[2]
public = sorted((source / 'include/pcpcharge').glob('**/*.h'))
# They define the kernel's names.
kernel_style = [path for path in public if path.parent.name == 'kernel' or
                path.name in ('kernel.h', 'memcontrol.h')]
sequences = sorted((source / 'lib/arch').glob('*.h'))
private = sorted((source / 'lib').glob('*.[ch]'))
texts = {path: path.read_text() for path in public + sequences + private}
problems = []


def differ(what, left, right):
    for name in sorted(left - right):
        problems.append(f'{name}: {what}')


def without_comments(text):
    return re.sub(r'/\*.*?\*/|//[^\n]*', '', text, flags=re.S)


def comments(text):
    return re.findall(r'/\*.*?\*/|//[^\n]*', text, flags=re.S)


declared = set()
for path in public:
    declared |= set(re.findall(r'PCPC_API[^;{]*?\b(pcpc_\w+)\(', without_comments(texts[path])))
mapped = set(re.findall(r'^\t(pcpc_\w+);', (source / 'lib/libpcpcharge.map').read_text(), re.M))
symbols = subprocess.run(['nm', '-D', '--defined-only', library], check=True, text=True,
                         stdout=subprocess.PIPE).stdout
exported = {line.split()[2].split('@')[0] for line in symbols.splitlines() if ' A ' not in line}
differ('declared and not in the map', declared, mapped)
differ('in the map and not declared', mapped, declared)
differ('in the map and not exported', mapped, exported)
differ('exported and not in the map', exported, mapped)

for path in set(public + sequences) - set(kernel_style):
    for name in re.findall(r'^[ \t]*#[ \t]*define[ \t]+(\w+)', texts[path], re.M):
        if not name.startswith(('PCPC_', 'PCPCHARGE_', 'pcpc_')):
            problems.append(f'{path.name}: {name} is not prefixed')

# What is called under the kernel's names: by which of them, functions and macros.
wrapped = {}
for path in kernel_style:
    text = without_comments(texts[path])
    bodies = re.findall(r'^static [^;{}]*?\b(\w+)\([^;{}]*\)\n\{\n(.*?)^\}', text, re.M | re.S)
    bodies += re.findall(r'^#define (\w+)((?:.*\\\n)*.*)$', text, re.M)
    for wrapper, body in bodies:
        for name in declared & set(re.findall(r'\b(pcpc_\w+)\(', body)):
            wrapped.setdefault(name, set()).add(wrapper)

pages = {path.stem for path in (source / 'lib/man').glob('*.3')}
differ('no manual page', declared - set(wrapped), pages)

tests = ''.join(path.read_text() for folder in ('tests', 'examples')
                for path in (source / folder).rglob('*.[ch]'))
used = set(re.findall(r'\b(\w+)\b', tests))
used |= {name for name, wrappers in wrapped.items() if wrappers & used}
# called before main()
differ('not used by any test or example', declared,
       used | {'pcpc_inline_register', 'pcpc_kernel_add_module', 'pcpc_kernel_drop_module'})

known = set()
for text in texts.values():
    known |= set(re.findall(r'\b(pcpc_\w+)\s*\(', without_comments(text)))
    known |= set(re.findall(r'\btypedef\b[^;]*?\b(pcpc_\w+)\s*\(', text))
for path in (source / 'examples').rglob('*.h'):
    known |= set(re.findall(r'\b(pcpc_\w+)\s*\(', without_comments(path.read_text())))
documents = dict(texts)
for name in ('README.md', 'lib/DESIGN.md', 'tests/README.md'):
    path = source / name
    if path.exists():
        documents[path] = path.read_text()
for path, text in documents.items():
    for name in re.findall(r'\b(pcpc_\w+)\(\)', text):
        if name not in known:
            problems.append(f'{path.name}: mentions {name}(), which is not declared')

by_file = {path.name: text for path, text in texts.items()}
for path, text in texts.items():
    for comment in comments(text):
        comment = re.sub(r'\s*\n\s*\**\s*', ' ', comment)
        for name in re.findall(r'\b(pcpc_\w+)\(', comment):
            if name not in known:
                problems.append(f'{path.name}: a comment mentions {name}(), which is not declared')
        for name, file in re.findall(r'\b(\w+)\(\) (?:in|of) (\w+\.[ch])\b', comment):
            if not re.search(rf'\b{name}\(', without_comments(by_file.get(file, ''))):
                problems.append(f'{path.name}: a comment mentions {name}() in {file}, which has none')

print('\n'.join(problems) or f'{len(declared)} functions')
sys.exit(bool(problems))
