#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""cnp_reaction.py: the effect of a CNP or a rate cap on its QP, as shown by netlink and traced, and which packets it
does not delay. What becomes of packets that this host drops.

Runs in namespace h2 (packets.sh) with the functions of packets.py. The link speed is the veth's, 10 Gb/s.

    h1: v1 (no device, this socket) ======== v2 roan2 :h2
"""
import json
import os
import re
import subprocess
import time

import pyverbs.enums as e
from pyverbs.qp import QPAttr
from pyverbs.wr import SGE, SendWR

import packets as p
from roce_packets import ACK, CNP, MTU, PEER_QPN, PSN, UD_SEND, WRITE_ONLY, bth, datagram, deth, reth
from ktap import plan, result
from device import shown

TRACING = "/sys/kernel/tracing/"
LINK, HALF = 10_000_000, 5_000_000      # kbit/s; the first CNP takes 1023/2048
IBV_RATE_2_5_GBPS = 2   # not in pyverbs
STILL = {"rpg_time_reset": 131071, "dce_tcp_rtt": 131071, "rpg_ai_rate": 1}     # slow recovery
QUICK = {"rpg_time_reset": 1, "dce_tcp_rtt": 55, "rpg_ai_rate": 800000}
PAPER = {"rpg_time_reset": 55, "dce_tcp_rtt": 55, "rpg_ai_rate": 40}


def tune(values):
    for name, value in values.items():
        p.setting(name, value)


def cap(qp, kbps):
    p.setting("../qp_cap", f"{qp.qp_num} {kbps}")


def trace(on):
    if not os.path.exists(TRACING + "trace"):
        subprocess.run(["mount", "-t", "tracefs", "tracefs", TRACING], check=True)
    for event in ("roan_rate", "roan_cnp"):
        with open(f"{TRACING}events/roan/{event}/enable", "w") as f:
            f.write(str(on))


def traced(pattern):
    with open(TRACING + "trace") as f:
        return re.findall(pattern, f.read())


def send(v, qp, length=MTU):
    qp.post_send(SendWR(opcode=e.IBV_WR_SEND, num_sge=1, sg=[SGE(v.mr.buf, length, v.mr.lkey)]))


def marked(v, qp, psn):
    return datagram(bth(WRITE_ONLY, qp.qp_num, psn=psn, ack=True) + reth(v.mr.buf, v.mr.rkey, 8) + bytes(8), tos=3)


def seen_and_traced(v, qp):
    """False, and no result: the machine stalled, and the rate has recovered meanwhile."""
    tune(STILL)
    trace(1)
    before = shown(p.DEV, qp)
    cap(qp, 5000)
    capped = shown(p.DEV, qp)
    cap(qp, 0)
    begin = time.monotonic()
    v.wire.send(datagram(bth(CNP, qp.qp_num) + bytes(16)))
    cut = shown(p.DEV, qp)
    if time.monotonic() - begin > 1:
        trace(0)
        return False
    tune(QUICK)
    time.sleep(0.3)
    send(v, qp)
    free = shown(p.DEV, qp)
    v.wire.send(marked(v, qp, PSN))
    time.sleep(0.1)
    trace(0)
    tune(PAPER)
    rates = [int(r) for r in traced(f"roan_rate: qpn={qp.qp_num} rate=([0-9]+) ")]
    cnps = traced(f"roan_cnp: qpn={qp.qp_num} peer_qpn={PEER_QPN} out=([01])")
    result("rate_kbps" not in before, "without a CNP and without a cap a QP has no limiter", f"{before}")
    result(capped["cap_kbps"] == capped["rate_kbps"] == 5000, "rdma shows a cap", f"{capped}")
    result((cut["cnps"], cut["cuts"], cut["target_kbps"]) == (1, 1, LINK) and HALF < cut["rate_kbps"] < LINK and
           0 < cut["alpha_1024"] < 1024, "rdma shows a CNP: rate, target, alpha, CNPs, rate cuts", f"{cut}")
    result(free["rate_kbps"] == 0 and free["cnps"] == 1, "the limit ends when the rate is the link's again", f"{free}")
    result(len(rates) == 4 and rates[:2] == [5_000_000, 0] and HALF < rates[2] / 1000 < HALF + 10_000 and rates[3] == 0,
           "each change of the rate is traced: cap, none, cut, free", f"{rates}")
    result(cnps == ["0", "1"], "received and sent CNPs are traced", f"{cnps}")
    return True


def answers_only(v):
    """A QP in RTR can answer READs, so a cap applies to it, too."""
    qp = v.connected(e.IBV_QPT_RC, rts=False)
    cap(qp, 5000)
    capped = shown(p.DEV, qp)
    qp.close()
    result(capped.get("rate_kbps") == 5000, "a cap holds for a QP in RTR", f"{capped}")


def ignores_static_rate(v):
    """A peer with Linux before 6.5 sends its interface's speed as static rate, which the RDMA CM hands to modify_qp."""
    qp = v.connected(e.IBV_QPT_RC, static_rate=IBV_RATE_2_5_GBPS)
    static = shown(p.DEV, qp)
    qp.close()
    result("rate_kbps" not in static, "the static rate of a path does not limit its QP", f"{static}")


def never_held_back(v, qp):
    cap(qp, 1)
    time.sleep(0.12)    # packets.sh sets one CNP in 100 ms
    v.wire.replies()
    send(v, qp)
    send(v, qp)         # the pacer allows it after nine seconds
    v.wire.send(marked(v, qp, PSN + 1))
    end, left = time.monotonic() + 5, []
    while not {CNP, ACK} <= set(left) and time.monotonic() < end:
        left += [r[0] for r in v.wire.replies()]
    result({CNP, ACK} <= set(left), "neither a CNP nor an ACK waits for its QP's pacer", f"{left}")


def names_the_path(v):
    """Marked requests that say SACK: their CNPs have their ports, and say so. Each port has an interval of its own."""
    qp = v.connected(e.IBV_QPT_RC)
    v.wire.replies()
    for i in range(2):
        write = bth(WRITE_ONLY, qp.qp_num, psn=PSN + i, extensions=3) + reth(v.mr.buf, v.mr.rkey, 8) + bytes(8)
        v.wire.send(datagram(write, tos=3, sport=0xC321 + i))
    end, cnps = time.monotonic() + 5, []
    while len(cnps) < 2 and time.monotonic() < end:
        got = v.wire.replies()
        cnps += [(r[8], sport) for r, sport in zip(got, v.wire.sport) if r[0] == CNP]
    qp.close()
    result(cnps == [(3, 0xC321), (3, 0xC322)], "a CNP for a roan peer names the marked path, each in its own interval", f"{cnps}")


def replies_with(v, opcode, seconds=5):
    """Opcode and QP of all that comes until a packet with this opcode has."""
    end, got = time.monotonic() + seconds, []
    while opcode not in (op for op, _ in got) and time.monotonic() < end:
        got += [(r[0], int.from_bytes(r[5:8], "big")) for r in v.wire.replies()]
        time.sleep(0.01)
    return got


def left_pending(v, packets):
    """Sends two marked packets: a CNP for the first, one is pending for the second unless the machine stalled."""
    v.wire.replies()
    for packet in packets:
        v.wire.send(packet)
    time.sleep(0.02)
    sent = sum(r[0] == CNP for r in v.wire.replies())
    time.sleep(0.12)    # packets.sh sets one CNP in 100 ms
    return sent == 1


def of_the_marked_datagram(v):
    """Another sender's datagram does not send the pending CNP, so is not the one to slow down."""
    def ud(qpn, tos=0):
        return datagram(bth(UD_SEND, v.ud.qp_num) + deth(src_qpn=qpn) + bytes(16), tos=tos)
    for _ in range(20):
        if left_pending(v, [ud(0x55, 3)] * 2):
            break
    v.wire.send(ud(0x66))
    v.wire.send(ud(0x55))
    cnps = replies_with(v, CNP)
    result(cnps == [(CNP, 0x55)], "a pending CNP waits for a datagram of the sender that was marked", f"{cnps}")


def of_the_connection(v):
    """RESET, then a connection again: the CNP that was pending is not sent to the new peer."""
    qp = v.connected(e.IBV_QPT_RC)
    for psn in range(PSN, PSN + 40, 2):
        if left_pending(v, [marked(v, qp, psn), marked(v, qp, psn + 1)]):
            break
    qp.modify(QPAttr(qp_state=e.IBV_QPS_RESET), e.IBV_QP_STATE)
    v.qp = lambda kind: qp
    v.connected(e.IBV_QPT_RC)
    del v.qp
    v.wire.send(datagram(bth(WRITE_ONLY, qp.qp_num, ack=True) + reth(v.mr.buf, v.mr.rkey, 8) + bytes(8)))
    got = replies_with(v, ACK)
    qp.close()
    result([op for op, _ in got] == [ACK], "a CNP that was pending at RESET is not sent to the next peer", f"{got}")


def tc(*words):
    return subprocess.run(["tc", *words], check=True, capture_output=True).stdout


def drop(*match):
    """What matches is dropped on its way to v2."""
    tc("filter", "add", "dev", "v2", "egress", "protocol", "ip", "u32", *match, "action", "drop")


def until_dropped(v, n):
    """Until the device has counted so many skbs."""
    end = time.monotonic() + 20
    while v.counters()["tx_dropped"] < n and time.monotonic() < end:
        pass


def nothing_after_a_drop(v):
    """The first packet uses up the bucket, and the second one waits in it. A rule drops a short one. The next one would exceed
    what may wait in this host."""
    qp = v.connected(e.IBV_QPT_RC, timeout=0, mtu=e.IBV_MTU_4096)
    tc("qdisc", "add", "dev", "v2", "clsact")   # first: it empties the other one
    tc("qdisc", "replace", "dev", "v2", "root", "handle", "1:", "tbf", "rate", "1kbit", "burst", "5000", "limit", "1m")
    send(v, qp, 4096)
    send(v, qp, 4096)
    drop("match", "ip", "protocol", "17", "0xff", "match", "u16", "0", "0xff00", "at", "2")
    before = v.counters()["tx_dropped"]
    for length in 16, 4096, 4096:
        send(v, qp, length)
    until_dropped(v, before + 5)
    waits = [q["backlog"] for q in json.loads(tc("-j", "-s", "qdisc", "show", "dev", "v2")) if q["kind"] == "tbf"]
    tc("qdisc", "del", "dev", "v2", "clsact")
    qp.close()
    tc("qdisc", "del", "dev", "v2", "root")
    result(len(waits) == 1 and 4096 < waits[0] < 8192, "what this host drops is not overtaken by the packets after it", f"{waits} bytes wait")


def costs_nothing(v):
    """The pacer allows one packet in nine seconds. A rule drops the first one."""
    qp = v.connected(e.IBV_QPT_RC, timeout=0)
    cap(qp, 1)
    tc("qdisc", "add", "dev", "v2", "clsact")
    drop("match", "ip", "protocol", "17", "0xff")
    before = v.counters()["tx_dropped"]
    v.wire.replies()
    send(v, qp)
    until_dropped(v, before + 1)
    tc("qdisc", "del", "dev", "v2", "clsact")
    end, got = time.monotonic() + 4, []
    while not got and time.monotonic() < end:
        got = v.wire.replies()
    qp.close()
    result(got, "what this host drops is not charged to the pacer")


def main():
    v = p.Victim(p.Wire())
    for _ in range(20):
        qp = v.connected(e.IBV_QPT_RC, timeout=0)
        if seen_and_traced(v, qp):
            break
        qp.close()
    else:
        result(False, "rdma shows a CNP within a second", "20 attempts")
    answers_only(v)
    ignores_static_rate(v)
    never_held_back(v, qp)
    qp.close()
    names_the_path(v)
    of_the_marked_datagram(v)
    of_the_connection(v)
    nothing_after_a_drop(v)
    costs_nothing(v)
    os._exit(plan())


main()
