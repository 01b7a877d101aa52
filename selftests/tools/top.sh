#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# `roan top` on a pseudo-terminal of 80x24 without colours: the screens over made-up figures are those in golden/; over
# real traffic each way to hold back a queue pair shows as that.
#
#	h1: roan1 v1 [token bucket] ======== [delay of ACKs] v2 roan2 :h2	roan top, screen.py run in the first namespace
#
#	top.sh [golden]		golden: only the first part, which needs no kernel module
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
SCREEN=$HERE/screen.py
PARAMS=/sys/class/infiniband/roan1/ports/1/cc_param

golden() { # NAME STEP...
	local name=$1
	shift
	"$SCREEN" until=stopped "$@" -- "$HERE/top_fake.py" > /tmp/screen 2>&1 && diff "$HERE/golden/$name.txt" /tmp/screen
}
sorted() { # KEY NAME QPN...: after this key the queue pairs are in this order
	local key=$1 name=$2
	shift 2
	"$SCREEN" until=stopped press="$key" until="by $name," -- "$HERE/top_fake.py" > /tmp/screen &&
		[ "$(awk 'sub("^>", " ") + 1 && $2 == "roan0" && $1 ~ /^[0-9]+$/ { print $1 }' /tmp/screen | xargs)" = "$*" ] || { cat /tmp/screen; return 1; }
}
# As --once prints it, in as many lines as needed; in fewer, the devices that are left out are counted.
ten_devices() {
	[ "$("$HERE/top_fake.py" 10 23 | grep -c '^  roan')" = 10 ] && "$HERE/top_fake.py" 10 16 | grep -q '^  \.\.\. and 8 more$'
}

top() { "$SCREEN" -t 120 "$@" -- "$REPO/tools/roan" top -i 0.5; }
# A long name is cut, not its PID.
whose() { echo "traf[^ ]*/$CLIENT"; }
# shows WAITS: the queue pair of the traffic client, and what it waits for.
shows() { top until="roan1 +$(whose) .* $1\$"; }
flow() { # OPTIONS...: traffic from roan1 to roan2 in the background, until end_flow
	on h2 timeout 500 "$PROGRAMS/traffic" -d roan2 -k 1 > /dev/null 2>&1 & SERVER=$!
	wait_for 60 on h2 sh -c 'ss -Hltn "sport = :18600" | grep -q .' || return
	ip netns exec h1 "$PROGRAMS/traffic" -d roan1 -z 480000 "$@" $H2IP > /tmp/flow 2>&1 & CLIENT=$!
	wait_for 60 is_sending roan1
}
end_flow() {
	kill -CONT $CLIENT
	kill $CLIENT $SERVER 2> /dev/null
	wait
}
with_flow() { # "OPTIONS" COMMAND...
	local options=$1 rc
	shift
	# shellcheck disable=SC2086 # a list of options
	flow $options && "$@"
	rc=$?
	end_flow
	return $rc
}
qpn() { rdma -j resource show qp link roan1/1 | python3 -c 'import json, sys; print(*[q["lqpn"] for q in json.load(sys.stdin) if q["type"] == "RC"])'; }

moves() { top until="roan1 +$(whose) +[0-9.]*[1-9]" until="roan1 +active.* [0-9.]*[1-9]"; }
plots() { top until="roan1 +$(whose) +[0-9.]*[1-9]" press=enter until="sent and acknowledged" until='#$' press=right until="received, Gb/s" press=left until="acknowledged"; }
capped() { moves > /dev/null && "$REPO/tools/roan" qp roan1 "$(qpn)" cap=20M && shows rate && top until="$(whose)" press=w until="^rate: the rate limit" until="cap 0.020 Gb/s"; }
stopped() { shows '(depth|window|CPU|idle)' && kill -STOP $CLIENT && shows idle; }
held() { # the interface of h1 sends 20 Mbit/s
	local rc
	on h1 tc qdisc add dev v1 root tbf rate 20mbit burst 128k limit 1m && shows host
	rc=$?
	on h1 tc qdisc del dev v1 root
	return $rc
}
late_acks() { # COMMAND...: ACKs take 300 ms
	local rc
	on h2 tc qdisc add dev v2 root netem delay 300ms limit 10000 && "$@"
	rc=$?
	on h2 tc qdisc del dev v2 root
	return $rc
}
# At 1 Mbit/s the longest pause of one frame is 33 s.
pause_frame() {
	on h2 python3 -c '
import socket, struct
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("v2", 0))
s.send(bytes.fromhex("0180c2000001") + bytes(6) + struct.pack(">HHH8H", 0x8808, 0x101, 1, 0xffff, *[0] * 7) + bytes(26))'
}
paused() {
	local rc
	echo 1 > $PARAMS/link_speed && echo 1 > $PARAMS/pfc_prio_mask && echo 60000 > $PARAMS/pfc_watchdog_ms || return
	pause_frame && shows pause && pause_frame && top until="$(whose) .* 100% pause"
	rc=$?
	echo 0 > $PARAMS/pfc_prio_mask; echo 0 > $PARAMS/link_speed
	return $rc
}
json() {
	"$REPO/tools/roan" top --once --json > /tmp/json && python3 - "$CLIENT" <<- 'END'
		import json, sys
		found = json.load(open("/tmp/json"))
		qps = {q["owner"]: q for q in found["queue_pairs"] if q["device"] == "roan1"}
		qp = qps["traffic/" + sys.argv[1]]
		assert qp["figures"]["tx_gbps"] > 0 and abs(sum(qp["shares"].values()) - 1) < 0.01, qp
		assert {d["device"] for d in found["devices"]} == {"roan1", "roan2"} and found["devices"][0]["rates"]["tx_gbps"] > 0
		assert not any("psn" in name for name in qp["attributes"]), qp["attributes"]
	END
}
table() { "$REPO/tools/roan" top --once > /tmp/table && grep -Eq "roan1 +$(whose) +[0-9.]*[1-9]" /tmp/table; }
refused() { # REASON ARGS...
	local why=$1
	shift
	"$REPO/tools/roan" top "$@" > /tmp/out 2>&1 < /dev/null && return 1
	grep "^roan: .*$why" /tmp/out || { cat /tmp/out; return 1; }
}

ktap_header
ktap_check "ten devices: all are shown, or the rest is counted" ten_devices
if /usr/bin/python3 -c 'import urwid, pyte' 2> /dev/null; then
	ktap_check "the list looks as in golden/top-list.txt" golden top-list
	ktap_check "the plot looks as in golden/top-plot.txt" golden top-plot press=enter until="last 10 s"
	ktap_check "the reasons look as in golden/top-why.txt" golden top-why press=w until="share of"
	NO_SIZE=1 ktap_check "a terminal that knows no size, as a serial line, has 80x24" golden top-list
	ktap_check "sorted by owner" sorted o owner 11517217 11517220 11517218 11517219
	ktap_check "sorted by round trip" sorted t rtt 11517218 11517219 11517217 11517220
	ktap_check "sorted by paused time" sorted p paused 11517219 11517217 11517218 11517220
else
	ktap_skip "golden screens" "needs python3-urwid and python3-pyte"
fi
[ "${1:-}" != golden ] || ktap_end
load_modules && two_hosts || { ktap_fail "two hosts"; ktap_end; }
ktap_check "--once --json has devices, queue pairs, no PSN" with_flow "" json
ktap_check "--once prints a table" with_flow "" table
ktap_check "not a terminal: refused with the way out" refused "not a terminal; .*--once"
ktap_check "an unknown device is refused" refused "no device roan9" roan9 --once
/usr/bin/python3 -c 'import urwid, pyte' 2> /dev/null || { ktap_skip "screens of traffic" "needs python3-urwid and python3-pyte"; ktap_end; }
ktap_check "a flow moves, its device too" with_flow "" moves
ktap_check "Enter plots its history" with_flow "" plots
ktap_check "a capped queue pair waits for the rate limit" with_flow "" capped
ktap_check "a stopped program posts no work" with_flow "" stopped
ktap_check "a slow interface holds the queue pair back" with_flow "" held
ktap_check "a pause holds it back, and the time counts" with_flow "" paused
ktap_check "ACKs 300 ms late, one request at a time: depth" with_flow "-q 1 -s 4096 -w 18" late_acks shows depth
ktap_check "ACKs 300 ms late, many requests: window" with_flow "-q 64 -w 18" late_acks shows window
ktap_end
