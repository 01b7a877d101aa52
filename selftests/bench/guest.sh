#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The measurements: roan, rdma_rxe and TCP in one boot, in turn, several rounds. Runs inside a guest as root, prints one
# line a measurement for report.py. Judges nothing and computes nothing.
#
#	guest.sh [ROUNDS=5] [SIZES="64,..."] [MIB=128] [LIMIT=15] [REPO=DIR] [ROAN_KO=FILE] [LAB=NAME]
#
# Output:  @env KEY VALUE...
#	   @ ROUND TOPOLOGY STACK TEST SIZE VALUE	VALUE: MiB/s, messages/s or us; "-" if no attempt gave one
#	   @again TOPOLOGY STACK PROGRAM ARG... attempt N: WHY
#
# Topology "pair": both ends of one veth in ONE namespace, so that rdma_rxe, which cannot leave the initial one, can be
# measured over the same path as the others. The addresses are local to that namespace; accept_local lets the packets
# cross the veth all the same, and each stack sends through the whole IP stack. roan has a pair of its own in namespace
# "rn", because two drivers cannot hold UDP port 4791 in one namespace; so both are alive at once and take turns.
#
#	initial namespace			namespace rn
#	xa 10.9.1.1 ====veth==== xb 10.9.1.2	ya 10.9.2.1 ====veth==== yb 10.9.2.2
#	rxea, TCP		 rxeb, TCP	roana			 roanb
#
# Topology "hosts": the two namespaces h1 and h2 of selftests/vm/lib.sh; roan and TCP only.
for arg in "$@"; do
	case $arg in
	ROUNDS=* | SIZES=* | MIB=* | LIMIT=* | REPO=* | ROAN_KO=* | LAB=*) declare "$arg" ;;
	*) echo "guest.sh: unknown argument $arg"; exit 2 ;;
	esac
done
ROUNDS=${ROUNDS:-5}
SIZES=${SIZES:-64,256,1024,4096,16384,65536,262144,1048576}
REPO=${REPO:-$(readlink -f "$(dirname "${BASH_SOURCE[0]}")/../..")}
MTU=4200	# room for a path MTU of 4096 and its headers
BYTES=$((${MIB:-128} << 20))	# a bandwidth run moves about this much ...
MOST=16000	# ... in at most this many messages
LIMIT=${LIMIT:-15}	# seconds a run may take: one that hangs is reported and tried again
# shellcheck source=../vm/lib.sh
. "$REPO/selftests/vm/lib.sh"

# perftest wants a "cpu MHz" line, which UML lacks; a wrong one is fine, as it then believes its own measurement.
if ! grep -q 'cpu MHz' /proc/cpuinfo; then
	{ cat /proc/cpuinfo; echo "cpu MHz		: 1000.000"; } > /tmp/cpuinfo && mount --bind /tmp/cpuinfo /proc/cpuinfo
fi

# pair PREFIX SUBNET [NETNS]: a veth with both ends in one namespace
pair() {
	local in=${3:+ip netns exec $3} a=${1}a b=${1}b d
	$in ip link add "$a" mtu $MTU type veth peer name "$b" mtu $MTU || return
	for d in "$a" "$b"; do
		$in sysctl -qw "net.ipv4.conf.$d.accept_local=1" "net.ipv4.conf.$d.rp_filter=0"
	done
	$in sysctl -qw net.ipv4.conf.all.rp_filter=0
	$in ip addr add "10.9.$2.1/24" dev "$a" && $in ip addr add "10.9.$2.2/24" dev "$b" || return
	$in ip link set "$a" up && $in ip link set "$b" up
}

# One word a contender: server's and client's namespace, devices, GID indices, the server's address.
declare -A CONTENDERS
contender() {	# NAME SERVER_NS CLIENT_NS SERVER_DEV CLIENT_DEV SERVER_IP CLIENT_IP
	local sgid cgid
	wait_for 10 gid_index "$4" "$6" "${2#-}" && wait_for 10 gid_index "$5" "$7" "${3#-}" || return
	sgid=$(gid_index "$4" "$6" "${2#-}") cgid=$(gid_index "$5" "$7" "${3#-}")
	CONTENDERS[$1]="$2 $3 $4 $5 $sgid $cgid $6"
}

listening() { ${1:+ip netns exec "$1"} ss -Hltn "sport = :$2" | grep -q .; }

# perf CONTENDER PROGRAM ARG...: the client's line of figures
perf() {
	local sns cns sdev cdev sgid cgid ip server
	read -r sns cns sdev cdev sgid cgid ip <<< "${CONTENDERS[$1]}"
	sns=${sns#-} cns=${cns#-}
	PORT=$((18515 + (PORT + 1) % 1000))
	shift
	timeout "$LIMIT" ${sns:+ip netns exec "$sns"} "$1" -F -m 4096 -p $PORT -d "$sdev" -x "$sgid" "${@:2}" > /tmp/server 2>&1 &
	server=$!
	wait_for 5 listening "$sns" $PORT
	timeout "$LIMIT" ${cns:+ip netns exec "$cns"} "$1" -F -m 4096 -p $PORT -d "$cdev" -x "$cgid" "${@:2}" "$ip" \
		> /tmp/client 2>&1 || kill $server 2> /dev/null
	wait $server 2> /dev/null
	FIGURES=$(grep -A1 '^ *#bytes' /tmp/client | tail -n 1)
}

# perftest prints inf, nan or 0 when it could not calibrate the cycle counter: such a run is no measurement.
sane() { [[ $1 =~ ^[0-9]+(\.[0-9]+)?$ ]] && [[ $1 =~ [1-9] ]]; }

# attempts CONTENDER FIELD PROGRAM ARG...: perf, until the field of FIGURES is a number; says why it tried again
attempts() {
	local field=$2 n
	for n in 1 2 3 4 5; do
		perf "$1" "${@:3}"
		sane "$(awk -v f="$field" '{ print $f }' <<< "$FIGURES")" && return
		case $FIGURES in
		*inf* | *nan* | *[0-9]*) echo "@again ${1/-/ } ${*:3} attempt $n: cycle counter" ;;
		*) echo "@again ${1/-/ } ${*:3} attempt $n: did not finish"; [ "$n" != 3 ] || break ;;
		esac
	done
	FIGURES='- - - - - - - - -'
}

bandwidth() {	# ROUND CONTENDER ib_X_bw SIZE
	local n=$((BYTES / $4)) avg rate
	n=$((n > MOST ? MOST : n))
	attempts "$2" 4 "$3" -s "$4" -n $n
	read -r _ _ _ avg rate _ <<< "$FIGURES"
	echo "@ $1 ${2/-/ } ${3#ib_} $4 $avg"
	[ "$3/$4" != ib_write_bw/64 ] || echo "@ $1 ${2/-/ } write_rate 64 $(awk -v r="$rate" 'BEGIN { print r == "-" ? r : r * 1e6 }')"
}

latency() {	# ROUND CONTENDER
	local median p99
	attempts "$2" 5 ib_send_lat -s 2 -n 2000
	read -r _ _ _ _ median _ _ p99 _ <<< "$FIGURES"
	echo "@ $1 ${2/-/ } send_lat_median 2 $median"
	echo "@ $1 ${2/-/ } send_lat_p99 2 $p99"
}

tcp() {		# ROUND TOPOLOGY SIZE: iperf3 in writes of SIZE
	local ip=10.9.1.2 mbps args=(-B 10.9.1.1 --bind-dev xa) in=()
	[ "$2" = pair ] || { ip=$H2IP args=() in=(ip netns exec h1); }
	mbps=$(timeout 20 "${in[@]}" iperf3 -c "$ip" "${args[@]}" -f m -t 1 -l "$3" | awk '/receiver/ { print $(NF - 2) }')
	echo "@ $1 $2 tcp write_bw $3 $(awk -v m="$mbps" 'BEGIN { if (m > 0) printf "%.2f\n", m * 1e6 / 8 / 1048576; else print "-" }')"
}

environment() {
	echo "@env lab ${LAB:-unnamed}"
	echo "@env date $(date -u +%F)"
	echo "@env kernel $(uname -sr)"
	echo "@env cpus $(nproc)"
	echo "@env cpu $(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)"
	echo "@env crc32 $(awk '$1 == "name" { n = $3 } $1 == "driver" { d = $3 } $1 == "priority" && n == "crc32" && $3 > p \
		{ p = $3; best = d } END { print best ? best : "library" }' /proc/crypto)"
	echo "@env perftest $(ib_write_bw --version 2>&1 | sed -n 's/^Version: *//p')"
	echo "@env iperf3 $(iperf3 --version | awk 'NR == 1 { print $2 }')"
	echo "@env rounds $ROUNDS"
}

setup() {
	modprobe -q crc32-pclmul
	LINK_TYPE=rxe
	if load_modules && pair x 1 && link_add rxea xa && link_add rxeb xb; then
		contender pair-rxe - - rxeb rxea 10.9.1.2 10.9.1.1
	else
		pair x 1 2> /dev/null
		echo "# rdma_rxe: not run"
	fi
	iperf3 -s -D -B 10.9.1.2 --bind-dev xb
	# shellcheck disable=SC2034 # lib.sh reads it
	LINK_TYPE=roan
	[ -e /etc/libibverbs.d/roan.driver ] || export IBV_DRIVERS=$REPO/build/provider/libroan
	if ip netns add rn && ip -n rn link set lo up && load_modules && pair y 2 rn &&
		link_add roana ya rn && link_add roanb yb rn; then
		contender pair-roan rn rn roanb roana 10.9.2.2 10.9.2.1
	else
		echo "# roan: not run"
	fi
	if two_hosts $MTU; then
		contender hosts-roan h2 h1 "$H2DEV" "$H1DEV" "$H2IP" "$H1IP"
	fi
	on h2 iperf3 -s -D
	sleep 1
}

# The order within a round turns from round to round, so that no contender is always the first after a pause.
in_turn() {	# ROUND: names of the contenders
	local all=(pair-rxe pair-roan hosts-roan) i c
	for i in 0 1 2; do
		c=${all[(i + $1) % 3]}
		[ -z "${CONTENDERS[$c]:-}" ] || echo "$c"
	done
}

round() {
	local c op size
	for size in ${SIZES//,/ }; do
		for op in ib_write_bw ib_read_bw ib_send_bw; do
			for c in $(in_turn "$1"); do bandwidth "$1" "$c" $op "$size"; done
		done
		tcp "$1" pair "$size"
		tcp "$1" hosts "$size"
	done
	for c in $(in_turn "$1"); do latency "$1" "$c"; done
}

PORT=0
setup
environment
for c in $(in_turn 0); do
	perf "$c" ib_write_bw -s 65536 -n 200	# caches, neighbours, CRC tables
done
for r in $(seq "$ROUNDS"); do
	round "$r"
done
echo "@end"
