#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Runs guest.sh in a lab and passes its output to report.py, which writes Documentation/benchmarks.md, measurements.md, figures.
#	run.sh [-r ROUNDS] [-p CPUS] [-o] [-c] [LAB...]	LAB: uml, qemu (default: both)
#	-p: number of CPUs for QEMU (default: 2)
#	-o: only write the pages, from the logs in build/bench	-c: continue an interrupted run
# Results are appended as they arrive. A guest that crashes is started again at the incomplete round (ratios are computed
# within rounds), without the measurement in which it crashed. After four boots the results so far are reported.
# BENCH_RUN: the command that runs a script in a lab (default: selftests/vm/run.sh LAB -s SECONDS).
set -eu
HERE=$(dirname "$(readlink -f "$0")")
REPO=$(readlink -f "$HERE/../..")
OUT=$REPO/build/bench
BOOTS=4
rounds=5 cpus=2 only='' continue=''
while getopts r:p:oc o; do
	case $o in
	r) rounds=$OPTARG ;;
	p) cpus=$OPTARG ;;
	o) only=y ;;
	c) continue=y ;;
	*) sed -n 4,9p "$0"; exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || set -- uml qemu
export EMULATOR="${EMULATOR:-qemu-system-x86_64}"	# the tests may use another; all figures are of this one
mkdir -p "$OUT"
load() { cut -d' ' -f1 /proc/loadavg; }	# shows how busy the machine was with other work

next_round() { echo $(($(sed -n 's/^@round //p' "$1" | sort -n | tail -n 1) + 1)); }
# The measurement in which the last boot ended, if it ended early.
culprit() { grep -E '^@(try|end|boot)' "$1" | tail -n 1 | sed -n 's/^@try //p'; }

boot() { # LAB LOG SKIP: runs one guest, from the first incomplete round on
	local lab=$1 log=$2 less=()
	# Emulation is slow: fewer sizes and fewer bytes, but every measurement.
	[ "$lab" = uml ] || less=("SIZES=64,4096,65536,1048576" MIB=128 LIMIT=60)
	# shellcheck disable=SC2086 # BENCH_RUN is a command line
	BENCH=m ${BENCH_RUN:-"$REPO/selftests/vm/run.sh" "$lab" -c "$cpus" -s $((400 + rounds * 600))} "$HERE/guest.sh" "REPO=$REPO" \
		"LAB=$lab" "ROUNDS=$rounds" "FROM=$(next_round "$log")" "SKIP=$3" "${less[@]}" | tee -a "$log" || true
}

measure() { # LAB
	local lab=$1 log=$OUT/$1.log skip='' n before
	[ -n "$continue" ] && [ -e "$log" ] || : > "$log"
	before=$(load)
	for ((n = 1; n <= BOOTS; n++)); do
		[ "$(next_round "$log")" -le "$rounds" ] || break
		echo "@boot $n" >> "$log"
		boot "$lab" "$log" "$skip"
		[ "$(next_round "$log")" -le "$rounds" ] || break
		skip=$skip${skip:+,}$(culprit "$log")
		echo "run.sh: $lab: boot $n ended early in round $(next_round "$log"), during $(culprit "$log")"
		[ -z "$(culprit "$log")" ] || echo "@died $(culprit "$log")" >> "$log"
	done
	echo "@env host $(nproc) CPUs, load average $before at the start, $(load) at the end" >> "$log"
}

if [ -z "$only" ]; then
	make -s -C "$REPO" programs
	for lab; do measure "$lab"; done
fi
exec "$HERE/report.py" "$REPO/Documentation" "$OUT"/*.log
