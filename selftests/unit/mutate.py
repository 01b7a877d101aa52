#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Mutation test of kernel/core/cc and kernel/core/flow: does a test fail for every small change of the code?

Usage:  selftests/unit/mutate.py [-j JOBS] [-v] [FILE ...]      FILE: relative to kernel/core; default: FILES below

Changes one operator, constant or statement at a time in a copy of the core, builds the suites of both folders and runs them. A
mutant for which no case fails has survived: it is listed, and the exit status is 1, unless EQUIVALENT below gives a reason why no
test can detect it. An entry of EQUIVALENT that matches no surviving mutant is an error too.
"""
import argparse
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
FILES = ["cc/dcqcn.c", "cc/pacer.c", "cc/np.h", "cc/np.c", "cc/swift.c", "cc/cwnd_bound.c", "flow/pfc_rules.c",
         "flow/pfc_rules.h", "flow/inflight_limit.c", "flow/inflight_limit.h"]
SANITIZERS = "-fsanitize=address,undefined"
SUITES = ["cc", "cwnd_bound", "dcqcn", "dcqcn_rise", "swift", "pacer", "np", "pfc_rules", "inflight_limit"]

# (pattern, replacement); tried at each match.
SWAPS = [
    (r"(?<![<>=!+\-|&/*])<=", "<"), (r"(?<![<>\-])>=", ">"),
    (r"(?<= )<(?= )", "<="), (r"(?<= )>(?= )", ">="),
    (r"==", "!="), (r"!=", "=="),
    (r"&&", "||"), (r"\|\|", "&&"),
    (r"(?<= )\+(?= )", "-"), (r"(?<= )-(?= )", "+"),
    (r"(?<= )\*(?= )", "+"), (r"(?<= )/(?= )", "*"),
    (r"\+=", "-="), (r"-=", "+="), (r"\+\+", "--"),
    (r"<<", ">>"), (r">>", "<<"),
    (r"\bmin\(", "max("), (r"\bmax\(", "min("), (r"\bmin_t\(", "max_t("), (r"\bmax_t\(", "min_t("),
    (r"\btrue\b", "false"), (r"\bfalse\b", "true"),
    (r"(?<=[ (])!(?=[a-z_])", ""), (r"\bif \((?!.*\bbool\b)", "if (!("),
    (r"(?<![\w.\"'/])(\d+)(?=[UL]*\b)(?![\w.]*\")", None),      # a number is incremented
]

# File, part of the original line, part of the mutated line, why no test can detect it.
EQUIVALENT = [
    ("dcqcn.c", "d->alpha_update_at - 1", "d->alpha_update_at - 2", "periods are whole microseconds"),
    ("dcqcn.c", "steps >= others", "steps > others", "together from the next step on instead"),
    ("np.c", "get_unaligned_be64(address) *", "get_unaligned_be64(address) +", "another hash, as good for these addresses"),
    ("np.c", "h >> 32", "h << 32", "another hash, as good for these addresses"),
    ("np.c", "h >> 32", "h >> 33", "another hash, as good for these addresses"),
    ("np.c", "h >> 32) +", "h >> 32) -", "another hash, as good for these addresses"),
    ("np.c", "return h ? h : 1", "return h ? h : 2", "one of 2^64 addresses would be seen to differ"),
    ("pacer.c", "now <= p->credit_ns", "now < p->credit_ns", "zero elapsed time gives zero credit"),
    ("pacer.c", "earned > room", "earned >= room", "equal values: same result"),
    ("pacer.c", "p->credit < 0 ?", "p->credit < 1 ?", "no debt, no wait"),
    ("pacer.c", "p->credit < 0 ?", "p->credit <= 0 ?", "no debt, no wait"),
    ("pfc_rules.c", "i < ROAN_PRIORITIES; i++", "i <= ROAN_PRIORITIES; i++", "there is no ninth bit: writes a zero over zeros"),
    ("swift.c", "u64 root = 0", "u64 root = 1", "the one is shifted out, or is below 1 ns of the target"),
    ("swift.c", "1ULL << 62", "1ULL << 63", "all roots times the same; only their ratios count"),
    ("swift.c", "1ULL << 62", "2ULL << 62", "all roots times the same; only their ratios count"),
    ("swift.c", "1ULL << 42", "1ULL << 43", "all roots times the same; only their ratios count"),
    ("swift.c", "1ULL << 42", "2ULL << 42", "all roots times the same; only their ratios count"),
    ("swift.c", "x >= root + bit", "x > root + bit", "perfect squares differ by 1/65536"),
    ("swift.c", "max(packets, 1ULL)", "max(packets, 2ULL)", "both are outside the scaled range"),
    ("swift.c", "here <= large ||", "here < large ||", "zero times the range is zero"),
    ("swift.c", "max(full / MIN_SHARE, 1ULL)", "max(full / MIN_SHARE, 2ULL)", "a packet has more than 7 bytes"),
    ("swift.c", "NSEC_PER_SEC, s->rtt_ns << FRAC), 1ULL)", "FRAC), 2ULL)", "rates below 2 bit/s need RTTs of hours"),
    ("swift.c", "s->cwnd = 1;", "s->cwnd = 2;", "swift_publish() raises both to the minimum"),
]


def strip_comments(text):
    """Blank out comments and strings, keeping every offset."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match.group(0))
    return re.sub(r"/\*.*?\*/|//[^\n]*|\"[^\"\n]*\"", blank, text, flags=re.S)


def mutants(name):
    """Yield (line number, original line, mutated text)."""
    with open(os.path.join(TOP, "kernel/core", name), encoding="utf-8") as f:
        text = f.read()
    code = strip_comments(text)
    start = code.rfind("#include")
    start = code.index("\n", start)
    for pattern, instead in SWAPS:
        for m in re.finditer(pattern, code):
            if m.start() < start:
                continue
            if instead is None and re.search(r"\w address\[$", code[:m.start()]):
                continue                # the compiler ignores the bound of an array parameter
            if instead is None:
                new = str(int(m.group(1)) + 1)
                changed = text[:m.start(1)] + new + text[m.end(1):]
            elif instead == "if (!(":
                depth, end = 1, m.end()
                while depth:
                    depth += {"(": 1, ")": -1}.get(code[end], 0)
                    end += 1
                changed = text[:m.start()] + "if (!(" + text[m.end():end] + ")" + text[end:]
            else:
                changed = text[:m.start()] + instead + text[m.end():]
            yield line_of(text, m.start()), text, changed
    # Removed statements: assignments and calls on a line of their own.
    for m in re.finditer(r"^\t+(?!return|if|else|for|while|u32|u64|s64|bool|const|struct|static|case|default|break)"
                         r"[\w*+(>.\[\]-][^;{}]*;$", code, flags=re.M):
        if m.start() < start or m.group(0).lstrip().startswith("}"):
            continue
        yield line_of(text, m.start()), text, text[:m.start()] + ";" + text[m.end():]


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def suite(name):
    """The file of a suite, relative to TOP."""
    file, = (f for folder in ("*/", "") for f in glob.glob("selftests/kunit/%s%s_test.c" % (folder, name), root_dir=TOP))
    return file


class SourceCopy:
    """A copy of the sources, in which one mutant after the other is built."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="mutate-")
        os.makedirs(self.dir + "/kernel")
        os.makedirs(self.dir + "/selftests")
        for part in ("kernel/core", "selftests/kunit", "selftests/unit", "include"):
            shutil.copytree(os.path.join(TOP, part), os.path.join(self.dir, part))
        self.compiler = shutil.which("clang") or shutil.which("clang-14") or "gcc"

    def flags(self):
        return ["-std=gnu11", "-g0", "-O1", "-w", SANITIZERS, "-fno-sanitize-recover=all",
                "-include", "selftests/unit/core_env.h"] + \
               ["-I" + d for d in ("selftests/unit", "include/uapi", "kernel")]

    def compile(self, source):
        out = source.replace("/", "_") + ".o"
        done = subprocess.run([self.compiler] + self.flags() + ["-c", "-o", out, source], cwd=self.dir, capture_output=True,
                              check=False)
        return out if done.returncode == 0 else None

    def prepare(self):
        sources = ["kernel/core/%s/%s" % (d, f) for d in ("cc", "flow") for f in os.listdir(self.dir + "/kernel/core/" + d)
                   if f.endswith(".c")]
        sources += [suite(s) for s in SUITES] + ["selftests/unit/main.c", "selftests/unit/crc.c"]
        self.objects = {s: self.compile(s) for s in sources}
        if None in self.objects.values() or not self.passes(self.objects):
            sys.exit("the suites fail without any mutation")

    def passes(self, objects):
        done = subprocess.run([self.compiler, SANITIZERS, "-o", "suites"] + list(objects.values()), cwd=self.dir,
                              capture_output=True, check=False)
        if done.returncode:
            return False
        try:
            return subprocess.run(["./suites"], cwd=self.dir, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=10,
                                  check=False).returncode == 0
        except subprocess.TimeoutExpired:
            return False

    def survives(self, name, text):
        path = "kernel/core/" + name
        with open(os.path.join(self.dir, path), encoding="utf-8") as f:
            original = f.read()
        with open(os.path.join(self.dir, path), "w", encoding="utf-8") as f:
            f.write(text)
        objects = dict(self.objects)
        stem = name[:-2]
        touched = [path] if name.endswith(".c") else ["kernel/core/%s.c" % stem, suite(os.path.basename(stem))]
        objects.update({s: self.compile(s) for s in touched})
        alive = None not in objects.values() and self.passes(objects)
        with open(os.path.join(self.dir, path), "w", encoding="utf-8") as f:
            f.write(original)
        for s in touched:
            self.compile(s)
        return alive


def excuse(name, before, after):
    for file, old, new, why in EQUIVALENT:
        if file == os.path.basename(name) and old in before and new in after:
            return (file, old, new, why)
    return None


def main():
    parser = argparse.ArgumentParser(description="mutation check of kernel/core/cc and kernel/core/flow")
    parser.add_argument("-j", type=int, default=2, metavar="JOBS")
    parser.add_argument("-v", action="store_true", help="list the survivors that EQUIVALENT explains, too")
    parser.add_argument("files", nargs="*", default=FILES)
    args = parser.parse_args()
    work = [(name, line, text, new) for name in args.files for line, text, new in mutants(name)]
    copies = [SourceCopy() for _ in range(args.j)]
    for copy in copies:
        copy.prepare()

    def share(k):
        return [w for w in work[k::args.j] if copies[k].survives(w[0], w[3])]

    with ThreadPoolExecutor(args.j) as pool:
        alive = [w for part in pool.map(share, range(args.j)) for w in part]
    used, bad = set(), 0
    for name, line, text, new in sorted(alive):
        before = text.splitlines()[line - 1]
        after = new.splitlines()[line - 1]
        known = excuse(os.path.basename(name), before, after)
        if known:
            used.add(known)
            if args.v:
                print("excused  %s:%d: %s   (%s)" % (name, line, after.strip(), known[3]))
        else:
            bad += 1
            print("SURVIVED %s:%d: %s   was   %s" % (name, line, after.strip(), before.strip()))
    for entry in EQUIVALENT:
        if entry not in used and entry[0] in [os.path.basename(f) for f in args.files]:
            bad += 1
            print("STALE EXCUSE %s: %s -> %s" % entry[:3])
    print("%d mutants, %d killed, %d excused, %d survived" % (len(work), len(work) - len(alive), len(alive) - bad, bad))
    for copy in copies:
        shutil.rmtree(copy.dir)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
