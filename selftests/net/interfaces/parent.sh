#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The parent of a device in sysfs: its place, its attributes, net/, and that it goes in time: with the netdev, with the
# netdev's bus device while a program has the roan device open, with the module. The guest's log must stay free of
# warnings of sysfs. run.sh with NICS adds an adapter on PCI, which is unplugged. Kernels without the auxiliary bus
# have the same devices on no bus.
#
#	v1 =veth= v2 in namespace peer; roan0 on v1
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../../vm/lib.sh"
CLASS=/sys/class/infiniband
AUX=/sys/bus/auxiliary/devices

add() { rdma link add "$1" type roan netdev "$2"; }
gone() { ! rdma dev show "$1" > /dev/null 2>&1; }
parent() { readlink -f "$CLASS/$1/device"; }
says() { [ "$1" = "$2" ] || { echo "$1, not $2"; return 1; }; }	# GOT WANTED
parents() { find /sys/devices -name 'roan.rdma.*'; }
no_parent() { says "$(parents)" ""; }
no_dangling_link() { says "$(find "$CLASS" -xtype l; parents | xargs -rI{} find {} -xtype l)" ""; }

below_virtual() {
	local p
	p=$(parent roan0)
	case $p in
	/sys/devices/virtual/roan/netdev/roan.rdma.[0-9]*) says "$(readlink -f $CLASS/roan0)" "$p/infiniband/roan0" ;;
	*) echo "$p"; false ;;
	esac
}
on_the_bus() { # look-up of rdma-cni and rdmamap
	[ -d $AUX ] || return 4
	says "$(ls "$AUX/$(basename "$(parent "$1")")/infiniband")" "$1" && says "$(basename "$(readlink -f $CLASS/"$1"/device/subsystem)")" auxiliary
}
no_numa() {
	says "$(cat $CLASS/roan0/device/numa_node)" -1 && says "$(cat $CLASS/roan0/device/local_cpulist)" "$(cat /sys/devices/system/cpu/online)" &&
		[ "$((0x$(tr -d , < $CLASS/roan0/device/local_cpus)))" -gt 0 ]
}
shows_netdev() { # DEVICE NETDEV
	says "$(ls $CLASS/"$1"/device/net)" "$2" && says "$(readlink -f $CLASS/"$1"/device/net/*)" "$(readlink -f /sys/class/net/"$2")" &&
		says "$(cat $CLASS/"$1"/device/net/*/address)" "$(cat /sys/class/net/"$2"/address)"
}
renamed() {
	ip link set v1 down && ip link set v1 name w1 && shows_netdev roan0 w1 && says "$(cat $CLASS/roan0/parent)" w1 || return
	ip link set w1 name v1 && ip link set v1 up && shows_netdev roan0 v1
}
device_renamed() { rdma dev set roan0 name other && shows_netdev other v1 && rdma dev set other name roan0 && shows_netdev roan0 v1; }

# rdma-core's rule for udev runs this for each new device.
keeps_its_name() {
	[ -x /lib/udev/rdma_rename ] || return 4
	/lib/udev/rdma_rename "$1" NAME_FALLBACK
	udevadm settle -t 5 2> /dev/null
	rdma dev show "$1"
}
only_libroan() {
	IBV_SHOW_WARNINGS=1 ibv_devinfo -d "$1" > /tmp/di 2> /tmp/di.err && grep 'vendor_id:.*0x726f61' /tmp/di && says "$(cat /tmp/di.err)" "" || return
	command -v strace > /dev/null || return 0
	strace -f -e trace=openat -o /tmp/trace ibv_devinfo -d "$1" > /dev/null || return
	# It tries those that match by name or driver ID, as rxe and siw; no adapter's, which match by PCI ID.
	grep -q 'libroan-rdmav.* = [0-9]' /tmp/trace && ! grep -E 'lib[a-z0-9_]+-rdmav[0-9]+\.so.* = [0-9]' /tmp/trace | grep -vE 'lib(roan|rxe|siw)-'
}

# SMC takes the parent of each RDMA device for a PCI device and shows the IDs that lie before its struct device.
smc_reads_zeros() {
	local rc
	modprobe -q smc || return 4
	"$HERE/smc_devices.py" > /tmp/smc && grep '^roan0 0x0 0x0 0x0 0x0$' /tmp/smc
	rc=$?
	cat /tmp/smc
	rmmod smc_diag smc 2> /dev/null
	return $rc
}

# In another namespace's view of sysfs the device is there, but the netdev is not.
in_namespaces() {
	ip link add n1 type veth peer name n2 && ip link set n1 netns peer && ip netns exec peer rdma link add roan1 type roan netdev n1 || return
	says "$(ip netns exec peer ls $CLASS/roan1/device/net)" n1 && ip netns exec peer cat $CLASS/roan1/device/net/n1/address || return
	says "$(ls "$(ip netns exec peer readlink -f $CLASS/roan1/device)/net")" "" && no_dangling_link || return
	[ "$(parent roan0)" != "$(ip netns exec peer readlink -f $CLASS/roan1/device)" ] || return
	ip -n peer link set n1 netns 1 && wait_for 60 ip netns exec peer sh -c '! rdma dev show roan1' || return
	ip link del n1
	says "$(parents | wc -l)" 1
}

hold() { # DEVICE: a program that has it open
	wait_for 60 grep -q ACTIVE "$CLASS/$1/ports/1/state" || return	# it opens no other
	rm -f /tmp/held
	"$PROGRAMS/lifetime" listen -d "$1" -t 300 > /tmp/held 2>&1 &
	HOLDER=$!
	wait_for 60 grep -q started /tmp/held || { cat /tmp/held; return 1; }
}
let_go() { kill "$HOLDER" 2> /dev/null; wait "$HOLDER" 2> /dev/null; return 0; }

netdev_deleted() {
	hold roan0 && ip link del v1 && wait_for 60 gone roan0 && wait_for 60 no_parent && no_dangling_link
	local rc=$?
	let_go
	return $rc
}

# ---- an adapter on PCI ----

pci_netdev() {
	local d
	for d in /sys/class/net/*/device; do
		[ "$(basename "$(readlink -f "$d/subsystem")")" = "${1:-pci}" ] && basename "${d%/device}" && return
	done
	return 1
}
on_pci() { # NETDEV
	ip addr add 10.9.0.1/24 dev "$1" && ip link set "$1" up && add roan7 "$1" && wait_for 60 gid_index roan7 10.9.0.1 || return
	says "$(dirname "$(parent roan7)")" "$PCI" && on_the_bus roan7 && shows_netdev roan7 "$1"
}
same_numa() {
	says "$(cat $CLASS/roan7/device/numa_node)" "$(cat "$PCI/numa_node")" && says "$(cat $CLASS/roan7/device/local_cpus)" "$(cat "$PCI/local_cpus")" &&
		says "$(cat $CLASS/roan7/device/local_cpulist)" "$(cat "$PCI/local_cpulist")" || return
	echo 0 > "$PCI/numa_node" && says "$(cat $CLASS/roan7/device/numa_node)" 0
}
traffic() { "$PROGRAMS/lifetime" traffic -d roan7 -t 1 -a 10.9.0.1 > /tmp/traffic 2>&1; cat /tmp/traffic; grep -q "end: time; then alive" /tmp/traffic; }
driver_unbound() {
	local driver slot
	driver=$(readlink -f "$PCI/driver") slot=$(basename "$PCI")
	hold roan7 && echo "$slot" > "$driver/unbind" && wait_for 60 gone roan7 && says "$(find "$PCI/" -name 'roan.rdma.*')" "" && no_dangling_link || return
	let_go
	echo "$slot" > "$driver/bind" && wait_for 60 test -d "$PCI/net" && udevadm settle -t 5
	on_pci "$(ls "$PCI/net")"
}
unplugged() {
	hold roan7 && echo 1 > "$PCI/remove" && wait_for 60 gone roan7 && wait_for 60 test ! -e "$PCI" && no_dangling_link
	local rc=$?
	let_go
	[ $rc = 0 ] && says "$(parents | wc -l)" 1 || return
	echo 1 > /sys/bus/pci/rescan && wait_for 60 test -d "$PCI/net"
}

on_virtio() { add roan8 "$NIC" && says "$(dirname "$(parent roan8)")" "$(readlink -f "/sys/class/net/$NIC/device")" && shows_netdev roan8 "$NIC" && rdma link del roan8; }

unloads() { add roan0 v1 && rmmod roan && no_parent && [ ! -e /sys/class/roan ] && [ ! -e /sys/devices/virtual/roan ]; }

ktap_header
{ load_modules && ip netns add peer && ip link add v1 mtu 4200 type veth peer name v2 netns peer mtu 4200 &&
	ip addr add "$H1IP/24" dev v1 && ip link set v1 up && ip -n peer link set v2 up && add roan0 v1; } > /tmp/setup.log 2>&1 ||
	{ cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
ktap_check "the parent of a veth's device is below /sys/devices/virtual/roan" below_virtual
ktap_check "it is on the auxiliary bus" on_the_bus roan0
ktap_check "it has no NUMA node, and all CPUs are local" no_numa
ktap_check "net/ has the netdev" shows_netdev roan0 v1
ktap_check "the attribute parent has its name" says "$(cat $CLASS/roan0/parent)" v1
ktap_check "net/ follows a rename" renamed
ktap_check "net/ stays when the device is renamed" device_renamed
ktap_check "rdma-core's rule for udev does not rename the device" keeps_its_name roan0
ktap_check "libibverbs takes libroan and tries no adapter's provider" only_libroan roan0
ktap_check "SMC, which takes it for a PCI device, reads zeros" smc_reads_zeros
ktap_check "net/ is visible in the netdev's namespace only, and goes when the netdev moves" in_namespaces
[ -z "${NICS:-}" ] || modprobe -q -a e1000e virtio_net vmxnet3
udevadm settle -t 5 2> /dev/null
if NIC=$(pci_netdev); then
	PCI=$(readlink -f "/sys/class/net/$NIC/device")
	ktap_check "the parent of an adapter's device is below its PCI device" on_pci "$NIC"
	ktap_check "it has the adapter's NUMA node and CPUs" same_numa
	ktap_check "the adapter's device is not renamed" keeps_its_name roan7
	ktap_check "libibverbs takes libroan for the adapter's device, too" only_libroan roan7
	ktap_check "traffic on the adapter" traffic
	ktap_check "the adapter's driver is unbound while a program has the device open" driver_unbound
	ktap_check "the adapter is unplugged while a program has the device open" unplugged
else
	ktap_skip "an adapter on PCI" "run.sh was started without NICS"
fi
if NIC=$(pci_netdev virtio); then
	ktap_check "the parent of a virtio adapter's device is below the virtio device" on_virtio
fi
ktap_check "the netdev is deleted while a program has the device open" netdev_deleted
ip link add v1 type veth peer name v2 && ip link set v1 up
ktap_check "rmmod leaves nothing in sysfs" unloads
ktap_end
