#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Priority flow control: pause frames stop a priority and nothing else, for as long as they may and no longer. pfc.py sends them.
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
PY=/usr/bin/python3	# pyverbs belongs to the distribution's interpreter

ktap_header
[ "$LINK_TYPE" = roan ] || { ktap_skip "pfc" "knows roan's parameters"; ktap_end; }
$PY -c 'import pyverbs.qp' 2> /dev/null || { ktap_skip "pfc" "no pyverbs"; ktap_end; }
{ load_modules && two_hosts; } > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
on h1 rdma link del "$H1DEV" || rdma link del "$H1DEV"
on h2 ip neigh replace "$H1IP" lladdr "$(on h1 cat /sys/class/net/v1/address)" dev v2
on h2 ip neigh replace "$H1IP6" lladdr "$(on h1 cat /sys/class/net/v1/address)" dev v2
on h2 timeout -k 5 200 $PY "$HERE/pfc.py" 2> /tmp/pfc.err
rc=$?
if [ -s /tmp/pfc.err ] || [ $rc -gt 1 ]; then
	tail -n 15 /tmp/pfc.err | sed 's/^/# /'
	echo "not ok pfc.py ends by itself # status $rc"
	exit 1
fi
exit $rc
