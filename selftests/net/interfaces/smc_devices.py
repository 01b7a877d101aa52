#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Prints the RDMA devices that SMC knows, as NAME VENDOR DEVICE FUNCTION CHANNEL: the IDs that it reads as those of a PCI device."""
import socket
import struct

NETLINK_GENERIC, GENL_ID_CTRL = 16, 16
CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_ID, CTRL_ATTR_FAMILY_NAME = 3, 1, 2
SMC_NETLINK_GET_DEV_SMCR = 6
SMC_GEN_DEV_SMCR = 6
SMC_NLA_DEV_IB_NAME = 10
# FUNCTION and CHANNEL are of s390's PCI; on other CPUs SMC answers 0.
SMC_NLA_DEV_PCI_FID, SMC_NLA_DEV_PCI_CHID, SMC_NLA_DEV_PCI_VENDOR, SMC_NLA_DEV_PCI_DEVICE = 3, 4, 5, 6
PCI_IDS = ((SMC_NLA_DEV_PCI_VENDOR, "=H"), (SMC_NLA_DEV_PCI_DEVICE, "=H"), (SMC_NLA_DEV_PCI_FID, "=I"), (SMC_NLA_DEV_PCI_CHID, "=H"))
NLM_F_REQUEST, NLM_F_DUMP, NLMSG_ERROR, NLMSG_DONE = 1, 0x300, 2, 3


def attributes(data):
    found = {}
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        found[kind & 0x3fff] = data[4:length]
        data = data[(length + 3) & ~3:]
    return found


def ask(sock, family, command, flags, payload=b""):
    sock.send(struct.pack("=IHHII", 20 + len(payload), family, NLM_F_REQUEST | flags, 1, 0) + struct.pack("=BBH", command, 1, 0) + payload)
    while True:
        data = sock.recv(65536)
        while data:
            length, kind = struct.unpack_from("=IH", data)
            if kind == NLMSG_ERROR:
                raise OSError(-struct.unpack_from("=i", data, 16)[0], "netlink")
            if kind == NLMSG_DONE:
                return
            yield attributes(data[20:length])
            if not flags:
                return
            data = data[(length + 3) & ~3:]


def main():
    sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_GENERIC)
    sock.bind((0, 0))
    name = b"SMC_GEN_NETLINK\0"
    head = struct.pack("=HH", 4 + len(name), CTRL_ATTR_FAMILY_NAME) + name
    family = next(ask(sock, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 0, head))[CTRL_ATTR_FAMILY_ID]
    for answer in ask(sock, struct.unpack("=H", family)[0], SMC_NETLINK_GET_DEV_SMCR, NLM_F_DUMP):
        device = attributes(answer[SMC_GEN_DEV_SMCR])
        print(device[SMC_NLA_DEV_IB_NAME].rstrip(b"\0").decode(),
              *("0x%x" % struct.unpack_from(size, device[a])[0] for a, size in PCI_IDS))


main()
