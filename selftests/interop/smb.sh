#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# SMB Direct between the kernel's SMB client and server: files are written, read back after the cache is dropped, and
# compared. No device is deleted meanwhile: in Linux 6.12 the client (smbd_conn_upcall()) then wakes wait queues that a new
# connection does not have yet.
#
#	client: mount -o rdma ---- roan1 on v1 ==== v2 on roan2 ---- server: ksmbd, port 445
#
# Both connect in the initial namespace only, and the server listens on IPv4 only. Its programs are unpacked in
# build/unpacked by tools/setup, or installed.
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
. "$HERE/one_namespace.sh"
. "$HERE/files.sh"
PATH=$PATH:$REPO/build/unpacked/ksmbd-tools/usr/sbin
MB=${MB:-16} MOUNT=/tmp/smb EXPORT=/tmp/share

start_server() {
	mkdir -p $EXPORT $MOUNT /etc/ksmbd && mount -t tmpfs t $EXPORT &&
		printf '[global]\n\tserver string = roan\n[share]\n\tpath = %s\n\tread only = no\n' $EXPORT > /etc/ksmbd/ksmbd.conf &&
		ksmbd.adduser -a roan -p roan && ksmbd.mountd && wait_for 60 listens
}
listens() { rdma resource show cm_id | grep LISTEN | grep -q :445; }
no_connection() { ! rdma resource show cm_id | grep -v LISTEN | grep -q :445; }

mount_share() {
	timeout 200 mount -i -t cifs "//$H2IP/share" $MOUNT -o "ip=$H2IP,rdma,vers=3.1.1,username=roan,password=roan"
}
# A client that is connected when its last mount goes may use its rdma_cm_id after freeing it: in Linux 6.12
# smbd_destroy() does not stop smbd_disconnect_rdma_work(), as newer kernels do. So it unmounts without a server.
unmount_share() { wait_for 60 no_connection && timeout 200 umount $MOUNT; }

# Both see all files.
client() { "$@"; }
server() { "$@"; }

# The client's device sends what is written, the server's what is read.
devices_carry() {
	local client server
	client=$(bytes_sent "$H1DEV") server=$(bytes_sent "$H2DEV")
	write_and_compare 1M || return
	client=$(($(bytes_sent "$H1DEV") - client)) server=$(($(bytes_sent "$H2DEV") - server))
	echo "sent $client and $server bytes, expected more than $((MB << 20))"
	[ "$client" -gt $((MB << 20)) ] && [ "$server" -gt $((MB << 20)) ]
}

ktap_header
for m in ksmbd cifs; do
	modinfo $m > /dev/null 2>&1 || { ktap_skip "SMB Direct" "this kernel has no $m"; ktap_end; }
done
for p in ksmbd.mountd ksmbd.adduser ksmbd.control; do
	command -v $p > /dev/null || { ktap_skip "SMB Direct" "no $p"; ktap_end; }
done
{ modprobe ksmbd && modprobe cifs && load_modules && local_addresses_last && join_ends 1 7; } > /tmp/setup.log 2>&1 ||
	{ cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
ktap_check "the server starts" start_server || ktap_end
if ktap_check "the client mounts" mount_share; then
	ktap_check "a file of $MB MiB is read back unchanged, 4 KiB at a time" write_and_compare 4k
	ktap_check "a file of $MB MiB is read back unchanged, and the devices sent it" devices_carry
	ktap_check "200 small files" many_small_files
fi
ktap_check "the server stops" ksmbd.control -s
ktap_check "the client unmounts" unmount_share
ktap_check "the client's module is unloaded" wait_for 60 modprobe -r cifs
ktap_check "the server's module is unloaded" wait_for 60 modprobe -r ksmbd
ktap_check "nothing is left" nothing_left
ktap_check "both devices are deleted" timeout 100 sh -c "rdma link del $H1DEV && rdma link del $H2DEV"
ktap_end
