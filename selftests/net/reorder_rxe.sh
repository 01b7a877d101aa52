#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# rdma_rxe sends to roan over a link that reorders packets or loses some, in virtual time: a NAK makes rdma_rxe send again
# all from the gap on, so where no packet is lost there are only those by which roan learns of the reordering. 16 WRITEs of
# 64 KiB are under way. "of ideal": of the line rate, less the headers; at 40 Gb/s rdma_rxe's window is full for a part of
# the round trip, to which the delay of the reordering adds. Where packets are lost and not reordered the gaps have NAKs; a
# copy that is lost, too, costs rdma_rxe its ACK timeout.
#
# lossy_link.sh draws the hosts, rdma_rxe at the first. MS=MILLISECONDS: length of each measurement (100).
HERE=$(dirname "$(readlink -f "$0")")
# shellcheck disable=SC2034 # lib.sh reads it
LINK_TYPE=roan
. "$HERE/../vm/lib.sh"
. "$HERE/lossy_link.sh"
MS=${MS:-100}

naks() { cat /sys/class/infiniband/rxe1/ports/1/hw_counters/rcvd_seq_err; }
gaps() { counter roan2 out_of_seq_request; }

# These packets overtake what v1 has sent in the last US microseconds.
reordering() { # US PER_CENT
	[ "$2" != 0 ] || { tc qdisc del dev v1 root 2> /dev/null; return 0; }
	tc qdisc replace dev v1 root netem delay "$1us" reorder "$2%" limit 100000
}

# overtaken GBPS RTT_US LOSS_% LATE_US REORDERED_% IDEAL LEAST MOST: IDEAL: the least goodput, % of ideal; LEAST: NAKs, % of
# gaps; MOST: NAKs after the first 30 ms
overtaken() {
	local early late gaps bits
	lossy p2 "$1" "$2" "$3" && lossy p1 "$1" "$2" 0 && reordering "$4" "$5" || return
	rm -f /tmp/series.csv
	on h2 timeout 60 "$PROGRAMS/traffic" -d roan2 -k 1 > /tmp/server 2>&1 &
	sleep 0.1
	early=$(naks) gaps=$(gaps)
	timeout 60 "$PROGRAMS/traffic" -d rxe1 -s 65536 -m 4096 -q 16 -z "$MS" -o /tmp/series.csv 10.7.0.2 > /tmp/flow &
	sleep 0.03
	late=$(naks) early=$((late - early))
	wait
	late=$(($(naks) - late)) gaps=$(($(gaps) - gaps))
	cat /tmp/flow
	bits=$(awk -F, 'NR > 1 { n += $2 } END { print n * 8 }' /tmp/series.csv)
	awk -v bits="$bits" -v ms="$MS" -v g="$1" -v early=$early -v late=$late -v gaps=$gaps \
		-v ideal="$6" -v least="$7" -v most="$8" -v lost="$3" -v reordered="$5" 'BEGIN {
		rate = bits / ms / 1e6; share = 100 * rate / (g * 4096 / (4096 + 58))
		printf "# %.2f Gb/s, %.0f %% of ideal, %d gaps, NAKs: %d at first, %d later\n", rate, share, gaps, early, late
		exit share < ideal || 100 * (early + late) < least * gaps || late > most ||
			(lost + reordered > 0 && !gaps) }' >&3
}

exec 3>&1
ktap_header
modinfo rdma_rxe > /dev/null 2>&1 || { ktap_skip "reordering" "this kernel has no rdma_rxe"; ktap_end; }
lossy_hosts rxe > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
while read -r gbps rtt loss late reordered ideal least most; do
	ktap_check "$gbps Gb/s, $rtt us, $loss % lost, $reordered % overtake by $late us" \
		overtaken "$gbps" "$rtt" "$loss" "$late" "$reordered" "$ideal" "$least" "$most"
done <<-END
	10 20 0 20 0 95 0 0
	10 20 0 20 1 95 0 0
	10 20 0 20 5 90 0 0
	10 100 0 20 1 95 0 0
	10 100 0 20 5 90 0 0
	40 100 0 20 1 45 0 0
	40 100 0 100 1 45 0 0
	10 20 1 20 0 10 90 1000
END
ktap_end
