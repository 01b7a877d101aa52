#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""wrong_interface.py: a packet that is right in every bit, but comes by another interface than its QP's GID belongs to.

ip_layer.sh runs it in the first namespace. CASES has the cases, separated by semicolons, each
NAME,SENDER,FORGER,VICTIM,OWN,PEER,NEVER; SENDER, FORGER and VICTIM are DEVICE/NETDEV. A pair of QPs is connected from PEER of the
sender to OWN, the victim's address; then a QP of the forger sends, with the same addresses in another network, what is next. The
victim refuses and counts it, and takes the genuine SEND. With any_interface it is received, except from another VRF (NEVER is "never").
"""
import os
import random
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../security"))
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../packets"))
from endpoint import End
from ktap import check, plan


class Case:
    def __init__(self, kind, sender, forger, victim, own, peer):
        """@sender, @forger, @victim: device and netdev. @own: the victim's address."""
        self.sender, self.forger, self.victim = (End(dev) for dev, _ in (sender, forger, victim))
        first, back = random.randrange(1 << 24), random.randrange(1 << 24)
        qpn, forged, to = self.sender.create(kind), self.forger.create(kind), self.victim.create(kind)
        self.sender.connect(peer, own, to, back, first, sender[1])
        self.victim.connect(own, peer, qpn, first, back, victim[1])
        self.works = self.passes("genuine 1")
        self.forger.connect(peer, own, to, back, (first + 1) % (1 << 24), forger[1])
        self.port = f"/sys/class/infiniband/{victim[0]}/ports/1"

    def passes(self, text):
        self.victim.recv()
        return self.sent(text) and self.victim.wait(60) == [0, text]

    def sent(self, text):
        self.sender.send(text)
        return self.sender.wait(60) == [0, ""]

    def count(self):
        with open(f"{self.port}/hw_counters/rx_wrong_interface") as f:
            return int(f.read())

    def any_interface(self, value):
        with open(f"{self.port}/cc_param/any_interface", "w") as f:
            f.write(str(value))


def refused(case):
    """The forged SEND is refused and counted, and the genuine one arrives."""
    before = case.count()
    case.victim.recv()
    case.forger.send("forged")
    nothing = case.victim.wait(2) is None
    counted = case.count() > before
    return {"connected": case.works, "nothing received": nothing, "counted": counted,
            "genuine": case.sent("genuine 2") and case.victim.wait(60) == [0, "genuine 2"]}


def received(case):
    """The switch makes the forged SEND a right one."""
    case.any_interface(1)
    case.victim.recv()
    case.forger.send("forged")
    got = case.victim.wait(30)
    case.any_interface(0)
    return {"connected": case.works, "received": got == [0, "forged"]}


def still_refused(case):
    case.any_interface(1)
    facts = refused(case)
    case.any_interface(0)
    return facts


def main():
    for words in os.environ["CASES"].split(";"):
        name, sender, forger, victim, own, peer, never = words.split(",")
        ends = [tuple(end.split("/")) for end in (sender, forger, victim)]
        for kind in "RC", "UC":
            check(f"{name}, {kind}: refused and counted", **refused(Case(kind, *ends, own, peer)))
        if never == "never":
            check(f"{name}: refused also with any_interface", **still_refused(Case("UC", *ends, own, peer)))
        else:
            check(f"{name}: received with any_interface", **received(Case("UC", *ends, own, peer)))
    return plan()


sys.exit(main())
