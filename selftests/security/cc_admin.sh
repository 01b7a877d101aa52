#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Congestion control that an administrator set for a QP, or for all programs of a device, holds against the program,
# until the administrator lifts it.
#
#	h1: roan1 v1 ======== v2 roan2 :h2	one QP of roan1, connected to itself
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"

PORT=/sys/class/infiniband/$H1DEV/ports/1

ask() { # WORD [VALUE]: the program's answer
	echo "$*" >&"${PROGRAM[1]}" && read -rt 60 ANSWER <&"${PROGRAM[0]}"
}
says() { # ANSWER WORD [VALUE]
	local want=$1
	shift
	ask "$@" || return
	[ "$ANSWER" = "$want" ] || { echo "$*: $ANSWER, not $want"; return 1; }
}
shows() { # QPN VALUES NAME...
	local qpn=$1 want=$2 is
	shift 2
	is=$(rdma -j -dd resource show qp link "$H1DEV/1" lqpn "$qpn" | python3 -c '
import json, sys
q = json.load(sys.stdin)[0]
print(*[q.get(n, q.get("drv_" + n)) for n in sys.argv[1:]])' "$@")
	[ "$is" = "$want" ] || { echo "$*: $is, not $want"; return 1; }
}
admin() { echo "$2" > "$PORT/$1"; } # FILE LINE

by_program() { says "done" algo swift && shows "$QPN" "swift 1 0" cc cc_own cc_admin; }
by_admin() { admin qp_algo "$QPN dcqcn" && shows "$QPN" "dcqcn 1 1" cc cc_own cc_admin; }
holds() {
	says EPERM algo none && says EPERM algo device && says EPERM algo swift && says EINVAL algo fastest &&
		shows "$QPN" "dcqcn 1 1" cc cc_own cc_admin
}
holds_after_reset() { says "done" again && says EPERM algo none && shows "$QPN" "dcqcn 1 1" cc cc_own cc_admin; }
device_is_a_choice() {
	admin qp_algo "$QPN device" && shows "$QPN" "dcqcn 0 1" cc cc_own cc_admin && says EPERM algo none &&
		shows "$QPN" "dcqcn 0 1" cc cc_own cc_admin
}
lifted() {
	admin qp_algo "$QPN program" && shows "$QPN" "swift 1 0" cc cc_own cc_admin && says "done" algo dcqcn-mlx &&
		shows "$QPN" "dcqcn-mlx 1 0" cc cc_own cc_admin
}
cap_holds() {
	admin qp_cap "$QPN 0x0000001388" && shows "$QPN" "5000 5000" cap_kbps rate_kbps || return
	says "done" rate 900000 && says "done" algo none && shows "$QPN" "5000 5000" cap_kbps rate_kbps || return
	says "done" again && says "done" algo dcqcn && shows "$QPN" "5000 5000" cap_kbps rate_kbps || return
	admin qp_cap "$QPN 0" && says "done" rate 900000 && shows "$QPN" "0 900000" cap_kbps rate_kbps
}
no_choice() {
	local own
	# A limited QP takes over the device's setting with its next packet, or the next change of its own.
	says "done" algo dcqcn-mlx && admin cc_param/program_algo 0 && says "done" rate 900000 || return
	shows "$QPN" "dcqcn 0 0" cc cc_own cc_admin && says EPERM algo none || return
	ask own fixed && own=$ANSWER && shows "$own" "dcqcn 0 0" cc cc_own cc_admin || return
	admin qp_algo "$QPN fixed" && shows "$QPN" "fixed 1 1" cc cc_own cc_admin && admin qp_algo "$QPN program" || return
	shows "$QPN" "dcqcn 0 0" cc cc_own cc_admin && admin cc_param/program_algo 1 && says "done" rate 900000 && shows "$QPN" "dcqcn-mlx 1 0" cc cc_own cc_admin
}
root_only() { # a member of no group
	setpriv --reuid 2001 --regid 2001 --clear-groups bash -c "echo '$QPN none' > $PORT/qp_algo" 2> /dev/null && return 1
	setpriv --reuid 2001 --regid 2001 --clear-groups bash -c "echo 1 > $PORT/cc_param/program_algo" 2> /dev/null && return 1
	shows "$QPN" "dcqcn-mlx 1 0" cc cc_own cc_admin
}

ktap_header
{ load_modules && two_hosts; } > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
coproc PROGRAM { on h1 "$PROGRAMS/cc_choice" "$H1DEV" 2>&1; }
read -rt 60 QPN <&"${PROGRAM[0]}" && [ "$QPN" -gt 0 ] || { echo "# $QPN"; ktap_fail "a QP"; ktap_end; }
ktap_check "a program chooses its QP's algorithm" by_program
ktap_check "the administrator's choice replaces it" by_admin
ktap_check "the program cannot change it" holds
ktap_check "nor by RESET" holds_after_reset
ktap_check "the device's algorithm is a choice, too" device_is_a_choice
ktap_check "lifted: the program's choice is in effect again, and it can choose" lifted
ktap_check "a cap holds against rate limit, algorithm and RESET" cap_holds
ktap_check "program_algo 0: no program of the device has a choice" no_choice
ktap_check "no other user can choose for a QP or a device" root_only
ktap_end
