# SPDX-License-Identifier: GPL-2.0
"""Faults of the way between two hosts, h1 and h2, found by `roan doctor --peer` in h1. The listener is a process of its own in
h2. Faults of the path itself are made by tc on the egress of v1 or v2, which no check of a host looks at."""
import subprocess
import sys

from doctor_world import REPO, case, doctor, fails, result, sh, skip, wait_for
import roan_doctor_peer		# doctor_world has the path to it

LISTENER = "import sys, time; sys.path.insert(0, '%s/tools'); import roan_doctor; shift = float(sys.argv[1]); real = time.time; " \
           "time.time = lambda: real() + shift; sys.exit(roan_doctor.main(['--listen']))" % REPO
OTHER = "import socket, sys, time; s = socket.create_server(('', 18591)); t = s.accept()[0]; t.sendall(sys.argv[1].encode()); time.sleep(99)"
PEER = ("--peer", "10.7.0.2")


def listener(argument=0, program=LISTENER):
    """Starts roan doctor --listen in h2, with a clock that is ahead by so many seconds; or another program."""
    process = subprocess.Popen(["ip", "netns", "exec", "h2", sys.executable, "-c", program, str(argument)])
    wait_for(lambda: sh("ip netns exec h2 ss -Hltn 'sport = :18591'").strip(), 60)
    return process


def egress(end, match, action):
    return "ip netns exec h%d bash -c 'tc qdisc add dev v%d clsact && tc filter add dev v%d egress protocol ip prio 1 %s %s'" % (end, end, end, match, action)


def no_filter(end):
    return "tc -n h%d qdisc del dev v%d clsact" % (end, end)


UDP = "u32 match ip protocol 17 0xff"
ROCE = UDP + " match ip dport 4791 0xffff"


THERE, BACK = "10.7.0.1 -> 10.7.0.2", "10.7.0.2 -> 10.7.0.1"
SMALL = "action police rate 100gbit burst 100m mtu 2000 conform-exceed drop/pass"


def tos(value, mask):
    return "action pedit ex munge ip tos set %d retain %d pipe action csum ip4h" % (value, mask)


def path_edits(on_way):
    """Packets that the path does not carry, or changes. The last one leaves counts that later examinations report."""
    on_way("the path carries 2000 bytes, there", {"path-mtu", "path-drops"}, egress(1, UDP, SMALL), no_filter(1), where={"path-mtu": THERE})
    on_way("the path carries 2000 bytes, back", {"path-mtu", "exchange-failed"}, egress(2, UDP, SMALL), no_filter(2), where={"path-mtu": BACK})
    on_way("the path clears ECN, there", {"ecn-bleached"}, egress(1, UDP, tos(0, 3)), no_filter(1), where={"ecn-bleached": THERE})
    on_way("the path clears ECN, back", {"ecn-bleached"}, egress(2, UDP, tos(0, 3)), no_filter(2), where={"ecn-bleached": BACK})
    on_way("the path takes marks (CE) away", {"ecn-bleached"}, egress(1, UDP + " match ip tos 3 0x3", tos(2, 3)), no_filter(1))
    on_way("the path drops marked packets", {"ecn-dropped"}, egress(2, UDP + " match ip tos 3 0x3", "action drop"), no_filter(2), where={"ecn-dropped": BACK})
    on_way("the path drops packets with ECN bits", {"ecn-dropped", "path-drops"}, egress(1, UDP + " match ip tos 2 0x2", "action drop"), no_filter(1))
    on_way("the path clears the DSCP", {"dscp-bleached"}, egress(1, UDP, tos(0, 252)), no_filter(1), where={"dscp-bleached": THERE})
    on_way("the path drops a DSCP", {"dscp-dropped"}, egress(2, UDP + " match ip tos 0x68 0xfc", "action drop"), no_filter(2), where={"dscp-dropped": BACK})
    on_way("the path changes payload", {"exchange-failed"}, egress(1, ROCE, "action pedit munge offset 60 u32 set 0xdeadbeef"), no_filter(1))


ROUTED = """
ip netns add r1; ip netns add s1; ip netns add s2
ip link add x1 netns h1 type veth peer name x netns r1
ip -n h1 addr add 10.20.1.1/24 dev x1; ip -n r1 addr add 10.20.1.2/24 dev x; ip -n h1 link set x1 up; ip -n r1 link set x up
ip -n h2 link set lo up; ip -n h2 addr add 10.20.2.1/32 dev lo
for i in 1 2; do
    ip link add a$i netns r1 type veth peer name a0 netns s$i; ip link add b0 netns s$i type veth peer name y$i netns h2
    ip -n r1 addr add 10.20.1$i.1/24 dev a$i; ip -n s$i addr add 10.20.1$i.2/24 dev a0
    ip -n s$i addr add 10.20.2$i.1/24 dev b0; ip -n h2 addr add 10.20.2$i.2/24 dev y$i
    ip -n r1 link set a$i up; ip -n s$i link set a0 up; ip -n s$i link set b0 up; ip -n h2 link set y$i up
    ip -n s$i route add 10.20.1.0/24 via 10.20.1$i.1; ip -n s$i route add 10.20.2.1 via 10.20.2$i.2
    ip netns exec s$i sysctl -qw net.ipv4.ip_forward=1
done
ip -n h1 route add 10.20.2.1 via 10.20.1.2; ip -n h2 route add 10.20.1.0/24 via 10.20.21.1
ip -n r1 route add 10.20.2.1 nexthop via 10.20.11.2 nexthop via 10.20.12.2
ip netns exec r1 sysctl -qw net.ipv4.ip_forward=1"""


def routed():
    """h1 -- r1 ==== s1, s2 ==== h2: what a router does with source ports is in the notes. The addresses are those of no device."""
    if fails("ls /proc/sys/net/ipv4/fib_multipath_hash_policy"):
        return skip("routers that choose a path by the ports", "this kernel has no multipath routes")
    sh("set -e; " + ROUTED)
    for policy, number in (0, "1 router at hop 2"), (1, "2 routers at hop 2"):
        sh("ip netns exec r1 sysctl -qw net.ipv4.fib_multipath_hash_policy=%d" % policy)
        wanted = "10.20.2.1: 8 source ports pass 1 router at hop 1, " + number
        for _ in range(4):			# 8 ports that the host chooses take the same one of 2 routes once in 128 times
            notes = doctor("--peer", "10.20.2.1", ns="h1")[1]["peer"]["notes"]
            if wanted in notes:
                break
        result("a router's hash policy %d: %s" % (policy, number), "" if wanted in notes else "notes: %s" % notes)
    sh("ip netns del r1; ip netns del s1; ip netns del s2; ip -n h2 addr del 10.20.2.1/32 dev lo")


def not_a_doctor():
    """The port is open, and what answers, if anything, is no doctor. The forks in which the doctor runs inherit WAIT."""
    kept, roan_doctor_peer.WAIT = roan_doctor_peer.WAIT, 2
    for name, answer in ("says nothing", ""), ("greets by SMTP", "220 mail\n"), ("answers in JSON", "{}\n"):
        process = listener(answer, OTHER)
        case("a program at the peer's port %s" % name, {"peer-unreachable"}, "", "", *PEER, ns="h1")
        process.kill()
        process.wait()
    roan_doctor_peer.WAIT = kept


def cases():
    edits = not fails(egress(1, UDP, tos(0, 3)))
    fails(no_filter(1))
    case("nobody listens at the peer", {"peer-unreachable"}, "", "", *PEER, ns="h1")
    not_a_doctor()
    process = listener()
    try:
        def on_way(name, expected, seed="", undo="", peer=PEER, where=()):
            case("to a peer, " + name, expected, seed, undo, *peer, where=where, ns="h1")
        on_way("nothing is wrong", set())
        local = sh("ip -n h2 -6 -o addr show dev v2 scope link | grep -o 'fe80::[^/]*'").strip()
        on_way("by a link-local address, nothing is wrong", set(), peer=("--peer", local + "%v1"))
        on_way("MTU 1500 there", {"mtu-mismatch"}, "ip -n h2 link set v2 mtu 1500", "ip -n h2 link set v2 mtu 4200")
        on_way("by an address that no device has", {"peer-no-device"}, "ip -n h2 link add d2 type dummy; ip -n h2 addr add 10.9.0.2/32 dev d2; ip -n h2 link set d2 up;"
               "ip -n h1 route add 10.9.0.2 via 10.7.0.2", "ip -n h1 route del 10.9.0.2; ip -n h2 link del d2", ("--peer", "10.9.0.2"))
        on_way("the path drops RoCE, there", {"path-drops"}, egress(1, ROCE, "action drop"), no_filter(1))
        on_way("the path drops RoCE, back", {"path-drops"}, egress(2, ROCE, "action drop"), no_filter(2))
        if fails("nft list ruleset"):
            skip("to a peer, its firewall drops RoCE: firewall-drop", "this kernel has no nf_tables")
        else:
            on_way("its firewall drops RoCE", {"firewall-drop", "path-drops"}, "ip netns exec h2 nft 'table inet t { chain c { type filter hook input priority 0; udp dport 4791 drop; }; }'",
                   "ip netns exec h2 nft flush ruleset")
        on_way("its congestion control differs", {"qos-mismatch"}, "ip netns exec h2 sh -c 'echo swift > /sys/class/infiniband/roan2/ports/1/cc_param/algo'",
               "ip netns exec h2 sh -c 'echo dcqcn > /sys/class/infiniband/roan2/ports/1/cc_param/algo'")
        routed()
        if edits:
            path_edits(on_way)
        else:
            skip("packets that the path changes: path-mtu, ecn-bleached, ecn-dropped, dscp-bleached, dscp-dropped, exchange-failed", "this kernel lacks act_pedit")
    finally:
        process.terminate()
        process.wait()
    process = listener(100)
    case("to a peer, its clock is ahead", {"clock-skew"} | ({"icrc-errors"} if edits else set()), "", "", *PEER, ns="h1")
    process.terminate()
    result("the listener ends when it is told to", "" if process.wait() else "status 0")
