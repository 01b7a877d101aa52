#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A link that loses, reorders, duplicates or corrupts packets: each operation must complete with the right bytes (RC),
# or be lost as a whole and never be wrong (UC, UD).
#
#	h1: v1 ---- netem, both ways: loss 1 %, or reorder 25 %, or duplicate 5 %, or corrupt 1 %, or all ---- v2 :h2
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
. "$HERE/../verbs/pair.sh"
N=${N:-20}

under() {
	local t=$1
	shift
	stress "$t" "$@" || return
	cat $OUT_A $OUT_B >&3
}

# A program over one device; its packets go to the other host and back.
overwrite() { detour h1 && a timeout 280 "$PROGRAMS/features" -d "$ADEV" -w; }

# Drops what the active side sends to UDP port 4791, and nothing of the programs' side channel.
all_lost() {
	b tc qdisc replace dev v2 root handle 1: prio bands 4 && b tc qdisc add dev v2 parent 1:4 netem loss 100% &&
		b tc filter add dev v2 parent 1: protocol ip prio 1 u32 match ip dport 4791 0xffff flowid 1:4 || return 4
	! stress 60 -t uc -n 2 -L || return
	grep 'messages were lost' $OUT_A
}

ktap_header
exec 3> /tmp/loss.log
pair_up > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
modprobe -q sch_netem
wire loss 0% || { ktap_skip "all" "no netem in this kernel"; ktap_end; }
for trains in $(wire_value gso || echo off on); do
	segments $trains
	while read -r name what; do
		# shellcheck disable=SC2086 # a list of netem's words
		wire $what || { ktap_fail "netem $what"; continue; }
		p="$name, trains $trains"
		ktap_check "$p: RC, all operations, 4 QPs" under 300 -t rc -q 4 -w 64 -n "$N" -l 40000
		ktap_check "$p: RC both ways, SRQ, events" under 300 -t rc -q 2 -w 32 -n "$N" -l 20000 -B -S -e
		[ $name != loss-1 ] || ktap_check "$p: a buffer overwritten after its completion does not reach the peer" overwrite
		ktap_check "$p: UC" under 300 -t uc -q 2 -w 32 -n "$((N / 2))" -l 20000 -L
		ktap_check "$p: UD" under 300 -t ud -q 2 -w 32 -n "$((N / 2))" -L
	done <<-END
		loss-1 loss 1%
		reorder-25 delay 2ms reorder 25% 50%
		duplicate-5 duplicate 5%
		corrupt-1 corrupt 1%
		all-four delay 1ms loss 1% duplicate 5% corrupt 1% reorder 25% 50%
	END
done
wire loss 0%
ktap_check "RNR: receives are posted late" stress 300 -t rc -q 4 -w 32 -n 10 -r
[ "$LINK_TYPE" = rxe ] || ktap_check "UC: a run that loses all messages fails" all_lost
ktap_end
