#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The programs that ship with rdma-core, and qperf; and the device attributes that they show.
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
. "$HERE/../verbs/pair.sh"

pp() {
	local tool=$1
	shift
	both 200 18515 "$tool -d $ADEV -g $GA $*" "$tool -d $BDEV -g $GB $* $AIP"
}

# The tools' output must be true: no empty result, no zero id, port active.
has() { local f=$1; shift; grep -Eq -- "$1" "$f" || { echo "missing: $1"; cat "$f"; return 1; }; }

devinfo() {
	local mtu=4096
	[ "$(wire_value mtu)" != 1500 ] || mtu=1024	# the next smaller path MTU
	a ibv_devinfo -v -d "$ADEV" > /tmp/di || return 1
	has /tmp/di 'state:[[:space:]]+PORT_ACTIVE' && has /tmp/di "active_mtu:[[:space:]]+$mtu" &&
		has /tmp/di 'link_layer:[[:space:]]+Ethernet' || return 1
	if [ "$LINK_TYPE" = roan ]; then
		has /tmp/di 'vendor_id:[[:space:]]+0x0*[1-9a-f]' && has /tmp/di 'vendor_part_id:[[:space:]]+[1-9]' &&
			has /tmp/di 'fw_ver:[[:space:]]+[^[:space:]]' && has /tmp/di 'node_guid:[[:space:]]+[0-9a-f:]*[1-9a-f]' &&
			has /tmp/di 'max_mr_size:[[:space:]]+0x[0-9a-f]*[1-9a-f]' && has /tmp/di 'RoCE v2'
	fi
}

# ibstat reads the sysfs of the end's namespace.
stat_() {
	a ibstat "$ADEV" > /tmp/is || { cat /tmp/is; return 1; }
	has /tmp/is 'State: Active' && has /tmp/is 'Physical state: LinkUp' && has /tmp/is 'Rate: [1-9]' &&
		has /tmp/is 'Link layer: Ethernet' || return 1
	[ "$LINK_TYPE" != roan ] || { has /tmp/is 'CA type: roan' && has /tmp/is 'Hardware version: [0-9]'; }
}
described() { a cat "/sys/class/infiniband/$ADEV/node_desc" > /tmp/desc && has /tmp/desc "^$(hostname | cut -d. -f1) $ADEV\$"; }
# rdma-core's daemon writes the host's name, without its domain, and the device's to node_desc when it starts, and then waits for uevents.
ndd_() {
	command -v rdma-ndd > /dev/null || return 4
	local rc
	"${A[@]}" rdma-ndd --foreground > /tmp/ndd 2>&1 &
	wait_for 60 described
	rc=$?
	kill $!; wait $! 2> /dev/null
	[ $rc = 0 ] || cat /tmp/ndd
	return $rc
}
status_() { a ibstatus "$ADEV" > /tmp/iss && has /tmp/iss 'state:[[:space:]]+4: ACTIVE' && has /tmp/iss 'rate:[[:space:]]+[1-9]'; }
link_() { a rdma link show "$ADEV/1" > /tmp/rl && has /tmp/rl 'state ACTIVE physical_state LINK_UP netdev v1'; }
dev_() { a rdma -d dev show "$ADEV" > /tmp/rd && has /tmp/rd 'node_guid [0-9a-f:]+' && has /tmp/rd "$([ "$LINK_TYPE" = roan ] && echo 'fw [^ ]+')"; }
# The counter grows by the packets sent: 20 messages each way, below a thousand.
sent() { a rdma statistic show link "$ADEV/1" | grep -o ' sent_pkts [0-9]*' | tr -dc 0-9; }
statistic_() {
	local before now
	before=$(sent) && pp ibv_rc_pingpong -n 20 && now=$(sent) || return
	echo "$before packets, then $now"
	[ -n "$before" ] && [ $((now - before)) -ge 20 ] && [ $((now - before)) -lt 1000 ]
}
# As with rdma_rxe SENDs count, and no other requests.
counted_sends() {
	local before sends writes
	before=$(total rdma_sends) && pp ibv_rc_pingpong -n 20 && sends=$(total rdma_sends) &&
		both 200 18515 "ib_write_lat -d $ADEV -x $GA -F -n 20" "ib_write_lat -d $BDEV -x $GB -F -n 20 $AIP" &&
		writes=$(total rdma_sends) || return
	echo "$before, after 20 SENDs each way $sends, after WRITEs $writes"
	[ $((sends - before)) -ge 40 ] && [ "$writes" = "$sends" ]
}

# Objects are listed while a program holds them, and not afterwards.
resource_() {
	local pid ok=1
	"${A[@]}" timeout 100 ibv_rc_pingpong -d "$ADEV" -g "$GA" -p 18777 > /dev/null 2>&1 &
	pid=$!
	wait_for 60 listening 18777 && a rdma resource show qp link "$ADEV/1" > /tmp/rr && has /tmp/rr 'type RC state (INIT|RTR)' &&
		a rdma resource show mr dev "$ADEV" > /tmp/rm && has /tmp/rm 'mrlen 4096' &&
		a rdma resource show cq dev "$ADEV" > /tmp/rc && has /tmp/rc 'comm ibv_rc_pingpong' && ok=0
	kill $pid
	wait $pid 2> /dev/null
	wait_for 30 no_rc || { echo "a QP outlived its program"; return 1; }
	return $ok
}
no_rc() { ! a rdma resource show qp link "$ADEV/1" | grep -q 'type RC'; }

rcopy_() {
	dd if=/dev/urandom of=/tmp/rcopy.in bs=64k count=20 2> /dev/null
	rm -f /tmp/rcopy.out
	"${A[@]}" timeout 120 rcopy > /tmp/rcopy.log 2>&1 &
	local pid=$! rc
	wait_for 60 listening 7427
	b timeout 100 rcopy /tmp/rcopy.in "$AIP:/tmp/rcopy.out" > /tmp/rcopy.log2 2>&1
	rc=$?
	kill $pid; wait $pid 2> /dev/null
	[ $rc = 0 ] && cmp /tmp/rcopy.in /tmp/rcopy.out || { cat /tmp/rcopy.log2; return 1; }
}

# qperf prints no figure if its first batch is not finished in time: try again with more time.
qperf_() {
	local t rc
	for t in 1 5 25; do
		qperf_for $t "$@"
		rc=$?
		[ $rc = 4 ] || return $rc
	done
	cat /tmp/qperf.out
	return 1
}
qperf_for() { # SECONDS TEST-WORDS...
	local seconds=$1
	shift
	cm_ordered
	# shellcheck disable=SC2086 # a word list
	"${A[@]}" timeout 150 $ORDERED qperf -lp 19770 -lto 60 > /tmp/qperf.log 2>&1 &
	local pid=$! rc
	wait_for 60 listening 19770
	# shellcheck disable=SC2086
	b timeout 130 $ORDERED qperf -lp 19770 -to 60 -cm 1 -t "$seconds" "$AIP" "$@" > /tmp/qperf.out 2>&1
	rc=$?
	kill $pid; wait $pid 2> /dev/null
	[ $rc = 0 ] || { cat /tmp/qperf.out; return 1; }
	grep -Eq '= *[0-9.]*[1-9]' /tmp/qperf.out || return 4
}

mckey_() {
	rm -f $OUT_A	# the file may be of the previous run
	"${A[@]}" timeout 100 stdbuf -oL mckey -b "$1" -m "$2" -C 4 > $OUT_A 2>&1 &
	local pid=$! rc
	wait_for 60 grep -q 'joined dgid' $OUT_A
	b timeout 100 mckey -b "$3" -m "$2" -s -C 4 > $OUT_B 2>&1
	rc=$?
	wait $pid && [ $rc = 0 ] || { cat $OUT_A $OUT_B; return 1; }
}

# Each tracepoint of the data path fires, with the numbers of this connection.
TRACES=/sys/kernel/tracing
traces() {
	local name
	echo > $TRACES/trace && echo 1 > $TRACES/events/roan/enable && pp ibv_rc_pingpong -n 20
	echo 0 > $TRACES/events/roan/enable
	for name in wqe_fetch pkt_tx pkt_rx rx_verdict complete qp_state; do
		has $TRACES/trace "roan_$name: qpn=[1-9]" || return
	done
	has $TRACES/trace 'roan_pkt_tx: .* opcode=0x2 .* len=1024' && has $TRACES/trace 'roan_complete: .* status=0'
}

# A second device in each namespace, on another veth: packets for one device must not reach the other.
AIP2=10.7.2.1 AIP62=fd07:2::1
second_wire() {
	local n
	ip link add v3 mtu 4200 netns h1 type veth peer name v4 netns h2 mtu 4200 || return
	for n in 1 2; do
		on h$n ip addr add "10.7.2.$n/24" dev v$((n + 2)) && on h$n ip addr add "fd07:2::$n/64" dev v$((n + 2)) nodad &&
			on h$n ip link set v$((n + 2)) up && link_add "roan$((n + 2))" v$((n + 2)) h$n || return
	done
	wait_for 60 gid_index roan3 $AIP62 h1 && wait_for 60 gid_index roan4 fd07:2::2 h2
}

ktap_header
needs_every_packet
pair_up > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
nsa=$([ "$LINK_TYPE" = roan ] && echo h1) nsb=$([ "$LINK_TYPE" = roan ] && echo h2)
GA=$(gid_index "$ADEV" "$AIP" $nsa) GB=$(gid_index "$BDEV" "$BIP" $nsb)

ktap_check "ibv_devinfo -v" devinfo
ktap_check "ibstat" stat_
ktap_check "ibstatus" status_
ktap_check "rdma-ndd" ndd_
ktap_check "rdma link" link_
ktap_check "rdma dev" dev_
ktap_check "rdma statistic" statistic_
ktap_check "rdma_sends counts SENDs" counted_sends
ktap_check "rdma resource" resource_
for x in rc uc ud srq; do
	ktap_check "ibv_${x}_pingpong" pp ibv_${x}_pingpong -n 200
	ktap_check "ibv_${x}_pingpong -e" pp ibv_${x}_pingpong -n 200 -e
done
ktap_check "ibv_rc_pingpong -c -s 100000" pp ibv_rc_pingpong -n 50 -c -s 100000
ktap_check "ibv_rc_pingpong -m 256" pp ibv_rc_pingpong -n 50 -c -m 256 -s 5000
ktap_check "ibv_rc_pingpong -N" pp ibv_rc_pingpong -n 200 -N
if [ -d $TRACES/events/roan ]; then
	ktap_check "tracepoints" traces
else
	ktap_skip "tracepoints" "not in this kernel"
fi
ktap_check "rping" both 200 7174 "rping -s -a $AIP -v -V -C 50" "rping -c -a $AIP -v -V -C 50"
ktap_check "rping -S 4000" both 200 7174 "rping -s -a $AIP -V -C 20 -S 4000" "rping -c -a $AIP -V -C 20 -S 4000"
ktap_check "rping IPv6" both 200 7174 "rping -s -a $AIP6 -V -C 20" "rping -c -a $AIP6 -V -C 20"
ktap_check "ucmatose" both 200 7471 "ucmatose -c 4 -C 20" "ucmatose -s $AIP -c 4 -C 20"
ktap_check "udaddy" both 200 7471 "udaddy -C 20" "udaddy -s $AIP -C 20"
ktap_check "rdma_client" both 200 7471 rdma_server "rdma_client -s $AIP"
ktap_check "rdma_xclient" both 200 7471 rdma_xserver "rdma_xclient -s $AIP"
ktap_check "rcopy" rcopy_
# By rsockets; -T v compares what arrives.
for t in rstream riostream; do
	ktap_check "$t" both 200 7471 "$t -T v -C 100 -S 40000 -I 3" "$t -s $AIP -T v -C 100 -S 40000 -I 3"
done
# Without rdma_cm qperf does not use a GRH, so its UC and UD tests cannot run on a RoCE device. It posts 1024 messages
# before it checks the clock. With one CPU they are nearly finished then: with 64 KiB each that takes the whole second
# on a debug kernel.
for t in rc_bw rc_rdma_read_bw rc_rdma_write_bw; do
	ktap_check "qperf $t" qperf_ -m 8k $t
done
for t in rc_lat rc_rdma_write_lat; do
	ktap_check "qperf $t" qperf_ $t
done
if [ "$LINK_TYPE" = roan ]; then
	# rdma_cm refuses IPv6 groups on RoCE v2; mcast.sh tests them without rdma_cm.
	ktap_check "mckey IPv4" mckey_ "$AIP" 224.0.1.77 "$BIP"
	ktap_check "a second device on another veth" second_wire
	ktap_check "rping over the second device" both 200 7174 "rping -s -a $AIP2 -V -C 20" "rping -c -a $AIP2 -V -C 20"
	ktap_check "rping over the second device, IPv6" both 200 7174 "rping -s -a $AIP62 -V -C 20" "rping -c -a $AIP62 -V -C 20"
	GA2=$(gid_index roan3 $AIP62 h1) GB2=$(gid_index roan4 fd07:2::2 h2)
	ktap_check "ibv_ud_pingpong over the second device, IPv6" both 200 18515 "ibv_ud_pingpong -d roan3 -g $GA2 -n 200" \
		"ibv_ud_pingpong -d roan4 -g $GB2 -n 200 $AIP2"
fi
ktap_end
