#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What roan puts on the wire, judged by others: tshark decodes every packet, and Python's zlib recomputes every ICRC.
#
#	h1: roan1 v1 ======== v2 roan2 :h2	captured on v2 with segmentation off, so that a packet is a packet
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
. "$HERE/../verbs/pair.sh"
PCAP=/tmp/wire.pcap
# Random bytes now and then look like a protocol above to tshark's guesses, which then find it malformed: no guesses.
TSHARK="tshark -n --disable-heuristic eth_over_ib"
for p in smc smb_direct rpcordma nvme-rdma lnet iser infiniband_sdp fcoib infiniband.eoib; do
	TSHARK="$TSHARK --disable-protocol $p"
done

capture() {
	rm -f "$1"
	"${A[@]}" python3 "$HERE/capture.py" v1 "$1" > /tmp/capture.log 2>&1 &
	CAPTURE=$!
	wait_for 5 test -e "$1" && sleep 0.5
}
stop() { sleep 0.5; kill $CAPTURE; wait $CAPTURE 2> /dev/null; true; }

# No malformed packet, no expert complaint of severity error, and every one a RoCE packet.
decodes() {
	$TSHARK -r "$1" -Y '_ws.malformed || (udp.port == 4791 && !infiniband)' > /tmp/tshark.out 2> /tmp/tshark.err || { cat /tmp/tshark.err; return 1; }
	[ ! -s /tmp/tshark.out ] || { head -n 5 /tmp/tshark.out; return 1; }
	[ "$($TSHARK -r "$1" -Y infiniband 2> /dev/null | wc -l)" -gt 100 ]
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

ktap_header
command -v tshark > /dev/null || { ktap_skip "wire" "no tshark"; ktap_end; }
pair_up > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
for f in gso tso tx-udp-segmentation gro rx-gro-list rx-udp-gro-forwarding; do
	a ethtool -K v1 $f off > /dev/null 2>&1; b ethtool -K v2 $f off > /dev/null 2>&1
done
for v in 4 6; do
	P=$PCAP.$v
	# shellcheck disable=SC2034 # pair.sh reads it
	[ $v = 4 ] && STRESS_BOTH='' || STRESS_BOTH=-6
	capture "$P"
	ktap_check "IPv$v: RC with everything" stress 40 -t rc -q 2 -w 64 -n 12 -l 20000 -m 1024
	ktap_check "IPv$v: UC" stress 30 -t uc -n 8 -l 20000 -m 1024
	ktap_check "IPv$v: UD" stress 30 -t ud -n 4
	stop
	ktap_check "IPv$v: tshark finds nothing malformed" decodes "$P"
	# RC 0..22 but 21 (reserved): send, write, read, responses, acknowledge, atomics, SEND_INV; 28+ ATOMIC_WRITE 29
	ktap_check "IPv$v: every RC opcode was seen" seen "$P" 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 22 23 29
	ktap_check "IPv$v: every UC opcode was seen" seen "$P" 32 33 34 35 36 37 38 39 40 41 42 43
	ktap_check "IPv$v: every UD opcode was seen" seen "$P" 100 101
	ktap_check "IPv$v: ICRC of every packet" python3 "$HERE/icrc.py" "$P"
done
ktap_end
