#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""nfqueue.py: accepts every packet in queue 5 of its namespace, until it is killed."""
import socket
import struct

NETLINK_NETFILTER = 12
QUEUE, ACCEPT, META = 5, 1, 1
SUBSYS, PACKET, VERDICT, CONFIG = 3, 0, 1, 2
CFG_CMD, CFG_PARAMS, CFG_MAXLEN, BIND = 1, 2, 3, 1
PACKET_HDR, VERDICT_HDR = 1, 2


def attr(kind, payload):
    size = 4 + len(payload)
    return struct.pack("=HH", size, kind) + payload + bytes(-size % 4)


def send(sock, kind, payload):
    body = struct.pack(">BBH", 0, 0, QUEUE) + payload
    sock.send(struct.pack("=IHHII", 16 + len(body), SUBSYS << 8 | kind, 1, 0, 0) + body)


def packets(data):
    """The packet identifiers in one read."""
    while len(data) >= 16:
        size, kind = struct.unpack_from("=IH", data)
        at = 20
        while kind == SUBSYS << 8 | PACKET and at + 4 <= size:
            n, what = struct.unpack_from("=HH", data, at)
            if what & 0x3fff == PACKET_HDR:
                yield data[at + 4:at + 8]
            at += n + 3 & ~3
        data = data[size + 3 & ~3:]


def main():
    sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
    send(sock, CONFIG, attr(CFG_CMD, struct.pack(">BBH", BIND, 0, 0)) + attr(CFG_PARAMS, struct.pack(">IB", 0, META)) +
         attr(CFG_MAXLEN, struct.pack(">I", 10000)))
    print("bound", flush=True)
    while True:
        try:
            data = sock.recv(1 << 16)
        except OSError:     # ENOBUFS: packets were dropped, and their sender retransmits
            continue
        for ident in packets(data):
            send(sock, VERDICT, attr(VERDICT_HDR, struct.pack(">I", ACCEPT) + ident))


main()
