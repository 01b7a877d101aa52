#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The kernel's NFS 4.2 client and server over RDMA, each in a network namespace of its own, as containers have them: files are
# written, read back after the cache is dropped, and compared; the client's device is deleted and made again while it writes.
#
#	h1: client, mount -o proto=rdma ---- v1, roan1 ==veth== roan2, v2 ---- h2: nfsd, port 20049
#
# The server's programs are unpacked in build/unpacked by tools/setup, or installed.
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
. "$HERE/../verbs/pair.sh"
. "$HERE/files.sh"
PATH=$PATH:$REPO/build/unpacked/nfs-kernel-server/usr/sbin
MB=${MB:-16} MOUNT=/tmp/nfs EXPORT=/tmp/export

# A process of each host that sleeps holds its mounts: client COMMAND and server COMMAND see them.
hosts_up() {
	"${A[@]}" sleep 10000 & CLIENT=$!
	"${B[@]}" sleep 10000 & SERVER=$!
	mkdir -p $EXPORT $MOUNT && wait_for 60 separate $CLIENT && wait_for 60 separate $SERVER
}
separate() { [ "$(readlink /proc/"$1"/ns/mnt)" != "$(readlink /proc/$$/ns/mnt)" ] && grep -q sleep "/proc/$1/comm"; }
client() { nsenter -t $CLIENT -n -m "$@"; }
server() { nsenter -t $SERVER -n -m "$@"; }

# Without the grace period of 90 s, in which a server lets clients of its last life reclaim their locks.
start_server() {
	mkdir -p /var/lib/nfs/v4recovery && touch /var/lib/nfs/etab /var/lib/nfs/rmtab &&
		echo "$EXPORT *(rw,no_root_squash,no_subtree_check,insecure,fsid=0)" > /etc/exports || return
	server mount -t tmpfs t $EXPORT && server mount -t nfsd n /proc/fs/nfsd && server sh -c 'echo 10 > /proc/fs/nfsd/nfsv4leasetime
		echo 10 > /proc/fs/nfsd/nfsv4gracetime' && server exportfs -a &&
		server rpc.mountd -N 3 && server rpc.nfsd -N 3 --rdma=20049 2 && server grep -q "^rdma 20049" /proc/fs/nfsd/portlist
}
stop_server() { server rpc.nfsd 0 && server pkill -x rpc.mountd; }

# By the kernel's own options: mount.nfs would only look the addresses up.
mount_export() { # CLIENT-ADDRESS SERVER-ADDRESS
	client timeout 200 mount -i -t nfs4 -o "vers=4.2,sec=sys,proto=rdma$3,port=20049,addr=$2,clientaddr=$1" "$(bracketed "$2"):/" $MOUNT
}
unmount_export() { client timeout 200 umount $MOUNT; }

by_rdma() { client grep -A30 "$MOUNT" "/proc/$CLIENT/mountstats" | grep -q "xprt:.*rdma" && [ $(($(bytes_sent "$ADEV") - BEFORE)) -gt $((MB << 20)) ]; }

# What a client writes in segments of 128 KiB the server READs in one request each: it has computed the length of its send
# queue so. By its tracepoint.
TRACE=/tmp/trace
READS=events/rpcrdma/svcrdma_post_read_chunk/enable
trace_reads() { mkdir -p $TRACE && { mountpoint -q $TRACE || mount -t tracefs t $TRACE; } && echo 1 > $TRACE/$READS; } 2> /dev/null
few_reads() {
	[ -e $TRACE/$READS ] || return 4
	awk -v mb="$MB" 'sub(".*svcrdma_post_read_chunk:.*sqecount=", "") { n += $1; calls++ } END {
		print n, "READs for", calls, "calls,", mb, "MiB"; exit calls == 0 || n > 12 * mb }' $TRACE/trace
}

device_replaced() { timeout 100 rdma link del "$ADEV" && link_add "$ADEV" v1 h1; }
# If the client connects again while rdma_cm removes the device, rdma_resolve_route() returns EINVAL, and Linux 6.12's client
# reports that to the program that writes, instead of trying again as after other errors. Only that error allows a second try.
write_while_device_replaced() {
	write_while device_replaced || { grep -q "Invalid argument" /tmp/write.log && write_while device_replaced; }
}

ktap_header
for m in nfsd nfsv4 rpcrdma; do
	modprobe $m 2> /dev/null || { ktap_skip "NFS" "this kernel has no $m"; ktap_end; }
done
for p in rpc.nfsd rpc.mountd exportfs; do
	command -v $p > /dev/null || { ktap_skip "NFS" "no $p"; ktap_end; }
done
{ pair_up && hosts_up; } > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
ktap_check "the server starts in its namespace" start_server || ktap_end
trace_reads
for family in "IPv4 $AIP $BIP" "IPv6 $AIP6 $BIP6 6"; do
	# shellcheck disable=SC2086
	set -- $family
	BEFORE=$(bytes_sent "$ADEV")
	ktap_check "$1: the client mounts" mount_export "$2" "$3" "${4:-}" || break
	ktap_check "$1: a file of $MB MiB is read back unchanged" write_and_compare 1M
	ktap_check "$1: the mount uses RDMA, and the device sent the file" by_rdma
	[ "$1" != IPv4 ] || ktap_check "$1: the server READs 128 KiB at a time" few_reads
	ktap_check "$1: 200 small files" many_small_files
	ktap_check "$1: the client's device is deleted and made again while it writes" write_while_device_replaced
	ktap_check "$1: the client unmounts" unmount_export
	server sh -c "rm -r $EXPORT/*"
done
ktap_check "the server stops" stop_server
ktap_check "both devices are deleted" timeout 100 sh -c "rdma link del $ADEV && rdma link del $BDEV"
ktap_end
