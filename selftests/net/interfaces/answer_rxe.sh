#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# roan in place of rdma_rxe (parameter answer_rxe, file tools/answer-rxe.conf): `type rxe` makes roan devices, the two
# modules exclude each other without a warning in both orders, and set-up lines as public test suites have them run
# unmodified. Without the parameter `type rxe` is rdma_rxe's.
#
#	v1 (10.7.0.1) =veth= v2 (10.7.0.2) in namespace net1
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../../vm/lib.sh"
PARAM=/sys/module/roan/parameters/answer_rxe
CONF=/etc/modprobe.d/answer-rxe.conf

rxe_loaded() { [ -e /sys/module/rdma_rxe ]; }
refused() { # ERRNO-TEXT LOG-TEXT COMMAND...
	local want=$1 log=$2 out
	shift 2
	log_mark
	out=$("$@" 2>&1) && { echo "succeeded: $*"; return 1; }
	echo "$out"
	[[ $out == *"$want"* ]] && { [ -z "$log" ] || log_since | grep "$log"; }
}
answer() { echo "$1" > $PARAM; }
# cat reports the errno of a failed write, which a shell's redirection of a builtin hides in some versions.
answer_refused() { refused "Device or resource busy" "unload it first" bash -c "printf Y | cat > $PARAM" && [ "$(cat $PARAM)" = N ]; }

wire() {
	ip netns add net1 && ip link add v1 mtu 4200 type veth peer name v2 mtu 4200 netns net1 || return
	ip addr add 10.7.0.1/24 dev v1 && ip link set v1 up || return
	ip -n net1 addr add 10.7.0.2/24 dev v2 && ip -n net1 link set lo up && ip -n net1 link set v2 up || return
	wait_for 60 ping -c1 -W1 10.7.0.2
}

is_roan() { [ "$(vendor_id "$@")" = 0x726f61 ]; }
is_rxe() { [ "$(vendor_id "$@")" = 0xffffff ]; }
vendor_id() { ibv_devinfo -d "$1" | awk '$1 == "vendor_id:" { print $2 }'; }

answered() { # `type rxe` in two namespaces; nothing loads rdma_rxe
	answer Y && [ "$(cat $PARAM)" = Y ] || return
	rdma link add rxe0 type rxe netdev v1 && on net1 rdma link add rxe1 type rxe netdev v2 || return
	wait_for 60 rdma link show rxe0/1 && rdma link show rxe0/1 | grep "state ACTIVE.*netdev v1" || return
	! rxe_loaded && is_roan rxe0 && on net1 ibv_devinfo -d rxe1 | grep 0x726f61
}

# What public suites look at: SPDK takes the vendor IDs 0 and 0xffffff for rdma_rxe, ruapc needs more than 32767 CQEs,
# blktests and SPDK read `parent`.
attributes() {
	local cqe
	cqe=$(ibv_devinfo -v -d rxe0 | awk '$1 == "max_cqe:" { print $2 }')
	[ "$cqe" -gt 32767 ] || { echo "max_cqe $cqe"; return 1; }
	[ "$(cat /sys/class/infiniband/rxe0/parent)" = v1 ]
}

# librxe also takes devices by their name. The driver's ID has precedence, so libroan serves the device, and no provider
# prints a warning.
no_warning() {
	local out
	out=$(ibv_devinfo -d rxe0 2>&1 > /dev/null)
	echo "$out"
	[ -z "$out" ] && ls /etc/libibverbs.d/rxe.driver
}

write_bw() {
	local pid
	on net1 timeout 120 ib_write_bw -F -d rxe1 -n 200 -s 65536 > /tmp/server 2>&1 & pid=$!
	wait_for 60 on net1 sh -c 'ss -Hltn "sport = :18515" | grep -q .' || return
	timeout 120 ib_write_bw -F -d rxe0 -n 200 -s 65536 10.7.0.2 || { cat /tmp/server; return 1; }
	wait $pid && [ "$(counter rxe0 sent_pkts)" -gt 3000 ]
}

ping_by_cm() {
	local pid
	on net1 timeout 120 rping -s -a 10.7.0.2 -C 5 > /tmp/server 2>&1 & pid=$!
	wait_for 60 on net1 sh -c 'rdma resource show cm_id | grep -q LISTEN' || return
	timeout 120 rping -c -a 10.7.0.2 -C 5 -v || { cat /tmp/server; return 1; }
	wait $pid
}

rxe_refused() {
	refused "resource busy" "write N to /sys/module/roan/parameters/answer_rxe first" modprobe rdma_rxe || return
	! rxe_loaded && rdma link show rxe0/1
}

# reload [PARAMETER]: the module again; devices go with it.
reload() {
	[ ! -e /sys/module/roan ] || rmmod roan || return
	insmod "$(roan_ko)" ${1:+"$1"}
}
refused_at_load() {
	rmmod roan && refused "resource busy" "unload it first" insmod "$(roan_ko)" answer_rxe=1 && [ ! -e /sys/module/roan ] && load_modules
}

# The configuration as it is packaged. Guests have no roan.ko in /lib/modules, so a second file says where it is.
configure() {
	mkdir -p /etc/modprobe.d && cp "$REPO/tools/answer-rxe.conf" $CONF || return
	echo "install roan /sbin/insmod $(roan_ko) \$CMDLINE_OPTS" > /etc/modprobe.d/lab.conf
	[ ! -e /sys/module/roan ] || rmmod roan
}
unconfigure() { rm $CONF /etc/modprobe.d/lab.conf; }

# Each of the following is how one public suite sets a device up and takes it down, in its order of commands.
suite_block() { # load the module; a device for each interface with a carrier; find it by `parent`; all away again
	local i n=0 link
	modprobe rdma_rxe || return
	for i in /sys/class/net/*; do
		i=${i##*/}
		[ "$i" != lo ] || continue
		[ "$(cat "/sys/class/net/$i/addr_len")" = 6 ] || continue
		[ "$(cat "/sys/class/net/$i/carrier" 2> /dev/null)" = 1 ] || continue
		rdma link add "${i}_rxe" type rxe netdev "$i" && n=$((n + 1)) || return
		grep -qx "$i" /sys/class/infiniband/*/parent || return
		rdma link | grep " netdev $i" || return
	done
	[ $n -ge 1 ] && is_roan v1_rxe || return
	for link in $(rdma link | awk '{ print $2 }'); do rdma link del "${link%/*}" || return; done
	modprobe -r rdma_rxe && [ ! -e /sys/module/roan ]
}
suite_storage() { # modules in one modprobe; the status table reads parent, uverbs node, active_mtu
	modprobe -q -a ib_core ib_uverbs rdma_ucm rdma_rxe && rdma link add rxe0 type rxe netdev v1 || return
	[ "$(cat /sys/class/infiniband/rxe0/parent)" = v1 ] && wait_for 20 test -c /dev/infiniband/uverbs0 || return
	[[ $(ibv_devinfo -d rxe0) =~ active_mtu:(.*\ \(.*\)) ]] && modprobe -r rdma_rxe
}
suite_ci() { # idempotent lines of CI jobs: an old link is deleted, the device is found by its name
	modprobe rdma_rxe > /dev/null 2>&1 || return
	rdma link delete rxe0 2> /dev/null
	rdma link add rxe0 type rxe netdev v1 || return
	rdma link show 2> /dev/null | grep '^link rxe0/' && ibv_devices | grep -w rxe0 || return
	rdma link delete rxe0 && rdma link add rxe0 type rxe netdev v1 && rmmod roan
}
suite_no_modprobe() { # neither module is loaded: the kernel asks modprobe for the link type
	[ ! -e /sys/module/roan ] && rdma link add rxe0 type rxe netdev v1 || return
	is_roan rxe0 && ! rxe_loaded && [ "$(cat $PARAM)" = Y ]
}

reaches_rxe() { # the parameter is off
	rdma link add rxe0 type rxe netdev v1 && wait_for 60 rdma link show rxe0/1 && rxe_loaded && is_rxe rxe0
}

# The page's commands, while rdma_rxe has a device, and roan is loaded without the parameter.
page_is_followed() {
	rdma link del rxe0 && answer N && modprobe rdma_rxe || return
	rdma link add rxe0 type rxe netdev v1 && is_rxe rxe0 && rdma link del rxe0 || return
	echo "install roan /sbin/insmod $(roan_ko) \$CMDLINE_OPTS" > /etc/modprobe.d/lab.conf
	awk '/^```/ { if (text ~ /answer-rxe.conf/) { printf "%s", text; exit } text = ""; next } { text = text $0 "\n" }' \
		"$REPO/Documentation/rdma-rxe.md" | sed "s|/usr/share/roan|$REPO/tools|" > /tmp/page
	cat /tmp/page
	bash -ex /tmp/page || return
	! rxe_loaded && modprobe rdma_rxe && ! rxe_loaded && rdma link add rxe0 type rxe netdev v1 && is_roan rxe0
}

ktap_header
modinfo rdma_rxe > /dev/null 2>&1 || { ktap_skip "answer_rxe" "this kernel has no rdma_rxe"; ktap_end; }
{ load_modules && wire; } || { ktap_fail "set-up"; ktap_end; }
rm -f /etc/modprobe.d/*rxe*

ktap_check "off by default" grep -qx N $PARAM
ktap_check "on twice, off twice" sh -c "for v in Y Y N N; do echo \$v > $PARAM || exit; done"
ktap_check "neither yes nor no: invalid" refused "Invalid argument" "" bash -c "printf maybe | cat > $PARAM"
ktap_check "on: type rxe makes roan devices, rdma_rxe is not loaded" answered
ktap_check "attributes that suites look at" attributes
ktap_check "the provider is libroan, without a warning" no_warning
ktap_check "perftest on rxe0" write_bw
ktap_check "rping on rxe0" ping_by_cm
ktap_check "on: loading rdma_rxe is refused, and the log says why" rxe_refused
if [ "${LAB:-}" = uml-debug ]; then
	ktap_skip "modules loaded again" "UML keeps the KASAN shadow of unloaded modules"
	ktap_end
fi
ktap_check "on: the module unloads under its devices" rmmod roan
ktap_check "the parameter at load" reload answer_rxe=1

ktap_check "the packaged modprobe.d file" configure
ktap_check "set-up lines of a block layer suite" suite_block
ktap_check "set-up lines of a storage suite" suite_storage
ktap_check "set-up lines of CI jobs" suite_ci
ktap_check "type rxe alone loads roan" suite_no_modprobe
unconfigure

ktap_check "off: the module again" reload
ktap_check "off: type rxe loads rdma_rxe" reaches_rxe
ktap_check "rdma_rxe is loaded: on is refused, and the log says why" answer_refused
ktap_check "rdma_rxe is loaded: roan with answer_rxe=1 does not load" refused_at_load
ktap_check "after that, type rxe is still rdma_rxe's" is_rxe rxe0
rdma link del rxe0
ktap_check "after rdma_rxe has gone: on" sh -c "modprobe -r rdma_rxe && echo Y > $PARAM && rdma link add rxe0 type rxe netdev v1"
ktap_check "that device is roan's" is_roan rxe0
ktap_check "the commands of rdma-rxe.md while both modules are loaded" page_is_followed
ktap_end
