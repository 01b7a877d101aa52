#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""icrc.py FILE: recomputes the ICRC of every RoCE v2 packet of a pcap file with zlib. Shares no code with roan.

IBTA RoCE v2 annex A17.3: CRC-32 over 8 bytes of ones in place of the LRH, the IP and UDP headers with their variant
fields set to ones, the BTH with its FECN/BECN byte (resv8a) set to ones, and the rest; stored least significant byte
first.
"""
import struct
import sys
import zlib


def icrc(ip, transport):
    """@ip: the IP header; @transport: UDP header to the end of the payload, without the ICRC."""
    ip, t = bytearray(ip), bytearray(transport)
    if ip[0] >> 4 == 4:
        ip[1] = 0xFF  # DSCP and ECN
        ip[8] = 0xFF  # TTL
        ip[10:12] = b"\xff\xff"  # header checksum
    else:
        ip[0] |= 0x0F  # traffic class and flow label
        ip[1:4] = b"\xff\xff\xff"
        ip[7] = 0xFF  # hop limit
    t[6:8] = b"\xff\xff"  # UDP checksum
    t[12] = 0xFF  # BTH resv8a: FECN, BECN and six reserved bits
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(ip) + bytes(t)) & 0xFFFFFFFF)


def packets(path):
    with open(path, "rb") as f:
        f.read(24)
        while True:
            h = f.read(16)
            if len(h) < 16:
                return
            yield f.read(struct.unpack("<I", h[8:12])[0])


def split(frame):
    """Yields IP header and UDP datagram, cut to the IP length (Ethernet pads short frames)."""
    ip = frame[14:]
    if ip[0] >> 4 == 4:
        n = (ip[0] & 15) * 4
        return ip[:n], ip[n:struct.unpack(">H", ip[2:4])[0]]
    return ip[:40], ip[40:40 + struct.unpack(">H", ip[4:6])[0]]


def main():
    good = bad = 0
    for number, frame in enumerate(packets(sys.argv[1]), 1):
        ip, udp = split(frame)
        if icrc(ip, udp[:-4]) == udp[-4:]:
            good += 1
        else:
            bad += 1
            if bad <= 5:
                print(f"packet {number}: opcode {udp[8]:#x}, ICRC {udp[-4:].hex()}, should be {icrc(ip, udp[:-4]).hex()}")
    print(f"{good} right, {bad} wrong")
    sys.exit(0 if good > 100 and not bad else 1)


if __name__ == "__main__":
    main()
