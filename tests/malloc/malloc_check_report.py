#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""malloc_check_report.py FILE... - JSON reports of libpcpcharge-malloc.so at exit.

Each must be one whole document, whose books are in order: nobody ever was above a limit, and nobody
gave back more than there was. Prints what all of them held, and how often they refused.
"""
import json
import sys

held = refused = 0
if len(sys.argv) < 2:
    sys.exit("no report")
for name in sys.argv[1:]:
    with open(name, encoding="utf-8") as file:
        report = json.load(file)
    assert report["domain"] == "malloc" and report["unit"] == "bytes", name
    root = report["owners"][0]
    assert root["parent"] is None
    for owner in report["owners"]:
        assert owner["events"]["underflow"] == 0 and owner["events"]["forced"] == 0, name
        if owner["max"] is not None:
            assert owner["usage"] <= owner["peak"] <= owner["max"], name
    held += root["usage"] - sum(owner["stocked"] for owner in report["owners"])
    refused += root["events"]["refused"]
print(held, refused)
