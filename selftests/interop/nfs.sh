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
PATH=$PATH:$REPO/build/unpacked/nfs-kernel-server/usr/sbin
MB=${MB:-16}

# A process of each host that sleeps holds its mounts: client COMMAND and server COMMAND see them.
hosts_up() {
	"${A[@]}" sleep 10000 & CLIENT=$!
	"${B[@]}" sleep 10000 & SERVER=$!
	mkdir -p /tmp/export /tmp/nfs && wait_for 10 separate $CLIENT && wait_for 10 separate $SERVER
}
separate() { [ "$(readlink /proc/"$1"/ns/mnt)" != "$(readlink /proc/$$/ns/mnt)" ] && grep -q sleep "/proc/$1/comm"; }
client() { nsenter -t $CLIENT -n -m "$@"; }
server() { nsenter -t $SERVER -n -m "$@"; }

# Without the grace period of 90 s, in which a server lets clients of its last life reclaim their locks.
start_server() {
	mkdir -p /var/lib/nfs/v4recovery && touch /var/lib/nfs/etab /var/lib/nfs/rmtab &&
		echo "/tmp/export *(rw,no_root_squash,no_subtree_check,insecure,fsid=0)" > /etc/exports || return
	server mount -t tmpfs t /tmp/export && server mount -t nfsd n /proc/fs/nfsd && server sh -c 'echo 10 > /proc/fs/nfsd/nfsv4leasetime
		echo 10 > /proc/fs/nfsd/nfsv4gracetime' && server exportfs -a &&
		server rpc.mountd -N 3 && server rpc.nfsd -N 3 --rdma=20049 2 && server grep -q "^rdma 20049" /proc/fs/nfsd/portlist
}
stop_server() { server rpc.nfsd 0 && server pkill -x rpc.mountd; }

# By the kernel's own options: mount.nfs would only look the addresses up.
mount_export() { # CLIENT-ADDRESS SERVER-ADDRESS
	client timeout 200 mount -i -t nfs4 -o "vers=4.2,sec=sys,proto=rdma$3,port=20049,addr=$2,clientaddr=$1" "$(bracketed "$2"):/" /tmp/nfs
}
unmount_export() { client timeout 200 umount /tmp/nfs; }

fill() { # NAME MIB
	timeout 500 dd if=/dev/urandom of="/tmp/$1" bs=1M count="$2" 2> /dev/null
}
write_file() { client timeout 500 dd if="/tmp/$1" of="/tmp/nfs/$1" bs="$2" conv=fsync 2>&1; } # NAME BYTES
same() { # NAME: what the server has, and what the client reads
	server cmp "/tmp/$1" "/tmp/export/$1" && echo 3 > /proc/sys/vm/drop_caches &&
		client timeout 500 cmp "/tmp/$1" "/tmp/nfs/$1"
}
write_and_compare() { fill file "$MB" && write_file file 1M && same file; }
many_small_files() {
	client timeout 500 sh -c 'mkdir /tmp/nfs/many && for i in $(seq 200); do echo "file $i" > /tmp/nfs/many/$i; done' &&
		[ "$(server cat /tmp/export/many/{1..200} | sort -u | wc -l)" = 200 ]
}
# Bytes sent by a device. The counter has units of four bytes.
sent() { echo $((4 * $(cat "/sys/class/infiniband/$1/ports/1/counters/port_xmit_data"))); }
by_rdma() { client grep -A30 "/tmp/nfs" "/proc/$CLIENT/mountstats" | grep -q "xprt:.*rdma" && [ "$(sent "$ADEV")" -gt $((MB << 20)) ]; }

# The client waits for the device, and goes on over the new one.
write_until() { # FILE: it ends the writing
	until [ -e "$1" ]; do
		write_file again 64k || return
	done
	write_file again 64k
}
device_replaced() {
	local pid
	fill again "$MB" || return
	rm -f /tmp/enough
	write_until /tmp/enough > /tmp/write.log 2>&1 & pid=$!
	sleep 1
	timeout 100 rdma link del "$ADEV" && link_add "$ADEV" v1 h1
	set -- $?
	touch /tmp/enough
	wait $pid && [ "$1" = 0 ] && same again || { cat /tmp/write.log; return 1; }
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
for family in "IPv4 $AIP $BIP" "IPv6 $AIP6 $BIP6 6"; do
	# shellcheck disable=SC2086
	set -- $family
	ktap_check "$1: the client mounts" mount_export "$2" "$3" "${4:-}" || break
	ktap_check "$1: a file of $MB MiB is read back unchanged" write_and_compare
	ktap_check "$1: the mount uses RDMA, and the device sent the file" by_rdma
	ktap_check "$1: 200 small files" many_small_files
	ktap_check "$1: the client's device is deleted and made again while it writes" device_replaced
	ktap_check "$1: the client unmounts" unmount_export
	server sh -c 'rm -r /tmp/export/*'
done
ktap_check "the server stops" stop_server
ktap_check "both devices are deleted" timeout 100 sh -c "rdma link del $ADEV && rdma link del $BDEV"
ktap_end
