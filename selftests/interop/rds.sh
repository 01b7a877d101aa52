#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# RDS, a kernel consumer: AF_RDS sockets send messages over a roan device, and the bytes are compared. RDS also checks
# that a successful post_send() leaves *bad_wr unchanged; if not, it panics.
#
#	v1 (10.7.0.1 and 10.7.0.3, roan1) =veth= v2	both ends in the first namespace: RDS over InfiniBand works in no other
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
OTHER=10.7.0.3
MIB=$((1 << 20))

device() {
	load_modules && ip link add v1 mtu 4200 type veth peer name v2 mtu 4200 && ip addr add $H1IP/24 dev v1 &&
		ip addr add $OTHER/24 dev v1 && ip link set v2 up && ip link set v1 up && link_add "$H1DEV" v1 &&
		wait_for 60 gid_index "$H1DEV" $H1IP && wait_for 60 gid_index "$H1DEV" $OTHER
}
# Counted in words of four bytes.
sent() { echo $((4 * $(cat "/sys/class/infiniband/$H1DEV/ports/1/counters/port_xmit_data"))); }
messages() { timeout 300 python3 "$HERE/rds.py" $H1IP $OTHER; }
by_device() { # BEFORE
	local n=$(($(sent) - $1))
	echo "$n bytes left the device"
	[ "$n" -gt $((2 * MIB)) ]
}

ktap_header
device > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
# Distributions forbid that a socket loads it; a name given in full is not an alias.
for m in rds rds_rdma; do
	modprobe $m || { ktap_skip "RDS" "this kernel has no $m"; ktap_end; }
done
before=$(sent)
ktap_check "messages both ways arrive as they were sent, over an InfiniBand connection" messages
ktap_check "they went through the device" by_device "$before"
ktap_check "the device goes while RDS is connected" timeout 100 rdma link del "$H1DEV"
ktap_check "RDS can be unloaded" modprobe -r rds_rdma
ktap_end
