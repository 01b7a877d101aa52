# SPDX-License-Identifier: GPL-2.0
"""Figures of roan devices and their queue pairs, and what holds a queue pair back: for `roan watch`, `roan top` and
`roan exporter`. They come from sysfs and from `rdma resource show qp -dd`; Documentation/observability.md has each name.
"""
import collections
import json
import os
import re
import subprocess
import time

SYSFS = os.environ.get("ROAN_SYSFS", "/sys/class/infiniband")
CONNECTED = ("RC", "UC")
LOOKS = 20		# of which Watch.verdict() takes the most frequent reason
MAX_UNDER_WAY = 512	# work requests taken from the ring and not completed: ROAN_MAX_UNDER_WAY of kernel/roan.h


class Refused(Exception):
    """An error message for the user; the exit status is 1."""


def iproute(*command):
    """Runs `rdma` or `dcb`; the caller looks at the exit status."""
    try:
        return subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace")
    except FileNotFoundError:
        raise Refused("%s is not installed; it is part of iproute2" % command[0])


def decoded(text):
    """JSON of `rdma`, which writes the name of a process as it is: control characters are allowed."""
    return json.loads(text or "[]", strict=False)


def printable(text):
    """Text that anybody may have chosen, such as the name of a process: no control characters reach the terminal, whatever its encoding."""
    return "".join(c if " " <= c <= "~" else "?" for c in str(text))


def read(*parts):
    with open(os.path.join(*parts)) as f:
        return f.read().strip()


# ---- devices ----

def port(dev):
    path = os.path.join(SYSFS, dev, "ports/1")
    if not os.path.isdir(path):
        raise Refused("there is no device %s; 'rdma link show' lists devices" % dev)
    if not os.path.isdir(os.path.join(path, "cc_param")):
        raise Refused("%s is not a roan device of this network namespace; 'roan status' lists them" % dev)
    return path


def devices():
    names = sorted(os.listdir(SYSFS)) if os.path.isdir(SYSFS) else []
    return [d for d in names if os.path.isdir(os.path.join(SYSFS, d, "ports/1/cc_param"))]


def numbers(*parts):
    """The files of a folder that hold a number: name -> value."""
    found = {}
    for name in sorted(os.listdir(os.path.join(*parts))):
        try:
            found[name] = int(read(*parts, name))
        except (OSError, ValueError):
            pass
    return found


def counters(dev):
    found = numbers(port(dev), "hw_counters")
    found.pop("lifespan", None)
    return found


def histogram(dev, name):
    """A histogram of ports/1/latency/: [(seconds that its entries do not reach, entries)], and the sum of all times in seconds."""
    (_, total), *lines = (line.split() for line in read(port(dev), "latency", name).splitlines())
    return [(float(limit) / 1e9, int(count)) for limit, count in lines], int(total) / 1e9


def histograms(dev):
    folder = os.path.join(port(dev), "latency")
    return {name: histogram(dev, name) for name in sorted(os.listdir(folder))} if os.path.isdir(folder) else {}


def device(dev):
    """State, rate and algorithm of a device, its counters, and the time in us for which pauses held back a packet."""
    folder, count = port(dev), counters(dev)
    return {"device": dev, "state": read(folder, "state").split(": ")[1].lower(), "algo": read(folder, "cc_param/algo"),
            "mbps": round(float(read(folder, "rate").split()[0]) * 1000), "paused_us": count.pop("paused_us", 0), "counters": count}


# ---- queue pairs ----

def number(qp, name):
    return int(str(qp.get(name, 0)).split()[0], 0)


def queue_pairs(dev=None):
    """All queue pairs of a device, or of all: a list of attributes; the drv_ prefix of the driver's is removed."""
    if dev:
        port(dev)
    done = iproute("rdma", "-j", "-dd", "resource", "show", "qp", *(["link", dev] if dev else []))
    if done.returncode:
        raise Refused("rdma resource: " + done.stderr.strip())
    known = {dev} if dev else set(devices())
    return [{re.sub("^drv_", "", k): v for k, v in qp.items()} for qp in decoded(done.stdout) if qp["ifname"] in known]


def live(qps):
    """Those that may carry data: (device, QPN) -> attributes."""
    found = {}
    for qp in qps:
        if qp.get("type") in CONNECTED + ("UD",) and qp.get("state") in ("RTS", "SQD"):
            if "una_psn" not in qp:
                raise Refused("needs CAP_NET_ADMIN: PSNs are not shown to others")
            found[qp["ifname"], qp["lqpn"]] = qp
    return found


def psns(now, before, name):
    return (number(now, name) - number(before, name)) % (1 << 24)


def in_flight(qp):
    return (number(qp, "end_psn") - number(qp, "una_psn")) % (1 << 24)


def rtt_ns(qp):
    return number(qp, "rtt_ns") or number(qp, "srtt_ns")  # the algorithm's RTT, else that of the ACK timeout


def window(qp):
    """Packets that may be in flight: the lower of the congestion window and window_packets."""
    limits = [number(qp, "window_pkts")]
    if number(qp, "cc_window"):
        limits.append(max(1, number(qp, "cc_window") // number(qp, "mtu")))
    return min(limits)


def window_full(qp):
    """A READ takes as many packets as its response has, all at once, so it may wait while the window has room for fewer."""
    if not number(qp, "window_pkts"):
        return False
    waits = number(qp, "sq_unsent") and number(qp, "rd_outstanding")
    return in_flight(qp) * (2 if waits else 1) >= window(qp) or number(qp, "sq_works") >= MAX_UNDER_WAY


def reads_full(qp):
    return number(qp, "sq_unsent") and 0 < number(qp, "max_rd_atomic") <= number(qp, "rd_outstanding")


def rates(qp, before, seconds):
    """Figures of the time since the attributes `before`. The rates are upper bounds: full packets are assumed."""
    def events(name):
        return (number(qp, name) - number(before, name)) % (1 << 32) / seconds
    packets = psns(qp, before, "una_psn"), psns(qp, before, "epsn")
    scale = number(qp, "mtu") * 8 / seconds / 1e9
    return {"packets": packets, "tx_gbps": packets[0] * scale, "rx_gbps": packets[1] * scale,
            "resent": events("resent"), "cnps": events("cnps"), "timeouts": events("timeouts"), "rnr": events("rnr_naks"),
            "paused": min(100.0, events("paused_ms") / 10), "rtt_us": rtt_ns(qp) / 1e3, "alpha": number(qp, "alpha_1024") / 1024,
            "limit_gbps": number(qp, "rate_kbps") / 1e6, "in_flight": in_flight(qp)}


# ---- why a queue pair is slow ----

# What can hold back the next packet, the first that applies: name, test of one look, meaning, what to do.
REASONS = [
    ("pause", lambda q: number(q, "paused"), "a PFC pause holds packets back",
     "receiver or switch is congested: its PFC counters; congestion control"),
    ("fault", lambda q: number(q, "fault_wait"), "data to send is not in memory: a page fault runs",
     "prefetch the region (ibv_advise_mr), or pin it"),
    ("peer", lambda q: number(q, "rnr_wait"), "the peer has no receive posted (RNR NAK)",
     "the peer's program posts too few receives, or its memory is paged"),
    ("host", lambda q: number(q, "host_wait"), "packets wait in this host's qdisc or NIC ring",
     "the interface is full: tc -s qdisc, other traffic, the link's speed"),
    ("rate", lambda q: number(q, "paced"), "the rate limit holds packets back",
     "a cap (roan qp DEV QPN cap=0 ends it), or congestion control after CNPs"),
    ("reads", reads_full, "as many READs are in flight as the connection allows",
     "a larger max_rd_atomic on both sides (perftest: --outs), longer READs"),
    ("window", window_full, "as many packets are in flight as the window allows",
     "a long or congested path: window_packets, window_max; Swift's target"),
    ("idle", lambda q: not number(q, "sq_works") and not number(q, "sq_posted"), "no work is posted",
     "the program is the bottleneck, or has nothing to send"),
    ("CPU", lambda q: number(q, "sq_posted") or number(q, "sq_unsent"), "work waits, but not for a limit: for CPU time, or a fence",
     "softirq time of the CPU: mpstat; steer interrupts (RPS), larger MTU"),
    ("depth", lambda q: True, "all that is posted is in flight: the program waits for ACKs",
     "post more or larger requests at a time; else the round trip limits"),
]
NAMES = [name for name, *_ in REASONS]
LOST = ("loss", "packets are sent again: lost, corrupted or reordered on the way", "ip -s link, the switches' drops, tc -s qdisc; rcvd_seq_err")
LOSSY = 0.01		# resent packets per packet acknowledged


def reason(qp):
    """The name of what holds the queue pair back at the time of one look."""
    return next(name for name, test, *_ in REASONS if test(qp))


class Watch:
    """Successive looks at the queue pairs of a device (or all), with their figures. Each keeps the last `keep`."""

    def __init__(self, dev=None, keep=600):
        self.dev, self.keep = dev, keep
        self.history = {}	# (device, QPN) -> deque of (time, figures)
        self.looks = {}		# (device, QPN) -> deque of names of REASONS
        self.qps, self.devices, self.before, self.then = {}, {}, {}, None
        self.device_rates = {}
        self.seconds = 0.0	# that the last dump took
        self.look()

    def dump(self):
        began = time.monotonic()
        qps = live(queue_pairs(self.dev))
        self.seconds = time.monotonic() - began
        return qps

    def glance(self):
        """Between two looks: only what holds each queue pair back."""
        for key, qp in self.dump().items():
            if self.same(key, qp):
                self.looks[key].append(reason(qp))

    def look(self):
        now, qps = time.monotonic(), self.dump()
        devs = {}
        for d in [self.dev] if self.dev else devices():
            try:
                devs[d] = device(d)
            except (OSError, Refused):		# removed meanwhile
                pass
        seconds = now - self.then if self.then else None
        for key, qp in qps.items():
            if not self.same(key, qp):		# new, or another one with the same number
                self.history[key] = collections.deque(maxlen=self.keep)
                self.looks[key] = collections.deque(maxlen=LOOKS)
            elif seconds:
                self.history[key].append((now, rates(qp, self.qps[key], seconds)))
            self.looks[key].append(reason(qp))
        for key in set(self.history) - set(qps):
            del self.history[key], self.looks[key]
        self.device_rates = {d: self.of_device(devs[d], self.devices[d], seconds) for d in devs if d in self.devices and seconds}
        self.qps, self.devices, self.then = qps, devs, now

    def same(self, key, qp):
        was = self.qps.get(key)
        return was and all(was.get(n) == qp.get(n) for n in ("pid", "rqpn", "type")) and number(was, "paused_ms") <= number(qp, "paused_ms")

    @staticmethod
    def of_device(dev, before, seconds):
        def per_second(test):
            return sum(v - before["counters"].get(n, v) for n, v in dev["counters"].items() if test(n)) / seconds
        return {"tx_gbps": per_second("sent_bytes".__eq__) * 8 / 1e9, "rx_gbps": per_second("rcvd_bytes".__eq__) * 8 / 1e9,
                "resent": per_second("resent_pkts".__eq__), "cnps": per_second("rp_cnp_handled".__eq__),
                "dropped": per_second(is_drop),
                "paused": min(100.0, (dev["paused_us"] - before["paused_us"]) / seconds / 1e4)}

    def figures(self, key):
        """Of the last interval; None after the first look."""
        return self.history[key][-1][1] if self.history.get(key) else None

    def shares(self, key):
        """Of each reason: the share of the last looks in which it applied."""
        looks = self.looks[key]
        return {name: looks.count(name) / len(looks) for name in NAMES}

    def verdict(self, key):
        """The reason of most looks; loss, if many packets are sent again."""
        shares, figures = self.shares(key), self.figures(key)
        if figures:
            acked = figures["tx_gbps"] * 1e9 / 8 / number(self.qps[key], "mtu")
            if figures["resent"] > LOSSY * max(acked, 1):
                return LOST[0]
        return max(NAMES, key=lambda n: shares[n])


DROP = re.compile(r"(rx|tx)_(?!prio\d|pause_|early_|fault_queued)")


def is_drop(counter):
    """True for the counters of packets dropped by a reason of their own."""
    return bool(DROP.match(counter))


def owner(qp):
    comm = printable(qp.get("comm", ""))
    return "%s/%d" % (comm, qp["pid"]) if "pid" in qp else comm
