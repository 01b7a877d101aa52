#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# One function per measurement. Sourced by guest.sh, which sets ROUND, CONTENDER, TEST and SIZE. Each function prints its
# values by say and its failed attempts by again. If all attempts fail, the value is "-".

BYTES=$((MIB << 20))
MOST=$((MIB < 128 ? MIB * 400 : 51200))	# most messages of a bandwidth run
SCALE=$PROGRAMS/scale

say() { echo "@ $ROUND ${CONTENDER/-/ } $1 $SIZE ${2:--}"; }
again() { echo "@again ${CONTENDER/-/ } $*"; }
quotient() { awk -v a="$1" -v b="$2" -v f="${3:-1}" 'BEGIN { if (a > 0 && b > 0) printf "%.4g\n", f * a / b }'; }

listening() { ${1:+ip netns exec "$1"} ss -Hltn "sport = :$2" | grep -q .; }

# perf CONTENDER PROGRAM ARG...: runs server and client, and sets FIGURES to the client's line of results. CLIENT: prefix
# of the client's command
perf() {
	local sns cns sdev cdev sgid cgid ip server
	read -r sns cns sdev cdev sgid cgid ip <<< "${CONTENDERS[$1]}"
	sns=${sns#-} cns=${cns#-}
	PORT=$((18515 + (PORT + 1) % 1000))
	shift
	timeout -k 2 "$LIMIT" ${sns:+ip netns exec "$sns"} "${SERVER_AT[@]}" "$1" -F -m 4096 -p $PORT -d "$sdev" -x "$sgid" "${@:2}" \
		> /tmp/server 2>&1 &
	server=$!
	wait_for 5 listening "$sns" $PORT
	# shellcheck disable=SC2086 # CLIENT is words
	timeout -k 2 "$LIMIT" ${cns:+ip netns exec "$cns"} ${CLIENT:-} "${CLIENT_AT[@]}" "$1" -F -m 4096 -p $PORT -d "$cdev" \
		-x "$cgid" "${@:2}" "$ip" > /tmp/client 2>&1 || kill $server 2> /dev/null
	wait $server 2> /dev/null
	FIGURES=$(grep -A1 '^ *#bytes' /tmp/client | tail -n 1)
}

# perftest prints inf, nan or 0 if it could not calibrate the cycle counter. Such a run is repeated.
sane() { [[ $1 =~ ^[0-9]+(\.[0-9]+)?$ ]] && [[ $1 =~ [1-9] ]]; }

# attempts FIELD PROGRAM ARG...: runs perf until the field of FIGURES is a number, at most five times, and reports each
# failure. Three runs that do not finish end the measurement; in later rounds, the first such run ends it.
declare -A HUNG
attempts() {
	local field=$1 n hung=0
	for n in 1 2 3 4 5; do
		perf "$CONTENDER" "${@:2}"
		sane "$(awk -v f="$field" '{ print $f }' <<< "$FIGURES")" && return
		case $FIGURES in
		*inf* | *nan* | *[0-9]*) again "${*:2}" "attempt $n: cycle counter" ;;
		*)
			again "${*:2}" "attempt $n: did not finish"
			hung=$((hung + 1))
			if [ $hung = 3 ] || [ -n "${HUNG[$CONTENDER $*]:-}" ]; then
				HUNG[$CONTENDER $*]=y
				break
			fi ;;
		esac
	done
	FIGURES='- - - - - - - - -'
}

bandwidth() {
	local n=$((BYTES / SIZE)) avg rate
	[[ $CONTENDER != *-tcp ]] || { tcp; return; }
	n=$((n > MOST ? MOST : n))
	attempts 4 "ib_$TEST" -s "$SIZE" -n $n
	read -r _ _ _ avg rate _ <<< "$FIGURES"
	say "$TEST" "$avg"
	[ "$TEST/$SIZE" != write_bw/64 ] || say write_rate "$(quotient "$rate" 1 1e6)"
}

rate_of_16() {
	local rate
	attempts 5 ib_write_bw -s "$SIZE" -q 16 -n $((MOST / 16))
	read -r _ _ _ _ rate _ <<< "$FIGURES"
	say "$TEST" "$(quotient "$rate" 1 1e6)"
}

latency() {
	local median p99
	attempts 5 ib_send_lat -s "$SIZE" -n 2000
	read -r _ _ _ _ median _ _ p99 _ <<< "$FIGURES"
	say send_lat_median "$median"
	say send_lat_p99 "$p99"
}
# µs of a system call that does nothing, and of a switch to another process. A message needs at least one of them.
empty_call() {
	local empty over
	read -r empty over < <("$PROGRAMS/empty_call")
	say "$TEST" "$empty"
	say hand_over "$(quotient "$over" 1)"
}

# stream_tcp SECONDS: MiB/s of iperf3 with writes of SIZE bytes
stream_tcp() {
	local ip=10.9.1.2 mbps args=(-B 10.9.1.1 --bind-dev xa) in=()
	[ "$CONTENDER" != hosts-tcp ] || { ip=$H2IP args=() in=(ip netns exec h1); }
	mbps=$(timeout -k 2 $(($1 + 15)) "${in[@]}" "${CLIENT_AT[@]}" iperf3 -c "$ip" "${args[@]}" -f m -t "$1" -l "$SIZE" |
		awk '/receiver/ { print $(NF - 2) }')
	quotient "$mbps" 1 0.11920929	# 1e6 / 8 / 2^20
}
tcp() { say "$TEST" "$(stream_tcp 1)"; }

# scale COMMAND ARG...: runs selftests/verbs/scale.c on the contender's devices, in up to three attempts. OUT: its output
scale() {
	local sns cns sdev cdev n
	read -r sns cns sdev cdev _ <<< "${CONTENDERS[$CONTENDER]}"
	cns=${cns#-}
	for n in 1 2 3; do
		OUT=$(timeout -k 5 $((LIMIT + 120)) ${cns:+ip netns exec "$cns"} "$SCALE" "$1" -d "$cdev" -D "$sdev" "${@:2}" 2>&1) &&
			return
		again "scale $* attempt $n: ${OUT##*$'\n'}"
		sleep 1
	done
	OUT=
	return 1
}

# Jiffies that all CPUs together have been busy since boot.
busy() { awk '$1 == "cpu" { print $2 + $3 + $4 + $7 + $8 + $9 }' /proc/stat; }

# CPU seconds per GiB, sender and receiver together. Both sleep while they wait (scale -e), so waiting takes no CPU time.
cpu_per_gib() {
	local n s cpu before rate
	if [ "$CONTENDER" = pair-tcp ]; then
		before=$(busy)
		rate=$(stream_tcp 2)
		say "$TEST" "$(quotient $(($(busy) - before)) "$rate" "$(quotient 1024 $((2 * $(getconf CLK_TCK))))")"
		return
	fi
	scale stream -e -s "$SIZE" -t 2
	read -r _ n _ s _ cpu <<< "$OUT"
	say "$TEST" "$(quotient "$cpu" "$n" "$(quotient $((1 << 30)) "$SIZE")")"
}

# gso_max_segs 1 makes each packet an skb of its own. netem drops whole skbs, so each drop is one packet for every stack.
goodput() {
	local dev=xa at='' n s
	[ "$CONTENDER" != pair-roan ] || { dev=ya at='ip netns exec ra'; }
	$at ip link set $dev gso_max_segs 1
	if ! $at tc qdisc add dev $dev root netem loss "$1%" limit 10000; then
		again "$TEST attempt 1: no netem"
		say "$TEST"
	elif [ "$CONTENDER" = pair-tcp ]; then
		say "$TEST" "$(stream_tcp 2)"
	else
		scale stream -s "$SIZE" -t 2
		read -r _ n _ s _ <<< "$OUT"
		say "$TEST" "$(quotient "$n" "$s" "$(quotient "$SIZE" 1048576)")"
	fi
	$at tc qdisc del dev $dev root 2> /dev/null
	$at ip link set $dev gso_max_segs 65535
}

# Messages of 64 KiB per second over SIZE QPs, each message on the next QP.
over_qps() {
	local n s
	scale stream -n "$SIZE" -s 65536 -t 2
	read -r _ n _ s _ <<< "$OUT"
	say "$TEST" "$(quotient "$n" "$s")"
}

come_and_go() {
	local create connect destroy
	scale rate -n "$SIZE"
	read -r _ create _ connect _ destroy <<< "$OUT"
	say qp_create "$create"
	say qp_connect "$connect"
	say qp_destroy "$destroy"
}

memory() {
	local kernel rings
	scale memory -n "$SIZE"
	read -r _ kernel _ rings _ <<< "$OUT"
	say memory "$kernel"
	say ring_memory "$rings"
}

# System calls of the client per streamed message: the difference between runs of 20,000 and of 1,000 messages, over
# 19,000, so that calls for set-up do not count. Counted in the process, and by strace, which stops it at each call.
syscalls() {
	say syscalls "$(more_calls counted)"
	say syscalls_strace "$(more_calls straced)"
}
more_calls() {
	awk -v a="$($1 1000)" -v b="$($1 20000)" 'BEGIN { if (a != "" && b != "") printf "%.5f\n", (b - a) / 19000 }'
}
counted() {
	CLIENT="env LD_PRELOAD=$PROGRAMS/count_syscalls.so COUNT_FILE=/tmp/count" LIMIT=60 perf "$CONTENDER" ib_write_bw -s "$SIZE" -n "$1"
	[ -n "$FIGURES" ] && cat /tmp/count
}
straced() {
	CLIENT='strace -f -c -o /tmp/strace' LIMIT=60 perf "$CONTENDER" ib_write_bw -s "$SIZE" -n "$1"
	[ -n "$FIGURES" ] && awk '$NF == "total" { print $4 }' /tmp/strace
}

# Loads the modules that have the memory of the kinds gpu, bar and peer.
memory_clients() {
	local ko
	[ -n "${CONTENDERS[hosts-roan]:-}" ] && [ -x "$PROGRAMS/memory" ] && ko=$(roan_ko) || return
	[ -e /sys/module/roan_fake_gpu ] || { insmod "${ko%/*}/roan_peermem.ko"; insmod "${ko%/*}/roan_fake_gpu.ko"; }
}

# memory_kind KIND: bandwidth with memory of that kind at both ends, by selftests/gpu/memory.c
memory_kind() {
	local server n
	for n in 1 2; do
		timeout -k 2 20 ip netns exec h2 "$PROGRAMS/memory" -d "$H2DEV" -m "$1" > /dev/null 2>&1 &
		server=$!
		wait_for 5 listening h2 18533
		read -r _ OUT _ READ < <(timeout -k 2 20 ip netns exec h1 "$PROGRAMS/memory" -d "$H1DEV" -m "$1" -c "$H2IP" -b 300 2>&1)
		sane "${READ:-}" || { OUT='' READ=''; kill $server 2> /dev/null; }
		wait $server 2> /dev/null
		[ -z "$READ" ] || break
		again "memory -m $1 attempt $n: did not finish"
	done
	say "write_$TEST" "$OUT"
	say "read_$TEST" "$READ"
}

# Name of the CRC implementation that the driver uses on this machine: the fastest one when it is loaded.
crc_way() {
	local ko
	ko=$(roan_ko) && insmod "${ko%/*}/roan_limit.ko" bytes=4096 && cat /sys/module/roan_limit/parameters/crc
	rmmod roan_limit
}

# MiB/s of one CPU that only computes the driver's CRC for both ends and copies once; then of one CRC, of one copy.
limit() {
	local ko crc copy dir=/sys/module/roan_limit/parameters
	ko=$(roan_ko) && insmod "${ko%/*}/roan_limit.ko" bytes="$SIZE" && crc=$(cat $dir/crc_ns) && copy=$(cat $dir/copy_ns)
	rmmod roan_limit
	say "$TEST" "$(quotient 1e9 $((2 * ${crc:-0} + ${copy:-0})))"
	say limit_crc "$(quotient 1e9 "${crc:-0}")"
	say limit_copy "$(quotient 1e9 "${copy:-0}")"
}
