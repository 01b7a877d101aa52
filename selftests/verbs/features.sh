#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# features on one device, over IPv4 and IPv6: its lines are the tests.
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
. "$HERE/pair.sh"
ktap_header
pair_up > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
for o in "" -6; do
	# shellcheck disable=SC2086
	a timeout 290 "$PROGRAMS/features" -d "$ADEV" $o > /tmp/features.out 2>&1
	ktap_relay /tmp/features.out features $? "${o:+IPv6: }"
done
ktap_end
