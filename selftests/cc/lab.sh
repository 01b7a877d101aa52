#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# One scenario in a guest in virtual time: builds the network, runs the flows, leaves the measurements in KEPT. It has
# no verdict; report.py computes the figures. Called by `run`, which has the defaults of:
#   lab.sh SCENARIO N GBPS RTT_US MTU ALGO SECONDS RED_MIN RED_MAX RED_PROBABILITY SIZE SLOWER [PARAMETER=VALUE...]
# MARKS=leaving: queues mark leaving packets, as many switches do (egress.c), not arriving ones, as Linux's red does.
# LATE_US: how late timers may be without loss of throughput at the bottleneck (2; UML's clock ticks every 256 ns).
#
# Hosts are namespaces h1, h2, ...; switches are bridges in namespaces sw1, sw2, ...
#
#   hN e0 ---- pN swX ==== swY pR ---- e0 hR
#      netem         tbf+red   tbf+red  netem		netem: the NIC's rate, and half the round trip
#
# All links have the same rate, except the one between the switches of `victim`, which has that of all hosts together.
# Switch ports towards senders have no queue. Ports towards a receiver and between switches are token buckets with RED
# inside, with a burst of two frames and LATE_US. Segmentation and GRO are off, so that each packet is marked, counted
# and delayed separately.
set -eu
# shellcheck source=selftests/vm/lib.sh
. "$REPO/selftests/vm/lib.sh"
scenario=$1 n=$2 gbps=$3 rtt=$4 mtu=$5 algo=$6 seconds=$7 red_min=$8 red_max=$9 red_p=${10} size=${11} slower=${12}
shift 12
params=("$@")
KEPT=${KEPT:-/out/kept}
mkdir -p "$KEPT"
mbps=$(python3 -c "print(round($gbps * 1000))")
frame=$((mtu + 58))		# BTH, ICRC, UDP, IPv4 and Ethernet around the payload
link_mtu=$((mtu + 104))		# the MTU for which the RDMA core chooses this path MTU
limit=$((12 << 20))		# bytes a port may hold
depth=$(((1 << 20) / size))	# messages under way per flow
[ "$scenario$n" != long-rtt1 ] || depth=$((4 * depth))	# a single sender must fill a long path
half_rtt=$(python3 -c "print($rtt / 2)")	# us
warm=20				# ms from set-up to time zero of the series
cap=			# Mb/s; upper limit of a flow
lossless=		# yes: switches send pause frames, and hosts honour them
lead=$(python3 -c "print(int(10 * $slower))")	# ms during which the first flow is alone
end=$(python3 -c "print(int($seconds * 1000))")

switch() { # SW
	ip netns add "$1"
	on "$1" sysctl -qw net.ipv6.conf.all.disable_ipv6=1
	ip -n "$1" link add br0 type bridge stp_state 0 mcast_snooping 0
	ip -n "$1" link set br0 up
}

plain() { # NETNS IFACE
	ip -n "$1" link set "$2" gso_max_segs 1 up
	on "$1" ethtool -K "$2" tso off gso off gro off > /dev/null 2>&1
}

queue_at() { # SW IFACE [MBPS]: the rate of the link, and a queue that marks
	local rate=${3:-$mbps}
	tc -n "$1" qdisc add dev "$2" root handle 1: tbf rate "${rate}mbit" burst $((2 * (link_mtu + 14) + rate * ${LATE_US:-2} / 8)) limit $limit
	if [ "$scenario" = ecn-off ]; then
		tc -n "$1" qdisc add dev "$2" parent 1:1 handle 10: bfifo limit $limit
		return
	fi
	if [ "${MARKS:-}" = leaving ]; then
		tc -n "$1" qdisc add dev "$2" parent 1:1 handle 10: egress_red
		return
	fi
	# burst = min/avpkt rounded up makes the average follow the queue (weight 1/2). tc accepts at most 34 Gb/s as
	# bandwidth, which sets how the average decays while the queue is empty
	tc -n "$1" qdisc add dev "$2" parent 1:1 handle 10: red limit $limit min "$red_min" max "$red_max" avpkt $frame \
		burst $(((red_min + frame - 1) / frame)) bandwidth 34gbit probability "$red_p" ecn nodrop
	[ -z "$lossless" ] || tc -n "$1" qdisc add dev "$2" parent 10:1 handle 20: lossless
}

host() { # NUMBER SW
	local h=h$1
	ip netns add "$h"
	on "$h" sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv4.tcp_ecn=1
	ip -n "$h" link set lo up
	ip link add e0 netns "$h" mtu $link_mtu type veth peer name "p$1" netns "$2" mtu $link_mtu
	ip -n "$2" link set "p$1" master br0
	plain "$2" "p$1"
	ip -n "$h" addr add "10.8.0.$1/24" dev e0
	plain "$h" e0
	tc -n "$h" qdisc add dev e0 root netem rate "${mbps}mbit" delay "${half_rtt}us" limit 1000000
	link_add "roan$1" e0 "$h"
	configure "$1"
}

trunk() { # SW1 SW2 [MBPS]
	ip link add "$2" netns "$1" mtu $link_mtu type veth peer name "$1" netns "$2" mtu $link_mtu
	ip -n "$1" link set "$2" master br0
	ip -n "$2" link set "$1" master br0
	plain "$1" "$2"
	plain "$2" "$1"
	queue_at "$1" "$2" "${3:-$mbps}"
}

# The complete sysfs of a device is visible in the initial namespace only.
port_of() { # HOST
	echo "/sys/class/infiniband/roan$1/ports/1"
}

configure() { # HOST: sets its congestion control
	local p dir
	dir=$(port_of "$1")/cc_param
	for p in "algo=$algo" "link_speed=$mbps" "${params[@]}"; do	# a veth reports 10 Gb/s
		echo "${p#*=}" > "$dir/${p%%=*}"
	done
}

receivers=()
receiver() { # NUMBER SW: its port is a bottleneck
	host "$1" "$2"
	queue_at "$2" "p$1"
	receivers+=("$1")
	on "h$1" "$PROGRAMS/traffic" -d "roan$1" -s "$size" -m "$mtu" &
}

plan=()
flow() { # FROM TO START_MS STOP_MS [-T]
	plan+=("$*")
}

watched() { # SW IFACE: the queue that is measured
	watch_sw=$1 watch_if=$2
}

# ---- scenarios: hosts, switches, and start and stop of flows ----

incast() {
	local i
	switch sw1
	receiver 100 sw1
	for i in $(seq "$n"); do
		host "$i" sw1
		flow "$i" 100 "$([ "$i" = 1 ] && echo 0 || echo "$lead")" "$end"
	done
	watched sw1 p100
}

stagger() {	# one more every step until all are there, then one fewer
	local i step=$((end / (2 * n)))
	switch sw1
	receiver 100 sw1
	for i in $(seq "$n"); do
		host "$i" sw1
		flow "$i" 100 $(((i - 1) * step)) $((end - (n - i) * step))
	done
	watched sw1 p100
}

parking_lot() {	# flow 1 passes both bottlenecks, flow 2 the first, flow 3 the second
	switch sw1; switch sw2; switch sw3
	trunk sw1 sw2; trunk sw2 sw3
	receiver 100 sw3; receiver 101 sw2; receiver 102 sw3
	host 1 sw1; host 2 sw1; host 3 sw2
	flow 1 100 0 "$end"; flow 2 101 "$lead" "$end"; flow 3 102 "$lead" "$end"
	watched sw1 sw2
}

# N hosts send to one port of the second switch; the last host's flow has no bottleneck on its path. All flows are DSCP
# 26, priority 3. Flows are capped at the link rate: packets that a host has given to its interface are not stopped by
# pauses.
victim() {
	local i last=$((n + 1))
	lossless=yes cap=$mbps params+=(traffic_class=104 pfc_prio_mask=8)
	[ -e /sys/module/roan_lossless ] || insmod "$(dirname "$(roan_ko)")/roan_lossless.ko" mbps="$mbps" gap=$((2 * frame)) || return
	echo 128000 > /sys/module/roan_lossless/parameters/xoff
	switch sw1; switch sw2
	trunk sw1 sw2 $((mbps * last))
	echo 512000 > /sys/module/roan_lossless/parameters/xoff	# a trunk may hold more than the port of one host
	receiver 100 sw2; receiver 101 sw2
	for i in $(seq $last); do
		host "$i" sw1
	done
	for i in $(seq "$n"); do
		flow "$i" 100 "$lead" "$end"
	done
	flow $last 101 0 "$end"
	watched sw2 p100
}

# Incast, with forged pauses of all priorities on the first sender's link all the time: 0xffff quanta, repeated before
# they end. The hosts' watchdog is 5 ms; then they ignore pauses for 45 ms.
storm() {
	params+=(pfc_prio_mask=1 pfc_watchdog_ms=5 pfc_restore_ms=45)
	incast
	ip netns exec sw1 python3 -c '
import socket, struct, time
wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
wire.bind(("p1", 0))
frame = bytes.fromhex("0180c2000001020000000042") + struct.pack(">HHH8H", 0x8808, 0x0101, 0xff, *[0xffff] * 8)
while True:
    wire.send(frame.ljust(60, b"\0"))
    time.sleep(0.0002)' &
}

tcp_mix() {	# the last sender's flow is TCP with ECN
	incast
	plan[n - 1]+=" -T"
	on h100 chrt -i 0 "$PROGRAMS/traffic" -T -p 18601 &	# virtual time passes while it reads clocks: others go first
}

load_modules
[ "${MARKS:-}" != leaving ] || insmod "$(dirname "$(roan_ko)")/roan_egress.ko" kmin="$red_min" kmax="$red_max" limit=$limit \
	ppm="$(python3 -c "print(round($red_p * 1e6))")"
cd "$KEPT"
case $scenario in
incast | ecn-off | long-rtt) incast ;;
stagger) stagger ;;
parking-lot) parking_lot ;;
victim) victim ;;
storm) storm ;;
tcp-mix) tcp_mix ;;
*) echo "lab.sh: no scenario $scenario"; exit 2 ;;
esac
for r in "${receivers[@]}"; do
	wait_for 5 on "h$r" sh -c 'ss -Hltn "sport = :18600" | grep -q .'
done
sleep 2		# the kernel reports link changes at most once a second
epoch=$(python3 -c "import time; print(time.clock_gettime_ns(time.CLOCK_MONOTONIC) + $warm * 1000000)")
every=$(python3 -c "print(250 * $slower)")	# us
i=0 pids=()
for f in "${plan[@]}"; do
	read -r from to start stop tcp <<< "$f"
	i=$((i + 1))
	on "h$from" timeout 600 ${tcp:+chrt -i 0} "$PROGRAMS/traffic" -d "roan$from" -s "$size" -m "$mtu" -q $depth -e "$epoch" -a "$start" -z "$stop" -i "$every" -o "flow$i.csv" \
		${cap:+-r "$cap"} ${tcp:+-T -p 18601} "10.8.0.$to" > "flow$i.txt" &
	pids+=($!)
done
echo "$epoch" > epoch
on "$watch_sw" timeout 600 "$PROGRAMS/qdisc_sampler" "$watch_if" 10: "$(python3 -c "print(20.3 * $slower)")" "$end" "$epoch" > queue.csv
bad=0
for pid in "${pids[@]}"; do
	wait "$pid" || bad=1
done
# shellcheck disable=SC2046 # a list of servers
kill $(jobs -p)

printf '%s\n' "${plan[@]}" > plan
for h in $(printf '%s\n' "${plan[@]}" | awk '{ print $1; print $2 }' | sort -u); do
	(cd "$(port_of "$h")/hw_counters" && grep . -- *) | sed "s/^/h$h:/"
done > counters
tc -n "$watch_sw" -s qdisc show dev "$watch_if" > port
[ -z "$lossless" ] || for sw in sw1 sw2; do
	tc -n $sw -j -s qdisc show | python3 -c '
import json, sys
ports = [q for q in json.load(sys.stdin) if q["kind"] == "lossless"]
for name, field in ("pfc_xoff_sent", "overlimits"), ("switch_dropped", "drops"):
    print(sys.argv[1], name, sum(q[field] for q in ports), sep=":")' $sw
done >> counters
cat > setup << END
scenario=$scenario
n=$n
gbps=$gbps
rtt_us=$rtt
frame_bytes=$frame
algo=$algo
slower=$slower
seconds=$seconds
red_min=$red_min
red_max=$red_max
red_probability=$red_p
params=${params[*]}
END
for d in /sys/class/infiniband/roan*; do
	rdma link del "${d##*/}"
done
for ns in $(ip netns list | awk '{ print $1 }'); do
	ip netns del "$ns"
done
# UML keeps the KASAN shadow of an unloaded module, so the next module loaded there would raise false reports.
[ "${LAB:-}" = uml-debug ] || {
	[ -z "$lossless" ] || wait_for 5 rmmod roan_lossless
	[ "${MARKS:-}" != leaving ] || wait_for 5 rmmod roan_egress
}
exit $bad
