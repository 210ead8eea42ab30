# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""cache_support.py - a daemon of examples/server that is started, asked and stopped; clients of it."""
import json
import os
import random
import re
import resource
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

PATIENCE = 60  # seconds to wait for a state


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


def wait_until(condition, what):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f'never: {what}')
        time.sleep(0.01)


class Client:
    """Speaks RESP over one connection."""

    def __init__(self, daemon, tenant=None):
        self.socket = socket.create_connection(('127.0.0.1', daemon.port), PATIENCE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile('rb')
        if tenant:
            assert self('AUTH', tenant, 'password-' + tenant) == 'OK'

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.file.close()
        self.socket.close()

    def send(self, *words):
        self.socket.sendall(request(*words))

    def raw(self, data):
        self.socket.sendall(data)

    def answer(self):
        line = self.file.readline()
        if not line.endswith(b'\n'):
            raise EOFError
        assert line.endswith(b'\r\n'), line
        kind, rest = line[:1], line[1:-2]
        if kind == b'+':
            return rest.decode()
        if kind == b'-':
            return Error(rest.decode())
        if kind == b':':
            return int(rest)
        if kind == b'$':
            if rest == b'-1':
                return None
            text = self.file.read(int(rest) + 2)
            assert len(text) == int(rest) + 2 and text.endswith(b'\r\n')
            return text[:-2]
        assert kind == b'*', line
        return [self.answer() for _ in range(int(rest))]

    def __call__(self, *words):
        self.send(*words)
        return self.answer()

    def ended(self):
        """Everything that still comes, and then the end."""
        try:
            while self.file.readline():
                pass
        except ConnectionError:
            pass
        return True


class Error(str):
    pass


def request(*words):
    data = b'*%d\r\n' % len(words)
    for word in words:
        word = word if isinstance(word, bytes) else str(word).encode()
        data += b'$%d\r\n%s\r\n' % (len(word), word)
    return data


class Daemon:
    def __init__(self, binary, *options, accounting='pcpcharge', descriptors=None):
        self.port, self.http_port = free_port(), free_port()
        self.process = subprocess.Popen(
            [binary, f'--port={self.port}', f'--http-port={self.http_port}',
             f'--accounting={accounting}', *options],
            stdout=subprocess.PIPE, text=True,
            preexec_fn=descriptors and (lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors,) * 2)))
        line = self.process.stdout.readline()
        assert line.startswith('cache: port'), line

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        """Ends with status 0: every byte that was charged has come back."""
        self.process.terminate()
        status = self.process.wait(PATIENCE)
        if kind is None:
            assert status == 0, f'the daemon ended with status {status}'

    def get(self, path):
        with urllib.request.urlopen(f'http://127.0.0.1:{self.http_port}/{path}', None, PATIENCE) as r:
            return r.read().decode()

    def tenant(self, name):
        return {t['name']: t for t in json.loads(self.get('status.json'))['tenants']}[name]

    def resident(self):
        with open(f'/proc/{self.process.pid}/statm') as file:
            return int(file.read().split()[1]) * os.sysconf('SC_PAGESIZE')


def tenants(**of):
    """Options for tenants whose password is known."""
    return [f'--tenant={name}:password-{name},{settings}' for name, settings in of.items()]


def require(program):
    if not shutil.which(program):
        print(f'skipped: no {program}')
        sys.exit(77)


def run(tests, binary):
    for name, test in tests:
        test(binary)
        print('ok:', name.replace('_', ' '))
