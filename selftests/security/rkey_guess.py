#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""rkey_guess.py: a forger guesses R_Keys. Runs in namespace h2 (rkey_guess.sh); packets are sent from h1.

The forger can send packets with the address of the victim's peer. It knows the QPN of a UC QP, the address of the
victim's region, and the key of its own region, which was registered next. It does not know PSNs, nor the victim's R_Key.
"""
import collections
import os
import random
import struct
import sys
import time

import pyverbs.enums as e
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QPAttr

from ktap import check, plan, result
from packets import DEV, Victim
from roce_packets import PSN, SEND_ONLY, UC, WRITE_ONLY, Wire, bth, datagram, reth

BUDGET = 16384              # guesses
REFUSALS, PERIOD = 16, 1.0  # kernel/core/transport/key_limit.h: a second's refusals of one QP
STRAY = PSN + 0x400000      # a PSN far from the peer's
RXE = os.environ["LINK_TYPE"] == "rxe"
TRACE = "/proc/1/root/sys/kernel/tracing/"      # `ip netns exec` mounts another /sys


def put(path, text):
    with open(TRACE + path, "w") as f:
        f.write(text)


def uc_qp(v):
    """A connected UC QP whose peer may write."""
    qp, attr = v.connected(e.IBV_QPT_UC), QPAttr()
    attr.qp_access_flags = e.IBV_ACCESS_REMOTE_WRITE
    qp.modify(attr, e.IBV_QP_ACCESS_FLAGS)
    return qp


def write(qp, va, key, data, psn, op=UC | WRITE_ONLY):
    return datagram(bth(op, qp.qp_num, psn=psn & 0xFFFFFF) + reth(va, key, len(data)) + data)


class Counted:
    """Counters that moved since the object was made."""

    def __init__(self, v):
        self.v, self.before, self.began = v, v.counters(), time.monotonic()

    def moved(self, name):
        return self.v.counters().get(name, 0) - self.before.get(name, 0)

    def most(self):
        """The most refusals that the limit allows in the time that passed."""
        return REFUSALS * (int((time.monotonic() - self.began) / PERIOD) + 2)


def wrong(v):
    return v.mr.rkey ^ 0x5A5A5A00


def guesses(own):
    """BUDGET keys near @own, as if its index were a slot that is given out in order, with 4 random bits above it, and 8
    random bits as its variant. So the 4 keys registered before @own are among them."""
    slot = own >> 8 & 0xFFFFF
    for back in range(1, BUDGET // 4096 + 1):
        tags = list(range(4096))
        random.shuffle(tags)
        yield from ((t >> 8) << 28 | (slot - back & 0xFFFFF) << 8 | t & 0xFF for t in tags)


def order(v):
    """4,096 live keys show no order: each bit is set in half of them, and changes from key to key in half of the cases,
    within eight sigma; no difference of two successive indices is frequent."""
    n = 4096
    regions = [MR(v.pd, 64, e.IBV_ACCESS_LOCAL_WRITE) for _ in range(n)]
    keys = [r.rkey for r in regions]
    pairs = list(zip(keys, keys[1:]))
    bits = {b: (sum(k >> b & 1 for k in keys), sum((k ^ l) >> b & 1 for k, l in pairs)) for b in range(32)}
    bad = {b: both for b, both in bits.items() if any(abs(x - n / 2) > n / 16 for x in both)}
    result(not bad, "4,096 keys: each bit is set in half of them, and changes in half",
           f"of {n}, (set, changed) by bit: {bad}")
    (low, times), = collections.Counter((l >> 8) - (k >> 8) & 0xFFFFF for k, l in pairs).most_common(1)
    result(times <= 6, "4,096 keys: no difference of successive indices is frequent",
           f"index + {low}, in its low 20 bits, {times} times")
    for r in regions:
        r.close()


def attack(v):
    seed = os.urandom(64)
    v.mr.write(seed, 64, 0)
    neighbour = MR(v.pd, 4096, e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE)    # the victim's
    forger = Context(name=DEV)
    own = MR(PD(forger), 4096, e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE)
    neighbour.write(bytes(8), 8, 0)
    packets = [write(v.uc_qp, neighbour.buf, k, b"\xA5" * 8, STRAY + 7 * i) for i, k in enumerate(guesses(own.rkey))]
    counted = Counted(v)
    for p in packets:
        v.wire.send(p)
    took = time.monotonic() - counted.began
    got, most = neighbour.read(8, 0), counted.most()
    refused, unseen, all_seen = (counted.moved(n) for n in ("rx_access", "rx_key_limit", "rcvd_pkts"))
    print(f"# {len(packets)} guesses in {took:.1f} s: {refused} looked up and refused, {unseen} dropped")
    result(got == bytes(8), "the victim's memory is not written by 16,384 guesses", f"it has {got.hex()}")
    result(refused + unseen == all_seen > BUDGET / 2 and refused <= most, "guesses are dropped without a look at their key",
           f"{refused} of at most {most} looked up, {unseen} dropped, of {all_seen}")
    own.close()
    neighbour.close()
    time.sleep(PERIOD + 0.1)


def peer_goes_on(v):
    """The peer's WRITEs in sequence are executed between guesses, of which most are dropped."""
    counted, lost = Counted(v), []
    for i in range(64):
        for j in range(32):
            v.wire.send(write(v.uc_qp, v.mr.buf, wrong(v) ^ i << 16, bytes(8), STRAY + 32 * i + j))
        data = os.urandom(8)
        v.wire.send(write(v.uc_qp, v.mr.buf, v.mr.rkey, data, v.psn))
        v.psn += 1
        lost += [i] * (v.mr.read(8, 0) != data)
    result(not lost, "the peer's own WRITEs are executed meanwhile", f"of 64 {len(lost)} are not")
    check("... and guesses are dropped", dropped=counted.moved("rx_key_limit") > 0)
    time.sleep(PERIOD + 0.1)


def blocked(v, name, guess, own):
    """After 16 wrong keys by @guess the peer's @own WRITE is dropped, and executed when the second is over. A SEND is
    received in between. Repeated if the machine stalls so long that the second passes."""
    for _ in range(20):
        before = Counted(v)
        began = time.monotonic()
        for i in range(REFUSALS):
            v.wire.send(guess(i))
        data, text = os.urandom(8), os.urandom(32)
        v.mr.write(bytes(8), 8, 0)
        v.wire.send(own(data))
        dropped = v.mr.read(8, 0) == bytes(8)
        v.post(v.uc_qp)
        v.polled()
        v.wire.send(datagram(bth(UC | SEND_ONLY, v.uc_qp.qp_num, psn=STRAY) + text))
        received = [w.status for w in v.polled()] == [0] and v.mr.read(32, 0) == text
        in_time = time.monotonic() - began < PERIOD * 0.9
        time.sleep(PERIOD + 0.1)
        if in_time:
            break
    result(dropped and before.moved("rx_key_limit") == 1, f"{name}: its next WRITE is dropped",
           f"dropped {dropped}, counted {before.moved('rx_key_limit')}, in time {in_time}")
    result(received, f"{name}: a SEND is received meanwhile")
    v.wire.send(own(data))
    result(v.mr.read(8, 0) == data, f"{name}: a WRITE is executed when the second is over")


def recovery(v):
    def stray(i):
        return write(v.uc_qp, v.mr.buf, wrong(v), bytes(8), STRAY + i)

    def next_psn(i):
        return write(v.uc_qp, v.mr.buf, wrong(v), bytes(8), v.psn + i)

    blocked(v, "a peer that lost its place in the sequence", stray,
            lambda data: write(v.uc_qp, v.mr.buf, v.mr.rkey, data, STRAY + 0x10000))
    v.psn = STRAY + 0x10001
    blocked(v, "a peer that guesses", next_psn, lambda data: write(v.uc_qp, v.mr.buf, v.mr.rkey, data, v.psn + 99))
    v.psn += 100


def other_pd(v):
    """The right key does not help a forger on a QP of its own: the region belongs to another PD."""
    own = object.__new__(Victim)
    own.wire, own.ctx = v.wire, Context(name=DEV)
    own.pd = PD(own.ctx)
    own.cq = CQ(own.ctx, 10)
    qp = uc_qp(own)
    v.mr.write(bytes(8), 8, 0)
    counted = Counted(v)
    v.wire.send(write(qp, v.mr.buf, v.mr.rkey, b"\xA5" * 8, PSN))
    result(counted.moved("rx_access") == 1 and v.mr.read(8, 0) == bytes(8), "the right key on a QP of another PD is refused")
    qp.close()


def reliable(v):
    """RC: a guess needs the expected PSN, and moves the QP to ERR."""
    qp = v.connected(e.IBV_QPT_RC)
    v.mr.write(bytes(8), 8, 0)
    counted = Counted(v)
    for psn in (PSN - 1, PSN + 1, PSN + 2, STRAY):
        v.wire.send(write(qp, v.mr.buf, v.mr.rkey, b"\xA5" * 8, psn, op=WRITE_ONLY))
    state = qp.query(e.IBV_QP_STATE)[0].qp_state
    result(v.mr.read(8, 0) == bytes(8) and state == e.IBV_QPS_RTS and not counted.moved("resp_remote_access_errors"),
           "RC: with another PSN not even the right key is used", f"state {state}")
    v.wire.send(write(qp, v.mr.buf, wrong(v), bytes(8), PSN, op=WRITE_ONLY))
    v.wire.send(write(qp, v.mr.buf, v.mr.rkey, b"\xA5" * 8, PSN, op=WRITE_ONLY))
    state = qp.query(e.IBV_QP_STATE)[0].qp_state
    result(state == e.IBV_QPS_ERR and counted.moved("resp_remote_access_errors") == 1 and v.mr.read(8, 0) == bytes(8),
           "RC: a wrong key with the expected PSN is the last request of the QP", f"state {state}")
    qp.close()


def trace(v):
    """The tracepoint names the source of a refused key."""
    if not os.path.isdir(TRACE + "events/roan"):
        result(True, "tracepoint roan_key_refused # SKIP this kernel has no tracepoints")
        return
    if not os.path.isdir(TRACE + "events/roan/roan_key_refused"):
        result(False, "tracepoint roan_key_refused has source address and key", "there is none")
        return
    put("trace", "")
    put("events/roan/roan_key_refused/enable", "1")
    v.wire.send(write(v.uc_qp, v.mr.buf, wrong(v), bytes(8), v.psn))
    put("events/roan/roan_key_refused/enable", "0")
    with open(TRACE + "trace") as f:
        lines = [line for line in f if "roan_key_refused:" in line]
    want = f"qpn={v.uc_qp.qp_num} saddr=::ffff:10.7.0.1 key={wrong(v):#x} psn={v.psn & 0xFFFFFF}"
    result(len(lines) == 1 and want in lines[0], "tracepoint roan_key_refused has source address and key",
           f"{lines}, expected {want}")


def main():
    v = Victim(Wire())
    v.uc_qp, v.psn = uc_qp(v), PSN
    for case in (order, attack) + (() if RXE else (peer_goes_on, recovery, other_pd, reliable, trace)):
        case(v)
    sys.exit(plan())


if __name__ == "__main__":
    main()
