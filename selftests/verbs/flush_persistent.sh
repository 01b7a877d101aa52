#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# FLUSH to persistence of persistent memory: guest memory that the kernel was told by memmap= to treat as persistent, as
# a DAX device that programs can map. Checks access rights and completions; it cannot see whether caches were written
# back.
#
#	h1: roan1, /dev/dax0.0 ======== roan2 :h2
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
. "$HERE/pair.sh"

# Turns the raw namespace that the kernel made into a DAX device whose struct pages are in ordinary memory.
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
grep -q 'memmap=' /proc/cmdline || { ktap_skip "persistence" "no persistent memory: boot with -k memmap=64M!1G"; ktap_end; }
{ pair_up && dax_up; } > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
both 310 18620 "$PROGRAMS/flush -d $ADEV -P /dev/dax0.0" "$PROGRAMS/flush -d $BDEV -c $AIP" > /tmp/both.log
ktap_relay $OUT_B flush $?
ktap_check "long flushes waited for a worker" [ "$(counter "$ADEV" rx_fault_queued)" -ge 21 ]
ktap_check "completions were for FLUSH to persistence" grep -q "to persistence$" $OUT_B
ktap_end
