#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The histograms of ports/1/latency/: which requests count in which file, how many, and that none counts as shorter than
# the network's delay.
#
#	server, h1: roan1 v1 ==== 5 ms each way ==== v2 roan2 :h2, client
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
. "$HERE/../verbs/pair.sh"
N=50
SHORTEST=8388608 # ns: no round trip is in a bucket up to this limit

# Prints three numbers of a file: its entries, those of them in buckets up to SHORTEST, the sum of all times in us.
figures() { # NAME
	awk -v shortest=$SHORTEST '
		$1 == "sum_ns" { sum = $2; next }
		{ n += $2 }
		$1 != "inf" && $1 <= shortest { short += $2 }
		END { printf "%d %d %d\n", n, short, sum / 1000 }' "$FOLDER/$1"
}
all() { for f in "${FILES[@]}"; do echo "$f $(figures "$f")"; done; }

# One request at a time: each counts, in its file and in no other, and takes at least the delay.
counts_as() { # NAME TOOL...
	local name=$1 before after n
	shift
	before=$(all)
	both 250 18700 "$1 -d $ADEV -p 18700 -F -n $N ${*:2}" "$1 -d $BDEV -p 18700 -F -n $N ${*:2} $AIP" || return
	after=$(all)
	diff <(grep -v "^$name \|^rtt " <<< "$before") <(grep -v "^$name \|^rtt " <<< "$after") || return
	for f in $name rtt; do
		read -r n short us < <(awk -v f="$f" '$1 == f { print $2 - n, $3 - s, $4 - u; n = $2; s = $3; u = $4 }' <<< "$before"$'\n'"$after" | tail -n 1)
		echo "$f: $n entries, $short short, $us us"
		[ "$short" = 0 ] && [ "$us" -ge $((n * 10000)) ] || return
		case $f in rtt) [ "$n" -gt 0 ] ;; *) [ "$n" -ge $((N - 1)) ] ;; esac || return
	done
}
nothing_counts() { # TOOL...
	local before
	before=$(all)
	both 250 18700 "$1 -d $ADEV -p 18700 -F -n $N ${*:2}" "$1 -d $BDEV -p 18700 -F -n $N ${*:2} $AIP" || return
	diff <(echo "$before") <(all)
}
limits_double() {
	awk '$1 ~ /^[0-9]+$/ { if (last && $1 != 2 * last) exit 1; last = $1; n++ } END { exit !(n == 23 && last == 2 ^ 32) }' "$FOLDER/rtt"
}
read_only() { ! sh -c "echo 0 > $FOLDER/rtt" 2> /dev/null; }

ktap_header
needs_every_packet
pair_up > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
FOLDER=/sys/class/infiniband/$BDEV/ports/1/latency
mapfile -t FILES < <(ls "$FOLDER")
ktap_check "the limits are powers of two up to 2^32 ns" limits_double
ktap_check "the files are read-only" read_only
wire delay 5ms || ktap_fail "netem"
ktap_check "WRITEs" counts_as write ib_write_lat
ktap_check "SENDs" counts_as send ib_send_lat
ktap_check "READs" counts_as read ib_read_lat
ktap_check "atomics" counts_as atomic ib_atomic_lat
ktap_check "UD counts nowhere" nothing_counts ib_send_lat -c UD
ktap_check "UC counts nowhere" nothing_counts ib_write_lat -c UC
ktap_end
