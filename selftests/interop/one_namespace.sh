#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Sourced by rnbd.sh, scsi.sh and smb.sh after lib.sh: clients and servers that use the initial namespace only, on devices
# of their own. Policy routing keeps packets from one local address to another off lo. No verdict of its own.
#
#	roan1 on v1 ==== v2 on roan2	10.7.0.1, 10.7.0.2; fd07::1, fd07::2
#	roan3 on v3 ==== v4 on roan4	10.8.0.1, 10.8.0.2; fd08::1, fd08::2

# Rules for input come first, then those for output; the table of local addresses is the last.
local_addresses_last() {
	local family
	for family in -4 -6; do
		ip $family rule add pref 1000 lookup local && ip $family rule del pref 0 || return
	done
	sysctl -qw net.ipv4.conf.all.rp_filter=0
}
# The source may be unknown when rdma_cm looks for a route.
route_from() { # N SOURCE DESTINATION FAMILY: by netdev vN
	ip "$4" rule add pref 10 iif "v$1" lookup local && ip "$4" route add "$3" dev "v$1" src "$2" table "10$1" &&
		ip "$4" rule add pref 20 from "$2" to "$3" lookup "10$1" && ip "$4" rule add pref 30 iif lo to "$3" lookup "10$1"
}
route_end() { # N SUBNET LAST PEER-LAST: netdev vN has 10.SUBNET.0.LAST
	sysctl -qw "net.ipv4.conf.v$1.accept_local=1" "net.ipv4.conf.v$1.rp_filter=0" &&
		ip addr add "10.$2.0.$3/24" dev "v$1" && ip addr add "fd0$2::$3/64" dev "v$1" nodad && ip link set "v$1" up &&
		route_from "$1" "10.$2.0.$3" "10.$2.0.$4" -4 && route_from "$1" "fd0$2::$3" "fd0$2::$4" -6
}
add_device() { # N SUBNET LAST
	link_add "$LINK_TYPE$1" "v$1" && wait_for 60 gid_index "$LINK_TYPE$1" "10.$2.0.$3" &&
		wait_for 60 gid_index "$LINK_TYPE$1" "fd0$2::$3"
}
# Permanent entries: with ARP between two local addresses the first connection timed out.
neighbour() { # N ADDRESS OF-N
	ip neigh replace "$2" dev "v$1" lladdr "$(cat "/sys/class/net/v$3/address")" nud permanent
}
join_ends() { # N SUBNET: netdevs vN and vN+1
	local m=$(($1 + 1))
	ip link add "v$1" mtu 4200 type veth peer name "v$m" mtu 4200 && route_end "$1" "$2" 1 2 && route_end $m "$2" 2 1 &&
		neighbour "$1" "10.$2.0.2" $m && neighbour $m "10.$2.0.1" "$1" &&
		neighbour "$1" "fd0$2::2" $m && neighbour $m "fd0$2::1" "$1" &&
		add_device "$1" "$2" 1 && add_device $m "$2" 2
}
