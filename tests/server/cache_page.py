#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""cache_page.py DAEMON [PICTURE.png] - the status page in a browser: it draws a bar for each tenant, as long
as its usage, from what the daemon says.
"""
import html.parser
import sys
import tempfile

from cache_support import *

require('chromium')
MB = 1 << 20


def browse(url, *options):
    with tempfile.TemporaryDirectory() as profile:
        return subprocess.run(['chromium', '--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--hide-scrollbars',
                               f'--user-data-dir={profile}', '--virtual-time-budget=3000',
                               '--window-size=900,640', *options, url],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True,
                              timeout=PATIENCE).stdout


class Bars(html.parser.HTMLParser):
    """By owner: the width of its bar of keys, and its classes."""

    def __init__(self, text):
        super().__init__()
        self.keys, self.full, self.owner = {}, set(), None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        classes = (attributes.get('class') or '').split()
        if 'owner' in classes:
            self.owner = attributes['data-name']
            if 'full' in classes:
                self.full.add(self.owner)
        elif 'keys' in classes:
            self.keys[self.owner] = float(re.search(r'width: ([\d.]+)%', attributes['style']).group(1))


def page_draws_every_tenant(binary):
    of = dict(alice='max=4m,policy=refuse', bob='max=8m,high=6m', carol='max=16m')
    with Daemon(binary, *tenants(**of)) as daemon, Client(daemon, 'alice') as alice, Client(daemon, 'bob') as bob:
        for i in range(1000):
            alice('SET', i, 'x' * 10000)
        for i in range(200):
            bob('SET', i, 'x' * 10000)
        url = f'http://127.0.0.1:{daemon.http_port}/'
        bars = Bars(browse(url, '--dump-dom'))
        assert set(bars.keys) == {'cache', 'nobody', *of}, bars.keys
        for tenant, most in (('alice', 4), ('bob', 8), ('carol', 16)):
            figures = daemon.tenant(tenant)
            expected = 100 * (figures['usage'] - figures['connections']) / (most * MB)
            assert abs(bars.keys[tenant] - expected) < 3, (tenant, bars.keys[tenant], expected)
        assert bars.full == {'alice'}, bars.full
        assert bars.keys['bob'] > 20 and bars.keys['carol'] < 1
        if len(sys.argv) > 2:
            browse(url, f'--screenshot={sys.argv[2]}')


run([('page_draws_every_tenant', page_draws_every_tenant)], sys.argv[1])
