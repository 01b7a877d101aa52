#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""ud_mtu.py: a UD QP sends and receives datagrams as long as the port's MTU allows, also if that has changed since. One
that is longer is dropped without an error, and the QP can still be used (C10-93.1.1).

Usage:  ud_mtu.py DEV ADDRESS PEER INTERFACE     (the interface has MTU 1500, and 4200 afterwards)
"""
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../net/packets"))

import pyverbs.enums as e
from pyverbs.addr import AH, AHAttr, GID, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

from device import gid_index, gid_of

QKEY, SIZE = 0x11111111, 2048


def main(dev, address, peer, interface):
    pd = PD(ctx := Context(name=dev))
    scq, rcq = CQ(ctx, 4), CQ(ctx, 4)
    mr = MR(pd, 2 * 4096, e.IBV_ACCESS_LOCAL_WRITE)
    attr = QPAttr(port_num=1)
    attr.qkey = QKEY
    qp = QP(pd, QPInitAttr(qp_type=e.IBV_QPT_UD, scq=scq, rcq=rcq, cap=QPCap(4, 4, 1, 1)), attr)

    def make_ah(destination):
        gr = GlobalRoute(dgid=GID(gid_of(destination).exploded), sgid_index=gid_index(dev, address))
        return AH(pd, attr=AHAttr(gr=gr, is_global=1, port_num=1))

    own, other = make_ah(address), make_ah(peer)

    def send(ah, seconds=5):
        """Status of the send, and of the receive: None if nothing comes."""
        qp.post_recv(RecvWR(num_sge=1, sg=[SGE(mr.buf, 40 + SIZE, mr.lkey)]))
        wr = SendWR(opcode=e.IBV_WR_SEND, num_sge=1, sg=[SGE(mr.buf + 4096, SIZE, mr.lkey)])
        wr.set_wr_ud(ah, qp.qp_num, QKEY)
        qp.post_send(wr)
        found, end = [None, None], time.monotonic() + seconds
        while time.monotonic() < end and None in found and found[0] in (None, e.IBV_WC_SUCCESS):
            for i, cq in enumerate((scq, rcq)):
                for wc in cq.poll(1)[1] or []:
                    found[i] = wc.status
        return found

    def set_mtu(mtu):
        subprocess.run(["ip", "link", "set", interface, "mtu", str(mtu)], check=True)

    def dropped():
        with open(f"/sys/class/infiniband/{dev}/ports/1/hw_counters/tx_dropped", encoding="ascii") as f:
            return int(f.read())

    set_mtu(4200)
    longer = send(own)
    set_mtu(1500)
    before = dropped()
    too_long = send(other, 1)
    after = dropped()
    set_mtu(4200)
    again = send(own)
    print(f"MTU 4200: {longer}; 1500: {too_long}, tx_dropped {before} -> {after}; 4200: {again}")
    sys.exit(longer != [e.IBV_WC_SUCCESS] * 2 or too_long != [e.IBV_WC_SUCCESS, None] or after != before + 1 or
             again != [e.IBV_WC_SUCCESS] * 2)


main(*sys.argv[1:])
