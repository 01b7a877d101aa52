#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""trains.py DEV FILE PATH...: reads skbs of DEV to UDP port 4791, both directions, and segments them as GSO would;
until SIGTERM.

PATH is MTU:TRAFFIC_CLASS of the connections that carry data meanwhile. Each train (GSO skb) must be of one QP, in PSN
order, of full packets except the last, and each packet must have the ICRC that is right after segmentation. Each QP
must use one path MTU and traffic class, and those must be the given ones. FILE appears when the socket is open. Exits 0
if all that holds.
"""
import collections
import signal
import socket
import struct
import sys

from icrc import icrc

GSO_UDP_L4 = 5
PAYLOAD_AT = {6: 28, 7: 12, 8: 12, 10: 28, 13: 16, 14: 12, 15: 16, 16: 16}   # WRITE and READ response of RC, by opcode


def capture(dev, path):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    s.setsockopt(socket.SOL_SOCKET, 33, 128 << 20)  # SO_RCVBUFFORCE
    s.setsockopt(263, 15, 1)  # SOL_PACKET, PACKET_VNET_HDR
    s.bind((dev, 3))
    s.settimeout(0.2)
    stop, frames = [], []
    signal.alarm(600)
    signal.signal(signal.SIGTERM, lambda *_: stop.append(1))
    with open(path, "w"):
        pass
    while True:
        try:
            frames.append(s.recv(262144))
        except socket.timeout:  # the socket is empty
            if stop:
                break
    dropped = struct.unpack("II", s.getsockopt(263, 6, 8))[1]
    return frames, dropped


def skbs(frames):
    """For RoCE: IP header, UDP header, UDP payload, GSO segment size (0: a single packet)."""
    for frame in frames:
        kind, size = frame[1] & 0x7F, struct.unpack_from("=H", frame, 4)[0]
        ip, proto = frame[10 + 14:], frame[10 + 12:10 + 14]
        l3 = {b"\x08\x00": 20, b"\x86\xdd": 40}.get(proto)
        if not l3 or ip[9 if l3 == 20 else 6] != 17 or ip[l3 + 2:l3 + 4] != struct.pack(">H", 4791):
            continue
        end = struct.unpack_from(">H", ip, 2)[0] if l3 == 20 else 40 + struct.unpack_from(">H", ip, 4)[0]
        yield ip[:l3], ip[l3:l3 + 8], ip[l3 + 8:end], size if kind == GSO_UDP_L4 else 0


def alone(ip, udp, i, length):
    """The headers of packet @i of a train after segmentation."""
    ip, udp = bytearray(ip), bytearray(udp)
    struct.pack_into(">H", udp, 4, 8 + length)
    if len(ip) == 40:
        struct.pack_into(">H", ip, 4, 8 + length)
    else:
        struct.pack_into(">HH", ip, 2, 28 + length, struct.unpack_from(">H", ip, 4)[0] + i & 0xFFFF)
    return bytes(ip), bytes(udp)


def faults(ip, udp, packets):
    """Describes the errors of this train."""
    if {p[5:8] for p in packets} != {packets[0][5:8]}:
        yield "several queue pairs"
    psns = [int.from_bytes(p[9:12], "big") for p in packets]
    if any(not 0 < (b - a & 0xFFFFFF) < 0x800000 for a, b in zip(psns, psns[1:])):
        yield f"PSNs {psns}"
    if any(len(p) != len(packets[0]) for p in packets[:-1]) or len(packets[-1]) > len(packets[0]):
        yield f"lengths {[len(p) for p in packets]}"
    for i, p in enumerate(packets):
        head, transport = alone(ip, udp, i, len(p))
        if icrc(head, transport + p[:-4]) != p[-4:]:
            yield f"wrong ICRC in packet {i} of {len(packets)}"


def main():
    dev, path, *expected = sys.argv[1:]
    expected = {tuple(map(int, e.split(":"))) for e in expected}
    frames, dropped = capture(dev, path)
    wrong, lengths, classes, mtus = [], collections.Counter(), collections.defaultdict(set), collections.Counter()
    for ip, udp, data, size in skbs(frames):
        packets = [data[i:i + size] for i in range(0, len(data), size)] if size else [data]
        wrong += faults(ip, udp, packets)
        lengths[len(packets)] += 1
        for p in packets:
            if p[0] not in PAYLOAD_AT:
                continue
            qpn = p[5:8]
            classes[qpn].add(struct.unpack_from(">H", ip)[0] >> 4 & 0xFC if len(ip) == 40 else ip[1] & 0xFC)
            mtus[qpn] = max(mtus[qpn], len(p) - PAYLOAD_AT[p[0]] - 4)
    found = {(mtus[q], c) for q, cs in classes.items() for c in cs}
    trains = sum(n for k, n in lengths.items() if k > 1)
    print(f"{sum(lengths.values())} skbs, {trains} of them trains, the longest {max(lengths, default=0)} packets")
    print(f"queue pairs with data: {len(mtus)}; path MTU and traffic class: {sorted(found)}; {dropped} frames not seen")
    print("\n".join(wrong[:10]))
    mixed = [q.hex() for q, cs in classes.items() if len(cs) > 1]
    if mixed:
        print(f"several traffic classes: {mixed}")
    sys.exit(bool(wrong or mixed or found != expected or trains < 100))


main()
