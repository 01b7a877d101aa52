#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The speed of a port follows its interface, a bond of two veths: the rate in sysfs, ibv_query_port_speed() and the event.
#
#	roan1 on bo0 -+- pa ==== qa		10 Gb/s each
#		      +- pb ==== qb
# NEWEST=1: kernel and rdma-core have the event and the call, so their absence is a failure.
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../../vm/lib.sh"

build() {
	ip link add bo0 type bond mode balance-rr miimon 20 && ip addr add 10.8.0.1/24 dev bo0 || return
	local p
	for p in a b; do
		ip link add p$p type veth peer name q$p && ip link set q$p up && ip link set p$p master bo0 || return
	done
	ip link set bo0 up && wait_for 60 both_ports_carry && link_add roan1 bo0
}
both_ports_carry() { [ "$(grep -c '^MII Status: up' /proc/net/bonding/bo0)" = 3 ]; }

rate_is() {
	local rate
	read -r rate _ < /sys/class/infiniband/roan1/ports/1/rate && [ "$rate" = "$1" ]
}
# ibv_asyncwatch prints the number of events that are newer than it.
events_are() { [ "$(grep -ci 'event_type.*\(speed change\|(20)\)' /tmp/events)" -ge "$1" ]; }

events=0
# changes RATE CASE COMMAND...: after the command the rate is RATE, and one more event has been raised.
changes() {
	local want=$1 name=$2
	shift 2
	events=$((events + 1))
	ktap_check "$name: the rate is $want Gb/s" eval "$* && wait_for 60 rate_is $want"
	if [ -n "${NEWEST:-}" ]; then
		ktap_check "$name: an event" wait_for 60 events_are $events
		ktap_check "$name: ibv_query_port_speed()" speed_is "$want"
	fi
}
speed_is() { ibv_devinfo -v -d roan1 | grep -q "effective_speed:[[:space:]]*$1.0 Gbps"; }

ktap_header
modprobe -q bonding max_bonds=0 || [ -e /sys/class/net/bonding_masters ] || { ktap_skip "port speed" "no bonding"; ktap_end; }
{ load_modules && build; } > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
ktap_check "a bond of two: the rate is 20 Gb/s" wait_for 60 rate_is 20
stdbuf -oL ibv_asyncwatch -d roan1 > /tmp/events 2>&1 &
watcher=$!
wait_for 60 grep -q async /tmp/events
changes 10 "a port leaves" ip link set pb nomaster
changes 20 "it comes back" "ip link set pb down && ip link set pb master bo0"
changes 10 "its link goes down" ip link set qb down
changes 20 "its link comes up" ip link set qb up
kill $watcher
sed -n '/event/s/^/# /p' /tmp/events
ktap_check "the device goes while the speed changes" eval "ip link set qb down; ip link del bo0; wait_for 60 eval '! rdma link show roan1/1'"
ktap_end
