#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The lab in a minute: some scenarios in one guest in virtual time, judged by wide bars. `check` has the narrow ones.
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

ktap_header
lab "two flows share 10 Gb/s, nothing is lost" "util > .99 and jain > .8 and not drops" \
	incast 2 10 8 4096 none 0.04 5000 200000 .02 16384 1
lab "a flow over two bottlenecks gets through" "util > .99 and not drops" \
	parking-lot 3 10 8 4096 none 0.04 5000 200000 .02 16384 1
lab "TCP and RDMA use one bottleneck together" "util > .99" \
	tcp-mix 2 10 8 4096 none 0.04 5000 200000 .02 16384 1
ktap_end
