#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Packets of a QP enter the interface in the order of their PSNs, although several CPUs send them: the poster's, and the
# one that receives the ACKs. What a veth and its backlogs, one for each CPU, do to the order is printed, not judged.
#
#	h2: poster on CPU 1, ACKs on CPU 0, v2 -- recorded -- veth -- recorded -- v1 :h1
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../../vm/lib.sh"
. "$HERE/../../verbs/pair.sh"
. "$HERE/capture.sh"

record() { # HOST NETDEV FILE
	rm -f "$3"
	on "$1" python3 "$HERE/capture.py" "$2" "$3" > "$3.log" 2>&1 & RECORDERS="$RECORDERS $!"
	wait_for 60 test -e "$3"
}
# Sender's interface first. Records as long as both programs run.
order() { # OPTIONS OF PERFTEST...
	local rc program=$1 began=$SECONDS
	shift
	RECORDERS=''
	rm -f /tmp/order
	record h2 v2 /tmp/out.pcap && record h1 v1 /tmp/in.pcap || return
	both 300 18515 "$program -F -d $ADEV $*" "taskset 2 $program -F -d $BDEV $* $AIP"
	rc=$?
	# shellcheck disable=SC2086 # a list of processes
	kill $RECORDERS; wait $RECORDERS
	[ $rc = 0 ] || { echo "timeouts: $(counter "$BDEV" local_ack_timeout_err)"; return $rc; }
	grep -h . /tmp/out.pcap.log /tmp/in.pcap.log
	python3 "$HERE/tx_order.py" "$BIP" /tmp/out.pcap /tmp/in.pcap > /tmp/order
	rc=$?
	echo "# $*, $((SECONDS - began)) s: sent: $(sed 's/;/; received:/' /tmp/order)" >&3
	return $rc
}
finds_disorder() {
	b tc qdisc replace dev v2 root netem delay 1ms reorder 90% limit 10000 || return 4
	! order "$@" && grep -q '^[0-9]* requests, [0-9]* repeated, [1-9][0-9]* late' /tmp/order
	local rc=$?
	b tc qdisc del dev v2 root
	return $rc
}

exec 3>&1
ktap_header
[ "$(nproc)" -gt 1 ] || { ktap_skip "order" "needs two CPUs"; ktap_end; }
pair_up > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
one_by_one
b bash -c "echo 1 > /sys/class/net/v2/queues/rx-0/rps_cpus"
ktap_check "RC WRITEs of 4096 bytes leave in order" order ib_write_bw -n 2000 -s 4096 -t 64
ktap_check "RC WRITEs of 65536 bytes leave in order" order ib_write_bw -n 200 -s 65536 -t 16
ktap_check "UC SENDs leave in order" order ib_send_bw -c UC -n 2000 -s 4096 -t 64 -r 512
b tc qdisc replace dev v2 root pfifo limit 10000
ktap_check "RC WRITEs leave a queue in order" order ib_write_bw -n 2000 -s 4096 -t 64
ktap_check "a queue that reorders is recognised" finds_disorder ib_write_bw -n 2000 -s 4096 -t 16
ktap_end
