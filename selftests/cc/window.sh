#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What may be in flight is known from the first round trip on, and may be less than what is then: whoever has asked for no answer
# yet has to, or it waits for ever (-u 0: no ACK timeout). Wants several CPUs: on one, a turn is seldom cut short of what asks.
#
#	h1: v1, roan1  =veth=  v2, roan2: h2	window_bdp 1 %
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
. "$HERE/../verbs/pair.sh"

set_up() { pair_up && echo 1 > /sys/class/infiniband/$BDEV/ports/1/cc_param/window_bdp; }
write_bw() {
	local c="ib_write_bw -F -u 0 -s 1048576 -n 5"

	both 20 18515 "$c -d $ADEV" "$c -d $BDEV $AIP"
}

ktap_header
[ "$LINK_TYPE" = roan ] || { ktap_skip "window" "knows roan's parameters"; ktap_end; }
set_up > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
for n in 1 2 3 4 5 6; do	# in each of three guests, one of six hung before
	ktap_check "a small window becomes known with much in flight, the ${n}. time" write_bw
done
ktap_end
