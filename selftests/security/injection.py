#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""injection.py: a user without rights on the sender's host tries to speak for its QP.

Runs as root in the initial namespace (injection.sh). For each way to send a UDP packet a new pair of QPs is connected,
some SENDs pass, and forged_send.py, as an unprivileged user in h1, sends the SEND that is next. The receiver must not get it;
it must be counted; the genuine SEND with that PSN must arrive. With CAP_NET_RAW the same program must succeed: so the
forged packet is right in every bit, and only the right to send it is missing.

    h1: endpoint.py, forged_send.py  roan1 ======== roan2  endpoint.py :h2

Then from containers: routed by h1, and bridged by s, without and with the rules of Documentation/roce-guard.nft. At the
end rdma_rxe's answer to the same attack, as a remark.
"""
import json
import os
import random
import socket
import subprocess
import sys

from ktap import Tap, check, plan, result

PY, HERE = "/usr/bin/python3", os.environ["FORGE"]      # a copy that any user can read
NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--bounding-set", "-all"]
RQ_PSN, SQ_PSN = 1 << 12, 1 << 16       # IBV_QP_RQ_PSN, IBV_QP_SQ_PSN
ADDRESS = {4: (os.environ["H1IP"], os.environ["H2IP"]), 6: (os.environ["H1IP6"], os.environ["H2IP6"])}
ABSENT = "fd07::99"
GENUINE = "genuine"


def inside(ns):
    return ["ip", "netns", "exec", ns] if ns else []


class Remote:
    """endpoint.py in a namespace; its methods are called by name."""

    def __init__(self, ns, dev):
        self.ns, self.dev = ns, dev
        self.process = subprocess.Popen(inside(ns) + [PY, f"{HERE}/endpoint.py", dev], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.answer()

    def answer(self):
        return json.loads(self.process.stdout.readline())

    def __getattr__(self, name):
        def call(*args):
            self.process.stdin.write(json.dumps([name, *args]) + "\n")
            self.process.stdin.flush()
            return self.answer()
        return call

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Pair:
    """A connection from @a to @b on which three SENDs have passed; .psn is the next one, .qpn the receiver's number."""

    def __init__(self, a, b, family, kind="RC", own=None, peer=None):
        self.a, self.b, self.kind = a, b, kind
        self.src, self.dst = own or ADDRESS[family][0], peer or ADDRESS[family][1]
        first, back = random.randrange(1 << 24), random.randrange(1 << 24)
        qpn, self.qpn = a.create(kind), b.create(kind)
        a.connect(self.src, self.dst, self.qpn, back, first)
        b.connect(self.dst, self.src, qpn, first, back)
        self.first, self.psn = first, (first + 3) % (1 << 24)
        self.works = all(self.passes(f"number {n}") for n in range(3))

    def passes(self, text):
        """A SEND from @a arrives at @b."""
        self.b.recv()
        return self.sent(text) and self.b.wait(60) == [0, text]

    def sent(self, text):
        self.a.send(text)
        return self.a.wait(60) == [0, ""]

    def forged(self, *options, user=NOBODY, ns="h1", fd=None, src=None):
        """forged_send.py's exit status and output."""
        args = ["--src", src or self.src, "--dst", self.dst, "--qpn", str(self.qpn), "--psn", str(self.psn), *options]
        args += ["--uc"] if self.kind == "UC" else []
        args += ["--fd", str(fd)] if fd is not None else []
        run = subprocess.run(inside(ns) + user + [PY, f"{HERE}/forged_send.py", *args], capture_output=True, text=True,
                             pass_fds=[fd] if fd is not None else [])
        sys.stderr.write(run.stderr)
        return run.returncode, run.stdout.strip()


def dropped(end):
    """Packets of sockets that the device dropped; 0 for a module without that counter. A device is in the sysfs of the
    initial namespace."""
    try:
        with open(f"/sys/class/infiniband/{end.dev}/ports/1/hw_counters/tx_unprivileged") as f:
            return int(f.read())
    except FileNotFoundError:
        return 0


def shown(ns, dev, user):
    """The first connected QP that `rdma resource show qp -dd` shows to @user, of device @dev."""
    out = subprocess.run(inside(ns) + user + ["rdma", "-j", "-dd", "resource", "show", "qp", "link", dev], check=True,
                         capture_output=True, text=True).stdout
    return next(q for q in json.loads(out) if q["type"] in ("RC", "UC"))


def refused(a, b, name, family, *options, kind="RC", user=NOBODY):
    """The forged SEND is dropped at its source, and the genuine one arrives."""
    pair = Pair(a, b, family, kind)
    before = dropped(a)
    b.recv()
    status, said = pair.forged(*options, user=user)
    if status == 4:
        print(f"ok {Tap.count + 1} {name} # SKIP {said}")
        Tap.count += 1
        return
    first = b.wait(1)
    facts = {"connected": pair.works, "EPERM": status == 1, "counted": dropped(a) > before,
             "nothing received": first is None}
    if first is None:
        facts["the genuine SEND arrives"] = pair.sent(GENUINE) and b.wait(60) == [0, GENUINE]
    else:
        b.recv()
        lost = pair.sent(GENUINE) and b.wait(1) is None
        fate = "reported success and was lost" if lost else "arrived"
        print(f"# {name}: received {first}; the genuine SEND {fate}")
    check(name, **facts)


def accepted(a, b, name, family, *options, user=(), opener=False):
    """The same packet, sent by or through a program with CAP_NET_RAW, is received."""
    pair = Pair(a, b, family)
    before, fd = dropped(a), None
    if opener:      # opened here, with all rights, in h1; used by the unprivileged program
        fd = socket_in("h1", pair.src)
    b.recv()
    status, said = pair.forged(*options, user=list(user), fd=fd)
    if fd is not None:
        os.close(fd)
    got = b.wait(20)
    check(name, connected=pair.works, sent=status == 0, received=got and not got[0] and "not from you" in got[1],
          not_counted=dropped(a) == before)


def socket_in(ns, address):
    """The descriptor of a UDP socket of namespace @ns on port 50000, opened by root."""
    home, there = os.open("/proc/self/ns/net", os.O_RDONLY), os.open(f"/run/netns/{ns}", os.O_RDONLY)
    setns(there)
    try:
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.setsockopt(socket.IPPROTO_IP, 10, 2)
        sock.bind((address, 50000))
    finally:
        setns(home)
    return sock.detach()


def setns(fd):
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(fd, 0x40000000):
        raise OSError(ctypes.get_errno(), "setns")


def psns_are_shown_to_few(a, b):
    pair = Pair(a, b, 4)
    seen = {"user": shown("h1", a.dev, NOBODY), "root": shown("h1", a.dev, [])}
    guesses = {int(str(v), 0) for k, v in seen["user"].items() if "psn" in k}
    live = set(range(pair.first, pair.first + 5))
    check("a user who is not the owner reads peer and QPN, and no PSN", connected=pair.works,
          qpn=seen["user"]["rqpn"] == pair.qpn, psn=not guesses & live)
    print(f"# shown to a user: { {k: v for k, v in seen['user'].items() if 'psn' in k} }")
    check("CAP_NET_ADMIN reads the next PSNs with -dd", una=seen["root"].get("drv_una_psn") == pair.psn,
          next=seen["root"].get("drv_next_psn") == pair.psn, end=seen["root"].get("drv_end_psn") == pair.psn,
          epsn=shown("h2", b.dev, []).get("drv_epsn") == pair.psn)
    check("the owner queries the next PSNs", sq=a.psns(SQ_PSN)[1] == pair.psn, rq=b.psns(RQ_PSN)[0] == pair.psn,
          both=b.psns(RQ_PSN | SQ_PSN)[0] == pair.psn)
    check("query_qp returns no PSN that its mask does not name", a=a.psns(1) == [0, 0], b=b.psns(SQ_PSN)[0] == 0)


def absent_peer(a, b):
    """IPv6 lets any user send from any address: the peer need not be this host."""
    name, first = "IPv6, another host's address", random.randrange(1 << 24)
    pair = Pair(a, b, 6)
    pair.qpn, pair.psn, pair.src = b.create("RC"), first, ABSENT
    b.connect(pair.dst, ABSENT, 77, first, 1)
    b.recv()
    before = dropped(a)
    status, _ = pair.forged("--way", "freebind")
    check(name, EPERM=status == 1, counted=dropped(a) > before, nothing_received=b.wait(1) is None)


def guard(a, b, ns, host, uplinks):
    """A user in container @ns, whose packets @host forwards, sends in the name of h1."""
    name = f"a container behind {host}"
    def arrives():
        pair = Pair(a, b, 6)
        b.recv()
        pair.forged("--way", "freebind", ns=ns)
        got = b.wait(2)
        return got is not None, got is not None or pair.sent(GENUINE) and b.wait(60) == [0, GENUINE]
    if host == "s":
        check(f"{name}: refused, it comes by another interface", refused=not arrives()[0])
        with open(f"/sys/class/infiniband/{b.dev}/ports/1/cc_param/any_interface", "w") as f:
            f.write("1")
    check(f"{name}: received without roce-guard.nft", received=arrives()[0])
    with open(os.environ["RULES"]) as f:
        rules = f.read().replace('"eth0"', uplinks)
    subprocess.run(inside(host) + ["nft", "-f", "-"], input=rules, text=True, check=True)
    received, genuine = arrives()
    hits = subprocess.run(inside(host) + ["nft", "list", "ruleset"], capture_output=True, text=True).stdout
    check(f"{name}: dropped with roce-guard.nft", dropped=not received, genuine_arrives=genuine,
          counted="packets 1 " in hits)


def rxe():
    """What rdma_rxe does, in the initial namespace, the only one it has: namespace x is the host of its QP's peer."""
    for line in ("modprobe rdma_rxe", "ip netns add x", "ip link add x1 type veth peer name x2 netns x", "ip link set x1 up",
                 "ip addr add 10.8.0.1/24 dev x1", "ip -n x addr add 10.8.0.2/24 dev x2", "ip -n x link set x2 up",
                 "rdma link add rxe1 type rxe netdev x1", "ping -c 1 -w 20 10.8.0.2"):
        if subprocess.run(line.split(), capture_output=True).returncode:
            print(f"# rdma_rxe: not run: {line}")
            return
    b = Remote(None, "rxe1")
    pair = Pair.__new__(Pair)
    pair.src, pair.dst, pair.kind, pair.qpn, pair.psn = "10.8.0.2", "10.8.0.1", "RC", b.create("RC"), 1234
    b.connect(pair.dst, pair.src, 77, pair.psn, 1)
    b.recv()
    read = shown(None, "rxe1", NOBODY)["rq-psn"]
    status, said = pair.forged(ns="x")
    print(f"# rdma_rxe: a user reads PSN {read} of {pair.psn}; forged SEND: status {status} {said}, received {b.wait(10)}")
    b.close()


def main():
    a, b = Remote("h1", os.environ["H1DEV"]), Remote("h2", os.environ["H2DEV"])
    psns_are_shown_to_few(a, b)
    for family in 4, 6:
        accepted(a, b, f"IPv{family}, CAP_NET_RAW: received", family)
        refused(a, b, f"IPv{family}, sendto()", family)
        refused(a, b, f"IPv{family}, to a UC QP", family, kind="UC")
        refused(a, b, f"IPv{family}, another source port", family, "--sport", "2000")
        refused(a, b, f"IPv{family}, MSG_MORE", family, "--way", "corked")
        refused(a, b, f"IPv{family}, UDP_SEGMENT", family, "--way", "gso")
        refused(a, b, f"IPv{family}, MSG_ZEROCOPY", family, "--way", "zerocopy")
        refused(a, b, f"IPv{family}, connected socket", family, "--way", "connected")
    refused(a, b, "IPv4, IPv6 socket", 4, "--way", "mapped")
    refused(a, b, "IPv6, routing header", 6, "--way", "rthdr")
    absent_peer(a, b)
    accepted(a, b, "a socket that was opened with CAP_NET_RAW keeps its right", 4, user=NOBODY, opener=True)
    if subprocess.run(NOBODY + ["unshare", "-Ur", "true"], stderr=subprocess.DEVNULL).returncode:
        result(True, "CAP_NET_RAW in a user namespace of one's own # SKIP no user namespaces here")
    else:
        refused(a, b, "CAP_NET_RAW in a user namespace of one's own", 4, user=NOBODY + ["unshare", "-Ur"])
    for ns, host, uplinks in ("c", "h1", '"v1"'), ("d", "s", '"p2"'):
        if subprocess.run(["nft", "list", "tables"], capture_output=True).returncode:
            print(f"ok {Tap.count + 1} a container behind {host} # SKIP no nft here")
            Tap.count += 1
        else:
            guard(a, b, ns, host, uplinks)
    a.close()
    b.close()
    rxe()
    sys.exit(plan())


if __name__ == "__main__":
    main()
