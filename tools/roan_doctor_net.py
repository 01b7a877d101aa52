# SPDX-License-Identifier: GPL-2.0
"""Checks of `roan doctor` that concern the interface below a device, and what the IP stack does to its packets."""
import ipaddress
import os
import re
import socket
import struct

import roan_clients
import roan_doctor_firewall
import roan_doctor_lldp
from roan_doctor_base import LARGEST, Finding, NotChecked, below, first_line, listing, number, output, parsed
from roan_doctor_host import cpu_list


class Device:
    """A roan device whose interface is in this network namespace."""
    def __init__(self, name, interface):
        self.name, self.netdev, self.interface = name, interface["ifname"], interface
        self.path = os.path.join(roan_clients.CLASS, name)
        self.port = os.path.join(self.path, "ports/1")
        self.uverbs = next((u for u in listing(below("sys/class/infiniband_verbs"))
                            if first_line(below("sys/class/infiniband_verbs", u, "ibdev")) == name), None)
        self.addresses = [a["local"] for a in interface.get("addr_info", []) if "local" in a]
        self.mtu = interface.get("mtu", 0)

    def setting(self, name):
        """A file of cc_param; None in a namespace that does not have them."""
        text = first_line(self.port, "cc_param", name)
        return int(text) if text and text.isdigit() else text

    def gids(self):
        """[(index, address)] of RoCE v2."""
        found = []
        for i in sorted(listing(self.port, "gids"), key=int):
            gid, kind = first_line(self.port, "gids", i), first_line(self.port, "gid_attrs/types", i)
            if gid and kind and "v2" in kind:
                address = ipaddress.ip_address(gid)
                found.append((int(i), str(address.ipv4_mapped or address)))
        return found

    def gid_index(self, address):
        return next((i for i, a in self.gids() if a == address), None)

    def counters(self):
        rows = parsed("rdma", "-j", "statistic", "show", "link", self.name + "/1")
        return {k: v for k, v in rows[0].items() if isinstance(v, int)} if rows else {}


def is_roan(name):
    path = os.path.join(roan_clients.CLASS, name)
    return os.path.exists(os.path.join(path, "ports/1/cc_param")) or os.path.exists(os.path.join(path, "poll_idle_us"))


def interfaces():
    """Name -> what `ip` says about it, of this network namespace."""
    return {i["ifname"]: i for i in parsed("ip", "-j", "-details", "addr", "show") if "ifname" in i}


def foreign_sys():
    """Whether /sys shows the interfaces of another network namespace: it stays that of the process that mounted it."""
    for _ in range(2):	# an interface may come or go between the two views
        links = interfaces()
        mac = {n for n, i in links.items() if i.get("link_type") == "ether"}
        here = {(n, i.get("ifindex"), n in mac and i.get("address")) for n, i in links.items()}
        there = {(n, number("sys/class/net", n, "ifindex"), n in mac and first_line(below("sys/class/net", n, "address")))
                 for n in listing(below("sys/class/net")) if os.path.isdir(below("sys/class/net", n))}
        if not there or here == there:
            return False
    return True


def devices(links):
    """(devices whose interface is in this namespace, names of the others)"""
    here, elsewhere = [], []
    for link in parsed("rdma", "-j", "link", "show"):
        if is_roan(link["ifname"]):
            interface = links.get(link.get("netdev"))
            here += [Device(link["ifname"], interface)] if interface else []
            elsewhere += [] if interface else [link["ifname"]]
    return here, elsewhere


def local(address):
    return ipaddress.ip_address(address).is_link_local


def link(d, links):
    if "UP" not in d.interface.get("flags", []):
        yield Finding("link-down", d.netdev, netdev=d.netdev)
    elif "LOWER_UP" not in d.interface.get("flags", []) or d.interface.get("operstate") in ("DOWN", "LOWERLAYERDOWN"):
        yield Finding("no-carrier", d.netdev)


def address(d, links):
    usable = [a for a in d.addresses if not local(a)]
    if not d.addresses:
        yield Finding("no-ip", d.name, d.netdev, netdev=d.netdev)
    elif not usable:
        yield Finding("link-local-only", d.name, d.netdev, netdev=d.netdev)
    elif all(ipaddress.ip_address(a).is_loopback for a in usable):
        yield Finding("lo-address", d.name)


def mtu(d, links):
    if d.mtu < 1280:
        yield Finding("mtu-low", d.netdev, "%d" % d.mtu, netdev=d.netdev)


def firewall(d, links):
    bridged = d.interface.get("linkinfo", {}).get("info_kind") == "bridge"
    yield from roan_doctor_firewall.judge(roan_doctor_firewall.rules(), d.netdev, d.addresses, bridged)
    if any(first_line(below("proc/net", n)) for n in ("ip_tables_names", "ip6_tables_names")):
        raise NotChecked("rules of iptables-legacy are not looked at: iptables-legacy-save prints them")


def conntrack(d, links):
    count, most = number("proc/sys/net/netfilter/nf_conntrack_count"), number("proc/sys/net/netfilter/nf_conntrack_max")
    if count is not None and most and count >= most - most // 50:
        yield Finding("conntrack-full", "conntrack", "%d of %d" % (count, most), double=2 * most)


def neighbour_table(d, links):
    """Common to all network namespaces, shown in the first one only."""
    for table, family in ("arp_cache", "ipv4"), ("ndisc_cache", "ipv6"):
        most = number("proc/sys/net", family, "neigh/default/gc_thresh3")
        if not most or not os.path.exists(below("proc/net/stat", table)):
            continue
        with open(below("proc/net/stat", table)) as f:
            titles, *cpus = (line.split() for line in f)
        entries = int(cpus[0][titles.index("entries")], 16)
        refused = sum(int(c[titles.index("table_fulls")], 16) for c in cpus)
        # Permanent entries are counted in the first, and have no limit.
        if refused and entries >= most - most // 50:
            yield Finding("neighbours-full", table, "%d of %d, %d refused" % (entries, most, refused), family=family, most=most, double=2 * most)


def networks(interface):
    """[(address, IPv4 network)]"""
    return [(a["local"], ipaddress.ip_network("%s/%d" % (a["local"], a["prefixlen"]), strict=False)) for a in interface.get("addr_info", [])
            if a.get("family") == "inet" and a["prefixlen"] < 32]


def vrf(interface, links):
    """Its VRF, which has routes of its own; None: it is in none."""
    master = interface.get("master")
    return master if links.get(master, {}).get("linkinfo", {}).get("info_kind") == "vrf" else None


def route(peer, address, domain):
    """The interface by which packets from this address to that one leave: routes may depend on the source. None: there is no route."""
    try:
        answer = parsed("ip", "-j", "route", "get", peer, "from", address, *(["vrf", domain] if domain else []))
    except NotChecked:
        return None
    return answer[0].get("dev") if answer else None


def neighbours(d, links):
    """Other interfaces that have an address in a subnet of this one's. With each: the interfaces by which this one's packets to there leave."""
    domain, mine, found = vrf(d.interface, links), networks(d.interface), {}
    own = {a for i in links.values() for a, _ in networks(i)}
    for n, i in links.items():
        if n in (d.netdev, "lo") or "UP" not in i.get("flags", []) or vrf(i, links) != domain:
            continue
        for address, network in mine:
            for _, other in networks(i):
                common = max(network, other, key=lambda n: n.prefixlen)
                peer = next((h for h in map(str, common.hosts()) if h not in own), None) if network.overlaps(other) else None
                if peer:
                    found.setdefault(n, set()).add(route(peer, address, domain))
    return found


def conf(netdev, name):
    """The value in effect of a setting whose larger one of `all` and the interface's applies."""
    return max(number("proc/sys/net/ipv4/conf", n, name) or 0 for n in ("all", netdev))


def below_macvlan(d, links):
    """The interface below a macvlan, if it is in this namespace: it is in the same network, with and without an address."""
    below = d.interface.get("link")
    is_macvlan = d.interface.get("linkinfo", {}).get("info_kind") == "macvlan" and "link_netnsid" not in d.interface
    return [below] if is_macvlan and "UP" in links.get(below, {}).get("flags", []) else []


def multihomed(d, links):
    others = neighbours(d, links)
    away = [n for n, by in others.items() if by != {d.netdev}]
    if away and conf(d.netdev, "rp_filter") == 1:
        yield Finding("rp-filter", d.netdev, ", ".join(away), netdev=d.netdev)
    # With arp_filter an interface answers if it is the one by which packets from the address to the asker leave.
    answering = [n for n in dict.fromkeys([*others, *below_macvlan(d, links)])
                 if not conf(n, "arp_ignore") and not (conf(n, "arp_filter") and n not in others.get(n, ()))]
    if answering:
        yield Finding("arp-flux", d.netdev, ", ".join(answering))


HASH_PORTS = 0x30	# of fib_multipath_hash_fields


def multipath(d, links):
    """Routes with several next hops, and links of a bond: what chooses among them has to look at the ports."""
    for family, option in ("ipv4", "-4"), ("ipv6", "-6"):
        policy = number("proc/sys/net", family, "fib_multipath_hash_policy")
        fields = number("proc/sys/net", family, "fib_multipath_hash_fields") or 0
        if policy == 0 or policy == 3 and not fields & HASH_PORTS:
            spread = [r.get("dst") for r in parsed("ip", option, "-j", "route", "show") if any(n.get("dev") == d.netdev for n in r.get("nexthops", []))]
            if spread:
                yield Finding("ecmp-l3", d.netdev, "route to " + ", ".join(spread), family=family)
    for bond in roan_doctor_lldp.below_it(d.netdev):
        info, ports = links.get(bond, {}).get("linkinfo", {}), [n for n, i in links.items() if i.get("master") == bond]
        policy = info.get("info_data", {}).get("xmit_hash_policy", "layer3+4")
        spreads = info.get("info_kind") == "bond" and info.get("info_data", {}).get("mode") in ("balance-xor", "802.3ad")
        if spreads and len(ports) > 1 and "3+4" not in policy:
            yield Finding("bond-l2", bond, "%s, %s" % (policy, ", ".join(ports)), netdev=bond)


def offload(d, links):
    """Features that the driver cannot have are marked [fixed]. roan makes GSO packets without `gso`, too."""
    for n in roan_doctor_lldp.below_it(d.netdev):
        is_adapter = os.path.exists(below("sys/class/net", n, "device"))
        if n != d.netdev and not is_adapter:
            continue
        features = dict(re.findall(r"^([\w-]+): (o\S+(?: \[.*\])?)$", output("ethtool", "-k", n), re.M))
        off = {name for name, value in features.items() if value.startswith("off") and "[fixed]" not in value}
        if off & {"tx-checksumming", "rx-checksumming"}:
            yield Finding("checksum-off", n, netdev=n)
        elif "tx-udp-segmentation" in off:
            yield Finding("gso-off", n, netdev=n)
        if is_adapter and "generic-receive-offload" in off:	# a veth passes GSO packets whole
            yield Finding("gro-off", n, netdev=n)


def wrong_packets(d, links):
    with open(below("proc/net/snmp")) as f:
        rows = [line.split() for line in f if line.startswith("Udp:")]
    wrong = int(dict(zip(*rows)).get("InCsumErrors", 0))
    if wrong > 10:
        yield Finding("checksum-errors", d.netdev, "%d since boot" % wrong, netdev=d.netdev)
    wrong = d.counters().get("rx_bad_icrc", 0)
    if wrong:
        yield Finding("icrc-errors", d.name, "%d" % wrong, netdev=d.netdev)


def modules_of(folder):
    """RDMA drivers of the adapter with this folder of /sys: modules that drive its auxiliary devices, or use its own driver's module."""
    own = os.path.basename(os.path.realpath(os.path.join(folder, "driver/module")))
    links = [os.path.join(folder, n, "driver/module") for n in listing(folder)]
    used = {os.path.basename(os.path.realpath(p)) for p in links if os.path.exists(p)} | set(listing(below("sys/module", own, "holders")))
    return sorted(used & set(listing(below("sys/module/ib_core/holders"))))


def without_roce(folder):
    """The command that turns an adapter's RoCE off: by a parameter of devlink, which few drivers have, or without its RDMA driver."""
    name = "%s/%s" % tuple(os.path.basename(os.path.realpath(p)) for p in (os.path.join(folder, "subsystem"), folder))
    try:
        values = parsed("devlink", "-j", "dev", "param", "show", name, "name", "enable_roce")["param"][name][0]["values"]
        mode = values[0]["cmode"]
    except (NotChecked, LookupError, TypeError):
        names = " ".join(modules_of(folder)) or "RDMA_DRIVER"
        return "modprobe -r %s && printf 'blacklist %%s\\n' %s > /etc/modprobe.d/no-rdma.conf, for all adapters with this driver" % (names, names)
    command = "devlink dev param set %s name enable_roce value false cmode %s" % (name, mode)
    return command + (" && devlink dev reload " + name) * (mode == "driverinit") + ", after each boot"


def adapter(d, links):
    """An adapter on a bus, with RDMA devices of its own."""
    for n in roan_doctor_lldp.below_it(d.netdev):
        folder = below("sys/class/net", n, "device")
        for name in listing(folder, "infiniband"):
            types = {first_line(folder, "infiniband", name, "ports/1/gid_attrs/types", i) for i in listing(folder, "infiniband", name, "ports/1/gid_attrs/types")}
            if not is_roan(name) and any("RoCE v2" in t for t in types if t):
                yield Finding("adapter-roce", n, name, adapter=name, command=without_roce(os.path.realpath(folder)))


def receive_queues(d, links):
    for n in roan_doctor_lldp.below_it(d.netdev):
        queues = [q for q in listing(below("sys/class/net", n, "queues")) if q.startswith("rx-")]
        if len(queues) < 2 or not os.path.exists(below("sys/class/net", n, "device")):
            continue
        for flow in ["udp4"] + ["udp6"] * any(":" in a and not local(a) for a in d.addresses):
            fields = output("ethtool", "-n", n, "rx-flow-hash", flow, ok=(0, 1, 76, 95))
            if "IP SA" in fields and "L4 bytes" not in fields:
                yield Finding("rss-ip-only", n, flow, netdev=n, flow=flow)


def interrupts(d, links):
    for n in roan_doctor_lldp.below_it(d.netdev):
        irqs = listing(below("sys/class/net", n, "device/msi_irqs"))
        cpus = [cpu_list(first_line(below("proc/irq", i, "effective_affinity_list"))) for i in irqs]
        cpus = [c for c in cpus if c]	# an interrupt that is not in use has none
        if len(cpus) > 2 and len(cpu_list(first_line(below("sys/devices/system/cpu/online")))) > 1 and len(set().union(*cpus)) == 1:
            yield Finding("irq-one-cpu", n, "%d interrupts, CPU %d" % (len(cpus), *cpus[0]))


def numa(d, links):
    for n in roan_doctor_lldp.below_it(d.netdev):
        node = number("sys/class/net", n, "device/numa_node")
        if node is None or node < 0:
            continue
        cpus = cpu_list(first_line(below("sys/devices/system/node/node%d/cpulist" % node)))
        if cpus and not cpus & os.sched_getaffinity(0):
            yield Finding("numa-distance", n, "node %d" % node, node=node)


def dcb(d, *words):
    """The adapter's DCB state; empty without one, as of most drivers."""
    try:
        state = parsed("dcb", "-j", *words[:1], "show", "dev", d.netdev, *words[1:])
    except NotChecked:
        return {}
    return (state[0] if isinstance(state, list) and state else state) or {}


def priority(d):
    """Of packets with the device's default traffic class: the DCB table's for the DSCP, else for the UDP port, else the DSCP's upper bits."""
    dscp, table = (d.setting("traffic_class") or 0) >> 2, dcb(d, "app")
    by_dscp = [p for s, p in table.get("dscp_prio", []) if s == dscp]
    by_port = [p for key in ("dgram_port_prio", "port_prio") for s, p in table.get(key, []) if s == 4791]
    return max(by_dscp or by_port or [dscp >> 3])


def adapter_pfc(d):
    """Bits: priorities whose pauses the adapter obeys by itself."""
    rows = dcb(d, "pfc", "prio-pfc").get("prio_pfc", [])
    pairs = rows.items() if isinstance(rows, dict) else enumerate(rows)
    return sum(1 << int(p) for p, on in pairs if on)


def pfc(d, links):
    mask = d.setting("pfc_prio_mask")
    if mask and d.setting("traffic_class"):
        mine = priority(d)
        if not mask >> mine & 1:
            yield Finding("pfc-priority", d.name, "traffic_class %d has priority %d, pfc_prio_mask is %d" % (d.setting("traffic_class"), mine, mask),
                          dev=d.name, mask=1 << mine)
    own = adapter_pfc(d) if mask else 0
    if own and own != mask:
        yield Finding("pfc-dcb", d.name, "adapter %d, pfc_prio_mask %d" % (own, mask), dev=d.name, mask=own, netdev=d.netdev)


ROOT = 0xffffffff				# parent of an interface's first qdisc
RTM_GETQDISC, NLM_F_REQUEST_DUMP, NLMSG_ERROR, NLMSG_DONE = 38, 0x301, 2, 3
TCA_KIND, TCA_OPTIONS, TCA_FQ_PRIOMAP, TCA_FQ_WEIGHTS = 1, 2, 16, 17


class Qdisc:
    """Of pfifo_fast, prio, and fq of a kernel in which it has bands, also the number of bands and the band of each priority."""
    def __init__(self, message):
        self.ifindex, self.handle, self.parent = struct.unpack_from("=iII", message, 4)
        of = attributes(message[20:])
        self.kind, options = of[TCA_KIND].rstrip(b"\0").decode(), of.get(TCA_OPTIONS, b"")
        inner = attributes(options) if self.kind == "fq" else {}
        options = inner.get(TCA_FQ_PRIOMAP, b"") if self.kind == "fq" else options
        has_bands = self.kind in ("pfifo_fast", "prio", "fq") and len(options) >= 20
        self.bands, self.priomap = struct.unpack_from("=i16s", options) if has_bands else (0, b"")
        self.weights = struct.unpack_from("=3i", inner[TCA_FQ_WEIGHTS]) if has_bands and TCA_FQ_WEIGHTS in inner else None

    def behind(self, prio):
        """Whether packets of this priority get less than best effort."""
        if not self.priomap:
            return False
        band, other = self.priomap[prio], self.priomap[0]
        return self.weights[band] < self.weights[other] if self.weights else band > other


def attributes(data):
    """Type -> value, of netlink attributes."""
    found = {}
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        found[kind & 0x3fff] = data[4:length]
        data = data[max(length + 3 & ~3, 4):]
    return found


def qdiscs(netdev):
    """By netlink, as tc of Debian 12 does not show the bands of fq. The kernel sends the qdiscs of all interfaces."""
    found, index = [], socket.if_nametoindex(netdev)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as s:
        s.send(struct.pack("=IHHII BxxxiIII", 36, RTM_GETQDISC, NLM_F_REQUEST_DUMP, 1, 0, 0, index, 0, 0, 0))
        while True:
            data = s.recv(1 << 17)
            while data:
                length, kind = struct.unpack_from("=IH", data)
                if kind in (NLMSG_ERROR, NLMSG_DONE):
                    return [q for q in found if q.ifindex == index]
                found.append(Qdisc(data[16:length]))
                data = data[length + 3 & ~3:]


def qdisc(d, links):
    """The qdisc of the interface and of those that it sends by; of mq and tbf, those of their classes."""
    mine = priority(d)
    for netdev in roan_doctor_lldp.below_it(d.netdev):
        every = qdiscs(netdev) if netdev in links else []
        top = next((q for q in every if q.parent == ROOT), None)
        groups = {}
        for q in every:
            if q.behind(mine) and (q is top or top and top.kind in ("mq", "tbf") and q.parent >> 16 == top.handle >> 16):
                groups.setdefault((q.kind, q.bands, q.priomap), []).append(q.parent)
        for (kind, count, priomap), parents in groups.items():
            new = " ".join(str(priomap[0] if p == mine else band) for p, band in enumerate(priomap))
            command = "tc qdisc replace dev %s %%s %s bands %d priomap %s" % (netdev, kind.replace("pfifo_fast", "prio"), count, new)
            if parents == [ROOT]:
                command %= "root"
            else:
                command %= "parent %x:$q" % (top.handle >> 16 or 1)
                command = "for q in %s; do %s; done" % (" ".join("%x" % p for p in sorted(p & 0xffff for p in parents)), command)
                if not top.handle:	# the kernel's default mq; its classes have no name until it gets a handle
                    command = "tc qdisc replace dev %s root handle 1: mq; %s" % (netdev, command)
            yield Finding("qdisc-weight" if kind == "fq" else "qdisc-strict", netdev,
                          "%s, band %d for priority %d, band %d for best effort" % (kind, priomap[mine], mine, priomap[0]), prio=mine, command=command)


def switch(d, links):
    """What the switch announces by LLDP against what is set here. Without a class of their own and PFC, packets need neither."""
    mask, mine = d.setting("pfc_prio_mask") or 0, priority(d)
    wanted = bool(mask or d.setting("traffic_class"))
    try:
        neighbours = roan_doctor_lldp.switches(d.netdev)
    except NotChecked:
        if wanted:
            raise
        return
    for s in neighbours:
        where = "%s, switch %s" % (s.netdev, s.name)
        if s.frame and s.frame < min(d.mtu, LARGEST):
            yield Finding("switch-mtu", where, "frames of %d bytes, MTU %d here" % (s.frame, d.mtu), netdev=d.netdev, mtu=s.frame - 18)
        here = mask | (adapter_pfc(d) if wanted and s.pfc is not None else 0)
        if wanted and s.pfc is not None and (here & ~s.pfc or (s.pfc & ~here) >> mine & 1):
            yield Finding("switch-pfc", where, "%d there, %d here; packets have priority %d" % (s.pfc, here, mine), dev=d.name, mask=s.pfc, prio=mine)
        dscp = (d.setting("traffic_class") or 0) >> 2
        theirs = next((s.prio[k] for k in ((roan_doctor_lldp.DSCP, dscp), (roan_doctor_lldp.UDP, 4791), (roan_doctor_lldp.UDP_OR_TCP, 4791)) if k in s.prio), mine)
        if theirs != mine:
            yield Finding("switch-priority", where, "%d there, %d here" % (theirs, mine), dev=d.name, netdev=d.netdev, prio=theirs, tclass=theirs << 5)
        if s.share.get(mine) == 0:
            yield Finding("switch-ets", where, "priority %d" % mine, prio=mine)


# Functions of a device and the interfaces of its namespace. Each yields findings, or raises NotChecked.
CHECKS = [link, address, mtu, firewall, conntrack, neighbour_table, multihomed, multipath, offload, wrong_packets, adapter, receive_queues, interrupts,
          numa, pfc, qdisc, switch]
