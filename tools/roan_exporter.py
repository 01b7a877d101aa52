# SPDX-License-Identifier: GPL-2.0
"""Figures of roan devices and their queue pairs for Prometheus.

    roan exporter [--port N] [--listen ADDRESS] [--top N]       serve http://ADDRESS:N/metrics; default 127.0.0.1:9791
    roan exporter --textfile FILE [--interval SECONDS | --once] [--top N]
                                                                write a file for node_exporter, again and again or once

Counters of each device, queue pairs by what holds them back, and the --top N (20) queue pairs that moved the most data since the last
reading, with their congestion state. Needs root (CAP_NET_ADMIN) and python3-prometheus-client. Documentation/monitoring.md has the list.
"""
import argparse
import itertools
import re
import sys
import threading
import time

import roan_describe
import roan_figures
from roan_figures import NAMES, Refused, histograms, number, owner, reason, rtt_ns

try:
    from prometheus_client import CollectorRegistry, start_http_server, write_to_textfile
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
    from prometheus_client.utils import floatToGoString
except ImportError:
    raise Refused("python3-prometheus-client is not installed; on Debian: apt install python3-prometheus-client")

PORT = 9791
PERCENTILES = (50, 99, 100)
DIRECTION = {"rx": "received", "tx": "sent"}


def described():
    """Name -> (unit, meaning) of the counters, where the module's description of itself is installed."""
    try:
        return {c["name"]: (c["unit"], re.sub("`", "", c["meaning"])) for c in roan_describe.counters()}
    except FileNotFoundError:
        return {}


def metric_of(counter):
    """Name without the suffix _total, labels and help of a counter of hw_counters/. Names that share a metric differ in the labels."""
    m = re.match(r"(rx|tx)_prio(\d)_pause$", counter)
    if m:
        return "roan_pause_frames", {"direction": DIRECTION[m[1]], "priority": m[2]}, "802.1Qbb frames that name this priority"
    m = re.match(r"rx_pause_(\w+)$", counter)
    if m:
        return "roan_invalid_pause_frames", {"reason": m[1]}, "MAC control frames received that are not valid PFC frames"
    if roan_figures.is_drop(counter):
        return "roan_dropped_packets", {"direction": DIRECTION[counter[:2]], "reason": counter[3:]}, "Packets dropped, by the reason in observability.md"
    return "roan_" + re.sub("_pkts$", "_packets", counter), {}, None


class Families:
    """Metric families by name, in the order of their first sample."""

    def __init__(self):
        self.found = {}

    def add(self, kind, name, text, labels, value):
        names = sorted(labels)
        if name not in self.found:
            self.found[name] = kind(name, text, labels=names)
        self.found[name].add_metric([str(labels[n]) for n in names], value)

    def counter(self, name, text, value, **labels):
        self.add(CounterMetricFamily, name, text, labels, value)

    def gauge(self, name, text, value, **labels):
        self.add(GaugeMetricFamily, name, text, labels, value)

    def histogram(self, name, text, buckets, total, **labels):
        """@buckets: as those of roan_figures.histogram()."""
        names, counts = sorted(labels), itertools.accumulate(count for _, count in buckets)
        buckets = [(floatToGoString(limit), count) for (limit, _), count in zip(buckets, counts)]
        if name not in self.found:
            self.found[name] = HistogramMetricFamily(name, text, labels=names)
        self.found[name].add_metric([labels[n] for n in names], buckets, total)

    def info(self, name, text, **labels):
        """Constant 1 with what is known about a thing."""
        self.gauge(name + "_info", text, 1, **labels)


class Collector:
    """Each collect() is a look at all queue pairs. PSNs wrap, so the packets of a queue pair are added up from look to look."""

    def __init__(self, most):
        self.most, self.lock, self.meanings = most, threading.Lock(), described()
        self.watch, self.totals = None, {}

    def collect(self):
        with self.lock:
            began, families, good = time.monotonic(), Families(), 1
            try:
                if self.watch:
                    self.watch.look()
                else:
                    self.watch = roan_figures.Watch(keep=1)
                self.devices(families)
                self.queue_pairs(families)
            except (Refused, OSError, ValueError, KeyError, IndexError) as e:	# the last three: output of rdma, or a file, is cut off
                print("roan exporter: %s" % e, file=sys.stderr)
                families, good = Families(), 0
            families.gauge("roan_scrape_success", "1: the figures were read; 0: the exporter's log says why not", good)
            families.gauge("roan_scrape_duration_seconds", "Time that reading the figures took", time.monotonic() - began)
            return list(families.found.values())

    def devices(self, out):
        for name, dev in sorted(self.watch.devices.items()):
            try:
                latencies = histograms(name)
            except (OSError, Refused):		# removed meanwhile
                continue
            out.info("roan_device", "Device, and its algorithm of congestion control", device=name, algorithm=dev["algo"])
            out.gauge("roan_port_active", "1: the port is active", int(dev["state"] == "active"), device=name)
            out.gauge("roan_port_rate_bytes_per_second", "Rate of the port", dev["mbps"] * 1e6 / 8, device=name)
            out.counter("roan_port_paused_seconds", "Time for which PFC held back a packet of at least one queue pair",
                        dev["paused_us"] / 1e6, device=name)
            for operation, (buckets, total) in latencies.items():
                if operation == "rtt":
                    out.histogram("roan_round_trip_seconds", "Round trips: from the sending of a packet to the response that acknowledges it",
                                  buckets, total, device=name)
                else:
                    out.histogram("roan_request_seconds", "Requests of RC, from the send queue to the completion; one at a time of each queue pair",
                                  buckets, total, device=name, operation=operation)
            for counter, value in dev["counters"].items():
                metric, labels, text = metric_of(counter)
                unit, meaning = self.meanings.get(counter, ("", "Counter %s: observability.md" % counter))
                out.counter(metric, text or (unit.capitalize() + ": " if unit else "") + meaning, value, device=name, **labels)

    def queue_pairs(self, out):
        watch = self.watch
        for key in set(self.totals) - set(watch.qps):
            del self.totals[key]
        moved = {}
        for key, qp in watch.qps.items():
            f = watch.figures(key)
            if not f:			# new: nothing is known but its present PSNs
                self.totals[key] = [0, 0]
            moved[key] = f["tx_gbps"] + f["rx_gbps"] if f else 0
            self.totals[key] = [a + b for a, b in zip(self.totals[key], f["packets"] if f else (0, 0))]
        for name in sorted(watch.devices):
            mine = [qp for (dev, _), qp in watch.qps.items() if dev == name]
            waits = [reason(qp) for qp in mine]
            for why in NAMES:
                out.gauge("roan_queue_pairs", "Queue pairs that are ready to send, by what holds back the next packet", waits.count(why),
                          device=name, waits=why)
            rtts = sorted(rtt_ns(qp) for qp in mine if rtt_ns(qp))
            for p in PERCENTILES if rtts else ():
                out.gauge("roan_rtt_seconds", "Smoothed round trip over the queue pairs of the device: no more than this for so many per cent",
                          rtts[(len(rtts) - 1) * p // 100] / 1e9, device=name, percentile=p)
        for key in sorted(watch.qps, key=lambda k: (-moved[k], k))[:self.most]:
            self.queue_pair(out, key, watch.qps[key])

    def queue_pair(self, out, key, qp):
        label = {"device": key[0], "qpn": key[1]}
        out.info("roan_qp", "One of the busiest queue pairs: type, owner, peer, algorithm", type=qp["type"], owner=owner(qp),
                 peer_qpn=qp.get("rqpn", ""), algorithm=qp.get("cc", ""), **label)
        for total, (name, text) in zip(self.totals[key], (
                ("roan_qp_acknowledged_packets", "Packets sent and acknowledged since the exporter first saw the queue pair; times the MTU: bytes at most"),
                ("roan_qp_executed_packets", "Packets of requests executed for the peer since the exporter first saw the queue pair"))):
            out.counter(name, text, total, **label)
        out.gauge("roan_qp_mtu_bytes", "Path MTU", number(qp, "mtu"), **label)
        for name, attribute, text in (
                ("retransmitted_packets", "resent", "Packets sent again"), ("ack_timeouts", "timeouts", "Expired ACK timeouts"),
                ("sequence_naks", "seq_naks", "Sequence-error NAKs received: packets lost on the way to the peer"),
                ("rnr_naks", "rnr_naks", "RNR NAKs received: the peer had no receive posted"),
                ("cnps", "cnps", "CNPs received since congestion control began to limit the queue pair"),
                ("rate_cuts", "cuts", "Reductions of the rate since then")):
            out.counter("roan_qp_" + name, text, number(qp, attribute), **label)
        out.counter("roan_qp_paused_seconds", "Time for which PFC held back a packet", number(qp, "paused_ms") / 1e3, **label)
        out.gauge("roan_qp_rtt_seconds", "Smoothed round trip; 0: not measured", rtt_ns(qp) / 1e9, **label)
        out.gauge("roan_qp_rate_limit_bytes_per_second", "Present rate limit; 0: none", number(qp, "rate_kbps") * 125, **label)
        out.gauge("roan_qp_rate_cap_bytes_per_second", "Cap set by the administrator; 0: none", number(qp, "cap_kbps") * 125, **label)
        out.gauge("roan_qp_congestion_window_bytes", "Congestion window; 0: unlimited", number(qp, "cc_window"), **label)
        out.gauge("roan_qp_dcqcn_alpha_ratio", "DCQCN's alpha: estimated share of marked packets", number(qp, "alpha_1024") / 1024, **label)
        out.gauge("roan_qp_in_flight_packets", "Packets sent and not acknowledged", roan_figures.in_flight(qp), **label)
        out.gauge("roan_qp_send_queue_requests", "Send work requests posted and not completed", number(qp, "sq_posted") + number(qp, "sq_works"), **label)
        present = reason(qp)
        for why in NAMES:
            out.gauge("roan_qp_waits", "1: this holds back the next packet", int(why == present), waits=why, **label)


def main(words):
    parser = argparse.ArgumentParser(prog="roan exporter", usage="\n" + __doc__.split("\n\n", 1)[1])
    parser.add_argument("--port", type=int, default=PORT)
    parser.add_argument("--listen", default="127.0.0.1")
    parser.add_argument("--top", type=int, default=20)
    parser.add_argument("--textfile")
    parser.add_argument("--interval", type=float, default=15.0)
    parser.add_argument("--once", action="store_true")
    args = parser.parse_args(words)
    if not 1 <= args.port <= 65535 or args.top < 0 or args.interval < 1:
        raise Refused("--port is 1 to 65535, --top is 0 or more, --interval is 1 s or more")
    if args.once and not args.textfile:
        raise Refused("--once needs --textfile")
    registry = CollectorRegistry()
    registry.register(Collector(args.top))
    if not args.textfile:
        try:
            start_http_server(args.port, args.listen, registry)
        except OSError as e:
            raise Refused("%s:%d: %s" % (args.listen, args.port, e.strerror))
        threading.Event().wait()
    list(registry.collect())	# the first look has nothing to compare with
    while True:
        time.sleep(1 if args.once else args.interval)
        try:
            write_to_textfile(args.textfile, registry)
        except OSError as e:
            raise Refused("%s: %s" % (args.textfile, e.strerror))
        if args.once:
            return
