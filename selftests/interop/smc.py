#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
# AF_SMC stream sockets: the kernel sends their data by SMC-R over an RDMA device.
#	smc.py eid			gives this kernel an EID, which SMC-R version 2 requires
#	smc.py serve ADDRESS N		accepts N connections and sends back what each receives
#	smc.py talk ADDRESS N [cut]	N connections, one after the other: what comes back is compared with what was sent.
#					cut: each is closed while data is on its way in both directions
import random
import socket
import struct
import sys
import threading

AF_SMC = 43
PORT = 5790
BYTES = 2 << 20		# of each connection: several times SMC's buffers
NETLINK_GENERIC = 16
NLM_F_REQUEST, NLM_F_ACK = 1, 4
GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_ID, CTRL_ATTR_FAMILY_NAME = 16, 3, 1, 2
SMC_NETLINK_ADD_UEID, SMC_NLA_EID_TABLE_ENTRY, SMC_MAX_EID_LEN = 10, 1, 32


def netlink_attribute(kind, value):
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def netlink_request(sock, family, command, attributes):
    body = struct.pack("=BBH", command, 1, 0) + attributes
    sock.send(struct.pack("=IHHII", 16 + len(body), family, NLM_F_REQUEST | NLM_F_ACK, 1, 0) + body)
    return sock.recv(1 << 16)


def smc_family(sock):
    reply = netlink_request(sock, GENL_ID_CTRL, CTRL_CMD_GETFAMILY,
                            netlink_attribute(CTRL_ATTR_FAMILY_NAME, b"SMC_GEN_NETLINK\0"))
    at = 20
    while at < len(reply):
        size, kind = struct.unpack_from("=HH", reply, at)
        if kind == CTRL_ATTR_FAMILY_ID:
            sock.recv(1 << 16)		# the acknowledgement
            return struct.unpack_from("=H", reply, at + 4)[0]
        at += (size + 3) & ~3
    sys.exit("the kernel has no SMC_GEN_NETLINK")


def add_eid(name):
    sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_GENERIC)
    reply = netlink_request(sock, smc_family(sock), SMC_NETLINK_ADD_UEID,
                            netlink_attribute(SMC_NLA_EID_TABLE_ENTRY, name.ljust(SMC_MAX_EID_LEN).encode() + b"\0"))
    error = struct.unpack_from("=i", reply, 16)[0]
    if error:
        sys.exit(f"the EID is refused: error {error}")


def smc_socket():
    """Python knows no addresses of AF_SMC. They are those of AF_INET."""
    fd = socket.socket(AF_SMC, socket.SOCK_STREAM, 0).detach()
    return socket.socket(socket.AF_INET, socket.SOCK_STREAM, 0, fd)


def send_back(sock):
    try:
        while data := sock.recv(1 << 16):
            sock.sendall(data)
    except OSError:
        pass		# the peer has closed the connection
    sock.close()


def serve(address, count):
    listener = smc_socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, PORT))
    listener.listen(16)
    print("ready", flush=True)
    for _ in range(count):
        threading.Thread(target=send_back, args=(listener.accept()[0],)).start()


def send(sock, data):
    try:
        sock.sendall(data)
    except OSError:
        pass		# cut


def talk(address, count, cut):
    for i in range(count):
        sock = smc_socket()
        sock.connect((address, PORT))
        data = random.Random(i).randbytes(BYTES)
        threading.Thread(target=send, args=(sock, data), daemon=True).start()
        got = bytearray()
        while len(got) < (BYTES // 4 if cut else BYTES):
            part = sock.recv(1 << 16)
            if not part:
                sys.exit(f"connection {i} ended after {len(got)} bytes")
            got += part
        if data[:len(got)] != got:
            sys.exit(f"connection {i}: the bytes that came back differ from those sent")
        if cut:
            sock.shutdown(socket.SHUT_RDWR)
        sock.close()


what, rest = sys.argv[1], sys.argv[2:]
if what == "eid":
    add_eid("ROAN")
elif what == "serve":
    serve(rest[0], int(rest[1]))
else:
    talk(rest[0], int(rest[1]), len(rest) > 2)
