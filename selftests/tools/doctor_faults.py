#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Faults of one host, each seeded and removed, with the codes that `roan doctor` must report: these and no others. Called by
doctor.sh. PARTS in the environment: those of main() that are run."""
import errno
import os
import shutil
import socket
import struct
import subprocess
import tempfile

from doctor_world import REPO, always, case, compare, doctor, end, enter, fails, forked, result, roan, roan_doctor_net, sh, skip
import doctor_lldp
import doctor_peer
import roan_clients		# doctor_world has the path to it
import roan_doctor_host

LIB = 'LINK_TYPE=roan; . "$REPO/selftests/vm/lib.sh"; '
PROVIDER = "/etc/libibverbs.d/roan.driver"
NOBODY = 65534


def module_cases():
    """The module that is not there: first this guest's, then trees of files that imitate /lib/modules."""
    if os.path.isdir("/sys/module/roan"):
        return skip("module", "it is loaded already")
    case("nothing is loaded", {"module-missing"}, "", "", "--only", "module")
    root = tempfile.mkdtemp()
    release = os.uname().release
    ko = sh(LIB + "roan_ko").strip()

    def tree(kernel):
        folder = os.path.join(root, "lib/modules", kernel, "updates")
        os.makedirs(folder, exist_ok=True)
        shutil.copy(ko, folder + "/roan.ko")
        with open(os.path.join(root, "lib/modules", kernel, "modules.dep"), "w") as f:
            f.write("kernel/a.ko:\nupdates/roan.ko: kernel/a.ko\n")
        return folder + "/roan.ko"
    env = {"ROAN_ROOT": root}
    tree("5.0.0-other")
    case("installed for another kernel", {"module-other-kernel"}, "", "", "--only", "module", env=env)
    path = tree(release)
    case("installed, not loaded", {"module-not-loaded"}, "", "", "--only", "module", env=env)
    dep = os.path.join(root, "lib/modules", release, "modules.dep")
    needs = "echo updates/roan.ko: kernel/drivers/infiniband/core/ib_uverbs.ko.xz %s/core/ib_core.ko > " + dep
    case("its ib_core is the kernel's", {"module-not-loaded"}, needs % "kernel/drivers/infiniband", "", "--only", "module", env=env)
    case("its ib_core is that of MLNX_OFED", {"module-other-core"}, needs % "updates/dkms", "", "--only", "module", env=env)
    tree(release)
    with open(path, "rb") as f:
        text = f.read()
    wrong = text.replace(b"vermagic=" + release.encode(), b"vermagic=" + b"9" * len(release))
    with open(path, "wb") as f:
        f.write(wrong)
    case("built for another kernel, below this one's folder", {"module-other-kernel"}, "", "", "--only", "module", env=env)
    with open(path, "wb") as f:
        f.write(text)
    os.makedirs(root + "/sys/module/module/parameters")
    with open(root + "/sys/module/module/parameters/sig_enforce", "w") as f:
        f.write("Y\n")
    kernel = "99.0.1-cloud-amd64"

    def next_kernel(name, seed, remedy):
        """@remedy: the beginning of what the doctor prints; empty: nothing."""
        sh("cd %s; %s" % (root, seed.replace("KERNEL", kernel)))
        found = doctor("--only", "next_kernel", env=env)[1]["findings"]
        good = [f["code"] for f in found] == ["module-next-kernel"] and found[0]["remedy"].startswith("install it for that kernel, too: " + remedy.replace("KERNEL", kernel))
        result("%s: %s" % (name, remedy or "healthy"), "" if (good if remedy else not found) else found)
    next_kernel("an older kernel", "mkdir boot; touch boot/vmlinuz-1.0.0-amd64 boot/vmlinuz-0-rescue-99", "")
    next_kernel("a newer kernel, make install", "mkdir -p lib/modules/KERNEL; touch boot/vmlinuz-KERNEL", "make install KDIR=/lib/modules/KERNEL/build")
    next_kernel("... a package of the module alone", "mkdir -p var/lib/dpkg/info; touch var/lib/dpkg/info/roan-modules-6.12.1-amd64.list", "tools/package module KERNEL && apt install ./build/deb/roan-modules-KERNEL_")
    next_kernel("... DKMS, no headers", "mkdir -p var/lib/dkms/roan/0.1+1/kernel-1 etc; touch etc/debian_version", "apt install linux-headers-KERNEL;")
    next_kernel("... not on Debian", "rm etc/debian_version", "its headers (Fedora: dnf install kernel-devel-KERNEL)")
    next_kernel("... with headers, for which it was not built", "mkdir lib/modules/KERNEL/build", "dkms install roan/0.1+1 -k KERNEL; if it fails: /var/lib/dkms/roan/0.1+1/build/make.log")
    next_kernel("... with the module", "echo updates/dkms/roan.ko: > lib/modules/KERNEL/modules.dep", "")
    case("an unsigned module on a kernel that requires signatures", {"module-unsigned"}, "", "", "--only", "module", env=env)
    for distribution, there, key in (("debian", "", "/var/lib/dkms/mok.pub"), ("ubuntu", "", "/var/lib/shim-signed/mok/MOK.der"),
                                     ("ubuntu", "/var/lib/dkms/mok.pub", "/var/lib/dkms/mok.pub")):
        sh("cd {0}; mkdir -p etc var/lib/dkms; echo NAME=x > etc/os-release; echo ID={1} >> etc/os-release; [ -z '{2}' ] || touch {0}{2}".format(root, distribution, there))
        remedy = doctor("--only", "module", env=env)[1]["findings"][0]["remedy"]
        result("the key of %s's DKMS: %s%s" % (distribution, there and "found, ", key), "" if "--import %s, " % key in remedy else remedy)
    for code, data in ("module-other-kernel", wrong), ("module-unsigned", text):
        with open(path, "wb") as f:
            f.write(data)
        case("the same, compressed", {code}, "xz -0f %s; sed -i 's/roan.ko:/roan.ko.xz:/' %s" % (path, dep), "", "--only", "module", env=env)
    os.remove(path + ".xz")
    tree(release)
    case("DKMS's module beside that of make install", {"module-twice"}, "mkdir {0}/dkms; cp {0}/roan.ko {0}/dkms".format(os.path.dirname(path)),
         "rm -r {0}/dkms".format(os.path.dirname(path)), "--only", "twice", env=env)
    for folder in "extra", "extra/roan", "weak-updates/roan":
        other = os.path.join(root, "lib/modules", release, folder)
        case("... in %s, as DKMS of other distributions" % folder, {"module-twice"}, "mkdir -p {0}; cp {1} {0}".format(other, path), "", "--only", "twice", env=env)
        if folder == "extra":
            sh("cd {0}; mkdir -p bin usr/src/roan-1; touch usr/src/roan-1/dkms.conf; printf '#!/bin/sh\\ncase $2 in */dkms.conf) echo roan-dkms: $2 ;; *) exit 1 ;; esac\\n' > bin/dpkg;"
               "printf '#!/bin/sh\\nexit 1\\n' > bin/rpm; chmod +x bin/*".format(root))
            remedy = doctor("--only", "twice", env=dict(env, PATH="%s/bin:%s" % (root, os.environ["PATH"])))[1]["findings"][0]["remedy"]
            wanted = "keep one: apt purge roan-dkms, or make uninstall; then depmod"
            result(wanted, "" if remedy == wanted else remedy)
            shutil.rmtree(root + "/bin")
        shutil.rmtree(os.path.join(root, "lib/modules", release, folder.split("/")[0]))
    with open(path, "ab") as f:
        f.write(roan_doctor_host.SIGNED)
    case("a signed module on it", {"module-not-loaded"}, "", "", "--only", "module", env=env)
    for folder in "bin", "proc":
        os.mkdir(os.path.join(root, folder))
    env["PATH"] = "%s/bin:%s" % (root, os.environ["PATH"])
    sh("cd %s; printf '#!/bin/sh\\necho a key\\n' > bin/modinfo; chmod +x bin/modinfo; echo '1 I 1 perm 1f010000 0 0 asymmetri Debian: 01: X509.rsa' > proc/keys" % root)
    case("a module signed with an unknown key", {"module-key"}, "", "", "--only", "module", env=env)
    sh("echo '2 I 1 perm 1f010000 0 0 asymmetri a key: 02: X509.rsa' >> %s/proc/keys" % root)
    case("... that has been enrolled", {"module-not-loaded"}, "", "", "--only", "module", env=env)
    shutil.rmtree(root)


def port_cases():
    case("no device", {"no-device"})
    holder = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    holder.bind(("", 4791))
    case("a program holds the port", {"no-device", "port-taken"})
    holder.close()
    if os.environ.get("LAB") == "uml-debug":
        return skip("rdma_rxe holds the port: port-taken", "UML keeps the KASAN shadow of unloaded modules")
    case("rdma_rxe holds the port", {"no-device", "port-taken"},
         "ip link add rx0 type dummy; ip link set rx0 up; modprobe rdma_rxe && rdma link add rxe0 type rxe netdev rx0",
         "rdma link del rxe0; rmmod rdma_rxe; ip link del rx0")


def healthy_cases():
    """Set-ups without a fault, in shared mode, each with a device of its own. The remedies of two of them are tested, too."""
    case("lo without an address of its own", {"lo-address"}, LIB + "link_add roan_lo lo", "")
    case("lo", set(), "ip addr add 10.99.0.1/32 dev lo", "ip addr del 10.99.0.1/32 dev lo; rdma link del roan_lo")
    case("veth", set(), LIB + "ip netns add c0; ip link add va mtu 1500 type veth peer name eth0 mtu 1500 netns c0; ip addr add 10.11.0.1/24 dev va;"
         "ip -n c0 addr add 10.11.0.2/24 dev eth0; ip -n c0 link set eth0 up; ip -n c0 link set lo up; ip link set va up; link_add roan_v va", "")
    most = sh("cat /proc/sys/net/ipv4/neigh/default/gc_thresh3").strip()
    case("the neighbour table is full", {"neighbours-full"},
         "ping -qc1 10.11.0.2; sysctl -qw net.ipv4.neigh.default.gc_thresh3=1; ping -qc1 -W1 10.11.0.77; true",
         "sysctl -qw net.ipv4.neigh.default.gc_thresh3=%s" % most)
    case("the other end of the veth is down", {"no-carrier"}, "ip -n c0 link set eth0 down", "ip -n c0 link set eth0 up")
    case("the only device's interface is in a container", {"no-device"}, LIB + "rdma link del roan_v; link_add roan_c eth0 c0", "")
    case("container", set(), ns="c0")
    sh("rdma link del roan_c; ip netns del c0")
    case("bridge", set(), LIB + "ip link add br0 type bridge; ip link add p0 type dummy; ip link set p0 master br0 up; ip link set br0 up;"
         "ip addr add 10.12.0.1/24 dev br0; link_add roan_b br0", "rdma link del roan_b; ip link del p0; ip link del br0")
    case("VLAN: the device is that of the interface below", set(), LIB + "ip link add e0 type dummy; ip link set e0 up; ip addr add 10.13.0.1/24 dev e0;"
         "ip link add link e0 name e0.5 type vlan id 5; ip addr add 10.13.5.1/24 dev e0.5; ip link set e0.5 up; link_add roan_e e0",
         "rdma link del roan_e; ip link del e0")


def as_user(**how):
    return dict(ns="h1", user=NOBODY, **how)


def program_cases():
    case("no driver file", {"provider-missing"}, "mv %s /tmp/" % PROVIDER, "mv /tmp/roan.driver %s" % PROVIDER, ns="h1")
    case("the provider is for another libibverbs", {"provider-abi"},
         "mkdir -p /tmp/p; touch /tmp/p/libroan-rdmav99.so; cp %s /tmp/; echo driver /tmp/p/libroan > %s" % (PROVIDER, PROVIDER),
         "cp /tmp/roan.driver %s" % PROVIDER, ns="h1")
    verbs, roan_clients.verbs = roan_clients.verbs, lambda: {"roan1": {"open_errno": errno.EPROTONOSUPPORT}}
    case("the provider is for another release with the same number", {"provider-abi"}, ns="h1")
    roan_clients.verbs = verbs
    case("the driver file names a library that does not exist", {"provider-missing"},
         "cp %s /tmp/; echo driver /tmp/absent/libroan > %s" % (PROVIDER, PROVIDER), "cp /tmp/roan.driver %s" % PROVIDER, ns="h1")
    case("IBV_DRIVERS names a provider that does not exist", {"provider-env"}, ns="h1", env={"IBV_DRIVERS": "/nowhere/libx"})
    case("no file for the device", {"uverbs-missing"}, "mkdir /tmp/u; mv /dev/infiniband/uverbs* /tmp/u", "mv /tmp/u/* /dev/infiniband; rmdir /tmp/u", ns="h1")
    case("another user, the files are root's", {"uverbs-permission"}, "chmod 0600 /dev/infiniband/uverbs*", "chmod 0666 /dev/infiniband/uverbs*", **as_user())
    case("another user, with rights", set(), **as_user(memlock=8 << 20))
    case("another user, 64 KiB of locked memory", {"memlock"}, **as_user(memlock=64 << 10))
    case("no file for rdma_cm", {"rdma-cm-missing"}, "mv /dev/infiniband/rdma_cm /tmp", "mv /tmp/rdma_cm /dev/infiniband", ns="h1")
    if fails("grep -q ^rdma /proc/cgroups"):
        skip("the rdma controller: rdma-cgroup", "this kernel has no rdma controller")
    else:
        rdma_controller()
    sys_cases()
    case("no rdma tool", {"tool-missing"}, "mkdir -p /tmp/bin; ln -sf $(command -v ip ss nft ethtool) /tmp/bin", "", ns="h1", env={"PATH": "/tmp/bin"})


def sys_cases():
    """The network namespace of h1 with the /sys of the first one, then by the command that the doctor prints."""
    os.environ["PATH"] = REPO + "/tools:" + os.environ["PATH"]
    inside = ["nsenter", "--net=/run/netns/h1"]
    done = subprocess.run([*inside, "roan", "doctor"], capture_output=True, text=True)
    command = done.stderr.partition("-n unshare ")[2]
    result("nsenter -n: refused", "" if done.returncode == 125 and command and not done.stdout else done)
    done = subprocess.run(["sh", "-c", " ".join(inside) + " unshare " + (command or "true")], capture_output=True, text=True)
    result("... with a /sys of its own: healthy", "" if done.returncode == 0 and "roan1 on v1" in done.stdout else done)


def rdma_controller():
    case("the rdma controller allows nothing", {"rdma-cgroup"},
         "mkdir -p /tmp/cg; mount -t cgroup2 none /tmp/cg; echo +rdma > /tmp/cg/cgroup.subtree_control; mkdir /tmp/cg/job;"
         "echo roan1 hca_handle=max hca_object=0 > /tmp/cg/job/rdma.max", "rmdir /tmp/cg/job; umount /tmp/cg", ns="h1", cgroup="/tmp/cg/job")


RESTORE = "for a in 10.7.0.1/24 fd07::1/64; do ip -n h1 addr replace $a dev v1 nodad; done"


def bond_cases():
    """A container with a device on a bond of two links."""
    if fails("modprobe bonding"):
        return skip("a bond that hashes addresses: bond-l2", "this kernel has no bonds")
    sh("ip netns add b1; ip -n b1 link set lo up; ip -n b1 link add bo type bond mode balance-xor;"
       "for i in 1 2; do ip -n b1 link add p$i type dummy; ip -n b1 link set p$i master bo; done;"
       "ip -n b1 addr add 10.14.0.1/24 dev bo; ip -n b1 link set bo up; " + LIB + "link_add roan_bo bo b1")
    case("a bond that hashes MAC addresses", {"bond-l2"}, ns="b1")
    case("... addresses of layers 2 and 3", {"bond-l2"}, "ip -n b1 link set bo type bond xmit_hash_policy layer2+3", ns="b1")
    case("... ports", set(), "ip -n b1 link set bo type bond xmit_hash_policy layer3+4", ns="b1")
    case("a bond below a bridge", {"bond-l2"}, "ip netns exec b1 rdma link del roan_bo; ip -n b1 addr flush dev bo; ip -n b1 link add br0 type bridge; ip -n b1 link set bo master br0;"
         "ip -n b1 addr add 10.14.0.1/24 dev br0; ip -n b1 link set br0 up; ip -n b1 link set bo type bond xmit_hash_policy layer2+3;" + LIB +
         "link_add roan_bo br0 b1; wait_for 10 sh -c 'ip -n b1 link show br0 | grep -q LOWER_UP'",
         ns="b1", where={"bond-l2": "bo"})
    sh("ip netns exec b1 rdma link del roan_bo; ip netns del b1")


def vrf_cases():
    """A container with a device in a VRF, and interfaces in the same subnet: one outside, then one inside. The name has a dot."""
    if fails("modprobe vrf"):
        return skip("an interface in another VRF", "this kernel has no VRFs")
    sh("ip netns add r1; ip -n r1 link set lo up; ip -n r1 link add red type vrf table 10; ip -n r1 link set red up; ip netns exec r1 sysctl -qw net.ipv4.conf.all.rp_filter=1;"
       "for i in 1 2 3; do ip -n r1 link add d.$i type dummy; [ $i = 1 ] || ip -n r1 link set d.$i master red; ip -n r1 addr add 10.17.0.$i/24 dev d.$i; done;"
       "ip -n r1 link set d.1 up; ip -n r1 link set d.2 up; " + LIB + "link_add roan_r d.2 r1")
    case("an interface of another VRF in the subnet", set(), ns="r1")
    case("one of the same VRF, by which packets leave", {"arp-flux", "rp-filter"},
         "ip -n r1 link set d.3 up; ip -n r1 route prepend 10.17.0.0/24 dev d.3 src 10.17.0.3 vrf red", ns="r1")
    sh(" && ".join("ip netns exec r1 " + f["remedy"] for f in doctor(ns="r1")[1]["findings"]))
    case("... mended by the doctor's commands", set(), ns="r1")
    sh("ip netns exec r1 rdma link del roan_r; ip netns del r1")


def macvlan_cases():
    """The interface below a macvlan has no address, and answers ARP for the macvlan's."""
    if fails("modprobe macvlan"):
        return skip("a macvlan: arp-flux", "this kernel has no macvlan")
    sh("ip netns add m1; ip -n m1 link set lo up; ip -n m1 link add du type dummy; ip -n m1 link add mv link du type macvlan;"
       "ip -n m1 addr add 10.15.0.1/24 dev mv; ip -n m1 link set du up; ip -n m1 link set mv up; " + LIB + "link_add roan_mv mv m1")
    case("a macvlan and the interface below it", {"arp-flux"}, ns="m1")
    case("... that answers for its own addresses only", set(), "ip netns exec m1 sysctl -qw net.ipv4.conf.du.arp_ignore=1", ns="m1")
    sh("ip netns exec m1 rdma link del roan_mv; ip netns del m1")


def qdisc_cases():
    """A container whose device has a traffic class with priority 3, and an interface with two transmit queues."""
    sh("ip netns add q1; ip -n q1 link set lo up; ip -n q1 link add e1 numtxqueues 2 type dummy; ip -n q1 addr add 10.16.0.1/24 dev e1;"
       "ip -n q1 link set e1 up; " + LIB + "modprobe -q -a sch_prio sch_fq sch_fq_codel sch_tbf; link_add roan_q e1 q1")

    def on_q1(name, expected, seed):
        case(name, expected, "exec 2>&1; ip netns exec q1 bash -ec '%s'" % seed, ns="q1")

    def mended(name):
        """By the command that the doctor prints."""
        found = [f["remedy"].split(": ", 1)[1] for f in doctor("--only", "qdisc", ns="q1")[1]["findings"]]
        on_q1("... mended by the doctor's command, " + name, set(), "; ".join(found or ["exit 1"]))
    on_q1("pfifo_fast, no traffic class", set(), "tc qdisc replace dev e1 root pfifo_fast")
    on_q1("pfifo_fast, traffic class 104", {"qdisc-strict"}, "cd /tmp; $REPO/tools/roan cc set roan_q traffic_class=104")
    mended("prio")
    on_q1("prio below tbf", {"qdisc-strict"}, "tc qdisc replace dev e1 root handle 9: tbf rate 1gbit burst 128k limit 1m; tc qdisc replace dev e1 parent 9:1 prio bands 4")
    mended("below tbf")
    on_q1("mq, a pfifo_fast for each queue", {"qdisc-strict"}, "tc qdisc del dev e1 root; tc qdisc add dev e1 root handle 1: mq;"
          "for q in 1 2; do tc qdisc replace dev e1 parent 1:$q pfifo_fast; done")
    mended("both queues")
    on_q1("fq_codel", set(), "tc qdisc del dev e1 root; tc qdisc add dev e1 root fq_codel")
    weighs = [int(n) for n in os.uname().release.split(".")[:2]] >= [6, 7]
    on_q1("fq of Linux 6.7 and newer" if weighs else "fq without bands", {"qdisc-weight"} if weighs else set(), "tc qdisc replace dev e1 root fq")
    if not weighs or fails("tc qdisc add dev lo root fq help 2>&1 | grep -q priomap"):
        skip("... mended by the doctor's command, fq", "this kernel or tc has no bands of fq")
    else:
        mended("fq")
    sh("ip netns exec q1 rdma link del roan_q; ip netns del q1")


def interface_cases():
    def on_h1(name, expected, seed, undo):
        case(name, expected, seed, undo, ns="h1")
    on_h1("interface down", {"link-down"}, "ip -n h1 link set v1 down", "ip -n h1 link set v1 up; %s" % RESTORE)
    on_h1("no address", {"no-ip"}, "ip -n h1 link set v1 addrgenmode none; ip -n h1 addr flush dev v1",
          "ip -n h1 link set v1 addrgenmode eui64; ip -n h1 link set v1 down; ip -n h1 link set v1 up; " + RESTORE)
    on_h1("only a link-local address", {"link-local-only"}, "ip -n h1 addr del 10.7.0.1/24 dev v1; ip -n h1 addr del fd07::1/64 dev v1;"
          "ip -n h1 addr replace fe80::77/64 dev v1 nodad", "ip -n h1 addr del fe80::77/64 dev v1; " + RESTORE)
    on_h1("MTU 1200", {"mtu-low"}, "ip -n h1 link set v1 mtu 1200", "ip -n h1 link set v1 mtu 4200; " + RESTORE)
    on_h1("another interface in the subnet", {"arp-flux"}, "ip -n h1 link add d1 type dummy; ip -n h1 addr add 10.7.0.9/24 dev d1; ip -n h1 link set d1 up", "")
    on_h1("... strict reverse path filtering, packets to it leave here", {"arp-flux"}, "ip netns exec h1 sysctl -qw net.ipv4.conf.all.rp_filter=1", "")
    on_h1("... or by the other one", {"arp-flux", "rp-filter"}, "ip -n h1 route prepend 10.7.0.0/24 dev d1 src 10.7.0.9", "")
    on_h1("... routes that depend on the source", {"arp-flux"}, "ip -n h1 rule add from 10.7.0.1 table 101; ip -n h1 route add 10.7.0.0/24 dev v1 table 101", "")
    on_h1("... each address is answered by its interface", set(), "ip netns exec h1 sysctl -qw net.ipv4.conf.all.arp_filter=1",
          "ip -n h1 rule del from 10.7.0.1 table 101; ip -n h1 link del d1; ip netns exec h1 sysctl -qw net.ipv4.conf.all.arp_filter=0")
    sh("ip netns exec h1 sysctl -qw net.ipv4.conf.all.rp_filter=0")
    vrf_cases()
    if fails("ls /proc/sys/net/ipv4/fib_multipath_hash_policy"):
        skip("multipath route: ecmp-l3", "this kernel has no multipath routes")
    else:
        on_h1("multipath route, hash of addresses", {"ecmp-l3"}, "ip -n h1 route add 10.50.0.0/16 nexthop via 10.7.0.2 dev v1 nexthop via 10.7.0.3 dev v1", "")
        on_h1("multipath route, hash of ports", set(), "ip netns exec h1 sysctl -qw net.ipv4.fib_multipath_hash_policy=1", "ip -n h1 route del 10.50.0.0/16")
        on_h1("IPv6: multipath route, hash of addresses", {"ecmp-l3"}, "ip -n h1 route add fd50::/64 nexthop via fd07::2 dev v1 nexthop via fd07::3 dev v1", "")
        on_h1("... hash of chosen fields, without the ports", {"ecmp-l3"}, "ip netns exec h1 sysctl -qw net.ipv6.fib_multipath_hash_policy=3", "")
        on_h1("... with the source port", set(), "ip netns exec h1 sysctl -qw net.ipv6.fib_multipath_hash_fields=0x13", "ip -n h1 route del fd50::/64")
    bond_cases()
    macvlan_cases()
    qdisc_cases()
    on_h1("GSO off", {"gso-off"}, "ip netns exec h1 ethtool -K v1 tx-udp-segmentation off",
          "ip netns exec h1 ethtool -K v1 tx-udp-segmentation on")
    on_h1("no checksum offload", {"checksum-off"}, "ip netns exec h1 ethtool -K v1 tx off", "ip netns exec h1 ethtool -K v1 tx on tso on gso on")
    if os.environ.get("NICS"):
        on_h1("GRO off", {"gro-off"}, "ip netns exec h1 ethtool -K v1 gro off", "ip netns exec h1 ethtool -K v1 gro on")
    else:
        skip("GRO off: gro-off", "no adapter: a veth passes GSO packets whole")
    sh("tc -n h1 qdisc replace dev v1 root pfifo")	# an adapter may have pfifo_fast: qdisc-strict
    on_h1("PFC of a priority that the packets do not have", {"pfc-priority"}, "cd /tmp; ip netns exec h1 $REPO/tools/roan cc set roan1 traffic_class=104 pfc_prio_mask=2", "")
    on_h1("PFC of the packets' priority", set(), "ip netns exec h1 $REPO/tools/roan cc set roan1 pfc_prio_mask=8",
          "ip netns exec h1 $REPO/tools/roan cc set roan1 traffic_class=0 pfc_prio_mask=0; tc -n h1 qdisc del dev v1 root")


INPUT = "ip netns exec h1 nft 'table inet t { chain c { type filter hook input priority 0; %s }; }'"
OUTPUT = "ip netns exec h1 nft 'table inet t { chain c { type filter hook output priority 0; %s }; }'"
FLUSH = "ip netns exec h1 nft flush ruleset"


def firewall_cases():
    if fails("nft list ruleset"):
        return skip("firewall", "this kernel has no nf_tables")

    def rules(name, expected, seed, undo=FLUSH):
        case(name, expected, seed, undo, ns="h1")
    rules("a rule drops the port", {"firewall-drop"}, INPUT % "udp dport 4791 counter drop;")
    rules("a range of ports is rejected on the way out", {"firewall-drop"}, OUTPUT % "udp dport 4000-5000 reject;")
    rules("a firewall that accepts ssh and replies only", {"firewall-drop"},
          INPUT % 'policy drop; ct state established,related accept; iif "lo" accept; tcp dport 22 accept;')
    rules("... and port 4791", set(), INPUT % 'policy drop; ct state established,related accept; tcp dport 22 accept; udp dport { 53, 4791 } accept;')
    rules("a firewall as firewalld makes it", {"firewall-drop"},
          INPUT % 'ct state { established, related } accept; ct status dnat accept; meta l4proto { icmp, ipv6-icmp } accept; reject with icmpx admin-prohibited;')
    rules("... by a chain of its own", set(),
          "ip netns exec h1 nft 'table inet t { chain roce { udp dport 4791 iifname \"v*\" accept; }; chain c { type filter hook input priority 0; policy drop; jump roce; }; }'")
    verdicts = "ct state vmap { established : accept, related : accept, invalid : drop }; meta l4proto tcp tcp dport vmap { 22 : drop };"
    rules("verdict maps that drop others", set(), INPUT % (verdicts + "udp dport vmap { 53 : drop, 4791 : accept }; drop;"))
    rules("... that drop the port", {"firewall-drop"}, INPUT % (verdicts + "udp dport vmap { 53 : accept, 4000-5000 : drop };"))
    rules("... that has a name, and chains", {"firewall-drop"},
          "ip netns exec h1 nft 'table inet t { map m { type inet_service : verdict; elements = { 4791 : jump roce }; }; chain roce { drop; }; "
          "chain c { type filter hook input priority 0; udp dport vmap @m; }; }'")
    chains = "ip netns exec h1 nft 'table inet t { chain roce { %s }; chain c { type filter hook input priority 0; %s }; }'"
    some = "ip saddr 10.7.0.0/24 return; ip6 saddr fd07::/64 return; "
    rules("a chain that drops what is not of some addresses", {"firewall-maybe"}, chains % (some + "drop;", "udp dport 4791 jump roce;"))
    rules("... after a return that depends on a mark", {"firewall-maybe"}, INPUT % "meta mark 5 return; udp dport 4791 drop;")
    rules("... that is the policy for them", {"firewall-maybe"}, INPUT % "policy drop; meta mark 5 return; udp dport 4791 accept;")
    rules("... by goto", {"firewall-maybe"}, chains % ("tcp dport 22 accept;", "policy drop; meta mark 5 goto roce; udp dport 4791 accept;"))
    rules("... and accepts the port for all others", set(), chains % ("accept;", "meta mark 5 return; udp dport 4791 jump roce; drop;"))
    rules("... or drops it at both ends", {"firewall-drop"}, chains % ("drop;", "policy drop; meta mark 5 return; udp dport 4791 goto roce;"))
    rules("a verdict map of addresses", {"firewall-maybe"}, INPUT % "ip saddr vmap { 10.7.0.77 : drop };")
    if fails("modprobe -n nft_fib_inet"):
        skip("packets without a route back are dropped, as by firewalld", "this kernel has no fib expression")
    else:
        rules("packets without a route back are dropped, as by firewalld", set(),
              "ip netns exec h1 nft 'table inet t { chain c { type filter hook prerouting priority -290; "
              "meta nfproto ipv6 fib saddr . mark . iif oif missing drop; }; }'")
    rules("a rule for some addresses", {"firewall-maybe"}, INPUT % "ip saddr 10.7.0.77 udp dport 4791 drop;")
    rules("a guard that drops above a rate, by address", {"firewall-maybe"},
          "ip netns exec h1 nft 'table inet t { set m { type ipv4_addr; flags dynamic; }; chain c { type filter hook input priority 0; "
          "udp dport 4791 add @m { ip saddr limit rate over 1000000/second } drop; }; }'")
    rules("... by meter", {"firewall-maybe"}, INPUT % "udp dport 4791 meter m { ip saddr limit rate over 1000000/second } drop;")
    untracked = "ip netns exec h1 nft 'table inet r { chain c { type filter hook prerouting priority -300; udp dport 4791 notrack; }; }'; "
    rules("untracked packets are accepted", set(), untracked + INPUT % "policy drop; ct state established,related,untracked accept;")
    rules("... are dropped, as new ones only are accepted", {"firewall-drop"}, untracked + INPUT % "policy drop; ct state new udp dport 4791 accept;")
    rules("a rule for a MAC address", {"firewall-maybe"}, INPUT % "ether daddr != 02:00:00:00:00:01 drop;")
    rules("a rule for flags of TCP", set(), INPUT % "tcp flags & (fin|syn) == fin|syn drop;")
    rules("iptables", {"firewall-drop"}, "ip netns exec h1 iptables -A INPUT -p udp --dport 4791 -j DROP")
    rules("rules of roce-guard.nft", set(), "sed 's/\"eth0\"/\"v1\"/' %s/Documentation/roce-guard.nft | ip netns exec h1 nft -f -" % REPO)
    rules("masquerading", {"nat"}, "ip netns exec h1 nft 'table ip t { chain c { type nat hook postrouting priority 100; oifname \"v1\" masquerade; }; }'")
    rules("masquerading of another interface", set(), "ip netns exec h1 nft 'table ip t { chain c { type nat hook postrouting priority 100; oifname \"x1\" masquerade; }; }'")
    rules("masquerading of what goes to other networks", set(), "ip netns exec h1 nft 'table ip t { chain m { ip daddr 10.0.0.0/8 return; masquerade; }; "
          "chain c { type nat hook postrouting priority 100; jump m; }; }'")
    rules("a rule that clears the ECN bits", {"ecn-mangled"}, OUTPUT % "ip ecn set not-ect;")
    rules("a rule that sets the DSCP", set(), OUTPUT % "udp dport 4791 ip dscp set cs3;")
    most = sh("cat /proc/sys/net/netfilter/nf_conntrack_max").strip()
    rules("the connection tracking table is full", {"conntrack-full"},
          OUTPUT % "ct state new counter;" + "; ip netns exec h1 ping -qc1 10.7.0.2; sysctl -qw net.netfilter.nf_conntrack_max=1",
          FLUSH + "; sysctl -qw net.netfilter.nf_conntrack_max=%s" % most)


def evil_packets():
    """In h1: datagrams with a wrong checksum, and from h2 a UD SEND to the GSI QP with a wrong ICRC."""
    def work():
        enter("h1")
        raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP)
        for _ in range(20):
            raw.sendto(struct.pack("!HHHH", 9, 9, 16, 0x1234) + b"checksum", ("127.0.0.1", 0))
        return 0

    def other():
        enter("h2")
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.sendto(struct.pack("!BBHII", 0x64, 0, 0xffff, 1, 1) + bytes(20), ("10.7.0.1", 4791))
        return 0
    forked(work)
    forked(other)


def packet_cases():
    evil_packets()
    case("packets with wrong checksums arrived", {"checksum-errors", "icrc-errors"}, ns="h1")


def fq_message(weights):
    """struct tcmsg and attributes, as the kernel sends them; tc of Debian 13 cannot set weights."""
    def attribute(kind, data):
        return struct.pack("=HH", 4 + len(data), kind) + data + bytes(-len(data) % 4)
    priomap = struct.pack("=i16B", 3, 1, 2, 2, 2, 1, 2, 0, 0, *[1] * 8)
    bands = attribute(roan_doctor_net.TCA_FQ_PRIOMAP, priomap) + attribute(roan_doctor_net.TCA_FQ_WEIGHTS, struct.pack("=3i", *weights))
    return struct.pack("=BxxxiIII", 0, 9, 0, roan_doctor_net.ROOT, 0) + attribute(roan_doctor_net.TCA_KIND, b"fq\0") + attribute(roan_doctor_net.TCA_OPTIONS, bands)


def imitated_cases():
    """Hardware that no guest has, as trees of files and programs that imitate ethtool and dcb; one check each."""
    root = tempfile.mkdtemp()

    def put(path, text):
        os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
        with open(os.path.join(root, path), "w") as f:
            f.write(text + "\n")

    def program(name, text):
        put("bin/" + name, "#!/bin/sh\ncat << 'E'\n%s\nE" % text)
        os.chmod(os.path.join(root, "bin", name), 0o755)

    class Fake(roan_doctor_net.Device):
        settings = {}

        def __init__(self, netdev="eth9"):
            self.name, self.netdev, self.interface, self.addresses = "roan9", netdev, {}, ["10.7.0.1", "fe80::1"]

        def setting(self, name):
            return self.settings.get(name)

    def check(name, function, expected, args=(Fake(), {}), remedy=""):
        was = {k: os.environ.get(k) for k in ("ROAN_ROOT", "PATH")}
        os.environ.update(ROAN_ROOT=root, PATH=root + "/bin:" + was["PATH"])
        try:
            found = list(function(*args) or ())
        finally:
            for k, v in was.items():
                os.environ.pop(k) if v is None else os.environ.update({k: v})
        as_expected = {f.code for f in found} == set(expected) and any(remedy in f.remedy for f in found) == bool(expected)
        result("%s: %s" % (name, ", ".join(expected) or "healthy"), "" if as_expected else "found %s" % [vars(f) for f in found])
    nic = "sys/class/net/eth9/device/"
    bond = Fake("bond9")
    put("sys/class/net/bond9/lower_eth9/address", "")
    put("sys/class/net/br9/lower_bond9/address", "")
    put("sys/devices/system/cpu/online", "0-7")
    put("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance")
    check("governor performance", roan_doctor_host.governor, [], ([],))
    put("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave")
    check("governor powersave", roan_doctor_host.governor, ["cpu-governor"], ([],))
    put(nic + "numa_node", "1")
    put("sys/devices/system/node/node1/cpulist", "4000-4095")
    check("adapter on another node than the process", roan_doctor_net.numa, ["numa-distance"])
    check("... below a bond", roan_doctor_net.numa, ["numa-distance"], (bond, {}))
    put("sys/devices/system/node/node1/cpulist", "0-4095")
    check("adapter on the node of the process", roan_doctor_net.numa, [])
    for irq, cpu in (40, 0), (41, 0), (42, 0):
        put(nic + "msi_irqs/%d" % irq, "msix")
        put("proc/irq/%d/effective_affinity_list" % irq, str(cpu))
    check("all interrupts on one CPU", roan_doctor_net.interrupts, ["irq-one-cpu"])
    check("... of an adapter below a bond", roan_doctor_net.interrupts, ["irq-one-cpu"], (bond, {}))
    put(nic + "msi_irqs/39", "msix")
    put("proc/irq/39/effective_affinity_list", "")
    check("... beside one that is not in use", roan_doctor_net.interrupts, ["irq-one-cpu"])
    put("proc/irq/42/effective_affinity_list", "3")
    check("interrupts on two CPUs", roan_doctor_net.interrupts, [])
    for n in range(4):
        put("sys/class/net/eth9/queues/rx-%d/rps_cpus" % n, "0")
    flow = "UDP over IPV4 flows use these fields for computing Hash flow key:\nIP SA\nIP DA\n"
    program("ethtool", flow)
    check("UDP spread by address", roan_doctor_net.receive_queues, ["rss-ip-only"])
    check("... by an adapter below a bond", roan_doctor_net.receive_queues, ["rss-ip-only"], (bond, {}))
    program("ethtool", flow + "L4 bytes 0 & 1 [TCP/UDP src port]\nL4 bytes 2 & 3 [TCP/UDP dst port]\n")
    check("UDP spread by port", roan_doctor_net.receive_queues, [])
    both = Fake()
    both.addresses = ["10.7.0.1", "fd07::1"]
    put("bin/ethtool", """#!/bin/sh\necho "UDP over $4 flows use these fields for computing Hash flow key:\nIP SA\nIP DA"\n[ $4 = udp6 ] || echo 'L4 bytes 0 & 1 [TCP/UDP src port]'""")
    check("UDP over IPv6 spread by address", roan_doctor_net.receive_queues, ["rss-ip-only"], (both, {}), "rx-flow-hash udp6 ")
    check("... without an IPv6 address", roan_doctor_net.receive_queues, [])
    features = "rx-checksumming: on\ntx-checksumming: %s\ntx-udp-segmentation: off\ngeneric-receive-offload: %s\nlarge-receive-offload: off [fixed]"
    put("bin/ethtool", "#!/bin/sh\n[ $2 = eth9 ] || exit 0\ncat << E\n" + features % ("on", "off") + "\nE")
    check("GRO off, GSO off", roan_doctor_net.offload, ["gso-off", "gro-off"])
    check("... at an adapter below a bond", roan_doctor_net.offload, ["gso-off", "gro-off"], (bond, {}))
    put("bin/ethtool", "#!/bin/sh\n[ $2 = eth9 ] || exit 0\ncat << E\n" + features % ("off", "on") + "\nE")
    check("no checksum offload at an adapter below a bridge and a bond", roan_doctor_net.offload, ["checksum-off"], (Fake("br9"), {}), "-K eth9 ")
    put(nic + "infiniband/mlx5_0/ports/1/gid_attrs/types/0", "IB/RoCE v1")
    check("an adapter with RoCE v1 only", roan_doctor_net.adapter, [])
    put(nic + "infiniband/mlx5_0/ports/1/gid_attrs/types/1", "RoCE v2")
    check("an adapter with RoCE v2 of its own", roan_doctor_net.adapter, ["adapter-roce"])
    check("... below a bond", roan_doctor_net.adapter, ["adapter-roce"], (bond, {}))
    check("... below a bridge that has the bond as a port", roan_doctor_net.adapter, ["adapter-roce"], (Fake("br9"), {}))
    def link(path, target):
        os.makedirs(os.path.join(root, target), exist_ok=True)
        os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
        os.symlink(os.path.join(root, target), os.path.join(root, path))

    # eth8: a subfunction. Its folder is not that of a PCI device
    for netdev, bus, name, module, aux in (("eth9", "pci", "0000:01:00.0", "bnxt_en", "bnxt_en.rdma.0"), ("eth8", "auxiliary", "mlx5_core.sf.4", "mlx5_core", "mlx5_core.rdma.4")):
        folder = "sys/devices/" + name
        if netdev == "eth9":
            os.makedirs(os.path.join(root, "sys/devices"), exist_ok=True)
            os.rename(os.path.join(root, nic), os.path.join(root, folder))
        put(folder + "/infiniband/rdma_%s/ports/1/gid_attrs/types/0" % netdev, "RoCE v2")
        link("sys/class/net/%s/device" % netdev, folder)
        link(folder + "/subsystem", "sys/bus/" + bus)
        link(folder + "/driver/module", "sys/module/" + module)
        driver = {"bnxt_en": "bnxt_re", "mlx5_core": "mlx5_ib"}[module]
        link("%s/%s/driver/module" % (folder, aux), "sys/module/" + driver)
        put("sys/module/ib_core/holders/" + driver, "")
    put("sys/module/ib_core/holders/other", "")
    sf = Fake("eth8")
    answer = '{"param":{"%s":[{"name":"enable_roce","type":"generic","values":[{"cmode":"%s","value":true}]}]}}'
    program("devlink", answer % ("auxiliary/mlx5_core.sf.4", "driverinit"))
    check("... turned off by a reload", roan_doctor_net.adapter, ["adapter-roce"], (sf, {}),
          "param set auxiliary/mlx5_core.sf.4 name enable_roce value false cmode driverinit && devlink dev reload auxiliary/mlx5_core.sf.4")
    program("devlink", answer % ("pci/0000:01:00.0", "runtime"))
    check("... without one", roan_doctor_net.adapter, ["adapter-roce"], remedy="param set pci/0000:01:00.0 name enable_roce value false cmode runtime")
    program("devlink", "{}")
    check("... by unloading its RDMA driver", roan_doctor_net.adapter, ["adapter-roce"], remedy="modprobe -r bnxt_re && printf 'blacklist %s\\n' bnxt_re > ")
    shutil.rmtree(os.path.join(root, "sys/devices/0000:01:00.0/bnxt_en.rdma.0"))
    put("sys/module/bnxt_en/holders/bnxt_re", "")
    check("... that has no auxiliary device", roan_doctor_net.adapter, ["adapter-roce"], remedy="modprobe -r bnxt_re && printf 'blacklist %s\\n' bnxt_re > ")
    Fake.settings = {"pfc_prio_mask": 8, "traffic_class": 104}
    program("dcb", '[{"pfc_cap":8,"prio_pfc":[false,true,false,false,false,false,false,false],"dscp_prio":[[26,3]]}]')
    check("the adapter's PFC is of another priority", roan_doctor_net.pfc, ["pfc-dcb"])
    program("dcb", '[{"pfc_cap":8,"prio_pfc":[false,false,false,true,false,false,false,false],"dscp_prio":[[26,3]]}]')
    check("the adapter's PFC is of the same priority", roan_doctor_net.pfc, [])
    by_netlink = roan_doctor_net.qdiscs
    for weights, expected in ((9, 3, 1), ["qdisc-weight"]), ((3, 1, 1), []):
        message = fq_message(weights)
        roan_doctor_net.qdiscs = lambda netdev, message=message: [roan_doctor_net.Qdisc(message)]
        check("fq whose bands have weights %d, %d, %d" % weights, roan_doctor_net.qdisc, expected, (Fake(), {"eth9": {}}))
    roan_doctor_net.qdiscs = by_netlink
    card = "sys/bus/pci/devices/0000:01:00.0/"
    for name, text in ("class", "0x030000"), ("vendor", "0x10de"), ("device", "0x2330"), ("resource", "0x0 0x0 0x0\n" * 6):
        put(card + name, text)
    check("a GPU without a driver", roan.gpu_memory, [], ())
    os.symlink("../../drivers/nvidia", os.path.join(root, card, "driver"))
    check("a GPU whose memory cannot be registered", roan.gpu_memory, ["gpu-memory"], ())
    shutil.rmtree(root)


def exclusive():
    sh("for i in $(seq 100); do rdma system set netns exclusive && exit; sleep 0.1; done; exit 1")


def main():
    parts = os.environ.get("PARTS", "module,port,healthy,program,interface,firewall,switch,peer,packets,imitated").split(",")
    if "module" in parts:
        module_cases()
    sh(LIB + "load_modules")
    if "port" in parts:
        port_cases()
    if "healthy" in parts:
        healthy_cases()
    exclusive()
    sh(LIB + "two_hosts")
    if "healthy" in parts:
        case("exclusive mode, the first namespace has no device", {"netns-exclusive", "no-device"})
    status, answer = doctor(ns="h1")
    always.update(f["code"] for f in answer["findings"])
    result("two hosts: %s" % (", ".join(sorted(always)) or "healthy"), "" if not status and always <= {"irq-one-cpu"} else compare(status, answer, []))
    for part in parts:
        PARTS.get(part, lambda: None)()
    end()


PARTS = {"program": program_cases, "interface": interface_cases, "firewall": firewall_cases, "switch": doctor_lldp.cases, "peer": doctor_peer.cases, "packets": packet_cases,
         "imitated": imitated_cases, "controller": rdma_controller}

if __name__ == "__main__":
    main()
