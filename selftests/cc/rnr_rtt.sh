#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Swift takes no round trip from a packet that was sent again (Karn): a receive that is posted 400 ms late is no slow
# network. The answer to the packet may belong to either copy. A packet that is built again, as its payload was not
# present, is timed from then on.
#
#	h1: roan1 v1 ======== v2 roan2 :h2	one QP of roan1, connected to itself
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"

rtt_us() {
	rdma -j -dd resource show qp link "$H1DEV/1" lqpn "$QPN" |
		python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["drv_rtt_ns"] // 1000)'
}
tell() { # WORD VALUE
	echo "$*" >&"${PROGRAM[1]}" && read -rt 60 ANSWER <&"${PROGRAM[0]}" && [ "$ANSWER" = "done" ] || { echo "$*: $ANSWER"; return 1; }
}
measured() { tell late 0 && echo "$(rtt_us) us" && [ "$(rtt_us)" -gt 0 ]; }
not_of_a_copy() {
	local was now
	was=$(rtt_us)
	tell late 400 || return
	now=$(rtt_us)
	echo "round trip $was us, then $now us"
	[ "$now" -lt $((was + 40000)) ]		# an eighth of the wait is 50,000 us
}
not_of_a_fault() {
	local was now
	was=$(rtt_us)
	tell fault 400 || { [ "$ANSWER" != ENOSYS ] || return 4; return 1; }	# UML has no userfaultfd()
	now=$(rtt_us)
	echo "round trip $was us, then $now us"
	[ "$now" -lt $((was + 40000)) ]
}

ktap_header
{ load_modules && two_hosts; } > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
coproc PROGRAM { on h1 "$PROGRAMS/cc_choice" "$H1DEV" 2>&1; }
read -rt 60 QPN <&"${PROGRAM[0]}" && [ "$QPN" -gt 0 ] || { echo "# $QPN"; ktap_fail "a QP"; ktap_end; }
ktap_check "a QP has Swift" tell algo swift
ktap_check "a message after a receive gives a round trip" measured
ktap_check "a message before its receive gives none" not_of_a_copy
ktap_check "a page fault of the sender is not in a round trip" not_of_a_fault
ktap_end
