#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Multicast groups are shared between users: one user takes all it can get, and another still joins. The time of a
# datagram does not grow with the number of groups. A user's join and leave of a group that the host needs changes
# nothing.
#
#	users 2001, 2002 on h1: roan1 v1 ======== v2 roan2 :h2 (sender)
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
. "$HERE/share.sh"

LIMIT=256	# attachments of a user: ROAN_USER_MCAST_ATTACH of kernel/roan.h

takes_its_share() { take one "-u 2001" mcast ::ffff:239.1.0.1 8300 1 && got one "$LIMIT: Cannot allocate memory"; }
neighbour_joins() { take two "-u 2002" mcast ::ffff:239.2.0.1 10 1 && got two "10: all"; }
no_second_share() { take again "-u 2001" mcast ::ffff:239.3.0.1 1 1 && got again "0: Cannot allocate memory"; }
no_share_by_namespace() { take inside "-u 2001 -n" mcast ::ffff:239.3.0.1 1 1 && got inside "0: Cannot allocate memory"; }
container() { take one "-u 3001 -c" mcast ::ffff:239.7.0.1 8300 1 && got one "$LIMIT: Cannot allocate memory"; }
other_container() { take two "-u 3002 -c" mcast ::ffff:239.8.0.1 10 1 && got two "10: all"; }
returned() { drop one && take one "-u 2001" mcast ::ffff:239.1.0.1 10 1 && got one "10: all"; }
one_group() { # a user with many QPs does not fill a group
	take one "-u 2001" mcast ::ffff:239.4.0.1 1 300 && take two "-u 2002" mcast ::ffff:239.4.0.1 1 1 && got two "1: all" &&
		got one "$LIMIT: Cannot allocate memory"
}

# The host is a member of both groups without anybody's help.
member_of() { on h1 ip maddr show dev v1 | grep -q "$1\$"; }
host_stays() {
	local group
	member_of 224.0.0.1 && member_of ff02::1 || { on h1 ip maddr show dev v1; return 1; }
	for group in ::ffff:224.0.0.1 ff02::1; do
		take one "-u 2001" mcast $group 1 1 && got one "1: all" && drop one || return
	done
	member_of 224.0.0.1 && member_of ff02::1 || { on h1 ip maddr show dev v1; return 1; }
}

# The time of a datagram to the group that was joined first, and whether each one reached the member's QP.
N=2000 RUNS=7
ns() {
	local before after
	before=$(counter "$H1DEV" rx_no_wqe)
	NS=$(on h2 "$PROGRAMS/user_share" -d "$H2DEV" send ::ffff:239.5.0.1 $N $RUNS) || { echo "$NS"; return 1; }
	wait_for 20 all_came || { echo "$(($(counter "$H1DEV" rx_no_wqe) - before)) of $((N * RUNS)) came"; return 1; }
}
all_came() {
	after=$(counter "$H1DEV" rx_no_wqe)
	[ $((after - before)) = $((N * RUNS)) ]
}
time_is_flat() { # root has no share
	local few many tries
	take one "" mcast ::ffff:239.5.0.1 1 1 && got one "1: all" && ns || return
	few=$NS
	take many "" mcast ::ffff:239.6.0.1 8000 1 && got many "8000: all" || return
	sleep 15	# the host's membership reports
	for ((tries = 5; tries; tries--)); do	# other guests may have the CPU
		ns && many=$NS || return
		echo "# datagram to one group: $few ns; beside 8,000 other groups: $many ns" >&3
		[ $many -gt $((3 * few)) ] || return 0	# a search through a list takes 30 times as long
		sleep 1
	done
	return 1
}

# A charge waits for long at memory.max, and all users of the host take the mutex of attachments and RTNL.
TRACE=/sys/kernel/tracing
charged_before_locks() {
	local group=/tmp/cgroup hook=__memcg_slab_post_alloc_hook rc=0
	[ -e $TRACE/trace ] || mount -t tracefs t $TRACE || return 4
	{ echo mutex_lock mutex_unlock $hook > $TRACE/set_ftrace_filter; } 2> /dev/null || return 4
	{ mkdir -p $group && mount -t cgroup2 none $group && echo +memory > $group/cgroup.subtree_control && mkdir $group/mem; } || return 4
	echo 8192 > $TRACE/buffer_size_kb && echo function > $TRACE/current_tracer || return
	take one "" mcast ::ffff:239.9.0.1 1 1 && got one "1: all" || rc=1
	echo 0 > $TRACE/tracing_on	# reading takes mutexes, too
	awk -v hook=$hook '/mutex_lock <-roan_attach_mcast/ { held[$1] = 1; n++ }
		/mutex_unlock <-roan_attach_mcast/ { held[$1] = 0 }
		$0 ~ hook && held[$1] { print; bad = 1 }
		END { exit bad || !n }' $TRACE/trace || rc=1
	echo nop > $TRACE/current_tracer
	echo 1 > $TRACE/tracing_on
	echo > $TRACE/set_ftrace_filter
	return $rc
}

share_up
exec 3>&1
share_check -k "a user gets $LIMIT attachments, then ENOMEM" takes_its_share
share_check -k "another user still joins groups" neighbour_joins
share_check -k "the first user gets no more in another process" no_second_share
share_check -k "the first user gets no more with another id in a user namespace" no_share_by_namespace
share_check "what a user gave up it can take again" returned
share_check -k "a container gets as many" container
share_check "another container still joins groups" other_container
share_check "one user's QPs do not fill a group" one_group
share_check "memory is charged before locks are taken" charged_before_locks
share_check "the host's own groups survive a user's join and leave" host_stays
share_check "the time of a datagram does not grow with 8,000 groups" time_is_flat
ktap_end
