#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The tracepoints that show refused packets, registrations of memory and refused keys.
# tracepoints.py has the cases. Needs a kernel with tracepoints.
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
. "$HERE/../net/packets/python.sh"

set_up() {
	load_modules && two_hosts && mkdir -p /tmp/trace && { mountpoint -q /tmp/trace || mount -t tracefs t /tmp/trace; } || return
	[ -d /tmp/trace/events/roan ] || { echo "this kernel has no tracepoints"; return 4; }
}

ktap_header
python_needs tracepoints
set_up > /tmp/setup.log 2>&1
case $? in
0) python_runs tracepoints 300 env TRACE=/tmp/trace PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$HERE/../net/packets" ;;
4) ktap_skip "tracepoints" "$(tail -n 1 /tmp/setup.log)" ;;
*) cat /tmp/setup.log; ktap_fail "set-up" ;;
esac
ktap_end
