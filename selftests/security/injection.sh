#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A user without rights cannot send packets in the name of another user's QP of this host, nor read its PSNs:
# injection.py. The rules of Documentation/roce-guard.nft stop packets that a host forwards for containers.
#
#	container c ==cv=hv== h1: v1 roan1 ======== v2 roan2: h2 w2 ==p2 :s: p1== w1: container d
#	             fd08::/64                                          a bridge   fd09::/64
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
. "$HERE/../net/packets/python.sh"

set_up() {
	export FORGE=/tmp/forge RULES=$REPO/Documentation/roce-guard.nft
	mkdir -m 755 $FORGE && cp "$HERE"/*.py "$HERE/../net/packets/"{icrc,roce_packets,device,ktap}.py $FORGE && chmod 644 $FORGE/* &&
		load_modules && two_hosts && routed && bridged &&
		on h2 ip neigh replace fd07::99 lladdr 02:00:00:00:00:99 dev v2	# the absent peer of injection.py
}
routed() {
	ip netns add c && ip link add cv netns c type veth peer name hv netns h1 && on h1 ip link set hv up && on c ip link set cv up &&
		on h1 ip addr add fd08::1/64 dev hv nodad && on c ip addr add fd08::2/64 dev cv nodad &&
		on c ip route add default via fd08::1 && on h1 sh -c 'echo 1 > /proc/sys/net/ipv6/conf/all/forwarding'
}
bridged() {
	ip netns add s && ip netns add d && ip link add w1 netns d type veth peer name p1 netns s &&
		ip link add w2 netns h2 type veth peer name p2 netns s && on s ip link add br0 type bridge &&
		on s ip link set p1 master br0 && on s ip link set p2 master br0 && on s ip link set p1 up && on s ip link set p2 up &&
		on s ip link set br0 up && on d ip link set w1 up && on h2 ip link set w2 up &&
		on d ip addr add fd09::1/64 dev w1 nodad && on h2 ip addr add fd09::2/64 dev w2 nodad &&
		on d ip route add default via fd09::2
}

ktap_header
python_needs injection
set_up > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
export PYTHONPATH=$FORGE
python_runs injection 500
ktap_end
