#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Packets that a program accepts (NFQUEUE, as intrusion prevention uses) are received in that program's context, not in
# a softirq.
#
#	h1: v1, roan1  =veth=  v2, roan2: h2	in h2 packets to port 4791 are queued to nfqueue.py
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../../vm/lib.sh"
. "$HERE/../../verbs/pair.sh"

set_up() {
	pair_up || return
	b nft "add table inet t; add chain inet t in { type filter hook input priority 0; }; add rule inet t in udp dport 4791 queue num 5" || return
	b /usr/bin/python3 "$HERE/nfqueue.py" > /tmp/nfqueue 2>&1 &
	wait_for 20 grep -q bound /tmp/nfqueue
}
queued() { b cat /proc/net/netfilter/nfnetlink_queue | awk '{ print $8 }'; }
both_ways() {
	local had c="ib_write_bw -F -b -q 4 -n 100 -t 16 -u 20 -s 4096"
	had=$(queued)
	both 100 18515 "$c -d $ADEV" "$c -d $BDEV $AIP" || return
	echo "# $(($(queued) - had)) packets waited" >&3
	[ "$(queued)" -gt "$had" ]
}

exec 3>&1
ktap_header
command -v nft > /dev/null || { ktap_skip "nfqueue" "no nft"; ktap_end; }
set_up > /tmp/setup.log 2>&1 || { cat /tmp/setup.log /tmp/nfqueue; ktap_fail "set-up"; ktap_end; }
for n in 1 2 3; do
	ktap_check "WRITEs both ways through NFQUEUE, the ${n}. time" both_ways
done
kill %1
ktap_end
