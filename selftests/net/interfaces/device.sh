#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Creation, properties and removal of a device: supported netdevs, errnos, port state, names, MTU. Traffic on it is
# short; lifetime.sh has removal under load.
#
#	v1 =veth= v2 in namespace peer; 10.7.0.1/24, 10.7.0.2/24; cases make further netdevs (VLAN, bond ...)
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../../vm/lib.sh"
DEV=${LINK_TYPE}0

add() { rdma link add "$1" type "$LINK_TYPE" netdev "$2"; }
gone() { ! rdma link show "$1/1" > /dev/null 2>&1; }
state() { cat "/sys/class/infiniband/$1/ports/1/state"; }
state_is() { state "$1" | grep -q "$2"; }
active_mtu() { ibv_devinfo -d "$1" | awk '$1 == "active_mtu:" { print $2 }'; }
no_device() { gone "$1" && ! rdma dev show "$1" > /dev/null 2>&1; }

# refused ERRNO-TEXT COMMAND...: the command must fail with this text.
refused() {
	local want=$1 out
	shift
	out=$("$@" 2>&1) && { echo "succeeded: $*"; return 1; }
	echo "$out"
	grep -qi "$want" <<< "$out"
}

# Waits for the last line of the listener's output.
heard() { wait_for 60 last_heard "$1"; }
last_heard() { tail -n 1 /tmp/heard | grep -q "$1"; }

traffic() { "$PROGRAMS/lifetime" traffic -d "$1" -t 1 ${2:+-a "$2"} > /tmp/traffic 2>&1; cat /tmp/traffic; grep -q "end: time; then alive" /tmp/traffic; }

# on_netdev NAME ADDRESS: adds a device on that netdev, sends traffic, deletes both.
on_netdev() {
	local dev=$1 addr=$2
	ip addr add "$addr/24" dev "$dev" && ip link set "$dev" up || return
	add d_x "$dev" || return
	wait_for 60 state_is d_x ACTIVE || { state d_x; return 1; }
	wait_for 60 gid_index d_x "$addr" || return
	traffic d_x "$addr" || return
	rdma link del d_x && no_device d_x
}

on_vlan() { # refused, as the RDMA core keeps no GIDs for a device on a VLAN; the log names the alternative
	ip link add link v1 name v1.7 type vlan id 7 && ip addr add 10.8.7.1/24 dev v1.7 && ip link set v1.7 up || return
	refused "not supported" add d_x v1.7 && dmesg | tail -n 30 | grep "v1.7 is a VLAN: add the device to v1," || return
	add d_x v1 && wait_for 60 gid_index d_x 10.8.7.1 && traffic d_x 10.8.7.1 && rdma link del d_x
}
on_bridge() { ip link add br0 type bridge && ip link set v1 master br0 && on_netdev br0 10.8.1.1; }
serves() { # DEVICE ADDRESS: a server that binds to the address listens on the device, and a client reaches it
	local pid rc
	rping -s -a "$2" -C 3 > /tmp/rping 2>&1 &
	pid=$!
	wait_for 60 sh -c "rdma resource show cm_id | grep -q '$1.* LISTEN'" && rping -c -a "$2" -C 3 && wait $pid
	rc=$?
	kill $pid 2> /dev/null; cat /tmp/rping
	return $rc
}
# A bridge above the interface of a device gets a device too: its addresses are GIDs of that one only.
below_another() {
	add "$DEV" v1 && ip link add br0 type bridge && ip link set v1 master br0 && ip addr add 10.8.1.1/24 dev br0 &&
		ip link set br0 up && wait_for 60 gid_index "$DEV" 10.8.1.1 && add d_x br0 && wait_for 60 gid_index d_x 10.8.1.1 || return
	if grep -q ' roce_del_all_netdev_gids' /proc/kallsyms; then
		wait_for 60 no_gid 10.8.1.1 && serves d_x 10.8.1.1 || return
	fi
	ip addr add 10.8.1.2/24 dev br0 && wait_for 60 gid_index d_x 10.8.1.2 && ! gid_index "$DEV" 10.8.1.2 || return
	# A VLAN has no device: its addresses are those of the interface that it is on.
	ip link add link br0 name br0.7 type vlan id 7 && ip link set br0.7 up && ip addr add 10.8.7.1/24 dev br0.7 &&
		wait_for 60 gid_index d_x 10.8.7.1 && ! gid_index "$DEV" 10.8.7.1 && serves d_x 10.8.7.1 && ip link del br0.7 || return
	# Another interface above without a device: of both devices rdma_cm takes the one that was made first.
	ip link add mv1 link br0 type macvlan && ip link set mv1 up && ip addr add 10.8.9.1/24 dev mv1 &&
		wait_for 60 gid_index "$DEV" 10.8.9.1 && wait_for 60 gid_index d_x 10.8.9.1 && serves "$DEV" 10.8.9.1 && ip link del mv1 || return
	rdma link del d_x && wait_for 60 gid_index "$DEV" 10.8.1.1 && rdma link del "$DEV"
}
on_macvlan() { ip link set v1 nomaster; ip link add mv0 link v1 type macvlan && on_netdev mv0 10.8.2.1; }
on_dummy() { ip link add dm0 mtu 4200 type dummy && on_netdev dm0 10.8.3.1; }
on_bond() {
	modprobe -q bonding max_bonds=0
	ip link add b1 type veth peer name b2 && ip link set b2 up && ip link add bo0 type bond mode active-backup miimon 100 || return
	ip link set b1 down && ip link set b1 master bo0 && on_netdev bo0 10.8.4.1
}
# At a failover the core deletes all GIDs of the bond's device, and adds those of its addresses again.
default_gid() { ! grep -q '^0000:.*:0000$' /sys/class/infiniband/d_x/ports/1/gids/0; }
failed_over() {
	local n
	for n in 1 2; do
		ip link add "b$n" type veth peer name "c$n" && ip link set "c$n" up || return
	done
	ip link add bo0 type bond mode active-backup miimon 100 && ip link set b1 master bo0 && ip link set b2 master bo0 &&
		ip addr add 10.8.4.1/24 dev bo0 && ip link set bo0 up && add d_x bo0 && wait_for 60 gid_index d_x 10.8.4.1 || return
	default_gid && ip link set b1 down && wait_for 60 grep b2 /sys/class/net/bo0/bonding/active_slave && sleep 1 || return
	wait_for 60 default_gid && wait_for 60 gid_index d_x 10.8.4.1 && rdma link del d_x
}
# Of these the core's query logs a line each time: one that fails, and, in Linux 6.1, one that answers "unknown".
unknown_speed() {
	ip link add dm0 type dummy && ip link add mv0 link dm0 type macvlan && ip link add br0 type bridge &&
		ip link set dm0 up && ip link set mv0 up && ip link set br0 up && add d_x mv0 && add d_y br0 || return
	log_mark
	ibv_devinfo -d d_x && ibv_devinfo -d d_y && rdma link del d_x && rdma link del d_y && ! log_since | grep 'speed is unknown'
}
# A VRF is Ethernet above an interface without link-layer addresses: the core deletes its GIDs by address and type.
in_vrf() {
	ip link add vr0 type vrf table 10 && ip link set vr0 up && ip tuntap add dev tn0 mode tun && ip link set tn0 master vr0 up &&
		ip addr add 10.8.6.1/24 dev tn0 && add d_x tn0 && wait_for 60 gid_index d_x 10.8.6.1 || return
	ip addr add 10.8.8.1/24 dev vr0 && wait_for 60 grep -q ffff:0a08:0801 /sys/class/infiniband/d_x/ports/1/gids/* || return
	ip addr del 10.8.8.1/24 dev vr0 && wait_for 60 sh -c '! grep ffff:0a08:0801 /sys/class/infiniband/d_x/ports/1/gids/*' || return
	rdma link del d_x
}
on_tap() {
	modprobe -q tun
	ip tuntap add dev tp0 mode tap || return
	# A tap has a carrier only while a process has it open.
	python3 -c '
import fcntl, struct, time, os
f = os.open("/dev/net/tun", os.O_RDWR)
fcntl.ioctl(f, 0x400454ca, struct.pack("16sH14x", b"tp0", 0x1002))
time.sleep(600)' &
	local holder=$! rc
	on_netdev tp0 10.8.5.1
	rc=$?
	kill $holder
	return $rc
}

many() {
	local i
	for i in 1 2 3 4 5 6 7 8; do
		ip link add "m$i" type dummy && ip link set "m$i" up && add "d_$i" "m$i" || return
	done
	[ "$(rdma link | grep -c 'link d_')" = 8 ] || return
	for i in 1 2 3 4 5 6 7 8; do
		rdma link del "d_$i" && ip link del "m$i" || return
	done
	! rdma link | grep -q 'link d_'
}

again_and_again() {
	local i
	for i in $(seq 15); do
		add d_x v1 && rdma link del d_x || return
	done
}

racing() { # two concurrent adds for one netdev: one succeeds
	local i n
	for i in $(seq 10); do
		add d_a v1 > /dev/null 2>&1 & add d_b v1 > /dev/null 2>&1 & wait
		n=$(rdma link | grep -c 'link d_[ab]/')
		[ "$n" = 1 ] || { echo "$n devices"; return 1; }
		rdma link del d_a 2> /dev/null || rdma link del d_b || return
	done
}

port_taken() { # rdma_rxe keeps the UDP port until it is unloaded (newer kernels: until its last device is deleted)
	local rc=0
	modprobe -q rdma_rxe || return 4
	ip link add v1 type veth peer name v2 && ip link set v1 up
	rdma link add rxe0 type rxe netdev v1
	refused "in use" add d_x v1 || rc=1
	dmesg | tail -n 30 | grep "4791.*rxe" || rc=1
	rdma link del rxe0
	[ "${LAB:-}" = uml-debug ] || { rmmod rdma_rxe && add d_x v1 && rdma link del d_x; } || rc=1
	return $rc
}

pingpong_4096() { timeout 100 ibv_rc_pingpong -d "$DEV" -g 0 -m 4096 "$@"; }
# Fails; true if the log says why. The server may not listen yet. It ends without a line if the RDMA core has not resolved
# the address again after a change of the interface (ETIMEDOUT, seen on Linux 6.1).
refused_4096() {
	kill -0 "$server" || { pingpong_4096 & server=$!; }
	! pingpong_4096 127.0.0.1 && log_since | grep -q 'path MTU 4096 needs an interface MTU of [0-9]*, v1 has 1500'
}
large_path_mtu() {
	local rc server=
	log_mark
	ip link set v1 mtu 1500
	wait_for 60 refused_4096
	rc=$?
	ip link set v1 mtu 4200
	kill "$server" 2> /dev/null; wait
	return $rc
}

# The MTU of a UD QP is that of the port when a packet is sent, not when the QP was made ready.
ud_mtu() {
	/usr/bin/python3 -c 'import pyverbs.addr' 2> /dev/null || return 4	# not with another libibverbs than Debian's
	ip link set v1 mtu 1500 && /usr/bin/python3 "$HERE/../../verbs/ud_mtu.py" "$DEV" $H1IP $H2IP v1
}

mtu_change() {
	local m want
	while read -r m want; do
		ip link set v1 mtu "$m"
		echo "$m: $(active_mtu "$DEV"), $(state "$DEV")"
		[ "$(active_mtu "$DEV")" = "$want" ] && state_is "$DEV" ACTIVE || return
	done <<-END
		1500 1024
		9000 4096
		700 512
		4200 4096
	END
	heard_from
	ip link set v1 mtu 300 && wait_for 60 state_is "$DEV" DOWN && heard "port error" || return
	ip link set v1 down && ip link set v1 up && state_is "$DEV" DOWN || return
	ip link set v1 mtu 4200 && wait_for 60 state_is "$DEV" ACTIVE && heard "port active" || return
	sleep 1		# for an event too many
	kill "$listener"; wait "$listener" 2> /dev/null
	cat /tmp/heard
	[ "$(grep -c 'port active' /tmp/heard)" = 1 ]
}

heard_from() {
	rm -f /tmp/heard
	"$PROGRAMS/lifetime" listen -d "$DEV" -t 300 > /tmp/heard 2>&1 &
	listener=$!
	wait_for 60 grep -q started /tmp/heard
}

down_up() {
	ibv_devinfo -v -d "$DEV" | grep -q PORT_ACTIVE_EVENT || { echo "PORT_ACTIVE is not announced"; return 1; }
	heard_from
	ip link set v1 down && wait_for 60 state_is "$DEV" DOWN && heard "port error" || return
	ip link set v1 up && wait_for 60 state_is "$DEV" ACTIVE && heard "port active" || return
	# The kernel reports a carrier up to a second late: two changes within that time would be none.
	ip netns exec peer ip link set v2 down && wait_for 60 state_is "$DEV" DOWN && heard "port error" || return
	ip netns exec peer ip link set v2 up && wait_for 60 state_is "$DEV" ACTIVE && heard "port active" || return
	sleep 1		# for an event too many
	kill "$listener"; wait "$listener" 2> /dev/null
	cat /tmp/heard
	[ "$(grep -c 'port error' /tmp/heard)" = 2 ] && [ "$(grep -c 'port active' /tmp/heard)" = 2 ]
}

# ibv_asyncwatch, which administrators use to watch a port.
watched() { wait_for 60 grep -q "$1" /tmp/watch; }
asyncwatch() {
	local pid rc
	command -v ibv_asyncwatch > /dev/null || return 4
	ibv_asyncwatch -d "$DEV" > /tmp/watch 2>&1 &
	pid=$!
	watched "async event FD" && ip link set v1 down && watched EVENT_PORT_ERR && ip link set v1 up && watched EVENT_PORT_ACTIVE
	rc=$?
	kill $pid; wait $pid 2> /dev/null
	[ $rc = 0 ] || cat /tmp/watch
	return $rc
}

rename_device() {
	rdma dev set "$DEV" name d_new && gone "$DEV" && traffic d_new $H1IP || return
	refused "exists" add d_new v1 && rdma dev set d_new name "$DEV"
}
rename_netdev() {
	ip link set v1 down && ip link set v1 name w1 && ip link set w1 up && rdma link show "$DEV/1" | grep -q "netdev w1" || return
	[ "$(cat /sys/class/infiniband/"$DEV"/parent)" = w1 ] || return
	ip link set w1 down && ip link set w1 name v1 && ip link set v1 up && ip addr replace $H1IP/24 dev v1 && wait_for 60 gid_index "$DEV" $H1IP
}
no_gid() { ! gid_index "$DEV" "$1"; } # ADDRESS
addresses() {
	ip addr add 10.9.9.9/24 dev v1 && wait_for 60 gid_index "$DEV" 10.9.9.9 && traffic "$DEV" 10.9.9.9 || return
	ip addr del 10.9.9.9/24 dev v1 && wait_for 60 no_gid 10.9.9.9 && gid_index "$DEV" $H1IP
}
# The core deletes the GID with the first of the prefixes.
two_prefixes() {
	ip addr add 10.9.9.9/24 dev v1 && ip addr add 10.9.9.9/16 dev v1 && wait_for 60 gid_index "$DEV" 10.9.9.9 || return
	ip addr del 10.9.9.9/24 dev v1 && sleep 1 && wait_for 60 gid_index "$DEV" 10.9.9.9 && traffic "$DEV" 10.9.9.9 || return
	ip addr del 10.9.9.9/16 dev v1 && wait_for 60 no_gid 10.9.9.9
}
# The core registers an Ethernet device and scans its addresses, then the driver asks for a second scan: before the core
# had ib_device_enable_gid_updates(), an address that came between these was lost.
scanned_twice() { [ "$(grep -c roan_rescan: /sys/kernel/tracing/trace)" -ge 2 ]; }
scans_again() {
	local t=/sys/kernel/tracing
	mountpoint -q $t || mount -t tracefs t $t || return 4
	[ -e $t/kprobe_events ] && echo 'p:roan_rescan rdma_roce_rescan_device' >> $t/kprobe_events || return 4
	echo > $t/trace; echo 1 > $t/events/kprobes/roan_rescan/enable
	ip link add dm1 type dummy && ip link set dm1 up && add d_y dm1 && wait_for 10 scanned_twice
	set -- $?
	echo 0 > $t/events/kprobes/roan_rescan/enable; echo -:roan_rescan >> $t/kprobe_events
	ip link del dm1 && return "$1"
}
# An address handle has 8 bits for the index of its GID: each entry that is there can be used.
many_addresses() {
	local gids=/sys/class/infiniband/d_x/ports/1/gids gid last
	ip link add dm0 mtu 4200 type dummy && ip link set dm0 up && add d_x dm0 || return
	seq 300 | awk '{ printf "address add 10.66.%d.%d/16 dev dm0\n", $1 / 100, $1 % 100 + 1 }' | ip -batch - || return
	[ "$(find $gids -type f | wc -l)" = 256 ] && wait_for 100 grep -q ffff $gids/255 || return
	IFS=: read -r -a gid < $gids/255
	printf -v last "%d.%d.%d.%d" "0x${gid[6]:0:2}" "0x${gid[6]:2}" "0x${gid[7]:0:2}" "0x${gid[7]:2}"
	echo "$last is the last one"
	traffic d_x "$last" && rdma link del d_x && no_device d_x
}
true_speed() { [ "$(cat /sys/class/net/v1/speed)" = 10000 ] && grep "^10 Gb/sec" "/sys/class/infiniband/$DEV/ports/1/rate"; }
same_guid() { [ -n "$GUID" ] && [ "$(cat "/sys/class/infiniband/$DEV/node_guid")" = "$GUID" ]; }
netdev_moved() {
	ip netns add other && ip link add x1 type veth peer name x2 && ip link set x1 up && add d_x x1 || return
	ip link set x1 netns other && wait_for 60 no_device d_x && ip -n other link del x1 && ip netns del other
}
netdev_deleted() { ip link del v1 && wait_for 60 no_device "$DEV"; }
# UML keeps the KASAN shadow of an unloaded module, and memory that is reused there raises false reports. So in UML the
# modules are unloaded last, or not at all.
unloads() { rmmod roan && { [ "${LAB:-}" = uml-debug ] || load_modules; }; }

ktap_header
{ load_modules && ip netns add peer && ip link add v1 mtu 4200 type veth peer name v2 netns peer mtu 4200 &&
	ip addr add $H1IP/24 dev v1 && ip -n peer addr add $H2IP/24 dev v2 && ip link set v1 up &&
	ip -n peer link set v2 up; } > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }

ktap_check "no such netdev: no such device" refused "no such device\|not found\|invalid\|cannot find" add d_x nix0
ktap_check "a name with a pattern: invalid" refused "invalid" add "d_%d" v1
ktap_check "no name: refused" refused "invalid\|range\|unknown\|not" add "" v1
ktap_check "a name too long: refused" refused "invalid\|range\|numerical\|long" add "$(printf 'd%.0s' {1..70})" v1
ktap_check "add" add "$DEV" v1
ktap_check "port active, MTU 4096, GIDs" wait_for 60 state_is "$DEV" ACTIVE
GUID=$(cat "/sys/class/infiniband/$DEV/node_guid")
ktap_check "rdma link names the netdev" sh -c "rdma link show $DEV/1 | grep -q 'netdev v1'"
ktap_check "the port has the netdev's speed" true_speed
ktap_check "GID of the address" wait_for 60 gid_index "$DEV" $H1IP
ktap_check "the same netdev again: exists" refused "exists" add d_x v1
ip link add e1 type dummy
ktap_check "the same name again: exists" refused "exists" add "$DEV" e1
ip link del e1
ktap_check "traffic" traffic "$DEV"
ktap_check "GIDs follow addresses" addresses
[ "$LINK_TYPE" != roan ] || ktap_check "an address that loses one of its prefixes keeps its GID" two_prefixes
ktap_check "down and up: state and events" down_up
ktap_check "ibv_asyncwatch sees a link go down and up" asyncwatch
ktap_check "MTU: path MTU follows, too small means port down" mtu_change
[ "$LINK_TYPE" != roan ] || ktap_check "MTU: a greater path MTU is refused at RTR, the log says what it needs" large_path_mtu
[ "$LINK_TYPE" != roan ] || ktap_check "MTU: a UD QP that was made before a change sends and receives what the port allows" ud_mtu
ktap_check "rename the device" rename_device
ktap_check "rename the netdev" rename_netdev
ktap_check "traffic after the renames" traffic "$DEV"
ktap_check "delete" rdma link del "$DEV"
ktap_check "the deleted device does not exist" no_device "$DEV"
ktap_check "delete again: refused" refused "." rdma link del "$DEV"
ktap_check "add and delete fifteen times" again_and_again
ktap_check "two concurrent adds: one succeeds" racing
ktap_check "eight devices" many
ktap_check "on a VLAN: not supported, but its addresses are GIDs of the lower device" on_vlan
ip link del v1.7
ktap_check "on a bridge" on_bridge
ip link set v1 nomaster
ip link del br0
if [ "$LINK_TYPE" = roan ] && command -v rping > /dev/null; then
	ktap_check "below an interface that gets a device too: its addresses belong to that one" below_another
	ip link set v1 nomaster; ip link del br0
fi
ktap_check "on a macvlan" on_macvlan
ip link del mv0
ktap_check "on a dummy" on_dummy
ip link del dm0
if [ "$LINK_TYPE" = roan ]; then
	ktap_check "300 addresses: the GID table has 256 entries, and the last one works" many_addresses
	ip link del dm0
	ktap_check "the addresses of a new device are scanned once more when it is registered" scans_again
fi
ktap_check "an unknown speed is not logged at each query" unknown_speed
ip link del mv0; ip link del br0; ip link del dm0
ktap_check "on a bond" on_bond
ip link del bo0; ip link del b1
if [ "$LINK_TYPE" = roan ]; then
	ktap_check "on a bond: the GIDs after a failover" failed_over
	ip link del bo0; ip link del b1; ip link del b2
fi
if [ "$LINK_TYPE" = roan ] && modprobe -q tun && ip link add vr0 type vrf table 10 2> /dev/null && ip link del vr0; then
	ktap_check "on a tun in a VRF: no GID of an address that the VRF had" in_vrf
	ip link del tn0; ip link del vr0
fi
ktap_check "on a tap" on_tap
ktap_check "the netdev moves to another namespace" netdev_moved
ktap_check "add again" add "$DEV" v1
ktap_check "the same GUID as before" same_guid
ktap_check "the netdev is deleted" netdev_deleted
[ "$LINK_TYPE" != roan ] || ktap_check "UDP port bound by rxe: in use, and the log says so" port_taken
if [ "$LINK_TYPE" = roan ] && [ -d /sys/module/ib_uverbs/holders ]; then
	ktap_check "ib_uverbs stays loaded below the module" [ -e /sys/module/ib_uverbs/holders/roan ]
fi
[ "$LINK_TYPE" != roan ] || ktap_check "the module unloads and loads" unloads
ktap_end
