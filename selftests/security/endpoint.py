#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""endpoint.py: one end of a connection, driven by injection.py: a JSON list [NAME, ARGUMENT...] a line calls a method,
and its result is printed as JSON. Decides nothing."""
import json
import sys
import time

import pyverbs.enums as e
from pyverbs.addr import AHAttr, GID, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

from device import gid_index, gid_of

SLOT = 256      # bytes of a receive; the first one is the place to send from


class End:
    def __init__(self, dev):
        self.dev, self.ctx = dev, Context(name=dev)
        self.pd = PD(self.ctx)
        self.mr = MR(self.pd, 16 * SLOT, e.IBV_ACCESS_LOCAL_WRITE)
        self.qp = None

    def create(self, kind):
        """A new QP in place of the last one, and its QPN."""
        if self.qp:
            self.qp.close()
            self.cq.close()
        self.cq, self.kind, self.posted = CQ(self.ctx, 32), getattr(e, f"IBV_QPT_{kind}"), 0
        init = QPInitAttr(qp_type=self.kind, scq=self.cq, rcq=self.cq, cap=QPCap(8, 8, 1, 1), sq_sig_all=1)
        attr = QPAttr(port_num=1)
        attr.qp_access_flags = e.IBV_ACCESS_REMOTE_WRITE
        self.qp = QP(self.pd, init, attr)
        return self.qp.qp_num

    def connect(self, own, peer, qpn, rq_psn, sq_psn, netdev=None):
        gr = GlobalRoute(dgid=GID(gid_of(peer).exploded), sgid_index=gid_index(self.dev, own, netdev))
        attr = QPAttr(port_num=1)
        attr.ah_attr = AHAttr(gr=gr, is_global=1, port_num=1)
        attr.dest_qp_num, attr.rq_psn, attr.sq_psn, attr.path_mtu = qpn, rq_psn, sq_psn, e.IBV_MTU_1024
        attr.max_dest_rd_atomic = attr.max_rd_atomic = 1
        attr.min_rnr_timer, attr.timeout, attr.retry_cnt, attr.rnr_retry = 12, 18, 7, 7
        self.qp.to_rts(attr)

    def recv(self):
        self.posted += 1
        self.qp.post_recv(RecvWR(wr_id=self.posted, num_sge=1,
                                 sg=[SGE(self.mr.buf + self.posted * SLOT, SLOT, self.mr.lkey)]))

    def send(self, text):
        self.mr.write(text, len(text))
        self.qp.post_send(SendWR(num_sge=1, sg=[SGE(self.mr.buf, len(text), self.mr.lkey)]))

    def wait(self, seconds):
        """[status, text received or ""] of the next completion, or nothing."""
        until = time.monotonic() + seconds
        while True:
            n, wcs = self.cq.poll(1)
            if n:
                wc = wcs[0]
                got = wc.opcode & e.IBV_WC_RECV and not wc.status
                return [wc.status, self.mr.read(wc.byte_len, wc.wr_id * SLOT).decode() if got else ""]
            if time.monotonic() > until:
                return None
            time.sleep(0.005)

    def psns(self, mask):
        attr, _ = self.qp.query(mask)
        return [attr.rq_psn, attr.sq_psn]


def main():
    end = End(sys.argv[1])
    print("null", flush=True)
    for line in sys.stdin:
        name, *args = json.loads(line)
        print(json.dumps(getattr(end, name)(*args)), flush=True)


if __name__ == "__main__":
    main()
