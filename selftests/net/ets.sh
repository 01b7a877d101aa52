#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Two traffic classes share a link as the recipe of qos-pfc.md says: by ets below a rate limit, and by mqprio with a limit for
# each transmit queue. Ten QPs have more to send than the link passes; eight of them are in the larger class. The smaller
# one has two, as a QP on a link this slow has 8 KB in the host's queues: alone it would leave its class empty at times.
#
#	h1: roan1 v1 == tbf 40 Mb/s == ets ============== v2 roan2 :h2	bytes of each DSCP counted by nft on v2
#	    or   v1 == mqprio == tbf 24 | tbf 16 Mb/s
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
. "$HERE/../verbs/pair.sh"
LARGE=26 SMALL=8	# DSCP; their priorities are 3 and 1
PIDS=

# start DSCP QPS PORT: SENDs from h1 to h2, more than the test waits for.
start() {
	local tc=$(($1 * 4)) common="-s 65536 -t 8 -r 16 -q $2 -p $3 -F -e -n 1000000"
	# shellcheck disable=SC2086 # a list of options
	"${B[@]}" ib_send_bw -d "$BDEV" -x "$BGID" --tclass=$tc $common > "/tmp/server$1" 2>&1 & PIDS="$PIDS $!"
	wait_for 60 serving "$3" || return
	# shellcheck disable=SC2086
	"${A[@]}" ib_send_bw -d "$ADEV" -x "$AGID" --tclass=$tc $common "$BIP" > "/tmp/client$1" 2>&1 & PIDS="$PIDS $!"
}
stop() {
	# shellcheck disable=SC2086 # process ids
	kill $PIDS; wait
	PIDS=
} 2> /dev/null
bytes() { b nft list counter ip classes "dscp$1" | awk '/bytes/ { print $4 }'; } # DSCP
sum() { echo $(($(bytes $LARGE) + $(bytes $SMALL))); }
moved() { [ "$(sum)" -ge "$1" ]; }

both_move() { [ "$(bytes $LARGE)" -gt 0 ] && [ "$(bytes $SMALL)" -gt 0 ]; }

# Starts the traffic and sets PERCENT, the small class's part of 8 MB: 1.6 s of the link. The first 2 MB are not counted.
measure() {
	local large small
	b nft reset counters > /dev/null
	start $LARGE 8 18601 && start $SMALL 2 18602 && wait_for 120 both_move &&
		wait_for 120 moved $(($(sum) + 2000000)) || return
	large=$(bytes $LARGE) small=$(bytes $SMALL)
	wait_for 200 moved $((large + small + 8000000)) || return
	large=$(($(bytes $LARGE) - large)) small=$(($(bytes $SMALL) - small))
	PERCENT=$((100 * small / (large + small)))
	echo "# DSCP $LARGE $large bytes, DSCP $SMALL $small: $PERCENT %" >&3
}
# A program that gets no CPU for a while leaves its class empty, and the other class gets the rest: then once more.
share_between() { # LEAST MOST
	local status
	for _ in 1 2 3; do
		measure
		status=$?
		stop
		[ $status = 0 ] || { cat /tmp/server* /tmp/client*; return 1; }
		[ "$PERCENT" -lt "$1" ] || [ "$PERCENT" -gt "$2" ] || return 0
	done
	return 1
}

ets() { # QUANTUM-OF-LARGE QUANTUM-OF-SMALL LEAST MOST
	a tc qdisc replace dev v1 root handle 1: tbf rate 40mbit burst 64k limit 4m &&
		a tc qdisc replace dev v1 parent 1:1 handle 10: ets bands 2 quanta "$1" "$2" priomap 1 1 1 0 1 1 1 1 || return
	share_between "$3" "$4"
}
mqprio() {
	a tc qdisc del dev v1 root
	a ethtool -L v1 tx 2 && b ethtool -L v2 rx 2 && a tc qdisc add dev v1 root handle 1: mqprio num_tc 2 \
		map 1 1 1 0 1 1 1 1 1 1 1 1 1 1 1 1 queues 1@0 1@1 hw 0 &&
		a tc qdisc add dev v1 parent 1:1 tbf rate 24mbit burst 64k limit 4m &&
		a tc qdisc add dev v1 parent 1:2 tbf rate 16mbit burst 64k limit 4m || return
	share_between 37 43
}

ktap_header
exec 3>&1
[ "$LINK_TYPE" = roan ] || { ktap_skip "ets" "needs a device in each namespace"; ktap_end; }
command -v nft > /dev/null || { ktap_skip "ets" "nft is not installed"; ktap_end; }
pair_up > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
modprobe -q -a sch_tbf sch_ets sch_mqprio
b nft "table ip classes {
	counter dscp$LARGE { }
	counter dscp$SMALL { }
	chain in {
		type filter hook prerouting priority -300
		ip dscp $LARGE counter name dscp$LARGE
		ip dscp $SMALL counter name dscp$SMALL
	}
}" || { ktap_skip "ets" "the kernel lacks nft"; ktap_end; }
AGID=$(gid_index "$ADEV" "$AIP" h1) BGID=$(gid_index "$BDEV" "$BIP" h2)

# Without classes the share is that of a FIFO, anything from 12 to 50 %: no case. Two settings show that ets decides. Of 40 %
# three quarters are enough: two QPs fill their class for 8 ms only, and on a busy machine programs wait longer for a CPU.
ktap_check "ets 80:20: the class with two QPs of ten gets 20 %" ets 8000 2000 17 23
ktap_check "ets 60:40: the class with two QPs of ten keeps 30 to 40 %" ets 6000 4000 30 43
ktap_check "mqprio 24:16 Mb/s: the class with two QPs of ten keeps 40 %" mqprio
ktap_end
