#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A slow queueing discipline in front of the wire, and more to send than it passes in a second: few bytes wait in it,
# waiting packets are not treated as lost, and none is dropped. A qdisc that holds less than one skb of each QP drops some:
# such a QP waits, and does not send the rest of its window.
#
#	h1: roan1 on v1, a token bucket ==== a token bucket, v2 with roan2 :h2
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
. "$HERE/../verbs/pair.sh"
PORT=18600
QPS=64
MOST=$((2 << 20))	# bytes that may wait in the qdisc: QPS * 8 KB, times four

# The bucket's burst exceeds one GSO skb. The bucket segments larger skbs, and segmenting orphans an skb.
slow() { # LIMIT [RATE]
	a tc qdisc replace dev v1 root handle 1: tbf rate "${2:-80mbit}" burst 128k limit "$1" &&
		b tc qdisc replace dev v2 root handle 1: tbf rate "${2:-80mbit}" burst 128k limit "$1"
}

# Records the maximum number of bytes waiting at either end from now on.
watch() {
	local most=0 n
	while sleep 0.1; do
		for n in $({ a tc -j -s qdisc show dev v1; b tc -j -s qdisc show dev v2; } | grep -o '"backlog":[0-9]*'); do
			[ "${n#*:}" -le "$most" ] || { most=${n#*:}; echo "$most" > /tmp/most; }
		done
	done
}

# fq below the bucket, which is deleted first, as it would keep its queue. fq orphans skbs that have no socket.
slow_fq() {
	a tc qdisc del dev v1 root && b tc qdisc del dev v2 root && slow 100m || return
	a tc qdisc add dev v1 parent 1: fq && b tc qdisc add dev v2 parent 1: fq || return 4
}
below_fq() { slow_fq && MOST=$((4 << 20)) through ib_write_bw -q $QPS -s 65536 -n 8 "$@"; }

# The same with devices on macvlans, which have no queue of their own.
# shellcheck disable=SC2034 # pair.sh reads them
macvlan_above_fq() {
	local n ADEV=mac1 BDEV=mac2 AIP=10.8.0.1 BIP=10.8.0.2
	for n in 1 2; do
		on h$n ip link add m$n link v$n type macvlan || return 4
		on h$n ip addr add 10.8.0.$n/24 dev m$n && on h$n ip link set m$n mtu 4200 up && link_add mac$n m$n h$n || return
	done
	wait_for 60 a ping -c1 -W1 $BIP && below_fq "$@"
}

# through PROGRAM OPTIONS...: the program finishes, no packet is dropped, at most AGAIN of 100 packets are sent twice,
# few bytes wait
AGAIN=5
through() {
	local tool=$1 resent refused sent watcher rc=0
	shift
	echo 0 > /tmp/most
	resent=$(total resent_pkts) refused=$(total tx_dropped) sent=$(total sent_pkts)
	watch & watcher=$!
	PORT=$((PORT + 1))
	both 200 $PORT "$tool -d $ADEV -F -p $PORT $*" "$tool -d $BDEV -F -p $PORT $* $AIP" || rc=1
	kill $watcher
	wait $watcher
	resent=$(($(total resent_pkts) - resent)) refused=$(($(total tx_dropped) - refused)) sent=$(($(total sent_pkts) - sent))
	echo "# $tool $*: of $sent packets $resent sent again, $refused skbs refused, at most $(cat /tmp/most) bytes waited" >&3
	[ $rc = 0 ] && [ $((100 * resent)) -le $((AGAIN * sent)) ] && [ $refused = 0 ] && [ "$(cat /tmp/most)" -gt 0 ] && [ "$(cat /tmp/most)" -le "$MOST" ]
}

# overflows MOST PROGRAM OPTIONS...: the program finishes; for 100 packets that it needs at most MOST more are sent
overflows() {
	local most=$1 tool=$2 sent dropped
	shift 2
	sent=$(total sent_pkts) dropped=$(qdisc_drops)
	PORT=$((PORT + 1))
	both 300 $PORT "$tool -d $ADEV -F -p $PORT $*" "$tool -d $BDEV -F -p $PORT $* $AIP" || return
	sent=$(($(total sent_pkts) - sent)) dropped=$(($(qdisc_drops) - dropped))
	echo "# $tool $*: $sent packets sent for $NEEDED, the qdisc dropped $dropped" >&3
	[ $dropped -gt 0 ] && [ $((100 * sent)) -le $(((100 + most) * NEEDED)) ]
}

# all_dropped [PARAMETERS]: all packets of 4 KiB are longer than the bucket. A qdisc that drops each of them ends the connection,
# and soon.
all_dropped() {
	"$REPO/tools/roan" cc set "$BDEV" "$@" || return
	PORT=$((PORT + 1))
	b tc qdisc replace dev v2 root handle 1: tbf rate 80mbit burst 3000 limit 1m || return
	both 60 $PORT "ib_write_bw -d $ADEV -F -p $PORT" "ib_write_bw -d $BDEV -F -p $PORT $AIP" && return 1
	grep "Failed status 12" "$OUT_B"
}

# One QP's datagrams to the peer and, without a queue in this host, to its own address.
in_turn() {
	local drops
	slow 300k 1mbit || return
	drops=$(qdisc_drops)
	a /usr/bin/python3 "$HERE/packets/datagrams.py" "$ADEV" "$AIP" 4096 200 "$BIP/0" "$AIP/0" || return
	echo "$(($(qdisc_drops) - drops)) dropped"
	[ "$(qdisc_drops)" = "$drops" ]
}
# 16 QPs of DSCP 26, which has priority 3, beside a TCP stream. prio puts priority 3 behind best effort, where TCP leaves
# nothing to it. With the priomap of qos-pfc.md it has the band of best effort, and the same QPs go on. A new prio drops
# what waits in the old one; a priomap that is changed leaves that behind TCP.
beside_tcp() {
	local loads rc=1
	b tc qdisc del dev v2 root
	a tc qdisc replace dev v1 root handle 1: tbf rate 20mbit burst 128k limit 4m && a tc qdisc replace dev v1 parent 1:1 prio || return 4
	"${B[@]}" ib_write_bw -d "$BDEV" -s 65536 -t 8 -q 16 -F -n 1000000 --tclass=104 > "$OUT_B" 2>&1 & loads=$!
	"${B[@]}" python3 -c 'import socket
c = socket.create_server(("", 5001)).accept()[0]
while c.recv(65536): pass' > /dev/null 2>&1 & loads="$loads $!"
	wait_for 60 serving 18515 && wait_for 60 serving 5001
	"${A[@]}" ib_write_bw -d "$ADEV" -s 65536 -t 8 -q 16 -F -n 1000000 --tclass=104 "$BIP" > "$OUT_A" 2>&1 & loads="$loads $!"
	wait_for 60 arrived $(($(arrivals) + 500000))
	"${A[@]}" python3 -c 'import socket, sys
c = socket.create_connection((sys.argv[1], 5001))
while True: c.sendall(bytes(65536))' "$BIP" > /dev/null 2>&1 & loads="$loads $!"
	wait_for 60 arrived $(($(arrivals) + 4000000)) && rdma_gets 0 5 &&
		a tc qdisc del dev v1 parent 1:1 && a tc qdisc add dev v1 parent 1:1 prio bands 3 priomap 1 2 2 1 1 2 0 0 1 1 1 1 1 1 1 1 &&
		wait_for 100 arrived $(($(arrivals) + 4000000)) && rdma_gets 20 100 && rc=0
	# shellcheck disable=SC2086 # process ids
	kill $loads
	wait
	[ $rc = 0 ] || cat "$OUT_A" "$OUT_B"
	return $rc
} 2> /dev/null
arrivals() { b cat /sys/class/net/v2/statistics/rx_bytes; }
arrived() { [ "$(arrivals)" -ge "$1" ]; }
rdma_gets() { # LEAST MOST: of the next 2 MB that reach h2, in percent
	local all rdma percent
	all=$(arrivals) rdma=$(counter "$BDEV" rcvd_bytes)
	wait_for 100 arrived $((all + 2000000)) || return
	percent=$((100 * ($(counter "$BDEV" rcvd_bytes) - rdma) / ($(arrivals) - all)))
	echo "# DSCP 26 beside TCP: $percent % of the link" >&3
	[ $percent -ge "$1" ] && [ $percent -le "$2" ]
}
qdisc_drops() { # of both ends
	{ a tc -j -s qdisc show dev v1 | grep -o '"drops":[0-9]*' | head -n 1; b tc -j -s qdisc show dev v2 | grep -o '"drops":[0-9]*' | head -n 1; } |
		awk -F: '{ n += $2 } END { print n }'
}

ktap_header
exec 3>&1
[ "$LINK_TYPE" = roan ] || { ktap_skip "a slow queue" "needs roan's counters"; ktap_end; }
pair_up > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
slow 100m || { ktap_fail "no token bucket in this kernel"; ktap_end; }
ktap_check "WRITEs of $QPS QPs wait in the send queues above a slow qdisc" through ib_write_bw -q $QPS -s 65536 -n 8
# A requester cannot see the responder's queue: it retransmits READ requests. The repeated responses must not fill the
# qdisc, too.
AGAIN=100 ktap_check "READ responses wait above a slow qdisc" through ib_read_bw -q 16 -s 65536 -n 16
slow 300k
NEEDED=$((QPS * 8 * 16))
ktap_check "WRITEs of $QPS QPs share a qdisc that is too small for an skb of each" overflows 700 ib_write_bw -q $QPS -s 65536 -n 8
# Code 10: eight times 4.2 ms. Each QP waits longer than that until its turn comes.
ktap_check "they do with a short ACK timeout" overflows 700 ib_write_bw -q $QPS -s 65536 -n 8 -u 10
slow 100k
NEEDED=$((16 * 8 * 16))
ktap_check "READ responses share one that is too small for them" overflows 300 ib_read_bw -q 16 -s 65536 -n 8
ktap_check "a qdisc that drops all packets of a QP: retry exceeded" all_dropped algo=none
ktap_check "the same at a rate of 1 Mb/s" all_dropped algo=fixed fixed_rate=1
"$REPO/tools/roan" cc set "$BDEV" algo=none fixed_rate=0
slow 1m
ktap_check "datagrams wait above a slow qdisc, and none is lost" through ib_send_bw -c UD -s 4096 -t 1024 -r 4096 -n 4000
ktap_check "UC messages wait above a slow qdisc" through ib_write_bw -c UC -s 1048576 -t 16 -n 16
ktap_check "WRITEs of $QPS QPs wait above fq, over IPv4" below_fq
ktap_check "WRITEs of $QPS QPs wait above fq, over IPv6" below_fq -x "$(gid_index "$ADEV" "$AIP6" h1)"
ktap_check "WRITEs of $QPS QPs wait above fq below macvlans" macvlan_above_fq
ktap_check "datagrams that alternate with others to this host wait above a slow qdisc, and none is lost" in_turn
ktap_check "prio: DSCP 26 gets nothing beside TCP, and its part with the band of best effort" beside_tcp
ktap_end
