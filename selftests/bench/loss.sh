#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Measures goodput over loss in virtual time (loss_guest.sh) and draws it: Documentation/goodput-over-loss.svg, and the
# points as CSV in build/bench/loss.csv. The load of the machine does not matter. Needs gnuplot. -o: draws what is there.
set -eu
cd "$(dirname "$(readlink -f "$0")")/../.."
points=build/bench/loss.csv
out=Documentation/goodput-over-loss.svg
if [ "${1:-}" != -o ]; then
	mkdir -p build/bench
	make -s provider programs
	: > $points
	for pair in roan tcp rxe-roan roan-rxe rxe; do
		LAB_ENV="PAIR MS LOSSES" PAIR=$pair selftests/vm/run.sh uml -v selftests/bench/loss_guest.sh | tee /dev/stderr |
			sed -n 's/^point //p' | tr ' ' , >> $points
	done
fi
plot() { # GBPS RTT_US
	local pair title colour sep='plot '
	while read -r pair colour title; do
		printf "%s'< grep ^%s,%s,%s, %s' using 4:5 with linespoints pt 7 ps 0.5 lw 1.6 lc rgb '%s' title '%s'" "$sep" "$pair" "$1" "$2" $points "$colour" "$title"
		sep=', '
	done <<-END
		roan #3060a0 roan to roan
		tcp #606060 TCP
		rxe-roan #e08000 rdma_rxe to roan
		roan-rxe #c03020 roan to rdma_rxe
		rxe #a0a0a0 rdma_rxe to itself
	END
	echo
}
{
	echo "set terminal svg size 800,300 font 'sans,11' background '#ffffff' noenhanced; set output '$out'; set datafile separator ','"
	echo "set logscale x; set xrange [0.01:10]; set xtics ('0.01' 0.01, '0.1' 0.1, '1' 1, '10' 10); set xlabel 'packets lost, %' offset 0,0.5"
	echo "set grid lc rgb '#dddddd'; set key bottom left samplen 1.5 font ',10'; set multiplot layout 1,2"
	for link in "10 20" "40 100"; do
		read -r gbps rtt <<< "$link"
		echo "set title '$gbps Gb/s, round trip $rtt us' offset 0,-0.6; set ylabel 'goodput, Gb/s' offset 1.5; set yrange [0:$gbps]"
		plot "$gbps" "$rtt"
	done
} | gnuplot
sed -i '1a <!-- SPDX-License-Identifier: GPL-2.0 -->' $out
