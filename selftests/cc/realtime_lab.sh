#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The lab at real time on a stock kernel: an incast in which all times are 400 times longer, as the link is 400 times
# slower than 40 Gb/s, so that emulation and a busy machine can keep up. The smallest rate step, 1 Mb/s, is ten times
# too large. Periods nearly twice as long compensate: the model's queue is the same 41 KB. Meanwhile forged frames are
# sent.
#
#	h1..h4 ---- sw1 ---- h100	lab.sh's incast; frames are forged in sw1, at the port to h1
#
# realtime_lab.py checks what a busy machine does not change: loss, the shares of the flows, and which counter moved.
# Utilisation and queue are printed only.
# shellcheck source=selftests/vm/lib.sh
. "$REPO/selftests/vm/lib.sh"
HERE=$REPO/selftests/cc
SCALED=(dce_tcp_rtt=40000 rpg_time_reset=40000 min_time_between_cnps=36000 pacer_burst_us=1000
	rpg_ai_rate=1 rpg_hai_rate=1 rpg_min_rate=1)
# 128 KB each until the first CNP: the initial burst of 4 senders must drain within the ACK timeout.
OTHER=(window_max=128 pfc_prio_mask=255 pfc_watchdog_ms=200 pfc_restore_ms=400)
MARKS=(5000 200000 0.02121)	# the paper's, for frames of 4154 bytes
export KEPT=/tmp/kept LATE_US=5000

forge() {
	local mac qpn
	wait_for 300 test -s $KEPT/epoch && wait_for 30 sends || return
	mac=$(on h1 cat /sys/class/net/e0/address)
	qpn=$(rdma resource show qp link roan1/1 type RC | sed -n 's/.* lqpn \([0-9]*\) .*/\1/p')
	on sw1 "$HERE/realtime_lab.py" forge $KEPT p1 roan1 "$mac" "$qpn"
}
# shellcheck disable=SC2317 # called by wait_for
sends() { rdma resource show qp link roan1/1 type RC | grep -q 'state RTS'; }

ktap_header
bash "$HERE/lab.sh" incast 4 0.1 2000 4096 dcqcn 75 "${MARKS[@]}" 16384 400 "${SCALED[@]}" "${OTHER[@]}" > /tmp/lab.out 2>&1 & lab=$!
forge > /tmp/forge.out 2>&1
forged=$?
if wait $lab && [ $forged = 0 ]; then
	"$HERE/realtime_lab.py" judge $KEPT > /tmp/judged 2>&1
	ktap_relay /tmp/judged realtime_lab.py $?
else
	sed 's/^/# /' /tmp/lab.out /tmp/forge.out
	ktap_fail "four senders at real time" "the lab did not finish"
fi
ktap_end
