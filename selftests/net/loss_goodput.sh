#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Goodput of one QP over a link that loses single packets, or lets some overtake others, and how many packets are sent
# again for each lost one. In virtual time, so that it depends on the protocol only. 16 WRITEs or READs of 64 KiB are under
# way; of READs, requests sent again are counted.
# "of ideal": of the line rate, less the lost packets and the headers. The lost ones do not take time on the line, and what
# is under way at the begin is counted: a little more than 100 % is possible.
#
# lossy_link.sh draws the hosts. The peers send SACKs; "standard": the receiver does not, but keeps what comes after a gap. If
# two packets in a row are lost before that is known, a whole window is sent again.
# With reordering the receiver answers the first gaps by NAKs, each of which sends some 16 packets again, until a late packet has
# come: of 16 QPs 14 sent 1 to 16 again, two 36 and 38.
# MS=MILLISECONDS: length of each measurement (40), twice that with a round trip of 100 us. ONLY=VERB: write or read.
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
. "$HERE/lossy_link.sh"
MS=${MS:-40}

resent() { counter "$1" resent_pkts; }
dropped() { on s tc -s qdisc show dev p2 | grep -A1 'netem 2:' | grep -o 'dropped [0-9]*' | cut -d' ' -f2; }

# After the line these packets overtake those of the last 20 us.
reordering() { # PER_CENT
	[ "$1" != 0 ] || { on s tc qdisc del dev p2 parent 2:1 2> /dev/null; return 0; }
	on s tc qdisc replace dev p2 parent 2:1 handle 3: netem delay 20us reorder "$1%" limit 100000
}
peer_mode() { echo "$1" > /sys/class/infiniband/roan2/ports/1/cc_param/peer_mode; }

# goodput VERB GBPS RTT_US PATH_MTU LOSS_% REORDERED_% PEER IDEAL MOST: data goes from h1 to h2. IDEAL is the least share of it, in per cent; MOST, how
# many packets may be sent again for each lost one, or without loss in all
goodput() {
	local again lost bits client=1 server=2 ms=$(($3 < 100 ? MS : 2 * MS))
	local data=(-s 65536 -m "$4" -q 16 -z "$ms")
	[ "$1" = write ] || { client=2 server=1; data+=(-R); }
	shift
	lossy p2 "$1" "$2" "$4" && lossy p1 "$1" "$2" 0 && reordering "$5" && peer_mode "$6" || return
	on h$server timeout 60 "$PROGRAMS/traffic" -d roan$server -k 1 > /tmp/server 2>&1 &
	sleep 0.1
	again=$(resent roan$client) lost=$(dropped)
	on h$client timeout 60 "$PROGRAMS/traffic" -d roan$client "${data[@]}" -o /tmp/series.csv 10.7.0.$server > /tmp/flow || return
	again=$(($(resent roan$client) - again)) lost=$(($(dropped) - lost))
	wait
	cat /tmp/flow
	bits=$(awk -F, 'NR > 1 { n += $2 } END { print n * 8 }' /tmp/series.csv)
	awk -v bits="$bits" -v ms=$ms -v g="$1" -v mtu="$3" -v loss="$4" -v again=$again -v lost=$lost -v least="$7" -v most="$8" 'BEGIN {
		rate = bits / ms / 1e6; share = rate / (g * (1 - loss / 100) * mtu / (mtu + 58)); per = lost ? again / lost : again
		printf "# %.2f Gb/s, %.0f %% of ideal, %d lost, %.2f sent again %s\n", rate, 100 * share, lost, per, lost ? "for each" : "in all"
		exit share * 100 < least || per > most || (loss > 0 && !lost) }' >&3
}

# lone GBPS RTT_US LOSS_% WHICH MOST: latency of one WRITE of 4 KiB at a time: WHICH (p99, max) is at most MOST us
lone() {
	local us which=$4
	lossy p2 "$1" "$2" "$3" && lossy p1 "$1" "$2" 0 && reordering 0 && peer_mode auto || return
	flow $H2IP -s 4096 -q 1 -z 400 || return
	grep -o 'lat_us.*' /tmp/flow | sed 's/^/# /' >&3
	us=$(grep -o "lat_us_$which=[0-9]*" /tmp/flow) && [ "${us#*=}" -le "$5" ]
}

exec 3>&1
ktap_header
[ "$LINK_TYPE" = roan ] || { ktap_skip "goodput under loss" "needs roan's counters"; ktap_end; }
lossy_hosts > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
while read -r verb gbps rtt mtu loss reordered peer least most; do
	[ "${ONLY:-$verb}" = "$verb" ] || continue
	ktap_check "$verb, $gbps Gb/s, $rtt us, path MTU $mtu, $loss % lost, $reordered % reordered, peer mode $peer" \
		goodput "$verb" "$gbps" "$rtt" "$mtu" "$loss" "$reordered" "$peer" "$least" "$most"
done <<-END
	write 10 20 4096 0 0 auto 99 0
	write 10 20 4096 0.1 0 auto 95 1.5
	write 10 20 4096 1 0 auto 90 1.5
	write 10 20 4096 5 0 auto 90 1.5
	write 10 100 4096 0.1 0 auto 95 1.5
	write 10 100 4096 1 0 auto 90 1.5
	write 10 100 4096 5 0 auto 80 1.5
	write 40 20 4096 0.1 0 auto 95 1.5
	write 40 20 4096 1 0 auto 95 1.5
	write 40 20 4096 5 0 auto 85 1.5
	write 40 100 4096 0.1 0 auto 92 1.5
	write 40 100 4096 1 0 auto 90 1.5
	write 40 100 4096 5 0 auto 70 1.5
	write 25 20 1024 0.1 0 auto 95 1.5
	write 25 20 1024 1 0 auto 95 1.5
	write 25 20 1024 5 0 auto 80 1.5
	write 10 20 4096 1 0 standard 85 4
	write 10 20 4096 0 1 auto 95 0
	write 10 20 4096 0 5 auto 95 0
	write 40 20 4096 0 1 auto 95 0
	write 40 20 4096 0 5 auto 95 0
	write 25 20 1024 0 1 auto 95 0
	write 10 20 4096 0 1 standard 95 20
	write 10 20 4096 0 5 standard 95 50
	write 10 20 4096 1 1 standard 70 4
	write 10 20 4096 1 1 auto 80 4
	read 10 20 4096 0 0 standard 95 0
	read 10 20 4096 0.1 0 standard 90 2
	read 10 20 4096 1 0 standard 80 2
	read 40 20 4096 1 0 standard 70 2
	read 10 20 4096 0 1 standard 90 40
	read 10 20 4096 1 0 auto 85 2
	read 10 20 4096 5 0 auto 50 2
	read 40 20 4096 1 0 auto 70 2
	read 40 100 4096 0.1 0 auto 85 2
	read 40 100 4096 1 0 auto 65 2
	read 10 20 4096 0 5 auto 95 40
	read 40 20 4096 0 5 auto 95 40
END
ktap_check "10 Gb/s, 100 us, lone WRITEs of 4 KiB, 2 % lost: 99 % within four round trips" lone 10 100 2 p99 400
ktap_check "10 Gb/s, 100 us, lone WRITEs of 4 KiB, 0.1 % lost: all within 1.4 ms, the first loss too" lone 10 100 0.1 max 1400
ktap_end
