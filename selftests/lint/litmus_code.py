#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Checks that the code which the litmus tests model is still there: each `Code: FILE FUNCTION(): TEXT` of a test names a
function of that file whose body has that text, apart from spaces. Prints each one that is not found; exits 1 if there is any.
A test without such a line, outside controls/, models nothing and is an error too.
   litmus_code.py [FOLDER]	FOLDER: the tests (default: selftests/litmus)"""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def squeeze(text):
    return re.sub(r"\s+", " ", text)


def body(source, function):
    """The text of a function, from its name to the brace in column 0; None if the file does not define it."""
    found = re.search(r"^(?![\s#/*}]).*\b" + re.escape(function) + r"\([^;{]*\)\s*\n\{.*?^\}", source, re.M | re.S)
    return found and found.group(0)


def problems(test):
    with open(test, encoding="utf-8") as f:
        codes = re.findall(r"^ \* Code: (\S+) (\w+)\(\): (.*)$", f.read(), re.M)
    if not codes and os.path.basename(os.path.dirname(test)) != "controls":
        yield "names no code"
    for path, function, text in codes:
        try:
            with open(os.path.join(ROOT, path), encoding="utf-8") as f:
                source = f.read()
        except OSError as e:
            yield f"{path}: {e.strerror}"
            continue
        found = body(source, function)
        if not found:
            yield f"{path} does not define {function}()"
        elif squeeze(text) not in squeeze(found):
            yield f"{path} {function}() does not have: {text}"


folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "selftests/litmus")
tests = sorted(os.path.join(d, f) for d, _, files in os.walk(folder) for f in files if f.endswith(".litmus"))
bad = [f"{os.path.relpath(t, ROOT)}: {p}" for t in tests for p in problems(t)]
print("\n".join(bad) if bad else f"{len(tests)} tests")
sys.exit(1 if bad or not tests else 0)
