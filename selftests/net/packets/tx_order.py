#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""tx_order.py ADDRESS FILE...: reads pcap files of capture.py and counts, for each of them, the requests that the host with
this IPv4 address sent for the first time after a later one of the same QP. Prints the numbers; exits 1 if the first file
has any, or has fewer than 1000 requests.

A request is late if no copy of it was recorded before, and a request of its QP with a later PSN was.
"""
import collections
import socket
import struct
import sys

LAST_REQUEST = 12   # in the opcodes of RC and UC: SEND, WRITE and READ come first


def frames(path):
    with open(path, "rb") as f:
        f.read(24)
        while header := f.read(16):
            yield f.read(struct.unpack_from("<I", header, 8)[0])


def requests(path, address):
    """Pairs of destination QP with opcode class, and PSN."""
    for p in frames(path):
        if p[12:14] != b"\x08\x00" or p[26:30] != address:
            continue
        bth = 14 + (p[14] & 15) * 4 + 8
        if p[bth] & 31 <= LAST_REQUEST and p[bth] >> 5 < 2:
            yield p[bth + 5:bth + 8], int.from_bytes(p[bth + 9:bth + 12], "big")


def late(path, address):
    """Numbers of requests, of repeated ones and of late ones."""
    seen, newest, n = collections.defaultdict(set), {}, collections.Counter()
    for qpn, psn in requests(path, address):
        ahead = (psn - newest.setdefault(qpn, psn) & 0xFFFFFF) < 0x800000
        n["all"] += 1
        n["repeated"] += psn in seen[qpn]
        n["late"] += not ahead and psn not in seen[qpn]
        seen[qpn].add(psn)
        if ahead:
            newest[qpn] = psn
    return n["all"], n["repeated"], n["late"]


def main():
    address = socket.inet_aton(sys.argv[1])
    counts = [late(path, address) for path in sys.argv[2:]]
    print("; ".join(f"{all_} requests, {again} repeated, {behind} late" for all_, again, behind in counts))
    sys.exit(counts[0][0] < 1000 or counts[0][2] > 0)


main()
