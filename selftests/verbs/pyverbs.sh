#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# rdma-core's own Python tests on one device. Passes if none fails and at least MIN_OK (94) pass.
#	pyverbs.sh [ROUNDS]	(default 1; 20 is the soak: each makes other random choices)
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
. "$HERE/pair.sh"
ROUNDS=${1:-1} MIN_OK=${MIN_OK:-94} DIR=/tmp/pyverbs-tests
# shellcheck disable=SC2034 # wire_options.sh reads it
WIRE_SINGLE=y
PY=/usr/bin/python3	# pyverbs belongs to the distribution's interpreter
# The tests choose QP parameters at random and are skipped where those exceed the device: 119 to 123 of them pass.
# The round's number is the seed, so a round repeats its choices.
DRAW="import random, runpy, sys
random.seed(int(sys.argv.pop(1)))
runpy.run_path('$DIR/run_tests.py', run_name='__main__')"

one_round() {
	local ok bad skip rc
	# A Python warning would come between a test's name and its "ok".
	(cd $DIR && a timeout 800 $PY -W ignore -c "$DRAW" "$1" --dev "$ADEV" --port 1 --gid "$GID" -v) > /tmp/pyverbs.log 2>&1
	rc=$?
	ok=$(grep -c '\.\.\. ok$' /tmp/pyverbs.log)
	bad=$(grep -cE '\.\.\. (FAIL|ERROR)$' /tmp/pyverbs.log)
	skip=$(grep -c '\.\.\. skipped' /tmp/pyverbs.log)
	echo "# round $1: $ok ok, $bad failed, $skip skipped, status $rc" >&3
	[ $rc = 0 ] && [ "$bad" = 0 ] && [ "$ok" -ge "$MIN_OK" ] && return 0
	grep -E '\.\.\. (FAIL|ERROR)$' /tmp/pyverbs.log
	grep -A 25 -E '^(FAIL|ERROR):' /tmp/pyverbs.log | head -n "${PYVERBS_LINES:-60}"
	tail -n 3 /tmp/pyverbs.log
	return 1
}

ktap_header
exec 3>&1
[ -d /usr/share/doc/rdma-core/tests ] || { ktap_skip "pyverbs" "rdma-core's tests are not installed"; ktap_end; }
needs_every_packet
rm -rf $DIR && cp -r /usr/share/doc/rdma-core/tests $DIR && find $DIR -name '*.gz' -exec gunzip -f {} +
[ ! -e /proc/sys/vm/nr_hugepages ] || echo 8 > /proc/sys/vm/nr_hugepages
pair_up > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
GID=$(gid_index "$ADEV" "$AIP" "$([ "$LINK_TYPE" = roan ] && echo h1)")
for ((i = 1; i <= ROUNDS; i++)); do
	ktap_check "pyverbs round $i" one_round "$i" || break
done
[ -z "${PYVERBS_LOG:-}" ] || cat /tmp/pyverbs.log
ktap_end
