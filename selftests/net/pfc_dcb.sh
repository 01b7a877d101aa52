#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# `roan pfc`: the device obeys pauses of the priorities that the interface's DCB state names, also after each change. No
# virtual interface has such a state: fake_dcb.c gives v1 one.
#
#	roan1 v1 ======== v2 :h2	v1 in the first namespace, where the device's parameters are
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
PARAMS=/sys/class/infiniband/roan1/ports/1/cc_param
DCB=$(dirname "$(roan_ko)")/roan_fake_dcb.ko

hosts() {
	ip netns add h2 && ip link add v1 mtu 4200 type veth peer name v2 mtu 4200 netns h2 || return
	ip link set lo up; on h2 ip link set lo up
	ip addr add $H1IP/24 dev v1 && on h2 ip addr add $H2IP/24 dev v2 && ip link set v1 up && on h2 ip link set v2 up || return
	wait_for 60 ping -c1 -W1 $H2IP && link_add roan1 v1
}
roan() { "$REPO/tools/roan" "$@" > /tmp/out 2>&1; }
says() { grep -Eq -- "$1" /tmp/out || { cat /tmp/out; return 1; }; }

# dcb numbers its requests by the second, and takes the acknowledgment of its read for the answer to its write: if a second
# passes between both, the write is done, and dcb ends with EPROTO.
set_pfc() {
	for _ in 1 2 3 4 5; do
		! dcb pfc set dev v1 prio-pfc "$@" || return 0
	done
	return 1
}
mask_is() { [ "$(cat $PARAMS/pfc_prio_mask)" = "$1" ]; }
shows() { set_pfc 3:on && roan pfc roan1 && says "v1: DCB has PFC for priorities 3$" && says "roan1: obeys pauses of priorities none" && says "they differ"; }
applies() { roan pfc roan1 --apply && mask_is 8 && roan pfc roan1 && ! grep differ /tmp/out; }
follows() { # changes by dcb, one after the other
	local rc
	"$REPO/tools/roan" pfc roan1 --follow > /tmp/follow 2>&1 & FOLLOWER=$!
	set_pfc all:off && wait_for 60 mask_is 0 && set_pfc 3:on 5:on && wait_for 60 mask_is 40 &&
		dcb app add dev v1 dscp-prio 26:3 && set_pfc 5:off && wait_for 60 mask_is 8
	rc=$?
	kill $FOLLOWER; wait $FOLLOWER 2> /dev/null
	cat /tmp/follow
	return $rc
}
cnps_stay() { set_pfc 6:on && roan pfc roan1 --apply && roan pfc roan1 && says "roan1: obeys pauses of priorities 3$" && says "priority 6 is that of CNPs"; }
without_state() { rmmod roan_fake_dcb; ! roan pfc roan1 && says "no DCB state"; }

ktap_header
load_modules && hosts > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
if [ -e "$DCB" ] && command -v dcb > /dev/null; then
	ktap_check "load the fake DCB driver" insmod "$DCB" netdev=v1
	ktap_check "roan pfc shows DCB state and mask, and that they differ" shows
	ktap_check "--apply sets the mask" applies
	ktap_check "--follow sets it after each change" follows
	ktap_check "the priority of CNPs is named, and not obeyed" cnps_stay
	ktap_check "an interface without DCB state is refused" without_state
else
	ktap_skip "PFC state of DCB" "no roan_fake_dcb.ko or no dcb"
fi
ktap_end
