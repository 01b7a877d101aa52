#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Finds static functions with the same name in two files: kallsyms, perf and backtraces show a name without its file.

Usage:  selftests/lint/static-names.py [FOLDER ...]      default: kernel provider; folders are checked separately

Prints each such name with its files; exit status 1 if there are any. Two definitions in one file (#if, #else) count as one.
Folders named test are skipped: they hold separate programs.
"""
import collections
import os
import re
import sys

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
DEFINITION = re.compile(r"^static\b[^;{}=()#]*?\b(\w+)\s*\([^;{}]*?\)[^;{}=]*\{", re.M)
MACROS = {"UVERBS_HANDLER", "NAME"}     # macros that build the function name from an argument


def strip(text):
    """Blank out comments and strings."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match.group(0))
    return re.sub(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"", blank, text, flags=re.S)


def sources(folder):
    for path, folders, files in os.walk(os.path.join(TOP, folder)):
        folders[:] = sorted(f for f in folders if f != "test")
        for name in sorted(files):
            if name.endswith((".c", ".h")) and not name.endswith(".mod.c"):
                yield os.path.join(path, name)


def twice(folder):
    """The names that several files of the folder define, and these files."""
    where = collections.defaultdict(set)
    for path in sources(folder):
        with open(path, encoding="utf-8") as f:
            text = strip(f.read())
        for match in DEFINITION.finditer(text):
            if match.group(1) not in MACROS:
                where[match.group(1)].add(os.path.relpath(path, TOP))
    return {name: sorted(files) for name, files in sorted(where.items()) if len(files) > 1}


def main():
    found = 0
    for folder in sys.argv[1:] or ["kernel", "provider"]:
        for name, files in twice(folder).items():
            print(f"{name}: {', '.join(files)}")
            found = 1
    return found


sys.exit(main())
