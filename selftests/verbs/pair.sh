#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Sourced by the scripts of verbs/, net/ and interop/ after lib.sh: two ends to run programs on, for any LINK_TYPE.
# It has no verdict of its own.
#
#	roan:	end A in namespace h1, end B in h2, a veth between them (lib.sh draws it)
#	rxe:	both ends on one device in the first namespace, the only one it has:  rxe1 on v1 =veth= v2
#
# pair_up [MTU] sets ADEV BDEV AIP BIP AIP6 BIP6; a COMMAND and b COMMAND run at an end; both and stress: see below.

# shellcheck disable=SC2034 # read by the scripts that source this
pair_up() {
	ADEV=$H1DEV BDEV=$H2DEV AIP=$H1IP BIP=$H2IP AIP6=$H1IP6 BIP6=$H2IP6 STRESS_X=
	load_modules || return
	if [ "$LINK_TYPE" = roan ]; then
		two_hosts "${1:-4200}"
		return
	fi
	BDEV=$ADEV BIP=$AIP BIP6=$AIP6 STRESS_X=-x
	ip link add v1 mtu "${1:-4200}" type veth peer name v2 mtu "${1:-4200}"
	ip link set v2 up && ip link set v1 up && ip addr add $AIP/24 dev v1 && ip addr add $AIP6/64 dev v1 nodad || return
	link_add "$ADEV" v1
}

# set_both NAME VALUE: a file of cc_param, of both devices.
set_both() {
	echo "$2" > "/sys/class/infiniband/$ADEV/ports/1/cc_param/$1" && echo "$2" > "/sys/class/infiniband/$BDEV/ports/1/cc_param/$1"
}

total() { echo $(($(counter "$ADEV" "$1") + $(counter "$BDEV" "$1"))); } # COUNTER: of both devices

# wire NETEM-WORDS: both ways. netem drops whole skbs: segments off, and it drops packets; segments on, GSO skbs.
# A qdisc that is replaced by its own kind keeps its counts and the options that are not named (corrupt, ecn).
wire() {
	local end dev
	for end in a b; do
		dev=v1; [ $end = a ] || [ "$LINK_TYPE" = rxe ] || dev=v2
		$end tc qdisc del dev $dev root 2> /dev/null
		$end tc qdisc add dev $dev root netem "$@" limit 10000 || return
	done
}
segments() { # on|off
	[ "$(wire_value gso)" != "$1" ] || return 0
	a ethtool -K v1 gso "$1" tx-udp-segmentation "$1" tso "$1" > /dev/null 2>&1
	[ "$LINK_TYPE" = rxe ] || b ethtool -K v2 gso "$1" tx-udp-segmentation "$1" tso "$1" > /dev/null 2>&1
	return 0
}

# Command prefixes that enter an end. For background commands, where $! must be the process id of the command itself.
A=(env) B=(env)
[ "$LINK_TYPE" != roan ] || A=(ip netns exec h1) B=(ip netns exec h2)
a() { "${A[@]}" "$@"; }
b() { "${B[@]}" "$@"; }

# both SECONDS PORT "SERVER COMMAND" "CLIENT COMMAND": starts the client when a listener is on PORT (0: after 0.7 s).
# OUT_A and OUT_B name their output files. Returns 0 if both exit with 0.
OUT_A=/tmp/out_a OUT_B=/tmp/out_b
both() {
	local t=$1 port=$2 pid rc_a rc_b
	# shellcheck disable=SC2086 # commands are word lists
	"${A[@]}" timeout -k 2 "$t" $3 > $OUT_A 2>&1 < /dev/null &
	pid=$!
	if [ "$port" = 0 ]; then
		sleep 0.7
	else
		wait_for 60 listening_or_gone "$port" $pid || true
	fi
	# shellcheck disable=SC2086
	b timeout -k 2 "$t" $4 > $OUT_B 2>&1 < /dev/null
	rc_b=$?
	# A server does not end if its client failed: kill it. If both skip, each exits by itself.
	[ $rc_b = 0 ] || [ $rc_b = 4 ] || kill $pid 2> /dev/null
	wait $pid
	rc_a=$?
	[ $rc_a = 0 ] && [ $rc_b = 0 ] && return 0
	echo "server: status $rc_a"; tail -n 12 $OUT_A
	echo "client: status $rc_b"; tail -n 12 $OUT_B
	[ $rc_a = 4 ] && [ $rc_b = 4 ] && return 4
	return 1
}

# Listener on a TCP port, or in rdma_cm (perftest -R).
listening() { [ -n "$(a ss -Hltn "sport = :$1")" ] || [[ $(a rdma resource show cm_id 2> /dev/null) == *LISTEN*:$1\ * ]]; }

serving() { [ -n "$(b ss -Hltn "sport = :$1")" ]; } # PORT: listener of end B
listening_or_gone() { listening "$1" || ! kill -0 "$2"; } # PORT PID

# cm_ordered sets ORDERED: a command prefix for both programs of a pair whose client may connect by rdma_cm before its
# server listens (cm_order.c).
CM_ORDER=/tmp/cm_order
cm_ordered() {
	rm -rf $CM_ORDER && mkdir $CM_ORDER
	# shellcheck disable=SC2034 # read by the scripts
	ORDERED="env LD_PRELOAD=$PROGRAMS/cm_order.so CM_ORDER=$CM_ORDER"
}

# stress SECONDS [OPTIONS]: verbs_stress from B to A. After that time each end says what it still waits for.
stress() {
	local t=$1
	shift
	both $((t + 10)) 18515 "$PROGRAMS/verbs_stress -d $ADEV -T $t $STRESS_X ${STRESS_BOTH:-}" \
		"$PROGRAMS/verbs_stress -d $BDEV -c $AIP -T $t $STRESS_X ${STRESS_BOTH:-} $*"
}
