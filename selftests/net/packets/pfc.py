#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""pfc.py: valid, malformed and forged pause frames, and what the device in h2 then sends.

Runs in namespace h2 (pfc.sh); frames are sent by the packet socket of packets.py on v1 in h1. The link speed is set to
1 Mb/s, so that a quantum is 512 us and a pause of 0xffff lasts half a minute, longer than any machine needs. The test
waits for packets that must be sent, and watches for a third of a second for those that must not. Times are checked by a
lower bound only.

    h1: v1 (no device, this socket) ======== v2 roan2 :h2
"""
import os
import struct
import time

import pyverbs.enums as e
from pyverbs.addr import AH, AHAttr, GID, GlobalRoute
from pyverbs.wr import SGE, SendWR

import packets as p
from device import gid_index, gid_of
from ktap import check, plan
from pause import FOR_EVER, frame

QUANTUM = 512e-6


class Host(p.Victim):
    """The device under test, with one UD QP for each priority."""

    def __init__(self, wire):
        super().__init__(wire)
        self.ah = {}
        for prio in (0, 3, 5, 6):
            gr = GlobalRoute(dgid=GID(gid_of(p.H1[4]).exploded), sgid_index=gid_index(p.DEV, p.H2[4]))
            gr.traffic_class = prio << 5
            self.ah[prio] = AH(self.pd, attr=AHAttr(gr=gr, is_global=1, port_num=1))

    def pause(self, enabled, quanta=FOR_EVER, **other):
        self.wire.sock.send(frame(enabled, quanta, **other))

    def send(self, prio, qp=None):
        qp = qp or self.ud
        wr = SendWR(opcode=e.IBV_WR_SEND, num_sge=1, sg=[SGE(self.mr.buf, 8, self.mr.lkey)])
        if qp is self.ud:
            wr.set_wr_ud(self.ah[prio], p.PEER_QPN, p.QKEY)
        qp.post_send(wr)

    def leaves(self, opcode=p.UD_SEND, within=10):
        """Returns the first packet with @opcode, or None; others are discarded."""
        end = time.monotonic() + within
        while time.monotonic() < end:
            for bth in self.wire.replies():
                if bth[0] == opcode:
                    return bth
            time.sleep(0.002)
        return None

    def stays(self, opcode=p.UD_SEND):
        return self.leaves(opcode, 0.3) is None

    def go(self):
        """Ends all pauses; discards replies and completions so far."""
        self.pause(0xFF, 0)
        time.sleep(0.05)
        self.wire.replies()
        self.polled()


def stop_and_go(h):
    h.pause(1 << 3)
    h.send(3)
    stayed = h.stays()
    h.pause(1 << 3, 0)
    check("a paused priority sends after XON", stayed, h.leaves())
    began = time.monotonic()
    h.pause(1 << 3, 1000)
    h.send(3)
    left = h.leaves()
    check("... or when its quanta have passed, not earlier", left, time.monotonic() - began >= 1000 * QUANTUM)
    began = time.monotonic()
    h.pause(1 << 3)
    h.send(3)
    h.pause(1 << 3, 500)
    left = h.leaves()
    check("a later frame shortens a pause", left, time.monotonic() - began >= 500 * QUANTUM)
    h.pause(1 << 3)
    h.send(3)
    h.pause(0xFF & ~(1 << 3), 0)
    check("XON for other priorities does not end a pause", h.stays())
    h.go()


def xmit_wait():
    with open(f"/proc/1/root/sys/class/infiniband/{p.DEV}/ports/1/counters/port_xmit_wait") as f:
        return int(f.read())


def paused_us():
    time.sleep(0.05)    # the core reads the counters anew after 10 ms
    with open(f"/proc/1/root/sys/class/infiniband/{p.DEV}/ports/1/hw_counters/paused_us") as f:
        return int(f.read())


def waiting_is_counted(h):
    paused, before = paused_us(), xmit_wait()
    h.pause(1 << 3)
    time.sleep(0.05)
    idle = xmit_wait() - before
    h.send(3)
    h.stays()
    during = xmit_wait() - before
    h.pause(1 << 3, 0)
    h.leaves()
    total = xmit_wait() - before
    time.sleep(0.1)
    check("port_xmit_wait counts while a packet waits, in microseconds", idle == 0, during >= 300000, total >= during,
          xmit_wait() - before == total)
    check("paused_us counts the same", paused_us() - paused == total)
    h.go()


def others_go_on(h):
    h.pause(1 << 3)
    h.send(5)
    five = h.leaves()
    h.send(0)
    check("other priorities are not paused", five, h.leaves())
    h.pause(1 << 6)
    h.send(6)
    check("the priority of CNPs is never paused", h.leaves())
    p.setting("pfc_prio_mask", 0xFF & ~(1 << 5))
    h.pause(1 << 5)
    h.send(5)
    check("a priority that is not in pfc_prio_mask is not paused", h.leaves())
    p.setting("pfc_prio_mask", 0xFF)
    h.go()


def acknowledge(h, qp, psn):
    """Acknowledges a PSN; returns the statuses of the completions."""
    h.polled()
    h.wire.send(p.datagram(p.bth(p.ACK, qp.qp_num, psn=psn) + struct.pack(">I", 31 << 24 | psn)))
    end, got = time.monotonic() + 10, []
    while not got and time.monotonic() < end:
        time.sleep(0.1)
        got = h.polled()
    return [w.status for w in got]


def connection(h):
    """RC, on priority 0: requests and READ responses wait, ACKs and CNPs do not, and the ACK timer is stopped."""
    qp = h.connected(e.IBV_QPT_RC, timeout=18)  # 1.1 s, one retry
    h.post(qp)
    h.post(qp)
    h.pause(1 << 0)
    h.send(0, qp)
    stayed = h.stays(p.SEND_ONLY)
    h.wire.send(p.datagram(p.bth(p.SEND_ONLY, qp.qp_num, ack=True) + bytes(8)))
    check("RC: an ACK is sent while requests wait", stayed, h.leaves(p.ACK))
    h.wire.send(p.datagram(p.bth(p.SEND_ONLY, qp.qp_num, psn=p.PSN + 1) + bytes(8), tos=3))
    check("RC: a CNP is sent while requests wait", h.leaves(p.CNP))
    h.wire.send(p.datagram(p.bth(p.READ, qp.qp_num, psn=p.PSN + 2, ack=True) + p.reth(h.mr.buf, h.mr.rkey, 8)))
    check("RC: a READ response waits", h.stays(16))
    h.pause(1 << 0, 0)
    end, seen = time.monotonic() + 10, set()
    while seen < {16, p.SEND_ONLY} and time.monotonic() < end:
        seen |= {bth[0] for bth in h.wire.replies()}
    check("RC: both are sent after XON", seen >= {16, p.SEND_ONLY}, acknowledge(h, qp, 1) == [0])
    h.send(0, qp)
    left = h.leaves(p.SEND_ONLY)
    h.pause(1 << 0)
    time.sleep(0.1)
    h.wire.replies()    # it may have retransmitted before the frame arrived
    time.sleep(3)
    alone = h.polled() == [] and h.stays(p.SEND_ONLY)
    h.pause(1 << 0, 0)
    again = h.leaves(p.SEND_ONLY)
    check("RC: a pause longer than all retries does not fail the request", left, alone, again, acknowledge(h, qp, 2) == [0])
    qp.close()
    h.go()


def malformed(h):
    h.counters()
    for name, counter, other in (
            ("59 bytes", "rx_pause_length", {"length": 59}), ("34 bytes, not padded", "rx_pause_length", {"length": 34}),
            ("16 bytes", "rx_pause_length", {"length": 16}), ("64 bytes", "rx_pause_length", {"length": 64}),
            ("1500 bytes", "rx_pause_length", {"length": 1500}),
            ("to a unicast address", "rx_pause_dest", {"to": h.wire.h2mac}), ("to broadcast", "rx_pause_dest", {"to": b"\xff" * 6}),
            ("a link-wide pause (802.3x)", "rx_pause_opcode", {"opcode": 1}),
            ("an unknown opcode", "rx_pause_opcode", {"opcode": 0x0102})):
        before = h.counters()
        h.pause(1 << 3, **other)
        h.send(3)
        left = h.leaves()
        after = h.counters()
        moved = {k: after[k] - before[k] for k in after if after[k] != before[k] and "pause" in k}
        check(f"malformed: {name}", left, moved == {counter: 1})
        h.polled()
    before = h.counters()["rx_pause_vector"]
    for bit in range(8, 16):
        h.pause(1 << bit | 1 << 3)
    h.send(3)
    check("malformed: classes 8 to 15", h.leaves(), h.counters()["rx_pause_vector"] == before + 8)
    h.go()


def storm(h, name, *frames, gaps=False):
    """Sends @frames as fast as possible: waiting packets leave after the watchdog's time, and the next ones do not
    wait. With @gaps a packet may be sent before that."""
    p.setting("pfc_watchdog_ms", 500)
    p.setting("pfc_restore_ms", 20000)
    before = h.counters()
    began, n, left, free = time.monotonic(), 0, None, []
    h.wire.sock.send(frames[0])
    h.send(3)
    while time.monotonic() < began + 15 and not left:
        for f in frames * 20:
            h.wire.sock.send(f)
        n += 20 * len(frames)
        left = h.leaves(within=0.001)
    took = time.monotonic() - began
    for _ in range(5):
        for f in frames * 20:
            h.wire.sock.send(f)
        h.send(3)
        free.append(h.leaves())
    after = h.counters()
    print(f"# {name}: {n} frames in {took:.2f} s")
    check(f"{name}: waiting packets are sent", left, after["rx_prio3_pause"] - before["rx_prio3_pause"] >= n)
    check(f"{name}: all later packets are sent", all(free))
    if not gaps:
        check(f"{name}: by the watchdog, after its time", after["pfc_storm"] == before["pfc_storm"] + 1, took >= 0.5,
              after["pause_ignored"] - before["pause_ignored"] >= 100)
    p.setting("pfc_prio_mask", 0)     # resets the state for the next case
    p.setting("pfc_prio_mask", 0xFF)
    p.setting("pfc_watchdog_ms", 60000)
    h.go()


def off(h):
    h.pause(1 << 3)
    h.send(3)
    stayed = h.stays()
    p.setting("pfc_prio_mask", 0)
    check("switching PFC off sends waiting packets", stayed, h.leaves())
    before = h.counters()
    h.pause(1 << 3)
    h.send(3)
    left = h.leaves()
    after = h.counters()
    check("off: pause frames are not evaluated", left, all(after[k] == before[k] for k in after if "pause" in k))
    p.setting("pfc_prio_mask", 0xFF)
    qp = h.connected(e.IBV_QPT_RC)
    h.pause(1 << 0)
    h.send(0, qp)
    stayed = h.stays(p.SEND_ONLY)
    qp.close()
    check("a QP can be destroyed while it waits", stayed, h.stays(p.SEND_ONLY))
    h.go()


def main():
    h = Host(p.Wire())
    h.pause(1 << 3)
    h.send(3)
    check("off by default", h.leaves(), all(n == 0 for k, n in h.counters().items() if "pause" in k))
    p.setting("link_speed", 1)
    p.setting("pfc_watchdog_ms", 60000)
    p.setting("pfc_prio_mask", 0xFF)
    h.go()
    for group in (stop_and_go, waiting_is_counted, others_go_on, connection, malformed):
        group(h)
    storm(h, "a storm of XOFF", frame(0xFF))
    storm(h, "a storm of XOFF and XON", frame(0xFF), frame(0xFF, 0), frame(0xFF), gaps=True)
    off(h)
    h.pause(1 << 3)     # the device is removed while a packet waits
    h.send(3)
    h.stays()
    os._exit(plan())


main()
