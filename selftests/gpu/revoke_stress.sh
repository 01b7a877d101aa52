#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Memory that is removed during transfers: moved by its exporter, deregistered, reregistered, its program killed, its
# exporter unloaded, its device deleted. ROUNDS (15) of each; 1000 is the soak. The QPs of one device are connected to
# each other.
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
. "$HERE/../verbs/pair.sh"
ROUNDS=${ROUNDS:-15}
peers_ko=$(dirname "$(roan_ko)")/roan_peermem.ko
gpu_ko=$(dirname "$(roan_ko)")/roan_fake_gpu.ko

churn() { a timeout $((300 + ROUNDS * 3)) "$PROGRAMS/revoke_stress" -d "$ADEV" -n "$ROUNDS" "$@"; }

no_regions() { ! a rdma resource show mr | grep -q 'comm revoke_stress'; }

# The exporter module is in use while its memory is registered.
in_use() { # COMMAND: runs while memory is held
	local held=/tmp/held in=/tmp/held.in pid
	rm -f $in $held && mkfifo $in
	a "$PROGRAMS/revoke_stress" -d "$ADEV" -m gpu -w hold > $held < $in &
	pid=$!
	exec 9> $in
	wait_for 60 grep -q held $held || return
	! rmmod roan_fake_gpu 2> /dev/null || { echo "it unloaded while a region existed"; return 1; }
	"$@" || return
	exec 9>&-
	wait $pid
}

remove_device() { a rdma link del "$ADEV" || rdma link del "$ADEV"; }

ktap_header
pair_up > /tmp/setup.log 2>&1 && insmod "$peers_ko" >> /tmp/setup.log 2>&1 && insmod "$gpu_ko" unmaps="${UNMAPS:-0}" >> /tmp/setup.log 2>&1 ||
	{ cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
ktap_check "peer: an invalidation during a deregistration and a registration" a "$PROGRAMS/peer_race" -d "$ADEV"
# Loopback is fast: on one CPU a batch would finish before the removal without a delay.
wire_netem "$(wire_to_self)" h1 delay 300us || ktap_fail "netem"
for kind in gpu-moves gpu-migrates bar-moves peer; do
	ktap_check "$kind: moved during transfers" churn -m $kind -w move
done
for kind in user odp odp-shaken heap gpu bar dm peer; do
	ktap_check "$kind: deregistered during transfers" churn -m $kind -w dereg
done
ktap_check "user: reregistered during transfers" churn -m user -w rereg
for kind in gpu-moves bar dm peer odp-shaken; do
	ktap_check "$kind: program killed during transfers" churn -m $kind -w kill
done
ktap_check "peer: its client unregisters during transfers" churn -m peer -w leave
ktap_check "no region is left" no_regions
ktap_check "an exporter in use does not unload" in_use true
ktap_check "after the device is deleted it still does not unload until the program closes it" in_use remove_device
ktap_check "the fake GPU unloads after all is freed" rmmod roan_fake_gpu roan_peermem
ktap_end
