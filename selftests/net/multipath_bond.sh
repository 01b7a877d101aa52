#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# One QP over a bond of two links: with LACP its paths use both; when a port fails, it goes on. In virtual time.
#
#	h1: v1, roan1 == bond of a1, a2 ==== b1, b2 == v2, roan2 :h2		aN: netem: 10 Gb/s, half the RTT of 20 us
#
# MS=MILLISECONDS: length of each measurement (40). PATHS: cc_param/paths (16).
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
. "$HERE/lossy_link.sh"
MS=${MS:-40} PATHS=${PATHS:-16} MTU=4200

bond() { # NETNS NAME ADDRESS PORTS, BOND OPTIONS...
	local netns=$1 dev=$2 addr=$3 port
	on "$netns" ip link add "$dev" type bond miimon 1 "${@:5}" || return
	for port in $4; do
		on "$netns" ip link set "$port" down mtu $MTU && on "$netns" ip link set "$port" master "$dev" || return
	done
	on "$netns" ip link set "$dev" mtu $MTU up && on "$netns" ip addr add "$addr" dev "$dev" &&
		on "$netns" ethtool -K "$dev" gso off tso off tx-udp-segmentation off > /dev/null
}

# bonded BOND OPTIONS...
bonded() {
	local i
	rdma link del roan1 2> /dev/null; rdma link del roan2 2> /dev/null
	ip netns del h1 2> /dev/null; ip netns del h2 2> /dev/null
	sleep 1
	ip netns add h1 && ip netns add h2 || return
	for i in 1 2; do
		ip link add a$i netns h1 type veth peer name b$i netns h2 || return
	done
	bond h1 v1 10.9.0.1/24 "a1 a2" "$@" && bond h2 v2 10.9.0.2/24 "b1 b2" "$@" || return
	sleep 5		# LACP
	for i in 1 2; do
		on h1 tc qdisc replace dev a$i root netem rate 10gbit delay 10us limit 100000 &&
			on h2 tc qdisc replace dev b$i root netem delay 10us limit 100000 || return
	done
	link_add roan1 v1 h1 && link_add roan2 v2 h2 && echo "$PATHS" > /sys/class/infiniband/roan1/ports/1/cc_param/paths &&
		neighbour h1 v1 10.9.0.2 h2 v2 && neighbour h2 v2 10.9.0.1 h1 v1
}

# goodput FROM_MS LEAST_GBPS [MOST_GBPS]: one QP
goodput() {
	flow 10.9.0.2 || return
	awk -F, -v from="$1" -v least="$2" -v most="${3:-20.4}" '
		NR > 1 && $1 > (from + 0.5) * 1000 { n += $2 * 8; ms++ }
		END { gbps = n / ms / 1e6; printf "# %.1f Gb/s\n", gbps
		exit gbps < least || gbps > most }' /tmp/series.csv >&3
}
# The same; after 20 ms a port loses its carrier, so that one is left.
port_fails() { # PORT FROM_MS LEAST_GBPS
	{ sleep 0.12; on h2 ip link set "$1" down; } &
	goodput "$2" "$3" 10.2
}

exec 3>&1
ktap_header
load_modules && modprobe sch_netem
modprobe -q bonding; ip link add bond9 type bond 2> /dev/null || { ktap_skip "all" "no bonding in this kernel"; ktap_end; }
ip link del bond9
ktap_check "LACP: set-up" bonded mode 802.3ad xmit_hash_policy layer3+4 lacp_rate fast || ktap_end
ktap_check "LACP: one QP uses both ports" goodput 0 18
ktap_check "LACP: a port fails after 20 ms: 90 % of the other 10 ms later" port_fails b1 30 8.8
ktap_check "active-backup: set-up" bonded mode active-backup || ktap_end
# All packets are in the queue of the failed port, which the kernel empties after RCU grace periods, some 20 ms here. roan
# does not send again what has not left the host.
MS=80
ktap_check "active-backup: the active port fails after 20 ms: 90 % 30 ms later" port_fails b1 50 8.8
ktap_end
