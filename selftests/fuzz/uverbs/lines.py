#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Prints which share of kernel/ has run, by folder.

  lines.py [-m] ROAN_KO BITS...

BITS: files of struct roan_coverage (coverage.h), as run.sh leaves them in ROAN_KO's folder. A block has run if it ran in
any of them. The denominator: each call of __sanitizer_cov_trace_pc() in .text, by its line. A line of an inline function
of a header outside kernel/ counts as the line of its caller. -m: names also the lines that have not run.
"""
import collections
import re
import subprocess
import sys


def writes(op, args):
    """(what is copied, register or place on the stack that an instruction changes)"""
    if op == "pop":
        return None, args
    m = re.fullmatch(r"(.*),(%\w+|-?\w*\(.*\))", args)
    if not m or op.startswith(("cmp", "test")):
        return None, None
    return m[1] if op in ("mov", "movabs") else None, m[2]


def sites_in(function):
    """UML's modules call far functions through a register or a place on the stack, which may hold the address for many
    calls. Its contents are followed along all jumps; what only an indirect jump reaches may have any."""
    at_target, ever, sites, changed = {}, set(), set(), True
    while changed:
        changed, holds, called = False, set(), False
        for at, op, args, traces in function:
            holds = at_target.get(at, ever) if holds is None else holds | at_target.get(at, set())
            if called:
                sites.add(at)
            called = op == "call" and args.lstrip("*") in holds
            source, to = writes(op, args)
            if to:
                holds = holds | {to} if traces or source in holds else holds - {to}
            m = re.match(r"([0-9a-f]+) <", args)
            if op[0] == "j" and m:
                known = at_target.setdefault(int(m[1], 16), set())
                changed |= not holds <= known
                known |= holds
            changed |= not holds <= ever
            ever |= holds
            if op in ("jmp", "ret"):
                holds = None
    return sites


def call_sites(ko):
    """Offsets in .text that calls of __sanitizer_cov_trace_pc() return to."""
    out = subprocess.run(["objdump", "-drw", "--no-show-raw-insn", "-j", ".text", ko], capture_output=True, text=True, check=True).stdout
    sites, function = set(), []
    for line in out.splitlines() + ["end>:"]:
        if line.endswith(">:"):
            sites |= sites_in(function)
            function = []
            continue
        m = re.match(r"\s*([0-9a-f]+):\s+(\S+)\s*([^\t]*)(.*)", line)
        if m:
            function.append((int(m[1], 16), m[2], m[3].strip(), "__sanitizer_cov_trace_pc" in m[4]))
    return sorted(sites)


def lines_of(ko, sites):
    """Maps each site to FILE:LINE below kernel/."""
    asked = "".join(f"{s - 1:#x}\n" for s in sites)
    out = subprocess.run(["addr2line", "-a", "-i", "-j", ".text", "-e", ko], input=asked, capture_output=True, text=True, check=True).stdout
    where, at = {}, None
    for line in out.splitlines():
        if line.startswith("0x"):
            at = int(line, 16) + 1
        elif at not in where:
            m = re.search(r"/(kernel/(?:\w+/)*\w+\.[ch]:\d+)", line)
            if m and "linux-source" not in line:
                where[at] = m[1]
    return where


def bits_in(file):
    """Offsets of the blocks that ran."""
    with open(file, "rb") as f:
        f.seek(4096)
        return {8 * at + bit for at, byte in enumerate(f.read()) if byte for bit in range(8) if byte >> bit & 1}


def main():
    missing = sys.argv[1] == "-m"
    ko, *files = sys.argv[1 + missing:]
    ran = set().union(*map(bits_in, files))
    sites = call_sites(ko)
    unknown = {r for r in ran if r <= sites[-1]} - set(sites)	# beyond .text: constructors of KASAN
    where = lines_of(ko, sites)
    table = collections.defaultdict(lambda: [set(), set(), 0, 0])
    for site in sites:
        line = where.get(site)
        if not line:
            continue
        for row in (line.rsplit("/", 1)[0], "all"):
            t = table[row]
            t[1].add(line)
            t[3] += 1
            if site in ran:
                t[0].add(line)
                t[2] += 1
    print("| folder | lines that ran | of | % | blocks that ran | of | % |\n|---|---|---|---|---|---|---|")
    for folder in sorted(table, key=lambda f: (f == "all", f)):
        lines, all_lines, n, total = table[folder]
        print(f"| {folder} | {len(lines)} | {len(all_lines)} | {100 * len(lines) / len(all_lines):.0f} | {n} | {total} | {100 * n / total:.0f} |")
    if unknown:
        print(f"{len(unknown)} blocks that ran are not among the calls found in the module")
    if missing:
        for line in sorted(table["all"][1] - table["all"][0], key=lambda l: (l.split(":")[0], int(l.split(":")[1]))):
            print(line)


main()
