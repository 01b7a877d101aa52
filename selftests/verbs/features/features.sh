#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Runs features on one device over IPv4 and, on roan, with a polling thread over IPv6; runs sq_poller and alloc_failure.
# Each KTAP line is one case. The path MTU is 1024, or 4096 if WIRE has an MTU above 4096.
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../../vm/lib.sh"
. "$HERE/../pair.sh"
ktap_header
pair_up > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
[ "$(wire_value mtu || echo 0)" -le 4096 ] || PATHS="-m 4096"
! wire_loses || PATHS="${PATHS:-} -L"
# LIMIT=SECONDS: for each address family (290).
# NEWEST=1: kernel and rdma-core have all interfaces that features tests, so their absence is a failure.
[ -z "${NEWEST:-}" ] || PATHS="${PATHS:-} -n"
# A second device for the program, in the same namespace; WIRE does not reach it.
if [ "$LINK_TYPE" = roan ] && [ -z "$WIRE" ]; then
	a ip link add x0 type dummy && a ip addr add 10.9.0.1/24 dev x0 && a ip link set x0 up && link_add roan3 x0 h1 &&
		PATHS="${PATHS:-} -2 roan3"
fi
# Creates a slow block device (null_blk) that keeps what is written. Faults of memory mapped from it take that long.
slow() { # OPTION MILLISECONDS
	local n=/sys/kernel/config/nullb/$2 index
	{ mkdir "$n" && echo 2 > "$n/irqmode" && echo "${2}000000" > "$n/completion_nsec" && echo 16 > "$n/size" && echo 1 > "$n/memory_backed" &&
		echo 1 > "$n/power"; } || return
	read -r index < "$n/index"
	for f in "/dev/$2" "/dev/nullb$index"; do
		[ ! -b "$f" ] || PATHS="${PATHS:-} $1 $f"
	done
}
if modprobe -q null_blk nr_devices=0; then
	mountpoint -q /sys/kernel/config || mount -t configfs c /sys/kernel/config
	slow -s 500 && slow -S 20
fi
features() { # PREFIX [OPTION]
	# shellcheck disable=SC2086
	a timeout "${LIMIT:-600}" "$PROGRAMS/features" -d "$ADEV" ${2:-} ${PATHS:-} > /tmp/features.out 2>&1
	ktap_relay /tmp/features.out features $? "$1"
}
features ""
if [ "$LINK_TYPE" = roan ]; then
	a timeout 600 "$PROGRAMS/sq_poller" -d "$ADEV" > /tmp/sq_poller.out 2>&1
	ktap_relay /tmp/sq_poller.out sq_poller $?
	poll_idle_us "$ADEV" 20000	# must be some ticks: on one CPU a shorter time would poll nothing
fi
features "IPv6: " -6
# Kernels with fault injection (uml-debug) can fail chosen allocations.
if [ "$LINK_TYPE" = roan ] && [ -d /sys/kernel/debug/failslab ]; then
	every_allocation_may_fail
	a timeout 600 "$PROGRAMS/alloc_failure" "$ADEV" > /tmp/alloc_failure.out 2>&1
	ktap_relay /tmp/alloc_failure.out alloc_failure $?
fi
ktap_end
