#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Two hosts compare every byte of random operations while the kernel fails: allocations in softirq and in the workers of
# page faults (kernels with fault injection), programs that are stopped or killed, memory that is compacted and moved
# between nodes, memory blocks and CPUs that go offline (-knuma=fake=2 gives two nodes, -kmovablecore=512M blocks that may
# go). At the end nothing is left, and (kernels that count it, smp-debug) no line of roan's source holds more memory than
# before.
#
#	h1: roan1 on v1 ==== veth ==== v2, roan2 :h2
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
. "$HERE/pair.sh"
FAULTS=/sys/kernel/debug
TIMES=1000000
ROUNDS=${ROUNDS:-3}

# Allocations that must not wait, in any task and in softirq: ignore-gfp-wait=Y spares the others.
fails() { fault "$1" ignore-gfp-wait=Y ignore-gfp-highmem=Y min-order=0 verbose=0 interval=1 "times=$TIMES" "probability=$2"; }
failed() { echo $((TIMES - $(cat "$FAULTS/$1/times"))); }
healthy() { fault failslab probability=0 task-filter=N; fault fail_page_alloc probability=0 task-filter=N; }

# Once traffic flows: a set-up that fails is no subject here (alloc_failure.c).
after_start() { # PACKETS COMMAND...
	wait_for 100 has_received "$ADEV" $(($(counter "$ADEV" rcvd_pkts) + $1)) && "${@:2}"
}

# scarce KIND PERCENT OPTIONS...: verbs_stress while allocations fail, again until 10 have failed: a short run may be over
# soon after the failures begin.
scarce() {
	local kind=$1 percent=$2 pid rc=0 n=0 run
	shift 2
	for ((run = 0; run < 5 && n < 10 && rc == 0; run++)); do
		after_start 50 fails "$kind" "$percent" &
		pid=$!
		stress 300 "$@" || rc=1
		wait $pid || rc=1
		n=$((n + $(failed "$kind")))
		healthy
	done
	echo "$n allocations failed"
	[ "$n" -ge 10 ] && [ $rc = 0 ] && nothing_left
}

# Half of the allocations of kernel workers fail, also those that may wait: of the workers that resolve page faults, too.
# New workers inherit it from kthreadd, process 2.
workers_fail() {
	local task
	for task in /proc/[0-9]*; do
		[ "$task" != /proc/2 ] && [[ $(cat "$task/comm") != kworker* ]] || echo 1 > "$task/make-it-fail"
	done 2> /dev/null
	fault fail_page_alloc task-filter=Y ignore-gfp-wait=N ignore-gfp-highmem=N min-order=0 verbose=0 interval=1 \
		"times=$TIMES" probability=50
}
faults_fail() {
	local rc=0 n
	workers_fail || return
	STRESS_BOTH=-O stress 300 -t rc -q 4 -w 128 -n 5 -l 60000 -B || rc=1
	n=$(failed fail_page_alloc)
	healthy
	echo "$n allocations failed"
	[ "$n" -ge 10 ] && [ $rc = 0 ] && nothing_left
}

# while_traffic COMMAND OPTIONS...: verbs_stress again and again until the command is done.
while_traffic() {
	local pid rc=0
	$1 > /tmp/disturbance 2>&1 &
	pid=$!
	shift
	while [ $rc = 0 ] && kill -0 $pid 2> /dev/null; do
		stress 300 "$@" || rc=1
	done
	wait $pid || { cat /tmp/disturbance; rc=1; }
	[ $rc = 0 ] && nothing_left
}

ends() { pgrep -x verbs_stress; }
stops() {
	local n end stopped=0
	for ((n = 0; stopped < 6 * ROUNDS && n < 60 * ROUNDS; n++)); do
		wait_for 60 ends || return
		end=$(ends | shuf -n 1 --random-source=/etc/services)
		# One that just exits stays no longer.
		kill -STOP "$end" || continue
		sleep 0.$((1 + n % 4))
		kill -CONT "$end" || continue
		stopped=$((stopped + 1))
		sleep 0.1
	done 2> /dev/null
	[ $stopped = $((6 * ROUNDS)) ] || { echo "stopped $stopped times"; return 1; }
}

# One end is killed while its peer's requests, and failing allocations, go on: the peer ends by itself, with an error.
killed() {
	local n pid rc=0
	for ((n = 1; n <= ROUNDS; n++)); do
		STRESS_BOTH="-k 10" stress 100 -t rc -q 4 -w 64 -n 100000 -B > /tmp/killed 2>&1 &
		pid=$!
		after_start 50 fails failslab 3 || { cat /tmp/killed; rc=1; }
		pkill -9 -o -x verbs_stress
		wait $pid	# fails in any case: one end was killed. both() prints the other's status
		grep -qx "client: status 1" /tmp/killed ||
			{ echo "round $n: the peer did not end with an error"; cat /tmp/killed; rc=1; }
		healthy
		! grep -h "out of time" $OUT_A $OUT_B || rc=1
		wait_for 60 nothing_left || { echo "round $n: objects are left"; nothing_left; rc=1; }
	done
	return $rc
}

cpus() { ls -d /sys/devices/system/cpu/cpu[0-9]*/online 2> /dev/null; }
cpus_leave() {
	local n cpu
	for ((n = 0; n < ROUNDS; n++)); do
		for cpu in $(cpus); do
			echo 0 > "$cpu" || return
			sleep 0.3
			[ "$n" = 1 ] || echo 1 > "$cpu" || return	# once all but the first are away
		done
		[ "$n" != 1 ] || sleep 1
		for cpu in $(cpus); do echo 1 > "$cpu"; done
	done
	[ "$n" = "$ROUNDS" ]
}

moved() { awk '/^pgmigrate_success/ { print $2 }' /proc/vmstat; }
# migrate_pages(2) of all of a process's pages from one node to the other.
migrate() { # PID NODE
	perl -e '$from = pack("Q", 1 << $ARGV[1]); $to = pack("Q", 1 << 1 - $ARGV[1]);
		exit(syscall(256, $ARGV[0] + 0, 3, $from, $to) < 0)' "$1" "$2"
}
memory_moves() {
	local n end before
	before=$(moved)
	for ((n = 0; n < 2 * ROUNDS; n++)); do
		echo 1 > /proc/sys/vm/compact_memory || return
		[ -d /sys/devices/system/node/node1 ] || { sleep 0.2; continue; }
		wait_for 60 ends || return
		for end in $(ends); do migrate "$end" $((n % 2)); done
	done
	[ -d /sys/devices/system/node/node1 ] || return 0
	echo "$(($(moved) - before)) pages moved"
	[ $(($(moved) - before)) -ge 100 ]
}

# Blocks of ZONE_MOVABLE. One with a page in use at that moment may refuse.
movable() { grep -lx Movable /sys/devices/system/memory/memory*/valid_zones; }
memory_leaves() {
	local n block blocks gone=0
	blocks=$(movable)
	for ((n = 0; n < ROUNDS; n++)); do
		for block in $blocks; do
			block=${block%/*}/state
			echo offline > "$block" || continue
			gone=$((gone + 1))
			sleep 0.1
			echo online_movable > "$block" || return
		done
	done
	echo "$gone times a block of memory went offline"
	[ "$gone" -ge "$ROUNDS" ]
}

# The QPs of the next rounds have several paths: those of the round before are freed.
fails_before_rts() { set_both paths 4 && a timeout 300 "$PROGRAMS/rts_error" "$ADEV" $((100 * ROUNDS)) && set_both paths 1 && nothing_left; }

# Memory is freed after a grace period and later.
memory_returned() {
	allocations > /dev/null || return
	wait_for 60 nothing_allocated || nothing_allocated
}

unused() { nothing_left && [ "$(cat /sys/module/roan/refcnt)" = 0 ]; }
no_object() { wait_for 60 unused || { nothing_left; cat /sys/module/roan/refcnt; return 1; }; }

ktap_header
load_modules && allocation_mark
pair_up > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
if [ -d $FAULTS/failslab ]; then
	ktap_check "failslab 3 %: RC, both directions" scarce failslab 3 -t rc -q 4 -w 64 -n 40 -B
	ktap_check "failslab 3 %: RC, shared receive queue, events, late receives" scarce failslab 3 -t rc -q 4 -w 64 -n 40 -S -e -r
	ktap_check "failslab 5 %: UC" scarce failslab 5 -t uc -q 4 -w 64 -n 20 -L
	ktap_check "failslab 5 %: UD" scarce failslab 5 -t ud -q 4 -w 64 -n 40 -L
	ktap_check "fail_page_alloc 30 %: RC, both directions" scarce fail_page_alloc 30 -t rc -q 4 -w 64 -n 30 -l 60000 -B
	set_both paths 4
	ktap_check "failslab 3 %: RC, four paths" scarce failslab 3 -t rc -q 4 -w 64 -n 40 -B
	set_both paths 1
	ktap_check "page faults fail for want of memory: RC, on-demand memory" faults_fail
	ktap_check "failslab 3 %: one end is killed" killed
else
	ktap_skip "allocations fail" "the kernel has no fault injection"
fi
ktap_check "programs are stopped and go on" while_traffic stops -t rc -q 4 -w 64 -n 20 -B -r
if [ -n "$(cpus)" ]; then
	ktap_check "CPUs go offline and come back: RC" while_traffic cpus_leave -t rc -q 4 -w 64 -n 20 -B
	ktap_check "CPUs go offline and come back: UD" while_traffic cpus_leave -t ud -q 4 -w 64 -n 20 -L
else
	ktap_skip "CPUs go offline" "one CPU"
fi
if [ "$(nproc)" -gt 1 ]; then
	ktap_check "a QP with several paths fails while it is connected anew" fails_before_rts
else
	ktap_skip "a QP fails while it is connected anew" "one CPU"
fi
if [ -e /proc/sys/vm/compact_memory ]; then
	ktap_check "memory is compacted and moved: pinned" while_traffic memory_moves -t rc -q 4 -w 64 -n 20 -B
	STRESS_BOTH=-O ktap_check "memory is compacted and moved: on-demand" while_traffic memory_moves -t rc -q 4 -w 64 -n 20 -B
else
	ktap_skip "memory is compacted and moved" "not in this kernel"
fi
if [ -n "$(movable 2> /dev/null)" ]; then
	ktap_check "blocks of memory go offline and come back: pinned" while_traffic memory_leaves -t rc -q 4 -w 64 -n 20 -B
	STRESS_BOTH=-O ktap_check "blocks of memory go offline and come back: on-demand" while_traffic memory_leaves -t rc -q 4 -w 64 -n 20 -B
else
	ktap_skip "blocks of memory go offline" "no block of ZONE_MOVABLE"
fi
ktap_check "no object is left" no_object
two_hosts_down
ktap_check "no line of source holds more memory than before the devices were made" memory_returned
ktap_check "the module is unloaded" timeout 100 rmmod roan
ktap_end
