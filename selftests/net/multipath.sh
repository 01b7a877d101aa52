#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Goodput of WRITEs and READs over four links between two routers, which choose a link by the UDP ports
# (fib_multipath_hash_policy=1).
# In virtual time, so that it depends on the protocol only.
#
#	h1: v1, roan1 ==u1 r1 a1 ==== b1 r2 u2== v2, roan2 :h2		aN: netem: line rate, half the RTT of 20 us, loss
#	                      ...	(4 links)			bN: half the RTT; for READs the other way round
#
# MS=MILLISECONDS: length of each measurement (40). PATHS: cc_param/paths (32). ONLY=WORDS: the cases with them.
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
. "$HERE/lossy_link.sh"
. "$HERE/multipath_links.sh"
MS=${MS:-40} PATHS=${PATHS:-32}

netem() { on "$1" tc qdisc replace dev "$2" root netem delay 10us limit 100000 "${@:3}"; } # NETNS DEV OPTIONS...

# links GBPS... [LOSS_%]: of each link; a last word with % is the loss of the first one. READS: towards h1.
links() {
	local i=0 gbps loss=0% data=(r1 a) acks=(r2 b)
	[[ -z ${READS:-} ]] || { data=(r2 b) acks=(r1 a); }
	[[ ${*: -1} != *% ]] || loss=${*: -1}
	for gbps in "$@"; do
		[[ $gbps != *% ]] || break
		i=$((i + 1))
		netem ${data[0]} ${data[1]}$i rate ${gbps}gbit loss $loss && netem ${acks[0]} ${acks[1]}$i || return
		loss=0%
	done
}

# goodput LEAST GBPS...: one QP; LEAST per cent of the links' sum
goodput() {
	local least=$1 again
	shift
	again=$(counter roan1 resent_pkts)
	links "$@" && flow 10.7.2.1 ${READS:+-R} || return
	awk -F, -v words="$*" -v ms="$MS" -v least="$least" -v again=$(($(counter roan1 resent_pkts) - again)) 'NR > 1 { n += $2 * 8 }
		END { m = split(words, w, " "); for (i = 1; i <= m; i++) sum += w[i] ~ /%/ ? 0 : w[i]
		share = n / ms / 1e6 / sum * 4154 / 4096
		printf "# %.1f of %.1f Gb/s, %d %%; %d packets sent again\n", n / ms / 1e6, sum, 100 * share, again
		exit share * 100 < least }' /tmp/series.csv >&3
}

# The second half of a run, of 40 Gb/s: by then the QP has found out that several paths give it more, or has not.
goodput_of_second_half() { # LEAST
	links 10 10 10 10 && flow 10.7.2.1 || return
	awk -F, -v least="$1" -v ms="$MS" 'NR > 1 && ++row > ms / 2 { n += $2 * 8 }
		END { gbps = n / ms * 2 / 1e6; share = gbps / 40 * 4154 / 4096 * 100
		printf "# %.1f Gb/s, %d %%\n", gbps, share
		exit share < least }' /tmp/series.csv >&3
}

# From 10 ms after the failure on, of the other links' sum. If no link had failed it would be more than that.
goodput_after_failure() { # LEAST
	links 10 10 10 10 || return
	{ sleep 0.12; links 10 10 10 10 100%; } &
	flow 10.7.2.1 ${READS:+-R} || return
	awk -F, -v least="$1" 'NR > 1 && $1 > 30500 { n += $2 * 8; ms++ }
		END { gbps = n / ms / 1e6; share = gbps / 30 * 4154 / 4096 * 100
		printf "# %.1f Gb/s, %d %%\n", gbps, share
		exit share < least || share > 105 }' /tmp/series.csv >&3
}

# The slowest of eight, by hash and sprayed.
eight_qps() {
	local paths least=()
	links 10 10 10 10 || return
	for paths in 1 "$PATHS"; do
		set_paths "$paths" && flow 10.7.2.1 -n 8 -q 4 || return
		least+=("$(grep -o 'gbps=[0-9.]*' /tmp/flow | cut -d= -f2 | sort -n | head -1)")
	done
	echo "# the slowest QP: ${least[0]} Gb/s over one path each, ${least[1]} over $PATHS" >&3
	awk "BEGIN { exit ${least[1]} < 4.4 }"
}

exec 3>&1
ktap_header
fabric > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
check() {
	[[ -z ${ONLY:-} || $1 == *$ONLY* ]] || return 0
	ktap_check "$@"
}
set_paths 1
check "one path: four links of 10 Gb/s" goodput 20 10 10 10 10
set_paths "$PATHS"
check "four links of 10 Gb/s" goodput 90 10 10 10 10
set_paths 0
MS=100 check "automatic: four links of 10 Gb/s, 90 % of them in the second half" goodput_of_second_half 90
set_paths "$PATHS"
MS=80 check "links of 10, 10, 5 and 2.5 Gb/s" goodput 90 10 10 5 2.5
check "four links of 10 Gb/s, one loses 2 %" goodput 85 10 10 10 10 2%
check "four links of 10 Gb/s, one fails after 20 ms: 90 % of the others 10 ms later" goodput_after_failure 90
check "eight QPs over four links of 10 Gb/s" eight_qps
set_paths 1
READS=y check "READs, one path: four links of 10 Gb/s" goodput 20 10 10 10 10
set_paths "$PATHS"
READS=y check "READs, four links of 10 Gb/s" goodput 85 10 10 10 10
READS=y MS=80 check "READs, links of 10, 10, 5 and 2.5 Gb/s" goodput 80 10 10 5 2.5
READS=y check "READs, four links of 10 Gb/s, one loses 2 %" goodput 70 10 10 10 10 2%
READS=y check "READs, four links of 10 Gb/s, one fails after 20 ms: 80 % of the others 10 ms later" goodput_after_failure 80
ktap_end
