#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What the kernel's own tests of rdma_rxe require (tools/testing/selftests/rdma, Linux 7.1 and newer), for any
# LINK_TYPE: rping between namespaces, over IPv4 and IPv6; UDP port 4791 is open in a namespace exactly as long as it has
# a device; a device goes with its tun; sent and received bytes are equal; device names in namespaces.
#
#	first namespace: d0 on tun0, d1 on tun1			h1: d1 on v1 ==== v2 with d2 :h2
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../../vm/lib.sh"
. "$HERE/../../verbs/pair.sh"

port_open() { [ -n "$(${1:+ip netns exec "$1"} ss -Huln 'sport = :4791')" ]; } # [NETNS]
port_closed() { ! port_open "$@"; }
gone() { ! rdma link show "$1/1"; }
tun() { ip tuntap add mode tun "$1" && ip addr add "$2/24" dev "$1" && ip link set "$1" up; } # NAME ADDRESS

rping_between() { # SERVER-ADDRESS
	both 200 7174 "rping -s -a $1 -C 5 -V" "rping -c -a $1 -C 5 -V"
}

port_follows_devices() {
	port_closed && tun tun0 1.1.1.1 && link_add d0 tun0 && port_open || return
	tun tun1 2.2.2.2 && link_add d1 tun1 && port_open || return
	rdma link del d1 && port_open || return
	rdma link del d0 && wait_for 30 port_closed && ip link del tun0 && ip link del tun1
}

port_follows_namespace() {
	port_closed h1 && port_closed h2 && port_closed || return
	link_add d1 v1 h1 && port_open h1 && port_closed h2 && port_closed || return
	link_add d2 v2 h2 && port_open h2 && rdma link del d1 && wait_for 30 port_closed h1 && port_open h2 || return
	link_add d1 v1 h1 && wait_for 30 gid_index d1 $H1IP h1 && wait_for 30 gid_index d2 $H2IP h2
}

goes_with_tun() {
	tun tun0 1.1.1.1 && link_add d0 tun0 && port_open && ip link del tun0 && wait_for 30 gone d0 && wait_for 30 port_closed
}

data_counter() { cat "/sys/class/infiniband/d0/ports/1/counters/port_$1_data"; }
words_equal() { # SENT RECEIVED: before; the last messages of the CM may be on their way
	local sent rcvd
	sent=$(($(data_counter xmit) - $1)) rcvd=$(($(data_counter rcv) - $2))
	echo "sent $sent, received $rcvd (words)"
	[ $sent = $rcvd ] && [ $sent -gt 100 ]
}
# shellcheck disable=SC2034 # pair.sh reads A and B
bytes_equal() {
	local sent rcvd A=(env) B=(env)
	tun tun0 1.1.1.1 && link_add d0 tun0 && wait_for 30 gid_index d0 1.1.1.1 || return
	sent=$(data_counter xmit) rcvd=$(data_counter rcv)
	rping_between 1.1.1.1 || return
	wait_for 20 words_equal "$sent" "$rcvd" && rdma link del d0 && wait_for 30 port_closed && ip link del tun0
}

# ---- names: RDMA namespaces are exclusive ----

name() { ${1:+ip netns exec "$1"} rdma dev show "$2" > /dev/null 2>&1; } # NETNS NAME
no_name() { ! name "$@"; }
move() { ${1:+ip netns exec "$1"} rdma dev set "$2" netns "$3"; } # FROM NAME TO
rename() { ${1:+ip netns exec "$1"} rdma dev set "$2" name "$3"; } # NETNS NAME NEW
name_of() { rdma link show | sed -n "s,^link \([^/]*\)/.* netdev $1 .*,\1,p"; } # NETDEV
returned() { [ -n "$(name_of "$1")" ]; }

# da and db on two dummies, in the first namespace.
names_up() {
	names_down
	ip link add ya type dummy && ip link set ya up && ip link add yb type dummy && ip link set yb up &&
		rdma link add da type "$LINK_TYPE" netdev ya && rdma link add db type "$LINK_TYPE" netdev yb
}
names_down() {
	ip link del ya; ip link del yb
	local n
	for n in da db same new; do wait_for 30 no_name "" $n; wait_for 30 no_name n1 $n; wait_for 30 no_name n2 $n; done
} > /dev/null 2>&1

same_name_twice() {
	names_up && move "" da n1 && rename n1 da same && move "" db n2 && rename n2 db same && name n1 same && name n2 same
}
conflict_refused() { same_name_twice && ! move n1 same n2 && name n1 same && name n2 same; }
move_then_rename() { names_up && move "" da n2 && rename n2 da new && name n2 new && no_name "" da; }
duplicate_refused() {
	names_up && rename "" da same && rename "" db new && ! rename "" same new && name "" same && name "" new
}
returns_renamed() {
	local back
	names_up && rename "" da same && move "" db n2 && rename n2 db same && ip netns del n2 && wait_for 30 returned yb || return
	back=$(name_of yb)
	echo "returned as $back"
	name "" same && [ "$back" != same ] && [ "${back#ibdev}" != "$back" ]
}

# While a device moves, the RDMA core does not find it by its interface.
no_second_device() {
	local pid ok=0
	names_up && move "" da n1 || return
	rm -f /tmp/stop
	(until [ -e /tmp/stop ]; do rdma link add dz type "$LINK_TYPE" netdev ya 2> /dev/null && echo "a second device was added"; done) > /tmp/second & pid=$!
	for _ in $(seq "${MOVES:-20}"); do
		move n1 da n2 && move n2 da n1 || ok=1
	done
	touch /tmp/stop
	wait $pid
	cat /tmp/second
	[ $ok = 0 ] && [ ! -s /tmp/second ]
}

# A core that keeps names unique over all namespaces refuses the second "same".
names_per_namespace() {
	same_name_twice
	local rc=$?
	names_down
	return $rc
}

ktap_header
load_modules > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
modprobe -q -a tun dummy
ip link set lo up
ktap_check "the port is open while a namespace has a device" port_follows_devices
ktap_check "a device goes with its tun, and the port with it" goes_with_tun
ktap_check "rping on a tun: sent and received bytes are equal" bytes_equal || { rdma link del d0; ip link del tun0; }
if two_hosts > /tmp/setup.log 2>&1; then
	rdma link del "$H1DEV" && rdma link del "$H2DEV"
	wait_for 30 port_closed h1 && wait_for 30 port_closed h2
	# shellcheck disable=SC2034 # pair.sh reads them
	A=(ip netns exec h1) B=(ip netns exec h2)
	ktap_check "each namespace has its own port" port_follows_namespace
	ktap_check "rping between namespaces" rping_between $H1IP
	ktap_check "rping between namespaces, IPv6" rping_between $H1IP6
	rdma link del d1; rdma link del d2
	two_hosts_down
else
	cat /tmp/setup.log; ktap_fail "set-up of two namespaces"
fi
wait_for 30 port_closed
if rdma system set netns exclusive 2> /tmp/setup.log && ip netns add n1 && ip netns add n2; then
	if names_per_namespace > /dev/null 2>&1; then
		ktap_check "the same name in two namespaces" same_name_twice
		ktap_check "a move onto a used name is refused" conflict_refused
	else
		ktap_skip "the same name in two namespaces" "this RDMA core keeps names unique over all namespaces"
		ktap_skip "a move onto a used name is refused" "this RDMA core keeps names unique over all namespaces"
	fi
	ktap_check "move, then rename" move_then_rename
	if rdma dev help 2>&1 | grep -Eq 'netns .*name|name .*netns'; then
		ktap_check "move with a new name" eval 'names_up && rdma dev set da netns n2 name new && name n2 new && no_name "" da'
	else
		ktap_skip "move with a new name" "this rdma command has no such option"
	fi
	ktap_check "a name in use is refused" duplicate_refused
	ktap_check "an interface gets no second device while the first one moves" no_second_device
	if names_per_namespace > /dev/null 2>&1; then
		ktap_check "a device returns from a deleted namespace under another name" returns_renamed
	else
		ktap_skip "a device returns from a deleted namespace under another name" "names are unique over all namespaces"
	fi
	names_down
	ip netns del n1; ip netns del n2 2> /dev/null
	wait_for 30 rdma system set netns shared
else
	ktap_skip "names in namespaces" "$(tail -n 1 /tmp/setup.log)"
fi
ktap_end
