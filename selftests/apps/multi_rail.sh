#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Middleware over two devices of a host at once: UCX splits messages over both ("rails"), Gloo runs collectives over
# each. Results are compared, and both rails must have carried about the same number of bytes.
#
#	h1: roan1 on v1 ====10.7.0.0/24==== v2, roan2 :h2
#	h1: roan3 on x1 ====10.8.0.0/24==== x2, roan4 :h2
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
. "$HERE/../verbs/pair.sh"
. "$HERE/mpi.sh"
WORK=$(mktemp -d)
RAIL_A=roan3 RAIL_B=roan4

second_rail() {
	local n
	ip link add x1 netns h1 mtu 4200 type veth peer name x2 netns h2 mtu 4200 || return
	for n in 1 2; do
		on h$n ip addr add 10.8.0.$n/24 dev x$n && on h$n ip link set x$n up || return
	done
	wait_for 60 on h1 ping -c1 -W1 10.8.0.2 && link_add $RAIL_A x1 h1 && link_add $RAIL_B x2 h2
}

bytes() { echo $(($(counter "$1" sent_bytes) + $(counter "$2" sent_bytes))); }	# DEV DEV

# both_rails BYTES COMMAND...: passes if the command succeeds, BYTES at least were sent, and the less used rail has at
# least two thirds of the other's.
both_rails() {
	local least=$1 first second
	shift
	first=$(bytes "$ADEV" "$BDEV") second=$(bytes $RAIL_A $RAIL_B)
	"$@" || return
	first=$(($(bytes "$ADEV" "$BDEV") - first)) second=$(($(bytes $RAIL_A $RAIL_B) - second))
	echo "# $NAME: $first and $second bytes" >> "$WORK/figures"
	[ $((first + second)) -ge "$least" ] && [ $((3 * first)) -ge $((2 * second)) ] && [ $((3 * second)) -ge $((2 * first)) ] ||
		{ echo "sent $first and $second bytes"; return 1; }
}
t() { NAME=$1; ktap_check "$@"; }

# UCX splits a message over the devices of UCX_NET_DEVICES. Each rail is a subnet of its own, and ROCE_LOCAL_SUBNET keeps
# UCX from connecting devices of different rails.
UCX_DEVICES_H1=$H1DEV:1,$RAIL_A:1 UCX_DEVICES_H2=$H2DEV:1,$RAIL_B:1
RAILS="UCX_TLS=rc_verbs,ud_verbs:aux,self UCX_MAX_RNDV_RAILS=2 UCX_IB_ROCE_LOCAL_SUBNET=y"
ucp() { # TEST SCHEME
	local options="$RAILS UCX_RNDV_SCHEME=$2" test="-t $1 -s 1048576 -n 50 -w 5"
	both 250 13337 "env UCX_NET_DEVICES=$UCX_DEVICES_H1 $options ucx_perftest $test" \
		"env UCX_NET_DEVICES=$UCX_DEVICES_H2 $options ucx_perftest $AIP $test"
}
mpi() { # RANKS
	local w options="--mca pml ucx"
	for w in $RAILS; do options="$options -x $w"; done
	mpi_run 1000 "$1" "$options" "$WORK/allreduce"
}

gloo() { # RANKS
	local n h pids=() rc=0 store dev=(- "$ADEV" "$BDEV") rail=(- roan3 roan4)
	store=$(mktemp -d "$WORK/store.XXXX")
	for ((n = 0; n < $1; n++)); do
		h=$((1 + n % 2))
		on h$h timeout -k 1 200 "$WORK/gloo" "$store" $n "$1" "${dev[h]}" "$(gid_index "${dev[h]}" 10.7.0.$h h$h)" \
			"${rail[h]}" "$(gid_index "${rail[h]}" 10.8.0.$h h$h)" > "$WORK/gloo.$n" 2>&1 &
		pids+=($!)
	done
	for n in "${!pids[@]}"; do
		wait "${pids[n]}" || { rc=$?; echo "rank $n: status $rc"; }
	done
	cat "$WORK"/gloo.[0-9]
	return $rc
}

have() { command -v "$1" > /dev/null; }

ktap_header
[ "$LINK_TYPE" = roan ] || { ktap_skip "two rails" "namespaces need roan"; ktap_end; }
{ pair_up && second_rail; } > "$WORK/setup" 2>&1 || { cat "$WORK/setup"; ktap_fail "set-up"; ktap_end; }
if have ucx_perftest; then
	t "UCX: tag_bw of 1 MiB, written to the receiver" both_rails 40000000 ucp tag_bw put_zcopy
	t "UCX: tag_bw of 1 MiB, read by the receiver" both_rails 40000000 ucp tag_bw get_zcopy
else
	ktap_skip "UCX" "ucx_perftest is not installed (ucx-utils)"
fi
if have mpirun && have mpicc; then
	ktap_check "MPI: set-up of hosts" mpi_hosts
	ktap_check "MPI: the program compiles" mpicc -O1 -Wall -o "$WORK/allreduce" "$HERE/allreduce.c"
	for n in 2 4; do
		t "Open MPI: allreduce, alltoall, broadcast, compared, $n ranks" both_rails $((4000000 * n)) mpi $n
	done
	mpi_hosts_down
else
	ktap_skip "Open MPI" "mpirun or mpicc is not installed (openmpi-bin, libopenmpi-dev)"
fi
if [ -e /usr/include/gloo/transport/ibverbs/device.h ] && have g++; then
	ktap_check "Gloo: the program compiles" g++ -O1 -o "$WORK/gloo" "$HERE/gloo.cc" -lgloo
	for n in 2 4; do
		t "Gloo: allreduce in four ways, broadcast, allgather, compared, $n ranks" both_rails 30000000 gloo $n
	done
else
	ktap_skip "Gloo" "not installed: libgloo-dev g++"
fi
cat "$WORK/figures" 2> /dev/null
rm -rf "$WORK"
ktap_end
