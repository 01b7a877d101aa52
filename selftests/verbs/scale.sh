#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Many QPs on one device: what an idle one costs, that all carry data, and that nothing stays when they go, also when the
# program is killed. QPS=N (default 10000; a kernel with KASAN gets 600, and its memory says nothing).
#
#	h1: v1, roan1  =veth=  v2, roan2: h2	the program runs in the first namespace, which sees both devices
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
SCALE=$PROGRAMS/scale
MOST=4096	# bytes of kernel memory for an idle QP besides its rings
DEBUG=false
[ "${LAB:-}" != uml-debug ] || DEBUG=true
$DEBUG && QPS=${QPS:-600} || QPS=${QPS:-10000}
SOME=$((QPS / 5))	# at each end, where QPs do more than be there

memory() {
	local out kernel left
	out=$("$SCALE" memory -d $H1DEV -n "$QPS") || { echo "$out"; return 1; }
	echo "# $QPS idle QPs, bytes each: $out" >&3
	read -r _ kernel _ _ _ left <<< "$out"
	$DEBUG && return 4
	echo "kernel $kernel, left $left"
	[ "$kernel" -gt 0 ] && [ "$kernel" -lt $MOST ] && [ "$left" -lt $((MOST / 16)) ]
}
stream() {
	local out
	out=$("$SCALE" stream -d $H1DEV -D $H2DEV -n "$SOME" -s 8192) || { echo "$out"; return 1; }
	echo "# $out" >&3
	[ "$(awk '{ print $2 }' <<< "$out")" -gt 0 ]
}
# messages OUTSTANDING
messages() { "$SCALE" stream -d $H1DEV -D $H2DEV -s 4096 -w "$1" -t 2 | awk '{ print $2 }'; }
# Messages one by one take a round trip each, and two at a time half of that: none waits for the other's answer to leave.
two_at_a_time() { # TENTHS: this ratio at least
	local one two
	one=$(messages 1) two=$(messages 2)
	echo "$one one by one, $two two at a time"
	[ "$one" -gt 20 ] && [ $((10 * two)) -gt $(($1 * one)) ]
}
way() { # DELAY COMMAND...
	local status
	on h1 tc qdisc add dev v1 root netem delay "$1" limit 100000 || return
	"${@:2}"
	status=$?
	on h1 tc qdisc del dev v1 root
	return $status
}
# Here a stretch in which the host does something else is as long as the way.
in_three_attempts() { "$@" || "$@" || "$@"; }
qps() { rdma resource show qp 2> /dev/null | grep -c 'type RC'; }
some() { [ "$(qps)" -gt "$SOME" ]; }
none() { [ "$(qps)" = 0 ]; }
killed() {
	local pid
	"$SCALE" stream -d $H1DEV -D $H2DEV -n "$SOME" -t 300 &
	pid=$!
	wait_for 200 some || { qps; kill $pid; return 1; }
	kill -9 $pid
	wait $pid
	wait_for 200 none || { echo "$(qps) QPs are left"; return 1; }
}

# Each takes a mapping of the process, of which vm.max_map_count allows 65530 unless it is raised.
all_cqs() {
	local out
	$DEBUG && return 4
	sysctl -q vm.max_map_count=70000 || return
	out=$("$SCALE" cqs -d $H1DEV) || { echo "$out"; return 1; }
	echo "# CQs: $out" >&3
	[[ $out == *": all" ]]
}

exec 3>&1
ktap_header
{ load_modules && two_hosts; } > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
# Pools and caches that grow once and stay are not what a QP costs.
"$SCALE" rate -d $H1DEV -n 200 > /tmp/warm || { cat /tmp/warm; ktap_fail "QPs come and go"; ktap_end; }
ktap_check "an idle QP takes less than $MOST bytes besides its rings, and leaves none" memory
ktap_check "$SOME QPs carry data" stream
ktap_check "on a long way requests do not wait for each other's answers" way 20ms two_at_a_time 15
ktap_check "nor on a shorter way" way 400us in_three_attempts two_at_a_time 14
ktap_check "killed with $SOME QPs: all go" killed
ktap_check "one process can have as many CQs as the device announces" all_cqs
ktap_check "afterwards all is as before" stream
ktap_end
