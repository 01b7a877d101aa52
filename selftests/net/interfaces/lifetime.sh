#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Removal under load of a netdev, VLAN, device, namespace, module or program. Programs get DEVICE_FATAL, flushed
# completions or EIO, and can clean up; nothing hangs and no object is left.
#
#	h1: v1, roan1  =veth=  v2, roan2: h2	programs run in the first namespace, which sees both devices
#	roan1 has a polling thread, which polls rings of what is removed.
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../../vm/lib.sh"
LT=$PROGRAMS/lifetime
ROUNDS=${ROUNDS:-3} KILLS=${KILLS:-200} STORM=${STORM:-8}	# STORM: seconds

# UML keeps the KASAN shadow of an unloaded module: the next module loaded to that memory raises false reports.
UML_KASAN=false
[ "${LAB:-}" != uml-debug ] || UML_KASAN=true
no_device() { ! rdma dev show "$1" > /dev/null 2>&1; }

# busy NAME OPTIONS: starts a program with traffic; its output is /tmp/NAME
declare -A pids
busy() {
	local name=$1
	shift
	rm -f "/tmp/$name"	# the file may be of an earlier program
	${IN:+ip netns exec $IN} timeout -k 1 400 "$LT" traffic -t 300 "$@" > "/tmp/$name" 2>&1 &
	pids[$name]=$!
	wait_for 100 grep -q started "/tmp/$name" || { cat "/tmp/$name"; return 1; }
}
# ends NAME REGEX: the program exits by itself long before its time limit, prints a line that matches, and cleans up
ends() {
	local name=$1
	wait_for 100 grep -q closed "/tmp/$name"
	kill -9 "${pids[$name]}" 2> /dev/null
	wait "${pids[$name]}" 2> /dev/null
	cat "/tmp/$name"
	grep -q closed "/tmp/$name" && grep -qE "$2" "/tmp/$name"
}
GONE='end: (event device fatal|wc|verb .* EIO|event local catastrophic error|event local work queue).*'

# flows N: waits until N more packets have arrived at h1
flows() {
	local before
	before=$(counter $H1DEV rcvd_pkts) || return
	wait_for 100 has_received $H1DEV $((before + $1)) || { echo "of $1 packets $(($(counter $H1DEV rcvd_pkts) - before)) came"; return 1; }
}

# Remove the hosts of a case that failed.
up() {
	[ ! -e /run/netns/h1 ] || down
	{ two_hosts && poll_idle_us $H1DEV 20000 h1; } > /tmp/setup 2>&1 || { cat /tmp/setup; return 1; }
}
down() { two_hosts_down > /dev/null 2>&1; wait_for 60 no_device $H1DEV; wait_for 60 no_device $H2DEV; }

# while_busy COMMAND...: the command must finish while four programs have traffic: one that reads events, one that only
# polls, one that is idle, and one within one device.
while_busy() {
	local rc=0
	up || return
	busy a -d $H1DEV -D $H2DEV && busy p -p -d $H1DEV -D $H2DEV && busy i -i -d $H1DEV && busy s -d $H1DEV -p || rc=1
	[ $rc != 0 ] || timeout 100 "$@" || { echo "status $? of: $*"; rc=1; }
	for n in a p i s; do
		ends $n "$GONE" || rc=1
	done
	[ -e /sys/module/roan ] || $UML_KASAN || load_modules || rc=1
	down
	nothing_left || rc=1
	return $rc
}

netns_exit() { ip netns del h1; wait_for 60 no_device $H1DEV; }
export -f netns_exit wait_for no_device
netdev_del() { ip -n h1 link del v1 && wait_for 60 no_device $H1DEV; }
export -f netdev_del

# A queueing discipline with a very low rate: packets that QPs have sent stay in it for many seconds.
clog() { tc -n h1 qdisc add dev v1 root tbf rate 1kbit burst 128k limit 10m && wait_for 100 clogged; }
clogged() { [ "$(tc -n h1 -j -s qdisc show dev v1 | sed 's/.*"backlog":\([0-9]*\).*/\1/')" -ge 16000 ]; }
unclog() { tc -n h1 qdisc del dev v1 root; }

# QPs end at once, and their packets in the queueing discipline outlive them.
killed_above_queue() {
	local rc=0
	up && busy a -d $H1DEV -D $H2DEV && clog || return
	pkill -9 -P "${pids[a]}"
	wait_for 60 nothing_left || { echo "QPs are not destroyed while the queue has packets"; rc=1; }
	wait "${pids[a]}" 2> /dev/null
	clogged || { echo "the queue is empty"; rc=1; }
	unclog
	down
	return $rc
}

# rmmod waits until the stack has freed the last skb; devices are removed before.
rmmod_above_queue() {
	local pid rc=0
	clog || return
	rmmod roan & pid=$!
	wait_for 60 no_device $H1DEV && wait_for 60 no_device $H2DEV || rc=1
	{ clogged && sleep 1 && kill -0 $pid; } || { echo "rmmod did not wait"; rc=1; }
	unclog
	wait $pid && return $rc
}
export -f rmmod_above_queue clog clogged unclog

perftest_dies() {
	up || return
	on h1 timeout -k 1 400 ib_write_bw -d $H1DEV -F -D 300 > /tmp/pa 2>&1 & local a=$!
	wait_for 60 sh -c 'ip netns exec h1 ss -Hltn | grep -q 18515'
	on h2 timeout -k 1 400 ib_write_bw -d $H2DEV -F -D 300 $H1IP > /tmp/pb 2>&1 & local b=$!
	flows 1000 || { kill $a $b; return 1; }
	timeout 100 rdma link del $H1DEV || return
	wait_for 100 sh -c "! kill -0 $b 2> /dev/null && ! kill -0 $a 2> /dev/null"
	local rc=$?
	tail -n 3 /tmp/pa /tmp/pb
	kill -9 $a $b 2> /dev/null
	wait $a $b 2> /dev/null
	down
	[ $rc = 0 ] && nothing_left
}

vlans() { # PREFIX: QPs over the addresses of a VLAN on each side, then the VLAN is deleted
	local n rc=0
	up || return
	for n in 1 2; do
		ip -n h$n link add link v$n name v$n.5 type vlan id 5 && ip -n h$n addr add 10.5.0.$n/24 dev v$n.5 &&
			ip -n h$n addr add fd05::$n/64 dev v$n.5 nodad && ip -n h$n link set v$n.5 up || return
	done
	wait_for 60 on h1 ping -c1 -W1 10.5.0.2
	wait_for 60 on h1 ping -c1 -W1 fd05::2
	wait_for 60 gid_index $H1DEV "${1}1" && wait_for 60 gid_index $H2DEV "${1}2" || return
	busy a -d $H1DEV -D $H2DEV -a "${1}1" -A "${1}2" && busy p -p -d $H1DEV -D $H2DEV -a "${1}1" -A "${1}2" &&
		busy i -i -d $H1DEV -D $H2DEV -a "${1}1" -A "${1}2" && busy other -d $H1DEV -D $H2DEV || rc=1
	timeout 100 ip -n h1 link del v1.5 || { echo "the VLAN cannot be deleted"; rc=1; }
	for n in a p i; do
		ends $n "$GONE" || rc=1
		grep -q "then alive" /tmp/$n || rc=1
	done
	kill -0 "${pids[other]}" || { echo "a QP on another interface failed"; cat /tmp/other; rc=1; }
	kill -9 "${pids[other]}"
	wait "${pids[other]}" 2> /dev/null
	down
	nothing_left || rc=1
	return $rc
}

# ibv_modify_qp() to RTR is stopped after it has made the address vector, until the VLAN is gone.
PAUSE=$(dirname "$(roan_ko)")/roan_pause_connect.ko
vlan_of_connecting_qp() {
	local rc=0 pid param=/sys/module/roan_pause_connect/parameters
	[ -e "$PAUSE" ] || return 4
	up && insmod "$PAUSE" || return
	ip -n h1 link add link v1 name v1.5 type vlan id 5 && ip -n h1 addr add 10.5.0.1/24 dev v1.5 &&
		ip -n h1 link set v1.5 up && wait_for 60 gid_index $H1DEV 10.5.0.1 || return
	timeout -k 1 100 "$LT" traffic -q 1 -i -t 20 -d $H1DEV -D $H1DEV -a 10.5.0.1 -A 10.5.0.1 > /tmp/late 2>&1 & pid=$!
	wait_for 60 grep Y $param/stopped || rc=1
	timeout 100 ip -n h1 link del v1.5 || rc=1
	echo Y > $param/go
	wait $pid
	cat /tmp/late
	grep -q "connect: Network is unreachable" /tmp/late || rc=1
	rmmod roan_pause_connect || rc=1
	down
	nothing_left || rc=1
	return $rc
}

# RTNL is held while an interface is unregistered, and a host may have 100,000 QPs on others.
TRACE=/sys/kernel/tracing
unused_interface() {
	local rc=0
	[ -e $TRACE/trace ] || mount -t tracefs t $TRACE || return 4
	grep -qw function $TRACE/available_tracers || return 4
	up && busy other -d $H1DEV -D $H2DEV || return
	{ echo roan_qp_for_each > $TRACE/set_ftrace_filter && echo function > $TRACE/current_tracer; } || rc=1
	ip -n h1 link add unused type dummy && ip -n h1 link del unused || rc=1
	! grep roan_qp_for_each $TRACE/trace || rc=1
	echo nop > $TRACE/current_tracer
	echo > $TRACE/set_ftrace_filter
	kill -9 "${pids[other]}"
	wait "${pids[other]}" 2> /dev/null
	down
	return $rc
}

kills() { up && timeout 600 "$LT" killed -d $H1DEV -n "$KILLS" && wait_for 60 nothing_left; local rc=$?; down; return $rc; }
storm() { up && timeout 300 "$LT" storm -d $H1DEV -t "$STORM" -c 4 && wait_for 60 nothing_left; local rc=$?; down; return $rc; }

# ended PGID: waits until all processes of the group have exited. If none exits for 100 s it is a hang, and their kernel
# stacks are printed.
ended() {
	local n p
	while n=$(pgrep -c -g "$1"); do
		wait_for 100 sh -c "[ \$(pgrep -c -g $1) -lt $n ]" && continue
		for p in $(pgrep -g "$1"); do
			ps -o pid,stat,wchan:30,args "$p"
			cat "/proc/$p/syscall" "/proc/$p/stack"
		done
		kill -9 -- "-$1"
		return 1
	done
}

storm_and_removal() { # the device is removed while programs create objects
	local i rc=0 s t
	up || return
	for i in $(seq $((ROUNDS * 5))); do
		[ "$i" = 1 ] || link_add $H1DEV v1 h1 || return
		t=$((i * 7 % 20))	# tenths of a second, different in each round
		timeout -k 1 400 "$LT" storm -d $H1DEV -t 300 -c 4 -g > /tmp/storm 2>&1 & s=$!
		sleep $((t / 10)).$((t % 10))
		timeout 100 rdma link del $H1DEV || { echo "round $i: link del: $?"; rc=1; }
		ended $s || { echo "round $i: storm hangs"; rc=1; }
		wait $s || { echo "round $i: storm: $?"; cat /tmp/storm; rc=1; }
	done
	down
	nothing_left || rc=1
	return $rc
}

flapping() { # link down and up, or a too small MTU for a moment, under traffic: RC survives by retries
	local i rc=0
	up || return
	busy a -d $H1DEV -D $H2DEV
	for i in 1 2 3 4 5; do
		# One process: in a busy guest the link would be down for as long as another takes to start.
		printf '%s\n' "link set v1 down" "link set v1 up" "address replace $H1IP6/64 dev v1 nodad" | ip -n h1 -batch -
		flows 100 || rc=1
		ip -n h1 link set v1 mtu 1500; ip -n h1 link set v1 mtu $((9000 - i))
		flows 100 || rc=1
	done
	kill -9 "${pids[a]}"
	wait "${pids[a]}" 2> /dev/null
	cat /tmp/a
	grep -q "wc\|verb\|fatal" /tmp/a && rc=1
	down
	nothing_left || rc=1
	return $rc
}

reload_loop() {
	local i
	for i in $(seq "$ROUNDS"); do
		up && busy a -d $H1DEV -D $H2DEV || return
		timeout 100 rmmod roan || { echo "round $i: rmmod: $?"; return 1; }
		ends a "$GONE" || return
		load_modules || return
		down
	done
}

# The core refuses the change while another namespace exists, and a deleted one exists for a while longer.
mode() { wait_for 60 rdma system set netns "$1" || { echo "rdma system set netns $1 fails"; return 1; }; }

dev_set_netns() {
	local rc=0
	mode exclusive || return
	up && IN=h1 busy a -d $H1DEV || rc=1
	ip netns add third
	timeout 100 ip netns exec h1 rdma dev set $H1DEV netns third || rc=1
	ends a "$GONE" || rc=1
	ip netns exec third rdma dev show $H1DEV || rc=1
	ip netns exec third rdma link del $H1DEV || rc=1
	ip netns del third
	down
	mode shared || rc=1
	nothing_left || rc=1
	return $rc
}

ktap_header
load_modules > /tmp/setup 2>&1 || { cat /tmp/setup; ktap_fail "set-up"; ktap_end; }
[ $# = 0 ] || { for t; do ktap_check "$t" $t; done; ktap_end; }
# Four polling programs take a minute on emulated CPUs: test one address family there.
[[ ${LAB:-} == @(qemu|smp)* ]] || ktap_check "a VLAN with IPv4 QPs is deleted" vlans 10.5.0.
ktap_check "a VLAN with IPv6 QPs is deleted" vlans fd05::
ktap_check "a QP is being connected while its VLAN is deleted" vlan_of_connecting_qp
ktap_check "an interface that no QP uses is deleted without a look at the QPs" unused_interface
ktap_check "rdma link del while busy" while_busy rdma link del $H1DEV
ktap_check "the netdev is deleted while busy" while_busy bash -c netdev_del
ktap_check "the namespace is deleted while busy" while_busy bash -c netns_exit
ktap_check "ib_write_bw ends when its device is removed" perftest_dies
ktap_check "a program is killed while its packets wait in a qdisc" killed_above_queue
ktap_check "link down and up and MTU changes under traffic" flapping
ktap_check "$KILLS programs killed" kills
ktap_check "objects are created and destroyed all the time" storm
ktap_check "the device is removed while objects are created and destroyed" storm_and_removal
ktap_check "rdma dev set netns while busy" dev_set_netns
if $UML_KASAN; then
	ktap_skip "rmmod and insmod repeatedly" "UML keeps the KASAN shadow of unloaded modules"
else
	ktap_check "rmmod and insmod repeatedly" reload_loop
	ktap_check "rmmod while busy" while_busy rmmod roan
fi
ktap_check "rmmod while busy and with packets in a qdisc" while_busy bash -c rmmod_above_queue	# last: see UML_KASAN
ktap_end
