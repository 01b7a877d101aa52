#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Eight hosts in a two-tier Clos network of routers that choose a link by the UDP ports. Each host sends to one behind the
# other leaf, and receives from another one of these. In virtual time, so that it depends on the protocol only.
#
#	h1..h4 ==u1..u4 l1 a1..a4 ==== b1 s1 c1 ==== d1..d4 l2 u5..u8== h5..h8		uN, aN, dN, bN, cN: netem, 10 Gb/s;
#	                           ... (4 spines)						5 us of delay between two routers
#
# MS=MILLISECONDS: length of each measurement (200). PATHS: cc_param/paths (32).
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
. "$HERE/lossy_link.sh"
MS=${MS:-200} PATHS=${PATHS:-32} MTU=4200 HOSTS=8 SPINES=4

line() { # NETNS DEV DELAY_US
	on "$1" tc qdisc replace dev "$2" root netem rate 10gbit delay "$3us" limit 100000
}

host() { # N LEAF
	routed_host "$1" "$2" && neighbour "h$1" "v$1" "10.7.$1.254" "$2" "u$1" && neighbour "$2" "u$1" "10.7.$1.1" "h$1" "v$1" && line "$2" "u$1" 0
}

join() { # LEAF ITS_DEV SPINE ITS_DEV SUBNET
	ip link add "$2" netns "$1" mtu $MTU type veth peer name "$4" netns "$3" mtu $MTU &&
		on "$1" ip addr add "$5.1/24" dev "$2" && on "$3" ip addr add "$5.2/24" dev "$4" &&
		on "$1" ip link set "$2" up && on "$3" ip link set "$4" up &&
		neighbour "$1" "$2" "$5.2" "$3" "$4" && neighbour "$3" "$4" "$5.1" "$1" "$2" && line "$1" "$2" 5 && line "$3" "$4" 5
}

fabric() {
	local n i side up1=() up2=()
	load_modules && modprobe sch_netem && router l1 && router l2 || return
	for ((n = 1; n <= HOSTS; n++)); do host $n l$((1 + (n > HOSTS / 2))) || return; done
	for ((i = 1; i <= SPINES; i++)); do
		router s$i && join l1 a$i s$i b$i 10.8.$i && join l2 d$i s$i c$i 10.9.$i || return
		up1+=(nexthop via "10.8.$i.2") up2+=(nexthop via "10.9.$i.2")
	done
	for ((n = 1; n <= HOSTS; n++)); do
		if [ $n -le $((HOSTS / 2)) ]; then
			side=8 && on l2 ip route add 10.7.$n.0/24 "${up2[@]}"
		else
			side=9 && on l1 ip route add 10.7.$n.0/24 "${up1[@]}"
		fi || return
		for ((i = 1; i <= SPINES; i++)); do on s$i ip route add 10.7.$n.0/24 via 10.$side.$i.1 || return; done
	done
	sleep 2		# the kernel reports link changes at most once a second
	for ((n = 1; n <= HOSTS; n++)); do link_add roan$n v$n h$n || return; done
}

peer_of() { # N: of the first four n + 4, of the others the next one of the first four
	if [ "$1" -le 4 ]; then echo $(($1 + 4)); else echo $((($1 - 4) % 4 + 1)); fi
}

# permutation PATHS: prints the sum and the least of the QPs' Gb/s, headers counted.
permutation() {
	local n clients=()
	for ((n = 1; n <= HOSTS; n++)); do
		echo "$1" > /sys/class/infiniband/roan$n/ports/1/cc_param/paths || return
		on h$n timeout 60 "$PROGRAMS/traffic" -d roan$n -k 1 > /tmp/server$n 2>&1 &
	done
	sleep 0.1
	for ((n = 1; n <= HOSTS; n++)); do
		on h$n timeout 60 "$PROGRAMS/traffic" -d roan$n -s 65536 -m 4096 -q 16 -z "$MS" -o /tmp/series$n.csv "10.7.$(peer_of $n).1" > /tmp/flow$n &
		clients+=($!)
	done
	for n in "${clients[@]}"; do wait "$n" || { cat /tmp/flow?; return 1; }; done
	wait
	grep -ho 'gbps=[0-9.]*' /tmp/flow? | cut -d= -f2 | awk '{ g = $1 * 4154 / 4096; sum += g; if (NR == 1 || g < least) least = g }
		END { printf "%.1f %.1f\n", sum, least }'
}

clos() {
	local one several
	one=$(permutation 1) && several=$(permutation "$PATHS") || return
	echo "# of 80 Gb/s: one path each ${one% *}, the slowest QP ${one#* }; $PATHS paths ${several% *}, the slowest ${several#* }" >&3
	awk "BEGIN { exit ${several% *} < 72 }"
}

exec 3>&1
ktap_header
fabric > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
ktap_check "eight hosts, each to one behind the other leaf: 90 % of the links between leaves and spines" clos
ktap_end
