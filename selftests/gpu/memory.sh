#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Every operation between two hosts with memory of all kinds, on a link without and with loss, and the errors of
# registration. Besides the fake GPU's: udmabuf, dma-heap, vgem, and bochs's frame buffer where QEMU has one. FULL=1:
# each kind with each other; default: each with user memory and with itself. QUICK=1: with loss each with itself only;
# QUICK=2: each with itself only.
#
#	h1: target (roan1 on v1)  ==== veth, MTU 4200, netem ====  h2: source (roan2 on v2)
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
. "$HERE/../verbs/pair.sh"
KO=$(dirname "$(roan_ko)")
KINDS=${KINDS:-user odp odp-all odp-shaken udmabuf heap gpu gpu-moves gpu-attached gpu-migrates bar dm peer}

# One KTAP line per pairing; the failed cases of a pairing are shown above it.
pairing() { # TARGET SOURCE
	both 150 18533 "$PROGRAMS/memory -d $ADEV -m $1" "$PROGRAMS/memory -d $BDEV -m $2 -c $AIP ${LOSSY:+-L}"
	local rc=$?
	[ $rc = 1 ] && grep '^not ok' $OUT_B
	return $rc
}

# shellcheck disable=SC2086 # nothing, or two words
pinned() { a "$PROGRAMS/memlock" -d "$ADEV" ${CHARGED:-}; }

with_user() { [ "${QUICK:-0}" -lt $((2 - ${LOSSY:-0})) ]; }
pairings() { # WHERE
	local t s
	for t in $KINDS; do
		for s in $KINDS; do
			[ -n "${FULL:-}" ] || [ "$t" = "$s" ] || { with_user && [[ " $t $s " == *" user "* ]]; } || continue
			ktap_check "$1: from $s to $t" pairing "$t" "$s"
		done
	done
}

# Binds the VGA adapter, whose frame buffer the fake GPU used, to its own driver.
display() {
	modprobe -q bochs && wait_for 60 grep -q bochs /sys/class/drm/card*/device/uevent
}

ktap_header
! modprobe -q vgem || KINDS="$KINDS vgem"
pair_up > /tmp/setup.log 2>&1 && insmod "$KO/roan_peermem.ko" >> /tmp/setup.log 2>&1 &&
	insmod "$KO/roan_fake_gpu.ko" >> /tmp/setup.log 2>&1 ||
	{ cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
# The kernel's dma-buf code warns of an exporter that fails to map. That is intended here, so the log is cleared.
log_mark
ktap_check "registration of dma-bufs: errors" a "$PROGRAMS/reg_errors" -d "$ADEV"
# The interface is a veth. NVIDIA's client would access memory before address 0 for it, so it must not be called.
ktap_check "a peer client is not asked to map without the PCI device it needs, and may invalidate late" a "$PROGRAMS/reg_errors" -d "$ADEV" -p
sed 's/^/# /' < <(dmesg | grep 'roan: .*dma-buf')
other_reports() { log_since | grep -E 'WARNING:|BUG:|Oops|KASAN:|UBSAN:' | grep -v dma_buf_vmap; }
ktap_check "the kernel warns of nothing else" eval '! other_reports'
dmesg -C
echo "roan-lab: script starts" > /dev/kmsg
ktap_check "a peer client is visible where libraries look for it" grep -qx 1.0 /sys/kernel/mm/memory_peers/fake_gpu/version
# Device memory's charge is checked if this kernel has memory cgroups.
{ mkdir -p /tmp/cgroup && mount -t cgroup2 none /tmp/cgroup && echo +memory > /tmp/cgroup/cgroup.subtree_control &&
	mkdir /tmp/cgroup/roan; } 2> /dev/null
[ -e /tmp/cgroup/roan/memory.current ] && CHARGED="-g /tmp/cgroup/roan"
ktap_check "pinned pages are accounted until they are unpinned${CHARGED:+; device memory is charged}" pinned
ktap_check "device memory, and a window over it" a "$PROGRAMS/dm" -d "$ADEV"
if [ -e /proc/sys/vm/nr_hugepages ]; then
	echo 12 > /proc/sys/vm/nr_hugepages
	KINDS="$KINDS hugetlb thp udmabuf-huge"
else
	ktap_skip "huge pages" "this kernel has no huge pages"
fi
LOSSY=
pairings "clean link"
wire_netem v1 h1 loss 1% && wire_netem v2 h2 loss 1% || ktap_fail "netem"
LOSSY=1
pairings "1 % lost"
ktap_check "the fake GPU unloads when its memory is not registered" rmmod roan_fake_gpu roan_peermem
if display; then
	ktap_check "from user memory to a display's" pairing vram user
	ktap_check "from a display's memory to user memory" pairing user vram
	ktap_check "from a display's memory to another's" pairing vram vram
else
	ktap_skip "a display's memory" "no driver for one"
fi
ktap_end
