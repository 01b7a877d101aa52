#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# DSCP and priority of outgoing packets, as counted by a queueing discipline with a class for each priority, and as the
# receiver sees them. No virtual interface has a DCB table: fake_dcb.c gives v1 one.
#
#	h1: roan1 v1 == prio, 8 bands ======== v2 roan2 :h2	captured on v2
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
. "$HERE/../verbs/pair.sh"
# The RDMA core shows a device's parameters in its own network namespace only, by default the initial one.
PARAMS=/sys/class/infiniband/$H1DEV/ports/1/cc_param

packets() { a tc -s class show dev v1 | awk -v c="1:$(($1 + 1))" '$3 == c { f = 1 } f && /Sent/ { print $4; exit }'; }

# Prints the values of a field in packets from h1 to h2, each value once.
sent() { tshark -n -r "$1" -Y "ip.src == $AIP && udp.dstport == 4791" -T fields -e "$2" 2> /dev/null | sort -un | tr '\n' ' '; }

capture() {
	rm -f /tmp/qos.pcap
	"${B[@]}" python3 "$HERE/packets/capture.py" v2 /tmp/qos.pcap > /tmp/capture.log 2>&1 & CAPTURE=$!
	wait_for 60 test -e /tmp/qos.pcap
}
stop() { kill $CAPTURE; wait $CAPTURE 2> /dev/null; }

# leaves DSCP PRIO OPTIONS...: a WRITE stream from h1 with perftest's OPTIONS has this DSCP and priority.
leaves() {
	local dscp=$1 prio=$2 before got
	shift 2
	before=$(packets "$prio")
	capture; stream "$@"; stop
	got=$(sent /tmp/qos.pcap ip.dsfield.dscp)
	echo "dscps $got, priority $prio: $before -> $(packets "$prio")"
	[ "$got" = "$dscp " ] && [ "$(packets "$prio")" -ge $((before + 2)) ]
}
# If the cycle counter drifts perftest fails at the end, after it has sent all. So its exit status is not used.
stream() { # both() has its server at A; this one has it at B
	local pid
	"${B[@]}" timeout 100 ib_write_bw -d "$BDEV" -x "$BGID" -n 100 -s 4096 > /tmp/server 2>&1 & pid=$!
	wait_for 60 serving 18515
	a timeout 100 ib_write_bw -d "$ADEV" -x "$AGID" -n 100 -s 4096 "$@" "$BIP" > /tmp/client 2>&1
	kill $pid 2> /dev/null; wait $pid
}
# udaddy's server makes the address of its answers by ibv_create_ah_from_wc(), from a datagram and its completion. A TOS
# byte with ECN bits counts as a class, so the datagrams come without them.
answers() { # DSCP
	local algo=/sys/class/infiniband/$H2DEV/ports/1/cc_param/algo got rc was
	was=$(cat "$algo")
	echo none > "$algo" || return
	capture
	both 100 7471 "udaddy -C 5" "udaddy -s $AIP -C 5"
	rc=$?
	stop
	echo "$was" > "$algo"
	[ $rc = 0 ] || return
	got=$(sent /tmp/qos.pcap ip.dsfield.dscp)
	echo "dscps $got"
	[ "$got" = "$1 " ]
}
# The same between addresses of a VLAN. The interface's egress map gives the PCP of the tag for the priority.
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
[ "$LINK_TYPE" = roan ] || { ktap_skip "qos" "needs roan's parameters"; ktap_end; }
pair_up > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
modprobe -q sch_prio
a tc qdisc add dev v1 root handle 1: prio bands 8 priomap 0 1 2 3 4 5 6 7 0 0 0 0 0 0 0 0 || { ktap_skip "qos" "no prio qdisc"; ktap_end; }
AGID=$(gid_index "$ADEV" "$AIP" h1) BGID=$(gid_index "$BDEV" "$BIP" h2)

ktap_check "no setting: DSCP 0, priority 0" leaves 0 0
ktap_check "traffic class 106: DSCP 26, priority 3 (the stack's TOS table would give 2)" leaves 26 3 --tclass=106
ktap_check "traffic class 192: DSCP 48, priority 6" leaves 48 6 --tclass=192
ktap_check "service level 5: its class selector, DSCP 40" leaves 40 5 -S 5
ktap_check "the answer to a datagram without a class: DSCP 0" answers 0
ktap_check "a value that is not a number is refused" refuses many "Invalid argument"
ktap_check "256 is refused" refuses 256 "out of range"
set_class 104
ktap_check "the device's traffic class applies to QPs without one" leaves 26 3
ktap_check "the device's traffic class does not apply to QPs with one" leaves 8 1 --tclass=32

set_class 0
if vlans > /tmp/vlans.log 2>&1; then
	ktap_check "a VLAN's PCP is that of its egress map for priority 3" tagged 5 --tclass=106
	ktap_check "a VLAN's PCP is 0 for a priority that is not in the map" tagged 0 --tclass=192
else
	sed 's/^/# /' /tmp/vlans.log
	ktap_fail "set-up of a VLAN with an egress map"
fi

DCB=$(dirname "$(roan_ko)")/roan_fake_dcb.ko
if [ -e "$DCB" ] && command -v dcb > /dev/null; then
	ktap_check "load the fake DCB driver" a insmod "$DCB" netdev=v1
	a dcb app add dev v1 dscp-prio 26:5
	ktap_check "DCB: the entry for DSCP 26 gives its priority" leaves 26 5 --tclass=106
	a dcb app add dev v1 dgram-port-prio 4791:4
	ktap_check "DCB: the entry for UDP port 4791 gives that of other DSCPs" leaves 10 4 --tclass=40
	ktap_check "DCB: the DSCP entry has precedence over the port entry" leaves 26 5 --tclass=106
	a dcb app add dev v1 dscp-prio 26:7
	ktap_check "DCB: of two priorities the higher is used" leaves 26 7 --tclass=106
	a dcb app del dev v1 dscp-prio 26:5 26:7
	ktap_check "DCB: without the DSCP entry the port entry is used" leaves 26 4 --tclass=106
	a dcb app del dev v1 dgram-port-prio 4791:4
	ktap_check "DCB: without entries the priority is DSCP >> 3" leaves 26 3 --tclass=106
	rmmod roan_fake_dcb
else
	ktap_skip "DCB" "no roan_fake_dcb.ko or no dcb"
fi
ktap_end
