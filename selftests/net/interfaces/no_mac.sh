#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Devices on interfaces without link-layer addresses: their GIDs, every way to connect over them, and what becomes of
# them when the interface changes. ONLY=KIND,KIND: these kinds only. Kinds whose module is missing are skipped. QUICK=1: one
# way of each to connect, one change.
#
#	lo:	both ends on pa, in h1
#	others:	h1: pa on u1 ==== u2 with pb :h2	u: tunnels over a veth w1 == w2, or two tuns with a program between
#	l3, l3s: ipvlans in these modes on w1 and w2, which are in other namespaces (m1, m2), as a container's are. An ipvlan
#		has a MAC address, but uses none here
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../../vm/lib.sh"
. "$HERE/../../verbs/pair.sh"
. "$HERE/../packets/capture.sh"
PROGRAM= # that keeps the interfaces: between the tuns, or pppd

has() { [[ -z ${ONLY:-} || ,$ONLY, == *,$1,* ]]; } # KIND

# The underlay of a tunnel.
veth_up() { # NAMESPACE NAMESPACE
	local n h=(- "$1" "$2")
	ip link add w1 netns "$1" type veth peer name w2 netns "$2" || return
	for n in 1 2; do
		on "${h[n]}" ip addr add "10.9.1.$n/24" dev w$n && on "${h[n]}" ip -6 addr add "fd09:1::$n/64" dev w$n nodad &&
			on "${h[n]}" ip link set w$n up || return
	done
	wait_for 60 on "$1" ping -c1 -W1 10.9.1.2
}

# The addresses behind the other ipvlan are reached by its host. Packets of mode l3s pass the hooks of the lower
# interface's namespace, where the host has a device too, made before (pm1) or after (pm2) the ipvlan's own hook.
ipvlan_up() { # MODE
	local n o
	ip netns add m1 && ip netns add m2 && veth_up m1 m2 && link_add pm1 w1 m1 || return
	for n in 1 2; do
		o=$((3 - n))
		on m$n ip link add u$n link w$n type ipvlan mode "$1" && on m$n ip link set u$n netns h$n &&
			on m$n ip route add 10.9.0.$o via 10.9.1.$o && on m$n ip -6 route add fd09::$o via fd09:1::$o || return
	done
	link_add pm2 w2 m2
}
# The hosts' devices have taken no packet, and work.
# shellcheck disable=SC2034 # pair.sh reads them
hosts_below() {
	local n ADEV=pm1 BDEV=pm2 AIP=10.9.1.1 A=(ip netns exec m1) B=(ip netns exec m2)
	for n in 1 2; do
		[ "$(counter pm$n rcvd_pkts)$(counter pm$n rx_wrong_peer)$(counter pm$n rx_no_device)" = 000 ] || return
	done
	bandwidth ib_write_bw -s 65536
}

# Adapters and rdma_rxe send UDP without a checksum, also over IPv6. So does roan on an interface without checksum offload.
# shellcheck disable=SC2034 # pair.sh reads them
no_checksums() {
	local ADEV=pm1 AIP=10.9.1.1 AIP6=fd09:1::1 A=(ip netns exec m1)
	on h2 ip route add $AIP dev u2 && on h2 ip -6 route add $AIP6 dev u2 && on m1 ethtool -K w1 tx off &&
		pingpong $AIP $BIP ibv_rc_pingpong && pingpong $AIP6 $BIP6 ibv_rc_pingpong && on m1 ethtool -K w1 tx on
}

# Both pppd attach to one PPPoE session, without discovery. They give the addresses: each has the other as its peer.
ppp_up() {
	local n mac=(- "$(on h1 cat /sys/class/net/w1/address)" "$(on h2 cat /sys/class/net/w2/address)")
	mkdir -p /etc/ppp && : > /etc/ppp/options || return
	for n in 1 2; do
		on h$n pppd plugin rp-pppoe.so rp_pppoe_sess "9:${mac[3 - n]}" w$n noauth nodetach noccp +ipv6 ifname u$n \
			"10.9.0.$n:10.9.0.$((3 - n))" > /tmp/ppp$n.log 2>&1 &
		PROGRAM="$PROGRAM $!"
	done
	for n in 1 2; do
		wait_for 60 ppp_address $n || { cat /tmp/ppp$n.log; return 1; }
	done
}

ppp_address() { on h"$1" ip addr show dev u"$1" | grep -q 10.9.0; } # N

# ESP tunnels between the ends of the veth. SELECT ties the policies to the interface.
ipsec_up() { # N FROM TO SELECT...
	local from=$2 to=$3 n=$1 any keys=(0x0123456789abcdef0123456789abcdef01234567 128)
	shift 3
	for any in 0.0.0.0/0 ::/0; do
		on "h$n" ip xfrm policy add src $any dst $any dir out "$@" tmpl src "$from" dst "$to" proto esp mode tunnel &&
			on "h$n" ip xfrm policy add src $any dst $any dir in "$@" tmpl src "$to" dst "$from" proto esp mode tunnel || return
	done
	[ "$1" = if_id ] || set --
	on "h$n" ip xfrm state add src "$from" dst "$to" proto esp spi 0x100$n mode tunnel flag af-unspec aead 'rfc4106(gcm(aes))' "${keys[@]}" "$@" &&
		on "h$n" ip xfrm state add src "$to" dst "$from" proto esp spi 0x100$((3 - n)) mode tunnel flag af-unspec \
			aead 'rfc4106(gcm(aes))' "${keys[@]}" "$@"
}

wg_peer() { # N
	on "h$1" wg set "u$1" listen-port 51820 private-key "/tmp/wg$1.key" peer "$(wg pubkey < "/tmp/wg$((3 - $1)).key")" \
		allowed-ips 0.0.0.0/0,::/0 endpoint "10.9.1.$((3 - $1)):51820"
}

link_up() { # KIND
	local n from to from6 to6
	case $1 in
	lo) return ;;
	tun)
		python3 "$HERE/tap_wire.py" --tun u1 u2 > /tmp/tuns.log 2>&1 &
		PROGRAM=$!
		wait_for 60 ip link show u2 || { cat /tmp/tuns.log; return 1; }
		ip link set u1 netns h1 && ip link set u2 netns h2
		return ;;
	wg)
		(umask 077; wg genkey > /tmp/wg1.key && wg genkey > /tmp/wg2.key) || return ;;
	esac
	case $1 in
	l3 | l3s) ipvlan_up "$1"; return ;;
	esac
	veth_up h1 h2 || return
	[ "$1" != ppp ] || { ppp_up; return; }
	for n in 1 2; do
		from=10.9.1.$n to=10.9.1.$((3 - n)) from6=fd09:1::$n to6=fd09:1::$((3 - n))
		case $1 in
		ipip) on h$n ip link add u$n type ipip local $from remote $to dev w$n ;;
		gre) on h$n ip link add u$n type gre local $from remote $to dev w$n ;;
		sit) on h$n ip link add u$n type sit mode any local $from remote $to dev w$n ;;
		wg) on h$n ip link add u$n type wireguard && wg_peer $n ;;
		ip6tnl) on h$n ip link add u$n type ip6tnl mode any local $from6 remote $to6 dev w$n ;;
		ip6gre) on h$n ip link add u$n type ip6gre local $from6 remote $to6 dev w$n ;;
		vti) on h$n ip link add u$n type vti local $from remote $to key 7 && ipsec_up $n $from $to mark 7 ;;
		vti6) on h$n ip link add u$n type vti6 local $from6 remote $to6 key 7 && ipsec_up $n $from6 $to6 mark 7 ;;
		xfrm) on h$n ip link add u$n type xfrm dev w$n if_id 7 && ipsec_up $n $from $to if_id 7 ;;
		esac || return
	done
}

# Sets ADEV BDEV AIP BIP AIP6 BIP6, IFACE (of pa) and MTU (path MTU that the interface allows).
# shellcheck disable=SC2034 # pair.sh reads some
kind_up() { # KIND
	local n
	ADEV=pa BDEV=pb AIP=10.9.0.1 BIP=10.9.0.2 AIP6=fd09::1 BIP6=fd09::2 IFACE=u1 MTU=1024 V6=y
	A=(ip netns exec h1) B=(ip netns exec h2)
	ip netns add h1 && on h1 ip link set lo up || return
	if [ "$1" = lo ]; then
		BDEV=pa BIP=$AIP BIP6=$AIP6 IFACE=lo MTU=4096 B=("${A[@]}")
		on h1 ip addr add $AIP/32 dev lo && on h1 ip addr add $AIP6/128 dev lo && link_add pa lo h1
		return
	fi
	ip netns add h2 && on h2 ip link set lo up && link_up "$1" || return
	for n in 1 2; do
		[ "$1" = ppp ] || on h$n ip addr add "10.9.0.$n/24" dev u$n && on h$n ip link set u$n up || return
		on h$n ip -6 addr add "fd09::$n/64" dev u$n nodad 2> /dev/null || V6=
	done
	[ "$1" != ipip ] || V6=	# carries IPv4 only
	link_add pa u1 h1 && link_add pb u2 h2 && wait_for 60 on h1 ping -c1 -W1 $BIP && wait_for 30 gid_index pb $BIP h2
}
kind_down() {
	local n
	for n in pa pb pm1 pm2; do rdma link del $n; done
	# shellcheck disable=SC2086 # process ids
	[ -z "$PROGRAM" ] || { kill $PROGRAM; wait $PROGRAM; PROGRAM=; }
	for n in h1 h2 m1 m2; do ip netns del $n; done
	wait_for 60 gone pa; wait_for 60 gone pb
} > /dev/null 2>&1
gone() { ! rdma link show "$1/1"; }

gid() { gid_index "$1" "$2" "${A[-1]}"; }	# DEV ADDRESS
gid_b() { gid_index "$1" "$2" "${B[-1]}"; }
no_gid() { ! gid "$1" "$2"; }

# Two programs, with a long ACK timeout where the program allows, as a program may forward each packet.
pingpong() { # A-ADDRESS B-ADDRESS PROGRAM [OPTIONS]
	local from=$1 to=$2
	shift 2
	both 100 18515 "$* -d $ADEV -g $(gid $ADEV "$from") -e -n 100" "$* -d $BDEV -g $(gid_b $BDEV "$to") -e -n 100 $AIP"
}
bandwidth() { both 100 18600 "$* -F -d $ADEV -p 18600 -n 100 -u 18" "$* -F -d $BDEV -p 18600 -n 100 -u 18 $AIP"; }
bandwidth_cm() { cm_ordered; bandwidth "$ORDERED" ib_write_bw -R; }
ping_rdma() { both 100 7174 "rping -s -a $1 -C 20 -V -S 1000" "rping -c -a $1 -C 20 -V -S 1000"; }
# The sender makes trains (GSO skbs), also where the interface cannot segment them, but not if it takes no skbs without a
# checksum (vti, PPP).
trains() {
	local pkts skbs
	pkts=$(counter $ADEV sent_pkts) skbs=$(counter $ADEV sent_skbs)
	bandwidth ib_read_bw -s 65536 || return	# A sends the responses
	pkts=$(($(counter $ADEV sent_pkts) - pkts)) skbs=$(($(counter $ADEV sent_skbs) - skbs))
	echo "$pkts packets in $skbs skbs"
	if a ethtool -k $IFACE | grep -q '^tx-checksumming: on'; then [ $pkts -gt $((2 * skbs)) ]; else [ $pkts = $skbs ]; fi
}
data() { STRESS_BOTH="-e -k 18 $*" stress 200 -t rc -q 2 -w 16 -n 1 -l 40000 -B; }

mtu_from_interface() {
	local mtu
	mtu=$(a ibv_devinfo -d $ADEV | sed -n 's/.*active_mtu:[[:space:]]*\([0-9]*\).*/\1/p')
	echo "active_mtu $mtu"
	[ "$mtu" = $MTU ] && a ibv_devinfo -d $ADEV | grep -q 'state:.*PORT_ACTIVE'
}

# Two devices never have the same node GUID, and none has the one that a MAC of zeros would give.
guids() {
	local one two
	one=$(a cat /sys/class/infiniband/$ADEV/node_guid) two=$(b cat /sys/class/infiniband/$BDEV/node_guid)
	echo "$one $two"
	[ "$one" != 0000:0000:0000:0000 ] && [ "$one" != 0200:00ff:fe00:0000 ] && { [ $ADEV = $BDEV ] || [ "$one" != "$two" ]; }
}

gids_follow() {
	local n
	a ip addr add 10.9.7.1/32 dev $IFACE && wait_for 30 gid $ADEV 10.9.7.1 || return
	[ -z "$V6" ] || { a ip -6 addr add fd09:7::1/128 dev $IFACE nodad && wait_for 30 gid $ADEV fd09:7::1; } || return
	gid $ADEV $AIP || return	# the others stay
	if a_core_deletes; then
		a ip addr del 10.9.7.1/32 dev $IFACE && wait_for 30 no_gid $ADEV 10.9.7.1 || return
		[ -z "$V6" ] || { a ip -6 addr del fd09:7::1/128 dev $IFACE && wait_for 30 no_gid $ADEV fd09:7::1; } || return
	fi
	# Adding and removing again and again does not fill the table.
	for _ in 1 2 3 4 5 6; do
		a ip addr add 10.9.7.2/32 dev $IFACE && wait_for 30 gid $ADEV 10.9.7.2 || return
		a ip addr del 10.9.7.2/32 dev $IFACE || return
		! a_core_deletes || wait_for 30 no_gid $ADEV 10.9.7.2 || return
	done
	wait_for 30 gid $ADEV $AIP || return
	n=$(a ibv_devinfo -v -d $ADEV | grep -c 'GID\[')
	echo "$n entries"
	[ "$n" -le 24 ]
}
a_core_deletes() { grep -qw roce_del_all_netdev_gids /proc/kallsyms; }	# not in 6.1

# The address of a QP that runs goes and comes back, the interface goes down and up: traffic ends or goes on, no hang.
disturbed() { # COMMAND: run while traffic flows
	local pid rc since
	since=$(counter $ADEV rcvd_pkts)
	STRESS_BOTH="-e -k 14" stress 40 -t rc -q 2 -w 16 -n 40 -l 20000 > /tmp/disturbed.log 2>&1 &
	pid=$!
	wait_for 30 moving "$since" || { cat /tmp/disturbed.log; return 1; }
	"$@" > /tmp/disturb.log 2>&1
	rc=$?
	[ $rc = 0 ] || cat /tmp/disturb.log
	wait $pid	# either result: the QPs may have failed
	return $rc
}
moving() { [ "$(counter $ADEV rcvd_pkts)" -gt $(($1 + 200)) ]; } # SINCE
address_away() {
	a ip addr del $AIP dev $IFACE 2> /dev/null || a ip addr del $AIP/24 dev $IFACE || return
	! a_core_deletes || wait_for 30 no_gid $ADEV $AIP || return
	a ip addr add $AIP/24 dev $IFACE && wait_for 30 gid $ADEV $AIP
}
down_up() { a ip link set $IFACE down && a ip link set $IFACE up && sleep 1; }
other_mtu() { # a sit tunnel has at least 1280
	a ip link set $IFACE mtu 700 || a ip link set $IFACE mtu 1280 || return
	sleep 0.5
	a ip link set $IFACE mtu 1400
}
works_again() {
	[ -z "$V6" ] || a ip -6 addr show dev $IFACE | grep -q $AIP6 || a ip -6 addr add $AIP6/64 dev $IFACE nodad
	wait_for 30 gid $ADEV $AIP && wait_for 60 a ping -c1 -W1 $BIP && bandwidth ib_write_bw -s 4096
}
interface_deleted() { [ $IFACE = lo ] || a ip link del $IFACE && wait_for 60 gone pa; }
interface_moved() {
	a ip link set $IFACE netns 1 && wait_for 60 gone pa && [ -e /sys/class/net/$IFACE ] && ip link del $IFACE
}
namespace_deleted() { ip netns del h1 && wait_for 60 gone pa; }

mcast_pair() { # MGID [-6]
	rm -f $OUT_A	# the file may be of an earlier program
	"${A[@]}" timeout 200 "$PROGRAMS/mcast" -d $ADEV -m "$1" -r 2 -n 20 ${2:-} > $OUT_A 2>&1 &
	local pid=$!
	wait_for 60 grep -q joined $OUT_A || { cat $OUT_A; kill $pid; return 1; }
	b timeout 200 "$PROGRAMS/mcast" -d $BDEV -m "$1" -s -n 20 ${2:-} > $OUT_B 2>&1 || { cat $OUT_B; kill $pid; return 1; }
	wait $pid || { cat $OUT_A; return 1; }
}

mcast6_no_route() {
	local before
	before=$(counter pa tx_no_route)
	a timeout 200 "$PROGRAMS/mcast" -d pa -m ff05::77 -s -n 20 -6 || return
	[ "$(counter pa tx_no_route)" = $((before + 20)) ]
}

features() { # KIND
	local rc
	a timeout 600 "$PROGRAMS/features" -d $ADEV > /tmp/features.out 2>&1
	rc=$?
	grep -q '^not ok' /tmp/features.out || ktap_check "$1: verbs features" test $rc = 0
	! grep -q '^not ok' /tmp/features.out || ktap_relay /tmp/features.out features $rc "$1: "
}

more_ways() { # KIND
	local k=$1 t
	[ -z "$V6" ] || ktap_check "$k: ibv_rc_pingpong, IPv6" pingpong $AIP6 $BIP6 ibv_rc_pingpong
	ktap_check "$k: ibv_ud_pingpong" pingpong $AIP $BIP ibv_ud_pingpong -s 512
	ktap_check "$k: ibv_srq_pingpong" pingpong $AIP $BIP ibv_srq_pingpong
	for t in write read send; do
		ktap_check "$k: ib_${t}_bw" bandwidth ib_${t}_bw -s 100000
	done
	[ -z "$V6" ] || ktap_check "$k: rping, IPv6" ping_rdma $AIP6
	ktap_check "$k: ib_write_bw over rdma_cm" bandwidth_cm
	case $k in	# the packets of this program go by lo, whatever the interface
	lo | tun | ipip) features "$k" ;;
	esac
}

changes() { # KIND
	local k=$1
	ktap_check "$k: the address is removed under traffic" disturbed address_away
	ktap_check "$k: ... and works again" works_again
	ktap_check "$k: the interface goes down and up under traffic" disturbed down_up
	ktap_check "$k: ... and works again" works_again
}

kind() { # KIND
	local k=$1
	has "$k" || return 0
	kind_up "$k" > /tmp/setup.log 2>&1 || {
		if grep -q "nknown device type\|not supported\|wg: \|pppd: \|/dev/ppp device\|Operation not" /tmp/setup.log; then
			ktap_skip "$k" "$(tail -n 1 /tmp/setup.log)"
		else
			sed 's/^/# /' /tmp/setup.log
			ktap_fail "$k: set-up"
		fi
		kind_down
		return
	}
	ktap_check "$k: path MTU and port state come from the interface" mtu_from_interface
	ktap_check "$k: node GUIDs differ" guids
	ktap_check "$k: ibv_rc_pingpong" pingpong $AIP $BIP ibv_rc_pingpong
	ktap_check "$k: rping" ping_rdma $AIP
	ktap_check "$k: READ responses leave in trains if the interface takes them" trains
	ktap_check "$k: data of many operations" data
	[ -z "$V6" ] || ktap_check "$k: data of many operations, IPv6" data -6
	[ -n "${QUICK:-}" ] || more_ways "$k"
	case $k in
	l3 | l3s)
		ktap_check "$k: devices on the interfaces below get their own packets only" hosts_below
		ktap_check "$k: from a host that sends UDP without checksums" no_checksums ;;
	wg) ktap_check "$k: no readable RoCE packet on the wire" encrypted w1 "udp port 51820" bandwidth ib_write_bw -s 8192 ;;
	vti | vti6 | xfrm) ktap_check "$k: no readable RoCE packet on the wire" encrypted w1 esp bandwidth ib_write_bw -s 8192 ;;
	esac
	ktap_check "$k: GIDs follow the addresses" gids_follow
	[ -n "${QUICK:-}" ] || changes "$k"
	if [ "$k" = lo ]; then
		ktap_check "$k: the namespace is deleted" disturbed namespace_deleted
	else
		if [ -z "${QUICK:-}" ]; then
			ktap_check "$k: the MTU changes under traffic" disturbed other_mtu
			ktap_check "$k: ... and works again" works_again
		fi
		if [ "$k" = tun ]; then
			ktap_check "$k: the interface moves to another namespace under traffic" disturbed interface_moved
		else
			ktap_check "$k: the interface is deleted under traffic" disturbed interface_deleted
		fi
	fi
	kind_down
}

# ---- lo alone ----

# shellcheck disable=SC2034 # pair.sh reads them
loopback_addresses() {
	local AIP=127.0.0.1 BIP=127.0.0.1 AIP6=::1 BIP6=::1
	pingpong $AIP $AIP ibv_rc_pingpong && pingpong ::1 ::1 ibv_rc_pingpong && bandwidth ib_write_bw -s 65536 && bandwidth ib_read_bw -s 65536 &&
		data && data -6
}

# Each packet to an address of this host arrives by lo: the device on lo must not take those of the device on v1.
two_devices() {
	local before after
	on h1 ip link add v1 type veth peer name v2 && on h1 ip link set v2 up && on h1 ip link set v1 up &&
		on h1 ip addr add 10.9.3.1/24 dev v1 && on h1 ip addr add fd09:3::1/64 dev v1 nodad && link_add pv v1 h1 &&
		wait_for 30 gid pv 10.9.3.1 && no_gid pa 10.9.3.1 && no_gid pv 127.0.0.1 && no_gid pv $AIP || return
	before=$(counter pa rcvd_pkts)
	ADEV=pv BDEV=pv AIP=10.9.3.1 bandwidth ib_write_bw -s 65536 && ADEV=pv BDEV=pv AIP=10.9.3.1 ping_rdma 10.9.3.1 || return
	[ "$(counter pa rcvd_pkts)" = "$before" ] || { echo "the device on lo received packets of the veth's"; return 1; }
	before=$(counter pv rcvd_pkts)
	bandwidth ib_write_bw -s 65536 && ping_rdma $AIP && ping_rdma $AIP6 || return
	after=$(counter pv rcvd_pkts)
	[ "$after" = "$before" ] || { echo "the device on v1 received packets of lo's"; return 1; }
	[ "$(cat /sys/class/infiniband/pa/node_guid)" != "$(cat /sys/class/infiniband/pv/node_guid)" ] || return
	rdma link del pv && on h1 ip link del v1
}

unprivileged() {
	local before
	before=$(counter pa tx_unprivileged)
	a setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set -all python3 -c '
import errno, socket, sys
for family, address in (socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"):
    try:
        socket.socket(family, socket.SOCK_DGRAM).sendto(b"x" * 40, (address, 4791))
        sys.exit("sent to " + address)
    except PermissionError:
        pass' || return
	[ "$(counter pa tx_unprivileged)" = $((before + 2)) ]
}

# Pause frames are Ethernet frames.
no_pfc() {
	local f=/sys/class/infiniband/pa/ports/1/cc_param
	echo 0 > $f/pfc_prio_mask && echo 0 > $f/pfc_emit_mask || return
	! (echo 8 > $f/pfc_prio_mask) && ! (echo 8 > $f/pfc_emit_mask) && [ "$(cat $f/pfc_prio_mask $f/pfc_emit_mask)" = "0
0" ]
}

# A tun can be given any link type: CAN, as an example of one that carries no IP.
other_type() {
	modprobe -q tun
	ip tuntap add dev nt0 mode tun || return
	python3 -c '
import fcntl, struct, time
f = open("/dev/net/tun", "r+b", buffering=0)
fcntl.ioctl(f, 0x400454ca, struct.pack("16sH22x", b"nt0", 0x1001))
fcntl.ioctl(f, 0x400454cd, 280)' || return
	[ "$(cat /sys/class/net/nt0/type)" = 280 ] || return
	! rdma link add px type "$LINK_TYPE" netdev nt0 2> /tmp/refused || return
	cat /tmp/refused
	grep -qi "not supported" /tmp/refused && dmesg | tail -n 30 | grep -q "nt0 has link type 280: use" && ip link del nt0
}

# What the core refuses stays refused, with an error and not a hang: rdma_cm takes no 127.0.0.1.
cm_loopback() { ! a timeout 60 rping -c -a 127.0.0.1 -C 1 && a rdma link show pa/1; }

cm_group() {
	a python3 -c 'import pyverbs.cmid' || return 4
	a timeout 60 python3 -W ignore "$HERE/cm_group.py" $AIP 239.1.2.3
}

no_warning() { # queries of a port whose speed is unknown
	local before after
	before=$(dmesg | grep -c 'speed is unknown')
	a ibv_devinfo -d pa > /dev/null && a ibv_devinfo -d pa > /dev/null || return
	after=$(dmesg | grep -c 'speed is unknown')
	[ "$before" = "$after" ] && a rdma link show pa/1
}

ktap_header
{ load_modules; modprobe -q -a tun ipip sit ip_gre wireguard ipvlan pppoe ip6_tunnel ip6_gre ip_vti ip6_vti xfrm_interface; } > /tmp/setup.log 2>&1
for k in lo tun ipip gre sit wg l3 l3s ppp ip6tnl ip6gre vti vti6 xfrm; do kind $k; done
# A kind without its module is skipped above.
up_again() { # KIND
	kind_up "$1" > /tmp/setup.log 2>&1 && return
	sed 's/^/# /' /tmp/setup.log
	ktap_fail "$1: set-up, once more"
	kind_down
	return 1
}
if has lo && up_again lo; then
	ktap_check "lo: 127.0.0.1 and ::1" loopback_addresses
	ktap_check "lo: a device on a veth beside it: each gets its own packets" two_devices
	ktap_check "lo: a user without CAP_NET_RAW sends to port 4791: refused, counted" unprivileged
	ktap_check "lo: multicast" mcast_pair ::ffff:239.1.2.3
	ktap_check "lo: a member gets no copy of its own datagrams, if created so" a timeout 110 "$PROGRAMS/mcast" -d pa -m ::ffff:239.1.2.9 -o
	ktap_check "lo: IPv6 multicast has no route there: dropped, counted" mcast6_no_route
	ktap_check "lo: PFC is refused" no_pfc
	ktap_check "lo: rdma_cm refuses 127.0.0.1" cm_loopback
	ktap_check "lo: a multicast group of rdma_cm carries data, also without rdma_resolve_addr(), which Linux 6.12 refuses" cm_group
	ktap_check "lo: no warning for its unknown speed" no_warning
	kind_down
fi
if has tun && [ -c /dev/net/tun ] && up_again tun; then
	ktap_check "tun: multicast" mcast_pair ::ffff:239.1.2.3
	kind_down
fi
[ -n "${ONLY:-}" ] || ktap_check "an interface of another link type is refused, the log says what is possible" other_type
ktap_end
