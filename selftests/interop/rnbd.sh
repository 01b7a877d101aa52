#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# RNBD, the kernel's block devices over RDMA, and RTRS below it: map, write, read back, compare, unmap; with two paths, one
# of which is lost and comes back while a program writes.
#
#	client: roan1 on v1 ==== v2 on roan2: server	10.7.0.1, 10.7.0.2; fd07::1, fd07::2
#	        roan3 on v3 ==== v4 on roan4		10.8.0.1, 10.8.0.2, the second path
#
# RTRS connects in the initial namespace only.
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
. "$HERE/one_namespace.sh"
. "$HERE/disk.sh"
MB=${MB:-16}
INVALIDATE=${INVALIDATE:-Y}	# the default: for each request the server invalidates and registers its buffer again
CLIENT=/sys/class/rnbd-client/ctl
PATHS=/sys/class/rtrs-client/test/paths

create_disk() { truncate -s "${MB}M" /tmp/disk && losetup -f --show /tmp/disk > /tmp/loop; }
load_server() { modprobe rtrs_server always_invalidate="$INVALIDATE" sess_queue_depth=128 && modprobe rnbd_server; }
unload() {
	local m
	for m in rnbd_client rtrs_client rnbd_server rtrs_server rtrs_core; do
		rmmod $m || return
	done
}

disk() {
	local link
	for link in $CLIENT/devices/*@test; do
		[ ! -e "$link" ] || echo "/dev/$(basename "$(readlink "$link")")"
	done
}
map_disk() { # "SOURCE DESTINATION"...: one or more paths
	local words path
	words="sessname=test device_path=$(cat /tmp/loop)"
	for path; do
		words+=" path=ip:${path% *}@ip:${path#* }"
	done
	echo "$words" > $CLIENT/map_device && wait_for 60 test -b "$(disk)"
}
unmap_disk() { # normal|force
	echo "$1" > "/sys/block/$(basename "$(disk)")/rnbd/unmap_device" && wait_for 60 no_disk && wait_for 60 test ! -e $PATHS
}

# The client's device sends what is written, the server's what is read: half of the disk each.
devices_carry() { # CLIENT-DEVICE SERVER-DEVICE BYTES
	local client server
	client=$(bytes_sent "$1") server=$(bytes_sent "$2")
	write_and_compare 65536 || return
	client=$(($(bytes_sent "$1") - client)) server=$(($(bytes_sent "$2") - server))
	echo "sent $client and $server bytes, expected more than $3"
	[ "$client" -gt "$3" ] && [ "$server" -gt "$3" ]
}
# Small requests, so that some are under way at any time.
write_until() { # FILE: it ends the writing
	local n=0
	until [ -e "$1" ]; do
		write_and_compare 16384 || return
		n=$((n + 1))
	done
	echo "written $n times"
	[ $n -gt 0 ] && write_and_compare 65536
}
path_dir() { echo "$PATHS/ip:$1@ip:$2"; }
path_is() { [ "$(cat "$(path_dir "$2" "$3")/state")" = "$1" ]; } # STATE SOURCE DESTINATION
# The other path carries the requests meanwhile.
device_replaced() { # N LAST: roanN with 10.7.0.LAST
	local pid
	rm -f /tmp/enough
	write_until /tmp/enough > /tmp/write.log 2>&1 & pid=$!
	sleep 1
	timeout 100 rdma link del "$LINK_TYPE$1" && wait_for 60 path_is disconnected $H1IP $H2IP && sleep 1 && add_device "$1" 7 "$2" &&
		{ [ "$2" = 2 ] || echo 1 > "$(path_dir $H1IP $H2IP)/reconnect"; } && wait_for 100 path_is connected $H1IP $H2IP && sleep 1
	set -- $?
	touch /tmp/enough
	wait $pid || set -- 1
	cat /tmp/write.log
	return "$1"
}

session() { # NAME SOURCE DESTINATION
	ktap_check "$1: the client maps the disk" map_disk "$2 $3" || return
	ktap_check "$1: 4 KiB writes are read back unchanged" write_and_compare 4096
	ktap_check "$1: 1 MiB writes are read back unchanged" write_and_compare 1048576
	ktap_check "$1: the devices sent the data" devices_carry "$H1DEV" "$H2DEV" $((MB << 19))
	ktap_check "$1: the client unmaps the disk" unmap_disk normal
}

two_paths() {
	local quarter=$((MB << 17))
	ktap_check "two paths: the client maps the disk" map_disk "$H1IP $H2IP" "10.8.0.1 10.8.0.2" || return
	echo round-robin > $PATHS/../mpath_policy
	ktap_check "two paths: the first carries data" devices_carry "$H1DEV" "$H2DEV" $quarter
	ktap_check "two paths: the second carries data" devices_carry "${LINK_TYPE}3" "${LINK_TYPE}4" $quarter
	ktap_check "two paths: the server's device is deleted and made again while a program writes" device_replaced 2 2
	ktap_check "two paths: the client's device is deleted and made again while a program writes" device_replaced 1 1
	ktap_check "two paths: the first carries data again" devices_carry "$H1DEV" "$H2DEV" $quarter
	ktap_check "two paths: the client unmaps the disk" unmap_disk normal
}

# Requests fail then, and nothing waits for ever.
last_path_lost() {
	timeout 100 rdma link del "$H1DEV" && timeout 100 rdma link del "$H2DEV" || return
	timeout 100 dd if=/dev/zero of="$(disk)" bs=4k count=1 oflag=direct 2>&1
	[ $? = 1 ] && unmap_disk force
}

ktap_header
for m in loop rnbd_client rtrs_server rnbd_server; do
	modinfo $m > /dev/null 2>&1 || { ktap_skip "RNBD" "this kernel has no $m"; ktap_end; }
done
{ modprobe loop && modprobe rnbd_client && load_modules && local_addresses_last && join_ends 1 7 && join_ends 3 8 && create_disk; } > \
	/tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
ktap_check "the server's modules are loaded, always_invalidate=$INVALIDATE" load_server || ktap_end
session IPv4 $H1IP $H2IP
session IPv6 $H1IP6 $H2IP6
two_paths
if ktap_check "one path: the client maps the disk" map_disk "$H1IP $H2IP"; then
	ktap_check "one path: its devices are deleted, writes fail, the disk is unmapped" last_path_lost
fi
ktap_check "all modules are unloaded" unload
ktap_check "nothing is left" nothing_left
ktap_check "the other devices are deleted" timeout 100 sh -c "rdma link del ${LINK_TYPE}3 && rdma link del ${LINK_TYPE}4"
ktap_end
