#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# One user's queues do not hold a CPU against other users. User A has queues of the largest size in the error state, and
# refills their rings as fast as the kernel empties them, or resizes a full completion queue. Meanwhile, on the CPU that
# does this work, user B's pings are answered and B's thread runs: 99.9 % take at most LIMIT more than beside a program
# that only computes. Without pieces it was seconds. Also: work that is done in pieces has the result of one piece.
# SAMPLE=SECONDS: length of each measurement (10). LIMIT=MICROSECONDS: the default is for an emulated CPU beside other
# guests, which loses its own CPU to them; 2000 where the clock counts instructions (ICOUNT=y of run.sh), and on a
# machine that is idle but for this guest.
#
#	h1: v1, roan1  =veth=  v2, roan2: h2	CPU 0: A's kernel work, receives for v2; CPU 1: A refills, B pings, v1
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
TIME=$PROGRAMS/softirq_time
SAMPLE=${SAMPLE:-10}
LIMIT=${LIMIT:-300000}
TRACE=/sys/kernel/tracing
ENTRY='hist:keys=common_cpu:ts0=common_timestamp.usecs'
# shellcheck disable=SC2016 # $ is for the kernel
EXIT='hist:keys=common_cpu:lat=common_timestamp.usecs-$ts0:onmax($lat).save(vec)'

steer() { # each host's packets are received on a CPU of their own
	on h2 sh -c 'echo 1 > /sys/class/net/v2/queues/rx-0/rps_cpus' && on h1 sh -c 'echo 2 > /sys/class/net/v1/queues/rx-0/rps_cpus'
}

# The kernel's own measurement of the longest softirq handler per CPU and kind.
trace_on() {
	[ -e $TRACE/events/irq ] || mount -t tracefs t $TRACE || return
	echo "$ENTRY" > $TRACE/events/irq/softirq_entry/trigger && echo "$EXIT" > $TRACE/events/irq/softirq_exit/trigger
}
trace_off() {
	echo "!$EXIT" > $TRACE/events/irq/softirq_exit/trigger
	echo "!$ENTRY" > $TRACE/events/irq/softirq_entry/trigger
}
longest_softirq() { # of CPU 0, us; and its number
	awk '/common_cpu:/ { cpu = $3 } cpu + 0 == 0 && /max:/ { for (i = 1; i < NF; i++) if ($i == "max:") max = $(i + 1) }
		cpu + 0 == 0 && /vec:/ { for (i = 1; i < NF; i++) if ($i == "vec:") vec = $(i + 1) }
		END { print max + 0, "vec", vec + 0 }' $TRACE/events/irq/softirq_exit/hist
}

declare -A calm
# watched NAME: measures, prints, and leaves the 99.9 % values of B's pings and of B's timer in $ping and $timer
watched() {
	local out status
	trace_on || return
	out=$(on h1 timeout 200 "$TIME" watch -a $H2IP -t "$SAMPLE")
	status=$?
	printf '%s\n' "$out" "softirq $(longest_softirq)" | sed "s/^/# $1: /" >&3
	trace_off
	[ $status = 0 ] || return
	read -r _ _ _ _ ping _ <<< "$(grep ping <<< "$out")"
	read -r _ _ _ _ timer _ <<< "$(grep timer <<< "$out")"
}
# beside_program NAME KIND QPS
beside_program() {
	local pid status=0
	"$TIME" attack -d $H1DEV -k "$2" -n "$3" > /tmp/attack 2>&1 &
	pid=$!
	wait_for 3 false
	watched "$1" || status=1
	kill -0 $pid || { cat /tmp/attack; status=1; }
	kill -9 $pid
	wait $pid 2> /dev/null
	return $status
}
calibrate() {
	local ping timer
	watched "without A" && beside_program "computing" compute 1 || return
	calm=([ping]=$ping [timer]=$timer)
}
bound() { echo $(($1 + LIMIT)); }
beside() { # KIND QPS
	local ping timer
	beside_program "$1, $2" "$1" "$2" || return
	echo "99.9 %: ping $ping us, beside a program that computes ${calm[ping]}; timer $timer us, ${calm[timer]}"
	[ "$ping" -le "$(bound "${calm[ping]}")" ] && [ "$timer" -le "$(bound "${calm[timer]}")" ]
}

exec 3>&1
ktap_header
{ load_modules && two_hosts; } > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
"$TIME" order -d $H1DEV > /tmp/order 2>&1
ktap_relay /tmp/order softirq_time $?
if [ "$(nproc)" -ge 2 ] && [[ ${LAB:-} != @(uml-debug|smp-*) ]]; then
	{ steer && calibrate; } || { ktap_fail "measurement without A"; ktap_end; }
	ktap_check "B beside a QP of A that is flushed" beside flush 1
	ktap_check "B beside 32 QPs of A that are flushed" beside flush 32
	ktap_check "B beside doorbell hints of A that name 32 such QPs" beside hints 32
	ktap_check "B beside a completion queue of A that is resized" beside resize 1
else
	ktap_skip "B beside A" "needs two CPUs, and a kernel without sanitizers"
fi
ktap_end
