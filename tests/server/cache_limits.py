#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""cache_limits.py DAEMON [ACCOUNTING] - limits of tenants: what happens at them, that they hold at every
moment, that others are unharmed, and that what was charged comes back to the byte.

CACHE_SECONDS: how long the load of many clients lasts (default 2); CACHE_CONNECTIONS: of each tenant (default 8).
"""
import re
import sys
import threading

from cache_support import *

accounting = sys.argv[2] if len(sys.argv) > 2 else 'pcpcharge'
SECONDS = float(os.environ.get('CACHE_SECONDS', '2'))
CONNECTIONS = int(os.environ.get('CACHE_CONNECTIONS', '8'))
FULL = "OOM command not allowed when used memory > 'maxmemory'."
MB = 1 << 20


def start(binary, *more, **of):
    return Daemon(binary, *tenants(**of), *more, accounting=accounting)


def fill(client, value, most=100000):
    """Sets keys until one is refused; how many were set."""
    for i in range(most):
        answer = client('SET', f'key:{i}', value)
        if answer != 'OK':
            assert answer == FULL, answer
            return i
    raise AssertionError('nothing was refused')


def is_back_at_zero(daemon, tenant):
    wait_until(lambda: daemon.tenant(tenant)['usage'] == 0, f'{tenant} has nothing')


def a_tenant_that_refuses_is_full_and_stays_readable(binary):
    with start(binary, alice='max=4m,policy=refuse', bob='max=4m,policy=refuse') as daemon:
        with Client(daemon, 'alice') as alice, Client(daemon, 'bob') as bob:
            nr = fill(alice, 'x' * 10000)
            assert 3.5 * MB / 10200 * .9 < nr < 3.5 * MB / 10000
            assert alice('GET', 'key:0') == b'x' * 10000
            assert daemon.tenant('alice')['usage'] <= 4 * MB
            assert bob('SET', 'a', 'b') == 'OK'
            if accounting == 'pcpcharge':
                assert re.search(r'no room for \d+ bytes: .*keys', daemon.get('refusal')), daemon.get('refusal')
            assert alice('DEL', 'key:0') == 1
            wait_until(lambda: alice('SET', 'key:0', 'y' * 10000) == 'OK', 'there is room again')
            assert alice('FLUSHDB') == 'OK'
            assert alice('DBSIZE') == 0
        is_back_at_zero(daemon, 'alice')


def a_tenant_that_evicts_loses_its_own_oldest_keys(binary):
    with start(binary, alice='max=4m,policy=evict', bob='max=4m,policy=refuse') as daemon:
        with Client(daemon, 'alice') as alice, Client(daemon, 'bob') as bob:
            for i in range(100):
                assert bob('SET', i, 'y' * 1000) == 'OK'
            for i in range(2000):
                assert alice('SET', f'key:{i}', 'x' * 10000) == 'OK'
                # one that is read all the time is passed by
                assert alice('GET', 'key:0') == b'x' * 10000, i
            figures = daemon.tenant('alice')
            assert figures['evicted'] > 1500 and figures['usage'] <= 4 * MB, figures
            assert alice('GET', 'key:1999') == b'x' * 10000
            assert alice('GET', 'key:500') is None
            assert all(bob('GET', i) == b'y' * 1000 for i in range(100))
            assert daemon.tenant('bob')['evicted'] == 0
            # one that can never fit: not even in the buffer of its connection
            with Client(daemon, 'alice') as other:
                try:
                    assert other('SET', 'huge', 'x' * (5 * MB)).startswith('OOM')
                except ConnectionError:
                    pass  # it has ended before all was sent
            assert daemon.tenant('alice')['usage'] <= 4 * MB


def what_is_replaced_or_over_keeps_nobody_out(binary):
    """Memory that waits for readers to be gone, and keys whose time is over, give way to what is wanted."""
    with start(binary, alice='max=4m,policy=refuse', bob='max=4m,policy=evict') as daemon:
        with Client(daemon, 'alice') as alice, Client(daemon, 'bob') as bob:
            for i in range(100):
                assert bob('SET', f'other:{i}', 'y') == 'OK'
            for client in alice, bob:
                client.raw(request('SET', 'same', 'x' * 30000) * 2000)
                assert all(client.answer() == 'OK' for _ in range(2000))
            assert daemon.tenant('bob')['evicted'] == 0 and bob('EXISTS', *[f'other:{i}' for i in range(100)]) == 100
            assert alice('DEL', 'same') == 1
            nr = fill(alice, 'x' * 10000)
            assert all(alice('PEXPIRE', f'key:{i}', 1) == 1 for i in range(nr))
            wait_until(lambda: alice('EXISTS', f'key:{nr - 1}') == 0, 'they are over')
            assert alice('SET', 'large', 'x' * 1000000) == 'OK'


def a_full_server_can_still_be_talked_to(binary):
    with start(binary, '--max=8m', alice='connections=1m', bob='connections=1m', carol='policy=evict,connections=1m') as daemon:
        with Client(daemon, 'alice') as alice, Client(daemon, 'carol') as carol:
            assert all(carol('SET', i, 'y' * 10000) == 'OK' for i in range(50))
            nr = fill(alice, 'x' * 10000)
            assert nr > 500
            with Client(daemon, 'bob') as bob:
                assert bob('PING') == 'PONG'
                assert bob('SET', 'a', 'x' * 100000) == FULL
            # who evicts gives way to itself
            assert all(carol('SET', i, 'z' * 10000) == 'OK' for i in range(100))
            assert daemon.tenant('carol')['evicted'] > 40
            assert alice('DEL', *[f'key:{i}' for i in range(nr)]) == nr
            with Client(daemon, 'bob') as bob:
                assert bob('SET', 'a', 'x' * 100000) == 'OK'


def a_tenant_above_high_is_slowed_and_can_help_itself(binary):
    with start(binary, alice='max=8m,high=256k', bob='max=8m') as daemon:
        with Client(daemon, 'alice') as alice, Client(daemon, 'bob') as bob:
            for i in range(60):
                assert alice('SET', i, 'x' * 10000) == 'OK'
                assert bob('PING') == 'PONG'
            assert daemon.tenant('alice')['slowed'] > 0
            assert daemon.tenant('bob')['slowed'] == 0
            assert alice('FLUSHDB') == 'OK'
            # and at once: what she held may still be in stocks, far more than high, but nobody holds it
            slowed = daemon.tenant('alice')['slowed']
            for i in range(50):
                assert alice('SET', i, 'x') == 'OK'
            assert daemon.tenant('alice')['slowed'] == slowed


def many_slowed_connections_are_no_faster_and_who_evicts_is_not_slowed(binary):
    with start(binary, alice='max=8m,high=256k', bob='max=8m,high=256k,policy=evict') as daemon:
        with Client(daemon, 'alice') as alice, Client(daemon, 'bob') as bob:
            assert alice('SET', 'large', 'x' * 500000) == 'OK'
            clients = [Client(daemon, 'alice') for _ in range(20)]
            began = time.monotonic()
            for client in clients:
                client.send('PING')
            assert all(client.answer() == 'PONG' for client in clients)
            # 20 of them, 50 ms apart, the last ones a second at the most
            assert time.monotonic() - began > .8
            for client in clients:
                client.send('PING')
            assert alice('DEL', 'large') == 1
            # they go on at once
            assert all(client.answer() == 'PONG' for client in clients)
            for client in clients:
                client.close()
            assert all(bob('SET', i, 'y' * 10000) == 'OK' for i in range(100))
            assert daemon.tenant('bob')['slowed'] == 0 and daemon.tenant('bob')['evicted'] > 50
            assert daemon.tenant('bob')['usage'] < MB // 2


def hostile_clients_cost_only_their_own_tenant(binary):
    with start(binary, alice='max=4m,connections=2m', bob='max=4m') as daemon, Client(daemon, 'bob') as bob:
        # who never reads its answers
        deaf = Client(daemon, 'alice')
        deaf('SET', 'big', 'x' * 100000)
        deaf.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.socket.settimeout(0.5)
        try:
            for _ in range(2000):
                deaf.raw(request('GET', 'big'))
        except OSError:
            pass
        assert daemon.tenant('alice')['connections'] <= 2 * MB
        # half a request, of as much as it may be, from many at a time
        halves = []
        for _ in range(30):
            half = Client(daemon, 'alice') if daemon.tenant('alice')['connections'] < MB else Client(daemon)
            half.socket.settimeout(0.5)
            try:
                half.raw(b'*2\r\n$3\r\nGET\r\n$16000000\r\n' + b'x' * 500000)
            except OSError:
                pass
            halves.append(half)
        # many who say nothing
        idle = [socket.create_connection(('127.0.0.1', daemon.port)) for _ in range(500)]
        assert bob('SET', 'a', 'b') == 'OK' and bob('GET', 'a') == b'b'
        assert daemon.tenant('alice')['usage'] <= 4 * MB
        for client in halves + [deaf] + idle:
            client.close()
        wait_until(lambda: daemon.tenant('alice')['clients'] == 0, 'they are gone')
        with Client(daemon, 'alice') as alice:
            alice('FLUSHDB')
        is_back_at_zero(daemon, 'alice')


def who_asks_for_much_waits_for_the_others(binary):
    """One worker; one client that sends thousands of dear commands at once. Another one's turn comes between."""
    much = 3000
    with start(binary, '--workers=1', alice='max=4m', bob='max=4m') as daemon, Client(daemon, 'bob') as bob:
        with Client(daemon, 'alice') as alice:
            alice.raw((request('SET', 'a', 'b') + request('FLUSHDB')) * much)
            assert alice.answer() == 'OK'
            assert bob('PING') == 'PONG'
            done = daemon.tenant('alice')['commands']
            assert done < 2 * much, done
            assert all(alice.answer() == 'OK' for _ in range(2 * much - 1))
        assert daemon.tenant('alice')['commands'] == 2 * much


def a_tenant_can_take_no_more_than_its_share_of_descriptors(binary):
    options = tenants(alice='max=4m', bob='max=4m')
    with Daemon(binary, *options, accounting=accounting, descriptors=368) as daemon:
        clients, refused = [], 0
        for _ in range(150):
            client = Client(daemon)
            answer = client('AUTH', 'alice', 'password-alice')
            clients.append(client)
            refused += answer != 'OK'
        assert daemon.tenant('alice')['clients'] == 100 and refused == 50, refused
        with Client(daemon, 'bob') as bob:
            assert bob('PING') == 'PONG'
        for client in clients:
            client.close()
    # one that asks for no password, and takes all that it may: others can still say who they are
    options = [f'--tenant=open,max=4m', *tenants(bob='max=4m')]
    with Daemon(binary, *options, accounting=accounting, descriptors=368) as daemon:
        clients = [Client(daemon) for _ in range(110)]
        assert clients[0]('PING') == 'PONG' and clients[0]('SET', 'a', 'b') == 'OK'
        assert clients[-1]('SET', 'a', 'b').startswith('NOAUTH')
        with Client(daemon, 'bob') as bob:
            assert bob('SET', 'a', 'b') == 'OK'
        for client in clients:
            client.close()


# Of a tenant under load: of its limit an eighth is for its connections, so they get what their pipelines take.
LOADED_MAX = CONNECTIONS * MB // 4
LOADED_KEYS = CONNECTIONS * 250


def load(daemon, tenant, stop, errors, number):
    source = random.Random(f'{tenant} {number}')
    try:
        with Client(daemon, tenant) as client:
            while not stop.is_set():
                batch = [('SET', source.randrange(LOADED_KEYS), 'v' * source.randrange(3000))
                         if source.random() < .5 else ('GET', source.randrange(LOADED_KEYS)) for _ in range(20)]
                client.raw(b''.join(request(*words) for words in batch))
                for words in batch:
                    answer = client.answer()
                    if isinstance(answer, Error) and answer != FULL:
                        errors.append(answer)
    except (OSError, EOFError) as error:
        errors.append(repr(error))


def limits_hold_at_every_moment_under_load(binary):
    of = dict(alice=f'max={LOADED_MAX},policy=refuse', bob=f'max={LOADED_MAX},policy=evict', carol='max=256m')
    with start(binary, **of) as daemon:
        stop, errors = threading.Event(), []
        threads = [threading.Thread(target=load, args=(daemon, tenant, stop, errors, number))
                   for tenant in of for number in range(CONNECTIONS)]
        for thread in threads:
            thread.start()
        deadline, samples = time.monotonic() + SECONDS, 0
        # as long as it takes until both have met their limits
        while time.monotonic() < deadline or not (daemon.tenant('alice')['refused'] and
                                                  daemon.tenant('bob')['evicted']):
            assert time.monotonic() < deadline + PATIENCE, 'the limits are not met'
            for tenant, most in (('alice', LOADED_MAX), ('bob', LOADED_MAX), ('carol', 256 * MB)):
                usage = daemon.tenant(tenant)['usage']
                assert usage <= most, (tenant, usage)
                samples += 1
        stop.set()
        for thread in threads:
            thread.join()
        assert not errors, errors[:5]
        assert samples > 10
        assert daemon.tenant('carol')['refused'] == 0 and daemon.tenant('carol')['evicted'] == 0
        for tenant in of:
            with Client(daemon, tenant) as client:
                client('FLUSHDB')
            is_back_at_zero(daemon, tenant)


def the_resident_set_tracks_what_is_charged(binary):
    """Within a quarter and 4 MiB, upwards of the most that ever was charged: the C library keeps what is freed."""
    if os.environ.get('CACHE_SANITIZED'):
        return
    with start(binary, alice='max=256m') as daemon, Client(daemon, 'alice') as alice:
        first, most, filled = daemon.resident(), 0, 0
        for size in (100, 1000, 10000, 100000, 300):
            usage = nr = 0
            while usage < 24 * MB:
                requests = [request('SET', nr + i, 'x' * size) for i in range(max(1, MB // (size + 100)))]
                alice.raw(b''.join(requests))
                assert all(alice.answer() == 'OK' for _ in requests)
                nr += len(requests)
                usage, resident = daemon.tenant('alice')['usage'], daemon.resident() - first
                most = max(most, usage)
                assert usage * .75 - 4 * MB < resident < most * 1.25 + 4 * MB, (size, usage, most, resident)
                filled += 1
            assert alice('FLUSHDB') == 'OK'
        assert filled > 50


def clients_that_are_killed_leave_nothing(binary):
    require('redis-benchmark')
    with start(binary, alice='max=16m,policy=evict') as daemon:
        for _ in range(5):
            load = subprocess.Popen(['redis-benchmark', '-p', str(daemon.port), '--user', 'alice', '-a',
                                     'password-alice', '-t', 'set,get', '-c', '50', '-n', '100000000',
                                     '-d', '1000', '-r', '1000', '-q'],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            seen = daemon.tenant('alice')['commands']
            wait_until(lambda: daemon.tenant('alice')['commands'] > seen + 1000, 'commands come')
            load.kill()
            load.wait()
        wait_until(lambda: daemon.tenant('alice')['clients'] == 0, 'they are gone')
        with Client(daemon, 'alice') as client:
            client('FLUSHDB')
        is_back_at_zero(daemon, 'alice')


def metrics_and_page_are_served(binary):
    with start(binary, alice='max=4m') as daemon, Client(daemon, 'alice') as alice:
        alice('SET', 'a', 'x' * 1000)
        metrics = daemon.get('metrics')
        assert re.search(r'^cache_commands_total\{tenant="alice"\} [1-9]', metrics, re.M), metrics
        if accounting == 'pcpcharge':
            assert re.search(r'usage.*alice', metrics), metrics
            assert 'alice' in daemon.get('tree')
        assert '<title>' in daemon.get('')
        answers = [('GET /none HTTP/1.1', 404), ('POST / HTTP/1.1', 405), ('HEAD / HTTP/1.0', 200), ('GET /', 400),
                   ('GET / HTTP/1.1\r\nHost: localhost:1', 200), ('GET / HTTP/1.1\r\nhost: evil.example', 403)]
        # those who say nothing keep nobody waiting
        silent = [socket.create_connection(('127.0.0.1', daemon.http_port)) for _ in range(50)]
        for text, code in answers:
            with socket.create_connection(('127.0.0.1', daemon.http_port), PATIENCE) as client:
                client.sendall(text.encode() + b'\r\n\r\n')
                assert client.makefile('rb').readline().startswith(b'HTTP/1.1 %d' % code), text
        for client in silent:
            client.close()


ALWAYS = [metrics_and_page_are_served]
LIMITED = [a_tenant_that_refuses_is_full_and_stays_readable, a_tenant_that_evicts_loses_its_own_oldest_keys,
           what_is_replaced_or_over_keeps_nobody_out, a_full_server_can_still_be_talked_to,
           a_tenant_above_high_is_slowed_and_can_help_itself,
           many_slowed_connections_are_no_faster_and_who_evicts_is_not_slowed,
           hostile_clients_cost_only_their_own_tenant,
           who_asks_for_much_waits_for_the_others, a_tenant_can_take_no_more_than_its_share_of_descriptors,
           limits_hold_at_every_moment_under_load, the_resident_set_tracks_what_is_charged,
           clients_that_are_killed_leave_nothing]
run([(test.__name__, test) for test in ALWAYS + ([] if accounting == 'none' else LIMITED)], sys.argv[1])
