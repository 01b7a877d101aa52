#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The limit of data in flight is known after the first round trip, and may be below what is in flight then. The
# requester must then send an AckReq if none is outstanding, or it waits for ever (-u 0: no ACK timeout). Needs several
# CPUs: on one CPU a send round is seldom cut short before its AckReq.
#
#	h1: v1, roan1  =veth=  v2, roan2: h2	window_bdp 1 %
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
. "$HERE/../verbs/pair.sh"

set_up() { pair_up && echo 1 > /sys/class/infiniband/$BDEV/ports/1/cc_param/window_bdp; }
write_bw() {
	local c="ib_write_bw -F -u 0 -s 1048576 -n 5"

	both 100 18515 "$c -d $ADEV" "$c -d $BDEV $AIP"
}

ktap_header
[ "$LINK_TYPE" = roan ] || { ktap_skip "window" "needs roan's parameters"; ktap_end; }
set_up > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
for n in 1 2 3 4 5 6; do	# without the AckReq about one of six hangs
	ktap_check "the window shrinks below what is in flight, the ${n}. time" write_bw
done
ktap_end
