#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# One of the two machines of two_machines.sh, which draws them. Both run the same list of cases; in each the program that acts
# connects to the other machine's, which waits for it.
#   machine.sh NUMBER
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
ME=$1 PEER=$((3 - $1)) DEV=${LINK_TYPE}$1 NETDEV='' X=
[ "$LINK_TYPE" = roan ] || X=-x

up() {
	local dev
	load_modules || return
	modprobe -q virtio_net
	for dev in /sys/class/net/*/device; do
		NETDEV=$(basename "${dev%/device}")
	done
	ip link set "$NETDEV" mtu 4200 && ip addr add "10.7.0.$ME/24" dev "$NETDEV" && ip addr add "fd07::$ME/64" dev "$NETDEV" nodad &&
		ip link set "$NETDEV" up && link_add "$DEV" "$NETDEV" || return
	# The other machine starts later if roan has to be built for it first.
	wait_for 1000 ping -c1 -W1 "10.7.0.$PEER" && wait_for 60 ping -c1 -W1 "fd07::$PEER"
}

from() { # MACHINE [OPTION...]
	local to=()
	[ "$1" != "$ME" ] || to=(-c "10.7.0.$PEER" "${@:2}")
	# shellcheck disable=SC2086 # words or none
	"$PROGRAMS/verbs_stress" -d "$DEV" $X $V6 -p $((18515 + KTAP_N)) -T 200 -k 18 "${to[@]}"
}

# What this machine sends to UDP port 4791 passes netem, each packet alone. The programs' TCP connection does not.
netem_up() {
	modprobe -q sch_netem
	ethtool -K "$NETDEV" gso off tx-udp-segmentation off tso off > /dev/null 2>&1
	tc qdisc add dev "$NETDEV" root handle 1: prio bands 4 && netem loss 0% &&
		tc filter add dev "$NETDEV" parent 1: protocol ip prio 1 u32 match ip dport 4791 0xffff flowid 1:4
}

# A qdisc that is replaced by its own kind keeps its counts and the options that are not named.
netem() { # NETEM-WORDS
	tc qdisc del dev "$NETDEV" parent 1:4 2> /dev/null
	tc qdisc add dev "$NETDEV" parent 1:4 netem "$@" limit 10000
}
dropped() { tc -s qdisc show dev "$NETDEV" | sed -n '/netem/,$ s/.*dropped \([0-9]*\).*/\1/p'; }

# What roan adds to the standard's packets is in the right byte order, too: if a SACK's bits are misread, packets that have
# arrived are sent again, and those that are lost are not. Timers of a slow guest send some again, too.
repaired() { # MACHINE PATHS
	local lost resent
	echo "$2" > "/sys/class/infiniband/$DEV/ports/1/cc_param/paths" && netem loss 2% || return
	resent=$(counter "$DEV" resent_pkts)
	from "$1" -t rc -n 20 -q 2 -w 64 -o SEND,SEND_IMM,WRITE,WRITE_IMM -z || return
	lost=$(dropped) resent=$(($(counter "$DEV" resent_pkts) - resent))
	[ "$1" = "$ME" ] || return 0
	echo "# $lost lost, $resent sent again" >&3
	[ "$lost" -gt 0 ] && [ $resent -lt $((10 * lost)) ]
}

# CNPs of the other machine, which names the path by version and UDP source port.
slowed() { # MACHINE PATHS
	local cnps
	echo "$2" > "/sys/class/infiniband/$DEV/ports/1/cc_param/paths" && netem loss 10% ecn || return
	cnps=$(counter "$DEV" rp_cnp_handled)
	from "$1" -t rc -n 20 -q 2 -w 64 -o SEND,SEND_IMM,WRITE,WRITE_IMM -z || return
	[ "$1" = "$ME" ] || return 0
	cnps=$(($(counter "$DEV" rp_cnp_handled) - cnps))
	echo "$cnps CNPs"
	[ $cnps -gt 0 ]
}

ktap_header
exec 3>&1
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
[ "$LINK_TYPE,$PEER_LINK" = roan,roan ] || ktap_end
V6=
ktap_check "netem" netem_up || ktap_end
for n in 1 2; do
	for paths in 1 4; do
		ktap_check "from machine $n: RC, packets lost, $paths paths" repaired $n $paths
		ktap_check "from machine $n: RC, packets marked, $paths paths" slowed $n $paths
	done
done
ktap_end
