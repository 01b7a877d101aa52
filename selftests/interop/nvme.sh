#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The kernel's NVMe over RDMA target and host on one roan device: connect, write, read back, compare, disconnect. With
# ib_core.force_mr=1 on the kernel's command line, the target registers memory (REG_MR) for each transfer.
#
#	v1 (10.7.0.1, roan1) =veth= v2	both ends in the initial namespace, the only one that nvme-rdma uses
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
. "$HERE/disk.sh"
NQN=nqn.2026-01.org.roan:test
CFG=/sys/kernel/config/nvmet
MB=${MB:-32}

create_target() {
	local s=$CFG/subsystems/$NQN n p=$CFG/ports/1
	n=$s/namespaces/1
	dd if=/dev/zero of=/tmp/disk bs=1M count="$MB" 2> /dev/null && LOOP=$(losetup -f --show /tmp/disk) || return
	mkdir -p "$s" && echo 1 > "$s/attr_allow_any_host" && mkdir -p "$n" && echo -n "$LOOP" > "$n/device_path" &&
		echo 1 > "$n/enable" || return
	mkdir -p "$p" && echo "$1" > $p/addr_traddr && echo rdma > $p/addr_trtype && echo 4420 > $p/addr_trsvcid &&
		echo "$2" > $p/addr_adrfam && ln -s "$s" "$p/subsystems/$NQN"
}
remove_target() {
	rm -f $CFG/ports/1/subsystems/$NQN
	rmdir $CFG/ports/1 && echo 0 > $CFG/subsystems/$NQN/namespaces/1/enable && rmdir $CFG/subsystems/$NQN/namespaces/1 &&
		rmdir $CFG/subsystems/$NQN || return
	losetup -d "$LOOP"
}
disk() { nvme list 2> /dev/null | awk '$1 ~ /^\/dev\/nvme/ { print $1; exit }'; }
# -k: the target ends a connection of which it hears nothing for so long, in a guest that stands still, too.
connect() { timeout 200 nvme connect -k 120 -t rdma -n $NQN -a "$1" -s 4420 -i 2 && wait_for 60 have_disk; }

ktap_header
for m in nvmet-rdma nvme-rdma loop; do
	modprobe $m 2> /dev/null || { ktap_skip "nvme" "this kernel has no $m"; ktap_end; }
done
command -v nvme > /dev/null || { ktap_skip "nvme" "nvme-cli is not installed"; ktap_end; }
mount -t configfs c /sys/kernel/config 2> /dev/null
load_modules && ip link add v1 mtu 4200 type veth peer name v2 mtu 4200 && ip addr add $H1IP/24 dev v1 &&
	ip addr add $H1IP6/64 dev v1 nodad && ip link set v2 up && ip link set v1 up && link_add "$H1DEV" v1 ||
	{ ktap_fail "set-up"; ktap_end; }
for a in $H1IP $H1IP6; do
	wait_for 60 gid_index "$H1DEV" "$a"
done
for a in "$H1IP ipv4" "$H1IP6 ipv6"; do
	set -- $a
	create_target "$1" "$2" > /tmp/target.log 2>&1 || { cat /tmp/target.log; ktap_fail "$2: the target is created"; break; }
	ktap_check "$2: the host connects" connect "$1"
	if have_disk; then
		ktap_check "$2: 4 KiB writes are read back unchanged" write_and_compare 4096
		ktap_check "$2: 1 MiB writes are read back unchanged" write_and_compare 1048576
		ktap_check "$2: the host disconnects" timeout 200 nvme disconnect -n $NQN
	fi
	ktap_check "$2: the target is removed" remove_target
done
ktap_check "the RDMA device is deleted afterwards" timeout 100 rdma link del "$H1DEV"
ktap_end
