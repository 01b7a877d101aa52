#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A kernel that was booted with ipv6.disable=1 (run.sh -k): data by IPv4 addresses. The RDMA core makes GID 0 of the MAC
# address all the same: nothing can be sent by it, and nothing worse happens.
#
#	h1: roan1 v1 10.7.0.1 ======== 10.7.0.2 v2 roan2 :h2
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../../vm/lib.sh"
. "$HERE/../../verbs/pair.sh"

# two_hosts() gives IPv6 addresses too.
hosts() {
	local n
	load_modules || return
	for n in 1 2; do ip netns add h$n && on h$n ip link set lo up || return; done
	lay_wire 4200 || return
	for n in 1 2; do on h$n ip addr add "10.7.0.$n/24" dev v$n && on h$n ip link set v$n up || return; done
	wait_for 60 on h1 ping -c1 -W1 $H2IP && link_add $H1DEV v1 h1 && link_add $H2DEV v2 h2 || return
	ADEV=$H1DEV BDEV=$H2DEV AIP=$H1IP
	wait_for 60 gid_index $H1DEV $H1IP h1 && wait_for 60 gid_index $H2DEV $H2IP h2
}

pingpong() { # PROGRAM GID-OF-A GID-OF-B
	both 200 18515 "$1 -d $ADEV -g $2 -n 50" "$1 -d $BDEV -g $3 -n 50 $AIP"
}
by_ipv4() { pingpong "$1" "$(gid_index "$ADEV" $H1IP h1)" "$(gid_index "$BDEV" $H2IP h2)"; } # PROGRAM

# The RDMA core finds no neighbour, and refuses the address handle or the move to RTR.
refused() { # PROGRAM GID-OF-A GID-OF-B
	pingpong "$@" > /dev/null && { echo "data by a GID without a route"; return 1; }
	grep -E "Failed to (create AH|modify QP to RTR)" $OUT_A
}

# A group's address needs no neighbour, so its packets get as far as roan.
no_route() { # MGID
	local before after
	before=$(total tx_no_route)
	b timeout 50 "$PROGRAMS/mcast" -d "$BDEV" -m "$1" -s -n 20 -g 0
	after=$(total tx_no_route)
	[ $((after - before)) = 20 ] || { echo "tx_no_route: $before, then $after"; return 1; }
}

ktap_header
[ -e /proc/net/if_inet6 ] && { ktap_skip "ipv6_off" "this kernel has IPv6: run.sh -k ipv6.disable=1"; ktap_end; }
hosts > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
for program in ibv_rc_pingpong ibv_ud_pingpong; do
	ktap_check "$program, IPv4" by_ipv4 $program
	ktap_check "$program, GID 0 of both: refused" refused $program 0 0
	ktap_check "$program, from GID 0 to an IPv4 address: refused" refused $program "$(gid_index "$ADEV" $H1IP h1)" 0
done
for group in ff02::1 ff0e::1234; do
	ktap_check "datagrams from GID 0 to $group have no route" no_route $group
done
ktap_check "IPv4 still" by_ipv4 ibv_rc_pingpong
ktap_end
