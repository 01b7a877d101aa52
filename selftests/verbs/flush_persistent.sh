#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# FLUSH to persistence of memory that is: a part of the guest's that its kernel was told (memmap=) to take for persistent,
# as a device that programs may map. That the caches were written back nobody can see here; who may ask for it, one can.
#
#	h1: roan1, /dev/dax0.0 ======== roan2 :h2
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
. "$HERE/pair.sh"

# Of the raw namespace the kernel made, a device without a file system, with its pages described in ordinary memory.
dax_up() {
	local nd=/sys/bus/nd
	modprobe -q -a nd_e820 dax_pmem device_dax
	wait_for 60 test -e $nd/devices/region0/dax_seed || return
	[ ! -e $nd/drivers/nd_pmem/namespace0.0 ] || echo namespace0.0 > $nd/drivers/nd_pmem/unbind
	cat /proc/sys/kernel/random/uuid > $nd/devices/dax0.0/uuid && echo ram > $nd/devices/dax0.0/mode &&
		echo 2097152 > $nd/devices/dax0.0/align && echo namespace0.0 > $nd/devices/dax0.0/namespace &&
		echo dax0.0 > $nd/drivers/dax_pmem/bind && wait_for 60 test -c /dev/dax0.0
}

ktap_header
[ -x "$PROGRAMS/flush" ] || { ktap_skip "persistence" "this rdma-core has no ibv_wr_flush"; ktap_end; }
grep -q 'memmap=' /proc/cmdline || { ktap_skip "persistence" "no memory to take for persistent: -k memmap=64M!1G"; ktap_end; }
{ pair_up && dax_up; } > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
both 310 18620 "$PROGRAMS/flush -d $ADEV -P /dev/dax0.0" "$PROGRAMS/flush -d $BDEV -c $AIP" > /tmp/both.log
ktap_relay $OUT_B flush $?
ktap_check "what is long waited for a worker" [ "$(counter "$ADEV" rx_fault_queued)" -ge 21 ]
ktap_check "it was told of persistence" grep -q "to persistence$" $OUT_B
ktap_end
