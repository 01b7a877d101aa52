# SPDX-License-Identifier: GPL-2.0
"""roan doctor: finds out why RDMA does not work over roan here, or works slowly, and says what mends it.

    roan doctor [--json]                checks this host, in this network namespace, for this user
    roan doctor --peer HOST [--json]    also exchanges packets with HOST, where `roan doctor --listen` runs
    roan doctor --listen                answers --peer, until it is stopped
      --port N       TCP and UDP port of --peer and --listen (18591)
      --only NAME    only the check of that name (several times: these); --names lists the checks
      --codes        prints the table of all codes

The exit status is the number of faults, at most 100; 125: the doctor could not run. An advice is not a fault. What each
code means: Documentation/doctor.md.
"""
import argparse
import contextlib
import json
import os
import sys

import roan_doctor_host
import roan_doctor_net
import roan_doctor_peer
from roan_doctor_base import CODES, FAULT, Finding, NotChecked

CANNOT_RUN = 125


def name_of(check):
    return check.__name__


class Examination:
    def __init__(self, only=()):
        self.only, self.findings, self.skipped, self.made = only, [], [], 0

    def make(self, check, *args):
        """Runs one check, a function that yields findings."""
        if self.only and name_of(check) not in self.only:
            return
        self.made += 1
        try:
            for f in check(*args) or ():
                if (f.code, f.where, f.message) not in {(g.code, g.where, g.message) for g in self.findings}:
                    self.findings.append(f)
        except (NotChecked, OSError) as e:
            self.skipped.append((name_of(check), str(e).split("\n")[0]))

    def faults(self):
        return sum(f.severity == FAULT for f in self.findings)


def tools():
    """The program that the other checks cannot do without."""
    try:
        roan_doctor_net.parsed("rdma", "-j", "link", "show")
    except NotChecked as e:
        if "not installed" in str(e):
            yield Finding("tool-missing", "rdma")


def no_device(here, elsewhere, links):
    """Without one, the remedy names an interface that carries an address."""
    if here:
        return
    usable = [n for n, i in links.items() if n != "lo" and i.get("addr_info")]
    yield Finding("no-device", "devices", "; ".join("the interface of %s is in another namespace" % n for n in elsewhere), netdev=(usable or ["IFACE"])[0])


def examine(only=(), gpus=None):
    """The host, without a peer. Returns the Examination and the devices."""
    e = Examination(only)
    e.make(roan_doctor_host.module)
    e.make(tools)
    links, here = {}, []
    try:
        links = roan_doctor_net.interfaces()
        here, elsewhere = roan_doctor_net.devices(links)
        if os.path.isdir(roan_doctor_host.below("sys/module/roan")):
            e.make(no_device, here, elsewhere, links)
    except NotChecked as why:
        e.skipped.append(("devices", str(why)))
    for check in roan_doctor_host.CHECKS:
        e.make(check, here)
    for d in here:
        for check in roan_doctor_net.CHECKS:
            e.make(check, d, links)
    if gpus:
        e.make(gpus)
    return e, here


def report(e, devices, peer):
    for d in devices:
        gids = d.gids()
        best = [g for g in gids if not roan_doctor_net.local(g[1])] or gids
        print("%s on %s, MTU %d: %s" % (d.name, d.netdev, d.mtu, "use GID index %d (%s)" % best[0] if best else "no GID"))
    for line in (peer or {}).get("notes", []):
        print(line)
    for f in sorted(e.findings, key=lambda f: f.severity != FAULT):
        print("%-6s %s, %s: %s\n       mend: %s" % (f.severity, f.code, f.where, f.message, f.remedy))
    for name, why in e.skipped:
        print("not checked: %s: %s" % (name, why))
    advices = len(e.findings) - e.faults()
    print("%d fault%s, %d advice%s, %d checks" % (e.faults(), "s" * (e.faults() != 1), advices, "s" * (advices != 1), e.made))


def as_json(e, devices, peer):
    return {"faults": e.faults(), "checks": e.made,
            "devices": [{"name": d.name, "netdev": d.netdev, "mtu": d.mtu, "gids": d.gids()} for d in devices],
            "findings": [vars(f) for f in e.findings],
            "not_checked": [{"check": n, "why": w} for n, w in e.skipped], "peer": peer}


def codes():
    yield "| code | | what is wrong | what mends it |\n|---|---|---|---|"
    for code, (severity, what, remedy) in CODES.items():
        yield "| `%s` | %s | %s | %s |" % (code, severity, what, remedy.replace("|", "\\|"))


class Parser(argparse.ArgumentParser):
    def error(self, message):
        print("roan doctor: %s" % message, file=sys.stderr)
        sys.exit(CANNOT_RUN)


def main(words, gpus=None):
    parser = Parser(prog="roan doctor", usage="\n" + __doc__.split("\n\n")[1])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--peer")
    parser.add_argument("--listen", action="store_true")
    parser.add_argument("--port", type=int, default=roan_doctor_peer.PORT)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--names", action="store_true")
    parser.add_argument("--codes", action="store_true")
    args = parser.parse_args(words)
    if not 1 <= args.port <= 65535:
        parser.error("--port is 1 to 65535")
    checks = [roan_doctor_host.module, tools, no_device] + roan_doctor_host.CHECKS + roan_doctor_net.CHECKS + [gpus] * bool(gpus)
    unknown = set(args.only) - {name_of(c) for c in checks}
    if unknown:
        parser.error("there is no check %s; --names lists them" % ", ".join(sorted(unknown)))
    if args.codes or args.names:
        print("\n".join(codes() if args.codes else map(name_of, checks)))
        return 0
    with contextlib.suppress(NotChecked):
        if roan_doctor_net.foreign_sys():
            parser.error("/sys is that of another network namespace. Run: ip netns exec NAME roan doctor; or "
                         "nsenter -t PID -n unshare -m sh -c 'mount -t sysfs sysfs /sys && roan doctor'")
    if args.listen:
        return roan_doctor_peer.listen(args.port, lambda: examine((), gpus))
    e, devices = examine(args.only, gpus)
    peer = roan_doctor_peer.visit(e, devices, args.peer, args.port) if args.peer else None
    if args.json:
        print(json.dumps(as_json(e, devices, peer), indent=1))
    else:
        report(e, devices, peer)
    sys.stdout.flush()
    return min(e.faults(), 100)
