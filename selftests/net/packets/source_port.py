#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""source_port.py: the UDP source ports of QPs, by their flow labels.

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


def main():
    v = p.Victim(p.Wire())
    for family in 4, 6:
        for label, what in (0, "no flow label"), (0xFFFFFFFF, "UCX's flow label of 32 bits"):
            seen = ports(v, label, family)
            result(None not in seen and len(seen) > QPS // 2, f"IPv{family}: QPs with {what} have different source ports", f"{seen}")
        seen = ports(v, 0x12345, family)
        result(None not in seen and len(seen) == 1, f"IPv{family}: QPs with one flow label have one source port", f"{seen}")
        result(seen != ports(v, 0x54321, family), f"IPv{family}: another flow label, another source port")
    os._exit(plan())


main()
