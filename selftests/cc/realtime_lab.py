#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""realtime_lab.py: the parts of realtime_lab.sh that depend on time.

    realtime_lab.py forge DIR IFACE DEV MAC QPN   out of IFACE, to QP QPN of DEV at MAC: CNPs from a host that is not its
                                          peer, then with the peer's address, then pauses of all priorities with the longest
                                          time. Writes the times and the change of the expected counter to DIR/forged
    realtime_lab.py judge DIR                     prints KTAP, from that file and the lab's files in DIR

Stages are planned in seconds from the lab's time zero. On a busy machine they happen later, and the judged times follow
them.
"""
import itertools
import os
import socket
import struct
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../net/packets")]
from roce_packets import CNP, bth, datagram  # noqa: E402
from report import Run, jain  # noqa: E402

HOST, PEER, NOBODY = "10.8.0.1", "10.8.0.100", "10.8.0.99"
SETTLED = 12        # seconds; from here on the flows have converged
# The initial namespace's sysfs has a device's counters.
COUNTERS = "/proc/1/root/sys/class/infiniband/%s/ports/1/hw_counters/%s"


def cnp(src, mac, qpn):
    packet = datagram(bth(CNP, int(qpn), psn=0, mig=False, becn=True) + bytes(16), src=src, dst=HOST)
    return bytes.fromhex(mac.replace(":", "") + "0200000000420800") + packet


def pause():
    times = struct.pack(">HHH8H", 0x8808, 0x0101, 0xFF, *[0xFFFF] * 8)
    return (bytes.fromhex("0180c2000001020000000042") + times).ljust(60, b"\0")


def forge(folder, iface, dev, mac, qpn):
    stages = (  # name, from, for, every: seconds; the frame; the counter
        ("strange", 22, 8, 0.005, cnp(NOBODY, mac, qpn), "rp_cnp_ignored"),
        ("spoofed", 30, 8, 0.05, cnp(PEER, mac, qpn), "rp_cnp_handled"),
        ("paused", 43, 5, 0.02, pause(), "pfc_storm"))
    with open(folder + "/epoch") as f:
        epoch = int(f.read()) / 1e9
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    sock.bind((iface, 0))

    def count(name):
        with open(COUNTERS % (dev, name)) as f:
            return int(f.read())

    with open(folder + "/forged", "w") as out:
        for name, begin, lasts, every, frame, counter in stages:
            time.sleep(max(0, epoch + begin - time.monotonic()))
            start, before = time.monotonic(), count(counter)
            while time.monotonic() < start + lasts:
                sock.send(frame)
                time.sleep(every)
            print(name, start - epoch, time.monotonic() - epoch, count(counter) - before, file=out, flush=True)


class Stage:
    """The rates of the flows between two times in seconds, in Mb/s."""

    def __init__(self, run, name, begin, end, counted=0):
        self.counted = counted
        self.rates = [1000 * g for g in run.goodput(int(begin * 1000), int(end * 1000))]
        self.jain, self.sum = jain(self.rates), sum(self.rates)
        print("# %-7s %5.1f to %5.1f s: %s Mb/s, Jain %.3f; counted %d" %
              (name, begin, end, " ".join("%.1f" % r for r in self.rates), self.jain, counted))


def judge(folder):
    run, number = Run(folder), itertools.count(1)
    with open(folder + "/forged") as f:
        forged = {name: list(map(float, rest)) for name, *rest in (line.split() for line in f)}
    quiet = Stage(run, "quiet", SETTLED, forged["strange"][0])
    strange, spoofed, paused = (Stage(run, name, *forged[name]) for name in ("strange", "spoofed", "paused"))
    late = Stage(run, "late", forged["paused"][1] + 6, run.end / 1000)
    depth = [q[1] / 1e3 for q in run.queue if SETTLED * 1e6 <= q[0] < forged["strange"][0] * 1e6]
    drops, cnps = run.queue[-1][3], run.count("rp_cnp_handled")
    print("# %d dropped, queue %.1f KB on average, %d CNPs" % (drops, sum(depth) / len(depth), cnps))
    bad = 0
    for name, good in (
            ("four senders share the link", quiet.jain >= .9 and cnps > spoofed.counted),
            ("CNPs from a host that is not the peer change nothing",
             strange.counted > 100 and strange.jain >= .9 and strange.sum >= .2 * quiet.sum),
            ("CNPs with the peer's address slow that flow, and the others use the rest",
             spoofed.counted > 20 and 0 < spoofed.rates[0] < spoofed.sum / 4 and spoofed.sum >= .2 * quiet.sum),
            ("a storm of pauses is ended by the watchdog and does not affect other hosts",
             paused.counted > 0 and paused.rates[0] > 0 and sum(paused.rates[1:]) >= .2 * sum(quiet.rates[1:])),
            ("afterwards the shares are as before", late.jain >= .9 and late.sum >= .2 * quiet.sum),
            ("no packet was lost", drops == 0)):
        bad += not good
        print("%sok %d %s" % ("" if good else "not ", next(number), name))
    print("1..%d" % (next(number) - 1))
    sys.exit(bad != 0)


if __name__ == "__main__":
    {"forge": forge, "judge": judge}[sys.argv[1]](*sys.argv[2:])
