#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Sourced by lib.sh. Configures the link between two hosts as the variable WIRE says, in terms of ethtool, ip and netem:
#
#	WIRE=gso=off,gro=on,mtu=1500,loss=0.1%,corrupt=0.1% run.sh uml-debug selftests/verbs/features/features.sh
#
#	gso=on|off	UDP GSO skbs cross the link whole, or are segmented in front of it
#	gro=on|off	the receiver aggregates packets, or not (on also sets tso off at the sender: a veth needs that)
#	tx=on|off	checksum offload; without it each skb is one packet
#	mtu=N		MTU of both ends
#	others		netem options for both directions: loss, corrupt, duplicate, delay, reorder
#
# With WIRE the packets of a program that runs over one device cross the link, too, instead of lo (roan_detour.ko).
# ktap_end checks by counters that received packets crossed the link. Hosts that were removed are not checked. ethtool
# is not asked at the end: in UML its memory may have the KASAN shadow of an unloaded module.
#
# wire_shape END...		configures the ends, each NETDEV:RDMA-DEVICE[:NETNS]; fails if a setting has no effect
# wire_netem NETDEV NETNS WORD...	netem with these words and those of WIRE
# detour NETNS			sends packets to local addresses over the link; the other end needs the module only
# wire_value WORD		prints the value of a word; false if WIRE does not have it
# wire_to_self			prints the interface that packets to local addresses leave by in h1
# wire_loses			true if packets get lost or corrupted
# needs_every_packet		if so, skips the rest of the script: it would wait for ever for a lost datagram
# wire_taken			true if the packets that the RDMA devices received crossed the link in the expected form
# WIRE_SINGLE=y: the script's messages have one packet each, so GSO skbs of several packets are not required

WIRE=${WIRE:-}
WIRE=${WIRE//,/ }
WIRE_ENDS=/tmp/wire.ends

wire_value() {
	local word
	for word in $WIRE; do
		[[ $word != "$1="* ]] || { echo "${word#*=}"; return 0; }
	done
	return 1
}
wire_to_self() { [ -n "$WIRE" ] && echo v1 || echo lo; }
wire_loses() { wire_value loss > /dev/null || wire_value corrupt > /dev/null; }
needs_every_packet() {
	wire_loses || return 0
	ktap_skip "all" "waits for datagrams, which are not retransmitted, and WIRE loses packets"
	ktap_end
}

offloads() { # prints the arguments for ethtool -K
	local value
	! value=$(wire_value gso) || echo "gso $value tx-udp-segmentation $value"
	! value=$(wire_value tx) || echo "tx $value"
	! value=$(wire_value gro) || echo "gro $value"
	[ "$value" != on ] || echo "tso off"
}
wire_netem_words() {
	local word
	for word in $WIRE; do
		case ${word%%=*} in
		gso | gro | tx | mtu) ;;
		loss | corrupt | duplicate | delay | reorder) echo "${word/=/ }" ;;
		*) echo "# WIRE: $word is not known" >&2; return 1 ;;
		esac
	done
}

at_end() { # NETNS COMMAND...
	local netns=$1
	shift
	${netns:+ip netns exec "$netns"} "$@"
}

wire_netem() {
	local words
	words=$(wire_netem_words) || return
	# shellcheck disable=SC2086 # a list of words
	at_end "$2" tc qdisc replace dev "$1" root netem "${@:3}" $words limit 10000
}

# Maps the short names of ethtool -K to the long names that ethtool -k prints.
offload_is() { # DEV NETNS NAME on|off
	local name=$3
	case $name in
	gso) name=generic-segmentation-offload ;;
	gro) name=generic-receive-offload ;;
	tso) name=tcp-segmentation-offload ;;
	tx) name=tx-checksumming ;;
	esac
	at_end "$2" ethtool -k "$1" 2> /dev/null | grep -q "^[[:space:]]*$name: $4\>" || { echo "# $1: $3 is not $4"; return 1; }
}
end_is_so() { # DEV NETNS
	local name value
	while read -r name value; do
		offload_is "$1" "$2" "$name" "$value" || return
	done < <(offloads | xargs -r -n 2)
	! value=$(wire_value mtu) || at_end "$2" ip link show "$1" | grep -q "mtu $value " || { echo "# $1: no MTU of $value"; return 1; }
	[ -z "$(wire_netem_words)" ] || at_end "$2" tc qdisc show dev "$1" | grep -q netem || { echo "# $1: no netem"; return 1; }
}

wire_shape() {
	local end dev netns value
	for end; do
		IFS=: read -r dev _ netns <<< "$end"
		# shellcheck disable=SC2046 # a list of words
		[ -z "$(offloads)" ] || at_end "$netns" ethtool -K "$dev" $(offloads) || return
		! value=$(wire_value mtu) || at_end "$netns" ip link set "$dev" mtu "$value" || return
		[ -z "$(wire_netem_words)" ] || wire_netem "$dev" "$netns" || return
		end_is_so "$dev" "$netns" && detour "$netns" || return
	done
	echo "$@" > $WIRE_ENDS
}

detour() {
	at_end "$1" sysctl -qw net.ipv4.conf.all.accept_local=1 || return
	[ -e /sys/module/roan_detour ] || insmod "$(dirname "$(roan_ko)")/roan_detour.ko"
}

# False if a hundred skbs or more should have been lost or corrupted and none was.
due() { # PERCENT SKBS SEEN
	awk -v p="${1%\%}" -v n="$2" -v seen="$3" 'BEGIN { exit !(n * p / 100 < 100 || seen) }'
}

# Prints the number of received multicast packets: a sender's own copies are received without crossing the link.
to_groups() { at_end "$1" nstat -asz IpExtInMcastPkts Ip6InMcastPkts | awk '/Mcast/ { n += $2 } END { print n + 0 }'; } # NETNS

# True if some skbs had several packets. Not required of few packets, of rxe, nor of one-packet messages (WIRE_SINGLE).
in_trains() { # PACKETS SKBS
	[ -n "${WIRE_SINGLE:-}" ] || grep -q rxe $WIRE_ENDS || [ "$1" -lt 10000 ] || [ "$1" -gt "$2" ]
}

# True if the device's skbs came by this netdev, of one or of several packets as WIRE says, and some were lost or
# corrupted.
end_was_taken() { # NETDEV RDMA-DEVICE NETNS
	local pkts skbs wire lost value
	pkts=$(counter "$2" rcvd_pkts) && skbs=$(counter "$2" rcvd_skbs) || return
	wire=$(at_end "$3" cat "/sys/class/net/$1/statistics/rx_packets") || return
	echo "# $2: $pkts packets in $skbs skbs; on $1 $wire" >> $WIRE_ENDS.log
	[ "$skbs" -le $((wire + $(to_groups "$3"))) ] || { echo "$2 received $skbs skbs, $1 only $wire"; return 1; }
	case "$(wire_value gso),$(wire_value gro),$(wire_value tx)" in
	off,off,* | *,off) [ "$pkts" -le "$skbs" ] || { echo "$2: $pkts packets in $skbs skbs"; return 1; } ;;
	*on,*) in_trains "$pkts" "$skbs" || { echo "$2: no trains in $skbs skbs"; return 1; } ;;
	esac
	if value=$(wire_value loss); then
		lost=$(at_end "$3" tc -s qdisc show dev "$1" | sed -n 's/.*(dropped \([0-9]*\).*/\1/p')
		due "$value" "$(at_end "$3" cat "/sys/class/net/$1/statistics/tx_packets")" "$lost" || { echo "$1 lost nothing"; return 1; }
	fi
	! value=$(wire_value corrupt) || due "$value" "$skbs" "$(counter "$2" rx_bad_icrc)" || { echo "$2 saw no damage"; return 1; }
}

wire_taken() {
	local end dev ibdev netns gone='' rcvd=0
	: > $WIRE_ENDS.log
	[ -e $WIRE_ENDS ] || { echo "the link was not set up"; return 1; }
	for end in $(cat $WIRE_ENDS); do
		IFS=: read -r dev ibdev netns <<< "$end"
		[ -e "/sys/class/infiniband/$ibdev/ports/1/hw_counters/rcvd_skbs" ] || { gone=y; continue; }
		end_was_taken "$dev" "$ibdev" "$netns" || return
		rcvd=$((rcvd + $(counter "$ibdev" rcvd_skbs)))
	done
	[ -n "$gone" ] || [ "$rcvd" != 0 ] || { echo "no packet crossed the link"; return 1; }
}
