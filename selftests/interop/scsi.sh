#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# SCSI over RDMA in the kernel, SRP and iSER: log in, write, read back, compare, log out; and devices are deleted while the
# initiator is logged in.
#
#	target ---- roan1 on v1 ==== v2 on roan2 ---- initiator		10.7.0.1, 10.7.0.2; fd07::1, fd07::2
#
# Both in the initial namespace, the only one of SRP's and iSER's targets.
#
# The iSCSI initiator's programs are unpacked in build/unpacked by tools/setup, or installed.
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
. "$HERE/one_namespace.sh"
. "$HERE/disk.sh"
UNPACKED=$REPO/build/unpacked
export PATH=$PATH:$UNPACKED/open-iscsi/sbin
export LD_LIBRARY_PATH=$UNPACKED/libopeniscsiusr/usr/lib/x86_64-linux-gnu:$UNPACKED/libisns0/usr/lib/x86_64-linux-gnu:${LD_LIBRARY_PATH:-}
TARGET=/sys/kernel/config/target
IQN=iqn.2026-01.org.roan:test
MB=${MB:-16}

# A disk of the target, in a file.
create_disk() {
	truncate -s "${MB}M" /tmp/disk && mkdir -p $TARGET/core/fileio_0/disk &&
		echo "fd_dev_name=/tmp/disk,fd_dev_size=$((MB << 20))" > $TARGET/core/fileio_0/disk/control &&
		echo 1 > $TARGET/core/fileio_0/disk/enable
}
export_disk() { mkdir -p "$1/lun/lun_0" && ln -s $TARGET/core/fileio_0/disk "$1/lun/lun_0/disk"; } # TARGET-PORT-GROUP
unexport_disk() { rm -f "$1/lun/lun_0/disk" && rmdir "$1/lun/lun_0"; }

disk() { lsblk -dnpo NAME,VENDOR | awk '$2 ~ /LIO-ORG/ { print $1; exit }'; }

# ---- SRP: the name of a target is the first GID of its port ----

guid() { tr -d : < "/sys/class/infiniband/$1/node_guid"; } # DEVICE
srp_group() {
	local gid
	gid=0x$(tr -d : < "/sys/class/infiniband/$H1DEV/ports/1/gids/0")
	echo "$TARGET/srpt/$gid/$gid"
}
# The initiator is allowed by its port's name: 8 bytes that it may choose, and the GUID of its port.
srp_acl() { echo "$(srp_group)/acls/0x0000000000000000$(guid "$H2DEV")"; }
srp_target() {
	mkdir -p "$(srp_group)" && export_disk "$(srp_group)" && mkdir "$(srp_acl)" "$(srp_acl)/lun_0" &&
		ln -s "$(srp_group)/lun/lun_0" "$(srp_acl)/lun_0/disk" && echo 1 > "$(srp_group)/enable"
}
srp_target_gone() {
	echo 0 > "$(srp_group)/enable" && rm "$(srp_acl)/lun_0/disk" && rmdir "$(srp_acl)/lun_0" "$(srp_acl)" &&
		unexport_disk "$(srp_group)" && rmdir "$(srp_group)" "$(dirname "$(srp_group)")"
}
srp_login() { # ADDRESS
	echo "id_ext=$(cat /sys/module/ib_srpt/parameters/srpt_service_guid | sed 's/^0x//'),ioc_guid=$(guid "$H1DEV"),dest=$(bracketed "$1"):5555" > \
		"/sys/class/infiniband_srp/srp-$H2DEV-1/add_target" && wait_for 60 have_disk
}
srp_logout() {
	local port
	for port in /sys/class/srp_remote_ports/port-*/delete; do
		echo 1 > "$port" || return
	done
	wait_for 60 no_disk
}

# ---- iSER ----

iser_group=$TARGET/iscsi/$IQN/tpgt_1
iser_target() { # ADDRESS
	local at
	at=$(bracketed "$1"):3260
	mkdir -p "$iser_group/np/$at" && echo 1 > "$iser_group/np/$at/iser" && export_disk $iser_group &&
		echo 0 > $iser_group/attrib/authentication && echo 1 > $iser_group/attrib/generate_node_acls &&
		echo 0 > $iser_group/attrib/demo_mode_write_protect && echo 1 > $iser_group/enable
}
iser_target_gone() {
	echo 0 > $iser_group/enable && unexport_disk $iser_group && rmdir $iser_group/np/* $iser_group ${iser_group%/*}
}
iscsid_up() {
	mkdir -p /etc/iscsi /run/lock/iscsi && echo "InitiatorName=$IQN-host" > /etc/iscsi/initiatorname.iscsi &&
		printf '%s\n' 'iscsid.startup = /bin/true' 'node.conn[0].timeo.noop_out_interval = 0' \
			'node.conn[0].timeo.noop_out_timeout = 0' 'node.conn[0].timeo.login_timeout = 100' > /etc/iscsi/iscsid.conf && iscsid
}
iser_login() { # ADDRESS
	local to
	to=$(bracketed "$1")
	timeout 100 iscsiadm -m node -o new -T $IQN -p "$to:3260,1" -I iser && timeout 200 iscsiadm -m node -T $IQN -p "$to:3260" -I iser -l &&
		wait_for 60 have_disk
}
iser_logout() { timeout 100 iscsiadm -m node -T $IQN -u && timeout 100 iscsiadm -m node -T $IQN -o delete && wait_for 60 no_disk; }

session() { # NAME PREFIX ADDRESS
	ktap_check "$1: the target is created" "$2_target" "$3" || return
	if ktap_check "$1: the initiator logs in" "$2_login" "$3"; then
		ktap_check "$1: 4 KiB writes are read back unchanged" write_and_compare 4096
		ktap_check "$1: 1 MiB writes are read back unchanged" write_and_compare 1048576
		ktap_check "$1: the initiator logs out" "$2_logout"
	fi
	ktap_check "$1: the target is removed" "$2_target_gone"
}

# A connection's QP goes after its cm_id.
no_connection() {
	local left
	left=$(rdma resource show cm_id && rdma resource show qp) && ! grep -vE 'state LISTEN|type GSI' <<< "$left" | grep .
}

protocol() { # NAME PREFIX: of the functions above
	local a
	for a in $H1IP $H1IP6; do
		session "$1, $a" "$2" "$a"
	done
	ktap_check "$1: the target is created, the initiator logs in" eval "$2_target $H1IP && $2_login $H1IP"
	ktap_check "$1: the initiator's device is deleted while it is logged in" timeout 100 rdma link del "$H2DEV"
	ktap_check "$1: the disk is gone" wait_for 60 no_disk
	ktap_check "$1: no connection is left" wait_for 60 no_connection
	ktap_check "$1: the initiator's device is made again" add_device 2 7 2
}

ktap_header
modprobe -q configfs
mount -t configfs c /sys/kernel/config 2> /dev/null
modprobe target_core_file && modprobe -q sd_mod || { ktap_skip "SCSI" "this kernel has no SCSI target"; ktap_end; }
{ load_modules && local_addresses_last && join_ends 1 7 && create_disk; } > /tmp/setup.log 2>&1 ||
	{ cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
if modprobe ib_srpt && modprobe ib_srp; then
	mkdir -p $TARGET/srpt && echo 5555 > $TARGET/srpt/discovery_auth/rdma_cm_port
	protocol SRP srp
	ktap_check "SRP: the initiator logs in again" srp_login $H1IP
	ktap_check "SRP: the target's device is deleted while the initiator is logged in" timeout 100 rdma link del "$H1DEV"
	ktap_check "SRP: the initiator's device is deleted, the disk is gone" eval "timeout 100 rdma link del $H2DEV && wait_for 60 no_disk"
	ktap_check "both devices are made again" eval "add_device 1 7 1 && add_device 2 7 2"
else
	ktap_skip "SRP" "this kernel has no ib_srpt or ib_srp"
fi
if modprobe ib_isert && modprobe ib_iser && command -v iscsid > /dev/null; then
	ktap_check "iscsid starts" iscsid_up
	protocol iSER iser
	# Not while an initiator is logged in: isert_cma_handler() frees the connection if its release has begun, and the
	# release goes on to use it (Linux 6.12). To delete the device begins it.
	ktap_check "iSER: the target is removed" iser_target_gone
else
	ktap_skip "iSER" "no ib_isert, ib_iser or iscsid"
fi
ktap_check "both devices are deleted afterwards" eval "timeout 100 rdma link del $H1DEV && timeout 100 rdma link del $H2DEV"
ktap_end
