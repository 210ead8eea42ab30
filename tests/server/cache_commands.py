#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""cache_commands.py DAEMON [ACCOUNTING] - what every command answers, to redis-cli and over a socket; and
requests in every form and in pieces. The expected answers are those that Redis gives.
"""
import sys
import tempfile
import threading

from cache_support import *

require('redis-cli')
require('redis-check-rdb')
accounting = sys.argv[2] if len(sys.argv) > 2 else 'pcpcharge'
options = tenants(alice='max=16m', bob='max=16m')


def start(binary):
    return Daemon(binary, *options, accounting=accounting)


def cli(daemon, text, tenant='alice'):
    """Lines of commands; lines of answers, as redis-cli writes them to a pipe."""
    return subprocess.run(['redis-cli', '-p', str(daemon.port), '--no-auth-warning', '--user', tenant,
                           '--pass', 'password-' + tenant],
                          input=text, stdout=subprocess.PIPE, text=True, check=True).stdout.split('\n')[:-1]


def answers_redis_cli(binary):
    expected = [
        ('PING', ['PONG']), ('PING hello', ['hello']), ('ECHO "a b"', ['a b']), ('GET a', ['']),
        ('SET a 1', ['OK']), ('GET a', ['1']), ('INCR a', ['2']), ('INCRBY a 40', ['42']), ('DECR a', ['41']),
        ('SET a x XX', ['OK']), ('SET a y NX', ['']), ('GET a', ['x']), ('SET new z XX', ['']),
        ('SET new z NX', ['OK']), ('EXISTS a new none a', ['3']), ('DEL a new none', ['2']), ('DBSIZE', ['0']),
        ('MSET a 1 b 2 c 3', ['OK']), ('MGET a none c', ['1', '', '3']), ('DBSIZE', ['3']),
        ('SELECT 1', ['OK']), ('DBSIZE', ['0']), ('GET a', ['']), ('SET only here', ['OK']), ('FLUSHDB', ['OK']),
        ('EXISTS only', ['0']), ('SELECT 0', ['OK']), ('GET b', ['2']), ('TTL b', ['-1']), ('TTL none', ['-2']),
        ('EXPIRE b 100', ['1']), ('TTL b', ['100']), ('EXPIRE none 5', ['0']), ('SET b 3 KEEPTTL', ['OK']),
        ('TTL b', ['100']), ('SET b 3', ['OK']), ('TTL b', ['-1']), ('SET b 3 EX 50', ['OK']), ('TTL b', ['50']),
        ('EXPIRE b -1', ['1']), ('EXISTS b', ['0']), ('CONFIG GET maxmemory', ['maxmemory', '16777216']),
        ('CONFIG GET save', ['save', '']), ('CLIENT SETNAME me', ['OK']), ('CLIENT GETNAME', ['me']),
    ]
    wrong = [
        ('NONSENSE 1', "ERR unknown command 'NONSENSE', with args beginning with: '1' "),
        ('GET', "ERR wrong number of arguments for 'get' command"),
        ('SET a', "ERR wrong number of arguments for 'set' command"),
        ('SET a b EX', 'ERR syntax error'), ('SET a b NX XX', 'ERR syntax error'),
        ('SET a b EX 0', "ERR invalid expire time in 'set' command"),
        ('SET a b EX x', 'ERR value is not an integer or out of range'),
        ('MSET a 1 b', "ERR wrong number of arguments for 'mset' command"),
        ('SELECT 16', 'ERR DB index is out of range'),
        ('INCRBY c x', 'ERR value is not an integer or out of range'),
    ]
    with start(binary) as daemon:
        found = cli(daemon, ''.join(line + '\n' for line, _ in expected))
        assert found == [answer for _, answers in expected for answer in answers], found
        for line, error in wrong:
            found = [text for text in cli(daemon, line + '\n') if text]
            assert found == [error], (line, found)


class Redis:
    """The server that our answers are to be those of. Debian's redis-tools has it under another name."""

    def __enter__(self):
        self.port, self.directory = free_port(), tempfile.TemporaryDirectory()
        server = os.path.join(self.directory.name, 'redis-server')
        os.symlink(shutil.which('redis-check-rdb'), server)
        self.process = subprocess.Popen([server, '--port', str(self.port), '--bind', '127.0.0.1', '--save', '',
                                         '--dir', self.directory.name], stdout=subprocess.DEVNULL)
        wait_until(self.answers, 'redis-server answers')
        return self

    def answers(self):
        try:
            with Client(self) as client:
                return client('PING') == 'PONG'
        except OSError:
            return False

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.directory.cleanup()


def some_command(source):
    """Mostly sound, of few keys, so that they meet."""
    def some(*of):
        return source.choice(of)

    def key():
        return some('a', 'b', 'c', 'd\r\n', '')

    def number():
        return some(-1, 0, 1, 7, 2 ** 62, -2 ** 63, 2 ** 63, '', 'x', '1.5', ' 1', '+1', '01')

    def value():
        return some(number(), 'text', 'x' * 5000, b'\0\xff', 9)

    def time():
        """None that is over before we are."""
        return some(100000, 100000, -1, 0, 2 ** 62, -2 ** 63, 2 ** 63, '', 'x', '01')

    words = some(
        lambda: ['SET', key(), value()] + some([], [], ['NX'], ['XX'], ['EX', time()], ['PX', time()], ['KEEPTTL'],
                                               ['EX', 100, 'NX'], ['XX', 'PX', 10 ** 6], ['NX', 'XX'], ['EX'],
                                               ['EX', 5, 'PX', 5], ['KEEPTTL', 'EX', 5], ['nonsense']),
        lambda: ['GET', key()], lambda: ['MGET', key(), key()], lambda: ['MSET', key(), value(), key(), value()],
        lambda: ['DEL', key(), key()], lambda: ['EXISTS', key(), key()], lambda: ['INCR', key()],
        lambda: ['DECR', key()], lambda: ['INCRBY', key(), number()], lambda: ['EXPIRE', key(), some(100, 1000)],
        lambda: ['TTL', key()], lambda: ['DBSIZE'], lambda: ['SELECT', some(0, 0, 1, 15, 16, 'x')],
        lambda: ['FLUSHDB'], lambda: ['ECHO', value()], lambda: ['PING', value()], lambda: ['PING'],
        lambda: ['nonsense', key()])()
    # now and then one word too many (but for options that we do not have) or too few
    if source.random() < .02 and words[0] != 'EXPIRE':
        words.append(key())
    return words[:-1] if source.random() < .02 and words[1:] else words


def answers_are_those_of_redis(binary):
    seed = int(os.environ.get('PCPC_SEED', '0'), 0) or time.time_ns()
    print(f'PCPC_SEED={seed}')
    source = random.Random(seed)
    with start(binary) as daemon, Client(daemon, 'alice') as ours, Redis() as redis, Client(redis) as theirs:
        for _ in range(5000):
            words = some_command(source)
            answers = ours(*words), theirs(*words)
            if words[0] == 'TTL' and all(isinstance(answer, int) for answer in answers):
                assert abs(answers[0] - answers[1]) <= 1, (words, answers)
            else:
                assert answers[0] == answers[1], (words, answers)


def numbers_keep_their_bounds(binary):
    with start(binary) as daemon, Client(daemon, 'alice') as client:
        client('SET', 'n', 2 ** 63 - 2)
        assert client('INCR', 'n') == 2 ** 63 - 1
        for words in (('INCR', 'n'), ('INCRBY', 'n', 1)):
            assert client(*words) == 'ERR increment or decrement would overflow'
        assert client('INCRBY', 'n', 2 ** 63) == 'ERR value is not an integer or out of range'
        assert client('GET', 'n') == str(2 ** 63 - 1).encode()
        for text in ('', ' 1', '1 ', '+1', '1x', '0x10', '1.0', str(2 ** 63)):
            client('SET', 'n', text)
            assert client('INCR', 'n') == 'ERR value is not an integer or out of range', text
        client('SET', 'n', '-5', 'PX', 100000)
        assert client('INCR', 'n') == -4 and client('PTTL', 'n') > 90000


def keys_expire(binary):
    with start(binary) as daemon, Client(daemon, 'alice') as client:
        for i in range(500):
            client('SET', f'k{i}', 'x', 'PX', 1 + i % 50)
        client('SET', 'stays', 'x')
        # those that nobody asks for as well
        wait_until(lambda: client('DBSIZE') == 1, 'expired keys go')
        assert client('GET', 'k1') is None and client('GET', 'stays') == b'x'


def tenants_see_nothing_of_each_other(binary):
    with start(binary) as daemon, Client(daemon) as client:
        assert client('GET', 'a') == 'NOAUTH Authentication required.'
        assert client('PING') == 'PONG'
        assert client('AUTH', 'alice', 'wrong').startswith('WRONGPASS')
        assert client('AUTH', 'nobody', '').startswith('WRONGPASS')
        assert client('AUTH', 'password-alice') == 'OK'
        client('SET', 'a', 'of alice')
        assert client('AUTH', 'bob', 'password-bob') == 'OK'
        assert client('GET', 'a') is None
        client('FLUSHDB')
        assert client('AUTH', 'alice', 'password-alice') == 'OK'
        assert client('GET', 'a') == b'of alice'
        assert b'tenant:alice' in client('INFO')
        assert client('HELLO', 3).startswith('NOPROTO')
        assert client('HELLO', 2)[0] == b'server'
        assert client('HELLO', 2, 'AUTH', 'bob', 'wrong').startswith('WRONGPASS')
        assert client('HELLO', 2, 'AUTH', 'bob', 'password-bob', 'SETNAME', 'me')[0] == b'server'
        assert client('CLIENT', 'GETNAME') == b'me' and b'tenant:bob' in client('INFO')
        assert client('HELLO', 2, 'NONSENSE').startswith('ERR Syntax error in HELLO option')
        assert client('CLIENT', 'SETNAME', 'a b').startswith('ERR Client names cannot contain spaces')
        assert b'get' in client('COMMAND') and client('COMMAND', 'DOCS') == []
        assert client('QUIT') == 'OK' and client.ended()


def requests_come_in_pieces(binary):
    value = bytes(range(256))
    data = request('SET', b'k\r\n\0', value) + request('GET', b'k\r\n\0') + b'PING\r\n' + request('ECHO', '')
    with start(binary) as daemon, Client(daemon, 'alice') as client:
        for at in range(1, len(data)):
            client.raw(data[:at])
            client.raw(data[at:])
            assert [client.answer() for _ in range(4)] == ['OK', value, 'PONG', b'']
        for i in range(len(data)):
            client.raw(data[i:i + 1])
        assert [client.answer() for _ in range(4)] == ['OK', value, 'PONG', b'']


def large_requests_come_in_many_pieces(binary):
    """Arguments by the thousand, a few bytes at a time, and a value larger than what is read at once."""
    many = [f'key:{i}' for i in range(20000)]
    value = b'v' * 12000000
    with Daemon(binary, *tenants(alice='max=64m')) as daemon, Client(daemon, 'alice') as client:
        data = request('EXISTS', *many)
        for at in range(0, len(data), 997):
            client.raw(data[at:at + 997])
        assert client.answer() == 0
        data = request('SET', 'large', value) + request('GET', 'large')
        for at in range(0, len(data), 1000001):
            client.raw(data[at:at + 1000001])
        assert client.answer() == 'OK' and client.answer() == value
    # and what its arguments took has come back (the daemon's status says so)


def many_requests_at_once(binary):
    with start(binary) as daemon, Client(daemon, 'alice') as client:
        client.raw(b''.join(request('SET', i, i * 3) for i in range(5000)))
        assert all(client.answer() == 'OK' for _ in range(5000))
        client.raw(b''.join(b'GET %d\r\n' % i for i in range(5000)))
        assert all(client.answer() == b'%d' % (i * 3) for i in range(5000))
        client.raw(b'\r\n*0\r\n  \r\n  GET  \t 7  \r\n')
        assert client.answer() == b'21'
        client.raw(b'EXISTS ' + b'7 ' * 63 + b'\r\n')
        assert client.answer() == 63


def answers_that_do_not_fit_into_a_socket_all_come(binary):
    value = b'v' * 100000
    with start(binary) as daemon, Client(daemon, 'alice') as client:
        assert client('SET', 'large', value) == 'OK'
        client.raw(request('GET', 'large') * 300 + request('QUIT'))
        assert all(client.answer() == value for _ in range(300)) and client.answer() == 'OK'
        assert client.ended()


def a_key_that_is_set_anew_is_never_missing(binary):
    many = 20000
    with start(binary) as daemon, Client(daemon, 'alice') as writer, Client(daemon, 'alice') as reader:
        assert writer('SET', 'a', 0) == 'OK'
        setter = threading.Thread(target=writer.raw, args=(b''.join(request('SET', 'a', i) for i in range(many)),))
        getter = threading.Thread(target=reader.raw, args=(request('GET', 'a') * many,))
        sink = threading.Thread(target=lambda: [writer.answer() for _ in range(many)])
        for thread in (setter, getter, sink):
            thread.start()
        found = [reader.answer() for _ in range(many)]
        for thread in (setter, getter, sink):
            thread.join()
        assert None not in found, found.count(None)
        numbers = [int(text) for text in found]
        assert numbers == sorted(numbers)


def nonsense_ends_the_connection(binary):
    wrong = [b'*1\r\n$-1\r\n', b'*1\r\n$x\r\n', b'*1\r\n:1\r\n', b'*x\r\n', b'*2147483648\r\n',
             b'*1\r\n$99999999999\r\n', b'*999999999999999999999\r\n', b'*1\r\n$16777217\r\n', b'x' * 70000,
             b'EXISTS' + b' k' * 64 + b'\r\n']
    with start(binary) as daemon:
        for data in wrong:
            with Client(daemon, 'alice') as client:
                client.raw(data)
                answer = client.answer()
                assert answer.startswith('ERR Protocol error'), (data[:30], answer)
                assert client.ended()
        # more than may be in one request; it ends before all was sent
        with Client(daemon, 'alice') as client:
            try:
                client.raw(b'*3\r\n' + b''.join(b'$9000000\r\n' + b'x' * 9000000 + b'\r\n' for _ in range(3)))
                assert client.answer().startswith(('ERR Protocol error', 'OOM')) and client.ended()
            except ConnectionError:
                pass
        with Client(daemon, 'alice') as client:
            assert client('PING') == 'PONG'


def a_page_in_a_browser_gets_no_command_through(binary):
    with Daemon(binary, '--tenant=open,max=4m', accounting=accounting) as daemon, Client(daemon) as witness:
        for first in 'POST / HTTP/1.1', 'GET / HTTP/1.1\r\nHost: localhost':
            with Client(daemon) as client:
                client.raw(first.encode() + b'\r\n\r\nSET harm done\r\n')
                assert client.ended()
        assert witness('EXISTS', 'harm') == 0


def settings_are_read_as_they_are_written(binary):
    def refused(text):
        with tempfile.NamedTemporaryFile('w') as file:
            file.write(text)
            file.flush()
            done = subprocess.run([binary, f'--config={file.name}'], stderr=subprocess.PIPE, text=True)
        return done.returncode == 2 and 'cannot make sense of this' in done.stderr

    for text in ('tenant a:b max=1m\n', 'tenant a\ntenant a\n', 'nonsense 1\n', 'max\n', 'tenant a,max=1x\n',
                 'tenant ' + 'a' * 2000 + '\n', 'config other\n', 'workers 0\n', 'max -1\n'):
        assert refused(text), text
    with tempfile.NamedTemporaryFile('w') as file:
        file.write('# a comment\n\n  tenant = alice:pass#word,max=2m\n')
        file.flush()
        with Daemon(binary, f'--config={file.name}', accounting=accounting) as daemon, Client(daemon) as client:
            assert client('AUTH', 'alice', 'pass') != 'OK' and client('AUTH', 'alice', 'pass#word') == 'OK'
            assert client('CONFIG', 'GET', 'MAX*') == [b'maxmemory', b'2097152']


def random_bytes_harm_nobody(binary):
    seed = int(os.environ.get('PCPC_SEED', '0'), 0) or time.time_ns()
    print(f'PCPC_SEED={seed}')
    source = random.Random(seed)
    pieces = [b'*', b'$', b'\r\n', b'3', b'-1', b'SET', b'GET', b'k', b' ', b'\n', b'9' * 30]
    with start(binary) as daemon, Client(daemon, 'bob') as witness:
        for _ in range(300):
            with Client(daemon, 'alice') as client:
                try:
                    client.raw(b''.join(source.choice(pieces) for _ in range(source.randrange(1, 60))))
                except ConnectionError:
                    pass
            assert witness('PING') == 'PONG'


run([(name, test) for name, test in list(globals().items())
     if callable(test) and getattr(test, '__module__', '') == '__main__' and name not in ('start', 'cli', 'Redis', 'some_command')],
    sys.argv[1])
