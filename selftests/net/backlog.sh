#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Packets for memory that is not there wait for it, and their sender is told to stop. backlog.py has the cases; memory is absent
# for as long as the file system that it is a file of is frozen.
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
PY=/usr/bin/python3	# pyverbs belongs to the distribution's interpreter

slow_file() {
	truncate -s 32M /tmp/slow.img && mkfs.ext4 -qFO ^has_journal /tmp/slow.img && mkdir /tmp/slow && modprobe -q loop
	mount -o loop /tmp/slow.img /tmp/slow && dd if=/dev/zero of=/tmp/slow/file bs=1M count=8
}

ktap_header
[ "$LINK_TYPE" = roan ] || { ktap_skip "backlog" "knows roan's parameters"; ktap_end; }
$PY -c 'import pyverbs.qp' 2> /dev/null || { ktap_skip "backlog" "no pyverbs"; ktap_end; }
{ load_modules && two_hosts && slow_file; } > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
on h2 cat /sys/class/net/v2/address > /run/mac2
timeout -k 5 250 $PY "$HERE/backlog.py" 2> /tmp/backlog.err
rc=$?
fsfreeze -u /tmp/slow 2> /dev/null
if [ -s /tmp/backlog.err ] || [ $rc -gt 1 ]; then
	tail -n 15 /tmp/backlog.err | sed 's/^/# /'
	echo "not ok backlog.py ends by itself # status $rc"
	exit 1
fi
exit $rc
