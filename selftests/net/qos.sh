#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Which DSCP and which priority packets leave with, as a queueing discipline with a class for each priority counts them and
# as the other end sees them. No virtual interface has a DCB table: fake_dcb.c gives v1 one.
#
#	h1: roan1 v1 == prio, 8 bands ======== v2 roan2 :h2	captured on v2
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
. "$HERE/../verbs/pair.sh"
# The core shows a device's parameters in its own namespace only, which by default is the first one.
PARAMS=/sys/class/infiniband/$H1DEV/ports/1/cc_param

packets() { a tc -s class show dev v1 | awk -v c="1:$(($1 + 1))" '$3 == c { f = 1 } f && /Sent/ { print $4; exit }'; }

# A field of what h1 sent to h2, each value once.
sent() { tshark -n -r "$1" -Y "ip.src == $AIP && udp.dstport == 4791" -T fields -e "$2" 2> /dev/null | sort -un | tr '\n' ' '; }

capture() {
	rm -f /tmp/qos.pcap
	"${B[@]}" python3 "$HERE/capture.py" v2 /tmp/qos.pcap > /tmp/capture.log 2>&1 & CAPTURE=$!
	wait_for 60 test -e /tmp/qos.pcap
}
stop() { kill $CAPTURE; wait $CAPTURE 2> /dev/null; }

# leaves DSCP PRIO OPTIONS...: a WRITE stream from h1 with perftest's OPTIONS.
leaves() {
	local dscp=$1 prio=$2 before got
	shift 2
	before=$(packets "$prio")
	capture; stream "$@"; stop
	got=$(sent /tmp/qos.pcap ip.dsfield.dscp)
	echo "dscps $got, priority $prio: $before -> $(packets "$prio")"
	[ "$got" = "$dscp " ] && [ "$(packets "$prio")" -ge $((before + 2)) ]
}
# Where the cycle counter drifts perftest sends all and then cannot say how fast: what it leaves with means nothing here.
stream() { # both() has its server at A; ours is at B
	local pid
	"${B[@]}" timeout 100 ib_write_bw -d "$BDEV" -x "$BGID" -n 100 -s 4096 > /tmp/server 2>&1 & pid=$!
	wait_for 60 serving
	a timeout 100 ib_write_bw -d "$ADEV" -x "$AGID" -n 100 -s 4096 "$@" "$BIP" > /tmp/client 2>&1
	kill $pid 2> /dev/null; wait $pid
}
serving() { b ss -Hltn 'sport = :18515' | grep -q .; }
# The same between the addresses of a VLAN, whose tag then has the PCP that the interface's map makes of the priority.
tagged() { # PCP OPTIONS...
	local pcp=$1 got
	shift
	capture
	AIP=10.77.0.1 BIP=10.77.0.2 AGID=$VLAN_AGID BGID=$VLAN_BGID stream "$@"
	stop
	got=$(AIP=10.77.0.1 sent /tmp/qos.pcap vlan.priority)
	echo "PCP $got"
	[ "$got" = "$pcp " ]
}
vlans() {
	local n
	for n in 1 2; do
		on h$n ip link add link v$n name v$n.7 type vlan id 7 egress-qos-map 3:5 &&
			on h$n ip addr add 10.77.0.$n/24 dev v$n.7 && on h$n ip link set v$n.7 up || return
	done
	wait_for 60 a ping -c1 -W1 10.77.0.2 && wait_for 60 gid_index "$ADEV" 10.77.0.1 h1 && wait_for 60 gid_index "$BDEV" 10.77.0.2 h2
	VLAN_AGID=$(gid_index "$ADEV" 10.77.0.1 h1) VLAN_BGID=$(gid_index "$BDEV" 10.77.0.2 h2)
	[ -n "$VLAN_AGID" ] && [ -n "$VLAN_BGID" ]
}
set_class() { sh -c "echo $1 > $PARAMS/traffic_class"; }
refuses() { # VALUE WORDS
	local said
	said=$(bash -c "echo $1 > $PARAMS/traffic_class" 2>&1) && return 1
	echo "$said"
	case $said in *"$2"*) true ;; *) false ;; esac && [ "$(cat $PARAMS/traffic_class)" = 0 ]
}

ktap_header
[ "$LINK_TYPE" = roan ] || { ktap_skip "qos" "knows roan's parameters"; ktap_end; }
pair_up > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
modprobe -q sch_prio
a tc qdisc add dev v1 root handle 1: prio bands 8 priomap 0 1 2 3 4 5 6 7 0 0 0 0 0 0 0 0 || { ktap_skip "qos" "no prio qdisc"; ktap_end; }
AGID=$(gid_index "$ADEV" "$AIP" h1) BGID=$(gid_index "$BDEV" "$BIP" h2)

ktap_check "nothing said: DSCP 0, priority 0" leaves 0 0
ktap_check "traffic class 106: DSCP 26, priority 3, which the stack's own table would make 2" leaves 26 3 --tclass=106
ktap_check "traffic class 192: DSCP 48, priority 6" leaves 48 6 --tclass=192
ktap_check "service level 5: its class selector, DSCP 40" leaves 40 5 -S 5
ktap_check "no number is refused" refuses many "Invalid argument"
ktap_check "256 is refused" refuses 256 "out of range"
set_class 104
ktap_check "the device's traffic class serves who says nothing" leaves 26 3
ktap_check "... and nobody else" leaves 8 1 --tclass=32

set_class 0
if vlans > /tmp/vlans.log 2>&1; then
	ktap_check "a VLAN's PCP is what its map makes of priority 3" tagged 5 --tclass=106
	ktap_check "... and 0 of a priority that the map does not name" tagged 0 --tclass=192
else
	sed 's/^/# /' /tmp/vlans.log
	ktap_fail "a VLAN with a map of priorities"
fi

DCB=$(dirname "$(roan_ko)")/roan_fake_dcb.ko
if [ -e "$DCB" ] && command -v dcb > /dev/null; then
	ktap_check "an interface that does DCB" a insmod "$DCB" netdev=v1
	a dcb app add dev v1 dscp-prio 26:5
	ktap_check "the DCB table says what DSCP 26 is worth" leaves 26 5 --tclass=106
	a dcb app add dev v1 dgram-port-prio 4791:4
	ktap_check "... and what UDP port 4791 is, for other DSCPs" leaves 10 4 --tclass=40
	ktap_check "... but not for that one" leaves 26 5 --tclass=106
	a dcb app add dev v1 dscp-prio 26:7
	ktap_check "of two priorities the higher counts" leaves 26 7 --tclass=106
	a dcb app del dev v1 dscp-prio 26:5 26:7
	ktap_check "an entry goes: the port's counts" leaves 26 4 --tclass=106
	a dcb app del dev v1 dgram-port-prio 4791:4
	ktap_check "all are gone: DSCP >> 3 again" leaves 26 3 --tclass=106
	rmmod roan_fake_dcb
else
	ktap_skip "DCB" "no roan_fake_dcb.ko or no dcb"
fi
ktap_end
