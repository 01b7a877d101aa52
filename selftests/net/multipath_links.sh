#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Sourced after lossy_link.sh, for virtual time: two hosts, each behind a router, and links between the routers, which
# choose a link by the UDP ports (fib_multipath_hash_policy=1).
#
#	h1: v1, roan1 ==u1 r1 a1 ==== b1 r2 u2== v2, roan2 :h2
#	                      ...	(4 links)
MTU=4200 LINKS=4

fabric() {
	local i via1=() via2=()
	load_modules && modprobe sch_netem && router r1 && router r2 && routed_host 1 r1 && routed_host 2 r2 || return
	for ((i = 1; i <= LINKS; i++)); do
		ip link add a$i netns r1 mtu $MTU type veth peer name b$i netns r2 mtu $MTU &&
			on r1 ip addr add 10.8.$i.1/24 dev a$i && on r2 ip addr add 10.8.$i.2/24 dev b$i &&
			on r1 ip link set a$i up && on r2 ip link set b$i up &&
			neighbour r1 a$i 10.8.$i.2 r2 b$i && neighbour r2 b$i 10.8.$i.1 r1 a$i || return
		via1+=(nexthop via "10.8.$i.2") via2+=(nexthop via "10.8.$i.1")
	done
	on r1 ip route add 10.7.2.0/24 "${via1[@]}" && on r2 ip route add 10.7.1.0/24 "${via2[@]}" || return
	sleep 2		# the kernel reports link changes at most once a second
	link_add roan1 v1 h1 && link_add roan2 v2 h2
}

set_paths() { echo "$1" > /sys/class/infiniband/roan1/ports/1/cc_param/paths; }
