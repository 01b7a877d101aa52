#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# DCQCN of a QP with several paths, over four links with queues that mark packets: a CNP counts for the path that was marked
# only. In virtual time, so that goodput depends on the protocol only.
#
#	h1: v1, roan1 ==u1 r1 a1 ==== b1 r2 u2== v2, roan2 :h2		aN: tbf: line rate, RED with ECN
#	                      ...	(4 links)			bN, u2: netem: half the RTT of 20 us each
#
# MS=MILLISECONDS: length of each measurement (100); the first WARM (40) do not count. PATHS: cc_param/paths (32).
# ONLY=WORDS: the cases with them.
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
. "$HERE/lossy_link.sh"
. "$HERE/multipath_links.sh"
MS=${MS:-100} WARM=${WARM:-40} PATHS=${PATHS:-32}

# marking MIN MAX PROBABILITY GBPS...: bytes between which the queue of each link marks; its rate. The queue is the
# momentary one; a token bucket for two packets and 2 us does not lose throughput by late timers (cc/lab.sh).
marking() {
	local min=$1 max=$2 p=$3 i=0 gbps mbps
	shift 3
	on r2 tc qdisc replace dev u2 root netem delay 10us limit 100000 || return
	for gbps in "$@"; do
		i=$((i + 1)) mbps=$(awk "BEGIN { print $gbps * 1000 }")
		on r1 tc qdisc del dev a$i root 2> /dev/null
		on r1 tc qdisc add dev a$i root handle 1: tbf rate "${mbps}mbit" burst $((2 * (MTU + 14) + mbps / 4)) limit 12m &&
			on r1 tc qdisc add dev a$i parent 1:1 handle 10: red limit 12000000 min "$min" max "$max" avpkt 4154 \
				burst $(((min + 4153) / 4154)) bandwidth 34gbit probability "$p" ecn nodrop &&
			on r2 tc qdisc replace dev b$i root netem delay 10us limit 100000 || return
	done
}

mean_gbps() { # CSV: on the wire, after the first WARM ms
	awk -F, -v from="$WARM" -v to="$MS" 'NR > 1 && $1 > from * 1000 && $1 <= to * 1000 { n += $2 * 8 }
		END { printf "%.1f", n / (to - from) / 1e6 * 4154 / 4096 }' "$1"
}

sends() { # PATHS PORT CSV: writes from EPOCH on, for MS milliseconds
	rm -f "$3"
	set_paths "$1"
	on h2 timeout 60 "$PROGRAMS/traffic" -d roan2 -p "$2" -k 1 > /tmp/server 2>&1 &
	sleep 0.1
	on h1 timeout 60 "$PROGRAMS/traffic" -d roan1 -p "$2" -e "$EPOCH" -z "$MS" -o "$3" -s 65536 -m 4096 -q 16 10.7.2.1 > /tmp/flow &
	sleep 0.1		# its QP has connected
}

# shared LEAST OTHER MIN MAX PROBABILITY GBPS...: a QP with several paths gets LEAST per cent of what a QP with one
# path leaves, and that one OTHER Gb/s. OTHER 0: there is none. The mean of TIMES measurements, each with new QPs: 32
# ports are not spread evenly over four links, and what several of them send to one link at once is marked.
TIMES=1
shared() {
	local least=$1 other=$2 cnps a='' b='' sum i
	shift 2
	marking "$@" || return
	shift 3
	sum=$(IFS=+; awk "BEGIN { print $* }")
	cnps=$(counter roan1 rp_cnp_handled)
	for ((i = 0; i < TIMES; i++)); do
		EPOCH=$(awk '{ printf "%.0f", ($1 + 0.5) * 1e9 }' /proc/uptime)
		sends "$PATHS" 18515 /tmp/a.csv
		[ "$other" = 0 ] || sends 1 18516 /tmp/b.csv
		wait
		a+="${a:++}$(mean_gbps /tmp/a.csv)"
		[ "$other" = 0 ] || b+="${b:++}$(mean_gbps /tmp/b.csv)"
	done
	[ "$TIMES" = 1 ] || echo "# $a" >&3
	a=$(awk "BEGIN { printf \"%.1f\", ($a) / $TIMES }") b=$(awk "BEGIN { printf \"%.1f\", (${b:-0}) / $TIMES }")
	echo "# $a of $(awk "BEGIN { printf \"%.1f\", $sum - $b }") Gb/s; the other QP $b; $(($(counter roan1 rp_cnp_handled) - cnps)) CNPs" >&3
	awk "BEGIN { exit $a < ($sum - $b) * $least / 100 || $b < $other }"
}

exec 3>&1
ktap_header
modprobe -qa sch_tbf sch_red
fabric > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
echo 40000 > /sys/class/infiniband/roan1/ports/1/cc_param/link_speed		# a veth reports 10 Gb/s
check() {
	[[ -z ${ONLY:-} || $1 == *$ONLY* ]] || return 0
	ktap_check "$@"
}
TIMES=4 check "four links of 10 Gb/s that mark from 30 KB on, mean of four QPs" shared 75 0 30000 31000 1 10 10 10 10
check "links of 10, 10, 10 and 2.5 Gb/s that mark from 100 KB on" shared 85 0 100000 101000 1 10 10 10 2.5
check "another QP on one of four links that mark from 100 KB on" shared 85 2.5 100000 101000 1 10 10 10 10
check "another QP on one of four links, which mark more from 40 to 160 KB" shared 85 2.5 40000 160000 0.5 10 10 10 10
ktap_end
