#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Many QPs on one device: memory of an idle one, traffic on all, and no leak after their destruction or a kill of the
# program. QPS=N (default 10000; a kernel with KASAN or KCSAN gets 600, and its memory is not judged). ONLY=memory: of these
# only the memory.
#
#	h1: v1, roan1  =veth=  v2, roan2: h2	the program runs in the first namespace, which sees both devices
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
SCALE=$PROGRAMS/scale
MOST=4096	# bytes of kernel memory for an idle QP besides its rings
DEBUG=false
case ${LAB:-} in *-debug | smp-kcsan) DEBUG=true ;; esac
$DEBUG && QPS=${QPS:-600} || QPS=${QPS:-10000}
SOME=$((QPS / 5))	# QPs at each end for cases with traffic

memory() { # memory | used
	local out kernel left
	out=$("$SCALE" "$1" -d $H1DEV -n "$QPS") || { echo "$out"; return 1; }
	echo "# $QPS idle QPs ($1), bytes each: $out" >&3
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
# Single messages take a round trip each, two at a time half of that, if no request waits for the other's response.
# Where a slow kernel does not send LEAST of them a second, its CPU takes longer than the delay.
two_at_a_time() { # TENTHS [LEAST]: minimum ratio times ten
	local one two
	one=$(messages 1) two=$(messages 2)
	echo "$one one by one, $two two at a time"
	! $DEBUG || [ "$one" -ge "${2:-0}" ] || return 4
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

# Each CQ is one mapping of the process, and the default vm.max_map_count is 65530.
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
# First fill pools and caches that grow once and keep their size: they are not a cost of a QP.
"$SCALE" rate -d $H1DEV -n 200 > /tmp/warm || { cat /tmp/warm; ktap_fail "QPs come and go"; ktap_end; }
ktap_check "an idle QP takes less than $MOST bytes besides its rings, and leaves none" memory memory
ktap_check "so does one that has sent a message" memory used
[ "${ONLY:-}" != memory ] || ktap_end
ktap_check "$SOME QPs carry data" stream
ktap_check "with 20 ms delay a request does not wait for the previous response" way 20ms in_three_attempts two_at_a_time 15
ktap_check "with 0.4 ms delay it does not wait, either" way 400us in_three_attempts two_at_a_time 14 1000
ktap_check "killed with $SOME QPs: all are destroyed" killed
ktap_check "one process can have as many CQs as the device announces" all_cqs
ktap_check "afterwards QPs carry data as before" stream
ktap_end
