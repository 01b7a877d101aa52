#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Converts the output of guest.sh into benchmarks.md (aims met, figures, method, tables), measurements.md (remarks, all
message sizes) and one figure per lab. Measures nothing.

report.py FOLDER LOG...     FOLDER: gets the files. A measurement without values has no row. A ratio is the median of the
                            ratios within each round
"""
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

LABS = {
    "uml": "User-Mode Linux: kernel and programs run natively, on one CPU; system calls and page faults are expensive, "
           "as they stop the process",
    "qemu": "QEMU: a stock distribution kernel, emulated unless `accelerator` says KVM; CRC and block copies are expensive",
}
TITLES = [
    ("write_bw", 65536, "WRITE 64 KiB", "MiB/s"), ("write_bw", 1048576, "WRITE 1 MiB", "MiB/s"),
    ("read_bw", 65536, "READ 64 KiB", "MiB/s"), ("send_bw", 65536, "SEND 64 KiB", "MiB/s"),
    ("write_rate", 64, "WRITE 64 B, 1 QP", "messages/s"), ("write_rate_16", 64, "WRITE 64 B, 16 QPs", "messages/s"),
    ("send_lat_median", 2, "SEND 2 B latency, median", "µs"), ("send_lat_p99", 2, "SEND 2 B latency, 99 %", "µs"),
    ("cpu", 65536, "WRITE 64 KiB: CPU time, both ends", "s/GiB"),
    ("loss_0.1", 65536, "WRITE 64 KiB, 0.1 % of packets lost", "MiB/s"),
    ("loss_1", 65536, "WRITE 64 KiB, 1 % of packets lost", "MiB/s"),
]
HOSTS = ["write_bw", "send_lat_median", "send_lat_p99"]
QPS = [
    ("qps", 1, "64 KiB WRITEs over 1 QP", "messages/s"), ("qps", 100, "... over 100 QPs, each in turn", "messages/s"),
    ("qps", 10000, "... over 10,000 QPs", "messages/s"), ("memory", 10000, "memory of an idle QP, rings apart", "bytes"),
    ("ring_memory", 10000, "memory of its rings, depth 16", "bytes"),
    ("qp_create", 1000, "creation", "QPs/s"), ("qp_connect", 1000, "RESET to RTS", "QPs/s"),
    ("qp_destroy", 1000, "destruction", "QPs/s"), ("syscalls", 64, "system calls a streamed 64 B WRITE", ""),
    ("syscalls_strace", 64, "... under strace -c, which stops the program at each", ""),
]
KINDS = [
    ("user", "pinned pages of the program"), ("odp", "on-demand paged"), ("udmabuf", "udmabuf (dma-buf of a memfd)"),
    ("heap", "system heap (dma-buf)"), ("gpu", "fake GPU, RAM (dma-buf)"), ("bar", "fake GPU, BAR: I/O memory (dma-buf)"),
    ("peer", "fake GPU, by a peer-memory client"), ("dm", "device memory"),
]
KIND_SIZE = 307240
# Rows of the first table: test, size, whether to take the steered figures where they exist, label.
SUMMARY = [
    ("write_bw", 65536, True, "WRITE 64 KiB, bandwidth"), ("write_bw", 1048576, True, "WRITE 1 MiB, bandwidth"),
    ("write_rate", 64, True, "WRITE 64 B, messages/s"), ("loss_1", 65536, False, "WRITE 64 KiB, 1 % of packets lost, bandwidth"),
    ("qp_create", 1000, False, "QPs created per second"), ("send_lat_median", 2, False, "SEND 2 B, median latency (lower is better)"),
    ("cpu", 65536, False, "WRITE 64 KiB, CPU time per GiB (lower is better)"),
]
# The aims: name, lab (None: all), a function from a Run to {round: figure}, the comparison with the bar (None: shown, not
# judged), the bar. In a lab with several CPUs, bandwidth and rate are judged by the steered figures.
BARS = [
    ("WRITE 64 KiB, roan : rxe", "uml", lambda r: r.ratios("write_bw", 65536, "rxe"), ">=", 5),
    ("WRITE 64 KiB, roan : TCP", "uml", lambda r: r.ratios("write_bw", 65536, "tcp"), ">=", 2),
    ("WRITE 1 MiB, roan : rxe", "uml", lambda r: r.ratios("write_bw", 1048576, "rxe"), ">=", 4),
    ("WRITE 64 KiB, steered, roan : rxe", "qemu", lambda r: r.ratios("write_bw", 65536, "rxe", "steered"), ">=", 3),
    ("... not steered", "qemu", lambda r: r.ratios("write_bw", 65536, "rxe"), None, 3),
    ("WRITE 1 MiB, steered, roan : TCP", "qemu", lambda r: r.ratios("write_bw", 1048576, "tcp", "steered"), ">=", 0.5),
    ("... not steered", "qemu", lambda r: r.ratios("write_bw", 1048576, "tcp"), None, 0.5),
    ("WRITE 64 B rate, roan : rxe", "uml", lambda r: r.ratios("write_rate", 64, "rxe"), ">=", 8),
    ("WRITE 64 B rate, steered, roan : rxe", "qemu", lambda r: r.ratios("write_rate", 64, "rxe", "steered"), ">=", 8),
    ("... not steered", "qemu", lambda r: r.ratios("write_rate", 64, "rxe"), None, 8),
    ("SEND 2 B latency, median, roan : rxe", None, lambda r: r.ratios("send_lat_median", 2, "rxe"), "<=", 0.5),
    ("system calls a streamed message", None, lambda r: r.rounds("pair", "roan", "syscalls", 64), "<=", 0.02),
    ("cost of a packet, 10,000 QPs : 1 QP", None,
     lambda r: divide(r.rounds("pair", "roan", "qps", 1), r.rounds("pair", "roan", "qps", 10000)), "<=", 1.2),
    ("memory of an idle QP, bytes", None, lambda r: r.rounds("pair", "roan", "memory", 10000), "<=", 4096),
    ("QP creation rate, roan : rxe", None, lambda r: r.ratios("qp_create", 1000, "rxe"), ">=", 1),
    ("QP destruction rate, roan : rxe", None, lambda r: r.ratios("qp_destroy", 1000, "rxe"), ">=", 1),
    ("share of the machine's limit, WRITE 64 KiB", "uml", lambda r: r.share(65536), ">=", 0.7),
    ("share of the machine's limit, WRITE 1 MiB", "uml", lambda r: r.share(1048576), ">=", 0.7),
    ("share of two CPUs' limit, WRITE 64 KiB, steered", "qemu", lambda r: r.share(65536, "steered"), ">=", 0.7),
    ("... of one CPU's, not steered", "qemu", lambda r: r.share(65536), None, 0.7),
    ("share of two CPUs' limit, WRITE 1 MiB, steered", "qemu", lambda r: r.share(1048576, "steered"), ">=", 0.7),
    ("... of one CPU's, not steered", "qemu", lambda r: r.share(1048576), None, 0.7),
]


def divide(ours, theirs):
    return {r: ours[r] / theirs[r] for r in ours if theirs.get(r)}


class Run:
    """One log: value[topology, stack, test, size] = {round: number}, the median if it was measured several times."""

    def __init__(self, path):
        self.env, self.value, self.again, self.missing, self.died = {}, {}, {}, {}, []
        for line in open(path, errors="replace"):
            word = line.split()
            if line.startswith("@env ") and len(word) > 2:
                self.env[word[1]] = " ".join(word[2:])
            elif line.startswith("# ") and "-accel" in word:
                self.env["accelerator"] = " ".join(word[word.index("-accel") + 1:])
            elif line.startswith("@again "):
                key = word[2], line.rsplit(": ", 1)[-1].strip()
                self.again[key] = self.again.get(key, 0) + 1
            elif line.startswith("@died "):
                self.died.append(word[1])
            elif line.startswith("@ ") and len(word) == 7:
                key = word[2], word[3], word[4], int(word[5])
                if word[6] == "-":
                    self.missing[key] = self.missing.get(key, 0) + 1
                else:
                    self.value.setdefault(key, {}).setdefault(int(word[1]), []).append(float(word[6]))
        for rounds in self.value.values():
            rounds.update({r: statistics.median(v) for r, v in rounds.items()})
        self.lab = self.env.get("lab", os.path.basename(path))

    def measured(self, topo):
        return any(key[0] == topo for key in self.value)

    def sizes(self):
        return sorted({key[3] for key in self.value if key[1:3] == ("roan", "write_bw")})

    def rounds(self, topo, stack, test, size):
        return self.value.get((topo, stack, test, size), {})

    def tcp(self, topo, test, size):
        # TCP has one bandwidth per size, whatever the operation: that of a stream written in pieces of that size.
        return self.rounds(topo, "tcp", "write_bw" if test.endswith("_bw") else test, size)

    def ratios(self, test, size, other, topo="pair"):
        theirs = self.tcp(topo, test, size) if other == "tcp" else self.rounds(topo, other, test, size)
        return divide(self.rounds(topo, "roan", test, size), theirs)

    def limit(self, size, topo):
        """MiB/s of one CPU that does both CRCs and the copy. Steered, of the slower end: one CRC and the copy."""
        if topo == "pair":
            return self.rounds("pair", "limit", "write_bw", size)
        crc, copy = (self.rounds("pair", "limit", t, size) for t in ("limit_crc", "limit_copy"))
        return {r: 1 / (1 / crc[r] + 1 / copy[r]) for r in crc if copy.get(r)}

    def share(self, size, topo="pair"):
        return divide(self.rounds(topo, "roan", "write_bw", size), self.limit(size, topo))


def number(x):
    return f"{x:,.0f}" if x >= 100 else f"{x:.3g}"


def size_name(size):
    return f"{size >> 20} MiB" if size >> 20 else f"{size >> 10} KiB" if size >> 10 else f"{size} B"


def median(values):
    if not values:
        return "-"
    v = list(values.values())
    return f"{number(statistics.median(v))} ({number(min(v))}..{number(max(v))})"


def spread(values):
    if not values:
        return "-"
    v = list(values.values())
    return f"**{statistics.median(v):.2f}** ({min(v):.2f}..{max(v):.2f})"


def verdict(name, values, sense, bar):
    """Returns a row of the table of aims."""
    v = sorted(values.values())
    m = statistics.median(v)
    if not sense:
        return [name, "-", f"{number(m)} ({number(v[0])}..{number(v[-1])})", "not judged"]
    met = m >= bar if sense == ">=" else m <= bar
    by = m / bar if sense == ">=" else bar / m if m else 1
    said = "met" if met else f"missed: {100 * (1 - by):.0f} % short"
    return [name, f"{sense} {number(bar)}", f"{number(m)} ({number(v[0])}..{number(v[-1])})", said]


def table(head, rows):
    """Returns a Markdown table, without rows and columns that have no value."""
    rows = [row for row in rows if any(cell != "-" for cell in row[1:])]
    kept = [i for i in range(len(head)) if not i or any(row[i] != "-" for row in rows)]
    head, rows = [head[i] for i in kept], [[row[i] for i in kept] for row in rows]
    return "\n".join(["| " + " | ".join(head) + " |", "|" + "---|" * len(head)] +
                     ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def row(run, topo, rxe_topo, test, size, label):
    rxe = run.rounds(rxe_topo, "rxe", test, size)
    roan = run.rounds(topo, "roan", test, size)
    tcp = run.tcp(topo, test, size)
    return [label, median(rxe), median(roan), median(tcp) if tcp else "-", spread(divide(roan, rxe)),
            spread(divide(roan, tcp)) if tcp else "-"]


def two(run, test, size, label):
    rxe, roan = run.rounds("pair", "rxe", test, size), run.rounds("pair", "roan", test, size)
    return [label, median(rxe), median(roan), spread(divide(roan, rxe))]


STEERED = """The same veths, but each end has half of the CPUs, as two hosts have: its programs run there, and packets to it are received there
(RPS). This applies to roan, rdma_rxe and TCP; each round measures both ways. In a lab with several CPUs the aims for bandwidth and rate are
judged by these rows. Without steering, the CPU that sends also does the receiver's work, unlike between two hosts. TCP is affected less, as
its receiving process copies the data on its own CPU.
"""
HEAD = ["", "rdma_rxe", "roan", "TCP", "roan : rxe", "roan : TCP"]


def limits(run):
    rows = []
    for topo in [t for t in ("pair", "steered") if run.measured(t)]:
        for size in 65536, 1048576:
            crc, copy = (run.rounds("pair", "limit", t, size) for t in ("limit_crc", "limit_copy"))
            rows.append([f"WRITE {size_name(size)}" + ", steered" * (topo == "steered"), median(crc), median(copy),
                         median(run.limit(size, topo)), median(run.rounds(topo, "roan", "write_bw", size)),
                         spread(run.share(size, topo))])
    return table(["MiB/s", "one CRC", "one copy", "both CRCs and the copy", "roan", "share"], rows)


def kinds(run):
    rows = []
    for kind, name in KINDS:
        write, read = (run.rounds("hosts", "roan", f"{op}_kind_{kind}", KIND_SIZE) for op in ("write", "read"))
        if write or read:
            rows.append([name, median(write), median(read)])
    return table(["MiB/s", "WRITE", "READ"], rows) if rows else ""


def trouble(run):
    """Lists failed attempts, measurements without a value, and measurements in which a guest crashed."""
    out = "Attempts without a result, repeated: " + ("; ".join(
        f"{stack}: {n} × {why}" for (stack, why), n in sorted(run.again.items())) or "none") + ".\n"
    out += f"Measurements without a result after all attempts: {sum(run.missing.values())}"
    out += "".join(f"; {s} {t} {size_name(z)} × {n}" for (_, s, t, z), n in sorted(run.missing.items())) + ".\n"
    if run.died:
        out += "The guest crashed in these measurements, which were then left out: " + ", ".join(run.died) + ".\n"
    return out


def one_cpu(run, latency):
    """Compares the latency with a process switch: with one CPU, each half round trip needs one with any driver."""
    over = run.rounds("pair", "limit", "hand_over", 0)
    if not over or run.env.get("cpus") != "1":
        return ""
    rxe = run.rounds("pair", "rxe", "send_lat_median", 2)
    return (f"A system call that only switches to another program takes {median(over)} µs, and each half round trip between "
            f"two programs on one CPU needs one. roan takes {spread(divide(latency, over))} times as long as that; no driver "
            f"can take less than {spread(divide(over, rxe))} of what rdma_rxe takes.\n")


def aims(run):
    """Returns {name: row of the table of aims, or None if not measured}. A name with "..." continues the row before it."""
    found = {}
    for name, lab, values, sense, bar in BARS:
        if lab in (None, run.lab):
            key = f"{last} {name}" if name.startswith("...") else name
            last = last if name.startswith("...") else name
            found[key] = verdict(name, values(run), sense, bar) if values(run) else None
    return found


def summary(runs):
    """Returns the first section: the ratios of all labs side by side, then the aims that are missed."""
    rows = []
    for test, size, steered, label in SUMMARY:
        row = [label]
        for run in runs:
            topo = "steered" if steered and run.measured("steered") else "pair"
            row += [spread(run.ratios(test, size, other, topo)).split(" ")[0] for other in ("rxe", "tcp")]
        rows.append(row)
    out = [table(["roan's figure divided by that of", *(f"{other}, {run.lab}" for run in runs for other in ("rdma_rxe", "TCP"))],
                 rows)]
    for run in runs:
        rows = [row for row in aims(run).values() if row and row[3] != "not judged"]
        missed = [f"{row[0]} ({row[3].split(': ')[1]})" for row in rows if row[3] != "met"]
        out.append(f"- {run.lab}: {len(rows) - len(missed)} of {len(rows)} aims met" +
                   (f". Missed: {'; '.join(missed)}." if missed else "."))
    return "\n".join(out) + "\n"


def section(run):
    env = run.env
    out = [f"## Lab: {run.lab}\n", LABS.get(run.lab, "") + ".\n"]
    names = ["date", "kernel", "cpu", "cpus", "host", "accelerator", "crc", "perftest", "iperf3", "path", "rounds"]
    out.append("; ".join(f"{n}: {env[n]}" for n in names if n in env) + ".\n")
    out.append("### Aims\n")
    out.append(table(["aim", "bar", "median (spread)", "verdict"], [row for row in aims(run).values() if row]))
    unknown = [name for name, row in aims(run).items() if not row]
    if unknown:
        out.append("Not measured in this run: " + "; ".join(unknown) + ".\n")
    out.append("### One QP, a veth each\n")
    out.append(table(HEAD, [row(run, "pair", "pair", t, s, f"{name}, {unit}") for t, s, name, unit in TITLES]))
    if run.measured("steered"):
        out.append("### Steered: each end on CPUs of its own\n")
        out.append(STEERED)
        out.append(table(HEAD, [row(run, "steered", "steered", t, s, f"{name}, {unit}") for t, s, name, unit in TITLES
                                if t in ("write_bw", "write_rate", "send_lat_median", "send_lat_p99")]))
    out.append("### Many QPs, and the cost of a connection\n")
    out.append(table(["", "rdma_rxe", "roan", "roan : rxe"],
                     [two(run, t, s, f"{name}{unit and ', ' + unit}") for t, s, name, unit in QPS]))
    out.append("### The limit of the machine\n")
    out.append("Throughput of one CPU that computes only the two CRCs and one copy, with the driver's own CRC, in the same boot. Over "
               "a veth sender and receiver share a CPU, unless packets are steered to another. Then each has a CPU, and the limit is "
               "that of the end with one CRC and the copy.\n")
    out.append(limits(run))
    call = run.rounds("pair", "limit", "empty_call", 0)
    latency = run.rounds("pair", "roan", "send_lat_median", 2)
    if call:
        out.append(f"An empty system call takes {median(call)} µs here. Half a round trip of a 2-byte SEND needs one, and "
                   f"takes {spread(divide(latency, call))} times as long with roan.\n")
        out += [one_cpu(run, latency)] if one_cpu(run, latency) else []
    out.append("### roan between two namespaces\n")
    out.append("rdma_rxe cannot run there: its column is the one above, measured in the same round over its own veth.\n")
    out.append(table(HEAD, [row(run, "hosts", "pair", t, s, f"{name}, {unit}") for t, s, name, unit in TITLES
                            if t in HOSTS]))
    if kinds(run):
        out.append("### By kind of memory\n")
        out.append("Both ends registered memory of that kind: 300 KiB, read and written whole, 8 at a time, between two "
                   "namespaces, by `selftests/gpu/memory`.\n")
        out.append(kinds(run))
    return "\n".join(out)


def details(run):
    out = [f"## Lab: {run.lab}\n"]
    remarks = os.path.join(os.path.dirname(os.path.abspath(__file__)), f"remarks-{run.lab}.md")
    if os.path.exists(remarks):
        out.append(open(remarks).read())
    out.append("### By message size\n")
    for test, name in ("write_bw", "WRITE"), ("read_bw", "READ"), ("send_bw", "SEND"):
        out.append(f"{name}, MiB/s, a veth each:\n")
        out.append(table(HEAD, [row(run, "pair", "pair", test, s, size_name(s)) for s in run.sizes()]))
    out.append(trouble(run))
    return "\n".join(out)


def draw(run, path):
    """Draws WRITE bandwidth by size, with the range of the rounds, by gnuplot. Returns False if it is not installed."""
    if not shutil.which("gnuplot"):
        return False
    with tempfile.TemporaryDirectory() as tmp:
        lines = []
        for stack, title in ("roan", "roan WRITE"), ("rxe", "rdma_rxe WRITE"), ("tcp", "TCP, writes of that size"):
            data = os.path.join(tmp, stack)
            with open(data, "w") as f:
                for size in run.sizes():
                    v = list(run.rounds("pair", stack, "write_bw", size).values())
                    if v:
                        print(size, statistics.median(v), min(v), max(v), file=f)
            if os.path.getsize(data):
                style = {"roan": "lc rgb '#c03020' pt 7 ps 0.6 lw 2", "rxe": "lc rgb '#3060a0' pt 5 ps 0.6", "tcp": "lc rgb '#808080' pt 9 ps 0.6"}[stack]
                lines.append(f"'{data}' using 1:2:3:4 with yerrorlines {style} title '{title}'")
        if not lines:
            return False
        tics = ", ".join(f"'{size_name(s)}' {s}" for s in run.sizes())
        script = f"""set terminal svg size 720,420 background rgb 'white' font 'sans-serif,12' noenhanced
set output '{path}'
set title 'Bandwidth by message size, lab {run.lab}: medians, lowest and highest round'
set logscale x 2
set logscale y
set xtics ({tics})
set xlabel 'message'
set ylabel 'MiB/s'
set key bottom right
set grid
plot {', '.join(lines)}
"""
        if subprocess.run(["gnuplot"], input=script, text=True).returncode:
            return False
    text = open(path).read()
    head, rest = text.split("\n", 1)
    with open(path, "w") as f:
        f.write(head + "\n<!-- SPDX-License-Identifier: GPL-2.0 -->\n" + rest)
    return True


INTRO = """# Benchmarks

After this page you know how roan compares with rdma_rxe and TCP (iperf3) on the same machine. Each number is roan's figure divided by the
other's, median of the rounds; above 1 is better for roan, unless the row says lower is better. **A ratio is valid in its lab
only**: neither lab is hardware, and `qemu` is an emulated CPU. On `qemu` the first three rows are *steered*, the others not: each end has a CPU of
its own ([below](#steered-each-end-on-cpus-of-its-own)). Written by `make bench` (`selftests/bench`); do not edit.
"""
METHOD = """Profiles, all message sizes and the history of these figures: [measurements.md](measurements.md).

## Method

| | |
|---|---|
| order | roan, rdma_rxe and TCP run in one boot, one measurement of each after the other; the order changes from round to round |
| a cell | the median of the rounds; lowest and highest in parentheses |
| a ratio | the median of the ratios *within* rounds, so that a slow phase of the machine affects both sides |
| short runs | a run of less than a second that is compared with a bar is repeated within a round, and the round's value is the median: latency five times, steered rows three |
| RDMA | perftest, RC, one QP, its default depth, polling; path MTU 4096 on an interface MTU of 4200 for all three |
| TCP | one stream written in pieces of the row's size, with the system calls that iperf3 makes for each |
| CPU time, loss, many QPs | `selftests/verbs/scale`, 16 WRITEs outstanding; with loss, packets are sent one by one, as netem otherwise drops whole GSO packets |
| system calls | counted in separate runs, by a library preloaded into the client and by `strace -c` |
| "a veth each" | rdma_rxe works in the initial namespace only, so both ends of its veth are there; TCP uses the same veth. Both are bound to an interface, so their packets to the other end's local address cross the veth. roan would route packets to a local address over lo, so the ends of its veth are in two namespaces |
"""
DETAILS = """# Measurements in detail

After this page you know what limits the figures of [benchmarks.md](benchmarks.md), by profiles and traces, how they varied between
machines, and the figures for all message sizes. "The rounds" are the runs that benchmarks.md shows. Written by `make bench`, the remarks from
`selftests/bench/remarks-*.md`; do not edit.
"""


def main():
    folder, logs = sys.argv[1], sys.argv[2:]
    runs = sorted((Run(p) for p in logs), key=lambda r: r.lab != "uml")
    if not runs:
        sys.exit("report.py: no logs")
    figures = [(run.lab, f"benchmarks-{run.lab}.svg") for run in runs if draw(run, os.path.join(folder, f"benchmarks-{run.lab}.svg"))]
    first = [INTRO, summary(runs), *(f"![WRITE bandwidth by message size, lab {lab}]({path})\n" for lab, path in figures), METHOD]
    pages = {"benchmarks.md": first + [section(run) for run in runs], "measurements.md": [DETAILS] + [details(run) for run in runs]}
    for name, text in pages.items():
        with open(os.path.join(folder, name), "w") as f:
            f.write("\n".join(text))
        print("\n".join(text[1:]))


main()
