#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Runs unmodified RDMA programs between two hosts: UCX's, libfabric's and uDAPL's own tests, fio, netcat over rsockets, and
# programs of MPI, OpenSHMEM and librpma that check their results. Each is configured to use roan only, not TCP or shared
# memory. The packet counters of the devices verify that.
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
. "$HERE/../verbs/pair.sh"
. "$HERE/mpi.sh"
WORK=$(mktemp -d)

# Linked with MPI, ucx_perftest takes mpirun's processes for its ends, unless -P 0 is given; else it has no such option.
UCX_PERFTEST=ucx_perftest
[[ $(ldd /usr/bin/ucx_perftest 2>&1) != *libmpi* ]] || UCX_PERFTEST="ucx_perftest -P 0"

# uct: a test of UCX's transport layer; ucp: a test of its protocol layer over a transport. With -d, the server of
# ucx_perftest uses the device that its client names, so both ends use the client's device. UCX_NET_DEVICES sets the
# device of one end.
uct() {	# TRANSPORT TEST [OPTION...]
	local tl=$1 t=$2
	shift 2
	over_roan 1000 both 250 13337 "$UCX_PERFTEST -d $ADEV:1 -x $tl -t $t -n 1000 -w 10 $*" \
		"$UCX_PERFTEST $AIP -d $BDEV:1 -x $tl -t $t -n 1000 -w 10 $*"
}

ucp() {	# TRANSPORT TEST [OPTION...]
	local tl=$1 t=$2
	shift 2
	over_roan 100 both 250 13337 "env UCX_NET_DEVICES=$ADEV:1 UCX_TLS=$tl,ud_verbs:aux,self $UCX_PERFTEST -t $t -n 200 -w 10 $*" \
		"env UCX_NET_DEVICES=$BDEV:1 UCX_TLS=$tl,ud_verbs:aux,self $UCX_PERFTEST $AIP -t $t -n 200 -w 10 $*"
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

# served PORT "SERVER COMMAND" "CLIENT COMMAND": of a server that runs until it is killed
served() {
	local pid rc_a rc_b
	# shellcheck disable=SC2086 # commands are word lists
	"${A[@]}" $2 > $OUT_A 2>&1 &
	pid=$!
	wait_for 60 listening_or_gone "$1" $pid
	# shellcheck disable=SC2086
	b timeout 200 $3 > $OUT_B 2>&1
	rc_b=$?
	kill $pid
	wait $pid
	rc_a=$?
	[ $rc_a = 143 ] && [ $rc_b = 0 ] && return	# 143: by kill
	echo "server: status $rc_a"; tail -n 12 $OUT_A
	echo "client: status $rc_b"; tail -n 12 $OUT_B
	return 1
}
# Server and client compare what they get (-q), and abort if it is wrong.
io_demo_() { # [OPTION...]
	local command="io_demo -q -p 1337 -d 4096:262144 $*" tls=UCX_TLS=rc_verbs,ud_verbs:aux,self
	over_roan 4000 served 1337 "env UCX_NET_DEVICES=$ADEV:1 $tls $command" \
		"env UCX_NET_DEVICES=$BDEV:1 $tls $command -o read,write -i 500 -l 100 $AIP"
}

# dtest exchanges addresses over TCP. dapltest's server listens in rdma_cm, until a client stops it (-T Q).
dapl() { # TEST PORT
	over_roan 10 both 100 "$2" "env DAT_OVERRIDE=$WORK/h1.conf $1 -P roan" "env DAT_OVERRIDE=$WORK/h2.conf $1 -P roan -h $AIP"
}
transactions() {
	export DAT_OVERRIDE=$WORK/h2.conf
	dapltest -T T -s "$AIP" -D roan -i 100 -t 2 -w 2 -V client RW 65536 server RR 65536 \
		client SR 1024 2 server SR 1024 2 && dapltest -T Q -s "$AIP" -D roan
}
# librspreload puts rsockets in place of a program's TCP sockets: WRITEs with immediate data.
RSOCKETS=/usr/lib/$(uname -m)-linux-gnu/rsocket/librspreload.so
receive() { LD_PRELOAD=$RSOCKETS nc.traditional -l -p 5001 > "$WORK/received"; }
send() { LD_PRELOAD=$RSOCKETS nc.traditional -q 1 "$AIP" 5001 < "$WORK/sent"; }
netcat() {
	head -c 4M /dev/urandom > "$WORK/sent"
	over_roan 1000 both 100 5001 "bash -c receive" "bash -c send" && cmp "$WORK/sent" "$WORK/received"
}
export -f transactions receive send
export WORK RSOCKETS

have() { command -v "$1" > /dev/null; }

ktap_header
pair_up > "$WORK/setup" 2>&1 || { cat "$WORK/setup"; ktap_fail "set-up"; ktap_end; }
export AIP

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
	ktap_check "UCX io_demo" io_demo_
	ktap_check "UCX io_demo, active messages" io_demo_ -A
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

if have dapltest; then
	for n in 1 2; do
		echo "roan u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 \"v$n 0\" \"\"" > "$WORK/h$n.conf"
	done
	ktap_check "uDAPL dtest" dapl dtest 15828
	ktap_check "uDAPL dtestx" dapl dtestx 15828
	ktap_check "uDAPL dtestsrq" dapl dtestsrq 45248
	ktap_check "uDAPL dapltest, compared" \
		over_roan 10000 both 200 62000 "env DAT_OVERRIDE=$WORK/h1.conf dapltest -T S -D roan" "bash -c transactions"
else
	ktap_skip "uDAPL" "dapltest is not installed (dapl2-utils)"
fi

if [ -e /usr/include/librpma.h ] && have gcc; then
	ktap_check "librpma: the program compiles" gcc -O1 -Wall -o "$WORK/rpma" "$HERE/rpma.c" -lrpma -libverbs
	for address in "$AIP" "$AIP6"; do
		ktap_check "librpma: write, flush, read, compared, $address" \
			over_roan 2000 both 100 7474 "$WORK/rpma $address" "$WORK/rpma $address client"
	done
else
	ktap_skip "librpma" "not installed: librpma-dev gcc"
fi

if have nc.traditional && [ -e "$RSOCKETS" ]; then
	ktap_check "netcat over rsockets" netcat
else
	ktap_skip "rsockets" "nc.traditional or $RSOCKETS is not installed (netcat-traditional, librdmacm1)"
fi

if have mpirun && have mpicc; then
	ktap_check "MPI: set-up of hosts" mpi_hosts
	ktap_check "MPI: the program compiles" mpicc -O1 -Wall -o "$WORK/allreduce" "$HERE/allreduce.c"
	ktap_check "Open MPI over UCX rc_verbs, 2 ranks" mpi_run 1000 2 "$RC_OPTIONS" "$WORK/allreduce"
	ktap_check "Open MPI over UCX ud_verbs, 2 ranks" mpi_run 1000 2 "$UD_OPTIONS" "$WORK/allreduce"
	ktap_check "Open MPI over UCX rc_verbs, 4 ranks" mpi_run 1000 4 "$RC_OPTIONS" "$WORK/allreduce"
	ktap_check "Open MPI over libfabric, 2 ranks" mpi_run 1000 2 "$OFI_OPTIONS" "$WORK/allreduce"
	ktap_check "Open MPI over libfabric, 4 ranks" mpi_run 1000 4 "$OFI_OPTIONS" "$WORK/allreduce"
	if have mpirun.mpich && have mpicc.mpich; then
		ktap_check "MPICH: the program compiles" mpicc.mpich -O1 -Wall -o "$WORK/allreduce.mpich" "$HERE/allreduce.c"
		ktap_check "MPICH over UCX rc_verbs, 2 ranks" mpich_run 1000 2 "$WORK/allreduce.mpich"
		ktap_check "MPICH over UCX rc_verbs, 4 ranks" mpich_run 1000 4 "$WORK/allreduce.mpich"
	else
		ktap_skip "MPICH" "mpirun.mpich or mpicc.mpich is not installed (mpich, libmpich-dev)"
	fi
	ktap_check "OpenSHMEM: the program compiles" oshcc -O1 -Wall -o "$WORK/shmem" "$HERE/shmem.c"
	MPIRUN=oshrun ktap_check "OpenSHMEM over UCX rc_verbs, 2 PEs" mpi_run 1000 2 "$SHMEM_OPTIONS" "$WORK/shmem"
	MPIRUN=oshrun ktap_check "OpenSHMEM over UCX rc_verbs, 4 PEs" mpi_run 1000 4 "$SHMEM_OPTIONS" "$WORK/shmem"
	mpi_hosts_down
else
	ktap_skip "Open MPI" "mpirun or mpicc is not installed (openmpi-bin, libopenmpi-dev)"
fi
rm -rf "$WORK"
ktap_end
