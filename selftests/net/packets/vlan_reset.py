#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""vlan_reset.py: a QP that was reset has no state of its last connection: that connection's interface may be deleted.

    h1: v1, v1.5, roan1  =veth=  v2, v2.5, roan2 :h2     in the first namespace
"""
import subprocess
import sys

import pyverbs.enums as e
from pyverbs.addr import AHAttr, GID, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr

from device import gid_index, gid_of
from ktap import check, plan

DEV = "roan1"
SIMPLE = e.IBV_QP_STATE


def ready(qp, own, peer):
    """Takes the QP from INIT to RTR."""
    attr = QPAttr(port_num=1)
    attr.qp_state, attr.path_mtu, attr.dest_qp_num, attr.rq_psn = e.IBV_QPS_RTR, e.IBV_MTU_1024, 2000, 0
    attr.max_dest_rd_atomic, attr.min_rnr_timer = 1, 12
    gr = GlobalRoute(dgid=GID(gid_of(peer).exploded), sgid_index=gid_index(DEV, own))
    attr.ah_attr = AHAttr(gr=gr, is_global=1, port_num=1)
    qp.modify(attr, SIMPLE | e.IBV_QP_AV | e.IBV_QP_PATH_MTU | e.IBV_QP_DEST_QPN | e.IBV_QP_RQ_PSN |
              e.IBV_QP_MAX_DEST_RD_ATOMIC | e.IBV_QP_MIN_RNR_TIMER)


def init(qp):
    attr = QPAttr(port_num=1)
    attr.qp_state, attr.qp_access_flags, attr.pkey_index = e.IBV_QPS_INIT, e.IBV_ACCESS_REMOTE_WRITE, 0
    qp.modify(attr, SIMPLE | e.IBV_QP_PKEY_INDEX | e.IBV_QP_PORT | e.IBV_QP_ACCESS_FLAGS)


def reset(qp):
    attr = QPAttr()
    attr.qp_state = e.IBV_QPS_RESET
    qp.modify(attr, SIMPLE)


def state(qp):
    return qp.query(SIMPLE)[0].qp_state


def lives(qp, own, peer):
    try:
        ready(qp, own, peer)
    except Exception as what:   # the type depends on pyverbs
        print(f"# {what}")
    return state(qp) == e.IBV_QPS_RTR


def main():
    ctx = Context(name=DEV)
    pd, cq = PD(ctx), CQ(ctx, 4)
    qps = [QP(pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=cq, rcq=cq, cap=QPCap(1, 1, 1, 1))) for _ in range(3)]
    for qp in qps:
        init(qp)
        ready(qp, "10.5.0.1", "10.5.0.2")
    reset(qps[0])
    reset(qps[1])
    init(qps[1])
    subprocess.run("ip -n h1 link del v1.5".split(), check=True)
    check("a QP connected over the VLAN is in ERR", state(qps[2]) == e.IBV_QPS_ERR)
    init(qps[0])
    for qp, was in zip(qps, ("RESET", "INIT")):
        check(f"a QP that was in {was} can be connected over another interface", lives(qp, "10.7.0.1", "10.7.0.2"))
    return plan()


sys.exit(main())
