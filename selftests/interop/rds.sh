#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# RDS, an RDMA user in the kernel: AF_RDS sockets send messages over a roan device, and the bytes are compared. RDS panics
# if a successful post_send() changes *bad_wr, so this test also checks that.
#
#	v1 (10.7.0.1 and 10.7.0.3, roan1) =veth= v2	both ends in the initial namespace: RDS over InfiniBand works in no other
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
OTHER=10.7.0.3
MIB=$((1 << 20))

device() {
	load_modules && ip link add v1 mtu 4200 type veth peer name v2 mtu 4200 && ip addr add $H1IP/24 dev v1 &&
		ip addr add $OTHER/24 dev v1 && ip link set v2 up && ip link set v1 up && link_add "$H1DEV" v1 &&
		wait_for 60 gid_index "$H1DEV" $H1IP && wait_for 60 gid_index "$H1DEV" $OTHER
}
messages() { timeout 300 python3 "$HERE/rds.py" $H1IP $OTHER; }
device_sent() { # BEFORE: bytes sent before the messages
	local n=$(($(bytes_sent "$H1DEV") - $1))
	echo "the device sent $n bytes, expected more than $((2 * MIB))"
	[ "$n" -gt $((2 * MIB)) ]
}

ktap_header
device > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
# Distributions blacklist the alias by which socket() would load rds. modprobe still loads a module by its own name.
for m in rds rds_rdma; do
	modprobe $m || { ktap_skip "RDS" "this kernel has no $m"; ktap_end; }
done
before=$(bytes_sent "$H1DEV")
ktap_check "messages in both directions arrive unchanged, over an RDS InfiniBand connection" messages
ktap_check "the device sent the messages" device_sent "$before"
ktap_check "the RDMA device is deleted while RDS is connected" timeout 100 rdma link del "$H1DEV"
ktap_check "the module rds_rdma is unloaded" modprobe -r rds_rdma
ktap_end
