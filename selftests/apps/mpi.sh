#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Sourced after lib.sh and pair.sh by the scripts of this folder: MPI programs on the two hosts, over roan only, which the
# packet counters of the devices verify. WORK is a folder of the script. Has no verdict of its own.

# over_roan PACKETS COMMAND...: passes if the command succeeds and roan sends at least PACKETS packets meanwhile
over_roan() {
	local least=$1 before=0 rc
	before=$(total sent_pkts)
	shift
	"$@"
	rc=$?
	[ $rc = 0 ] || return $rc
	[ $(($(total sent_pkts) - before)) -ge "$least" ] || { echo "roan sent $(($(total sent_pkts) - before)) packets, expected at least $least"; return 1; }
}

# Sets up two MPI hosts: mpirun starts processes by a script in place of rsh, which enters the namespace of the host and
# sets its hostname, and the device for UCX and libfabric. libibverbs lists the devices of all namespaces, so they could
# take the other host's.
UCX_DEVICES_H1=$H1DEV:1 UCX_DEVICES_H2=$H2DEV:1
mpi_hosts() {
	printf '127.0.0.1 localhost\n%s h1\n%s h2\n' "$H1IP" "$H2IP" > "$WORK/hosts"
	mount --bind "$WORK/hosts" /etc/hosts || return
	cat > "$WORK/rsh" <<- END
		#!/bin/sh
		# rsh HOST COMMAND...
		host=\$1
		shift
		case \$host in
		h1) export UCX_NET_DEVICES=$UCX_DEVICES_H1 FI_VERBS_DEVICE_NAME=$H1DEV FI_VERBS_IFACE=v1 ;;
		h2) export UCX_NET_DEVICES=$UCX_DEVICES_H2 FI_VERBS_DEVICE_NAME=$H2DEV FI_VERBS_IFACE=v2 ;;
		esac
		exec ip netns exec "\$host" unshare --uts sh -c "hostname \$host; \$*"
	END
	chmod +x "$WORK/rsh"
}
mpi_hosts_down() { umount /etc/hosts; }

# mpi_run PACKETS RANKS [OPTION...] PROGRAM [ARGUMENT...]: half of the ranks on each host; over_roan. MPIRUN: in place of
# mpirun.
mpi_run() {
	local least=$1 ranks=$2
	shift 2
	over_roan "$least" "$WORK/rsh" h1 "exec timeout 400 ${MPIRUN:-mpirun} --allow-run-as-root \
		--mca plm_rsh_agent $WORK/rsh --mca oob_tcp_if_include v1,v2 --oversubscribe --bind-to none \
		--mca mpi_yield_when_idle 1 --host h1:$((ranks / 2)),h2:$((ranks / 2)) -np $ranks $*" < /dev/null
}

# mpich_run PACKETS RANKS PROGRAM: the same by MPICH, over UCX's rc_verbs. Without -genvlist all ranks would get h1's
# UCX_NET_DEVICES.
mpich_run() {
	over_roan "$1" "$WORK/rsh" h1 "export UCX_TLS=rc_verbs,ud_verbs:aux,self; exec timeout 400 mpirun.mpich \
		-launcher rsh -launcher-exec $WORK/rsh -genvlist UCX_TLS -hosts h1:$(($2 / 2)),h2:$(($2 / 2)) -np $2 $3" < /dev/null
}

# Options of mpirun for UCX's two transports, and for libfabric
export RC_OPTIONS="--mca pml ucx -x UCX_TLS=rc_verbs,ud_verbs:aux,self"
export UD_OPTIONS="--mca pml ucx -x UCX_TLS=ud_verbs,self"
export OFI_OPTIONS="--mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include verbs"
# Options of oshrun. Open MPI 4.1.4 hooks into free(), and its hook calls a component that it has unloaded: without the
# first option a program crashes when it ends, over TCP too.
export SHMEM_OPTIONS="--mca memory ^patcher --mca spml ucx $RC_OPTIONS"
