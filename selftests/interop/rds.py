#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
# Messages over two AF_RDS sockets of one host, both ways. The bytes that arrive are compared with those sent, and RDS's own
# list of InfiniBand connections must name the two addresses.
#	rds.py ADDRESS ADDRESS
import random
import select
import socket
import sys

SOL_RDS = 276
RDS_INFO_IB_CONNECTIONS = 10008
SO_SNDBUFFORCE = 32
SO_RCVBUFFORCE = 33
PORT = 4000
ROOM = 4 << 20
SECONDS = 60
SIZES = [1, 7, 100, 4096, 4097, 65536, 262144]
AHEAD = 4


def message(size, seed):
    return random.Random(seed).randbytes(size)


def receive(sock, what):
    if not select.select([sock], [], [], SECONDS)[0]:
        sys.exit(f"{what}: nothing arrived in {SECONDS} s")
    return sock.recv(1 << 20)


def pass_messages(a, b, seed):
    """AHEAD messages of each size are under way at once."""
    for size in SIZES:
        sent = [message(size, seed + i) for i in range(AHEAD)]
        for data in sent:
            a.sendto(data, b.getsockname())
        for i, data in enumerate(sent):
            what = f"message {i} of {size} bytes to {b.getsockname()[0]}"
            got = receive(b, what)
            if got != data:
                sys.exit(f"{what}: {len(got)} bytes arrived, and not as they were sent")
        print(f"{AHEAD} messages of {size} bytes to {b.getsockname()[0]}")


def by_infiniband(sock, a, b):
    """An entry begins with the two addresses."""
    info = sock.getsockopt(SOL_RDS, RDS_INFO_IB_CONNECTIONS, 1024)
    return any(socket.inet_aton(x) + socket.inet_aton(y) in info for x, y in ((a, b), (b, a)))


def main():
    one, other = sys.argv[1:3]
    socks = []
    for address in (one, other):
        sock = socket.socket(socket.AF_RDS, socket.SOCK_SEQPACKET)
        sock.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, ROOM)
        sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, ROOM)
        sock.bind((address, PORT))
        socks.append(sock)
    pass_messages(socks[0], socks[1], 1)
    pass_messages(socks[1], socks[0], 1000)
    if not by_infiniband(socks[0], one, other):
        sys.exit("RDS lists no InfiniBand connection of these addresses")


main()
