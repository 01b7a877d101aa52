#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
# Sends messages between two AF_RDS sockets of one host, in both directions, and compares the bytes received with those
# sent. RDS's list of InfiniBand connections must contain the two addresses, so that no other transport passes.
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
SOCKET_BUFFER = 4 << 20
SECONDS = 60
SIZES = [1, 7, 100, 4096, 4097, 65536, 262144]
IN_FLIGHT = 4


def message(size, seed):
    return random.Random(seed).randbytes(size)


def receive(sock, what):
    if not select.select([sock], [], [], SECONDS)[0]:
        sys.exit(f"{what}: nothing arrived in {SECONDS} s")
    return sock.recv(1 << 20)


def pass_messages(a, b, seed):
    """Sends IN_FLIGHT messages of each size from a to b, then receives and compares them."""
    for size in SIZES:
        sent = [message(size, seed + i) for i in range(IN_FLIGHT)]
        for data in sent:
            a.sendto(data, b.getsockname())
        for i, data in enumerate(sent):
            what = f"message {i} of {size} bytes to {b.getsockname()[0]}"
            got = receive(b, what)
            if got != data:
                sys.exit(f"{what}: received {len(got)} bytes, which differ from those sent")
        print(f"{IN_FLIGHT} messages of {size} bytes to {b.getsockname()[0]}")


def has_infiniband_connection(sock, a, b):
    """Searches RDS's list of connections, whose entries begin with the two addresses."""
    info = sock.getsockopt(SOL_RDS, RDS_INFO_IB_CONNECTIONS, 1024)
    return any(socket.inet_aton(x) + socket.inet_aton(y) in info for x, y in ((a, b), (b, a)))


def main():
    one, other = sys.argv[1:3]
    socks = []
    for address in (one, other):
        sock = socket.socket(socket.AF_RDS, socket.SOCK_SEQPACKET)
        sock.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, SOCKET_BUFFER)
        sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, SOCKET_BUFFER)
        sock.bind((address, PORT))
        socks.append(sock)
    pass_messages(socks[0], socks[1], 1)
    pass_messages(socks[1], socks[0], 1000)
    if not has_infiniband_connection(socks[0], one, other):
        sys.exit("RDS lists no InfiniBand connection between these addresses")


main()
