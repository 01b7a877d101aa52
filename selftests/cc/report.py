#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Figures of a run of the lab: writes DIR/rates.csv and prints the line of figures.

    report.py DIR

DIR has the files of lab.sh: setup (name=value lines), plan, flow*.csv, flow*.txt, queue.csv, counters. rates.csv has a
line per millisecond: time in ms, Gb/s of each flow, mean queue in KB. Figures are of the steady part (the second half
of the time in which all flows are active), except drops, pauses and cnps, which count from the first packet to the
last:

    jain          Jain's index of the flows' goodput in it
    util          bytes that left the watched queue, as a share of what the link carries
    queue_*_kb    mean and 99th percentile of the watched queue, sampled every 20.3 us
    converge_ms   from the last flow's start to the end of the first 5 ms (as long as they are at 40 Gb/s) with a Jain index of
                  0.99 and nine tenths of the steady part's goodput; -1: never. Of 10 ms with 16 flows and
                  more: each has so few cuts in 5 ms that even the steady part reaches 0.99 in two of three only.
                  In the parking lot, where shares differ by nature, goodput counts relative to the flow's steady one
    victim        scenario victim only: the last flow, not included in jain and converge_ms: its goodput in
                  the steady part, relative to its link's capacity
    victim_all    the same from the others' start on
    storms        scenario storm only: pauses ended by a watchdog
    stormed       scenario storm only: goodput of the paused flow, relative to its link's capacity
"""
import glob
import os
import re
import sys

WINDOW_MS = 5
MANY = 16
EVEN = 0.99
FULL = 0.9
HEADERS = 58  # BTH, ICRC, UDP, IPv4 and Ethernet


def read_rows(path):
    with open(path) as f:
        return [[float(x) for x in line.split(",")] for line in f if line.strip()]


def read_setup(folder):
    with open(os.path.join(folder, "setup")) as f:
        return dict(line.rstrip("\n").split("=", 1) for line in f if "=" in line)


def jain(rates):
    squares = sum(r * r for r in rates)
    return sum(rates) ** 2 / (len(rates) * squares) if squares else 0


class Run:
    """The files of one run, as numbers."""

    def __init__(self, folder):
        self.folder = folder
        self.setup = read_setup(folder)
        with open(os.path.join(folder, "plan")) as f:
            plan = [line.split() for line in f]
        self.start = [float(p[2]) for p in plan]
        self.stop = [float(p[3]) for p in plan]
        self.tcp = [len(p) > 4 for p in plan]
        self.has_victim = self.setup["scenario"] == "victim"
        self.end = int(max(self.stop))
        paths = sorted(glob.glob(os.path.join(folder, "flow*.csv")), key=lambda p: int(re.search(r"(\d+)\.csv", p)[1]))
        self.rates = [self.per_ms(read_rows(p)) for p in paths]
        self.queue = read_rows(os.path.join(folder, "queue.csv"))
        self.counters = self.read_counters()
        both = max(self.start), min(self.stop)
        window_ms = WINDOW_MS * (2 if len(plan) >= MANY else 1)
        self.window = max(1, round(window_ms * float(self.setup.get("slower", 1))))
        self.steady = int((both[0] + both[1]) / 2), int(both[1])

    def per_ms(self, rows):
        """Gb/s of one flow, by millisecond."""
        bins = [0.0] * self.end
        for time_us, got in rows:
            ms = int((time_us - 1) / 1000)
            if 0 <= ms < self.end:
                bins[ms] += got * 8 / 1e6
        return bins

    def read_counters(self):
        total = {}
        with open(os.path.join(self.folder, "counters")) as f:
            for line in f:
                _, name, value = line.strip().split(":")
                total[name] = total.get(name, 0) + int(value)
        return total

    def count(self, pattern):
        return sum(v for k, v in self.counters.items() if re.fullmatch(pattern, k))

    def steady_samples(self):
        low, high = (1000 * t for t in self.steady)
        return [q for q in self.queue if low <= q[0] < high]

    def goodput(self, low, high):
        """Gb/s of each flow through the watched queue, between two milliseconds."""
        return [sum(r[low:high]) / (high - low) for r in self.rates[:-1 if self.has_victim else None]]

    def share(self, flow, low, high):
        """A flow's goodput between two milliseconds, relative to its link's capacity without headers."""
        frame = float(self.setup["frame_bytes"])
        return sum(self.rates[flow][low:high]) / (high - low) / float(self.setup["gbps"]) * frame / (frame - HEADERS)

    def utilisation(self):
        s = self.steady_samples()
        return (s[-1][2] - s[0][2]) * 8e-3 / (s[-1][0] - s[0][0]) / float(self.setup["gbps"])

    def converge_ms(self):
        since, until = int(max(self.start)), int(min(self.stop))
        steady = self.goodput(*self.steady)
        share = steady if self.setup["scenario"] == "parking-lot" else [1] * len(steady)
        for ms in range(since + self.window, until + 1):
            now = self.goodput(ms - self.window, ms)
            if jain([r / s for r, s in zip(now, share)]) >= EVEN and sum(now) >= FULL * sum(steady):
                return ms - since
        return -1

    def figures(self):
        depth = sorted(q[1] for q in self.steady_samples())
        figures = {
            "scenario": self.setup["scenario"], "n": self.setup["n"], "gbps": self.setup["gbps"],
            "frame_bytes": self.setup["frame_bytes"],
            "jain": "%.4f" % jain(self.goodput(*self.steady)), "util": "%.4f" % self.utilisation(),
            "queue_mean_kb": "%.1f" % (sum(depth) / len(depth) / 1e3),
            "queue_p99_kb": "%.1f" % (depth[int(len(depth) * .99)] / 1e3),
            "drops": max(int(self.queue[-1][3]), self.count("switch_dropped")),
            "pauses": self.count(r"(tx|sent)_pauses?|pfc_.*_sent"),
            "cnps": self.count("rp_cnp_handled"), "converge_ms": self.converge_ms(),
        }
        if self.has_victim:
            figures["victim"] = "%.4f" % self.share(-1, *self.steady)
            figures["victim_all"] = "%.4f" % self.share(-1, int(max(self.start)), self.end)
        if self.setup["scenario"] == "storm":
            figures["storms"] = self.count("pfc_storm")
            figures["stormed"] = "%.4f" % self.share(0, *self.steady)
        return figures

    def write_rates(self):
        depth = [[] for _ in range(self.end)]
        for q in self.queue:
            if 0 <= int(q[0] / 1000) < self.end:
                depth[int(q[0] / 1000)].append(q[1])
        with open(os.path.join(self.folder, "rates.csv"), "w") as f:
            f.write("time_ms," + ",".join("flow%d_gbps" % (i + 1) for i in range(len(self.rates))) + ",queue_kb\n")
            for ms in range(self.end):
                mean = sum(depth[ms]) / len(depth[ms]) / 1e3 if depth[ms] else 0
                f.write("%d,%s,%.1f\n" % (ms, ",".join("%.3f" % r[ms] for r in self.rates), mean))


def main():
    run = Run(sys.argv[1])
    run.write_rates()
    print(" ".join("%s=%s" % kv for kv in run.figures().items()))


if __name__ == "__main__":
    main()
