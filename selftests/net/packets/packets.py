#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""packets.py: invalid packets, one by one, and the one counter that each must increment.

Runs in namespace h2 (packets.sh); frames are sent by a packet socket on v1 in h1. QPs are made with pyverbs; packets
and their ICRCs are built here. For each packet all counters of the device, the replies and the completed receives are
checked: nothing else may have changed.

    h1: v1 (no device, this socket) ======== v2 roan2 :h2
"""
import json
import os
import random
import struct
import subprocess
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

from roce_packets import (ACK, ATOMIC_ACK, CNP, FETCH_ADD, GSI_QKEY, H1, H2, MTU, OTHER, PEER_QPN, PSN, QKEY, READ, SACK, SECOND,
                   SEND_FIRST, SEND_INV, SEND_LAST, SEND_MIDDLE, SEND_ONLY, UC, UD_SEND, WRITE_FIRST, WRITE_ONLY, Wire, bth, checksum, datagram, deth,
                   fragments, ip_header, raw, reth)
from device import gid_index, gid_of, shown
from ktap import check, plan, result

DEV = os.environ["H2DEV"]
# The RDMA core shows a device's parameters in its own network namespace only, by default the initial one.
PARAMS = f"/proc/1/root/sys/class/infiniband/{DEV}/ports/1/cc_param/"
BYSTANDERS = ("rcvd_skbs", "rcvd_bytes", "sent_skbs", "sent_bytes")    # not checked: they follow from the others


def setting(name, value):
    with open(PARAMS + name, "w") as f:
        f.write(str(value))


# ---- the device under test ----

class Victim:
    def __init__(self, wire):
        self.wire = wire
        self.ctx = Context(name=DEV)
        self.pd = PD(self.ctx)
        self.cq = CQ(self.ctx, 100)
        self.mr = MR(self.pd, 8192, e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ |
                     e.IBV_ACCESS_REMOTE_ATOMIC)
        self.uc_qp, self.ud = self.connected(e.IBV_QPT_UC), self.ud_qp()
        self.rc6 = self.connected(e.IBV_QPT_RC, family=6)
        self.rc = self.connected(e.IBV_QPT_RC)

    def qp(self, kind):
        init = QPInitAttr(qp_type=kind, scq=self.cq, rcq=self.cq, cap=QPCap(8, 8, 1, 1))
        attr = QPAttr(port_num=1)
        attr.qkey = QKEY
        if kind == e.IBV_QPT_RC:
            attr.qp_access_flags = e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ | e.IBV_ACCESS_REMOTE_ATOMIC
        return QP(self.pd, init, attr)

    def ud_qp(self):
        return self.qp(e.IBV_QPT_UD)

    def connected(self, kind, family=4, rts=True, timeout=14, static_rate=0, reads=4, label=0, mtu=e.IBV_MTU_1024):
        qp = self.qp(kind)
        gr = GlobalRoute(dgid=GID(gid_of(H1[family]).exploded), sgid_index=gid_index(DEV, H2[family]))
        gr.flow_label = label
        attr = QPAttr(port_num=1)
        attr.ah_attr = AHAttr(gr=gr, is_global=1, port_num=1, static_rate=static_rate)
        attr.dest_qp_num, attr.rq_psn, attr.sq_psn, attr.path_mtu = PEER_QPN, PSN, 1, mtu
        attr.max_dest_rd_atomic = attr.max_rd_atomic = reads
        attr.min_rnr_timer, attr.timeout, attr.retry_cnt, attr.rnr_retry = 12, timeout, 1, 1
        if kind == e.IBV_QPT_RC:
            attr.qp_access_flags = e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ | e.IBV_ACCESS_REMOTE_ATOMIC
        else:
            attr.qp_access_flags = e.IBV_ACCESS_REMOTE_WRITE
        (qp.to_rts if rts else qp.to_rtr)(attr)
        return qp

    def post(self, qp, length=4096):
        qp.post_recv(RecvWR(num_sge=1, sg=[SGE(self.mr.buf, length, self.mr.lkey)]))

    def polled(self):
        got = []
        while True:
            n, wcs = self.cq.poll(16)
            if not n:
                return got
            got += wcs

    def counters(self):
        time.sleep(0.02)    # the core caches counters for 10 ms
        out = subprocess.run(["rdma", "-j", "statistic", "show", "link", f"{DEV}/1"], check=True, capture_output=True)
        return {k: n for k, n in json.loads(out.stdout)[0].items() if k not in ("ifname", "port")}

    def effect(self, packets):
        """Sends; returns the changes of the counters, the replies and the completions."""
        self.polled()
        self.wire.replies()
        before = self.counters()
        began = time.monotonic()
        for p in packets:
            self.wire.send(p)
        self.took = time.monotonic() - began
        after = self.counters()
        moved = {k: after[k] - before[k] for k in after if after[k] != before[k] and k not in BYSTANDERS}
        return moved, self.wire.replies(), self.polled()

    def expect(self, name, packets, moved, syndrome=None, statuses=(), within=None):
        """@packets must change exactly @moved. The reply has @syndrome, or there is none; completions have @statuses.
        Returns False, without a result, if sending took longer than @within seconds."""
        packets = packets if isinstance(packets, list) else [packets]
        seed = os.urandom(64)
        self.mr.write(seed, 64, 4096 + 1024)
        got, replies, wcs = self.effect(packets)
        if within and self.took > within:
            return False
        why = []
        if got != moved:
            why.append(f"counters {got}, expected {moved}")
        said = [r[12] for r in replies]
        if said != ([] if syndrome is None else [syndrome]):
            why.append(f"answers {[hex(s) for s in said]}, expected {'none' if syndrome is None else hex(syndrome)}")
        if [w.status for w in wcs] != list(statuses):
            why.append(f"completions {[w.status for w in wcs]}, expected {list(statuses)}")
        if self.mr.read(64, 4096 + 1024) != seed:
            why.append("memory without write access was written")
        result(not why, name, "\n".join(why))
        return True


# ---- the cases ----

def truncated(v):
    one = {"rx_truncated": 1}
    for n in (0, 1, 4, 11, 12, 15, 17, 18):
        v.expect(f"truncated: {n} bytes of UDP payload", raw((bth(SEND_ONLY, v.rc.qp_num) + bytes(8))[:n]), one)
    for op, name, need in ((WRITE_ONLY, "RETH", 16), (READ, "RETH", 16), (FETCH_ADD, "AtomicETH", 28), (ACK, "AETH", 4),
                           (UD_SEND, "DETH", 8), (CNP, "CNP's reserved bytes", 16), (SACK, "SACK", 28)):
        v.expect(f"truncated: opcode {op:#x} without the end of its {name}",
                 datagram(bth(op, v.rc.qp_num) + bytes(need - 4)), one)
    v.expect("truncated: padding, but nothing to pad", datagram(bth(SEND_ONLY, v.rc.qp_num, pad=3)), one)
    v.expect("truncated: a UDP length beyond the IP packet", raw(bth(4, v.rc.qp_num) + bytes(8), udp_len=200), one)
    v.expect("truncated: a UDP length of 3", raw(bth(4, v.rc.qp_num) + bytes(8), udp_len=3), one)
    v.expect("truncated, IPv6: 7 bytes of UDP payload", raw(bytes(7), family=6), one)


def corrupt(v):
    one = {"rx_bad_icrc": 1}
    body = bth(SEND_ONLY, v.rc.qp_num) + bytes(range(64))
    v.expect("corrupt: ICRC", datagram(body, good=False), one)
    good = datagram(body)
    # Without the destination QP and the opcode, whose change other rules would catch first: bits that only the ICRC
    # protects.
    for at, name in ((4, "IP identification"), (20, "source port"), (28 + 1, "MigReq"), (28 + 11, "PSN"),
                     (28 + 13, "payload"), (len(good) - 5, "last byte of the payload"),
                     (len(good) - 1, "last byte of the ICRC")):
        bad = bytearray(good)
        bad[at] ^= 0x40
        if at < 20:
            bad[10:12] = b"\0\0"
            bad[10:12] = struct.pack(">H", checksum(bytes(bad[:20])))
        v.expect(f"corrupt: a bit of the {name}", bytes(bad), one)
    v.expect("corrupt: datagram", datagram(bth(UD_SEND, v.ud.qp_num) + deth() + bytes(16), good=False), one)
    v.expect("corrupt, IPv6", datagram(bth(SEND_ONLY, v.rc6.qp_num) + bytes(16), family=6, good=False), one)
    v.expect("corrupt: CNP", datagram(bth(CNP, v.rc.qp_num) + bytes(16), good=False), one)
    v.expect("corrupt: multicast", datagram(bth(UD_SEND, 0xFFFFFF) + deth() + bytes(16), dst="224.0.0.1", good=False),
             one)


def spoofed(v):
    one = {"rx_wrong_peer": 1}
    body = bth(SEND_ONLY, v.rc.qp_num) + bytes(16)
    v.expect("spoofed: RC from another address", datagram(body, src=OTHER[4]), one)
    v.expect("spoofed: RC to another address of ours", datagram(body, dst=SECOND[4]), one)
    v.expect("spoofed: RC over IPv6 to an IPv4 QP", datagram(body, family=6), one)
    v.expect("spoofed: RC over IPv4 to an IPv6 QP", datagram(bth(SEND_ONLY, v.rc6.qp_num) + bytes(16)), one)
    v.expect("spoofed, IPv6", datagram(bth(SEND_ONLY, v.rc6.qp_num) + bytes(16), family=6, src=OTHER[6]), one)
    v.expect("spoofed: ACK", datagram(bth(ACK, v.rc.qp_num) + bytes(4), src=OTHER[4]), one)
    v.expect("spoofed: SACK", datagram(bth(SACK, v.rc.qp_num, extensions=3) + bytes(28), src=OTHER[4]), one)
    v.expect("spoofed: UC", datagram(bth(UC | SEND_ONLY, v.uc_qp.qp_num) + bytes(16), src=OTHER[4]), one)
    v.expect("spoofed: CNP", datagram(bth(CNP, v.rc.qp_num) + bytes(16), src=OTHER[4]), {"rp_cnp_ignored": 1})
    v.expect("CNP of the peer", datagram(bth(CNP, v.rc.qp_num) + bytes(16)), {"rp_cnp_handled": 1, "rcvd_pkts": 1})
    v.expect("CNP for an idle UD QP", datagram(bth(CNP, v.ud.qp_num) + bytes(16)), {"rp_cnp_ignored": 1, "rcvd_pkts": 1})


def headers(v):
    known = set(range(0x15)) | {0x16, 0x17, 0x1C, 0x1D} | {UC | o for o in range(12)} | {0x64, 0x65, CNP, SACK}
    unknown = [o for o in range(256) if o not in known]
    v.expect(f"{len(unknown)} unknown opcodes", [datagram(bth(o, v.rc.qp_num) + bytes(64)) for o in unknown],
             {"rx_bad_opcode": len(unknown)})
    v.expect("transport header versions 1 to 15",
             [datagram(bth(SEND_ONLY, v.rc.qp_num, ver=n) + bytes(8)) for n in range(1, 16)], {"rx_bad_version": 15})
    numbers = [0, 2, 15, 0xFFFFFE, v.ud.qp_num ^ 0x800000]
    v.expect("QP numbers that do not exist", [datagram(bth(SEND_ONLY, n) + bytes(8)) for n in numbers],
             {"rx_unknown_qp": len(numbers)})
    v.expect("UC packet to an RC QP", datagram(bth(UC | SEND_ONLY, v.rc.qp_num) + bytes(8)), {"rx_wrong_service": 1})
    v.expect("RC packet to a UC QP", datagram(bth(SEND_ONLY, v.uc_qp.qp_num) + bytes(8)), {"rx_wrong_service": 1})
    v.expect("RC packet to QP 1", datagram(bth(SEND_ONLY, 1) + bytes(8)), {"rx_wrong_service": 1})
    v.expect("datagram to an RC QP", datagram(bth(UD_SEND, v.rc.qp_num) + deth() + bytes(8)), {"rx_wrong_service": 1})
    v.expect("P_Key 0x1234", datagram(bth(SEND_ONLY, v.rc.qp_num, pkey=0x1234) + bytes(8)), {"rx_bad_pkey": 1})
    v.expect("P_Key 0x1234 to a UD QP", datagram(bth(UD_SEND, v.ud.qp_num, pkey=0x1234) + deth() + bytes(8)), {"rx_bad_pkey": 1})
    v.expect("P_Key 0", datagram(bth(SEND_ONLY, v.rc.qp_num, pkey=0) + bytes(8)), {"rx_bad_pkey": 1})
    v.expect("IPv4 options", datagram(bth(SEND_ONLY, v.rc.qp_num) + bytes(8), options=b"\x01\x01\x01\x00"),
             {"rx_invalid": 1})
    inner = datagram(bth(SEND_ONLY, v.rc6.qp_num) + bytes(8), family=6)
    extended = ip_header(6, H1[6], H2[6], len(inner) - 40 + 8, next_header=60) + b"\x11\0\x01\x04\0\0\0\0" + inner[40:]
    v.expect("IPv6 destination options", extended, {"rx_invalid": 1})
    for qpn, why in (v.ud.qp_num, "rx_wrong_peer"), (0xFFFFFF, "rx_no_group_member"):
        v.expect(f"a group that no QP has joined, {why}", datagram(bth(UD_SEND, qpn) + deth() + bytes(8), dst="224.0.0.1"), {why: 1})
    v.expect("a broadcast address", datagram(bth(UD_SEND, v.ud.qp_num) + deth() + bytes(8), dst="255.255.255.255"), {"rx_wrong_peer": 1})
    init = v.qp(e.IBV_QPT_RC)
    v.expect("a QP in INIT", datagram(bth(SEND_ONLY, init.qp_num) + bytes(8)), {"rx_bad_state": 1})
    init.close()


def violations(v):
    """The port attributes agree with the counters."""
    bad_pkey = datagram(bth(SEND_ONLY, v.rc.qp_num, pkey=0x1234) + bytes(8))
    bad_qkey = datagram(bth(UD_SEND, v.ud.qp_num) + deth(qkey=QKEY + 1) + bytes(8))
    before = v.ctx.query_port(1)
    v.effect([bad_pkey, bad_qkey, bad_qkey])
    after = v.ctx.query_port(1)
    check("port attributes: P_Key and Q_Key violations", after.bad_pkey_cntr - before.bad_pkey_cntr == 1,
          after.qkey_viol_cntr - before.qkey_viol_cntr == 2)


def datagrams(v):
    def ud(size=16, **kw):
        return datagram(bth(UD_SEND, v.ud.qp_num) + deth(**kw) + bytes(size))

    heard = {"rcvd_pkts": 1}
    v.expect("UD: wrong Q_Key", ud(qkey=QKEY + 1), {"rx_bad_qkey": 1, **heard})
    v.expect("UD: no receive", ud(), {"rx_no_wqe": 1, **heard})
    v.post(v.ud, 48)
    v.expect("UD: longer than the receive", ud(), {"rx_too_long": 1, **heard})
    v.expect("UD: just as long as the receive", ud(8), {"rdma_recvs": 1, **heard}, statuses=[0])
    v.post(v.ud)
    v.expect("UD: P_Key of a limited member", datagram(bth(UD_SEND, v.ud.qp_num, pkey=0x7FFF) + deth() + bytes(8)),
             {"rdma_recvs": 1, **heard}, statuses=[0])
    v.post(v.ud)
    pieces = fragments(bth(UD_SEND, v.ud.qp_num) + deth() + bytes(64), 77)
    v.expect("UD: half a fragmented packet", pieces[0], {})
    v.expect("UD: the other half of a fragmented packet", pieces[1], {"rdma_recvs": 1, **heard}, statuses=[0])
    v.expect("UC: no receive", datagram(bth(UC | SEND_ONLY, v.uc_qp.qp_num) + bytes(8)), {"rx_no_wqe": 1, **heard})
    v.post(v.uc_qp, 8)
    long = [datagram(bth(UC | op, v.uc_qp.qp_num, psn=PSN + n) + bytes(MTU)) for n, op in enumerate((SEND_FIRST, SEND_MIDDLE))]
    v.expect("UC: longer than the receive", long, {"rx_too_long": 1, "rx_uc_lost": 1, "rcvd_pkts": 2})
    v.expect("UC: just as long as the receive", datagram(bth(UC | SEND_ONLY, v.uc_qp.qp_num) + bytes(8)),
             {"rdma_recvs": 1, **heard}, statuses=[0])
    v.expect("UC: MIDDLE of nothing", datagram(bth(UC | SEND_MIDDLE, v.uc_qp.qp_num, psn=500) + bytes(MTU)),
             {"rx_uc_lost": 1, **heard})
    v.expect("UC: WRITE with an unknown R_Key",
             datagram(bth(UC | WRITE_ONLY, v.uc_qp.qp_num) + reth(v.mr.buf, v.mr.rkey ^ 0xABC00, 8) + bytes(8)),
             {"rx_access": 1, **heard})
    v.expect("UC: FIRST shorter than the MTU", datagram(bth(UC | SEND_FIRST, v.uc_qp.qp_num) + bytes(100)),
             {"rx_invalid": 1, **heard})


def notifications(v):
    """CE marks and the CNPs for them: at most one in 100 ms (packets.sh); none for packets that congestion control ignores."""
    heard = {"rcvd_pkts": 1, "rcvd_ce_pkts": 1}
    marked = {**heard, "np_ecn_marked_roce_packets": 1}
    told = {**marked, "np_cnp_sent": 1, "sent_pkts": 1}

    def write(qp, family=4, psn=PSN, tos=3):
        return datagram(bth(WRITE_ONLY, qp.qp_num, psn=psn) + reth(v.mr.buf, v.mr.rkey, 8) + bytes(8), family, tos=tos)

    def cnp(name, packet, qpn):
        v.wire.replies()
        v.wire.send(packet)
        until, got = time.monotonic() + 10, []
        while not got and time.monotonic() < until:
            time.sleep(0.02)
            got = v.wire.replies()
        want = struct.pack(">BBHII", CNP, 0, 0xFFFF, 1 << 30 | qpn, 0) + bytes(16)
        result([g[:-4] for g in got] == [want] and v.wire.tos == [48 << 2], name,
               f"{[g.hex() for g in got]}, expected {want.hex()}; traffic classes {v.wire.tos}")

    for family in (4, 6):
        for within in [0.09] * 20 + [None]:     # retry: a stalled machine lets the interval pass
            qp = v.connected(e.IBV_QPT_RC, family)
            if v.expect(f"CE, IPv{family}: of two only the first gets a CNP", [write(qp, family), write(qp, family, PSN + 1)],
                        {**{k: 2 for k in marked}, "np_cnp_sent": 1, "sent_pkts": 1}, 0, within=within):
                break
            qp.close()
        time.sleep(0.12)
        cnp(f"CE, IPv{family}: the next packet after the interval sends the second's CNP",
            write(qp, family, PSN + 2, tos=0), PEER_QPN)
        time.sleep(0.12)
        v.expect(f"CE, IPv{family}: no further CNP", write(qp, family, PSN + 3, tos=0), {"rcvd_pkts": 1})
        cnp(f"CE, IPv{family}: the CNP's bytes, DSCP 48, Not-ECT", write(qp, family, PSN + 4), PEER_QPN)
        qp.close()
    qp = v.connected(e.IBV_QPT_RC)
    for what, op, size in (("an ACK", ACK, 3), ("a SACK", SACK, 27), ("an atomic result", ATOMIC_ACK, 11)):
        v.expect(f"CE on {what}", datagram(bth(op, qp.qp_num, psn=9) + b"\x1f" + bytes(size), tos=3), {"stale_response": 1, **heard})
    v.expect("CE on a datagram to QP 1", datagram(bth(UD_SEND, 1) + deth(GSI_QKEY) + bytes(256), tos=3), {"rdma_recvs": 1, **heard})
    v.expect("BECN in an ACK counts as a CNP", datagram(bth(ACK, qp.qp_num, psn=9, becn=True) + b"\x1f\0\0\0"),
             {"stale_response": 1, "rp_cnp_handled": 1, "rcvd_pkts": 1})
    v.expect("CE on a CNP", datagram(bth(CNP, qp.qp_num) + bytes(16), tos=3), {"rp_cnp_handled": 1, **heard})
    v.expect("CE from another peer", datagram(bth(SEND_ONLY, qp.qp_num) + bytes(16), src=OTHER[4], tos=3), {"rx_wrong_peer": 1})
    v.expect("ECT(0) alone", datagram(bth(CNP, qp.qp_num) + bytes(16), tos=2), {"rp_cnp_handled": 1, "rcvd_pkts": 1})
    ud = datagram(bth(UD_SEND, v.ud.qp_num) + deth(src_qpn=0x55) + bytes(16), tos=3)
    stray = bth(UD_SEND, v.ud.qp_num) + deth(src_qpn=0x66, qkey=QKEY + 1) + bytes(16)
    v.expect("CE on a datagram with a wrong Q_Key: no CNP", datagram(stray, tos=3), {"rx_bad_qkey": 1, **heard})
    v.expect("CE on a datagram", ud, {"rx_no_wqe": 1, **told}, 0)
    time.sleep(0.12)
    cnp("CE on a datagram: the CNP goes to the QP it came from", ud, 0x55)
    for within in [0.09] * 20 + [None]:
        time.sleep(0.12)
        if v.expect("CE on two datagrams: of two only the first gets a CNP", [ud, ud],
                    {"rx_no_wqe": 2, **{k: 2 for k in marked}, "np_cnp_sent": 1, "sent_pkts": 1}, 0, within=within):
            break
    time.sleep(0.12)
    v.expect("a wrong Q_Key does not send the pending CNP", datagram(stray), {"rx_bad_qkey": 1, "rcvd_pkts": 1})
    cnp("one with the right Q_Key sends it", datagram(bth(UD_SEND, v.ud.qp_num) + deth(src_qpn=0x55) + bytes(16)), 0x55)
    qp.close()


def scopes(v):
    """Which flows share the limit of one CNP in 100 ms, by cnp_scope: two QPs have one destination, a third another,
    all one port."""
    qps = {v.connected(e.IBV_QPT_RC): 4, v.connected(e.IBV_QPT_RC): 4, v.connected(e.IBV_QPT_RC, 6): 6}
    psn = PSN

    def marked(times):
        nonlocal psn
        v.wire.replies()
        packets = [datagram(bth(WRITE_ONLY, qp.qp_num, psn=psn + i) + reth(v.mr.buf, v.mr.rkey, 8) + bytes(8), family, tos=3)
                   for i in range(times) for qp, family in qps.items()]
        psn += times
        began = time.monotonic()
        for packet in packets:
            v.wire.send(packet)
        took = time.monotonic() - began
        time.sleep(0.12)
        return sum(r[0] == CNP for r in v.wire.replies()), took

    for scope, name, n in ((1, "destination", 2), (2, "port", 1), (0, "queue pair", 3)):
        setting("cnp_scope", scope)
        for _ in range(20):     # retry: a stalled machine lets the interval pass
            time.sleep(0.12)
            (first, took), (second, took_too) = marked(2), marked(1)
            if max(took, took_too) < 0.09:
                break
        result(first == second == n, f"CNPs of three marked flows, scope {name}: {n} in an interval", f"{first}, then {second}")
    for qp in qps:
        qp.close()


def sequence(v):
    """One RC QP with gaps, duplicates and missing receives; it must still work afterwards."""
    no_credit = 0x00    # ACK without credits: an ACK also has the number of receives
    qp, heard, said = v.connected(e.IBV_QPT_RC), {"rcvd_pkts": 1}, {"rcvd_pkts": 1, "sent_pkts": 1}

    def send(psn, size=16, **kw):
        return datagram(bth(SEND_ONLY, qp.qp_num, psn=psn, ack=True, **kw) + bytes(size))

    v.expect("RC: PSN ahead", send(PSN + 5), {"out_of_seq_request": 1, "rx_early_kept": 1, **said}, 0x60)
    result((state := shown(DEV, qp))["early_pkts"] == 1 and state["early_bytes"] > 16, "... is seen in early_pkts and early_bytes")
    v.expect("RC: PSN too far ahead: dropped, silence", send(PSN + 2048), {"rx_after_nak": 1, **heard})
    v.expect("RC: no receive", send(PSN), {"send_rnr_err": 1, **said}, 0x20 | 12)
    v.post(qp)
    v.expect("RC: SEND with a receive posted", send(PSN), {"rdma_recvs": 1, **said}, no_credit, [0])
    v.expect("RC: a duplicate SEND", send(PSN), {"duplicate_request": 1, **said}, no_credit)
    v.expect("RC: a PSN from before the beginning", send(PSN - 1000), {"duplicate_request": 1, **said}, no_credit)
    v.expect("RC: a duplicate READ that is not in the replay buffer",
             datagram(bth(READ, qp.qp_num, psn=PSN - 9) + reth(v.mr.buf, v.mr.rkey, 8)), {"rx_after_nak": 1, **heard})
    for psn, what in ((0, "of no request"), (0x800000, "half of the PSN space away"), (0xFFFFFF, "one before the first PSN")):
        v.expect(f"RC: ACK of PSN {psn:#x}, {what}", datagram(bth(ACK, qp.qp_num, psn=psn) + b"\x1f\0\0\0"), {"stale_response": 1, **heard})
    v.expect("RC: READ response to no READ", datagram(bth(0x10, qp.qp_num, psn=1) + b"\x1f\0\0\0" + bytes(8)),
             {"stale_response": 1, **heard})
    sacks = [datagram(bth(SACK, qp.qp_num, psn=psn, extensions=version) + b"\x1f" + bytes(6) + b"\x05" + b"\xff" * 20)
             for psn in (1, 0xFFFFFF, PSN) for version in (0, 1, 2, 3, 4, 8, 15)]
    v.expect("RC: SACKs of nothing", sacks, {"stale_response": len(sacks), "rcvd_pkts": len(sacks)})
    v.expect("RC: NAK of nothing", datagram(bth(ACK, qp.qp_num, psn=1) + b"\x62\0\0\0"), {"stale_response": 1, **heard})
    v.post(qp)
    v.expect("RC: the next SEND arrives after all these", send(PSN + 1), {"rdma_recvs": 1, **said}, no_credit, [0])
    v.post(qp), v.post(qp)
    # With the MSN, which counts a complete message, they say how many receives were posted. PSN + 5 was kept.
    for op, credits, done in (SEND_FIRST, 2, {}), (SEND_MIDDLE, 2, {}), (SEND_LAST, 0, {"rdma_recvs": 2}):
        v.expect(f"RC: credits after opcode {op} of a message: {credits}",
                 datagram(bth(op, qp.qp_num, psn=PSN + 2 + op, ack=True) + bytes(MTU)), {**said, **done}, credits, [0, 0] if done else [])
    qp.close()
    early = v.connected(e.IBV_QPT_RC, rts=False)
    v.expect("RC: ACK to a QP in RTR, which cannot have sent", datagram(bth(ACK, early.qp_num, psn=1) + b"\x1f\0\0\0"),
             {"rx_bad_state": 1, **heard})
    early.close()


def migration(v):
    """Path migration is not supported: sent packets have MigReq 1, and a received MigReq is ignored."""
    qp, psn, where = v.connected(e.IBV_QPT_RC), PSN, reth(v.mr.buf, v.mr.rkey, 8)
    for mig in (True, False):
        for name, op, body in (("WRITE", WRITE_ONLY, where + bytes(8)), ("READ", READ, where)):
            moved, replies, _ = v.effect([datagram(bth(op, qp.qp_num, psn=psn, ack=True, mig=mig) + body)])
            psn, flags = psn + 1, [r[1] & 0x40 for r in replies]
            result(moved == {"rcvd_pkts": 1, "sent_pkts": 1} and flags == [0x40],
                   f"MigReq {int(mig)} in a {name}: executed, and the reply has 1", f"counters {moved}, flags {flags}")
    qp.close()


def management(v):
    """Performance management MADs to QP 1: supported attributes can be read; a Set is refused by status."""
    perf, get, put, get_resp, us = 4, 1, 2, 0x81, 0x55
    class_port_info, port_counters, port_counters_ext = 1, 0x12, 0x1D

    def mad(attribute, method=get):
        return struct.pack(">BBBBHHQHHI", 1, perf, 1, method, 0, 0, 0x1122334455667788, attribute, 0, 0) + bytes(232)

    def ask(attribute, *methods):
        """The counters before the request, and header and data of the first reply."""
        v.wire.replies()
        before = v.counters()
        for method in methods or (get,):
            v.wire.send(datagram(bth(UD_SEND, 1) + deth(GSI_QKEY, us) + mad(attribute, method)))
        until, got = time.monotonic() + 10, []
        while not got and time.monotonic() < until:     # the core answers from a work queue
            time.sleep(0.01)
            got = v.wire.replies()
        if len(got) != 1 or len(got[0]) != 280 or got[0][5:8] != us.to_bytes(3, "big"):
            return before, None, b""
        answer = got[0][20:-4]
        return before, struct.unpack(">BBBBHHQH", answer[:18]), answer[64:]

    def header(attribute, status=0):
        return 1, perf, 1, get_resp, status, 0, 0x1122334455667788, attribute

    _, said, data = ask(class_port_info)
    result(said == header(class_port_info) and data[:4] == b"\x01\x01\x12\x00",
           "MAD: ClassPortInfo: version 1, counters of 64 bits, port_xmit_wait", f"{said}, {data[:4].hex()}")
    for attribute, name, at, sizes in ((port_counters, "PortCounters", 24, ">4I"),
                                       (port_counters_ext, "PortCountersExtended", 8, ">4Q")):
        before, said, data = ask(attribute)
        want = (before["sent_bytes"] // 4, (before["rcvd_bytes"] + 280) // 4, before["sent_pkts"], before["rcvd_pkts"] + 1)
        got = struct.unpack_from(sizes, data, at) if said else None
        result(said == header(attribute) and data[1] == 1 and got == want,
               f"MAD: {name}: words and packets, sent and received", f"{said}, {got}, expected {want}")
    for method, attribute, status, name in ((put, port_counters, 8, "a Set: no such method"),
                                            (get, 0x7777, 12, "an unknown attribute")):
        _, said, _ = ask(attribute, method)
        result(said == header(attribute, status), f"MAD: {name}", f"{said}")
    # Two hosts that reply to each other's replies would never stop. Requests are served in order, so a wrong reply
    # would come first.
    _, said, _ = ask(class_port_info, get_resp, get)
    result(said == header(class_port_info), "MAD: a response gets no reply", f"{said}")


def refusals(v):
    """Requests that an RC QP refuses with a NAK, and that put it into ERR."""
    area, key = v.mr.buf, v.mr.rkey
    invalid, access = {"resp_invalid_requests": 1}, {"resp_remote_access_errors": 1}
    for name, op, body, moved, syndrome in (
            ("MIDDLE of nothing", SEND_MIDDLE, bytes(MTU), invalid, 0x61),
            ("FIRST shorter than the MTU", SEND_FIRST, bytes(100), invalid, 0x61),
            ("longer than the MTU", SEND_ONLY, bytes(MTU + 4), invalid, 0x61),
            ("WRITE with a RETH length below the payload's", WRITE_ONLY, reth(area, key, 4) + bytes(8), invalid, 0x61),
            ("WRITE with a RETH length above the payload's", WRITE_ONLY, reth(area, key, 64) + bytes(8), invalid, 0x61),
            ("READ of more than 2 GiB", READ, reth(area, key, 0x80000001), invalid, 0x61),
            ("atomic on an odd address", FETCH_ADD, struct.pack(">QIQQ", area + 4, key, 1, 0), invalid, 0x61),
            ("WRITE with an unknown R_Key", WRITE_ONLY, reth(area, key ^ 0xABC00, 8) + bytes(8), access, 0x62),
            ("WRITE past the end", WRITE_ONLY, reth(area + 8188, key, 8) + bytes(8), access, 0x62),
            ("WRITE whose address wraps", WRITE_ONLY, reth(2**64 - 4, key, 8) + bytes(8), access, 0x62),
            ("WRITE FIRST with only its end outside", WRITE_FIRST, reth(area, key, 8193) + bytes(MTU),
             access, 0x62),
            ("READ past the end", READ, reth(area + 8, key, 8192), access, 0x62),
            ("READ of 2 GiB", READ, reth(area, key, 0x80000000), access, 0x62),
            ("atomic with an unknown R_Key", FETCH_ADD, struct.pack(">QIQQ", area, key ^ 0xABC00, 1, 0), access, 0x62)):
        qp = v.connected(e.IBV_QPT_RC)
        pad = -len(body) % 4
        v.expect(f"RC refused: {name}", datagram(bth(op, qp.qp_num, pad=pad) + body + bytes(pad)),
                 {"rcvd_pkts": 1, "sent_pkts": 1, **moved}, syndrome)
        attr, _ = qp.query(e.IBV_QP_STATE)
        if attr.qp_state != e.IBV_QPS_ERR:
            result(False, f"RC refused: {name}: the QP is in error", f"state {attr.qp_state}")
        qp.close()
    for name, op, body, status, moved, syndrome in (
            ("SEND longer than the receive", SEND_ONLY, bytes(64), e.IBV_WC_LOC_LEN_ERR, invalid, 0x61),
            ("SEND_WITH_INV of an unknown key", SEND_INV, struct.pack(">I", 0xABCDEF) + bytes(8),
             e.IBV_WC_LOC_ACCESS_ERR, access, 0x62)):
        qp = v.connected(e.IBV_QPT_RC)
        v.post(qp, 32)
        v.expect(f"RC refused: {name}", datagram(bth(op, qp.qp_num) + body),
                 {"rcvd_pkts": 1, "sent_pkts": 1, "resp_cqe_error": 1, **moved}, syndrome, [status])
        qp.close()


def never(v):
    """A timeout of 0 disables the ACK timer. A loss is detected by a later packet only, so later requests must be
    sent."""
    qp = v.connected(e.IBV_QPT_RC, timeout=0)
    v.wire.replies()
    sent = []
    for _ in range(8):     # more than the shadow ring's first size
        qp.post_send(SendWR(opcode=e.IBV_WR_RDMA_WRITE, num_sge=1, sg=[SGE(v.mr.buf, 8, v.mr.lkey)], send_flags=e.IBV_SEND_SIGNALED,
                            imm_data=0))
        sent += v.wire.replies()
    result([s[0] for s in sent] == [WRITE_ONLY] * 8, "timeout 0: a request does not wait for an earlier ACK", f"{sent}")
    qp.close()
    v.polled()


def trains(v):
    """Trains: several packets in one skb, as from GSO or GRO."""
    def case(name, frame, moved, statuses):
        v.polled()
        before = v.counters()
        try:
            v.wire.train.send(frame)
        except OSError as err:
            result(True, f"train: {name} # SKIP this kernel accepts no GSO skb from a packet socket: {err}")
            return
        after = v.counters()
        got = {k: after[k] - before[k] for k in after if after[k] != before[k] and k not in BYSTANDERS}
        wcs = [w.status for w in v.polled()]
        result(got == moved and wcs == statuses, f"train: {name}", f"counters {got}, expected {moved}; completions {wcs}")

    body = bth(UD_SEND, v.ud.qp_num) + deth() + bytes(48)
    size = len(body) + 4
    for _ in range(8):
        v.post(v.ud, 256)
    case("four datagrams", v.wire.train_of([body] * 4, size), {"rcvd_pkts": 4, "rdma_recvs": 4}, [0] * 4)
    case("four, the second corrupt", v.wire.train_of([body] * 4, size, [1]), {"rcvd_pkts": 3, "rdma_recvs": 3, "rx_bad_icrc": 1}, [0] * 3)
    case("three, the last one short", v.wire.train_of([body] * 2 + [bth(SEND_ONLY, v.rc.qp_num)], size, [2]),
         {"rcvd_pkts": 2, "rdma_recvs": 1, "rx_no_wqe": 1, "rx_bad_icrc": 1}, [0])
    stray = bth(SEND_ONLY, 2) + bytes(len(body) - 12)
    case("two for an unknown QP", v.wire.train_of([stray] * 2, size), {"rx_unknown_qp": 2}, [])
    case("a wrong segment size", v.wire.train_of([stray] * 3, 13), {"rx_truncated": 3 * size // 13 + bool(3 * size % 13)}, [])
    qp = v.connected(e.IBV_QPT_RC, reads=3)     # adapters round their own limit up to 4
    reads = [bth(READ, qp.qp_num, psn=PSN + n) + reth(v.mr.buf, v.mr.rkey, 8) for n in range(8)]
    v.effect([datagram(r) for r in reads[:4]])
    v.expect("the first of four READs again", datagram(reads[0]), {"duplicate_request": 1, "rcvd_pkts": 1, "sent_pkts": 1}, 3)	# MSN 1, not 4
    case("four READs, of three agreed", v.wire.train_of(reads[4:], 32), {"rcvd_pkts": 4, "sent_pkts": 4}, [])
    qp.close()


def noise(v):
    """Random bytes, half of them with a right ICRC, from an address that is not the peer of any QP."""
    rng, packets = random.Random(4791), []
    numbers = [v.rc.qp_num, v.uc_qp.qp_num, v.ud.qp_num, v.rc6.qp_num, 0, 1, 0xFFFFFF]
    for _ in range(1500):
        body = bytearray(rng.randbytes(12 + 4 * rng.randrange(0, 40)))
        if rng.random() < 0.9:
            body[1] &= 0xF0
            body[2:4] = b"\xff\xff"
            body[5:8] = rng.choice(numbers).to_bytes(3, "big")
        packets.append(datagram(bytes(body), src=OTHER[4], good=rng.random() < 0.5))
    moved, replies, wcs = v.effect(packets)
    dropped = sum(n for k, n in moved.items() if k.startswith("rx_") or k == "rp_cnp_ignored")
    result(dropped == len(packets) and not replies and not wcs, "noise: every packet is counted once, none gets a reply",
           f"{dropped} of {len(packets)} counted, {len(replies)} replies, {len(wcs)} completions: {moved}")

    # From the peer itself, with valid headers: no result is predicted, but the device must survive.
    for _ in range(60):
        qp = v.connected(e.IBV_QPT_RC)
        v.post(qp)
        packets = []
        for _ in range(20):
            op, psn = rng.choice(list(range(0x15)) + [0x16, 0x17, 0x1C, 0x1D]), PSN + rng.randrange(-3, 4)
            va = v.mr.buf + rng.randrange(-64, 4096)
            body = reth(va, rng.choice([v.mr.rkey, v.mr.rkey ^ 1, 0]),
                        rng.choice([0, 8, 64, MTU, 4096, 0x80000000, 0xFFFFFFFF]))
            body += rng.randbytes(rng.choice([0, 4, 8, 48, MTU - 16, MTU]))
            packets.append(datagram(bth(op, qp.qp_num, psn=psn, ack=True) + body))
        v.effect(packets)
        qp.close()


def alive(v, name):
    v.polled()
    for family, qp in ((4, v.rc), (6, v.rc6)):
        text = os.urandom(64)
        v.post(qp)
        _, replies, wcs = v.effect([datagram(bth(SEND_ONLY, qp.qp_num, psn=v.psn, ack=True) + text, family=family)])
        ok = [w.status for w in wcs] == [0] and [r[0] for r in replies] == [ACK] and v.mr.read(64, 0) == text
        result(ok, f"{name}: IPv{family} SEND is received and acknowledged",
               f"{len(wcs)} completions, {len(replies)} replies")
    v.psn += 1


def main():
    v = Victim(Wire())
    v.psn = PSN
    alive(v, "before")
    for group in (truncated, corrupt, spoofed, headers, violations, datagrams, notifications, scopes, sequence, migration,
                  management, refusals, never, trains, noise):
        group(v)
    alive(v, "after")
    sys.exit(plan())


if __name__ == "__main__":
    main()
