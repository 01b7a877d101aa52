#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Sourced by lib.sh. What the variable WIRE wants of the wire between two hosts, in the words of ethtool, ip and netem:
#
#	WIRE=gso=off,gro=on,mtu=1500,loss=0.1%,corrupt=0.1% run.sh uml-debug selftests/verbs/features.sh
#
#	gso=on|off	UDP trains leave whole, or are cut in front of the wire
#	gro=on|off	they are put together behind it, or not (a veth wants tso off for that at the sending end: so it is then)
#	tx=on|off	checksum offload; without it packets leave alone
#	mtu=N		of both ends
#	others		netem's, of what leaves either end: loss, corrupt, duplicate, delay, reorder
#
# Then a program over one device takes the wire as well, not lo (roan_detour.ko). ktap_end asks whether it was taken, of hosts
# that are still there; by what counters say, as ethtool's memory may be that of a module that left its KASAN shadow (UML).
#
# wire_shape END...		makes the ends so, each NETDEV:RDMA-DEVICE[:NETNS]; fails unless they are
# wire_netem NETDEV NETNS WORD...	netem with these words and those of WIRE
# detour NETNS			packets to oneself take the wire there; the other end needs no more than the module
# wire_value WORD		its value; false if WIRE does not have it
# wire_to_self			the interface by which packets to oneself leave in h1
# wire_loses			does it lose or damage what it carries?
# needs_every_packet		the script ends here, skipped, if it does: who waits for a datagram that is lost waits for ever
# wire_taken			did what the RDMA devices received cross it, and as it should?
# WIRE_SINGLE=y: the script's messages are of one packet, so that there need not be trains

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
	ktap_skip "all" "its datagrams are waited for, though nobody sends them again"
	ktap_end
}

offloads() { # what ethtool -K is to be told
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

# Long names, as ethtool -k has them, of the short ones that -K takes.
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

# Of a hundred that should have been lost or damaged one must have been.
due() { # PERCENT SKBS SEEN
	awk -v p="${1%\%}" -v n="$2" -v seen="$3" 'BEGIN { exit !(n * p / 100 < 100 || seen) }'
}

# Packets to groups, of which the sender gets its own without their being on a wire.
to_groups() { at_end "$1" nstat -asz IpExtInMcastPkts Ip6InMcastPkts | awk '/Mcast/ { n += $2 } END { print n + 0 }'; } # NETNS

# Of many packets some came together. rxe sends none that could, nor does who sends message after message of one packet.
in_trains() { # PACKETS SKBS
	[ -n "${WIRE_SINGLE:-}" ] || grep -q rxe $WIRE_ENDS || [ "$1" -lt 10000 ] || [ "$1" -gt "$2" ]
}

# What the device received came by the wire, in pieces of the right kind.
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
	[ -e $WIRE_ENDS ] || { echo "it was never laid"; return 1; }
	for end in $(cat $WIRE_ENDS); do
		IFS=: read -r dev ibdev netns <<< "$end"
		[ -e "/sys/class/infiniband/$ibdev/ports/1/hw_counters/rcvd_skbs" ] || { gone=y; continue; }
		end_was_taken "$dev" "$ibdev" "$netns" || return
		rcvd=$((rcvd + $(counter "$ibdev" rcvd_skbs)))
	done
	[ -n "$gone" ] || [ "$rcvd" != 0 ] || { echo "nothing crossed it"; return 1; }
}
