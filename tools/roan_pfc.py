# SPDX-License-Identifier: GPL-2.0
"""Priorities with PFC: what the interface's DCB state says, and what the device obeys.

    roan pfc DEV              shows both
    roan pfc DEV --apply      sets cc_param/pfc_prio_mask to the DCB state
    roan pfc DEV --follow     and again after each change by dcb, lldpad or the adapter's DCBX, until it is stopped

Run it in the interface's network namespace; --apply and --follow need root. The interface's driver keeps the DCB state; without one
(veth, tap, virtio) set the mask itself: roan cc set DEV pfc_prio_mask=MASK. Documentation/qos-pfc.md
"""
import argparse
import json
import os
import socket

from roan_figures import Refused, iproute, port, read

SOL_NETLINK, ADD_MEMBERSHIP, RTNLGRP_DCB = 270, 1, 23
BUFFER = 65536		# bytes, of one message


def interface(dev):
    port(dev)
    done = iproute("rdma", "-j", "link", "show", dev + "/1")
    links = json.loads(done.stdout or "[]") if not done.returncode else []
    name = links[0].get("netdev") if links else None
    if not name or not os.path.isdir("/sys/class/net/" + name):
        raise Refused("the interface of %s is in another network namespace: ip netns exec NS roan pfc %s" % (dev, dev))
    return name


def dcb_mask(netdev):
    """Priorities that the interface's DCB state enables."""
    done = iproute("dcb", "-j", "pfc", "show", "dev", netdev)
    if done.returncode:
        raise Refused("the driver of %s has no DCB state (%s); set the mask itself: roan cc set DEV pfc_prio_mask=MASK" % (
            netdev, done.stderr.strip().split("\n")[0]))
    return sum(1 << prio for prio, on in enumerate(json.loads(done.stdout)["prio_pfc"]) if on in (True, "on"))


def names(mask):
    return ", ".join(str(i) for i in range(8) if mask & 1 << i) or "none"


def mask_of(dev):
    return int(read(port(dev), "cc_param/pfc_prio_mask"))


def apply(dev, mask):
    if mask_of(dev) == mask:
        return
    try:
        with open(os.path.join(port(dev), "cc_param/pfc_prio_mask"), "w") as f:
            f.write(str(mask))
    except OSError as e:
        raise Refused("pfc_prio_mask: %s" % e.strerror)
    print("%s: pfc_prio_mask %d: priorities %s" % (dev, mask, names(mask)), flush=True)


def show(dev, netdev):
    wanted, mask = dcb_mask(netdev), mask_of(dev)
    cnp = int(read(port(dev), "cc_param/cnp_802p_prio"))
    print("%s: DCB has PFC for priorities %s" % (netdev, names(wanted)))
    print("%s: obeys pauses of priorities %s" % (dev, names(mask & ~(1 << cnp))))
    if mask & 1 << cnp:
        print("    priority %d is that of CNPs, which no pause delays" % cnp)
    if mask != wanted:
        print("    they differ: roan pfc %s --apply" % dev)


def follow(dev, netdev):
    """The kernel sends a message to the group whenever DCB state is set, of any interface."""
    changes = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
    changes.bind((0, 0))
    changes.setsockopt(SOL_NETLINK, ADD_MEMBERSHIP, RTNLGRP_DCB)
    while True:				# the first look is after the subscription: no change is missed
        apply(dev, dcb_mask(netdev))
        try:
            changes.recv(BUFFER)
        except OSError:			# messages were lost: look again
            pass


def main(words):
    parser = argparse.ArgumentParser(prog="roan pfc", usage="\n" + __doc__.split("\n\n", 1)[1])
    parser.add_argument("dev")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--apply", action="store_true")
    how.add_argument("--follow", action="store_true")
    args = parser.parse_args(words)
    port(args.dev)
    netdev = interface(args.dev)
    if args.follow:
        follow(args.dev, netdev)
    elif args.apply:
        apply(args.dev, dcb_mask(netdev))
    else:
        show(args.dev, netdev)
