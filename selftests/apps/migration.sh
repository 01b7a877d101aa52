#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Live migration of a virtual machine over RDMA (QEMU's `migrate rdma:...`), from host h2 to h1. The machine's memory is
# filled with random bytes and compared with what arrives. One case deletes the target's device meanwhile.
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
. "$HERE/../verbs/pair.sh"
WORK=$(mktemp -d)
MEMORY=$((64 << 20))
FIRST=$((1 << 20))	# address of the random bytes

machine() { # NAME [OPTION...]
	local name=$1
	shift
	qemu-system-x86_64 -M pc -accel tcg -nodefaults -m $((MEMORY >> 20)) -display none -S \
		-qmp "unix:$WORK/$name,server,nowait" -daemonize -pidfile "$WORK/$name.pid" "$@"
}
export -f machine
export WORK MEMORY
stop() {
	local name
	for name in source target; do
		kill -9 "$(cat "$WORK/$name.pid" 2> /dev/null)" 2> /dev/null
		rm -f "$WORK/$name" "$WORK/$name.pid"
	done
	return 0
}

# migrate [CAPABILITY...]: starts both machines and migrates.
migrate() {
	a bash -c "machine target -incoming defer" &&
		b bash -c "machine source -device loader,file=$WORK/random,addr=$FIRST,force-raw=on" &&
		timeout 250 python3 "$HERE/migrate.py" "$WORK/source" "$WORK/target" "rdma:$AIP:4444" $MEMORY "$WORK/memory" "$@"
}

# compared [CAPABILITY...]: passes if the memory arrived unchanged, by roan.
compared() {
	local sent rc=0
	rm -f "$WORK/memory"
	sent=$(bytes_sent "$BDEV")
	migrate "$@" || rc=1
	stop
	[ $rc = 0 ] && cmp -n $((MEMORY - FIRST)) "$WORK/random" <(tail -c +$((FIRST + 1)) "$WORK/memory") &&
		[ $(($(bytes_sent "$BDEV") - sent)) -ge $((MEMORY - FIRST)) ]
}

# cut: the target's device is deleted when 8 MB have left. The source reports that and keeps its machine.
cut() {
	local sent pid rc=0
	sent=$(bytes_sent "$BDEV")
	migrate > "$WORK/out" 2>&1 &
	pid=$!
	wait_for 100 sent_since "$sent" 8000000 && rdma link del "$ADEV" || rc=1
	wait $pid && rc=1
	cat "$WORK/out"
	stop
	link_add "$ADEV" v1 h1 && [ $rc = 0 ] && grep -q '"status": "failed"' "$WORK/out" && grep -q "the source is" "$WORK/out"
}
sent_since() { [ $(($(bytes_sent "$BDEV") - $1)) -ge "$2" ]; } # BEFORE BYTES

ktap_header
command -v qemu-system-x86_64 > /dev/null || { ktap_skip "migration" "qemu-system-x86_64 is not installed"; ktap_end; }
{ pair_up && head -c $((MEMORY - FIRST)) /dev/urandom > "$WORK/random"; } > "$WORK/setup" 2>&1 ||
	{ cat "$WORK/setup"; ktap_fail "set-up"; ktap_end; }
ktap_check "QEMU migrates a machine, memory registered in pieces" compared
ktap_check "QEMU migrates a machine, all memory registered" compared rdma-pin-all
wire loss 1% || ktap_fail "netem"
ktap_check "QEMU migrates a machine, 1 % of packets lost" compared
wire rate 100mbit || ktap_fail "netem"
ktap_check "the target's device is deleted: QEMU reports that" cut
wire rate 10gbit || ktap_fail "netem"
ktap_check "QEMU migrates a machine once more" compared
rm -rf "$WORK"
ktap_end
