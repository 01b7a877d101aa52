#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# verbs_stress over every kind of netdev, with and without loss and corruption. Counters show whether packets were sent
# and received in trains (GSO skbs) or one by one. QUICK=1: without loss. ONLY=KIND,KIND: these kinds only.
#
#	h1: pa on u1 [on w1] ==== w2 [below u2] with pb :h2	u: w itself, or a VLAN, bond, bridge, VXLAN, macvlan ... on it
#	w1 and w2 are a veth, or two taps with a program between them
#	the last path: rxe on w1 in the first namespace ==== w2, pb :h2
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../../vm/lib.sh"
. "$HERE/../../verbs/pair.sh"
N=${N:-2}
TAPS=	# the program between the taps
# shellcheck disable=SC2034 # pair.sh reads them
ADEV=pa BDEV=pb AIP=10.9.0.1 BIP=10.9.0.2

# Runs a command at an end: in h1 or h2; with rxe the first end is the initial namespace.
end() { # 1|2 COMMAND...
	local n=$1
	shift
	if [ "$n" = 1 ]; then a "$@"; else b "$@"; fi
}

plain() { [ "$1" = plain ] || [ "$1" = tap ]; }	# KIND: the RDMA device is on w itself
wire() { # KIND MTU
	[ "$1" = tap ] || { ip link add w1 mtu "$2" type veth peer name w2 mtu "$2"; return; }
	python3 "$HERE/tap_wire.py" w1 w2 > /tmp/taps.log 2>&1 &
	TAPS=$!
	wait_for 60 ip link show w2 && ip link set w1 mtu "$2" && ip link set w2 mtu "$2" || { cat /tmp/taps.log; return 1; }
}

MACSEC_KEY=0123456789abcdef0123456789abcde	# of each end, with its number behind

tunnel() { # KIND N: uN over the addresses 10.9.1.x of w1 and w2
	local n=$2 own=10.9.1.$2 peer=10.9.1.$((3 - $2))
	end "$n" ip addr add "$own/24" dev "w$n" && end "$n" ip link set "w$n" up || return
	case $1 in
	vxlan) end "$n" ip link add "u$n" type vxlan id 9 remote "$peer" local "$own" dstport 4789 dev "w$n" ;;
	geneve) end "$n" ip link add "u$n" mtu 4100 type geneve id 9 remote "$peer" ;;
	gretap) end "$n" ip link add "u$n" type gretap local "$own" remote "$peer" dev "w$n" ;;
	esac
}

tagged() { # N: what is wN becomes xN, and wN a VLAN of it
	end "$1" ip link set "w$1" down && end "$1" ip link set "w$1" name "x$1" && end "$1" ip link set "x$1" up &&
		end "$1" ip link add link "x$1" name "w$1" type vlan id 9
}

# Creates the upper device of end N on wN; prints the netdev for the RDMA device.
upper() { # KIND N
	local n=$2
	! plain "$1" || { echo "w$n"; return; }
	case $1 in
	vlan) end "$n" ip link add link "w$n" name "u$n" type vlan id 9 ;;
	macvlan) # wN in the same namespace must not answer ARP for uN: with several CPUs its answer may be the one that is kept
		end "$n" ip link add "u$n" link "w$n" type macvlan && end "$n" sysctl -qw "net.ipv4.conf.w$n.arp_ignore=1" ;;
	ipvlan) end "$n" ip link add "u$n" link "w$n" type ipvlan mode l2 ;;
	bridge) end "$n" ip link add "u$n" type bridge && end "$n" ip link set "w$n" master "u$n" ;;
	bond)
		end "$n" ip link add "u$n" type bond mode active-backup miimon 100 && end "$n" ip link set "w$n" down &&
			end "$n" ip link set "w$n" master "u$n" ;;
	team)
		end "$n" ip link add "u$n" type team && end "$n" teamnl "u$n" setoption mode roundrobin &&
			end "$n" ip link set "w$n" down && end "$n" ip link set "w$n" master "u$n" ;;
	vxlan | geneve | gretap) tunnel "$1" "$n" ;;
	macsec)
		end "$n" ip link set "w$n" address "02:00:00:00:09:0$n" && end "$n" ip link add link "w$n" name "u$n" type macsec encrypt on &&
			end "$n" ip macsec add "u$n" tx sa 0 pn 1 on key "0$n" "$MACSEC_KEY$n" &&
			end "$n" ip macsec add "u$n" rx port 1 address "02:00:00:00:09:0$((3 - n))" &&
			end "$n" ip macsec add "u$n" rx port 1 address "02:00:00:00:09:0$((3 - n))" sa 0 pn 1 on key "0$((3 - n))" "$MACSEC_KEY$((3 - n))" ;;
	esac > /dev/null || return
	end "$n" ip link set "w$n" up && end "$n" ip link set "u$n" up || return
	if [ "$1" = vlan ]; then echo "w$n"; else echo "u$n"; fi
}

path_up() { # KIND MTU; TAGGED set: wN is a VLAN
	local n on dev=(- pa pb)
	wire "$1" "$2" || return
	for n in 1 2; do
		[ "${A[*]}" = env ] && [ $n = 1 ] || ip link set w$n netns h$n || return
		[ -z "${TAGGED:-}" ] || tagged $n || return
		end $n ip link set w$n up || return
	done
	for n in 1 2; do
		on=$(upper "$1" $n) || return
		ADDRESS=u$n; ! plain "$1" || ADDRESS=w$n
		end $n ip addr add "10.9.0.$n/24" dev $ADDRESS || return
		[ "$2" -lt 1280 ] || end $n ip addr add "fd09::$n/64" dev $ADDRESS nodad || return	# IPv6 minimum
		if [ "${A[*]}" = env ] && [ $n = 1 ]; then
			LINK_TYPE=rxe link_add pa w1 || return
		else
			link_add "${dev[n]}" "$on" h$n || return
		fi
	done
	wait_for 60 a ping -c1 -W1 $BIP && wait_for 60 gid_index pb $BIP h2
}
path_down() {
	local n
	rdma link del pa; rdma link del pb
	for n in 1 2; do end $n ip link del u$n; done
	a ip link del w1; a ip link del x1
	[ -z "$TAPS" ] || { kill "$TAPS"; wait "$TAPS"; TAPS=; }
} > /dev/null 2>&1

bad_wire() {
	local n
	for n in 1 2; do
		end $n tc qdisc replace dev w$n root netem loss 1% corrupt 1% limit 10000 || return
	done
}

lossy() { bad_wire && carry any any "$@"; } # OPTIONS...

sum() { local d s=0; for d in "${DEVS[@]}"; do s=$((s + $(counter "$d" "$1"))); done; echo $s; }
counts() { echo "$(sum sent_pkts) $(sum sent_skbs) $(sum rcvd_pkts) $(sum rcvd_skbs)"; }

# carry SENT RECEIVED OPTIONS...: stress with options for both ends. SENT and RECEIVED are "trains", "single", "any";
# RECEIVED may be "whole": as many skbs as were sent
carry() {
	local sent=$1 rcvd=$2 before after
	shift 2
	before=$(counts)
	STRESS_BOTH="$*" stress 300 -t rc -q 2 -w 32 -n "$N" -l 40000 -B || return
	after=$(counts)
	# shellcheck disable=SC2086 # numbers
	set -- $before $after
	echo "sent $(($5 - $1)) packets in $(($6 - $2)) skbs, received $(($7 - $3)) in $(($8 - $4))"
	shaped "$sent" $(($5 - $1)) $(($6 - $2)) && shaped "$rcvd" $(($7 - $3)) $(($8 - $4)) $(($6 - $2))
}
shaped() { # WHICH PACKETS SKBS [SENT-SKBS]: were PACKETS in SKBS as WHICH says?
	[ "$2" -gt 0 ] || return
	case $1 in
	trains) [ $((4 * $2)) -ge $((5 * $3)) ] ;;	# ACKs and small messages are single packets
	single) [ "$2" = "$3" ] ;;
	whole) [ "$3" = "$4" ] ;;
	esac
}

ipvlan_guids() { # two interfaces with one MAC address
	local i sys=/sys/class/infiniband
	a ip link add w3 type dummy || return
	for i in 1 2; do
		a ip link add "iv$i" link w3 type ipvlan mode l2 && a ip link set "iv$i" up && link_add "p$i" "iv$i" h1 || return
	done
	grep . $sys/p[12]/node_guid $sys/p[12]/sys_image_guid
	! cmp $sys/p1/node_guid $sys/p2/node_guid && cmp $sys/p1/sys_image_guid $sys/p2/sys_image_guid || return
	rdma link del p1 && rdma link del p2 && a ip link del w3
}

same_mac_guids() { # NVMe, iSER and rtrs take devices with one node GUID for one device
	local i sys=/sys/class/infiniband
	for i in 1 2 3; do
		a ip link add "d$i" address 02:00:00:00:00:77 type dummy && a ip link set "d$i" up && link_add "p$i" "d$i" h1 || return
	done
	grep . $sys/p[123]/node_guid
	[ "$(sort -u $sys/p[123]/node_guid | wc -l)" = 3 ] || return
	for i in 1 2 3; do
		rdma link del "p$i" && a ip link del "d$i" || return
	done
}

# The server's CM looks for the GID of the request's destination, and for its VLAN: of the GID's interface or below it.
connect() {
	command -v rping > /dev/null || return 4
	wait_for 60 gid_index "$ADEV" $AIP "${A[-1]}" && both 200 7174 "rping -s -a $AIP -C 10 -V" "rping -c -a $AIP -C 10 -V"
}
# shellcheck disable=SC2034 # both() reads it
connect_to_itself() { local B=("${A[@]}"); connect; }
on_path() { # NAME KIND COMMAND
	[[ -z ${ONLY:-} || ,$ONLY, == *,$2,* ]] || return 0
	if path_up "$2" 4200 > /tmp/setup.log 2>&1; then
		ktap_check "$1" "$3"
	else
		sed 's/^/# /' /tmp/setup.log
		ktap_fail "$1: set-up"
	fi
	path_down
}

# path NAME KIND MTU SENT RECEIVED "ETHTOOL WORDS" [STRESS OPTIONS]: sets up, tests without and with loss, removes
path() {
	local name=$1 sent=$4 rcvd=$5 n
	[[ -z ${ONLY:-} || ,$ONLY, == *,$2,* ]] || return 0
	if ! path_up "$2" "$3" > /tmp/setup.log 2>&1; then
		sed 's/^/# /' /tmp/setup.log
		ktap_fail "$name: set-up"
		path_down
		return
	fi
	for n in 1 2; do
		# shellcheck disable=SC2086 # words
		[ -z "$6" ] || end $n ethtool -K w$n $6 > /dev/null 2>&1 || { ktap_skip "$name" "ethtool -K $6"; path_down; return; }
	done
	ktap_check "$name" carry "$sent" "$rcvd" "${@:7}"
	[ -n "${QUICK:-}" ] || ktap_check "$name, lossy" lossy "${@:7}"
	path_down
}

# Each packet marked on the way must be counted as one, also in a train. Every packet but CNPs is ECT(0), so it is marked.
# CNPs are dropped, so nothing slows down.
marked() {
	local n before ce
	for n in 1 2; do
		end $n tc qdisc add dev w$n root handle 1: prio bands 4 || return 4
		end $n tc qdisc add dev w$n parent 1:4 handle 4: netem loss 100% ecn || return 4
		end $n tc filter add dev w$n parent 1: protocol ip prio 1 u32 match ip dport 4791 0xffff flowid 1:4 || return 4
	done
	before=$(sum rcvd_pkts) ce=$(sum rcvd_ce_pkts)
	carry any trains || return	# sent skbs are not checked: CNPs among them are single
	echo "$(($(sum rcvd_ce_pkts) - ce)) marks in $(($(sum rcvd_pkts) - before)) packets"
	[ $(($(sum rcvd_ce_pkts) - ce)) = $(($(sum rcvd_pkts) - before)) ]
}

# Three pairs of programs at once, each with its own path MTU and traffic class, several QPs in each direction.
unmixed() {
	local op mtu class port=19000 pids=() rc=0 pid capture
	rm -f /tmp/trains
	"${A[@]}" python3 "$HERE/../packets/trains.py" w1 /tmp/trains 4096:32 1024:104 256:0 > /tmp/trains.log 2>&1 &
	capture=$!
	wait_for 60 test -e /tmp/trains
	while read -r op mtu class; do
		port=$((port + 1))
		OUT_A=/tmp/out_a.$port OUT_B=/tmp/out_b.$port both 200 $port \
			"ib_${op}_bw -F -p $port -d $ADEV -m $mtu --tclass=$class -q 3 -s 30000 -n 100" \
			"ib_${op}_bw -F -p $port -d $BDEV -m $mtu --tclass=$class -q 3 -s 30000 -n 100 $AIP" > /tmp/both.$port 2>&1 &
		pids+=($!)
	done <<-END
		write 4096 32
		read 1024 104
		write 256 0
	END
	for pid in "${pids[@]}"; do
		wait "$pid" || rc=1
	done
	[ $rc = 0 ] || cat /tmp/both.*
	kill $capture
	wait $capture || rc=1
	cat /tmp/trains.log
	return $rc
}

# The same with trains that were segmented on the way and aggregated by GRO.
marked_gro() {
	local n
	for n in 1 2; do
		end $n ethtool -K w$n gso off tso off tx-udp-segmentation off gro on > /dev/null || return
	done
	marked
}

on_veth() { # NAME COMMAND
	if path_up plain 4200 > /tmp/setup.log 2>&1; then
		ktap_check "$1" "$2"
	else
		cat /tmp/setup.log; ktap_fail "$1: set-up"
	fi
	path_down
}

ktap_header
{ load_modules && ip netns add h1 && ip netns add h2 && ip -n h1 link set lo up && ip -n h2 link set lo up; } > /tmp/setup.log 2>&1 ||
	{ cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
modprobe -q -a sch_netem sch_prio cls_u32 8021q bridge macvlan vxlan tun
modprobe -q bonding max_bonds=0
DEVS=(pa pb)
path "veth" plain 4200 trains whole ""
path "GSO off" plain 4200 trains single "gso off tx-udp-segmentation off gro off"
path "GSO off, GRO on" plain 4200 trains trains "gso off tso off tx-udp-segmentation off gro on"
path "checksum offload off" plain 4200 single single "tx off"
path "MTU 1500" plain 1500 trains whole ""
path "MTU 9000" plain 9000 trains whole ""
QUICK=1 path "MTU 600" plain 600 trains whole ""
path "IPv6" plain 4200 trains whole "" -6
path "IPv6, GSO off" plain 4200 trains single "gso off tx-udp-segmentation off" -6
path "VLAN" vlan 4200 trains whole ""
path "bond" bond 4200 trains whole ""
path "bridge" bridge 4200 trains whole ""
path "macvlan" macvlan 4200 trains whole ""
on_path "VLAN: rdma_cm" vlan connect
on_path "VLAN: rdma_cm, both ends on one host" vlan connect_to_itself
for KIND in macvlan bridge bond; do
	TAGGED=1 on_path "$KIND on a VLAN: rdma_cm" $KIND connect
done
# A tunnel's end has GRO, which also aggregates packets that were sent one by one.
path "VXLAN" vxlan 4200 trains trains ""
ktap_check "three interfaces with one MAC address have different node GUIDs" same_mac_guids
if modprobe -q ipvlan; then
	path "ipvlan" ipvlan 4200 trains whole ""
	ktap_check "two ipvlans with one MAC address: only the node GUIDs differ" ipvlan_guids
else
	ktap_skip "ipvlan" "no module"
fi
if modprobe -q team && modprobe -q team_mode_roundrobin && command -v teamnl > /dev/null; then
	path "team" team 4200 trains whole ""
else
	ktap_skip "team" "no module, or no teamnl"
fi
if modprobe -q geneve; then path "GENEVE" geneve 4200 trains trains ""; else ktap_skip "GENEVE" "no module"; fi
if modprobe -q ip_gre; then path "gretap" gretap 4200 trains trains ""; else ktap_skip "gretap" "no module"; fi
# It has no checksum offload.
if modprobe -q macsec; then path "MACsec" macsec 4200 single single ""; else ktap_skip "MACsec" "no module"; fi
[ -z "${ONLY:-}" ] || ktap_end
# A program forwards the packets. So the test programs sleep instead of polling, and have a longer ACK timeout.
QUICK=1 path "taps with virtio-net headers" tap 4200 trains whole "" -e -k 18
on_veth "every marked packet of a train is counted" marked
on_veth "every marked packet of a GRO skb is counted" marked_gro
on_veth "trains never mix queue pairs, traffic classes or path MTUs" unmixed
if modprobe -q rdma_rxe; then
	A=(env) DEVS=(pb)
	# Without loss only: rxe can stop responding for good if an RNR NAK arrives during a READ.
	QUICK=1 path "a peer that is rxe" plain 4200 trains any "" -x
else
	ktap_skip "a peer that is rxe" "no rdma_rxe"
fi
ktap_end
