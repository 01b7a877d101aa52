# SPDX-License-Identifier: GPL-2.0
"""`roan doctor --peer HOST` and its counterpart `--listen`: packets between two hosts, to tell which side is at fault.

    visitor                              listener (TCP and UDP port 18591)
    hello                      ------->  checks its own host
                               <-------  its findings, its device, clock
    probe: UDP datagrams       =======>  which ones arrived, with what TOS byte
    which ones arrived         <=======  the same the other way
    paths: hop limits 1, 2 ... ===> the routers between answer by ICMP
    pingpong                   ------->  starts ibv_rc_pingpong; both count the device's packets
    bandwidth                  ------->  starts ib_write_bw

Requests and answers are lines of JSON. The listener runs only the programs named here, with arguments of its own and
numbers; it trusts the visitor with nothing else.
"""
import json
import re
import shutil
import socket
import struct
import subprocess
import sys
import time

from roan_doctor_base import CODES, LARGEST, Finding, NotChecked
from roan_figures import printable

PORT = 18591
PINGPONG_PORT, BANDWIDTH_PORT = 18592, 18593
WAIT = 30			# seconds for an answer; a pingpong that fails takes a few
REPEAT = 3			# each probe is sent so often
SOURCE_PORTS, HOPS = 8, 6	# routers limit ICMP: the first ones to a host are sent
IP_RECVERR, IPV6_RECVERR = 11, 25
CE, ECT0, CLASS = 3, 2, 26 << 2 | 2
IP_MTU_DISCOVER, IP_PMTUDISC_PROBE, IPV6_MTU_DISCOVER = 10, 3, 23
AGREE = ("algo", "pfc_prio_mask", "traffic_class", "cnp_dscp")


# ---- UDP probes ----

def name_of(address, port):
    """Of a UDP socket, as bind() and sendto() take it. The address may have a scope, which they ignore in an address as text."""
    return socket.getaddrinfo(address, port, type=socket.SOCK_DGRAM, flags=socket.AI_NUMERICHOST)[0][4]


class Probes:
    """Sends and receives datagrams of several sizes and TOS bytes; the first byte names the kind."""
    def __init__(self, family, address, port=0):
        self.v6 = family == socket.AF_INET6
        self.udp = socket.socket(family, socket.SOCK_DGRAM)
        level = socket.IPPROTO_IPV6 if self.v6 else socket.IPPROTO_IP
        self.tos = (level, socket.IPV6_TCLASS if self.v6 else socket.IP_TOS)
        self.udp.setsockopt(level, socket.IPV6_RECVTCLASS if self.v6 else socket.IP_RECVTOS, 1)
        self.udp.setsockopt(level, IPV6_MTU_DISCOVER if self.v6 else IP_MTU_DISCOVER, IP_PMTUDISC_PROBE)
        self.udp.bind(name_of(address, port))

    def send(self, to, size):
        """@to: address and port. @size: bytes of the large datagram, with headers. Returns the error of a datagram that the host itself refuses."""
        refused, to = {}, name_of(*to)
        for kind, tos, length in (("small", 0, 64), ("ect", ECT0, 64), ("ce", CE, 64), ("class", CLASS, 64), ("large", 0, size - (48 if self.v6 else 28))):
            self.udp.setsockopt(*self.tos, struct.pack("i", tos))
            for _ in range(REPEAT):
                try:
                    self.udp.sendto(kind[:2].encode().ljust(length, b"."), to)
                except OSError as e:
                    refused[kind] = e.strerror
        return refused

    def collect(self):
        """Kind -> TOS byte of what has arrived."""
        found, names = {}, {"sm": "small", "ec": "ect", "ce": "ce", "cl": "class", "la": "large"}
        self.udp.settimeout(0.5)
        try:
            while len(found) < 5:
                data, control, _, _ = self.udp.recvmsg(65536, 256)
                tos = next((value[0] for level, kind, value in control if kind in (socket.IP_TOS, socket.IPV6_TCLASS)), 0)
                if data[:2].decode("latin1") in names:
                    found[names[data[:2].decode("latin1")]] = tos
        except socket.timeout:
            pass
        return found

    def clear(self):
        self.udp.settimeout(0)
        try:
            while True:
                self.udp.recv(65536)
        except OSError:
            pass


def routers(family, mine, to):
    """[number of routers that answered] of each hop, for datagrams of several source ports whose hop limit ends there. The first hop that
    does not answer is the last: the peer, or a router that sends no ICMP."""
    level, limit, errors = ((socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, IPV6_RECVERR) if family == socket.AF_INET6 else
                            (socket.IPPROTO_IP, socket.IP_TTL, IP_RECVERR))
    to, found, udps = name_of(*to), [], [socket.socket(family, socket.SOCK_DGRAM) for _ in range(SOURCE_PORTS)]
    for u in udps:
        u.bind(name_of(mine, 0))
        u.setsockopt(level, errors, 1)
    for hop in range(1, HOPS + 1):
        answered = set()
        for u in udps:
            u.setsockopt(level, limit, hop)
            u.sendto(b"path", to)
        until = time.monotonic() + 0.5
        while time.monotonic() < until:
            for u in udps:
                try:
                    control = u.recvmsg(64, 512, socket.MSG_ERRQUEUE | socket.MSG_DONTWAIT)[1]
                except OSError:
                    continue
                answered |= {text[16:] for kind, number, text in control if (kind, number) == (level, errors)}
            time.sleep(0.02)
        if not answered:
            break
        found.append(len(answered))
    for u in udps:
        u.close()
    return found


def judge_probes(got, size, way, side):
    """Findings about one direction."""
    if "small" not in got:
        raise NotChecked("no UDP datagram of the probes arrives %s: allow UDP port %d" % (way, PORT))
    if "large" not in got:
        yield Finding("path-mtu", way, "%d bytes" % size, mtu=size)
    if "ce" in got and got["ce"] & 3 != CE or "ect" in got and got["ect"] & 3 not in (ECT0, CE):
        yield Finding("ecn-bleached", way, "; ".join("sent %d, arrived %d" % (bits, got[kind] & 3) for kind, bits in (("ect", ECT0), ("ce", CE)) if kind in got), side=side)
    lost = [kind for kind in ("ect", "ce") if kind not in got]
    if lost:
        yield Finding("ecn-dropped", way, "sent %d each with %s, none arrived" % (REPEAT, " and ".join({"ect": "ECT(0)", "ce": "CE"}[kind] for kind in lost)), side=side)
    elif "class" not in got:
        yield Finding("dscp-dropped", way, "sent %d with DSCP %d, none arrived" % (REPEAT, CLASS >> 2), side=side)
    if "class" in got and got["class"] >> 2 != CLASS >> 2:
        yield Finding("dscp-bleached", way, "sent DSCP %d, arrived %d" % (CLASS >> 2, got["class"] >> 2))


# ---- both ends ----

def cleaned(answer):
    """What a peer answered, with each text cut to a line of printable characters; keys of dictionaries are texts, too."""
    if isinstance(answer, dict):
        return {cleaned(k): cleaned(v) for k, v in answer.items()}
    if isinstance(answer, list):
        return [cleaned(v) for v in answer]
    return printable(answer[:500].replace("\n", "; ")) if isinstance(answer, str) else answer


class Line:
    """A TCP connection that carries lines of JSON."""
    def __init__(self, tcp):
        self.tcp = tcp
        self.tcp.settimeout(WAIT)
        self.file = tcp.makefile("rw")

    def send(self, message):
        self.file.write(json.dumps(message) + "\n")
        self.file.flush()

    def receive(self):
        text = self.file.readline(1 << 20)
        if not text:
            raise ConnectionResetError("the other end closed the connection")
        return json.loads(text)

    def call(self, **message):
        """Of the visitor. The peer may be anybody's program."""
        self.send(message)
        return cleaned(self.receive())


def plain(address):
    """An address as GIDs have it: IPv4 for an IPv4-mapped one, without scope."""
    address = address.split("%")[0]
    return address[7:] if address.startswith("::ffff:") and "." in address else address


def scoped(name):
    """The address of a socket's name, as other sockets and programs take it: a link-local one with its interface."""
    scope = name[3] if len(name) > 3 else 0
    return plain(name[0]) + ("%" + socket.if_indextoname(scope) if scope else "")


def device_for(devices, address):
    return next((d for d in devices if address in d.addresses), None)


def describe(d, address):
    index = d.gid_index(address)
    return {"name": d.name, "netdev": d.netdev, "mtu": d.mtu, "gid_index": index, "settings": {n: d.setting(n) for n in AGREE}}


def path_mtu(mtu):
    """The largest path MTU for an interface's MTU, as roan chooses it: ROAN_NET_HEADERS of kernel/net/net.h are 92 bytes."""
    return max((m for m in (256, 512, 1024, 2048, 4096) if m + 92 <= mtu), default=256)


def pingpong(d, index, size, host=""):
    if not shutil.which("ibv_rc_pingpong"):
        raise NotChecked("ibv_rc_pingpong is not installed (package ibverbs-utils)")
    return ["ibv_rc_pingpong", "-d", d.name, "-g", str(index), "-p", str(PINGPONG_PORT), "-m", str(size), "-s", "16384", "-n", "50"] + ([host] if host else [])


def bandwidth(d, index, host=""):
    if not shutil.which("ib_write_bw"):
        raise NotChecked("ib_write_bw is not installed (package perftest)")
    return ["ib_write_bw", "-d", d.name, "-x", str(index), "-p", str(BANDWIDTH_PORT), "-F", "-s", "65536", "-n", "200", "--report_gbits"] + ([host] if host else [])


def listening(port):
    """Whether a TCP socket of this network namespace listens there."""
    for name in ("tcp", "tcp6"):
        try:
            with open("/proc/net/" + name) as f:
                if any(w[1].endswith(":%04X" % port) and w[3] == "0A" for w in map(str.split, f)):
                    return True
        except OSError:
            pass
    return False


# ---- the listener ----

class Server:
    """One visit."""
    def __init__(self, line, address, family, port, examine):
        """@address: as of scoped()"""
        self.line, self.address, self.examine, self.program = line, plain(address), examine, None
        self.probes = Probes(family, address, port)
        self.device = None

    def hello(self, request):
        e, devices = self.examine()
        self.device = device_for(devices, self.address)
        return {"findings": [vars(f) for f in e.findings], "clock": time.time(), "address": self.address,
                "device": describe(self.device, self.address) if self.device else None}

    def clear(self, request):
        self.probes.clear()
        return {}

    def arrived(self, request):
        return {"got": self.probes.collect()}

    def probe(self, request):
        return {"refused": self.probes.send((self.visitor, int(request["port"])), min(int(request["size"]), 65535))}

    def start(self, request):
        """Starts a program's server end, and answers when it listens."""
        self.stop({})
        index = self.device.gid_index(self.address)
        port = PINGPONG_PORT if request["what"] == "pingpong" else BANDWIDTH_PORT
        try:
            command = pingpong(self.device, index, int(request["mtu"])) if request["what"] == "pingpong" else bandwidth(self.device, index)
        except NotChecked as e:
            return {"error": str(e)}
        self.before = self.device.counters()
        self.program = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        until = time.monotonic() + WAIT / 2
        while not listening(port):
            if self.program.poll() is not None or time.monotonic() > until:
                return {"error": self.stop(request)["said"] or "%s does not start" % command[0]}
            time.sleep(0.05)
        return {}

    def stop(self, request):
        """Ends the program and answers what it said and which counters moved."""
        if not self.program:
            return {"said": "", "moved": {}}
        try:
            said = self.program.communicate(timeout=2 if request.get("well") else 0.1)[0]
        except subprocess.TimeoutExpired:
            self.program.kill()
            said = self.program.communicate()[0]
        self.program = None
        return {"said": said.strip(), "moved": moved(self.device, self.before)}

    def serve(self, visitor):
        self.visitor = visitor
        acts = {a.__name__: a for a in (self.hello, self.clear, self.arrived, self.probe, self.start, self.stop)}
        try:
            while True:
                request = self.line.receive()
                act = acts.get(request.get("do"))
                if not act or (not self.device and request["do"] not in ("hello", "clear", "arrived", "probe")):
                    return
                self.line.send(act(request))
        except Exception:		# whatever the client sends: its visit ends, the server goes on
            return
        finally:
            self.probes.udp.close()
            self.stop({})


def moved(d, before):
    return {k: v - before.get(k, 0) for k, v in d.counters().items() if v != before.get(k, 0)}


def listen(port, examine):
    server = socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True) if socket.has_dualstack_ipv6() else socket.create_server(("", port))
    print("roan doctor listens on port %d" % port, flush=True)
    while True:
        tcp, visitor = server.accept()
        mine, other = scoped(tcp.getsockname()), scoped(visitor)
        try:
            Server(Line(tcp), mine, socket.AF_INET6 if ":" in mine else socket.AF_INET, port, examine).serve(other)
        except (OSError, NotChecked) as e:	# NotChecked: the device is gone, and so are its counters
            print("roan doctor: %s: %s" % (other, e), file=sys.stderr, flush=True)
        tcp.close()


# ---- the visitor ----

class Visit:
    def __init__(self, e, devices, host, port):
        self.e, self.host, self.port, self.notes, self.answered = e, host, port, [], False
        tcp = socket.create_connection((host, port), timeout=5)
        self.here, self.there = scoped(tcp.getsockname()), scoped(tcp.getpeername())	# for sockets; without scope, for GIDs:
        self.mine, self.other = plain(self.here), plain(self.there)
        self.line = Line(tcp)
        self.device = device_for(devices, self.mine)
        self.ways = {"out": "%s -> %s" % (self.mine, self.other), "in": "%s -> %s" % (self.other, self.mine)}

    def hello(self):
        """The peer's own findings, and whether both ends fit together."""
        began = time.time()
        self.hi = self.line.call(do="hello")
        self.peer = self.hi["device"]
        self.answered = True
        for f in self.hi["findings"]:
            if f["code"] in CODES:
                found = Finding(f["code"], "%s at %s" % (f["where"], self.host))
                found.message, found.remedy = f["message"], "at %s: %s" % (self.host, f["remedy"])
                yield found
        if not began - 1 <= self.hi["clock"] <= time.time() + 1:
            yield Finding("clock-skew", self.host, "%.0f s" % (self.hi["clock"] - time.time()))
        for d, address, side in ((self.device, self.mine, "here"), (self.peer, self.other, "at " + self.host)):
            if not d:
                yield Finding("peer-no-device", address, side=side)

    def agreement(self):
        if not self.device or not self.peer:
            raise NotChecked("no device at both ends")
        here, there = self.device, self.peer
        if here.mtu != there["mtu"]:
            small = (here.netdev, "this host") if here.mtu < there["mtu"] else (there["netdev"], self.host)
            yield Finding("mtu-mismatch", self.host, "%d here, %d there" % (here.mtu, there["mtu"]), netdev=small[0], side=small[1], mtu=max(here.mtu, there["mtu"]))
        for name in AGREE:
            values = here.setting(name), there["settings"].get(name)
            if None not in values and values[0] != values[1]:
                yield Finding("qos-mismatch", self.host, "%s is %s here, %s there" % ((name,) + values), dev=here.name, side="this host", setting="%s=%s" % (name, values[1]))

    def probes(self):
        """Sizes, ECN and DSCP, both ways, on the doctor's UDP port."""
        size = min(self.device.mtu if self.device else 1500, self.peer["mtu"] if self.peer else 1500, LARGEST)
        p = Probes(socket.AF_INET6 if ":" in self.mine else socket.AF_INET, self.here)
        self.line.call(do="clear")
        p.send((self.there, self.port), size)
        yield from judge_probes(self.line.call(do="arrived")["got"], size, self.ways["out"], "this host")
        p.clear()
        self.line.call(do="probe", port=p.udp.getsockname()[1], size=size)
        yield from judge_probes(p.collect(), size, self.ways["in"], self.host)

    def paths(self):
        """How many ways source ports, thus QPs, take: a note, as links that are not routed do not show."""
        found = routers(socket.AF_INET6 if ":" in self.mine else socket.AF_INET, self.here, (self.there, self.port))
        if found:
            self.notes.append("%s: %d source ports pass %s" % (self.host, SOURCE_PORTS, ", ".join(
                "%d router%s at hop %d" % (n, "s" * (n != 1), hop) for hop, n in enumerate(found, 1))))
        return ()

    def exchange(self):
        """50 messages by a QP; if they fail, the counters of both ends tell how far the packets came."""
        if not self.device or not self.peer or self.peer["gid_index"] is None:
            raise NotChecked("no device at both ends")
        index = self.device.gid_index(self.mine)
        size = path_mtu(min(self.device.mtu, self.peer["mtu"]))
        command = pingpong(self.device, index, size, self.there)
        before = self.device.counters()
        started = self.line.call(do="start", what="pingpong", mtu=size)
        if "error" in started:
            raise NotChecked("at %s: %s" % (self.host, started["error"]))
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT - 10)
            well, said = done.returncode == 0, (done.stdout + done.stderr).strip()
        except subprocess.TimeoutExpired:
            well, said = False, "no answer within %d s" % (WAIT - 10)
        there = self.line.call(do="stop", well=well)
        here = moved(self.device, before)
        if well:
            self.notes.append("%s: 50 messages there and back, path MTU %d" % (self.host, size))
            return
        yield self.located(here, there["moved"], (said.split("\n") or [""])[-1])

    def located(self, here, there, said):
        dropped = {n: v for side in (here, there) for n, v in side.items() if n.startswith(("rx_", "tx_"))}
        moves = "; ".join("%s %s" % (n, v) for n, v in dropped.items())
        if "Couldn't connect" in said:
            raise NotChecked("TCP port %d of %s is not reachable" % (PINGPONG_PORT, self.host))
        if here.get("sent_pkts") and not there.get("rcvd_pkts") and not any(n.startswith("rx_") for n in there):
            return Finding("path-drops", self.ways["out"], "%d packets left this host, none reached roan at %s%s" % (
                here["sent_pkts"], self.host, moves and "; " + moves), side=self.host if not here.get("tx_dropped") else "this host")
        if there.get("sent_pkts") and not here.get("rcvd_pkts") and not any(n.startswith("rx_") for n in here):
            return Finding("path-drops", self.ways["in"], "%d packets left %s, none reached roan here%s" % (
                there["sent_pkts"], self.host, moves and "; " + moves), side="this host" if not there.get("tx_dropped") else self.host)
        return Finding("exchange-failed", self.host, said + (moves and "; " + moves))

    def bandwidth(self):
        """A figure, no verdict: what is much depends on the hosts."""
        if not self.device or not self.peer or any(f.code in ("path-drops", "exchange-failed") for f in self.e.findings):
            raise NotChecked("no exchange before it")
        command = bandwidth(self.device, self.device.gid_index(self.mine), self.there)
        started = self.line.call(do="start", what="bandwidth")
        if "error" in started:
            raise NotChecked("at %s: %s" % (self.host, started["error"]))
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT - 10)
            rate = re.search(r"^ *65536 +\d+ +\S+ +(\S+)", done.stdout, re.M)
        except subprocess.TimeoutExpired:
            rate = None
        self.line.call(do="stop", well=bool(rate))
        if not rate:
            raise NotChecked("ib_write_bw does not finish")
        self.notes.append("%s: WRITE of 64 KiB: %s Gb/s" % (self.host, rate[1]))
        return ()


def visit(e, devices, host, port):
    """Adds what the exchange finds to the Examination; returns what is to be printed of the peer."""
    try:
        v = Visit(e, devices, host, port)
    except OSError as why:
        e.findings.append(Finding("peer-unreachable", host, why.strerror or str(why), port=port))
        return {"host": host, "notes": []}
    for check in v.hello, v.agreement, v.probes, v.paths, v.exchange, v.bandwidth:
        e.only, kept = (), e.only
        try:
            e.make(check)
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            e.skipped.append((check.__name__, "%s does not answer as a doctor" % host))
        e.only = kept
        if not v.answered:
            e.findings.append(Finding("peer-unreachable", host, "the port is open", port=port))
            break
    return {"host": host, "notes": v.notes}
