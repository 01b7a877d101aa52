#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Goodput of one QP over a link that loses single packets, and how many packets are sent again for each lost one. In
# virtual time, so that it depends on the protocol only. 16 WRITEs of 64 KiB are under way. "of ideal": of the line rate,
# less the lost packets and the headers.
#
#	h1: v1, roan1 ==p1 s p2== v2, roan2 :h2		s: a bridge; p2: netem: line rate, half the RTT, loss; p1: the same
#	without loss. v1 and v2 segment what they send, as netem would lose whole GSO skbs.
# At 5 % no share is asked for: a repair that is lost before a round trip was measured waits for the ACK timeout.
# MS=MILLISECONDS: length of each measurement (40).
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
MS=${MS:-40}

# two_hosts() pings, and ping polls, which stops the virtual clock.
hosts() {
	local n
	load_modules && modprobe sch_netem && ip netns add s && on s ip link add br0 type bridge && on s ip link set br0 up mtu 4200 || return
	for n in 1 2; do
		ip netns add h$n && ip link add v$n netns h$n mtu 4200 type veth peer name p$n netns s mtu 4200 &&
			on s ip link set p$n master br0 up && on h$n ip link set lo up && on h$n ip addr add 10.7.0.$n/24 dev v$n &&
			on h$n ip link set v$n up && on h$n ethtool -K v$n gso off tx-udp-segmentation off > /dev/null || return
	done
	sleep 2		# the kernel reports link changes at most once a second
	link_add roan1 v1 h1 && link_add roan2 v2 h2
}
# Loses RoCE only, not the programs' TCP connection.
lossy() { # PORT RATE DELAY LOSS_%
	on s tc qdisc replace dev "$1" root handle 1: prio bands 2 priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 &&
		on s tc qdisc replace dev "$1" parent 1:1 netem delay "$3" &&
		on s tc qdisc replace dev "$1" parent 1:2 handle 2: netem rate "$2" delay "$3" loss "$4%" limit 100000 &&
		on s tc filter replace dev "$1" parent 1: prio 1 protocol ip u32 match ip dport 4791 0xffff flowid 1:2
}
resent() { counter roan1 resent_pkts; }
dropped() { on s tc -s qdisc show dev p2 | grep -A1 'netem 2:' | grep -o 'dropped [0-9]*' | cut -d' ' -f2; }

# goodput GBPS RTT_US PATH_MTU LOSS_% IDEAL MOST_RESENT: IDEAL is the least share of it, in per cent
goodput() {
	local again lost bits
	lossy p2 "$1gbit" "$(($2 / 2))us" "$4" && lossy p1 "$1gbit" "$(($2 / 2))us" 0 || return
	on h2 timeout 60 "$PROGRAMS/traffic" -d roan2 -k 1 > /tmp/server 2>&1 &
	sleep 0.1
	again=$(resent) lost=$(dropped)
	on h1 timeout 60 "$PROGRAMS/traffic" -d roan1 -s 65536 -m "$3" -q 16 -z "$MS" -o /tmp/series.csv $H2IP > /tmp/flow || return
	again=$(($(resent) - again)) lost=$(($(dropped) - lost))
	wait
	cat /tmp/flow
	bits=$(awk -F, 'NR > 1 { n += $2 } END { print n * 8 }' /tmp/series.csv)
	awk -v bits="$bits" -v ms="$MS" -v g="$1" -v mtu="$3" -v loss="$4" -v again=$again -v lost=$lost -v least="$5" -v most="$6" 'BEGIN {
		rate = bits / ms / 1e6; share = rate / (g * (1 - loss / 100) * mtu / (mtu + 58)); per = lost ? again / lost : 0
		printf "# %.2f Gb/s, %.0f %% of ideal, %d lost, %.2f sent again for each\n", rate, 100 * share, lost, per
		exit share * 100 < least || per > most }' >&3
}

exec 3>&1
ktap_header
[ "$LINK_TYPE" = roan ] || { ktap_skip "goodput under loss" "needs roan's counters"; ktap_end; }
hosts > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
while read -r gbps rtt mtu loss least most; do
	ktap_check "$gbps Gb/s, $rtt us, path MTU $mtu, $loss % lost" goodput "$gbps" "$rtt" "$mtu" "$loss" "$least" "$most"
done <<-END
	10 20 4096 0 99 0
	10 20 4096 0.1 95 1.5
	10 20 4096 1 85 1.5
	10 20 4096 5 0 1.5
	10 100 4096 0.1 95 1.5
	10 100 4096 1 70 1.5
	40 20 4096 0.1 90 1.5
	40 20 4096 1 70 1.5
	40 100 4096 0.1 75 1.5
	40 100 4096 1 40 1.5
	25 20 1024 0.1 90 1.5
	25 20 1024 1 60 1.5
END
ktap_end
