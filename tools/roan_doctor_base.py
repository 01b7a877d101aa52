# SPDX-License-Identifier: GPL-2.0
"""What the checks of `roan doctor` share: findings, their codes, and how a check looks at the host.

CODES is the one list of codes: severity, what is wrong, what mends it. `roan doctor --codes` prints it as the table of
Documentation/doctor.md, with which `make test` compares it. A fault keeps programs from communicating, or will; with an
advice they work, but slower or less safely than they could.
"""
import json
import os
import shutil
import subprocess

from roan_clients import below, first_line, listing

FAULT, ADVICE = "fault", "advice"
LARGEST = 4200		# bytes of a packet with path MTU 4096, with headers
__all__ = ["ADVICE", "CODES", "FAULT", "Finding", "LARGEST", "NotChecked", "below", "first_line", "listing", "number", "output", "parsed"]

CODES = {
    # the module
    "module-missing": (FAULT, "roan.ko is not installed", "make module provider && make install; with DKMS: tools/package dkms"),
    "module-other-kernel": (FAULT, "roan.ko is installed, but for another kernel than the running one",
                            "apt install linux-headers-$(uname -r) && dkms autoinstall (Fedora: dnf install kernel-devel-$(uname -r)); or boot the other kernel"),
    "module-unsigned": (FAULT, "the kernel loads signed modules only, and roan.ko has no signature",
                        "mokutil --import {key}, reboot, enrol the key; then dkms install roan again"),
    "module-key": (FAULT, "the kernel loads signed modules only, and does not have the key by which roan.ko is signed",
                   "mokutil --import {key}, reboot, enrol the key at the console"),
    "module-other-core": (FAULT, "roan.ko is built for the kernel's own ib_core, and modprobe loads another one, as MLNX_OFED and DOCA-OFED install it",
                          "remove their kernel modules (MLNX_OFED: ofed_uninstall.sh), then depmod, and reboot"),
    "module-not-loaded": (FAULT, "roan.ko is installed for this kernel and not loaded", "modprobe roan"),
    "module-twice": (ADVICE, "two files roan.ko are installed for this kernel, and the one that modprobe loads may be the older",
                     "keep one: {commands}; then depmod"),
    "module-next-kernel": (ADVICE, "a newer kernel is installed, and roan.ko is not installed for it: after the next boot there is no module", "install it for that kernel, too: {command}"),
    "no-device": (FAULT, "there is no roan device on an interface of this network namespace", "rdma link add roan0 type roan netdev {netdev}"),
    "netns-exclusive": (FAULT, "RDMA devices are exclusive to their namespace, and this namespace has none",
                        "in the first namespace: rdma dev set DEV netns NAME; or, before any namespace exists: rdma system set netns shared"),
    "port-taken": (FAULT, "UDP port 4791 is held by something else, so no roan device can be made", "stop it ({holder}); then rdma link add"),
    "adapter-roce": (FAULT, "the interface's adapter does RoCE itself and takes the packets of port 4791 before Linux sees them",
                     "use the adapter's own device {adapter}, or turn its RoCE off: {command}"),
    # programs
    "provider-missing": (FAULT, "libibverbs does not find roan's provider, so programs do not see the device",
                         "make provider && make -C provider install; or apt install libroan"),
    "provider-abi": (FAULT, "roan's provider is built for another libibverbs", "build it anew on this host: make clean provider && make -C provider install"),
    "provider-env": (ADVICE, "IBV_DRIVERS or RDMAV_DRIVERS names a provider that cannot be loaded", "unset {variable}"),
    "uverbs-missing": (FAULT, "the device has no file in /dev/infiniband", "modprobe ib_uverbs; in a container: pass --device /dev/infiniband"),
    "uverbs-permission": (FAULT, "this user may not open the device's file in /dev/infiniband", "chmod 0666 {path}, or a udev rule (rdma-core has one)"),
    "rdma-cm-missing": (ADVICE, "there is no /dev/infiniband/rdma_cm: programs that use librdmacm fail", "modprobe rdma_ucm"),
    "memlock": (FAULT, "the limit of locked memory is too low for queues and regions", "ulimit -l unlimited; for services LimitMEMLOCK=infinity; for logins /etc/security/limits.conf"),
    "rdma-cgroup": (FAULT, "the rdma controller of this process's cgroup allows no further object", "echo '{dev} hca_handle=max hca_object=max' > {path}"),
    # the interface
    "link-down": (FAULT, "the interface is down", "ip link set {netdev} up"),
    "no-carrier": (FAULT, "the interface has no carrier", "connect the cable, or bring the other end up"),
    "no-ip": (FAULT, "the interface has no IP address, so the device has no GID by which it can send", "ip addr add ADDRESS/LENGTH dev {netdev}"),
    "link-local-only": (ADVICE, "the only GIDs are link-local: peers behind a router cannot be reached, rdma_cm needs a scope", "ip addr add ADDRESS/LENGTH dev {netdev}"),
    "lo-address": (ADVICE, "lo has only 127.0.0.1 and ::1, which rdma_cm refuses", "ip addr add 10.99.0.1/32 dev lo"),
    "mtu-low": (FAULT, "the interface's MTU is below 1280: IPv6 is off, and the path MTU is at most 1024 (below 1116: 512)", "ip link set {netdev} mtu 4200, at least 1500"),
    "firewall-drop": (FAULT, "a rule drops UDP packets of port 4791", "{remedy}"),
    "firewall-maybe": (ADVICE, "a rule may drop UDP packets of port 4791, depending on what is not known here (addresses, marks, rates)", "allow udp dport 4791 before it"),
    "nat": (FAULT, "a rule rewrites addresses or ports of RoCE packets; their ICRC covers both", "exempt udp dport 4791 from it"),
    "ecn-mangled": (FAULT, "a rule overwrites the ECN bits, so congestion control does not learn of marks", "remove it, or let it set only the DSCP"),
    "conntrack-full": (FAULT, "the connection tracking table is full: packets of new flows are dropped, and of queue pairs that were idle for 30 s", "sysctl -w net.netfilter.nf_conntrack_max={double}; or exempt RoCE: udp dport 4791 notrack"),
    "neighbours-full": (FAULT, "the neighbour table of all network namespaces is full: packets to hosts that are not in it are dropped (tx_dropped)",
                        "sysctl -w net.{family}.neigh.default.gc_thresh3={double} net.{family}.neigh.default.gc_thresh2={most}, in the first namespace"),
    "rp-filter": (FAULT, "strict reverse path filtering, and packets to a subnet of this interface leave by another one: packets that arrive here from there are dropped",
                  "sysctl -w net/ipv4/conf/{netdev}/rp_filter=2 net/ipv4/conf/all/rp_filter=2"),
    "arp-flux": (ADVICE, "another interface is in the same network, and answers ARP for this one's address: packets may come by the wrong one, and are refused (rx_wrong_interface)",
                 "sysctl -w net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2"),
    "ecmp-l3": (ADVICE, "there is a multipath route, and flows are spread by address only: all QPs to a peer take one path",
                "sysctl -w net.{family}.fib_multipath_hash_policy=1"),
    "bond-l2": (ADVICE, "the bond chooses a link by addresses only: all QPs to a peer take one link", "ip link set {netdev} type bond xmit_hash_policy layer3+4"),
    "gso-off": (ADVICE, "UDP segmentation offload is off: the kernel splits what the adapter, or the peer of a veth, would get in one piece", "ethtool -K {netdev} tx-udp-segmentation on"),
    "gro-off": (ADVICE, "GRO is off: each packet received crosses the IP stack alone", "ethtool -K {netdev} gro on"),
    "checksum-off": (ADVICE, "checksum offload is off, which also turns GSO off", "ethtool -K {netdev} tx on rx on"),
    "checksum-errors": (ADVICE, "UDP packets with a wrong checksum arrive: a faulty offload, cable or virtual switch", "ethtool -K {netdev} tx off at the sender; ethtool -S {netdev}"),
    "icrc-errors": (ADVICE, "packets with a wrong ICRC arrive: something on the path changes them", "look for NAT or a faulty link on the path; ethtool -S {netdev}"),
    "rss-ip-only": (ADVICE, "the adapter spreads UDP by address only: all packets of a peer arrive at one CPU", "ethtool -N {netdev} rx-flow-hash {flow} sdfn"),
    "irq-one-cpu": (ADVICE, "all queues of the adapter interrupt one CPU", "start irqbalance, or set /proc/irq/N/smp_affinity_list"),
    "pfc-priority": (FAULT, "PFC obeys priorities that roan's packets do not have: a switch's pauses stop nothing",
                     "roan cc set {dev} pfc_prio_mask={mask}; or give the packets that priority: traffic_class, dcb app"),
    "pfc-dcb": (FAULT, "the adapter's own PFC and pfc_prio_mask name different priorities", "roan cc set {dev} pfc_prio_mask={mask}; or dcb pfc set dev {netdev} prio-pfc"),
    "qdisc-strict": (FAULT, "the interface's qdisc sends packets of the device's traffic class only when no best effort waits. While other traffic fills the link RDMA stops, and queue pairs fail if their ACKs wait there",
                     "give priority {prio} the band of best effort: {command}"),
    "qdisc-weight": (ADVICE, "the interface's fq qdisc gives packets of the device's traffic class a smaller weight than best effort: a quarter of a full link by default",
                     "with iproute2 of Debian 13 or newer, give priority {prio} the band of best effort: {command}"),
    "switch-mtu": (FAULT, "the switch, by LLDP, takes shorter frames than the interface sends", "raise the MTU of the switch port; or ip link set {netdev} mtu {mtu}"),
    "switch-pfc": (FAULT, "the switch, by LLDP, does PFC for other priorities than this host: it sends no pauses, or they stop nothing",
                   "roan cc set {dev} pfc_prio_mask={mask}; or enable PFC of priority {prio} at the switch port"),
    "switch-priority": (ADVICE, "the switch, by LLDP, expects RoCE packets with another priority than they have",
                        "roan cc set {dev} traffic_class={tclass}; or dcb app add dev {netdev} dgram-port-prio 4791:{prio}"),
    "switch-ets": (ADVICE, "the switch, by LLDP, gives the packets' class 0 % of the link", "give the class of priority {prio} a share at the switch port; or roan cc set another traffic_class"),
    "cpu-governor": (ADVICE, "CPUs change their frequency to save power: latency varies", "cpupower frequency-set -g performance"),
    "numa-distance": (ADVICE, "this process may run on none of the CPUs of the adapter's NUMA node", "numactl --cpunodebind={node} --membind={node} PROGRAM"),
    "gpu-memory": (ADVICE, "memory of a GPU cannot be registered", "roan gpu"),
    "tool-missing": (FAULT, "the rdma tool is missing", "apt install iproute2 (Fedora: dnf install iproute)"),
    # with --peer
    "peer-unreachable": (FAULT, "the doctor at the peer does not answer", "start it there: roan doctor --listen; allow TCP and UDP port {port}, TCP ports 18592 and 18593"),
    "peer-no-device": (FAULT, "no roan device has the address by which the peer is reached", "rdma link add at {side}, on the interface of that address"),
    "mtu-mismatch": (FAULT, "the MTUs of the two interfaces differ: messages longer than the smaller one are lost, or QPs refuse to connect", "ip link set {netdev} mtu {mtu} at {side}"),
    "path-mtu": (FAULT, "packets of the size of both interfaces' MTU do not pass the path", "raise the MTU of what is between the hosts to {mtu} at least, or lower that of both interfaces"),
    "path-drops": (FAULT, "RoCE packets leave one side and do not reach roan at the other", "allow UDP port 4791 on the path and in the firewall of {side}"),
    "exchange-failed": (FAULT, "packets pass both ways, and the exchange fails all the same", "roan status at both ends; Documentation/observability.md"),
    "ecn-bleached": (FAULT, "the path clears the ECN bits, so congestion control does not learn of marks", "look for a rule or switch that overwrites the TOS byte between {side} and the other end"),
    "ecn-dropped": (FAULT, "the path drops packets with ECN bits set: those that congestion control sends, or those that a switch marked",
                    "configure switches and firewalls between {side} and the other end to forward packets with all four ECN values"),
    "dscp-bleached": (ADVICE, "the path changes the DSCP, so switches do not see the class of the packets", "trust DSCP at the switch ports between the hosts"),
    "dscp-dropped": (ADVICE, "the path drops packets that have a DSCP: those of a traffic class other than 0 are lost",
                     "configure switches and firewalls between {side} and the other end to forward packets with this DSCP"),
    "qos-mismatch": (FAULT, "the two ends are set differently for PFC or congestion control", "roan cc set {dev} {setting} at {side}"),
    "clock-skew": (ADVICE, "the clocks of the two hosts differ by more than a second: logs and certificates do not match", "timedatectl set-ntp true at both"),
}


class NotChecked(Exception):
    """A check cannot be made here; says why."""


class Finding:
    def __init__(self, code, where, message="", **values):
        severity, what, remedy = CODES[code]
        for name, value in values.items():
            remedy = remedy.replace("{%s}" % name, str(value))
        self.code, self.severity, self.where = code, severity, where
        self.message, self.remedy = what + (message and ": " + message), remedy


def output(*command, ok=(0,)):
    """Of a program. Raises NotChecked if it is missing or fails."""
    if not shutil.which(command[0]):
        raise NotChecked("%s is not installed" % command[0])
    done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", env=dict(os.environ, LC_ALL="C"))
    if done.returncode not in ok:
        raise NotChecked("%s: %s" % (" ".join(command), (done.stderr.strip() or "status %d" % done.returncode).split("\n")[0]))
    return done.stdout


def parsed(*command):
    try:
        return json.loads(output(*command).strip() or "[]", strict=False)
    except ValueError:
        raise NotChecked("%s: the answer is not JSON" % " ".join(command))


def number(*path):
    """Of a file that has one; None if it cannot be read."""
    text = first_line(below(*path))
    return int(text, 0) if text and text.lstrip("-").isdigit() else None
