#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The kernel's NVMe over RDMA by roan and by rdma_rxe, in turn in one boot: I/Os a second by fio, and their ratio. Runs in a
# guest: selftests/vm/run.sh uml selftests/bench/nvme.sh. No verdict.
#	ROUNDS=3  SECONDS_EACH=3
#
#	fio -- /dev/nvme0n1 -- nvme-rdma == v1, one device for both ends == nvmet-rdma -- loop -- a file in memory
#
# As kernel developers test: both ends in the first namespace, at one address. roan's packets cross the IP stack and lo,
# those of rdma_rxe to its own device do not.
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
ROUNDS=${ROUNDS:-3} SECONDS_EACH=${SECONDS_EACH:-3}
NQN=nqn.2026-01.org.roan:bench CFG=/sys/kernel/config/nvmet ADDRESS=$H1IP DEV=d0
TESTS='randread 4k 1
randread 4k 32
randwrite 4k 32
randread 128k 8
randwrite 128k 8'

target_up() { # DISK
	local s=$CFG/subsystems/$NQN p=$CFG/ports/1
	mkdir -p "$s" && echo 1 > "$s/attr_allow_any_host" && mkdir -p "$s/namespaces/1" && echo -n "$1" > "$s/namespaces/1/device_path" &&
		echo 1 > "$s/namespaces/1/enable" && mkdir -p $p && echo $ADDRESS > $p/addr_traddr && echo rdma > $p/addr_trtype &&
		echo 4420 > $p/addr_trsvcid && echo ipv4 > $p/addr_adrfam && ln -s "$s" "$p/subsystems/$NQN"
}
target_down() {
	rm $CFG/ports/1/subsystems/$NQN && rmdir $CFG/ports/1 && echo 0 > $CFG/subsystems/$NQN/namespaces/1/enable &&
		rmdir $CFG/subsystems/$NQN/namespaces/1 $CFG/subsystems/$NQN
}
disk() { find /dev -name 'nvme*n1' | head -n 1; }
have_disk() { [ -n "$(disk)" ]; }

measure() { # STACK ROUND: a line for each test
	local rw bs depth
	while read -r rw bs depth; do
		echo "$rw $bs $depth $1 $2 $(fio --name=x --filename="$(disk)" --rw="$rw" --bs="$bs" --iodepth="$depth" --direct=1 --ioengine=libaio \
			--size=16M --time_based --runtime="$SECONDS_EACH" --thread --output-format=terse | awk -F';' '{ print $8 + $49 }')"
	done <<< "$TESTS"
}

one() { # STACK ROUND. Up to Linux 6.12 rdma_rxe holds UDP port 4791 while it is loaded.
	if [ "$1" = roan ]; then load_modules; else modprobe rdma_rxe; fi && rdma link add $DEV type "$1" netdev v1 &&
		wait_for 60 gid_index $DEV $ADDRESS && target_up "$LOOP" && nvme connect -k 120 -t rdma -n $NQN -a $ADDRESS -s 4420 -i 1 > /dev/null &&
		wait_for 60 have_disk && measure "$1" "$2" >> /tmp/values && nvme disconnect -n $NQN > /dev/null && target_down &&
		rdma link del $DEV && if [ "$1" = roan ]; then rmmod roan; else rmmod rdma_rxe; fi
}

modprobe -a nvmet-rdma nvme-rdma loop && command -v fio nvme > /dev/null || exit 4
mount -t configfs c /sys/kernel/config 2> /dev/null
dd if=/dev/zero of=/tmp/disk bs=1M count=16 2> /dev/null && LOOP=$(losetup -f --show /tmp/disk) && ip netns add peer &&
	ip link add v1 mtu 4200 type veth peer name v2 netns peer mtu 4200 && ip addr add $ADDRESS/24 dev v1 && ip link set v1 up &&
	ip -n peer link set v2 up || exit 1
for ((n = 1; n <= ROUNDS; n++)); do
	one roan $n && one rxe $n || exit 1
done
sort -s -k1,3 /tmp/values | awk '
function median(v, n,    i, j, t) {
	for (i = 1; i < n; i++) for (j = i + 1; j <= n; j++) if (v[j] < v[i]) { t = v[i]; v[i] = v[j]; v[j] = t }
	return v[int((n + 1) / 2)]
}
{ test = $1 ", " $2 ", depth " $3; if (!seen[test]++) order[++tests] = test; value[test, $4, $5] = $6; if ($5 > rounds) rounds = $5 }
END {
	print "| I/Os a second, median of " rounds " rounds | roan | rdma_rxe | roan : rdma_rxe |\n|---|---|---|---|"
	for (i = 1; i <= tests; i++) {
		for (r = 1; r <= rounds; r++) {
			a[r] = value[order[i], "roan", r]; b[r] = value[order[i], "rxe", r]; q[r] = b[r] ? a[r] / b[r] : 0
		}
		printf "| %s | %d | %d | %.2f |\n", order[i], median(a, rounds), median(b, rounds), median(q, rounds)
	}
}'
