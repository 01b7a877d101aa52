#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""capture.py DEV FILE: writes frames of DEV to UDP port 4791, both directions, to a pcap file until SIGTERM and then
until the socket is empty. The file appears when the socket is open.

Uses a packet socket only, so that the test needs no tcpdump. It does not decode. The VLAN tag, which the kernel removes
from the frame and passes separately, is inserted again.
"""
import signal
import socket
import struct
import sys
import time


def tag_of(ancillary):
    """Returns the four bytes of the VLAN tag, or none, from struct tpacket_auxdata."""
    for _, _, data in ancillary:
        status, _, _, _, _, tci, tpid = struct.unpack("IIIHHHH", data[:20])
        if status & 0x10:   # TP_STATUS_VLAN_VALID
            return struct.pack(">HH", tpid, tci)
    return b""


def main():
    dev, path = sys.argv[1:]
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    s.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
    s.setsockopt(263, 8, 1)  # SOL_PACKET, PACKET_AUXDATA
    s.bind((dev, 3))
    s.settimeout(0.2)
    stop = []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(1))
    with open(path, "wb") as f:
        f.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1))
        f.flush()
        while True:
            try:
                p, ancillary, _, _ = s.recvmsg(262144, 64)
            except socket.timeout:  # the socket is empty
                if stop:
                    break
                continue
            off = 14
            if p[12:14] == b"\x08\x00" and p[23] == 17:
                off += (p[14] & 15) * 4
            elif p[12:14] == b"\x86\xdd" and p[20] == 17:
                off += 40
            else:
                continue
            if p[off + 2:off + 4] != struct.pack(">H", 4791):
                continue
            tag = tag_of(ancillary)
            p = p[:12] + tag + p[12:]
            now = time.time()
            f.write(struct.pack("<IIII", int(now), int(now % 1 * 1e6), len(p), len(p)) + p)
    # Frames dropped for lack of socket memory would look like missing packets of roan: report them.
    seen, dropped = struct.unpack("II", s.getsockopt(263, 6, 8))
    print(f"{seen} frames, {dropped} dropped")


main()
