#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Functions for test scripts, which source this file, in a guest or as root on any machine. Does not boot or build
# anything.
#
# KTAP:	ktap_header; ktap_pass NAME; ktap_fail NAME [WHY]; ktap_skip NAME [WHY]; ktap_check NAME COMMAND... (passes if the
#	command succeeds; its output is shown only on failure); ktap_relay FILE NAME STATUS [PREFIX] (adds the KTAP
#	results in FILE, which program NAME printed before it exited with STATUS); ktap_end (prints the plan, exits 0,
#	1, or 4 if all are skipped).
# Setup:	load_modules			the RDMA core's modules and, for LINK_TYPE=roan, build/<release>/roan.ko
#	link_add NAME NETDEV [NETNS]	rdma link add of LINK_TYPE, in a namespace if given
#	two_hosts [MTU]			the topology below; two_hosts_down removes it
#	in_order			their link keeps the order of what several CPUs send
#	on HOST COMMAND...		runs in namespace HOST
#	wait_for SECONDS COMMAND...	repeats the command until it succeeds; false after SECONDS
#	poll_idle_us DEV MICROSECONDS [NETNS]	idle time of the device's polling thread (roan; architecture.md)
#	gid_index DEV ADDRESS [NETNS]	index of the RoCE v2 GID of an address
#	counter DEV NAME [NETNS]	value of one hardware counter
#	bracketed ADDRESS		as before a port or a path: an IPv6 address in brackets
#	allocation_mark; nothing_allocated	no line of roan's source holds more memory than at the mark (4: the kernel
#					does not count it)
#	log_mark; log_since [-t]	the kernel's log after the last mark. To clear it would hide reports from run.sh
# Variables:	WIRE says what the wire of two_hosts is like (wire_options.sh)
#	LINK_TYPE (roan), REPO, PROGRAMS (where the tests' C programs are), H1DEV H2DEV H1IP H2IP H1IP6 H2IP6.
#
#	+----- h1 ------+          +------ h2 -----+
#	| roan1 on v1   |==========|   v2 on roan2 |	veth; 10.7.0.1/24 and 10.7.0.2/24,
#	+---------------+          +---------------+	fd07::1/64 and fd07::2/64; MTU 4200 unless given

LINK_TYPE=${LINK_TYPE:-roan}
REPO=${REPO:-$(readlink -f "$(dirname "${BASH_SOURCE[0]}")/../..")}
PROGRAMS=${PROGRAMS:-$REPO/build/selftests}
H1DEV=${LINK_TYPE}1 H2DEV=${LINK_TYPE}2
H1IP=10.7.0.1 H2IP=10.7.0.2 H1IP6=fd07::1 H2IP6=fd07::2
KTAP_N=0 KTAP_BAD=0 KTAP_SKIPPED=0
. "$REPO/selftests/vm/wire_options.sh"
export LINK_TYPE REPO PROGRAMS H1DEV H2DEV H1IP H2IP H1IP6 H2IP6

ktap_header() { echo "KTAP version 1"; }
ktap_pass() { KTAP_N=$((KTAP_N + 1)); echo "ok $KTAP_N $1"; }
ktap_fail() { KTAP_N=$((KTAP_N + 1)); KTAP_BAD=$((KTAP_BAD + 1)); echo "not ok $KTAP_N $1${2:+ # $2}"; }
ktap_skip() { KTAP_N=$((KTAP_N + 1)); KTAP_SKIPPED=$((KTAP_SKIPPED + 1)); echo "ok $KTAP_N $1 # SKIP${2:+ $2}"; }

# The command sees this function's local variables in place of the script's, so they have names that no script uses.
ktap_check() { # NAME COMMAND...
	local ktap_name=$1 ktap_output ktap_rc
	shift
	ktap_output=$("$@" 2>&1)
	ktap_rc=$?
	case $ktap_rc in
	0) ktap_pass "$ktap_name" ;;
	4) ktap_skip "$ktap_name" ;;
	*) printf '%s\n' "$ktap_output" | tail -n 40 | sed 's/^/# /'
	   ktap_fail "$ktap_name" "status $ktap_rc" ;;
	esac
	return $ktap_rc
}

# fault WHAT NAME=VALUE...: settings of one kind of fault injection, as far as the kernel has them.
fault() {
	local dir=/sys/kernel/debug/$1 setting
	shift
	for setting; do
		[ ! -e "$dir/${setting%%=*}" ] || echo "${setting#*=}" > "$dir/${setting%%=*}" || return
	done
}

# Fault injection reaches allocations of any kind and size. A program says which one fails (vt_fail_nth()).
every_allocation_may_fail() {
	fault failslab ignore-gfp-wait=N verbose=0
	fault fail_page_alloc ignore-gfp-wait=N ignore-gfp-highmem=N min-order=0 verbose=0
}

# A program that was cut short printed no plan. One that finished printed a result, and exits with 0, or 1 if one is bad.
ktap_relay() {
	local line name prefix=${4:-} n=$KTAP_N bad=$KTAP_BAD
	while read -r line; do
		name=${line#*ok [0-9]* } name=$prefix${name#- }
		case $line in
		"ok "*"# SKIP "*) ktap_skip "${name%% # SKIP *}" "${name#* # SKIP }" ;;
		"ok "*) ktap_pass "$name" ;;
		"not ok "*) ktap_fail "$name" ;;
		"#"* | *FAIL*) echo "# ${line#\# }" ;;
		esac
	done < "$1"
	grep -q '^1\.\.' "$1" && [ "$KTAP_N" != "$n" ] && [ "$3" = $((KTAP_BAD > bad)) ] ||
		ktap_fail "$prefix$2 runs to its end" "status $3: $(tail -n 1 "$1")"
}

ktap_end() {
	[ "$KTAP_N" != 0 ] || ktap_fail "a case ran"
	[ -z "$WIRE" ] || [ "$KTAP_N" = "$KTAP_SKIPPED" ] || { ktap_check "the wire was $WIRE" wire_taken; cat $WIRE_ENDS.log; }
	echo "1..$KTAP_N"
	[ "$KTAP_BAD" = 0 ] || exit 1
	[ "$KTAP_N" != "$KTAP_SKIPPED" ] || exit 4
	exit 0
}

# Pauses with a timed read from an empty pipe: starting sleep(1) each time may take half of a CPU in a guest.
wait_for() {
	local until=$((SECONDS + $1))
	shift
	until "$@" > /dev/null 2>&1; do
		[ "$SECONDS" -lt "$until" ] || return 1
		[ -n "${KTAP_SILENCE:-}" ] || exec {KTAP_SILENCE}<> <(:)
		read -rt 0.1 -u "$KTAP_SILENCE" || :
	done
}

# is_sending DEVICE: its packets become more, so a program that has been started is connected.
is_sending() {
	local had
	had=$(counter "$1" sent_pkts) && sleep 0.1 && [ "$(counter "$1" sent_pkts)" -gt "$had" ]
}

# For a measurement, which returns 1 if it was out of bounds: other guests may keep this one off its CPU for most of the time
# that it takes. Any other failure is final.
in_three_attempts() {
	local rc
	for _ in 1 2 3; do
		"$@"
		rc=$?
		[ $rc = 1 ] || break
	done
	return $rc
}

# Prints the path of roan.ko for the running kernel. ROAN_KO, set by run.sh, tells apart kernels that share a release.
roan_ko() {
	local ko
	for ko in "${ROAN_KO:-}" "$REPO/build/$(uname -r)/roan.ko"; do
		[ -n "$ko" ] && [ -e "$ko" ] && echo "$ko" && return
	done
	return 1
}

bracketed() { if [[ $1 == *:* ]]; then echo "[$1]"; else echo "$1"; fi; }

load_modules() {
	local m ko
	for m in ib_core ib_uverbs rdma_cm rdma_ucm ib_umad udp_tunnel ip6_udp_tunnel veth; do
		modprobe -q "$m" || true	# some are built in
	done
	case $LINK_TYPE in
	roan)
		[ ! -e /sys/module/roan ] || return 0
		ko=$(roan_ko) || { echo "# no roan.ko for $(uname -r)"; return 1; }
		# Ten seconds by default: a guest may stand still for so long. nothing_left() looks for that message.
		sysctl -q -w net.core.netdev_unregister_timeout_secs=30 || true
		insmod "$ko" ;;
	*)	modprobe "rdma_$LINK_TYPE" ;;
	esac
}

on() {
	local host=$1
	shift
	ip netns exec "$host" "$@"
}

link_add() {
	${3:+ip netns exec "$3"} rdma link add "$1" type "$LINK_TYPE" netdev "$2" || return
	# With exclusive RDMA namespaces a new device starts in the initial one, before Linux 6.17.
	if [ -n "${3:-}" ] && rdma system 2> /dev/null | grep -q 'netns exclusive' && rdma dev show "$1" > /dev/null 2>&1; then
		rdma dev set "$1" netns "$3" || return
	fi
	${3:+ip netns exec "$3"} udevadm settle -t 2 2> /dev/null || true
	wait_for 60 ${3:+ip netns exec "$3"} rdma link show "$1/1"
}

poll_idle_us() { ${3:+ip netns exec "$3"} sh -c "echo $2 > /sys/class/infiniband/$1/poll_idle_us"; }

# Creates v1 in h1 and v2 in h2: a veth, or with NICS the two adapters that run.sh has QEMU emulate.
lay_wire() { # MTU
	local n=0 dev
	[ -n "${NICS:-}" ] || { ip link add v1 netns h1 mtu "$1" type veth peer name v2 netns h2 mtu "$1"; return; }
	modprobe -q -a e1000e virtio_net vmxnet3
	for dev in /sys/class/net/*/device; do
		n=$((n + 1))
		dev=$(basename "${dev%/device}")
		ip link set "$dev" down && ip link set "$dev" mtu "$1" name v$n netns h$n || return
	done
	[ $n = 2 ]
}

two_hosts() {
	local mtu=${1:-4200} h n
	for n in 1 2; do
		ip netns add h$n && on h$n ip link set lo up || return
	done
	lay_wire "$mtu" || return
	for n in 1 2; do
		h=h$n
		on $h ip addr add "10.7.0.$n/24" dev v$n && on $h ip addr add "fd07::$n/64" dev v$n nodad || return
		on $h ip link set v$n up || return
	done
	wait_for 60 on h1 ping -c1 -W1 $H2IP || return	# an emulated adapter takes some seconds to report its link
	wait_for 60 on h1 ping -c1 -W1 $H2IP6 || return
	link_add "$H1DEV" v1 h1 && link_add "$H2DEV" v2 h2 || return
	[ -z "$WIRE" ] || wire_shape "v1:$H1DEV:h1" "v2:$H2DEV:h2"
}

# A veth has a queue for each CPU that sends. It has one for all CPUs if TSO is off and its peer has GRO.
in_order() { on h1 ethtool -K v1 gro on tso off && on h2 ethtool -K v2 gro on tso off; }

# Without programs no object may exist except QP 1 and its objects, which the kernel owns.
nothing_left() {
	local left
	left=$(rdma resource show qp 2> /dev/null | grep -v 'type GSI')$(rdma resource show mr 2> /dev/null)$(
		rdma resource show cm_id 2> /dev/null)
	[ -z "$left" ] || { echo "$left"; return 1; }
	if dmesg | grep -q 'waiting for .* to become free'; then dmesg | grep 'to become free'; return 1; fi
}

# The memory that each line of roan's source, and of the RDMA core's, has allocated: bytes, line, function. For kernels with
# CONFIG_MEM_ALLOC_PROFILING. The line is [roan:roan_test] if both modules link the file. Not counted are the pages that each
# CPU keeps until the module is unloaded, when the kernel warns of memory that a line still has.
allocations() {
	grep -qsx 1 /proc/sys/vm/mem_profiling || return 4
	awk '($4 ~ /^\[roan[]:]/ && $3 !~ /tx_page_pool/) || $3 ~ /infiniband\/core\/|include\/rdma\// { n[$3 " " $NF] += $1 }
		END { for (i in n) if (n[i]) print n[i], i }' /proc/allocinfo
}
allocation_mark() { allocations > /tmp/allocations || true; }
nothing_allocated() {
	local now
	now=$(allocations) || return
	awk '!marked { had[$2 $3] = $1; next }
		$1 > had[$2 $3] { print $1 - had[$2 $3], "bytes more:", $2, $3; more = 1 } END { exit more }' \
		/tmp/allocations marked=1 - <<< "$now"
}

two_hosts_down() {
	local n
	for n in 1 2; do
		rdma link del "${LINK_TYPE}$n" 2> /dev/null || on h$n rdma link del "${LINK_TYPE}$n" 2> /dev/null
		ip netns del h$n 2> /dev/null
	done
	return 0
}

# Prints the GID of an address in the format of sysfs. Starts no process: in an emulated guest each takes 0.1 s and
# more.
gid_of() { # ADDRESS
	local IFS=. w missing=9 words=()
	if [[ $1 != *:* ]]; then
		# shellcheck disable=SC2086 # four numbers
		printf '0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x\n' $1
		return
	fi
	IFS=:
	read -ra words <<< "${1/::/:gap:}"
	for w in "${words[@]}"; do [ -z "$w" ] || missing=$((missing - 1)); done
	set --
	for w in "${words[@]}"; do
		case $w in
		'') ;;
		gap) while ((missing-- > 0)); do set -- "$@" 0000; done ;;
		*) printf -v w %04x "0x$w"; set -- "$@" "$w" ;;
		esac
	done
	echo "$*"
}

gid_index() {
	local ns=${3:-} want
	want=$(gid_of "$2")
	# Devices of a namespace are visible only in that namespace's sysfs, which ip netns exec mounts.
	# shellcheck disable=SC2016 # expanded by the inner shell
	${ns:+ip netns exec "$ns"} sh -c '
		p=/sys/class/infiniband/$1/ports/1
		for g in "$p"/gids/*; do
			n=${g##*/}
			read -r gid < "$g" && [ "$gid" = "$2" ] && read -r type < "$p/gid_attrs/types/$n" && [ "$type" = "RoCE v2" ] &&
				echo "$n" && exit 0
		done 2> /dev/null
		exit 1' sh "$1" "$want"
}

counter() {
	local ns=${3:-}
	${ns:+ip netns exec "$ns"} cat "/sys/class/infiniband/$1/ports/1/hw_counters/$2"
}
# Bytes that DEVICE sent; its counter has units of four bytes.
bytes_sent() { echo $((4 * $(cat "/sys/class/infiniband/$1/ports/1/counters/port_xmit_data"))); }
log_mark() { LOG_MARK=$BASHPID.$EPOCHREALTIME; echo "roan-lab: mark $LOG_MARK" > /dev/kmsg; }
log_since() { dmesg "$@" | sed "1,/roan-lab: mark $LOG_MARK\$/d"; }
has_received() { [ "$(counter "$1" rcvd_pkts)" -ge "$2" ]; } # DEVICE PACKETS: so many since it was made
