#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Two podman containers on a bridge, each with a roan device on its own veth and no privileges: no capability, only its
# own uverbs node. Their root is this machine's, copied on write. ib_write_bw and verbs_stress, which compares data,
# between them. Then the same with exclusive RDMA namespaces, where podman makes network and devices, by a CNI network
# with the plug-in tools/roan-cni.
#
#	container c1: eth0 10.7.1.2, roan1, uverbs of roan1 --+
#	                                                      +-- br0
#	container c2: eth0 10.7.1.3, roan2, uverbs of roan2 --+
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"

pid_of() { podman inspect -f '{{.State.Pid}}' "$1"; }
inside() { # CONTAINER COMMAND...: in the container
	podman exec "$@"
}
in_net() { # CONTAINER COMMAND...: the host's programs and rights, the container's network
	local pid
	pid=$(pid_of "$1")
	shift
	nsenter -t "$pid" -n "$@"
}
node_of() { # DEVICE
	local f
	f=$(grep -lx "$1" /sys/class/infiniband_verbs/uverbs*/ibdev) && f=${f%/ibdev} && echo "/dev/infiniband/${f##*/}"
}

# podman keeps layers and state in file systems that can be lower layers of an overlay.
storage() {
	local d
	for d in /var/lib/containers /var/tmp; do mkdir -p $d && mount -t tmpfs t $d || return; done
	mountpoint -q /sys/fs/cgroup || mount -t cgroup2 cgroup2 /sys/fs/cgroup || return
	ip link add br0 mtu 4200 type bridge && ip link set br0 up
}

# A container network plug-in's part: a network namespace with a veth behind the bridge, and a device on it.
network() { # NUMBER ADDRESS
	ip netns add "c$1" && ip link add "p$1" mtu 4200 type veth peer name eth0 mtu 4200 netns "c$1" || return
	ip link set "p$1" master br0 up && ip -n "c$1" link set lo up || return
	ip -n "c$1" addr add "$2/24" dev eth0 && ip -n "c$1" link set eth0 up && link_add "roan$1" eth0 "c$1" || return
	wait_for 30 test -c "$(node_of "roan$1")"
}

start() { # NUMBER
	podman run -d --name "c$1" --cap-drop all --network "ns:/run/netns/c$1" --device "$(node_of "roan$1")" --ulimit memlock=-1 \
		--cgroups disabled --rootfs /:O /usr/bin/sleep 900 && wait_for 60 inside "c$1" true
}

both_start() { start 1 && start 2; }

unprivileged() { # the container holds no capability and one device node
	[ "$(inside c1 sh -c 'grep CapEff /proc/self/status | tr -d "[:alpha:]:[:space:]"')" = 0000000000000000 ] || return
	[ "$(inside c1 ls /dev/infiniband)" = "$(basename "$(node_of roan1)")" ]
}

# between COMMAND OF C1, COMMAND OF C2: the client c2 starts when a listener is on 18515 in c1.
between() {
	local pid
	# shellcheck disable=SC2086 # word lists
	inside c1 timeout 120 $1 > /tmp/server 2>&1 & pid=$!
	wait_for 90 in_net c1 sh -c 'ss -Hltn "sport = :18515" | grep -q .' || { cat /tmp/server; return 1; }
	# shellcheck disable=SC2086
	inside c2 timeout 120 $2 || { cat /tmp/server; return 1; }
	wait $pid
}
write_bw() { # DEVICE1 DEVICE2
	between "ib_write_bw -F -d $1 -n 500" "ib_write_bw -F -d $2 -n 500 10.7.1.2"
}
stress() { between "$PROGRAMS/verbs_stress -d $1 -T 100" "$PROGRAMS/verbs_stress -d $2 -c 10.7.1.2 -T 100 -n 20"; }
sent() { [ "$(counter roan2 sent_pkts)" -ge 8000 ]; } # 500 WRITEs of 64 KiB

other_device() { # the neighbour's device has no node in the container
	! inside c1 ibv_devinfo -d roan2
}

ends() { # the container ends, then its network: the device goes
	podman rm -f -t 0 c2 && ip netns del c2 && wait_for 60 sh -c '! rdma dev show roan2'
}

# ---- CNI, exclusive namespaces ----

cni() {
	podman rm -f -t 0 c1 && ip netns del c1 && ip link del br0 && wait_for 60 rdma system set netns exclusive || return
	install -m 755 "$REPO/tools/roan-cni" /usr/lib/cni/roan && mkdir -p /etc/cni/net.d || return
	cat > /etc/cni/net.d/50-rdma.conflist <<- 'END'
		{ "cniVersion": "0.4.0", "name": "rdma-net", "plugins": [
		  { "type": "bridge", "bridge": "br-rdma", "mtu": 4200, "isGateway": true,
		    "ipam": { "type": "host-local", "ranges": [[{ "subnet": "10.7.1.0/24" }]] } },
		  { "type": "roan" } ] }
	END
	podman network ls | grep rdma-net
}
# All uverbs nodes are visible, as the container's own does not exist yet when podman reads its options; 231 is their
# major number. The kernel opens a device of the container's own namespace only.
start_cni() { # NUMBER ADDRESS
	podman --cgroup-manager cgroupfs run -d --name "c$1" --cap-drop all --network rdma-net --ip "$2" --ulimit memlock=-1 \
		-v /dev/infiniband:/dev/infiniband --device-cgroup-rule 'c 231:* rmw' --rootfs /:O /usr/bin/sleep 900
}
both_cni() {
	start_cni 1 10.7.1.2 && start_cni 2 10.7.1.3 || return
	wait_for 60 inside c1 test -e "/sys/class/infiniband/$(device_of c1)" && wait_for 60 inside c2 test -e "/sys/class/infiniband/$(device_of c2)"
}
device_of() { echo "roan_$(podman inspect -f '{{.Id}}' "$1" | cut -c1-8)_eth0"; }
own_device_only() { # but both nodes
	[ "$(inside c1 ls /sys/class/infiniband)" = "$(device_of c1)" ] && [ "$(inside c1 sh -c 'ls /dev/infiniband/uverbs* | wc -l')" = 2 ] || return
	[ -z "$(ls /sys/class/infiniband)" ] || return
	opens "$(node_of "$(device_of c1)")" && ! opens "$(node_of "$(device_of c2)")"
}
opens() { inside c1 sh -c ": <> $1"; }
no_devices() { [ -z "$(rdma dev)" ] && [ -z "$(find /dev/infiniband -name 'uverbs*')" ]; }
ends_cni() { podman rm -f -t 0 c1 c2 && wait_for 60 no_devices; }
# A chain that does not start with an interface, and an unknown version: an error in the format of CNI
cni_errors() {
	local out
	out=$(echo '{"cniVersion":"0.4.0","name":"n","type":"roan"}' | CNI_COMMAND=ADD CNI_NETNS=/proc/self/ns/net CNI_CONTAINERID=0123456789 \
		CNI_IFNAME=eth0 /usr/lib/cni/roan) && return 1
	echo "$out" | grep '"code": 7' || return
	out=$(echo '{"cniVersion":"9","name":"n","type":"roan"}' | CNI_COMMAND=ADD /usr/lib/cni/roan) && return 1
	echo "$out" | grep '"code": 1,' && CNI_COMMAND=VERSION /usr/lib/cni/roan < /dev/null | grep '"1.0.0"'
}

ktap_header
command -v podman > /dev/null || { ktap_skip "podman" "not installed: podman crun"; ktap_end; }
{ load_modules && storage && network 1 10.7.1.2 && network 2 10.7.1.3; } > /tmp/setup 2>&1 || { cat /tmp/setup; ktap_fail "set-up"; ktap_end; }

if ktap_check "two containers start" both_start; then
	ktap_check "no capability, one device node" unprivileged
	ktap_check "ib_write_bw between two containers" write_bw roan1 roan2
	ktap_check "the data went by roan" sent
	ktap_check "verbs_stress between two containers, data compared" stress roan1 roan2
	ktap_check "the other container's device cannot be opened" other_device
	ktap_check "a container ends, its device goes" ends
fi
ktap_check "CNI: a network with the plug-in roan, exclusive RDMA namespaces" cni
ktap_check "CNI: errors of the plug-in" cni_errors
if ktap_check "CNI: two containers start with a device each" both_cni; then
	ktap_check "CNI: each can open its own device only" own_device_only
	ktap_check "CNI: ib_write_bw between two containers" write_bw "$(device_of c1)" "$(device_of c2)"
	ktap_check "CNI: verbs_stress between two containers, data compared" stress "$(device_of c1)" "$(device_of c2)"
	ktap_check "CNI: containers end, their devices go" ends_cni
fi
ktap_end
