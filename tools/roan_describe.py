#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Names, units, ranges and meanings of roan's parameters, counters and histograms, from describe.json, which the build makes from
the module's own lists (tools/describe.c).

    parameters()    list of {name, unit, meaning, group, min, max, dcqcn, others}; group: device, pfc or cc; dcqcn and
                    others are the defaults of the algorithm dcqcn, and of all others; unit "name": the value is a word
    counters()      list of {name, unit, meaning}, in the order of `rdma statistic`
    latencies()     the same of the histograms in ports/1/latency/

As a program it prints the tables of Documentation/, which `make test` compares with the pages: roan_describe.py tables
"""
import functools
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
PLACES = [os.path.join(HERE, "../build/describe.json"), os.path.join(HERE, "describe.json")]	# in the tree, installed


@functools.lru_cache(maxsize=None)
def description():
    for path in PLACES:
        if os.path.exists(path):
            with open(path) as f:
                return json.load(f)
    raise FileNotFoundError("describe.json is missing: 'make describe' builds it, 'make install-tool' installs it")


def parameters():
    return description()["parameters"]


def counters():
    return description()["counters"]


def latencies():
    return description()["latencies"]


def tables():
    """Rows of the tables of qos-pfc.md, observability.md and monitoring.md. The eight counters of the priorities share a row."""
    for group, head, row in (
            ("pfc", "| name | unit | range | default | meaning |\n|---|---|---|---|---|", "| %(name)s | %(unit)s | %(min)d-%(max)d | %(dcqcn)d | %(meaning)s |"),
            ("cc", "| name | unit | range | dcqcn | others | meaning |\n|---|---|---|---|---|---|",
             "| %(name)s | %(unit)s | %(min)d-%(max)d | %(dcqcn)d | %(others)d | %(meaning)s |")):
        yield head
        yield from (row % p for p in parameters() if p["group"] == group)
    yield "| name | unit | meaning |\n|---|---|---|"
    for c in counters():
        name = re.sub("_prio0_", "_prioN_", c["name"])
        if not re.search("_prio[1-7]_", name):
            yield "| `%s` | %s | %s%s |" % (name, c["unit"], "N = 0 to 7: " if "_prioN_" in name else "", c["meaning"])
    yield "| name | meaning |\n|---|---|"
    yield from ("| `%(name)s` | %(meaning)s |" % h for h in latencies())


if __name__ == "__main__":
    if sys.argv[1:] != ["tables"]:
        sys.exit(__doc__)
    print("\n".join(tables()))
