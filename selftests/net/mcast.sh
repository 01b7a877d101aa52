#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# UD multicast: the netdev accepts the group's MAC, the host reports membership by IGMP or MLD, datagrams arrive at each
# member and at no other QP, and detaching undoes all. A group is joined on the whole port, including its VLANs and
# VLANs created later. Membership survives link down and a temporary MTU too small for IPv6.
#
#	h1: roan1 v1 (members) ======== v2 roan2 :h2 (sender)
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
. "$HERE/../verbs/pair.sh"

maddr() { a ip maddr show dev v1 | grep -q "$1"; }
no_maddr() { ! maddr "$1"; }

port_counters() {	# multicast and unicast packets received by the members' port, and sent by the sender's
	cat "/sys/class/infiniband/$ADEV/ports/1/counters/multicast_rcv_packets" \
		"/sys/class/infiniband/$ADEV/ports/1/counters/unicast_rcv_packets"
	cat "/sys/class/infiniband/$BDEV/ports/1/counters/multicast_xmit_packets" \
		"/sys/class/infiniband/$BDEV/ports/1/counters/unicast_xmit_packets"
}

# group GID-or-IP, MAC, IP as ip maddr shows it, options
group() {
	local mgid=$1 mac=$2 ip=$3 opt=$4 pid rc before ports_before got
	no_maddr "$ip" || { echo "$ip is joined beforehand"; return 1; }
	before=$(counter "$ADEV" rcvd_pkts)
	ports_before=$(port_counters)
	rm -f $OUT_A	# the file may be of the previous group
	# shellcheck disable=SC2086
	"${A[@]}" timeout 110 "$PROGRAMS/mcast" -d "$ADEV" -m "$mgid" -r 2 -n 20 $opt > $OUT_A 2>&1 &
	pid=$!
	wait_for 60 grep -q joined $OUT_A || { cat $OUT_A; kill $pid; return 1; }
	maddr "$mac" || { echo "MAC $mac is not listened to"; a ip maddr show dev v1; kill $pid; return 1; }
	maddr "$ip" || { echo "$ip is not joined"; a ip maddr show dev v1; kill $pid; return 1; }
	# shellcheck disable=SC2086
	b timeout 110 "$PROGRAMS/mcast" -d "$BDEV" -m "$mgid" -s -n 20 $opt > $OUT_B 2>&1
	rc=$?
	wait $pid && [ $rc = 0 ] || { cat $OUT_A $OUT_B; return 1; }
	got=$(($(counter "$ADEV" rcvd_pkts) - before))
	[ $got = 20 ] || { echo "$got packets counted, of 20 that two members have"; return 1; }
	got=$(paste <(port_counters) <(echo "$ports_before") | awk '{ printf "%s%d", sep, $1 - $2; sep = " " }')
	[ "$got" = "20 0 20 0" ] || { echo "ports/1/counters: multicast and unicast received, sent: $got"; return 1; }
	wait_for 30 no_maddr "$ip" || { echo "$ip is still joined"; return 1; }
}

reports() {	# a capture on the other side has the report for the group
	tshark -n -r /tmp/mc.pcap -Y "$1" 2> /dev/null | grep -q . || { echo "no $1"; tshark -n -r /tmp/mc.pcap 2> /dev/null | head; return 1; }
}

# member GID [OPTIONS]: attaches two QPs in the background; its process id is $member.
member() {
	local mgid=$1
	shift
	rm -f $OUT_A
	"${A[@]}" timeout 110 "$PROGRAMS/mcast" -d "$ADEV" -m "$mgid" -r 2 -n 20 "$@" > $OUT_A 2>&1 &
	member=$!
	wait_for 60 grep -q joined $OUT_A || { cat $OUT_A; kill $member; return 1; }
}

# received GID [OPTIONS]: datagrams of h2 arrive at both QPs.
received() {
	local mgid=$1 rc
	shift
	b timeout 110 "$PROGRAMS/mcast" -d "$BDEV" -m "$mgid" -s -n 20 "$@" > $OUT_B 2>&1
	rc=$?
	[ $rc = 0 ] || kill $member
	wait $member && [ $rc = 0 ] || { cat $OUT_A $OUT_B; return 1; }
}

# GROUP of one IP version, with the GID of an address of the other one.
other_version() {
	local v6=
	[ "${1#::ffff}" = "$1" ] || v6=-6
	a timeout 110 "$PROGRAMS/mcast" -d "$ADEV" -m "$1" $v6 -s -n 1 > /tmp/other.out 2>&1
	grep -q "objects: Invalid argument" /tmp/other.out || { cat /tmp/other.out; return 1; }
}

on_if() { a ip maddr show dev "$1" | grep -q "$2"; }
not_on_if() { ! on_if "$@"; }

vlan() { # HOST DEVICE ID IPV4 IPV6
	on "$1" ip link add link "$2" name "$2.$3" type vlan id "$3" && on "$1" ip addr add "$4/24" dev "$2.$3" &&
		on "$1" ip addr add "$5/64" dev "$2.$3" nodad && on "$1" ip link set "$2.$3" up
}

vlans() {
	vlan h1 v1 7 10.7.7.1 fd07:7::1 && vlan h2 v2 7 10.7.7.2 fd07:7::2 && wait_for 60 gid_index "$BDEV" 10.7.7.2 h2 || return
	member ::ffff:224.0.1.79 || return
	on_if v1 224.0.1.79 && on_if v1.7 224.0.1.79 || { a ip maddr; kill $member; return 1; }
	received ::ffff:224.0.1.79 -g "$(gid_index "$BDEV" 10.7.7.2 h2)" || return
	wait_for 30 not_on_if v1.7 224.0.1.79 && not_on_if v1 224.0.1.79 || { echo "still joined"; a ip maddr; return 1; }
}

vlans_later() {
	vlan h2 v2 8 10.7.8.2 fd07:8::2 && wait_for 60 gid_index "$BDEV" fd07:8::2 h2 || return
	member ff0e::4d:79 -6 && vlan h1 v1 8 10.7.8.1 fd07:8::1 || return
	on_if v1.8 ff0e::4d:79 || { a ip maddr; kill $member; return 1; }
	a ip link del v1.7
	received ff0e::4d:79 -6 -g "$(gid_index "$BDEV" fd07:8::2 h2)" || return
	wait_for 30 not_on_if v1.8 ff0e::4d:79 || { echo "still joined"; a ip maddr; return 1; }
	a ip link del v1.8
}

# The kernel removes the IPv6 addresses of an interface that goes down.
v1_addresses() { a ip addr replace $AIP6/64 dev v1 nodad && wait_for 60 gid_index "$ADEV" $AIP6 h1 && wait_for 60 a ping -c 1 -W 1 $BIP; }

down_up() { # GID IP [OPTIONS]
	local mgid=$1 ip=$2
	shift 2
	member "$mgid" "$@" && a ip link set v1 down && a ip link set v1 up && v1_addresses || return
	maddr "$ip" || { a ip maddr show dev v1; kill $member; return 1; }
	received "$mgid" "$@"
}

small_mtu() {
	member ff0e::4d:81 -6 && a ip link set v1 mtu 1000 || return
	no_maddr ff0e::4d:81 || echo "IPv6 still works with an MTU of 1000"
	a ip link set v1 mtu 4200 && v1_addresses || return
	maddr ff0e::4d:81 || { a ip maddr show dev v1; kill $member; return 1; }
	received ff0e::4d:81 -6 || return
	wait_for 30 no_maddr ff0e::4d:81 || { echo "still joined"; a ip maddr; return 1; }
}

# An interface that moves to another namespace loses its groups. Groups joined there later are not the device's to
# leave.
moved() {
	local pid
	rm -f $OUT_A
	"${A[@]}" timeout 110 "$PROGRAMS/mcast" -d "$ADEV" -m ff02::1 -r 2 -n 20 -6 > $OUT_A 2>&1 &
	pid=$!
	wait_for 60 grep -q joined $OUT_A || { cat $OUT_A; kill $pid; return 1; }
	ip netns add elsewhere && a ip link set v1 netns elsewhere || return
	wait_for 60 test ! -e "/sys/class/infiniband/$ADEV" || { echo "the device still exists"; return 1; }
	kill $pid 2> /dev/null; wait $pid
	ip -n elsewhere maddr show dev v1 | grep -q 'inet6 *ff02::1' || { ip -n elsewhere maddr show dev v1; return 1; }
}

# The module exits while a QP leaves and joins groups and VLANs are deleted. A kernel consumer that takes its time keeps
# the QP for seconds after roan has lost its netdev notifier.
module_exit() {
	local i pid rmmod rc=0
	ip netns add h3 && ip -n h3 link add w1 type veth peer name w2 && ip -n h3 link set w1 up && ip -n h3 link set w2 up &&
		ip -n h3 addr add 10.7.3.1/24 dev w1 && link_add roan3 w1 h3 && wait_for 60 gid_index roan3 10.7.3.1 h3 || return
	for i in 1 2 3 4; do
		ip -n h3 link add link w1 name w1.$i type vlan id $i && ip -n h3 link set w1.$i up || return
	done
	rm -f $OUT_A
	on h3 timeout 110 "$PROGRAMS/lifetime" groups -d roan3 -a 10.7.3.1 -t 100 > $OUT_A 2>&1 &
	pid=$!
	wait_for 60 grep -q started $OUT_A || { cat $OUT_A; kill $pid; return 1; }
	insmod "$SLOW" seconds=5 && rmmod roan &
	rmmod=$!
	for i in 1 2 3 4; do
		sleep 1
		ip -n h3 link del w1.$i || rc=1
	done
	wait $rmmod || rc=1
	wait $pid || rc=1
	cat $OUT_A
	grep -q 'end: verb' $OUT_A || rc=1
	rmmod roan_slow_client
	return $rc
}

# The last packet that the checks below look for.
LAST='udp.port == 4791 && ipv6.dst == ff0e::4d:77 && eth.dst == 33:33:00:4d:00:77'

ktap_header
needs_every_packet
pair_up > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
"${B[@]}" dumpcap -q -P -i v2 -w /tmp/mc.pcap > /tmp/dumpcap.log 2>&1 &
cap=$!
wait_for 30 test -s /tmp/mc.pcap	# the capture must have started before the join
ktap_check "IPv4 group: MAC, join, two members, leave" group ::ffff:224.0.1.77 01:00:5e:00:01:4d 224.0.1.77 ""
ktap_check "IPv4 group as a RoCE v1 MGID" group ff0e::ffff:224.0.1.78 01:00:5e:00:01:4e 224.0.1.78 ""
ktap_check "IPv6 group: MAC, join, two members, leave" group ff0e::4d:77 33:33:00:4d:00:77 ff0e::4d:77 -6
wait_for 30 reports "$LAST"
sleep 1
kill $cap; wait $cap 2> /dev/null
if command -v dumpcap > /dev/null; then
	ktap_check "IGMP report on the wire" reports 'igmp.maddr == 224.0.1.77'
	ktap_check "MLD report on the wire" reports 'icmpv6.mldr.mar.multicast_address == ff0e::4d:77'
	ktap_check "the sender's frames carry the group's MAC" reports 'udp.port == 4791 && ip.dst == 224.0.1.77 && eth.dst == 01:00:5e:00:01:4d'
	ktap_check "the same for IPv6" reports "$LAST"
else
	ktap_skip "reports on the wire" "no dumpcap"
fi
ktap_check "IPv4: a member gets no copy of its own datagrams, if created so" a timeout 110 "$PROGRAMS/mcast" -d "$ADEV" -m ::ffff:224.0.1.82 -o
ktap_check "IPv6: the same" a timeout 110 "$PROGRAMS/mcast" -d "$ADEV" -m ff0e::4d:82 -6 -o
for group in ff0e::4d:83 ::ffff:224.0.1.83; do
	ktap_check "no address handle for $group from a GID of the other IP version" other_version $group
done
ktap_check "VLANs: joined, received, left" vlans
ktap_check "a VLAN created after the join, and a VLAN that is deleted" vlans_later
ktap_check "IPv4 group over link down and up" down_up ::ffff:224.0.1.80 224.0.1.80
ktap_check "IPv6 group over link down and up" down_up ff0e::4d:80 ff0e::4d:80 -6
ktap_check "IPv6 group over an MTU without IPv6" small_mtu
ktap_check "an interface that moved to another namespace keeps the groups joined there" moved
SLOW=$(dirname "$(roan_ko)")/roan_slow_client.ko
if [ "$LINK_TYPE" = roan ] && [ -e "$SLOW" ]; then
	ktap_check "VLANs are deleted while the module exits" module_exit
else
	ktap_skip "VLANs are deleted while the module exits" "no roan_slow_client.ko"
fi
ktap_end
