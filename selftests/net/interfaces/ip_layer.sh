#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What the IP layer of the hosts and of the network between does to roan's packets: IPsec in transport mode, VRFs with the
# same addresses, routers and routes narrower than the interface, a smaller MTU that others announce, routes by traffic class,
# firewall rules by source, policing, a full connection tracking table, packets that come by the wrong interface
# (wrong_interface.py). Data is compared; what is refused is counted.
# ONLY=GROUP,GROUP: ipsec, vrf, mtu, route, class, firewall, police, conntrack, interface.
#
#	all:	h1: roan1 v1 10.7.0.1 ======== 10.7.0.2 v2 roan2 :h2	MTU 4200
#	vrf:	h1: VRFs vred and vblue with red1 ===== red2 and blue1 ===== blue2 :h2, each 10.8.0.1 === 10.8.0.2,
#		and 10.8.11.1 === 10.8.11.2 in red, 10.8.12.1 === 10.8.12.2 in blue
#	route:	h1: roan3 x1 10.11.1.1 === y1 :ra: z1 === z2 :rb: y2 === 10.11.2.2 x2 roan4 :h2	z1 and z2: MTU 1500
#	interface:	h1: VLANs 5 and 6 on v1 ==== v2 :h2, and roan3 x1 ==== x2 :h2
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../../vm/lib.sh"
. "$HERE/../../verbs/pair.sh"
. "$HERE/../packets/capture.sh"
. "$HERE/../packets/python.sh"

has() { [[ -z ${ONLY:-} || ,$ONLY, == *,$1,* ]]; } # CASE

# group CASE SETUP: false if the case is not asked for or its set-up failed (reported). Status 4 of SETUP skips it.
group() {
	has "$1" || return
	"$2" > /tmp/setup.log 2>&1
	case $? in
	0) return 0 ;;
	4) ktap_skip "$1" "$(tail -n 1 /tmp/setup.log)" ;;
	*) sed 's/^/# /' /tmp/setup.log; ktap_fail "$1: set-up" ;;
	esac
	return 1
}

# Packets that were refused or lost in a host, at both ends. Not rx_unknown_qp: a packet that was sent again may come after its QP's end.
refused() {
	local c s=0
	for c in rx_policy rx_wrong_peer rx_wrong_interface rx_no_device rx_bad_icrc tx_no_route tx_dropped retry_exceeded_err; do
		s=$((s + $(total $c)))
	done
	echo $s
}
data() { STRESS_BOTH="$*" stress 100 -t rc -q 2 -w 16 -n 2 -l 40000 -B "$@"; } # [OPTIONS OF BOTH ENDS]: every byte is compared
# carry [OPTIONS OF BOTH ENDS]: data, of which nothing is refused.
carry() {
	local before rcvd
	before=$(refused) rcvd=$(total rcvd_pkts)
	data "$@" || return
	echo "received $(($(total rcvd_pkts) - rcvd)) packets, refused $(($(refused) - before)); totals of the first end:"
	rdma statistic show link "$ADEV/1" 2> /dev/null | grep -o '[rt]x_[a-z_]* [1-9][0-9]*'
	[ "$(refused)" = "$before" ] && [ "$(total rcvd_pkts)" -gt $((rcvd + 50)) ]
}
# times_out [OPTIONS OF THE CLIENT]: a WRITE from B fails with IBV_WC_RETRY_EXC_ERR (12).
# shellcheck disable=SC2120 # beside_data passes some
times_out() {
	both 200 18600 "ib_write_bw -F -d $ADEV -p 18600 -n 5 -u 10" "ib_write_bw -F -d $BDEV -p 18600 -n 5 -u 10 $* $AIP" > /tmp/both.log 2>&1 &&
		{ echo "the WRITEs completed"; return 1; }
	grep -q 'status 12' $OUT_B || { cat /tmp/both.log; return 1; }
}

# refused_at_rtr BYTES [OPTIONS OF BOTH ENDS]: a QP with path MTU 4096 is not connected, the log has the packet length; it has sent nothing.
refused_at_rtr() {
	local bytes=$1 sent
	shift
	sent=$(total sent_pkts)
	log_mark
	STRESS_BOTH="$*" stress 60 -t rc -q 1 -w 4 -n 1 && { echo "connected"; return 1; }
	log_since
	log_since | grep -q "path MTU 4096 needs packets of $bytes bytes, the route to .* takes" && [ "$(total sent_pkts)" = "$sent" ]
}

# ---- IPsec ----

# One direction of ESP in transport mode for UDP port 4791, at both ends.
esp() { # FROM TO SPI SENDER RECEIVER
	local end
	for end in a b; do
		$end ip xfrm state add src "$1" dst "$2" proto esp spi "$3" mode transport \
			aead 'rfc4106(gcm(aes))' 0x0123456789abcdef0123456789abcdef01234567 128 || return
	done
	"$4" ip xfrm policy add src "$1" dst "$2" proto udp dport 4791 dir out tmpl src "$1" dst "$2" proto esp mode transport &&
		"$5" ip xfrm policy add src "$1" dst "$2" proto udp dport 4791 dir in tmpl src "$1" dst "$2" proto esp mode transport
}
ipsec_up() {
	modprobe -q -a esp4 esp6 gcm aesni_intel seqiv echainiv
	a ip xfrm state count 2> /dev/null || { echo "the kernel has no IPsec"; return 4; }
	esp "$AIP" "$BIP" 0x1001 a b && esp "$BIP" "$AIP" 0x1002 b a && esp "$AIP6" "$BIP6" 0x1003 a b && esp "$BIP6" "$AIP6" 0x1004 b a
}
ipsec_down() {
	local end
	for end in a b; do $end ip xfrm policy flush; $end ip xfrm state flush; done
}
# A's packets in the clear: B's policy wants ESP.
in_the_clear() {
	local before
	a ip xfrm policy delete src "$AIP" dst "$BIP" proto udp dport 4791 dir out || return
	before=$(counter "$BDEV" rx_policy)
	times_out && [ "$(counter "$BDEV" rx_policy)" -gt "$before" ]
}

# ---- VRF ----

# The same addresses in both VRFs. The programs find each other by 10.7.0.x, outside of the VRFs.
vrf_up() {
	local t n table=10
	modprobe -q vrf
	for t in red blue; do
		ip link add ${t}1 netns h1 mtu 4200 type veth peer name ${t}2 netns h2 mtu 4200 || return
		table=$((table + 1))
		for n in 1 2; do
			on h$n ip link add v$t type vrf table $table || { echo "the kernel has no VRFs"; return 4; }
			on h$n ip link set v$t up && on h$n ip link set $t$n master v$t && on h$n ip link set $t$n up &&
				on h$n ip addr add 10.8.0.$n/24 dev $t$n && on h$n ip -6 addr add fd08::$n/64 dev $t$n nodad &&
				on h$n ip addr add 10.8.$table.$n/24 dev $t$n && link_add roan_$t$n $t$n h$n &&
				wait_for 60 gid_index roan_$t$n 10.8.0.$n h$n && wait_for 60 gid_index roan_$t$n 10.8.$table.$n h$n || return
		done
		wait_for 60 on h1 ping -c1 -W1 -I v$t 10.8.0.2 && wait_for 60 on h1 ping -c1 -W1 -I v$t fd08::2 || return
	done
}
vrf_down() {
	local t
	for t in red blue; do
		rdma link del roan_${t}1; rdma link del roan_${t}2
		on h1 ip link del ${t}1; on h1 ip link del v$t; on h2 ip link del v$t
	done
}
rcvd() { echo $(($(counter "roan_$1"1 rcvd_pkts) + $(counter "roan_$1"2 rcvd_pkts))); } # TENANT
# shellcheck disable=SC2034 # carry reads them
in_vrf() { # TENANT OTHER [OPTIONS OF BOTH ENDS]: data of one tenant; the other's devices receive nothing
	local before other=$2
	before=$(rcvd "$other")
	ADEV=roan_${1}1 BDEV=roan_${1}2 carry "${@:3}" && [ "$(rcvd "$other")" = "$before" ]
}
tenant() { # TENANT PORT
	local common="-T 100 -p $2"
	OUT_A=/tmp/a.$1 OUT_B=/tmp/b.$1 both 100 "$2" "$PROGRAMS/verbs_stress -d roan_${1}1 $common" \
		"$PROGRAMS/verbs_stress -d roan_${1}2 -c $AIP $common -t rc -q 2 -w 16 -n 4 -l 40000 -B"
}
both_tenants() {
	local rc=0 pid
	tenant blue 18701 > /tmp/blue.log 2>&1 &
	pid=$!
	tenant red 18702 || rc=1
	wait $pid || { cat /tmp/blue.log; rc=1; }
	return $rc
}
# The client has to name its own address (rping -I): the RDMA core finds the VRF by the interface that has the address.
cm_in_vrf() { # TENANT OTHER SERVER CLIENT [SERVER, at the client]
	local mine other
	mine=$(rcvd "$1") other=$(rcvd "$2")
	both 100 7174 "rping -s -a $3 -C 10 -V -S 1000" "rping -c -I $4 -a ${5:-$3} -C 10 -V -S 1000" || return
	echo "received: $1 $(($(rcvd "$1") - mine)), $2 $(($(rcvd "$2") - other))"
	[ "$(rcvd "$1")" -ge $((mine + 40)) ] && [ "$(rcvd "$2")" = "$other" ]
}
link_local() { on "h${1: -1}" ip -6 -o addr show dev "$1" scope link -tentative | awk -F '[ /]+' '{ print $4 }'; } # NETDEV
cm_link_local() { # TENANT OTHER: of addresses that both may have, the interface says which is meant
	local server
	server=$(link_local "$1"1)
	cm_in_vrf "$1" "$2" "$server%${1}1" "$(link_local "$1"2)%${1}2" "$server%${1}2"
}
# Both ends of a tenant on one host: packets pass the VRF's device.
# shellcheck disable=SC2034 # carry and stress read them
within_vrf() {
	local B=("${A[@]}") ADEV=roan_blue1 BDEV=roan_blue1
	carry && carry -t ud -l 1000 -z
}
# An address of no VRF that is also one of a tenant's network does not take the tenant's packets. The rules are in the order
# that the kernel's documentation of VRFs asks for.
address_outside() {
	local rc f
	for f in -4 -6; do
		on h1 ip $f rule add pref 32765 lookup local && on h1 ip $f rule del pref 0 || return
	done
	on h1 ip addr add 10.8.0.2/32 dev lo && on h1 ip -6 addr add fd08::2/128 dev lo nodad || return
	in_vrf blue red && in_vrf red blue -6
	rc=$?
	on h1 ip addr del 10.8.0.2/32 dev lo; on h1 ip -6 addr del fd08::2/128 dev lo
	return $rc
}

# ---- routes ----

hop() { # HOST NETDEV MTU ADDRESS, twice: the two ends of a link
	ip link add "$2" netns "$1" mtu "$3" type veth peer name "$6" netns "$5" mtu "$7" && on "$1" ip addr add "$4/24" dev "$2" &&
		on "$5" ip addr add "$8/24" dev "$6" && on "$1" ip link set "$2" up && on "$5" ip link set "$6" up
}
routers() {
	local n
	for n in ra rb; do
		ip netns add $n && on $n sysctl -qw net.ipv4.ip_forward=1 || return
	done
	hop h1 x1 4200 10.11.1.1 ra y1 4200 10.11.1.9 && hop ra z1 1500 10.11.3.1 rb z2 1500 10.11.3.2 &&
		hop h2 x2 4200 10.11.2.2 rb y2 4200 10.11.2.9 && on h1 ip route add 10.11.2.0/24 via 10.11.1.9 &&
		on ra ip route add 10.11.2.0/24 via 10.11.3.2 && on rb ip route add 10.11.1.0/24 via 10.11.3.1 &&
		on h2 ip route add 10.11.1.0/24 via 10.11.2.9 && wait_for 60 on h1 ping -c1 -W1 10.11.2.2 &&
		link_add roan3 x1 h1 && link_add roan4 x2 h2 && wait_for 60 gid_index roan4 10.11.2.2
}
routers_down() { rdma link del roan3; rdma link del roan4; on h1 ip link del x1; on h2 ip link del x2; ip netns del ra; ip netns del rb; }
# shellcheck disable=SC2034 # the command reads them
routed() { local ADEV=roan3 BDEV=roan4; "$@"; } # COMMAND...
narrow_route() {
	local rc
	on h1 ip route change 10.11.2.0/24 via 10.11.1.9 mtu 1500 && refused_at_rtr 4160 && carry -m 1024
	rc=$?
	on h1 ip route change 10.11.2.0/24 via 10.11.1.9
	return $rc
}
reported_mtu() { on h2 ip route get 10.11.1.1 | grep -q 'mtu 1500'; }
logged_report() { # COMMAND...: it succeeds, and the log has what was reported
	log_mark
	"$@" && log_since && log_since | grep -q "path MTU 4096 needs packets of 41[68]0 bytes; by an ICMP report or router advertisement the way to .* takes [0-9]"
}

# ---- a smaller MTU that others announce ----

# forge_report ADDRESS PEER BYTES [FILE]: h2 sends ICMP to h1, as a router does that can forward no more to PEER; again and again, until FILE exists.
# Neither UDP nor echo has state to check it by.
forge_report() {
	on h2 env PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$HERE/../packets" "$PY" - "$@" << 'END'
import os, socket, struct, sys, time
from roce_packets import checksum, ip_header
own, peer, mtu = sys.argv[1], sys.argv[2], int(sys.argv[3])
if ":" in own:
    icmp = struct.pack(">BBHI", 2, 0, 0, mtu) + ip_header(6, own, peer, 4140, next_header=58) + bytes([128]) + bytes(7)
    raw = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
else:
    icmp = struct.pack(">BBHHH", 3, 4, 0, 0, mtu) + ip_header(4, own, peer, 4140) + struct.pack(">4H", 0xc000, 4791, 4140, 0)
    icmp = icmp[:2] + struct.pack(">H", checksum(icmp)) + icmp[4:]
    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
raw.sendto(icmp, (own, 0))
while sys.argv[4:] and not os.path.exists(sys.argv[4]):
    time.sleep(0.05)
    raw.sendto(icmp, (own, 0))
END
}
smaller() { on h1 ip route get "$1" | grep 'expires.*mtu'; }	# PEER: the route's MTU is a reported one
forged_first() { # OWN PEER [OPTIONS]
	local own=$1 peer=$2
	shift 2
	forge_report "$own" "$peer" 1280 && wait_for 60 smaller "$peer" && logged_report carry "$@"
}
forged_meanwhile() { # OWN PEER [OPTIONS]: again and again, as QPs send
	local own=$1 peer=$2 pid rc
	shift 2
	rm -f /tmp/enough
	forge_report "$own" "$peer" 1280 /tmp/enough &
	pid=$!
	wait_for 20 smaller "$peer" && carry -n 10 "$@"
	rc=$?
	touch /tmp/enough
	wait $pid && smaller "$peer" && return $rc
}
forget_reports() { on h1 ip route flush cache; on h1 ip -6 route flush cache; }

# What this host's administrator sets counts, also if a report says less: no packet leaves that is longer.
mtu_by_hand() { # OWN PEER BYTES [OPTIONS]
	local rc own=$1 peer=$2 bytes=$3
	shift 3
	on h1 ip route add "$peer" dev v1 mtu 1500 && forge_report "$own" "$peer" 1280 && wait_for 60 smaller "$peer" &&
		refused_at_rtr "$bytes" "$@" && carry -m 1024 "$@"
	rc=$?
	on h1 ip route del "$peer" dev v1
	return $rc
}

# advertise BYTES [SECONDS]: h2 sends a router advertisement with that MTU. It makes a default route for so long, or none.
advertise() {
	on h2 "$PY" - "$@" << 'END'
import socket, struct, sys
lifetime = int(sys.argv[2]) if sys.argv[2:] else 0
raw = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
raw.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)
raw.sendto(struct.pack(">BBHBBHII", 134, 0, 0, 0, 0, lifetime, 0, 0) + struct.pack(">BBHI", 5, 1, 0, int(sys.argv[1])),
           ("ff02::1", 0, 0, socket.if_nametoindex("v2")))
END
}
advertised() { # IPv6 packets to any host may have 1280 bytes, says a neighbour
	local rc
	advertise 1280 && wait_for 60 on h1 grep -qx 1280 /proc/sys/net/ipv6/conf/v1/mtu && logged_report carry -6
	rc=$?
	on h1 sh -c "echo 4200 > /proc/sys/net/ipv6/conf/v1/mtu"
	return $rc
}

# B has an address outside of the network. A reaches it by the route that the advertisement makes.
by_advertised_route() {
	on h1 ip -6 route show default | grep -q "proto ra" && on h1 ip route get fd99::1 | grep -q via
}
advertised_route() {
	local rc
	on h1 sysctl -q -w net.ipv6.conf.v1.accept_ra=2 && b ip addr add fd99::1/128 dev v2 nodad && b ip addr del $BIP6/64 dev v2 &&
		b ip route add $AIP6 dev v2 src fd99::1 && wait_for 60 gid_index "$BDEV" fd99::1 h2 && advertise 1280 1000 &&
		wait_for 60 by_advertised_route && logged_report carry -6
	rc=$?
	on h1 sh -c "echo 4200 > /proc/sys/net/ipv6/conf/v1/mtu; ip -6 route flush proto ra"
	b ip route del $AIP6 dev v2
	b ip addr add $BIP6/64 dev v2 nodad && b ip addr del fd99::1/128 dev v2 && wait_for 60 gid_index "$BDEV" $BIP6 h2
	return $rc
}

# The interface's own MTU is 1500 for a while, then 4200 again: packets are lost, but no route has a reported MTU then.
own_mtu() { # PEER [OPTIONS]
	local peer=$1 pid rc before rcvd
	shift
	before=$(total tx_dropped) rcvd=$(counter "$ADEV" rcvd_pkts)
	STRESS_BOTH="-k 20 $*" stress 200 -t rc -q 2 -w 16 -n 100 -l 40000 -B > /tmp/stress.log 2>&1 &
	pid=$!
	wait_for 60 has_received "$ADEV" $((rcvd + 50)) && on h1 ip link set v1 mtu 1500 && wait_for 30 dropped_more "$before"
	rc=$?
	smaller "$peer" && rc=1
	on h1 ip link set v1 mtu 4200
	wait $pid && return $rc
	cat /tmp/stress.log
	return 1
}
dropped_more() { [ "$(total tx_dropped)" -gt "$1" ]; } # NUMBER

# ---- routing by traffic class ----

# Packets of class 0x10 are routed to a gateway that does not exist, so only those of other classes arrive.
class_rules() {
	local f
	a ip neigh add 10.7.0.9 lladdr 02:00:00:00:00:09 dev v1 nud permanent &&
		a ip neigh add fd07::9 lladdr 02:00:00:00:00:09 dev v1 nud permanent &&
		a ip route add "$BIP" via 10.7.0.9 dev v1 table 100 && a ip route add "$BIP6" via fd07::9 dev v1 table 100 || return
	for f in -4 -6; do a ip $f rule add dsfield 0x10 lookup 100 || return; done
}
class_rules_down() {
	local f
	for f in -4 -6; do a ip $f rule del dsfield 0x10 lookup 100; a ip $f route flush table 100; done
	a ip neigh del 10.7.0.9 dev v1; a ip neigh del fd07::9 dev v1
}
# arrive PACKETS OWN-ADDRESS PEER/CLASS...: so many of two datagrams to each destination, sent in turn by one QP.
arrive() {
	local want=$1 before
	shift
	before=$(counter "$BDEV" rx_unknown_qp)
	a $PY "$HERE/../packets/datagrams.py" "$ADEV" "$1" 64 2 "${@:2}" || return
	wait_for 20 arrived $((before + want))
	sleep 0.2	# and no more
	echo "$(($(counter "$BDEV" rx_unknown_qp) - before)) arrived"
	[ $(($(counter "$BDEV" rx_unknown_qp) - before)) = "$want" ]
}
arrived() { [ "$(counter "$BDEV" rx_unknown_qp)" -ge "$1" ]; } # COUNT
device_class() { # COMMAND...: while 0x10 is the device's traffic class
	local rc param=/sys/class/infiniband/$ADEV/ports/1/cc_param/traffic_class
	echo 16 > "$param" && "$@"
	rc=$?
	echo 0 > "$param"
	return $rc
}

# ---- firewall, policing, connection tracking ----

moved() { [ "$(total rcvd_pkts)" -ge "$1" ]; } # PACKETS
moves() { wait_for 60 moved $(($(total rcvd_pkts) + 200)); }
# Data on QPs that are connected before the command starts. Both have to end as expected.
beside_data() { # COMMAND...
	local pid rc
	stress 100 -t rc -q 2 -w 16 -n 100 -l 40000 -B > /tmp/beside.log 2>&1 &
	pid=$!
	moves && OUT_A=/tmp/out_a.2 OUT_B=/tmp/out_b.2 "$@"
	rc=$?
	wait $pid || { cat /tmp/beside.log; rc=1; }
	return $rc
}
second_address() { b ip addr add 10.7.0.4/24 dev v2 && wait_for 60 gid_index "$BDEV" 10.7.0.4 h2; }
nft_rules() {
	{ command -v nft && a nft list tables; } > /dev/null || { echo "no nft, or not in this kernel"; return 4; }
	second_address && a nft "table inet t {
		counter dropped { }
		chain in {
			type filter hook input priority 0
			udp dport 4791 ip saddr $BIP accept
			udp dport 4791 counter name dropped drop
		}
	}"
}
nft_down() { a nft delete table inet t; b ip addr del 10.7.0.4/24 dev v2; }
dropped() { a nft list counter inet t dropped | awk '/packets/ { print $2 }'; }
# Packets from 10.7.0.4 are dropped: its QP gets a retry error. Data from the other address passes. Nothing else is counted.
by_source() {
	local wrong failed
	wrong=$(refused) failed=$(counter "$BDEV" retry_exceeded_err)
	beside_data times_out -x "$(gid_index "$BDEV" 10.7.0.4 h2)" || return
	wrong=$(($(refused) - wrong)) failed=$(($(counter "$BDEV" retry_exceeded_err) - failed))
	echo "dropped $(dropped), refused $wrong, of these failed work requests: $failed"
	[ "$(dropped)" -ge 8 ] && [ $failed -gt 0 ] && [ $wrong = $failed ]
}

# The rate is less than the QPs send: what is above is dropped and sent again. Single packets, as a train is longer than the burst.
policed() { # ingress|egress END NETDEV
	local resent drops
	modprobe -q -a sch_ingress act_police cls_matchall
	"$2" tc qdisc add dev "$3" clsact && "$2" tc filter add dev "$3" "$1" matchall action police rate 20mbit burst 16k mtu 8k conform-exceed drop/ok || return 4
	segments off
	resent=$(total resent_pkts)
	data -n 20
	local rc=$?
	segments on
	drops=$("$2" tc -s filter show dev "$3" "$1" | sed -n 's/.*dropped \([0-9]*\).*/\1/p')
	"$2" tc -s filter show dev "$3" "$1"
	"$2" tc qdisc del dev "$3" clsact
	echo "$drops dropped, $(($(total resent_pkts) - resent)) sent again"
	[ $rc = 0 ] && [ "$drops" -gt 0 ] && [ "$(total resent_pkts)" -gt "$resent" ]
}

# B tracks connections, but not those of TCP, by which the programs meet.
tracking() {
	local v
	command -v nft > /dev/null && modprobe -q nf_conntrack || { echo "no nft or no connection tracking"; return 4; }
	CT_MAX=$(cat /proc/sys/net/netfilter/nf_conntrack_max)
	b nft "table inet t {
		chain pre { type filter hook prerouting priority -300; meta l4proto tcp notrack; }
		chain out { type filter hook output priority -300; meta l4proto tcp notrack; }
		chain in { type filter hook input priority 0; ct state new counter; }
	}"
}
ct_max() { sysctl -qw net.netfilter.nf_conntrack_max="$1"; }
# The table is full with the flows that exist. They go on; a new one gets a retry error.
table_full() {
	log_mark
	ct_max 1 && moves && times_out
	local rc=$?
	ct_max "$CT_MAX"
	log_since | grep -q 'table full, dropping packet' && [ $rc = 0 ]
}
tracking_down() { b nft delete table inet t; }

# ---- another interface ----

# Networks with the addresses of the first one: VLANs 5 and 6 of v1 and v2, and a second veth pair, x1 and x2.
second_way() {
	local n v
	modprobe -q 8021q
	ip link add x1 netns h1 mtu 4200 type veth peer name x2 netns h2 mtu 4200 || return
	for n in 1 2; do
		for v in 5 6; do
			on h$n ip link add link v$n name v$n.$v type vlan id $v && on h$n ip link set v$n.$v up || return
		done
		on h$n ip addr add 10.5.0.$n/24 dev v$n.5 && on h$n ip link set x$n up || return
	done
	on h1 ip addr add 10.5.0.1/24 dev v1.6 && on h1 ip addr add 10.7.0.1/24 dev x1 && on h2 ip addr add 10.7.0.3/24 dev x2 &&
		link_add roan3 x1 h1 && wait_for 60 gid_index roan3 10.7.0.1 && wait_for 60 gid_index "$ADEV" 10.5.0.1 &&
		wait_for 60 gid_index "$BDEV" 10.5.0.2 && on h1 ping -c1 -W5 -I v1.5 10.5.0.2 && on h1 ping -c1 -W5 -I v1 10.7.0.2
}
second_way_down() {
	local n v
	rdma link del roan3
	on h1 ip link del x1
	for n in 1 2; do for v in 5 6; do on h$n ip link del v$n.$v; done; done
}
wrong_interface() { # CASES: separated by semicolons
	$PY -c 'import pyverbs.qp' 2> /dev/null || { ktap_skip "packets by another interface" "no pyverbs"; return; }
	python_runs wrong_interface 300 env PYTHONDONTWRITEBYTECODE=1 CASES="$1"
}

ktap_header
[ "$LINK_TYPE" = roan ] || { ktap_skip "IP layer" "needs roan's counters"; ktap_end; }
pair_up > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }

if group ipsec ipsec_up; then
	ktap_check "IPsec: data of many operations, nothing readable on the wire" encrypted v1 esp carry
	# ESP takes up to 37 bytes: 4166 of 4200 are left. A packet with 4096 bytes of data has 4160 bytes in IPv4, 4180 in IPv6.
	ktap_check "IPsec, IPv6: path MTU 4096 is refused at RTR and logged, as ESP leaves 4166 bytes" refused_at_rtr 4180 -6
	ktap_check "IPsec, IPv6: path MTU 2048: data of many operations" carry -6 -m 2048
	ktap_check "IPsec: packets in the clear are refused and counted, the sender gets a retry error" in_the_clear
	ipsec_down
fi
if group vrf vrf_up; then
	for v in "" -6; do
		ktap_check "VRF red${v:+, IPv6}: data of many operations, blue receives nothing" in_vrf red blue $v
		ktap_check "VRF blue${v:+, IPv6}: data of many operations, red receives nothing" in_vrf blue red $v
	done
	for v in "" -6; do
		ktap_check "VRF red${v:+, IPv6}: datagrams" in_vrf red blue $v -t ud -l 1000 -z
		ktap_check "VRF blue${v:+, IPv6}: datagrams" in_vrf blue red $v -t ud -l 1000 -z
	done
	ktap_check "VRFs: both tenants at once" both_tenants
	ktap_check "VRF red: rdma_cm, the client names its address" cm_in_vrf red blue 10.8.11.1 10.8.11.2
	ktap_check "VRF blue: rdma_cm, to a server that listens on all addresses" cm_in_vrf blue red 0.0.0.0 10.8.12.2 10.8.12.1
	ktap_check "VRF red: rdma_cm, link-local addresses" cm_link_local red blue
	ktap_check "VRF blue: rdma_cm, link-local addresses" cm_link_local blue red
	ktap_check "VRF: both ends on one host" within_vrf
	ktap_check "VRF: an address outside of the VRFs does not take a tenant's packets" address_outside
	wrong_interface VRF,roan_red1/red1,roan_blue1/blue1,roan_red2/red2,10.8.0.2,10.8.0.1,never
	vrf_down > /dev/null 2>&1
fi
if group mtu true; then
	for f in "IPv4 $AIP $BIP 4160" "IPv6 $AIP6 $BIP6 4180 -6"; do
		read -r f own peer bytes v <<< "$f"
		ktap_check "$f: the MTU is small for a while: requests are late, and the IP stack has no report of it" own_mtu "$peer" $v
		ktap_check "$f: a forged report of a smaller MTU: packets are not shorter, none is dropped" forged_first "$own" "$peer" $v
		forget_reports
		ktap_check "$f: forged reports while QPs send: none is dropped" forged_meanwhile "$own" "$peer" $v
		forget_reports
		ktap_check "$f: the route's own MTU counts all the same" mtu_by_hand "$own" "$peer" "$bytes" $v
		forget_reports
	done
	ktap_check "IPv6: a neighbour advertises a smaller MTU: none is dropped" advertised
	ktap_check "IPv6: the same, and a default route with it: none is dropped by that" advertised_route
fi
if group route routers; then
	ktap_check "two routers: data of many operations, path MTU 1024" routed carry -m 1024
	ktap_check "a route with mtu 1500: path MTU 4096 is refused at RTR and logged, 1024 carries data" routed narrow_route
	ktap_check "a router's link is narrower: the QP gets a retry error" routed times_out
	ktap_check "... and reports its MTU" wait_for 60 reported_mtu
	ktap_check "... which the log tells for the next QP with that path MTU" routed logged_report times_out
	ktap_check "... and one with path MTU 1024 carries data" routed carry -m 1024
	routers_down > /dev/null 2>&1
fi
if group class class_rules; then
	ktap_check "rules by traffic class: two address handles of one address take different routes" arrive 2 "$AIP" "$BIP/0" "$BIP/0x10"
	ktap_check "... IPv6" arrive 2 "$AIP6" "$BIP6/0" "$BIP6/0x10"
	ktap_check "... whichever is used first" arrive 4 "$AIP" "$BIP/0x10" "$BIP/0" "$BIP/0x20"
	ktap_check "... and ECN bits do not matter" arrive 0 "$AIP" "$BIP/0x11" "$BIP/0x12"
	ktap_check "... and the device's class counts for a handle without one" device_class arrive 2 "$AIP" "$BIP/0x20" "$BIP/0"
	ktap_check "... connected QPs of another class carry data" carry
	class_rules_down > /dev/null 2>&1
fi
if group firewall nft_rules; then
	ktap_check "nftables accept and drop port 4791 by source" by_source
	nft_down > /dev/null 2>&1
fi
if has police; then
	ktap_check "policed on its way in to 20 Mb/s: what is dropped is sent again, data is right" policed ingress b v2
	ktap_check "policed on its way out to 20 Mb/s: the same" policed egress a v1
fi
if group conntrack tracking; then
	ktap_check "connection tracking: data of many operations" carry
	ktap_check "its table is full: flows that exist go on, a new one gets a retry error" beside_data table_full
	ktap_check "the table has space again: data of many operations" carry
	tracking_down > /dev/null 2>&1
fi
if group interface second_way; then
	wrong_interface "another VLAN,$ADEV/v1.5,$ADEV/v1.6,$BDEV/v2.5,10.5.0.2,10.5.0.1,-;another interface,$ADEV/v1,roan3/x1,$BDEV/v2,$BIP,$AIP,-"
	second_way_down > /dev/null 2>&1
fi
ktap_end
