#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Sourced, after lib.sh, by tests whose cases a Python program beside them has. It judges nothing itself.
#
# python_needs NAME: ends the script where NAME cannot run. python_runs NAME SECONDS WORD...: NAME.py, by way of the command
# WORD...; its KTAP is ours.
PY=/usr/bin/python3	# pyverbs belongs to the distribution's interpreter

python_needs() {
	[ "$LINK_TYPE" = roan ] || { ktap_skip "$1" "knows roan's counters and parameters"; ktap_end; }
	$PY -c 'import pyverbs.qp' 2> /dev/null || { ktap_skip "$1" "no pyverbs"; ktap_end; }
}

python_runs() {
	local name=$1 seconds=$2 rc
	shift 2
	"$@" timeout -k 5 "$seconds" $PY "$HERE/$name.py" > "/tmp/$name.out" 2> "/tmp/$name.err"
	rc=$?
	tail -n 15 "/tmp/$name.err" | sed 's/^/# /'
	[ ! -s "/tmp/$name.err" ] || rc=2	# an exception, whatever became of the lines before it
	ktap_relay "/tmp/$name.out" "$name" $rc
}
