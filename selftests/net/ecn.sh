#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Congestion marks by a real queue: packets are sent as ECT(0), marks return as CNPs, the sender slows down until the queue
# is short, and recovers when the queue is removed. packets.sh and the KUnit suites check the details packet by packet.
#
#	h1: roan1 v1 == netem, htb 10 Mbit/s, RED with ECN ======== the same == v2 roan2 :h2	captured on v1
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
. "$HERE/../verbs/pair.sh"
# The RDMA core shows a device's parameters in its own network namespace only, by default the initial one.
P1=/sys/class/infiniband/$H1DEV/ports/1/cc_param
MBIT=10
# Periods for so slow a link: the smallest step of the rate, 1 Mbit/s, is a tenth of it, so steps must be rare.
SLOW="rpg_min_rate=1 rpg_ai_rate=1 rpg_hai_rate=1 rpg_time_reset=100000 dce_tcp_rtt=100000 min_time_between_cnps=50000"

refuses() { # FILE VALUE WORDS
	local said was
	was=$(cat "$P1/$1")
	said=$(bash -c "echo $2 > $P1/$1" 2>&1) && return 1
	echo "$said"
	case $said in *"$3"*) [ "$(cat "$P1/$1")" = "$was" ] ;; *) false ;; esac
}

# The queue models one in a switch. netem orphans the skbs, so the small-queue limit of the host does not count them.
narrow() {
	local end
	for end in 1 2; do
		on h$end tc qdisc replace dev v$end root handle 5: netem delay 1us limit 100000 &&
		on h$end tc qdisc replace dev v$end parent 5:1 handle 1: htb default 1 &&
		on h$end tc class replace dev v$end parent 1: classid 1:1 htb rate ${MBIT}mbit burst 10k cburst 10k &&
		on h$end tc qdisc replace dev v$end parent 1:1 handle 10: red limit 8mb min 30000 max 200000 avpkt 1000 \
			burst 30 bandwidth ${MBIT}mbit probability 0.1 ecn || return
	done
}
wide() { a tc qdisc del dev v1 root; b tc qdisc del dev v2 root; }
red() { on "$1" tc -s qdisc show dev "$2" | awk -v w="$3" '/^qdisc red/ { f = 1 } f { for (i = 1; i < NF; i++) if ($i ~ w) { gsub(/[^0-9]/, "", $(i + 1)); print $(i + 1); exit } }'; }

# traffic SECONDS PROGRAM OPTIONS...: h1 is the client. perftest's own figure is not checked.
traffic() {
	local t=$1 program=$2 pid
	shift 2
	"${B[@]}" timeout $((t + 100)) "$program" -d "$BDEV" -x "$BGID" -D "$t" -u 24 "$@" > /tmp/server 2>&1 & pid=$!
	wait_for 60 serving 18515
	"${A[@]}" timeout $((t + 100)) "$program" -d "$ADEV" -x "$AGID" -D "$t" -u 24 "$@" "$BIP" > /tmp/client 2>&1
	kill $pid 2> /dev/null; wait $pid 2> /dev/null
	! grep -i "completion with error\|failed status" /tmp/client
}
rate() { # DEV: the highest rate of its QPs, in kbit/s; 0: no QP is limited
	rdma -j -dd resource show qp link "$1/1" | grep -o '"drv_rate_kbps":[0-9]*' | cut -d: -f2 | sort -n | tail -n 1
}
slow() { # DEV: limited to about the speed of the queue
	local now
	now=$(rate "$1")
	echo "$now"
	[ "${now:-0}" -gt 0 ] && [ "$now" -lt $((MBIT * 5000)) ]
}

capture() {
	rm -f "$1"
	"${A[@]}" python3 "$HERE/packets/capture.py" v1 "$1" > /tmp/capture.log 2>&1 & CAPTURE=$!
	wait_for 60 test -e "$1"
}
stop() { kill $CAPTURE; wait $CAPTURE 2> /dev/null; true; }
# opcode,ecn pairs of a capture
pairs() { tshark -n -r "$1" -Y infiniband -T fields -E separator=, -e infiniband.bth.opcode -e ip.dsfield.ecn 2> /dev/null | LC_ALL=C sort -u; }

# Opcodes: 4 SEND ONLY, 10 WRITE ONLY, 12 READ request, 16 READ response ONLY, 17 ACK, 18 atomic result, 20 FETCH ADD,
# 100 datagram of QP 1.
all_have() { # ECN BITS
	local got
	got=$(pairs /tmp/ecn.pcap | tr '\n' ' ')
	echo "opcode,ecn: $got"
	[ "$got" = "10,$1 100,$1 12,$1 16,$1 17,$1 18,$1 20,$1 4,$1 " ]
}
cm_serving() { b rdma resource show cm_id | grep -q LISTEN; }
by_cm() { # a connection made by datagrams of QP 1
	local pid
	"${B[@]}" timeout 100 rping -s -a "$BIP" -C 1 > /tmp/server 2>&1 & pid=$!
	wait_for 60 cm_serving
	a timeout 100 rping -c -a "$BIP" -C 1 > /tmp/client 2>&1
	wait $pid
}
short() {
	traffic 1 ib_write_bw -s 1024 && traffic 1 ib_read_bw -s 1024 && traffic 1 ib_atomic_bw -A FETCH_AND_ADD && by_cm
}

# The ACKs of h1's WRITEs wait behind WRITEs of h2, which keep 64 KB in its queue: 50 ms. There RED's average is above its
# maximum, so it marks every packet that is ECT and drops every other one. A mark on an ACK causes no CNP.
acks_behind_writes() {
	local flow=() rc timeouts heard
	on h2 tc qdisc replace dev v2 root handle 5: netem delay 1us limit 100000 &&
		on h2 tc qdisc replace dev v2 parent 5:1 handle 1: htb &&
		on h2 tc class replace dev v2 parent 1: classid 1:1 htb rate ${MBIT}mbit burst 10k cburst 10k &&
		on h2 tc qdisc replace dev v2 parent 1:1 handle 10: red limit 8mb min 5000 max 15000 avpkt 1000 burst 9 \
			bandwidth ${MBIT}mbit probability 1 ecn &&
		on h2 tc filter add dev v2 parent 1: protocol ip u32 match ip dport 4791 0xffff flowid 1:1 || return
	"${A[@]}" timeout 300 ib_write_bw -d "$ADEV" -x "$AGID" -p 18600 -D 200 -u 24 -s 4096 -t 16 > /tmp/flow_server 2>&1 & flow+=($!)
	wait_for 60 listening 18600
	ROAN_CC=none "${B[@]}" timeout 300 ib_write_bw -d "$BDEV" -x "$BGID" -p 18600 -D 200 -u 24 -s 4096 -t 16 --tclass=2 "$AIP" \
		> /tmp/flow_client 2>&1 & flow+=($!)
	wait_for 60 is_sending "$BDEV"
	sleep 1
	timeouts=$(counter "$ADEV" local_ack_timeout_err) heard=$(counter "$BDEV" rp_cnp_handled)
	"${B[@]}" timeout 200 ib_write_bw -F -d "$BDEV" -x "$BGID" -s 64 -t 1 -n 50 -u 18 > /tmp/server 2>&1 & flow+=($!)
	wait_for 60 serving 18515
	a timeout 200 ib_write_bw -F -d "$ADEV" -x "$AGID" -s 64 -t 1 -n 50 -u 18 "$BIP" > /tmp/client 2>&1
	rc=$?
	timeouts=$(($(counter "$ADEV" local_ack_timeout_err) - timeouts)) heard=$(($(counter "$BDEV" rp_cnp_handled) - heard))
	kill -0 "${flow[0]}" && kill -0 "${flow[1]}" || rc=1
	tail -n 5 /tmp/client; on h2 tc -s qdisc show dev v2 | sed -n '/red/,$p'
	echo "status $rc, $timeouts timeouts, $heard CNPs for ACKs"
	kill "${flow[@]}" 2> /dev/null; wait "${flow[@]}" 2> /dev/null
	b tc qdisc del dev v2 root
	[ $rc = 0 ] && [ $timeouts -le 5 ] && [ $heard = 0 ]
}

# Under load: CNPs are sent and received, and the sender's rate falls from 10 Gbit/s to the speed of the queue. The
# received CNPs are counted before the sent ones: a CNP that arrives between the two does not make received exceed sent.
# A guest with a small part of a CPU fills the queue late: what does not slow down in 6 s gets 20, then 60.
slows() { # SENDER'S HOST, ITS NETDEV, ITS DEVICE, THE OTHER'S, TRAFFIC...
	local seconds
	for seconds in 6 20 60; do
		slows_within "$seconds" "$@" && return
	done
}
slows_within() { # SECONDS, then as slows
	local seconds=$1 host=$2 ndev=$3 dev=$4 other=$5 sent heard marked pid came_down=false
	shift 5
	sent=$(counter "$other" np_cnp_sent) heard=$(counter "$dev" rp_cnp_handled) marked=$(red "$host" "$ndev" marked)
	traffic "$seconds" "$@" & pid=$!
	while kill -0 $pid 2> /dev/null; do
		! slow "$dev" || came_down=true
		sleep 0.3
	done > /tmp/rates
	wait $pid || return
	sleep 0.1
	heard=$(($(counter "$dev" rp_cnp_handled) - heard))
	sent=$(($(counter "$other" np_cnp_sent) - sent))
	marked=$(($(red "$host" "$ndev" marked) - marked))
	echo "$marked marked, $sent CNPs sent, $heard heard; kbit/s: $(tr '\n' ' ' < /tmp/rates)"
	[ "$marked" -gt 0 ] && [ "$heard" -gt 0 ] && [ "$heard" -le "$sent" ] && $came_down
}
# A probe (one packet sent after an unusually long silence) is not a loss.
nothing_lost() {
	local c
	for c in rcvd_seq_err implied_nak_seq_err local_ack_timeout_err; do
		echo "$c $(counter "$ADEV" $c) $(counter "$BDEV" $c)"
		[ "$(counter "$ADEV" $c)" = 0 ] && [ "$(counter "$BDEV" $c)" = 0 ] || return
	done
}
# A responder with a slow link must not receive repeated requests for data that waits in its queue.
asks_once() {
	local twice all
	twice=$(counter "$ADEV" stale_response) all=$(counter "$ADEV" rcvd_pkts)
	slows h2 v2 "$BDEV" "$ADEV" ib_read_bw -s 65536 || return
	twice=$(($(counter "$ADEV" stale_response) - twice)) all=$(($(counter "$ADEV" rcvd_pkts) - all))
	echo "$twice of $all packets said nothing new"
	[ "$twice" -lt $((all / 4)) ]
}
recovers() {
	local pid slow rc
	traffic 150 ib_write_bw -s 65536 & pid=$!
	wait_for 60 slow "$ADEV" && slow=$(rate "$ADEV") && wide && wait_for 60 recovered "$slow"
	rc=$?
	echo "rate $slow kbit/s, then $(rate "$ADEV")"
	pkill -P $pid
	wait $pid
	return $rc
}
recovered() { # KBPS: the rate before
	local now
	now=$(rate "$ADEV")
	[ -n "$now" ] && { [ "$now" = 0 ] || [ "$now" -gt $(($1 + 5000)) ]; }
}
# Rate of packets leaving a netdev, headers included, from the first packet on, in kbit/s: lower and upper bound over
# 1.5 s, as the time at which a counter is read is not exact.
leaving() { # HOST NETDEV
	on "$1" python3 -c '
import sys, time
def sent():
    began = time.monotonic()
    with open("/sys/class/net/" + sys.argv[1] + "/statistics/tx_bytes") as f:
        return int(f.read()), began, time.monotonic()
before = n = sent()
while n[0] < before[0] + 100000 and n[1] < before[2] + 60:
    time.sleep(0.1)
    n = sent()
time.sleep(1.5)
m = sent()
print(*(int((m[0] - n[0]) * 8 / s / 1000) for s in (m[2] - n[1], m[1] - n[2])))' "$2"
}
leaves_at() { # MBIT HOST NETDEV TRAFFIC...: the upper bound is strict; the lower allows for late timers
	local pid least most mbit=$1 host=$2 ndev=$3
	shift 3
	traffic 4 "$@" & pid=$!
	read -r least most <<< "$(leaving "$host" "$ndev")"
	wait $pid || return 2
	echo "$least to $most kbit/s of $mbit Mbit/s"
	[ "$most" -gt $((mbit * 400)) ] && [ "$least" -lt $((mbit * 1100)) ]
}
is_fixed() { in_three_attempts leaves_at "$@"; }
cnps_are_right() {
	tshark -n -r /tmp/cnp.pcap -Y 'infiniband.bth.opcode == 129' -T fields -E separator=, -e ip.src -e ip.dsfield.dscp \
		-e ip.dsfield.ecn -e udp.length -e infiniband.bth.psn -e infiniband.bth.p_key 2> /dev/null |
		sort -u > /tmp/cnps
	cat /tmp/cnps
	[ "$(cat /tmp/cnps)" = "$BIP,48,0,40,0,65535" ]
}

ktap_header
[ "$LINK_TYPE" = roan ] || { ktap_skip "ecn" "needs roan's parameters"; ktap_end; }
command -v tshark > /dev/null || { ktap_skip "ecn" "no tshark"; ktap_end; }
# Captured packets must not be merged, so only data to h2 keep their order for certain.
{ pair_up && in_order && a ethtool -K v1 gro off; } > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
modprobe -qa sch_htb sch_red
for f in gso tso tx-udp-segmentation; do
	a ethtool -K v1 $f off > /dev/null 2>&1; b ethtool -K v2 $f off > /dev/null 2>&1
done
AGID=$(gid_index "$ADEV" "$AIP" h1) BGID=$(gid_index "$BDEV" "$BIP" h2)

ktap_check "an unknown algorithm is refused" refuses algo fastest "Invalid argument"
ktap_check "below the range is refused" refuses dce_tcp_g 0 "out of range"
ktap_check "above the range is refused" refuses dce_tcp_g 1024 "out of range"
ktap_check "a value that is not a number is refused" refuses rpg_ai_rate much "Invalid argument"
set_both algo none
capture /tmp/ecn.pcap; short; stop
ktap_check "no congestion control: no packet is ECT" all_have 0
set_both algo dcqcn
for p in $SLOW; do set_both "${p%=*}" "${p#*=}"; done
capture /tmp/ecn.pcap; short; stop
ktap_check "DCQCN: every packet is ECT(0), ACKs, atomic results and datagrams of QP 1, too" all_have 2
ktap_check "ACKs pass a queue that drops what it cannot mark" acks_behind_writes

narrow || { ktap_fail "no RED in this kernel"; ktap_end; }
capture /tmp/cnp.pcap
ktap_check "RC WRITE slows down" slows h1 v1 "$ADEV" "$BDEV" ib_write_bw -s 65536
stop
ktap_check "CNPs: from the receiver, DSCP 48, Not-ECT, 32 bytes" cnps_are_right
ktap_check "ICRC of every packet, including CNPs and marked ones" python3 "$HERE/packets/icrc.py" /tmp/cnp.pcap
paths=$(cat "$P1/paths")
set_both paths 4
ktap_check "RC WRITE over 4 paths slows down" slows h1 v1 "$ADEV" "$BDEV" ib_write_bw -s 65536
set_both paths "$paths"
ktap_check "UC SEND slows down" slows h1 v1 "$ADEV" "$BDEV" ib_send_bw -c UC -s 65536
ktap_check "UD slows down" slows h1 v1 "$ADEV" "$BDEV" ib_send_bw -c UD -s 4096
ktap_check "RC READ: the responder slows down, each request is sent once" asks_once
ktap_check "no packet was lost" nothing_lost
ktap_check "the rate recovers when the queue is removed" recovers
set_both algo fixed && set_both fixed_rate 4
ktap_check "a fixed rate on the wire: RC WRITE" is_fixed 4 h1 v1 ib_write_bw -s 65536
ktap_check "a fixed rate on the wire: UC SEND" is_fixed 4 h1 v1 ib_send_bw -c UC -s 65536
ktap_check "a fixed rate on the wire: UD" is_fixed 4 h1 v1 ib_send_bw -c UD -s 4096
ktap_check "a fixed rate on the wire: READ responses" is_fixed 4 h2 v2 ib_read_bw -s 65536
ktap_end
