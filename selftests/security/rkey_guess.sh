#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A forger guesses the R_Key of another user's region: rkey_guess.py says what it knows and what must hold.
#
#	h1: v1, the forger's raw socket ======== v2 roan2 :h2	the victim's QP and region, and the forger's own region
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
NET=$REPO/selftests/net/packets
. "$NET/python.sh"
. "$NET/raw_peer.sh"
export PYTHONPATH=$NET

# rdma_rxe of Linux 6.12 receives in the initial namespace only, so its device is there; only the attack runs, whose
# cases fail there: LINK_TYPE=rxe.
rxe_up() {
	load_modules && ip netns add h1 && ip link add v1 netns h1 mtu 4200 type veth peer name v2 mtu 4200 &&
		on h1 ip addr add $H1IP/24 dev v1 && ip addr add $H2IP/24 dev v2 && on h1 ip addr add $H1IP6/64 dev v1 nodad &&
		ip addr add $H2IP6/64 dev v2 nodad && on h1 ip link set v1 up && ip link set v2 up &&
		wait_for 10 on h1 ping -c1 -W1 $H2IP6 && link_add "$H2DEV" v2
}

ktap_header
if [ "$LINK_TYPE" = rxe ]; then
	rxe_up > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
	python_runs rkey_guess 550
	ktap_end
fi
mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing 2> /dev/null || true
alone_up rkey_guess
alone rkey_guess
