#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Memory that goes in mid-transfer: moved by its exporter, deregistered, registered anew, its program killed, its exporter
# unloaded, its device removed. ROUNDS (15) of each; 1000 is the soak. One device, its QPs talk to each other.
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
. "$HERE/../verbs/pair.sh"
ROUNDS=${ROUNDS:-15}
peers_ko=$(dirname "$(roan_ko)")/roan_peermem.ko
gpu_ko=$(dirname "$(roan_ko)")/roan_fake_gpu.ko

churn() { a timeout $((300 + ROUNDS * 3)) "$PROGRAMS/revoke_stress" -d "$ADEV" -n "$ROUNDS" "$@"; }

no_regions() { ! a rdma resource show mr | grep -q 'comm revoke_stress'; }

# The exporter is needed as long as somebody has its memory registered.
in_use() { # COMMAND: ends it
	local held=/tmp/held in=/tmp/held.in pid
	rm -f $in $held && mkfifo $in
	a "$PROGRAMS/revoke_stress" -d "$ADEV" -m gpu -w hold > $held < $in &
	pid=$!
	exec 9> $in
	wait_for 60 grep -q held $held || return
	! rmmod roan_fake_gpu 2> /dev/null || { echo "it unloaded under a region"; return 1; }
	"$@" || return
	exec 9>&-
	wait $pid
}

remove_device() { a rdma link del "$ADEV" || rdma link del "$ADEV"; }

ktap_header
pair_up > /tmp/setup.log 2>&1 && insmod "$peers_ko" >> /tmp/setup.log 2>&1 && insmod "$gpu_ko" unmaps="${UNMAPS:-0}" >> /tmp/setup.log 2>&1 ||
	{ cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
# The way to ourselves is short: with one CPU a batch would be through before anything else can happen.
wire_netem "$(wire_to_self)" h1 delay 300us
for kind in gpu-moves gpu-migrates bar-moves peer; do
	ktap_check "$kind: moved in mid-transfer" churn -m $kind -w move
done
for kind in user odp odp-shaken heap gpu bar dm peer; do
	ktap_check "$kind: deregistered in mid-transfer" churn -m $kind -w dereg
done
ktap_check "user: registered anew in mid-transfer" churn -m user -w rereg
for kind in gpu-moves bar dm peer odp-shaken; do
	ktap_check "$kind: killed in mid-transfer" churn -m $kind -w kill
done
ktap_check "peer: its client leaves in mid-transfer" churn -m peer -w leave
ktap_check "no region is left" no_regions
ktap_check "an exporter in use does not unload" in_use true
ktap_check "nor does it when the device goes, until the program lets go" in_use remove_device
ktap_check "the fake GPU unloads when all is given back" rmmod roan_fake_gpu roan_peermem
ktap_end
