#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Kernel memory that users take through a device: limited by RLIMIT_MEMLOCK, charged to the memory cgroup, limited by
# the rdma controller, and by a device's limit of device memory. What each object costs is printed as a table.
# Cgroup parts are skipped in a kernel without them (UML). LINK_TYPE=rxe shows how much rdma_rxe gives.
#
#	h1: v1, roan1  =veth=  v2, roan2: h2	the users are in h1
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../../vm/lib.sh"
. "$HERE/../../verbs/pair.sh"
LIMITED=$PROGRAMS/memory_limit
AS_NOBODY=(setpriv --reuid 65534 --regid 65534 --clear-groups)
GROUP=/tmp/cgroup

part() { # NAME ARG...
	local out=/tmp/part rc
	# shellcheck disable=SC2016 # expanded by the inner shell
	a sh -c '[ -z "$1" ] || echo $$ > "$1/cgroup.procs"; shift; exec "$@"' sh "${in_group:-}" "$LIMITED" -d "$ADEV" "${@:2}" > $out 2>&1
	rc=$?
	ktap_relay $out "memory_limit" $rc "$1 - "
}

# What perftest's defaults pin, its buffer of 128 KiB included. Prints what the server's process is charged.
perftest() {
	local user=("${AS_NOBODY[@]}" ib_write_bw -D 3 -F) pid client most=0 now
	"${A[@]}" prlimit --memlock=8388608 "${user[@]}" -d "$ADEV" -x "$(gid_index "$ADEV" "$AIP" h1)" > /tmp/server 2>&1 &
	pid=$!
	wait_for 60 listening 18515 || { cat /tmp/server; return 1; }
	b prlimit --memlock=8388608 "${user[@]}" -d "$BDEV" -x "$(gid_index "$BDEV" "$BIP" h2)" "$AIP" > /tmp/client 2>&1 &
	client=$!
	while kill -0 $pid 2> /dev/null; do
		now=$(awk '/VmPin/ { print $2 }' /proc/$pid/status 2> /dev/null)
		[ "${now:-0}" -le "$most" ] || most=$now
		read -rt 0.1 < <(sleep 1) || :
	done
	echo "# ib_write_bw is charged $most KiB" >&3
	wait $pid && wait $client && [ "$most" -gt 128 ] && return
	cat /tmp/server /tmp/client
	return 1
}

devinfo() { a prlimit --memlock=0 "${AS_NOBODY[@]}" ibv_devinfo -d "$ADEV"; }

ktap_header
pair_up > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
ktap_check "ibv_devinfo as a user with a limit of 0" devinfo
part "64 KiB"
[ "$LINK_TYPE" = roan ] || ktap_end	# the rest is roan's own, or needs both hosts
{ mkdir -p $GROUP && mount -t cgroup2 none $GROUP && echo +memory > $GROUP/cgroup.subtree_control && mkdir $GROUP/mem; } 2> /dev/null
if [ -e $GROUP/mem/memory.current ]; then
	part "table" -g $GROUP/mem
else
	ktap_skip "what each object is charged" "no memory cgroups"
fi
on h1 sh -c "echo 1048576 > /sys/class/infiniband/$ADEV/dm_limit"
part "limit of the device" -l 1048576
on h1 sh -c "echo 67108864 > /sys/class/infiniband/$ADEV/dm_limit"
if { echo +rdma > $GROUP/cgroup.subtree_control && mkdir $GROUP/rdma && [ -e $GROUP/rdma/rdma.max ] && echo "$ADEV hca_handle=1 hca_object=20" > $GROUP/rdma/rdma.max; } 2> /dev/null; then
	in_group=$GROUP/rdma part "rdma controller" -o 20
else
	ktap_skip "limits of the rdma controller" "no rdma controller"
fi
exec 3>&1
ktap_check "ib_write_bw as a user with a limit of 8 MiB" perftest
part "removed" -x "rdma link del $ADEV"
two_hosts_down
ktap_end
