#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Two machines with different CPUs, each a QEMU, and a wire between their adapters: every operation in both directions, bytes
# compared by verbs_stress. Runs on the host; each guest runs machine.sh.
#   two_machines.sh [-n] LAB1 LAB2	LAB: a lab of run.sh in QEMU	-n: do not build roan first	LINK1, LINK2: roan (default) or rxe
#
#	LAB1: LINK1 on a virtio adapter, 10.7.0.1, fd07::1  ====  LAB2: LINK2 on a virtio adapter, 10.7.0.2, fd07::2
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
build=()
[ "${1:-}" != -n ] || { build=(-n); shift; }
LAB1=${1:?} LAB2=${2:?}
wire=$(mktemp -d /tmp/roan-wire.XXXXXX)
trap 'rm -rf "$wire"' EXIT

machine() { # NUMBER LAB LINK PEER'S-LINK
	CABLE=$wire:$1 LINK_TYPE=$3 PEER_LINK=$4 LAB_ENV="${LAB_ENV:-} PEER_LINK" "$HERE/../vm/run.sh" "$2" -m 1G \
		-s "${LIMIT:-400}" "${build[@]}" "$HERE/machine.sh" "$1" > "$wire/$1.out" 2>&1
	echo $? > "$wire/$1.rc"
}

ktap_header
machine 2 "$LAB2" "${LINK2:-roan}" "${LINK1:-roan}" &
machine 1 "$LAB1" "${LINK1:-roan}" "${LINK2:-roan}"
wait
for n in 1 2; do
	lab=LAB$n
	grep -E '^ *(ok|not ok|#|1\.\.)' "$wire/$n.out" > "$wire/$n.ktap"
	ktap_relay "$wire/$n.ktap" machine.sh "$(cat "$wire/$n.rc")" "${!lab}: "
done
ktap_end
