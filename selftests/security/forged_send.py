#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""forged_send.py [OPTIONS]: a program that speaks for a QP of this host: sends one SEND with its text, from this host's own
address, by a plain UDP socket. injection.py runs it as an unprivileged user. Exit status: 0 sent, 1 refused with EPERM,
4 this kernel lacks the way of sending; the errno is printed.

A UDP socket that is not connected and may not fragment sends IPv4 packets with identification 0, so the ICRC can be
computed beforehand.
"""
import argparse
import errno
import os
import socket
import struct
import sys

from roce_packets import SEND_ONLY, UC, bth, ip_header
from icrc import icrc

SOL_UDP, UDP_SEGMENT, IP_MTU_DISCOVER, PMTUDISC_DO, IPV6_FREEBIND, IPV6_RTHDR = 17, 103, 10, 2, 78, 57
SO_ZEROCOPY, MSG_ZEROCOPY = 60, 0x4000000


def transport(args, udp_len, psn, ident):
    """BTH to ICRC."""
    family = 6 if ":" in args.src else 4
    body = bth(UC | SEND_ONLY if args.uc else SEND_ONLY, args.qpn, psn, ack=True) + args.text.encode()
    udp = struct.pack(">HHHH", args.sport, 4791, udp_len, 0)
    return body + icrc(ip_header(family, args.src, args.dst, udp_len, ident), udp + body)


def opened(args):
    if args.fd is not None:
        return socket.socket(fileno=args.fd)
    ipv6 = ":" in args.src or args.way == "mapped"
    sock = socket.socket(socket.AF_INET6 if ipv6 else socket.AF_INET, socket.SOCK_DGRAM)
    if args.way == "freebind":
        sock.setsockopt(socket.IPPROTO_IPV6, IPV6_FREEBIND, 1)
    if ":" not in args.src:
        sock.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, PMTUDISC_DO)
    sock.bind((("::ffff:" if args.way == "mapped" else "") + args.src, args.sport))
    return sock


def send(args, sock):
    to = (("::ffff:" if args.way == "mapped" else "") + args.dst, 4791)
    length = 8 + 12 + len(args.text) + 4
    packet = transport(args, length, args.psn, 0)
    if args.way == "connected":
        sock.connect(to)
        sock.send(packet)
    elif args.way == "corked":
        sock.sendto(packet[:16], socket.MSG_MORE, to)
        sock.sendto(packet[16:], to)
    elif args.way == "gso":
        sock.setsockopt(SOL_UDP, UDP_SEGMENT, length - 8)
        sock.sendto(packet + transport(args, length, args.psn + 1, 1), to)
    elif args.way == "zerocopy":
        sock.setsockopt(socket.SOL_SOCKET, SO_ZEROCOPY, 1)
        sock.sendto(packet, MSG_ZEROCOPY, to)
    elif args.way == "rthdr":     # type 4, one segment: the destination itself
        segment = socket.inet_pton(socket.AF_INET6, args.dst)
        sock.setsockopt(socket.IPPROTO_IPV6, IPV6_RTHDR, bytes([0, 2, 4, 0, 0, 0, 0, 0]) + segment)
        sock.sendto(packet, to)
    else:
        sock.sendto(packet, to)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--way", default="plain")
    p.add_argument("--fd", type=int, help="send by this socket instead of an own one")
    p.add_argument("--src")
    p.add_argument("--dst")
    p.add_argument("--sport", type=int, default=50000)
    p.add_argument("--qpn", type=int)
    p.add_argument("--psn", type=int)
    p.add_argument("--text", default="this SEND is not from you")
    p.add_argument("--uc", action="store_true")
    args = p.parse_args()
    args.text += " " * (-len(args.text) % 4)    # no padding
    try:
        send(args, opened(args))
    except OSError as err:
        print(f"{err.errno} {os.strerror(err.errno)}")
        sys.exit(1 if err.errno == errno.EPERM else 4)


if __name__ == "__main__":
    main()
