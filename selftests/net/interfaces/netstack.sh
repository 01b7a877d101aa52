#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# State that the host's network stack keeps for each flow works for roan: connection tracking confirms the flow with its
# first packet, and one transmit queue carries the flow, whichever CPU sends: that of the CPU that posts when nothing is in
# flight.
#
#	h1: v1, roan1  =veth=  v2 with two transmit queues, one for each CPU, roan2: h2	nft in h1 counts tracked packets
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../../vm/lib.sh"
. "$HERE/../../verbs/pair.sh"

lay_wire() { # MTU
	ip link add v1 netns h1 mtu "$1" numtxqueues 2 numrxqueues 2 type veth peer name v2 netns h2 mtu "$1" numtxqueues 2 numrxqueues 2
}
# XPS: each CPU has its own transmit queue. Responses are received on the CPU that does not post.
set_up() {
	local q
	pair_up || return
	for q in 0 1; do
		b bash -c "echo $((1 << q)) > /sys/class/net/v2/queues/tx-$q/xps_cpus" || return
		b bash -c "echo 1 > /sys/class/net/v2/queues/rx-$q/rps_cpus" || return
	done
	b tc qdisc replace dev v2 root handle 1: mq && b tc qdisc replace dev v2 parent 1:1 pfifo limit 10000 &&
		b tc qdisc replace dev v2 parent 1:2 pfifo limit 10000
}
# Prints the bytes sent by each queue of v2, the smaller number first.
queues() { b tc -s qdisc show dev v2 | awk '/pfifo/ { mine = 1 } mine && /Sent/ { print $2; mine = 0 }' | sort -n | paste -sd' '; }
one_queue() {
	local few many
	both 200 18515 "ib_write_bw -F -n 2000 -s 65536 -d $ADEV" "taskset 2 ib_write_bw -F -n 2000 -s 65536 -d $BDEV $AIP" || return
	read -r few many <<< "$(queues)"
	echo "# bytes by queue: $few and $many; out of sequence: $(counter "$ADEV" out_of_seq_request)" >&3
	[ "$many" -gt $((100 << 20)) ] && [ "$few" -lt 32768 ]
}

# Prints the bytes sent by queue 1 of v2, that of CPU 1.
queue1() { b tc -s qdisc show dev v2 | awk '/pfifo/ && /parent 1:2/ { mine = 1 } mine && /Sent/ { print $2; mine = 0 }'; }
# A program on CPU 0 posts one WRITE at a time, and moves to CPU 1.
follows_the_poster() {
	local before at rc
	both 100 18516 "ib_write_lat -F -D 8 -s 4096 -p 18516 -d $ADEV" "taskset 1 ib_write_lat -F -D 8 -s 4096 -p 18516 -d $BDEV $AIP" & pair=$!
	sleep 4
	before=$(queue1)
	sleep 1
	at=$(queue1)
	taskset -p 2 "$(pgrep -f "^ib_write_lat.*-d $BDEV $AIP")"
	wait $pair
	rc=$?
	echo "# bytes by queue 1: $((at - before)) in a second, then $(($(queue1) - at))" >&3
	[ $rc = 0 ] && [ $((at - before)) -lt 32768 ] && [ $(($(queue1) - at)) -gt 100000 ]
}

known() { a nft -j list counter inet t "$1" | sed 's/.*"packets": *\([0-9]*\).*/\1/'; }
# Load conntrack before adding the device: then roan's hook runs before conntrack's last one.
track() {
	local v
	a nft "add table inet t" && for v in 4 6; do a nft "add counter inet t v$v" || return; done
	a nft "add chain inet t in { type filter hook input priority 0; }" &&
		a nft "add rule inet t in udp dport 4791 meta nfproto ipv4 ct status confirmed counter name v4" &&
		a nft "add rule inet t in udp dport 4791 meta nfproto ipv6 ct status confirmed counter name v6" &&
		a rdma link del "$ADEV" && link_add "$ADEV" v1 h1
}
tracked() { # 4|6 ADDRESS ADDRESS: of A and B
	local c="ib_write_bw -F -n 500 -s 4096"
	both 100 18515 "$c -d $ADEV -x $(gid_index "$ADEV" "$2" h1)" "$c -d $BDEV -x $(gid_index "$BDEV" "$3" h2) $AIP" || return
	echo "# IPv$1: $(known "v$1") skbs were of a known flow" >&3
	[ "$(known "v$1")" -ge 10 ]
}

exec 3>&1
ktap_header
set_up > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
ktap_check "a QP's packets use one transmit queue" one_queue
ktap_check "they use that of the CPU that posts, once all is acknowledged" follows_the_poster
track > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "tracking"; ktap_end; }
ktap_check "IPv4: a flow is tracked from its second packet on" tracked 4 "$AIP" "$BIP"
ktap_check "IPv6: a flow is tracked from its second packet on" tracked 6 "$AIP6" "$BIP6"
ktap_end
