#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Runs unmodified RDMA programs between two hosts: UCX's and libfabric's own tests, fio, and an MPI program that checks its
# results. Each is configured to use roan only, not TCP or shared memory. The packet counters of the devices verify that.
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
. "$HERE/../verbs/pair.sh"
. "$HERE/mpi.sh"
WORK=$(mktemp -d)

# uct: a test of UCX's transport layer; ucp: a test of its protocol layer over a transport. With -d, the server of
# ucx_perftest uses the device that its client names, so both ends use the client's device. UCX_NET_DEVICES sets the
# device of one end.
uct() {	# TRANSPORT TEST [OPTION...]
	local tl=$1 t=$2
	shift 2
	over_roan 1000 both 250 13337 "ucx_perftest -d $ADEV:1 -x $tl -t $t -n 1000 -w 10 $*" \
		"ucx_perftest $AIP -d $BDEV:1 -x $tl -t $t -n 1000 -w 10 $*"
}

ucp() {	# TRANSPORT TEST [OPTION...]
	local tl=$1 t=$2
	shift 2
	over_roan 100 both 250 13337 "env UCX_NET_DEVICES=$ADEV:1 UCX_TLS=$tl,ud_verbs:aux,self ucx_perftest -t $t -n 200 -w 10 $*" \
		"env UCX_NET_DEVICES=$BDEV:1 UCX_TLS=$tl,ud_verbs:aux,self ucx_perftest $AIP -t $t -n 200 -w 10 $*"
}

fabric() {	# PROVIDER ENDPOINT DOMAIN-SUFFIX [OPTION...]
	local provider=$1 ep=$2 suffix=$3
	shift 3
	over_roan 100 both 250 47592 "fi_pingpong -p $provider -d $ADEV$suffix -e $ep -I 100 -c $*" \
		"fi_pingpong -p $provider -d $BDEV$suffix -e $ep -I 100 -c $* $AIP"
}

storage() {	# VERB
	local options="--ioengine=rdma --port=5000 --bs=64k --size=16m --iodepth=8"
	over_roan 4000 both 250 5000 "fio --name=server $options --rw=read" \
		"fio --name=client $options --hostname=$AIP --verb=$1 --rw=write"
}

have() { command -v "$1" > /dev/null; }

ktap_header
pair_up > "$WORK/setup" 2>&1 || { cat "$WORK/setup"; ktap_fail "set-up"; ktap_end; }

if have ucx_perftest; then
	for t in am_lat put_lat add_lat am_bw put_bw; do
		ktap_check "UCX rc_verbs $t" uct rc_verbs $t
	done
	ktap_check "UCX rc_verbs put_bw, 64 KiB, zero copy" uct rc_verbs put_bw -s 65536 -D zcopy
	ktap_check "UCX rc_verbs get, 64 KiB" uct rc_verbs get -s 65536 -D zcopy
	ktap_check "UCX rc_verbs fadd" uct rc_verbs fadd
	ktap_check "UCX rc_verbs cswap" uct rc_verbs cswap
	for t in am_lat am_bw; do
		ktap_check "UCX ud_verbs $t" uct ud_verbs $t
	done
	for x in rc_verbs ud_verbs; do
		ktap_check "UCX tag_lat over $x" ucp $x tag_lat
		ktap_check "UCX tag_bw over $x, 1 MiB" ucp $x tag_bw -s 1048576 -n 50
		ktap_check "UCX ucp_get over $x" ucp $x ucp_get -s 65536
	done
else
	ktap_skip "UCX" "ucx_perftest is not installed (ucx-utils)"
fi

if have fi_pingpong; then
	ktap_check "libfabric msg" fabric verbs msg ""
	ktap_check "libfabric msg, 64 KiB" fabric verbs msg "" -S 65536
	ktap_check "libfabric dgram" fabric verbs dgram -dgram -S 1024
	ktap_check "libfabric rdm over msg" fabric "verbs;ofi_rxm" rdm ""
	ktap_check "libfabric rdm over msg, 64 KiB" fabric "verbs;ofi_rxm" rdm "" -S 65536
else
	ktap_skip "libfabric" "fi_pingpong is not installed (libfabric-bin)"
fi

if have fio; then
	ktap_check "fio writes to the other host's memory" storage write
	ktap_check "fio reads from the other host's memory" storage read
else
	ktap_skip "fio" "it is not installed"
fi

if have mpirun && have mpicc; then
	ktap_check "MPI: set-up of hosts" mpi_hosts
	ktap_check "MPI: the program compiles" mpicc -O1 -Wall -o "$WORK/allreduce" "$HERE/allreduce.c"
	ktap_check "Open MPI over UCX rc_verbs, 2 ranks" mpi_run 1000 2 "$RC_OPTIONS" "$WORK/allreduce"
	ktap_check "Open MPI over UCX ud_verbs, 2 ranks" mpi_run 1000 2 "$UD_OPTIONS" "$WORK/allreduce"
	ktap_check "Open MPI over UCX rc_verbs, 4 ranks" mpi_run 1000 4 "$RC_OPTIONS" "$WORK/allreduce"
	if have mpirun.mpich && have mpicc.mpich; then
		ktap_check "MPICH: the program compiles" mpicc.mpich -O1 -Wall -o "$WORK/allreduce.mpich" "$HERE/allreduce.c"
		ktap_check "MPICH over UCX rc_verbs, 2 ranks" mpich_run 1000 2 "$WORK/allreduce.mpich"
		ktap_check "MPICH over UCX rc_verbs, 4 ranks" mpich_run 1000 4 "$WORK/allreduce.mpich"
	else
		ktap_skip "MPICH" "mpirun.mpich or mpicc.mpich is not installed (mpich, libmpich-dev)"
	fi
	mpi_hosts_down
else
	ktap_skip "Open MPI" "mpirun or mpicc is not installed (openmpi-bin, libopenmpi-dev)"
fi
rm -rf "$WORK"
ktap_end
