#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Loads and unloads the module ROUNDS times while it is busy: two devices, and between them a program's traffic, which the
# removal of the devices ends. No step may hang, and memory must not be lost.
#
#	h1: v1, roan1  =veth=  v2, roan2: h2	`lifetime traffic` on roan1 and roan2; removed by rmmod
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../../vm/lib.sh"
LT=$PROGRAMS/lifetime
ROUNDS=${ROUNDS:-20}
SETTLED=$((ROUNDS < 10 ? 1 : 5))	# rounds that fill caches for good
EACH=${EACH:-100}	# seconds that a step may take in a guest that others slow down

# A round without traffic every tenth time: rmmod right after the devices were made.
round() { # NUMBER
	local pid=
	if [ $(($1 % 10)) != 0 ]; then
		rm -f /tmp/traffic	# the file may be of an earlier round
		timeout -k 1 300 "$LT" traffic -t 300 -d $H1DEV -D $H2DEV > /tmp/traffic 2>&1 & pid=$!
		wait_for "$EACH" grep -q started /tmp/traffic || { echo "round $1: no traffic:"; cat /tmp/traffic; return 1; }
	fi
	timeout "$EACH" rmmod roan || { echo "round $1: rmmod: $?"; return 1; }
	[ -z "$pid" ] || wait_for "$EACH" grep -q closed /tmp/traffic || { echo "round $1: the program did not end:"; cat /tmp/traffic; kill -9 $pid; return 1; }
	[ -z "$pid" ] || wait $pid
	load_modules && link_add $H1DEV v1 h1 && link_add $H2DEV v2 h2 || { echo "round $1: the devices do not come back"; return 1; }
}

# Available memory. The kernel does not count the free pages on its lists for each CPU, which grow to many MiB.
free_kb() {
	sync
	echo 3 > /proc/sys/vm/drop_caches
	awk '$1 == "MemAvailable:" { kb += $2 } $1 == "count:" { kb += 4 * $2 } END { print kb }' /proc/meminfo /proc/zoneinfo
}

reload() {
	local n before=0 after
	for ((n = 1; n <= ROUNDS; n++)); do
		round $n || return
		[ $n != $SETTLED ] || before=$(free_kb)
		[ $((n % 50)) != 0 ] || echo "# $n rounds in $SECONDS s, $(free_kb) KiB available" | tee /dev/kmsg >&3
	done
	after=$(free_kb)
	echo "# $ROUNDS rounds in $SECONDS s; available memory after $SETTLED: $before KiB, at the end: $after KiB" | tee /tmp/reload
	# A module of 1 MiB that stayed would be seen after a few rounds.
	[ "$before" -gt 0 ] && [ $((before - after)) -lt 32768 ]
}

exec 3>&1	# progress, although ktap_check shows no output of a case that passes
ktap_header
load_modules > /tmp/setup 2>&1 && two_hosts >> /tmp/setup 2>&1 || { cat /tmp/setup; ktap_fail "set-up"; ktap_end; }
ktap_check "$ROUNDS times rmmod while busy, and insmod" reload
cat /tmp/reload 2> /dev/null
ktap_end
