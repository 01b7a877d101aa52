# SPDX-License-Identifier: GPL-2.0
"""roce_packets.py: builds RoCE v2 packets with ICRCs, and a packet socket to send them. packets.py decides what to
send."""
import ctypes
import ipaddress
import os
import socket
import struct

from icrc import icrc

H1 = {4: os.environ["H1IP"], 6: os.environ["H1IP6"]}
H2 = {4: os.environ["H2IP"], 6: os.environ["H2IP6"]}
OTHER = {4: "10.7.0.99", 6: "fd07::99"}     # no host
SECOND = {4: "10.7.0.22", 6: "fd07::22"}    # second address of h2
PEER_QPN, PSN, QKEY, GSI_QKEY, MTU = 0x777, 100, 0x11111111, 0x80010000, 1024
SEND_FIRST, SEND_MIDDLE, SEND_LAST, SEND_ONLY, SEND_INV = 0, 1, 2, 4, 23
WRITE_FIRST, WRITE_ONLY, READ, ACK, ATOMIC_ACK, FETCH_ADD = 6, 10, 12, 17, 18, 20
UC, UD_SEND, CNP, SACK = 0x20, 0x64, 0x81, 0xC0


def mac(dev):
    with open(f"/sys/class/net/{dev}/address") as f:
        return bytes.fromhex(f.read().strip().replace(":", ""))


class Wire:
    """A packet socket on v1, opened in namespace h1 by a process in h2."""

    def __init__(self):
        libc = ctypes.CDLL(None, use_errno=True)
        home = os.open("/proc/self/ns/net", os.O_RDONLY)
        h1 = os.open("/run/netns/h1", os.O_RDONLY)
        if libc.setns(h1, 0x40000000):
            raise OSError(ctypes.get_errno(), "setns")
        try:
            self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
            self.sock.bind(("v1", 3))
            self.train = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            self.train.bind(("v1", 0))
            self.train.setsockopt(263, 15, 1)   # SOL_PACKET, PACKET_VNET_HDR
        finally:
            libc.setns(home, 0x40000000)
        self.sock.setblocking(False)
        self.h1mac = self.sock.getsockname()[4]
        self.h2mac = mac("v2")

    def ether(self, family):
        return self.h2mac + self.h1mac + (b"\x08\x00" if family == 4 else b"\x86\xdd")

    def send(self, packet):
        family = packet[0] >> 4
        self.sock.send(self.ether(family) + packet)

    def train_of(self, bodies, size, bad=()):
        """A frame for self.train: packets around @bodies with one UDP header, @size bytes each. Those in @bad have a wrong ICRC."""
        length, data = 8 + sum(map(len, bodies)) + 4 * len(bodies), b""
        for i, body in enumerate(bodies):
            data += datagram(body, ident=1 + i, good=i not in bad)[28:]
        ip, udp = ip_header(4, H1[4], H2[4], length), struct.pack(">HHH", 0xC123, 4791, length)
        pseudo = ip[12:20] + struct.pack(">HH", 17, length)
        vnet = struct.pack("=BBHHHH", 1, 5, 14 + 28, size, 14 + 20, 6)
        return vnet + self.ether(4) + ip + udp + struct.pack(">H", ~checksum(pseudo) & 0xFFFF) + data

    def replies(self):
        """Returns BTH to payload of the packets h2 sent, oldest first; their traffic classes are in self.tos, their UDP source
        ports in self.sport."""
        got, self.tos, self.sport = [], [], []
        while True:
            try:
                frame, (_, _, kind, _, _) = self.sock.recvfrom(65536)
            except BlockingIOError:
                return got
            if kind == 4:   # PACKET_OUTGOING: sent by this socket
                continue
            ip = frame[14:]
            skip = 28 if ip[0] >> 4 == 4 else 48
            if ip[skip - 6:skip - 4] == struct.pack(">H", 4791):
                got.append(ip[skip:])
                self.sport.append(struct.unpack(">H", ip[skip - 8:skip - 6])[0])
                self.tos.append(struct.unpack(">H", ip[:2])[0] >> 4 & 0xFF if skip == 48 else ip[1])


def checksum(data):
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ip_header(family, src, dst, udp_len, ident=1, options=b"", next_header=17, frag=0x4000, tos=0):
    src, dst = ipaddress.ip_address(src).packed, ipaddress.ip_address(dst).packed
    if family == 6:
        return struct.pack(">IHBB", 0x60000000 | tos << 20, udp_len, next_header, 64) + src + dst
    ihl = 5 + len(options) // 4
    h = struct.pack(">BBHHHBBH", 0x40 | ihl, tos, ihl * 4 + udp_len, ident, frag, 64, 17, 0) + src + dst + options
    return h[:10] + struct.pack(">H", checksum(h)) + h[12:]


def bth(op, qpn, psn=PSN, pkey=0xFFFF, ver=0, pad=0, ack=False, mig=True, becn=False, extensions=0):
    return struct.pack(">BBHII", op, mig << 6 | pad << 4 | ver, pkey, becn << 30 | qpn, ack << 31 | extensions << 24 | psn & 0xFFFFFF)


def datagram(body, family=4, src=None, dst=None, good=True, udp_len=None, options=b"", ident=1, tos=0, sport=0xC123):
    """An IP packet around @body (BTH to payload) with its ICRC. @good False: one bit of the ICRC is wrong."""
    length = 8 + len(body) + 4
    udp = struct.pack(">HHHH", sport, 4791, udp_len or length, 0)
    ip = ip_header(family, src or H1[family], dst or H2[family], length, ident, options, tos=tos)
    crc = bytearray(icrc(ip, udp + body)) if len(body) >= 12 else bytearray(4)
    if not good:
        crc[2] ^= 0x10
    return ip + udp + body + bytes(crc)


def fragments(body, ident):
    """A valid IPv4 packet in two fragments. Its ICRC is over the header without fragmentation, as after reassembly."""
    length = 8 + len(body) + 4
    udp = struct.pack(">HHHH", 0xC123, 4791, length, 0)
    data = udp + body
    data += icrc(ip_header(4, H1[4], H2[4], length, ident, frag=0), data)
    return [ip_header(4, H1[4], H2[4], 48, ident, frag=0x2000) + data[:48],
            ip_header(4, H1[4], H2[4], length - 48, ident, frag=48 // 8) + data[48:]]


def raw(payload, family=4, udp_len=None):
    """An IP packet with @payload as its UDP payload."""
    udp = struct.pack(">HHHH", 0xC123, 4791, udp_len if udp_len is not None else 8 + len(payload), 0)
    return ip_header(family, H1[family], H2[family], 8 + len(payload)) + udp + payload


def reth(va, rkey, length):
    return struct.pack(">QII", va, rkey, length)


def deth(qkey=QKEY, src_qpn=5):
    return struct.pack(">II", qkey, src_qpn)
