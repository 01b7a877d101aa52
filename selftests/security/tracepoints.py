#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""tracepoints.py: what roan_pkt_refused, roan_mr_reg and roan_key_refused say.

    h1: v1, roan1  =veth=  v2, roan2 :h2     in the first namespace; TRACE: where tracefs is mounted
"""
import os
import subprocess
import sys
import time

import pyverbs.enums as e
from pyverbs.mr import MR
from pyverbs.wr import SGE, SendWR

from endpoint import End
from ktap import plan, result

TRACE, H1IP, H2IP = (os.environ[name] for name in ("TRACE", "H1IP", "H2IP"))
ACCESS = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE
NO_QP = 0xABCDEF
# A UDP datagram of @bytes in hexadecimal to port 4791.
SENDER = "import socket, sys; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(bytes.fromhex(sys.argv[1]), (sys.argv[2], 4791))"


def put(name, value):
    with open(f"{TRACE}/{name}", "w") as f:
        f.write(value)


def traced(event, action):
    """The lines of @event, from its first field on, that @action causes."""
    put("trace", "")
    put(f"events/roan/{event}/enable", "1")
    action()
    time.sleep(0.5)
    put(f"events/roan/{event}/enable", "0")
    with open(f"{TRACE}/trace") as f:
        return [line.split(f"{event}: ")[1].strip() for line in f if f"{event}: " in line]


def expect(name, lines, want):
    result(want in lines, name, f"{lines}, expected {want}")


def from_h1(packet):
    subprocess.run(["ip", "netns", "exec", "h1", "/usr/bin/python3", "-c", SENDER, packet.hex(), H2IP], check=True)


def ifindex(ns, netdev):
    return subprocess.run(["ip", "netns", "exec", ns, "cat", f"/sys/class/net/{netdev}/ifindex"], check=True,
                          capture_output=True, text=True).stdout.strip()


def packets():
    bth = bytes((4, 0, 0xFF, 0xFF)) + NO_QP.to_bytes(4, "big") + bytes(4)
    way = f"saddr=::ffff:{H1IP} qpn=%u ifindex={ifindex('h2', 'v2')}"
    for name, packet, reason, qpn in (
            ("a packet for no QP", bth + bytes(4), "rx_unknown_qp", NO_QP),
            ("a packet with an opcode that does not exist", b"\x1f" + bth[1:] + bytes(4), "rx_bad_opcode", 0),
            ("a packet that is too short", bth[:8], "rx_truncated", 0)):
        expect(f"roan_pkt_refused: {name}: reason, source address, interface",
               traced("roan_pkt_refused", lambda: from_h1(packet)), f"reason={reason} {way % qpn}")


def regions(end):
    made = []
    lines = traced("roan_mr_reg", lambda: made.append(MR(end.pd, 12345, ACCESS)))
    mr, index = made[0], ifindex("h1", "v1")
    expect("roan_mr_reg: key, address, length and access of a region", lines,
           f"ifindex={index} key={mr.rkey:#x} kind=1 iova={mr.buf:#x} length=12345 access={ACCESS:#x} err=0")
    lines = traced("roan_mr_reg", lambda: made.append(MR(end.pd, 12345, ACCESS | e.IBV_ACCESS_ON_DEMAND)))
    expect("roan_mr_reg: the same of an on-demand region", lines,
           f"ifindex={index} key={made[1].rkey:#x} kind=6 iova={made[1].buf:#x} length=12345 access={ACCESS:#x} err=0")

    def unmapped():
        try:
            MR(end.pd, 4096, ACCESS, address=4096)
        except Exception as what:   # the type depends on pyverbs
            print(f"# {what}")
    lines = traced("roan_mr_reg", unmapped)
    result(len(lines) == 1 and f"ifindex={index} key=0x0 kind=1 iova=0x1000 " in lines[0] and lines[0].endswith("err=-14"),
           "roan_mr_reg: a registration that failed, with its error", f"{lines}")


def keys(a, b):
    qpn, peer = a.create("RC"), b.create("RC")
    a.connect(H1IP, H2IP, peer, 5, 7)
    b.connect(H2IP, H1IP, qpn, 7, 5)
    wrong = b.mr.rkey ^ 0x5A5A0000
    wr = SendWR(opcode=e.IBV_WR_RDMA_WRITE, num_sge=1, sg=[SGE(a.mr.buf, 8, a.mr.lkey)])
    wr.set_wr_rdma(wrong, b.mr.buf)
    status = []

    def write():
        a.qp.post_send(wr)
        status.append(a.wait(30))
    lines = traced("roan_key_refused", write)
    result(status == [[e.IBV_WC_REM_ACCESS_ERR, ""]] and len(lines) == 1 and
           lines[0].startswith(f"qpn={peer} saddr=::ffff:{H1IP} key={wrong:#x} psn=7 "),
           "roan_key_refused: QP, source address and key of a WRITE with a wrong key", f"{status}, {lines}")


def main():
    a, b = End("roan1"), End("roan2")
    packets()
    regions(a)
    keys(a, b)
    return plan()


sys.exit(main())
