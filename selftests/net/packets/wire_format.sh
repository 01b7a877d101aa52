#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# roan's packets checked by independent code: tshark decodes each packet, and Python's zlib recomputes each ICRC.
#
#	h1: roan1 v1 ======== v2 roan2 :h2	captured on v1 with segmentation off, so that a packet is a packet
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../../vm/lib.sh"
. "$HERE/../../verbs/pair.sh"
. "$HERE/capture.sh"
PCAP=/tmp/wire.pcap

# MigReq is 1 in each packet except CNPs, whose reserved fields are zero.
migrated() {
	[ -z "$($TSHARK -r "$1" -Y 'infiniband.bth.m == 0 && infiniband.bth.opcode != 129' 2> /dev/null | head -n 3)" ] &&
		[ "$($TSHARK -r "$1" -Y 'infiniband.bth.m == 1' 2> /dev/null | wc -l)" -ge 100 ]
}

ktap_header
command -v tshark > /dev/null || { ktap_skip "wire" "no tshark"; ktap_end; }
pair_up > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
one_by_one
for v in 4 6; do
	P=$PCAP.$v
	# shellcheck disable=SC2034 # pair.sh reads it
	[ $v = 4 ] && STRESS_BOTH='' || STRESS_BOTH=-6
	capture "$P"
	ktap_check "IPv$v: RC with everything" stress 200 -t rc -q 2 -w 64 -n 12 -l 20000 -m 1024
	ktap_check "IPv$v: UC" stress 200 -t uc -n 8 -l 20000 -m 1024
	ktap_check "IPv$v: UD" stress 200 -t ud -n 4
	stop
	ktap_check "IPv$v: tshark finds nothing malformed" decodes "$P" 100
	# RC 0..22 but 21 (reserved): send, write, read, responses, acknowledge, atomics, SEND_INV; 28+ ATOMIC_WRITE 29
	ktap_check "IPv$v: every RC opcode was seen" seen "$P" 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 22 23 29
	ktap_check "IPv$v: every UC opcode was seen" seen "$P" 32 33 34 35 36 37 38 39 40 41 42 43
	ktap_check "IPv$v: every UD opcode was seen" seen "$P" 100 101
	ktap_check "IPv$v: MigReq is set in every packet" migrated "$P"
	ktap_check "IPv$v: ICRC of every packet" python3 "$HERE/icrc.py" "$P"
done
ktap_end
