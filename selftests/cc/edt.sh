#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Earliest departure time (pacer_edt): GSO skbs are sent to fq before their departure time, and fq holds them. In
# virtual time, where early and late are exact. A QP with a rate limit sends; edt_check.py at the receiver measures how
# far packets are ahead of the rate.
#
#	h1: roan1 v1 == fq or nothing ======== v2 roan2 :h2
HERE=$(dirname "$(readlink -f "$0")")
# shellcheck source=selftests/vm/lib.sh
. "$HERE/../vm/lib.sh"
SYS=/sys/class/infiniband
# Allowed lead: one GSO skb, plus what the pacer may be ahead, twice 20 us of the rate, plus fq's timer, up to 10 us
# late.
MBPS=2000
SPAN=20		# us in a GSO skb
MOST=$((2 * 5000 + 2 * 1086 + MBPS * SPAN / 8))

# two_hosts() pings, and ping polls, which stops the virtual clock.
hosts() {
	local n
	ip netns add h1 && ip netns add h2 && lay_wire 4200 || return
	for n in 1 2; do
		on h$n ip link set lo up && on h$n ip addr add 10.7.0.$n/24 dev v$n && on h$n ip link set v$n up || return
	done
	sleep 2		# the kernel reports link changes at most once a second
	link_add roan1 v1 h1 && link_add roan2 v2 h2
}
value() { cat "$SYS/$1/ports/1/hw_counters/$2"; }
edt() { echo "$1" | tee $SYS/roan1/ports/1/cc_param/pacer_edt > $SYS/roan2/ports/1/cc_param/pacer_edt; }
early() { echo $(($(value roan1 sent_edt_skbs) + $(value roan2 sent_edt_skbs))); }
again() { echo $(($(value roan1 resent_pkts) + $(value roan2 resent_pkts) + $(value roan1 tx_dropped) + $(value roan2 tx_dropped))); }

# Half way through, prints the round trips measured by h1's transport and by Swift. An idle link has nearly none.
look_at_rtt() { sleep 0.04; rdma -j -dd resource show qp link roan1/1 | grep -o '"drv_s*rtt_ns":[0-9]*' > /tmp/rtt; }
# paced WATCHED-HOST IFACE OPTIONS...: traffic from h1 to h2 (or back, with -R); sets sent_early to the number of skbs
# sent early
paced() {
	local host=$1 iface=$2 watcher looker epoch before lost rc=0
	shift 2
	before=$(early) lost=$(again)
	rm -f /tmp/watching
	ip netns exec "$host" python3 "$HERE/edt_check.py" "$iface" $MBPS /tmp/watching > /tmp/seen & watcher=$!
	wait_for 5 test -e /tmp/watching
	epoch=$(python3 -c "import time; print(time.clock_gettime_ns(time.CLOCK_MONOTONIC) + 20000000)")
	look_at_rtt & looker=$!
	on h1 timeout 60 "$PROGRAMS/traffic" -d roan1 -s 16384 -m 1024 -q 16 -e "$epoch" -z 40 "$@" $H2IP > /tmp/flow || rc=1
	kill $watcher; wait $watcher $looker
	sent_early=$(($(early) - before))
	cat /tmp/flow /tmp/seen /tmp/rtt
	echo "early: $sent_early skbs, sent again or refused: $(($(again) - lost)), at most $MOST bytes ahead"
	awk -v most=$MOST '{ split($0, w, /[ =]/); exit !(w[2] > 100 && w[6] > 0 && w[6] <= most && w[8] > .97 && w[8] < 1.03) }' /tmp/seen &&
		[ "$(again)" = "$lost" ] && [ $rc = 0 ]
}
kept_by_fq() { paced "$@" && [ "$sent_early" -gt 100 ]; }
timed() { # round trips count from the departure time, not from the hand-over to fq, two GSO skbs earlier or more
	kept_by_fq "$@" && awk -F: -v most=$((SPAN * 1000)) '$2 > most { late = 1 } { n[$1] = 1 } END { exit late || length(n) != 2 }' /tmp/rtt
}
kept_by_us() { paced "$@" && [ "$sent_early" = 0 ]; }

ktap_header
[ "$LINK_TYPE" = roan ] || { ktap_skip "edt" "needs roan's parameters"; ktap_end; }
{ load_modules && hosts; } > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
modprobe -q sch_fq
on h2 "$PROGRAMS/traffic" -d roan2 -s 16384 -m 1024 & server=$!
wait_for 5 on h2 sh -c 'ss -Hltn "sport = :18600" | grep -q .'
edt 1
ktap_check "pacer_edt without fq: roan's own pacer keeps the rate" kept_by_us h2 v2 -r $MBPS
for n in 1 2; do
	on h$n tc qdisc add dev v$n root fq || { ktap_skip "edt" "no fq"; ktap_end; }
done
ktap_check "pacer_edt with fq: fq holds skbs until their time, and no packet is early" kept_by_fq h2 v2 -r $MBPS
ktap_check "pacer_edt with fq: the same with four QPs" kept_by_fq h2 v2 -n 4 -r $((MBPS / 4))
echo swift > $SYS/roan1/ports/1/cc_param/algo
edt 1		# a parameter of this algorithm
ktap_check "pacer_edt with fq: round trips are measured from the departure time" timed h2 v2 -r $MBPS
echo fixed > $SYS/roan2/ports/1/cc_param/algo
echo $MBPS > $SYS/roan2/ports/1/cc_param/fixed_rate
edt 1		# a parameter of this algorithm
ktap_check "pacer_edt with fq: READ responses" kept_by_fq h1 v1 -R
ktap_check "pacer_edt with fq: READ responses and ACKs of WRITEs, in order" kept_by_fq h1 v1 -X -q 2
edt 0
ktap_check "pacer_edt off: skbs reach fq at their time" kept_by_us h2 v2 -r $MBPS
kill $server
ktap_end
