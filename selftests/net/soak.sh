#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# For MINUTES (10): rounds of random operations between two hosts, every byte compared, on a link that loses, marks,
# reorders, duplicates or corrupts packets, or on four that differ. During a round something changes (settings, MTU, link,
# addresses, offloads, the CPUs that receive or are there, pages), and the state of all QPs is read; between rounds programs
# are killed and devices made anew. Ends with the first failure. SEED=N repeats the choices of a run, DURING="NAME ..."
# takes what happens from these. Before the plan comes a line of figures, which ../vm/soak.sh adds up.
#
#	h1: roan1 on v1 ---- netem, both ways; one or four, by the UDP source port ---- v2, roan2 :h2
# shellcheck disable=SC2154 # pick() assigns variables
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
. "$HERE/../verbs/pair.sh"
MINUTES=${MINUTES:-10} SEED=${SEED:-1} DURING=${DURING:-}

# pick VARIABLE WORD...: one of the words. No subshell: it would have random numbers of its own.
pick() {
	local -n chosen=$1
	shift
	shift $((RANDOM % $#))
	# shellcheck disable=SC2034 # a reference
	chosen=$1
}

choose() { # ROUND
	RANDOM=$((SEED * 10000 + $1))
	pick impairment "loss 0%" "loss 1%" "loss 5%" "loss 5% ecn" "delay 2ms reorder 25% 50%" "duplicate 5%" "corrupt 1%" "delay 1ms loss 1% duplicate 5% corrupt 1% reorder 25% 50%" links links
	pick trains on off
	pick during nothing nothing algorithms mtu down interfaces addresses offloads receive cpus compaction capture
	[ "$impairment" != links ] || pick during nothing fails fails algorithms interfaces receive cpus compaction
	# shellcheck disable=SC2086 # a list of words
	[ -z "$DURING" ] || pick during $DURING
	pick after nothing nothing killed devices
	pick type rc rc rc uc ud
	pick qps 1 2 4
	pick ops 16 32 64
	pick family "" -6
	pick more "" -S -e "-S -e" -B
	pick paths 0 0 1 4 32
	pick any_interface 0 0 1 2
	pick memory "" "" -O
	pick load mixed mixed bulk
	if [ $load = bulk ]; then	# enough for a trial of several paths, and READs of many packets
		pick paths 0 0 4 32
		options="-t rc -q 1 -w 256 -n 2 -s $RANDOM -l 600000 -o send,write,read $more"
		return
	fi
	options="-t $type -q $qps -w $ops -n 10 -s $RANDOM $more"
	[ "$type" = rc ] || options="$options -L"
	[ "$type" = ud ] || options="$options -l $((64 + RANDOM * 2))"
}

# Four links for RoCE, by the UDP source port: one for each QP with one path.
links() {
	local end dev n words=("delay 100us" "delay 2ms" "delay 1ms loss 2%" "loss 5%")
	for end in a b; do
		dev=v1; [ $end = a ] || dev=v2
		$end tc qdisc replace dev $dev root handle 1: prio bands 5 priomap 4 4 4 4 4 4 4 4 4 4 4 4 4 4 4 4 || return
		for n in 0 1 2 3; do
			# shellcheck disable=SC2086 # lists of words
			$end tc qdisc replace dev $dev parent 1:$((n + 1)) netem ${words[n]} limit 10000 &&
				$end tc filter add dev $dev parent 1: protocol ip prio 1 u32 match ip dport 4791 0xffff \
					match ip sport $n 3 flowid 1:$((n + 1)) &&
				$end tc filter add dev $dev parent 1: protocol ipv6 prio 2 u32 match ip6 dport 4791 0xffff \
					match ip6 sport $n 3 flowid 1:$((n + 1)) || return
		done
	done
}

# What happens while operations are under way. All of it is undone.
fails() {
	a tc qdisc replace dev v1 parent 1:1 netem loss 100% limit 10000; sleep 0.3
	a tc qdisc replace dev v1 parent 1:1 netem delay 100us limit 10000
}
algorithms() {
	local algo
	for algo in swift none fixed dcqcn-mlx dcqcn; do
		set_both algo $algo; sleep 0.2
	done
}
# Packets of 4096 bytes cannot be sent for 0.2 s. A request fails after 4.3 s without progress (-k 17, eight timeouts): so
# the MTU is small for a part of that, and one shell does it, without other processes. In a guest that waits for its CPUs
# each process takes seconds to start, and the requests make no progress for seconds either.
mtu() {
	# shellcheck disable=SC2016
	a bash -c 'exec 3<> <(:); since=${EPOCHREALTIME/[.,]/}
		echo 1500 > /sys/class/net/v1/mtu; read -rt 0.2 -u 3; echo 4200 > /sys/class/net/v1/mtu
		echo "the MTU was 1500 for $(((${EPOCHREALTIME/[.,]/} - since) / 1000)) ms"'
}
# One process of ip, which reads each command when it is due: see mtu().
down() {
	{
		exec 3<> <(:)
		echo link set v2 down; read -rt 0.1 -u 3; echo link set v2 up; echo "address replace $BIP6/64 dev v2 nodad"
	} | b ip -batch -
}
interfaces() {
	local n
	for n in 2 1 0 2; do
		set_both any_interface $n; sleep 0.2
	done
}
addresses() {
	local n
	for n in 1 2 3 4 5; do
		a ip address add 10.7.0.10$n/24 dev v1; b ip address add fd07::10$n/64 dev v2 nodad; sleep 0.05
		a ip address del 10.7.0.10$n/24 dev v1; b ip address del fd07::10$n/64 dev v2; sleep 0.05
	done
}
offloads() {
	local words
	for words in "gro off" "gro on rx-gro-list on" "rx-gro-list off" "tx off" "sg off" "tx on sg on"; do
		# shellcheck disable=SC2086 # a list of words
		{ a ethtool -K v1 $words; b ethtool -K v2 $words; } > /dev/null 2>&1; sleep 0.05
	done
	segments off; segments "$trains"
}
# Packets are received by a thread, and by another CPU than the one that takes them from the interface.
receive() {
	local n
	for n in 1 0 1 0; do
		a sh -c "echo $n > /sys/class/net/v1/threaded; echo $((n * 2)) > /sys/class/net/v1/queues/rx-0/rps_cpus"
		b sh -c "echo $n > /sys/class/net/v2/threaded; echo $n > /sys/class/net/v2/queues/rx-0/rps_cpus"
		sleep 0.2
	done
}
cpus() {
	local cpu
	for cpu in /sys/devices/system/cpu/cpu[1-9]*/online; do
		[ -e "$cpu" ] || return 0
		echo 0 > "$cpu" && sleep 0.1 && echo 1 > "$cpu" || return
	done
}
compaction() {
	local n
	for n in 1 2 3; do
		echo 1 > /proc/sys/vm/compact_memory; sleep 0.1
	done
}
# Each skb has a second user.
capture() {
	command -v tcpdump > /dev/null || return 0
	a timeout 1 tcpdump -q -i v1 -w /dev/null 2> /dev/null & b timeout 1 tcpdump -q -i v2 -w /dev/null 2> /dev/null
	wait $!
	return 0
}
nothing() { :; }

killed() {
	local pid since
	since=$(counter $ADEV rcvd_pkts)
	STRESS_BOTH="-k 17" stress 300 -t rc -q 4 -w 64 -n 1000 > /tmp/killed 2>&1 &
	pid=$!
	wait_for 60 has_received $ADEV $((since + 50))
	pkill -9 -x verbs_stress
	wait $pid
	wait_for 60 nothing_left
}
devices() {
	rdma link del $ADEV && rdma link del $BDEV && wait_for 60 nothing_left && link_add $ADEV v1 h1 && link_add $BDEV v2 h2 &&
		wait_for 30 gid_index $ADEV $AIP h1 && wait_for 30 gid_index $BDEV $BIP h2
}

# The state of all QPs, read while they are in use. path_trials: how often a QP tried several paths, if that is automatic.
states() {
	local state
	while state=$(rdma resource show qp -dd); [[ $state == *verbs_stress* ]]; do
		echo "$state"
	done
}
trials() { grep -o 'path_trials [0-9]*' /tmp/states | awk '$2 > n { n = $2 } END { print "trials=" n + 0 }'; }

# Packets dropped for their UDP checksum or ICRC.
damaged() {
	{ a nstat -asz UdpInCsumErrors Udp6InCsumErrors; b nstat -asz UdpInCsumErrors Udp6InCsumErrors; } |
		awk -v n="$(total rx_bad_icrc)" '/Csum/ { n += $2 } END { print n }'
}
link_figures() { # BEFORE: number of damaged packets
	local lost=0 n
	for n in $({ a tc -s qdisc show dev v1; b tc -s qdisc show dev v2; } | grep -o 'dropped [0-9]*' | cut -d' ' -f2); do
		lost=$((lost + n))
	done
	[[ $impairment != *ecn ]] || lost=0	# most of them were marked
	echo "dropped=$lost corrupted=$(($(damaged) - $1))"
}

round() {
	local pid rc=0 before arrived
	segments "$trains"
	set_both paths "$paths" && set_both any_interface "$any_interface" || return
	wait_for 60 neighbours || return
	# shellcheck disable=SC2086 # lists of words
	if [ "$impairment" = links ]; then links; else wire $impairment; fi || return
	before=$(damaged)
	arrived=$(counter $ADEV rcvd_pkts)
	{ wait_for 60 has_received $ADEV $((arrived + 50)) && { $during & states > /tmp/states; wait; }; } &
	pid=$!
	# shellcheck disable=SC2086
	STRESS_BOTH="-k 17 $family $memory" stress 600 $options || rc=1
	wait $pid
	[ $rc = 0 ] || return
	{ cat $OUT_A $OUT_B; link_figures "$before"; trials; } >> /tmp/figures
	wire loss 0% && $after
}

# Resolves addresses while nothing is lost: a QP's connection allows 1 s for it, as long as the kernel waits to repeat a
# lost solicitation. A link that was down has forgotten them.
neighbours() { a ping -q -c 1 -W 1 $BIP && a ping -q -c 1 -W 1 $BIP6; }

# Unreclaimable kernel memory, KiB, without the free objects that slab caches and KASAN's quarantine keep.
unreclaimable() {
	local cache
	for cache in /sys/kernel/slab/*/shrink; do
		echo 1 > "$cache"
	done
	awk '/^(SUnreclaim|Percpu|KernelStack)/ { n += $2 } END { print n }' /proc/meminfo
}

ktap_header
pair_up > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
modprobe -q sch_netem
wire loss 0% || { ktap_skip "all" "no netem in this kernel"; ktap_end; }
: > /tmp/figures
for ((n = 1; SECONDS < MINUTES * 60; n++)); do
	choose $n
	ktap_check "round $n: $options ${memory:+on-demand memory, }${family:+IPv6, }$impairment, trains $trains, paths=$paths, any_interface=$any_interface, $during, then $after" round || break
	[ $n != 4 ] || before=$(unreclaimable)	# caches are filled by now
done
awk -v rounds=$((n - 1)) -v seconds=$SECONDS -v more=$(($(unreclaimable) - ${before:-$(unreclaimable)})) '
	{ for (i = 1; i <= NF; i++) { split($i, f, "="); sum[f[1]] += f[2] } }
	END { printf "# soak: %d s, %d rounds, %d messages, %d bytes compared, %d packets lost, %d corrupted, %d KiB of kernel memory more\n",
		seconds, rounds, sum["judged"], sum["bytes"], sum["dropped"], sum["corrupted"], more
		printf "# %d trials of several paths\n", sum["trials"] }' /tmp/figures
ktap_end
