#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Checks that calls and includes between the folders of kernel/ go down the floors only.

Usage:  selftests/lint/floors.py FOLDER      FOLDER: a build of the module, such as build/6.12.0-amd64; reads its kernel/

Reads the defined and undefined symbols of each object with nm. Prints each reference from an object to a symbol of a folder
above its own, and each #include of a header of a folder above, except headers with types only (*_types.h).
Exit status: 0: nothing found, 1: references found, 2: no objects. selftests/lint/floors_test.sh tests this script.
"""
import os
import re
import subprocess
import sys

# Floors, from the top down. The folder of an object is the longest prefix of its path in this list.
FLOORS = {"main.o": 9, "verbs/": 8, "rx/": 7, "tx/": 6, "flow/": 5, "mem/": 4, "net/": 3, "base/": 2, "core/": 1}

# The only intended reference up: core/ calls roan_crc32() (core_env.h), which each program that links the core defines.
MEANT = {("core/", "roan_crc32")}


def top_folder(path):
    tops = [r for r in FLOORS if path == r or (r.endswith("/") and path.startswith(r))]
    return max(tops, key=len, default=None)


def symbols(path):
    """The global symbols that the object defines, and those that it leaves undefined."""
    defined, undefined = set(), set()
    for line in subprocess.run(["nm", "-g", path], capture_output=True, text=True, check=True).stdout.splitlines():
        kind, name = line.split()[-2:]
        (undefined if kind == "U" else defined).add(name)
    return defined, undefined


def files_of(folder, *endings):
    top = os.path.join(folder, "kernel")
    for where, _, files in os.walk(top):
        for name in sorted(files):
            path = os.path.relpath(os.path.join(where, name), top)
            # roan_peermem.ko is a separate module above roan.ko.
            if name.endswith(endings) and not name.startswith(".") and not path.startswith("mem/peermem/"):
                yield path, os.path.join(where, name)


def includes_up(path, file):
    own = top_folder(path)
    with open(file, encoding="utf-8") as f:
        for header in re.findall(r'^#include "(\w+/[\w/]+\.h)"', f.read(), re.M):
            top = top_folder(header)
            if own and top and FLOORS[top] > FLOORS[own] and not header.endswith("_types.h"):
                yield "%s (%s floor %d) includes %s (floor %d)" % (path, own, FLOORS[own], header, FLOORS[top])


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    owner, wants, bad = {}, [], []
    for path, file in files_of(sys.argv[1], ".c", ".h"):
        bad += includes_up(path, file)
    for path, file in files_of(sys.argv[1], ".o"):
        if not top_folder(path):
            bad.append("%s has no floor: add its folder to FLOORS" % path)
            continue
        defined, undefined = symbols(file)
        owner.update({name: path for name in defined})
        wants += [(path, name) for name in undefined]
    if not owner:
        print("no objects below %s/kernel" % sys.argv[1])
        sys.exit(2)
    for path, name in wants:
        home = owner.get(name)
        if home and FLOORS[top_folder(home)] > FLOORS[top_folder(path)] and (top_folder(path), name) not in MEANT:
            bad.append("%s (%s floor %d) refers to %s of %s (floor %d)" %
                       (path, top_folder(path), FLOORS[top_folder(path)], name, home, FLOORS[top_folder(home)]))
    print("\n".join(sorted(bad)), end="\n" if bad else "")
    sys.exit(1 if bad else 0)


main()
