#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Sourced after lib.sh by tests whose cases are in a Python program beside them. It has no verdict of its own.
#
# python_needs NAME: skips the script if Python test NAME cannot run. python_runs NAME SECONDS WORD...: runs NAME.py,
# prefixed by the command WORD..., and relays its KTAP lines.
PY=/usr/bin/python3	# pyverbs belongs to the distribution's interpreter

python_needs() {
	[ "$LINK_TYPE" = roan ] || { ktap_skip "$1" "needs roan's counters and parameters"; ktap_end; }
	$PY -c 'import pyverbs.qp' 2> /dev/null || { ktap_skip "$1" "no pyverbs"; ktap_end; }
}

python_runs() {
	local name=$1 seconds=$2 rc
	shift 2
	"$@" timeout -k 5 "$seconds" $PY "$HERE/$name.py" > "/tmp/$name.out" 2> "/tmp/$name.err"
	rc=$?
	tail -n 15 "/tmp/$name.err" | sed 's/^/# /'
	[ ! -s "/tmp/$name.err" ] || rc=2	# an exception is a failure, whatever lines were printed before it
	ktap_relay "/tmp/$name.out" "$name" $rc
}
