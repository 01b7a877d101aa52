#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Received skbs of any layout in memory, made by skb_layouts.c before roan's receive hook. Every byte is right, no packet is
# refused, and a clone keeps its bytes. In the last cases skbs have a wrong gso_size: packets are refused and sent again.
# SEED=N (default 1) repeats the choices of a run as far as the packets are the same.
#
#	h1: roan1 on v1 ======== v2 with roan2 :h2
#	    roan <- skb_layouts <- v1       v2 -> skb_layouts -> roan
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../../vm/lib.sh"
. "$HERE/../../verbs/pair.sh"
MODULE=$(dirname "$(roan_ko)")/roan_skb_layouts.ko
DONE=/sys/module/roan_skb_layouts/parameters

refused() { echo $(($(total rx_bad_icrc) + $(total rx_truncated) + $(total rx_invalid) + $(total rx_wrong_peer))); }

# right SECONDS OPTIONS...: verbs_stress passes, and no packet was refused.
right() {
	local before
	before=$(refused)
	stress "$@" || return
	[ "$(refused)" = "$before" ] || { echo "$(($(refused) - before)) packets were refused"; return 1; }
}

# At least 20 skbs of each kind.
all_kinds() {
	local kind rc=0
	for kind in linear split_header frags lists segment_lists clones gso_of_one; do
		echo "$kind $(< $DONE/$kind)"
		[ "$(< $DONE/$kind)" -ge 20 ] || { echo "too few"; rc=1; }
	done
	return $rc
}

unchanged() { [ "$(< $DONE/changed)" = 0 ] && [ "$(< $DONE/failed)" = 0 ] || { head $DONE/{changed,failed}; return 1; }; }

wrong_lengths() {
	local before
	before=$(refused)
	echo 10 > $DONE/wrong_gso
	stress 300 -t rc -q 4 -w 64 -n 5 -l 20000 -k 16 && stress 300 -t ud -q 2 -w 32 -n 5 -L
	set -- $?
	echo 0 > $DONE/wrong_gso
	echo "$(< $DONE/wrong_gsos) skbs with a wrong length, $(($(refused) - before)) packets refused"
	[ "$1" = 0 ] && [ "$(refused)" -gt "$before" ]
}

ktap_header
[ -e "$MODULE" ] || { ktap_skip "all" "no roan_skb_layouts.ko"; ktap_end; }
pair_up > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
ktap_check "load the module that changes layouts" insmod "$MODULE" seed="${SEED:-1}"
modprobe -q sch_netem
for trains in on off; do
	segments $trains
	ktap_check "trains $trains: RC, all operations, 4 QPs" right 300 -t rc -q 4 -w 64 -n 15 -l 40000
	STRESS_BOTH=-6 ktap_check "trains $trains: RC, IPv6, both ways, SRQ, events" right 300 -t rc -q 2 -w 32 -n 15 -l 20000 -B -S -e
	STRESS_BOTH=-O ktap_check "trains $trains: RC, on-demand memory" right 300 -t rc -q 2 -w 32 -n 15 -l 40000
	ktap_check "trains $trains: UC" right 300 -t uc -q 2 -w 32 -n 15 -l 20000 -L
	ktap_check "trains $trains: UD" right 300 -t ud -q 2 -w 32 -n 15 -L
	if wire delay 2ms reorder 25% 50% loss 1%; then
		ktap_check "trains $trains: RC, loss and another order" right 300 -t rc -q 4 -w 64 -n 5 -l 40000
		wire loss 0%
	else
		ktap_skip "trains $trains: RC, loss and another order" "no netem in this kernel"
	fi
done
ktap_check "each layout was there" all_kinds
ktap_check "clones have kept their bytes" unchanged
ktap_check "wrong packet lengths: refused, sent again, right bytes" wrong_lengths
ktap_check "clones have kept their bytes then, too" unchanged
ktap_check "unload the module" rmmod roan_skb_layouts
ktap_end
