#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Connects two taps, as a hypervisor does: frames keep their virtio-net headers, so GSO skbs and packets with checksums
not yet filled in cross it whole. Runs until it is killed; the taps are removed then. --tun: two tuns, which carry IP
packets without an Ethernet header.
    tap_wire.py [--tun] NAME1 NAME2
"""
import fcntl
import os
import select
import struct
import sys

TUNSETIFF, TUNSETOFFLOAD = 0x400454CA, 0x400454D0
IFF_TUN, IFF_TAP, IFF_NO_PI, IFF_VNET_HDR = 0x0001, 0x0002, 0x1000, 0x4000
CSUM, TSO4, TSO6, USO4, USO6 = 0x01, 0x02, 0x04, 0x20, 0x40  # TUN_F_*
LONGEST = 1 << 17


def open_end(name, kind):
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", name.encode(), kind | IFF_NO_PI | IFF_VNET_HDR))
    try:
        fcntl.ioctl(fd, TUNSETOFFLOAD, CSUM | TSO4 | TSO6 | USO4 | USO6)
    except OSError:  # before Linux 6.2: the kernel segments UDP trains
        fcntl.ioctl(fd, TUNSETOFFLOAD, CSUM | TSO4 | TSO6)
    return fd


def pass_on(source, target):
    try:
        os.write(target, os.read(source, LONGEST))
    except OSError:
        pass  # the end is down or busy: drop


def main():
    kind = IFF_TUN if sys.argv[1] == "--tun" else IFF_TAP
    ends = [open_end(name, kind) for name in sys.argv[-2:]]
    other = dict(zip(ends, reversed(ends)))
    while True:
        for fd in select.select(ends, [], [])[0]:
            pass_on(fd, other[fd])


main()
