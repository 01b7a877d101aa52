#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Functions for scripts that check the packets between pair.sh's two hosts; sourced after pair.sh.
#	one_by_one			no segmentation and no GRO on either side: each skb is one packet
#	capture FILE; stop		records the packets on v1 between the two calls
#	encrypted NETDEV FILTER COMMAND...	it succeeds; then on NETDEV of h1 packets of FILTER were seen, and no readable RoCE
#	decodes FILE LEAST		tshark finds no malformed packet, and at least LEAST RoCE packets
#	seen FILE OPCODE...		each opcode was in FILE; writes their counts to /tmp/opcodes

# Random payload sometimes matches tshark's heuristics for protocols above RDMA, and is then called malformed: disable
# them.
TSHARK="tshark -n --disable-heuristic eth_over_ib"
for p in smc smb_direct rpcordma nvme-rdma lnet iser infiniband_sdp fcoib infiniband.eoib; do
	TSHARK="$TSHARK --disable-protocol $p"
done

one_by_one() {
	local f
	for f in gso tso tx-udp-segmentation gro rx-gro-list rx-udp-gro-forwarding; do
		a ethtool -K v1 $f off > /dev/null 2>&1
		b ethtool -K v2 $f off > /dev/null 2>&1
	done
}

capture() {
	rm -f "$1"
	"${A[@]}" python3 "$REPO/selftests/net/packets/capture.py" v1 "$1" > /tmp/capture.log 2>&1 &
	CAPTURE=$!
	wait_for 60 test -e "$1"
}
stop() { kill $CAPTURE; wait $CAPTURE 2> /dev/null; true; }

on_wire() { tcpdump -r /tmp/wire.pcap "$1" 2> /dev/null | wc -l; } # FILTER
captured() { [ "$(on_wire "$1")" -gt 50 ]; }
encrypted() {
	local pid rc filter=$2
	rm -f /tmp/wire.log	# the file may be of an earlier run
	ip netns exec h1 tcpdump --immediate-mode -i "$1" -U -s 128 -w /tmp/wire.pcap > /tmp/wire.log 2>&1 &	# not on(): kill must reach it
	pid=$!
	wait_for 30 grep -q listening /tmp/wire.log || return
	"${@:3}"
	rc=$?
	wait_for 30 captured "$filter"
	kill $pid
	wait $pid
	echo "packets: $(on_wire "$filter") encrypted, $(on_wire "udp port 4791") RoCE"
	[ $rc = 0 ] && captured "$filter" && [ "$(on_wire "udp port 4791")" = 0 ]
}

decodes() {
	$TSHARK -r "$1" -Y '_ws.malformed || (udp.port == 4791 && !infiniband)' > /tmp/tshark.out 2> /tmp/tshark.err || { cat /tmp/tshark.err; return 1; }
	[ ! -s /tmp/tshark.out ] || { head -n 5 /tmp/tshark.out; return 1; }
	[ "$($TSHARK -r "$1" -Y infiniband 2> /dev/null | wc -l)" -ge "$2" ]
}

seen() {
	$TSHARK -r "$1" -Y infiniband -T fields -e infiniband.bth.opcode 2> /dev/null | sort -n | uniq -c > /tmp/opcodes
	shift
	local o missing=
	for o in "$@"; do
		awk -v o="$o" '$2 == o { f = 1 } END { exit !f }' /tmp/opcodes || missing="$missing $o"
	done
	[ -z "$missing" ] || { echo "opcodes never seen:$missing"; cat /tmp/opcodes; return 1; }
}
