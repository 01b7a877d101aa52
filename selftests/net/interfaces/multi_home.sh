#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Two hosts with an address on no link. Each link is a route to it (ECMP, as where hosts speak BGP). A QP uses one of
# them, or with several paths all, and goes on when one fails. In virtual time.
#
#	h1: d1 (10.9.1.1, roan1), a1 ==== b1, d2 (10.9.2.1, roan2) :h2		aN, bN: netem: 10 Gb/s, half the RTT of 20 us
#	                          a2 ==== b2
#
# MS=MILLISECONDS: length of each measurement (40). PATHS: cc_param/paths (32).
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../../vm/lib.sh"
. "$HERE/../../verbs/pair.sh"
. "$HERE/../lossy_link.sh"
MS=${MS:-40} PATHS=${PATHS:-32} MTU=4200
# shellcheck disable=SC2034 # set_both reads them
ADEV=$H1DEV BDEV=$H2DEV

host() { # N
	local n=$1
	on h$n ip link set lo up && on h$n ip link add d$n mtu $MTU type dummy && on h$n ip addr add 10.9.$n.1/32 dev d$n &&
		on h$n ip addr add fd09:$n::1/128 dev d$n nodad && on h$n ip link set d$n up &&
		on h$n sysctl -qw net.ipv4.fib_multipath_hash_policy=1 net.ipv6.fib_multipath_hash_policy=1 net.ipv4.conf.all.rp_filter=2
}

routes() { # N SIDE, OTHER N AND SIDE
	local n=$1 side=$2 other=$3 i via=()
	for i in 1 2; do
		on h$n tc qdisc replace dev $side$i root netem rate 10gbit delay 10us limit 100000 &&
			on h$n sysctl -qw net.ipv4.conf.$side$i.ignore_routes_with_linkdown=1 &&
			neighbour h$n $side$i 10.8.$i.$other h$other $4$i || return
		via+=(nexthop via "10.8.$i.$other" dev "$side$i")
	done
	on h$n ip route add 10.9.$other.1 src 10.9.$n.1 "${via[@]}"
}

hosts() {
	local i
	load_modules && modprobe sch_netem && modprobe dummy numdummies=0 && ip netns add h1 && ip netns add h2 || return
	for i in 1 2; do
		ip link add a$i netns h1 mtu $MTU type veth peer name b$i netns h2 mtu $MTU &&
			on h1 ip addr add 10.8.$i.1/24 dev a$i && on h2 ip addr add 10.8.$i.2/24 dev b$i &&
			on h1 ip link set a$i up && on h2 ip link set b$i up &&
			on h1 ethtool -K a$i gso off tso off tx-udp-segmentation off > /dev/null &&
			on h2 ethtool -K b$i gso off tso off tx-udp-segmentation off > /dev/null || return
	done
	host 1 && host 2 && routes 1 a 2 b && routes 2 b 1 a || return
	sleep 2		# the kernel reports link changes at most once a second
	link_add roan1 d1 h1 && link_add roan2 d2 h2
}

goodput() { # LEAST MOST: Gb/s
	flow 10.9.2.1 || return
	awk -F, -v ms="$MS" -v least="$1" -v most="$2" 'NR > 1 { n += $2 * 8 }
		END { gbps = n / ms / 1e6; printf "# %.1f Gb/s\n", gbps; exit gbps < least || gbps > most }' /tmp/series.csv >&3
}

# From 10 ms after the failure on: the interface goes down, and the other end loses its carrier. One link is left.
goodput_after_failure() { # LEAST
	{ sleep 0.12; on h1 ip link set a1 down; } &
	flow 10.9.2.1 || return
	awk -F, -v least="$1" 'NR > 1 && $1 > 30500 { n += $2 * 8; ms++ }
		END { gbps = n / ms / 1e6; printf "# %.1f Gb/s\n", gbps
		exit gbps < least || gbps > 10.2 }' /tmp/series.csv >&3
}

exec 3>&1
ktap_header
hosts > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
set_both any_interface 2
set_both paths 1
ktap_check "one path: one of two links of 10 Gb/s" goodput 9 10.2
set_both paths "$PATHS"
ktap_check "several paths: both links" goodput 18 20.4
ktap_check "one link goes down after 20 ms: the other one 10 ms later" goodput_after_failure 9
ktap_end
