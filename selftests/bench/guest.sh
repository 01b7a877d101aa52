#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Measures roan, rdma_rxe and TCP in one boot, alternating, in several rounds. Runs as root in a guest and prints the
# values for report.py, which computes ratios and compares them with the aims. measure.sh has the single measurements.
#
#	guest.sh [FROM=1] [ROUNDS=5] [SIZES="64,..."] [MIB=512] [LIMIT=15] [REPO=DIR] [LAB=NAME] [SKIP="KEY,..."]
#		[ONLY="KEY,..."]
#	FROM, ROUNDS: the first and the last round	KEY: TOPOLOGY/STACK/TEST/SIZE, as printed after @try
#	SKIP: measurements to leave out
#	ONLY: runs these measurements only, and copies /proc/kallsyms to /out/kept for the script "profile"
#
# Output:  @env KEY VALUE...
#	   @try KEY					a measurement starts; as the last line: the guest crashed in it
#	   @skipped KEY					SKIP names this measurement
#	   @ ROUND TOPOLOGY STACK TEST SIZE VALUE	VALUE: units in TITLES of report.py; "-" if all attempts failed
#	   @again TOPOLOGY STACK PROGRAM ARG... attempt N: WHY
#	   @round N					round N is complete
#
# Topology "pair": a veth for roan, another for rdma_rxe and TCP. Both ends of the latter are in the initial namespace, as
# rdma_rxe works in no other. rdma_rxe and TCP are bound to an interface there, so packets to the local address of the other
# end cross the veth, and accept_local lets that end accept them. roan would route packets to a local address over lo, so
# the ends of its veth are in two namespaces. Before measuring, the interface counters must show that each client's
# packets cross its veth.
#
#	initial namespace			namespaces ra			rb
#	xa 10.9.1.1 ====veth==== xb 10.9.1.2	ya 10.9.2.1 ======veth========= yb 10.9.2.2
#	rxea, TCP		 rxeb, TCP	roana				roanb
#
# Topology "steered", in guests with several CPUs: the veths of "pair", but each end has half of the CPUs, like a host of
# its own. Its programs run there (taskset) and its packets are received there (RPS). Without RPS a packet is received on
# the CPU that sent it. Applies to all three stacks; each round switches it on and off.
#
# Topology "hosts": the namespaces h1 and h2 made by two_hosts() of selftests/vm/lib.sh; roan and TCP only.
#
# A contender is a stack in a topology, TOPOLOGY-STACK: pair-rxe, pair-roan, hosts-tcp, ...
for arg in "$@"; do
	case $arg in
	FROM=* | ROUNDS=* | SIZES=* | MIB=* | LIMIT=* | REPO=* | LAB=* | SKIP=* | ONLY=*) declare "$arg" ;;
	*) echo "guest.sh: unknown argument $arg"; exit 2 ;;
	esac
done
FROM=${FROM:-1} ROUNDS=${ROUNDS:-5}
SIZES=${SIZES:-64,512,4096,16384,65536,262144,1048576}
REPO=${REPO:-$(readlink -f "$(dirname "${BASH_SOURCE[0]}")/../..")}
MTU=4200	# fits a packet of path MTU 4096 with its headers
MIB=${MIB:-512}		# most MiB of a bandwidth run. 128 may take only 40 ms, less than the host's slow or fast phases
KINDS='user odp udmabuf heap gpu bar peer dm'	# option -m of selftests/gpu/memory.c
LIMIT=${LIMIT:-15}	# seconds; a run that takes longer is stopped, reported (@again) and repeated
# shellcheck source=../vm/lib.sh
. "$REPO/selftests/vm/lib.sh"
# shellcheck source=measure.sh
. "$REPO/selftests/bench/measure.sh"

# perftest needs a "cpu MHz" line, which UML lacks. Any value will do: if it differs from the frequency that perftest
# measures, perftest uses the measured one.
if ! grep -q 'cpu MHz' /proc/cpuinfo; then
	{ cat /proc/cpuinfo; echo "cpu MHz		: 1000.000"; } > /tmp/cpuinfo && mount --bind /tmp/cpuinfo /proc/cpuinfo
fi

# Makes a veth with both ends in this namespace.
pair_here() {
	local d
	ip link add xa mtu $MTU type veth peer name xb mtu $MTU || return
	for d in xa xb; do
		sysctl -qw "net.ipv4.conf.$d.accept_local=1" "net.ipv4.conf.$d.rp_filter=0"
	done
	sysctl -qw net.ipv4.conf.all.rp_filter=0
	ip addr add 10.9.1.1/24 dev xa && ip addr add 10.9.1.2/24 dev xb || return
	ip link set xa up && ip link set xb up
}
# Makes a veth between two new namespaces, ra and rb.
pair_of_hosts() {
	ip netns add ra && ip netns add rb && ip link add ya netns ra mtu $MTU type veth peer name yb netns rb mtu $MTU || return
	ip -n ra addr add 10.9.2.1/24 dev ya && ip -n rb addr add 10.9.2.2/24 dev yb || return
	ip -n ra link set ya up && ip -n rb link set yb up
}
# CONTENDER BYTES: true if the client's end of the veth has sent at least BYTES
carried() {
	local dev=xa inside=
	[ "$1" != pair-roan ] || { dev=ya inside='ip netns exec ra'; }
	[ "$($inside cat /sys/class/net/$dev/statistics/tx_bytes)" -ge "$2" ]
}

# SERVER_AT, CLIENT_AT: prefix of the server's and the client's command that binds it to CPUs. The client is at xa or ya.
at() {	# [CLIENT_MASK SERVER_MASK]: without masks, programs run on all CPUs
	# shellcheck disable=SC2034 # measure.sh reads them
	CLIENT_AT=(${1:+taskset "$1"}) SERVER_AT=(${2:+taskset "$2"})
}
at
received_at() {	# DEV MASK [NETNS]: the CPUs that receive packets to DEV; 0: the CPU that sent the packet
	${3:+ip netns exec "$3"} sh -c "echo $2 > /sys/class/net/$1/queues/rx-0/rps_cpus"
}
both_pairs_received_at() {	# CLIENT_MASK SERVER_MASK
	received_at xa "$1" && received_at xb "$2" && received_at ya "$1" ra && received_at yb "$2" rb
}
steer() {
	local n half client server
	n=$(nproc)
	half=$((n / 2))
	client=$(printf %x $(((1 << half) - 1))) server=$(printf %x $(((1 << n) - (1 << half))))
	both_pairs_received_at "$client" "$server"
	at "$client" "$server"
	taskset -ap "$server" "$(cat $TCP_SERVER)" > /dev/null
}
do_not_steer() {
	both_pairs_received_at 0 0
	at
	taskset -ap "$(printf %x $(((1 << $(nproc)) - 1)))" "$(cat $TCP_SERVER)" > /dev/null
}

# For each contender: namespaces of server and client ("-": the initial one), their devices, their GID indices, and the
# server's address.
declare -A CONTENDERS
contender() {	# NAME SERVER_NS CLIENT_NS SERVER_DEV CLIENT_DEV SERVER_IP CLIENT_IP
	local sgid cgid
	wait_for 10 gid_index "$4" "$6" "${2#-}" && wait_for 10 gid_index "$5" "$7" "${3#-}" || return
	sgid=$(gid_index "$4" "$6" "${2#-}") cgid=$(gid_index "$5" "$7" "${3#-}")
	CONTENDERS[$1]="$2 $3 $4 $5 $sgid $cgid $6"
	CONTENDERS[${1/pair-/steered-}]=${CONTENDERS[$1]}
}

environment() {
	echo "@env lab ${LAB:-unnamed}"
	echo "@env date $(date -u +%F)"
	echo "@env kernel $(uname -sr)"
	echo "@env cpus $(nproc)"
	echo "@env cpu $(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)"
	echo "@env crc $(crc_way)"
	echo "@env perftest $(ib_write_bw --version 2>&1 | sed -n 's/^Version: *//p')"
	echo "@env iperf3 $(iperf3 --version | awk 'NR == 1 { print $2 }')"
	echo "@env rounds $ROUNDS"
}

setup() {
	modprobe -q crc32-pclmul
	modprobe -q sch_netem
	LINK_TYPE=rxe
	if load_modules && pair_here && link_add rxea xa && link_add rxeb xb; then
		contender pair-rxe - - rxeb rxea 10.9.1.2 10.9.1.1
	else
		pair_here 2> /dev/null
		echo "# rdma_rxe: not run, as its set-up failed"
	fi
	iperf3 -s -D -I $TCP_SERVER -B 10.9.1.2 --bind-dev xb
	# shellcheck disable=SC2034 # lib.sh reads it
	LINK_TYPE=roan
	[ -e /etc/libibverbs.d/roan.driver ] || export IBV_DRIVERS=$REPO/build/provider/libroan
	if load_modules && pair_of_hosts && link_add roana ya ra && link_add roanb yb rb; then
		contender pair-roan rb ra roanb roana 10.9.2.2 10.9.2.1
	else
		echo "# roan: not run, as its set-up failed"
	fi
	if two_hosts $MTU; then
		contender hosts-roan h2 h1 "$H2DEV" "$H1DEV" "$H2IP" "$H1IP"
	fi
	on h2 iperf3 -s -D
	sleep 1
}

# ROUND NAME...: prints the contenders that are set up. The order rotates from round to round, so that no contender is
# always the first one after a pause.
rotated() {
	local all=("${@:2}") i c
	for i in "${!all[@]}"; do
		c=${all[(i + $1) % ${#all[@]}]}
		[[ $c != *-tcp ]] && [ -z "${CONTENDERS[$c]:-}" ] || echo "$c"
	done
}
both() { rotated "$1" pair-rxe pair-roan; }
three() { rotated "$1" pair-rxe pair-roan pair-tcp; }

# alternate N ROUND TEST SIZE FUNCTION CONTENDER...: measures the contenders alternately, N times each. For runs of less
# than a second: the CPUs of a virtual machine, or the exchange of data between them, can be slow for some seconds.
alternate() {
	local n c
	for n in $(seq "$1"); do
		for c in "${@:6}"; do cell "$2" "$c" "${@:3:3}"; done
	done
}

# cell ROUND CONTENDER TEST SIZE FUNCTION [ARG...]: runs FUNCTION, which prints the values, unless SKIP or ONLY exclude it.
# SKIP names measurements in which a guest crashed.
cell() {
	local key="${2/-//}/$3/$4"
	# shellcheck disable=SC2034 # measure.sh reads them
	ROUND=$1 CONTENDER=$2 TEST=$3 SIZE=$4
	case ",${ONLY:-$key}," in
	*",$key,"*) ;;
	*) return ;;
	esac
	case ",${SKIP:-}," in
	*",$key,"*) echo "@skipped $key"; return ;;
	esac
	echo "@try $key"
	"${@:5}"
}

bandwidths() {	# ROUND
	local size op c
	for size in ${SIZES//,/ }; do
		for op in write_bw read_bw send_bw; do
			for c in $(both "$1"); do cell "$1" "$c" $op "$size" bandwidth; done
		done
		cell "$1" pair-tcp write_bw "$size" tcp
	done
	for size in 65536 1048576; do
		[ -z "${CONTENDERS[hosts-roan]:-}" ] || cell "$1" hosts-roan write_bw $size bandwidth
		cell "$1" hosts-tcp write_bw $size tcp
	done
}

# Measures with each end on CPUs of its own.
steered() {	# ROUND
	local size
	steer
	for size in ${SIZES//,/ }; do
		# shellcheck disable=SC2046 # a list of names
		alternate 3 "$1" write_bw "$size" bandwidth $(rotated "$1" steered-rxe steered-roan steered-tcp)
	done
	# shellcheck disable=SC2046 # a list of names
	alternate 5 "$1" send_lat 2 latency $(rotated "$1" steered-rxe steered-roan)
	do_not_steer
}

round() {
	local c n loss
	bandwidths "$1"
	[ "$(nproc)" = 1 ] || steered "$1"
	for c in $(both "$1"); do cell "$1" "$c" write_rate_16 64 rate_of_16; done
	# shellcheck disable=SC2046 # a list of names
	alternate 5 "$1" send_lat 2 latency $(rotated "$1" pair-rxe pair-roan hosts-roan)
	cell "$1" pair-limit empty_call 0 empty_call
	for c in $(three "$1"); do cell "$1" "$c" cpu 65536 cpu_per_gib; done
	for loss in 0.1 1; do
		for c in $(three "$1"); do cell "$1" "$c" loss_$loss 65536 goodput $loss; done
	done
	for n in 1 100 10000; do
		# It takes long to create and destroy 10,000 QPs, so only odd rounds do.
		[ $n = 10000 ] && [ $(($1 % 2)) = 0 ] && continue
		for c in $(both "$1"); do cell "$1" "$c" qps $n over_qps; done
	done
	for c in $(both "$1"); do cell "$1" "$c" come_and_go 1000 come_and_go; done
	if [ "$LAB" = uml ] && memory_clients; then
		for n in $KINDS; do cell "$1" hosts-roan "kind_$n" 307240 memory_kind "$n"; done
	fi
	for n in 65536 1048576; do cell "$1" pair-limit write_bw $n limit; done
	[ "$1" = 1 ] || return
	for c in $(both "$1"); do
		cell 1 "$c" syscalls 64 syscalls
		cell 1 "$c" memory 10000 memory
	done
}

# shellcheck disable=SC2034 # measure.sh counts it up
PORT=0
TCP_SERVER=/tmp/iperf3.pid
setup
environment
for c in $(both 0); do
	perf "$c" ib_write_bw -s 65536 -n 200	# warms up caches, neighbour entries, CRC tables
	carried "$c" $((65536 * 200)) || { echo "guest.sh: the packets of $c do not cross its veth"; exit 1; }
done
echo "@env path each client's packets were seen on its veth"
[ -z "${ONLY:-}" ] || { mkdir -p /out/kept && cp /proc/kallsyms /out/kept/kallsyms; }
for r in $(seq "$FROM" "$ROUNDS"); do
	round "$r"
	echo "@round $r"
done
