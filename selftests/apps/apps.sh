#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Runs unmodified RDMA middleware between two hosts: UCX's and libfabric's own tests, and an MPI program that checks its
# results. Each is configured to use roan only, not TCP or shared memory. The packet counters of the devices verify that.
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
. "$HERE/../verbs/pair.sh"
WORK=$(mktemp -d)

sent() { echo $(($(counter "$ADEV" sent_pkts) + $(counter "$BDEV" sent_pkts))); }

# over_roan PACKETS COMMAND...: passes if the command succeeds and roan sends at least PACKETS packets meanwhile
over_roan() {
	local least=$1 before=0 rc
	before=$(sent)
	shift
	"$@"
	rc=$?
	[ $rc = 0 ] || return $rc
	[ $(($(sent) - before)) -ge "$least" ] || { echo "roan sent $(($(sent) - before)) packets, expected at least $least"; return 1; }
}

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

fabric() {	# ENDPOINT DOMAIN-SUFFIX [OPTION...]
	local ep=$1 suffix=$2
	shift 2
	over_roan 100 both 250 47592 "fi_pingpong -p verbs -d $ADEV$suffix -e $ep -I 100 -c $*" \
		"fi_pingpong -p verbs -d $BDEV$suffix -e $ep -I 100 -c $* $AIP"
}

# Sets up two MPI hosts: mpirun starts processes by a script in place of rsh, which enters the namespace of the host and
# sets its hostname.
mpi_hosts() {
	printf '127.0.0.1 localhost\n%s h1\n%s h2\n' "$H1IP" "$H2IP" > "$WORK/hosts"
	mount --bind "$WORK/hosts" /etc/hosts || return
	cat > "$WORK/rsh" <<- 'END'
		#!/bin/sh
		# rsh HOST COMMAND...
		host=$1
		shift
		exec ip netns exec "$host" unshare --uts sh -c "hostname $host; $*"
	END
	chmod +x "$WORK/rsh"
	mpicc -O1 -Wall -o "$WORK/allreduce" "$HERE/allreduce.c"
}

mpi() {	# RANKS [OPTION...]
	local ranks=$1
	shift
	over_roan 1000 ip netns exec h1 unshare --uts sh -c "hostname h1; exec timeout 400 mpirun --allow-run-as-root \
		--mca plm_rsh_agent $WORK/rsh --mca oob_tcp_if_include v1,v2 --oversubscribe --bind-to none \
		--mca mpi_yield_when_idle 1 --host h1:$((ranks / 2)),h2:$((ranks / 2)) -np $ranks $* $WORK/allreduce" < /dev/null
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
	ktap_check "libfabric msg" fabric msg ""
	ktap_check "libfabric msg, 64 KiB" fabric msg "" -S 65536
	ktap_check "libfabric dgram" fabric dgram -dgram -S 1024
else
	ktap_skip "libfabric" "fi_pingpong is not installed (libfabric-bin)"
fi

if have mpirun && have mpicc; then
	ktap_check "MPI: set-up of hosts and program" mpi_hosts
	ktap_check "Open MPI over UCX rc_verbs, 2 ranks" mpi 2 --mca pml ucx -x UCX_TLS=rc_verbs,ud_verbs:aux,self -x UCX_NET_DEVICES=roan1:1,roan2:1
	ktap_check "Open MPI over UCX ud_verbs, 2 ranks" mpi 2 --mca pml ucx -x UCX_TLS=ud_verbs,self -x UCX_NET_DEVICES=roan1:1,roan2:1
	ktap_check "Open MPI over UCX rc_verbs, 4 ranks" mpi 4 --mca pml ucx -x UCX_TLS=rc_verbs,ud_verbs:aux,self -x UCX_NET_DEVICES=roan1:1,roan2:1
	umount /etc/hosts
else
	ktap_skip "Open MPI" "mpirun or mpicc is not installed (openmpi-bin, libopenmpi-dev)"
fi
rm -rf "$WORK"
ktap_end
