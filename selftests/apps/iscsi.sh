#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# iSER between two programs: tgtd on host h1 exports a file, QEMU's iSCSI driver on h2, which is libiscsi, writes and
# reads it. scsi.sh tests the kernel's iSER. tgt is unpacked in build/unpacked by tools/setup, or installed.
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
. "$HERE/../verbs/pair.sh"
. "$HERE/mpi.sh"	# over_roan
WORK=$(mktemp -d)
PATH=$PATH:$REPO/build/unpacked/tgt/usr/sbin
IQN=iqn.2026-01.org.roan:test
INITIATOR=iqn.2026-01.org.roan:h2
MB=${MB:-8}
PIECE=262144	# larger requests fail in libiscsi 1.19, over any device

admin() { a tgtadm --lld iser "$@"; }
target() {
	truncate -s ${MB}M "$WORK/disk"
	"${A[@]}" tgtd -f --iser pool_sz_mb=128 > "$WORK/tgtd" 2>&1 &
	echo $! > "$WORK/pid"
	# tgtd refuses an iSER initiator that is not bound by its name too.
	wait_for 60 admin --mode sys --op show && admin --mode target --op new --tid 1 -T $IQN &&
		admin --mode logicalunit --op new --tid 1 --lun 1 -b "$WORK/disk" &&
		admin --mode target --op bind --tid 1 -I ALL && admin --mode target --op bind --tid 1 -Q $INITIATOR
}
target_down() { kill -9 "$(cat "$WORK/pid")" && wait_for 60 gone; } # it ignores SIGTERM
gone() { ! kill -0 "$(cat "$WORK/pid")"; }

disk() { # ADDRESS
	echo "driver=iscsi,transport=iser,portal=$(bracketed "$1"):3260,target=$IQN,lun=1,initiator-name=$INITIATOR"
}
write_read_compare() { # ADDRESS
	local n=0 file commands=()
	rm -f "$WORK"/piece.* "$WORK/back"
	head -c ${MB}M /dev/urandom > "$WORK/random" && split -b $PIECE "$WORK/random" "$WORK/piece." || return
	for file in "$WORK"/piece.*; do
		commands+=(-c "write -s $file $n $PIECE")
		n=$((n + PIECE))
	done
	b timeout 200 qemu-io --image-opts "$(disk "$1")" "${commands[@]}" && cmp "$WORK/random" "$WORK/disk" &&
		b timeout 200 qemu-img dd --image-opts -O raw bs=$PIECE if="$(disk "$1")" of="$WORK/back" &&
		cmp "$WORK/random" "$WORK/back"
}

ktap_header
command -v tgtd > /dev/null || { ktap_skip "iSER" "there is no tgtd (tgt)"; ktap_end; }
command -v qemu-io > /dev/null && ls /usr/lib/*/qemu/block-iscsi.so > /dev/null 2>&1 ||
	{ ktap_skip "iSER" "qemu-io or its iSCSI driver is not installed (qemu-utils, qemu-block-extra)"; ktap_end; }
ulimit -l unlimited
pair_up > "$WORK/setup" 2>&1 || { cat "$WORK/setup"; ktap_fail "set-up"; ktap_end; }
ktap_check "tgtd exports a disk by iSER" target
# Each MiB is sent once each way.
for address in "$AIP" "$AIP6"; do
	ktap_check "QEMU writes the disk and reads it back, $address" \
		over_roan $((MB * 500)) write_read_compare "$address"
done
wire loss 1% || ktap_fail "netem"
ktap_check "QEMU writes the disk and reads it back, 1 % of packets lost" \
	over_roan $((MB * 500)) write_read_compare "$AIP"
ktap_check "tgtd is killed" target_down
ktap_check "nothing is left" nothing_left
rm -rf "$WORK"
ktap_end
