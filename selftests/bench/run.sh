#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Runs guest.sh in a lab and hands what it printed to report.py, which writes Documentation/benchmarks.md and its figures.
#	run.sh [-r ROUNDS] [-o] [LAB...]	LAB: uml, qemu (default: both); -o: only report what build/bench holds already
# BENCH_RUN: the command that runs a script in a lab (default: selftests/vm/run.sh LAB -s SECONDS).
set -eu
HERE=$(dirname "$(readlink -f "$0")")
REPO=$(readlink -f "$HERE/../..")
OUT=$REPO/build/bench
rounds=5 only=
while getopts r:o o; do
	case $o in
	r) rounds=$OPTARG ;;
	o) only=y ;;
	*) sed -n 3,5p "$0"; exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || set -- uml qemu
mkdir -p "$OUT"
load() { cut -d' ' -f1 /proc/loadavg; }	# what else this machine was doing

for lab; do
	[ -z "$only" ] || break
	# Emulation is slow: less of everything, but still every kind.
	less=()
	[ "$lab" = uml ] || less=("SIZES=64,4096,65536,1048576" MIB=24 LIMIT=60)
	before=$(load)
	# shellcheck disable=SC2086 # BENCH_RUN is a command line
	${BENCH_RUN:-"$REPO/selftests/vm/run.sh" "$lab" -s $((300 + rounds * 600))} "$HERE/guest.sh" "REPO=$REPO" "LAB=$lab" \
		"ROUNDS=$rounds" "${less[@]}" | tee "$OUT/$lab.new"
	echo "@env host $(nproc) CPUs, load average $before at the start, $(load) at the end" >> "$OUT/$lab.new"
	grep -q '^@end' "$OUT/$lab.new" || { echo "run.sh: $lab did not finish; its old results stay"; exit 1; }
	mv "$OUT/$lab.new" "$OUT/$lab.log"
done
exec "$HERE/report.py" "$REPO/Documentation" "$OUT"/*.log
