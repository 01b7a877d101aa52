# SPDX-License-Identifier: GPL-2.0
"""ktap.py: KTAP lines of a program that python.sh runs. The caller decides what passes."""


class Tap:
    count = failed = 0


def result(ok, name, why=""):
    Tap.count += 1
    Tap.failed += not ok
    for line in [] if ok else why.splitlines():
        print(f"# {line}")
    print(f"{'ok' if ok else 'not ok'} {Tap.count} {name}", flush=True)


def check(name, *facts, **named):
    """Passes if all conditions hold; the failure names those keyword conditions that do not."""
    bad = [str(k) for k, ok in [*enumerate(facts), *named.items()] if not ok]
    result(not bad, name, f"does not hold: {', '.join(bad)}")


def plan():
    """Prints the plan; returns the program's exit status."""
    print(f"1..{Tap.count}", flush=True)
    return 1 if Tap.failed else 0
