#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Some scenarios of the lab in one guest in virtual time, with wide bars; takes a minute. `check` has the narrow bars.
# shellcheck source=selftests/vm/lib.sh
. "$REPO/selftests/vm/lib.sh"
HERE=$REPO/selftests/cc

# lab NAME "CONDITION on the figures, in python" LAB.SH'S ARGUMENTS...
lab() {
	local name=$1 condition=$2 figures
	shift 2
	export KEPT=/tmp/kept
	rm -rf $KEPT
	if ! bash "$HERE/lab.sh" "$@" > /tmp/lab.out 2>&1; then
		sed 's/^/# /' /tmp/lab.out
		ktap_fail "$name" "the lab did not finish"
		return
	fi
	figures=$(python3 "$HERE/report.py" $KEPT)
	echo "# $figures"
	ktap_check "$name" python3 -c '
import sys
f = dict(w.split("=") for w in sys.argv[2].split())
f = {k: float(v) for k, v in f.items() if k != "scenario"}
sys.exit(not eval(sys.argv[1], {}, f))' "$condition" "$figures"
}

# Records what `roan qp` shows of h1's QP while the lab runs, every 5 ms from its creation.
watch() {
	until rdma resource show qp link roan1/1 2> /dev/null | grep -q RC; do
		sleep 0.005
	done
	exec "$REPO/tools/roan" watch roan1 -i 0.005 -c 15 > /tmp/watched
}

# Marks have cut the rate and raised alpha, and both recover; CNPs only increase; there is a round trip.
watch_moved() {
	awk '$1 ~ /^[0-9]+$/ && $3 != "-" && $5 {
		n++; if ($3 > high) high = $3; if (!low || $3 < low) low = $3
		if ($4 > top) top = $4; last = $4
		if ($5 < cnps) bad = 1; cnps = $5
		if ($6 != "-") timed++
	} END { print n, low, high, top, last, cnps, timed; exit bad || !(n >= 5 && high > low && top > last && cnps && timed) }' /tmp/watched ||
		{ cat /tmp/watched; return 1; }
}

ktap_header
lab "two flows share 10 Gb/s without loss" "util > .99 and jain > .8 and not drops" \
	incast 2 10 8 4096 none 0.04 5000 200000 .02 16384 1
lab "a flow over two bottlenecks gets a share" "util > .99 and not drops" \
	parking-lot 3 10 8 4096 none 0.04 5000 200000 .02 16384 1
lab "TCP and RDMA use one bottleneck together" "util > .99" \
	tcp-mix 2 10 8 4096 none 0.04 5000 200000 .02 16384 1
lab "pauses without DCQCN: no loss, but the victim flow loses its rate" "pauses > 100 and victim < .4 and not drops" \
	victim 4 10 8 4096 none 0.04 5000 200000 .02 16384 1
watch & watcher=$!
lab "with DCQCN there are few pauses" "pauses < 140 and util > .8 and cnps and not drops" \
	victim 4 10 8 4096 dcqcn 0.08 5000 200000 .02 16384 1
kill $watcher 2> /dev/null		# it may still wait for a QP
wait $watcher
ktap_check "roan watch shows changes of rate, alpha, CNPs and round trip" watch_moved
lab "a storm of forged pauses is limited by the watchdog" "storms and .8 < stormed < .95 and not drops" \
	storm 1 10 8 4096 none 0.2 5000 200000 .02 16384 1
ktap_end
