#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Page faults that never end: a user has on-demand memory whose pages are never supplied. Other users' faults are
# served, and all objects of that user, and the device, can be removed meanwhile.
#
#	user 1001	odp_users stall: WRITEs to pages of a file that are never there	-+
#	user 1002	odp_users probe: WRITEs and READs of ordinary absent pages	-+-- roan2, on v2 in h2
#
# The file is on a FUSE file system whose server does not answer (stuck_fuse.c), which needs no privilege. Where the
# kernel lacks FUSE: on a frozen file system.
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
USERS=$PROGRAMS/odp_users FOLDER=/tmp/stuck
LIMIT=${LIMIT:-60}	# s: for what takes less than one on an idle machine, and for ever if it waits for the fault
FILE=0	# each case has a file of its own, as pages that were supplied once stay

stuck_up() {
	mkdir -p $FOLDER
	modprobe -q fuse
	if [ -c /dev/fuse ]; then
		"$PROGRAMS/stuck_fuse" $FOLDER > /tmp/fuse.log 2>&1 &
		FUSE=$!
		wait_for 20 mountpoint -q $FOLDER
		return
	fi
	modprobe -q loop
	truncate -s 100M /tmp/stuck.img && mkfs.ext2 -qF /tmp/stuck.img && mount -o loop /tmp/stuck.img $FOLDER &&
		truncate -s 64M $FOLDER/file{0..7} && chmod 666 $FOLDER/file*
}
supply() { if [ -n "${FUSE:-}" ]; then kill -USR1 "$FUSE"; else fsfreeze -u $FOLDER; fi 2> /dev/null; }
withhold() { if [ -n "${FUSE:-}" ]; then kill -USR2 "$FUSE"; else fsfreeze -f $FOLDER; fi; }

# Starts stall and waits until its faults wait. ktap_check runs functions in a subshell: the process id is in a file.
stalled() { # OPTIONS
	local before
	withhold && before=$(counter $H2DEV rx_fault_queued) || return
	rm -f /tmp/stall.log	# the file may be of an earlier case
	"$USERS" stall -d $H2DEV -f $FOLDER/file$FILE -u 1001 "$@" > /tmp/stall.log 2>&1 &
	echo $! > /tmp/stall.pid
	wait_for 120 grep -q posted /tmp/stall.log || { cat /tmp/stall.log; return 1; }
	wait_for 60 queued_since "$before"
}
queued_since() { [ "$(counter $H2DEV rx_fault_queued)" -gt "$1" ]; }
settled() { # NAME: waits until a counter stands still
	local now before=''
	while now=$(counter $H2DEV "$1") && [ "$now" != "$before" ]; do
		before=$now
		sleep 1
	done
}
probe() { timeout -k 5 90 "$USERS" probe -d $H2DEV -u 1002 "$@"; }	# a later -u is another user
stall_pid() { cat /tmp/stall.pid; }
# A zombie is gone: its parent is this script.
# A fault of more than 50 ms may also cost an RNR retry, on a slow machine; a full queue does at each attempt.
tries() { # N COMMAND...
	local n
	for ((n = $1; n > 0; n--)); do "${@:2}" && return; done
	return 1
}
gone() { [ ! -e "/proc/$1" ] || grep -q '^State:.Z' "/proc/$1/status"; }
killed() { # the last program of stalled
	kill -9 "$(stall_pid)" || return
	wait_for "$LIMIT" gone "$(stall_pid)" || { cat "/proc/$(stall_pid)/stack"; return 1; }
}
no_device() { ! rdma dev show "$1" > /dev/null 2>&1; }
no_netdev() { ! ip link show "$1" > /dev/null 2>&1; }
# Faults end, so that the next case starts with none.
over() {
	FILE=$((FILE + 1))
	kill -9 "$(stall_pid)" 2> /dev/null
	supply
	wait_for 120 gone "$(stall_pid)" && wait_for 120 idle || ktap_fail "... everything ends when the fault does"
}
idle() { [ -z "$(rdma resource show qp 2> /dev/null | grep -v 'type GSI')" ]; }

printed() {
	wait_for "$LIMIT" grep -q "$1" /tmp/stall.log || { cat /tmp/stall.log "/proc/$(stall_pid)/stack"; return 1; }
}
link_goes() {
	rdma link del $H2DEV &
	wait_for "$LIMIT" no_device $H2DEV && wait_for "$LIMIT" gone $! || { cat /proc/$!/stack; return 1; }
}
new_device() { link_add $H2DEV v2 h2 && probe -u 1001 -n 10; }
netns_goes() {
	ip netns del h2
	wait_for "$LIMIT" no_device $H2DEV || { echo "the device is there"; return 1; }
	wait_for "$LIMIT" on h1 sh -c '! ip link show v1' || { echo "the netdev is there"; return 1; }
	# Namespaces are destroyed one after the other: another one's end must not wait.
	ip netns add h3 && ip link add o1 type veth peer name o3 netns h3 && ip netns del h3
	wait_for "$LIMIT" no_netdev o1 || { echo "another namespace waits"; return 1; }
}
refused_to_unload() {
	local out
	out=$(timeout "$LIMIT" rmmod roan 2>&1) && { echo "it was unloaded"; return 1; }
	echo "$out"
	grep -q 'in use' <<< "$out"
}
users_pages() { # userfaultfd
	echo 1 > /proc/sys/vm/unprivileged_userfaultfd
	rm -f /tmp/stall.log
	"$USERS" uffd -d $H2DEV -u 1001 -n 20 > /tmp/stall.log 2>&1 &
	echo $! > /tmp/stall.pid
	wait_for 60 grep -q 'posted\|userfaultfd' /tmp/stall.log
	! grep -q userfaultfd: /tmp/stall.log || return 4
	settled rx_fault_queued
	probe -n 10 && killed
}
first_of_two() {
	local out rc
	out=$("$USERS" first -d $H2DEV -u 1001 -t 20000)
	rc=$?
	echo "$out"
	[ $rc != 4 ] || return 4
	grep -q '^WRITE: success' <<< "$out"
}
unreadable() {
	local out
	kill -HUP "$FUSE"
	out=$(timeout -k 5 90 "$USERS" unreadable -d $H2DEV -f $FOLDER/file$FILE -u 1001 -t 20000)
	echo "$out"
	[ "$out" = "WRITE: remote access error
prefetch: Bad address" ]
}
# What a fault would allocate now is charged to no cgroup, and no process could be killed to free it.
nothing_more() {
	local out
	grep -q '^memory' /proc/cgroups || return 4
	withhold
	out=$(timeout -k 5 90 "$USERS" killed -d $H2DEV -f $FOLDER/file$FILE -u 1001 -b 16777216 -t 20000)
	echo "$out"
	grep -q '^WRITE: remote access error$' <<< "$out" && [ "$(sed -n 's/^memory grew by \(-*[0-9]*\) KiB/\1/p' <<< "$out")" -lt 4096 ]
}
unreclaimable() { awk '/^SUnreclaim/ { print $2 }' /proc/meminfo; }
little_is_queued() {
	local before grown
	withhold && before=$(unreclaimable) || return
	"$USERS" flood -d $H2DEV -f $FOLDER/file$FILE -u 1001 -c 1 -t 600000 > /tmp/stall.log 2>&1 &
	echo $! > /tmp/stall.pid
	sleep 20
	kill -0 "$(stall_pid)" || { cat /tmp/stall.log; return 1; }
	grown=$(($(unreclaimable) - before))
	echo "kernel memory grew by $grown KiB"
	echo "# kernel memory grew by $grown KiB" >&3
	[ $grown -lt 8192 ] && probe -n 10
}

exec 3>&1
ktap_header
[ "$LINK_TYPE" = roan ] || { ktap_skip "stuck faults" "rdma_rxe has a lock per region"; ktap_end; }
{ load_modules && two_hosts && stuck_up && chmod 666 /dev/infiniband/*; } > /tmp/setup.log 2>&1 ||
	{ cat /tmp/setup.log /tmp/fuse.log; ktap_fail "set-up"; ktap_end; }
ktap_check "without such faults: pages of another user are served" probe -n 10

ktap_check "300 faults of a user never end" stalled -n 300
ktap_check "... pages of another user are served" probe -n 50 -t 20000
ktap_check "... its program is killed" killed
over

ktap_check "a fault never ends" stalled -n 1 -D
ktap_check "... its region is deregistered" printed deregistered
# A frozen file system waits with mmap_lock held, and the rings of a destroyed QP are unmapped.
[ -z "${FUSE:-}" ] || ktap_check "... its QPs are destroyed" printed destroyed
over

ktap_check "a user fills the queue of packets behind faults" stalled -n 40 -b 1048576
settled rx_fault_queued
ktap_check "... packets of another user, who has no RNR retries, find space" tries 5 probe -n 10 -b 262144 -r 0
over

ktap_check "a user prefetches pages that are never there: little is queued, others' are served" \
	little_is_queued
over

ktap_check "userfaultfd() pages that are never supplied: another user's are served" users_pages
over

ktap_check "userfaultfd(): a page is supplied, the one behind it is not" first_of_two
if [ -n "${FUSE:-}" ]; then
	ktap_check "a page that cannot be read: the access and the prefetch fail" unreadable
	FILE=$((FILE + 1))
else
	ktap_skip "a page that cannot be read: the access and the prefetch fail" "no FUSE"
fi

ktap_check "a program with a fault that never ends is killed: its other pages get no memory" nothing_more
over

ktap_check "20 faults of a user never end" stalled -n 20
ktap_check "... the device is removed" link_goes
ktap_check "... a new one of the same name serves this user's pages" new_device
ktap_check "... its program is killed" killed
over

two_hosts_down
ktap_check "a fault never ends" eval 'two_hosts > /tmp/setup.log 2>&1 && stalled -n 1'
ktap_check "... the device's network namespace is removed" netns_goes
ktap_check "... the module is not unloaded, but busy" refused_to_unload
over
two_hosts_down
ktap_check "when the fault has ended the module is unloaded" wait_for 60 rmmod roan
ktap_end
