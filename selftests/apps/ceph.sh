#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Ceph with its messenger over RDMA (`async+rdma`): a monitor and an OSD on host h1, an OSD and the clients on h2.
# Objects are written, kept by both OSDs, read back and compared.
# The daemons' packages are unpacked in build/unpacked by tools/setup, or installed.
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
. "$HERE/../verbs/pair.sh"
WORK=$(mktemp -d)
UNPACKED=$REPO/build/unpacked
export PATH=$PATH:$UNPACKED/ceph-base/usr/bin:$UNPACKED/ceph-mon/usr/bin:$UNPACKED/ceph-osd/usr/bin
LIB=$UNPACKED/ceph-base/usr/lib/$(uname -m)-linux-gnu
[ -d "$LIB" ] || LIB=/usr/lib/$(uname -m)-linux-gnu
FSID=$(cat /proc/sys/kernel/random/uuid)
OSD_ID=("$(cat /proc/sys/kernel/random/uuid)" "$(cat /proc/sys/kernel/random/uuid)")
MB=8

# By default each process registers up to 4 GiB of receive buffers.
conf() { # DEVICE ADDRESS GID-INDEX
	cat <<- END
		[global]
		fsid = $FSID
		mon host = v2:$AIP:3300
		public addr = $2
		ms type = async+rdma
		ms async rdma device name = $1
		ms async rdma gid idx = $3
		ms async rdma buffer size = 16384
		ms async rdma send buffers = 256
		ms async rdma receive buffers = 4096
		auth cluster required = none
		auth service required = none
		auth client required = none
		osd objectstore = memstore
		osd class dir = $LIB/rados-classes
		erasure code dir = $LIB/ceph/erasure-code
		osd crush chooseleaf type = 0
		mon data = $WORK/mon
		osd data = $WORK/osd\$id
		run dir = $WORK
		admin socket =
		log file = $WORK/\$name.log
		mon cluster log file = $WORK/cluster.log
	END
}
on_a() { local program=$1; shift; a timeout 200 "$program" -c "$WORK/a.conf" "$@"; }
on_b() { local program=$1; shift; b timeout 200 "$program" -c "$WORK/b.conf" "$@"; }
daemon() { # A|B PROGRAM ID
	local -n end=$1
	"${end[@]}" timeout 900 "$2" -c "$WORK/${1,}.conf" -f -i "$3" > "$WORK/$2.$3" 2>&1 &
	echo $! > "$WORK/$2.$3.pid"
}
osds_up() { on_b ceph osd stat | grep '2 up'; }

# cluster [OPTIONS]: sets up and starts monitor and OSDs, with more lines in their configuration.
cluster() {
	conf "$ADEV" "$AIP" "$(gid_index "$ADEV" "$AIP" h1)" > "$WORK/a.conf"
	conf "$BDEV" "$BIP" "$(gid_index "$BDEV" "$BIP" h2)" > "$WORK/b.conf"
	echo "${1:-}" | tee -a "$WORK/a.conf" >> "$WORK/b.conf"
	rm -rf "$WORK"/{mon,osd0,osd1,monmap} && mkdir "$WORK"/{mon,osd0,osd1} &&
		monmaptool --create --fsid "$FSID" --addv a "[v2:$AIP:3300]" "$WORK/monmap" &&
		on_a ceph-mon -i a --mkfs --monmap "$WORK/monmap" || return
	daemon A ceph-mon a
	wait_for 60 listening 3300 && printf 'osd new %s\n' "${OSD_ID[@]}" | on_b ceph &&
		on_a ceph-osd -i 0 --mkfs --osd-uuid "${OSD_ID[0]}" && on_b ceph-osd -i 1 --mkfs --osd-uuid "${OSD_ID[1]}" || return
	daemon A ceph-osd 0
	daemon B ceph-osd 1
	wait_for 100 osds_up && printf 'osd pool create data 8\nosd pool set data size 2\n' | on_b ceph
}
cluster_down() {
	local file pids
	mapfile -t pids < <(cat "$WORK"/*.pid)
	kill "${pids[@]}"
	for file in "$WORK"/*.pid; do
		wait_for 60 ended "$file" && rm "$file" || return
	done
}
ended() { ! kill -0 "$(cat "$1")"; } # PID-FILE

# Three objects: the name of an object decides which OSD gets it first. h2 sends each at least once: as the client, or
# as the OSD that passes it on.
objects() {
	local sent n
	sent=$(bytes_sent "$BDEV")
	for n in 1 2 3; do
		on_b rados -p data put $n "$WORK/random" && on_b rados -p data get $n "$WORK/back" &&
			cmp "$WORK/random" "$WORK/back" || return
	done
	sent=$(($(bytes_sent "$BDEV") - sent))
	echo "h2 sent $sent bytes"
	[ $sent -ge $((n * (MB << 20))) ]
}
# rados compares what it reads with what it wrote.
bench() { on_b rados -p data bench 5 write -b 65536 --no-cleanup && on_b rados -p data bench 5 seq; }

tests() { # NAME [OPTION]
	ktap_check "$1: monitor and OSDs start, and a pool is created" cluster "${2:-}" ||
		{ tail -n 20 "$WORK"/ceph-*[a0-9]; return; }
	ktap_check "$1: objects are stored twice and read back unchanged" objects
	ktap_check "$1: rados bench, 64 KiB" bench
}

ktap_header
command -v ceph-mon > /dev/null && command -v ceph-osd > /dev/null && command -v ceph > /dev/null ||
	{ ktap_skip "Ceph" "there is no ceph-mon, ceph-osd or ceph (ceph-common)"; ktap_end; }
ulimit -l unlimited
{ pair_up && head -c ${MB}M /dev/urandom > "$WORK/random"; } > "$WORK/setup" 2>&1 ||
	{ cat "$WORK/setup"; ktap_fail "set-up"; ktap_end; }
# Each QP has a short receive queue: senders often wait for a receive.
tests "Ceph, no SRQ" "ms async rdma support srq = false
ms async rdma receive queue len = 64"
wire loss 1% || ktap_fail "netem"
ktap_check "Ceph, no SRQ, 1 % of packets lost: objects are stored twice and read back unchanged" objects
wire rate 10gbit || ktap_fail "netem"
ktap_check "Ceph, no SRQ: monitor and OSDs stop" cluster_down
# What Ceph calls iwarp connects by rdma_cm, without retries for a receive that is late (rnr_retry_count is 0): the SRQ
# has room for all send buffers of all processes.
tests "Ceph, rdma_cm, SRQ" "ms async rdma cm = true
ms async rdma type = iwarp
ms async rdma receive queue len = 2048"
ktap_check "Ceph, rdma_cm, SRQ: monitor and OSDs stop" cluster_down
ktap_check "nothing is left" wait_for 60 nothing_left
rm -rf "$WORK"
ktap_end
