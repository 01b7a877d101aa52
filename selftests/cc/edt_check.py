#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Watches an interface and prints how far RoCE packets were ahead of a rate.

    edt_check.py IFACE MBPS READY    until SIGTERM; creates the file READY when its socket is open

Prints: skbs= bytes= burst= share=. burst: the highest fill, in bytes, of a bucket that drains at MBPS, that is the
largest lead of the packets over the rate. share: bytes relative to the rate, from the first skb to the last. Only RoCE
packets of more than 512 bytes count, headers included.
"""
import signal
import socket
import struct
import sys
import time

ETH_P_IP = 0x0800
PORT = 4791
HEADERS = 14 + 20 + 8
SMALLEST = 512


def payload_packets(frame, mtu):
    """Wire bytes of an skb: a GSO skb counts with the headers of each of its packets."""
    packets = -(-(len(frame) - HEADERS) // mtu)
    return len(frame) + (packets - 1) * HEADERS


def main():
    iface, mbps, ready = sys.argv[1], float(sys.argv[2]), sys.argv[3]
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_IP))
    s.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
    s.bind((iface, ETH_P_IP))
    s.settimeout(0.1)
    over = []
    signal.signal(signal.SIGTERM, lambda *_: over.append(True))
    open(ready, "w").close()
    seen = []
    while not over:
        try:
            frame, address = s.recvfrom(65536)
        except TimeoutError:
            continue
        now = time.monotonic_ns()
        if address[2] == socket.PACKET_OUTGOING or len(frame) < SMALLEST or frame[23] != socket.IPPROTO_UDP:
            continue
        if struct.unpack_from(">H", frame, 36)[0] == PORT:
            seen.append((now, payload_packets(frame, 1056)))
    held = burst = 0
    last = seen[0][0] if seen else 0
    for at, size in seen:
        held = max(0, held - (at - last) * mbps / 8000) + size
        burst = max(burst, held)
        last = at
    total = sum(size for _, size in seen)
    span = (seen[-1][0] - seen[0][0]) * mbps / 8000 if len(seen) > 1 else 0
    print("skbs=%d bytes=%d burst=%d share=%.3f" % (len(seen), total, burst, total / span if span else 0))


main()
