#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What the discovery of NCCL, UCX, Mooncake, rdma-cni ... finds on a device on a veth, on an adapter on PCI (NICS of
# run.sh), and on rdma_rxe's: tools/roan_clients.py applies the clients' own conditions to the same files. The verdicts
# must be those of the table in Documentation/discovery.md, so that page is the list of expected results. Also the
# topology file for NCCL.
#
#	v1 =veth= v2, both in namespace h1; roan0 on v1. With NICS also roan1 on an adapter
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../../vm/lib.sh"
PAGE=$REPO/Documentation/discovery.md

roan() { ip netns exec h1 "$REPO/tools/roan" "$@"; }

# expected COLUMN: "CLIENT|VERDICT" of each row of the page's table; the verdict is what precedes a colon in the cell.
expected() {
	awk -F ' *[|] *' -v column="$1" '
		/^## / { on = /^## Which client takes which device/ }
		on && NF >= 6 && $2 != "client" && $2 !~ /^-+$/ { sub(/:.*/, "", $column); print $2 "|" $column }' "$PAGE"
}

# compared NAME DEVICE COLUMN: one case for each client.
compared() {
	local client verdict got out=/tmp/clients-$2
	roan clients "$2" > "$out" 2>&1 || { cat "$out"; ktap_fail "$1: roan clients"; return; }
	sed 's/^/# /' "$out"
	while IFS='|' read -r client verdict; do
		# Without the auxiliary bus its look-up has no place.
		if [ "$client" = rdma-cni ] && [ "$3" != 5 ] && [ ! -d /sys/bus/auxiliary ]; then
			ktap_skip "$1: $client" "this kernel has no auxiliary bus"
			continue
		fi
		got=$(awk -v client="$client" 'substr($0, 5, 26) == sprintf("%-26s", client) { v = substr($0, 32, 19); sub(/ +$/, "", v); print v }' "$out")
		if [ "$got" = "$verdict" ]; then
			ktap_pass "$1: $client: $verdict"
		else
			ktap_fail "$1: $client: $verdict" "it is: $got"
		fi
	done < <(expected "$3")
}
every_client_is_in_the_page() {
	[ "$(expected 3 | wc -l)" -ge 20 ] && [ "$(expected 3 | cut -d'|' -f1)" = "$(awk 'NR > 1 { v = substr($0, 5, 26); sub(/ +$/, "", v); print v }' /tmp/clients-roan0)" ]
}

# topo_is DEVICE PATH: the file is XML, and the element of the device is at this place. NCCL requires the attributes.
topo_is() {
	roan topo "$1" > /tmp/topo.xml || { cat /tmp/topo.xml; return 1; }
	cat /tmp/topo.xml
	python3 - "$@" <<- 'END'
		import sys, xml.etree.ElementTree as tree
		root = tree.parse("/tmp/topo.xml").getroot()
		needed = {"system": {"version"}, "cpu": {"numaid", "arch"}, "pci": {"busid", "class", "link_speed", "link_width"},
		          "nic": set(), "net": {"name"}}
		def walk(node, path):
		    missing = needed[node.tag] - set(node.attrib)
		    assert not missing, (node.tag, missing)
		    here = path + "/" + node.tag + ("=" + node.get("busid") if node.tag == "pci" else "")
		    if node.tag == "net":
		        assert node.get("name") == sys.argv[1] and not len(node)
		        return [here]
		    assert len(node), here
		    return [p for child in node for p in walk(child, here)]
		assert root.tag == "system" and root.get("version") == "1"
		if root[0].get("arch") == "x86_64":
		    assert {"vendor", "familyid", "modelid"} <= set(root[0].attrib)
		paths = walk(root, "")
		print(paths)
		sys.exit(paths != [sys.argv[2]])
	END
}
# The PCI device of an adapter that is behind no switch.
pci_path() {
	local part
	for part in $(readlink -f "/sys/class/net/$1/device" | tr / ' '); do
		[[ $part =~ ^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]$ ]] && echo "/system/cpu/pci=$part/nic/net"
	done | tail -n 1
}
both_in_one_file() { # without names: all devices, which the first namespace sees
	"$REPO/tools/roan" topo > /tmp/topo.xml && [ "$(grep -c '<net ' /tmp/topo.xml)" = "$1" ] && python3 -c 'import xml.etree.ElementTree as t; t.parse("/tmp/topo.xml")'
}
# A machine with two NUMA nodes, as a tree of files: fake0 and fake1 on adapters behind one switch (two
# bridges on the way) of node 1, fake2 on a virtual interface.
fake_machine() {
	local root=$1 bus=sys/devices/pci0000:80 dev path slot
	put() { mkdir -p "$root/${1%/*}" && echo "$2" > "$root/$1"; }
	put proc/cpuinfo "$(printf 'vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\n')"
	put sys/devices/system/node/node0/cpumap 0f && put sys/devices/system/node/node1/cpumap f0
	for path in "" /0000:82:00.0 /0000:82:00.0/0000:83:00.0 /0000:82:01.0 /0000:82:01.0/0000:84:00.0; do
		path=0000:80:01.0/0000:81:00.0$path slot=$(basename "$path")
		put $bus/$path/class 0x020000 && put $bus/$path/numa_node 1 && put $bus/$path/max_link_width 16 || return
		put $bus/$path/max_link_speed "$([ "$slot" = 0000:82:00.0 ] && echo 8.0 || echo 16.0) GT/s PCIe"
		mkdir -p "$root/sys/bus/pci/devices" && ln -s "../../../../$bus/$path" "$root/sys/bus/pci/devices/$slot" || return
	done
	mkdir -p "$root/sys/bus/pci/devices/0000:00:02.0" && echo 0 > "$root/sys/bus/pci/devices/0000:00:02.0/numa_node"
	for dev in fake0:pci0000:80/0000:80:01.0/0000:81:00.0/0000:82:00.0/0000:83:00.0 \
		fake1:pci0000:80/0000:80:01.0/0000:81:00.0/0000:82:01.0/0000:84:00.0 fake2:virtual/roan/netdev; do
		path=$root/sys/devices/${dev#*:}/roan.rdma.${dev:4:1} dev=${dev%%:*}
		mkdir -p "$path/infiniband/$dev" "$root/sys/class/infiniband" && ln -s "$path" "$path/infiniband/$dev/device" &&
			ln -s "$path/infiniband/$dev" "$root/sys/class/infiniband/$dev" || return
	done
}
two_nodes() {
	local root
	root=$(mktemp -d) && fake_machine "$root" && ROAN_ROOT=$root ROAN_SYSFS=$root/sys/class/infiniband "$REPO/tools/roan" topo fake0 fake1 fake2 > /tmp/topo.xml
	cat /tmp/topo.xml
	rm -rf "$root"
	python3 - <<- 'END'
		import xml.etree.ElementTree as tree
		root = tree.parse("/tmp/topo.xml").getroot()
		zero, one = root.findall("cpu")
		assert (zero.get("numaid"), one.get("numaid"), one.get("affinity")) == ("0", "1", "f0")
		assert [n.get("name") for n in zero.findall("nic/net")] == ["fake2"]
		(bridge,) = one.findall("pci")
		assert bridge.get("busid") == "0000:81:00.0"
		assert [(p.get("busid"), p.find("nic/net").get("name")) for p in bridge] == [("0000:83:00.0", "fake0"), ("0000:84:00.0", "fake1")]
		assert bridge[0].get("link_speed") == "8.0 GT/s PCIe" and bridge[1].get("link_speed") == "16.0 GT/s PCIe" and bridge[0].get("link_width") == "16"
	END
}
refused() { # REASON ARGS...
	local why=$1
	shift
	roan "$@" > /tmp/out 2>&1 && return 1
	cat /tmp/out
	grep -q "^roan: $why" /tmp/out
}
with_rxe() {
	modprobe -q rdma_rxe && ip link add x1 type veth peer name x2 && ip link set x1 up && ip link set x2 up && rdma link add rxe0 type rxe netdev x1
}

ktap_header
{ load_modules && ip netns add h1 && ip link add v1 mtu 4200 netns h1 type veth peer name v2 netns h1 mtu 4200 && on h1 ip addr add 10.7.0.1/24 dev v1 &&
	on h1 ip link set v1 up && on h1 ip link set v2 up && link_add roan0 v1 h1 && wait_for 60 gid_index roan0 10.7.0.1 h1; } > /tmp/setup.log 2>&1 ||
	{ cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
compared "veth" roan0 3
ktap_check "the page has a row for every client" every_client_is_in_the_page
ktap_check "topology file: a veth's device is below the first CPU" topo_is roan0 /system/cpu/nic/net
ktap_check "topology file: two adapters behind a switch of the second NUMA node, and a virtual interface" two_nodes
ktap_check "clients: an unknown device is refused" refused "there is no device roan9" clients roan9
ktap_check "topo: an unknown device is refused" refused "there is no device roan9" topo roan9
if [ -n "${NICS:-}" ]; then
	modprobe -q -a e1000e virtio_net vmxnet3
	for NIC in /sys/class/net/*/device; do
		NIC=$(basename "${NIC%/device}")
		ip link set "$NIC" up && ip link set "$NIC" netns h1
	done
	{ on h1 ip addr add 10.7.1.1/24 dev "$NIC" && on h1 ip link set "$NIC" up && link_add roan1 "$NIC" h1 &&
		wait_for 60 gid_index roan1 10.7.1.1 h1 && wait_for 60 on h1 grep -q ACTIVE /sys/class/infiniband/roan1/ports/1/state; } > /tmp/setup.log 2>&1 ||
		{ cat /tmp/setup.log; ktap_fail "an adapter's device"; }
	compared "adapter" roan1 4
	PLACE=$(on h1 bash -c "$(declare -f pci_path); pci_path $NIC")
	ktap_check "topology file: an adapter's device is below its PCI devices" topo_is roan1 "$PLACE"
	ktap_check "topology file of both" both_in_one_file 2
	on h1 rdma link del roan1
else
	ktap_skip "an adapter on PCI" "run.sh was started without NICS"
fi
on h1 rdma link del roan0
# rdma_rxe is in the first namespace only, and its UDP port excludes roan there.
roan() { "$REPO/tools/roan" "$@"; }
if with_rxe > /tmp/setup.log 2>&1; then
	wait_for 60 grep -q ACTIVE /sys/class/infiniband/rxe0/ports/1/state
	compared "rdma_rxe" rxe0 5
	ktap_check "topology file: rdma_rxe's device is below the first CPU" topo_is rxe0 /system/cpu/nic/net
else
	cat /tmp/setup.log
	ktap_skip "rdma_rxe" "not in this kernel, or it refused the interface"
fi
ktap_end
