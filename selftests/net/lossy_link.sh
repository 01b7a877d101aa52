#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Sourced after lib.sh, for virtual time: two hosts, and a link of a chosen rate, round trip and loss between them; a run
# of WRITEs.
#
#	h1: v1, roan1 ==p1 s p2== v2, roan2 :h2		s: a bridge; p2: netem: line rate, half the RTT, loss; p1: the same
#	without loss. v1 and v2 segment what they send, as netem would lose whole GSO skbs.

# lossy_hosts [rxe [rxe]]: with rxe the first host, or each, is the first namespace, the only one that rdma_rxe supports,
# with rxe1 on v1 (and rxe2 on v2).
# two_hosts() pings, and ping polls, which stops the virtual clock.
lossy_hosts() {
	local n h=(- h1 h2)
	[ "${1:-}" != rxe ] || { h[1]=; modprobe rdma_rxe || return; }
	[ "${2:-}" != rxe ] || h[2]=
	load_modules && modprobe sch_netem && ip netns add s && on s ip link add br0 type bridge && on s ip link set br0 up mtu 4200 || return
	for n in 1 2; do
		[ -z "${h[n]}" ] || { ip netns add "${h[n]}" && on "${h[n]}" ip link set lo up; } || return
		ip link add v$n netns "${h[n]:-1}" mtu 4200 type veth peer name p$n netns s mtu 4200 && on s ip link set p$n master br0 up || return
		at_end "${h[n]}" ip addr add "10.7.0.$n/24" dev v$n && at_end "${h[n]}" ip link set v$n up &&
			at_end "${h[n]}" ethtool -K v$n gso off tso off tx-udp-segmentation off > /dev/null || return
	done
	sleep 2		# the kernel reports link changes at most once a second
	for n in 1 2; do
		if [ -n "${h[n]}" ]; then link_add roan$n v$n h$n; else rdma link add rxe$n type rxe netdev v$n; fi || return
	done
}

# lossy PORT GBPS RTT_US LOSS_%: what leaves by this port. Loses RoCE only, not the programs' TCP connection; with
# LOSES=tcp, TCP.
lossy() {
	local what=(ip dport 4791 0xffff) half=$(($3 / 2))us
	[ "${LOSES:-}" != tcp ] || what=(ip protocol 6 0xff)
	on s tc qdisc replace dev "$1" root handle 1: prio bands 2 priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 &&
		on s tc qdisc replace dev "$1" parent 1:1 netem delay "$half" &&
		on s tc qdisc replace dev "$1" parent 1:2 handle 2: netem rate "$2gbit" delay "$half" loss "$4%" limit 100000 &&
		on s tc filter replace dev "$1" parent 1: prio 1 protocol ip u32 match "${what[@]}" flowid 1:2
}

# The address of a neighbour is given: while it is looked up packets wait, and too many of them are dropped.
neighbour() { # NETNS DEV ADDRESS, ITS NETNS AND DEV
	at_end "$1" ip neigh replace "$3" dev "$2" nud permanent lladdr "$(at_end "$4" cat "/sys/class/net/$5/address")"
}

# A network of routers, which choose a link by the UDP ports; MTU: of a host's link, hN: vN, 10.7.N.1 ==== 10.7.N.254, uN :ROUTER
router() { # NAME
	ip netns add "$1" && on "$1" ip link set lo up && on "$1" sysctl -qw net.ipv4.ip_forward=1 net.ipv4.fib_multipath_hash_policy=1
}
routed_host() { # N ROUTER
	local n=$1
	ip netns add h$n && on h$n ip link set lo up &&
		ip link add v$n netns h$n mtu $MTU type veth peer name u$n netns "$2" mtu $MTU &&
		on h$n ip addr add 10.7.$n.1/24 dev v$n && on "$2" ip addr add 10.7.$n.254/24 dev u$n &&
		on h$n ip link set v$n up && on "$2" ip link set u$n up && on h$n ip route add default via 10.7.$n.254 &&
		on h$n ethtool -K v$n gso off tso off tx-udp-segmentation off > /dev/null
}

# flow ADDRESS OPTIONS...: roan1 of h1 writes to roan2 of h2 for MS milliseconds. Prints what traffic prints; in
# /tmp/series.csv are the bytes of each millisecond.
flow() {
	local address=$1 server rc
	shift
	on h2 timeout 60 "$PROGRAMS/traffic" -d roan2 -k 1 > /tmp/server 2>&1 & server=$!
	sleep 0.1
	on h1 timeout 60 "$PROGRAMS/traffic" -d roan1 -s 65536 -m 4096 -q 16 -z "$MS" -o /tmp/series.csv "$@" "$address" > /tmp/flow
	rc=$?
	cat /tmp/flow
	[ $rc = 0 ] && wait $server
}
