#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Joins a multicast group by rdma_cm on lo, and sends to it: after rdma_bind_addr() alone, and, where the RDMA core
resolves a group over lo, which that of Linux 7.3 does and that of 6.12 refuses with ENODEV, after rdma_resolve_addr() too.

usage: cm_group.py ADDRESS GROUP
"""
import errno
import sys

import pyverbs.cm_enums as ce
import pyverbs.enums as e
from pyverbs.addr import AH
from pyverbs.cmid import CMID, AddrInfo, CMEvent, CMEventChannel, UDParam
from pyverbs.pyverbs_error import PyverbsRDMAError
from pyverbs.qp import QPCap, QPInitAttr

GRH, LENGTH, MULTICAST_QPN = 40, 1024, 0xffffff


def bound(address):
    channel = CMEventChannel()
    cmid = CMID(creator=channel, port_space=ce.RDMA_PS_UDP)
    cmid.bind_addr(AddrInfo(src=address, src_service="0", port_space=ce.RDMA_PS_UDP, flags=ce.RAI_PASSIVE))
    return channel, cmid


def next_event(channel, expected):
    event = CMEvent(channel)
    if event.event_type != expected:
        sys.exit(f"event {event.event_str()} in place of {expected}")
    return event


def resolve(channel, cmid, address, group):
    cmid.resolve_addr(AddrInfo(src=address, dst=group))
    next_event(channel, ce.RDMA_CM_EVENT_ADDR_RESOLVED).ack_cm_event()


def joined(address, group, resolved):
    channel, cmid = bound(address)
    if resolved:
        resolve(channel, cmid, address, group)
    cmid.create_qp(QPInitAttr(qp_type=e.IBV_QPT_UD, cap=QPCap(max_recv_wr=1)))
    cmid.join_multicast(addr=AddrInfo(src=group))
    event = next_event(channel, ce.RDMA_CM_EVENT_MULTICAST_JOIN)
    param = UDParam(event)
    event.ack_cm_event()
    return channel, cmid, param


def resolves(address, group):
    try:
        resolve(*bound(address), address, group)
    except PyverbsRDMAError as err:
        if err.error_code != errno.ENODEV:
            raise
        return False
    return True


def send(address, group, resolved):
    receiver = joined(address, group, resolved)[:2]
    sender = joined(address, group, resolved)
    mr = receiver[1].reg_msgs(GRH + LENGTH)
    receiver[1].post_recv(mr)
    data = sender[1].reg_msgs(GRH + LENGTH)
    data.write("c" * (GRH + LENGTH), GRH + LENGTH)
    sender[1].post_ud_send(data, AH(sender[1].pd, attr=sender[2].ah_attr), rqpn=MULTICAST_QPN, length=LENGTH)
    sender[1].get_send_comp()
    receiver[1].get_recv_comp()
    if mr.read(LENGTH, GRH) != b"c" * LENGTH:
        sys.exit("the datagram has other bytes")


address, group = sys.argv[1:]
send(address, group, False)
if resolves(address, group):
    send(address, group, True)
    print("# rdma_resolve_addr() of a group succeeds")
