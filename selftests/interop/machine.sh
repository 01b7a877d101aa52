#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# One of the two machines of two_machines.sh, which draws them. Both run the same list of cases; in each the program that acts
# connects to the other machine's, which waits for it.
#   machine.sh NUMBER
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
ME=$1 PEER=$((3 - $1)) DEV=${LINK_TYPE}$1 X=
[ "$LINK_TYPE" = roan ] || X=-x

up() {
	local netdev
	load_modules || return
	modprobe -q virtio_net
	for netdev in /sys/class/net/*/device; do
		netdev=$(basename "${netdev%/device}")
	done
	ip link set "$netdev" mtu 4200 && ip addr add "10.7.0.$ME/24" dev "$netdev" && ip addr add "fd07::$ME/64" dev "$netdev" nodad &&
		ip link set "$netdev" up && link_add "$DEV" "$netdev" || return
	# The other machine starts later if roan has to be built for it first.
	wait_for 1000 ping -c1 -W1 "10.7.0.$PEER" && wait_for 60 ping -c1 -W1 "fd07::$PEER"
}

from() { # MACHINE [OPTION...]
	local to=()
	[ "$1" != "$ME" ] || to=(-c "10.7.0.$PEER" "${@:2}")
	# shellcheck disable=SC2086 # words or none
	"$PROGRAMS/verbs_stress" -d "$DEV" $X $V6 -p $((18515 + KTAP_N)) -T 200 -k 18 "${to[@]}"
}

ktap_header
up > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ip addr; ktap_fail "set-up"; ktap_end; }
for V6 in "" -6; do
	for n in 1 2; do
		who="from machine $n${V6:+, IPv6}"
		for op in SEND SEND_IMM SEND_INV WRITE WRITE_IMM READ CAS FAA ATOMIC_WRITE; do
			ktap_check "$who: RC $op" from $n -t rc -n 3 -o $op -z
		done
		ktap_check "$who: RC, all operations, 4 QPs" from $n -t rc -n 8 -q 4 -w 64 -z
		ktap_check "$who: RC, MTU 1024, SRQ, events" from $n -t rc -n 8 -q 4 -w 64 -S -e -m 1024 -z
		ktap_check "$who: UC" from $n -t uc -n 8 -L
		ktap_check "$who: UD" from $n -t ud -n 8 -L
	done
done
ktap_end
