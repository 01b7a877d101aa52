#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Device memory on a PCI BAR that the administrator names (dm_bar): errors, every operation with it, and removal of its
# PCI device during transfers, ROUNDS (10) times. The BAR is the frame buffer of QEMU's default VGA adapter.
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
. "$HERE/../verbs/pair.sh"
ROUNDS=${ROUNDS:-10}
PCI=/sys/bus/pci/devices

vga() { grep -lx 0x1111 $PCI/*/device | while read -r f; do basename "$(dirname "$f")"; done; }
knob() { echo "/sys/class/infiniband/$ADEV/dm_bar"; }
name_bar() { on h1 bash -c 'echo "$1" > "$2"' bash "$1" "$(knob)"; }
named() { [ "$(on h1 cat "$(knob)")" = "$1" ]; }

# WHY: the shell's text for the errno.
refused() { # WHY NAME
	local out
	out=$(name_bar "$2" 2>&1) && { echo "$2 was taken"; return 1; }
	grep -q "$1" <<< "$out" && named none || { echo "$out"; return 1; }
}

unprivileged() {
	! on h1 setpriv --bounding-set -sys_rawio bash -c 'echo "$1" > "$2"' bash "$BAR" "$(knob)" 2> /tmp/why && grep -q 'not permitted' /tmp/why
}

first_with() { # FLAG MASK AND WANTED: prints the first DEVICE/BAR with (flags & MASK) == WANTED
	local d nr _ flags
	for d in $PCI/*; do
		nr=0
		while read -r _ _ flags && [ $nr -lt 6 ]; do
			[ $((flags & $1)) = $(($2)) ] && echo "${d##*/}/$nr" && return
			nr=$((nr + 1))
		done < "$d/resource"
	done
	return 1
}

a_driver_has_it() { # the first memory BAR of a device with a driver
	local d _ flags
	for d in $PCI/*; do
		[ -e "$d/driver" ] || continue
		nr=0
		while read -r _ _ flags && [ $nr -lt 6 ]; do
			[ $((flags & 0x200)) != 0 ] && { refused busy "${d##*/}/$nr"; return; }
			nr=$((nr + 1))
		done < "$d/resource"
	done
	return 4
}

pairing() { # TARGET SOURCE
	both 200 18533 "$PROGRAMS/memory -d $ADEV -m $1" "$PROGRAMS/memory -d $BDEV -m $2 -c $AIP"
	local rc=$?
	[ $rc = 1 ] && grep '^not ok' $OUT_B
	return $rc
}

removals() {
	local i
	for ((i = 0; i < ROUNDS; i++)); do
		name_bar "$BAR" || return
		a timeout 200 "$PROGRAMS/revoke_stress" -d "$ADEV" -m dm -s "$i" -w "$PCI/$VGA/remove" || return
		named gone || return
		echo 1 > /sys/bus/pci/rescan
		wait_for 60 [ -e "$PCI/$VGA/resource" ] || return
	done
}

# Programs may register many regions: the removal waits for one grace period, not for one each. It stops all allocations
# of device memory meanwhile.
HOLDER='
import signal, sys
import pyverbs.enums as e
from pyverbs.device import AllocDmAttr, Context, DM
from pyverbs.mr import DMMR
from pyverbs.pd import PD
ctx = Context(name=sys.argv[1])
dm, pd = DM(ctx, AllocDmAttr(4096)), PD(ctx)
mrs = [DMMR(pd, 4096, e.IBV_ACCESS_ZERO_BASED | e.IBV_ACCESS_LOCAL_WRITE, dm, 0) for _ in range(400)]
print("ready", flush=True)
signal.pause()'
waits_once() {
	local pid n=0 t=/sys/kernel/tracing
	/usr/bin/python3 -c 'import pyverbs.device' || return 4
	mountpoint -q $t || mount -t tracefs t $t || return
	name_bar "$BAR" || return
	rm -f /tmp/holder	# the file may be of an earlier run
	"${A[@]}" /usr/bin/python3 -c "$HOLDER" "$ADEV" > /tmp/holder 2>&1 &
	pid=$!
	wait_for 60 grep -q ready /tmp/holder || { cat /tmp/holder; return 1; }
	echo synchronize_rcu > $t/set_ftrace_filter && echo function > $t/current_tracer || return
	echo 1 > "$PCI/$VGA/remove"
	n=$(grep -c 'synchronize_rcu <-' $t/trace)
	echo nop > $t/current_tracer
	echo > $t/set_ftrace_filter
	kill $pid && wait $pid
	named gone || return
	echo 1 > /sys/bus/pci/rescan
	wait_for 60 [ -e "$PCI/$VGA/resource" ] || return
	[ "$n" -ge 1 ] && [ "$n" -lt 200 ] || { echo "$n grace periods"; return 1; }
}

claimed() { grep -q ': roan$' /proc/iomem; }

# The kernel takes a device without a driver for idle, and may cut its power with that of the bridge above it.
power() { [ "$(cat "$PCI/$VGA/power/runtime_status")" = "$1" ]; }
stays_on() {
	local rc
	echo auto > "$PCI/$VGA/power/control" && wait_for 60 power suspended && name_bar "$BAR" && power active && name_bar none &&
		wait_for 60 power suspended
	rc=$?
	cat "$PCI/$VGA/power/runtime_status"
	name_bar none && echo on > "$PCI/$VGA/power/control" && return $rc
}

ktap_header
VGA=$(vga) BAR=$VGA/0
[ -n "$VGA" ] || { ktap_skip "device memory on a BAR" "no PCI device to spare"; ktap_end; }
pair_up > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
ktap_check "dm_bar is none at first" named none
ktap_check "an unknown PCI device is refused" refused 'No such device$' 0000:ff:1f.7/0
ktap_check "a name without a BAR number is refused" refused 'Invalid argument' "$VGA"
ktap_check "BAR 6 is refused" refused 'Invalid argument' "$VGA/6"
ktap_check "a BAR that this device does not have is refused" refused 'No such device or address' "$VGA/5"
ktap_check "a BAR of I/O ports is refused" refused 'not supported' "$(first_with 0x300 0x100)"
ktap_check "a device with a driver is refused" a_driver_has_it
ktap_check "without CAP_SYS_RAWIO it is refused" unprivileged
ktap_check "device memory in system memory" a "$PROGRAMS/dm" -d "$ADEV"
ktap_check "a BAR is accepted" name_bar "$BAR"
ktap_check "dm_bar and /proc/iomem show it" eval 'named "$BAR" && claimed'
ktap_check "device memory on the BAR" a "$PROGRAMS/dm" -d "$ADEV" -l $((16 << 20))
ktap_check "from user memory to the BAR" pairing dm user
ktap_check "from the BAR to user memory" eval 'on h2 sh -c "echo $BAR > /sys/class/infiniband/$BDEV/dm_bar" && pairing user dm'
ktap_check "from the BAR to itself, two devices" pairing dm dm
ktap_check "the BAR is released when no device names it" eval 'name_bar none && on h2 sh -c "echo none > /sys/class/infiniband/$BDEV/dm_bar" && ! claimed'
ktap_check "a PCI device with power/control auto stays on while its BAR is in use" stays_on
ktap_check "the removal of a PCI device with 400 regions waits for few grace periods" waits_once
# Loopback is fast: without a delay a batch would finish before the removal.
on h1 tc qdisc add dev lo root netem delay 300us || ktap_fail "netem"
ktap_check "the PCI device is removed during transfers" removals
ktap_check "the roan device is deleted while it names a BAR" eval 'name_bar "$BAR" && { a rdma link del "$ADEV" || rdma link del "$ADEV"; } && ! claimed'
ktap_end
