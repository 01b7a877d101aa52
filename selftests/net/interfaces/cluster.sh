#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Pods: network namespaces whose veths are ports of a bridge, as container networks make them. Each pod has a roan device
# of its own and talks to a pod on the same bridge, and to a host behind a router. Masquerading breaks RoCE, visibly.
# Then devices of namespaces with `rdma system set netns exclusive`, the limits of the rdma cgroup, and whether the
# manifests of Documentation/kubernetes.md are YAML.
#
#	pod1 eth0 10.7.1.2 --+
#	                     +-- br0 10.7.1.1 -- first namespace, routes -- up0 10.7.2.1 ==== far eth0 10.7.2.2
#	pod2 eth0 10.7.1.3 --+
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../../vm/lib.sh"
PYTHON=/usr/bin/python3		# pyverbs and yaml are Debian's
CGROUP=/tmp/cgroup/pod1	# not in /sys, which `ip netns exec` mounts anew

pod() { # NAME ADDRESS: a namespace with eth0 on br0
	ip netns add "$1" && ip link add "$1" mtu 4200 type veth peer name eth0 mtu 4200 netns "$1" || return
	ip link set "$1" master br0 && ip link set "$1" up || return
	on "$1" ip link set lo up && on "$1" ip addr add "$2/24" dev eth0 && on "$1" ip link set eth0 up || return
	on "$1" ip route add default via 10.7.1.1
}

network() {
	ip link add br0 mtu 4200 type bridge && ip addr add 10.7.1.1/24 dev br0 && ip link set br0 up || return
	pod pod1 10.7.1.2 && pod pod2 10.7.1.3 || return
	ip netns add far && ip link add up0 mtu 4200 type veth peer name eth0 mtu 4200 netns far || return
	ip addr add 10.7.2.1/24 dev up0 && ip link set up0 up && sysctl -qw net.ipv4.ip_forward=1 || return
	on far ip link set lo up && on far ip addr add 10.7.2.2/24 dev eth0 && on far ip link set eth0 up || return
	on far ip route add default via 10.7.2.1 || return
	wait_for 60 on pod1 ping -c1 -W1 10.7.2.2
}
network_down() {
	local n
	for n in pod1 pod2 far; do ip netns del $n; done
	ip link del br0
}

devices() {
	local n
	for n in pod1 pod2 far; do
		link_add "roan_$n" eth0 $n || return
	done
}

# A container of the pod adds the link itself. Of all capabilities it has CAP_NET_ADMIN.
pod_adds_link() {
	rdma link del roan_pod1 || return
	on pod1 setpriv --bounding-set -all,+net_admin --inh-caps -all rdma link add roan_pod1 type roan netdev eth0 || return
	wait_for 60 rdma link show roan_pod1/1
}
without_right() { # another capability does not suffice
	! on pod1 setpriv --bounding-set -all,+net_raw --inh-caps -all rdma link add roan_x type roan netdev eth0
}

listens() { [ -n "$(on "$1" ss -Hltn "sport = :$2")" ]; }

# Servers are started without on(), so that $! is the process to kill. verbs_stress compares all data it moves.
talk() { # SERVER ADDRESS CLIENT
	local pid
	ip netns exec "$1" timeout 100 "$PROGRAMS/verbs_stress" -d "roan_$1" -T 60 > /tmp/server 2>&1 & pid=$!
	wait_for 60 listens "$1" 18515 || { cat /tmp/server; return 1; }
	on "$3" timeout 100 "$PROGRAMS/verbs_stress" -d "roan_$3" -c "$2" -T 60 -n 20 || { kill $pid; cat /tmp/server; return 1; }
	wait $pid
}

talk_by_cm() { # SERVER ADDRESS CLIENT
	local pid
	ip netns exec "$1" timeout 100 rping -s -a "$2" -C 20 > /tmp/server 2>&1 & pid=$!
	wait_for 60 on "$1" sh -c 'rdma resource show cm_id | grep -q LISTEN' || return
	on "$3" timeout 100 rping -c -a "$2" -C 20 -V || { kill $pid; cat /tmp/server; return 1; }
	wait $pid
}

# ibv_rc_pingpong and Gloo ask for a hop limit of 1. For a unicast address the RDMA core takes the one of the route.
hop_limit_1() { # SERVER ADDRESS CLIENT ADDRESS
	local pid
	ip netns exec "$1" timeout 200 ibv_rc_pingpong -d "roan_$1" -g "$(gid_index "roan_$1" "$2" "$1")" -n 20 > /tmp/server 2>&1 & pid=$!
	wait_for 60 listens "$1" 18515 || { cat /tmp/server; return 1; }
	on "$3" timeout 150 ibv_rc_pingpong -d "roan_$3" -g "$(gid_index "roan_$3" "$4" "$3")" -n 20 "$2" || { kill $pid; cat /tmp/server; return 1; }
	wait $pid
}

# ---- masquerading ----

masquerade() { # RULE: hides the pods' addresses behind 10.7.2.1, after RULE
	nft -f - <<- END
		table ip nat {
			chain postrouting {
				type nat hook postrouting priority srcnat;
				$1
				ip saddr 10.7.1.0/24 oif up0 masquerade
			}
		}
	END
}
bare_routing() { nft delete table ip nat; }

# A QP takes packets of its peer's address only. The sender's retries run out, the receiver sends nothing.
nothing_arrives() {
	local wrong sent pid out rc=0
	wrong=$(counter roan_far rx_wrong_peer) sent=$(counter roan_far sent_pkts)
	ip netns exec far timeout 200 ib_write_bw -F -d roan_far -n 5 > /tmp/server 2>&1 & pid=$!
	wait_for 60 listens far 18515 || { cat /tmp/server; return 1; }
	out=$(on pod1 timeout 150 ib_write_bw -F -d roan_pod1 -n 5 -u 10 10.7.2.2 2>&1) && rc=1
	kill $pid 2> /dev/null
	wait $pid
	echo "$out"
	grep -q 'status 12' <<< "$out" || rc=1
	[ "$(counter roan_far rx_wrong_peer)" -gt "$wrong" ] || { echo "rx_wrong_peer stands still"; rc=1; }
	[ "$(counter roan_far sent_pkts)" = "$sent" ] || { echo "far answered"; rc=1; }
	return $rc
}

# The connection manager's messages are UD, from any address. But the ICRC covers the addresses, so they arrive broken.
cm_broken() {
	local pid rc=0 icrc
	icrc=$(counter roan_far rx_bad_icrc)
	ip netns exec far timeout 60 rping -s -a 10.7.2.2 -C 1 > /tmp/server 2>&1 & pid=$!
	wait_for 60 on far sh -c 'rdma resource show cm_id | grep -q LISTEN' || return
	on pod1 timeout 20 rping -c -a 10.7.2.2 -C 1 && rc=1
	kill $pid
	wait $pid
	[ "$(counter roan_far rx_bad_icrc)" -gt "$icrc" ] && return $rc
}

# ---- the rdma cgroup ----

cgroup_up() {
	grep -qw cgroup2 /proc/filesystems || return 4
	mkdir -p /tmp/cgroup && mount -t cgroup2 cgroup2 /tmp/cgroup || return
	grep -qw rdma /tmp/cgroup/cgroup.controllers || return 4
	echo +rdma > /tmp/cgroup/cgroup.subtree_control && mkdir $CGROUP && grep roan_pod1 $CGROUP/rdma.max
}
# limited LIMITS EXPECTED: a program in the cgroup opens devices and allocates PDs until each is refused, and prints the
# two numbers and the cgroup's own count.
limited() {
	local got
	echo "roan_pod1 $1" > $CGROUP/rdma.max || return
	got=$(on pod1 sh -c "echo \$\$ > $CGROUP/cgroup.procs && exec $PYTHON -" <<- END
		import pyverbs.device as d, pyverbs.pd as p
		from pyverbs.pyverbs_error import PyverbsError
		def fill(make, limit):
		    made = []
		    try:
		        while len(made) < limit:
		            made.append(make())
		    except PyverbsError:
		        pass
		    return made
		contexts = fill(lambda: d.Context(name="roan_pod1"), 9)
		pds = fill(lambda: p.PD(contexts[0]), 40) if contexts else []
		def current():
		    return [line.strip() for line in open("$CGROUP/rdma.current") if line.startswith("roan_pod1 ")][0]
		print(len(contexts), len(pds), current())
		for pd in pds:
		    pd.close()
		for c in contexts:
		    c.close()
		print("then", current())
	END
	) || return
	echo "$got"
	[ "$(head -n 1 <<< "$got")" = "$2" ] || return
	# Every object is uncharged at its end.
	tail -n 1 <<< "$got" | grep 'hca_handle=0 hca_object=0'
}

# ---- exclusive namespaces ----

pods_again() { network && devices; }
exclusive() { wait_for 60 rdma system set netns exclusive && rdma system | grep 'netns exclusive'; }

# What rdma-cni does: a device that exists in the first namespace goes into the pod's.
moves_into_pod() {
	ip link add m0 mtu 4200 type dummy && ip link set m0 up && rdma link add roan_m type roan netdev m0 || return
	wait_for 60 rdma link show roan_m/1 || return
	rdma dev set roan_m netns pod1 || return
	! rdma link show roan_m/1 2> /dev/null && on pod1 rdma dev show roan_m && on pod1 ls /sys/class/infiniband/roan_m/ports/1 > /dev/null || return
	ip link del m0 && wait_for 60 on pod1 sh -c '! rdma dev show roan_m'
}
only_its_own() { # each pod sees one device, the first namespace none
	[ "$(on pod1 rdma dev | awk '{ print $2 }')" = roan_pod1: ] && [ "$(on pod2 rdma dev | awk '{ print $2 }')" = roan_pod2: ] || return
	[ -z "$(rdma dev)" ] && [ "$(on pod1 ls /sys/class/infiniband)" = roan_pod1 ] || return
	! on pod1 ibv_devinfo -d roan_pod2
}
has_alloc_with_net() { [ "$(printf '6.17\n%s\n' "$(uname -r)" | sort -V | head -n 1)" = 6.17 ]; }
begins_in_pod() { # without `rdma dev set`
	on pod1 ip link add s0 type dummy && on pod1 ip link set s0 up && on pod1 rdma link add roan_s type roan netdev s0 || return
	wait_for 60 on pod1 rdma link show roan_s/1 && ! rdma dev show roan_s 2> /dev/null || return
	on pod1 rdma link del roan_s && on pod1 ip link del s0
}
pod_ends() { # the namespace ends: its device goes with the veth, or returns to the first namespace and goes
	ip netns del pod2 && wait_for 60 sh -c '! ls /sys/class/infiniband | grep -q roan_pod2' && ! rdma dev show roan_pod2 2> /dev/null
}

# ---- manifests ----

manifests() {
	$PYTHON -c 'import yaml' 2> /dev/null || { echo "python3-yaml is not installed"; return 4; }
	$PYTHON - "$REPO/Documentation/kubernetes.md" <<- 'END'
		import re, sys, yaml
		n = 0
		for block in re.findall(r"^```yaml\n(.*?)^```", open(sys.argv[1]).read(), re.M | re.S):
		    for doc in yaml.safe_load_all(block):
		        print(doc["apiVersion"], doc["kind"], doc["metadata"]["name"])
		        n += 1
		sys.exit(n < 5)
	END
}

ktap_header
{ load_modules && network && devices; } > /tmp/setup 2>&1 || { cat /tmp/setup; ktap_fail "set-up"; ktap_end; }

ktap_check "a pod without CAP_NET_ADMIN: refused" without_right
ktap_check "a pod with only CAP_NET_ADMIN adds the link" pod_adds_link
ktap_check "pod to pod over the bridge" talk pod2 10.7.1.3 pod1
ktap_check "pod to a host behind a router" talk far 10.7.2.2 pod1
ktap_check "a host behind a router to a pod" talk pod1 10.7.1.2 far
ktap_check "rdma_cm: pod to a host behind a router" talk_by_cm far 10.7.2.2 pod1
ktap_check "a program that asks for a hop limit of 1: through the router" hop_limit_1 far 10.7.2.2 pod1 10.7.1.2
if command -v nft > /dev/null && masquerade ""; then
	ktap_check "masqueraded: not from the peer for the receiver, status 12 at the sender" nothing_arrives
	ktap_check "masqueraded: rdma_cm does not connect, its messages have a wrong ICRC" cm_broken
	bare_routing
	ktap_check "UDP port 4791 is exempted" masquerade "udp dport 4791 accept"
	ktap_check "exempted: pod to a host behind a router" talk far 10.7.2.2 pod1
	ktap_check "exempted: rdma_cm" talk_by_cm far 10.7.2.2 pod1
	bare_routing
else
	ktap_skip "masquerading" "needs nftables, and a kernel with it"
fi

if ktap_check "rdma cgroup: the device is listed" cgroup_up && [ -e $CGROUP/rdma.max ]; then
	ktap_check "rdma cgroup: 2 contexts" limited "hca_handle=2 hca_object=max" "2 40 roan_pod1 hca_handle=2 hca_object=40"
	ktap_check "rdma cgroup: 10 objects" limited "hca_handle=max hca_object=10" "9 10 roan_pod1 hca_handle=9 hca_object=10"
	ktap_check "rdma cgroup: none" limited "hca_handle=0 hca_object=0" "0 0 roan_pod1 hca_handle=0 hca_object=0"
fi

network_down
if ktap_check "exclusive RDMA namespaces" exclusive; then
	ktap_check "exclusive: pods with devices" pods_again
	ktap_check "exclusive: each pod has its own device only" only_its_own
	ktap_check "exclusive: pod to pod" talk pod2 10.7.1.3 pod1
	ktap_check "exclusive: rdma_cm, pod to a host behind a router" talk_by_cm far 10.7.2.2 pod1
	ktap_check "exclusive: a device of the first namespace is given to a pod" moves_into_pod
	if has_alloc_with_net; then
		ktap_check "exclusive: a new device is in its interface's namespace" begins_in_pod
	else
		ktap_skip "exclusive: a new device is in its interface's namespace" "from Linux 6.17 on"
	fi
	ktap_check "exclusive: a pod ends" pod_ends
fi
ktap_check "manifests of kubernetes.md are YAML" manifests
ktap_end
