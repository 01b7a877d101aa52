#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Goodput of one connection for each rate of loss, in virtual time: 16 WRITEs of 64 KiB under way, path MTU 4096, or one
# TCP connection of the same packets. Prints "point PAIR GBPS RTT_US LOSS_% GOODPUT"; loss.sh draws it.
#
#	roan, tcp		two hosts as lossy_link.sh draws them
#	rxe-roan, roan-rxe	the same, with rdma_rxe at the first; the first word is the sender
#	rxe			rdma_rxe at both, v1 and v2 in the first namespace, which routes between them by the bridge
# PAIR: one of these. MS: length of a measurement (200).
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
. "$HERE/../net/lossy_link.sh"
MS=${MS:-200}
LOSSES=${LOSSES:-0.01 0.03 0.1 0.3 1 3 10}

# The rules for what comes in are before those for what leaves, and the table of local addresses is the last.
route_between() {
	local n peer
	ip rule add pref 1000 lookup local && ip rule del pref 0 || return
	for n in 1 2; do
		peer=$((3 - n))
		sysctl -qw net.ipv4.conf.v$n.accept_local=1 net.ipv4.conf.v$n.rp_filter=0 &&
			ip rule add pref 10 iif v$n lookup local && ip route add 10.7.0.$peer dev v$n table 10$n &&
			ip rule add pref 20 from 10.7.0.$n to 10.7.0.$peer lookup 10$n &&
			neighbour "" v$n 10.7.0.$peer "" v$peer || return
	done
	sysctl -qw net.ipv4.conf.all.rp_filter=0
}

set_up() {
	case $PAIR in
	rxe) lossy_hosts rxe rxe && route_between ;;
	roan | tcp) lossy_hosts ;;
	*) lossy_hosts rxe ;;
	esac
}

# The link for what is sent, and the other way.
shape() { # GBPS RTT_US LOSS_%
	case $PAIR in
	roan-rxe) lossy p1 "$@" && lossy p2 "$1" "$2" 0 ;;
	tcp) LOSES=tcp lossy p2 "$@" && LOSES=tcp lossy p1 "$1" "$2" 0 ;;
	*) lossy p2 "$@" && lossy p1 "$1" "$2" 0 ;;
	esac
}

point() { # GBPS RTT_US LOSS_%
	local from=h1 to=h2 sender=(-d roan1) receiver=(-d roan2) address=10.7.0.2
	case $PAIR in
	tcp) sender=(-T) receiver=(-T) ;;
	rxe) from='' to='' sender=(-d rxe1) receiver=(-d rxe2) ;;
	rxe-roan) from='' sender=(-d rxe1) ;;
	roan-rxe) from=h2 to='' sender=(-d roan2) receiver=(-d rxe1) address=10.7.0.1 ;;
	esac
	shape "$@" || return
	rm -f /tmp/series.csv
	at_end "$to" timeout 100 "$PROGRAMS/traffic" "${receiver[@]}" -k 1 > /tmp/server 2>&1 &
	sleep 0.1
	at_end "$from" timeout 100 "$PROGRAMS/traffic" "${sender[@]}" -s 65536 -m 4096 -q 16 -z "$MS" -o /tmp/series.csv $address > /tmp/flow 2>&1
	sed 's/^/# /' /tmp/flow
	wait
	awk -F, -v ms="$MS" -v p="point $PAIR $*" 'NR > 1 { n += $2 } END { printf "%s %.3f\n", p, n * 8 / ms / 1e6 }' /tmp/series.csv
}

set_up > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; exit 1; }
for link in "10 20" "40 100"; do
	for loss in $LOSSES; do
		# shellcheck disable=SC2086 # two words
		point $link "$loss" || exit
	done
done
