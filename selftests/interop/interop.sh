#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# roan with rdma_rxe as the peer: every operation that both support, both directions, bytes compared by verbs_stress.
#
#	first namespace: rxe1 on v1  ======== v2 on roan2 : namespace h2
#
# rdma_rxe supports the initial namespace only and binds UDP port 4791 there; roan uses h2.
HERE=$(dirname "$(readlink -f "$0")")
# shellcheck disable=SC2034 # lib.sh reads it
LINK_TYPE=roan
. "$HERE/../vm/lib.sh"
. "$HERE/../verbs/pair.sh"
# shellcheck disable=SC2034 # pair.sh reads them
ADEV=rxe1 BDEV=roan2 AIP=$H1IP BIP=$H2IP
A=(env) B=(ip netns exec h2)

up() {
	modprobe rdma_rxe && load_modules || return
	ip netns add h2 && b ip link set lo up || return
	ip link add v1 mtu 4200 type veth peer name v2 netns h2 mtu 4200 || return
	ip addr add $H1IP/24 dev v1 && ip addr add $H1IP6/64 dev v1 nodad && ip link set v1 up || return
	b ip addr add $H2IP/24 dev v2 && b ip addr add $H2IP6/64 dev v2 nodad && b ip link set v2 up || return
	rdma link add rxe1 type rxe netdev v1 && link_add roan2 v2 h2 || return
	wait_for 60 ping -c1 -W1 $H2IP && wait_for 60 ping -c1 -W1 $H2IP6 || return
	[ -z "$WIRE" ] || wire_shape v1:rxe1: v2:roan2:h2
}

# from_roan / from_rxe: who acts. -x belongs to rxe's side alone.
from_roan() {
	local some=

	# A READ that is sent again rxe answers by the length of the READ or WRITE that came last: if one of the two is empty it
	# drops or refuses it, or reads from where there is nothing (WARNING in rxe_mr_copy). A slow machine is enough for that.
	[[ $* != *READ* ]] || some=-z
	both 200 18515 "$PROGRAMS/verbs_stress -d rxe1 -x -T 195 $V6" "$PROGRAMS/verbs_stress -d roan2 -c $AIP -T 195 $V6 $some ${PATIENT:-} $*"
}
from_rxe() {
	local -a t=("${A[@]}")
	A=("${B[@]}") B=("${t[@]}")
	both 200 18515 "$PROGRAMS/verbs_stress -d roan2 -T 195 $V6" "$PROGRAMS/verbs_stress -d rxe1 -x -c $BIP -T 195 $V6 ${PATIENT:-} $*"
}

# On a big-endian CPU rdma_rxe sends the ICRC, a word of the CPU, in the CPU's byte order (rxe_icrc.c takes the context of the
# kernel's crc32 for big endian): it refuses the packets of all other devices, and they its own. two_machines.sh shows that
# roan's ICRC of such a CPU is right for rdma_rxe on a little-endian one.
big_endian() { [ "$(printf '\0\1' | od -An -td2 | tr -d ' ')" = 1 ]; }
rxe_swaps_icrc() {
	local bad
	big_endian || return
	bad=$(counter roan2 rx_bad_icrc)
	! from_rxe -t ud -n 1 -L > /dev/null 2>&1 && [ "$(counter roan2 rx_bad_icrc)" -gt "$bad" ]
}

SILENT=(SEND SEND_IMM SEND_INV WRITE WRITE_IMM)	# operations whose only response is an ACK
words() { local IFS=,; echo "$*"; }
! wire_loses || MAY_LOSE=-L	# UC and UD
# UC does not send again what rxe, or the queue before it, drops while the machine is busy.
# A retransmitted READ or atomic with a fence waits for itself in rxe for ever: rxe_wqe_is_fenced() counts it as
# outstanding. So without loss a slow machine must not cause a retransmission: the ACK timeout is 8.6 s here instead of 67
# ms (1 s was too short for a KCSAN kernel beside other guests).
wire_loses || PATIENT="-k 21"

ktap_header
modinfo rdma_rxe > /dev/null 2>&1 || { ktap_skip "interop" "this kernel has no rdma_rxe"; ktap_end; }
up > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
V6=
! rxe_swaps_icrc || { ktap_skip "interop" "rdma_rxe of this kernel sends its ICRC in the byte order of a big-endian CPU"; ktap_end; }
for V6 in "" -6; do
	for who in from_roan from_rxe; do
		n="${who/_/ }${V6:+, IPv6}"
		# rxe takes the ACK of a request sent again for the answer of the READ or atomic that has the same PSN, and sends
		# an ATOMIC_WRITE again to address 0.
		ops=("${SILENT[@]}" READ CAS FAA ATOMIC_WRITE)
		[ $who = from_roan ] || ! wire_loses || ops=("${SILENT[@]}")
		for op in "${ops[@]}"; do
			ktap_check "$n: RC $op" $who -t rc -n 4 -o $op
		done
		ktap_check "$n: RC, all operations, 4 QPs" $who -t rc -n 10 -q 4 -w 64 -o "$(words "${ops[@]}")"
		ktap_check "$n: RC, MTU 1024, SRQ, events" $who -t rc -n 10 -q 4 -w 64 -S -e -m 1024 -o "$(words "${ops[@]}")"
		# If an RNR NAK arrives while a READ or atomic is outstanding, rxe stops sending for good: its counters
		# show one rcvd_rnr_err and no packet after it. So this case uses the other operations only.
		late=("${SILENT[@]}")
		[ $who = from_rxe ] || late=("${ops[@]}")
		ktap_check "$n: RC, receives posted late" $who -t rc -n 5 -w 32 -r -o "$(words "${late[@]}")"
		uc_may_lose=${MAY_LOSE:-}
		[ $who = from_rxe ] || uc_may_lose=-L
		ktap_check "$n: UC" $who -t uc -n 10 $uc_may_lose
		ktap_check "$n: UD" $who -t ud -n 10 ${MAY_LOSE:-}
	done
done
ktap_end
