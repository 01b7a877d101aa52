#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Devices on virtual functions of an adapter (NICS=igb of run.sh): their parent, data compared between two functions of the
# adapter and with another adapter, functions removed under traffic.
#
#	h1: roan1 on v1, function 0 --+
#	                              +-- adapter 1 ==== a hub ==== adapter 2, v3 with roan3 :h3
#	h2: roan2 on v2, function 1 --+
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../../vm/lib.sh"
. "$HERE/../../verbs/pair.sh"
# shellcheck disable=SC2034 # read by pair.sh
ADEV=roan1 AIP=10.7.0.1 AIP6=fd07::1 STRESS_X=
# shellcheck disable=SC2034 # read by pair.sh
A=(ip netns exec h1)
CLASS=/sys/class/infiniband
MTU=4200

adapters() { # netdevs of igb, in the order of their addresses
	local dev
	for dev in /sys/class/net/*/device/driver; do
		[ "$(basename "$(readlink -f "$dev")")" != igb ] || echo "$(cat "${dev%/device/driver}/address") $dev"
	done | sort | awk -F/ '{ print $5 }'
}
has_functions() { [ -d "$PCI/virtfn0/net" ] && [ -d "$PCI/virtfn1/net" ]; }
functions_gone() { [ ! -e "$PCI/virtfn0" ] && no_device roan1 && no_device roan2; }
no_device() { ! rdma dev show "$1" > /dev/null 2>&1; }

host() { # NUMBER NETDEV: names it v$NUMBER in namespace h$NUMBER, with addresses and a device
	local n=$1 h=h$1
	ip netns add "$h" && on "$h" ip link set lo up || return
	ip link set "$2" down && ip link set "$2" netns "$h" name "v$n" || return
	on "$h" ip link set "v$n" mtu $MTU up && on "$h" ip addr add "10.7.0.$n/24" dev "v$n" &&
		on "$h" ip addr add "fd07::$n/64" dev "v$n" nodad && link_add "roan$n" "v$n" "$h"
}
make_functions() {
	echo 2 > "$PCI/sriov_numvfs" && wait_for 60 has_functions || { dmesg | tail -n 20; return 1; }
	udevadm settle -t 5 2> /dev/null
	host 1 "$(ls "$PCI/virtfn0/net")" && host 2 "$(ls "$PCI/virtfn1/net")"
}
reached() { wait_for 60 on h1 ping -c1 -W1 "10.7.0.$1" && wait_for 60 on h1 ping -c1 -W1 "fd07::$1"; } # NUMBER

below_function() { # DEVICE FUNCTION
	local parent
	parent=$(readlink -f "$CLASS/$1/device/..")
	echo "$parent, of $(readlink -f "$parent/physfn")"
	[ "$parent" = "$(readlink -f "$PCI/$2")" ] && [ "$(readlink -f "$parent/physfn")" = "$PCI" ]
}
shown() {
	rdma link show roan1/1
	rdma link show roan1/1 | grep 'state ACTIVE' && [ "$(on h1 ls $CLASS/roan1/device/net)" = v1 ]
}

packets() { on "h$1" cat "/sys/class/net/v$1/statistics/$2_packets"; } # NUMBER rx|tx
# with NUMBER OPTIONS: function 0 and the device of that host; what function 0 sent must have left its interface and
# arrived at the peer's.
with() {
	local n=$1 sent rcvd tx rx
	shift
	# shellcheck disable=SC2034 # read by pair.sh
	BDEV=roan$n BIP=10.7.0.$n BIP6=fd07::$n B=(ip netns exec "h$n")
	sent=$(counter roan1 sent_pkts) rcvd=$(counter roan1 rcvd_pkts) tx=$(packets 1 tx) rx=$(packets "$n" rx)
	STRESS_BOTH="$*" stress 300 -q 2 -w 32 -n 3 -B || return
	sent=$(($(counter roan1 sent_pkts) - sent)) rcvd=$(($(counter roan1 rcvd_pkts) - rcvd))
	tx=$(($(packets 1 tx) - tx)) rx=$(($(packets "$n" rx) - rx))
	echo "# sent $sent packets and received $rcvd; the interface sent $tx, the peer's received $rx" >&3
	[ "$rcvd" -ge 40 ] && [ "$tx" -ge "$sent" ] && [ "$rx" -ge "$sent" ]
}

# Both functions go while one has traffic with the other adapter and a program has the other one open.
removed() {
	local pid listener rc=0
	"$PROGRAMS/lifetime" listen -d roan2 -t 300 > /tmp/listener 2>&1 & listener=$!
	timeout -k 1 400 "$PROGRAMS/lifetime" traffic -t 300 -d roan1 -D roan3 > /tmp/traffic 2>&1 & pid=$!
	wait_for 100 grep -q started /tmp/traffic && wait_for 100 grep -q started /tmp/listener &&
		wait_for 100 has_received roan3 $(($(counter roan3 rcvd_pkts) + 100)) || rc=1
	[ $rc != 0 ] || timeout 100 sh -c "echo 0 > $PCI/sriov_numvfs" || { echo "sriov_numvfs: $?"; rc=1; }
	wait_for 60 functions_gone || { echo "roan1 or roan2 is left"; rc=1; }
	wait_for 100 grep -q closed /tmp/traffic || { echo "the program did not end"; kill -9 $pid; rc=1; }
	wait $pid
	kill $listener
	wait $listener
	cat /tmp/traffic
	grep -qE 'end: (event device fatal|wc|verb .* EIO|event local)' /tmp/traffic || rc=1
	[ $rc = 0 ] && wait_for 60 nothing_left && [ "$(find /sys/devices -name 'roan.rdma.*' | wc -l)" = 1 ]
}
again() { ip netns del h1 && ip netns del h2 && make_functions && reached 3 && with 3 -t rc -l 20000; }

ktap_header
exec 3>&1
[ "${NICS:-}" = igb ] || { ktap_skip "virtual functions" "run.sh was started without NICS=igb"; ktap_end; }
set_up() {
	local first second
	load_modules && modprobe -a igb igbvf && udevadm settle -t 5 2> /dev/null
	{ read -r first && read -r second; } < <(adapters) || { ip link; return 1; }
	PCI=$(readlink -f "/sys/class/net/$first/device")
	ip link set "$first" mtu $MTU up && host 3 "$second" || return
	# QEMU's igb makes IP fragments, not datagrams, of a GSO packet of UDP.
	on h3 ethtool -K v3 tx-udp-segmentation off && make_functions && reached 2 && reached 3
}
set_up > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
ktap_check "the parent of a virtual function's device is below the function" below_function roan1 virtfn0
ktap_check "the other function's, too" below_function roan2 virtfn1
ktap_check "rdma link shows it, and net/ its interface" shown
ktap_check "RC, a function and another adapter" with 3 -t rc -l 100000
ktap_check "RC over IPv6, a function and another adapter" with 3 -6 -t rc -l 100000
ktap_check "UD, a function and another adapter" with 3 -t ud -L
ktap_check "RC, two functions of an adapter" with 2 -t rc -l 100000
ktap_check "the functions are removed under traffic" removed
ktap_check "functions made anew carry data" again
ktap_end
