#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""odp_rxqueue.py: packets whose page is not present are queued in order, and the peer gets pause frames if they are too
many.

Runs in the first namespace (odp_rxqueue.sh), where cc_param and counters are visible, and starts an end in each host:
one sends, the other has on-demand paged memory that maps a file. While that file system is frozen a write fault on it
does not finish. The receiving end gets no commands while it is frozen, because its address space is locked by the
fault.

    h1: v1 roan1, a packet socket ======== v2 roan2 :h2, memory in /tmp/slow/file
"""
import ctypes
import json
import mmap
import os
import select
import socket
import struct
import subprocess
import sys
import time

import pyverbs.enums as e
from pyverbs.addr import AH, AHAttr, GID, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

import pause
from device import gid_index, gid_of
from ktap import check, plan

SLOW, SIZE, KB = "/tmp/slow", 8 << 20, 1024
CHUNK = 64 * KB
QKEY, SL = 0x11111111, 3
XOFF, XON = 64, 32      # KB


# ---- an end: executes commands, which are lines of JSON ----

class End:
    def __init__(self, dev, address, peer, path):
        self.dev, self.address, self.peer = dev, address, peer
        self.ctx = Context(name=dev)
        self.pd, self.cq = PD(self.ctx), CQ(self.ctx, 1100)
        access = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE
        fd = os.open(path or "/dev/zero", os.O_RDWR)
        self.map = mmap.mmap(fd, SIZE, mmap.MAP_SHARED if path else mmap.MAP_PRIVATE)
        self.view = memoryview(self.map)
        self.addr = ctypes.addressof(ctypes.c_char.from_buffer(self.map))
        self.mr = MR(self.pd, SIZE, access | (e.IBV_ACCESS_ON_DEMAND if path else 0), address=self.addr)
        self.qp = self.ah = None
        self.crowd = []

    def attr(self, prio):
        gr = GlobalRoute(dgid=GID(gid_of(self.peer).exploded), sgid_index=gid_index(self.dev, self.address))
        gr.traffic_class = prio << 5
        return AHAttr(gr=gr, is_global=1, port_num=1)

    def new_qp(self, kind, depth):
        attr = QPAttr(port_num=1)
        attr.qkey = QKEY
        attr.qp_access_flags = e.IBV_ACCESS_REMOTE_WRITE
        return QP(self.pd, QPInitAttr(qp_type=getattr(e, f"IBV_QPT_{kind}"), scq=self.cq, rcq=self.cq,
                                      cap=QPCap(depth, depth, 1, 1)), attr)

    def create(self, kind):
        if self.qp:
            self.qp.close()
        self.qp = self.new_qp(kind, 1000)
        self.kind = kind
        return [self.qp.qp_num, self.addr, self.mr.rkey]

    def create_crowd(self, n):
        self.crowd = [self.new_qp("RC", 16) for _ in range(n)]
        return [qp.qp_num for qp in self.crowd]

    def connect(self, qpn, addr, rkey, prio, timeout, retries, rnr_retries):
        self.to = (addr, rkey, qpn)
        if self.kind == "UD":
            self.ah = AH(self.pd, attr=self.attr(prio))
        else:
            self.connect_qp(self.qp, qpn, prio, timeout, retries, rnr_retries)

    def connect_crowd(self, numbers, *how):
        for qp, qpn in zip(self.crowd, numbers):
            self.connect_qp(qp, qpn, *how)

    def connect_qp(self, qp, qpn, prio, timeout, retries, rnr_retries):
        attr = QPAttr(port_num=1)
        attr.ah_attr = self.attr(prio)
        attr.dest_qp_num, attr.rq_psn, attr.sq_psn, attr.path_mtu = qpn, 0, 0, e.IBV_MTU_4096
        attr.max_dest_rd_atomic = attr.max_rd_atomic = 1
        attr.min_rnr_timer, attr.timeout, attr.retry_cnt, attr.rnr_retry = 12, timeout, retries, rnr_retries
        attr.qp_access_flags = e.IBV_ACCESS_REMOTE_WRITE
        qp.to_rts(attr)

    def fill(self, seed, n):
        for i in range(n):
            self.view[i * CHUNK:(i + 1) * CHUNK] = bytes([seed + i & 255]) * CHUNK

    def right(self, seed, n):
        return all(self.view[i * CHUNK:(i + 1) * CHUNK] == bytes([seed + i & 255]) * CHUNK for i in range(n))

    def write_by(self, qp, first, n, length=CHUNK):
        for i in range(first, first + n):
            wr = SendWR(opcode=e.IBV_WR_RDMA_WRITE, num_sge=1, sg=[SGE(self.addr + i * CHUNK, length, self.mr.lkey)])
            wr.set_wr_rdma(self.to[1], self.to[0] + i * CHUNK)
            qp.post_send(wr)

    def write(self, first, n, *length):
        self.write_by(self.qp, first, n, *length)

    def write_crowd(self, first, last, n, length):
        for qp in self.crowd[first:last]:
            self.write_by(qp, 0, n, length)

    def receive(self, n, length):
        for i in range(n):
            self.qp.post_recv(RecvWR(wr_id=i, num_sge=1, sg=[SGE(self.addr + i * length, length, self.mr.lkey)]))

    def datagrams(self, n, length):
        for i in range(n):
            struct.pack_into("I", self.map, 0, i)
            wr = SendWR(opcode=e.IBV_WR_SEND, num_sge=1, sg=[SGE(self.addr, length, self.mr.lkey)])
            wr.set_wr_ud(self.ah, self.to[2], QKEY)
            self.qp.post_send(wr)
            self.done(1, 5)

    def numbers(self, n, length):
        """The first bytes of @n consecutive datagrams."""
        return [struct.unpack_from("I", self.map, i * length + 40)[0] for i in range(n)]

    def done(self, n, seconds):
        """Returns the statuses of up to @n completions."""
        got, end = [], time.monotonic() + seconds
        while len(got) < n and time.monotonic() < end:
            count, wcs = self.cq.poll(16)
            got += [w.status for w in wcs] if count else []
            if not count:
                time.sleep(0.005)
        return got


def serve(*args):
    end = End(*args)
    print("null", flush=True)
    for line in sys.stdin:
        name, *rest = json.loads(line)
        print(json.dumps(getattr(end, name)(*rest)), flush=True)


# ---- the controlling side ----

class Host:
    def __init__(self, n, path=""):
        self.dev = os.environ[f"H{n}DEV"]
        mine, other = os.environ[f"H{n}IP"], os.environ[f"H{3 - n}IP"]
        self.proc = subprocess.Popen(["ip", "netns", "exec", f"h{n}", sys.executable, __file__, self.dev, mine, other, path],
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.answer()

    def answer(self):
        if not select.select([self.proc.stdout], [], [], 90)[0]:
            raise RuntimeError(f"{self.dev}: no answer")
        return json.loads(self.proc.stdout.readline())

    def __getattr__(self, name):
        def call(*args):
            self.proc.stdin.write(json.dumps([name, *args]) + "\n")
            self.proc.stdin.flush()
            return self.answer()
        return call

    def set(self, **values):
        for name, value in values.items():
            with open(f"/sys/class/infiniband/{self.dev}/ports/1/cc_param/{name}", "w") as f:
                f.write(str(value))

    def count(self, name):
        time.sleep(0.02)    # the core caches counters for 10 ms
        with open(f"/sys/class/infiniband/{self.dev}/ports/1/hw_counters/{name}") as f:
            return int(f.read())


def freeze():
    subprocess.run(["fsfreeze", "-f", SLOW], check=True)


def thaw():
    subprocess.run(["fsfreeze", "-u", SLOW], check=True)


class Ear:
    """Collects pause frames that reach v1 in h1."""

    def __init__(self):
        own = os.open("/proc/self/ns/net", os.O_RDONLY)
        there = os.open("/run/netns/h1", os.O_RDONLY)
        setns = ctypes.CDLL(None, use_errno=True).setns
        if setns(there, 0):
            raise OSError("setns")
        self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x8808))
        self.sock.bind(("v1", 0x8808))
        self.sock.setblocking(False)
        setns(own, 0)

    def heard(self):
        got = []
        while True:
            try:
                got.append(self.sock.recv(2000))
            except BlockingIOError:
                return got


def frame(mac, prio, quanta):
    return pause.frame(1 << prio, quanta, source=mac)


def until(seconds, what):
    end = time.monotonic() + seconds
    while not what() and time.monotonic() < end:
        time.sleep(0.02)
    return bool(what())


def pair(a, b, kind="RC", prio=SL, timeout=23, retries=7, rnr_retries=7):
    there, here = b.create(kind), a.create(kind)
    b.connect(*here, prio, timeout, retries, rnr_retries)
    a.connect(*there, prio, timeout, retries, rnr_retries)


def moved(host, names, before):
    return {n: host.count(n) - before[n] for n in names}


LOSS = ("resent_pkts", "rcvd_rnr_err", "local_ack_timeout_err", "retry_exceeded_err")


def stop_and_go(a, b, ear, mac):
    pair(a, b)
    a.fill(1, 12)
    before = {n: a.count(n) for n in LOSS}
    waits, told, absent = b.count("rx_fault_queued"), b.count(f"tx_prio{SL}_pause"), b.count("rx_fault_dropped")
    freeze()
    ear.heard()
    a.write(0, 4)
    stopped = until(20, lambda: b.count(f"tx_prio{SL}_pause") > told)
    time.sleep(0.1)
    first = ear.heard()
    a.write(4, 8)
    sent, told = a.count("sent_pkts"), b.count(f"tx_prio{SL}_pause")
    again = until(60, lambda: b.count(f"tx_prio{SL}_pause") >= told + 2)
    held, early = a.count("sent_pkts") == sent, a.done(1, 0.1)
    check("more than pfc_emit_xoff is queued: XOFF is sent", stopped=stopped, waits=b.count("rx_fault_queued") > waits)
    check("... in a correct frame", frames=first and all(f == frame(mac, SL, 0xFFFF) for f in first))
    check("... XOFF is repeated, and a peer that honours it sends nothing", again=again, held=held, early=early == [])
    check("... and no other pause frames are sent", frames=all(f == frame(mac, SL, 0xFFFF) for f in ear.heard()))
    thaw()
    done = a.done(12, 30)
    frames = []
    def xon_is_last():      # the last packet may be acknowledged before XON is sent
        frames.extend(ear.heard())
        return frames[-1:] == [frame(mac, SL, 0)]
    check("the fault ends: XON is sent", last=until(5, xon_is_last),
          kinds=all(f in (frame(mac, SL, 0), frame(mac, SL, 0xFFFF)) for f in frames))
    check("... all data arrive, nothing was lost or sent twice", done=done == [0] * 12, right=b.right(1, 12),
          loss=not any(moved(a, LOSS, before).values()), absent=b.count("rx_fault_dropped") == absent)


def never_cnps(a, b, ear):
    pair(a, b, prio=6)
    for _ in range(3):      # slow start ends: more than the limit can be in flight. Page faults may have begun it anew
        a.write(8, 4)
        a.done(4, 30)
    a.fill(2, 4)
    waits = b.count("rx_fault_queued")
    freeze()
    ear.heard()
    a.write(0, 4)
    waited = until(20, lambda: b.count("rx_fault_queued") >= waits + 60)
    time.sleep(0.2)
    frames = ear.heard()
    thaw()
    check("no pause frame is sent for the priority of CNPs", waited=waited, none=frames == [], done=a.done(4, 30) == [0] * 4,
          right=b.right(2, 4))


def tires(a, b, ear, mac):
    b.set(pfc_watchdog_ms=1000)
    pair(a, b)
    a.fill(3, 4)
    freeze()
    ear.heard()
    a.write(0, 4)
    tired = until(20, lambda: b.count("pfc_tx_watchdog") == 1)
    time.sleep(0.1)
    frames = ear.heard()
    told = b.count(f"tx_prio{SL}_pause")
    time.sleep(1)
    quiet = b.count(f"tx_prio{SL}_pause") == told
    thaw()
    b.set(pfc_watchdog_ms=60000)
    check("after pfc_watchdog_ms XON is sent, and no XOFF for a while", tired=tired, quiet=quiet,
          frames=frames[:1] == [frame(mac, SL, 0xFFFF)] and frames[-1:] == [frame(mac, SL, 0)])
    check("... and no data are lost", done=a.done(4, 30) == [0] * 4, right=b.right(3, 4))


def switched_off(a, b, ear, mac):
    pair(a, b)
    a.fill(4, 4)
    told = b.count(f"tx_prio{SL}_pause")
    freeze()
    a.write(0, 4)
    stopped = until(20, lambda: b.count(f"tx_prio{SL}_pause") > told)
    time.sleep(0.1)
    ear.heard()
    b.set(pfc_emit_mask=0)
    time.sleep(0.1)
    frames = ear.heard()
    thaw()
    check("switched off: XON is sent to a paused peer", stopped=stopped, frames=frames[-1:] == [frame(mac, SL, 0)],
          done=a.done(4, 30) == [0] * 4, right=b.right(4, 4))


def impatience(a, b):
    """A fault that lasts longer than all retries of the peer."""
    pair(a, b, timeout=16, retries=2)   # three times 0.27 s
    a.fill(5, 8)
    rnr = a.count("rcvd_rnr_err")
    freeze()
    a.write(0, 8)
    asked = until(20, lambda: a.count("rcvd_rnr_err") > rnr)
    time.sleep(1.5)
    early = a.done(1, 0.1)
    thaw()
    check("a fault longer than all retries is no failure", asked=asked, early=early == [], done=a.done(8, 30) == [0] * 8,
          right=b.right(5, 8))


def settled(host, name):
    """Returns the counter once it has not changed for a while."""
    now, before = host.count(name), -1
    while now != before:
        time.sleep(0.3)
        now, before = host.count(name), now
    return now


BIG, SMALL = 48, 40     # QPs that send 512 KB each, more than fits the queue, and 1 KB each, to fill the rest


def latecomer(a, b):
    """The device's queue is full when one more packet arrives whose page is not present. Its peer has only six RNR
    retries."""
    pair(a, b, timeout=16, rnr_retries=6)
    freeze()
    a.write_crowd(0, BIG, 8, CHUNK)
    settled(b, "rx_fault_queued")
    a.write_crowd(BIG, BIG + SMALL, 1, KB)
    waits = settled(b, "rx_fault_queued")
    a.write(0, 1, KB)
    time.sleep(0.03)
    kept = b.count("rx_fault_queued") != waits
    thaw()
    return not kept, a.done(1 + 8 * BIG + SMALL, 60) == [0] * (1 + 8 * BIG + SMALL)


def no_room(a, b):
    there, here = b.create_crowd(BIG + SMALL), a.create_crowd(BIG + SMALL)
    b.connect_crowd(here, SL, 20, 7, 7)
    a.connect_crowd(there, SL, 20, 7, 7)
    for _ in range(4):      # the allowance of a QP may double after each fault
        a.write_crowd(0, BIG, 8, CHUNK)
        a.done(8 * BIG, 60)
    for _ in range(3):      # on a busy machine the six retries may be over too early, or the queue not full yet
        full, done = latecomer(a, b)
        if full and done:
            break
    check("a peer that meets a full queue retries with growing delay", full=full, done=done)


def reordered(a, b, n):
    """The path delays three packets of four, so each fourth one arrives before them. The first packet waits already."""
    netem = "tc -n h1 qdisc %s dev v1 root netem delay 20ms reorder 100%% gap 4"
    pair(a, b)
    a.fill(7, n)
    waits, resent, twice = b.count("rx_fault_queued"), a.count("resent_pkts"), b.count("duplicate_request")
    freeze()
    a.write(0, 1, KB)
    first = until(20, lambda: b.count("rx_fault_queued") == waits + 1)
    subprocess.run((netem % "add").split(), check=True)
    for i in range(1, n):
        a.write(i, 1, KB)
    queued = until(20, lambda: b.count("rx_fault_queued") >= waits + n)
    resent, twice = a.count("resent_pkts") - resent, b.count("duplicate_request") - twice
    subprocess.run((netem % "del").split(), check=True)
    thaw()
    check("reordered packets are queued in order, and none is sent again", first=first, queued=queued, resent=resent < n / 4,
          twice=twice < n / 4, done=a.done(n, 30) == [0] * n)


def datagrams(a, b, n, length):
    """Returns the number of datagrams that did not arrive, and whether the others are in order."""
    pair(a, b, "UD")
    b.receive(n, length + 40)
    absent = b.count("rx_fault_dropped")
    freeze()
    a.datagrams(n, length)
    time.sleep(0.2)
    thaw()
    lost = b.count("rx_fault_dropped") - absent
    done = b.done(n - lost, 30)
    numbers = b.numbers(len(done), length + 40)
    return lost, done == [0] * (n - lost) and numbers == sorted(set(numbers)) and numbers[0] == 0


def death(a, b):
    """The receiver is killed while packets are queued: they are dropped, nothing hangs, and the device still works."""
    b.set(pfc_emit_mask=0xFF)
    pair(a, b)
    told = b.count(f"tx_prio{SL}_pause")
    freeze()
    a.write(0, 4)
    stopped = until(20, lambda: b.count(f"tx_prio{SL}_pause") > told)
    b.proc.kill()
    time.sleep(0.3)
    thaw()
    b.proc.wait(30)
    a.create("RC")
    b = Host(2, f"{SLOW}/file")
    pair(a, b)
    a.fill(6, 2)
    a.write(0, 2)
    check("a killed receiver: its queued packets are dropped", stopped=stopped, done=a.done(2, 30) == [0, 0],
          right=b.right(6, 2))
    return b


def main():
    a, b, ear = Host(1), Host(2, f"{SLOW}/file"), Ear()
    with open("/run/mac2") as f:
        mac = bytes.fromhex(f.read().strip().replace(":", ""))
    # A quantum of 128 us: a pause lasts 8.4 s, so that a guest that stands still for a while can refresh it after half of that.
    a.set(link_speed=4, pfc_watchdog_ms=60000, pfc_prio_mask=0xFF)
    b.set(link_speed=4, pfc_watchdog_ms=60000, pfc_restore_ms=60000, pfc_emit_xoff=XOFF, pfc_emit_xon=XON)
    pair(a, b)
    a.fill(0, 4)
    freeze()
    a.write(0, 4)
    time.sleep(0.3)
    thaw()
    check("off by default", done=a.done(4, 30) == [0] * 4, right=b.right(0, 4), none=ear.heard() == [])
    impatience(a, b)
    no_room(a, b)
    reordered(a, b, 13)   # a new QP sends 16 packets without an ACK
    check("datagrams are queued in order", arrived=datagrams(a, b, 20, 1024) == (0, True))
    lost, right = datagrams(a, b, 900, 4000)
    check("datagrams beyond the limit are dropped and counted", lost=0 < lost < 900, right=right)
    b.set(pfc_emit_mask=0xFF)
    stop_and_go(a, b, ear, mac)
    never_cnps(a, b, ear)
    tires(a, b, ear, mac)
    b.set(pfc_emit_mask=0)     # resets the state for the next case
    b.set(pfc_emit_mask=0xFF)
    switched_off(a, b, ear, mac)
    b = death(a, b)
    status = plan()
    for host in (a, b):
        host.proc.stdin.close()
        host.proc.wait(30)
    sys.exit(status)


if len(sys.argv) > 1:
    serve(*sys.argv[1:])
else:
    main()
