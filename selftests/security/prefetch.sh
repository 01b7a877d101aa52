#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A user prefetches without a pause, in four threads: page faults of another user take no longer than beside four
# threads that only compute. How much the kernel queues meanwhile: stuck_fault.sh. Other tasks run while a
# user's large region is released (a difference in uml-debug: it is slow enough, and its kernel is not preemptible).
#
#	user 1001	odp_users flood: ibv_advise_mr() of 16 ranges of 8 MiB a call	-+
#	user 1002	odp_users probe: WRITEs and READs of absent pages		-+-- roan1, on v1 in h1
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
USERS=$PROGRAMS/odp_users
TIMES=${TIMES:-100}
GIB=${GIB:-8}
LIMIT=${LIMIT:-1000000}	# us that the CPU may run no other task; the guest also loses its CPU to others

# p99 of NAME: prints the microseconds of its log
p99() { sed -n 's/.*p99 \([0-9]*\).*/\1/p' "/tmp/$1.log"; }
# Runs the probe beside a flood. Prints its latencies.
beside() { # NAME OPTIONS
	local name=$1 pid
	shift
	rm -f /tmp/flood.log
	"$USERS" flood -d $H1DEV -u 1001 -c 4 -t 600000 "$@" > "/tmp/flood.log" 2>&1 &
	pid=$!
	wait_for 60 grep -q posted /tmp/flood.log || { cat /tmp/flood.log; return 1; }
	sleep 1
	timeout -k 5 120 "$USERS" probe -d $H1DEV -u 1002 -n "$TIMES" -t 30000 > "/tmp/$name.log" 2>&1
	local rc=$?
	kill -9 $pid || { cat /tmp/flood.log; rc=1; }
	wait $pid 2> /dev/null
	echo "# $name: $(cat "/tmp/$name.log")"
	return $rc
}

released() {
	local what us
	"$USERS" release -d $H1DEV -n "$GIB" > /tmp/release.log 2>&1 || { cat /tmp/release.log; return 2; }
	sed 's/^/# /' /tmp/release.log
	while read -r what us _; do
		[ "$what" = each_2_MiB ] || [ "$us" -lt "$LIMIT" ] ||
			{ echo "$what: no other task ran for $us us"; return 1; }
	done < /tmp/release.log
}
# A time, of which one long pause of the guest is enough to fail.
as_fast() {
	beside computing -s && beside prefetching || return 2
	[ "$(p99 prefetching)" -lt $((3 * $(p99 computing) + 50000)) ]
}
small() { # 8 bytes for each page, and little beside
	local bytes
	bytes=$(awk '/each_2_MiB/ { print $2 }' /tmp/release.log)
	[ "$bytes" -gt 4000 ] && [ "$bytes" -lt 6000 ] || { echo "$bytes bytes for each 2 MiB"; return 1; }
}
debug_slab() { [ "$(cat /sys/kernel/slab/kmalloc-4k/slab_size)" -gt 4096 ]; } 2> /dev/null

ktap_header
[ "$LINK_TYPE" = roan ] || { ktap_skip "prefetch" "is about roan"; ktap_end; }
{ load_modules && two_hosts && chmod 666 /dev/infiniband/*; } > /tmp/setup.log 2>&1 ||
	{ cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
ktap_check "beside four threads that prefetch: pages are served as fast as beside four that compute" in_three_attempts as_fast
ktap_check "a large region: unmapped memory, deregistration, exit of its process: other tasks run meanwhile" in_three_attempts released
if debug_slab; then
	ktap_skip "it takes about 4 KiB of the kernel's memory for each 2 MiB" "a debug kernel adds some to each"
else
	ktap_check "it takes about 4 KiB of the kernel's memory for each 2 MiB" small
fi
ktap_end
