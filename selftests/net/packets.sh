#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Packets that are cut, corrupt, spoofed, or make no sense: packets.py sends them and says what must come of each.
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
PY=/usr/bin/python3	# pyverbs belongs to the distribution's interpreter

ktap_header
[ "$LINK_TYPE" = roan ] || { ktap_skip "packets" "knows roan's counters"; ktap_end; }
$PY -c 'import pyverbs.qp' 2> /dev/null || { ktap_skip "packets" "no pyverbs"; ktap_end; }
{ load_modules && two_hosts; } > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
# All is judged by counters: nobody else may talk to the device meanwhile, and no neighbour is asked for while we count.
on h1 rdma link del "$H1DEV" || rdma link del "$H1DEV"
on h2 ip addr add 10.7.0.22/24 dev v2 && on h2 ip addr add fd07::22/64 dev v2 nodad
on h2 ip neigh replace "$H1IP" lladdr "$(on h1 cat /sys/class/net/v1/address)" dev v2
on h2 ip neigh replace "$H1IP6" lladdr "$(on h1 cat /sys/class/net/v1/address)" dev v2
echo 100000 > "/sys/class/infiniband/$H2DEV/ports/1/cc_param/min_time_between_cnps"
on h2 timeout -k 5 200 $PY "$HERE/packets.py" 2> /tmp/packets.err
rc=$?
if [ -s /tmp/packets.err ] || [ $rc -gt 1 ]; then
	tail -n 15 /tmp/packets.err | sed 's/^/# /'
	echo "not ok packets.py ends by itself # status $rc"
	exit 1
fi
exit $rc
