#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# SMC-R, an RDMA user in the kernel: AF_SMC sockets of two hosts talk over roan devices, and the bytes are compared. SMC
# has one send CQ and one receive CQ for all QPs of a device, and destroys QPs while others work on.
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
MIB=$((1 << 20))

set_up() {
	two_hosts && wait_for 60 gid_index "$H1DEV" $H1IP h1 && wait_for 60 gid_index "$H2DEV" $H2IP h2 &&
		python3 "$HERE/smc.py" eid
}
talk() { # N [cut]
	rm -f /tmp/serve.log	# the file may be of an earlier run
	on h2 timeout 300 python3 "$HERE/smc.py" serve $H2IP "$1" > /tmp/serve.log 2>&1 &
	wait_for 60 grep -q ready /tmp/serve.log && on h1 timeout 300 python3 "$HERE/smc.py" talk $H2IP "$@"
}
devices_sent() { # BEFORE: bytes sent before
	local n=$(($(bytes_sent "$H1DEV") + $(bytes_sent "$H2DEV") - $1))
	echo "the devices sent $n bytes, expected more than $((16 * MIB))"
	[ "$n" -gt $((16 * MIB)) ]
}
# If a buffer cannot be registered, the connection uses TCP.
buffers_of() { # MEBIBYTES
	local h
	for h in h1 h2; do
		on $h sysctl -q -w net.smc.rmem=$(($1 * MIB)) || return
	done
	in_three_attempts by_devices
}
# SMC waits 2 to 6 s for its peer's answer, then uses TCP.
by_devices() {
	local before
	before=$(($(bytes_sent "$H1DEV") + $(bytes_sent "$H2DEV")))
	talk 4 || return 2
	devices_sent "$before"
}
# Buffers above 4 MiB, with pages of 4 KiB, are contiguous in virtual memory only. A link group has buffers of the type that
# is set at its creation, in the namespace of the RDMA device.
virtual_buffers() {
	wait_for 60 modprobe -r smc && modprobe smc && python3 "$HERE/smc.py" eid && sysctl -q -w net.smc.smcr_buf_type=1 || return
	buffers_of 64
}
has_smc_qps() { rdma resource show qp | grep -q 'type RC .*comm \[smc\]'; }

ktap_header
modprobe smc || { ktap_skip "SMC-R" "this kernel has no smc"; ktap_end; }
load_modules && set_up > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
ktap_check "what comes back on 4 connections is what was sent; the devices sent it, not TCP" in_three_attempts by_devices
ktap_check "20 connections are closed while data is on its way" talk 20 cut
ktap_check "connections with receive buffers of 4 MiB use the devices" buffers_of 4
ktap_check "connections with receive buffers of 64 MiB, of separate pages, use the devices" virtual_buffers
ktap_check "SMC has QPs" has_smc_qps
ktap_check "an RDMA device is deleted while SMC has QPs on it" timeout 100 rdma link del "$H1DEV"
ktap_check "the peer's device is deleted" timeout 100 rdma link del "$H2DEV"
ktap_check "the module smc is unloaded" wait_for 60 modprobe -r smc
ktap_end
