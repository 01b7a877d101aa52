#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""source_port.py: the UDP source ports of QPs, by their flow labels; those of a responder, by its peer's requests.

Runs in namespace h2 (packets.sh) with the functions of packets.py.

    h1: v1 (no device, this socket) ======== v2 roan2 :h2
"""
import os
import time

import pyverbs.enums as e
from pyverbs.wr import SGE, SendWR

import packets as p
from ktap import plan, result

QPS = 8


def port_of(v, label, family):
    """The source port of a message of a new QP. None: nothing was sent."""
    qp = v.connected(e.IBV_QPT_UC, family=family, label=label)
    v.wire.replies()
    qp.post_send(SendWR(opcode=e.IBV_WR_SEND, num_sge=1, sg=[SGE(v.mr.buf, 16, v.mr.lkey)]))
    end, ports = time.monotonic() + 5, []
    while not ports and time.monotonic() < end:
        v.wire.replies()
        ports = v.wire.sport
    qp.close()
    return ports[0] if ports else None


def ports(v, label, family):
    return {port_of(v, label, family) for _ in range(QPS)}


def acks_port(v, qp, psn, **kw):
    """The source port of the ACK of a WRITE that says SACK version @extensions and comes from port @sport."""
    v.wire.replies()
    write = p.bth(p.WRITE_ONLY, qp.qp_num, psn=psn, ack=True, extensions=kw.pop("extensions", 0)) + p.reth(v.mr.buf, v.mr.rkey, 8)
    v.wire.send(p.datagram(write + bytes(8), **kw))
    end, found = time.monotonic() + 5, []
    while not found and time.monotonic() < end:
        got = v.wire.replies()
        found = [port for r, port in zip(got, v.wire.sport) if r[0] == p.ACK]
    return found[0] if found else None


def replies(v):
    qp = v.connected(e.IBV_QPT_RC)
    own = acks_port(v, qp, p.PSN)
    forged = acks_port(v, qp, p.PSN - 4096, extensions=3, sport=0xC777)
    seen = acks_port(v, qp, p.PSN + 1)
    result(own and seen == own, "a request with a PSN that the peer never sends does not change the port of ACKs", f"{own}, {forged}, {seen}")
    named, seen = acks_port(v, qp, p.PSN + 2, extensions=3, sport=0xC777), acks_port(v, qp, p.PSN + 3)
    result((named, seen) == (0xC777, own), "an ACK has the port of the last request if that says SACK, else the QP's own", f"{named}, {seen}")
    qp.close()


def main():
    v = p.Victim(p.Wire())
    for family in 4, 6:
        for label, what in (0, "no flow label"), (0xFFFFFFFF, "UCX's flow label of 32 bits"):
            seen = ports(v, label, family)
            result(None not in seen and len(seen) > QPS // 2, f"IPv{family}: QPs with {what} have different source ports", f"{seen}")
        seen = ports(v, 0x12345, family)
        result(None not in seen and len(seen) == 1, f"IPv{family}: QPs with one flow label have one source port", f"{seen}")
        result(seen != ports(v, 0x54321, family), f"IPv{family}: another flow label, another source port")
    replies(v)
    os._exit(plan())


main()
