#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""datagrams.py: one QP sends datagrams to several destinations in turn. No QP need be there to receive them.

Usage:  datagrams.py DEV OWN-ADDRESS BYTES ROUNDS ADDRESS/TRAFFIC-CLASS...
"""
import sys

import pyverbs.enums as e
from pyverbs.addr import AH, AHAttr, GID, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, SendWR

from device import gid_index, gid_of

NOBODY, QKEY, DEPTH = 0x7fff, 0x11111111, 256


def handle(pd, dev, own, to):
    address, tclass = to.split("/")
    gr = GlobalRoute(dgid=GID(gid_of(address).exploded), sgid_index=gid_index(dev, own))
    gr.traffic_class = int(tclass, 0)
    return AH(pd, attr=AHAttr(gr=gr, is_global=1, port_num=1))


def main(dev, own, size, rounds, *destinations):
    ctx = Context(name=dev)
    pd, cq = PD(ctx), CQ(ctx, DEPTH)
    mr = MR(pd, int(size), e.IBV_ACCESS_LOCAL_WRITE)
    attr = QPAttr(port_num=1)
    attr.qkey = QKEY
    qp = QP(pd, QPInitAttr(qp_type=e.IBV_QPT_UD, scq=cq, rcq=cq, cap=QPCap(DEPTH, 1, 1, 1)), attr)
    handles = [handle(pd, dev, own, to) for to in destinations]
    total, posted, done = int(rounds) * len(handles), 0, 0
    while done < total:
        while posted < total and posted - done < DEPTH:
            wr = SendWR(opcode=e.IBV_WR_SEND, num_sge=1, sg=[SGE(mr.buf, int(size), mr.lkey)])
            wr.set_wr_ud(handles[posted % len(handles)], NOBODY, QKEY)
            qp.post_send(wr)
            posted += 1
        for wc in cq.poll(16)[1] or []:
            if wc.status != e.IBV_WC_SUCCESS:
                sys.exit(f"status {wc.status}")
            done += 1


main(*sys.argv[1:])
